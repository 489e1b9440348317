"""The memo: optima of Specs as boxes in integer space, in one file, shared by processes and shipped with the package.

`memo.Memo` is what the search asks; `store.Store` is a file; `record` and `boxes` are what is in it
(docs/memo-format.md). Imports no MLIR, and no numba before something is written.
"""

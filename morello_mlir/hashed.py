"""A base for the nodes of immutable trees whose subtrees are shared and looked up often."""

from __future__ import annotations

from dataclasses import fields


class Hashed:
    """Keeps a node's hash: without it every look-up would walk the whole tree below.

    Subclasses are frozen dataclasses.
    """

    __slots__ = ("_hash",)
    _hash: int

    def __init_subclass__(cls) -> None:
        # `dataclass` writes a hash, one that walks the tree, for a class that does not say its own.
        if "__hash__" not in vars(cls):
            cls.__hash__ = Hashed.__hash__  # type: ignore[method-assign]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash((type(self).__name__, *(getattr(self, f.name) for f in fields(self))))  # type: ignore[arg-type]
            object.__setattr__(self, "_hash", value)
            return value

"""The command lines: `morello-opt`, `morello-run` and `morello`."""

"""Nests as vector code: functions of vectors, and the steps of a nest's schedule as loops (docs/lowering.md)."""

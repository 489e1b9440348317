"""Benchmarks: one module a workload family. `python -m benchmarks` lists them. Speed is never asserted in tests."""

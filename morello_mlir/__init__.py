"""morello-mlir."""

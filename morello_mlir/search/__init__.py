"""The dynamic program over tables, reconstruction of schedules, and their text form. Imports no MLIR."""

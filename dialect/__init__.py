"""The `morello` dialect."""

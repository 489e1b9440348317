"""The passes: one file a pass, the registry that finds them by name, and the textual pipelines that run them."""

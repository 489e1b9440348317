"""Running code: the JIT, the object cache, array arguments, and the build of one module for one set of shapes."""

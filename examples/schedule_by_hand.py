"""Start a schedule by hand, let the search fill the hole, compare with the optimum, and compile it."""

import numpy as np

import morello_mlir
from morello_mlir.search.schedule import parse, to_text
from morello_mlir.search.solve import search_for
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import get_target

search = search_for(get_target("host"))
spec = matmul_spec(192, 256, 128)
best = search.solve(spec)
mine = search.complete(spec, parse("to_accum\nsplit k by 64:\n    ?"))
print(f"{spec}\nbest {best.cycles:,.0f} cycles, by hand {mine.cycles:,.0f}\n\n{to_text(mine.schedule)}")

lines = ", ".join(f'"{line}"' for line in to_text(mine.schedule).splitlines())
multiply = morello_mlir.compile(f"""
func.func @f(%a: memref<192x256xf32>, %b: memref<256x128xf32>, %c: memref<192x128xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<192x128xf32>)
  linalg.matmul {{morello.schedule = [{lines}]}}
    ins(%a, %b : memref<192x256xf32>, memref<256x128xf32>) outs(%c : memref<192x128xf32>)
  return
}}""")
rng = np.random.default_rng(0)
a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((192, 256), (256, 128)))
c = np.empty((192, 128), np.float32)
multiply(a, b, c)
assert multiply.specs[0]["source"] == "manual" and np.allclose(c, a @ b, rtol=1e-4, atol=1e-4)

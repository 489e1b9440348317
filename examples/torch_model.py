"""A torch model, compiled by `torch.compile`: the same results, and how long a call takes."""

import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).eval()
compiled = torch.compile(model, backend="morello", options={"threads": 1})

x = torch.randn(32, 256)
with torch.inference_mode():
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    for name, call in {"torch": model, "compiled": compiled}.items():
        started = time.perf_counter()
        for _ in range(100):
            call(x)
        print(f"{name}: {(time.perf_counter() - started) * 1e4:.1f} us")
print("32 x 256 to 32 x 64: right")

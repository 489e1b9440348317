"""torch-mlir's pipelines, run in this process or, as its `main`, on behalf of another: what they abort ends this one.

Nothing of this package is imported here, and of torch-mlir its MLIR alone: a worker is to start quickly.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: Before each message: how long its header (JSON) and its body are.
_LENGTHS = struct.Struct("<QQ")


@dataclass(frozen=True)
class Outcome:
    """text: the module afterwards. error: why there is none. said: the diagnostics, all of them."""

    text: str = ""
    error: str | None = None
    said: tuple[str, ...] = ()


def lower(make: Callable[[], Any], pipelines: Sequence[str], hear: Callable[[str], None] | None = None) -> Outcome:
    """Run pipelines on the module of torch-mlir's that `make` returns. hear: is called with each diagnostic at once."""
    from torch_mlir.passmanager import PassManager

    said: list[str] = []

    def keep(diagnostic: Any) -> bool:
        said.append(diagnostic.message)
        if hear is not None:
            hear(diagnostic.message)
        return True

    try:
        module = make()
        with module.context as context:
            # Some passes report without failing, which ends in an abort later.
            context.emit_error_diagnostics = True
            handler = context.attach_diagnostic_handler(keep)
            try:
                for pipeline in pipelines:
                    PassManager.parse(pipeline).run(module.operation)
            finally:
                handler.detach()
        return Outcome(str(module))
    except Exception as error:
        return Outcome(error=next(iter(said), str(error).strip()), said=tuple(said))


def send(channel: socket.socket, header: dict[str, Any], body: bytes = b"") -> None:
    """Raises OSError: nobody is there."""
    text = json.dumps(header).encode()
    channel.sendall(_LENGTHS.pack(len(text), len(body)) + text, socket.MSG_NOSIGNAL)
    channel.sendall(body, socket.MSG_NOSIGNAL)


def receive(channel: socket.socket) -> tuple[dict[str, Any], bytes]:
    """What the other side sent: header and body. Raises EOFError, OSError: nobody is there any more."""
    header, body = _LENGTHS.unpack(_bytes(channel, _LENGTHS.size))
    return json.loads(_bytes(channel, header)), _bytes(channel, body)


def _bytes(channel: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        got = channel.recv_into(left)
        if not got:
            raise EOFError
        left = left[got:]
    return bytes(data)


# ---- the worker ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests on the socket that is the standard input, until its other side is closed."""
    channel = socket.socket(fileno=0)
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(channel, fcntl.F_SETOWN, os.getpid())
    import torch_mlir.dialects.torch
    import torch_mlir.passmanager  # noqa: F401

    try:
        send(channel, {"ready": True})
        while True:
            header, body = receive(channel)
            # What is written from here on is about this request.
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            send(channel, {"taken": True})
            with _ending_with(channel):
                outcome = lower(lambda body=body: _parsed(body), header["pipelines"], _write)  # type: ignore[misc]
            send(channel, {"error": outcome.error, "said": outcome.said}, outcome.text.encode())
    except (EOFError, OSError):
        # Without Python's way out, which takes MLIR apart.
        os._exit(0)


def _parsed(bytecode: bytes) -> Any:
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.ir import Context, Module

    context = Context()
    context.enable_multithreading(False)
    torch_dialect.register_dialect(context)
    return Module.parse(bytecode, context)


def _write(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


@contextmanager
def _ending_with(channel: socket.socket) -> Iterator[None]:
    """End at once (by SIGIO) when the other side does, even where a pipeline would never."""
    flags = fcntl.fcntl(channel, fcntl.F_GETFL)
    fcntl.fcntl(channel, fcntl.F_SETFL, flags | os.O_ASYNC)
    yield
    fcntl.fcntl(channel, fcntl.F_SETFL, flags)

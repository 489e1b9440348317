"""The functions through which Python enters compiled code, as LLVM IR text.

`morello.call(ptr packet)` takes everything in one array of 8-byte slots:

    for every parameter     a scalar: its bits (complex: two slots)
                            an array: pointer to the first element, then its dynamic sizes, then its dynamic strides
    the status              if the program has assertions: receives the number of the one that failed
    for every result        a scalar: its bits (complex: two slots)
                            an array: allocated pointer, aligned pointer, offset, sizes, strides
"""

from __future__ import annotations

from dataclasses import dataclass

from .elements import Element
from .signature import Parameter, Result, Signature

PACKET_ENTRY = "morello.call"

# The lowered program says where its memory is with an offset in elements; what we are given points at the first one.
_OFFSET = "0"


@dataclass(frozen=True)
class Layout:
    """Where things are in the packet: the first slot of every parameter, of the status (None: there is none), and of
    every result; and the number of slots."""

    parameters: tuple[int, ...]
    status: int | None
    results: tuple[int, ...]
    size: int


def layout_of(signature: Signature, *, status: bool) -> Layout:
    """The packet of a signature. status: whether the program has assertions."""
    at = 0
    parameters = []
    for parameter in signature.parameters:
        parameters.append(at)
        at += parameter_slots(parameter)
    status_at = at if status else None
    at += status
    results = []
    for result in signature.results:
        results.append(at)
        at += result_slots(result)
    return Layout(tuple(parameters), status_at, tuple(results), at)


def parameter_slots(parameter: Parameter) -> int:
    """How many slots a parameter takes."""
    if parameter.shape is None:
        return _scalar_slots(parameter.element)
    return 1 + parameter.shape.count(None) + parameter.strides.count(None)


def result_slots(result: Result) -> int:
    """How many slots a result takes."""
    if result.shape is None:
        return _scalar_slots(result.element)
    return 3 + 2 * len(result.shape)


def _scalar_slots(element: Element) -> int:
    return max(1, element.size // 8)


def packet_wrapper(signature: Signature, callee: str, layout: Layout, *, bare: bool) -> str:
    """The text of `morello.call`. callee: the LLVM name of the entry; bare: it takes its memrefs as bare pointers."""
    code = _Code()
    arguments: list[str] = []
    for parameter, at in zip(signature.parameters, layout.parameters, strict=True):
        arguments += (
            _array(code, parameter, at, bare) if parameter.shape is not None else [_scalar(code, parameter, at)]
        )
    if layout.status is not None:
        pointer = code.emit(f"getelementptr i64, ptr %packet, i64 {layout.status}")
        arguments += [f"ptr {pointer}"] if bare else [f"ptr {pointer}", f"ptr {pointer}", "i64 0"]
    types = [_result_type(result) for result in signature.results]
    _call(code, callee, arguments, types, signature, layout)
    body = "\n".join(f"  {line}" for line in code.lines)
    return f'define void @"{PACKET_ENTRY}"(ptr noalias %packet) {{\n{body}\n  ret void\n}}\n'


class _Code:
    """Instructions with numbered values."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, instruction: str) -> str:
        value = f"%v{len(self.lines)}"
        self.lines.append(f"{value} = {instruction}")
        return value

    def load(self, type_: str, at: int) -> str:
        return self.emit(f"load {type_}, ptr {self.slot(at)}")

    def slot(self, at: int) -> str:
        return self.emit(f"getelementptr i64, ptr %packet, i64 {at}")


def _scalar(code: _Code, parameter: Parameter, at: int) -> str:
    element = parameter.element
    if element.llvm == "i1":
        byte = code.load("i8", at)
        return f"i1 {code.emit(f'icmp ne i8 {byte}, 0')}"
    return f"{element.llvm} {code.load(element.llvm, at)}"


def _array(code: _Code, parameter: Parameter, at: int, bare: bool) -> list[str]:
    pointer = code.load("ptr", at)
    if bare:
        return [f"ptr {pointer}"]
    at += 1
    numbers = []
    for known in (*(parameter.shape or ()), *parameter.strides):
        if known is None:
            numbers.append(f"i64 {code.load('i64', at)}")
            at += 1
        else:
            numbers.append(f"i64 {known}")
    offset = _OFFSET if parameter.offset is None else str(parameter.offset)
    return [f"ptr {pointer}", f"ptr {pointer}", f"i64 {offset}", *numbers]


def _result_type(result: Result) -> str:
    if result.shape is None:
        return result.element.llvm
    rank = len(result.shape)
    return f"{{ ptr, ptr, i64, [{rank} x i64], [{rank} x i64] }}" if rank else "{ ptr, ptr, i64 }"


def _call(
    code: _Code, callee: str, arguments: list[str], types: list[str], signature: Signature, layout: Layout
) -> None:
    listed = ", ".join(arguments)
    if not types:
        code.lines.append(f'call void @"{callee}"({listed})')
        return
    whole = types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    value = code.emit(f'call {whole} @"{callee}"({listed})')
    for index, (type_, result, at) in enumerate(zip(types, signature.results, layout.results, strict=True)):
        part = value if len(types) == 1 else code.emit(f"extractvalue {whole} {value}, {index}")
        if type_ == "i1":
            part, type_ = code.emit(f"zext i1 {part} to i8"), "i8"
        elif result.shape is None and type_.startswith("i") and int(type_[1:]) != 8 * result.element.size:
            width = f"i{8 * result.element.size}"
            part, type_ = code.emit(f"sext {type_} {part} to {width}"), width
        code.lines.append(f"store {type_} {part}, ptr {code.slot(at)}")

"""Packing ahead: panels of constant operands, in buffers of the module that the first run fills.

A buffer is a global of bytes: a header of one cache line, whose first word says whether the panels have been filled,
then the panels. Threads that come first at once all fill them, each byte once and with the same value, and none waits:
there is no lock that a fork or a killed thread could leave behind (docs/decisions/0004-ahead.md).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Set
from dataclasses import replace

from ..spec import dtype_bytes
from .builder import Builder
from .machine import Machine
from .outline import INTERNAL
from .pack import emit_pack
from .plan import ALIGNMENT, Ahead
from .views import Arena, Flat, Operand, View

#: How the names of the buffers begin; the runtime finds them by it.
PREFIX = "morello_ahead_"
#: How those begin whose contents have no name: equal ones in two modules say nothing.
OWN = f"{PREFIX}own_"
#: How names of contents begin that say nothing beyond their program.
LOCAL = "once "
#: Bytes before the panels. They start at a cache line.
HEADER = 64
#: Bytes behind the panels, never touched: kernels ask for lines ahead of what they read (see `kernels`).
SLACK = 1 << 15


class Aheads:
    """The buffers of one module, and the functions that fill them.

    existing: symbols of the module; a buffer that is there is used.
    """

    def __init__(self, existing: Set[str]):
        #: Texts of globals and functions.
        self.texts: list[str] = []
        #: What the text must declare again: buffers and functions that the module has already.
        self.declarations: list[str] = []
        self._taken = set(existing)
        self._made: set[str] = set()

    def panels(self, b: Builder, plan: Ahead, source: Operand, contents: str) -> Operand:
        """Emits the look at the buffer and its filling; returns `source` as it lies there.

        contents: a name for what is in `source`. Equal ones share panels; without one they are this operand's own.
        """
        view = panels_of(plan, source.view)
        name = self._name(plan, source.view, contents)
        buffer = Arena("", HEADER + _bytes(view) + SLACK)
        self._make(b.machine, plan, source.view, view, name, buffer)
        buffer = replace(buffer, name=b.value(f"memref.get_global @{name} : {buffer.type}"))
        state = b.value(f"llvm.load {_pointer(b, buffer)} atomic acquire {{alignment = 4 : i64}} : !llvm.ptr -> i32")
        empty = b.value(f"arith.cmpi eq, {state}, {b.constant('0', 'i32')} : i32")
        base, offset = source.parts(b)
        b.line(f"scf.if {empty} {{")
        b.line(f"func.call @{filler(name)}({base}, {offset}) : (memref<{source.view.element}>, index) -> ()")
        b.line("}")
        sizes, strides = (", ".join(map(str, x)) for x in (view.shape, view.strides))
        line = _line(b, buffer, view)
        cast = f"to offset: [0], sizes: [{sizes}], strides: [{strides}] : {line.type} to {view.static_type}"
        panels = b.value(f"memref.reinterpret_cast {line.name} {cast}")
        return Operand(view, b.value(f"memref.cast {panels} : {view.static_type} to {view.type}"))

    def _name(self, plan: Ahead, source: View, contents: str) -> str:
        if contents:
            prefix = OWN if contents.startswith(LOCAL) else PREFIX
            key = f"{contents} {source} {plan.dim} {plan.width} {plan.group} {plan.dtype}"
            return prefix + hashlib.blake2s(key.encode(), digest_size=8).hexdigest()
        taken = self._taken | self._made
        return next(n for i in itertools.count() if (n := f"{OWN}{i}") not in taken)

    def _make(self, machine: Machine, plan: Ahead, source: View, view: View, name: str, buffer: Arena) -> None:
        """Emits the buffer and what fills it, unless they are there."""
        if name in self._made:
            return
        self._made.add(name)
        arguments = f"(%base: memref<{source.element}>, %offset: index)"
        if name in self._taken:
            self.declarations.append(f'memref.global "private" @{name} : {buffer.type}')
            self.declarations.append(f"func.func private @{filler(name)}(memref<{source.element}>, index)")
            return
        b = Builder(machine)
        buffer = replace(buffer, name=b.value(f"memref.get_global @{name} : {buffer.type}"))
        once = replace(view, sizes=(min(view.sizes[0], _batches(view)), *view.sizes[1:]))
        origin = Operand(replace(source, sizes=once.sizes), base="%base", offset="%offset")
        emit_pack(b, origin, _line(b, buffer, view), once)
        one = b.constant("1", "i32")
        b.line(f"llvm.store {one}, {_pointer(b, buffer)} atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr")
        self.texts.append(
            f'memref.global "private" @{name} : {buffer.type} = dense<0> {{alignment = {ALIGNMENT} : i64}}'
        )
        self.texts.append(f"func.func private @{filler(name)}{arguments} {INTERNAL} {{\n{b.text()}\nreturn\n}}")


def panels_of(plan: Ahead, source: View) -> View:
    """How the panels of `source` lie. One that all batches share is packed once."""
    shared = source.strides[0] == 0
    view = View.panels(plan.dtype, (1, *source.sizes[1:]) if shared else source.sizes, plan.dim, plan.width, plan.group)
    view = replace(view, ahead=True)
    return replace(view, sizes=source.sizes, strides=(0, *view.strides[1:])) if shared else view


def _batches(view: View) -> int:
    """How many batches the panels hold."""
    return 1 if view.strides[0] == 0 else view.sizes[0]


def _elements(view: View) -> int:
    _, panels, *_ = view.shape
    return _batches(view) * panels * view.strides[1]


def _bytes(view: View) -> int:
    size = _elements(view) * dtype_bytes(view.dtype)
    return -(-size // ALIGNMENT) * ALIGNMENT


def _line(b: Builder, buffer: Arena, view: View) -> Flat:
    """The panels as a line of elements."""
    type_ = f"memref<{_elements(view)}x{view.element}>"
    return Flat(buffer.part(b, HEADER, type_), type_, view.dtype)


def _pointer(b: Builder, buffer: Arena) -> str:
    """The address of the state."""
    at = b.value(f"memref.extract_aligned_pointer_as_index {buffer.name} : {buffer.type} -> index")
    return b.value(f"llvm.inttoptr {b.value(f'arith.index_cast {at} : index to i64')} : i64 to !llvm.ptr")


def filler(name: str) -> str:
    """The function that fills the buffer `name`."""
    return f"{name}_fill"

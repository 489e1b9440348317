"""A Python function that is compiled code: for plain arrays it costs no more than a call of a C extension.

`morello.python` has the signature that CPython gives to functions of extension modules (METH_FASTCALL). It checks that
every argument is a numpy array of the right dtype and shape, C-contiguous, aligned, and writable where the program
writes to it, by reading the array objects, and that what is written to overlaps no other; makes the results' arrays;
releases the interpreter lock; and runs the program. Anything else it hands to the general path, a Python callable,
which is what it is bound to; so it does after an assertion that failed.
`morello.python.into` takes `out` as one more argument, an array or a tuple of arrays, checks these arrays in the same
way, and returns them instead of new ones. It is a module of its own, for those who ask for it.

Where array objects are not laid out as expected, or the interpreter lacks a function (another interpreter, another
numpy), `FIELDS` is None and only the general path is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .signature import Parameter, Signature, may_clash
from .wrapper import PACKET_ENTRY

PYTHON_ENTRY, INTO_ENTRY = "morello.python", "morello.python.into"

#: C-contiguous and aligned; and writable (numpy's NPY_ARRAY_CARRAY_RO, NPY_ARRAY_CARRAY).
_CARRAY_RO = 0x1 | 0x100
_CARRAY = _CARRAY_RO | 0x400
_METH_FASTCALL = 0x80
#: (PyObject_Vectorcall itself is no symbol of CPython 3.10.)
_API = (
    "PyObject_VectorcallDict",
    "PyObject_Call",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
    "PyTuple_Pack",
    "PyTuple_Size",
    "PyTuple_GetItem",
)


@dataclass(frozen=True)
class Fields:
    """Offsets in bytes in an array object; `type` is that of every object's type pointer."""

    type: int
    data: int
    rank: int
    shape: int
    dtype: int
    flags: int


def _find() -> Fields | None:
    """The offsets, found by their order in the object and verified on sample arrays; None where that fails."""
    word = ctypes.sizeof(ctypes.c_void_p)
    start = object.__basicsize__
    # data, rank (int, padded), shape, strides, base, dtype, flags
    fields = Fields(start - word, *(start + i * word for i in (0, 1, 2, 5, 6)))
    samples = (np.zeros(3), np.zeros((2, 2), np.int8), np.zeros((4, 5), np.float32)[1:, 2:], np.zeros((2, 0, 3)).T)
    callable_ = all(hasattr(ctypes.pythonapi, name) for name in _API)
    return fields if word == 8 and callable_ and all(_agrees(fields, sample) for sample in samples) else None


def _agrees(fields: Fields, array: np.ndarray) -> bool:
    at = id(array)

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(at + offset).value

    def number(offset: int) -> int:
        return ctypes.c_int32.from_address(at + offset).value

    # The pointer to the sizes is followed only once all else is as expected.
    return (
        word(fields.type) == id(np.ndarray)
        and word(fields.data) == array.ctypes.data
        and number(fields.rank) == array.ndim
        and word(fields.dtype) == id(array.dtype)
        and (number(fields.flags) & _CARRAY == _CARRAY) == array.flags.carray
        and tuple((ctypes.c_int64 * array.ndim).from_address(word(fields.shape))) == array.shape
    )


FIELDS: Fields | None = _find()


def serves(signature: Signature, *, asserts: bool = False) -> bool:
    """Whether a program can be entered this way: plain static arrays in, memory of results supplied by the caller.

    asserts: whether it has assertions: it runs again where one fails, which it must not if it writes to arguments."""
    if asserts and any(p.written for p in signature.inputs):
        return False
    return FIELDS is not None and all(p.is_plain for p in signature.parameters) and not signature.results


# ---- the code ------------------------------------------------------------------------------------------------------


def python_wrapper(signature: Signature, fields: Fields, *, asserts: bool = False) -> str:
    """The LLVM IR text of `morello.python`. asserts: whether the program has assertions."""
    return _entry(PYTHON_ENTRY, signature, _Checks(fields), asserts)


def into_wrapper(signature: Signature, fields: Fields, *, asserts: bool = False) -> str:
    """The LLVM IR text of a module with `morello.python.into`, which imports `morello.call`."""
    return f'declare void @"{PACKET_ENTRY}"(ptr)\n{_entry(INTO_ENTRY, signature, _Checks(fields), asserts)}'


def _entry(name: str, signature: Signature, code: _Checks, asserts: bool) -> str:
    """The text of one of them, and of what it refers to."""
    into = name == INTO_ENTRY
    inputs, outputs = signature.inputs, _outputs(signature)
    data = [code.array(code.load("ptr", "%args", 8 * i), i, p) for i, p in enumerate(inputs)]
    for (p, a), (q, b) in combinations(zip(inputs, data, strict=True), 2):
        if may_clash(p, q):
            code.apart(a, p.nbytes, b, q.nbytes)
    if into:
        results = code.given(8 * len(inputs), len(outputs))
        for value, parameter in zip(results, outputs, strict=True):
            pointer = code.array(value, len(data), parameter)
            for other, q in zip(data, signature.parameters, strict=False):
                code.apart(pointer, parameter.nbytes, other, q.nbytes)
            data.append(pointer)
    else:
        results = [code.result(i) for i in range(len(outputs))]
        data += [code.load("ptr", value, code.fields.data) for value in results]
    for i, pointer in enumerate(data):
        code.line(f"%s{i} = getelementptr ptr, ptr %packet, i64 {i}")
        code.line(f"store ptr {pointer}, ptr %s{i}")
    if asserts:
        code.line(f"%status = getelementptr ptr, ptr %packet, i64 {len(data)}")
        code.line("store i64 0, ptr %status")
    code.line("%thread = call ptr @PyEval_SaveThread()")
    code.line(f'call void @"{PACKET_ENTRY}"(ptr %packet)')
    code.line("call void @PyEval_RestoreThread(ptr %thread)")
    if asserts:
        code.require_success([] if into else results)
    code.give_back(results, owned=not into)
    return _function(name, code, len(inputs) + into, max(len(data) + asserts, 1))


def _function(name: str, code: _Checks, arguments: int, packet: int) -> str:
    """The text of a function of so many arguments, with a packet of so many words; it goes on with `code`."""
    body = "\n".join(code.lines)
    globals_ = "\n".join(f"@{name} = external global i8" for name in sorted(code.objects))
    return f"""
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare ptr @PyObject_Call(ptr, ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_Pack(i64, ...)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
{globals_}
define ptr @"{name}"(ptr %self, ptr %args, i64 %count) {{
  %packet = alloca [{packet} x ptr]
  %counted = icmp eq i64 %count, {arguments}
  br i1 %counted, label %start, label %general
start:
{body}
general:
  %answer = call ptr @PyObject_VectorcallDict(ptr %self, ptr %args, i64 %count, ptr null)
  ret ptr %answer
failed:
  ret ptr null
}}
"""


class _Checks:
    """Instructions of one of these functions, and the objects that they name."""

    def __init__(self, fields: Fields):
        self.fields = fields
        self.lines: list[str] = []
        self.objects: set[str] = set()
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, instruction: str) -> str:
        self._count += 1
        self.line(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def load(self, type_: str, base: str, offset: int) -> str:
        return self.value(f"load {type_}, ptr {self.value(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def object(self, name: str) -> str:
        self.objects.add(name)
        return f"@{name}"

    def require(self, condition: str) -> None:
        """Go on only where it holds; the general path has the rest."""
        self._count += 1
        self.line(f"br i1 {condition}, label %l{self._count}, label %general")
        self.lines.append(f"l{self._count}:")

    def require_success(self, results: list[str]) -> None:
        """Go on only where no assertion has failed; the general path, which runs the program again, says which.

        results: arrays that nobody needs then."""
        self.line(f"%clear = icmp eq i64 {self.value('load i64, ptr %status')}, 0")
        self.line("br i1 %clear, label %success, label %failure")
        self.lines.append("failure:")
        for each in results:
            self.line(f"call void @Py_DecRef(ptr {each})")
        self.line("br label %general")
        self.lines.append("success:")

    def is_a(self, value: str, type_: str) -> str:
        """Whether an object is of a type, and not of one derived from it."""
        kind = self.load("ptr", value, self.fields.type)
        return self.value(f"icmp eq ptr {kind}, {self.object(type_)}")

    def array(self, array: str, i: int, parameter: Parameter) -> str:
        """Checks the array for parameter `i`; returns its data pointer."""
        self.require(self.is_a(array, NDARRAY))
        shape = parameter.shape or ()
        rank = self.load("i32", array, self.fields.rank)
        self.require(self.value(f"icmp eq i32 {rank}, {len(shape)}"))
        wanted = _CARRAY if parameter.written or parameter.result is not None else _CARRAY_RO
        flags = self.value(f"and i32 {self.load('i32', array, self.fields.flags)}, {wanted}")
        dtype = self.load("ptr", array, self.fields.dtype)
        good = self.value(f"icmp eq i32 {flags}, {wanted}")
        right = "false"
        for j in range(len(_dtypes(parameter))):
            same = self.value(f"icmp eq ptr {dtype}, {self.object(_dtype_name(i, j))}")
            right = self.value(f"or i1 {right}, {same}")
        good = self.value(f"and i1 {good}, {right}")
        if shape:
            sizes = self.load("ptr", array, self.fields.shape)
            for axis, size in enumerate(shape):
                same = self.value(f"icmp eq i64 {self.load('i64', sizes, 8 * axis)}, {size}")
                good = self.value(f"and i1 {good}, {same}")
        self.require(good)
        return self.load("ptr", array, self.fields.data)

    def apart(self, a: str, a_bytes: int, b: str, b_bytes: int) -> None:
        """Go on only where two blocks of memory do not overlap."""
        first, second = (self.value(f"ptrtoint ptr {p} to i64") for p in (a, b))
        after = self.value(f"icmp sge i64 {self.value(f'sub i64 {second}, {first}')}, {a_bytes}")
        before = self.value(f"icmp sge i64 {self.value(f'sub i64 {first}, {second}')}, {b_bytes}")
        self.require(self.value(f"or i1 {after}, {before}"))

    def given(self, offset: int, count: int) -> list[str]:
        """The arrays of the caller's, yet unchecked, from `out`, the argument at `offset`: a tuple of `count` that
        keeps them while the program runs (a list does not: another thread may empty it), or the only one itself."""
        self.line("br label %out")
        self.lines.append("out:")
        out = self.load("ptr", "%args", offset)
        bare = "%given" if count == 1 else "%general"
        self.line(f"br i1 {self.is_a(out, TUPLE)}, label %tuple, label {bare}")
        self.lines.append("tuple:")
        self.line(f"%size = call i64 @PyTuple_Size(ptr {out})")
        self.line(f"%complete = icmp eq i64 %size, {count}")
        self.line("br i1 %complete, label %items, label %general")
        self.lines.append("items:")
        items = [self.value(f"call ptr @PyTuple_GetItem(ptr {out}, i64 {i})") for i in range(count)]
        if count == 1:
            self.line("br label %given")
            self.lines.append("given:")
            items = [self.value(f"phi ptr [ {items[0]}, %items ], [ {out}, %out ]")]
        return items

    def result(self, i: int) -> str:
        """A new array for result `i`."""
        array = self.value(
            f"call ptr @PyObject_Call(ptr {self.object(EMPTY)}, ptr {self.object(_result_name(i))}, ptr null)"
        )
        self._count += 1
        fine = self.value(f"icmp ne ptr {array}, null")
        self.line(f"br i1 {fine}, label %m{i}, label %failed")
        self.lines.append(f"m{i}:")
        return array

    def give_back(self, results: list[str], *, owned: bool) -> None:
        """Return the arrays of results. owned: a reference to each of them is ours, and goes to the caller."""
        if len(results) == 1:
            if not owned:
                self.line(f"call void @Py_IncRef(ptr {results[0]})")
            self.line(f"ret ptr {results[0]}")
            return
        if not results:
            self.line(f"call void @Py_IncRef(ptr {self.object(NONE)})")
            self.line(f"ret ptr {self.object(NONE)}")
            return
        listed = ", ".join(f"ptr {r}" for r in results)
        pair = self.value(f"call ptr (i64, ...) @PyTuple_Pack(i64 {len(results)}, {listed})")
        for each in results if owned else ():
            self.line(f"call void @Py_DecRef(ptr {each})")
        self.line(f"ret ptr {pair}")


# ---- the objects it names, and the function object ------------------------------------------------------------------

NDARRAY, TUPLE = "morello.type.ndarray", "morello.type.tuple"
EMPTY, NONE = "morello.function.empty", "morello.none"


def _outputs(signature: Signature) -> list[Parameter]:
    return [p for p in signature.parameters if p.result is not None]


def _dtypes(parameter: Parameter) -> tuple[np.dtype, ...]:
    """The dtypes that are taken as they are: an integer's with and without sign (MLIR's have none)."""
    own = parameter.element.dtype
    if own.kind not in "iu":
        return (own,)
    return (own, *(d for d in parameter.element.accepts if d.kind in "iu" and d != own))


def _dtype_name(i: int, number: int) -> str:
    return f"morello.dtype.{i}.{number}"


def _result_name(i: int) -> str:
    return f"morello.result.{i}"


def named_objects(signature: Signature) -> dict[str, Any]:
    """The Python objects that the wrapper refers to, by symbol. They must outlive the code."""
    objects: dict[str, Any] = {NDARRAY: np.ndarray, TUPLE: tuple, EMPTY: np.empty, NONE: None}
    objects |= {_dtype_name(i, j): d for i, p in enumerate(signature.parameters) for j, d in enumerate(_dtypes(p))}
    return objects | {_result_name(i): (p.shape, p.element.dtype) for i, p in enumerate(_outputs(signature))}


def interpreter_symbols() -> dict[str, int]:
    """Addresses of the functions of the interpreter that the wrapper calls."""
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _API}


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


#: Never freed: CPython takes definitions for static, and reads them while it destroys a function object. Equal ones are
#: one: all bound functions have the same.
_definitions: dict[tuple[str, int, int], _MethodDef] = {}


def function(name: str, address: int, general: Any, flags: int = _METH_FASTCALL) -> Callable[..., Any]:
    """The function object for the code at `address`. general: kept alive, and the first argument of the code: what is
    called where the fast path does not serve.

    flags: how it takes its arguments (METH_FASTCALL, METH_NOARGS).
    """
    definition = _definitions.setdefault((name, address, flags), _MethodDef(name.encode(), address, flags, None))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = make(ctypes.addressof(definition), general, None)
    return made

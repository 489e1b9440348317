"""Arguments for a signature: random, zeros, ones, or from a file."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from morello_mlir.errors import InputError, first_line

from .arguments import native, shape_text
from .elements import Element
from .signature import Parameter, Signature

#: Dynamic sizes get this many when arguments are made up: all the same, so that they agree with one another.
DYNAMIC_EXTENT = 16


def make(signature: Signature, how: str, seed: int) -> list[Any]:
    """Arguments by recipe: `random` (in [-1, 1), small integers), `zeros` or `ones`; deterministic for a seed."""
    random = np.random.default_rng(seed)
    return [_make(parameter, how, random) for parameter in signature.inputs]


def _make(parameter: Parameter, how: str, random: np.random.Generator) -> Any:
    shape = tuple(DYNAMIC_EXTENT if size is None else size for size in parameter.shape or ())
    element = parameter.element
    if how == "random" and element.mlir == "index" and parameter.shape is None:
        # Most likely a position or a size: zero is in range of everything.
        return np.zeros((), np.int64)
    if how == "random":
        return _random(element, shape, random)
    return np.full(shape, how == "ones").astype(element.dtype)


def _random(element: Element, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    kind = element.dtype.kind
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind == "u":
        return random.integers(0, 16, shape).astype(element.dtype)
    if kind == "i":
        width = int(element.mlir[1:]) if element.mlir[0] == "i" and element.mlir[1:].isdigit() else 64
        bound = min(8, 1 << (width - 1))
        return random.integers(-bound, bound, shape).astype(element.dtype)
    values = random.uniform(-1, 1, shape)
    if kind == "c":
        values = values + 1j * random.uniform(-1, 1, shape)
    return np.asarray(values).astype(element.dtype)


def load(path: str, prefixes: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name. prefixes: what names may begin with, a number follows.

    Raises InputError: not an npz, objects in it (they are never unpickled), or odd names.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        # numpy takes any other file for a pickle, and says so.
        with Path(path).open("rb") as file:
            if file.read(2) != b"PK":
                raise InputError(f"{path}: not an npz archive (numpy.savez makes them)")
        with np.load(Path(path), allow_pickle=False) as archive:
            for name in archive.files:
                arrays[name] = _read(archive, name, path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot read it as an npz archive: {first_line(error)}") from error
    for name in arrays:
        if not re.fullmatch(rf"({'|'.join(prefixes)})\d+", name):
            wanted = " or ".join(f"{p}0, {p}1, ..." for p in prefixes)
            raise InputError(f"{path}: array '{name}' is not one of {wanted}")
    return arrays


def _read(archive: Any, name: str, path: str) -> np.ndarray:
    try:
        array: np.ndarray = archive[name]
        # Values are what counts, not the byte order of the machine that wrote them: bits are taken from native ones.
        array = array.astype(native(array.dtype), copy=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot read array '{name}': {first_line(error)}") from error
    return array


def from_file(signature: Signature, path: str) -> list[Any]:
    """The arguments in a file, `arg0, arg1, ...`, one for each of the function's.

    Raises InputError: as `load`; a number that is missing or too much. Dtypes and shapes are checked by the call.
    """
    arrays = load(path, ("arg",))
    count = len(signature.inputs)
    for position in range(count):
        if f"arg{position}" not in arrays:
            wanted = signature.inputs[position]
            kind = wanted.element.mlir if wanted.shape is None else f"{shape_text(wanted.shape)} {wanted.element.mlir}"
            raise InputError(
                f"{path}: no array 'arg{position}' ({kind}): @{signature.name} takes {count} arguments, the file has "
                f"{', '.join(sorted(arrays)) or 'none'}"
            )
    for name in arrays:
        if int(name[3:]) >= count:
            raise InputError(f"{path}: array '{name}' is too much: @{signature.name} takes {count} arguments")
    return [arrays[f"arg{i}"] for i in range(count)]

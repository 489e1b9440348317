"""From LLVM IR text to a callable address: optimise for the host, emit an object (or take it from the cache), link."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from morello_mlir.errors import CompileError
from morello_mlir.locks import forks_wait_for, once
from morello_mlir.targets.host import tiles_permitted

from . import elf
from .cache import ObjectCache, key_of

_library_numbers = itertools.count()
#: In code that uses tile registers (AMX).
_ON_TILES = "llvm.x86.ldtilecfg"


@dataclass(frozen=True)
class Options:
    """How LLVM compiles.

    vectorize: loop and SLP vectorisation. Searched code brings its vectors along; scalar loops from upstream profit.
    level:     the -O level.
    cpu, features: for which CPU, as LLVM spells them; the host without a cpu.
    """

    vectorize: bool = True
    level: int = 3
    cpu: str = ""
    features: str = ""

    def __str__(self) -> str:
        return f"O{self.level}{' vectorize' if self.vectorize else ''}"

    @property
    def machine(self) -> tuple[str, str]:
        """The CPU name and feature string to compile for."""
        return (self.cpu, self.features) if self.cpu else host()


@dataclass
class Library:
    """Linked code. `addresses` holds the exported functions; they are valid while this object lives."""

    addresses: dict[str, int]
    object_code: bytes
    from_cache: bool
    _tracker: Any = field(repr=False, default=None)


def load(
    ir: str,
    exports: tuple[str, ...],
    options: Options,
    cache: ObjectCache | None,
    imports: Mapping[str, int] = MappingProxyType({}),
) -> Library:
    """Compile LLVM IR text and link it into the process.

    exports: the functions to look up. cache: where to look for the object first, and keep it. imports: addresses of
    symbols that the code refers to.
    Raises CompileError: invalid IR, or a symbol that no library in the process defines.
    """
    if _ON_TILES in ir:
        tiles_permitted()  # Whoever chose the target may have asked in another process.
    key = key_of(ir, *options.machine, str(options), "|".join(_versions()))
    code = cache.load(key) if cache else None
    from_cache = code is not None
    if code is None:
        code = emit(ir, options, "obj")
        if cache:
            cache.store(key, code)
    return _link(code, exports, imports, from_cache)


def emit(ir: str, options: Options, form: Literal["llvm", "asm", "obj"]) -> Any:
    """Optimised LLVM IR or assembly as text, or object code as bytes. Raises CompileError for invalid IR."""
    import llvmlite.binding as llvm

    machine = _machine(options.level, *options.machine)
    try:
        module = llvm.parse_assembly(ir)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejects the lowered program: {str(error).strip()}") from error
    tuning = llvm.PipelineTuningOptions(speed_level=options.level)
    tuning.loop_vectorization = tuning.slp_vectorization = options.vectorize
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    if form == "llvm":
        return str(module)
    return machine.emit_assembly(module) if form == "asm" else machine.emit_object(module)


@lru_cache(maxsize=1)
def host() -> tuple[str, str]:
    """The host's CPU name and feature string, as LLVM spells them."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@lru_cache(maxsize=1)
def _versions() -> tuple[str, ...]:
    import llvmlite
    import llvmlite.binding as llvm

    return (llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), platform.machine())


@once
def _finish_before_forks() -> None:
    """Has forks wait for calls of LLVM that other threads are in: a child would find llvmlite's lock taken for ever."""
    import llvmlite.binding as llvm

    forks_wait_for(llvm.ffi.lib._lock._lock)


@lru_cache(maxsize=4)
def _machine(level: int, cpu: str, features: str) -> Any:
    import llvmlite.binding as llvm

    _finish_before_forks()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # The defaults for relocation and code model fail an assertion when the code is far from the process's own.
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small", jit=True
    )


@once
def _linker() -> Any:
    import llvmlite.binding as llvm

    # The older linker maps the sections of an object one by one; where free memory is in pieces, that may be more than
    # 2 GiB apart, and an assertion ends the process.
    return llvm.create_lljit_compiler(_machine(3, *host()), use_jit_link=True, suppress_errors=True)


def _link(code: bytes, exports: tuple[str, ...], imports: Mapping[str, int], from_cache: bool) -> Library:
    import llvmlite.binding as llvm

    linker = _linker()
    missing = [name for name in elf.undefined_symbols(code) if name not in imports and not _is_defined(name)]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise CompileError(f"the program calls {listed}, which no library in this process defines")
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in exports:
        builder.export_symbol(name)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.link(linker, f"morello-{next(_library_numbers)}")
    except RuntimeError as error:
        raise CompileError(f"the compiled program cannot be linked: {error}") from error
    return Library({name: tracker[name] for name in exports}, code, from_cache, tracker)


def _is_defined(name: str) -> bool:
    """Whether the process, or MLIR's run-time library for printing and the like, defines a symbol."""
    import llvmlite.binding as llvm

    if name == "_GLOBAL_OFFSET_TABLE_" or llvm.address_of_symbol(name):
        return True
    return bool(_load_runner_libraries() and llvm.address_of_symbol(name))


@lru_cache(maxsize=1)
def _load_runner_libraries() -> bool:
    """Load upstream's libraries that programs which print need; False where they are not installed."""
    import llvmlite.binding as llvm
    import mlir

    found = [
        path
        for folder in list(mlir.__path__)
        for stem in ("mlir_c_runner_utils", "mlir_runner_utils")
        for path in sorted(Path(folder, "lib").glob(f"lib{stem}.*"))
    ]
    for path in found:
        try:
            llvm.load_library_permanently(str(path))
        except RuntimeError:
            return False
    return bool(found)

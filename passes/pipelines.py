"""The named pipelines: the way from linalg to the llvm dialect, for `morello-opt` and for `compile()` alike.

    morello-bufferize        tensors to memrefs that are freed again; tags on linalg ops survive
    morello-lower-upstream   whatever is left, to the llvm dialect
    morello-default          legalize, group, bufferize, lift, search, apply, lower

Every function returns the elements of a pipeline on `builtin.module`, as text (see `registry.NamedPipeline`).
"""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any

from morello_mlir.runtime.settings import Settings

from . import registry

_BUFFERIZE = (
    "morello-legalize-tensor",
    "eliminate-empty-tensors",
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map "
    "allow-return-allocs-from-loops}",
    "morello-outline",
    "morello-deallocate",
    "morello-legalize-copy",
)

# Structured ops to loops and scalars. i1 memory, odd float conversions and assertions are put right once only loads,
# stores and arithmetic are left.
_TO_LOOPS = (
    "morello-check-known",
    "morello-strip-attributes",
    "morello-legalize-copy",
    "morello-share",
    "convert-linalg-to-loops",
    "scf-forall-to-for",
    "expand-realloc",
    "memref-expand",
    "func.func(lower-vector-mask,lower-vector-multi-reduction)",
    "convert-vector-to-scf{full-unroll=true target-rank=1}",
    "lower-affine",
    "convert-shape-constraints",
    "convert-shape-to-std",
    "morello-vector-math",
    "func.func(math-extend-to-supported-types{target-type=f32},math-expand-ops{ops=fpowi,ceilf,clampf})",
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}",
    "morello-legalize-float",
    "arith-expand{include-bf16=true}",
    "morello-legalize-int-memory",
)

_TO_CONTROL_FLOW = ("expand-strided-metadata", "lower-affine", "convert-scf-to-cf")

_TO_LLVM = (
    "canonicalize",
    "cse",
    "convert-vector-to-llvm{enable-x86vector=true}",
    "convert-complex-to-standard",
    "convert-ub-to-llvm",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-complex-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
    "morello-check-lowered",
)

#: The passes that make up the optimising part, in order; `morello-bufferize` stands between the first and the second.
OPTIMIZING = ("morello-group", "morello-lift", "morello-search", "morello-apply")


def morello_bufferize() -> str:
    """Tensors to memrefs that are freed again; tags on linalg ops survive"""
    return ",".join(_BUFFERIZE)


def morello_lower_upstream(
    embedded: Annotated[bool, "for compile(): bare pointers, threads of the pool, failures return"] = False,
) -> str:
    """Lower linalg, scf, affine, memref, vector, math and the rest to the llvm dialect by upstream's passes

    embedded: for code that `compile()` calls: public functions may take bare pointers as private ones do, dynamic sizes
    are checked, a failing assertion returns to the caller, and parallel loops run on the thread pool (see the passes
    `morello-bare-pointers`, `morello-verify-shapes`, `morello-legalize-assert` and `morello-parallel-to-pool`).
    """
    bare = "morello-bare-pointers{public=true}" if embedded else "morello-bare-pointers"
    assertions = ("morello-legalize-assert",) if embedded else ()
    checks = ("morello-verify-shapes",) if embedded else ()
    pool = ("morello-parallel-to-pool",) if embedded else ()
    return ",".join((*checks, *_TO_LOOPS, *pool, bare, *_TO_CONTROL_FLOW, *assertions, *_TO_LLVM))


def morello_default(settings: Settings) -> str:
    """Legalize, group, bufferize, lift, search, apply, and lower the rest: the whole way to the llvm dialect"""
    return ",".join(text for text in stages(settings, embedded=False).values() if text)


def stages(settings: Settings, *, embedded: bool = True) -> dict[str, str]:
    """`morello-default` in pieces: `legalize` (to linalg), and those that `compile()` times: `lift`, `search`, `apply`,
    `lower`. Some may be empty.

    embedded: as for `morello_lower_upstream`.
    """
    # Times differ from run to run: the text of a module says them only to who asked.
    given = {
        "target": settings.target,
        "memo": settings.memo,
        "threads": settings.threads or "",
        "timing": "true" if embedded else "",
        "top-k": "" if settings.top_k is None else settings.top_k,
        "measure": "true" if settings.measure else "",
        "pack-constants": "" if settings.pack_constants else "false",
        "nests": "" if settings.nests else "false",
    }
    optimize, nests = settings.optimize, settings.optimize and settings.nests
    group, lift, search, apply = (_element(name, given) if optimize else "" for name in OPTIMIZING)
    tidy, fuse, chain = ("morello-tidy", "morello-fuse", "morello-chain") if nests else ("", "", "")
    early = "morello-free-early" if optimize else ""
    # Without our passes, Specs that are written in the module are what they compute.
    lift = lift or "morello-fill-borders,morello-spec-to-linalg,morello-sum-wide"
    lifting = (tidy, group, fuse, morello_bufferize(), lift, chain, early)
    return {
        "legalize": "morello-legalize-tosa",
        "lift": ",".join(text for text in lifting if text),
        "search": search,
        "apply": apply,
        "lower": morello_lower_upstream(embedded),
    }


def can_optimize() -> bool:
    """Whether the optimising passes are part of this installation."""
    return all(registry.known(name) and _is_installed(name) for name in OPTIMIZING)


def _is_installed(name: str) -> bool:
    reference = registry.PASSES.get(name)
    return reference is None or importlib.util.find_spec(reference.partition(":")[0]) is not None


def _element(name: str, given: dict[str, Any]) -> str:
    """A pass with those of the given options that it knows and that say something."""
    known = registry.options_of(registry.lookup(name))
    options = " ".join(f"{key}={value}" for key, value in given.items() if key in known and value != "")
    return f"{name}{{{options}}}" if options else name

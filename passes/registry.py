"""Passes and named pipelines by name. Nothing is imported before it is used, so that the tools start fast.

A name comes from the tables below, from another package (entry-point group `morello_mlir.passes`; the entry point names
the class of the pass, or the function of the pipeline), or from `register` in this process. Two owners of one name are
an error.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from typing import Any

from morello_mlir.errors import PipelineError

from .base import Option, Pass, option_table, parse_options, split_options

ENTRY_POINT_GROUP = "morello_mlir.passes"

# name -> "module:class", one line each.
PASSES: dict[str, str] = {
    "morello-apply": "morello_mlir.passes.morello_apply:MorelloApply",
    "morello-bare-pointers": "morello_mlir.passes.morello_bare_pointers:BarePointers",
    "morello-chain": "morello_mlir.passes.morello_chain:MorelloChain",
    "morello-check-known": "morello_mlir.passes.morello_check_known:CheckKnown",
    "morello-check-lowered": "morello_mlir.passes.morello_check_lowered:CheckLowered",
    "morello-deallocate": "morello_mlir.passes.morello_deallocate:Deallocate",
    "morello-fill-borders": "morello_mlir.passes.morello_fill_borders:FillBorders",
    "morello-free-early": "morello_mlir.passes.morello_free_early:FreeEarly",
    "morello-fuse": "morello_mlir.passes.morello_fuse:MorelloFuse",
    "morello-group": "morello_mlir.passes.morello_group:MorelloGroup",
    "morello-legalize-assert": "morello_mlir.passes.morello_legalize_assert:LegalizeAssert",
    "morello-legalize-copy": "morello_mlir.passes.morello_legalize_copy:LegalizeCopy",
    "morello-legalize-float": "morello_mlir.passes.morello_legalize_float:LegalizeFloat",
    "morello-legalize-int-memory": "morello_mlir.passes.morello_legalize_int_memory:LegalizeIntMemory",
    "morello-legalize-tensor": "morello_mlir.passes.morello_legalize_tensor:LegalizeTensor",
    "morello-legalize-tosa": "morello_mlir.passes.morello_legalize_tosa:LegalizeTosa",
    "morello-lift": "morello_mlir.passes.morello_lift:MorelloLift",
    "morello-outline": "morello_mlir.passes.morello_outline:MorelloOutline",
    "morello-parallel-to-pool": "morello_mlir.passes.morello_parallel_to_pool:ParallelToPool",
    "morello-profile": "morello_mlir.passes.morello_profile:Profile",
    "morello-return-to-argument": "morello_mlir.passes.morello_return_to_argument:ReturnToArgument",
    "morello-search": "morello_mlir.passes.morello_search:MorelloSearch",
    "morello-select-entry": "morello_mlir.passes.morello_select_entry:SelectEntry",
    "morello-share": "morello_mlir.passes.morello_share:Share",
    "morello-spec-to-linalg": "morello_mlir.passes.morello_spec_to_linalg:SpecToLinalg",
    "morello-specialize": "morello_mlir.passes.morello_specialize:Specialize",
    "morello-strip-attributes": "morello_mlir.passes.morello_strip_attributes:StripAttributes",
    "morello-sum-wide": "morello_mlir.passes.morello_sum_wide:SumWide",
    "morello-tidy": "morello_mlir.passes.morello_tidy:Tidy",
    "morello-vector-math": "morello_mlir.passes.morello_vector_math:VectorMath",
    "morello-verify-shapes": "morello_mlir.passes.morello_verify_shapes:VerifyShapes",
}

# name -> "module:function", one line each. See `NamedPipeline`.
PIPELINES: dict[str, str] = {
    "morello-bufferize": "morello_mlir.passes.pipelines:morello_bufferize",
    "morello-default": "morello_mlir.passes.pipelines:morello_default",
    "morello-lower-upstream": "morello_mlir.passes.pipelines:morello_lower_upstream",
}

_registered: dict[str, type[Pass] | NamedPipeline] = {}


@dataclass(frozen=True)
class NamedPipeline:
    """A name that stands for pipeline text.

    `function` returns the elements of a pipeline on `builtin.module`, as text. Its keyword parameters (annotated, with
    defaults) are the options, spelled as those of a pass are; `Annotated[int, "help"]` documents one. Where its single
    parameter is a dataclass, the fields of that are (as they are of a pass). A function with the single parameter
    `options` gets the raw text of each option in a dict instead, and checks them itself. The first line of its
    docstring is the summary.
    """

    name: str
    function: Callable[..., str]
    anchor: typing.ClassVar[str | None] = "builtin.module"

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.function) or "").partition("\n")[0].rstrip(".")

    def options(self) -> dict[str, Option]:
        """The options by spelling; empty for a function that takes them raw."""
        if self._takes_raw():
            return {}
        record = self._record()
        if record is not None:
            return option_table(record)
        hints = typing.get_type_hints(self.function, include_extras=True)
        table = {}
        for parameter in inspect.signature(self.function).parameters.values():
            kind, text = hints[parameter.name], ""
            if typing.get_origin(kind) is typing.Annotated:
                kind, text = typing.get_args(kind)[:2]
            table[parameter.name.replace("_", "-")] = Option(parameter.name, kind, parameter.default, text)
        return table

    def expand(self, options: str) -> str:
        """The pipeline text. Raises PipelineError for unknown or malformed options."""
        if self._takes_raw():
            return self.function(dict(split_options(options)))
        values, record = parse_options(f"pipeline '{self.name}'", options, self.options()), self._record()
        return self.function(**values) if record is None else self.function(record(**values))

    def _record(self) -> type | None:
        """The dataclass whose fields are the options, if there is one."""
        kinds = [k for name, k in typing.get_type_hints(self.function).items() if name != "return"]
        if len(kinds) == 1 and isinstance(kinds[0], type) and dataclasses.is_dataclass(kinds[0]):
            return kinds[0]
        return None

    def _takes_raw(self) -> bool:
        return list(inspect.signature(self.function).parameters) == ["options"]


@lru_cache(maxsize=1)
def _plugins() -> dict[str, metadata.EntryPoint]:
    """Entry points of other packages by name. Raises PipelineError where two claim one name, or one claims ours."""
    found: dict[str, metadata.EntryPoint] = {}
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        owner = "morello-mlir" if entry.name in PASSES or entry.name in PIPELINES else None
        if entry.name in found and found[entry.name].value != entry.value:
            owner = found[entry.name].value
        if owner:
            raise PipelineError(f"pass '{entry.name}' of entry point '{entry.value}' is already defined by {owner}")
        found[entry.name] = entry
    return found


def register(item: type[Pass] | NamedPipeline) -> type[Pass] | NamedPipeline:
    """Add a pass class (also as a decorator) or a named pipeline for this process.

    Raises PipelineError where the name is missing or taken.
    """
    if not item.name:
        raise PipelineError(f"{item!r} has no name")
    if known(item.name) and _registered.get(item.name) is not item:
        raise PipelineError(f"pass '{item.name}' is already defined")
    _registered[item.name] = item
    return item


def unregister(name: str) -> None:
    """Undo `register`; names that were not registered in this process are left alone."""
    _registered.pop(name, None)


def known(name: str) -> bool:
    """Whether a pass or pipeline of ours (or a plugin's) has this name. Imports nothing."""
    return name in _registered or name in PASSES or name in PIPELINES or name in _plugins()


def names() -> list[str]:
    """All names of passes and pipelines, sorted. Imports nothing."""
    return sorted({*_registered, *PASSES, *PIPELINES, *_plugins()})


def lookup(name: str) -> type[Pass] | NamedPipeline:
    """The pass class or pipeline of a name. Raises PipelineError: unknown, or it cannot be imported."""
    if name in _registered:
        return _registered[name]
    reference = PASSES.get(name) or PIPELINES.get(name)
    if reference is None:
        if name not in _plugins():
            raise PipelineError(f"unknown pass '{name}'")
        reference = _plugins()[name].value
    target = _load(name, reference)
    if isinstance(target, type) and issubclass(target, Pass):
        if target.name != name:
            raise PipelineError(f"pass '{name}' is called '{target.name}' by its class {reference}")
        return target
    if isinstance(target, NamedPipeline):
        return target
    if callable(target) and not isinstance(target, type):
        return NamedPipeline(name, target)
    raise PipelineError(f"pass '{name}': {reference} is neither a Pass class nor a pipeline function")


@cache
def _load(name: str, reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PipelineError(f"pass '{name}' cannot be loaded from {reference}: {error}") from error


def options_of(item: type[Pass] | NamedPipeline) -> dict[str, Option]:
    """The options of what `lookup` returned, by spelling."""
    return item.options() if isinstance(item, NamedPipeline) else option_table(item)

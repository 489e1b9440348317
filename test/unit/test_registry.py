"""Passes and pipelines by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
from pass_support import Note, registered, twice

from morello_mlir.errors import PipelineError
from morello_mlir.passes import registry
from morello_mlir.passes.base import Option, Pass
from morello_mlir.passes.registry import NamedPipeline


@pytest.fixture(autouse=True)
def _passes() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """A list that stands for the entry points that are installed."""
    found: list[EntryPoint] = []
    registry._plugins.cache_clear()
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: found if group == GROUP else [])
    yield found
    registry._plugins.cache_clear()


GROUP = "morello_mlir.passes"


@pytest.mark.parametrize("name", sorted({*registry.PASSES, *registry.PIPELINES}))
def test_every_row_of_the_tables_loads(name: str) -> None:
    item = registry.lookup(name)
    assert item.name == name
    assert item.summary
    assert not item.summary.endswith(".")
    assert [name for name, option in registry.options_of(item).items() if not option.help] == []


def test_no_name_is_both_a_pass_and_a_pipeline() -> None:
    assert not set(registry.PASSES) & set(registry.PIPELINES)
    assert list(registry.PASSES) == sorted(registry.PASSES)
    assert list(registry.PIPELINES) == sorted(registry.PIPELINES)


def test_names_import_no_pass() -> None:
    code = (
        "import sys; from morello_mlir.passes import registry; registry.names(); registry.known('x');"
        "print([m for m in sys.modules if m == 'mlir' or m.startswith('morello_mlir.passes.morello')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_registered_passes_are_found() -> None:
    assert registry.known("test-note")
    assert "test-note" in registry.names()
    assert registry.lookup("test-note") is Note
    registry.unregister("test-note")
    assert not registry.known("test-note")
    registry.unregister("test-note")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(PipelineError, match="unknown pass 'no-such'"):
        registry.lookup("no-such")


def test_two_owners_of_a_name_are_refused() -> None:
    @dataclass(frozen=True)
    class Other(Pass):
        name: ClassVar[str] = "test-note"

    with pytest.raises(PipelineError, match="pass 'test-note' is already defined"):
        registry.register(Other)
    registry.register(Note)  # The same once more is no clash.


def test_a_name_of_the_tables_cannot_be_registered() -> None:
    with pytest.raises(PipelineError, match="pass 'morello-default' is already defined"):
        registry.register(NamedPipeline("morello-default", twice))


def test_a_pass_without_name_is_refused() -> None:
    with pytest.raises(PipelineError, match="has no name"):
        registry.register(Pass)


def test_plugins_are_found(plugins: list[EntryPoint]) -> None:
    plugins.append(EntryPoint("plugin-pipeline", "pass_support:twice", GROUP))
    assert registry.known("plugin-pipeline")
    item = registry.lookup("plugin-pipeline")
    assert isinstance(item, NamedPipeline)
    assert item.summary == "Note, then rename the functions"


def test_a_plugin_cannot_take_our_names(plugins: list[EntryPoint]) -> None:
    plugins.append(EntryPoint("morello-lift", "pass_support:Note", GROUP))
    with pytest.raises(
        PipelineError, match="'morello-lift' of entry point 'pass_support:Note' is already defined by mor"
    ):
        registry.known("anything")


def test_two_plugins_cannot_share_a_name(plugins: list[EntryPoint]) -> None:
    plugins += [EntryPoint("p", "pass_support:Note", GROUP), EntryPoint("p", "pass_support:Fail", GROUP)]
    with pytest.raises(PipelineError, match="'p' of entry point 'pass_support:Fail' is already defined by pass_supp"):
        registry.known("anything")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_module:X", "cannot be loaded from no_such_module:X: No module named"),
        ("pass_support:NoSuch", "cannot be loaded from pass_support:NoSuch"),
        ("pass_support:ITEMS", "is neither a Pass class nor a pipeline function"),
        ("pass_support:Note", "is called 'test-note' by its class"),
    ],
)
def test_broken_plugins_are_named(plugins: list[EntryPoint], reference: str, message: str) -> None:
    plugins.append(EntryPoint("plugin-x", reference, GROUP))
    with pytest.raises(PipelineError, match="'plugin-x'") as caught:
        registry.lookup("plugin-x")
    assert message in str(caught.value)


def test_pipelines_have_typed_options() -> None:
    item = registry.lookup("test-twice")
    assert isinstance(item, NamedPipeline)
    assert item.options()["count"] == Option("count", int, 2, "how often")
    assert item.expand("count=3").startswith("test-note{count=3}")
    with pytest.raises(PipelineError, match="pipeline 'test-twice' has no option 'x' \\(options: count, suffix\\)"):
        item.expand("x=1")
    with pytest.raises(PipelineError, match="pipeline 'test-twice': option 'count': 'x' is not an integer"):
        item.expand("count=x")


@dataclass(frozen=True)
class Knobs:
    passes_of: int = field(default=1, metadata={"help": "how often"})
    name: str = "cse"


def repeated(knobs: Knobs) -> str:
    """Over and over."""
    return ",".join([knobs.name] * knobs.passes_of)


def test_the_fields_of_a_record_may_be_the_options() -> None:
    item = NamedPipeline("repeated", repeated)
    assert item.options()["passes-of"].help == "how often" and set(item.options()) == {"passes-of", "name"}
    assert item.expand("") == "cse" and item.expand("passes-of=2 name=canonicalize") == "canonicalize,canonicalize"
    with pytest.raises(PipelineError, match="pipeline 'repeated' has no option 'often'"):
        item.expand("often=2")


def test_pipelines_may_take_their_options_raw() -> None:
    item = registry.lookup("test-raw")
    assert isinstance(item, NamedPipeline)
    assert item.options() == {}
    assert item.expand("n=5") == "test-note{count=5}"

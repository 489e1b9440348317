"""Passes as dataclasses: options from text and back."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_support import Fail, Note

from morello_mlir.errors import PassError, PipelineError
from morello_mlir.passes.base import Pass, describe_type, option_table, split_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("count=-3", {"count": -3}),
        ("loud", {"loud": True}),
        ("loud=0", {"loud": False}),
        ("loud=true", {"loud": True}),
        ("text=plain", {"text": "plain"}),
        ("text={two words}", {"text": "two words"}),
        ("text='two words'", {"text": "two words"}),
        ('text="a{b" count=2', {"text": "a{b", "count": 2}),
        ("text=a=b", {"text": "a=b"}),
        ("text=", {"text": ""}),
        ("sizes=6,16,32", {"sizes": (6, 16, 32)}),
        ("sizes={6, 16}", {"sizes": (6, 16)}),
        ("sizes=", {"sizes": ()}),
        ("names=a,b", {"names": ("a", "b")}),
        ("limit=4", {"limit": 4}),
        ("limit=none", {"limit": None}),
        ("ratio=0.25", {"ratio": 0.25}),
        ("mode=slow  count=7", {"mode": "slow", "count": 7}),
    ],
)
def test_options_become_fields(text: str, expected: dict[str, object]) -> None:
    assert Note.from_options(text) == Note(**expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no-such=1", "pass 'test-note' has no option 'no-such' (options: count, loud, text, sizes"),
        ("count=x", "pass 'test-note': option 'count': 'x' is not an integer"),
        ("count=1.5", "pass 'test-note': option 'count': '1.5' is not an integer"),
        ("loud=maybe", "pass 'test-note': option 'loud': 'maybe' is not a bool (true or false)"),
        ("sizes=1,x", "pass 'test-note': option 'sizes': '1,x' is not a list of integers"),
        ("ratio=x", "pass 'test-note': option 'ratio': 'x' is not a number"),
        ("limit=", "pass 'test-note': option 'limit': '' is not an integer"),
        ("mode=odd", "pass 'test-note': option 'mode': 'odd' is not one of fast, slow"),
        ("count=1 count=2", "pass 'test-note': option 'count' is given twice"),
        ("text={a", "unbalanced brackets or quotes in options 'text={a'"),
    ],
)
def test_bad_options_name_the_pass_and_the_option(text: str, message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        Note.from_options(text)
    assert message in str(caught.value)


_TEXT = st.text("abc,=-. (){}", max_size=8).filter(
    # Brackets inside a value must balance for it to have a spelling.
    lambda t: t.count("(") == t.count("{") == t.count(")") == t.count("}") == 0
)


@given(
    st.builds(
        Note,
        count=st.integers(),
        loud=st.booleans(),
        text=_TEXT,
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
        limit=st.none() | st.integers(),
        ratio=st.floats(allow_nan=False, allow_infinity=False),
        mode=st.sampled_from(["fast", "slow"]),
    )
)
def test_a_pass_prints_what_makes_it(made: Note) -> None:
    text = str(made)
    options = text.removeprefix("test-note").removeprefix("{").removesuffix("}") if "{" in text else ""
    assert Note.from_options(options) == made


def test_fields_with_underscores_are_options_with_dashes() -> None:
    @dataclasses.dataclass(frozen=True)
    class Stop(Pass):
        stop_at: int = -1

    assert list(option_table(Stop)) == ["stop-at"]
    assert Stop.from_options("stop-at=3") == Stop(3)


def test_flags_without_value_are_true() -> None:
    assert split_options("a b=1") == [("a", "true"), ("b", "1")]


def test_types_in_words() -> None:
    words = {name: describe_type(o.type) for name, o in option_table(Note).items()}
    assert words["limit"] == "an integer"
    assert words["names"] == "a list of strings"
    assert words["mode"] == "one of fast, slow"


def test_a_failure_outside_a_pipeline_carries_its_place() -> None:
    from mlir import ir

    with ir.Context():
        module = ir.Module.parse("func.func private @f()")
        with pytest.raises(PassError) as caught:
            Fail().run(module.operation.regions[0].blocks[0].operations[0].operation)
    assert str(caught.value) == "-:1:1: error: 'func.func' op has nothing to tile\n-:1:1: note: here it is"


def test_run_must_be_defined() -> None:
    with pytest.raises(NotImplementedError):
        Pass().run(None)

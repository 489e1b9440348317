"""The text of pipelines: parsing, printing, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morello_mlir.errors import PipelineError
from morello_mlir.passes.pipeline_text import Element, parse_text, to_text

_NAME = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
_PLAIN = st.text("abcXYZ0189=,.-_ ", max_size=12)
# Options hold balanced brackets and quotes.
_OPTIONS = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        inner.map(lambda t: "{" + t + "}"),
        inner.map(lambda t: "(" + t + ")"),
        inner.map(lambda t: "[" + t + "]"),
        _PLAIN.map(lambda t: '"' + t + '})"'),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=4,
)
_PASS = st.builds(Element, _NAME, st.one_of(st.none(), _OPTIONS))
_ELEMENT = st.recursive(
    _PASS,
    lambda inner: st.builds(
        lambda name, children: Element(name, None, tuple(children)), _NAME, st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)
_PIPELINE = st.lists(_ELEMENT, max_size=4).map(tuple)


@given(_PIPELINE)
def test_printing_and_parsing_are_inverse(elements: tuple[Element, ...]) -> None:
    assert parse_text(to_text(elements)) == elements


@given(_PIPELINE, st.data())
def test_offsets_point_at_the_elements(elements: tuple[Element, ...], data: st.DataObject) -> None:
    text = to_text(elements)

    def check(parsed: tuple[Element, ...]) -> None:
        for element in parsed:
            assert text.startswith(str(element), element.offset)
            check(element.children or ())

    check(parse_text(text))


@given(st.text("abc(){}[]\"', =", max_size=20))
def test_any_text_is_parsed_or_refused_with_its_place(text: str) -> None:
    try:
        elements = parse_text(text)
    except PipelineError as error:
        assert error.offset is not None
        assert 0 <= error.offset <= len(text)
        assert error.reason in str(error)
    else:
        assert parse_text(to_text(elements)) == elements


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(PipelineError, match="more than 64 nests in one another"):
        parse_text("a(" * 100_000)


def test_space_does_not_matter() -> None:
    text = " builtin.module ( func.func( a , b {x=1} ) ,\n c ) "
    assert to_text(parse_text(text)) == "builtin.module(func.func(a,b{x=1}),c)"


def test_nothing_and_empty_nests() -> None:
    assert parse_text("") == parse_text("  ") == ()
    assert parse_text("f()") == (Element("f", None, ()),)


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("a(b", "unbalanced '(' after 'a'", 1),
        ("a(b(c)", "unbalanced '(' after 'a'", 1),
        ("a(b,c(d", "unbalanced '(' after 'c'", 5),
        ("a)", "unbalanced ')'", 1),
        ("a{x=1", "unbalanced '{' in the options of 'a'", 1),
        ("a{x={1}", "unbalanced '{' in the options of 'a'", 1),
        ("a{x=(1}", "unbalanced '}' in the options of 'a'", 6),
        ("a{x='1}", "unbalanced ''' in the options of 'a'", 1),
        ("a}", "expected ',' after 'a', not '}'", 1),
        ("a,", "expected the name of a pass or op, not the end", 2),
        (",a", "expected the name of a pass or op, not ','", 0),
        ("a,,b", "expected the name of a pass or op, not ','", 2),
        ("(a)", "expected the name of a pass or op, not '('", 0),
        ("a b", "expected ',' after 'a', not 'b'", 2),
        ("a(b c)", "expected ',' after 'b', not 'c'", 4),
        ("a{b}(c)", "expected ',' after 'a{b}', not '('", 4),
        ("a(b)(c)", "expected ',' after 'a(b)', not '('", 4),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, reason: str, offset: int) -> None:
    with pytest.raises(PipelineError) as caught:
        parse_text(text)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)

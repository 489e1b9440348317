"""`--verify-diagnostics`: comments against what was reported."""

from __future__ import annotations

import pytest

from morello_mlir.diagnostics import ERROR, NOTE, REMARK, WARNING, Diagnostic, Place
from morello_mlir.errors import InputError
from morello_mlir.tools._expectations import expectations, mismatches


def at(line: int, message: str = "abc", severity: str = ERROR, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    return Diagnostic(severity, message, Place("f", line, 1) if line else Place(), notes)


def check(text: str, *reported: Diagnostic) -> list[str]:
    return [str(d) for d in mismatches(expectations(text, "f"), reported)]


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("op // expected-error {{abc}}", at(1)),
        ("// expected-error@+1 {{abc}}\nop", at(2)),
        ("// expected-error @+2 {{abc}}\n\nop", at(3)),
        ("op\n// expected-error@-1 {{b}}", at(1)),
        ("op\n// expected-error@above {{abc}}", at(1)),
        ("// expected-error@below {{abc}}\nop", at(2)),
        ("// expected-error@unknown {{abc}}", at(0)),
        ("op // expected-warning {{abc}}", at(1, severity=WARNING)),
        ("op // expected-remark {{abc}}", at(1, severity=REMARK)),
        ("op // expected-error-re {{a{{.}}c}}", at(1)),
        ("op // expected-error-re {{f({{[0-9]+}}) * {{x|y}}}}", at(1, "f(12) * y")),
        ("op // expected-error {{a {{b}} c}}", at(1, "a {{b}} c")),
    ],
)
def test_expected(text: str, diagnostic: Diagnostic) -> None:
    assert check(text, diagnostic) == []


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("op // expected-error {{abd}}", at(1)),
        ("op // expected-warning {{abc}}", at(1)),
        ("op // expected-error@+1 {{abc}}", at(1)),
        ("op // expected-error {{abc}}", at(0)),
        ("op // expected-error-re {{a{{[0-9]}}c}}", at(1)),
        ("op // expected-error {{a.c}}", at(1)),
    ],
)
def test_not_as_expected(text: str, diagnostic: Diagnostic) -> None:
    unexpected, missing = check(text, diagnostic)
    assert "unexpected error: abc" in unexpected
    assert "was not produced" in missing


def test_above_and_below_skip_other_comments() -> None:
    text = "op\n// expected-error@above {{one}}\n// expected-error@above {{two}}"
    assert check(text, at(1, "one"), at(1, "two")) == []
    text = "// expected-error@below {{one}}\n// expected-error@below {{two}}\nop"
    assert check(text, at(3, "one"), at(3, "two")) == []


def test_one_comment_stands_for_equal_diagnostics() -> None:
    assert check("op // expected-error {{abc}}", at(1), at(1)) == []


def test_two_comments_want_two_diagnostics() -> None:
    text = "// expected-error@+2 {{abc}}\n// expected-error@+1 {{abc}}\nop"
    assert check(text, at(3), at(3)) == []
    assert len(check(text, at(3))) == 1


def test_notes_are_expected_too_except_mlirs_own() -> None:
    notes = (at(1, "see current operation: x", NOTE), at(2, "declared here", NOTE))
    assert check("op // expected-error {{abc}}\n// expected-note@+0 {{declared}}", at(1, notes=notes)) == []
    assert check("op // expected-error {{abc}}", at(1, notes=notes)) == ["f:2:1: error: unexpected note: declared here"]


def test_lines_count_from_the_first() -> None:
    (expected,) = expectations("\nop // expected-error {{abc}}", "f")
    assert expected.line == 2
    assert expected.at == Place("f", 2, 7)


def test_a_malformed_regex_is_refused() -> None:
    with pytest.raises(InputError, match=r"f:2:4: error: malformed regular expression in expected-error-re"):
        expectations("\n// expected-error-re {{a{{(}}}}", "f")

"""`--verify-diagnostics`: comments such as `// expected-error @+1 {{text}}` against what was reported.

The rules are upstream's: the text is a part of the message; `@+N`, `@-N` count lines, `@above` and `@below` mean the
nearest line without such a comment, `@unknown` a diagnostic without location; in the `-re` forms, parts of the text in
double braces are regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from morello_mlir.diagnostics import ERROR, Diagnostic, Place
from morello_mlir.errors import InputError

_COMMENT = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<re>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass
class Expectation:
    """One expected diagnostic: `line` it must be on (0: no location), and `at`, where the comment stands."""

    severity: str
    line: int
    text: str
    pattern: re.Pattern[str]
    at: Place
    met: bool = False

    def matches(self, diagnostic: Diagnostic) -> bool:
        return (
            diagnostic.severity == self.severity
            and diagnostic.place.line == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def expectations(text: str, name: str) -> list[Expectation]:
    """The expectations in a source text, the file `name`.

    Raises InputError, as a diagnostic at the comment, for a malformed regular expression.
    """
    lines = text.split("\n")
    found: list[tuple[int, re.Match[str]]] = []
    for index, line in enumerate(lines):
        match = _COMMENT.search(line)
        if match:
            found.append((index, match))
    commented = {index for index, _ in found}
    out = []
    for index, match in found:
        at = Place(name, index + 1, match.start() + 1)
        try:
            pattern = _pattern(match["text"], bool(match["re"]))
        except re.error as error:
            message = f"malformed regular expression in expected-{match['severity']}-re: {error}"
            raise InputError(str(Diagnostic(ERROR, message, at))) from error
        out.append(
            Expectation(
                match["severity"],
                _target(index, match["where"], commented, len(lines)),
                match["text"],
                pattern,
                at,
            )
        )
    return out


def _target(index: int, where: str | None, commented: set[int], count: int) -> int:
    if where == "unknown":
        return 0
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        index += step
        while index in commented and 0 <= index < count:
            index += step
    elif where:
        index += int(where)
    return index + 1


def _pattern(text: str, with_regexes: bool) -> re.Pattern[str]:
    if not with_regexes:
        return re.compile(re.escape(text))
    pieces = re.split(r"\{\{(.*?)\}\}", text)
    # Odd pieces stood in braces.
    return re.compile("".join(p if i % 2 else re.escape(p) for i, p in enumerate(pieces)))


def _flat(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        # MLIR adds this note by itself; no test expects it.
        yield from (n for n in diagnostic.notes if not n.message.startswith("see current operation"))


def mismatches(expected: list[Expectation], reported: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What differs, as errors: diagnostics nobody expected, and expectations that nothing met. Marks those met."""
    wrong = []
    for diagnostic in _flat(reported):
        hit = next((e for e in expected if not e.met and e.matches(diagnostic)), None)
        # One comment may stand for several equal diagnostics.
        hit = hit or next((e for e in expected if e.matches(diagnostic)), None)
        if hit:
            hit.met = True
        else:
            text = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(Diagnostic(ERROR, text, diagnostic.place))
    for e in expected:
        if not e.met:
            wrong.append(Diagnostic(ERROR, f'expected {e.severity} "{e.text}" was not produced', e.at))
    return wrong

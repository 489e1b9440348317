"""The tree of a schedule as HTML: a row for every step, what is inside a loop folding under it."""

from __future__ import annotations

from collections.abc import Iterator

from ..search.steps import Step, cells
from .markup import Markup, joined, tag

#: Loops that take at least this share of their goal are open.
OPEN = 0.02


def tree(root: Step) -> Markup:
    """All steps, as the text has them."""
    heads = ("step", "runs", "cycles", "share", "", "own", "moved", "")
    head = tag("span", *(tag("span", h) for h in heads), class_="row head", style="--depth: 0")
    return tag("div", head, *_rows(root, root.total, 0), class_="tree")


def _rows(step: Step, whole: int, depth: int) -> Iterator[Markup]:
    """A step, what is inside it (below its line, and deeper), and what follows it."""
    inside = joined(row for b in step.below if b.indent for row in _rows(b, whole, depth + b.indent))
    row = _row(step, whole, depth)
    if not step.label:
        yield inside
    elif inside:
        is_open = bool(whole) and step.total >= OPEN * whole
        yield tag("details", tag("summary", row), inside, open=is_open)
    else:
        yield row
    for below in step.below:
        if not below.indent:
            yield from _rows(below, whole, depth)


def _row(step: Step, whole: int, depth: int) -> Markup:
    shown = cells(step, whole)
    own, total = (f"{100 * cost / whole:.2f}%" if whole else "0%" for cost in (step.own, step.total))
    bar = tag("span", class_="bar", style=f"--own: {own}; --all: {total}")
    return tag(
        "span",
        tag("span", step.label, class_="label"),
        *(tag("span", shown[c]) for c in ("runs", "cycles", "share")),
        bar,
        tag("span", shown["own"]),
        tag("span", shown["moved"], class_="soft"),
        tag("span", step.note, class_="soft"),
        class_="row",
        style=f"--depth: {depth}",
    )

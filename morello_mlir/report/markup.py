"""HTML and SVG as values: what is not markup already is escaped, so that no text of a user's becomes any."""

from __future__ import annotations

import html
from collections.abc import Iterable

#: Elements that have no end.
_VOID = ("br", "hr", "meta", "line", "circle", "rect", "path", "polyline")


class Markup(str):
    """Text that is markup."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """`value` as markup: as it is, if it is markup, else with everything escaped that means something in HTML."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Parts one after another."""
    return Markup(between.join(map(escaped, parts)))


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """An element. attributes: without a trailing underscore, and with dashes for underscores; True: a bare one; None or
    False: none."""
    words = [name]
    for key, value in attributes.items():
        if value is True:
            words.append(_name(key))
        elif value is not None and value is not False:
            words.append(f'{_name(key)}="{escaped(value)}"')
    opened = " ".join(words)
    if name in _VOID and not inside:
        return Markup(f"<{opened}/>")
    return Markup(f"<{opened}>{joined(inside)}</{name}>")


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")

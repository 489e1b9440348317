"""The text of pipelines: `builtin.module(func.func(canonicalize,my-pass{a=1 b=2}),cse)` as a tree and back.

Only the shape is known here (names, options, nesting), not which passes exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from morello_mlir.errors import PipelineError

_OPENERS = {"(": ")", "{": "}", "[": "]"}
_CLOSERS = set(_OPENERS.values())
# Far more than any pipeline needs, and far less than Python's stack holds.
_MAX_DEPTH = 64


@dataclass(frozen=True)
class Element:
    """One element of a pipeline: a pass (`children` is None) or a nest on the op `name`.

    options: the text between the braces; None where there are no braces.
    offset:  where the element starts in the text it came from (not part of its identity).
    """

    name: str
    options: str | None = None
    children: tuple[Element, ...] | None = None
    offset: int = field(default=0, compare=False)

    @property
    def is_nest(self) -> bool:
        return self.children is not None

    def __str__(self) -> str:
        if self.children is not None:
            return f"{self.name}({to_text(self.children)})"
        return self.name + ("{" + self.options + "}" if self.options is not None else "")

    def at(self, offset: int) -> Element:
        """The same element, all of it attributed to another place in the text (for expansions)."""
        children = None if self.children is None else tuple(c.at(offset) for c in self.children)
        return replace(self, children=children, offset=offset)


def to_text(elements: tuple[Element, ...]) -> str:
    """The inverse of `parse_text`."""
    return ",".join(str(e) for e in elements)


def pipeline_error(message: str, offset: int) -> PipelineError:
    """A PipelineError that tells where in the pipeline text the trouble is."""
    return PipelineError(f"{message} (at offset {offset} of the pipeline)", reason=message, offset=offset)


def parse_text(text: str) -> tuple[Element, ...]:
    """The elements of a pipeline. Raises PipelineError naming the element at fault and its offset."""
    elements, end = _parse_list(text, 0, None, 0)
    if end < len(text):
        raise pipeline_error(f"unbalanced '{text[end]}'", end)
    return elements


def _parse_list(text: str, start: int, opener: int | None, depth: int) -> tuple[tuple[Element, ...], int]:
    """Elements up to the `)` that closes `opener`, or to the end. Returns them and the offset of what ended them."""
    if depth > _MAX_DEPTH:
        raise pipeline_error(f"more than {_MAX_DEPTH} nests in one another", start)
    elements: list[Element] = []
    i = _skip_space(text, start)
    if (opener is None and i == len(text)) or (opener is not None and text[i : i + 1] == ")"):
        return (), i
    while True:
        element, i = _parse_element(text, i, depth)
        elements.append(element)
        i = _skip_space(text, i)
        if i < len(text) and text[i] == ",":
            i = _skip_space(text, i + 1)
            continue
        if i == len(text) and opener is not None:
            raise pipeline_error(f"unbalanced '(' after '{_name_before(text, opener)}'", opener)
        if i == len(text) or text[i] == ")":
            return tuple(elements), i
        raise pipeline_error(f"expected ',' after '{element}', not '{text[i]}'", i)


def _parse_element(text: str, start: int, depth: int) -> tuple[Element, int]:
    i = start
    while i < len(text) and not text[i].isspace() and text[i] not in ",(){}[]":
        i += 1
    name = text[start:i]
    if not name:
        found = f"'{text[i]}'" if i < len(text) else "the end"
        raise pipeline_error(f"expected the name of a pass or op, not {found}", i)
    after = _skip_space(text, i)
    if after < len(text) and text[after] == "(":
        children, end = _parse_list(text, after + 1, after, depth + 1)
        return Element(name, None, children, start), end + 1
    if after < len(text) and text[after] == "{":
        end = _matching(text, after, name)
        return Element(name, text[after + 1 : end], None, start), end + 1
    return Element(name, None, None, start), i


def _matching(text: str, start: int, name: str) -> int:
    """The offset of the bracket that closes the one at `start`. Raises PipelineError."""
    stack: list[str] = []
    quote = ""
    for i in range(start, len(text)):
        char = text[i]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPENERS:
            stack.append(_OPENERS[char])
        elif char in _CLOSERS:
            if stack.pop() != char:
                raise pipeline_error(f"unbalanced '{char}' in the options of '{name}'", i)
            if not stack:
                return i
    raise pipeline_error(f"unbalanced '{quote or text[start]}' in the options of '{name}'", start)


def _skip_space(text: str, i: int) -> int:
    while i < len(text) and text[i].isspace():
        i += 1
    return i


def _name_before(text: str, i: int) -> str:
    head = text[:i].rstrip()
    start = max((head.rfind(c) for c in ",({ "), default=-1) + 1
    return head[start:]

"""The text of a body: printing, names, parsing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import SpecError
from .body import Body, BodyBuilder, Value
from .ops import ELEMENT_BYTES, ELEMENTWISE, REDUCE, REDUCTIONS, literal, number

#: Expressions nest no deeper than this: what lies deeper gets a name.
DEEPEST = 6
#: First letters of the names of values, by op.
_LETTERS = {"max": "m", "min": "m", "sum": "s", "prod": "p", "arg": "a", "exp": "e"}


def names_of(body: Body) -> tuple[str, ...]:
    """A name for every value: `x0` for inputs, `y` (`y0`, `y1`, ...) for outputs, a letter, with a number where several
    would have it, for reductions, values with several uses and those that would nest too deeply; "" for the rest."""
    names = [""] * len(body.values)
    for at, value in enumerate(body.values):
        if value.op == "input":
            names[at] = f"x{value.attr}"
    for k, at in enumerate(body.outputs):
        if not names[at] and not body.values[at].is_leaf:
            names[at] = f"y{k}" if len(body.outputs) > 1 else "y"
    letters: dict[str, list[int]] = {}
    depth = [0] * len(body.values)
    for at, value in enumerate(body.values):
        depth[at] = 1 + max((0 if names[a] else depth[a] for a in value.args), default=-1)
        shared = value.reduces or len(body.users[at]) > 1 or depth[at] > DEEPEST
        if shared and not names[at] and not value.is_leaf:
            names[at] = "?"
            letters.setdefault(_letter(value), []).append(at)
    for letter, own in letters.items():
        for number_, at in enumerate(own):
            names[at] = f"{letter}{number_}" if len(own) > 1 else letter
    return tuple(names)


def _letter(value: Value) -> str:
    name = value.op.removeprefix(REDUCE)
    if not value.reduces:
        return "e" if name.startswith("exp") else "v"
    return next((letter for start, letter in _LETTERS.items() if start in name), "r")


def to_text(body: Body) -> str:
    """The statements that `parse` reads back."""
    names = body.names
    text: list[str] = []
    lines: list[str] = []
    for at, value in enumerate(body.values):
        expression = _expression(value, [text[a] for a in value.args])
        if names[at] and not value.is_leaf:
            lines.append(f"{names[at]} = {expression}")
        text.append(names[at] or expression)
    for k, at in enumerate(body.outputs):
        own = f"y{k}" if len(body.outputs) > 1 else "y"
        if names[at] != own:
            lines.append(f"{own} = {text[at]}")
    return "; ".join(lines)


def _expression(value: Value, args: Sequence[str]) -> str:
    if value.op == "input":
        return f"x{value.attr}"
    if value.op == "const":
        return f"{value.attr}:{value.dtype}"
    if value.op == "index":
        return f"index({value.attr}, {value.dtype})"
    if value.op in ("cast", "ucast", "bitcast"):
        return f"{value.op}({args[0]}, {value.dtype})"
    first = [str(value.attr)] if value.op == "cmp" else [f"x{value.attr}"] if value.op == "gather" else []
    return f"{value.op.removeprefix(REDUCE)}({', '.join([*first, *args])})"


# ---------------------------------------------------------------- parsing

_TOKEN = re.compile(
    r"\s*(?:(?P<const>[-+]?(?:inf|nan|[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?)\s*:\s*\w+)|(?P<int>[0-9]+)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>[(),;=]))"
)


def parse(text: str, inputs: Sequence[str]) -> Body:
    """Reads statements. inputs: the element types of x0, x1, ... Raises SpecError saying what is wrong where."""
    return _Parser(text, inputs).body()


class _Parser:
    def __init__(self, text: str, inputs: Sequence[str]):
        self.text = text
        self.inputs = inputs
        self.tokens = self._tokens()
        self.at = 0
        self.b = BodyBuilder()
        self.names: dict[str, int] = {}
        self.outputs: dict[int, int] = {}

    def _tokens(self) -> list[tuple[str, str]]:
        out, at = [], 0
        end = len(self.text.rstrip())
        while at < end:
            m = _TOKEN.match(self.text, at)
            if not m or not m.lastgroup:
                raise SpecError(f"body: cannot read '{self.text[at : at + 20].strip()}'")
            out.append((m.lastgroup, re.sub(r"\s", "", m[m.lastgroup])))
            at = m.end()
        return out

    def fail(self, why: str) -> SpecError:
        near = " ".join(t for _, t in self.tokens[max(0, self.at - 4) : self.at + 2])
        return SpecError(f"body: {why}, near '{near}'")

    def take(self, *kinds: str) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")
        if kind not in kinds and text not in kinds:
            raise self.fail(f"expected {' or '.join(kinds)}")
        self.at += 1
        return text

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def body(self) -> Body:
        while self.at < len(self.tokens):
            self.statement()
            if self.at < len(self.tokens):
                self.take(";")
        if not self.outputs or sorted(self.outputs) != list(range(len(self.outputs))):
            raise SpecError("body: outputs are called y, or y0, y1, ... without gaps")
        return self.b.build([self.outputs[k] for k in range(len(self.outputs))])

    def statement(self) -> None:
        name = self.take("name")
        if re.fullmatch(r"x[0-9]+", name) or name in self.names:
            raise self.fail(f"'{name}' is {'an input' if name[0] == 'x' else 'defined twice'}")
        self.take("=")
        value = self.expression(0)
        self.names[name] = value
        if m := re.fullmatch(r"y([0-9]*)", name):
            self.outputs[int(m[1] or 0)] = value

    def expression(self, depth: int) -> int:
        if depth > 100:
            raise self.fail("nested too deeply")
        kind = self.tokens[self.at][0] if self.at < len(self.tokens) else "end"
        if kind == "const":
            digits, _, dtype = self.take("const").partition(":")
            if dtype not in ELEMENT_BYTES:
                raise self.fail(f"unknown element type '{dtype}'")
            return self.b.const(number(literal(number(digits, dtype), dtype), dtype), dtype)
        name = self.take("name")
        if self.peek() == "(":
            return self.call(name, depth)
        if m := re.fullmatch(r"x([0-9]+)", name):
            if int(m[1]) >= len(self.inputs):
                raise self.fail(f"there is no input {name}")
            return self.b.input(int(m[1]), self.inputs[int(m[1])])
        if name not in self.names:
            raise self.fail(f"'{name}' is not defined above")
        return self.names[name]

    def call(self, name: str, depth: int) -> int:
        self.take("(")
        if name == "index":
            dim = self.take("int")
            self.take(",")
            out = self.b.index(int(dim), self.take("name"))
            self.take(")")
            return out
        if name == "gather":
            return self.gather(depth)
        predicate = ""
        if name == "cmp":
            predicate = self.take("name")
            self.take(",")
        args = [self.expression(depth + 1)]
        dtype = ""
        while self.peek() == ",":
            self.take(",")
            if name in ("cast", "ucast", "bitcast"):
                dtype = self.take("name")
            else:
                args.append(self.expression(depth + 1))
        self.take(")")
        if name in ("cast", "ucast", "bitcast"):
            return self.b.cast(args[0], dtype, unsigned=name == "ucast", bits=name == "bitcast")
        if name == "cmp":
            if len(args) != 2:
                raise self.fail("cmp takes a predicate and two operands")
            return self.b.cmp(predicate, *args)
        return self.combine(name, args)

    def gather(self, depth: int) -> int:
        """`gather(x1, PLACE, ...)`, from the table on."""
        table, places = self.take("name"), []
        while self.peek() == ",":
            self.take(",")
            places.append(self.expression(depth + 1))
        self.take(")")
        m = re.fullmatch(r"x([0-9]+)", table)
        if m is None or int(m[1]) >= len(self.inputs):
            raise self.fail(f"there is no input {table}")
        return self.b.gather(int(m[1]), places, self.inputs[int(m[1])])

    def combine(self, name: str, args: list[int]) -> int:
        """An op or a reduction, told apart by how many operands there are."""
        op = ELEMENTWISE.get(name)
        if name == "select" or (op and op.arity == len(args)):
            return self.b.op(name, *args)
        if name in REDUCTIONS and len(args) == (2 if name.startswith("arg") else 1):
            return self.b.reduce(name, *args)
        if op or name in REDUCTIONS:
            raise self.fail(f"{name} does not take {len(args)} operands")
        others = ("cast", "ucast", "bitcast", "cmp", "select", "index", "gather")
        known = ", ".join(sorted({*ELEMENTWISE, *REDUCTIONS, *others}))
        raise self.fail(f"unknown op '{name}' (have {known})")

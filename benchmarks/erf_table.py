"""Fits the tables of erf that AVX-512 looks up: `python -m benchmarks.erf_table` prints what is in
morello_mlir/nests/lowering/erf_table.py.

Decimal arithmetic throughout, so that every machine finds the same numbers.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

CENTERS, DEGREE = 32, 5
DIGITS = 50
#: Of a fit.
POINTS = 32
#: What rounding erf and the slope at a center may do to the results around it, in units of their last place.
EXACT = Decimal(1) / 64
#: Half of what lies between two centers.
HALF = Decimal(1) / 16
#: How far below the middle centers are looked for: below them results are smaller, and errors worth more.
SHIFT = Decimal(1) / 512
TWO_OVER_ROOT_PI = Decimal("1.1283791670955125738961589031215451716881012586579977")

HEAD = '''"""Tables of erf: around 32 centers an eighth apart, a polynomial of degree five in what |x| is beyond one.

VALUES are erf of the centers, which are chosen so that as f32 these and the slopes are all but exact. The first center
is 0, and its polynomial is of erf(x) - x. Made by `python -m benchmarks.erf_table`, where the rules are.
"""

from __future__ import annotations

#: |x|, at most: the last number whose nearest eighth is that of the last center. From 3.92 on, erf rounds to 1.
'''


def erf(x: Decimal) -> Decimal:
    """erf(x) to about DIGITS digits, by a series without cancellation."""
    term = total = x
    n = 0
    while term > total.scaleb(-DIGITS):
        n += 1
        term *= 2 * x * x / (2 * n + 1)
        total += term
    return TWO_OVER_ROOT_PI * (-x * x).exp() * total


def slope(x: Decimal) -> Decimal:
    """The derivative of erf."""
    return TWO_OVER_ROOT_PI * (-x * x).exp()


def center(i: int) -> tuple[np.float32, np.float32]:
    """A number next to i / 8 whose erf and slope are all but f32, and that erf."""
    if not i:
        return np.float32(0), np.float32(0)
    start = Decimal(i) / 8 - SHIFT
    allowed = EXACT * _unit(erf(Decimal(i) / 8 - HALF))
    below = above = np.float32(erf(start))
    while True:
        for value in (below, above):
            x = np.float32(_inverse(Decimal(float(value)), start)) if value < 1 else np.float32(0)
            c = Decimal(float(x))
            if abs(erf(c) - Decimal(float(value))) + HALF * abs(slope(c) - _rounded(slope(c))) <= allowed:
                return x, value
        below, above = np.nextafter(below, np.float32(0)), np.nextafter(above, np.float32(1))


def _rounded(x: Decimal) -> Decimal:
    return Decimal(float(np.float32(x)))


def _unit(x: Decimal) -> Decimal:
    """What the last place of x as f32 is worth."""
    return Decimal(float(np.spacing(np.float32(x))))


def _inverse(value: Decimal, x: Decimal) -> Decimal:
    """The number near x whose erf is `value`, by Newton's method."""
    for _ in range(6):
        x -= (erf(x) - value) / slope(x)
    return x


def polynomial(i: int, at: np.float32) -> list[np.float32]:
    """p with erf(c + r) = erf(c) + r p(r), lowest power first: least squares where Chebyshev's polynomials have their
    roots, next to the least error there is. What a coefficient loses when it is rounded, the next ones make good."""
    c = Decimal(float(at))
    roots = [Decimal(float(x)) for x in np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)]
    near, middle = (HALF, Decimal(i) / 8) if i else (HALF / 2, HALF / 2)
    beyond = [middle + near * root - c for root in roots]
    wanted = [erf(c + r) - (erf(c) if i else r) for r in beyond]
    out: list[np.float32] = []
    for power in range(1, DEGREE + 1):
        left = [
            y - sum(Decimal(float(a)) * r**k for k, a in enumerate(out, 1)) for r, y in zip(beyond, wanted, strict=True)
        ]
        scaled = np.array([float(r / HALF) for r in beyond])
        columns = scaled[:, None] ** np.arange(power, DEGREE + 1)
        fit = np.linalg.lstsq(columns, np.array([float(y) for y in left]), rcond=None)[0]
        out.append(np.float32(fit[0] / float(HALF) ** power))
    return out


def text() -> str:
    """The module of the tables."""
    with localcontext() as context:
        context.prec = DIGITS
        centers, values = zip(*map(center, range(CENTERS)), strict=True)
        rows = [polynomial(i, at) for i, at in enumerate(centers)]
    top = np.nextafter(np.float32(Decimal(CENTERS - 1) / 8 + HALF), np.float32(0))
    names = {"CENTERS": centers, "VALUES": values}
    names |= dict(zip(("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"), zip(*rows, strict=True), strict=True))
    tables = [f"{name} = (\n" + "".join(f"    {float(x)!r},\n" for x in xs) + ")\n" for name, xs in names.items()]
    polynomials = "#: Coefficients, lowest power first.\nPOLYNOMIALS = (FIRST, SECOND, THIRD, FOURTH, FIFTH)\n"
    return f"{HEAD}TOP = {float(top)!r}\n{''.join(tables)}{polynomials}"


if __name__ == "__main__":
    print(text(), end="")

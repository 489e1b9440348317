"""Elementary functions on vectors, by polynomial: what `math.*` would call a scalar library for.

Every function takes and returns bundles (see `vectors`) of f32. Errors are in units in the last place of the exact
result, measured against f64 over all exponents (docs/vector-math.md lists them; test_vector_math.py holds them).
Coefficients are least relative error fits on the interval of each reduction, rounded one after the other.

f64 goes through the library, lane by lane, but for what the processor does itself; narrower floats are computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from . import erf_table
from .vectors import Bundle, Vectors

_LOG2E = 1.0 / math.log(2.0)
_LN2 = math.log(2.0)
#: ln 2 in two parts. Multiples of the first, with nine bits, are exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, math.log(2.0) - 0.693359375
#: The same for a fused multiply-add: nothing of the product is lost, so the first part may have all its bits.
_LN2_NEAR, _LN2_REST = 0.693147182464599609375, math.log(2.0) - 0.693147182464599609375
#: Adding it rounds to an integer, which the low bits of the sum then hold.
_MAGIC = 1.5 * 2**23
#: Added to it, so that the low bits are those of the exponents of two numbers whose product is 2^n.
_BIASES = 2 * 127
_MAGIC64 = 1.5 * 2**52

# e^r = 1 + r + r^2 P(r), |r| <= ln 2 / 2
_EXP = (0.4999999403953552, 0.1666652113199234, 0.04166827350854874, 0.008368685841560364, 0.0013820137828588486)
# e^r = 1 + r P(r), one coefficient less
_EXP_SHORT = (0.9999997019767761, 0.49999144673347473, 0.16667652130126953, 0.04189852997660637, 0.008289424702525139)
# e^r - 1 = r + r^2 P(r), relative to that
_EXPM1 = (0.5, 0.1666654348373413, 0.041666436940431595, 0.008366554975509644, 0.0013937577605247498)
# 2^r = 1 + r P(r), |r| <= 1/2
_EXP2 = (
    0.6931471824645996,
    0.24022647738456726,
    0.05550359562039375,
    0.00961849931627512,
    0.0013390969252213836,
    0.0001532926398795098,
)
# 2^r = P(r), 0 <= r < 1, exact at 0
_EXP2_FLOOR = (
    1.0,
    0.6931512951850891,
    0.2401645928621292,
    0.055799514055252075,
    0.009017480537295341,
    0.0018669525161385536,
)
# ln(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG = (
    0.3333333134651184,
    -0.2500081956386566,
    0.20001240074634552,
    -0.1662340760231018,
    0.14201627671718597,
    -0.13159683346748352,
    0.12761861085891724,
    -0.07635750621557236,
)
# erf(x) = x + x P(x^2), |x| <= 1
_ERF = (
    0.12837916612625122,
    -0.3761262595653534,
    0.11283578723669052,
    -0.026853347197175026,
    0.005187162198126316,
    -0.0007997853099368513,
    7.806903886375949e-05,
)
# ln(1 - erf(x)) = P(x), 1 <= x <= 4
_ERFC_LOG = (
    -0.00031245974241755903,
    -1.1272022724151611,
    -0.6379650831222534,
    -0.10325606167316437,
    0.021906375885009766,
    -0.002963972743600607,
    0.00018796745280269533,
)
# sin(r) = r + r^3 P(r^2), cos(r) = 1 - r^2 / 2 + r^4 P(r^2), |r| <= pi / 4
_SIN = (-0.16666655242443085, 0.008332190103828907, -0.0001951840822584927)
_COS = (0.04166664555668831, -0.00138873013202101, 2.443066841806285e-05)
# In f64: log2((1 + s) / (1 - s)) = s P(s^2), sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2); 2^r = 1 + r P(r), |r| <= 1/2
_LOG2_WIDE = (
    2.885390081777926,
    0.9617966939240635,
    0.5770780175139139,
    0.4121983581402947,
    0.3206193364524675,
    0.2613554095751221,
    0.2439113517430424,
)
_EXP2_WIDE = (
    0.6931471805482119,
    0.24022650698110531,
    0.05550410935267941,
    0.009618128616138796,
    0.0013333454859445412,
    0.00015403825463190034,
    1.5309156373342493e-05,
    1.317893079096842e-06,
)
#: Beyond this the reduction of sin and cos runs out of bits.
_TRIGONOMETRIC_LIMIT = 2.0**40


def _scaled(v: Vectors, p: Bundle, rounded: Bundle, n: Bundle) -> Bundle:
    """(1 + p) 2^n, in two steps since n may be beyond the exponents that there are. rounded: n with `_MAGIC` and
    `_BIASES` added."""
    if v.has_scale:
        return v.scale(v.add(p, v.number(1.0)), n)
    bits = v.bits(rounded)
    half = v.int_op("shrui", bits, v.integer(1))
    first = v.floats(v.int_op("shli", half, v.integer(23)))
    second = v.floats(v.int_op("shli", v.int_op("subi", bits, half), v.integer(23)))
    return v.mul(v.fma(p, first, first), second)


def exp(v: Vectors, x: Bundle) -> Bundle:
    """e^x, all of the range, denormal results included."""
    x = v.larger(v.number(-104.0), v.smaller(v.number(89.0), x))
    rounded = v.fma(x, v.number(_LOG2E), v.number(_MAGIC + _BIASES))
    n = v.sub(rounded, v.number(_MAGIC + _BIASES))
    t = v.fma(n, v.number(-_LN2_REST), v.fma(n, v.number(-_LN2_NEAR), x))
    p = v.fma(v.horner(_EXP, t), v.mul(t, t), t)
    return _scaled(v, p, rounded, n)


def exp_of_difference(v: Vectors, x: Bundle, top: Bundle) -> Bundle:
    """e^(x - top) where x <= top (NaN passes): few instructions for the multipliers, what softmax is bound by.

    -inf gives exactly 0; what is below 2^-126.5 becomes 0, or denormal where `has_scale`. The error is below 2^-23 of
    e^0, and a few units of the result, or top - x of them where `has_scale`. Arguments above 0 are right until e^88.
    """
    if v.has_scale:
        y = v.mul(v.sub(x, top), v.number(_LOG2E))
        return v.scale(v.horner(_EXP2_FLOOR, v.over_floor(y)), y)
    d = v.larger(v.number(-127 * _LN2), v.sub(x, top))
    rounded = v.fma(d, v.number(_LOG2E), v.number(_MAGIC + 127))
    # The bias comes with the constant: a shift makes the power.
    scale = v.floats(v.int_op("shli", v.bits(rounded), v.integer(23)))
    n = v.sub(rounded, v.number(_MAGIC + 127))
    t = v.fma(n, v.number(-_LN2), d)
    return v.fma(v.mul(t, scale), v.horner(_EXP_SHORT, t), scale)


def exp2(v: Vectors, x: Bundle) -> Bundle:
    """2^x."""
    x = v.larger(v.number(-151.0), v.smaller(v.number(129.0), x))
    rounded = v.add(x, v.number(_MAGIC + _BIASES))
    n = v.sub(rounded, v.number(_MAGIC + _BIASES))
    r = v.sub(x, n)
    return _scaled(v, v.mul(r, v.horner(_EXP2, r)), rounded, n)


def _expm1(v: Vectors, x: Bundle) -> tuple[Bundle, Bundle]:
    """(2^(n - 1), e^t - 1) with x = n ln 2 + t, for arguments that need no care: 2^128 is no f32."""
    # The bias, less one, comes with the constant.
    rounded = v.fma(x, v.number(_LOG2E), v.number(_MAGIC + 126))
    n = v.sub(rounded, v.number(_MAGIC + 126))
    t = v.fma(n, v.number(-_LN2_REST), v.fma(n, v.number(-_LN2_NEAR), x))
    p = v.fma(v.horner(_EXPM1, t), v.mul(t, t), t)
    return v.floats(v.int_op("shli", v.bits(rounded), v.integer(23))), p


def expm1(v: Vectors, x: Bundle) -> Bundle:
    """e^x - 1."""
    half, p = _expm1(v, v.larger(v.number(-18.0), v.smaller(v.number(89.0), x)))
    r = v.fma(p, half, v.sub(half, v.number(0.5)))
    return v.select(v.compare("olt", v.absolute(x), v.number(2.0**-25)), x, v.add(r, r))


def tanh(v: Vectors, x: Bundle) -> Bundle:
    """From e^(-2|x|) - 1."""
    size = v.absolute(x)
    half, p = _expm1(v, v.larger(v.number(-20.0), v.mul(size, v.number(-2.0))))
    r = v.fma(p, half, v.sub(half, v.number(0.5)))
    # r = (e^(-2|x|) - 1) / 2 lies in -1/2 .. 0: tanh |x| = -r / (1 + r).
    r = v.select(v.compare("olt", size, v.number(2.0**-20)), v.neg(size), v.div(r, v.add(r, v.number(1.0))))
    return v.with_sign_of(v.absolute(r), x)


def _log_parts(v: Vectors, x: Bundle) -> tuple[Bundle, Bundle]:
    """(e, f) with x = 2^e (1 + f), sqrt(1/2) <= 1 + f <= sqrt(2), for positive finite x."""
    small = v.compare("olt", x, v.number(2.0**-126))
    bits = v.bits(v.select(small, v.mul(x, v.number(2.0**23)), x))
    shifted = v.int_op("subi", bits, v.integer(0x3F3504F3))
    whole = v.int_op("andi", shifted, v.integer(-(1 << 23)))
    e = v.to_float(v.int_op("shrsi", shifted, v.integer(23)))
    e = v.add(e, v.select(small, v.number(-23.0), v.number(0.0)))
    return e, v.sub(v.floats(v.int_op("subi", bits, whole)), v.number(1.0))


def _log_limits(v: Vectors, x: Bundle, inside: Bundle) -> Bundle:
    """The logarithm `inside` of positive finite numbers, and of all others."""
    outside = v.select(v.compare("oeq", x, v.number(0.0)), v.number(-math.inf), v.number(math.nan))
    inside = v.select(v.compare("oeq", x, v.number(math.inf)), x, inside)
    return v.select(v.compare("ogt", x, v.number(0.0)), inside, outside)


def log(v: Vectors, x: Bundle) -> Bundle:
    """The natural logarithm."""
    e, f = _log_parts(v, x)
    square = v.mul(f, f)
    y = v.mul(v.mul(f, square), v.horner(_LOG, f))
    y = v.fma(square, v.number(-0.5), v.fma(e, v.number(_LN2_LOW), y))
    return _log_limits(v, x, v.fma(e, v.number(_LN2_HIGH), v.add(f, y)))


def _log_to(v: Vectors, x: Bundle, base: float) -> Bundle:
    """The logarithm to `base`, from that of 1 + f in two parts."""
    e, f = _log_parts(v, x)
    square = v.mul(f, f)
    y = v.fma(square, v.number(-0.5), v.mul(v.mul(f, square), v.horner(_LOG, f)))
    one, step = 1.0 / math.log(base), math.log(2.0) / math.log(base)
    near, near_step = (math.floor(c * 2**11) / 2**11 for c in (one, step))
    # f + y has more bits than fit: the part that matters most is multiplied exactly.
    high = v.floats(v.int_op("andi", v.bits(f), v.integer(-(1 << 12))))
    low = v.add(v.sub(f, high), y)
    rest = v.fma(high, v.number(one - near), v.fma(e, v.number(step - near_step), v.mul(low, v.number(one))))
    return _log_limits(v, x, v.fma(e, v.number(near_step), v.fma(high, v.number(near), rest)))


def log2(v: Vectors, x: Bundle) -> Bundle:
    """The logarithm to base 2: exact for powers of two."""
    return _log_to(v, x, 2.0)


def log10(v: Vectors, x: Bundle) -> Bundle:
    """The logarithm to base 10."""
    return _log_to(v, x, 10.0)


def log1p(v: Vectors, x: Bundle) -> Bundle:
    """ln(1 + x): the logarithm of the sum as rounded, and what the rounding took off."""
    u = v.add(x, v.number(1.0))
    y = log(v, u)
    lost = v.sub(x, v.sub(u, v.number(1.0)))
    whole = v.add(y, v.div(lost, u))
    # At the ends of the range there is nothing to correct; -0 is -0.
    y = v.select(v.compare("oeq", v.absolute(y), v.number(math.inf)), y, whole)
    return v.select(v.compare("oeq", x, v.number(0.0)), x, y)


def _erf_by_tables(v: Vectors, x: Bundle) -> Bundle:
    """A polynomial around the nearest of 32 centers, all of it looked up: half the instructions."""
    t = v.smaller(v.number(erf_table.TOP), v.absolute(x))
    at = v.bits(v.fma(t, v.number(8.0), v.number(_MAGIC)))
    r = v.sub(t, v.lookup(erf_table.CENTERS, at))
    p = v.lookup(erf_table.POLYNOMIALS[-1], at)
    for coefficients in reversed(erf_table.POLYNOMIALS[:-1]):
        p = v.fma(p, r, v.lookup(coefficients, at))
    # Around 0, what comes to t is small.
    near = v.compare("ole", t, v.number(1 / 16))
    return v.with_sign_of(v.fma(p, r, v.select(near, t, v.lookup(erf_table.VALUES, at))), x)


def erf(v: Vectors, x: Bundle) -> Bundle:
    """Up to 1 a polynomial in x; beyond, 1 - e^P(|x|). With AVX-512, polynomials from tables."""
    if v.has_lookup:
        return _erf_by_tables(v, x)
    size = v.absolute(x)
    inner = v.fma(x, v.horner(_ERF, v.mul(x, x)), x)
    t = v.smaller(v.number(4.0), size)
    tail = exp_of_difference(v, v.horner(_ERFC_LOG, t), v.number(0.0))
    outer = v.with_sign_of(v.sub(v.number(1.0), tail), x)
    return v.select(v.compare("ogt", size, v.number(1.0)), outer, inner)


def rsqrt(v: Vectors, x: Bundle) -> Bundle:
    """1 / sqrt(x), by division: the processor's estimate and a Newton step fail at 0 and infinity."""
    return v.div(v.number(1.0), v.sqrt(x))


def _quadrants(v: Vectors, x: Bundle) -> tuple[Bundle, Bundle]:
    """(r, n): x = n pi/2 + r, |r| <= pi/4, the low bits of n as integers; for |x| < _TRIGONOMETRIC_LIMIT."""
    w = v.wider()
    wide = v.convert(x, "f32", "f64")
    rounded = w.fma(wide, w.number(2.0 / math.pi), w.number(_MAGIC64))
    n = w.sub(rounded, w.number(_MAGIC64))
    r = w.fma(n, w.number(-math.pi / 2), wide)
    r = w.fma(n, w.number(-6.123233995736766e-17), r)
    low = v.each(f"arith.trunci {{}} : {w.int_type} to {v.int_type}", w.bits(rounded))
    return w.convert(r, "f64", "f32"), low


def _trigonometric(v: Vectors, x: Bundle, name: str) -> Bundle:
    """sin or cos; vectors that hold a huge argument are left to the library."""
    r, n = _quadrants(v, x)
    if name == "cos":
        n = v.int_op("addi", n, v.integer(1))
    square = v.mul(r, r)
    sine = v.fma(v.mul(r, square), v.horner(_SIN, square), r)
    cosine = v.fma(v.mul(square, square), v.horner(_COS, square), v.fma(square, v.number(-0.5), v.number(1.0)))
    odd = v.each(f"arith.cmpi ne, {{}}, {{}} : {v.int_type}", v.int_op("andi", n, v.integer(1)), v.integer(0))
    y = v.bits(v.select(odd, cosine, sine))
    sign = v.int_op("shli", v.int_op("shrui", n, v.integer(1)), v.integer(31))
    y = v.floats(v.int_op("xori", y, sign))
    # -0 came out as +0 where the reduction subtracts nothing.
    if name == "sin":
        y = v.select(v.compare("oeq", x, v.number(0.0)), x, y)
    finite = v.compare("olt", v.absolute(x), v.number(math.inf))
    huge = v.both(finite, v.compare("ogt", v.absolute(x), v.number(_TRIGONOMETRIC_LIMIT)))
    return _unless(v, huge, y, x, name)


def _unless(v: Vectors, mask: Bundle, y: Bundle, x: Bundle, name: str) -> Bundle:
    """y, or what the library makes of x in vectors where the mask holds anywhere."""
    out = []
    for m, value, argument in zip(mask, y, x, strict=True):
        some = v.b.value(f"vector.reduction <or>, {m} : {v.mask_type} into i1")
        result = v.b.name()
        v.b.line(f"{result} = scf.if {some} -> ({v.type}) {{")
        called = library(v, name, (argument,))
        v.b.line(f"scf.yield {called[0]} : {v.type}")
        v.b.line("} else {")
        v.b.line(f"scf.yield {value} : {v.type}")
        v.b.line("}")
        out.append(result)
    return tuple(out)


def sin(v: Vectors, x: Bundle) -> Bundle:
    """sin(x), x in radians."""
    return _trigonometric(v, x, "sin")


def cos(v: Vectors, x: Bundle) -> Bundle:
    """cos(x), x in radians."""
    return _trigonometric(v, x, "cos")


def powf(v: Vectors, x: Bundle, y: Bundle) -> Bundle:
    """x^y through f64, with the special cases of C's pow."""
    size = v.absolute(x)
    w = v.wider()
    power = w.mul(_log2_wide(w, w.convert(size, "f32", "f64")), w.convert(y, "f32", "f64"))
    r = w.convert(_exp2_wide(w, power), "f64", "f32")
    one, zero, half = v.number(1.0), v.number(0.0), v.number(0.5)
    whole = v.compare("oeq", v.floor(y), y)
    halved = v.mul(y, half)
    odd = v.both(whole, v.compare("one", v.floor(halved), halved))
    # 1^y = 1 whatever y is, and (-1)^inf = 1.
    defined = v.compare("oeq", y, y)
    r = v.select(v.both(v.compare("oeq", size, one), defined), one, r)
    negative = v.compare("olt", x, zero)
    finite = v.compare("olt", size, v.number(math.inf))
    undefined = v.both(v.both(negative, finite), v.compare("une", v.floor(y), y))
    r = v.select(undefined, v.number(math.nan), r)
    r = v.select(odd, v.with_sign_of(r, x), r)
    trivial = v.either(v.compare("oeq", x, one), v.compare("oeq", y, zero))
    return v.select(trivial, one, r)


def _log2_wide(w: Vectors, x: Bundle) -> Bundle:
    """log2 x in f64, for x >= 0 that was an f32."""
    # 1024 more than the exponent: AVX2 neither shifts nor converts negative integers of 64 bits.
    more, root = 1024 << 52, 0x3FE6A09E667F3BCD
    bits = w.bits(x)
    shifted = w.int_op("addi", bits, w.integer(more - root))
    whole = w.int_op("andi", shifted, w.integer(-(1 << 52)))
    m = w.floats(w.int_op("addi", w.int_op("subi", bits, whole), w.integer(more)))
    count = w.int_op("ori", w.int_op("shrui", shifted, w.integer(52)), w.integer(0x433 << 52))
    e = w.sub(w.floats(count), w.number(2.0**52 + 1024))
    one = w.number(1.0)
    s = w.div(w.sub(m, one), w.add(m, one))
    y = w.fma(s, w.horner(_LOG2_WIDE, w.mul(s, s)), e)
    y = w.select(w.compare("olt", x, w.number(math.inf)), y, x)
    return w.select(w.compare("oeq", x, w.number(0.0)), w.number(-math.inf), y)


def _exp2_wide(w: Vectors, x: Bundle) -> Bundle:
    """2^x in f64, good for an f32; what is beyond the range of that overflows or vanishes when it is rounded."""
    x = w.larger(w.number(-200.0), w.smaller(w.number(200.0), x))
    rounded = w.add(x, w.number(_MAGIC64))
    r = w.sub(x, w.sub(rounded, w.number(_MAGIC64)))
    p = w.bits(w.fma(r, w.horner(_EXP2_WIDE, r), w.number(1.0)))
    return w.floats(w.int_op("addi", p, w.int_op("shli", w.bits(rounded), w.integer(52))))


def library(v: Vectors, name: str, args: tuple[str, ...]) -> Bundle:
    """A function of the math library, lane by lane. args: one vector each."""
    b, lanes = v.b, []
    for i in range(v.lanes):
        own = [b.value(f"vector.extract {x}[{i}] : {v.dtype} from {v.type}") for x in args]
        lanes.append(b.value(f"math.{name} {', '.join(own)} : {v.dtype}"))
    return (b.value(f"vector.from_elements {', '.join(lanes)} : {v.type}"),)


Function: TypeAlias = Callable[..., Bundle]
#: What is computed here, by the name that the `math` dialect has for it.
FUNCTIONS: dict[str, Function] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "tanh": tanh,
    "erf": erf,
    "rsqrt": rsqrt,
    "sin": sin,
    "cos": cos,
    "powf": powf,
}
#: What only the library knows.
OTHERS = ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "sinh", "tan")


def apply(v: Vectors, name: str, *args: Bundle) -> Bundle:
    """`math.<name>` of bundles of f32 or f64; the name is one of FUNCTIONS or OTHERS."""
    if name in FUNCTIONS and (v.dtype == "f32" or name == "rsqrt"):
        return FUNCTIONS[name](v, *args)
    count = max(len(x) for x in args)
    lanes = [tuple(x[i] if len(x) > 1 else x[0] for x in args) for i in range(count)]
    return tuple(y for each in lanes for y in library(v, name, each))

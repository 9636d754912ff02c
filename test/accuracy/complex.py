#!/usr/bin/env python3
"""Writes complex.txt: points, and at each the exact value of every complex function, to 106 bits.

mpmath (BSD, of PyPI) computes the values with 700 bits, or 5000 for parts at the ends of the range. A zero part stands for a number that is nearer to zero than any float:
so points on a branch cut are on the side that the zero's sign says, as in C99's annex G. Points of which both parts are
zero, infinities and NaN are not here: complex_check.c compares them with the C library.
    python3 test/accuracy/complex.py > test/accuracy/complex.txt
"""
import math
import random
import struct

import mpmath
from mpmath import mp, mpc, mpf

mp.prec = 700
EDGE_PREC = 5000  # between the ends of f64 are 2^2100, and squares of them are summed
TINY = mpf(2) ** -20000


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def bits(x):
    return "%016x" % struct.unpack("Q", struct.pack("d", x))[0]


def on_cuts():
    numbers = [1e-10, 0.25, 1.0, 1.5, 2.0, 10.0, 1e10, 1e30]
    numbers = [single(sign * x) for x in numbers for sign in (1, -1)]
    zeros = [0.0, -0.0]
    return [(x, z) for x in numbers for z in zeros] + [(z, x) for x in numbers for z in zeros]


def around_branch_points():
    steps = [(1e-7, 1e-8), (-1e-7, 1e-3), (1e-5, -1e-20), (-6e-8, -2e-4)]
    centers = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    return [(single(a + x), single(b + y)) for a, b in centers for x, y in steps]


def polar(least, greatest):
    size, angle = 10 ** random.uniform(least, greatest), random.uniform(-math.pi, math.pi)
    return size * math.cos(angle), size * math.sin(angle)


def points():
    random.seed(20)
    both = on_cuts() + around_branch_points()
    both += [tuple(map(single, polar(-10, 10))) for _ in range(60)]
    both += [(single(random.uniform(-4, 4)), single(random.uniform(-4, 4))) for _ in range(60)]
    both += [(single(random.uniform(-90, 90)), single(random.uniform(-90, 90))) for _ in range(20)]
    wide = [polar(-10, 300) for _ in range(50)]
    wide += [(random.uniform(-4, 4), random.uniform(-4, 4)) for _ in range(50)]
    wide += [(random.uniform(-700, 700), random.uniform(-1000, 1000)) for _ in range(20)]
    return both + edges(SINGLE_EDGES), wide + edges(DOUBLE_EDGES)


# Parts at both ends of the range and their neighbours: each also with the parts exchanged, and with other signs.
SINGLE_EDGES = [(1.0, 1e-40), (2.0, 1e-40), (0.5, 1.4e-45), (1e30, 1e-40), (1.4e-45, 1.4e-45), (1e-40, 1.2e-38), (3e38, 3e38), (5.0, 0.0)]
DOUBLE_EDGES = [(1.0, 1e-310), (1.0, 5e-324), (2.0, 1e-310), (0.5, 5e-324), (1e300, 1e-310), (1e154, 0.3), (5e-324, 5e-324),
                (1e-310, 1e-305), (1.7e308, 1.7e308), (1.7e308, 1e-310), (3.0, 0.0)]


def edges(pairs):
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    cast = single if pairs is SINGLE_EDGES else float
    return [(math.copysign(cast(x), s), math.copysign(cast(y), t)) for a in pairs for x, y in (a, a[::-1]) for s, t in signs]


def exact(x):
    return mpf(x) if x else math.copysign(1, x) * TINY


def number(point):
    return mpc(exact(point[0]), exact(point[1]))


# x sin(y), where a zero's sine stays one, however large x is.
def by_sine(x, y):
    return math.copysign(1, y) * mp.sign(x) * TINY if abs(y) <= TINY else x * mp.sin(y)


def exponential(z):
    return mpc(mp.exp(z.real) * mp.cos(z.imag), by_sine(mp.exp(z.real), z.imag))


def hyperbolic_cosine(z):
    return mpc(mp.cosh(z.real) * mp.cos(z.imag), by_sine(mp.sinh(z.real), z.imag))


def hyperbolic_sine(z):
    return mpc(mp.sinh(z.real) * mp.cos(z.imag), by_sine(mp.cosh(z.real), z.imag))


def cosine(z):
    return hyperbolic_cosine(mpc(-z.imag, z.real))


def sine(z):
    turned = hyperbolic_sine(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


def cube_root(z):
    return mp.exp(mp.log(z) / 3)


# Of a small result nothing is left of the 700 bits where 1 is subtracted.
def less_one(z):
    half = mp.sin(z.imag / 2)
    return mpc(mp.expm1(z.real) * mp.cos(z.imag) - 2 * half * half, by_sine(mp.exp(z.real), z.imag))


def log_of_one_more(z):
    inside = 2 * z.real + z.real * z.real + z.imag * z.imag
    return mpc(mp.log1p(inside) / 2, mp.atan2(z.imag, 1 + z.real))


def inverse_sine(z):
    turned = inverse_hyperbolic_sine(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


# Continuous from z's side of a branch cut: each part has the sign of the same part of z.
def inverse_hyperbolic_sine(z):
    w = mp.asinh(mpc(abs(z.real), abs(z.imag)))
    return mpc(math.copysign(1, z.real) * abs(w.real), math.copysign(1, z.imag) * abs(w.imag))


def inverse_hyperbolic_tangent(z):
    x, y = abs(z.real), abs(z.imag)
    if x == 1 and y <= TINY:
        return mpc(math.copysign(1, z.real) * mp.inf, math.copysign(1, z.imag) * TINY)
    re = mp.log1p(4 * x / ((1 - x) ** 2 + y * y)) / 4
    im = mp.atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2
    return mpc(math.copysign(1, z.real) * re, math.copysign(1, z.imag) * im)


def inverse_tangent(z):
    turned = inverse_hyperbolic_tangent(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


def inverse_cosine(z):
    w = inverse_sine(z)
    return mpc(mp.pi / 2 - w.real, -w.imag)


def inverse_hyperbolic_cosine(z):
    w = inverse_cosine(z)
    return mpc(abs(w.imag), math.copysign(1, z.imag) * w.real)


def hyperbolic_tangent(z):
    if abs(z.real) > 10000:
        far = mp.exp(-2 * abs(z.real))
        sign = math.copysign(1, z.real)
        return mpc(sign * (1 - 2 * far * mp.cos(2 * z.imag)), 2 * mp.sin(2 * z.imag) * far)
    below = mp.sinh(z.real) ** 2 + mp.cos(z.imag) ** 2
    return mpc(mp.sinh(z.real) * mp.cosh(z.real) / below, mp.sin(z.imag) * mp.cos(z.imag) / below)


def tangent(z):
    turned = hyperbolic_tangent(mpc(-z.imag, z.real))
    return mpc(turned.imag, -turned.real)


# Beyond this most results are out of the range of f64.
def power(a, b):
    exponent = b * mp.log(a)
    return exponential(exponent) if abs(exponent) <= 700 else mpc(mp.nan, mp.nan)


UNARY = {
    "exp": exponential, "expm1": less_one, "log": mp.log, "log1p": log_of_one_more,
    "sigmoid": lambda z: 1 / (1 + exponential(-z)),
    "cos": cosine, "sin": sine, "tan": tangent, "cosh": hyperbolic_cosine, "sinh": hyperbolic_sine, "tanh": hyperbolic_tangent,
    "acos": inverse_cosine, "asin": inverse_sine, "atan": inverse_tangent, "acosh": inverse_hyperbolic_cosine,
    "asinh": inverse_hyperbolic_sine, "atanh": inverse_hyperbolic_tangent,
    "sqrt": mp.sqrt, "rsqrt": lambda z: 1 / mp.sqrt(z), "cbrt": cube_root,
}
BINARY = {"divide": lambda a, b: a / b, "pow": power}


# Zeros were tiny numbers, and so is what is made of them; its inverse is infinite.
def high_and_low(x):
    if x == 0:
        return 0.0, 0.0
    if mp.isnan(x):
        return math.nan, 0.0
    if abs(x) >= mpf(2) ** 1024 * (1 - mpf(2) ** -54):
        return math.copysign(math.inf, x), 0.0
    if abs(x) < mpf(2) ** -1080:
        return math.copysign(0.0, x), 0.0
    high = float(x)
    return high, float(x - mpf(high))


def print_values(values):
    for w in values:
        print(*(bits(part) for x in (w.real, w.imag) for part in high_and_low(x)))


# Of binary functions the other operand is another point of the same kind: complex_check.c has the same rule.
def partner(i, both, wide):
    return (7 * i + 3) % both if i < both else both + (7 * (i - both) + 3) % wide


def at(function, *operands):
    sizes = [abs(x) for z in operands for x in (z.real, z.imag) if abs(x) > TINY]
    if any(not mpf(2) ** -300 < size < mpf(2) ** 1000 for size in sizes) or max(sizes) / min(sizes) > mpf(2) ** 500:
        with mp.workprec(EDGE_PREC):
            return function(*operands)
    return function(*operands)


def main():
    both, wide = points()
    all_points = both + wide
    print("# By test/accuracy/complex.py with mpmath %s: points of c64 and c128, points of c128 only; then for each function" %
          mpmath.__version__)
    print("# the value at each: real part to the nearest double and what is left of it, the same of the imaginary part; NaN: none.")
    print("points", len(both), len(wide))
    for point in all_points:
        print(bits(point[0]), bits(point[1]))
    for name, function in UNARY.items():
        print("function", name, 1)
        print_values(at(function, number(point)) for point in all_points)
    for name, function in BINARY.items():
        print("function", name, 2)
        print_values(at(function, number(point), number(all_points[partner(i, len(both), len(wide))]))
                     for i, point in enumerate(all_points))


main()

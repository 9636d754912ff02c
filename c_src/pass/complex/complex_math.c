/* Functions of complex numbers as formulas on parts of type f64. */
#include "pass/complex/complex_formula.h"

#include <math.h>

/* ---- quotients ---- */

static ts_parts scaled_by(ts_formula *f, ts_parts z, val factor) {
  return (ts_parts){multiply(f, z.re, factor), multiply(f, z.im, factor)};
}

static val larger_part(ts_formula *f, ts_parts z) {
  return ts_formula_binary(f, TS_OP_MAX, absolute(f, z.re), absolute(f, z.im));
}

/* Scales both operands of a quotient by a power of 2 if one is near the ends of the range, as kernel/ref/ref_complex.c
 * does. */
static void scale_quotient(ts_formula *f, ts_parts *a, ts_parts *b) {
  val size = larger_part(f, *b), most = ts_formula_binary(f, TS_OP_MAX, size, larger_part(f, *a));
  val small = less(f, size, number(f, 0x1p-900)), large = less(f, number(f, 0x1p1020), most);
  val factor = pick(f, large, number(f, 0x1p-4), pick(f, small, number(f, 0x1p120), number(f, 1)));
  *a = scaled_by(f, *a, factor);
  *b = scaled_by(f, *b, factor);
}

/* Smith's method (CACM 5, 1962, algorithm 116), as kernel/ref/ref_complex.c. */
static ts_parts plain_quotient(ts_formula *f, ts_parts a, ts_parts b) {
  val swap = less(f, absolute(f, b.re), absolute(f, b.im)), zero = both(f, equals(f, b.re, 0), equals(f, b.im, 0));
  val large = pick(f, swap, b.im, b.re), small = pick(f, swap, b.re, b.im);
  val first = pick(f, swap, a.im, a.re), second = pick(f, swap, a.re, a.im);
  val ratio = pick(f, zero, number(f, 0), divide(f, small, large));
  val divisor = pick(f, zero, absolute(f, b.re), add(f, large, multiply(f, small, ratio)));
  val re = divide(f, add(f, first, multiply(f, second, ratio)), divisor);
  val im = divide(f, subtract(f, second, multiply(f, first, ratio)), divisor);
  return (ts_parts){re, pick(f, swap, negate(f, im), im)};
}

/* Parts of f32, in f64, are far from its ends. */
ts_parts ts_complex_quotient(ts_formula *f, ts_parts a, ts_parts b) {
  if (f->call->dtype != TS_C64) scale_quotient(f, &a, &b);
  return plain_quotient(f, a, b);
}

/* large * sqrt(1 + (small / large)^2); infinite where a part is, also beside a NaN. */
val ts_complex_modulus(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), swap = less(f, x, y);
  val large = pick(f, swap, y, x), small = pick(f, swap, x, y), infinity = number(f, (double)INFINITY);
  val infinite = either(f, equals(f, x, (double)INFINITY), equals(f, y, (double)INFINITY));
  val zero = both(f, equals(f, x, 0), equals(f, y, 0)), ratio = pick(f, zero, small, divide(f, small, large));
  val root = ts_formula_unary(f, TS_OP_SQRT, add(f, number(f, 1), multiply(f, ratio, ratio)));
  return pick(f, infinite, infinity, multiply(f, large, root));
}

/* Of parts of f32 in f64: each square is exact and their sum far from the ends of the range, so nothing is scaled. NaN
 * where a part is. */
static val root_of_squares(ts_formula *f, ts_parts z) {
  return ts_formula_unary(f, TS_OP_SQRT, add(f, multiply(f, z.re, z.re), multiply(f, z.im, z.im)));
}

/* Of parts in f64, which were of f32 or have been scaled. */
static val size_of(ts_formula *f, ts_parts z) {
  return f->call->dtype == TS_C64 ? root_of_squares(f, z) : ts_complex_modulus(f, z);
}

/* The limit is chosen among numbers of f32, which are half as wide. */
val ts_complex_short_modulus(ts_formula *f, ts_parts z, ts_parts wide) {
  val root = ts_formula_convert(f, root_of_squares(f, wide), TS_F32);
  f->dtype = TS_F32;
  val x = absolute(f, z.re), y = absolute(f, z.im);
  return pick(f, either(f, equals(f, x, (double)INFINITY), equals(f, y, (double)INFINITY)), infinity_of(f), root);
}

/* z / |z|, as kernel/ref/ref_complex.c. */
ts_parts ts_complex_sign(ts_formula *f, ts_parts z) {
  if (f->call->dtype != TS_C64) {
    val least = number(f, 1), x = absolute(f, z.re), y = absolute(f, z.im);
    z = scaled_by(f, z, pick(f, both(f, less(f, x, least), less(f, y, least)), number(f, 0x1p200), number(f, 0x1p-2)));
  }
  val size = size_of(f, z), none = equals(f, size, 0), zero = number(f, 0);
  return (ts_parts){pick(f, none, zero, divide(f, z.re, size)), pick(f, none, zero, divide(f, z.im, size))};
}

/* ---- exponentials ---- */

static val root_of(ts_formula *f, val x) { return unary(f, TS_OP_SQRT, x); }
static val larger(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_MAX, x, y); }
static val is_infinite(ts_formula *f, val x) { return unary(f, TS_OP_IS_INFINITY, x); }
static val is_nan(ts_formula *f, val x) { return unary(f, TS_OP_IS_NAN, x); }
static val negation(ts_formula *f, val predicate) {
  return ts_formula_binary(f, TS_OP_EQUAL, predicate, constant_like(f, TS_U8, 0));
}
static val wild_or_nan(ts_formula *f, val x) { return negation(f, is_finite(f, x)); }

/* Beyond this exp and cosh overflow where their product with a sine or cosine may not: they are taken of a smaller
 * number, and the product is multiplied by exp(SHIFT). */
#define SHIFT 600.0
#define LARGE 700.0

typedef struct shifted {
  val x, large; /* the number nearer to 0, and whether it was moved */
} shifted;

static shifted shift(ts_formula *f, val x) {
  val large = less(f, number(f, LARGE), absolute(f, x));
  val moved = subtract(f, x, with_sign(f, number(f, SHIFT), x));
  return (shifted){pick(f, large, moved, x), large};
}

static val unshift(ts_formula *f, const shifted *s, val y) {
  return pick(f, s->large, multiply(f, y, number(f, exp(SHIFT))), y);
}

/* (exp(x) cos y, exp(x) sin y): exp(-inf) is 0 and exp(inf) infinite for every y, a zero y stays. */
static ts_parts exponential(ts_formula *f, ts_parts z) {
  val positive = less(f, number(f, 0), z.re), none = equals(f, z.im, 0);
  val large = less(f, number(f, LARGE), z.re), endless = equals(f, z.re, (double)INFINITY);
  shifted s = {pick(f, large, subtract(f, z.re, number(f, SHIFT)), z.re), large};
  val size = unary(f, TS_OP_EXP, s.x), wild = negation(f, is_finite(f, z.im));
  val re = unshift(f, &s, multiply(f, size, unary(f, TS_OP_COS, z.im)));
  val im = unshift(f, &s, multiply(f, size, unary(f, TS_OP_SIN, z.im)));
  val vanishes = both(f, equals(f, z.re, -(double)INFINITY), wild), grows = both(f, endless, wild);
  re = pick(f, vanishes, number(f, 0), pick(f, both(f, grows, positive), infinity_of(f), re));
  im = pick(f, vanishes, number(f, 0), im);
  re = pick(f, none, unary(f, TS_OP_EXP, z.re), re);
  return (ts_parts){re, pick(f, none, z.im, im)};
}

/* The same without a shift, as the range of f64 holds every product that f32 does. Only the angle's sine and cosine
 * have an error that is seen in f32, of a unit in the last place at most. In f64 they take most of the time. */
ts_parts ts_complex_short_exponential(ts_formula *f, ts_parts z, val wide_re) {
  val cosine = ts_formula_convert(f, unary(f, TS_OP_COS, z.im), TS_F64);
  val sine = ts_formula_convert(f, unary(f, TS_OP_SIN, z.im), TS_F64), size = unary(f, TS_OP_EXP, wide_re);
  val wild = negation(f, is_finite(f, z.im));
  f->dtype = TS_F64;
  val vanishes = both(f, equals(f, wide_re, -(double)INFINITY), wild);
  val grows = both(f, equals(f, wide_re, (double)INFINITY), wild), none = equals(f, sine, 0);
  val re = pick(f, vanishes, number(f, 0), pick(f, grows, infinity_of(f), multiply(f, size, cosine)));
  val im = pick(f, none, sine, multiply(f, size, sine));
  return (ts_parts){re, pick(f, vanishes, number(f, 0), im)};
}

/* (sinh x cos y, cosh x sin y) */
static ts_parts hyperbolic_sine(ts_formula *f, ts_parts z) {
  shifted s = shift(f, z.re);
  val re = multiply(f, unary(f, TS_OP_SINH, s.x), unary(f, TS_OP_COS, z.im));
  val im = multiply(f, unary(f, TS_OP_COSH, s.x), unary(f, TS_OP_SIN, z.im));
  /* 0 cos y has the sign of the cosine, but of an infinite y or NaN it is the 0 */
  val wild = both(f, negation(f, is_finite(f, z.im)), either(f, is_infinite(f, z.re), equals(f, z.re, 0)));
  re = pick(f, wild, z.re, unshift(f, &s, re));
  val none = equals(f, z.im, 0);
  return (ts_parts){pick(f, none, unary(f, TS_OP_SINH, z.re), re), pick(f, none, z.im, unshift(f, &s, im))};
}

/* (cosh x cos y, sinh x sin y) */
static ts_parts hyperbolic_cosine(ts_formula *f, ts_parts z) {
  shifted s = shift(f, z.re);
  val re = multiply(f, unary(f, TS_OP_COSH, s.x), unary(f, TS_OP_COS, z.im));
  val im = multiply(f, unary(f, TS_OP_SINH, s.x), unary(f, TS_OP_SIN, z.im));
  val wild = both(f, negation(f, is_finite(f, z.im)), is_infinite(f, z.re)), none = equals(f, z.im, 0);
  re = pick(f, none, unary(f, TS_OP_COSH, z.re), pick(f, wild, infinity_of(f), unshift(f, &s, re)));
  val sign = pick(f, is_nan(f, z.re), number(f, 1), unary(f, TS_OP_SIGN, z.re));
  im = pick(f, both(f, equals(f, z.re, 0), wild_or_nan(f, z.im)), number(f, 0), unshift(f, &s, im));
  return (ts_parts){re, pick(f, none, multiply(f, sign, z.im), im)};
}

/* Kahan (Branch cuts for complex elementary functions, 1987); beyond 22 the real part is 1, the imaginary part
 * 4 sin y cos y exp(-2 |x|). */
static ts_parts hyperbolic_tangent(ts_formula *f, ts_parts z) {
  val size = absolute(f, z.re), far = less(f, number(f, 22), size), x = pick(f, far, number(f, 1), z.re);
  /* the smallest number has a tangent of 0, without its sign */
  val tangent = pick(f, less(f, absolute(f, z.im), number(f, 0x1p-30)), z.im, unary(f, TS_OP_TAN, z.im));
  val beta = add(f, number(f, 1), multiply(f, tangent, tangent));
  val sine = unary(f, TS_OP_SINH, x), rho = root_of(f, add(f, number(f, 1), multiply(f, sine, sine)));
  val divisor = add(f, number(f, 1), multiply(f, beta, multiply(f, sine, sine)));
  val re = divide(f, multiply(f, multiply(f, beta, rho), sine), divisor), im = divide(f, tangent, divisor);
  val slope = multiply(f, unary(f, TS_OP_SIN, z.im), unary(f, TS_OP_COS, z.im));
  val decay = multiply(f, number(f, 4), unary(f, TS_OP_EXP, multiply(f, number(f, -2), size)));
  val limit = pick(f, is_finite(f, z.im), multiply(f, slope, decay), with_sign(f, number(f, 0), z.im));
  val wild = both(f, far, either(f, is_finite(f, z.im), is_infinite(f, z.re)));
  re = pick(f, wild, with_sign(f, number(f, 1), z.re), re);
  im = pick(f, wild, limit, im);
  val none = equals(f, z.im, 0), axis = equals(f, z.re, 0);
  re = pick(f, none, unary(f, TS_OP_TANH, z.re), pick(f, axis, z.re, re));
  return (ts_parts){re, pick(f, none, z.im, im)};
}

/* ---- roots and logarithms ---- */

typedef struct scaled {
  val x, y, back; /* the parts times 4^n, and 2^-n */
} scaled;

/* Keeps |z| + |x| within the range of f64 and out of the subnormal numbers. Parts of f32 are there. */
static scaled scale(ts_formula *f, val x, val y) {
  if (f->call->dtype == TS_C64) return (scaled){x, y, number(f, 1)};
  val size = larger(f, absolute(f, x), absolute(f, y));
  val large = less(f, number(f, 0x1p1020), size), small = less(f, size, number(f, 0x1p-960));
  val factor = pick(f, large, number(f, 0x1p-4), pick(f, small, number(f, 0x1p120), number(f, 1)));
  val back = pick(f, large, number(f, 4), pick(f, small, number(f, 0x1p-60), number(f, 1)));
  return (scaled){multiply(f, x, factor), multiply(f, y, factor), back};
}

static ts_parts square_root(ts_formula *f, ts_parts z) {
  scaled s = scale(f, z.re, z.im);
  val size = size_of(f, (ts_parts){s.x, s.y}), zero = both(f, equals(f, z.re, 0), equals(f, z.im, 0));
  val half = root_of(f, multiply(f, add(f, size, absolute(f, s.x)), number(f, 0.5)));
  val other = divide(f, absolute(f, s.y), multiply(f, number(f, 2), half)), left = less(f, s.x, number(f, 0));
  val re = multiply(f, pick(f, left, other, half), s.back), im = multiply(f, pick(f, left, half, other), s.back);
  val up = equals(f, z.re, (double)INFINITY), down = equals(f, z.re, -(double)INFINITY), sane = is_finite(f, z.im);
  re = pick(f, zero, number(f, 0), pick(f, up, z.re, pick(f, both(f, down, sane), number(f, 0), re)));
  im = pick(f, zero, number(f, 0), pick(f, both(f, up, sane), number(f, 0), pick(f, down, infinity_of(f), im)));
  val lost = is_nan(f, z.im), endless = is_infinite(f, z.im);
  re = pick(f, endless, infinity_of(f), pick(f, both(f, down, lost), z.im, re));
  im = pick(f, endless, z.im, with_sign(f, im, z.im));
  return (ts_parts){re, pick(f, both(f, up, lost), z.im, im)};
}

/* The root whose angle is a third of z's angle. z is multiplied by 2^-6 or 2^120 first where |z| could leave the range
 * of f64. */
static ts_parts cube_root(ts_formula *f, ts_parts z) {
  val small = less(f, larger(f, absolute(f, z.re), absolute(f, z.im)), number(f, 0x1p-960));
  val factor = pick(f, small, number(f, 0x1p120), number(f, 0x1p-6));
  val size = ts_complex_modulus(f, (ts_parts){multiply(f, z.re, factor), multiply(f, z.im, factor)});
  val root = multiply(f, unary(f, TS_OP_CBRT, size), pick(f, small, number(f, 0x1p-40), number(f, 4)));
  val angle = divide(f, ts_formula_binary(f, TS_OP_ATAN2, z.im, z.re), number(f, 3));
  val im = pick(f, equals(f, angle, 0), angle, multiply(f, root, unary(f, TS_OP_SIN, angle)));
  return (ts_parts){multiply(f, root, unary(f, TS_OP_COS, angle)), im};
}

/* log |z|: near |z| = 1 by log1p of |z|^2 - 1: its error is small compared with the angle. */
static val log_modulus(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), swap = less(f, x, y);
  val large = pick(f, swap, y, x), small = pick(f, swap, x, y), one = number(f, 1), half = number(f, 0.5);
  val excess = add(f, multiply(f, subtract(f, large, one), add(f, large, one)), multiply(f, small, small));
  val near = both(f, less(f, half, large), less(f, large, number(f, 2)));
  val zero = both(f, equals(f, x, 0), equals(f, y, 0)), ratio = pick(f, zero, small, divide(f, small, large));
  val plain = add(f, unary(f, TS_OP_LOG, large), multiply(f, half, unary(f, TS_OP_LOG1P, multiply(f, ratio, ratio))));
  val close = multiply(f, half, unary(f, TS_OP_LOG1P, pick(f, near, excess, number(f, 0))));
  val endless = either(f, is_infinite(f, z.re), is_infinite(f, z.im));
  return pick(f, endless, infinity_of(f), pick(f, near, close, plain));
}

static ts_parts logarithm(ts_formula *f, ts_parts z) {
  return (ts_parts){log_modulus(f, z), ts_formula_binary(f, TS_OP_ATAN2, z.im, z.re)};
}

/* log1p(x (2 + x) + y^2) / 2 near 0 */
static ts_parts logarithm_of_one_more(ts_formula *f, ts_parts z) {
  ts_parts plain = logarithm(f, (ts_parts){add(f, z.re, number(f, 1)), z.im});
  val limit = number(f, 0.5), near = both(f, less(f, absolute(f, z.re), limit), less(f, absolute(f, z.im), limit));
  val square = add(f, multiply(f, z.re, add(f, z.re, number(f, 2))), multiply(f, z.im, z.im));
  val close = multiply(f, limit, unary(f, TS_OP_LOG1P, pick(f, near, square, number(f, 0))));
  return (ts_parts){pick(f, near, close, plain.re), plain.im};
}

/* expm1(x) cos y - 2 sin(y/2)^2 near 0 */
static ts_parts exponential_less_one(ts_formula *f, ts_parts z) {
  ts_parts plain = exponential(f, z);
  val near = both(f, less(f, absolute(f, z.re), number(f, 1)), is_finite(f, z.im));
  val half = unary(f, TS_OP_SIN, multiply(f, z.im, number(f, 0.5)));
  val close = subtract(f, multiply(f, unary(f, TS_OP_EXPM1, z.re), unary(f, TS_OP_COS, z.im)),
                       multiply(f, number(f, 2), multiply(f, half, half)));
  return (ts_parts){pick(f, near, close, subtract(f, plain.re, number(f, 1))), plain.im};
}

/* exp(z) / (1 + exp(z)) left of 0, else 1 / (1 + exp(-z)). */
static ts_parts logistic(ts_formula *f, ts_parts z) {
  val left = less(f, z.re, number(f, 0));
  ts_parts other = {pick(f, left, z.re, negate(f, z.re)), pick(f, left, z.im, negate(f, z.im))};
  ts_parts e = exponential(f, other), one = {number(f, 1), number(f, 0)};
  ts_parts above = {pick(f, left, e.re, one.re), pick(f, left, e.im, one.im)};
  ts_parts out = plain_quotient(f, above, (ts_parts){add(f, e.re, one.re), e.im});
  out.im = pick(f, equals(f, z.im, 0), z.im, out.im);
  return out;
}

/* 1 / sqrt z: its real part has no sign, its imaginary part the other one than the root's, also where they are 0. */
static ts_parts inverse_root(ts_formula *f, ts_parts z) {
  const ts_parts one = {number(f, 1), number(f, 0)};
  ts_parts root = square_root(f, z), out = plain_quotient(f, one, root);
  return (ts_parts){absolute(f, out.re), with_sign(f, out.im, negate(f, root.im))};
}

/* exp(b log a) */
ts_parts ts_complex_short_power(ts_formula *f, ts_parts a, ts_parts b) {
  ts_parts l = logarithm(f, a);
  ts_parts product = {subtract(f, multiply(f, b.re, l.re), multiply(f, b.im, l.im)),
                      add(f, multiply(f, b.re, l.im), multiply(f, b.im, l.re))};
  return power_or_limit(f, a, b, exponential(f, product));
}

/* ---- inverse functions ---- */

/* Hull, Fairgrieve and Tang (TOMS 23, 1997), of |x| and |y|: real parts of asin and acos, and the common size of their
 * imaginary parts. */
typedef struct arc {
  val sine, cosine, im;
} arc;

static val square(ts_formula *f, val x) { return multiply(f, x, x); }

/* Where the parts are so large or small that squares leave f64's range: asin z is near (atan(x/y), log 2|z|), or, above
 * the segment [0, 1], (asin x, y / sqrt(1 - x^2)). */
static void arc_far(ts_formula *f, val x, val y, arc *out) {
  val size = larger(f, x, y), far = less(f, number(f, 0x1p500), size);
  val log_size = add(f, log_modulus(f, (ts_parts){x, y}), number(f, 0.69314718055994530942));
  out->sine = pick(f, far, ts_formula_binary(f, TS_OP_ATAN2, x, y), out->sine);
  out->cosine = pick(f, far, ts_formula_binary(f, TS_OP_ATAN2, y, x), out->cosine);
  out->im = pick(f, far, log_size, out->im);
  val low = both(f, less(f, y, number(f, 0x1p-500)), less(f, x, number(f, 1)));
  val width = root_of(f, multiply(f, subtract(f, number(f, 1), x), add(f, number(f, 1), x)));
  out->im = pick(f, low, divide(f, y, width), out->im);
  /* at the branch point itself asin z is near pi / 2 - sqrt(y) (1 - i) */
  val edge = both(f, less(f, y, number(f, 0x1p-500)), equals(f, x, 1)), root = root_of(f, y);
  out->cosine = pick(f, edge, root, out->cosine);
  out->im = pick(f, edge, root, out->im);
}

static arc arcs(ts_formula *f, val x, val y) {
  val one = number(f, 1), half = number(f, 0.5), above = add(f, x, one), below = subtract(f, x, one);
  val r = ts_complex_modulus(f, (ts_parts){above, y}), s = ts_complex_modulus(f, (ts_parts){below, y});
  val a = multiply(f, half, add(f, r, s)), b = divide(f, x, a), sum = add(f, a, x), y2 = square(f, y);
  val inside = less(f, x, one), outside = less(f, one, x), from_right = divide(f, y2, add(f, r, above));
  val from_left = pick(f, inside, divide(f, y2, subtract(f, s, below)), add(f, s, below));
  val am1 = multiply(f, half, add(f, from_right, from_left));
  val near = unary(f, TS_OP_LOG1P, add(f, am1, root_of(f, multiply(f, am1, add(f, a, one)))));
  val away = unary(f, TS_OP_LOG, add(f, a, root_of(f, multiply(f, subtract(f, a, one), add(f, a, one)))));
  /* sqrt(a^2 - x^2), without cancellation on either side of 1 */
  val within = root_of(f, multiply(f, multiply(f, half, sum), add(f, from_right, subtract(f, s, below))));
  val beyond =
      root_of(f, multiply(f, half, add(f, divide(f, sum, add(f, r, above)), divide(f, sum, add(f, s, below)))));
  val leg = pick(f, outside, multiply(f, y, beyond), within), plain = less(f, b, number(f, 0.6417));
  arc out = {.sine = pick(f, plain, unary(f, TS_OP_ASIN, b), ts_formula_binary(f, TS_OP_ATAN2, x, leg)),
             .cosine = pick(f, plain, unary(f, TS_OP_ACOS, b), ts_formula_binary(f, TS_OP_ATAN2, leg, x)),
             .im = pick(f, less(f, a, number(f, 1.5)), near, away)};
  arc_far(f, x, y, &out);
  return out;
}

/* Infinite parts: the angle of the infinity, and an infinite size. A NaN beside one leaves the size infinite. */
static void arc_endless(ts_formula *f, val x, val y, arc *a) {
  val wide = is_infinite(f, x), high = is_infinite(f, y), endless = either(f, wide, high), lost = is_nan(f, x);
  val angle = pick(f, both(f, wide, high), number(f, 0.78539816339744830962), number(f, 1.57079632679489661923));
  angle = pick(f, either(f, lost, is_nan(f, y)), number(f, (double)NAN), angle);
  val sine = pick(f, wide, angle, pick(f, lost, x, number(f, 0)));
  val cosine = pick(f, high, pick(f, lost, x, angle), pick(f, is_nan(f, y), y, number(f, 0)));
  a->sine = pick(f, endless, sine, a->sine);
  a->cosine = pick(f, endless, cosine, a->cosine);
  a->im = pick(f, endless, infinity_of(f), a->im);
}

static ts_parts arc_sine(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im);
  arc a = arcs(f, x, y);
  arc_endless(f, x, y, &a);
  val im = with_sign(f, a.im, z.im), axis = equals(f, z.re, 0);
  return (ts_parts){pick(f, axis, z.re, with_sign(f, a.sine, z.re)), im};
}

static ts_parts arc_cosine(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), zero = number(f, 0);
  arc a = arcs(f, x, y);
  arc_endless(f, x, y, &a);
  val left = less(f, z.re, zero), pi = number(f, 3.14159265358979323846);
  val re = pick(f, left, subtract(f, pi, a.cosine), a.cosine);
  re = pick(f, equals(f, z.re, 0), pick(f, is_nan(f, z.im), number(f, 1.57079632679489661923), re), re);
  return (ts_parts){re, negate(f, with_sign(f, a.im, z.im))};
}

/* acosh z is i acos z or -i acos z, with a real part of at least 0. */
static ts_parts hyperbolic_arc_cosine(ts_formula *f, ts_parts z) {
  ts_parts c = arc_cosine(f, z);
  return (ts_parts){absolute(f, c.im), with_sign(f, c.re, z.im)};
}

/* Odd in both parts: log((1 + x)^2 + y^2) - log((1 - x)^2 + y^2) over 4, and the angle of (1 - x)(1 + x) - y^2 + 2iy.
 */
static ts_parts hyperbolic_arc_tangent(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), one = number(f, 1), below = subtract(f, one, x);
  val far = less(f, number(f, 0x1p500), larger(f, x, y)), low = less(f, y, number(f, 0x1p-500));
  val distance = add(f, square(f, below), square(f, y));
  val re = multiply(f, number(f, 0.25), unary(f, TS_OP_LOG1P, divide(f, multiply(f, number(f, 4), x), distance)));
  val across = subtract(f, multiply(f, below, add(f, one, x)), square(f, y));
  val im = multiply(f, number(f, 0.5), ts_formula_binary(f, TS_OP_ATAN2, multiply(f, number(f, 2), y), across));
  val edge = both(f, both(f, low, equals(f, x, 1)), less(f, number(f, 0), y));
  val log_y = multiply(f, number(f, 0.5), subtract(f, number(f, 0.69314718055994530942), unary(f, TS_OP_LOG, y)));
  val endless = either(f, is_infinite(f, x), is_infinite(f, y));
  /* x / (x^2 + y^2) */
  val size = larger(f, x, y), unit_x = divide(f, x, size), unit_y = divide(f, y, size);
  val inverse = divide(f, divide(f, unit_x, size), add(f, square(f, unit_x), square(f, unit_y)));
  inverse = pick(f, either(f, endless, equals(f, x, 0)), number(f, 0), inverse);
  val right_angle = number(f, 1.57079632679489661923);
  re = pick(f, either(f, far, endless), inverse, pick(f, edge, log_y, re));
  im = pick(f, either(f, far, endless), pick(f, is_nan(f, y), y, right_angle), im);
  re = pick(f, equals(f, x, 0), x, re);
  return (ts_parts){with_sign(f, re, z.re), with_sign(f, im, z.im)};
}

/* ---- the table ---- */

static ts_parts times_i(ts_formula *f, ts_parts z) { return (ts_parts){negate(f, z.im), z.re}; }
static ts_parts times_minus_i(ts_formula *f, ts_parts z) { return (ts_parts){z.im, negate(f, z.re)}; }

bool ts_complex_function(ts_formula *f, ts_opcode code, ts_parts z, ts_parts *out) {
  switch ((ts_ops_UNARY_FLOAT)code) {
  case TS_OP_EXP: *out = exponential(f, z); return true;
  case TS_OP_EXPM1: *out = exponential_less_one(f, z); return true;
  case TS_OP_LOG: *out = logarithm(f, z); return true;
  case TS_OP_LOG1P: *out = logarithm_of_one_more(f, z); return true;
  case TS_OP_SIGMOID: *out = logistic(f, z); return true;
  case TS_OP_COS: *out = hyperbolic_cosine(f, times_i(f, z)); return true;
  case TS_OP_SIN: *out = times_minus_i(f, hyperbolic_sine(f, times_i(f, z))); return true;
  case TS_OP_TAN: *out = times_minus_i(f, hyperbolic_tangent(f, times_i(f, z))); return true;
  case TS_OP_COSH: *out = hyperbolic_cosine(f, z); return true;
  case TS_OP_SINH: *out = hyperbolic_sine(f, z); return true;
  case TS_OP_TANH: *out = hyperbolic_tangent(f, z); return true;
  case TS_OP_ACOS: *out = arc_cosine(f, z); return true;
  case TS_OP_ASIN: *out = arc_sine(f, z); return true;
  case TS_OP_ATAN: *out = times_minus_i(f, hyperbolic_arc_tangent(f, times_i(f, z))); return true;
  case TS_OP_ACOSH: *out = hyperbolic_arc_cosine(f, z); return true;
  case TS_OP_ASINH: *out = times_minus_i(f, arc_sine(f, times_i(f, z))); return true;
  case TS_OP_ATANH: *out = hyperbolic_arc_tangent(f, z); return true;
  case TS_OP_SQRT: *out = square_root(f, z); return true;
  case TS_OP_RSQRT: *out = inverse_root(f, z); return true;
  case TS_OP_CBRT: *out = cube_root(f, z); return true;
  case TS_OP_ERF:
  case TS_OP_ERFC:
  case TS_OP_ERF_INV: break;
  }
  return false;
}

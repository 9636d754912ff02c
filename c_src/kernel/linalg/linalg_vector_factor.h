/* QR factors, eigenvalues and singular values of small matrices, one in each lane: the part of linalg_vector_type.h
 * with the algorithms of factor_qr.c, factor_eigh.c and factor_svd.c. No lane's bits depend on another lane or on how
 * many there are: no fused multiply-adds, and what only some lanes do is selected.
 *
 * Lines are dense rows of vectors, as the columns of a matrix are; W is an integer as wide as T, and I are its vectors:
 * a comparison has all bits set in the lanes where it holds.
 *
 * Lengths, angles and the tridiagonal matrices of f32 are f64, in as many vectors as it takes. Rotations whose cosine
 * and sine have an error of f32 each turn and stretch their vectors, and the errors of hundreds of rotations add up.
 * Code for f64 only is compiled once, with T double, before the code for f32. */
#define WIDE_PARTS ((int)(sizeof(double) / sizeof(T))) /* vectors of f64 for one of T */
#define SIZE_BITS ((W)((sizeof(T) == 4 ? (uint64_t)0x7fffffff : (uint64_t)INT64_MAX)))
#define EXPONENT ((W)(sizeof(T) == 4 ? 0x7f800000 : INT64_C(0x7ff0000000000000)))
#define TWICE_BIAS ((W)(sizeof(T) == 4 ? 0x7f000000 : INT64_C(0x7fe0000000000000)))
#define EPSILON ((T)(sizeof(T) == 4 ? 0x1p-24 : 0x1p-53))
#define MOST_STEPS 60  /* for each eigenvalue; 2 or 3 are usual */
#define MOST_SWEEPS 60 /* 6 to 10 are usual */

INLINE V NAME(size)(V x) { return (V)((I)x & SIZE_BITS); }
INLINE V NAME(larger)(V a, V b) { return SELECT(a > b, a, b); }

/* A power of two that brings numbers of this size to about 1, and its inverse; the latter is 0 where the size has no
 * exponent. */
INLINE V NAME(inverse_power)(V size) { return (V)(TWICE_BIAS - ((I)size & EXPONENT)); }
INLINE V NAME(power)(V size) { return (V)((I)size & EXPONENT); }

INLINE bool NAME(any)(I mask) {
  uint64_t words[sizeof(I) / 8], all = 0;
  memcpy(words, &mask, sizeof mask);
  _Pragma("GCC unroll 8") for (size_t i = 0; i < sizeof words / sizeof *words; i++) all |= words[i];
  return all != 0;
}

/* ---- f64 for f32 */

typedef T NAME(wide_part) __attribute__((vector_size(VECTOR_BYTES / 8 * sizeof(T))));

INLINE void NAME(widen)(V x, lanes_f64 *out) {
  NAME(wide_part) parts[WIDE_PARTS];
  memcpy(parts, &x, sizeof x);
  _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) out[p] = __builtin_convertvector(parts[p], lanes_f64);
}

INLINE V NAME(narrow)(const lanes_f64 *x) {
  NAME(wide_part) parts[WIDE_PARTS];
  V out;
  _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) parts[p] =
      __builtin_convertvector(x[p], NAME(wide_part));
  memcpy(&out, parts, sizeof out);
  return out;
}

INLINE V NAME(times)(V x, const lanes_f64 *by) {
  lanes_f64 wide[WIDE_PARTS];
  NAME(widen)(x, wide);
  _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) wide[p] *= by[p];
  return NAME(narrow)(wide);
}

/* ---- reflectors I - tau v v' with v[0] = 1 */

#ifdef FOR_ALL_TYPES
typedef struct reflection {
  V target, tau, v0, sign;
} reflection;

/* Of a vector with this first element and this sum of squares of the others. */
INLINE reflection reflection_of(V first, V squares, bool positive) {
  const V one = SPLAT(1), zero = SPLAT(0), norm = SQRT(first * first + squares);
  const I nothing = squares == zero;
  I direct = first <= zero, kept = ~(I)zero;
  if (positive) kept = SQRT(squares) <= SPLAT(1e-5) * NAME(size)(first);
  const V target = SELECT(kept & ~direct, -norm, norm);
  V v0 = first - target;
  if (positive) v0 = SELECT(kept | direct, v0, -(squares / (first + norm)));
  v0 = SELECT(nothing, one, v0);
  return (reflection){target, SELECT(nothing, zero, -v0 / target), v0, SELECT(kept & ~nothing, -one, one)};
}
#endif

typedef struct NAME(reflector) {
  V target, sign;
  lanes_f64 tau[WIDE_PARTS];
} NAME(reflector);

/* Computes, into x, the Householder reflector that maps x to `target` times e1. With `positive` the target is not
 * negative where x has something below its first element (factor_qr.c). Otherwise `sign` is -1: the row of R is to be
 * negated. */
INLINE NAME(reflector) NAME(reflector_of)(V *x, int length, bool positive) {
  const V zero = SPLAT(0);
  lanes_f64 firsts[WIDE_PARTS], sums[WIDE_PARTS], targets[WIDE_PARTS], signs[WIDE_PARTS], v0[WIDE_PARTS],
      line[WIDE_PARTS];
  V most = NAME(size)(x[0]), squares = zero;
  for (int i = 1; i < length; i++) most = NAME(larger)(most, NAME(size)(x[i]));
  const V by = NAME(inverse_power)(most), first = x[0] * by;
  for (int i = 1; i < length; i++) {
    x[i] *= by;
    squares += x[i] * x[i];
  }
  const I nothing = squares == zero;
  NAME(reflector) out;
  NAME(widen)(first, firsts);
  NAME(widen)(squares, sums);
  _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) {
    const reflection r = reflection_of(firsts[p], sums[p], positive);
    targets[p] = r.target, out.tau[p] = r.tau, signs[p] = r.sign, v0[p] = r.v0;
  }
  out.target = SELECT(nothing, x[0], NAME(narrow)(targets) * NAME(power)(most));
  out.sign = NAME(narrow)(signs);
  for (int i = 1; i < length; i++) {
    NAME(widen)(x[i], line);
    _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) line[p] /= v0[p];
    x[i] = SELECT(nothing, zero, NAME(narrow)(line));
  }
  x[0] = SPLAT(1);
  return out;
}

INLINE void NAME(reflect_lines)(V *lines, int step, int count, const V *v, int length, const lanes_f64 *tau) {
  V sum[4];
  _Pragma("GCC unroll 4") for (int c = 0; c < count; c++) sum[c] = SPLAT(0);
  for (int i = 0; i < length; i++)
    _Pragma("GCC unroll 4") for (int c = 0; c < count; c++) sum[c] += v[i] * lines[c * step + i];
  _Pragma("GCC unroll 4") for (int c = 0; c < count; c++) sum[c] = NAME(times)(sum[c], tau);
  for (int i = 0; i < length; i++)
    _Pragma("GCC unroll 4") for (int c = 0; c < count; c++) lines[c * step + i] -= sum[c] * v[i];
}

/* Applies a reflector to `count` lines. */
static void NAME(reflect_group)(V *lines, int step, int count, const V *v, int length, const lanes_f64 *tau) {
  int c = 0;
  for (; c + 4 <= count; c += 4) NAME(reflect_lines)(lines + c * step, step, 4, v, length, tau);
  for (; c < count; c++) NAME(reflect_lines)(lines + c * step, step, 1, v, length, tau);
}

/* The reflectors of the first `steps` of `count` lines, in place. */
static void NAME(columns_group)(V *a, int count, int length, int steps, bool positive, NAME(reflector) * out) {
  for (int j = 0; j < steps; j++) {
    V *v = a + j * length + j;
    out[j] = NAME(reflector_of)(v, length - j, positive);
    NAME(reflect_group)(v + length, length, count - j - 1, v, length - j, out[j].tau);
  }
}

/* The product of the reflectors: its first `count` columns, of `length` elements. Number j stands in line j of `a` from
 * element j + offset on. */
static void NAME(product_group)(const V *a, int length, int offset, int steps, const NAME(reflector) * r, V *q,
                                int count) {
  for (int c = 0; c < count; c++)
    for (int i = 0; i < length; i++) q[c * length + i] = SPLAT(i == c);
  for (int j = steps - 1; j >= 0; j--) {
    const int at = j + offset;
    NAME(reflect_group)(q + at * length + at, length, count - at, a + j * length + at, length - at, r[j].tau);
  }
}

/* ---- loads and stores */

/* The facts about each lane. */
typedef struct NAME(loaded) {
  bool good[LANES]; /* all elements that are read are finite */
  int scale[LANES]; /* the largest element is about 2^scale */
} NAME(loaded);

/* The bits of the largest size. */
INLINE W NAME(most_bits)(const T *from, int count) {
  W most = 0;
  for (int i = 0; i < count; i++) {
    W bits;
    memcpy(&bits, from + i, sizeof bits);
    bits &= SIZE_BITS;
    most = bits > most ? bits : most;
  }
  return most;
}

INLINE int NAME(scale_of)(W bits) {
  T most;
  int scale = 0;
  memcpy(&most, &bits, sizeof most);
  if (most > 0) (void)frexp((double)most, &scale);
  return scale;
}

/* x * 2^-scale, in two steps, as the power may be out of range. */
INLINE T NAME(scaled)(T x, const double by[2]) { return (T)((double)x * by[0] * by[1]); }

/* Of lane m: element (i, k) stands at [k * rows + i], or the other way round. With `lower`, the upper triangle is the
 * lower one's mirror image. Lanes that have no finite matrix have one of zeros. */
INLINE void NAME(load_group)(const ts_linalg_factors *g, bool by_rows, bool lower, V *to, NAME(loaded) * out) {
  const int rows = g->rows, cols = g->cols, row = by_rows ? cols : 1, col = by_rows ? 1 : rows;
  memset(to, 0, (size_t)(rows * cols) * sizeof(V));
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)g->matrix + m * g->matrix_step;
    T *x = (T *)(void *)to + m;
    W bits = lower ? 0 : NAME(most_bits)(from, rows * cols);
    for (int i = 0; lower && i < rows; i++) {
      W most = NAME(most_bits)(from + i * cols, i + 1);
      bits = most > bits ? most : bits;
    }
    out->good[m] = bits < EXPONENT;
    out->scale[m] = NAME(scale_of)(bits);
    if (!out->good[m]) continue;
    const double by[2] = {ldexp(1, -out->scale[m] / 2), ldexp(1, -out->scale[m] - -out->scale[m] / 2)};
    for (int i = 0; i < rows; i++)
      for (int k = 0; k < (lower ? i + 1 : cols); k++) {
        const T y = NAME(scaled)(from[i * cols + k], by);
        x[(i * row + k * col) * LANES] = y;
        if (lower) x[(k * row + i * col) * LANES] = y;
      }
  }
}

/* A result of a lane, or NULL. */
INLINE T *NAME(result)(const ts_linalg_factors *g, int result, int lane) {
  return g->results[result] ? (T *)g->results[result] + lane * g->steps[result] : NULL;
}

/* NaN in all results of a lane. */
static void NAME(fill_lane)(const ts_linalg_factors *g, int lane) {
  for (int r = 0; r < 3; r++)
    for (int64_t i = 0; g->results[r] && i < g->steps[r]; i++) ((T *)g->results[r])[lane * g->steps[r] + i] = (T)NAN;
}

/* True when the element of largest size, the first of equals, is negative. */
INLINE bool NAME(is_turned)(const T *line, int count) {
  T most = 0, found = 0;
  for (int i = 0; i < count; i++) {
    const T size = line[i * LANES] < 0 ? -line[i * LANES] : line[i * LANES];
    if (size > most) most = size, found = line[i * LANES];
  }
  return found < 0;
}

/* ---- qr */

/* Zeros are +0. */
static void NAME(put_qr)(const ts_linalg_factors *g, const V *q, const V *a, const NAME(loaded) * l) {
  const int m = g->rows, n = g->cols, steps = m < n ? m : n, count = g->full ? m : steps;
  for (int lane = 0; lane < g->count; lane++) {
    const T *from_q = (const T *)(const void *)q + lane, *from_r = (const T *)(const void *)a + lane;
    T *to_q = NAME(result)(g, 0, lane), *to_r = NAME(result)(g, 1, lane);
    if (!l->good[lane]) {
      NAME(fill_lane)(g, lane);
      continue;
    }
    const double by[2] = {ldexp(1, l->scale[lane] / 2), ldexp(1, l->scale[lane] - l->scale[lane] / 2)};
    for (int i = 0; to_q && i < m; i++)
      for (int c = 0; c < count; c++) to_q[i * count + c] = from_q[(c * m + i) * LANES];
    for (int i = 0; to_r && i < count; i++)
      for (int k = 0; k < n; k++)
        to_r[i * n + k] = k < i || i >= steps ? 0 : NAME(scaled)(from_r[(k * m + i) * LANES], by) + 0;
  }
}

static void NAME(qr_group)(const ts_linalg_factors *g, void *workspace) {
  const int m = g->rows, n = g->cols, steps = m < n ? m : n, count = g->full ? m : steps;
  V *a = workspace, *q = a + m * n;
  NAME(reflector) r[TS_LINALG_FACTOR_ROWS];
  NAME(loaded) l;
  NAME(load_group)(g, false, false, a, &l);
  NAME(columns_group)(a, n, m, steps, true, r);
  if (g->results[0]) NAME(product_group)(a, m, 0, steps, r, q, count);
  for (int c = 0; g->results[0] && c < count; c++)
    for (int i = 0; i < m; i++) q[c * m + i] = (c < steps ? q[c * m + i] * r[c].sign : q[c * m + i]) + SPLAT(0);
  for (int i = 0; i < steps; i++) {
    a[i * m + i] = r[i].target;
    for (int k = i; k < n; k++) a[k * m + i] *= r[i].sign;
  }
  NAME(put_qr)(g, q, a, &l);
}

/* ---- eigh */

/* A -= v w' + w v' with w = tau A v - (tau^2 / 2) (v' A v) v, for the rows and columns from `at` on. */
INLINE void NAME(update_group)(V *a, int n, int at, const V *v, const lanes_f64 *tau) {
  V w[TS_LINALG_FACTOR_ROWS], inner = SPLAT(0);
  const int count = n - at;
  V *rows = a + at * n + at;
  for (int i = 0; i < count; i++) {
    V sum = SPLAT(0);
    for (int k = 0; k < count; k++) sum += rows[i * n + k] * v[k];
    w[i] = NAME(times)(sum, tau);
  }
  for (int i = 0; i < count; i++) inner += w[i] * v[i];
  inner = NAME(times)(inner, tau) * SPLAT((T)0.5);
  for (int i = 0; i < count; i++) w[i] -= inner * v[i];
  for (int i = 0; i < count; i++)
    for (int k = 0; k <= i; k++) rows[k * n + i] = rows[i * n + k] = rows[i * n + k] - (v[i] * w[k] + w[i] * v[k]);
}

#ifdef FOR_ALL_TYPES
/* Each lane works on its first unreduced block: the first with off-diagonal elements that are not small. From `sine` on
 * the members are the state of a step. */
typedef struct tridiagonal {
  V d[TS_LINALG_FACTOR_ROWS], e[TS_LINALG_FACTOR_ROWS];
  I rotates[TS_LINALG_FACTOR_ROWS], begins[TS_LINALG_FACTOR_ROWS]; /* at i: rows i and i + 1; row i is the first */
  V sine, cosine, p, g;
  I ended, before;
} tridiagonal;

/* The lanes that have one. */
INLINE I find_part(tridiagonal *t, int n, V epsilon) {
  const V zero = SPLAT(0), one = SPLAT(1);
  I open = (I)zero, closed = (I)zero;
  V first = zero, second = zero, beside = one, last = zero;
  for (int i = 0; i + 1 < n; i++) {
    const I small =
        NAME(size)(t->e[i]) <= epsilon * (NAME(size)(t->d[i]) + NAME(size)(t->d[i + 1])) + epsilon * epsilon;
    const I begins = ~open & ~small, ends = open & ~closed & small;
    first = SELECT(begins, t->d[i], first);
    second = SELECT(begins, t->d[i + 1], second);
    beside = SELECT(begins, t->e[i], beside);
    last = SELECT(ends, t->d[i], last);
    open |= begins;
    closed |= ends;
    t->begins[i] = begins;
    t->rotates[i] = open & ~closed;
  }
  last = SELECT(open & ~closed, t->d[n - 1], last);
  const V g = (second - first) / (beside + beside), most = NAME(size)(g);
  const V root = SELECT(most > SPLAT(0x1p30), most, SQRT(g * g + one));
  t->sine = t->cosine = one;
  t->p = zero;
  t->g = last - first + beside / (g + SELECT(g < zero, -root, root));
  t->ended = t->before = (I)zero;
  return open;
}

typedef struct angle {
  V cosine, sine;
} angle;

/* A QL step of every lane's part comes to rows i and i + 1; gives the rotation of the vectors. A lane ends early where
 * both parts of a rotation are 0. */
INLINE angle ql_rotation(tridiagonal *t, int i) {
  const V zero = SPLAT(0), one = SPLAT(1);
  V *d = t->d, *e = t->e;
  const I rotates = t->rotates[i] & ~t->ended;
  const V x = t->sine * e[i], b = t->cosine * e[i], most = NAME(larger)(NAME(size)(x), NAME(size)(t->g));
  const V by = NAME(inverse_power)(most), scale = NAME(power)(most), xs = x * by, gs = t->g * by;
  const V root = SQRT(xs * xs + gs * gs);
  const I none = scale == zero, good = rotates & ~none;
  e[i + 1] = SELECT(rotates, SELECT(t->before & ~none, root * scale, zero), e[i + 1]);
  const V sine = t->sine = SELECT(good, xs / root, t->sine), cosine = t->cosine = SELECT(good, gs / root, t->cosine);
  const V above = d[i + 1] - t->p, s = (d[i] - above) * sine + (cosine + cosine) * b, next = sine * s;
  d[i + 1] = SELECT(good, above + next, SELECT(rotates, above, d[i + 1]));
  t->p = SELECT(good, next, t->p);
  t->g = SELECT(good, cosine * s - b, t->g);
  d[i] = SELECT(good & t->begins[i], d[i] - t->p, d[i]);
  e[i] = SELECT(good & t->begins[i], t->g, e[i]);
  t->ended |= rotates & none;
  t->before = t->rotates[i];
  return (angle){SELECT(good, cosine, one), SELECT(good, sine, zero)};
}

/* Of a rotation by this tangent. */
INLINE angle angle_of(V tangent) {
  const V cosine = SPLAT(1) / SQRT(tangent * tangent + SPLAT(1));
  return (angle){cosine, cosine * tangent};
}
#endif

INLINE void NAME(rotate_lines)(V *x, V *y, int count, V cosine, V sine) {
  for (int k = 0; k < count; k++) {
    const V u = x[k], v = y[k];
    x[k] = cosine * u + sine * v;
    y[k] = cosine * v - sine * u;
  }
}

/* The lanes whose matrix is not diagonal yet. */
INLINE bool NAME(find_parts)(tridiagonal *t, int n, I *out_open) {
  lanes_f64 open[WIDE_PARTS];
  const V zero = SPLAT(0);
  _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) {
    const lanes_s64 found = find_part(t + p, n, SPLAT64((double)EPSILON));
    open[p] = (lanes_f64)(found & (lanes_s64)SPLAT64(1.0));
  }
  *out_open = NAME(narrow)(open) != zero;
  return NAME(any)(*out_open);
}

/* One QL step of every lane's part; of the vectors in z, unless it is NULL. */
INLINE void NAME(ql_step)(tridiagonal *t, V *z, int n) {
  lanes_f64 cosines[WIDE_PARTS], sines[WIDE_PARTS];
  for (int i = n - 2; i >= 0; i--) {
    lanes_s64 rotates = t[0].rotates[i] & ~t[0].ended;
    if (WIDE_PARTS == 2) rotates |= t[WIDE_PARTS - 1].rotates[i] & ~t[WIDE_PARTS - 1].ended;
    if (!any_f64(rotates)) {
      for (int p = 0; p < WIDE_PARTS; p++) t[p].before = t[p].rotates[i];
      continue;
    }
    _Pragma("GCC unroll 2") for (int p = 0; p < WIDE_PARTS; p++) {
      const angle a = ql_rotation(t + p, i);
      cosines[p] = a.cosine, sines[p] = a.sine;
    }
    if (z) NAME(rotate_lines)(z + (i + 1) * n, z + i * n, n, NAME(narrow)(cosines), NAME(narrow)(sines));
  }
}

/* The eigenvalues in the diagonals; returns the lanes that do not converge. */
static I NAME(diagonalize_group)(tridiagonal *t, V *z, int n) {
  I open;
  for (int i = 0; i < MOST_STEPS * n && NAME(find_parts)(t, n, &open); i++) NAME(ql_step)(t, z, n);
  (void)NAME(find_parts)(t, n, &open);
  return open;
}

/* In descending order of size; of equal sizes the positive one is first. */
INLINE bool NAME(is_before)(T a, T b) {
  const T size_a = a < 0 ? -a : a, size_b = b < 0 ? -b : b;
  return size_a > size_b || (size_a == size_b && a > b);
}

INLINE void NAME(sort_lane)(const T *values, int count, int *order) {
  for (int i = 0; i < count; i++) {
    int at = i;
    for (; at > 0 && NAME(is_before)(values[i * LANES], values[order[at - 1] * LANES]); at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

static void NAME(put_eigh)(const ts_linalg_factors *g, const V *values_group, const V *vectors_group, I failed,
                           const NAME(loaded) * l) {
  const int n = g->rows;
  int order[TS_LINALG_FACTOR_ROWS];
  for (int lane = 0; lane < g->count; lane++) {
    const T *d = (const T *)(const void *)values_group + lane;
    T *values = NAME(result)(g, 0, lane), *vectors = NAME(result)(g, 1, lane);
    if (!l->good[lane] || failed[lane]) {
      NAME(fill_lane)(g, lane);
      continue;
    }
    NAME(sort_lane)(d, n, order);
    for (int c = 0; values && c < n; c++) values[c] = (T)ldexp((double)d[order[c] * LANES], l->scale[lane]) + 0;
    for (int c = 0; vectors && c < n; c++) {
      const T *line = (const T *)(const void *)vectors_group + lane + order[c] * n * LANES,
              sign = NAME(is_turned)(line, n) ? -1 : 1;
      for (int i = 0; i < n; i++) vectors[i * n + c] = sign * line[i * LANES] + 0;
    }
  }
}

static void NAME(eigh_group)(const ts_linalg_factors *g, void *workspace) {
  const int n = g->rows;
  V *a = workspace, *z = g->results[1] ? a + n * n : NULL, values[TS_LINALG_FACTOR_ROWS];
  tridiagonal t[WIDE_PARTS];
  lanes_f64 wide[WIDE_PARTS];
  NAME(reflector) r[TS_LINALG_FACTOR_ROWS];
  NAME(loaded) l;
  NAME(load_group)(g, true, true, a, &l);
  memset(r, 0, sizeof r);
  for (int j = 0; j < n; j++) {
    V *v = a + j * n + j + 1;
    NAME(widen)(v[-1], wide);
    for (int p = 0; p < WIDE_PARTS; p++) t[p].d[j] = wide[p];
    if (j + 1 < n) r[j] = NAME(reflector_of)(v, n - j - 1, false);
    NAME(widen)(r[j].target, wide);
    for (int p = 0; p < WIDE_PARTS; p++) t[p].e[j] = wide[p];
    if (j + 1 < n) NAME(update_group)(a, n, j + 1, v, r[j].tau);
  }
  if (z) NAME(product_group)(a, n, 1, n - 1, r, z, n);
  const I failed = NAME(diagonalize_group)(t, z, n);
  for (int i = 0; i < n; i++) {
    for (int p = 0; p < WIDE_PARTS; p++) wide[p] = t[p].d[i];
    values[i] = NAME(narrow)(wide);
  }
  NAME(put_eigh)(g, values, z, failed, &l);
}

/* ---- svd */

typedef struct NAME(jacobi) {
  int m, n;     /* m >= n */
  bool vectors; /* q is wanted, and that the rows of r have length 1 */
  V *r, *q, squares[TS_LINALG_FACTOR_ROWS], roots[TS_LINALG_FACTOR_ROWS];
} NAME(jacobi);

INLINE V NAME(inner)(const V *x, const V *y, int count) {
  V sum[2] = {SPLAT(0), SPLAT(0)};
  int k = 0;
  for (; k + 2 <= count; k += 2) {
    sum[0] += x[k] * y[k];
    sum[1] += x[k + 1] * y[k + 1];
  }
  if (k < count) sum[0] += x[k] * y[k];
  return sum[0] + sum[1];
}

/* Rows so short that their squares are not exact are zeros: they are far below the error of the others. */
INLINE void NAME(measure_group)(NAME(jacobi) * j) {
  const V least = SPLAT((T)(sizeof(T) == 4 ? 0x1p-100 : 0x1p-960)), zero = SPLAT(0);
  for (int i = 0; i < j->n; i++) {
    V *row = j->r + i * j->n;
    const V square = NAME(inner)(row, row, j->n);
    const I small = square < least;
    for (int k = 0; NAME(any)(small) && k < j->n; k++) row[k] = SELECT(small, zero, row[k]);
    j->squares[i] = SELECT(small, zero, square);
    j->roots[i] = SQRT(j->squares[i]);
  }
}

/* Makes two rows orthogonal; the longer one becomes the first; returns the lanes that were not orthogonal. */
INLINE I NAME(rotate_pair)(NAME(jacobi) * j, int p, int q, V least) {
  const V one = SPLAT(1), zero = SPLAT(0), sp = j->squares[p], sq = j->squares[q];
  const V product = NAME(inner)(j->r + p * j->n, j->r + q * j->n, j->n);
  const I rotates = (NAME(size)(product) > least * j->roots[p] * j->roots[q]) & (sp > zero) & (sq > zero);
  if (!NAME(any)(rotates)) return rotates;
  const V zeta = (sq - sp) / SELECT(rotates, product + product, one), most = NAME(size)(zeta);
  const V root = SELECT(most > SPLAT((T)0x1p30), most, SQRT(zeta * zeta + one));
  const V t = one / (zeta + SELECT(zeta < zero, -root, root));
  lanes_f64 tangents[WIDE_PARTS], cosines[WIDE_PARTS], sines[WIDE_PARTS];
  NAME(widen)(t, tangents);
  _Pragma("GCC unroll 2") for (int i = 0; i < WIDE_PARTS; i++) {
    const angle a = angle_of(tangents[i]);
    cosines[i] = a.cosine, sines[i] = a.sine;
  }
  const V cosine = NAME(narrow)(cosines), sine = NAME(narrow)(sines);
  V square_p = sp - t * product, square_q = sq + t * product;
  const I exchanged = square_q > square_p;
  const V c = SELECT(rotates, SELECT(exchanged, sine, cosine), one);
  const V s = SELECT(rotates, SELECT(exchanged, -cosine, sine), zero);
  const V large = NAME(larger)(square_p, square_q), small = SELECT(exchanged, square_p, square_q);
  j->squares[p] = SELECT(rotates, large, sp);
  j->squares[q] = SELECT(rotates, NAME(larger)(small, zero), sq);
  j->roots[p] = SQRT(j->squares[p]);
  j->roots[q] = SQRT(j->squares[q]);
  NAME(rotate_lines)(j->r + q * j->n, j->r + p * j->n, j->n, c, s);
  if (j->vectors) NAME(rotate_lines)(j->q + q * j->m, j->q + p * j->m, j->m, c, s);
  return rotates;
}

/* Returns the lanes that do not converge. */
static I NAME(jacobi_group)(NAME(jacobi) * j) {
  const V least = SPLAT((T)(4 * sqrt((double)j->n)) * EPSILON);
  I rotated = ~(I)SPLAT(0);
  for (int i = 0; i < MOST_SWEEPS && NAME(any)(rotated); i++) {
    rotated = (I)SPLAT(0);
    NAME(measure_group)(j);
    for (int p = 0; p < j->n; p++)
      for (int q = p + 1; q < j->n; q++) rotated |= NAME(rotate_pair)(j, p, q, least);
  }
  return rotated;
}

/* ---- the rest of the singular values, one lane at a time: pointers are to the lane's first element */

/* Orthogonalises a row against the first `count` rows in `order` (Gram-Schmidt, twice); returns the square of the
 * remaining norm. */
static T NAME(take_rows)(T *rows, int n, int row, const int *order, int count) {
  T *line = rows + row * n * LANES, square = 0;
  for (int twice = 0; twice < 2; twice++)
    for (int i = 0; i < count; i++) {
      const T *other = rows + order[i] * n * LANES;
      T sum = 0;
      for (int k = 0; k < n; k++) sum += line[k * LANES] * other[k * LANES];
      for (int k = 0; k < n; k++) line[k * LANES] -= sum * other[k * LANES];
    }
  for (int k = 0; k < n; k++) square += line[k * LANES] * line[k * LANES];
  return square;
}

/* Completes an orthonormal basis: rows of zeros are replaced by unit vectors that are orthogonalised. At least one of
 * the n unit vectors keeps a norm of at least the root of 1/n. */
static void NAME(complete_rows)(T *rows, int n, const T *squares, const int *order) {
  int next = 0;
  for (int c = 0; c < n; c++) {
    T *line = rows + order[c] * n * LANES, square = 0;
    if (squares[order[c] * LANES] > 0) continue;
    while (!(square * (T)(4 * n) >= 1) && next < n) {
      for (int k = 0; k < n; k++) line[k * LANES] = k == next;
      next++;
      square = NAME(take_rows)(rows, n, order[c], order, c);
    }
    const T length = (T)sqrt((double)square);
    for (int k = 0; k < n; k++) line[k * LANES] /= length;
  }
}

/* The columns of U and the rows of V' of one lane. */
static void NAME(put_lane)(const ts_linalg_factors *g, const NAME(jacobi) * j, int lane, int scale) {
  const bool transposed = g->rows < g->cols;
  const int lines = g->full ? j->m : j->n;
  const int left_count = transposed ? j->n : lines, right_count = transposed ? lines : j->n;
  T *r = (T *)(void *)j->r + lane, *q = (T *)(void *)j->q + lane;
  const T *left = transposed ? r : q, *right = transposed ? q : r,
          *squares = (const T *)(const void *)j->squares + lane;
  T *u = NAME(result)(g, 0, lane), *values = NAME(result)(g, 1, lane), *vt = NAME(result)(g, 2, lane);
  int order[TS_LINALG_FACTOR_ROWS];
  NAME(sort_lane)(squares, j->n, order);
  if (j->vectors) NAME(complete_rows)(r, j->n, squares, order);
  for (int c = 0; values && c < j->n; c++) values[c] = (T)ldexp(sqrt((double)squares[order[c] * LANES]), scale);
  for (int c = 0; j->vectors && c < lines; c++) {
    const int from = c < j->n ? order[c] : c;
    const T *v = right + from * g->cols * LANES, *x = left + from * g->rows * LANES;
    const T sign = c < right_count && NAME(is_turned)(v, g->cols) ? -1 : 1, other = c < j->n ? sign : 1;
    for (int i = 0; u && c < left_count && i < g->rows; i++) u[i * left_count + c] = other * x[i * LANES] + 0;
    for (int i = 0; vt && c < right_count && i < g->cols; i++) vt[c * g->cols + i] = sign * v[i * LANES] + 0;
  }
}

static void NAME(svd_group)(const ts_linalg_factors *g, void *workspace) {
  const bool transposed = g->rows < g->cols;
  const int m = transposed ? g->cols : g->rows, n = transposed ? g->rows : g->cols;
  V *a = workspace;
  NAME(jacobi) j = {.m = m, .n = n, .vectors = g->results[0] || g->results[2], .r = a + m * n, .q = a + m * n + n * n};
  NAME(reflector) r[TS_LINALG_FACTOR_ROWS];
  NAME(loaded) l;
  NAME(load_group)(g, transposed, false, a, &l);
  NAME(columns_group)(a, n, m, n, false, r);
  if (j.vectors) NAME(product_group)(a, m, 0, n, r, j.q, g->full ? m : n);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      j.r[i * n + k] = SPLAT(0);
      if (k >= i) j.r[i * n + k] = k == i ? r[i].target : a[k * m + i];
    }
  const I failed = NAME(jacobi_group)(&j);
  for (int i = 0; j.vectors && i < n; i++) {
    const V length = SELECT(j.squares[i] > SPLAT(0), j.roots[i], SPLAT(1));
    for (int k = 0; k < n; k++) j.r[i * n + k] /= length;
  }
  for (int lane = 0; lane < g->count; lane++) {
    if (l.good[lane] && !failed[lane])
      NAME(put_lane)(g, &j, lane, l.scale[lane]);
    else
      NAME(fill_lane)(g, lane);
  }
}

#undef WIDE_PARTS
#undef SIZE_BITS
#undef EXPONENT
#undef TWICE_BIAS
#undef EPSILON
#undef MOST_STEPS
#undef MOST_SWEEPS

/* The part of thin_body.h for rows of complex numbers, of parts of type T, which is included behind thin_type.h. A row
 * of numbers is a row of twice as many parts, with two sums: by one vector of factors for the real parts, by another
 * for the imaginary ones. */

/* Numbers of rows from `k` on, whose factors are these. */
typedef struct NAME(numbers) {
  int64_t k, count;
  const T *re, *im; /* two factors of each number: of its real part and of its imaginary one */
} NAME(numbers);

/* The parts of a number of the vector whose order thin_complex.x_is_left tells. */
static void NAME(set_factors)(const thin_complex *p, NAME(numbers) * n) {
  T *re = (T *)(void *)p->factors, *im = re + 2 * THIN_NUMBERS;
  const char *from = p->v + n->k * p->v_step;
  n->re = re;
  n->im = im;
  for (int64_t i = 0; i < n->count; i++, from += p->v_step, re += 2, im += 2) {
    const T *v = (const T *)(const void *)from;
    re[0] = v[0], re[1] = -v[1];
    im[0] = v[1], im[1] = v[0];
  }
}

/* A piece of each row of `count` groups, from its part `skip` on. The sums are re = fma(im l, -im r, fma(re l, re r,
 * re)) and im = fma(im l, re r, fma(re l, im r, im)). */
INLINE void NAME(add_numbers)(const char *const *x, int64_t row, const T *by_re, const T *by_im, int64_t skip,
                              int count, bool chains, bool x_is_left, V *re, V *im) {
  UNROLL for (int64_t g = 0; g < count; g++) {
    const char *at[VECTOR_BYTES / sizeof(T)];
    V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
    UNROLL for (int64_t l = 0; l < LANES; l++) at[l] = x[g] + l * row;
    UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
    TURN(pieces, turned);
    const int64_t chain = chains ? g * TS_CONTRACT_CHAIN : 0;
    __asm__(""
            : "+r"(by_re), "+r"(by_im)); /* the compiler would keep all factors, for which registers do not suffice */
    UNROLL for (int64_t s = skip; s < PIECE; s += 2) {
      const T *a = by_re + chain + s, *b = by_im + chain + s;
      const int64_t first = x_is_left ? 0 : 1;
      re[g] = FMA(turned[s], SPREAD(a[0]), re[g]);
      re[g] = FMA(turned[s + 1], SPREAD(a[1]), re[g]);
      im[g] = FMA(turned[s + first], SPREAD(b[first]), im[g]);
      im[g] = FMA(turned[s + 1 - first], SPREAD(b[1 - first]), im[g]);
    }
  }
}

/* The sums of a chain of numbers [k, end) of `count` groups, or of as many chains side by side. */
INLINE void NAME(add_complex_chain)(const thin_complex *p, const char *x, const NAME(groups) * groups,
                                    const NAME(numbers) * n, int64_t k, int64_t end, int count, bool x_is_left, V *re,
                                    V *im) {
  const int64_t first = 2 * n->k;
  const char *at[THIN_GROUPS];
  int64_t i = 2 * k;
  for (; i + PIECE <= 2 * end; i += PIECE) {
    NAME(place_groups)(x, groups, i, count, at);
    NAME(add_numbers)
    (at, p->row, n->re + (i - first), n->im + (i - first), 0, count, groups->chains, x_is_left, re, im);
  }
  if (i == 2 * end) return;
  i = 2 * end - PIECE; /* of two numbers, the first of which is added */
  NAME(place_groups)(x, groups, i, count, at);
  NAME(add_numbers)(at, p->row, n->re + (i - first), n->im + (i - first), 2, count, groups->chains, x_is_left, re, im);
}

/* Adds some numbers of `rows` rows, more than LANES and at most twice as many, to their sums. */
INLINE void NAME(run_complex_groups)(const thin_complex *p, const NAME(numbers) * n, int64_t r, int64_t rows,
                                     bool x_is_left) {
  T *out[2] = {(T *)(void *)p->sums + r, (T *)(void *)p->sums + r + rows - LANES};
  const NAME(groups) groups = {{0, (rows - LANES) * p->row}, false};
  const int64_t end = n->k + n->count;
  V re[2] = {{0}}, im[2] = {{0}};
  for (int g = 0; g < 2 && n->k > 0; g++) {
    memcpy(&re[g], out[g], sizeof(V));
    memcpy(&im[g], out[g] + p->rows, sizeof(V));
  }
  for (int64_t k = n->k; k < end; k += THIN_CHAIN) {
    V a[2] = {{0}}, b[2] = {{0}};
    NAME(add_complex_chain)(p, p->x + r * p->row, &groups, n, k, gemm_min(end, k + THIN_CHAIN), 2, x_is_left, a, b);
    UNROLL for (int g = 0; g < 2; g++) {
      re[g] = k == 0 ? a[g] : re[g] + a[g];
      im[g] = k == 0 ? b[g] : im[g] + b[g];
    }
  }
  for (int g = 0; g < 2; g++) {
    memcpy(out[g], &re[g], sizeof(V));
    memcpy(out[g] + p->rows, &im[g], sizeof(V));
  }
}

/* The same of LANES rows, two chains side by side; the first `skip` rows have their sums already. */
INLINE void NAME(run_complex_chains)(const thin_complex *p, const NAME(numbers) * n, int64_t r, int64_t skip,
                                     bool x_is_left) {
  T *out = (T *)(void *)p->sums + r;
  const NAME(groups) groups = {{0, TS_CONTRACT_CHAIN * (int64_t)sizeof(T)}, true};
  const int64_t end = n->k + n->count;
  T done[2][VECTOR_BYTES / sizeof(T)];
  V re = {0}, im = {0};
  for (int i = 0; i < 2; i++) memcpy(done[i], out + i * p->rows, (size_t)skip * sizeof(T));
  if (n->k > 0) {
    memcpy(&re, out, sizeof(V));
    memcpy(&im, out + p->rows, sizeof(V));
  }
  for (int64_t k = n->k; k < end;) {
    V a[2] = {{0}}, b[2] = {{0}};
    const char *x = p->x + r * p->row;
    const int count = end - k >= 2 * THIN_CHAIN ? 2 : 1;
    if (count == 2)
      NAME(add_complex_chain)(p, x, &groups, n, k, k + THIN_CHAIN, 2, x_is_left, a, b);
    else
      NAME(add_complex_chain)(p, x, &groups, n, k, gemm_min(end, k + THIN_CHAIN), 1, x_is_left, a, b);
    for (int g = 0; g < count; g++, k += THIN_CHAIN) {
      re = k == 0 ? a[0] : re + a[g];
      im = k == 0 ? b[0] : im + b[g];
    }
  }
  memcpy(out, &re, sizeof(V));
  memcpy(out + p->rows, &im, sizeof(V));
  for (int i = 0; i < 2; i++) memcpy(out + i * p->rows, done[i], (size_t)skip * sizeof(T));
}

/* Some numbers of all rows. Rows that share sets of the first cache are read by fewer at once. */
INLINE void NAME(run_numbers)(const thin_complex *p, const NAME(numbers) * n, bool shares, bool x_is_left) {
  int64_t r = 0;
  for (int64_t rows; !shares && p->rows - r > LANES; r += rows) {
    rows = gemm_min(2 * LANES, p->rows - r);
    NAME(run_complex_groups)(p, n, r, rows, x_is_left);
  }
  for (; p->rows - r >= LANES; r += LANES) NAME(run_complex_chains)(p, n, r, 0, x_is_left);
  if (r < p->rows) NAME(run_complex_chains)(p, n, p->rows - LANES, r - (p->rows - LANES), x_is_left);
}

/* The sums of all rows as numbers. The last rows are joined together with those before them. */
static void NAME(join_parts)(const thin_complex *p) {
  for (int64_t r = 0; r < p->rows; r += LANES) {
    const int64_t first = gemm_min(r, p->rows - LANES);
    const T *from = (const T *)(const void *)p->sums + first;
    char *out = p->out + first * 2 * (int64_t)sizeof(T);
    V re, im, both[2];
    memcpy(&re, from, sizeof re);
    memcpy(&im, from + p->rows, sizeof im);
    both[0] = (V)LOW(re, im);
    both[1] = (V)HIGH(re, im);
    for (int64_t i = 0; i < 2 * VECTOR_BYTES; i += 16, out += 16)
      memcpy(out, (const char *)&both[i / 16 % 2] + i / 32 * 16, 16);
  }
}

static void NAME(run_complex)(const thin_complex *p) {
  const bool shares = thin_shares_sets(p->rows, p->row, 2 * p->terms, LANES);
  for (int64_t k = 0; k < p->terms; k += THIN_NUMBERS) {
    NAME(numbers) n = {.k = k, .count = gemm_min(THIN_NUMBERS, p->terms - k)};
    NAME(set_factors)(p, &n);
    if (p->x_is_left)
      NAME(run_numbers)(p, &n, shares, true);
    else
      NAME(run_numbers)(p, &n, shares, false);
  }
  NAME(join_parts)(p);
}

/* The part of thin_body.h for rows of complex numbers, of parts of type T, which is included behind thin_type.h. A row
 * of numbers is a row of twice as many parts, with two sums: by one vector of factors for the real parts, by another
 * for the imaginary ones. In the lanes of vectors are rows, or the chains of few rows and of rows that share sets of
 * the first cache. */

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

/* ---- chains of a row in the lanes of vectors ---- */

enum { NAME(GROUP) = VECTOR_BYTES / sizeof(T) * THIN_CHAIN }; /* numbers of as many chains as there are lanes */

/* Numbers [k, k + count) of the vector in the lanes of their chains: their parts, and the imaginary one negated. Fewer
 * chains than there are lanes leave room for those of other rows: `width` lanes are a row's, of which the first
 * `chains` are used. */
typedef struct NAME(turned) {
  V parts[TS_CONTRACT_CHAIN], negated[THIN_CHAIN];
  int64_t k, count, chains, width;
} NAME(turned);

/* Past the end of the last chain are zeros, of which none is negative: times -0 they change no sum. */
static void NAME(turn_numbers)(const thin_complex *p, NAME(turned) * v) {
  T *to = (T *)(void *)p->factors;
  const char *from = p->v + v->k * p->v_step;
  const int64_t number = 2 * (int64_t)sizeof(T), last = (v->chains - 1) * THIN_CHAIN;
  if (p->v_step == number)
    memcpy(to, from, (size_t)(v->count * number));
  else
    for (int64_t i = 0; i < v->count; i++) memcpy(to + 2 * i, from + i * p->v_step, 2 * sizeof(T));
  memset(to + 2 * v->count, 0, (size_t)((last + THIN_CHAIN - v->count) * number));
  NAME(lines) lines;
  for (int64_t l = 0; l < LANES; l++) {
    const int64_t chain = l % v->width;
    lines.at[l] = (const char *)(to + (chain < v->chains ? chain : 0) * TS_CONTRACT_CHAIN);
  }
  NAME(turn)(&lines, 0, TS_CONTRACT_CHAIN, v->parts);
  for (int64_t i = 0; i < THIN_CHAIN; i++) v->negated[i] = -v->parts[2 * i + 1];
  for (int64_t i = v->count - last; i < THIN_CHAIN; i++)
    for (int64_t l = v->chains - 1; l < LANES; l += v->width) v->negated[i][l] = 0;
}

/* The sums in `count` vectors, whose lanes' places are `lines`: `whole` where these are a row's whole chains. */
INLINE void NAME(add_turned)(const NAME(lines) * lines, const NAME(turned) * v, int count, bool whole, bool x_is_left,
                             V *re, V *im) {
  const int64_t first = x_is_left ? 0 : 1;
  const char *x[THIN_FEW];
  V real[THIN_FEW] = {{0}}, imaginary[THIN_FEW] = {{0}};
  UNROLL for (int r = 0; r < count; r++) x[r] = lines[r].at[0];
  for (int64_t i = 0; i < TS_CONTRACT_CHAIN; i += PIECE) UNROLL for (int64_t r = 0; r < count; r++) {
      const char *at[VECTOR_BYTES / sizeof(T)];
      V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
      UNROLL for (int64_t l = 0; l < LANES; l++) at[l] =
          whole ? x[r] + l * TS_CONTRACT_CHAIN * (int64_t)sizeof(T) : lines[r].at[l];
      UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, i * (int64_t)sizeof(T));
      TURN(pieces, turned);
      UNROLL for (int64_t s = 0; s < PIECE; s += 2) {
        const V *by = v->parts + i + s;
        real[r] = FMA(turned[s], by[0], real[r]);
        real[r] = FMA(turned[s + 1], v->negated[(i + s) / 2], real[r]);
        imaginary[r] = FMA(turned[s + first], by[1 - first], imaginary[r]);
        imaginary[r] = FMA(turned[s + 1 - first], by[first], imaginary[r]);
      }
    }
  UNROLL for (int r = 0; r < count; r++) re[r] = real[r], im[r] = imaginary[r];
}

/* Adds the sums of a row's chains, in lanes from `lane` on, to those of the chains before them. */
INLINE void NAME(add_number)(const thin_complex *p, const NAME(turned) * v, int64_t r, const V *re, const V *im,
                             int64_t lane) {
  T *out = (T *)(void *)p->out + 2 * r, a[VECTOR_BYTES / sizeof(T)], b[VECTOR_BYTES / sizeof(T)];
  memcpy(a, re, sizeof a);
  memcpy(b, im, sizeof b);
  T real = a[lane], imaginary = b[lane];
  if (v->k > 0) real = out[0] + real, imaginary = out[1] + imaginary;
  for (int64_t l = lane + 1; l < lane + v->chains; l++) real += a[l], imaginary += b[l];
  out[0] = real;
  out[1] = imaginary;
}

/* Whole chains of `count` rows from `r` on, a vector each. */
INLINE void NAME(run_few)(const thin_complex *p, const NAME(turned) * v, int64_t r, int count, bool x_is_left) {
  NAME(lines) lines[THIN_FEW];
  V re[THIN_FEW], im[THIN_FEW];
  for (int i = 0; i < count; i++) lines[i].at[0] = p->x + (r + i) * p->row + v->k * 2 * (int64_t)sizeof(T);
  NAME(add_turned)(lines, v, count, true, x_is_left, re, im);
  for (int i = 0; i < count; i++) NAME(add_number)(p, v, r + i, &re[i], &im[i], 0);
}

/* The lines of some rows in a vector, which share its lanes; those past the last row are the first one's. A last chain
 * that is not whole is copied to `last`, and ends with -0. */
static void NAME(find_rows)(const thin_complex *p, const NAME(turned) * v, int64_t r, int64_t rows, NAME(lines) * out,
                            T (*last)[TS_CONTRACT_CHAIN]) {
  const int64_t chain = TS_CONTRACT_CHAIN * (int64_t)sizeof(T), whole = v->count / THIN_CHAIN;
  const int64_t rest = v->count % THIN_CHAIN * 2;
  for (int64_t i = 0, lane = 0; lane < LANES; i++, lane += v->width) {
    const char *x = p->x + (r + (i < rows ? i : 0)) * p->row + v->k * 2 * (int64_t)sizeof(T);
    if (rest > 0) memcpy(last[i], x + whole * chain, (size_t)rest * sizeof(T));
    for (int64_t at = rest; at < TS_CONTRACT_CHAIN && rest > 0; at++) last[i][at] = -(T)0;
    for (int64_t l = 0; l < v->width; l++)
      out->at[lane + l] = l < whole || rest == 0 ? x + (l < whole ? l : 0) * chain : (const char *)last[i];
  }
}

/* `rows` rows from `r` on whose chains fill no vector, or are not whole: up to two vectors. */
INLINE void NAME(run_rest)(const thin_complex *p, const NAME(turned) * v, int64_t r, int64_t rows, int count,
                           bool x_is_left) {
  T last[2][VECTOR_BYTES / sizeof(T)][TS_CONTRACT_CHAIN];
  NAME(lines) lines[2];
  V re[2], im[2];
  const int64_t each = LANES / v->width;
  for (int64_t i = 0; i < count; i++)
    NAME(find_rows)(p, v, r + i * each, gemm_min(each, rows - i * each), &lines[i], last[i]);
  NAME(add_turned)(lines, v, count, false, x_is_left, re, im);
  for (int64_t i = 0; i < rows; i++) NAME(add_number)(p, v, r + i, &re[i / each], &im[i / each], i % each * v->width);
}

/* Adds some numbers of all rows. */
INLINE void NAME(run_all_few)(const thin_complex *p, const NAME(turned) * v, bool x_is_left) {
  const int64_t each = LANES / v->width;
  int64_t r = 0;
  if (v->count == NAME(GROUP)) {
    for (; r + THIN_FEW <= p->rows; r += THIN_FEW) NAME(run_few)(p, v, r, THIN_FEW, x_is_left);
    for (; r + 2 <= p->rows; r += 2) NAME(run_few)(p, v, r, 2, x_is_left);
    if (r < p->rows) NAME(run_few)(p, v, r, 1, x_is_left);
    return;
  }
  for (; p->rows - r > each; r += gemm_min(2 * each, p->rows - r))
    NAME(run_rest)(p, v, r, gemm_min(2 * each, p->rows - r), 2, x_is_left);
  if (r < p->rows) NAME(run_rest)(p, v, r, p->rows - r, 1, x_is_left);
}

/* Chains of a row in the lanes: as many numbers of all rows as are in a group, then the next ones. */
static void NAME(run_few_rows)(const thin_complex *p) {
  NAME(turned) v;
  for (v.k = 0; v.k < p->terms; v.k += NAME(GROUP)) {
    v.count = gemm_min(NAME(GROUP), p->terms - v.k);
    v.chains = gemm_ceil_div(v.count, THIN_CHAIN);
    for (v.width = 1; v.width < v.chains;) v.width *= 2;
    NAME(turn_numbers)(p, &v);
    if (p->x_is_left)
      NAME(run_all_few)(p, &v, true);
    else
      NAME(run_all_few)(p, &v, false);
  }
}

static void NAME(run_complex)(const thin_complex *p) {
  const bool shares = thin_shares_sets(p->rows, p->row, 2 * p->terms, LANES);
  if (p->rows < LANES || (shares && p->terms >= NAME(GROUP))) {
    NAME(run_few_rows)(p);
    return;
  }
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

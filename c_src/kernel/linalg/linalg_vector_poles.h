/* Loops over the poles of a rational function: the part of linalg_vector_body.h that kernel/linalg/factor_secular.c
 * uses. No fused multiply-adds. */
#define LANES ((int)(VECTOR_BYTES / sizeof(double)))
#define CHUNK 8 /* number of poles in a partial sum, for every instruction set */
#define PARTS (CHUNK / LANES)

INLINE lanes_f64 load_poles(const double *from) {
  lanes_f64 x;
  memcpy(&x, from, sizeof x);
  return x;
}

INLINE void add_chunk(const double *poles, const double *weights, const ts_linalg_point *at, lanes_f64 *sums,
                      lanes_f64 *slopes) {
  const lanes_f64 origin = SPLAT64(at->origin), offset = SPLAT64(at->offset);
  _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) {
    const lanes_f64 t = (load_poles(poles + p * LANES) - origin) - offset;
    const lanes_f64 term = load_poles(weights + p * LANES) / t;
    sums[p] += term;
    slopes[p] += term / t;
  }
}

INLINE double sum_parts(lanes_f64 *sums) {
  _Pragma("GCC unroll 4") for (int half = PARTS / 2; half > 0; half /= 2)
      _Pragma("GCC unroll 4") for (int p = 0; p < half; p++) sums[p] += sums[p + half];
  return sum_lanes_f64(sums[0]);
}

/* The last chunk is filled up with poles that are infinitely far. */
static void pole_sums(const ts_linalg_poles *s, const ts_linalg_point *at, double *out_sum, double *out_slope) {
  lanes_f64 sums[PARTS], slopes[PARTS];
  int64_t i = 0;
  _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) sums[p] = slopes[p] = SPLAT64(0.0);
  for (; i + CHUNK <= s->count; i += CHUNK) add_chunk(s->poles + i, s->weights + i, at, sums, slopes);
  if (i < s->count) {
    double poles[CHUNK], weights[CHUNK] = {0};
    for (int p = 0; p < CHUNK; p++) poles[p] = (double)INFINITY;
    memcpy(poles, s->poles + i, (size_t)(s->count - i) * sizeof *poles);
    memcpy(weights, s->weights + i, (size_t)(s->count - i) * sizeof *weights);
    add_chunk(poles, weights, at, sums, slopes);
  }
  *out_sum = sum_parts(sums);
  *out_slope = sum_parts(slopes);
}

static void pole_ratios(const ts_linalg_poles *s, const ts_linalg_point *at, double other, double *out) {
  const lanes_f64 origin = SPLAT64(at->origin), offset = SPLAT64(at->offset), from = SPLAT64(other);
  int64_t i = 0;
  for (; i + LANES <= s->count; i += LANES) {
    const lanes_f64 pole = load_poles(s->poles + i);
    const lanes_f64 product = load_poles(out + i) * (((pole - origin) - offset) / (pole - from));
    memcpy(out + i, &product, sizeof product);
  }
  for (; i < s->count; i++) out[i] *= ((s->poles[i] - at->origin) - at->offset) / (s->poles[i] - other);
}

static void pole_terms(const ts_linalg_poles *s, const ts_linalg_point *at, double *out) {
  const lanes_f64 origin = SPLAT64(at->origin), offset = SPLAT64(at->offset);
  int64_t i = 0;
  for (; i + LANES <= s->count; i += LANES) {
    const lanes_f64 term = load_poles(s->weights + i) / ((load_poles(s->poles + i) - origin) - offset);
    memcpy(out + i, &term, sizeof term);
  }
  for (; i < s->count; i++) out[i] = s->weights[i] / ((s->poles[i] - at->origin) - at->offset);
}

#undef LANES
#undef CHUNK
#undef PARTS

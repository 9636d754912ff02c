/* Roots of unity. An angle is brought into the first eighth of the circle by exact arithmetic on integers. There it is
 * the product of a multiple of a coarse and of a fine step, so that few sines are computed. */
#include "base/alloc.h"
#include "kernel/fft/fft.h"

#include <math.h>

static void fill(long double (*out)[2], int64_t count, long double step) {
  for (int64_t i = 0; i < count; i++) {
    out[i][0] = cosl((long double)i * step);
    out[i][1] = sinl((long double)i * step);
  }
}

/* The unit is a quarter of 2 pi / n, so that every mirror is between integers. */
ts_status ts_fft_roots_init(int64_t n, ts_fft_roots *out) {
  const long double unit = 1.570796326794896619231321691639751442L / (long double)n;
  const int64_t eighth = n / 2 + 1;
  int64_t step = (int64_t)sqrtl((long double)eighth) + 1;
  *out = (ts_fft_roots){.n = n, .step = step};
  TS_TRY(TS_NEW_ARRAY((size_t)step, &out->fine));
  ts_status status = TS_NEW_ARRAY((size_t)(eighth / step + 1), &out->coarse);
  if (status) {
    ts_fft_roots_deinit(out);
    return status;
  }
  fill(out->fine, step, unit);
  fill(out->coarse, eighth / step + 1, (long double)step * unit);
  return TS_SUCCESS;
}

void ts_fft_roots_deinit(ts_fft_roots *roots) {
  ts_free(roots->fine);
  ts_free(roots->coarse);
}

/* cos and sin of an angle of at most pi / 4 */
static void first_eighth(const ts_fft_roots *roots, int64_t units, long double out[2]) {
  const long double *a = roots->coarse[units / roots->step], *b = roots->fine[units % roots->step];
  out[0] = a[0] * b[0] - a[1] * b[1];
  out[1] = a[0] * b[1] + a[1] * b[0];
}

void ts_fft_root(const ts_fft_roots *roots, int64_t k, long double out[2]) {
  const int64_t n = roots->n;
  long double x[2];
  bool above = k > n - k;
  int64_t units = 4 * (above ? n - k : k);
  bool left = units > n;
  if (left) units = 2 * n - units;
  bool steep = units > n - units;
  first_eighth(roots, steep ? n - units : units, x);
  out[0] = (left ? -1 : 1) * x[steep];
  out[1] = (above ? 1 : -1) * x[!steep];
}

/* Fourier transforms: the sum that defines them, in long double, rounded once. */
#include "base/alloc.h"
#include "kernel/ref/ref_internal.h"

#include <math.h>

typedef struct ref_number {
  long double re, im;
} ref_number;

typedef struct ref_transform {
  const ts_ref_call *call;
  int64_t n, in_points, out_points, inner;
  bool inverse, half; /* half: the operand is one of n real numbers */
  ref_number *line, *roots;
} ref_transform;

static ref_number load(const ts_buffer *buffer, int64_t element) {
  ts_scalar x = ts_ref_get(buffer, element);
  return (ref_number){(long double)ts_scalar_to_f64(buffer->dtype, x), (long double)ts_scalar_imag(buffer->dtype, x)};
}

static void store(ts_buffer *buffer, int64_t element, ref_number x) {
  ts_dtype type = buffer->dtype;
  ts_ref_set(buffer, element,
             ts_dtype_is_complex(type) ? ts_scalar_complex(type, (double)x.re, (double)x.im)
                                       : ts_scalar_from_f64(type, (double)x.re));
}

/* The n numbers of a line. Of a half the others are conjugates, and those without a partner are real. */
static void load_line(const ref_transform *t, int64_t first) {
  const int64_t wanted = t->half ? t->n / 2 + 1 : t->n;
  for (int64_t i = 0; i < t->n; i++) t->line[i] = (ref_number){0, 0};
  for (int64_t i = 0; i < wanted && i < t->in_points; i++)
    t->line[i] = load(t->call->operands[0], first + i * t->inner);
  if (!t->half) return;
  t->line[0].im = 0;
  for (int64_t i = t->n - t->n / 2; i < t->n; i++)
    t->line[i] = (ref_number){t->line[t->n - i].re, 2 * i == t->n ? 0 : -t->line[t->n - i].im};
}

static ref_number sum_at(const ref_transform *t, int64_t k) {
  ref_number sum = {0, 0};
  for (int64_t i = 0, at = 0; i < t->n; i++, at = (at + k) % t->n) {
    ref_number x = t->line[i], w = t->roots[at];
    sum.re += x.re * w.re - x.im * w.im;
    sum.im += x.re * w.im + x.im * w.re;
  }
  if (!t->inverse) return sum;
  return (ref_number){sum.re / (long double)t->n, sum.im / (long double)t->n};
}

/* exp(-2 pi i k / n), or its conjugate */
static void fill_roots(const ref_transform *t) {
  const long double unit = 6.283185307179586476925286766559005768L / (long double)t->n;
  for (int64_t k = 0; k < t->n; k++) {
    long double angle = (long double)k * unit;
    t->roots[k] = (ref_number){cosl(angle), t->inverse ? sinl(angle) : -sinl(angle)};
  }
}

static void transform_lines(const ref_transform *t, int64_t lines) {
  fill_roots(t);
  for (int64_t line = 0; ts_ref_goes_on(t->call, 0, 1) && line < lines; line++) {
    const int64_t outer = line / t->inner, inner = line % t->inner;
    load_line(t, outer * t->in_points * t->inner + inner);
    for (int64_t k = 0; ts_ref_goes_on(t->call, 0, 1) && k < t->out_points; k++)
      store(t->call->result, (outer * t->out_points + k) * t->inner + inner, sum_at(t, k));
  }
}

static bool set_kind(ref_transform *t, ts_opcode code) {
  switch ((ts_ops_FFT)code) {
  case TS_OP_FFT:
  case TS_OP_RFFT: return true;
  case TS_OP_IRFFT: t->half = true; /* fall through */
  case TS_OP_IFFT: t->inverse = true; return true;
  }
  return false;
}

ts_status ts_ref_fft(const ts_ref_call *call) {
  const ts_shape *in = &call->operands[0]->shape, *out = &call->result->shape;
  const int32_t axis = call->op->attrs->fft.axis;
  ref_transform t = {.call = call, .n = call->op->attrs->fft.length, .inner = 1};
  int64_t outer = 1;
  t.in_points = in->dims[axis];
  t.out_points = out->dims[axis];
  if (!set_kind(&t, call->op->code)) return ts_ref_unknown(call);
  for (int32_t d = 0; d < axis; d++) outer *= in->dims[d];
  for (int32_t d = axis + 1; d < in->rank; d++) t.inner *= in->dims[d];
  if (call->result->bytes == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)t.n * 2, &t.line));
  t.roots = t.line + t.n;
  transform_lines(&t, outer * t.inner);
  ts_free(t.line);
  return TS_SUCCESS;
}

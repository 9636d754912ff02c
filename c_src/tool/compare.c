#include "tool/compare.h"

#include <math.h>
#include <stdio.h>

static bool is_nan(ts_dtype type, ts_scalar x) { return ts_dtype_is_float(type) && isnan(ts_scalar_to_f64(type, x)); }

/* Consecutive floats of a type have consecutive keys. */
static int64_t ordered_key(ts_dtype type, ts_scalar x) {
  int width = ts_dtype_bits(type);
  uint64_t sign = UINT64_C(1) << (width - 1), magnitude = x.bits & (sign - 1);
  return x.bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

int64_t ts_ulp_distance(ts_dtype type, ts_scalar a, ts_scalar b) {
  if (is_nan(type, a) || is_nan(type, b)) return is_nan(type, a) && is_nan(type, b) ? 0 : INT64_MAX;
  int64_t distance;
  if (__builtin_sub_overflow(ordered_key(type, a), ordered_key(type, b), &distance)) return INT64_MAX;
  return distance == INT64_MIN ? INT64_MAX : distance < 0 ? -distance : distance;
}

static bool elements_agree(ts_dtype type, ts_scalar a, ts_scalar b, int64_t ulp_tolerance) {
  if (ulp_tolerance == TS_COMPARE_BITS) return a.bits == b.bits;
  if (a.bits == b.bits || (is_nan(type, a) && is_nan(type, b))) return true;
  return ts_dtype_is_float(type) && ulp_tolerance > 0 && ts_ulp_distance(type, a, b) <= ulp_tolerance;
}

/* A complex number is two elements, its parts: each may be a NaN of any bits. */
static ts_dtype element_type(const ts_buffer *buffer) {
  return ts_dtype_is_complex(buffer->dtype) ? ts_dtype_part(buffer->dtype) : buffer->dtype;
}

static int64_t count_elements(const ts_buffer *buffer) {
  return ts_shape_elements(&buffer->shape) * (ts_dtype_is_complex(buffer->dtype) ? 2 : 1);
}

static ts_scalar element(const ts_buffer *buffer, int64_t i) {
  const ts_dtype type = element_type(buffer);
  return ts_scalar_load(type, (const char *)buffer->data + (size_t)i * ts_dtype_size(type));
}

static void format_element(ts_dtype type, ts_scalar x, char *out, size_t size) {
  if (ts_dtype_is_float(type)) {
    snprintf(out, size, "%.17g (0x%llx)", ts_scalar_to_f64(type, x), (unsigned long long)x.bits);
  } else {
    snprintf(out, size, "%lld", (long long)ts_scalar_to_s64(type, x));
  }
}

static void describe(const ts_buffer *a, const ts_buffer *b, int64_t first, int64_t differing, char *out) {
  char left[64], right[64];
  const ts_dtype type = element_type(a);
  ts_scalar x = element(a, first), y = element(b, first);
  format_element(type, x, left, sizeof left);
  format_element(type, y, right, sizeof right);
  long long ulps = ts_dtype_is_float(type) ? (long long)ts_ulp_distance(type, x, y) : 0;
  snprintf(out, TS_COMPARE_TEXT, "%s: %lld of %lld elements differ, first at %lld: %s and %s, %lld ulp",
           TS_SHAPE_STR(a->dtype, &a->shape), (long long)differing, (long long)count_elements(a), (long long)first,
           left, right, ulps);
}

/* Of parts, in units of the larger part of the second number. */
static bool is_near(const ts_buffer *a, const ts_buffer *b, int64_t i, int64_t ulp_tolerance) {
  const ts_dtype type = element_type(a);
  const double x = ts_scalar_to_f64(type, element(a, i)), y = ts_scalar_to_f64(type, element(b, i)),
               other = ts_scalar_to_f64(type, element(b, i ^ 1));
  return fabs(x - y) <= (double)ulp_tolerance * ldexp(1, 1 - ts_dtype_precision(type)) * fmax(fabs(y), fabs(other));
}

static bool compare(const ts_buffer *a, const ts_buffer *b, int64_t ulp_tolerance, bool whole, char *out_message) {
  int64_t first = -1, differing = 0;
  if (a->dtype != b->dtype || !ts_shape_equal(&a->shape, &b->shape)) {
    snprintf(out_message, TS_COMPARE_TEXT, "%s and %s", TS_SHAPE_STR(a->dtype, &a->shape),
             TS_SHAPE_STR(b->dtype, &b->shape));
    return false;
  }
  for (int64_t i = 0; i < count_elements(a); i++) {
    if (elements_agree(element_type(a), element(a, i), element(b, i), ulp_tolerance)) continue;
    if (whole && ulp_tolerance > 0 && is_near(a, b, i, ulp_tolerance)) continue;
    if (first < 0) first = i;
    differing++;
  }
  if (differing > 0) describe(a, b, first, differing, out_message);
  return differing == 0;
}

bool ts_compare_buffers(const ts_buffer *a, const ts_buffer *b, int64_t ulp_tolerance,
                        char out_message[TS_COMPARE_TEXT]) {
  return compare(a, b, ulp_tolerance, false, out_message);
}

bool ts_compare_numbers(const ts_buffer *a, const ts_buffer *b, int64_t ulp_tolerance,
                        char out_message[TS_COMPARE_TEXT]) {
  return compare(a, b, ulp_tolerance, ts_dtype_is_complex(a->dtype), out_message);
}

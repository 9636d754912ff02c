/* Elements of operands and results as numbers, for one type of numbers (kernel/ref/ref_linalg_numbers.h). */

static NUMBER NAME(element)(const ts_buffer *buffer, int64_t i) {
  const ts_scalar x = ts_ref_get(buffer, i);
  return MAKE(ts_scalar_to_f64(buffer->dtype, x), ts_scalar_imag(buffer->dtype, x));
}

static void NAME(load)(const ts_buffer *from, int64_t first, int64_t count, NUMBER *to) {
  for (int64_t i = 0; i < count; i++) to[i] = NAME(element)(from, first + i);
}

/* Rounds to the type of the result. */
static void NAME(put)(const ts_ref_call *call, int result, int64_t i, NUMBER x) {
  ts_buffer *to = call->results[result];
  const double re = (double)REAL_PART(x);
  ts_ref_set(to, i,
             ts_dtype_is_complex(to->dtype) ? ts_scalar_complex(to->dtype, re, IMAGINARY_PART(x))
                                            : ts_scalar_from_f64(to->dtype, re));
}

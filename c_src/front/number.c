#include "front/number.h"

#include <stdio.h>

ts_dtype ts_number_dtype(const ts_number *number) {
  if (number->kind == TS_NUMBER_COMPLEX) return TS_C64;
  if (number->kind == TS_NUMBER_FLOAT) return TS_F32;
  if (number->kind == TS_NUMBER_UNSIGNED) return TS_U64;
  return number->s >= INT32_MIN && number->s <= INT32_MAX ? TS_S32 : TS_S64;
}

/* Bits of the smallest unsigned type for a magnitude. */
static int bits_of(uint64_t magnitude) { return magnitude ? 64 - __builtin_clzll(magnitude) : 0; }

bool ts_number_fits(const ts_number *number, ts_dtype dtype) {
  if (number->kind == TS_NUMBER_COMPLEX) return ts_dtype_is_complex(dtype);
  if (!ts_dtype_is_integer(dtype)) return true;
  bool is_signed = ts_dtype_is_signed(dtype);
  int bits = ts_dtype_bits(dtype) - is_signed;
  switch (number->kind) {
  case TS_NUMBER_COMPLEX:
  case TS_NUMBER_FLOAT: return false;
  case TS_NUMBER_SIGNED:
    if (number->s < 0) return is_signed && bits_of(~(uint64_t)number->s) <= bits;
    return bits_of((uint64_t)number->s) <= bits;
  case TS_NUMBER_UNSIGNED: return bits_of(number->u) <= bits;
  }
  return false;
}

uint32_t ts_number_class(const ts_number *number) {
  static const int most_bits[] = {1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63}; /* of signed and unsigned types */
  if (number->kind == TS_NUMBER_COMPLEX) return 1;
  if (number->kind == TS_NUMBER_FLOAT) return 0;
  bool negative = number->kind == TS_NUMBER_SIGNED && number->s < 0;
  int bits = bits_of(negative ? ~number->u : number->u);
  uint32_t class = 2 + negative;
  for (size_t i = 0; i < sizeof most_bits / sizeof *most_bits && bits > most_bits[i]; i++) class += 2;
  return class;
}

/* The integer type of twice the bits, of types of less than 64. */
static ts_dtype wider(ts_dtype dtype) { return ts_dtype_of_bits(ts_dtype_get_kind(dtype), 2 * ts_dtype_bits(dtype)); }

ts_dtype ts_number_merge(ts_dtype dtype, const ts_number *number) {
  if (number->kind == TS_NUMBER_COMPLEX) return ts_dtype_to_complex(dtype);
  if (number->kind == TS_NUMBER_FLOAT) return ts_dtype_to_float(dtype);
  if (number->kind == TS_NUMBER_SIGNED && number->s < 0 && ts_dtype_is_unsigned(dtype))
    dtype = ts_dtype_merge(dtype, TS_S2);
  while (!ts_number_fits(number, dtype) && ts_dtype_bits(dtype) < 64) dtype = wider(dtype);
  return dtype;
}

static ts_status misfit(const ts_number *number, ts_dtype dtype) {
  const char *name = ts_dtype_name(dtype);
  char text[32], range[64];
  int bits = ts_dtype_bits(dtype);
  int64_t highest = bits > 0 ? (int64_t)(UINT64_MAX >> (65 - bits)) : 0;
  if (number->kind == TS_NUMBER_COMPLEX)
    return ts_error(TS_INVALID_ARGUMENT,
                    "{complex, %g, %g} is complex and %s has real numbers only; tessera:real/1 of "
                    "the number takes its real part",
                    number->parts[0], number->parts[1], name);
  if (number->kind == TS_NUMBER_FLOAT)
    return ts_error(TS_INVALID_ARGUMENT, "%g is not an integer and %s has integers only; tessera:as_type/2 converts",
                    number->f, name);
  if (number->kind == TS_NUMBER_SIGNED)
    snprintf(text, sizeof text, "%lld", (long long)number->s);
  else
    snprintf(text, sizeof text, "%llu", (unsigned long long)number->u);
  if (ts_dtype_is_signed(dtype))
    snprintf(range, sizeof range, "%lld to %lld", (long long)(-highest - 1), (long long)highest);
  else
    snprintf(range, sizeof range, "0 to %llu", 2 * (unsigned long long)highest + 1);
  return ts_error(TS_OUT_OF_RANGE, "the number %s does not fit in %s, which has %s", text, name, range);
}

ts_status ts_number_scalar(const ts_number *number, ts_dtype dtype, ts_scalar *out) {
  if (!ts_number_fits(number, dtype)) return misfit(number, dtype);
  switch (number->kind) {
  case TS_NUMBER_COMPLEX: *out = ts_scalar_complex(dtype, number->parts[0], number->parts[1]); break;
  case TS_NUMBER_FLOAT: *out = ts_scalar_from_f64(dtype, number->f); break;
  case TS_NUMBER_SIGNED: *out = ts_scalar_from_s64(dtype, number->s); break;
  case TS_NUMBER_UNSIGNED: *out = ts_scalar_from_u64(dtype, number->u); break;
  }
  return TS_SUCCESS;
}

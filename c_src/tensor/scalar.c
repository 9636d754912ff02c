/* Single values of any element type. */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

static uint64_t low_bits(int bits) { return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

static ts_scalar scalar_from_bits(uint64_t bits) { return (ts_scalar){.bits = bits}; }

/* The integer modulo 2^bits, as the type's byte or bytes in memory. */
static ts_scalar wrap(ts_dtype type, uint64_t value) {
  value &= low_bits(ts_dtype_bits(type));
  uint64_t sign = UINT64_C(1) << (ts_dtype_bits(type) - 1);
  if (ts_dtype_is_signed(type)) value = ((value ^ sign) - sign) & low_bits(8 * (int)ts_dtype_size(type));
  return scalar_from_bits(value);
}

static ts_scalar scalar_from_f32(float value) {
  ts_scalar scalar = {.bits = 0};
  scalar.f32 = value;
  return scalar;
}

ts_scalar ts_scalar_complex(ts_dtype type, double re, double im) {
  ts_scalar scalar = {.words = {0, 0}};
  switch ((ts_complex_type)type) {
  case TS_COMPLEX_C64:
    scalar.c64.re = (float)re;
    scalar.c64.im = (float)im;
    break;
  case TS_COMPLEX_C128:
    scalar.c128.re = re;
    scalar.c128.im = im;
    break;
  }
  return scalar;
}

/* The smallest and the largest value of an integer type, as bits of 64-bit integers. */
static int64_t signed_max(ts_dtype type) { return (int64_t)(low_bits(ts_dtype_bits(type)) >> 1); }
static int64_t signed_min(ts_dtype type) { return -signed_max(type) - 1; }

static ts_scalar signed_from_f64(ts_dtype type, double value) {
  if (isnan(value)) return scalar_from_bits(0);
  /* max + 1 is a power of two, hence exact, where max itself may not be. */
  if (value >= -(double)signed_min(type)) return ts_scalar_from_s64(type, signed_max(type));
  if (value <= (double)signed_min(type)) return ts_scalar_from_s64(type, signed_min(type));
  return ts_scalar_from_s64(type, (int64_t)value);
}

static ts_scalar unsigned_from_f64(ts_dtype type, double value) {
  if (!(value > 0)) return scalar_from_bits(0); /* NaN too */
  if (value >= ldexp(1, ts_dtype_bits(type))) return scalar_from_bits(low_bits(ts_dtype_bits(type)));
  return scalar_from_bits((uint64_t)value);
}

ts_scalar ts_scalar_from_f64(ts_dtype type, double value) {
  if (ts_dtype_is_complex(type)) return ts_scalar_complex(type, value, 0);
  switch ((ts_float_type)type) {
  case TS_FLOAT_F64: return (ts_scalar){.f64 = value};
  case TS_FLOAT_F32: return scalar_from_f32((float)value);
  case TS_FLOAT_F16: return scalar_from_bits(ts_f64_to_f16(value));
#ifdef TS_TEST_ROWS
  case TS_FLOAT_T16:
#endif
  case TS_FLOAT_BF16: return scalar_from_bits(ts_f64_to_bf16(value));
  case TS_FLOAT_F8: return scalar_from_bits(ts_f64_to_e5m2(value));
  case TS_FLOAT_F8E4M3FN: return scalar_from_bits(ts_f64_to_e4m3fn(value));
  }
  if (ts_dtype_is_signed(type)) return signed_from_f64(type, value);
  if (ts_dtype_is_unsigned(type)) return unsigned_from_f64(type, value);
  return scalar_from_bits(0); /* a type that graphs do not support yet */
}

/* A double that rounds to any narrower format as `magnitude` does: the bits that do not fit are or-ed into the last one
 * (rounding to odd). */
static double f64_sticky(uint64_t magnitude) {
  if (magnitude >> 53) magnitude = (magnitude & ~UINT64_C(0x7FF)) | (magnitude & 0x7FF ? 0x800 : 0);
  return (double)magnitude;
}

/* The complex number with this real part. */
static ts_scalar of_part(ts_dtype type, ts_scalar part) {
  return ts_scalar_complex(type, ts_scalar_to_f64(ts_dtype_part(type), part), 0);
}

ts_scalar ts_scalar_from_u64(ts_dtype type, uint64_t value) {
  if (ts_dtype_is_integer(type)) return wrap(type, value);
  if (type == TS_F64) return (ts_scalar){.f64 = (double)value};
  if (type == TS_F32) return scalar_from_f32((float)value);
  if (ts_dtype_is_complex(type)) return of_part(type, ts_scalar_from_u64(ts_dtype_part(type), value));
  return ts_scalar_from_f64(type, f64_sticky(value));
}

ts_scalar ts_scalar_from_s64(ts_dtype type, int64_t value) {
  if (ts_dtype_is_integer(type)) return wrap(type, (uint64_t)value);
  if (type == TS_F64) return (ts_scalar){.f64 = (double)value};
  if (type == TS_F32) return scalar_from_f32((float)value);
  if (ts_dtype_is_complex(type)) return of_part(type, ts_scalar_from_s64(ts_dtype_part(type), value));
  double magnitude = f64_sticky(value < 0 ? -(uint64_t)value : (uint64_t)value);
  return ts_scalar_from_f64(type, value < 0 ? -magnitude : magnitude);
}

static int64_t sign_extend(ts_dtype type, uint64_t bits) {
  uint64_t sign = UINT64_C(1) << (ts_dtype_bits(type) - 1);
  return (int64_t)(((bits & low_bits(ts_dtype_bits(type))) ^ sign) - sign);
}

double ts_scalar_to_f64(ts_dtype type, ts_scalar value) {
  switch ((ts_complex_type)type) {
  case TS_COMPLEX_C64: return (double)value.c64.re;
  case TS_COMPLEX_C128: return value.c128.re;
  }
  switch ((ts_float_type)type) {
  case TS_FLOAT_F64: return value.f64;
  case TS_FLOAT_F32: return (double)value.f32;
  case TS_FLOAT_F16: return (double)ts_f16_to_f32((uint16_t)value.bits);
#ifdef TS_TEST_ROWS
  case TS_FLOAT_T16:
#endif
  case TS_FLOAT_BF16: return (double)ts_bf16_to_f32((uint16_t)value.bits);
  case TS_FLOAT_F8: return (double)ts_e5m2_to_f32((uint8_t)value.bits);
  case TS_FLOAT_F8E4M3FN: return (double)ts_e4m3fn_to_f32((uint8_t)value.bits);
  }
  if (ts_dtype_is_signed(type)) return (double)sign_extend(type, value.bits);
  return ts_dtype_is_unsigned(type) ? (double)value.bits : 0;
}

double ts_scalar_imag(ts_dtype type, ts_scalar value) {
  switch ((ts_complex_type)type) {
  case TS_COMPLEX_C64: return (double)value.c64.im;
  case TS_COMPLEX_C128: return value.c128.im;
  }
  return 0;
}

bool ts_scalar_same(ts_dtype type, ts_scalar a, ts_scalar b) {
  return a.bits == b.bits && (type != TS_C128 || a.words[1] == b.words[1]);
}

int64_t ts_scalar_to_s64(ts_dtype type, ts_scalar value) {
  if (ts_dtype_is_signed(type)) return sign_extend(type, value.bits);
  if (ts_dtype_is_unsigned(type)) return (int64_t)value.bits;
  return signed_from_f64(TS_S64, ts_scalar_to_f64(type, value)).s64;
}

ts_scalar ts_scalar_convert(ts_dtype from, ts_scalar value, ts_dtype to) {
  if (from == to) return value;
  if (ts_dtype_is_signed(from)) return ts_scalar_from_s64(to, sign_extend(from, value.bits));
  if (ts_dtype_is_unsigned(from)) return ts_scalar_from_u64(to, value.bits);
  double re = ts_scalar_to_f64(from, value);
  return ts_dtype_is_complex(to) ? ts_scalar_complex(to, re, ts_scalar_imag(from, value)) : ts_scalar_from_f64(to, re);
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "an element's bytes are taken for the low bytes of its bits"
#endif

/* Copies of known sizes stay in registers. A copy of any size is written to memory in pieces, and a read of the whole
 * scalar then waits for them: three times the time. */
ts_scalar ts_scalar_load(ts_dtype type, const void *address) {
  ts_scalar scalar = {.words = {0, 0}};
  uint16_t two;
  uint32_t four;
  switch (ts_dtype_size(type)) {
  case 1: scalar.words[0] = *(const uint8_t *)address; break;
  case 2: memcpy(&two, address, 2), scalar.words[0] = two; break;
  case 4: memcpy(&four, address, 4), scalar.words[0] = four; break;
  case 8: memcpy(scalar.words, address, 8); break;
  default: memcpy(scalar.words, address, sizeof scalar.words);
  }
  return scalar;
}

void ts_scalar_store(ts_dtype type, ts_scalar value, void *address) {
  switch (ts_dtype_size(type)) {
  case 1: memcpy(address, &value, 1); break;
  case 2: memcpy(address, &value, 2); break;
  case 4: memcpy(address, &value, 4); break;
  case 8: memcpy(address, &value, 8); break;
  default: memcpy(address, &value, sizeof value);
  }
}

ts_scalar ts_dtype_lowest(ts_dtype type) {
  if (ts_dtype_is_signed(type)) return ts_scalar_from_s64(type, signed_min(type));
  if (type == TS_F8E4M3FN) return scalar_from_bits(0xFE);
  return ts_scalar_from_f64(type, -INFINITY); /* 0 for unsigned types */
}

ts_scalar ts_dtype_highest(ts_dtype type) {
  if (ts_dtype_is_signed(type)) return ts_scalar_from_s64(type, signed_max(type));
  if (type == TS_F8E4M3FN) return scalar_from_bits(0x7E);
  return ts_scalar_from_f64(type, INFINITY); /* saturates to the largest unsigned value */
}

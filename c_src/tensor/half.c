/* Floats of 16 and 8 bits, on their bits. */
#include "tensor/dtype.h"

#include <string.h>

#define F64_MANTISSA 52
#define F64_BIAS 1023

static uint64_t f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/* `m` / 2^shift to the nearest integer, ties to even; shift in 1..53. */
static uint64_t shift_right_even(uint64_t m, int shift) {
  uint64_t quotient = m >> shift, rest = m & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/* Rounds to a 16-bit IEEE format with the given field widths, once. */
static uint16_t round_f64(double value, int exponent_bits, int mantissa_bits) {
  uint64_t bits = f64_bits(value);
  uint64_t mantissa = bits & ((UINT64_C(1) << F64_MANTISSA) - 1);
  int field = (int)(bits >> F64_MANTISSA & 0x7FF);
  uint16_t sign = (uint16_t)(bits >> 63 << 15);
  uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << mantissa_bits);
  if (field == 0x7FF) {
    if (!mantissa) return sign | infinity;
    uint16_t payload = (uint16_t)(mantissa >> (F64_MANTISSA - mantissa_bits));
    return (uint16_t)(sign | infinity | payload | 1u << (mantissa_bits - 1));
  }

  int bias = (1 << (exponent_bits - 1)) - 1, exponent = field - F64_BIAS;
  if (exponent > bias) return sign | infinity;
  int below = exponent < 1 - bias ? 1 - bias - exponent : 0; /* distance into the subnormal range */
  int shift = F64_MANTISSA - mantissa_bits + below;
  if (field == 0 || shift > F64_MANTISSA + 1) return sign; /* under half of the smallest subnormal */
  uint64_t rounded = shift_right_even(mantissa | UINT64_C(1) << F64_MANTISSA, shift);
  /* The leading one, or a carry out of the mantissa, adds to the exponent; beyond the largest exponent this gives
   * infinity. */
  if (!below) rounded += (uint64_t)(exponent + bias - 1) << mantissa_bits;
  return (uint16_t)(sign | rounded);
}

uint16_t ts_f64_to_f16(double value) { return round_f64(value, 5, 10); }
uint16_t ts_f64_to_bf16(double value) { return round_f64(value, 8, 7); }
uint16_t ts_f32_to_f16(float value) { return round_f64((double)value, 5, 10); }
uint16_t ts_f32_to_bf16(float value) {
  uint32_t bits = ts_f32_bits(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float ts_bf16_to_f32(uint16_t bits) { return ts_f32_from_bits((uint32_t)bits << 16); }

/* The finite numbers of e4m3fn reach to 1.75 * 2^8, past the end of an IEEE format with its fields. So the value is
 * rounded with that format's next exponent; from 465 on it would round to 480, which is NaN. */
uint8_t ts_f64_to_e4m3fn(double value) {
  uint8_t sign = (uint8_t)(f64_bits(value) >> 63 << 7);
  double magnitude = value < 0 ? -value : value;
  if (!(magnitude <= 464)) return sign | 0x7F;
  if (magnitude < 240) return (uint8_t)(sign | round_f64(magnitude, 4, 3)); /* below the largest of the IEEE format */
  /* In [240, 464] the unit is 16 from 128 and 32 from 256 on: half of the number is in the IEEE format's range. */
  return (uint8_t)(sign | (round_f64(magnitude / 2, 4, 3) + (1u << 3)));
}

float ts_e4m3fn_to_f32(uint8_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x80) << 24, field = bits >> 3 & 0xF, mantissa = bits & 7;
  if ((bits & 0x7F) == 0x7F) return ts_f32_from_bits(sign | 0x7FC00000);
  if (field) return ts_f32_from_bits(sign | (field + 120) << 23 | mantissa << 20);
  float magnitude = (float)mantissa * 0x1p-9f; /* exact */
  return sign ? -magnitude : magnitude;
}

uint8_t ts_f64_to_e5m2(double value) {
  uint16_t rounded = round_f64(value, 5, 2); /* its sign is in bit 15 */
  return (uint8_t)(rounded >> 8 | (rounded & 0x7F));
}

/* e5m2 is the upper byte of f16. */
float ts_e5m2_to_f32(uint8_t bits) { return ts_f16_to_f32((uint16_t)(bits << 8)); }

float ts_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, field = bits >> 10 & 0x1F, mantissa = bits & 0x3FF;
  if (field == 0x1F) return ts_f32_from_bits(sign | 0x7F800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
  if (field) return ts_f32_from_bits(sign | (field + 112) << 23 | mantissa << 13);
  float magnitude = (float)mantissa * 0x1p-24f; /* exact */
  return sign ? -magnitude : magnitude;
}

/* Floats as signed integers in the same order: the larger or smaller of two is then one comparison, also of zeros of
 * both signs (-0 is below +0) and of NaN. A NaN is above all numbers in high keys, for maxima, and below all in low
 * keys, for minima. So it is in every result after it; its sign and payload are not kept. Thread-safe. */
#ifndef TS_KERNEL_SCAN_KEYS_H
#define TS_KERNEL_SCAN_KEYS_H

#include <stdint.h>
#include <string.h>

static inline int32_t ts_scan_bits_f32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float ts_scan_from_bits_f32(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int64_t ts_scan_bits_f64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double ts_scan_from_bits_f64(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int32_t ts_scan_bits_half(uint16_t x) { return (int16_t)x; }
static inline uint16_t ts_scan_from_bits_half(int32_t bits) { return (uint16_t)bits; }

/* I: of the keys. MAGNITUDE: the bits below the sign. INFINITE: the magnitude of infinity, which only NaN exceeds.
 * Shifts of signed numbers give masks of their sign, where a comparison may become a branch. */
#define TS_SCAN_DEFINE_KEYS(NAME, T, I, BITS, MAGNITUDE, INFINITE)                                           \
  static inline I ts_scan_sign_##NAME(I x) { return x >> (8 * sizeof(I) - 1); }                              \
  static inline I ts_scan_nan_##NAME(I bits) {                                                               \
    return ts_scan_sign_##NAME(INFINITE - (bits & MAGNITUDE)) & ~MAGNITUDE;                                  \
  }                                                                                                          \
  static inline I ts_scan_exchange_##NAME(I bits) { return bits ^ (ts_scan_sign_##NAME(bits) & MAGNITUDE); } \
  static inline I ts_scan_high_##NAME(T x) {                                                                 \
    const I bits = ts_scan_bits_##BITS(x);                                                                   \
    return ts_scan_exchange_##NAME(bits & ~ts_scan_nan_##NAME(bits));                                        \
  }                                                                                                          \
  static inline I ts_scan_low_##NAME(T x) {                                                                  \
    const I bits = ts_scan_bits_##BITS(x);                                                                   \
    return ts_scan_exchange_##NAME(bits | ts_scan_nan_##NAME(bits));                                         \
  }                                                                                                          \
  static inline T ts_scan_value_##NAME(I key) { return ts_scan_from_bits_##BITS(ts_scan_exchange_##NAME(key)); }

TS_SCAN_DEFINE_KEYS(f64, double, int64_t, f64, INT64_MAX, INT64_C(0x7ff0000000000000))
TS_SCAN_DEFINE_KEYS(f32, float, int32_t, f32, INT32_MAX, 0x7f800000)
TS_SCAN_DEFINE_KEYS(f16, uint16_t, int32_t, half, 0x7fff, 0x7c00)
TS_SCAN_DEFINE_KEYS(bf16, uint16_t, int32_t, half, 0x7fff, 0x7f80)

#endif

/* Loops over contiguous elements that become f32 or f64, and over such floats; included once for each class of
 * machines, which names its functions by ISA. */

static inline float f16_bits_to_f32(uint32_t v) {
  /* A multiplication corrects the exponent's bias and normalizes subnormals. */
  uint32_t magnitude = (v & 0x7FFF) << 13, special = magnitude >= 0x0F800000u ? 0x7F800000u : 0;
  return ts_f32_from_bits(ts_f32_bits(ts_f32_from_bits(magnitude) * 0x1p112f) | special | (v & 0x8000) << 16);
}

static inline float from_f16(uint16_t v) { return f16_bits_to_f32(v); }
static inline float from_bf16(uint16_t v) { return ts_f32_from_bits((uint32_t)v << 16); }
static inline float from_e5m2(uint8_t v) { return f16_bits_to_f32((uint32_t)v << 8); }

static inline float from_e4m3fn(uint8_t v) {
  uint32_t magnitude = (uint32_t)(v & 0x7F) << 20, nan = magnitude == 0x07F00000u ? 0x7FC00000u : 0;
  return ts_f32_from_bits(ts_f32_bits(ts_f32_from_bits(magnitude) * 0x1p120f) | nan | (uint32_t)(v & 0x80) << 24);
}

static inline double f16_to_f64(uint16_t v) { return (double)from_f16(v); }
static inline double bf16_to_f64(uint16_t v) { return (double)from_bf16(v); }

#define CONVERT(source, convert)                                \
  do {                                                          \
    const source *x = (const source *)from;                     \
    for (int64_t i = 0; i < count; i++) out[i] = convert(x[i]); \
  } while (0)

static void ISA(to_f32)(ts_dtype type, const void *restrict from, int64_t count, void *restrict to) {
  float *out = to;
  switch (type) {
  case TS_S2:
  case TS_S4:
  case TS_S8: CONVERT(int8_t, (float)); break;
  case TS_U2:
  case TS_U4:
  case TS_U8: CONVERT(uint8_t, (float)); break;
  case TS_S16: CONVERT(int16_t, (float)); break;
  case TS_U16: CONVERT(uint16_t, (float)); break;
  case TS_F8: CONVERT(uint8_t, from_e5m2); break;
  case TS_F8E4M3FN: CONVERT(uint8_t, from_e4m3fn); break;
  case TS_F16: CONVERT(uint16_t, from_f16); break;
  case TS_BF16: CONVERT(uint16_t, from_bf16); break;
  default: break; /* ts_gemm_has_types */
  }
}

static void ISA(to_f64)(ts_dtype type, const void *restrict from, int64_t count, void *restrict to) {
  double *out = to;
  switch (type) {
  case TS_S8: CONVERT(int8_t, (double)); break;
  case TS_U8: CONVERT(uint8_t, (double)); break;
  case TS_S16: CONVERT(int16_t, (double)); break;
  case TS_U16: CONVERT(uint16_t, (double)); break;
  case TS_S32: CONVERT(int32_t, (double)); break;
  case TS_U32: CONVERT(uint32_t, (double)); break;
  case TS_F16: CONVERT(uint16_t, f16_to_f64); break;
  case TS_BF16: CONVERT(uint16_t, bf16_to_f64); break;
  case TS_F32: CONVERT(float, (double)); break;
  default: break; /* ts_gemm_has_types */
  }
}

/* `step` is 1 where elements are of several units, and 0 where they are of one. */
static void ISA(scale)(const float *restrict scales, int step, int64_t count, float *restrict inout) {
  if (step) {
    for (int64_t i = 0; i < count; i++) inout[i] *= scales[i];
  } else {
    const float scale = *scales;
    for (int64_t i = 0; i < count; i++) inout[i] *= scale;
  }
}

/* Rounds to the nearest number of the type, of ties to the even one. */
static inline float rounded_bf16(float x) {
  uint32_t v = ts_f32_bits(x), rounded = v + 0x7FFF + (v >> 16 & 1), quiet = v | 0x00400000u;
  return ts_f32_from_bits(((v & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded) & 0xFFFF0000u);
}

static inline float rounded_f16(float x) {
  uint32_t v = ts_f32_bits(x), sign = v & 0x80000000u, magnitude = v & 0x7FFFFFFFu;
  uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1)) & ~UINT32_C(0x1FFF);
  /* a unit in the last place of 0.5f is the smallest subnormal number: the addition rounds */
  uint32_t subnormal = ts_f32_bits((ts_f32_from_bits(magnitude) + 0.5f) - 0.5f);
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal >= 0x47800000u ? 0x7F800000u : normal;
  return ts_f32_from_bits(sign | (magnitude > 0x7F800000u ? 0x7FC00000u : result));
}

static void ISA(round)(ts_dtype type, int64_t count, float *inout) {
  if (type == TS_BF16)
    for (int64_t i = 0; i < count; i++) inout[i] = rounded_bf16(inout[i]);
  if (type == TS_F16)
    for (int64_t i = 0; i < count; i++) inout[i] = rounded_f16(inout[i]);
}

const gemm_widen ISA(ts_gemm_widen) = {ISA(to_f32), ISA(to_f64), ISA(scale), ISA(round)};

#undef CONVERT

/* Loops over contiguous elements that become f32 or f64, and over such floats; included once for each class of
 * machines, which names its functions by ISA. */

/* A number below the normal numbers is computed as a difference of two normal ones: subnormal operands would take a
 * hundred times as long. */
static inline float f16_bits_to_f32(uint32_t v) {
  uint32_t magnitude = (v & 0x7FFF) << 13, more = magnitude >= 0x0F800000u ? 224u << 23 : 112u << 23;
  uint32_t subnormal = ts_f32_bits(ts_f32_from_bits(magnitude + (113u << 23)) - 0x1p-14f);
  return ts_f32_from_bits((magnitude < 0x00800000u ? subnormal : magnitude + more) | (v & 0x8000) << 16);
}

static inline float from_f16(uint16_t v) { return f16_bits_to_f32(v); }
static inline float from_bf16(uint16_t v) { return ts_f32_from_bits((uint32_t)v << 16); }
static inline float from_e5m2(uint8_t v) { return f16_bits_to_f32((uint32_t)v << 8); }

static inline float from_e4m3fn(uint8_t v) {
  uint32_t magnitude = (uint32_t)(v & 0x7F) << 20, sign = (uint32_t)(v & 0x80) << 24;
  uint32_t subnormal = ts_f32_bits(ts_f32_from_bits(magnitude + (121u << 23)) - 0x1p-6f);
  uint32_t normal = magnitude == 0x07F00000u ? 0x7FC00000u : magnitude + (120u << 23);
  return ts_f32_from_bits((magnitude < 0x00800000u ? subnormal : normal) | sign);
}

static inline double f16_to_f64(uint16_t v) { return (double)from_f16(v); }
static inline double bf16_to_f64(uint16_t v) { return (double)from_bf16(v); }

/* `COUNT` is a constant for whole panels, whose loops have then no rest. */
#define CONVERT_ROW(convert, COUNT)                                                \
  do {                                                                             \
    if (c->scale_step)                                                             \
      for (int64_t i = 0; i < (COUNT); i++) out[i] = convert(x[i]) * c->scales[i]; \
    else                                                                           \
      for (int64_t i = 0; i < (COUNT); i++) out[i] = convert(x[i]) * scale;        \
  } while (0)

#define CONVERT(source, convert)                                                          \
  for (int64_t r = 0; r < c->rows; r++) {                                                 \
    const source *restrict x = (const source *)(const void *)(c->from + r * c->from_row); \
    float *restrict out = (float *)(void *)(c->out + r * c->out_row);                     \
    const float scale = c->scale_step ? 1 : c->scales[r];                                 \
    if (c->count == 32)                                                                   \
      CONVERT_ROW(convert, 32);                                                           \
    else                                                                                  \
      CONVERT_ROW(convert, c->count);                                                     \
  }

#ifdef EIGHT_F16
#define CONVERT_HALVES(source, convert, eight)                                                 \
  for (int64_t r = 0; r < c->rows; r++) {                                                      \
    const source *x = (const source *)(const void *)(c->from + r * c->from_row);               \
    float *out = (float *)(void *)(c->out + r * c->out_row);                                   \
    const float *scales = c->scale_step ? c->scales : c->scales + r;                           \
    int64_t i = 0;                                                                             \
    for (; i + 8 <= c->count; i += 8) {                                                        \
      const __m256 by = c->scale_step ? _mm256_loadu_ps(scales + i) : _mm256_set1_ps(*scales); \
      _mm256_storeu_ps(out + i, _mm256_mul_ps(eight((const char *)(x + i)), by));              \
    }                                                                                          \
    for (; i < c->count; i++) out[i] = convert(x[i]) * scales[c->scale_step ? i : 0];          \
  }
#else
#define CONVERT_HALVES(source, convert, eight) CONVERT(source, convert)
#endif

static void ISA(to_f32)(const gemm_widen_rows *c) {
  switch (c->type) {
  case TS_S2:
  case TS_S4:
  case TS_S8: CONVERT(int8_t, (float)); break;
  case TS_U2:
  case TS_U4:
  case TS_U8: CONVERT(uint8_t, (float)); break;
  case TS_S16: CONVERT(int16_t, (float)); break;
  case TS_U16: CONVERT(uint16_t, (float)); break;
  case TS_F8: CONVERT_HALVES(uint8_t, from_e5m2, eight_e5m2); break;
  case TS_F8E4M3FN: CONVERT_HALVES(uint8_t, from_e4m3fn, eight_e4m3fn); break;
  case TS_F16: CONVERT_HALVES(uint16_t, from_f16, eight_f16); break;
  case TS_BF16: CONVERT(uint16_t, from_bf16); break;
  default: break; /* ts_gemm_has_types */
  }
}

#define CONVERT_F64(source, convert)                                                      \
  for (int64_t r = 0; r < c->rows; r++) {                                                 \
    const source *restrict x = (const source *)(const void *)(c->from + r * c->from_row); \
    double *restrict out = (double *)(void *)(c->out + r * c->out_row);                   \
    for (int64_t i = 0; i < c->count; i++) out[i] = convert(x[i]);                        \
  }

static void ISA(to_f64)(const gemm_widen_rows *c) {
  switch (c->type) {
  case TS_S8: CONVERT_F64(int8_t, (double)); break;
  case TS_U8: CONVERT_F64(uint8_t, (double)); break;
  case TS_S16: CONVERT_F64(int16_t, (double)); break;
  case TS_U16: CONVERT_F64(uint16_t, (double)); break;
  case TS_S32: CONVERT_F64(int32_t, (double)); break;
  case TS_U32: CONVERT_F64(uint32_t, (double)); break;
  case TS_F16: CONVERT_F64(uint16_t, f16_to_f64); break;
  case TS_BF16: CONVERT_F64(uint16_t, bf16_to_f64); break;
  case TS_F32: CONVERT_F64(float, (double)); break;
  default: break; /* ts_gemm_has_types */
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

#define ROUND(rounded)                                               \
  for (int64_t r = 0; r < c->rows; r++) {                            \
    float *row = (float *)(void *)(c->out + r * c->out_row);         \
    for (int64_t i = 0; i < c->count; i++) row[i] = rounded(row[i]); \
  }

static void ISA(round)(const gemm_widen_rows *c, ts_dtype type) {
  if (type == TS_BF16) ROUND(rounded_bf16)
  if (type == TS_F16) ROUND(rounded_f16)
}

static inline uint16_t narrow_bf16(uint32_t v) {
  uint32_t rounded = v + 0x7FFF + (v >> 16 & 1);
  return (uint16_t)(((v & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : rounded) >> 16);
}

static inline uint16_t narrow_f16(uint32_t v) {
  uint32_t sign = v >> 16 & 0x8000, magnitude = v & 0x7FFFFFFFu;
  /* a carry out of the largest number gives infinity */
  uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  uint32_t subnormal = ts_f32_bits(ts_f32_from_bits(magnitude) + 0.5f) - ts_f32_bits(0.5f); /* as rounded_f16 has it */
  uint32_t finite = magnitude >= 0x38800000u ? normal : subnormal;
  uint32_t result = magnitude >= 0x47800000u ? 0x7C00 : finite;
  return (uint16_t)(sign | (magnitude > 0x7F800000u ? 0x7E00 : result));
}

#define NARROW(type, convert)                                  \
  do {                                                         \
    type *restrict to = (type *)out;                           \
    for (int64_t i = 0; i < count; i++) to[i] = convert(x[i]); \
  } while (0)

static void ISA(narrow)(ts_dtype dtype, const void *from, int64_t count, void *out) {
  const uint32_t *restrict x = (const uint32_t *)from;
  switch (dtype) {
  case TS_F16: NARROW(uint16_t, narrow_f16); break;
  case TS_BF16: NARROW(uint16_t, narrow_bf16); break;
  case TS_S16:
  case TS_U16: NARROW(uint16_t, (uint16_t)); break;
  case TS_S8:
  case TS_U8: NARROW(uint8_t, (uint8_t)); break;
  default: break; /* no narrow type of products (ts_gemm_has_type) */
  }
}

static void ISA(add_f32)(const float *restrict from, int64_t count, float *restrict to) {
  for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void ISA(add_f64)(const double *restrict from, int64_t count, double *restrict to) {
  for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static inline uint16_t sum_bf16(uint16_t x, uint16_t y) {
  return (uint16_t)(ts_f32_bits(rounded_bf16(from_bf16(x) + from_bf16(y))) >> 16);
}

/* A NaN keeps its sign and the upper bits of its payload. */
static inline uint16_t sum_f16(uint16_t x, uint16_t y) {
  uint32_t v = ts_f32_bits(from_f16(x) + from_f16(y)), nan = (v >> 16 & 0x8000) | 0x7E00 | (v >> 13 & 0x3FF);
  return (uint16_t)((v & 0x7FFFFFFFu) > 0x7F800000u ? nan : narrow_f16(v));
}

static void ISA(add_half)(ts_dtype type, const uint16_t *restrict from, int64_t count, uint16_t *restrict to) {
  if (type == TS_F16)
    for (int64_t i = 0; i < count; i++) to[i] = sum_f16(to[i], from[i]);
  else
    for (int64_t i = 0; i < count; i++) to[i] = sum_bf16(to[i], from[i]);
}

const gemm_widen ISA(ts_gemm_widen) = {ISA(to_f32),  ISA(to_f64),  ISA(round),   ISA(narrow),
                                       ISA(add_f32), ISA(add_f64), ISA(add_half)};

#undef CONVERT_ROW
#undef CONVERT_HALVES
#undef CONVERT
#undef CONVERT_F64
#undef ROUND
#undef NARROW

/* Element types and single values of them. Pure functions, thread-safe. */
#ifndef TS_TENSOR_DTYPE_H
#define TS_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum ts_dtype {
#define TS_DTYPE(type, ...) TS_##type,
#include "tensor/dtype.def"
  TS_DTYPE_COUNT,
  TS_DTYPE_NONE = 255
} ts_dtype;

typedef enum ts_dtype_kind { TS_KIND_SIGNED, TS_KIND_UNSIGNED, TS_KIND_FLOAT, TS_KIND_COMPLEX } ts_dtype_kind;

/* The layers that know a type; each value includes the previous ones. */
typedef enum ts_dtype_layers { TS_LAYERS_NONE, TS_LAYERS_VALUES, TS_LAYERS_KERNELS } ts_dtype_layers;

/* The floats as an enum: a switch over it without a default must name all of them. */
#define TS_FLOAT_SIGNED(type)
#define TS_FLOAT_UNSIGNED(type)
#define TS_FLOAT_FLOAT(type) TS_FLOAT_##type = TS_##type,
#define TS_FLOAT_COMPLEX(type)
typedef enum ts_float_type {
#define TS_DTYPE(type, text, bits, storage, kind, ...) TS_FLOAT_##kind(type)
#include "tensor/dtype.def"
} ts_float_type;

/* The complex types, in the same way. */
#define TS_COMPLEX_SIGNED(type)
#define TS_COMPLEX_UNSIGNED(type)
#define TS_COMPLEX_FLOAT(type)
#define TS_COMPLEX_COMPLEX(type) TS_COMPLEX_##type = TS_##type,
typedef enum ts_complex_type {
#define TS_DTYPE(type, text, bits, storage, kind, ...) TS_COMPLEX_##kind(type)
#include "tensor/dtype.def"
} ts_complex_type;

/* The bytes of one element in memory, in the low bytes; the others are zero, but `words[1]` is set for c128 only. A
 * signed type of fewer than 8 bits has its sign extended to the byte. Native endianness. */
typedef union ts_scalar {
  uint64_t bits;
  uint64_t words[2];
  int64_t s64;
  uint64_t u64;
  float f32;
  double f64;
  struct {
    float re, im;
  } c64;
  struct {
    double re, im;
  } c128;
  uint8_t bytes[16];
} ts_scalar;

/* A row of dtype.def. */
typedef struct ts_dtype_row {
  const char *name;
  uint8_t bits, storage;        /* storage: bytes */
  uint8_t kind;                 /* ts_dtype_kind */
  uint8_t compute, accumulator; /* ts_dtype */
  uint8_t layers;               /* ts_dtype_layers */
} ts_dtype_row;
/* The last row is for values that are not a type. */
extern const ts_dtype_row ts_dtype_rows[TS_DTYPE_COUNT + 1];

static inline const ts_dtype_row *ts_dtype_get_row(ts_dtype type) {
  return &ts_dtype_rows[(unsigned)type < TS_DTYPE_COUNT ? type : TS_DTYPE_COUNT];
}
/* "f32"; "?" when out of range */
static inline const char *ts_dtype_name(ts_dtype type) { return ts_dtype_get_row(type)->name; }
ts_dtype ts_dtype_from_name(const char *name, size_t length); /* TS_DTYPE_NONE when unknown */
static inline int ts_dtype_bits(ts_dtype type) { return ts_dtype_get_row(type)->bits; }
/* Bytes of an element in memory, >= 1. */
static inline size_t ts_dtype_size(ts_dtype type) { return ts_dtype_get_row(type)->storage; }
static inline ts_dtype_kind ts_dtype_get_kind(ts_dtype type) { return (ts_dtype_kind)ts_dtype_get_row(type)->kind; }
/* True for the types that graphs take. */
static inline bool ts_dtype_supported(ts_dtype type) { return ts_dtype_get_row(type)->layers >= TS_LAYERS_VALUES; }
/* True for the types of generated kernels and routines. The interpreter computes ops on others. */
static inline bool ts_dtype_has_kernels(ts_dtype type) { return ts_dtype_get_row(type)->layers >= TS_LAYERS_KERNELS; }
/* f32 for f16, bf16 and smaller floats, which compute and accumulate in it; otherwise the type itself. */
static inline ts_dtype ts_dtype_compute(ts_dtype type) { return (ts_dtype)ts_dtype_get_row(type)->compute; }
static inline ts_dtype ts_dtype_accumulator(ts_dtype type) { return (ts_dtype)ts_dtype_get_row(type)->accumulator; }
/* True for types of fewer than 8 bits and for floats of 8 bits. Passes rewrite their arithmetic to conversions and ops
 * of wider types (pass/widen.c), so kernels and routines only move and convert them. */
static inline bool ts_dtype_is_small(ts_dtype type) {
  return ts_dtype_size(type) == 1 && type != TS_S8 && type != TS_U8;
}
/* For a small type the type of 8 bits whose elements have the same bytes in memory, s8 or u8; else the type itself. */
static inline ts_dtype ts_dtype_carrier(ts_dtype type) {
  if (!ts_dtype_is_small(type)) return type;
  return ts_dtype_get_kind(type) == TS_KIND_SIGNED ? TS_S8 : TS_U8;
}
/* True when ops compute in another type and round each result to this one. */
static inline bool ts_dtype_is_narrow(ts_dtype type) { return ts_dtype_compute(type) != type; }
static inline bool ts_dtype_is_float(ts_dtype t) { return ts_dtype_get_kind(t) == TS_KIND_FLOAT; }
static inline bool ts_dtype_is_signed(ts_dtype t) { return ts_dtype_get_kind(t) == TS_KIND_SIGNED; }
static inline bool ts_dtype_is_unsigned(ts_dtype t) { return ts_dtype_get_kind(t) == TS_KIND_UNSIGNED; }
static inline bool ts_dtype_is_complex(ts_dtype t) { return ts_dtype_get_kind(t) == TS_KIND_COMPLEX; }
static inline bool ts_dtype_is_integer(ts_dtype t) { return ts_dtype_is_signed(t) || ts_dtype_is_unsigned(t); }

/* Bits of a significand, of integers without the sign. */
int ts_dtype_precision(ts_dtype type);
/* The type of a kind with `bits` bits; TS_DTYPE_NONE without one. Not for floats: some sizes have several. */
ts_dtype ts_dtype_of_bits(ts_dtype_kind kind, int bits);
/* The type of a complex type's real and imaginary parts; a real type itself. */
static inline ts_dtype ts_dtype_part(ts_dtype t) {
  switch ((ts_complex_type)t) {
  case TS_COMPLEX_C64: return TS_F32;
  case TS_COMPLEX_C128: return TS_F64;
  }
  return t;
}
/* The alignment of memory of the type: a complex number is aligned as its parts are. */
static inline size_t ts_dtype_alignment(ts_dtype t) { return ts_dtype_size(ts_dtype_part(t)); }
/* The complex type that has room for a real type's values; a complex type itself. */
ts_dtype ts_dtype_to_complex(ts_dtype type);

/* True for types that products of type `to` read without a widened copy, because the conversion is exact, or modulo
 * 2^32 for s32 and u32. These are integers and floats of up to 8 bits for f16 and bf16, up to 16 bits for f32, and of 8
 * to 32 bits for f64; integers of 8 and 16 bits for s32 and u32. */
bool ts_dtype_widens_to(ts_dtype from, ts_dtype to);

/* Nx's promotion of two types: c > f > bf > s > u. */
ts_dtype ts_dtype_merge(ts_dtype a, ts_dtype b);
/* The type of math functions and division: integers become f32. */
ts_dtype ts_dtype_to_float(ts_dtype type);
/* The type of a sum or product: small integers are widened as in Nx. */
ts_dtype ts_dtype_aggregate(ts_dtype type);

static inline uint32_t ts_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float ts_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/* Half-precision conversions, round to nearest even; NaN stays NaN. */
uint16_t ts_f32_to_f16(float value);
float ts_f16_to_f32(uint16_t bits);
uint16_t ts_f32_to_bf16(float value);
float ts_bf16_to_f32(uint16_t bits);
uint16_t ts_f64_to_f16(double value);  /* one rounding */
uint16_t ts_f64_to_bf16(double value); /* one rounding */
/* Floats of 8 bits, round to nearest even, once; NaN stays NaN. e5m2 overflows to infinity. e4m3fn has no infinity:
 * past 464, the midpoint after its largest number 448, the result is NaN, also of infinity. */
uint8_t ts_f64_to_e5m2(double value);
float ts_e5m2_to_f32(uint8_t bits);
uint8_t ts_f64_to_e4m3fn(double value);
float ts_e4m3fn_to_f32(uint8_t bits);

/* Converting to and from C's widest types, with `convert`'s semantics: float to
 * integer truncates and saturates, NaN gives 0; integer to integer wraps. Of a complex number the real part is taken; a
 * real number has the imaginary part 0. */
ts_scalar ts_scalar_from_f64(ts_dtype type, double value);
ts_scalar ts_scalar_from_s64(ts_dtype type, int64_t value);
ts_scalar ts_scalar_from_u64(ts_dtype type, uint64_t value);
double ts_scalar_to_f64(ts_dtype type, ts_scalar value);
int64_t ts_scalar_to_s64(ts_dtype type, ts_scalar value);
ts_scalar ts_scalar_convert(ts_dtype from, ts_scalar value, ts_dtype to);
/* A complex number of parts of the type that ts_dtype_part gives, and its parts. */
ts_scalar ts_scalar_complex(ts_dtype type, double re, double im);
double ts_scalar_imag(ts_dtype type, ts_scalar value); /* 0 for real types */
/* True when the bits are equal. */
bool ts_scalar_same(ts_dtype type, ts_scalar a, ts_scalar b);
ts_scalar ts_scalar_load(ts_dtype type, const void *address);
void ts_scalar_store(ts_dtype type, ts_scalar value, void *address);

/* The identities of max and min: the smallest and the largest value. For floats these are the infinities, for
 * f8_e4m3fn, which has no infinity, -448 and 448. */
ts_scalar ts_dtype_lowest(ts_dtype type);
ts_scalar ts_dtype_highest(ts_dtype type);

#endif

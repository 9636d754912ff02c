#include "tensor/dtype.h"

#include <string.h>

const ts_dtype_row ts_dtype_rows[TS_DTYPE_COUNT + 1] = {
#define TS_DTYPE(type, text, bits, storage, kind, compute, accumulator, layers) \
  [TS_##type] = {text, bits, (storage) / 8, TS_KIND_##kind, TS_##compute, TS_##accumulator, TS_LAYERS_##layers},
#include "tensor/dtype.def"
    [TS_DTYPE_COUNT] = {"?", 8, 1, TS_KIND_UNSIGNED, TS_DTYPE_NONE, TS_DTYPE_NONE, TS_LAYERS_NONE},
};

#define TS_DTYPE(type, text, bits, storage, kind, ...)                                                        \
  _Static_assert((TS_KIND_##kind != TS_KIND_SIGNED && TS_KIND_##kind != TS_KIND_UNSIGNED) || (storage) <= 64, \
                 text ": integers have at most 64 bits (ts_scalar, ts_scalar_to_s64)");
#include "tensor/dtype.def"

ts_dtype ts_dtype_from_name(const char *name, size_t length) {
  for (int i = 0; i < TS_DTYPE_COUNT; i++) {
    if (strlen(ts_dtype_rows[i].name) == length && memcmp(ts_dtype_rows[i].name, name, length) == 0) return (ts_dtype)i;
  }
  return TS_DTYPE_NONE;
}

ts_dtype ts_dtype_of_bits(ts_dtype_kind kind, int bits) {
  for (int i = 0; i < TS_DTYPE_COUNT; i++)
    if (ts_dtype_rows[i].kind == kind && ts_dtype_rows[i].bits == bits) return (ts_dtype)i;
  return TS_DTYPE_NONE;
}

static int float_precision(ts_dtype type) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_F8: return 3;
  case TS_FLOAT_F8E4M3FN: return 4;
  case TS_FLOAT_F16: return 11;
  case TS_FLOAT_BF16: return 8;
  case TS_FLOAT_F32: return 24;
  case TS_FLOAT_F64: return 53;
#ifdef TS_TEST_ROWS
  case TS_FLOAT_T16: return 8;
#endif
  }
  return 0;
}

int ts_dtype_precision(ts_dtype type) {
  switch (ts_dtype_get_kind(type)) {
  case TS_KIND_SIGNED: return ts_dtype_bits(type) - 1;
  case TS_KIND_UNSIGNED: return ts_dtype_bits(type);
  case TS_KIND_FLOAT: return float_precision(type);
  case TS_KIND_COMPLEX: return float_precision(ts_dtype_part(type));
  }
  return 0;
}

static int float_rank(ts_dtype type) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_BF16: return 2;
  case TS_FLOAT_F8E4M3FN: return 3;
  case TS_FLOAT_F8:
  case TS_FLOAT_F16:
  case TS_FLOAT_F32:
  case TS_FLOAT_F64: return 4;
#ifdef TS_TEST_ROWS
  case TS_FLOAT_T16: return 2;
#endif
  }
  return 4;
}

/* The order of kinds in Nx, where bf and f8_e4m3fn are kinds of their own. */
static int nx_kind(ts_dtype type) {
  switch (ts_dtype_get_kind(type)) {
  case TS_KIND_UNSIGNED: return 0;
  case TS_KIND_SIGNED: return 1;
  case TS_KIND_FLOAT: return float_rank(type);
  case TS_KIND_COMPLEX: return 5;
  }
  return 0;
}

bool ts_dtype_widens_to(ts_dtype from, ts_dtype to) {
  const bool small = ts_dtype_is_small(from);
  if (ts_dtype_is_complex(from)) return false;
  if (to == TS_F64) return ts_dtype_size(from) <= 4 && !small;
  if (to == TS_F16 || to == TS_BF16) return ts_dtype_size(from) == 1;
  if (ts_dtype_size(from) > 2 || !ts_dtype_has_kernels(from) || (small && to != TS_F32)) return false;
  return to == TS_F32 || ((to == TS_S32 || to == TS_U32) && !ts_dtype_is_float(from));
}

ts_dtype ts_dtype_merge(ts_dtype a, ts_dtype b) {
  if (nx_kind(a) < nx_kind(b)) {
    ts_dtype higher = b;
    b = a;
    a = higher;
  }
  int bits_a = ts_dtype_bits(a), bits_b = ts_dtype_bits(b);
  if (nx_kind(a) == nx_kind(b)) return bits_a >= bits_b ? a : b;
  if (ts_dtype_is_signed(a)) { /* b is unsigned: the signed type that represents both, up to s64 */
    int doubled = 2 * bits_b < 64 ? 2 * bits_b : 64;
    return ts_dtype_of_bits(TS_KIND_SIGNED, doubled > bits_a ? doubled : bits_a);
  }
  if (ts_dtype_get_kind(a) == TS_KIND_COMPLEX && ts_dtype_is_float(b)) return bits_b == 64 ? TS_C128 : a;
  return a;
}

ts_dtype ts_dtype_to_complex(ts_dtype type) {
  if (ts_dtype_is_complex(type)) return type;
  return type == TS_F64 ? TS_C128 : TS_C64;
}

ts_dtype ts_dtype_to_float(ts_dtype type) { return ts_dtype_is_integer(type) ? TS_F32 : type; }

ts_dtype ts_dtype_aggregate(ts_dtype type) {
  if (type == TS_U64) return TS_S64; /* as in Nx */
  if (ts_dtype_is_unsigned(type)) return TS_U32;
  if (ts_dtype_is_signed(type) && type != TS_S64) return TS_S32;
  return type;
}

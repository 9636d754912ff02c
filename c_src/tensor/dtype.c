#include "tensor/dtype.h"

#include <string.h>

const ts_dtype_row ts_dtype_rows[TS_DTYPE_COUNT + 1] = {
#define TS_DTYPE(type, text, bits, storage, kind, compute, accumulator, supported) \
  [TS_##type] = {text, bits, (storage) / 8, TS_KIND_##kind, TS_##compute, TS_##accumulator, supported},
#include "tensor/dtype.def"
    [TS_DTYPE_COUNT] = {"?", 8, 1, TS_KIND_UNSIGNED, TS_DTYPE_NONE, TS_DTYPE_NONE, false},
};

ts_dtype ts_dtype_from_name(const char *name, size_t length) {
  for (int i = 0; i < TS_DTYPE_COUNT; i++) {
    if (strlen(ts_dtype_rows[i].name) == length && memcmp(ts_dtype_rows[i].name, name, length) == 0) return (ts_dtype)i;
  }
  return TS_DTYPE_NONE;
}

static ts_dtype signed_of_bits(int bits) {
  switch (bits) {
  case 2: return TS_S2;
  case 4: return TS_S4;
  case 8: return TS_S8;
  case 16: return TS_S16;
  case 32: return TS_S32;
  default: return TS_S64;
  }
}

/* The order of kinds in Nx, where bf and f8_e4m3fn are kinds of their own. */
static int nx_kind(ts_dtype type) {
  switch (ts_dtype_get_kind(type)) {
  case TS_KIND_UNSIGNED: return 0;
  case TS_KIND_SIGNED: return 1;
  case TS_KIND_FLOAT: return type == TS_BF16 ? 2 : type == TS_F8E4M3FN ? 3 : 4;
  case TS_KIND_COMPLEX: return 5;
  }
  return 0;
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
    return signed_of_bits(doubled > bits_a ? doubled : bits_a);
  }
  if (ts_dtype_get_kind(a) == TS_KIND_COMPLEX && ts_dtype_is_float(b)) return bits_b == 64 ? TS_C128 : a;
  return a;
}

ts_dtype ts_dtype_to_float(ts_dtype type) { return ts_dtype_is_integer(type) ? TS_F32 : type; }

ts_dtype ts_dtype_aggregate(ts_dtype type) {
  if (type == TS_U64) return TS_S64; /* as in Nx */
  if (ts_dtype_is_unsigned(type)) return TS_U32;
  if (ts_dtype_is_signed(type) && type != TS_S64) return TS_S32;
  return type;
}

#include "tensor/dtype.h"

#include <string.h>

typedef struct dtype_row {
  const char *name;
  uint8_t bits;
  uint8_t kind;
  bool supported;
} dtype_row;

static const dtype_row rows[TS_DTYPE_COUNT] = {
#define TS_DTYPE(e, t, b, k, s) [TS_##e] = {t, b, TS_KIND_##k, s},
#include "tensor/dtype.def"
#undef TS_DTYPE
};

static bool valid(ts_dtype type) { return (unsigned)type < TS_DTYPE_COUNT; }

const char *ts_dtype_name(ts_dtype type) { return valid(type) ? rows[type].name : "?"; }

ts_dtype ts_dtype_from_name(const char *name, size_t length) {
  for (int i = 0; i < TS_DTYPE_COUNT; i++) {
    if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0) return (ts_dtype)i;
  }
  return TS_DTYPE_NONE;
}

int ts_dtype_bits(ts_dtype type) { return valid(type) ? rows[type].bits : 8; }

size_t ts_dtype_size(ts_dtype type) {
  int bits = ts_dtype_bits(type);
  return bits < 8 ? 1 : (size_t)bits / 8;
}

ts_dtype_kind ts_dtype_get_kind(ts_dtype type) {
  return valid(type) ? (ts_dtype_kind)rows[type].kind : TS_KIND_UNSIGNED;
}

bool ts_dtype_supported(ts_dtype type) { return valid(type) && rows[type].supported; }

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

/* Nx's order of kinds. bf and f8_e4m3fn are kinds of their own there. */
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
  if (ts_dtype_is_signed(a)) { /* b is unsigned: the signed type that holds both, up to s64 */
    int doubled = 2 * bits_b < 64 ? 2 * bits_b : 64;
    return signed_of_bits(doubled > bits_a ? doubled : bits_a);
  }
  if (ts_dtype_get_kind(a) == TS_KIND_COMPLEX && ts_dtype_is_float(b)) return bits_b == 64 ? TS_C128 : a;
  return a;
}

ts_dtype ts_dtype_to_float(ts_dtype type) { return ts_dtype_is_integer(type) ? TS_F32 : type; }

ts_dtype ts_dtype_aggregate(ts_dtype type) {
  if (type == TS_U64) return TS_S64; /* as Nx has it */
  if (ts_dtype_is_unsigned(type)) return TS_U32;
  if (ts_dtype_is_signed(type) && type != TS_S64) return TS_S32;
  return type;
}

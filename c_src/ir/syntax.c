#include "ir/syntax.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- attributes and regions ---- */

#define FIELD(name, type, member) \
  { name, TS_FIELD_##type, offsetof(ts_attrs, member) }

const ts_field *ts_syntax_fields(ts_attr_kind kind) {
  static const ts_field none[] = {{0}};
  static const ts_field iota[] = {FIELD("axis", INT, iota.axis), {0}};
  static const ts_field shape[] = {FIELD("shape", DIMS, shape), {0}};
  static const ts_field broadcast[] = {FIELD("shape", DIMS, broadcast.shape), FIELD("axes", DIMS, broadcast.axes), {0}};
  static const ts_field axes[] = {FIELD("axes", DIMS, axes), {0}};
  static const ts_field axis[] = {FIELD("axis", INT, axis), {0}};
  static const ts_field slice[] = {
      FIELD("start", DIMS, slice.start), FIELD("limit", DIMS, slice.limit), FIELD("stride", DIMS, slice.stride), {0}};
  static const ts_field pad[] = {
      FIELD("low", DIMS, pad.low), FIELD("high", DIMS, pad.high), FIELD("interior", DIMS, pad.interior), {0}};
  static const ts_field reduce[] = {FIELD("axes", DIMS, reduce.axes), {0}};
  static const ts_field arg[] = {FIELD("axis", INT, arg.axis), FIELD("high", BOOL, arg.high), {0}};
  static const ts_field scan[] = {FIELD("axis", INT, scan.axis), FIELD("reverse", BOOL, scan.reverse), {0}};
  static const ts_field dot[] = {FIELD("lhs_contract", DIMS, dot.lhs_contract),
                                 FIELD("lhs_batch", DIMS, dot.lhs_batch),
                                 FIELD("rhs_contract", DIMS, dot.rhs_contract),
                                 FIELD("rhs_batch", DIMS, dot.rhs_batch),
                                 {0}};
  static const ts_field fusion[] = {FIELD("kind", UINT, fusion.kind), {0}};
  switch (kind) {
  case TS_ATTR_IOTA: return iota;
  case TS_ATTR_SHAPE: return shape;
  case TS_ATTR_BROADCAST: return broadcast;
  case TS_ATTR_AXES: return axes;
  case TS_ATTR_AXIS: return axis;
  case TS_ATTR_SLICE: return slice;
  case TS_ATTR_PAD: return pad;
  case TS_ATTR_REDUCE: return reduce;
  case TS_ATTR_ARG: return arg;
  case TS_ATTR_SCAN: return scan;
  case TS_ATTR_DOT: return dot;
  case TS_ATTR_FUSION: return fusion;
  default: return none;
  }
}

ts_region_names ts_syntax_regions(ts_opcode code) {
  switch (code) {
  case TS_OP_REDUCE: return (ts_region_names){{"combine", NULL}};
  case TS_OP_WHILE: return (ts_region_names){{"condition", "body"}};
  case TS_OP_COND: return (ts_region_names){{"true", "false"}};
  case TS_OP_CALL:
  case TS_OP_FUSION: return (ts_region_names){{"body", NULL}};
  default: return (ts_region_names){{NULL, NULL}};
  }
}

bool ts_syntax_is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* ---- scalars ---- */

/* Numbers have a point in our text, whatever the process's locale says. Made once, and kept. */
static locale_t numbers;

static void make_locale(void) { numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static locale_t enter_c_locale(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_locale);
  return uselocale(numbers);
}

static void leave_c_locale(locale_t previous) { uselocale(previous); }

static ts_scalar parse_decimal(ts_dtype type, const char *text) {
  if (type == TS_F32) return (ts_scalar){.u64 = ts_scalar_from_f64(TS_F32, strtof(text, NULL)).bits};
  return ts_scalar_from_f64(type, strtod(text, NULL));
}

/* 17 digits are exact for f64, hence for every smaller type. */
static void format_float(ts_dtype type, ts_scalar value, double number, char *out, size_t size) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, size, "%.*g", digits, number);
    if (parse_decimal(type, out).bits == value.bits) return;
  }
}

static void print_float(ts_text *out, ts_dtype type, ts_scalar value) {
  char text[40];
  double number = ts_scalar_to_f64(type, value);
  if (!isfinite(number)) {
    ts_text_format(out, "0x%0*llx", ts_dtype_bits(type) / 4, (unsigned long long)value.bits);
    return;
  }
  locale_t locale = enter_c_locale();
  format_float(type, value, number, text, sizeof text);
  leave_c_locale(locale);
  ts_text_append(out, text);
  if (!strpbrk(text, ".e")) ts_text_append(out, ".0");
}

void ts_scalar_print(ts_text *out, ts_dtype type, ts_scalar value) {
  if (ts_dtype_is_float(type)) {
    print_float(out, type, value);
  } else if (ts_dtype_is_signed(type)) {
    ts_text_format(out, "%lld", (long long)ts_scalar_to_s64(type, value));
  } else {
    ts_text_format(out, "%llu", (unsigned long long)value.u64);
  }
}

/* All of `text` as digits of `base`, at most 2^64 - 1. */
static bool parse_digits(const char *text, int base, uint64_t *out) {
  *out = 0;
  if (!*text) return false;
  for (; *text; text++) {
    char c = *text;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    if (digit >= base || __builtin_mul_overflow(*out, (uint64_t)base, out)) return false;
    if (__builtin_add_overflow(*out, (uint64_t)digit, out)) return false;
  }
  return true;
}

static bool parse_integer(ts_dtype type, const char *text, ts_scalar *out) {
  bool negative = *text == '-';
  uint64_t magnitude;
  if (!parse_digits(text + negative, 10, &magnitude)) return false;
  int bits = ts_dtype_bits(type);
  if (ts_dtype_is_unsigned(type)) {
    *out = ts_scalar_from_u64(type, magnitude);
    return (!negative || magnitude == 0) && (bits == 64 || magnitude >> bits == 0);
  }
  uint64_t limit = UINT64_C(1) << (bits - 1);
  *out = ts_scalar_from_s64(type, (int64_t)(negative ? 0 - magnitude : magnitude));
  return magnitude < limit + negative;
}

static bool parse_float(ts_dtype type, const char *text, ts_scalar *out) {
  char *end;
  /* strtod also takes hexadecimal, "inf", "nan" and leading blanks, which are not in our text. */
  if (text[strspn(text, "0123456789+-.eE")] || !strchr("0123456789", text[text[0] == '-'])) return false;
  locale_t locale = enter_c_locale();
  strtod(text, &end);
  *out = parse_decimal(type, text);
  leave_c_locale(locale);
  return *end == '\0' && isfinite(ts_scalar_to_f64(type, *out));
}

bool ts_scalar_parse(ts_dtype type, const char *text, size_t length, ts_scalar *out) {
  char copy[400]; /* no number needs more, even with all of an f64's digits written out */
  if (!ts_dtype_supported(type) || length == 0 || length >= sizeof copy || memchr(text, 0, length)) return false;
  memcpy(copy, text, length);
  copy[length] = '\0';
  if (length > 2 && copy[0] == '0' && copy[1] == 'x') {
    int bits = ts_dtype_bits(type);
    *out = (ts_scalar){0};
    return parse_digits(copy + 2, 16, &out->bits) && (bits == 64 || out->bits >> bits == 0);
  }
  return ts_dtype_is_float(type) ? parse_float(type, copy, out) : parse_integer(type, copy, out);
}

void ts_syntax_print_hex(ts_text *out, const void *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  const uint8_t *at = bytes;
  for (size_t i = 0; i < count; i++) {
    char pair[2] = {digits[at[i] >> 4], digits[at[i] & 15]};
    ts_text_append_n(out, pair, 2);
  }
}

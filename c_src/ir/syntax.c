#include "ir/syntax.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ts_syntax_is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* ---- scalars ---- */

/* The C locale, since numbers have a point in the text in any locale. Created once, never freed. */
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

/* 17 digits are exact for f64, hence for every narrower type. */
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
    ts_text_format(out, "0x%0*llx", 2 * (int)ts_dtype_size(type), (unsigned long long)value.bits);
    return;
  }
  locale_t locale = enter_c_locale();
  format_float(type, value, number, text, sizeof text);
  leave_c_locale(locale);
  ts_text_append(out, text);
  if (!strpbrk(text, ".e")) ts_text_append(out, ".0");
}

static void print_complex(ts_text *out, ts_dtype type, ts_scalar value) {
  ts_dtype part = ts_dtype_part(type);
  ts_text_append(out, "(");
  print_float(out, part, ts_scalar_load(part, value.bytes));
  ts_text_append(out, ", ");
  print_float(out, part, ts_scalar_load(part, value.bytes + ts_dtype_size(part)));
  ts_text_append(out, ")");
}

void ts_scalar_print(ts_text *out, ts_dtype type, ts_scalar value) {
  if (ts_dtype_is_complex(type)) {
    print_complex(out, type, value);
  } else if (ts_dtype_is_float(type)) {
    print_float(out, type, value);
  } else if (ts_dtype_is_signed(type)) {
    ts_text_format(out, "%lld", (long long)ts_scalar_to_s64(type, value));
  } else {
    ts_text_format(out, "%llu", (unsigned long long)value.u64);
  }
}

/* Parses all of `text` as digits of `base`, at most 2^64 - 1. */
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
  /* Rejects forms that only strtod accepts: hexadecimal, "inf", "nan" and leading blanks. */
  if (text[strspn(text, "0123456789+-.eE")] || !strchr("0123456789", text[text[0] == '-'])) return false;
  locale_t locale = enter_c_locale();
  strtod(text, &end);
  *out = parse_decimal(type, text);
  leave_c_locale(locale);
  return *end == '\0' && isfinite(ts_scalar_to_f64(type, *out));
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool parse_part(ts_dtype part, const char *at, const char *end, uint8_t *out) {
  ts_scalar value;
  while (at < end && is_blank(*at)) at++;
  while (at < end && is_blank(end[-1])) end--;
  if (!ts_scalar_parse(part, at, (size_t)(end - at), &value)) return false;
  ts_scalar_store(part, value, out);
  return true;
}

static bool parse_complex(ts_dtype type, const char *text, size_t length, ts_scalar *out) {
  ts_dtype part = ts_dtype_part(type);
  const char *comma = memchr(text, ',', length), *end = text + length - 1;
  *out = (ts_scalar){.words = {0, 0}};
  return comma && length > 2 && *text == '(' && *end == ')' && parse_part(part, text + 1, comma, out->bytes) &&
         parse_part(part, comma + 1, end, out->bytes + ts_dtype_size(part));
}

bool ts_scalar_parse(ts_dtype type, const char *text, size_t length, ts_scalar *out) {
  char copy[400]; /* longer than any number, even an f64 with all of its digits */
  if (ts_dtype_is_complex(type)) return length > 0 && parse_complex(type, text, length, out);
  if (!ts_dtype_supported(type) || length == 0 || length >= sizeof copy || memchr(text, 0, length)) return false;
  memcpy(copy, text, length);
  copy[length] = '\0';
  if (length > 2 && copy[0] == '0' && copy[1] == 'x') {
    int bits = 8 * (int)ts_dtype_size(type);
    *out = (ts_scalar){0};
    bool fits = parse_digits(copy + 2, 16, &out->bits) && (bits == 64 || out->bits >> bits == 0);
    if (ts_dtype_is_integer(type)) *out = ts_scalar_from_u64(type, out->bits);
    return fits;
  }
  return ts_dtype_is_float(type) ? parse_float(type, copy, out) : parse_integer(type, copy, out);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool ts_syntax_parse_hex(const char *text, size_t count, void *out) {
  uint8_t *to = out;
  for (size_t i = 0; i < count; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    to[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

void ts_syntax_print_hex(ts_text *out, const void *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  const uint8_t *at = bytes;
  for (size_t i = 0; i < count; i++) {
    char pair[2] = {digits[at[i] >> 4], digits[at[i] & 15]};
    ts_text_append_n(out, pair, 2);
  }
}

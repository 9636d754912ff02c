#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for `extra` more characters and the NUL; sets `failed` when there is none. */
static bool reserve(ts_text *text, size_t extra) {
  if (text->failed) return false;
  size_t wanted;
  if (!ts_add_size(text->length + 1, extra, &wanted)) return !(text->failed = true);
  if (wanted <= text->capacity) return true;
  size_t capacity = text->capacity + text->capacity / 2 + 64;
  if (capacity < wanted) capacity = wanted;
  ts_status status = ts_realloc_array(capacity, 1, (void **)&text->data);
  if (!ts_status_consume_ok(status)) return !(text->failed = true);
  text->capacity = capacity;
  return true;
}

void ts_text_reserve(ts_text *text, size_t extra) { (void)reserve(text, extra); }

void ts_text_append_slow(ts_text *text, const char *bytes, size_t n) {
  if (!reserve(text, n)) return;
  if (n) memcpy(text->data + text->length, bytes, n);
  text->length += n;
  text->data[text->length] = '\0';
}

static void append_digits(ts_text *text, bool negative, uint64_t magnitude) {
  char digits[24], *at = digits + sizeof(digits);
  do {
    *--at = (char)('0' + magnitude % 10);
    magnitude /= 10;
  } while (magnitude);
  if (negative) *--at = '-';
  ts_text_append_n(text, at, (size_t)(digits + sizeof(digits) - at));
}

void ts_text_int(ts_text *text, int64_t number) {
  if (number >= 0 && number < 10)
    ts_text_append_n(text, &"0123456789"[number], 1);
  else
    append_digits(text, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void ts_text_uint(ts_text *text, uint64_t number) { append_digits(text, false, number); }

void ts_text_format(ts_text *text, const char *format, ...) {
  va_list args;
  char small[128];
  va_start(args, format);
  int length = vsnprintf(small, sizeof(small), format, args);
  va_end(args);
  if (length < 0) {
    text->failed = true;
  } else if ((size_t)length < sizeof(small)) {
    ts_text_append_n(text, small, (size_t)length);
  } else if (reserve(text, (size_t)length)) {
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
  }
}

ts_status ts_text_finish(ts_text *text, char **out) {
  *out = NULL;
  ts_text_append_n(text, "", 0); /* an empty text is "" and not NULL */
  if (text->failed) {
    ts_text_deinit(text);
    return ts_error_no_memory();
  }
  *out = text->data;
  *text = (ts_text){0};
  return TS_SUCCESS;
}

void ts_text_deinit(ts_text *text) {
  ts_free(text->data);
  *text = (ts_text){0};
}

/* ---- UTF-8 ---- */

/* Characters by their first byte: how many bytes follow, and the range of the first of them, which rules out longer
 * forms than needed, surrogates and numbers above 10FFFF. */
typedef struct utf8_form {
  unsigned char first, last, following, low, high;
} utf8_form;

static const utf8_form utf8_forms[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f},
    {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f}};

/* The bytes of the first character; 0 where there is none. */
static size_t utf8_character(const unsigned char *bytes, size_t n) {
  if (bytes[0] < 0x80) return 1;
  for (size_t i = 0; i < sizeof utf8_forms / sizeof *utf8_forms; i++) {
    const utf8_form *f = &utf8_forms[i];
    if (bytes[0] < f->first || bytes[0] > f->last) continue;
    if (n <= f->following || bytes[1] < f->low || bytes[1] > f->high) return 0;
    for (size_t k = 2; k <= f->following; k++)
      if (bytes[k] < 0x80 || bytes[k] > 0xbf) return 0;
    return (size_t)f->following + 1;
  }
  return 0;
}

size_t ts_utf8_prefix(const char *bytes, size_t n) {
  size_t at = 0, more = 1;
  while (at < n && more > 0) {
    more = utf8_character((const unsigned char *)bytes + at, n - at);
    at += more;
  }
  return at;
}

/* A growable string, for printers, canonical kernel texts and messages. After a failed append the text is unchanged and
 * `failed` is set; check once at the end with ts_text_finish(). Not thread-safe. */
#ifndef TS_BASE_TEXT_H
#define TS_BASE_TEXT_H

#include "base/alloc.h"

#include <string.h>

typedef struct ts_text {
  char *data; /* NUL-terminated once anything was appended */
  size_t length;
  size_t capacity;
  bool failed;
} ts_text;

/* Reserves room for about `extra` more characters. */
void ts_text_reserve(ts_text *text, size_t extra);
void ts_text_append_slow(ts_text *text, const char *bytes, size_t n);

/* Inline, so that appending a literal takes few instructions: every compilation prints its program as a key. */
static inline void ts_text_append_n(ts_text *text, const char *bytes, size_t n) {
  if (__builtin_expect(text->failed || text->capacity - text->length <= n, 0)) {
    ts_text_append_slow(text, bytes, n);
    return;
  }
  if (n) memcpy(text->data + text->length, bytes, n);
  text->length += n;
  text->data[text->length] = '\0';
}

static inline void ts_text_append(ts_text *text, const char *string) {
  ts_text_append_n(text, string, __builtin_strlen(string));
}

void ts_text_int(ts_text *text, int64_t number); /* decimal, like the next one; many times faster than printf formats */
void ts_text_uint(ts_text *text, uint64_t number);
void ts_text_format(ts_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The bytes in front of the first that is not of a character in UTF-8, or `n`. */
size_t ts_utf8_prefix(const char *bytes, size_t n);

/* Passes the string to the caller (free with ts_free) and resets `text`. */
ts_status ts_text_finish(ts_text *text, char **out);
void ts_text_deinit(ts_text *text);

#endif

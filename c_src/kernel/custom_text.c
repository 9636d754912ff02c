/* The text of a custom call: its target and attributes. */
#include "kernel/custom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  ts_arena *arena;
  char *at; /* a copy that ends with a NUL; pieces of it become strings in place */
  const char *text;
} reader;

static ts_status bad_text(const reader *r, const char *expected) {
  return ts_error(TS_INVALID_ARGUMENT, "custom_call: expected %s at character %zu of the call's text", expected,
                  (size_t)(r->at - r->text) + 1);
}

static void skip_spaces(reader *r) {
  while (*r->at == ' ') r->at++;
}

static bool accept(reader *r, char c) {
  skip_spaces(r);
  if (*r->at != c) return false;
  r->at++;
  return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static ts_status read_name(reader *r, const char **out) {
  skip_spaces(r);
  char *start = r->at, *name;
  if (!is_letter(*r->at)) return bad_text(r, "a name");
  while (is_letter(*r->at) || is_digit(*r->at) || *r->at == '.') r->at++;
  size_t length = (size_t)(r->at - start);
  TS_TRY(ts_arena_alloc(r->arena, length + 1, (void **)&name));
  memcpy(name, start, length);
  *out = name;
  return TS_SUCCESS;
}

static ts_status read_integer(reader *r, int64_t *out) {
  char *end;
  skip_spaces(r);
  errno = 0;
  *out = strtoll(r->at, &end, 10);
  if (end == r->at || errno) return bad_text(r, "an integer of 64 bits");
  r->at = end;
  return TS_SUCCESS;
}

static ts_status read_list(reader *r, tessera_attribute *out) {
  int64_t *list, room = 1;
  for (const char *c = r->at; *c && *c != ']'; c++) room += *c == ',';
  TS_TRY(TS_ARENA_ARRAY(r->arena, (size_t)room, &list));
  out->kind = TESSERA_INTEGERS;
  out->integers = list;
  if (accept(r, ']')) return TS_SUCCESS;
  do {
    TS_TRY(read_integer(r, &list[out->count++]));
  } while (accept(r, ','));
  return accept(r, ']') ? TS_SUCCESS : bad_text(r, "']'");
}

static ts_status read_string(reader *r, tessera_attribute *out) {
  char *end = strchr(r->at, '\''), *copy;
  if (!end) return bad_text(r, "a text's end");
  size_t length = (size_t)(end - r->at);
  TS_TRY(ts_arena_alloc(r->arena, length + 1, (void **)&copy));
  memcpy(copy, r->at, length);
  out->kind = TESSERA_TEXT;
  out->text = copy;
  out->count = (int64_t)length;
  r->at = end + 1;
  return TS_SUCCESS;
}

/* An integer has no point and no exponent; inf and nan are numbers. */
static ts_status read_number(reader *r, tessera_attribute *out) {
  char *end;
  size_t whole = strspn(r->at, "+-0123456789");
  out->number = strtod(r->at, &end);
  if (end == r->at) return bad_text(r, "a value");
  out->kind = TESSERA_NUMBER;
  if (end == r->at + whole) {
    out->kind = TESSERA_INTEGER;
    return read_integer(r, &out->integer);
  }
  r->at = end;
  return TS_SUCCESS;
}

static bool accept_word(reader *r, const char *word) {
  size_t length = strlen(word);
  if (strncmp(r->at, word, length) != 0 || is_letter(r->at[length]) || is_digit(r->at[length])) return false;
  r->at += length;
  return true;
}

static ts_status read_value(reader *r, tessera_attribute *out) {
  if (accept(r, '[')) return read_list(r, out);
  if (accept(r, '\'')) return read_string(r, out);
  bool is_true = accept_word(r, "true");
  if (!is_true && !accept_word(r, "false")) return read_number(r, out);
  out->kind = TESSERA_BOOLEAN;
  out->integer = is_true;
  return TS_SUCCESS;
}

static ts_status read_attributes(reader *r, tessera_call *out) {
  size_t room = 1;
  tessera_attribute *list;
  for (const char *c = r->at; *c; c++) room += *c == '=';
  TS_TRY(TS_ARENA_ARRAY(r->arena, room, &list));
  out->attributes = list;
  if (accept(r, ')')) return TS_SUCCESS;
  do {
    tessera_attribute *a = &list[out->attribute_count];
    TS_TRY(read_name(r, &a->name));
    for (int32_t i = 0; i < out->attribute_count; i++)
      if (strcmp(list[i].name, a->name) == 0)
        return ts_error(TS_INVALID_ARGUMENT, "custom_call: attribute %s is given twice", a->name);
    if (!accept(r, '=')) return bad_text(r, "'='");
    TS_TRY(read_value(r, a));
    out->attribute_count++;
  } while (accept(r, ','));
  return accept(r, ')') ? TS_SUCCESS : bad_text(r, "')'");
}

ts_status ts_custom_parse(ts_arena *arena, const char *text, size_t length, tessera_call *out) {
  char *copy;
  TS_TRY(ts_arena_alloc(arena, length + 1, (void **)&copy));
  memcpy(copy, text, length);
  reader r = {arena, copy, copy};
  TS_TRY(read_name(&r, &out->target));
  if (accept(&r, '(')) TS_TRY(read_attributes(&r, out));
  skip_spaces(&r);
  return r.at == copy + length ? TS_SUCCESS : bad_text(&r, "the end");
}

#include "stablehlo/mlir_lex.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mlir_lexer_init(mlir_lexer *lexer, const char *text, size_t length) {
  *lexer = (mlir_lexer){.at = text, .end = text + length, .line_start = text, .line = 1};
}

static char peek(const mlir_lexer *lexer, size_t ahead) {
  return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void skip_blanks(mlir_lexer *lexer) {
  for (; lexer->at < lexer->end; lexer->at++) {
    if (lexer->at[0] == '/' && peek(lexer, 1) == '/')
      while (lexer->at < lexer->end && *lexer->at != '\n') lexer->at++;
    if (lexer->at == lexer->end) return;
    if (*lexer->at == '\n') {
      lexer->line++;
      lexer->line_start = lexer->at + 1;
    } else if (*lexer->at != ' ' && *lexer->at != '\t' && *lexer->at != '\r') {
      return;
    }
  }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_suffix(char c) { return is_word(c) || c == '.' || c == '$' || c == '-'; }

static size_t count_while(const mlir_lexer *lexer, size_t from, bool (*is)(char)) {
  while (is(peek(lexer, from))) from++;
  return from;
}

/* A number: digits, a point, an exponent with its sign; or digits after 0x. */
static size_t number_length(const mlir_lexer *lexer) {
  size_t n = peek(lexer, 0) == '-' || peek(lexer, 0) == '+';
  if (peek(lexer, n) == '0' && (peek(lexer, n + 1) == 'x' || peek(lexer, n + 1) == 'X') &&
      isxdigit((unsigned char)peek(lexer, n + 2))) {
    n += 2;
    while (isxdigit((unsigned char)peek(lexer, n))) n++;
    return n;
  }
  n = count_while(lexer, n, is_digit);
  if (peek(lexer, n) == '.' && is_digit(peek(lexer, n + 1)))
    n = count_while(lexer, n + 1, is_digit);
  else if (peek(lexer, n) == '.')
    n++;
  if (peek(lexer, n) == 'e' || peek(lexer, n) == 'E') {
    size_t sign = peek(lexer, n + 1) == '-' || peek(lexer, n + 1) == '+';
    if (is_digit(peek(lexer, n + 1 + sign))) n = count_while(lexer, n + 1 + sign, is_digit);
  }
  return n;
}

/* A value's number or name, and which result of an op: %3#1. */
static size_t value_length(const mlir_lexer *lexer) {
  size_t n = count_while(lexer, 1, is_suffix);
  if (peek(lexer, n) == '#' && is_digit(peek(lexer, n + 1))) n = count_while(lexer, n + 1, is_digit);
  return n;
}

/* Sets the text and length of a token in quotes; returns its number of bytes, or 0. */
static size_t lex_string(const mlir_lexer *lexer, size_t from, mlir_token *token) {
  size_t n = from + 1;
  while (lexer->at + n < lexer->end && lexer->at[n] != '"' && lexer->at[n] != '\n')
    n += lexer->at[n] == '\\' && lexer->at + n + 1 < lexer->end ? 2 : 1;
  if (lexer->at + n >= lexer->end || lexer->at[n] != '"') return 0;
  token->text = lexer->at + from + 1;
  token->length = n - from - 1;
  return n + 1;
}

static size_t prefixed(const mlir_lexer *lexer, mlir_token *token, mlir_token_kind kind, size_t length) {
  if (length < 2) return 0;
  token->kind = kind;
  token->text = lexer->at + 1;
  token->length = length - 1;
  return length;
}

/* The bytes that the token takes; 0 where there is no token but a character. */
static size_t lex(const mlir_lexer *lexer, mlir_token *token) {
  char c = *lexer->at, next = peek(lexer, 1);
  switch (c) {
  case '"': token->kind = MLIR_STRING; return lex_string(lexer, 0, token);
  case '%': return prefixed(lexer, token, MLIR_VALUE, value_length(lexer));
  case '#': return prefixed(lexer, token, MLIR_HASH, count_while(lexer, 1, is_suffix));
  case '^': return prefixed(lexer, token, MLIR_BLOCK, count_while(lexer, 1, is_suffix));
  case '@':
    token->kind = MLIR_SYMBOL;
    return next == '"' ? lex_string(lexer, 1, token)
                       : prefixed(lexer, token, MLIR_SYMBOL, count_while(lexer, 1, is_suffix));
  case '-':
    if (next != '>') break;
    token->kind = MLIR_ARROW;
    token->length = 2;
    return 2;
  default: break;
  }
  if (is_digit(c) || ((c == '-' || c == '+') && is_digit(next))) {
    token->kind = MLIR_NUMBER;
    return token->length = number_length(lexer);
  }
  if (!is_word(c)) return 0;
  token->kind = MLIR_WORD;
  size_t n = 0;
  while (is_word(peek(lexer, n)) || peek(lexer, n) == '$' || (peek(lexer, n) == '.' && is_word(peek(lexer, n + 1))))
    n++;
  return token->length = n;
}

mlir_token mlir_lexer_next(mlir_lexer *lexer) {
  skip_blanks(lexer);
  mlir_token token = {
      .kind = MLIR_END, .text = lexer->at, .line = lexer->line, .column = (size_t)(lexer->at - lexer->line_start) + 1};
  if (lexer->at == lexer->end) return token;
  size_t taken = lex(lexer, &token);
  if (taken == 0) {
    token.kind = MLIR_PUNCT;
    token.text = lexer->at;
    token.length = taken = 1;
  }
  lexer->at += taken;
  return token;
}

bool mlir_token_is(mlir_token token, const char *text) {
  return (token.kind == MLIR_WORD || token.kind == MLIR_PUNCT || token.kind == MLIR_ARROW ||
          token.kind == MLIR_STRING || token.kind == MLIR_SYMBOL || token.kind == MLIR_HASH) &&
         token.length == strlen(text) && memcmp(token.text, text, token.length) == 0;
}

bool mlir_tokens_equal(mlir_token a, mlir_token b) {
  return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* The token for messages: short, and without control characters. */
static void format_token(mlir_token token, char *out, size_t size) {
  size_t shown = token.length < size - 4 ? token.length : size - 4;
  for (size_t i = 0; i < shown; i++) out[i] = token.text[i] >= ' ' && token.text[i] <= '~' ? token.text[i] : '?';
  memcpy(out + shown, shown < token.length ? "..." : "\0\0\0", 4);
}

const char *mlir_place_format(mlir_token token, char *out, size_t size) {
  if (token.line)
    snprintf(out, size, "line %zu, column %zu", token.line, token.column);
  else
    snprintf(out, size, "byte %zu", token.column);
  return out;
}

ts_status(mlir_error)(ts_code code, mlir_token token, const char *format, ...) {
  char message[512], found[60];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  format_token(token, found, sizeof found);
  if (token.kind == MLIR_END) return ts_error(code, "%s: %s, found the end", MLIR_PLACE(token), message);
  return ts_error(code, "%s: %s, found '%s'", MLIR_PLACE(token), message, found);
}

#include "ir/lex.h"

#include "ir/syntax.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ts_lexer_init(ts_lexer *lexer, const char *text, size_t length) {
  *lexer = (ts_lexer){.at = text, .end = text + length, .line_start = text, .line = 1};
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_blanks(ts_lexer *lexer) {
  for (; lexer->at < lexer->end; lexer->at++) {
    char c = *lexer->at;
    if (c == '/' && lexer->end - lexer->at > 1 && lexer->at[1] == '/') {
      while (lexer->at < lexer->end && *lexer->at != '\n') lexer->at++;
      if (lexer->at == lexer->end) return;
      c = '\n';
    }
    if (c == '\n') {
      lexer->line++;
      lexer->line_start = lexer->at + 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

static const char *skip_name(const ts_lexer *lexer, const char *at) {
  while (at < lexer->end && ts_syntax_is_name(*at)) at++;
  return at;
}

/* Accepts more than valid numbers; the reader of the number, which knows its type, rejects the others. A sign belongs
 * to a number at its start and after a decimal's exponent letter. */
static const char *skip_number(const ts_lexer *lexer, const char *at) {
  const char *first = *at == '-' ? at + 1 : at;
  bool hexadecimal = lexer->end - first > 1 && first[0] == '0' && first[1] == 'x';
  for (at = first; at < lexer->end; at++) {
    bool exponent = !hexadecimal && at > first && (at[-1] == 'e' || at[-1] == 'E');
    if (!ts_syntax_is_name(*at) && !(exponent && (*at == '+' || *at == '-'))) break;
  }
  return at;
}

static ts_token_kind lex_string(const ts_lexer *lexer, ts_token *token) {
  const char *start = lexer->at + 1, *at = start;
  while (at < lexer->end && *at != '"' && *at != '\n') at++;
  token->text = start;
  token->length = (size_t)(at - start);
  return at < lexer->end && *at == '"' ? TS_TOKEN_STRING : TS_TOKEN_UNKNOWN;
}

/* The kind of the token at lexer->at; sets its text and length. */
static ts_token_kind lex(const ts_lexer *lexer, ts_token *token) {
  const char *at = lexer->at;
  char c = *at, following = lexer->end - at > 1 ? at[1] : '\0';
  token->length = 1;
  if (c == '"') return lex_string(lexer, token);
  if ((c == '%' || c == '@') && ts_syntax_is_name(following)) {
    token->text = at + 1;
    token->length = (size_t)(skip_name(lexer, at + 1) - (at + 1));
    return c == '%' ? TS_TOKEN_VALUE : TS_TOKEN_SYMBOL;
  }
  if (c == '-' && following == '>') {
    token->length = 2;
    return TS_TOKEN_ARROW;
  }
  if (is_digit(c) || (c == '-' && is_digit(following))) {
    token->length = (size_t)(skip_number(lexer, at) - at);
    return TS_TOKEN_NUMBER;
  }
  if (ts_syntax_is_name(c)) {
    token->length = (size_t)(skip_name(lexer, at) - at);
    return TS_TOKEN_NAME;
  }
  return c && strchr("(){}[],:=@", c) ? TS_TOKEN_PUNCT : TS_TOKEN_UNKNOWN;
}

ts_token ts_lexer_next(ts_lexer *lexer) {
  skip_blanks(lexer);
  ts_token token = {.kind = TS_TOKEN_END,
                    .text = lexer->at,
                    .line = lexer->line,
                    .column = (size_t)(lexer->at - lexer->line_start) + 1};
  if (lexer->at == lexer->end) return token;
  token.kind = lex(lexer, &token);
  lexer->at = token.text + token.length + (token.kind == TS_TOKEN_STRING);
  return token;
}

bool ts_token_is(ts_token token, ts_token_kind kind, const char *text) {
  return token.kind == kind && token.length == strlen(text) && memcmp(token.text, text, token.length) == 0;
}

/* The token for messages: short, and without control characters. */
static void format_token(ts_token token, char *out, size_t size) {
  size_t shown = token.length < size - 4 ? token.length : size - 4;
  for (size_t i = 0; i < shown; i++) out[i] = token.text[i] >= ' ' && token.text[i] <= '~' ? token.text[i] : '?';
  memcpy(out + shown, shown < token.length ? "..." : "\0\0\0", 4);
}

ts_status(ts_token_error)(ts_token token, const char *format, ...) {
  char message[512], found[40];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  format_token(token, found, sizeof found);
  if (token.kind == TS_TOKEN_END)
    return ts_error(TS_INVALID_ARGUMENT, "line %zu, column %zu: %s, found the end", token.line, token.column, message);
  return ts_error(TS_INVALID_ARGUMENT, "line %zu, column %zu: %s, found '%s'", token.line, token.column, message,
                  found);
}

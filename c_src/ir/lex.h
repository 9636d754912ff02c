/* The tokens of the text form. Internal to ir/. A lexer reads the caller's
 * text, which must outlive it and its tokens. */
#ifndef TS_IR_LEX_H
#define TS_IR_LEX_H

#include "base/status.h"

typedef enum ts_token_kind {
  TS_TOKEN_END,
  TS_TOKEN_NAME,   /* add, f32, true */
  TS_TOKEN_NUMBER, /* -12, 1.5e-3, 0x7fc00000 */
  TS_TOKEN_VALUE,  /* %3: the text is after the % */
  TS_TOKEN_SYMBOL, /* @main: the text is after the @ */
  TS_TOKEN_STRING, /* "...": the text is between the quotes */
  TS_TOKEN_ARROW,  /* -> */
  TS_TOKEN_PUNCT,  /* one of ( ) { } [ ] , : = @ */
  TS_TOKEN_UNKNOWN /* not a valid token */
} ts_token_kind;

typedef struct ts_token {
  ts_token_kind kind;
  const char *text;
  size_t length;
  size_t line, column; /* from 1, in bytes */
} ts_token;

typedef struct ts_lexer {
  const char *at, *end, *line_start;
  size_t line;
} ts_lexer;

void ts_lexer_init(ts_lexer *lexer, const char *text, size_t length);
/* Skips blanks and // comments. At the end it returns TS_TOKEN_END each time. */
ts_token ts_lexer_next(ts_lexer *lexer);

bool ts_token_is(ts_token token, ts_token_kind kind, const char *text);
/* "line 3, column 7: message, found 'x'". */
ts_status ts_token_error(ts_token token, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
#ifdef __clang_analyzer__
#define ts_token_error(...) ts_error_assume((ts_token_error)(__VA_ARGS__))
#endif

#endif

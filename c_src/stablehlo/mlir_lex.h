/* Tokens of MLIR. Internal to stablehlo/. A lexer reads the caller's text, which outlives it and its tokens. */
#ifndef TS_STABLEHLO_MLIR_LEX_H
#define TS_STABLEHLO_MLIR_LEX_H

#include "base/status.h"

typedef enum mlir_token_kind {
  MLIR_END,
  MLIR_WORD,   /* tensor, stablehlo.add, x */
  MLIR_NUMBER, /* -12, 1.5e-3, 0xFF800000 */
  MLIR_VALUE,  /* %3 or %3#1: the text is "3" or "3#1" */
  MLIR_SYMBOL, /* @main or @"main": the text is without @ and quotes */
  MLIR_HASH,   /* #loc3, #stablehlo.gather: the text is without # */
  MLIR_BLOCK,  /* ^bb0 */
  MLIR_STRING, /* "...": the text is between the quotes, with its backslashes */
  MLIR_ARROW,  /* -> */
  MLIR_PUNCT,  /* another character */
} mlir_token_kind;

typedef struct mlir_token {
  mlir_token_kind kind;
  const char *text;
  size_t length;
  size_t line, column; /* from 1, in bytes; line 0: of bytecode, and the column is the byte's number */
} mlir_token;

typedef struct mlir_lexer {
  const char *at, *end, *line_start;
  size_t line;
} mlir_lexer;

void mlir_lexer_init(mlir_lexer *lexer, const char *text, size_t length);
/* Skips blanks and comments. At the end it returns MLIR_END each time. */
mlir_token mlir_lexer_next(mlir_lexer *lexer);

bool mlir_token_is(mlir_token token, const char *text);
bool mlir_tokens_equal(mlir_token a, mlir_token b);
#define MLIR_PLACE_TEXT 64
/* "line 3, column 7", or "byte 12"; returns `out`. */
const char *mlir_place_format(mlir_token token, char *out, size_t size);
#define MLIR_PLACE(token) mlir_place_format((token), (char[MLIR_PLACE_TEXT]){0}, MLIR_PLACE_TEXT)
/* "line 3, column 7: message, found 'x'". */
ts_status mlir_error(ts_code code, mlir_token token, const char *format, ...)
    __attribute__((format(printf, 3, 4), returns_nonnull));
#ifdef __clang_analyzer__
#define mlir_error(...) ts_error_assume((mlir_error)(__VA_ARGS__))
#endif

#endif

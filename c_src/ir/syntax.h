/* Names and scalars, for both the printer and the parser, so that each is the other's inverse. Internal to ir/, except
 * for the scalars. Pure, thread-safe. */
#ifndef TS_IR_SYNTAX_H
#define TS_IR_SYNTAX_H

#include "ir/graph.h"

/* True for characters of a name that needs no quotes. */
bool ts_syntax_is_name(char c);

/* Appends two digits for each byte. */
void ts_syntax_print_hex(ts_text *out, const void *bytes, size_t count);
/* Reads `count` bytes from pairs of hexadecimal digits; false where one is none. */
bool ts_syntax_parse_hex(const char *text, size_t count, void *out);
/* Appends the shortest decimal that ts_scalar_parse reads back to the same bits; NaN and infinity as their bits in
 * hexadecimal. Independent of the locale. */
void ts_scalar_print(ts_text *out, ts_dtype type, ts_scalar value);
/* False when the text is not a number, or a number that the type cannot represent. Floats are rounded. */
bool ts_scalar_parse(ts_dtype type, const char *text, size_t length, ts_scalar *out);

#endif

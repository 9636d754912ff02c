/* What the printer and the parser share, so that each is the other's inverse:
 * the fields of attributes, the names of regions, the text of scalars. Internal
 * to ir/ but for the scalars. Pure, thread-safe. */
#ifndef TS_IR_SYNTAX_H
#define TS_IR_SYNTAX_H

#include "ir/graph.h"

typedef enum ts_field_type { TS_FIELD_DIMS, TS_FIELD_INT, TS_FIELD_UINT, TS_FIELD_BOOL } ts_field_type;

typedef struct ts_field {
  const char *name;
  ts_field_type type;
  size_t offset; /* in ts_attrs; of a ts_dims, int32_t, uint32_t or bool */
} ts_field;

/* What is written between braces, ended by a NULL name; a kind whose attributes are elsewhere
 * in the text (types, regions) has none. */
const ts_field *ts_syntax_fields(ts_attr_kind kind);

/* The names of the regions that an op holds, NULL where there are fewer. */
typedef struct ts_region_names {
  const char *names[2];
} ts_region_names;
ts_region_names ts_syntax_regions(ts_opcode code);

/* True for characters of a name that needs no quotes. */
bool ts_syntax_is_name(char c);

/* Appends two digits for each byte. */
void ts_syntax_print_hex(ts_text *out, const void *bytes, size_t count);
/* Appends the shortest decimal that ts_scalar_parse reads back to the same bits; NaN and
 * infinity as their bits in hexadecimal. Whatever the locale. */
void ts_scalar_print(ts_text *out, ts_dtype type, ts_scalar value);
/* False when the text is no number, or one that the type cannot hold. Floats are rounded. */
bool ts_scalar_parse(ts_dtype type, const char *text, size_t length, ts_scalar *out);

#endif

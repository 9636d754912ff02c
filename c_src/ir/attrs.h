/* The rows of attr.def, for code that treats all kinds alike: keys, text, terms, fuzzers. Pure, thread-safe. */
#ifndef TS_IR_ATTRS_H
#define TS_IR_ATTRS_H

#include "ir/graph.h"

typedef struct ts_attr_field {
  const char *name;
  ts_field_type type;
  uint32_t offset; /* in ts_attrs */
} ts_attr_field;

/* The fields of a kind in order, terminated by a NULL name. */
const ts_attr_field *ts_attr_fields(ts_attr_kind kind);

/* True for fields that the text writes as name = value between braces; it writes other fields in other places. */
static inline bool ts_field_is_in_braces(ts_field_type type) {
  switch (type) {
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES:
  case TS_FIELD_INT:
  case TS_FIELD_UINT:
  case TS_FIELD_BOOL: return true;
  case TS_FIELD_DTYPE:
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SCALAR:
  case TS_FIELD_BUFFER:
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: break;
  }
  return false;
}

static inline void *ts_attr_at(ts_attrs *attrs, const ts_attr_field *field) { return (char *)attrs + field->offset; }
static inline const void *ts_attr_in(const ts_attrs *attrs, const ts_attr_field *field) {
  return (const char *)attrs + field->offset;
}

/* Sets the kind's fields of `out` from `in`, with sets of axes sorted. `in` must have passed inference. */
void ts_attrs_canonicalize(ts_opcode code, const ts_attrs *in, ts_attrs *out);

/* Attributes as words: equal attributes have equal words. `out` has room for ts_attrs_max_words; returns how many
 * there are. The attributes' lists have no more than TS_MAX_RANK entries. */
#define TS_ATTRS_MAX_WORDS (2 + 5 * (1 + TS_MAX_RANK))
size_t ts_attrs_words(ts_attr_kind kind, const ts_attrs *attrs, uint64_t *out);
size_t ts_attrs_count_words(ts_attr_kind kind, const ts_attrs *attrs);
bool ts_attrs_equal(ts_attr_kind kind, const ts_attrs *a, const ts_attrs *b);

/* The buffer that the attributes of a literal or of a custom call hold; a graph has a reference to it. else NULL. */
ts_buffer *ts_attrs_buffer(ts_opcode code, const ts_attrs *attrs);

/* Writes the regions that attributes name; returns their number. */
size_t ts_attrs_regions(ts_opcode code, const ts_attrs *attrs, ts_region_id out[2]);

#endif

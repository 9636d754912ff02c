#include "ir/attrs.h"

#include <string.h>

/* ---- the table ---- */

#define TS_ATTRS(kind) static const ts_attr_field fields_##kind[] = {
#define TS_ATTR(path, name, type) {#name, TS_FIELD_##type, offsetof(ts_attrs, path name)},
#define TS_ATTRS_END(kind, member) \
  { 0 }                            \
  }                                \
  ;
#include "ir/attr.def"

/* A struct for each kind, for its size. */
#define TS_ATTRS(kind) typedef struct attrs_##kind {
#define TS_ATTR(path, name, type) TS_C_##type name;
#define TS_ATTRS_END(kind, member) \
  }                                \
  attrs_##kind;
#include "ir/attr.def"

static const ts_attr_field no_fields[] = {{0}};

static const struct {
  const ts_attr_field *fields;
  size_t size;
} kinds[] = {
    [TS_ATTR_NONE] = {no_fields, 0},
#define TS_ATTRS(kind) [TS_ATTR_##kind] = {fields_##kind, sizeof(attrs_##kind)},
#define TS_ATTR(path, name, type)
#define TS_ATTRS_END(kind, member)
#include "ir/attr.def"
};

const ts_attr_field *ts_attr_fields(ts_attr_kind kind) { return kinds[kind].fields; }
size_t ts_attrs_size(ts_attr_kind kind) { return kinds[kind].size; }

ts_attrs ts_op_copy_attrs(const ts_op *op) {
  ts_attrs attrs = {0};
  if (op->attrs) memcpy(&attrs, op->attrs, ts_attrs_size(ts_op_attr_kind(op->code)));
  return attrs;
}

/* ---- canonical form ---- */

static void put_sorted(ts_dims *out, const ts_dims *in) {
  out->rank = 0;
  for (int32_t i = 0; i < in->rank; i++) {
    int32_t at = out->rank++;
    for (; at > 0 && out->dims[at - 1] > in->dims[i]; at--) out->dims[at] = out->dims[at - 1];
    out->dims[at] = in->dims[i];
  }
}

static ts_scalar cut_to_width(ts_scalar value, ts_dtype dtype) {
  int bits = 8 * (int)ts_dtype_size(dtype);
  if (ts_dtype_bits(dtype) < 8) return ts_scalar_from_u64(dtype, value.bits);
  if (bits <= 64) value.words[1] = 0;
  if (bits < 64) value.bits &= (UINT64_C(1) << bits) - 1;
  return value;
}

static void put_regions(ts_opcode code, const ts_region_id *in, ts_region_id *out) {
  out[0] = in[0];
  out[1] = ts_op_region_count(code) > 1 ? in[1] : TS_NO_ID;
}

static void put_field(ts_opcode code, ts_field_type type, const void *in, void *out) {
  switch (type) {
  case TS_FIELD_AXES:
    if (code != TS_OP_TRANSPOSE) {
      put_sorted(out, in);
      return;
    }
    ts_shape_copy(out, in);
    return;
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS: ts_shape_copy(out, in); return;
  case TS_FIELD_DTYPE: *(ts_dtype *)out = *(const ts_dtype *)in; return;
  case TS_FIELD_INT: *(int32_t *)out = *(const int32_t *)in; return;
  case TS_FIELD_UINT: *(uint32_t *)out = *(const uint32_t *)in; return;
  case TS_FIELD_BOOL: *(bool *)out = *(const bool *)in; return;
  case TS_FIELD_SCALAR: *(ts_scalar *)out = *(const ts_scalar *)in; return;
  case TS_FIELD_BUFFER: *(ts_buffer **)out = *(ts_buffer *const *)in; return;
  case TS_FIELD_REGION: *(ts_region_id *)out = *(const ts_region_id *)in; return;
  case TS_FIELD_REGIONS: put_regions(code, in, out); return;
  }
}

void ts_attrs_canonicalize(ts_opcode code, const ts_attrs *in, ts_attrs *out) {
  ts_attr_kind kind = ts_op_attr_kind(code);
  for (const ts_attr_field *f = ts_attr_fields(kind); f->name; f++)
    put_field(code, f->type, ts_attr_in(in, f), ts_attr_at(out, f));
  if (kind == TS_ATTR_CONSTANT) out->constant.value = cut_to_width(out->constant.value, out->constant.dtype);
}

/* ---- keys ---- */

static size_t put_words(ts_field_type type, const void *in, uint64_t *out) {
  const ts_dims *dims = in;
  switch (type) {
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES:
    *out = (uint64_t)dims->rank;
    for (int32_t i = 0; i < dims->rank; i++) out[1 + i] = (uint64_t)dims->dims[i];
    return 1 + (size_t)dims->rank;
  case TS_FIELD_DTYPE: *out = *(const ts_dtype *)in; return 1;
  case TS_FIELD_INT: *out = (uint64_t) * (const int32_t *)in; return 1;
  case TS_FIELD_UINT: *out = *(const uint32_t *)in; return 1;
  case TS_FIELD_BOOL: *out = *(const bool *)in; return 1;
  case TS_FIELD_SCALAR: memcpy(out, in, sizeof(ts_scalar)); return sizeof(ts_scalar) / sizeof *out;
  case TS_FIELD_BUFFER: *out = (uintptr_t) * (ts_buffer *const *)in; return 1;
  case TS_FIELD_REGION: *out = *(const ts_region_id *)in; return 1;
  case TS_FIELD_REGIONS: *out = (uint64_t)((const ts_region_id *)in)[0] << 32 | ((const ts_region_id *)in)[1]; return 1;
  }
  return 0;
}

size_t ts_attrs_words(ts_attr_kind kind, const ts_attrs *attrs, uint64_t *out) {
  size_t count = 0;
  for (const ts_attr_field *f = ts_attr_fields(kind); f->name; f++)
    count += put_words(f->type, ts_attr_in(attrs, f), out + count);
  return count;
}

/* As many as put_words makes. */
static size_t count_words(ts_field_type type, const void *in) {
  switch (type) {
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: return 1 + (size_t)((const ts_dims *)in)->rank;
  case TS_FIELD_SCALAR: return sizeof(ts_scalar) / sizeof(uint64_t);
  case TS_FIELD_DTYPE:
  case TS_FIELD_INT:
  case TS_FIELD_UINT:
  case TS_FIELD_BOOL:
  case TS_FIELD_BUFFER:
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: return 1;
  }
  return 0;
}

size_t ts_attrs_count_words(ts_attr_kind kind, const ts_attrs *attrs) {
  size_t count = 0;
  for (const ts_attr_field *f = ts_attr_fields(kind); f->name; f++) count += count_words(f->type, ts_attr_in(attrs, f));
  return count;
}

bool ts_attrs_equal(ts_attr_kind kind, const ts_attrs *a, const ts_attrs *b) {
  uint64_t words_a[1 + TS_MAX_RANK], words_b[1 + TS_MAX_RANK];
  for (const ts_attr_field *f = ts_attr_fields(kind); f->name; f++) {
    size_t count = put_words(f->type, ts_attr_in(a, f), words_a);
    if (put_words(f->type, ts_attr_in(b, f), words_b) != count || memcmp(words_a, words_b, count * 8) != 0)
      return false;
  }
  return true;
}

ts_buffer *ts_attrs_buffer(ts_opcode code, const ts_attrs *attrs) {
  if (code == TS_OP_LITERAL) return attrs->literal.buffer;
  return code == TS_OP_CUSTOM_CALL ? attrs->custom.call : NULL;
}

/* ---- regions ---- */

static bool names_regions(ts_field_type type) {
  switch (type) {
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: return true;
  case TS_FIELD_DTYPE:
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES:
  case TS_FIELD_INT:
  case TS_FIELD_UINT:
  case TS_FIELD_BOOL:
  case TS_FIELD_SCALAR:
  case TS_FIELD_BUFFER: break;
  }
  return false;
}

/* The field that names regions; NULL when there is none. */
static const ts_attr_field *region_field(ts_opcode code) {
  const ts_attr_field *f = ts_attr_fields(ts_op_attr_kind(code));
  while (f->name && !names_regions(f->type)) f++;
  return f->name ? f : NULL;
}

size_t ts_attrs_regions(ts_opcode code, const ts_attrs *attrs, ts_region_id out[2]) {
  size_t count = ts_op_region_count(code);
  if (count > 0) memcpy(out, ts_attr_in(attrs, region_field(code)), count * sizeof *out);
  return count;
}

void ts_attrs_set_regions(ts_opcode code, ts_attrs *attrs, const ts_region_id regions[2]) {
  const ts_attr_field *field = region_field(code);
  if (field) put_field(code, field->type, regions, ts_attr_at(attrs, field));
}

size_t ts_op_regions(const ts_op *op, ts_region_id out[2]) { return ts_attrs_regions(op->code, op->attrs, out); }

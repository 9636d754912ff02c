#include "nif/nif_attrs.h"

#include "ir/attrs.h"

static ERL_NIF_TERM op_atoms[TS_OP_COUNT];

/* A map from atoms to opcodes: open addressing on the bits of the atom. */
enum { SLOTS = 512 };
static struct {
  ERL_NIF_TERM atom;
  ts_opcode code;
  bool used;
} slots[SLOTS];

_Static_assert(TS_OP_COUNT * 2 < SLOTS, "the table of opcodes is too full");

static size_t slot_of(ERL_NIF_TERM atom) { return (size_t)(atom * UINT64_C(0x9E3779B97F4A7C15) >> 55); }

void ts_nif_op_init(ErlNifEnv *env) {
  for (int i = 0; i < SLOTS; i++) slots[i].used = false;
  for (int code = 0; code < TS_OP_COUNT; code++) {
    op_atoms[code] = enif_make_atom(env, ts_op_name((ts_opcode)code));
    size_t i = slot_of(op_atoms[code]);
    while (slots[i].used) i = (i + 1) % SLOTS;
    slots[i].atom = op_atoms[code], slots[i].code = (ts_opcode)code, slots[i].used = true;
  }
}

ts_status ts_nif_get_opcode(ErlNifEnv *env, ERL_NIF_TERM term, ts_opcode *out) {
  for (size_t i = slot_of(term); slots[i].used; i = (i + 1) % SLOTS) {
    if (slots[i].atom != term) continue;
    *out = slots[i].code;
    return TS_SUCCESS;
  }
  return ts_nif_expected(env, "the name of an op", term);
}

ERL_NIF_TERM ts_nif_opcode(ts_opcode code) { return op_atoms[code]; }

/* ---- from terms ---- */

static ts_status get_axis(ErlNifEnv *env, ERL_NIF_TERM term, int32_t *out) {
  int axis;
  if (!enif_get_int(env, term, &axis)) return ts_nif_expected(env, "an axis", term);
  *out = axis;
  return TS_SUCCESS;
}

static ts_status get_region(ErlNifEnv *env, ERL_NIF_TERM term, ts_region_id *out) {
  unsigned id;
  if (!enif_get_uint(env, term, &id)) return ts_nif_expected(env, "a region", term);
  *out = id;
  return TS_SUCCESS;
}

/* Reads the value of a constant, whose type was read before. */
static ts_status get_scalar(ErlNifEnv *env, ERL_NIF_TERM term, ts_attrs *out) {
  ts_number number;
  if (!ts_nif_get_number(env, term, &number)) return ts_nif_expected(env, "a number", term);
  return ts_number_scalar(&number, out->constant.dtype, &out->constant.value);
}

static ts_status get_field(ErlNifEnv *env, ERL_NIF_TERM term, const ts_attr_field *field, ts_attrs *out) {
  void *at = ts_attr_at(out, field);
  switch (field->type) {
  case TS_FIELD_DTYPE: return ts_nif_get_dtype(env, term, at);
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE: return ts_nif_get_shape(env, term, at);
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: return ts_nif_get_dims(env, term, at);
  case TS_FIELD_INT: return get_axis(env, term, at);
  case TS_FIELD_BOOL: *(bool *)at = enif_is_identical(term, ts_atom.true_); return TS_SUCCESS;
  case TS_FIELD_SCALAR: return get_scalar(env, term, out);
  case TS_FIELD_REGION: return get_region(env, term, at);
  case TS_FIELD_UINT:
  case TS_FIELD_BUFFER:
  case TS_FIELD_REGIONS: break;
  }
  return ts_error(TS_INTERNAL, "attribute %s cannot be given as a term", field->name);
}

static int count_fields(ts_attr_kind kind) {
  int count = 0;
  for (const ts_attr_field *field = ts_attr_fields(kind); field->name; field++) count++;
  return count;
}

/* Ops that Erlang cannot name: the core adds them, or they have NIFs of their own. */
static bool is_internal(ts_opcode code) {
  ts_op_class op_class = ts_op_get_class(code);
  return op_class == TS_CLASS_CONTROL || code == TS_OP_PARAMETER || code == TS_OP_LITERAL;
}

ts_status ts_nif_get_attrs(ErlNifEnv *env, ts_opcode code, ERL_NIF_TERM term, ts_attrs *out) {
  ts_attr_kind kind = ts_op_attr_kind(code);
  const ERL_NIF_TERM *terms = &term;
  int given = 1;
  if (is_internal(code))
    return ts_error(TS_INVALID_ARGUMENT, "%s has no attributes that can be given as a term", ts_op_name(code));
  if (kind == TS_ATTR_NONE) return TS_SUCCESS; /* most eager calls */
  int count = count_fields(kind);
  if (count > 1 && !(enif_get_tuple(env, term, &given, &terms) && given == count))
    return ts_nif_expected(env, "the op's attributes", term);
  for (int i = 0; i < count; i++) TS_TRY(get_field(env, terms[i], &ts_attr_fields(kind)[i], out));
  return TS_SUCCESS;
}

/* ---- to terms ---- */

static ERL_NIF_TERM regions(ErlNifEnv *env, const ts_op *op) {
  ts_region_id ids[2];
  ERL_NIF_TERM terms[2];
  size_t count = ts_op_regions(op, ids);
  for (size_t i = 0; i < count; i++) terms[i] = enif_make_uint(env, ids[i]);
  return enif_make_list_from_array(env, terms, (unsigned)count);
}

static ERL_NIF_TERM make_field(ErlNifEnv *env, const ts_op *op, const ts_attr_field *field) {
  const void *at = ts_attr_in(op->attrs, field);
  switch (field->type) {
  case TS_FIELD_DTYPE: return ts_nif_dtype(*(const ts_dtype *)at);
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE: return ts_nif_shape(env, at);
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: return ts_nif_dims(env, at);
  case TS_FIELD_INT: return enif_make_int(env, *(const int32_t *)at);
  case TS_FIELD_UINT:
  case TS_FIELD_REGION: return enif_make_uint(env, *(const uint32_t *)at);
  case TS_FIELD_BOOL: return *(const bool *)at ? ts_atom.true_ : ts_atom.false_;
  case TS_FIELD_SCALAR: return ts_nif_number(env, op->attrs->constant.dtype, at);
  case TS_FIELD_REGIONS: return regions(env, op);
  case TS_FIELD_BUFFER: break; /* a literal's data is read as a tensor */
  }
  return enif_make_list(env, 0);
}

enum { MOST_FIELDS = 8 };

ERL_NIF_TERM ts_nif_attrs(ErlNifEnv *env, const ts_op *op) {
  ERL_NIF_TERM terms[MOST_FIELDS];
  ts_attr_kind kind = ts_op_attr_kind(op->code);
  int count = count_fields(kind);
  for (int i = 0; i < count && i < MOST_FIELDS; i++) terms[i] = make_field(env, op, &ts_attr_fields(kind)[i]);
  if (count == 0) return enif_make_list(env, 0);
  return count == 1 ? terms[0] : enif_make_tuple_from_array(env, terms, (unsigned)count);
}

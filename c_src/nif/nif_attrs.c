/* Opcodes and attributes, from terms and back. */
#include "nif/nif_op.h"

#include <string.h>

static ERL_NIF_TERM op_atoms[TS_OP_COUNT];

/* From atoms to opcodes: open addressing on the bits of the atom. */
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

static ts_status get_fields(ErlNifEnv *env, ERL_NIF_TERM term, int wanted, const ERL_NIF_TERM **out) {
  int count;
  if (enif_get_tuple(env, term, &count, out) && count == wanted) return TS_SUCCESS;
  return ts_nif_expected(env, "the op's attributes", term);
}

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

static ts_status get_constant(ErlNifEnv *env, const ERL_NIF_TERM *f, ts_attrs *out) {
  ts_number number;
  TS_TRY(ts_nif_get_dtype(env, f[0], &out->constant.dtype));
  TS_TRY(ts_nif_get_shape(env, f[1], &out->constant.shape));
  if (!ts_nif_get_number(env, f[2], &number)) return ts_nif_expected(env, "a number", f[2]);
  return ts_number_scalar(&number, out->constant.dtype, &out->constant.value);
}

static ts_status get_arg(ErlNifEnv *env, const ERL_NIF_TERM *f, ts_attrs *out) {
  TS_TRY(get_axis(env, f[0], &out->arg.axis));
  out->arg.high = enif_is_identical(f[1], ts_atom.true_);
  return ts_nif_get_dtype(env, f[2], &out->arg.dtype);
}

static ts_status get_three(ErlNifEnv *env, const ERL_NIF_TERM *f, ts_dims *a, ts_dims *b, ts_dims *c) {
  TS_TRY(ts_nif_get_dims(env, f[0], a));
  TS_TRY(ts_nif_get_dims(env, f[1], b));
  return ts_nif_get_dims(env, f[2], c);
}

ts_status ts_nif_get_attrs(ErlNifEnv *env, ts_opcode code, ERL_NIF_TERM term, ts_attrs *out) {
  const ERL_NIF_TERM *f;
  ts_attr_kind kind = ts_op_attr_kind(code);
  memset(out, 0, ts_attrs_size(kind)); /* the rest is other kinds' */
  switch (kind) {
  case TS_ATTR_NONE: return TS_SUCCESS;
  case TS_ATTR_CONSTANT: TS_TRY(get_fields(env, term, 3, &f)); return get_constant(env, f, out);
  case TS_ATTR_IOTA:
    TS_TRY(get_fields(env, term, 3, &f));
    TS_TRY(ts_nif_get_dtype(env, f[0], &out->iota.dtype));
    TS_TRY(ts_nif_get_shape(env, f[1], &out->iota.shape));
    return get_axis(env, f[2], &out->iota.axis);
  case TS_ATTR_SHAPED:
    TS_TRY(get_fields(env, term, 2, &f));
    TS_TRY(ts_nif_get_dtype(env, f[0], &out->shaped.dtype));
    return ts_nif_get_shape(env, f[1], &out->shaped.shape);
  case TS_ATTR_DTYPE: return ts_nif_get_dtype(env, term, &out->dtype);
  case TS_ATTR_SHAPE: return ts_nif_get_shape(env, term, &out->shape);
  case TS_ATTR_BROADCAST:
    TS_TRY(get_fields(env, term, 2, &f));
    TS_TRY(ts_nif_get_shape(env, f[0], &out->broadcast.shape));
    return ts_nif_get_dims(env, f[1], &out->broadcast.axes);
  case TS_ATTR_AXES: return ts_nif_get_dims(env, term, &out->axes);
  case TS_ATTR_AXIS: return get_axis(env, term, &out->axis);
  case TS_ATTR_SLICE:
    TS_TRY(get_fields(env, term, 3, &f));
    return get_three(env, f, &out->slice.start, &out->slice.limit, &out->slice.stride);
  case TS_ATTR_PAD:
    TS_TRY(get_fields(env, term, 3, &f));
    return get_three(env, f, &out->pad.low, &out->pad.high, &out->pad.interior);
  case TS_ATTR_REDUCE:
    TS_TRY(get_fields(env, term, 2, &f));
    TS_TRY(ts_nif_get_dims(env, f[0], &out->reduce.axes));
    return get_region(env, f[1], &out->reduce.region);
  case TS_ATTR_ARG: TS_TRY(get_fields(env, term, 3, &f)); return get_arg(env, f, out);
  case TS_ATTR_SCAN:
    TS_TRY(get_fields(env, term, 2, &f));
    out->scan.reverse = enif_is_identical(f[1], ts_atom.true_);
    return get_axis(env, f[0], &out->scan.axis);
  case TS_ATTR_DOT:
    TS_TRY(get_fields(env, term, 4, &f));
    TS_TRY(get_three(env, f, &out->dot.lhs_contract, &out->dot.lhs_batch, &out->dot.rhs_contract));
    return ts_nif_get_dims(env, f[3], &out->dot.rhs_batch);
  case TS_ATTR_PARAMETER:
  case TS_ATTR_LITERAL:
  case TS_ATTR_REGIONS:
  case TS_ATTR_FUSION: break;
  }
  return ts_error(TS_INVALID_ARGUMENT, "%s has no attributes that can be given as a term", ts_op_name(code));
}

/* ---- to terms ---- */

static ERL_NIF_TERM boolean(bool value) { return value ? ts_atom.true_ : ts_atom.false_; }

static ERL_NIF_TERM regions(ErlNifEnv *env, const ts_op *op) {
  ts_region_id ids[2];
  ERL_NIF_TERM terms[2];
  size_t count = ts_op_regions(op, ids);
  for (size_t i = 0; i < count; i++) terms[i] = enif_make_uint(env, ids[i]);
  return enif_make_list_from_array(env, terms, (unsigned)count);
}

ERL_NIF_TERM ts_nif_attrs(ErlNifEnv *env, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  switch (ts_op_attr_kind(op->code)) {
  case TS_ATTR_CONSTANT:
    return enif_make_tuple3(env, ts_nif_dtype(a->constant.dtype), ts_nif_shape(env, &a->constant.shape),
                            ts_nif_number(env, a->constant.dtype, &a->constant.value));
  case TS_ATTR_IOTA:
    return enif_make_tuple3(env, ts_nif_dtype(a->iota.dtype), ts_nif_shape(env, &a->iota.shape),
                            enif_make_int(env, a->iota.axis));
  case TS_ATTR_SHAPED: return enif_make_tuple2(env, ts_nif_dtype(a->shaped.dtype), ts_nif_shape(env, &a->shaped.shape));
  case TS_ATTR_DTYPE: return ts_nif_dtype(a->dtype);
  case TS_ATTR_SHAPE: return ts_nif_shape(env, &a->shape);
  case TS_ATTR_BROADCAST:
    return enif_make_tuple2(env, ts_nif_shape(env, &a->broadcast.shape), ts_nif_dims(env, &a->broadcast.axes));
  case TS_ATTR_AXES: return ts_nif_dims(env, &a->axes);
  case TS_ATTR_AXIS: return enif_make_int(env, a->axis);
  case TS_ATTR_SLICE:
    return enif_make_tuple3(env, ts_nif_dims(env, &a->slice.start), ts_nif_dims(env, &a->slice.limit),
                            ts_nif_dims(env, &a->slice.stride));
  case TS_ATTR_PAD:
    return enif_make_tuple3(env, ts_nif_dims(env, &a->pad.low), ts_nif_dims(env, &a->pad.high),
                            ts_nif_dims(env, &a->pad.interior));
  case TS_ATTR_REDUCE:
    return enif_make_tuple2(env, ts_nif_dims(env, &a->reduce.axes), enif_make_uint(env, a->reduce.region));
  case TS_ATTR_ARG:
    return enif_make_tuple3(env, enif_make_int(env, a->arg.axis), boolean(a->arg.high), ts_nif_dtype(a->arg.dtype));
  case TS_ATTR_SCAN: return enif_make_tuple2(env, enif_make_int(env, a->scan.axis), boolean(a->scan.reverse));
  case TS_ATTR_DOT:
    return enif_make_tuple4(env, ts_nif_dims(env, &a->dot.lhs_contract), ts_nif_dims(env, &a->dot.lhs_batch),
                            ts_nif_dims(env, &a->dot.rhs_contract), ts_nif_dims(env, &a->dot.rhs_batch));
  case TS_ATTR_REGIONS: return regions(env, op);
  default: return enif_make_list(env, 0);
  }
}

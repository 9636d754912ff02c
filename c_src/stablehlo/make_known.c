/* Integers that are known while a program is read: sizes, and the results of ops on sizes. */
#include "stablehlo/make.h"

/* Ops behind a number. */
enum { MOST_STEPS = 200 };

typedef struct known {
  const make_call *m;
  int steps; /* ops around this one */
} known;

/* Operands of an op, at most three, whose numbers are known. */
typedef struct inputs {
  const ts_dims *x[3];
} inputs;

static ts_status find_known(const known *k, ts_value_id id, const ts_dims **out);

static int64_t wrapped(ts_dtype type, int64_t number) {
  return ts_scalar_to_s64(type, ts_scalar_from_s64(type, number));
}

/* The number at a place, or the only one. */
static int64_t at(const ts_dims *x, int32_t i) { return x->dims[x->rank == 1 ? 0 : i]; }

static uint64_t bits(int64_t x) { return (uint64_t)x; }

/* Of two numbers. False where the result is not known, as of a division by zero. */
static bool combine(ts_opcode code, int64_t x, int64_t y, int64_t *out) {
  const bool divides = y != 0 && (x != INT64_MIN || y != -1);
  *out = 0;
  if (code == TS_OP_ADD)
    *out = (int64_t)(bits(x) + bits(y));
  else if (code == TS_OP_SUBTRACT)
    *out = (int64_t)(bits(x) - bits(y));
  else if (code == TS_OP_MULTIPLY)
    *out = (int64_t)(bits(x) * bits(y));
  else if (code == TS_OP_QUOTIENT)
    *out = divides ? x / y : 0;
  else if (code == TS_OP_REMAINDER)
    *out = divides ? x % y : 0;
  else if (code == TS_OP_MIN)
    *out = x < y ? x : y;
  else if (code == TS_OP_MAX)
    *out = x > y ? x : y;
  else if (code == TS_OP_AND)
    *out = x & y;
  else if (code == TS_OP_OR)
    *out = x | y;
  else if (code == TS_OP_XOR)
    *out = x ^ y;
  else if (code == TS_OP_EQUAL)
    *out = x == y;
  else if (code == TS_OP_NOT_EQUAL)
    *out = x != y;
  else if (code == TS_OP_GREATER)
    *out = x > y;
  else if (code == TS_OP_LESS)
    *out = x < y;
  else if (code == TS_OP_GREATER_EQUAL)
    *out = x >= y;
  else if (code == TS_OP_LESS_EQUAL)
    *out = x <= y;
  else
    return false;
  return divides || (code != TS_OP_QUOTIENT && code != TS_OP_REMAINDER);
}

/* Of one number. */
static bool change(ts_opcode code, int64_t x, int64_t *out) {
  if (code == TS_OP_NEGATE)
    *out = (int64_t)(0 - bits(x));
  else if (code == TS_OP_ABS)
    *out = x < 0 ? (int64_t)(0 - bits(x)) : x;
  else if (code == TS_OP_SIGN)
    *out = (x > 0) - (x < 0);
  else if (code == TS_OP_NOT)
    *out = ~x;
  else if (code == TS_OP_CONVERT || code == TS_OP_RESHAPE)
    *out = x;
  else
    return false;
  return true;
}

static int64_t limit(int64_t x, int64_t low, int64_t high) {
  const int64_t raised = x < low ? low : x;
  return raised > high ? high : raised;
}

/* Elementwise ops, and ops that keep the order of elements. */
static bool compute(const ts_op *op, const inputs *in, ts_dims *out) {
  for (int32_t i = 0; i < out->rank; i++) {
    int64_t *to = &out->dims[i];
    if (op->code == TS_OP_SELECT)
      *to = at(in->x[0], i) ? at(in->x[1], i) : at(in->x[2], i);
    else if (op->code == TS_OP_CLAMP)
      *to = limit(at(in->x[0], i), at(in->x[1], i), at(in->x[2], i));
    else if ((op->operand_count == 1 && !change(op->code, at(in->x[0], i), to)) ||
             (op->operand_count == 2 && !combine(op->code, at(in->x[0], i), at(in->x[1], i), to)))
      return false;
  }
  return true;
}

/* Which element of the operand an element of the result is. */
static int32_t source_of(const ts_op *op, const ts_shape *from, const ts_shape *to, int32_t element) {
  int64_t strides[TS_MAX_RANK], place = 0, rest = element;
  ts_shape_strides(from, strides);
  for (int32_t d = to->rank - 1; d >= 0; d--) {
    const int64_t index = rest % to->dims[d];
    rest /= to->dims[d];
    if (op->code == TS_OP_SLICE)
      place += (op->attrs->slice.start.dims[d] + index * op->attrs->slice.stride.dims[d]) * strides[d];
    for (int32_t a = 0; op->code == TS_OP_BROADCAST && a < from->rank; a++)
      if (op->attrs->broadcast.axes.dims[a] == d && from->dims[a] != 1) place += index * strides[a];
  }
  return (int32_t)place;
}

static ts_status concatenated(const known *k, const ts_op *op, ts_dims *out, bool *out_known) {
  out->rank = 0;
  *out_known = ts_graph_value(k->m->r->graph, op->first_result)->shape->rank == 1 || op->attrs->axis == 0;
  for (uint32_t i = 0; i < op->operand_count && *out_known; i++) {
    const ts_dims *part;
    TS_TRY(find_known(k, op->operands[i], &part));
    *out_known = part != NULL && out->rank + part->rank <= TS_MAX_RANK;
    for (int32_t j = 0; *out_known && j < part->rank; j++) out->dims[out->rank++] = part->dims[j];
  }
  return TS_SUCCESS;
}

static ts_status evaluate(const known *k, const ts_value *value, ts_dims *out, bool *out_known) {
  const ts_graph *graph = k->m->r->graph;
  const ts_op *op = ts_graph_op(graph, value->op);
  inputs in = {{0}};
  *out_known = false;
  if (op->code == TS_OP_CONSTANT || op->code == TS_OP_LITERAL || op->code == TS_OP_IOTA) {
    *out_known = op->code != TS_OP_IOTA || value->shape->rank == 1;
    for (int32_t i = 0; i < out->rank; i++) {
      const char *data = op->code == TS_OP_LITERAL ? op->attrs->literal.buffer->data : NULL;
      if (op->code == TS_OP_IOTA)
        out->dims[i] = i;
      else if (data)
        out->dims[i] = ts_scalar_to_s64(value->dtype,
                                        ts_scalar_load(value->dtype, data + (size_t)i * ts_dtype_size(value->dtype)));
      else
        out->dims[i] = ts_scalar_to_s64(value->dtype, op->attrs->constant.value);
    }
    return TS_SUCCESS;
  }
  if (op->code == TS_OP_CONCATENATE) return concatenated(k, op, out, out_known);
  if (op->operand_count < 1 || op->operand_count > 3 || op->result_count != 1) return TS_SUCCESS;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    TS_TRY(find_known(k, op->operands[i], &in.x[i]));
    if (!in.x[i]) return TS_SUCCESS;
  }
  if (op->code == TS_OP_SLICE || op->code == TS_OP_BROADCAST) {
    const ts_shape *from = ts_graph_value(graph, op->operands[0])->shape;
    for (int32_t i = 0; i < out->rank; i++) out->dims[i] = in.x[0]->dims[source_of(op, from, value->shape, i)];
    *out_known = true;
  } else {
    *out_known = compute(op, &in, out);
  }
  for (int32_t i = 0; i < out->rank; i++) out->dims[i] = wrapped(value->dtype, out->dims[i]);
  return TS_SUCCESS;
}

/* NULL when they are not known. Known numbers are kept for the next question. */
static ts_status find_known(const known *k, ts_value_id id, const ts_dims **out) {
  make_state *r = k->m->r;
  const ts_value value = *ts_graph_value(r->graph, id);
  ts_dims numbers = {.rank = 0}, *kept;
  bool is_known;
  *out = NULL;
  if (value.op == TS_NO_ID || !ts_dtype_is_integer(value.dtype)) return TS_SUCCESS;
  const int64_t elements = ts_shape_elements(value.shape);
  if (elements > TS_MAX_RANK || k->steps == MOST_STEPS) return TS_SUCCESS;
  *out = ts_map_get(&r->known, &id, sizeof id);
  if (*out) return TS_SUCCESS;
  numbers.rank = (int32_t)elements;
  TS_TRY(evaluate(&(known){k->m, k->steps + 1}, &value, &numbers, &is_known));
  if (!is_known) return TS_SUCCESS;
  TS_TRY(ts_arena_copy(&r->arena, &numbers, ts_shape_size(&numbers), (void **)&kept));
  *out = kept;
  return ts_map_put(&r->known, &id, sizeof id, kept);
}

ts_status make_find_known(const make_call *m, ts_value_id id, const ts_dims **out) {
  return find_known(&(known){m, 0}, id, out);
}

ts_status make_known(const make_call *m, size_t operand, ts_dims *out) {
  const ts_dims *found = NULL;
  if (operand >= m->op->operand_count) return make_count_operands(m, operand + 1);
  TS_TRY(make_find_known(m, m->operands[operand].id, &found));
  if (!found) return make_error(m, TS_UNIMPLEMENTED, "operand %zu is not known while the program is read", operand);
  ts_shape_copy(out, found);
  return TS_SUCCESS;
}

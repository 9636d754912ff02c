#include "jit/kernel.h"

#include "ir/combiner.h"
#include "jit/interleave.h"
#include "jit/loop/loop.h"
#include "jit/loop/loop_plan.h"

#include <string.h>

static const char *column_names[] = {"\n",        " wide\n",  " low\n",   " dense\n", " long\n",
                                     " search\n", " parts\n", " apart\n", " blocks\n"};
static const char *kind_names[] = {"map", "tile", "row", "col", "interleaved", "joined"};

const char *ts_kernel_kind_name(ts_kernel_kind kind) { return kind_names[kind]; }

/* ---- check ---- */

static ts_status bad(const char *what, int32_t id, const char *why) {
  return ts_error(TS_INVALID_ARGUMENT, "kernel: %s %d: %s", what, id, why);
}

static bool is_packed(const ts_kernel_desc *d, const ts_kernel_operand *o) {
  return ts_stride_is_group(o->stride[d->rank - 1]);
}

/* True where a stride may be one element. */
static bool unit_allowed(const ts_kernel_desc *d, const ts_kernel_operand *o, int32_t dim, bool is_input) {
  if (dim == d->rank - 2 && is_packed(d, o)) return true;
  return dim == d->rank - 1 || (is_input && d->kind == TS_KERNEL_TILE && dim == ts_kernel_row_dim(d) - 1);
}

/* Of an operand of an INTERLEAVED: groups one behind the other, or a vector of each member. */
static ts_status check_members(const ts_kernel_desc *d, const ts_kernel_operand *o, bool is_input, int32_t id) {
  const char *what = is_input ? "input" : "output";
  const uint8_t last = o->stride[d->rank - 1], member = o->stride[d->rank - 2];
  if (ts_dtype_size(o->dtype) > 8) return bad(what, id, "has more than 8 bytes");
  if (last == TS_STRIDE_GROUP_DOWN && !is_input) return bad(what, id, "runs downwards");
  if (!is_packed(d, o)) {
    bool fits = last == TS_STRIDE_UNIT || (is_input && last == TS_STRIDE_ZERO);
    return fits ? TS_SUCCESS : bad(what, id, "has groups apart from each other");
  }
  bool fits = member == TS_STRIDE_UNIT || (is_input && member == TS_STRIDE_DOWN);
  return fits ? TS_SUCCESS : bad(what, id, "has members apart from each other");
}

/* Of an operand of a JOINED: results of rows lie one behind the other. */
static ts_status check_joined(const ts_kernel_desc *d, const ts_kernel_operand *o, bool is_input, int32_t id) {
  const char *what = is_input ? "input" : "output";
  const int32_t row = ts_kernel_row_dim(d);
  int32_t dense = 1;
  if (ts_dtype_size(o->dtype) > 8) return bad(what, id, "has more than 8 bytes");
  for (int32_t i = d->rank - 1; i >= row; i--) {
    if (o->stride[i] == TS_STRIDE_UNIT || o->stride[i] == TS_STRIDE_DOWN)
      return bad(what, id, "has a distance that is not a number");
    if (!is_input && (o->stride[i] != TS_STRIDE_NEAR || o->step[i] != dense))
      return bad(what, id, "has points apart from each other");
    dense *= i > row ? d->few[i - row - 1] : 1;
  }
  return TS_SUCCESS;
}

/* Of an operand of a TILE: the dims of a row are one for it, but for one whose lines are transposed. */
static ts_status check_tile(const ts_kernel_desc *d, const ts_kernel_operand *o, bool is_input, int32_t id) {
  const int32_t row = ts_kernel_row_dim(d), last = d->rank - 1;
  if (is_input && o->stride[row - 1] == TS_STRIDE_UNIT && o->stride[last] == TS_STRIDE_ANY) return TS_SUCCESS;
  for (int32_t i = row; i < last; i++)
    if ((o->stride[i] == TS_STRIDE_ZERO) != (o->stride[last] == TS_STRIDE_ZERO))
      return bad(is_input ? "input" : "output", id, "has a row that is not one");
  return TS_SUCCESS;
}

static ts_status check_type(const char *what, int32_t id, ts_dtype type) {
  if (ts_dtype_has_kernels(type)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "kernel: %s %d: no kernel of type %s", what, id, ts_dtype_name(type));
}

static ts_status check_operand(const ts_kernel_desc *d, const ts_kernel_operand *o, bool is_input, int32_t id) {
  const char *what = is_input ? "input" : "output";
  TS_TRY(check_type(what, id, o->dtype));
  for (int32_t i = 0; i < d->rank; i++) {
    const uint8_t stride = o->stride[i];
    if (stride > TS_STRIDE_NEAR) return bad(what, id, "unknown stride class");
    if (stride == TS_STRIDE_NEAR && !ts_kernel_near_allowed(d, o, i, is_input))
      return bad(what, id, "has known distances");
    if (stride == TS_STRIDE_TURN && (d->kind != TS_KERNEL_ROW || d->members == 0 || i != d->rank - 1))
      return bad(what, id, "has columns");
    if (ts_stride_is_group(stride) && (d->kind != TS_KERNEL_INTERLEAVED || i != d->rank - 1))
      return bad(what, id, "has groups");
    bool unit = stride == TS_STRIDE_UNIT, down = stride == TS_STRIDE_DOWN;
    bool may_go_down = is_input && i == (is_packed(d, o) ? d->rank - 2 : d->rank - 1);
    if (down && !may_go_down) return bad(what, id, "runs downwards");
    if (unit && !unit_allowed(d, o, i, is_input)) return bad(what, id, "unit stride on an outer dim");
  }
  if (d->kind == TS_KERNEL_JOINED) return check_joined(d, o, is_input, id);
  if (d->kind == TS_KERNEL_TILE) return check_tile(d, o, is_input, id);
  return d->kind == TS_KERNEL_INTERLEAVED ? check_members(d, o, is_input, id) : TS_SUCCESS;
}

static ts_status check_index(const ts_kernel_desc *d, int32_t id) {
  for (int32_t i = 0; i < d->rank; i++) {
    if (d->indices[id].stride[i] > TS_STRIDE_ANY) return bad("index", id, "unknown stride class");
    if (d->indices[id].stride[i] == TS_STRIDE_UNIT && i != d->rank - 1)
      return bad("index", id, "unit step on an outer dim");
  }
  return TS_SUCCESS;
}

static bool is_node(int32_t node, int32_t limit) { return node >= 0 && node < limit; }

static ts_dtype type_of(const ts_kernel_desc *d, int32_t node) { return d->nodes[node].dtype; }

/* Other ops on small types are computed in wider ones (pass/widen.c). */
static bool moves_or_converts(ts_opcode op) { return op == TS_OP_SELECT || op == TS_OP_CONVERT || op == TS_OP_BITCAST; }

static bool op_types_fit(const ts_kernel_desc *d, const ts_kernel_node *n) {
  ts_dtype a = type_of(d, n->a), b = n->b >= 0 ? type_of(d, n->b) : a, c = n->c >= 0 ? type_of(d, n->c) : b;
  bool moves = ts_op_get_class(n->op) == TS_CLASS_COMPLEX || n->op == TS_OP_SELECT;
  if (!moves && (ts_dtype_is_complex(a) || ts_dtype_is_complex(n->dtype))) return false;
  if (ts_dtype_is_small(a) && !moves_or_converts(n->op)) return false;
  switch (ts_op_get_class(n->op)) {
  case TS_CLASS_UNARY_FLOAT: return ts_dtype_is_float(a) && n->dtype == a;
  case TS_CLASS_UNARY_INTEGER: return ts_dtype_is_integer(a) && n->dtype == a;
  case TS_CLASS_UNARY: return n->dtype == a;
  case TS_CLASS_PREDICATE: return n->dtype == TS_U8;
  case TS_CLASS_COMPLEX:
    if (n->op == TS_OP_COMPLEX) return a == b && ts_dtype_is_complex(n->dtype) && a == ts_dtype_part(n->dtype);
    return ts_dtype_is_complex(a) && n->dtype == ts_dtype_part(a);
  case TS_CLASS_BINARY: return a == b && n->dtype == a;
  case TS_CLASS_BINARY_FLOAT: return a == b && n->dtype == a && ts_dtype_is_float(a);
  case TS_CLASS_BINARY_INTEGER: return a == b && n->dtype == a && ts_dtype_is_integer(a);
  case TS_CLASS_COMPARE: return a == b && n->dtype == TS_U8;
  case TS_CLASS_CONVERT: return n->op == TS_OP_CONVERT || ts_dtype_bits(a) == ts_dtype_bits(n->dtype);
  case TS_CLASS_SELECT: return a == TS_U8 && b == c && n->dtype == b;
  case TS_CLASS_CLAMP: return a == b && b == c && n->dtype == a;
  case TS_CLASS_SOURCE:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  return false;
}

static ts_status check_op(const ts_kernel_desc *d, int32_t id) {
  const ts_kernel_node *n = &d->nodes[id];
  if (n->op >= TS_OP_COUNT || !ts_op_is_elementwise(n->op)) return bad("node", id, "not an elementwise op");
  int32_t operands[3] = {n->a, n->b, n->c};
  for (int i = 0; i < 3; i++) {
    bool used = i < ts_op_operands(n->op);
    if (used && !is_node(operands[i], id)) return bad("node", id, "operand is not an earlier node");
    if (!used && operands[i] != -1) return bad("node", id, "too many operands");
  }
  return op_types_fit(d, n) ? TS_SUCCESS : bad("node", id, "types do not fit the op");
}

static ts_status check_reduce(const ts_kernel_desc *d, int32_t id) {
  const ts_kernel_node *n = &d->nodes[id];
  if (d->kind == TS_KERNEL_MAP || d->kind == TS_KERNEL_TILE || d->kind == TS_KERNEL_JOINED)
    return bad("node", id, "reduction outside row, col and interleaved");
  if (!is_node(n->a, id)) return bad("node", id, "operand is not an earlier node");
  if (ts_dtype_is_complex(type_of(d, n->a))) return bad("node", id, "reduces complex numbers");
  if (n->kind == TS_NODE_ARG) {
    bool fits = (n->op == TS_OP_ARGMAX || n->op == TS_OP_ARGMIN) && ts_dtype_is_integer(n->dtype);
    return fits ? TS_SUCCESS : bad("node", id, "not an argmax or argmin");
  }
  const ts_combiner *by = ts_combiner_of(n->op);
  if (!by || ts_op_get_class(n->op) != TS_CLASS_REDUCE) return bad("node", id, "not a reduction");
  return n->dtype == (by->logical ? TS_U8 : type_of(d, n->a)) ? TS_SUCCESS : bad("node", id, "types do not fit the op");
}

static bool is_index_scalar(const ts_kernel_desc *d, int32_t scalar) {
  return scalar >= 0 && scalar < d->scalar_count && d->scalars[scalar] == TS_S64;
}

static ts_status check_gather(const ts_kernel_desc *d, int32_t id) {
  const ts_kernel_node *n = &d->nodes[id];
  if (d->kind == TS_KERNEL_INTERLEAVED) return bad("node", id, "gathers members");
  if (d->kind == TS_KERNEL_JOINED) return bad("node", id, "gathers points of joined rows");
  if (!is_node(n->slot, d->input_count) || d->inputs[n->slot].dtype != n->dtype) return bad("node", id, "bad input");
  if (!is_node(n->a, id) || !ts_dtype_is_integer(type_of(d, n->a))) return bad("node", id, "bad indices");
  bool scalars = is_index_scalar(d, n->b) && is_index_scalar(d, n->c);
  return scalars ? TS_SUCCESS : bad("node", id, "limit and step must be s64 scalars");
}

static ts_status check_node(const ts_kernel_desc *d, int32_t id) {
  const ts_kernel_node *n = &d->nodes[id];
  TS_TRY(check_type("node", id, n->dtype));
  switch (n->kind) {
  case TS_NODE_LOAD:
    if (is_node(n->slot, d->input_count) && d->inputs[n->slot].dtype == n->dtype) return TS_SUCCESS;
    return bad("node", id, "no input of that number and type");
  case TS_NODE_SCALAR:
    if (is_node(n->slot, d->scalar_count) && d->scalars[n->slot] == n->dtype) return TS_SUCCESS;
    return bad("node", id, "no scalar of that number and type");
  case TS_NODE_INDEX: return is_node(n->slot, d->index_count) ? TS_SUCCESS : bad("node", id, "no index of that number");
  case TS_NODE_GATHER: return check_gather(d, id);
  case TS_NODE_OP: return check_op(d, id);
  case TS_NODE_REDUCE:
  case TS_NODE_ARG: return check_reduce(d, id);
  }
  return bad("node", id, "unknown kind");
}

/* A value is stored where it varies: a row's value once for each row, unless the output repeats it along the row. */
static ts_status check_output(const ts_kernel_desc *d, int32_t id) {
  const ts_kernel_output *o = &d->outputs[id];
  TS_TRY(check_operand(d, &o->operand, false, id));
  if (!is_node(o->node, d->node_count)) return bad("output", id, "no such node");
  if (type_of(d, o->node) != o->operand.dtype) return bad("output", id, "type differs from the node's");
  if (o->stream && (o->operand.stride[d->rank - 1] != TS_STRIDE_UNIT || d->kind == TS_KERNEL_INTERLEAVED))
    return bad("output", id, "streams with a stride");
  if (d->kind == TS_KERNEL_COL && o->operand.stride[d->rank - 2] != TS_STRIDE_ZERO) {
    return bad("output", id, "moves along the reduced dim");
  }
  if (d->kind != TS_KERNEL_ROW && o->operand.stride[d->rank - 1] == TS_STRIDE_ZERO) {
    return bad("output", id, "does not move along the last dim");
  }
  return TS_SUCCESS;
}

/* True when an output has one element for all that a reduction combines. */
static bool is_stored_once(const ts_kernel_desc *d, const ts_kernel_operand *o) {
  if (d->kind == TS_KERNEL_INTERLEAVED) return o->stride[d->rank - 2] == TS_STRIDE_ZERO;
  return d->kind == TS_KERNEL_COL || ts_kernel_is_of_row(d, o);
}

static ts_status check_pieces(const ts_kernel_desc *d) {
  for (int32_t i = 0; i < d->input_count + d->index_count && d->columns == TS_COLUMNS_BLOCKS; i++) {
    const ts_kernel_operand *o = i < d->input_count ? &d->inputs[i] : &d->indices[i - d->input_count];
    if (o->stride[d->rank - 3] != TS_STRIDE_ZERO) return bad("operand", i, "moves along the blocks of pieces");
  }
  for (int32_t i = 0; i < d->output_count; i++) {
    const uint8_t *stride = d->outputs[i].operand.stride;
    if (stride[d->rank - 1] != TS_STRIDE_ZERO || stride[d->rank - 2] != TS_STRIDE_ZERO)
      return bad("output", i, "has elements for the points of pieces");
  }
  for (int32_t id = 0; id < d->node_count; id++)
    if (d->nodes[id].kind == TS_NODE_ARG || d->nodes[id].kind == TS_NODE_GATHER)
      return bad("node", id, "depends on the place in a piece");
  return TS_SUCCESS;
}

/* Elements of columns that take turns are one behind the other, and nodes do not depend on their place. */
static ts_status check_columns(const ts_kernel_desc *d) {
  for (int32_t i = 0; i < d->input_count; i++) {
    const uint8_t last = d->inputs[i].stride[d->rank - 1];
    if (last == TS_STRIDE_ANY || last == TS_STRIDE_DOWN) return bad("input", i, "has columns apart from each other");
  }
  for (int32_t i = 0; i < d->output_count; i++) {
    const uint8_t last = d->outputs[i].operand.stride[d->rank - 1];
    if (last != TS_STRIDE_UNIT && last != TS_STRIDE_TURN) return bad("output", i, "has columns apart from each other");
  }
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_node_kind kind = d->nodes[id].kind;
    if (kind == TS_NODE_ARG || kind == TS_NODE_INDEX || kind == TS_NODE_GATHER)
      return bad("node", id, "depends on the place in columns that take turns");
  }
  return TS_SUCCESS;
}

static ts_status check_dense(const ts_kernel_desc *d) {
  bool reduces = false;
  for (int32_t i = 0; i < d->input_count; i++) {
    const uint8_t row = d->inputs[i].stride[d->rank - 2], column = d->inputs[i].stride[d->rank - 1];
    bool unit = column == TS_STRIDE_UNIT && row == TS_STRIDE_ANY, same = column == TS_STRIDE_ZERO && row == column;
    if (!unit && !same) return bad("input", i, "has no dense rows");
  }
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_node_kind kind = d->nodes[id].kind;
    reduces |= kind == TS_NODE_REDUCE;
    bool placed = kind == TS_NODE_ARG || kind == TS_NODE_INDEX || kind == TS_NODE_GATHER;
    if (placed) return bad("node", id, "depends on the place in a dense row");
  }
  return reduces ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "kernel: dense rows without a reduction");
}

/* The dim that a reduction removes: no output may vary along it, and COL has no reduction of a reduction. */
static ts_status check_flow(const ts_kernel_desc *d, const ts_loop_plan *plan, bool *varies) {
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_kernel_node *n = &d->nodes[id];
    if (d->kind == TS_KERNEL_ROW) {
      varies[id] = plan->level[id] == TS_LEVEL_POINT;
      continue;
    }
    if (ts_kernel_node_reduces(n)) {
      if (d->kind == TS_KERNEL_COL && plan->stage[id] > 1) return bad("node", id, "reduction of a reduction");
      continue;
    }
    varies[id] = ts_kernel_node_varies(d, id, d->rank - 2, varies);
    if (n->kind == TS_NODE_OP && d->kind == TS_KERNEL_COL && varies[id] && plan->stage[id] > 0)
      return bad("node", id, "mixes a reduction with its operand");
  }
  for (int32_t i = 0; i < d->output_count; i++) {
    if (is_stored_once(d, &d->outputs[i].operand) && varies[d->outputs[i].node])
      return bad("output", i, "varies along the reduced dim");
  }
  return TS_SUCCESS;
}

static ts_status check_plan(const ts_kernel_desc *d) {
  ts_arena arena;
  ts_loop_plan plan;
  bool *varies;
  ts_arena_init(&arena);
  ts_status status;
  TS_GOTO(done, status, ts_loop_plan_make(d, &arena, &plan));
  TS_GOTO(done, status, TS_ARENA_ARRAY(&arena, (size_t)d->node_count, &varies));
  status = check_flow(d, &plan, varies);
done:
  ts_arena_deinit(&arena);
  return status;
}

static ts_status check_rows(const ts_kernel_desc *d) {
  int32_t points = 1;
  if (d->kind == TS_KERNEL_TILE && d->joined + d->lined + 2 <= d->rank) return TS_SUCCESS;
  if (d->lined != 0) return ts_error(TS_INVALID_ARGUMENT, "kernel: lines of %d dims", d->lined + 1);
  if (d->kind != TS_KERNEL_JOINED)
    return d->joined == 0 ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "kernel: rows that are not joined");
  if (d->joined > TS_JOINED_DIMS || d->joined >= d->rank || d->index_count > 0)
    return ts_error(TS_INVALID_ARGUMENT, "kernel: %d dims of rows", d->joined);
  for (int32_t i = 0; i < d->joined; i++) points *= d->few[i] > TS_JOINED_POINTS ? 0 : d->few[i];
  if (points != d->members || points < 1 || points > TS_JOINED_POINTS)
    return ts_error(TS_INVALID_ARGUMENT, "kernel: rows of %d points", d->members);
  if (d->rows == 0 || d->rows > TS_JOINED_ROWS || (d->rows & (d->rows - 1)) != 0)
    return ts_error(TS_INVALID_ARGUMENT, "kernel: at least %d rows", d->rows);
  return TS_SUCCESS;
}

static ts_status check_counts(const ts_kernel_desc *d) {
  if (d->kind > TS_KERNEL_JOINED) return ts_error(TS_INVALID_ARGUMENT, "kernel: unknown kind %d", (int)d->kind);
  const bool is_row = d->kind == TS_KERNEL_ROW && d->columns >= TS_COLUMNS_LONG && d->columns <= TS_COLUMNS_BLOCKS;
  if (!is_row && d->columns > (d->kind == TS_KERNEL_COL ? TS_COLUMNS_DENSE : TS_COLUMNS_ANY))
    return ts_error(TS_INVALID_ARGUMENT, "kernel: columns of class %d", d->columns);
  const bool grouped = d->kind == TS_KERNEL_INTERLEAVED, row = d->kind == TS_KERNEL_ROW && d->members != 0;
  if (row && (!ts_reduce_takes_turns(d->members) || d->columns != TS_COLUMNS_ANY))
    return ts_error(TS_INVALID_ARGUMENT, "kernel: %d columns that take turns", d->members);
  const bool may_have = row || d->kind == TS_KERNEL_JOINED;
  if (grouped ? ts_interleave_factor(d->members) == 0 : d->members != 0 && !may_have)
    return ts_error(TS_INVALID_ARGUMENT, "kernel: groups of %d members", d->members);
  int32_t least = ts_kernel_fixed_dims(d->kind);
  if (d->long_pieces && !ts_kernel_has_pieces(d)) return ts_error(TS_INVALID_ARGUMENT, "kernel: no pieces");
  if (ts_kernel_has_pieces(d)) least = d->columns == TS_COLUMNS_BLOCKS ? 3 : 2;
  if (d->rank < least || d->rank > TS_KERNEL_MAX_RANK) {
    return ts_error(TS_INVALID_ARGUMENT, "kernel: rank %d is not in %d..%d", d->rank, least, TS_KERNEL_MAX_RANK);
  }
  if (d->input_count < 0 || d->index_count < 0 || d->scalar_count < 0 || d->node_count < 1 || d->output_count < 1) {
    return ts_error(TS_INVALID_ARGUMENT, "kernel: a count is out of range");
  }
  int64_t operands = (int64_t)d->input_count + d->output_count + d->index_count;
  if (operands > TS_KERNEL_MAX_OPERANDS) {
    return ts_error(TS_INVALID_ARGUMENT, "kernel: %lld operands, at most %d", (long long)operands,
                    TS_KERNEL_MAX_OPERANDS);
  }
  return TS_SUCCESS;
}

ts_status ts_kernel_check(const ts_kernel_desc *desc) {
  TS_TRY(check_counts(desc));
  TS_TRY(check_rows(desc));
  for (int32_t i = 0; i < desc->input_count; i++) TS_TRY(check_operand(desc, &desc->inputs[i], true, i));
  for (int32_t i = 0; i < desc->index_count; i++) TS_TRY(check_index(desc, i));
  for (int32_t i = 0; i < desc->scalar_count; i++) {
    TS_TRY(check_type("scalar", i, desc->scalars[i]));
    if (ts_dtype_size(desc->scalars[i]) > 8) return bad("scalar", i, "has more than 8 bytes");
  }
  for (int32_t i = 0; i < desc->node_count; i++) TS_TRY(check_node(desc, i));
  for (int32_t i = 0; i < desc->output_count; i++) TS_TRY(check_output(desc, i));
  if (desc->columns == TS_COLUMNS_DENSE) TS_TRY(check_dense(desc));
  if (desc->kind == TS_KERNEL_ROW && desc->members > 0) TS_TRY(check_columns(desc));
  if (desc->columns == TS_COLUMNS_LONG && ts_kernel_narrow_bytes(desc) == 0)
    return ts_error(TS_INVALID_ARGUMENT, "kernel: no long rows of narrow integers");
  if (ts_kernel_has_pieces(desc)) TS_TRY(check_pieces(desc));
  if ((desc->columns == TS_COLUMNS_SEARCH || desc->columns == TS_COLUMNS_PARTS) && !ts_kernel_searches(desc))
    return ts_error(TS_INVALID_ARGUMENT, "kernel: no search");
  const bool reduces = desc->kind != TS_KERNEL_MAP && desc->kind != TS_KERNEL_TILE && desc->kind != TS_KERNEL_JOINED;
  return reduces ? check_plan(desc) : TS_SUCCESS;
}

/* ---- print ---- */

/* Without printf formats, which take several times as long. */
static void print_name(ts_text *out, const char *before, const char *name) {
  ts_text_append(out, before);
  ts_text_append(out, name);
}

static void print_number(ts_text *out, const char *before, int32_t number) {
  ts_text_append(out, before);
  ts_text_int(out, number);
}

static void print_operand(const ts_kernel_desc *d, const char *before, const ts_kernel_operand *o, ts_text *out) {
  char classes[TS_KERNEL_MAX_RANK];
  for (int32_t i = 0; i < d->rank; i++) classes[i] = "01s-gGtn"[o->stride[i]];
  ts_text_append(out, before);
  ts_text_append_n(out, classes, (size_t)d->rank);
  for (int32_t i = 0; i < d->rank; i++)
    if (o->stride[i] == TS_STRIDE_NEAR) print_number(out, ",", o->step[i]);
}

static void print_node(const ts_kernel_desc *d, int32_t id, ts_text *out) {
  const ts_kernel_node *n = &d->nodes[id];
  print_number(out, "", id);
  print_name(out, " ", ts_dtype_name(n->dtype));
  switch (n->kind) {
  case TS_NODE_LOAD: print_number(out, " load ", n->slot); break;
  case TS_NODE_SCALAR: print_number(out, " scalar ", n->slot); break;
  case TS_NODE_INDEX: print_number(out, " index ", n->slot); break;
  case TS_NODE_GATHER:
    print_number(out, " gather ", n->slot);
    print_number(out, " at ", n->a);
    print_number(out, " limit ", n->b);
    print_number(out, " step ", n->c);
    break;
  case TS_NODE_ARG:
    print_name(out, " ", ts_op_name(n->op));
    print_number(out, n->b ? "_high " : "_low ", n->a);
    break;
  case TS_NODE_REDUCE:
  case TS_NODE_OP:
    print_name(out, " ", ts_op_name(n->op));
    print_number(out, " ", n->a);
    if (n->kind == TS_NODE_OP && n->b >= 0) print_number(out, " ", n->b);
    if (n->kind == TS_NODE_OP && n->c >= 0) print_number(out, " ", n->c);
  }
  ts_text_append(out, "\n");
}

static void print_typed(ts_text *out, const char *what, ts_dtype dtype) {
  print_name(out, what, ts_dtype_name(dtype));
  ts_text_append(out, "\n");
}

ts_status ts_kernel_print(const ts_kernel_desc *desc, ts_text *out) {
  ts_text_reserve(out, 32 * (size_t)(desc->input_count + desc->output_count + desc->node_count + 1));
  print_name(out, "", kind_names[desc->kind]);
  print_number(out, " ", desc->rank);
  if (desc->members > 0) print_number(out, " of ", desc->members);
  if (desc->kind == TS_KERNEL_TILE) {
    if (desc->joined > 0) print_number(out, " joined ", desc->joined);
    if (desc->lined > 0) print_number(out, " lined ", desc->lined);
  } else if (desc->kind == TS_KERNEL_JOINED) {
    for (int32_t i = 0; i < desc->joined; i++) print_number(out, i == 0 ? " by " : " ", desc->few[i]);
    print_number(out, " rows ", desc->rows);
  }
  if (desc->long_pieces) ts_text_append(out, " long_pieces");
  ts_text_append(out, column_names[desc->columns]);
  for (int32_t i = 0; i < desc->input_count; i++) {
    print_name(out, "in ", ts_dtype_name(desc->inputs[i].dtype));
    print_operand(desc, " ", &desc->inputs[i], out);
    ts_text_append(out, "\n");
  }
  for (int32_t i = 0; i < desc->output_count; i++) {
    print_name(out, "out ", ts_dtype_name(desc->outputs[i].operand.dtype));
    print_operand(desc, " ", &desc->outputs[i].operand, out);
    print_number(out, " ", desc->outputs[i].node);
    ts_text_append(out, desc->outputs[i].stream ? " stream\n" : "\n");
  }
  for (int32_t i = 0; i < desc->index_count; i++) {
    print_operand(desc, "index ", &desc->indices[i], out);
    ts_text_append(out, "\n");
  }
  for (int32_t i = 0; i < desc->scalar_count; i++) print_typed(out, "scalar ", desc->scalars[i]);
  for (int32_t i = 0; i < desc->node_count; i++) print_node(desc, i, out);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

/* ---- source ---- */

/* The hash of the text without the kind, the rank, the stride classes and whether outputs are streamed. */
static ts_status family_of(const void *description, ts_hash128 *out) {
  const ts_kernel_desc *d = description;
  ts_text text = {0};
  ts_text_reserve(&text, 16 * (size_t)(d->input_count + d->output_count + 2 * d->node_count + 1));
  for (int32_t i = 0; i < d->input_count; i++) print_typed(&text, "in ", d->inputs[i].dtype);
  for (int32_t i = 0; i < d->output_count; i++) {
    print_number(&text, "out ", d->outputs[i].node);
    ts_text_append(&text, "\n");
  }
  for (int32_t i = 0; i < d->scalar_count; i++) print_typed(&text, "scalar ", d->scalars[i]);
  for (int32_t i = 0; i < d->node_count; i++) print_node(d, i, &text);
  ts_status status = text.failed ? ts_error_no_memory() : TS_SUCCESS;
  if (!status) *out = ts_hash(text.data, text.length);
  ts_text_deinit(&text);
  return status;
}

/* Copies an array to *at and advances that by whole words. */
static const void *place_copy(char **at, const void *from, int32_t count, size_t size) {
  char *to = *at;
  if (count > 0) memcpy(to, from, (size_t)count * size);
  *at += ((size_t)count * size + 7) & ~(size_t)7;
  return to;
}

static ts_status copy_desc(const void *description, void **out) {
  const ts_kernel_desc *d = description;
  size_t bytes = sizeof(*d) + 5 * 8 + (size_t)d->input_count * sizeof(*d->inputs) +
                 (size_t)d->output_count * sizeof(*d->outputs) + (size_t)d->index_count * sizeof(*d->indices) +
                 (size_t)d->scalar_count * sizeof(*d->scalars) + (size_t)d->node_count * sizeof(*d->nodes);
  TS_TRY(ts_alloc(bytes, out));
  ts_kernel_desc *copy = *out;
  char *at = (char *)(copy + 1);
  *copy = *d;
  copy->inputs = place_copy(&at, d->inputs, d->input_count, sizeof(*d->inputs));
  copy->outputs = place_copy(&at, d->outputs, d->output_count, sizeof(*d->outputs));
  copy->indices = place_copy(&at, d->indices, d->index_count, sizeof(*d->indices));
  copy->scalars = place_copy(&at, d->scalars, d->scalar_count, sizeof(*d->scalars));
  copy->nodes = place_copy(&at, d->nodes, d->node_count, sizeof(*d->nodes));
  return TS_SUCCESS;
}

static ts_status emit_kernel(struct ts_emit *emit, const char *name, const void *description) {
  const ts_kernel_desc *desc = description;
  switch (desc->kind) {
  case TS_KERNEL_MAP:
  case TS_KERNEL_JOINED:
  case TS_KERNEL_INTERLEAVED: return ts_loop_emit_map(emit, name, desc);
  case TS_KERNEL_ROW: return ts_loop_emit_row(emit, name, desc);
  case TS_KERNEL_TILE: return ts_loop_emit_tile(emit, name, desc);
  case TS_KERNEL_COL: return ts_loop_emit_col(emit, name, desc);
  }
  return ts_error(TS_UNIMPLEMENTED, "kernels of kind %d cannot be emitted", (int)desc->kind);
}

ts_status ts_kernel_make_source(const ts_kernel_desc *desc, char **out_text, ts_kernel_source *out) {
  TS_TRY(ts_kernel_check(desc));
  ts_text text = {0};
  ts_status status = ts_kernel_print(desc, &text);
  if (status) {
    ts_text_deinit(&text);
    return status;
  }
  size_t length = text.length;
  TS_TRY(ts_text_finish(&text, out_text));
  *out = (ts_kernel_source){.text = *out_text,
                            .length = length,
                            .emit = emit_kernel,
                            .description = desc,
                            .family = family_of,
                            .copy = copy_desc};
  return TS_SUCCESS;
}

/* ---- workspace and cost ---- */

void ts_kernel_scratch(const ts_kernel_desc *desc, int64_t *out_fixed, int64_t *out_per_element) {
  *out_fixed = 0, *out_per_element = 0;
  if (desc->kind == TS_KERNEL_COL) *out_fixed = ts_loop_col_scratch(desc);
  if (desc->kind == TS_KERNEL_ROW) *out_fixed = ts_loop_row_scratch(desc);
  if (desc->kind != TS_KERNEL_ROW) return;
  ts_arena arena;
  ts_loop_plan plan;
  ts_arena_init(&arena);
  ts_status status = ts_loop_plan_make(desc, &arena, &plan);
  /* When there is no memory for the plan, assume that every node is saved. */
  *out_per_element = status ? 8 * (int64_t)desc->node_count : plan.saved_bytes;
  ts_status_free(status);
  ts_arena_deinit(&arena);
  for (int32_t id = 0; id < desc->node_count && ts_kernel_has_pieces(desc); id++)
    if (ts_kernel_node_reduces(&desc->nodes[id]))
      *out_per_element += (int64_t)ts_dtype_size(type_of(desc, desc->nodes[id].a));
}

/* A rough measurement: a simple f32 operation takes half a cycle for 16 points, and so does a load or store. */
#define PS_PER_WEIGHT 14

int64_t ts_kernel_point_cost(const ts_kernel_desc *desc) {
  ts_arena arena;
  ts_loop_plan plan;
  ts_arena_init(&arena);
  ts_status status = ts_loop_plan_make(desc, &arena, &plan);
  int64_t cost = PS_PER_WEIGHT * (int64_t)desc->output_count;
  for (int32_t id = 0; id < desc->node_count; id++) {
    bool counts = status || (plan.needed[id] && plan.level[id] != TS_LEVEL_KERNEL);
    int64_t weight = status ? 10 : plan.weight[id];
    if (!status && plan.level[id] == TS_LEVEL_ROW && !ts_kernel_node_reduces(&desc->nodes[id])) weight = 0;
    int64_t size = (int64_t)ts_dtype_size(desc->nodes[id].dtype), width = size >= 8 ? size / 4 : 1;
    if (counts) cost += weight * width * PS_PER_WEIGHT;
  }
  ts_status_free(status);
  ts_arena_deinit(&arena);
  return cost;
}

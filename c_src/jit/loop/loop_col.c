/* COL: reduces over dim rank-2, one panel of columns at a time. The panel's accumulators are in the workspace,
 * [lane][column]; rows are read one after another, and row k is added to lane k mod lanes. Sums and products of floats
 * have the 32 lanes of tensor/reduce_tree.h; other reductions, whose bits do not depend on the order, have a few to
 * hide latency.
 *
 * Dense rows, of few columns and one behind the other in memory, are read as many at once as there are lanes: whole
 * vectors in place of the ends of rows. */
#include "jit/loop/loop_col.h"

#define EXACT_LANES 4
/* How many rows ahead to prefetch. The rows of a matrix are often a multiple of a page apart, which hardware
 * prefetchers do not follow, and the lines of one column then share a few sets of L1. */
#define ROWS_AHEAD 4
/* The lanes of dense rows, where the order does not change the bits. */
#define DENSE_LANES 16

/* Offsets of a lane's accumulators; `indices` for ARG. */
typedef struct acc_row {
  ts_v values, indices;
} acc_row;

typedef struct col_reduce {
  int32_t node;
  ts_reducer reducer;
  int32_t lanes;
  int64_t values, indices; /* offsets in the workspace */
  acc_row at;              /* the lane of the current points */
} col_reduce;

typedef struct col {
  col_reduce *reduces;
  int reduce_count;
  bool dense;
  ts_v rows;    /* extent of the reduced dim */
  ts_span span; /* columns of the panel */
  ts_v row;     /* current row of the reduced dim */
} col;

static bool has_tree(const ts_kernel_desc *desc) {
  for (int32_t id = 0; id < desc->node_count; id++) {
    if (!ts_kernel_node_reduces(&desc->nodes[id])) continue;
    const ts_reducer r = ts_reducer_of(desc, id);
    if (ts_reducer_needs_tree(&r)) return true;
  }
  return false;
}

/* All reductions of dense rows have the same lanes. */
static int32_t lanes_of(const ts_kernel_desc *desc, const ts_reducer *r) {
  if (desc->columns == TS_COLUMNS_DENSE) return has_tree(desc) ? TS_REDUCE_LANES : DENSE_LANES;
  return ts_reducer_needs_tree(r) ? TS_REDUCE_LANES : EXACT_LANES;
}

/* Assigns the next accumulator the workspace from `*offset` on, and advances `*offset`. */
static col_reduce place_reduce(const ts_kernel_desc *desc, int32_t node, int64_t *offset) {
  col_reduce r = {.node = node, .reducer = ts_reducer_of(desc, node), .values = *offset};
  r.lanes = lanes_of(desc, &r.reducer);
  *offset += (int64_t)ts_dtype_size(r.reducer.type) * r.lanes * TS_COL_PANEL;
  r.indices = *offset;
  if (r.reducer.kind == TS_NODE_ARG) *offset += 4 * (int64_t)r.lanes * TS_COL_PANEL;
  *offset += TS_COL_APART;
  return r;
}

int64_t ts_loop_col_scratch(const ts_kernel_desc *desc) {
  int64_t bytes = 0;
  for (int32_t id = 0; id < desc->node_count; id++) {
    if (ts_kernel_node_reduces(&desc->nodes[id])) (void)place_reduce(desc, id, &bytes);
  }
  return bytes;
}

static void find_reduces(ts_loop *loop, col *c) {
  int64_t offset = 0;
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    bool here = ts_kernel_node_reduces(&loop->d->nodes[id]) && loop->plan.needed[id];
    if (here) c->reduces[c->reduce_count++] = place_reduce(loop->d, id, &offset);
  }
}

/* ---- accumulators ---- */

static ts_v acc_address(ts_loop *loop, int64_t region, ts_dtype type, ts_v element) {
  return ts_loop_element(loop, type, ts_loop_offset(loop, loop->scratch, ts_loop_number(loop, region)), element);
}

/* The accumulators from an element of the workspace on. */
static acc_row row_from(ts_loop *loop, const col_reduce *r, ts_v element) {
  acc_row row = {acc_address(loop, r->values, r->reducer.type, element), NULL};
  if (r->reducer.kind == TS_NODE_ARG) row.indices = acc_address(loop, r->indices, TS_S32, element);
  return row;
}

/* The accumulators of a lane, for columns that count from `first`. Emitted before the loop over columns, which then
 * needs no address arithmetic. */
static acc_row lane_row(ts_loop *loop, const col_reduce *r, ts_v lane, ts_v first) {
  ts_v element = ts_loop_mul(loop, lane, ts_loop_number(loop, TS_COL_PANEL));
  return row_from(loop, r, LLVMBuildSub(loop->e->b, element, first, ""));
}

static ts_acc load_acc(ts_loop *loop, const col_reduce *r, const acc_row *row, ts_v column) {
  ts_dtype type = r->reducer.type;
  ts_acc acc = {ts_emit_load(loop->e, type, ts_loop_element(loop, type, row->values, column)), NULL};
  if (row->indices) acc.index = ts_emit_load(loop->e, TS_S32, ts_loop_element(loop, TS_S32, row->indices, column));
  return acc;
}

static void store_acc(ts_loop *loop, const col_reduce *r, const acc_row *row, ts_v column, ts_acc acc) {
  ts_dtype type = r->reducer.type;
  ts_emit_store(loop->e, type, acc.value, ts_loop_element(loop, type, row->values, column));
  if (acc.index) ts_emit_store(loop->e, TS_S32, acc.index, ts_loop_element(loop, TS_S32, row->indices, column));
}

/* The number of lanes with at least one row. */
static ts_v used_lanes(ts_loop *loop, const col *c, const col_reduce *r) {
  return ts_loop_col_smaller(loop, c->rows, ts_loop_number(loop, r->lanes));
}

/* Over the columns of a lane; of dense rows, over those of `lanes` lanes. */
static ts_counter count_columns(ts_loop *loop, const col *c, ts_v lanes) {
  ts_v width = LLVMBuildSub(loop->e->b, c->span.to, c->span.from, "");
  if (c->dense) width = LLVMBuildMul(loop->e->b, width, lanes, "");
  return ts_loop_count(loop, ts_loop_number(loop, 0), width, ts_loop_number(loop, loop->e->lanes));
}

static void clear_accs(ts_loop *loop, const col *c, const col_reduce *r) {
  ts_v one = ts_loop_number(loop, 1);
  ts_v used = c->dense ? one : used_lanes(loop, c, r); /* without rows: one lane, which holds the identity */
  if (!LLVMIsAConstantInt(used) || LLVMIsNull(used))
    used = ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){used, one}, 2);
  ts_counter lane = ts_loop_count(loop, ts_loop_number(loop, 0), used, one);
  ts_acc identity = ts_reducer_identity(loop->e, &r->reducer, ts_loop_col_number(loop, lane.index));
  acc_row row = lane_row(loop, r, lane.index, ts_loop_number(loop, 0));
  ts_counter column = count_columns(loop, c, ts_loop_number(loop, r->lanes));
  store_acc(loop, r, &row, column.index, identity);
  ts_loop_count_end(loop, &column);
  ts_loop_count_end(loop, &lane);
}

/* acc[l] = acc[l] op acc[l + h] for h = lanes / 2, ..., 1. A lane without rows holds the identity and is skipped: the
 * bits are the same. Of dense rows, all lanes are one line of elements. The last vector of its lower half may end in
 * the upper half, which has been read by then. */
static ts_status combine_lanes(ts_loop *loop, const col *c, const col_reduce *r) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), one = ts_loop_number(loop, 1), used = used_lanes(loop, c, r);
  ts_counter level = ts_loop_count(loop, zero, ts_loop_number(loop, __builtin_ctz((unsigned)r->lanes)), one);
  ts_v half = LLVMBuildLShr(b, ts_loop_number(loop, r->lanes / 2), level.index, "");
  ts_v limit = c->dense ? one : ts_loop_col_smaller(loop, half, LLVMBuildSub(b, used, half, ""));
  ts_counter lane = ts_loop_count(loop, zero, limit, one);
  acc_row low_row = lane_row(loop, r, lane.index, zero);
  acc_row high_row = c->dense ? row_from(loop, r, LLVMBuildMul(b, half, c->span.to, ""))
                              : lane_row(loop, r, ts_loop_add(loop, lane.index, half), zero);
  ts_counter column = count_columns(loop, c, half);
  ts_acc low = load_acc(loop, r, &low_row, column.index), sum;
  ts_acc high = load_acc(loop, r, &high_row, column.index);
  TS_TRY(ts_reducer_combine(loop->e, &r->reducer, low, high, &sum));
  store_acc(loop, r, &low_row, column.index, sum);
  ts_loop_count_end(loop, &column);
  ts_loop_count_end(loop, &lane);
  ts_loop_count_end(loop, &level);
  return TS_SUCCESS;
}

/* ---- rows ---- */

static ts_status row_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)carried;
  const col *c = context;
  for (int32_t i = 0; i < loop->d->input_count; i++) ts_loop_col_ask_ahead(loop, i, at->index, ROWS_AHEAD);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  for (int k = 0; k < c->reduce_count; k++) {
    const col_reduce *r = &c->reduces[k];
    ts_v x = loop->value[loop->d->nodes[r->node].a];
    ts_acc acc = load_acc(loop, r, &r->at, at->index);
    ts_v row = r->reducer.kind == TS_NODE_ARG ? ts_loop_col_number(loop, c->row) : NULL;
    /* Behind the last of dense rows are accumulators of other lanes; elsewhere, nothing is. */
    ts_v mask = c->dense && at->part ? ts_emit_lane_mask(loop->e, at->part) : NULL;
    TS_TRY(ts_reducer_step(loop->e, &r->reducer, acc, (ts_acc){x, row}, mask, &acc));
    store_acc(loop, r, &r->at, at->index, acc);
  }
  return TS_SUCCESS;
}

/* Rows from `first` on, `step` of them at once, in each the columns of the span. */
typedef struct some_rows {
  ts_v first, end, step;
  ts_span span;
} some_rows;

static ts_status take_some(ts_loop *loop, col *c, const ts_v *outer, const some_rows *of) {
  int32_t rank = loop->d->rank;
  ts_v counters[TS_KERNEL_MAX_RANK];
  for (int32_t i = 0; i + 2 < rank; i++) counters[i] = outer[i];
  ts_counter row = ts_loop_count(loop, of->first, of->end, of->step);
  c->row = counters[rank - 2] = row.index;
  ts_loop_set_row(loop, counters, rank - 1);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  for (int k = 0; k < c->reduce_count; k++) {
    col_reduce *r = &c->reduces[k];
    ts_v lane = LLVMBuildAnd(loop->e->b, c->row, ts_loop_number(loop, r->lanes - 1), "");
    r->at = lane_row(loop, r, c->dense ? ts_loop_number(loop, 0) : lane, of->span.from);
  }
  TS_TRY(ts_loop_points(loop, &of->span, NULL, 0, row_point, c));
  ts_loop_count_end(loop, &row);
  return TS_SUCCESS;
}

/* As many rows as there are lanes, again and again, then the rest. */
static ts_status take_dense(ts_loop *loop, col *c, const ts_v *outer) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), lanes = ts_loop_number(loop, c->reduces[0].lanes);
  ts_v rest = LLVMBuildAnd(b, c->rows, ts_loop_number(loop, c->reduces[0].lanes - 1), "");
  ts_v most = LLVMBuildSub(b, c->rows, rest, "");
  ts_counter from = ts_loop_count_some(loop, zero, c->rows, most);
  ts_v is_rest = LLVMBuildICmp(b, LLVMIntNE, from.index, zero, "");
  ts_v rows = LLVMBuildSelect(b, is_rest, rest, lanes, "");
  some_rows of = {.first = from.index, .end = LLVMBuildSelect(b, is_rest, c->rows, most, ""), .step = lanes};
  of.span = ts_loop_span(loop, zero, LLVMBuildMul(b, rows, c->span.to, ""));
  TS_TRY(take_some(loop, c, outer, &of));
  ts_loop_count_end(loop, &from);
  return TS_SUCCESS;
}

static ts_status take_rows(ts_loop *loop, col *c, const ts_v *outer) {
  const some_rows all = {ts_loop_number(loop, 0), c->rows, ts_loop_number(loop, 1), c->span};
  ts_loop_col_want_nothing(loop);
  for (int k = 0; k < c->reduce_count; k++) loop->wanted[loop->d->nodes[c->reduces[k].node].a] = true;
  ts_loop_col_want_operands(loop);
  return c->dense ? take_dense(loop, c, outer) : take_some(loop, c, outer, &all);
}

/* ---- results ---- */

static ts_status result_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)carried;
  const col *c = context;
  for (int k = 0; k < c->reduce_count; k++) {
    const col_reduce *r = &c->reduces[k];
    ts_acc acc = load_acc(loop, r, &r->at, at->index);
    loop->value[r->node] = ts_reducer_finish(loop->e, &r->reducer, acc);
  }
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_loop_store(loop, at, NULL, 0);
  return TS_SUCCESS;
}

static ts_status store_results(ts_loop *loop, col *c, const ts_v *outer) {
  ts_loop_col_want_nothing(loop);
  for (int32_t i = 0; i < loop->d->output_count; i++) loop->wanted[loop->d->outputs[i].node] = true;
  ts_loop_col_want_operands(loop);
  ts_loop_set_row(loop, outer, loop->d->rank - 2);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  for (int k = 0; k < c->reduce_count; k++) {
    c->reduces[k].at = lane_row(loop, &c->reduces[k], ts_loop_number(loop, 0), c->span.from);
  }
  return ts_loop_points(loop, &c->span, NULL, 0, result_point, c);
}

/* ---- a panel ---- */

static ts_status take_span(ts_loop *loop, col *c, const ts_v *counters, ts_v from, ts_v to) {
  c->span = ts_loop_span(loop, from, to);
  for (int k = 0; k < c->reduce_count; k++) clear_accs(loop, c, &c->reduces[k]);
  TS_TRY(take_rows(loop, c, counters));
  for (int k = 0; k < c->reduce_count; k++) TS_TRY(combine_lanes(loop, c, &c->reduces[k]));
  return store_results(loop, c, counters);
}

/* Counters: of the outer dims, then the panel. */
static ts_status panel_body(void *context, ts_loop *loop, const ts_v *counters) {
  col *c = context;
  int32_t rank = loop->d->rank;
  ts_v width = ts_loop_number(loop, TS_COL_PANEL);
  ts_v from = ts_loop_mul(loop, counters[rank - 2], width);
  ts_v to = ts_loop_col_smaller(loop, ts_loop_add(loop, from, width), loop->extent[rank - 1]);
  bool done = false;
  const ts_columns columns = (ts_columns)loop->d->columns;
  if ((columns == TS_COLUMNS_WIDE || columns == TS_COLUMNS_LOW) && !loop->e->site)
    TS_TRY(ts_loop_col_groups(loop, &(ts_col_panel){counters, c->rows, from, to}, &done));
  return done ? TS_SUCCESS : take_span(loop, c, counters, from, to);
}

static ts_status emit_col(ts_loop *loop) {
  col c = {.rows = loop->extent[loop->d->rank - 2]};
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)loop->d->node_count, &c.reduces));
  c.dense = loop->d->columns == TS_COLUMNS_DENSE;
  find_reduces(loop, &c);
  ts_v up = ts_loop_add(loop, loop->extent[loop->d->rank - 1], ts_loop_number(loop, TS_COL_PANEL - 1));
  /* Units count panels where rows would be. */
  loop->extent[loop->d->rank - 2] = LLVMBuildUDiv(loop->e->b, up, ts_loop_number(loop, TS_COL_PANEL), "");
  return ts_loop_rows(loop, loop->d->rank - 1, panel_body, &c);
}

/* Of many columns of narrow integers, as many as a register has. */
static int lanes_of_columns(const ts_emit *e, const ts_kernel_desc *desc) {
  const bool many = desc->columns == TS_COLUMNS_WIDE || desc->columns == TS_COLUMNS_LOW;
  const int bytes = many && !e->site ? ts_kernel_narrow_bytes(desc) : 0;
  return bytes > 0 ? e->lanes * 4 / bytes : e->lanes;
}

ts_status ts_loop_emit_col(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  const int lanes = e->lanes;
  ts_loop loop;
  e->lanes = lanes_of_columns(e, desc);
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_col(&loop);
  status = ts_loop_close(&loop, status);
  e->lanes = lanes;
  return status;
}

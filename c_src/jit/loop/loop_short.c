/* A COL of few rows that is emitted in place: the accumulators of a vector of columns are registers, one for each row,
 * and every row is emitted. The order is that of loop_col.c: a row is a lane of tensor/reduce_tree.h. */
#include "jit/loop/loop_col.h"

typedef struct short_col {
  const ts_v *outer; /* counters */
  int64_t rows;
  int32_t *reduces; /* nodes */
  int reduce_count;
  ts_acc (*accs)[TS_LOOP_SHORT_ROWS]; /* of each reduction */
} short_col;

static ts_v s32_splat(ts_loop *loop, int64_t number) {
  return ts_emit_splat(loop->e, LLVMConstInt(LLVMInt32TypeInContext(loop->e->context), (unsigned long long)number, 0));
}

static ts_status take_row(ts_loop *loop, const short_col *c, int64_t row, const ts_point *at) {
  ts_v counters[TS_KERNEL_MAX_RANK], index = s32_splat(loop, row);
  int32_t rank = loop->d->rank;
  for (int32_t i = 0; i + 2 < rank; i++) counters[i] = c->outer[i];
  counters[rank - 2] = ts_loop_number(loop, row);
  ts_loop_set_row(loop, counters, rank - 1);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  for (int k = 0; k < c->reduce_count; k++) {
    const ts_reducer r = ts_reducer_of(loop->d, c->reduces[k]);
    const ts_acc x = {loop->value[loop->d->nodes[c->reduces[k]].a], r.kind == TS_NODE_ARG ? index : NULL};
    TS_TRY(ts_reducer_step(loop->e, &r, ts_reducer_identity(loop->e, &r, index), x, NULL, &c->accs[k][row]));
  }
  return TS_SUCCESS;
}

static ts_status combine(ts_loop *loop, const short_col *c, int k) {
  const ts_reducer r = ts_reducer_of(loop->d, c->reduces[k]);
  return ts_reducer_few(loop->e, &r, c->accs[k], c->rows, &loop->value[c->reduces[k]]);
}

static ts_status short_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)carried;
  const short_col *c = context;
  ts_loop_col_want_nothing(loop);
  for (int k = 0; k < c->reduce_count; k++) loop->wanted[loop->d->nodes[c->reduces[k]].a] = true;
  ts_loop_col_want_operands(loop);
  for (int64_t row = 0; row < c->rows; row++) TS_TRY(take_row(loop, c, row, at));
  for (int k = 0; k < c->reduce_count; k++) TS_TRY(combine(loop, c, k));
  ts_loop_col_want_nothing(loop);
  for (int32_t i = 0; i < loop->d->output_count; i++) loop->wanted[loop->d->outputs[i].node] = true;
  ts_loop_col_want_operands(loop);
  ts_loop_set_row(loop, c->outer, loop->d->rank - 2);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_loop_store(loop, at, NULL, 0);
  return TS_SUCCESS;
}

static ts_status short_body(void *context, ts_loop *loop, const ts_v *counters) {
  short_col *c = context;
  c->outer = counters;
  ts_span span = ts_loop_span(loop, ts_loop_number(loop, 0), loop->extent[loop->d->rank - 1]);
  return ts_loop_points(loop, &span, NULL, 0, short_point, c);
}

static ts_status emit_short(ts_loop *loop) {
  size_t nodes = (size_t)loop->d->node_count;
  short_col c = {.rows = LLVMConstIntGetSExtValue(loop->extent[loop->d->rank - 2])};
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &c.reduces));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &c.accs));
  for (int32_t id = 0; id < loop->d->node_count; id++)
    if (ts_kernel_node_reduces(&loop->d->nodes[id]) && loop->plan.needed[id]) c.reduces[c.reduce_count++] = id;
  return ts_loop_rows(loop, loop->d->rank - 2, short_body, &c);
}

ts_status ts_loop_emit_short(ts_emit *e, const ts_kernel_desc *desc) {
  ts_loop loop;
  ts_status status = ts_loop_open(&loop, e, NULL, desc);
  if (!status) status = emit_short(&loop);
  return ts_loop_close(&loop, status);
}

/* Columns of a wide COL in registers: a few whole vectors of columns are reduced at once, in chains that read every
 * 32nd row, or every row where the order does not change the bits. The last vectors of a panel end with its last
 * column, so some columns are computed twice, to the same bits.
 *
 * Sums and products of floats have the 32 lanes of tensor/reduce_tree.h: row k is in lane k mod 32. Of few rows, the
 * chains of lanes l and l + 16 become one lane of sixteen in the workspace. Of many rows, all lanes are in the
 * workspace, and a chain ends with its chunk of rows: so memory is read almost in its order. Then lanes are halved in
 * the workspace. */
#include "jit/loop/loop_col.h"

/* Nodes of more weight are left to loop_col.c. */
#define LIGHT 16
/* Vectors at once. */
#define MOST_VECTORS 4
#define LOW_LANES (TS_REDUCE_LANES / 2)
/* Of a chunk. A chain of a chunk prefetches what it reads of the next one. */
#define CHUNK_ROWS 128
/* How many rows ahead to prefetch where a chain has every row. */
#define ROWS_AHEAD 4
#define LINE_BYTES 64

typedef struct group_reduce {
  int32_t node;
  ts_reducer reducer;
  int64_t values; /* offset in the workspace, of reductions with a tree */
} group_reduce;

typedef struct group {
  group_reduce *reduces; /* those with a tree come first */
  int reduce_count, tree_count;
  ts_v rows;   /* extent of the reduced dim */
  int vectors; /* at once */
  /* of the current columns */
  const ts_v *outer;
  const ts_point *at; /* of each vector */
  int count;          /* vectors */
} group;

/* A chain's rows, and which reductions it has. */
typedef struct chain {
  ts_v first, end;
  int64_t step, ahead;
  int from, to;
  const ts_acc *start; /* NULL: the identities */
} chain;

static bool has_tree(const ts_kernel_desc *d, int32_t node) {
  const ts_reducer r = ts_reducer_of(d, node);
  return ts_reducer_needs_tree(&r);
}

/* Finds the needed reductions with a tree or without. */
static int find_some(const ts_kernel_desc *d, const bool *needed, bool tree, group_reduce *out, int64_t *offset) {
  int count = 0;
  for (int32_t id = 0; id < d->node_count; id++) {
    if (!ts_kernel_node_reduces(&d->nodes[id]) || !needed[id] || has_tree(d, id) != tree) continue;
    const ts_reducer reducer = ts_reducer_of(d, id);
    out[count++] = (group_reduce){id, reducer, *offset};
    if (tree) *offset += (int64_t)ts_dtype_size(reducer.type) * TS_REDUCE_LANES * TS_COL_PANEL + TS_COL_APART;
  }
  return count;
}

/* ---- a chain: all accumulators of some reductions, [reduction][vector] ---- */

static ts_status new_accs(ts_loop *loop, const group *c, ts_acc **out) {
  return TS_ARENA_ARRAY(&loop->arena, (size_t)(c->reduce_count * c->count), out);
}

static bool is_arg(const group_reduce *r) { return r->reducer.kind == TS_NODE_ARG; }

/* Each cache line once: the vectors of an input are one behind the other. */
static void ask_ahead(ts_loop *loop, const group *c, int32_t input, int vector, int64_t rows) {
  const int bytes = vector * loop->e->lanes * (int)ts_dtype_size(loop->d->inputs[input].dtype);
  if (bytes % LINE_BYTES == 0) ts_loop_col_ask_ahead(loop, input, c->at[vector].index, rows);
}

static ts_status take_row(ts_loop *loop, const group *c, const chain *of, ts_v row, ts_acc *accs) {
  int32_t rank = loop->d->rank;
  ts_v counters[TS_KERNEL_MAX_RANK];
  for (int32_t i = 0; i + 2 < rank; i++) counters[i] = c->outer[i];
  counters[rank - 2] = row;
  ts_loop_set_row(loop, counters, rank - 1);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  for (int v = 0; v < c->count; v++) {
    for (int32_t i = 0; i < loop->d->input_count; i++) ask_ahead(loop, c, i, v, of->ahead);
    TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &c->at[v]));
    for (int k = of->from; k < of->to; k++) {
      const group_reduce *r = &c->reduces[k];
      ts_acc *acc = &accs[(k - of->from) * c->count + v];
      ts_v x = loop->value[loop->d->nodes[r->node].a], number = is_arg(r) ? ts_loop_col_number(loop, row) : NULL;
      TS_TRY(ts_reducer_step(loop->e, &r->reducer, *acc, (ts_acc){x, number}, NULL, acc));
    }
  }
  return TS_SUCCESS;
}

static ts_v begin_phi(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

/* `value` behind the loop: `first` where it did not run. */
static ts_v end_phi(ts_loop *loop, ts_v first, LLVMBasicBlockRef before, ts_v value, LLVMBasicBlockRef here) {
  ts_v phi = begin_phi(loop, first, before);
  LLVMAddIncoming(phi, &value, &here, 1);
  return phi;
}

static ts_acc start_of(ts_loop *loop, const group *c, const chain *of, int i) {
  if (of->start) return of->start[i];
  ts_v zero = ts_loop_col_number(loop, ts_loop_number(loop, 0));
  return ts_reducer_identity(loop->e, &c->reduces[of->from + i / c->count].reducer, zero);
}

static ts_status run_chain(ts_loop *loop, const group *c, const chain *of, ts_acc *out) {
  LLVMBuilderRef b = loop->e->b;
  const int count = (of->to - of->from) * c->count;
  ts_acc *first, *phis;
  TS_TRY(new_accs(loop, c, &first));
  TS_TRY(new_accs(loop, c, &phis));
  for (int i = 0; i < count; i++) first[i] = start_of(loop, c, of, i);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter row = ts_loop_count(loop, of->first, of->end, ts_loop_number(loop, of->step));
  for (int i = 0; i < count; i++) {
    phis[i].value = begin_phi(loop, first[i].value, before);
    phis[i].index = first[i].index ? begin_phi(loop, first[i].index, before) : NULL;
    out[i] = phis[i];
  }
  TS_TRY(take_row(loop, c, of, row.index, out));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  for (int i = 0; i < count; i++) {
    LLVMAddIncoming(phis[i].value, &out[i].value, &here, 1);
    if (phis[i].index) LLVMAddIncoming(phis[i].index, &out[i].index, &here, 1);
  }
  ts_loop_count_end(loop, &row);
  for (int i = 0; i < count; i++) {
    out[i].value = end_phi(loop, first[i].value, before, out[i].value, here);
    if (out[i].index) out[i].index = end_phi(loop, first[i].index, before, out[i].index, here);
  }
  return TS_SUCCESS;
}

static ts_status combine_all(ts_loop *loop, const group *c, ts_acc *low, const ts_acc *high) {
  for (int i = 0; i < c->tree_count * c->count; i++)
    TS_TRY(ts_reducer_combine(loop->e, &c->reduces[i / c->count].reducer, low[i], high[i], &low[i]));
  return TS_SUCCESS;
}

/* Where accumulator i of a lane is in the workspace. */
static ts_v kept_at(ts_loop *loop, const group *c, int i, ts_v lane) {
  const group_reduce *r = &c->reduces[i / c->count];
  ts_v element = ts_loop_mul(loop, lane, ts_loop_number(loop, TS_COL_PANEL));
  element = ts_loop_add(loop, element, ts_loop_number(loop, (int64_t)(i % c->count) * loop->e->lanes));
  return ts_loop_element(loop, r->reducer.type, ts_loop_offset(loop, loop->scratch, ts_loop_number(loop, r->values)),
                         element);
}

static void keep(ts_loop *loop, const group *c, ts_v lane, const ts_acc *accs) {
  for (int i = 0; i < c->tree_count * c->count; i++)
    ts_emit_store(loop->e, c->reduces[i / c->count].reducer.type, accs[i].value, kept_at(loop, c, i, lane));
}

static void load_kept(ts_loop *loop, const group *c, ts_v lane, ts_acc *accs) {
  for (int i = 0; i < c->tree_count * c->count; i++)
    accs[i] = (ts_acc){ts_emit_load(loop->e, c->reduces[i / c->count].reducer.type, kept_at(loop, c, i, lane)), NULL};
}

/* The chains of a lane and of the lane that is halved into it. */
static ts_status two_lanes(ts_loop *loop, const group *c, ts_v lane, ts_acc *out) {
  ts_acc *second;
  chain of = {.first = lane, .end = c->rows, .step = TS_REDUCE_LANES, .ahead = 1, .to = c->tree_count};
  TS_TRY(new_accs(loop, c, &second));
  TS_TRY(run_chain(loop, c, &of, out));
  of.first = ts_loop_add(loop, lane, ts_loop_number(loop, LOW_LANES));
  TS_TRY(run_chain(loop, c, &of, second));
  return combine_all(loop, c, out, second);
}

static ts_status reduce_low(ts_loop *loop, const group *c) {
  ts_acc *accs;
  TS_TRY(new_accs(loop, c, &accs));
  ts_v used = ts_loop_col_smaller(loop, c->rows, ts_loop_number(loop, LOW_LANES)), one = ts_loop_number(loop, 1);
  ts_counter lane = ts_loop_count_some(loop, ts_loop_number(loop, 0), used, one); /* without rows: one lane */
  TS_TRY(two_lanes(loop, c, lane.index, accs));
  keep(loop, c, lane.index, accs);
  ts_loop_count_end(loop, &lane);
  return TS_SUCCESS;
}

/* A chunk of rows after the other. Of the first one, only lanes with rows are kept. */
static ts_status reduce_chunks(ts_loop *loop, const group *c) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), one = ts_loop_number(loop, 1), lanes = ts_loop_number(loop, TS_REDUCE_LANES);
  ts_acc *start, *accs;
  TS_TRY(new_accs(loop, c, &start));
  TS_TRY(new_accs(loop, c, &accs));
  chain of = {.step = TS_REDUCE_LANES, .ahead = CHUNK_ROWS, .to = c->tree_count};
  ts_counter chunk = ts_loop_count_some(loop, zero, c->rows, ts_loop_number(loop, CHUNK_ROWS));
  ts_v first = LLVMBuildICmp(b, LLVMIntEQ, chunk.index, zero, "");
  of.end = ts_loop_col_smaller(loop, ts_loop_add(loop, chunk.index, ts_loop_number(loop, CHUNK_ROWS)), c->rows);
  ts_v used = ts_loop_col_smaller(loop, LLVMBuildSub(b, of.end, chunk.index, ""), lanes);
  ts_counter lane = ts_loop_count_some(loop, zero, used, one); /* without rows: one lane */
  of.first = ts_loop_add(loop, chunk.index, lane.index);
  load_kept(loop, c, lane.index, start);
  for (int i = 0; i < c->tree_count * c->count; i++)
    start[i].value = LLVMBuildSelect(b, first, start_of(loop, c, &of, i).value, start[i].value, "");
  of.start = start;
  TS_TRY(run_chain(loop, c, &of, accs));
  keep(loop, c, lane.index, accs);
  ts_loop_count_end(loop, &lane);
  ts_loop_count_end(loop, &chunk);
  return TS_SUCCESS;
}

/* kept[l] = kept[l] op kept[l + h] for h = lanes / 2, ..., 1. A lane without rows holds the identity and is skipped:
 * the bits are the same. */
static ts_status halve_kept(ts_loop *loop, const group *c, int lanes, ts_acc *out) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), one = ts_loop_number(loop, 1);
  ts_v used = ts_loop_col_smaller(loop, c->rows, ts_loop_number(loop, lanes));
  ts_acc *low, *high;
  TS_TRY(new_accs(loop, c, &low));
  TS_TRY(new_accs(loop, c, &high));
  ts_counter level = ts_loop_count_some(loop, zero, ts_loop_number(loop, __builtin_ctz((unsigned)lanes)), one);
  ts_v half = LLVMBuildLShr(b, ts_loop_number(loop, lanes / 2), level.index, "");
  ts_v limit = ts_loop_col_smaller(loop, half, LLVMBuildSub(b, used, half, ""));
  ts_counter lane = ts_loop_count(loop, zero, limit, one);
  load_kept(loop, c, lane.index, low);
  load_kept(loop, c, ts_loop_add(loop, lane.index, half), high);
  TS_TRY(combine_all(loop, c, low, high));
  keep(loop, c, lane.index, low);
  ts_loop_count_end(loop, &lane);
  ts_loop_count_end(loop, &level);
  load_kept(loop, c, zero, out);
  return TS_SUCCESS;
}

/* ---- some columns ---- */

static void want_reduced(ts_loop *loop, const group *c, int from, int to) {
  ts_loop_col_want_nothing(loop);
  for (int k = from; k < to; k++) loop->wanted[loop->d->nodes[c->reduces[k].node].a] = true;
  ts_loop_col_want_operands(loop);
}

static ts_status store_results(ts_loop *loop, const group *c, const ts_acc *accs) {
  ts_loop_col_want_nothing(loop);
  for (int32_t i = 0; i < loop->d->output_count; i++) loop->wanted[loop->d->outputs[i].node] = true;
  ts_loop_col_want_operands(loop);
  ts_loop_set_row(loop, c->outer, loop->d->rank - 2);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  for (int v = 0; v < c->count; v++) {
    for (int k = 0; k < c->reduce_count; k++) {
      const group_reduce *r = &c->reduces[k];
      loop->value[r->node] = ts_reducer_finish(loop->e, &r->reducer, accs[k * c->count + v]);
    }
    TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &c->at[v]));
    ts_loop_store(loop, &c->at[v], NULL, 0);
  }
  return TS_SUCCESS;
}

static ts_status some_columns(ts_loop *loop, group *c, const ts_point *at, int count) {
  ts_acc *accs;
  c->at = at;
  c->count = count;
  TS_TRY(new_accs(loop, c, &accs));
  if (c->tree_count > 0) {
    want_reduced(loop, c, 0, c->tree_count);
    const bool low = loop->d->columns == TS_COLUMNS_LOW;
    TS_TRY(low ? reduce_low(loop, c) : reduce_chunks(loop, c));
    TS_TRY(halve_kept(loop, c, low ? LOW_LANES : TS_REDUCE_LANES, accs));
  }
  if (c->tree_count < c->reduce_count) {
    const chain rest = {.first = ts_loop_number(loop, 0),
                        .end = c->rows,
                        .step = 1,
                        .ahead = ROWS_AHEAD,
                        .from = c->tree_count,
                        .to = c->reduce_count};
    want_reduced(loop, c, c->tree_count, c->reduce_count);
    TS_TRY(run_chain(loop, c, &rest, accs + c->tree_count * count));
  }
  return store_results(loop, c, accs);
}

/* How many vectors at once: their chains hide the latency of each other's steps. */
static int vectors_of(const ts_loop *loop, const group *c) {
  int64_t bytes = 0, weight = 0;
  for (int k = 0; k < c->reduce_count; k++) {
    const int64_t size = (int64_t)ts_dtype_size(c->reduces[k].reducer.type);
    bytes += (size < 4 ? 4 : size) * (is_arg(&c->reduces[k]) ? 2 : 1);
  }
  for (int32_t id = 0; id < loop->d->node_count; id++)
    if (loop->plan.needed[id] && loop->plan.level[id] == TS_LEVEL_POINT) weight += loop->plan.weight[id];
  int vectors = weight > LIGHT ? 1 : MOST_VECTORS;
  while (vectors > 1 && vectors * bytes > 4 * MOST_VECTORS) vectors /= 2;
  while (vectors * loop->e->lanes > TS_COL_WIDE) vectors /= 2;
  return vectors;
}

/* Finds the reductions, and how many vectors they take at once. */
static ts_status find_group(ts_loop *loop, group *c) {
  int64_t offset = 0;
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)loop->d->node_count, &c->reduces));
  c->tree_count = find_some(loop->d, loop->plan.needed, true, c->reduces, &offset);
  c->reduce_count = c->tree_count + find_some(loop->d, loop->plan.needed, false, c->reduces + c->tree_count, &offset);
  c->vectors = vectors_of(loop, c);
  return TS_SUCCESS;
}

ts_status ts_loop_col_groups(ts_loop *loop, const ts_col_panel *panel, bool *done) {
  LLVMBuilderRef b = loop->e->b;
  const int64_t lanes = loop->e->lanes;
  group c = {.rows = panel->rows, .outer = panel->outer};
  ts_point at[MOST_VECTORS];
  TS_TRY(find_group(loop, &c));
  *done = c.vectors > 1 || lanes == TS_COL_WIDE;
  if (!*done) return TS_SUCCESS;
  ts_v width = ts_loop_number(loop, lanes * c.vectors);
  ts_v last = LLVMBuildSub(b, panel->to, width, "");
  ts_counter next = ts_loop_count_some(loop, panel->from, panel->to, width);
  ts_v first = ts_loop_col_smaller(loop, next.index, last);
  for (int v = 0; v < c.vectors; v++)
    at[v] = (ts_point){.index = LLVMBuildAdd(b, first, ts_loop_number(loop, v * lanes), "")};
  TS_TRY(some_columns(loop, &c, at, c.vectors));
  ts_loop_count_end(loop, &next);
  return TS_SUCCESS;
}

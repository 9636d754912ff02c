/* ROW: several passes over one row, then over the next. A pass computes the reductions whose operands are available and
 * stores the outputs that are complete; values that are expensive to recompute and that a later pass reads are saved in
 * the workspace.
 *
 * A reduction has several vectors of accumulators and uses them in turn: the loop variables rotate by one position for
 * each vector of points. For the tree of tensor/reduce_tree.h they make up its 32 lanes. At the end they may be turned
 * by any number of positions: a lane is combined with the one half of all lanes further, around the end, so the sum is
 * the same.
 *
 * In a row of columns that take turns, lane l of a vector belongs to column l modulo the number of columns, which
 * divides the number of lanes. So all vectors of the row are alike, and a value of the row is a vector that repeats the
 * columns' values. The tree has 32 lanes for each column: too many for registers, so they are in the workspace.
 *
 * A row in pieces is read where it is. A piece begins in the lane behind the last element of the piece before: its head
 * fills up that vector, under a mask, and the rest of the piece is whole vectors and a tail. Short pieces are copied
 * into the workspace, one behind the other, and reduced there. */
#include "jit/emit/emit_cell.h"
#include "jit/loop/loop_col.h"
#include "jit/loop/loop_search.h"

#define EXACT_ACCS 2 /* enough to hide the latency of a step */
/* Without instructions for it, a step takes longer with floats. In short rows, what more accumulators cost at the end
 * counts, where these have indices. */
#define FLOAT_ACCS 4
/* Points of a search between two looks at what it has found. */
#define SEARCH_POINTS 1024

typedef struct row_reduce {
  int32_t node;
  ts_reducer reducer;
  int accs;    /* vectors */
  int carried; /* index of the first one among the loop variables; ARG: values, then indices */
  ts_v kept;   /* the address of all lanes of the tree, of columns that take turns; or NULL */
  ts_v joined; /* of a row in pieces: the address of its elements in the workspace */
} row_reduce;

typedef struct row_pass {
  int32_t number;
  ts_span span;      /* the row */
  ts_v row_capacity; /* its length rounded up to lanes, for the workspace */
  row_reduce *reduces;
  int reduce_count;
  int carried_count;
  bool *wanted;   /* nodes of this pass, before the saved ones are excluded */
  ts_v is_found;  /* of rows that are parts of one: the address of an i1, whether no later part matters; or NULL */
  ts_v was_found; /* before the current row */
} row_pass;

/* ---- workspace ---- */

/* In front of the saved nodes: the lanes of a tree for each of the columns. */
static int64_t tree_bytes(const ts_kernel_desc *d, const ts_reducer *r) {
  return ts_reducer_needs_tree(r) ? (int64_t)ts_dtype_size(r->type) * TS_REDUCE_LANES * d->members : 0;
}

int64_t ts_loop_row_scratch(const ts_kernel_desc *d) {
  int64_t bytes = 0;
  for (int32_t id = 0; id < d->node_count; id++) {
    if (!ts_kernel_node_reduces(&d->nodes[id])) continue;
    const ts_reducer r = ts_reducer_of(d, id);
    bytes += tree_bytes(d, &r);
  }
  return bytes;
}

static ts_v scratch_address(ts_loop *loop, const row_pass *pass, int32_t id, ts_v index) {
  ts_v row = ts_loop_mul(loop, pass->row_capacity, ts_loop_number(loop, loop->plan.saved[id]));
  row = ts_loop_add(loop, row, ts_loop_number(loop, ts_loop_row_scratch(loop->d)));
  return ts_loop_element(loop, loop->d->nodes[id].dtype, ts_loop_offset(loop, loop->scratch, row), index);
}

static bool from_scratch(const ts_loop *loop, const row_pass *pass, int32_t id) {
  return pass->wanted[id] && loop->plan.saved[id] >= 0 && loop->plan.first[id] < pass->number;
}

static void load_saved(ts_loop *loop, const row_pass *pass, ts_v index) {
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (!from_scratch(loop, pass, id)) continue;
    loop->value[id] = ts_emit_load(loop->e, loop->d->nodes[id].dtype, scratch_address(loop, pass, id, index));
  }
}

static void save(ts_loop *loop, const row_pass *pass, ts_v index) {
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (!pass->wanted[id] || loop->plan.saved[id] < 0 || loop->plan.first[id] != pass->number) continue;
    ts_emit_store(loop->e, loop->d->nodes[id].dtype, loop->value[id], scratch_address(loop, pass, id, index));
  }
}

/* ---- accumulators ---- */

static ts_v lane_numbers(ts_loop *loop, int32_t first) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(loop->e->context);
  LLVMValueRef lanes[64];
  for (int i = 0; i < loop->e->lanes; i++) lanes[i] = LLVMConstInt(i32, (unsigned)(first + i), 0);
  return LLVMConstVector(lanes, (unsigned)loop->e->lanes);
}

static ts_v index_at(ts_loop *loop, ts_v index) {
  ts_v first = LLVMBuildTrunc(loop->e->b, index, LLVMInt32TypeInContext(loop->e->context), "");
  return LLVMBuildAdd(loop->e->b, ts_emit_splat(loop->e, first), lane_numbers(loop, 0), "");
}

static ts_acc carried_acc(const row_reduce *r, const ts_v *carried, int i) {
  bool arg = r->reducer.kind == TS_NODE_ARG;
  return (ts_acc){carried[r->carried + i], arg ? carried[r->carried + r->accs + i] : NULL};
}

static void set_carried_acc(const row_reduce *r, ts_v *carried, int i, ts_acc acc) {
  carried[r->carried + i] = acc.value;
  if (acc.index) carried[r->carried + r->accs + i] = acc.index;
}

static ts_v kept_address(ts_loop *loop, const row_reduce *r, ts_v index) {
  return ts_loop_element(loop, r->reducer.type, r->kept, index);
}

static ts_v kept_number(ts_loop *loop, int i) { return ts_loop_number(loop, (int64_t)i * loop->e->lanes); }

static void start_reduces(ts_loop *loop, const row_pass *pass, ts_v *carried) {
  for (int k = 0; k < pass->reduce_count; k++) {
    const row_reduce *r = &pass->reduces[k];
    for (int i = 0; i < r->accs; i++) {
      ts_acc none = ts_reducer_identity(loop->e, &r->reducer, lane_numbers(loop, i * loop->e->lanes));
      if (r->kept)
        ts_emit_store(loop->e, r->reducer.type, none.value, kept_address(loop, r, kept_number(loop, i)));
      else
        set_carried_acc(r, carried, i, none);
    }
  }
}

/* The same with accumulators in the workspace. */
static ts_status kept_step(ts_loop *loop, const row_reduce *r, const ts_point *at, ts_v x, ts_v mask) {
  const int64_t lanes = (int64_t)r->accs * loop->e->lanes;
  ts_v place = kept_address(loop, r, LLVMBuildAnd(loop->e->b, at->index, ts_loop_number(loop, lanes - 1), ""));
  ts_acc acc = {ts_emit_load(loop->e, r->reducer.type, place), NULL};
  TS_TRY(ts_reducer_step(loop->e, &r->reducer, acc, (ts_acc){x, NULL}, mask, &acc));
  ts_emit_store(loop->e, r->reducer.type, acc.value, place);
  return TS_SUCCESS;
}

/* Adds x to the next accumulator; in a last, partial vector only the lanes of the part. */
static ts_status reduce_step(ts_loop *loop, const row_reduce *r, const ts_point *at, ts_v *carried) {
  ts_emit *e = loop->e;
  bool arg = r->reducer.kind == TS_NODE_ARG;
  ts_v x = loop->value[loop->d->nodes[r->node].a];
  ts_v index = arg ? index_at(loop, at->index) : NULL, mask = at->part ? ts_emit_lane_mask(e, at->part) : NULL;
  if (r->kept) return kept_step(loop, r, at, x, mask);
  ts_acc old = carried_acc(r, carried, 0), acc;
  TS_TRY(ts_reducer_step(e, &r->reducer, old, (ts_acc){x, index}, mask, &acc));
  for (int i = 0; i + 1 < r->accs; i++) set_carried_acc(r, carried, i, carried_acc(r, carried, i + 1));
  set_carried_acc(r, carried, r->accs - 1, acc);
  return TS_SUCCESS;
}

static void load_kept(ts_loop *loop, const row_reduce *r, ts_acc *accs) {
  for (int i = 0; i < r->accs; i++)
    accs[i] = (ts_acc){ts_emit_load(loop->e, r->reducer.type, kept_address(loop, r, kept_number(loop, i))), NULL};
}

static ts_status finish_reduces(ts_loop *loop, const row_pass *pass, const ts_v *carried) {
  for (int k = 0; k < pass->reduce_count; k++) {
    const row_reduce *r = &pass->reduces[k];
    ts_acc accs[TS_REDUCE_COLUMNS * TS_REDUCE_LANES];
    if (r->kept)
      load_kept(loop, r, accs);
    else
      for (int i = 0; i < r->accs; i++) accs[i] = carried_acc(r, carried, i);
    ts_v *out = &loop->value[r->node];
    TS_TRY(loop->d->members > 0
               ? ts_reducer_collapse_columns(loop->e, &r->reducer, accs, r->accs, (unsigned)loop->d->members, out)
               : ts_reducer_collapse(loop->e, &r->reducer, accs, r->accs, out));
  }
  return TS_SUCCESS;
}

/* Of a known, short row only the vectors that have elements: lanes without elements hold the identity, which changes no
 * sum. */
static int tree_accs(const ts_loop *loop) {
  int most = TS_REDUCE_LANES / loop->e->lanes, accs = 1;
  ts_v length = loop->extent[loop->d->rank - 1];
  if (loop->d->members > 0) return TS_REDUCE_LANES * loop->d->members / loop->e->lanes;
  if (!loop->e->site || ts_kernel_has_pieces(loop->d) || LLVMConstIntGetSExtValue(length) > TS_REDUCE_LANES)
    return most;
  while (accs < most && accs * loop->e->lanes < LLVMConstIntGetSExtValue(length)) accs *= 2;
  return accs;
}

/* ---- a pass ---- */

static bool searches(const ts_kernel_desc *d) {
  return d->columns == TS_COLUMNS_SEARCH || d->columns == TS_COLUMNS_PARTS;
}

static int count_accs(const ts_loop *loop, const ts_reducer *r) {
  if (ts_reducer_needs_tree(r)) return tree_accs(loop);
  const bool few = loop->e->site || (r->kind == TS_NODE_ARG && !searches(loop->d));
  return ts_dtype_is_float(r->type) && loop->e->target->isa != TS_ISA_AVX512 && !few ? FLOAT_ACCS : EXACT_ACCS;
}

static ts_status find_reduces(ts_loop *loop, row_pass *pass) {
  const ts_kernel_desc *d = loop->d;
  int64_t kept = 0;
  pass->reduce_count = 0, pass->carried_count = 0;
  for (int32_t id = 0; id < d->node_count; id++) {
    bool here =
        ts_kernel_node_reduces(&d->nodes[id]) && loop->plan.needed[id] && loop->plan.stage[id] == pass->number + 1;
    if (!here) continue;
    row_reduce *r = &pass->reduces[pass->reduce_count++];
    *r = (row_reduce){.node = id, .reducer = ts_reducer_of(d, id), .carried = pass->carried_count};
    r->accs = count_accs(loop, &r->reducer);
    if (d->members > 0 && ts_reducer_needs_tree(&r->reducer)) {
      r->kept = ts_loop_offset(loop, loop->scratch, ts_loop_number(loop, kept));
      kept += tree_bytes(d, &r->reducer);
      continue;
    }
    pass->carried_count += r->accs * (r->reducer.kind == TS_NODE_ARG ? 2 : 1);
  }
  if (pass->carried_count <= TS_LOOP_MAX_CARRIED) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "kernel: %d reductions in one pass", pass->reduce_count);
}

/* The vectors after which every accumulator is at its place again: all numbers of them are powers of 2. */
static int turns_of(const row_pass *pass) {
  int most = 1;
  for (int k = 0; k < pass->reduce_count; k++) {
    if (!pass->reduces[k].kept && pass->reduces[k].accs > most) most = pass->reduces[k].accs;
  }
  return most;
}

static ts_status row_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  const row_pass *pass = context;
  load_saved(loop, pass, at->index);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  save(loop, pass, at->index);
  for (int k = 0; k < pass->reduce_count; k++) TS_TRY(reduce_step(loop, &pass->reduces[k], at, carried));
  ts_loop_store(loop, at, loop->plan.output_pass, pass->number);
  return TS_SUCCESS;
}

/* ---- a search ---- */

static ts_v is_final(ts_loop *loop, const row_pass *pass, const ts_v *carried) {
  ts_acc accs[FLOAT_ACCS];
  const row_reduce *r = &pass->reduces[0];
  for (int i = 0; i < r->accs; i++) accs[i] = carried_acc(r, carried, i);
  return ts_reducer_is_final(loop->e, &r->reducer, accs, r->accs);
}

/* What a row has where an earlier part of the same row ended the search: the next stage prefers that part. */
static void set_final(ts_loop *loop, const row_pass *pass, ts_v *carried) {
  for (int k = 0; k < pass->reduce_count; k++) {
    const row_reduce *r = &pass->reduces[k];
    for (int i = 0; i < r->accs; i++) set_carried_acc(r, carried, i, ts_reducer_final(loop->e, &r->reducer));
  }
}

/* Some points after the others, until no later one can matter. */
static ts_status points_in_turn(ts_loop *loop, row_pass *pass, ts_v *carried, ts_v *out_found) {
  LLVMBuilderRef b = loop->e->b;
  ts_v phis[TS_LOOP_MAX_CARRIED], zero = ts_loop_number(loop, 0), length = loop->extent[loop->d->rank - 1];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), search = ts_loop_block(loop, "turn");
  LLVMBasicBlockRef done = ts_loop_block(loop, "turned");
  LLVMBuildBr(b, search);
  LLVMPositionBuilderAtEnd(b, search);
  ts_v from = LLVMBuildPhi(b, loop->i64, "");
  LLVMAddIncoming(from, &zero, &before, 1);
  for (int i = 0; i < pass->carried_count; i++) {
    phis[i] = LLVMBuildPhi(b, LLVMTypeOf(carried[i]), "");
    LLVMAddIncoming(phis[i], &carried[i], &before, 1);
    carried[i] = phis[i];
  }
  ts_v next = ts_loop_add(loop, from, ts_loop_number(loop, SEARCH_POINTS));
  ts_v to = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){next, length}, 2);
  ts_span span = ts_loop_span(loop, from, to);
  TS_TRY(ts_loop_points(loop, &span, carried, pass->carried_count, row_point, pass));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMAddIncoming(from, &next, &here, 1);
  for (int i = 0; i < pass->carried_count; i++) LLVMAddIncoming(phis[i], &carried[i], &here, 1);
  *out_found = is_final(loop, pass, carried);
  ts_v ends = LLVMBuildOr(b, *out_found, LLVMBuildICmp(b, LLVMIntSGE, next, length, ""), "");
  LLVMBuildCondBr(b, ends, done, search);
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

/* The points of the part that has the first of the best. A greatest or least zero may have the other sign elsewhere,
 * and where its value is asked for, all points are looked at. */
static ts_status points_of_best(ts_loop *loop, row_pass *pass, ts_v *carried, ts_v *out_found) {
  LLVMBuilderRef b = loop->e->b;
  const row_reduce *arg = NULL;
  ts_v length = loop->extent[loop->d->rank - 1];
  ts_part part;
  bool has_value = false;
  for (int k = 0; k < pass->reduce_count; k++) {
    if (pass->reduces[k].reducer.kind == TS_NODE_ARG)
      arg = &pass->reduces[k];
    else
      has_value = ts_dtype_is_float(pass->reduces[k].reducer.type);
  }
  TS_TRY(ts_loop_search(loop, &arg->reducer, loop->d->nodes[arg->node].a, length, &part));
  if (has_value) {
    ts_v zero = LLVMConstNull(LLVMTypeOf(part.best));
    zero = ts_reducer_any(loop->e, LLVMBuildFCmp(b, LLVMRealOEQ, part.best, zero, ""));
    part.from = LLVMBuildSelect(b, zero, ts_loop_number(loop, 0), part.from, "");
    part.to = LLVMBuildSelect(b, zero, length, part.to, "");
  }
  ts_span span = ts_loop_span(loop, part.from, part.to);
  TS_TRY(ts_loop_points(loop, &span, carried, pass->carried_count, row_point, pass));
  *out_found = is_final(loop, pass, carried);
  return TS_SUCCESS;
}

/* Heavier points are not worth a second look. */
#define SEARCH_WEIGHT 12

static bool looks_twice(const ts_loop *loop) {
  int32_t weight = 0;
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    const bool at_points = loop->wanted[id] && loop->plan.level[id] == TS_LEVEL_POINT;
    if (at_points && loop->d->nodes[id].kind == TS_NODE_GATHER) return false;
    if (at_points) weight += loop->plan.weight[id];
  }
  return weight <= SEARCH_WEIGHT;
}

static ts_status search_points(ts_loop *loop, row_pass *pass, ts_v *carried) {
  LLVMBuilderRef b = loop->e->b;
  ts_v final[TS_LOOP_MAX_CARRIED], found;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), search = ts_loop_block(loop, "search");
  LLVMBasicBlockRef done = ts_loop_block(loop, "searched");
  LLVMBuildCondBr(b, pass->was_found, done, search);
  LLVMPositionBuilderAtEnd(b, search);
  TS_TRY((looks_twice(loop) ? points_of_best : points_in_turn)(loop, pass, carried, &found));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  set_final(loop, pass, final);
  for (int i = 0; i < pass->carried_count; i++) carried[i] = ts_loop_either(loop, final[i], before, carried[i], here);
  if (pass->is_found) LLVMBuildStore(b, ts_loop_either(loop, pass->was_found, before, found, here), pass->is_found);
  return TS_SUCCESS;
}

static ts_status emit_pass(ts_loop *loop, row_pass *pass) {
  ts_v carried[TS_LOOP_MAX_CARRIED];
  ts_span span = pass->span;
  TS_TRY(find_reduces(loop, pass));
  span.turns = turns_of(pass);
  ts_loop_plan_pass(loop->d, &loop->plan, pass->number, pass->wanted);
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    loop->wanted[id] = pass->wanted[id] && !from_scratch(loop, pass, id);
  }
  start_reduces(loop, pass, carried);
  if (searches(loop->d) && !loop->e->site)
    TS_TRY(search_points(loop, pass, carried));
  else
    TS_TRY(ts_loop_points(loop, &span, carried, pass->carried_count, row_point, pass));
  return finish_reduces(loop, pass, carried);
}

/* ---- a row ---- */

static int32_t values_of_row(const ts_kernel_desc *d) { return d->members > 0 ? d->members : 1; }

/* Emits row-level values that are available after `stage` passes, and stores the outputs among them. */
static ts_status emit_row_values(ts_loop *loop, int32_t stage) {
  const ts_kernel_desc *d = loop->d;
  for (int32_t id = 0; id < d->node_count; id++) {
    loop->wanted[id] = loop->plan.needed[id] && loop->plan.stage[id] == stage;
  }
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  for (int32_t i = 0; i < d->output_count; i++) {
    const ts_kernel_output *o = &d->outputs[i];
    if (!ts_kernel_is_of_row(d, &o->operand) || loop->plan.stage[o->node] != stage) continue;
    ts_v address = loop->base[ts_loop_output_operand(loop, i)], count = ts_loop_number(loop, values_of_row(d));
    ts_emit_store_tail(loop->e, o->operand.dtype, loop->value[o->node], address, count);
  }
  return TS_SUCCESS;
}

/* Whether an earlier part of the row has ended the search. */
static void look_back(ts_loop *loop, row_pass *pass, const ts_v *counters) {
  LLVMBuilderRef b = loop->e->b;
  LLVMTypeRef i1 = LLVMInt1TypeInContext(loop->e->context);
  pass->was_found = LLVMConstNull(i1);
  if (!pass->is_found) return;
  ts_v is_later = LLVMBuildICmp(b, LLVMIntNE, counters[loop->d->rank - 2], ts_loop_number(loop, 0), "");
  pass->was_found = LLVMBuildAnd(b, LLVMBuildLoad2(b, i1, pass->is_found, ""), is_later, "");
}

static ts_status row_body(void *context, ts_loop *loop, const ts_v *counters) {
  row_pass *pass = context;
  ts_loop_set_row(loop, counters, loop->d->rank - 1);
  look_back(loop, pass, counters);
  for (pass->number = 0; pass->number < loop->plan.passes; pass->number++) {
    TS_TRY(emit_row_values(loop, pass->number));
    TS_TRY(emit_pass(loop, pass));
  }
  return emit_row_values(loop, loop->plan.passes);
}

/* ---- a row in pieces ---- */

typedef struct pieces {
  row_pass pass; /* the span of the pass is one piece, or what a block has of it */
  ts_span row;   /* the span of all pieces, or of a block */
  ts_v start;    /* where the current piece begins in the row; less than 0 where an earlier block has its beginning */
  ts_v length;   /* of all pieces */
  ts_v first, last; /* the pieces of the row: from the first one on, before the last one */
  ts_v before;      /* BLOCKS: the elements before the row */
  bool joins;       /* through the workspace */
} pieces;

/* The elements that fill up the vector of the piece before. */
typedef struct piece_head {
  ts_v used;  /* lanes that have elements already */
  ts_v count; /* elements for the lanes behind them */
} piece_head;

/* Undoes a step's rotation unless `whole`, an i1, or NULL for false: the next element belongs to the same vector of
 * accumulators. */
static void turn_back(ts_loop *loop, const row_reduce *r, ts_v *carried, ts_v whole) {
  ts_v turned[TS_REDUCE_LANES];
  for (int i = 0; i < r->accs; i++) turned[i] = carried_acc(r, carried, i).value;
  for (int i = 0; i < r->accs; i++) {
    ts_v back = turned[(i + r->accs - 1) % r->accs];
    if (whole) back = LLVMBuildSelect(loop->e->b, whole, turned[i], back, "");
    set_carried_acc(r, carried, i, (ts_acc){back, NULL});
  }
}

static ts_status piece_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  const pieces *p = context;
  /* Where the next piece begins, no prefetcher of the hardware looks. */
  for (int32_t i = 0; i < loop->d->input_count; i++) ts_loop_col_ask_ahead(loop, i, at->index, 1);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  for (int k = 0; k < p->pass.reduce_count; k++) {
    TS_TRY(reduce_step(loop, &p->pass.reduces[k], at, carried));
    if (at->part) turn_back(loop, &p->pass.reduces[k], carried, at->whole);
  }
  return TS_SUCCESS;
}

/* The vector begins before the piece, by as many elements as there are used lanes; masked loads do not read these. */
static ts_status head_point(ts_loop *loop, const pieces *p, const piece_head *head, ts_v *carried) {
  LLVMBuilderRef b = loop->e->b;
  ts_v end = ts_loop_add(loop, head->used, head->count);
  ts_v unused = LLVMBuildNot(b, ts_emit_lane_mask(loop->e, head->used), "");
  ts_point at = {.index = LLVMBuildSub(b, p->pass.span.from, head->used, "")};
  at.part = LLVMBuildAnd(b, ts_emit_lane_mask(loop->e, end), unused, "");
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &at));
  ts_v whole = LLVMBuildICmp(b, LLVMIntEQ, end, ts_loop_number(loop, loop->e->lanes), "");
  for (int k = 0; k < p->pass.reduce_count; k++) {
    TS_TRY(reduce_step(loop, &p->pass.reduces[k], &at, carried));
    turn_back(loop, &p->pass.reduces[k], carried, whole);
  }
  return TS_SUCCESS;
}

/* ---- a row in pieces, by a copy ---- */

static ts_v joined_address(ts_loop *loop, const row_reduce *r, ts_v index) {
  return ts_loop_element(loop, loop->d->nodes[loop->d->nodes[r->node].a].dtype, r->joined, index);
}

/* What a vector has behind the end of a piece is overwritten by the next one. */
static ts_status join_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)carried;
  const pieces *p = context;
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  for (int k = 0; k < p->pass.reduce_count; k++) {
    const row_reduce *r = &p->pass.reduces[k];
    const int32_t x = loop->d->nodes[r->node].a;
    ts_emit_store(loop->e, loop->d->nodes[x].dtype, loop->value[x],
                  joined_address(loop, r, ts_loop_add(loop, p->start, at->index)));
  }
  return TS_SUCCESS;
}

static ts_status joined_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  const pieces *p = context;
  for (int k = 0; k < p->pass.reduce_count; k++) {
    const row_reduce *r = &p->pass.reduces[k];
    const int32_t x = loop->d->nodes[r->node].a;
    loop->value[x] = ts_emit_load(loop->e, loop->d->nodes[x].dtype, joined_address(loop, r, at->index));
    TS_TRY(reduce_step(loop, r, at, carried));
  }
  return TS_SUCCESS;
}

static ts_v lesser(ts_loop *loop, ts_v a, ts_v b) {
  return ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){a, b}, 2);
}

/* The row is the block of this number: some pieces, of which the first and the last may be in other blocks, too. */
static void find_block(ts_loop *loop, pieces *p, ts_v number) {
  LLVMBuilderRef b = loop->e->b;
  ts_v piece = loop->extent[loop->d->rank - 1], block = ts_loop_number(loop, TS_REDUCE_BLOCK);
  p->before = ts_loop_mul(loop, number, block);
  ts_v end = lesser(loop, ts_loop_add(loop, p->before, block), p->length);
  p->first = LLVMBuildUDiv(b, p->before, piece, "");
  p->last = LLVMBuildUDiv(b, ts_loop_add(loop, end, ts_loop_number(loop, -1)), piece, "");
  p->last = ts_loop_add(loop, p->last, ts_loop_number(loop, 1));
  p->row = ts_loop_span(loop, ts_loop_number(loop, 0), LLVMBuildSub(b, end, p->before, ""));
}

/* What a block has of the current piece. */
static ts_span span_in_block(ts_loop *loop, const pieces *p) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), end = LLVMBuildSub(b, p->row.to, p->start, "");
  ts_v from = ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){LLVMBuildNeg(b, p->start, ""), zero}, 2);
  return ts_loop_span(loop, from, lesser(loop, loop->extent[loop->d->rank - 1], end));
}

/* Finds the piece of these counters, and computes what all of its points share. */
static ts_status begin_piece(ts_loop *loop, pieces *p, const ts_v *counters) {
  const int32_t rank = loop->d->rank;
  p->start = ts_loop_mul(loop, counters[rank - 2], loop->extent[rank - 1]);
  if (p->before) p->start = LLVMBuildSub(loop->e->b, p->start, p->before, "");
  if (p->before) p->pass.span = span_in_block(loop, p);
  ts_loop_set_row(loop, counters, rank - 1);
  for (int32_t id = 0; id < loop->d->node_count; id++)
    loop->wanted[id] = loop->plan.needed[id] && loop->plan.stage[id] == 0;
  return ts_loop_nodes(loop, TS_LEVEL_ROW, NULL);
}

static ts_status join_pieces(ts_loop *loop, pieces *p, const ts_v *outer) {
  const int32_t rank = loop->d->rank;
  ts_v counters[TS_KERNEL_MAX_RANK];
  for (int32_t i = 0; i + 2 < rank; i++) counters[i] = outer[i];
  ts_counter piece = ts_loop_count_some(loop, p->first, p->last, ts_loop_number(loop, 1));
  counters[rank - 2] = piece.index;
  TS_TRY(begin_piece(loop, p, counters));
  TS_TRY(ts_loop_points(loop, &p->pass.span, NULL, 0, join_point, p));
  ts_loop_count_end(loop, &piece);
  return TS_SUCCESS;
}

/* Takes the head of a piece, if the piece before did not end with its vector. Returns the rest of the piece. */
static ts_status take_head(ts_loop *loop, const pieces *p, ts_v *carried, ts_span *out_rest) {
  LLVMBuilderRef b = loop->e->b;
  const ts_span *span = &p->pass.span;
  ts_v zero = ts_loop_number(loop, 0), lanes = ts_loop_number(loop, loop->e->lanes), either[TS_LOOP_MAX_CARRIED];
  piece_head head = {.used = ts_loop_add(loop, p->start, span->from)};
  head.used = LLVMBuildAnd(b, head.used, ts_loop_number(loop, loop->e->lanes - 1), "");
  head.count = LLVMBuildSub(b, lanes, head.used, "");
  head.count = lesser(loop, head.count, LLVMBuildSub(b, span->to, span->from, ""));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), begin = ts_loop_block(loop, "head");
  LLVMBasicBlockRef done = ts_loop_block(loop, "head_done");
  ts_v has_head = LLVMBuildICmp(b, LLVMIntNE, head.used, zero, "");
  LLVMBuildCondBr(b, has_head, begin, done);
  LLVMPositionBuilderAtEnd(b, begin);
  for (int i = 0; i < p->pass.carried_count; i++) either[i] = carried[i];
  ts_emit_cells_enter(loop->e, 1);
  TS_TRY(head_point(loop, p, &head, either));
  ts_emit_cells_enter(loop->e, -1);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  for (int i = 0; i < p->pass.carried_count; i++)
    carried[i] = ts_loop_either(loop, carried[i], before, either[i], here);
  ts_v taken = LLVMBuildSelect(b, has_head, head.count, zero, "");
  *out_rest = ts_loop_span(loop, ts_loop_add(loop, span->from, taken), span->to);
  return TS_SUCCESS;
}

static ts_status take_piece(ts_loop *loop, pieces *p, const ts_v *counters, ts_v *carried) {
  ts_span rest;
  TS_TRY(begin_piece(loop, p, counters));
  TS_TRY(take_head(loop, p, carried, &rest));
  rest.turns = turns_of(&p->pass);
  return ts_loop_points(loop, &rest, carried, p->pass.carried_count, piece_point, p);
}

/* The accumulators are loop variables of the loop over pieces. There is a piece at least. */
static ts_status take_pieces(ts_loop *loop, pieces *p, const ts_v *outer, ts_v *carried) {
  LLVMBuilderRef b = loop->e->b;
  const int32_t rank = loop->d->rank;
  ts_v counters[TS_KERNEL_MAX_RANK], phis[TS_LOOP_MAX_CARRIED];
  for (int32_t i = 0; i + 2 < rank; i++) counters[i] = outer[i];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter piece = ts_loop_count_some(loop, p->first, p->last, ts_loop_number(loop, 1));
  for (int i = 0; i < p->pass.carried_count; i++) {
    phis[i] = LLVMBuildPhi(b, LLVMTypeOf(carried[i]), "");
    LLVMAddIncoming(phis[i], &carried[i], &before, 1);
    carried[i] = phis[i];
  }
  counters[rank - 2] = piece.index;
  TS_TRY(take_piece(loop, p, counters, carried));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  for (int i = 0; i < p->pass.carried_count; i++) LLVMAddIncoming(phis[i], &carried[i], &here, 1);
  ts_loop_count_end(loop, &piece);
  return TS_SUCCESS;
}

static ts_status join_row(ts_loop *loop, pieces *p, const ts_v *counters, ts_v *carried) {
  TS_TRY(join_pieces(loop, p, counters));
  for (int32_t id = 0; id < loop->d->node_count; id++) loop->wanted[id] = false;
  p->row.turns = turns_of(&p->pass);
  return ts_loop_points(loop, &p->row, carried, p->pass.carried_count, joined_point, p);
}

static ts_status pieces_body(void *context, ts_loop *loop, const ts_v *counters) {
  pieces *p = context;
  ts_v carried[TS_LOOP_MAX_CARRIED];
  if (loop->d->columns == TS_COLUMNS_BLOCKS) find_block(loop, p, counters[loop->d->rank - 3]);
  start_reduces(loop, &p->pass, carried);
  TS_TRY((p->joins ? join_row : take_pieces)(loop, p, counters, carried));
  TS_TRY(finish_reduces(loop, &p->pass, carried));
  ts_loop_set_row(loop, counters, loop->d->rank - 2);
  TS_TRY(emit_row_values(loop, 0));
  return emit_row_values(loop, 1);
}

/* Short pieces, those that would need branches in place of masks, and those in the code of another kernel, where values
 * in registers are not read under masks. */
static bool joins(const ts_loop *loop) {
  bool masks = !loop->e->site && loop->d->long_pieces;
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    const ts_kernel_operand *o = &loop->d->inputs[i];
    masks &= o->stride[loop->d->rank - 1] != TS_STRIDE_UNIT || ts_emit_moves_under_masks(loop->e, o->dtype);
  }
  return !masks;
}

static ts_status emit_pieces(ts_loop *loop) {
  const int32_t rank = loop->d->rank;
  pieces p = {.joins = joins(loop)};
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)loop->d->node_count, &p.pass.reduces));
  TS_TRY(find_reduces(loop, &p.pass));
  ts_v zero = ts_loop_number(loop, 0), lanes = ts_loop_number(loop, loop->e->lanes);
  ts_v length = ts_loop_mul(loop, loop->extent[rank - 2], loop->extent[rank - 1]), most = length;
  if (loop->d->columns == TS_COLUMNS_BLOCKS) most = lesser(loop, length, ts_loop_number(loop, TS_REDUCE_BLOCK));
  ts_v up = ts_loop_add(loop, most, ts_loop_number(loop, loop->e->lanes - 1)), at = loop->scratch;
  p.length = length, p.first = zero, p.last = loop->extent[rank - 2];
  p.pass.span = ts_loop_span(loop, zero, loop->extent[rank - 1]);
  p.row = ts_loop_span(loop, zero, length);
  p.pass.row_capacity = LLVMBuildAnd(loop->e->b, up, ts_loop_number(loop, -(int64_t)loop->e->lanes), "");
  for (int k = 0; k < p.pass.reduce_count; k++) {
    p.pass.reduces[k].joined = at;
    at = joined_address(loop, &p.pass.reduces[k], ts_loop_add(loop, p.pass.row_capacity, lanes));
  }
  return ts_loop_rows(loop, rank - 2, pieces_body, &p);
}

static ts_status emit_row(ts_loop *loop) {
  if (ts_kernel_has_pieces(loop->d)) return emit_pieces(loop);
  row_pass pass = {0};
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)loop->d->node_count, &pass.reduces));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)loop->d->node_count, &pass.wanted));
  if (loop->d->columns == TS_COLUMNS_PARTS && !loop->e->site) {
    LLVMTypeRef i1 = LLVMInt1TypeInContext(loop->e->context);
    pass.is_found = ts_emit_alloca(loop->e, i1);
    LLVMBuildStore(loop->e->b, LLVMConstNull(i1), pass.is_found);
  }
  ts_v length = loop->extent[loop->d->rank - 1],
       up = ts_loop_add(loop, length, ts_loop_number(loop, loop->e->lanes - 1));
  pass.span = ts_loop_span(loop, ts_loop_number(loop, 0), length);
  pass.row_capacity = LLVMBuildAnd(loop->e->b, up, ts_loop_number(loop, -(int64_t)loop->e->lanes), "");
  return ts_loop_rows(loop, loop->d->rank - 1, row_body, &pass);
}

/* Of long rows, as many elements as a register has; in place, vectors are chosen for the length. */
static int lanes_of(const ts_emit *e, const ts_kernel_desc *desc) {
  if (desc->members > e->lanes) return desc->members;
  if (desc->columns != TS_COLUMNS_LONG || e->site) return e->lanes;
  return e->lanes * 4 / ts_kernel_narrow_bytes(desc);
}

ts_status ts_loop_emit_row(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  const int lanes = e->lanes;
  ts_loop loop;
  e->lanes = lanes_of(e, desc);
  e->holds =
      !e->site &&
      e->target->isa == TS_ISA_AVX512; /* 32 registers suffice, and a row uses the same few constants several times */
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_row(&loop);
  status = ts_loop_close(&loop, status);
  e->lanes = lanes;
  return status;
}

#include "jit/loop/loop_body.h"
#include "jit/emit/emit_cell.h"

/* ---- small pieces ---- */

ts_v ts_loop_number(const ts_loop *loop, int64_t value) {
  return LLVMConstInt(loop->i64, (unsigned long long)value, 1);
}

ts_v ts_loop_offset(ts_loop *loop, ts_v address, ts_v bytes) {
  if (LLVMIsNull(bytes)) return address;
  return LLVMBuildGEP2(loop->e->b, loop->i8, address, &bytes, 1, "");
}

ts_v ts_loop_element(ts_loop *loop, ts_dtype type, ts_v address, ts_v index) {
  if (LLVMIsNull(index)) return address;
  return LLVMBuildGEP2(loop->e->b, ts_emit_memory_type(loop->e, type), address, &index, 1, "");
}

ts_v ts_loop_add(ts_loop *loop, ts_v a, ts_v b) { return LLVMIsNull(a) ? b : LLVMBuildAdd(loop->e->b, a, b, ""); }
ts_v ts_loop_mul(ts_loop *loop, ts_v a, ts_v b) { return LLVMIsNull(b) ? b : LLVMBuildMul(loop->e->b, a, b, ""); }

LLVMBasicBlockRef ts_loop_block(ts_loop *loop, const char *name) {
  return LLVMAppendBasicBlockInContext(loop->e->context, loop->e->function, name);
}

static ts_v arg_address(ts_loop *loop, int32_t word) {
  return ts_loop_offset(loop, loop->args, ts_loop_number(loop, 8 * (int64_t)word));
}

static ts_v load_word(ts_loop *loop, LLVMTypeRef type, int32_t word) {
  return LLVMBuildLoad2(loop->e->b, type, arg_address(loop, word), "");
}

ts_v ts_loop_arg(ts_loop *loop, int32_t word) {
  const ts_site *site = loop->e->site;
  return site ? ts_loop_number(loop, site->args[word]) : load_word(loop, loop->i64, word);
}

int32_t ts_loop_output_operand(const ts_loop *loop, int32_t output) { return loop->d->input_count + output; }

static const ts_kernel_operand *operand_of(const ts_loop *loop, int32_t operand) {
  const ts_kernel_desc *d = loop->d;
  if (operand < d->input_count) return &d->inputs[operand];
  operand -= d->input_count;
  return operand < d->output_count ? &d->outputs[operand].operand : &d->indices[operand - d->output_count];
}

static bool is_index(const ts_loop *loop, int32_t operand) {
  return operand >= loop->d->input_count + loop->d->output_count;
}

static ts_counter begin_count(ts_loop *loop, ts_v from, ts_v to, ts_v step, bool always) {
  LLVMBuilderRef b = loop->e->b;
  ts_emit_cells_enter(loop->e, 1);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter c = {.to = to, .step = step, .body = ts_loop_block(loop, "count"), .done = ts_loop_block(loop, "counted")};
  if (always)
    LLVMBuildBr(b, c.body);
  else
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, from, to, ""), c.body, c.done);
  LLVMPositionBuilderAtEnd(b, c.body);
  c.index = LLVMBuildPhi(b, loop->i64, "");
  LLVMAddIncoming(c.index, &from, &before, 1);
  return c;
}

ts_counter ts_loop_count(ts_loop *loop, ts_v from, ts_v to, ts_v step) {
  return begin_count(loop, from, to, step, false);
}

ts_counter ts_loop_count_some(ts_loop *loop, ts_v from, ts_v to, ts_v step) {
  return begin_count(loop, from, to, step, true);
}

void ts_loop_count_end(ts_loop *loop, ts_counter *counter) {
  LLVMBuilderRef b = loop->e->b;
  ts_emit_cells_enter(loop->e, -1);
  ts_v next = ts_loop_add(loop, counter->index, counter->step);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMAddIncoming(counter->index, &next, &here, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, counter->to, ""), counter->body, counter->done);
  LLVMPositionBuilderAtEnd(b, counter->done);
}

/* ---- frame ---- */

static void begin_function(ts_loop *loop, const char *name) {
  ts_emit *e = loop->e;
  LLVMTypeRef parameters[] = {loop->pointer, loop->i64, loop->i64, loop->pointer};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), parameters, 4, 0);
  e->function = LLVMAddFunction(e->module, name, type);
  loop->args = LLVMGetParam(e->function, 0);
  loop->begin = LLVMGetParam(e->function, 1);
  loop->end = LLVMGetParam(e->function, 2);
  loop->scratch = LLVMGetParam(e->function, 3);
  LLVMPositionBuilderAtEnd(e->b, ts_loop_block(loop, "entry"));
  LLVMBasicBlockRef work = ts_loop_block(loop, "work");
  loop->leave = ts_loop_block(loop, "leave");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, loop->begin, loop->end, ""), work, loop->leave);
  LLVMPositionBuilderAtEnd(e->b, loop->leave);
  LLVMBuildRetVoid(e->b);
  LLVMPositionBuilderAtEnd(e->b, work);
}

/* Begins a launch in place: it has at least one unit. */
static void begin_site(ts_loop *loop) {
  const ts_site *site = loop->e->site;
  loop->begin = ts_loop_number(loop, 0);
  loop->end = ts_loop_number(loop, site->units);
  loop->scratch = site->scratch;
  loop->leave = ts_loop_block(loop, "launched");
}

static ts_v stride_value(ts_loop *loop, int32_t operand, int32_t dim) {
  const ts_kernel_operand *o = operand_of(loop, operand);
  if (o->stride[dim] == TS_STRIDE_ZERO) return NULL;
  if (o->stride[dim] == TS_STRIDE_ANY) return ts_loop_arg(loop, ts_kernel_arg_operand(loop->d, operand) + 1 + dim);
  int64_t unit = is_index(loop, operand) ? 1 : (int64_t)ts_dtype_size(o->dtype);
  if (o->stride[dim] == TS_STRIDE_NEAR) return ts_loop_number(loop, unit * o->step[dim]);
  return ts_loop_number(loop, unit * ts_kernel_known_stride(loop->d, o->stride[dim]));
}

static ts_v operand_address(ts_loop *loop, int32_t operand) {
  int32_t word = ts_kernel_arg_operand(loop->d, operand);
  if (is_index(loop, operand)) return ts_loop_arg(loop, word);
  return loop->e->site ? loop->e->site->addresses[word] : load_word(loop, loop->pointer, word);
}

static void load_frame(ts_loop *loop) {
  int32_t rank = loop->d->rank;
  for (int32_t i = 0; i < rank; i++) loop->extent[i] = ts_loop_arg(loop, i);
  for (int32_t o = 0; o < loop->operand_count; o++) {
    loop->base[o] = loop->address[o] = operand_address(loop, o);
    for (int32_t i = 0; i < rank; i++) loop->stride[o * rank + i] = stride_value(loop, o, i);
  }
}

static bool streams(const ts_kernel_desc *d) {
  for (int32_t i = 0; i < d->output_count; i++) {
    if (d->outputs[i].stream) return true;
  }
  return false;
}

/* A mask of lanes that are read downwards, or put together from several vectors, would have to be made for each
 * vector. */
static bool has_masks(const ts_loop *loop, const ts_kernel_operand *o) {
  uint8_t last = o->stride[loop->d->rank - 1];
  return last != TS_STRIDE_DOWN && last != TS_STRIDE_NEAR &&
         ts_emit_has_masks(loop->e, o->dtype, last == TS_STRIDE_ANY);
}

/* True when every access to points can be masked. */
static bool all_have_masks(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  bool all = true;
  for (int32_t i = 0; i < d->input_count; i++) all &= has_masks(loop, &d->inputs[i]);
  for (int32_t i = 0; i < d->output_count; i++) all &= has_masks(loop, &d->outputs[i].operand);
  for (int32_t i = 0; i < d->node_count; i++) {
    if (d->nodes[i].kind == TS_NODE_GATHER) all &= ts_emit_has_masks(loop->e, d->nodes[i].dtype, true);
  }
  return all;
}

static ts_status allocate(ts_loop *loop) {
  size_t operands = (size_t)loop->operand_count, nodes = (size_t)loop->d->node_count;
  TS_TRY(ts_loop_plan_make(loop->d, &loop->arena, &loop->plan));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, operands, &loop->address));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, operands, &loop->base));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, operands, &loop->tile_row));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, operands * (size_t)loop->d->rank, &loop->stride));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &loop->value));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &loop->partial));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &loop->gathered));
  return TS_ARENA_ARRAY(&loop->arena, nodes, &loop->wanted);
}

ts_status ts_loop_open(ts_loop *loop, ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  *loop = (ts_loop){.e = e, .d = desc};
  ts_arena_init(&loop->arena);
  loop->operand_count = desc->input_count + desc->output_count + desc->index_count;
  loop->masks = !e->site && all_have_masks(loop);
  loop->streams = streams(desc);
  loop->i64 = LLVMInt64TypeInContext(e->context);
  loop->i8 = LLVMInt8TypeInContext(e->context);
  loop->pointer = LLVMPointerTypeInContext(e->context, 0);
  TS_TRY(allocate(loop));
  if (e->site)
    begin_site(loop);
  else
    begin_function(loop, name);
  load_frame(loop);
  ts_loop_want_all(loop);
  return ts_loop_nodes(loop, TS_LEVEL_KERNEL, NULL);
}

ts_status ts_loop_close(ts_loop *loop, ts_status status) {
  /* Non-temporal stores are not ordered with the stores that publish the results to other threads. */
  if (!status && loop->streams) LLVMBuildFence(loop->e->b, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
  if (!status) LLVMBuildBr(loop->e->b, loop->leave);
  if (!status && loop->e->site) LLVMPositionBuilderAtEnd(loop->e->b, loop->leave);
  ts_arena_deinit(&loop->arena);
  return status;
}

/* ---- rows ---- */

static ts_v moved(ts_loop *loop, int32_t operand, ts_v base, ts_v counter, ts_v stride) {
  if (!stride) return base;
  ts_v by = ts_loop_mul(loop, counter, stride);
  return is_index(loop, operand) ? ts_loop_add(loop, base, by) : ts_loop_offset(loop, base, by);
}

void ts_loop_set_row(ts_loop *loop, const ts_v *counters, int32_t dims) {
  int32_t rank = loop->d->rank;
  for (int32_t o = 0; o < loop->operand_count; o++) {
    ts_v base = loop->address[o];
    for (int32_t i = 0; i < dims; i++) base = moved(loop, o, base, counters[i], loop->stride[o * rank + i]);
    loop->base[o] = base;
  }
}

/* The counters of the first row; a single row needs no division. */
static void first_counters(ts_loop *loop, int32_t dims, ts_v *counters) {
  LLVMBuilderRef b = loop->e->b;
  ts_v rest = loop->begin;
  for (int32_t i = dims - 1; i > 0; i--) {
    counters[i] = LLVMBuildURem(b, rest, loop->extent[i], "");
    rest = LLVMBuildUDiv(b, rest, loop->extent[i], "");
  }
  if (dims > 0) counters[0] = rest;
}

static void next_counters(ts_loop *loop, int32_t dims, const ts_v *counters, ts_v *next) {
  LLVMBuilderRef b = loop->e->b;
  ts_v carry = ts_loop_number(loop, 1);
  for (int32_t i = dims - 1; i >= 0; i--) {
    ts_v sum = ts_loop_add(loop, counters[i], carry);
    if (i == 0) {
      next[i] = sum;
      break;
    }
    ts_v full = LLVMBuildICmp(b, LLVMIntEQ, sum, loop->extent[i], "");
    next[i] = LLVMBuildSelect(b, full, ts_loop_number(loop, 0), sum, "");
    carry = LLVMBuildZExt(b, full, loop->i64, "");
  }
}

/* Rows of so many nodes are emitted one by one: their addresses are then constants away from each other. */
#define UNROLL_NODES 64

/* The rows of a launch in place: all of them. */
typedef struct known_rows {
  int32_t dims;
  ts_row_fn fn;
  void *context;
  ts_v counters[TS_KERNEL_MAX_RANK];
} known_rows;

static bool unrolls(const ts_loop *loop, int64_t rows) {
  int64_t length = loop->e->site->args[loop->d->rank - 1], vectors = (length + loop->e->lanes - 1) / loop->e->lanes;
  return rows == 1 || rows * loop->d->node_count * vectors <= UNROLL_NODES;
}

static ts_status rows_of_dim(ts_loop *loop, known_rows *k, int32_t dim) {
  if (dim == k->dims) return k->fn(k->context, loop, k->counters);
  int64_t rows = LLVMConstIntGetSExtValue(loop->extent[dim]);
  if (rows == 1 || (dim == k->dims - 1 && unrolls(loop, rows))) {
    for (int64_t i = 0; i < rows; i++) {
      k->counters[dim] = ts_loop_number(loop, i);
      TS_TRY(rows_of_dim(loop, k, dim + 1));
    }
    return TS_SUCCESS;
  }
  ts_counter c = ts_loop_count_some(loop, loop->begin, ts_loop_number(loop, rows), ts_loop_number(loop, 1));
  k->counters[dim] = c.index;
  TS_TRY(rows_of_dim(loop, k, dim + 1));
  ts_loop_count_end(loop, &c);
  return TS_SUCCESS;
}

ts_status ts_loop_rows(ts_loop *loop, int32_t dims, ts_row_fn fn, void *context) {
  LLVMBuilderRef b = loop->e->b;
  ts_v counters[TS_KERNEL_MAX_RANK] = {0}, next[TS_KERNEL_MAX_RANK] = {0};
  if (loop->e->site) return rows_of_dim(loop, &(known_rows){.dims = dims, .fn = fn, .context = context}, 0);
  int32_t carried = dims > 1 ? dims : 0; /* with one dim, the row number is its counter */
  first_counters(loop, carried, counters);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter rows = ts_loop_count_some(loop, loop->begin, loop->end, ts_loop_number(loop, 1));
  if (dims == 1) counters[0] = rows.index;
  for (int32_t i = 0; i < carried; i++) {
    ts_v first = counters[i];
    counters[i] = LLVMBuildPhi(b, loop->i64, "");
    LLVMAddIncoming(counters[i], &first, &before, 1);
  }
  TS_TRY(fn(context, loop, counters));
  next_counters(loop, carried, counters, next);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  for (int32_t i = 0; i < carried; i++) LLVMAddIncoming(counters[i], &next[i], &here, 1);
  ts_loop_count_end(loop, &rows);
  return TS_SUCCESS;
}

/* ---- nodes ---- */

void ts_loop_want_all(ts_loop *loop) {
  for (int32_t id = 0; id < loop->d->node_count; id++) loop->wanted[id] = loop->plan.needed[id];
}

static uint8_t last_class(const ts_loop *loop, const ts_kernel_operand *o) { return o->stride[loop->d->rank - 1]; }
static ts_v last_stride(const ts_loop *loop, int32_t operand) {
  return loop->stride[operand * loop->d->rank + loop->d->rank - 1];
}

/* Loads the elements of an operand at a point from `base`, the address of its row. */
static ts_v load_points(ts_loop *loop, int32_t input, ts_v base, ts_v index, ts_v part) {
  const ts_kernel_operand *o = &loop->d->inputs[input];
  if (last_class(loop, o) == TS_STRIDE_UNIT) {
    ts_v address = ts_loop_element(loop, o->dtype, base, index);
    return part ? ts_emit_load_tail(loop->e, o->dtype, address, part) : ts_emit_load(loop->e, o->dtype, address);
  }
  ts_v stride = last_stride(loop, input);
  ts_v address = ts_loop_offset(loop, base, ts_loop_mul(loop, index, stride));
  if (last_class(loop, o) == TS_STRIDE_DOWN) return ts_emit_load_down(loop->e, o->dtype, address, part);
  if (last_class(loop, o) == TS_STRIDE_NEAR && !part && !loop->e->site)
    return ts_emit_load_steps(loop->e, o->dtype, address, o->step[loop->d->rank - 1]);
  return ts_emit_load_strided(loop->e, o->dtype, address, stride, part);
}

static bool loads_points(const ts_loop *loop, int32_t id) {
  return loop->wanted[id] && loop->d->nodes[id].kind == TS_NODE_LOAD && loop->plan.level[id] == TS_LEVEL_POINT;
}

static ts_v load_tiled(ts_loop *loop, int32_t input) {
  const ts_dtype type = loop->d->inputs[input].dtype;
  const int64_t size = (int64_t)ts_dtype_size(type);
  if (size <= 8) return ts_emit_load(loop->e, type, loop->tile_row[input]);
  return ts_emit_load_strided(loop->e, type, loop->tile_row[input], ts_loop_number(loop, loop->e->lanes * size), NULL);
}

static ts_v load_node(ts_loop *loop, int32_t id, const ts_point *at, ts_v part) {
  const ts_kernel_node *n = &loop->d->nodes[id];
  if (loop->loaded) return loop->loaded[n->slot];
  if (loop->tiled && loop->tiled[n->slot]) return load_tiled(loop, n->slot);
  return load_points(loop, n->slot, loop->base[n->slot], at->index, part);
}

static void load_all(ts_loop *loop, const ts_point *at, ts_v part) {
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (loads_points(loop, id)) loop->value[id] = load_node(loop, id, at, part);
  }
}

/* Both variants of a point, whole and partial. A branch selects one: where there are masks, too, since whole vectors
 * without them are faster (loop_points.c), and stores that bypass the caches have none. */
typedef struct both_ways {
  LLVMBasicBlockRef whole, partial, done;
} both_ways;

static both_ways open_ways(ts_loop *loop, const ts_point *at) {
  LLVMBuilderRef b = loop->e->b;
  both_ways w = {ts_loop_block(loop, "whole"), ts_loop_block(loop, "partial"), ts_loop_block(loop, "either")};
  LLVMBuildCondBr(b, at->whole, w.whole, w.partial);
  LLVMPositionBuilderAtEnd(b, w.whole);
  return w;
}

static void load_both_ways(ts_loop *loop, const ts_point *at) {
  LLVMBuilderRef b = loop->e->b;
  int32_t nodes = loop->d->node_count;
  both_ways w = open_ways(loop, at);
  load_all(loop, at, NULL);
  LLVMBasicBlockRef whole_end = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, w.done);
  /* From now on the phis are in `done`; their second incoming values are added later. */
  LLVMPositionBuilderAtEnd(b, w.done);
  for (int32_t id = 0; id < nodes; id++) {
    if (!loads_points(loop, id)) continue;
    ts_v whole = loop->value[id];
    loop->value[id] = LLVMBuildPhi(b, LLVMTypeOf(whole), "");
    LLVMAddIncoming(loop->value[id], &whole, &whole_end, 1);
  }
  LLVMPositionBuilderAtEnd(b, w.partial);
  for (int32_t id = 0; id < nodes; id++) {
    if (loads_points(loop, id)) loop->partial[id] = load_node(loop, id, at, at->part);
  }
  LLVMBasicBlockRef partial_end = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, w.done);
  for (int32_t id = 0; id < nodes; id++) {
    if (loads_points(loop, id)) LLVMAddIncoming(loop->value[id], &loop->partial[id], &partial_end, 1);
  }
  LLVMPositionBuilderAtEnd(b, w.done);
}

static ts_v scalar_value(ts_loop *loop, int32_t scalar) {
  ts_dtype type = loop->d->scalars[scalar];
  int32_t word = ts_kernel_arg_scalar(loop->d, scalar);
  const ts_site *site = loop->e->site;
  if (!site) return ts_emit_load_splat(loop->e, type, arg_address(loop, word));
  if (site->addresses[word]) return ts_emit_load_splat(loop->e, type, site->addresses[word]);
  return ts_emit_const_bits(loop->e, type, (uint64_t)site->args[word]);
}

/* Index values are computed in integers of the result's width where that suffices, since s64 wraps to the same bits. */
static ts_v index_value(ts_loop *loop, const ts_kernel_node *n, const ts_point *at) {
  ts_emit *e = loop->e;
  int32_t operand = loop->d->input_count + loop->d->output_count + n->slot;
  ts_dtype type = ts_dtype_is_integer(n->dtype) ? n->dtype : TS_S64;
  LLVMTypeRef element = ts_emit_element_type(e, type);
  ts_v step = last_stride(loop, operand), first = loop->base[operand];
  if (!at || !step) {
    ts_v row = ts_emit_splat(e, LLVMBuildTruncOrBitCast(e->b, first, element, ""));
    return ts_emit_convert(e, type, n->dtype, row);
  }
  first = ts_loop_add(loop, first, ts_loop_mul(loop, at->index, step));
  ts_v lanes = LLVMBuildTruncOrBitCast(e->b, ts_emit_lane_numbers(e), ts_emit_vector_type(e, type), "");
  ts_v steps = ts_emit_splat(e, LLVMBuildTruncOrBitCast(e->b, step, element, ""));
  ts_v start = ts_emit_splat(e, LLVMBuildTruncOrBitCast(e->b, first, element, ""));
  return ts_emit_convert(e, type, n->dtype, LLVMBuildAdd(e->b, start, LLVMBuildMul(e->b, lanes, steps, ""), ""));
}

/* min(max(index, 0), limit - 1) as s64. */
static ts_v clamped_index(ts_loop *loop, const ts_kernel_node *n) {
  ts_emit *e = loop->e;
  ts_dtype type = loop->d->nodes[n->a].dtype;
  ts_v last = LLVMBuildSub(e->b, scalar_value(loop, n->b), ts_emit_const_int(e, TS_S64, 1), "");
  ts_v index = ts_emit_convert(e, type, TS_S64, loop->value[n->a]);
  const char *least = ts_dtype_is_unsigned(type) ? "llvm.umin" : "llvm.smin";
  index = ts_emit_intrinsic(e, least, NULL, (ts_v[]){index, last}, 2);
  return ts_emit_intrinsic(e, "llvm.smax", NULL, (ts_v[]){index, LLVMConstNull(LLVMTypeOf(index))}, 2);
}

/* ---- gathers whose index all points of a row share ---- */

static bool gathers_row(const ts_loop *loop, int32_t id) {
  const ts_kernel_node *n = &loop->d->nodes[id];
  return n->kind == TS_NODE_GATHER && loop->plan.level[id] == TS_LEVEL_POINT &&
         loop->plan.level[n->a] != TS_LEVEL_POINT;
}

static ts_level level_of_rows(const ts_loop *loop) {
  return loop->d->kind == TS_KERNEL_MAP && loop->d->rank == 1 ? TS_LEVEL_KERNEL : TS_LEVEL_ROW;
}

static ts_v first_lane(ts_loop *loop, ts_v vector) {
  ts_v zero = LLVMConstInt(LLVMInt32TypeInContext(loop->e->context), 0, 0);
  return LLVMBuildExtractElement(loop->e->b, vector, zero, "");
}

/* The address of the row that the index selects, clamped as in clamped_index(), for one lane. */
static ts_v gathered_row(ts_loop *loop, int32_t id) {
  ts_emit *e = loop->e;
  const ts_kernel_node *n = &loop->d->nodes[id];
  bool is_unsigned = ts_dtype_is_unsigned(loop->d->nodes[n->a].dtype);
  ts_v last = LLVMBuildSub(e->b, ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b)), ts_loop_number(loop, 1), "");
  ts_v index = LLVMBuildIntCast2(e->b, first_lane(loop, loop->value[n->a]), loop->i64, !is_unsigned, "");
  index = ts_emit_intrinsic(e, is_unsigned ? "llvm.umin" : "llvm.smin", NULL, (ts_v[]){index, last}, 2);
  index = ts_emit_intrinsic(e, "llvm.smax", NULL, (ts_v[]){index, ts_loop_number(loop, 0)}, 2);
  ts_v step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c));
  return ts_loop_offset(loop, loop->base[n->slot], ts_loop_mul(loop, index, step));
}

static ts_v gather_value(ts_loop *loop, int32_t id, const ts_point *at) {
  ts_emit *e = loop->e;
  const ts_kernel_node *n = &loop->d->nodes[id];
  if (gathers_row(loop, id)) return load_points(loop, n->slot, loop->gathered[id], at->index, at->part);
  if (!at) return ts_emit_load_splat(e, n->dtype, gathered_row(loop, id));
  ts_v offsets = LLVMBuildMul(e->b, clamped_index(loop, n), scalar_value(loop, n->c), "");
  ts_v base = loop->base[n->slot], stride = last_stride(loop, n->slot);
  if (stride) {
    base = ts_loop_offset(loop, base, ts_loop_mul(loop, at->index, stride));
    ts_v lanes = LLVMBuildMul(e->b, ts_emit_lane_numbers(e), ts_emit_splat(e, stride), "");
    offsets = LLVMBuildAdd(e->b, offsets, lanes, "");
  }
  return ts_emit_gather(e, n->dtype, base, offsets, at->part);
}

/* ---- nodes of a level ---- */

static ts_status op_value(ts_loop *loop, const ts_kernel_node *n, ts_v *out) {
  ts_v a = loop->value[n->a];
  ts_dtype type = loop->d->nodes[n->a].dtype;
  if (n->op == TS_OP_CONVERT) {
    *out = ts_emit_convert(loop->e, type, n->dtype, a);
    return TS_SUCCESS;
  }
  if (n->op == TS_OP_BITCAST) {
    *out = ts_emit_bitcast(loop->e, type, n->dtype, a);
    return TS_SUCCESS;
  }
  ts_v operands[3] = {a, n->b >= 0 ? loop->value[n->b] : NULL, n->c >= 0 ? loop->value[n->c] : NULL};
  return ts_emit_op(loop->e, n->op, n->op == TS_OP_SELECT ? n->dtype : type, operands, out);
}

ts_v ts_loop_repeat(ts_emit *e, ts_v x, unsigned count) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  const unsigned lanes = (unsigned)e->lanes;
  ts_v from[64];
  for (unsigned i = 0; i < lanes; i++) from[i] = LLVMConstInt(i32, i & (count - 1), 0);
  return LLVMBuildShuffleVector(e->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(from, lanes), "");
}

/* One element in all lanes, or those of the columns in turn. */
static ts_v load_of_row(ts_loop *loop, const ts_kernel_node *n) {
  const int32_t columns = loop->d->members;
  if (last_class(loop, &loop->d->inputs[n->slot]) != TS_STRIDE_TURN)
    return ts_emit_load_splat(loop->e, n->dtype, loop->base[n->slot]);
  ts_v few = ts_emit_load_tail(loop->e, n->dtype, loop->base[n->slot], ts_loop_number(loop, columns));
  return ts_loop_repeat(loop->e, few, (unsigned)columns);
}

static ts_status node_value(ts_loop *loop, int32_t id, const ts_point *at) {
  const ts_kernel_node *n = &loop->d->nodes[id];
  switch (n->kind) {
  case TS_NODE_LOAD: /* loads at points are emitted before */
    if (!at) loop->value[id] = load_of_row(loop, n);
    return TS_SUCCESS;
  case TS_NODE_SCALAR: loop->value[id] = scalar_value(loop, n->slot); return TS_SUCCESS;
  case TS_NODE_INDEX: loop->value[id] = index_value(loop, n, at); return TS_SUCCESS;
  case TS_NODE_GATHER: loop->value[id] = gather_value(loop, id, at); return TS_SUCCESS;
  case TS_NODE_OP: return op_value(loop, n, &loop->value[id]);
  case TS_NODE_REDUCE: /* the loops over rows have made it */
  case TS_NODE_ARG: return TS_SUCCESS;
  }
  return ts_error(TS_UNIMPLEMENTED, "nodes of kind %d cannot be emitted", (int)n->kind);
}

static ts_status level_nodes(ts_loop *loop, ts_level level, const ts_point *at) {
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (!loop->wanted[id]) continue;
    if (loop->plan.level[id] == level)
      TS_TRY(node_value(loop, id, at));
    else if (level == level_of_rows(loop) && gathers_row(loop, id))
      loop->gathered[id] = gathered_row(loop, id);
  }
  return TS_SUCCESS;
}

ts_status ts_loop_nodes(ts_loop *loop, ts_level level, const ts_point *at) {
  if (at && at->whole)
    load_both_ways(loop, at);
  else if (at)
    load_all(loop, at, at->part);
  loop->e->part = at ? at->part : NULL;
  ts_status status = level_nodes(loop, level, at);
  loop->e->part = NULL;
  return status;
}

/* ---- stores ---- */

static void store_output(ts_loop *loop, int32_t output, ts_v index, ts_v part) {
  const ts_kernel_output *o = &loop->d->outputs[output];
  int32_t operand = ts_loop_output_operand(loop, output);
  ts_dtype type = o->operand.dtype;
  ts_v value = loop->value[o->node], base = loop->base[operand];
  if (last_class(loop, &o->operand) == TS_STRIDE_UNIT) {
    ts_v address = ts_loop_element(loop, type, base, index);
    if (part)
      ts_emit_store_tail(loop->e, type, value, address, part);
    else if (o->stream)
      ts_emit_store_stream(loop->e, type, value, address);
    else
      ts_emit_store(loop->e, type, value, address);
    return;
  }
  ts_v stride = last_stride(loop, operand);
  ts_v address = ts_loop_offset(loop, base, ts_loop_mul(loop, index, stride));
  ts_emit_store_strided(loop->e, type, value, address, stride, part);
}

static bool stores(const ts_loop *loop, int32_t output, const int32_t *pass, int32_t which) {
  bool at_points = !ts_kernel_is_of_row(loop->d, &loop->d->outputs[output].operand);
  return at_points && (!pass || pass[output] == which);
}

static void store_all(ts_loop *loop, ts_v index, ts_v part, const int32_t *pass, int32_t which) {
  for (int32_t i = 0; i < loop->d->output_count; i++) {
    if (stores(loop, i, pass, which)) store_output(loop, i, index, part);
  }
}

void ts_loop_store(ts_loop *loop, const ts_point *at, const int32_t *pass, int32_t which) {
  LLVMBuilderRef b = loop->e->b;
  if (!at->whole) {
    store_all(loop, at->index, at->part, pass, which);
    return;
  }
  both_ways w = open_ways(loop, at);
  store_all(loop, at->index, NULL, pass, which);
  LLVMBuildBr(b, w.done);
  LLVMPositionBuilderAtEnd(b, w.partial);
  store_all(loop, at->index, at->part, pass, which);
  LLVMBuildBr(b, w.done);
  LLVMPositionBuilderAtEnd(b, w.done);
}

/* From a graph after the pipeline to steps over storages. Positions number the
 * steps in the order in which a run may meet them; a loop's regions lie between
 * its start and its end position. */
#include "base/cancel.h"
#include "base/system.h"
#include "exec/choose.h"
#include "exec/pool.h"
#include "exec/steps.h"
#include "kernel/ref.h"
#include "kernel/scan.h"

#include <string.h>

/* Up to here a constant is kept by the executable, and not written by each run. */
#define SMALL_CONSTANT_BYTES 4096

/* A product that the op at hand reads, and how it does. */
typedef struct product {
  bool found;
  size_t step;        /* in the block */
  uint32_t *operands; /* of the op: the product itself, or in another shape */
  size_t count;
} product;

/* Products of one kind: those of equal attributes and types. They have one shape, and share what runs them. */
typedef struct product_kind {
  const ts_attrs *attrs;
  const ts_shape *lhs, *rhs;
  ts_dtype dtype;
  bool strided;         /* else there is no more of it */
  ts_gemm_shape *shape; /* the executable's */
  int64_t cost_ns;
  ts_gemm *gemm; /* the executable's */
  uint32_t kernel;
} product_kind;

typedef struct builder {
  ts_executable *exe;
  const ts_graph *graph;
  ts_storage_id *map; /* one for each value */
  int32_t position;
  const ts_compile_options *options;
  ts_chooser chooser;
  TS_VEC(product_kind) kinds;
  ts_storage_id no_scratch; /* for all that need none; TS_NO_ID until one is met */
  const ts_shape *named;    /* the last step's type: the graph's shape, */
  const ts_type *name;      /* and what was made of it */
} builder;

static ts_status build_region(builder *b, ts_region_id id, ts_block *block);

/* A loop of unknown length costs INT64_MAX, whatever is added. */
static int64_t add_cost(int64_t a, int64_t b) { return a == INT64_MAX || b == INT64_MAX ? INT64_MAX : a + b; }

/* ---- storages ---- */

static ts_status new_storage(builder *b, ts_storage_kind kind, uint32_t index, int64_t bytes, ts_storage_id *out) {
  ts_storage s = {.kind = kind,
                  .index = index,
                  .bytes = bytes,
                  .first = INT32_MAX,
                  .last = -1,
                  .loop = -1,
                  .last_in_loop = -1,
                  .donor = -1};
  s.merged = (ts_storage_id)b->exe->storages.count;
  *out = s.merged;
  return TS_VEC_PUSH(&b->exe->storages, s);
}

static void use_at(builder *b, ts_storage_id id, int32_t position) {
  ts_storage *s = &b->exe->storages.data[id];
  if (position < s->first) s->first = position;
  if (position > s->last) s->last = position;
}

static int64_t value_bytes(const builder *b, ts_value_id v) {
  const ts_value *value = ts_graph_value(b->graph, v);
  return ts_shape_bytes(value->shape, value->dtype);
}

static ts_status result_storage(builder *b, ts_value_id v, ts_storage_id *out) {
  TS_TRY(new_storage(b, TS_STORAGE_TEMP, 0, value_bytes(b, v), out));
  b->map[v] = *out;
  return TS_SUCCESS;
}

/* ---- steps ---- */

/* Copies what people want to know of a step: the graph goes when all is built. */
static ts_status name_step(builder *b, ts_step *step, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  step->op = id;
  step->code = op->code;
  step->type = NULL;
  if (op->result_count == 0) return TS_SUCCESS;
  const ts_value *v = ts_graph_value(b->graph, op->first_result);
  step->type = b->name;
  if (b->named == v->shape && b->name->dtype == v->dtype) return TS_SUCCESS;
  ts_type *type;
  size_t dims = (size_t)v->shape->rank * sizeof(*v->shape->dims);
  TS_TRY(ts_arena_alloc(&b->exe->arena, offsetof(ts_type, shape.dims) + dims, (void **)&type));
  type->dtype = v->dtype;
  type->shape.rank = v->shape->rank;
  memcpy(type->shape.dims, v->shape->dims, dims);
  step->type = b->name = type;
  b->named = v->shape;
  return TS_SUCCESS;
}

/* A step for `op` at a position, with its operands' storages read and
 * fresh storages for its results. */
static ts_status start_step_at(builder *b, ts_step_kind kind, ts_op_id id, int32_t position, ts_step *out) {
  const ts_op *op = ts_graph_op(b->graph, id);
  ts_arena *arena = &b->exe->arena;
  *out = (ts_step){
      .kind = kind, .position = position, .operand_count = op->operand_count, .result_count = op->result_count};
  TS_TRY(name_step(b, out, id));
  size_t count = (size_t)op->operand_count + op->result_count;
  TS_TRY(ts_arena_take(arena, (count + 1) * sizeof *out->operands, (void **)&out->operands));
  out->results = out->operands + op->operand_count;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    out->operands[i] = b->map[op->operands[i]];
    use_at(b, out->operands[i], out->position);
  }
  for (uint32_t i = 0; i < op->result_count; i++) {
    TS_TRY(result_storage(b, op->first_result + i, &out->results[i]));
    use_at(b, out->results[i], out->position);
  }
  return TS_SUCCESS;
}

static ts_status start_step(builder *b, ts_step_kind kind, ts_op_id id, ts_step *out) {
  return start_step_at(b, kind, id, b->position++, out);
}

static ts_status copy_step(builder *b, ts_block *block, ts_storage_id from, ts_storage_id to, ts_op_id op) {
  ts_step step = {.kind = TS_STEP_COPY, .position = b->position++, .operand_count = 1, .result_count = 1};
  TS_TRY(name_step(b, &step, op));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &step.operands));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &step.results));
  step.operands[0] = from;
  step.results[0] = to;
  step.copy.bytes = b->exe->storages.data[to].bytes;
  step.cost_ns = step.copy.bytes / 10 + 20;
  use_at(b, from, step.position);
  use_at(b, to, step.position);
  return TS_VEC_PUSH(&block->steps, step);
}

static ts_status put_words(builder *b, const int64_t *words, int32_t count) {
  TS_TRY(TS_VEC_RESERVE(&b->exe->words, b->exe->words.count + (size_t)count));
  for (int32_t w = 0; w < count; w++) b->exe->words.data[b->exe->words.count++] = words[w];
  return TS_SUCCESS;
}

/* Scratch memory for every thread; `bytes` is rounded up. */
static ts_status add_scratch(builder *b, int32_t position, int64_t *bytes, ts_storage_id *out) {
  *bytes = (*bytes + 63) & ~(int64_t)63;
  if (*bytes > 0) {
    TS_TRY(new_storage(b, TS_STORAGE_TEMP, 0, *bytes * ts_cpu_count(), out));
  } else {
    if (b->no_scratch == TS_NO_ID) TS_TRY(new_storage(b, TS_STORAGE_TEMP, 0, 0, &b->no_scratch));
    *out = b->no_scratch;
  }
  use_at(b, *out, position);
  return TS_SUCCESS;
}

/* Space for the launch's arguments in every run. */
static ts_status add_words(builder *b, ts_step_launch *l) {
  l->words = (int32_t)b->exe->words.count;
  return put_words(b, l->launch->args, ts_kernel_arg_count(&l->launch->desc));
}

static ts_status launch_step(builder *b, ts_block *block, ts_op_id id, const ts_chosen *chosen) {
  const ts_lowered *lowered = &chosen->lowered;
  ts_step step;
  TS_TRY(start_step(b, TS_STEP_LAUNCH, id, &step));
  step.launch.lowered = lowered;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)lowered->launch_count, &step.launch.launches));
  if (lowered->temp_count > 0) TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)lowered->temp_count, &step.launch.temps));
  for (int32_t i = 0; i < lowered->temp_count; i++) {
    TS_TRY(new_storage(b, TS_STORAGE_TEMP, 0, lowered->temp_bytes[i], &step.launch.temps[i]));
    use_at(b, step.launch.temps[i], step.position);
  }
  for (int32_t i = 0; i < lowered->launch_count; i++) {
    ts_step_launch *l = &step.launch.launches[i];
    l->launch = &lowered->launches[i];
    ts_tasks_plan(l, chosen->point_costs[i]);
    step.cost_ns += l->cost_ns;
    if (l->launch->scratch > step.launch.scratch_bytes) step.launch.scratch_bytes = l->launch->scratch;
    l->kernel = chosen->kernels[i];
    TS_TRY(add_words(b, l));
  }
  TS_TRY(add_scratch(b, step.position, &step.launch.scratch_bytes, &step.launch.scratch));
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- products ---- */

/* A group of dims as one: its extent and stride; false when the strides do not chain. */
static bool collapse(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int64_t *extent,
                     int64_t *stride) {
  *extent = 1;
  *stride = 0;
  for (int32_t i = dims->rank - 1; i >= 0; i--) {
    int64_t n = shape->dims[dims->dims[i]], s = strides[dims->dims[i]];
    if (n == 1) continue;
    if (*extent == 1)
      *stride = s;
    else if (s != *stride * *extent)
      return false;
    *extent *= n;
  }
  return true;
}

static ts_dims free_dims(int32_t rank, const ts_dims *batch, const ts_dims *contract) {
  ts_dims out = {0};
  for (int32_t d = 0; d < rank; d++) {
    bool taken = false;
    for (int32_t i = 0; i < batch->rank; i++) taken |= batch->dims[i] == d;
    for (int32_t i = 0; i < contract->rank; i++) taken |= contract->dims[i] == d;
    if (!taken) out.dims[out.rank++] = d;
  }
  return out;
}

/* False when the operands' layout is not a batch of strided matrices. */
static bool gemm_shape(const ts_graph *g, const ts_op *op, ts_gemm_shape *out) {
  const ts_shape *l = ts_graph_value(g, op->operands[0])->shape, *r = ts_graph_value(g, op->operands[1])->shape;
  ts_dims lhs_batch = op->attrs->dot.lhs_batch, lhs_contract = op->attrs->dot.lhs_contract;
  ts_dims rhs_batch = op->attrs->dot.rhs_batch, rhs_contract = op->attrs->dot.rhs_contract;
  ts_dims lhs_free = free_dims(l->rank, &lhs_batch, &lhs_contract),
          rhs_free = free_dims(r->rank, &rhs_batch, &rhs_contract);
  int64_t ls[TS_MAX_RANK], rs[TS_MAX_RANK], batch, k;
  ts_shape_strides(l, ls);
  ts_shape_strides(r, rs);
  bool ok =
      collapse(l, ls, &lhs_batch, &out->batch, &out->lhs_batch) && collapse(l, ls, &lhs_free, &out->m, &out->lhs_row) &&
      collapse(l, ls, &lhs_contract, &out->k, &out->lhs_col) && collapse(r, rs, &rhs_batch, &batch, &out->rhs_batch) &&
      collapse(r, rs, &rhs_contract, &k, &out->rhs_row) && collapse(r, rs, &rhs_free, &out->n, &out->rhs_col);
  out->out_row = out->n;
  out->out_batch = out->m * out->n;
  return ok;
}

static ts_status prepare_gemm(builder *b, product_kind *kind) {
  ts_kernel_source source;
  char *text;
  kind->cost_ns = ts_gemm_cost(kind->dtype, kind->shape);
  TS_TRY(TS_VEC_RESERVE(&b->exe->gemms, b->exe->gemms.count + 1));
  TS_TRY(ts_gemm_prepare(kind->dtype, kind->shape, &kind->gemm, &source));
  b->exe->gemms.data[b->exe->gemms.count++] = kind->gemm; /* from now on a compile thread may read it */
  TS_TRY(ts_strdup(source.text, &text));
  source.text = text;
  return ts_choose_source(&b->chooser, text, &source, &kind->kernel);
}

enum { KINDS_SEEN = 16 };

/* What is known of a product's kind, or is found out now. Valid until the next one is asked for. */
static ts_status find_kind(builder *b, const ts_op *op, const product_kind **out) {
  const ts_value *lhs = ts_graph_value(b->graph, op->operands[0]), *rhs = ts_graph_value(b->graph, op->operands[1]);
  size_t last = b->kinds.count > KINDS_SEEN ? b->kinds.count - KINDS_SEEN : 0;
  for (size_t i = b->kinds.count; i-- > last;) {
    const product_kind *k = *out = &b->kinds.data[i];
    if (k->attrs == op->attrs && k->lhs == lhs->shape && k->rhs == rhs->shape && k->dtype == lhs->dtype)
      return TS_SUCCESS;
  }
  product_kind kind = {.attrs = op->attrs, .lhs = lhs->shape, .rhs = rhs->shape, .dtype = lhs->dtype};
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &kind.shape));
  kind.strided = gemm_shape(b->graph, op, kind.shape);
  if (kind.strided) TS_TRY(prepare_gemm(b, &kind));
  TS_TRY(TS_VEC_PUSH(&b->kinds, kind));
  *out = &b->kinds.data[b->kinds.count - 1];
  return TS_SUCCESS;
}

static ts_status gemm_step(builder *b, ts_block *block, ts_op_id id, const product_kind *kind) {
  ts_step step;
  TS_TRY(start_step(b, TS_STEP_GEMM, id, &step));
  step.gemm.shape = kind->shape;
  step.gemm.dtype = kind->dtype;
  step.gemm.gemm = kind->gemm;
  step.cost_ns = kind->cost_ns;
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- a product and what is done with it ---- */

/* Which operands of the op are the value in the storage, maybe in another shape. */
static size_t operands_in(const builder *b, const ts_op *op, ts_storage_id id, uint32_t *out) {
  size_t count = 0;
  for (uint32_t o = 0; o < op->operand_count; o++)
    if (b->map[op->operands[o]] == id) out[count++] = o;
  return count;
}

/* True when the op could be done at the step: its other operands are there by then. */
static bool is_ready_at(const builder *b, const ts_op *op, const ts_step *step) {
  for (uint32_t o = 0; o < op->operand_count; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = &b->exe->storages.data[id];
    bool given = s->kind == TS_STORAGE_ARG || s->kind == TS_STORAGE_CONST;
    if (!given && id != step->results[0] && s->first >= step->position) return false;
  }
  return true;
}

/* The block's step at a position; NULL when there is none. It is mostly the last one. */
static const ts_step *step_at(const ts_block *block, int32_t position) {
  size_t low = 0, high = block->steps.count;
  if (high > 0 && block->steps.data[high - 1].position <= position) low = high - 1;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (block->steps.data[middle].position < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low < block->steps.count && block->steps.data[low].position == position ? &block->steps.data[low] : NULL;
}

/* The last of the block's products that the op reads. The op comes forward to it: no operand of the product lives
 * longer for that, and the op's result takes no more memory than the product. */
static ts_status find_product(builder *b, const ts_block *block, const ts_op *op, product *out) {
  const ts_step *best = NULL;
  *out = (product){0};
  for (uint32_t o = 0; o < op->operand_count && !b->options->no_fusion; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = &b->exe->storages.data[id];
    const ts_step *step = s->kind == TS_STORAGE_TEMP ? step_at(block, s->first) : NULL;
    if (!step || step->kind != TS_STEP_GEMM || step->gemm.epilogue || step->results[0] != id) continue;
    if (!best || step->position > best->position) best = step;
  }
  if (!best || !is_ready_at(b, op, best)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, op->operand_count, &out->operands));
  out->found = true;
  out->step = (size_t)(best - block->steps.data);
  out->count = operands_in(b, op, best->results[0], out->operands);
  return TS_SUCCESS;
}

/* On one thread, a launch that would have several is better off by itself. */
static bool is_worth_it(const ts_step *step, const ts_step_launch *l) {
  return l->tasks <= 1 || ts_gemm_is_large(step->gemm.gemm, step->gemm.shape);
}

static ts_status fill_epilogue(builder *b, ts_step *step, ts_op_id id, ts_step_epilogue *e) {
  ts_step own;
  TS_TRY(start_step_at(b, TS_STEP_GEMM, id, step->position, &own));
  uint32_t count = own.operand_count + TS_PRODUCT_OPERANDS;
  ts_storage_id *operands;
  TS_TRY(ts_arena_take(&b->exe->arena, count * sizeof(*operands), (void **)&operands));
  memcpy(operands, step->operands, TS_PRODUCT_OPERANDS * sizeof(*operands));
  memcpy(operands + TS_PRODUCT_OPERANDS, own.operands, own.operand_count * sizeof(*operands));
  e->scratch_bytes = e->launch.launch->scratch;
  TS_TRY(add_words(b, &e->launch));
  TS_TRY(add_scratch(b, own.position, &e->scratch_bytes, &e->scratch));
  TS_TRY(name_step(b, step, id));
  step->operands = operands;
  step->operand_count = count;
  step->results = own.results;
  step->result_count = own.result_count;
  step->cost_ns = add_cost(step->cost_ns, e->launch.cost_ns);
  step->gemm.epilogue = e;
  return TS_SUCCESS;
}

/* Makes the launch of op `id` the epilogue of a product that it reads, where it can be. */
static ts_status try_epilogue(builder *b, ts_block *block, ts_op_id id, bool *out_done) {
  product p;
  const ts_chosen *chosen;
  ts_step_epilogue *e;
  *out_done = false;
  TS_TRY(find_product(b, block, ts_graph_op(b->graph, id), &p));
  if (!p.found) return TS_SUCCESS;
  TS_TRY(ts_choose(&b->chooser, id, true, &chosen));
  ts_step *step = &block->steps.data[p.step];
  if (chosen->lowered.launch_count != 1) return TS_SUCCESS;
  if (!ts_epilogue_fits(step, &chosen->lowered.launches[0], p.operands, p.count)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &e));
  *e = (ts_step_epilogue){.op = id, .lowered = &chosen->lowered, .product = step->results[0]};
  e->launch.launch = &chosen->lowered.launches[0];
  e->launch.kernel = chosen->kernels[0];
  ts_tasks_plan(&e->launch, chosen->point_costs[0]);
  if (!is_worth_it(step, &e->launch)) return TS_SUCCESS;
  e->launch.tasks = 0;
  *out_done = true;
  return fill_epilogue(b, step, id, e);
}

/* Kernels for an op, or for a fusion: in the step of a product, or in a step of their own. TS_UNIMPLEMENTED when there
 * are none that can do it. */
static ts_status kernel_step(builder *b, ts_block *block, ts_op_id id) {
  const ts_chosen *chosen;
  bool done;
  TS_TRY(try_epilogue(b, block, id, &done));
  if (done) return TS_SUCCESS;
  TS_TRY(ts_choose(&b->chooser, id, false, &chosen));
  return launch_step(b, block, id, chosen);
}

/* ---- the rest of the plain ops ---- */

static ts_status scan_step(builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  TS_TRY(start_step(b, TS_STEP_SCAN, id, &step));
  const ts_op *op = ts_graph_op(b->graph, id);
  const ts_value *x = ts_graph_value(b->graph, op->operands[0]);
  step.scan.dtype = x->dtype;
  void *shape;
  TS_TRY(ts_arena_copy(&b->exe->arena, x->shape, sizeof(*x->shape), &shape));
  step.scan.shape = shape;
  step.scan.axis = op->attrs->scan.axis;
  step.scan.reverse = op->attrs->scan.reverse;
  step.cost_ns = 100 + 2 * ts_shape_elements(x->shape);
  return TS_VEC_PUSH(&block->steps, step);
}

/* A program of this op alone, for the interpreter. `map` has room for every value of `g`. */
static ts_status one_op_graph(const ts_graph *g, ts_op_id id, ts_value_id *map, ts_graph *out) {
  const ts_op *op = ts_graph_op(g, id);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *v = ts_graph_value(g, op->operands[i]);
    TS_TRY(ts_graph_add_param(out, TS_ROOT, v->dtype, v->shape, &map[op->operands[i]]));
  }
  TS_TRY(ts_graph_copy_op(g, id, out, TS_ROOT, map));
  return ts_graph_set_results(out, TS_ROOT, &map[op->first_result], 1);
}

static int64_t reference_cost(const ts_graph *g, const ts_op *op) {
  int64_t elements = ts_shape_elements(ts_graph_value(g, op->first_result)->shape);
  for (uint32_t i = 0; i < op->operand_count; i++)
    elements += ts_shape_elements(ts_graph_value(g, op->operands[i])->shape);
  return 1000 + 100 * elements;
}

static ts_status reference_step(builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  TS_TRY(start_step(b, TS_STEP_REFERENCE, id, &step));
  TS_TRY(ts_graph_create(&step.reference.graph));
  step.cost_ns = reference_cost(b->graph, ts_graph_op(b->graph, id));
  ts_value_id *map = NULL;
  ts_status status = TS_NEW_ARRAY(b->graph->values.count, &map);
  if (!status) status = one_op_graph(b->graph, id, map, step.reference.graph);
  ts_free(map);
  if (!status) status = TS_VEC_PUSH(&block->steps, step);
  if (status) ts_step_deinit(&step);
  return status;
}

static ts_status hold_constant(builder *b, const ts_op *op, ts_buffer *buffer) {
  TS_TRY(new_storage(b, TS_STORAGE_CONST, (uint32_t)b->exe->constants.count, buffer->bytes, &b->map[op->first_result]));
  TS_TRY(TS_VEC_PUSH(&b->exe->constants, buffer));
  ts_buffer_retain(buffer);
  return TS_SUCCESS;
}

/* What a run would write anew each time, by a kernel that had to be compiled. A result of the program is the caller's
 * own, and large ones would take memory while nobody runs it. */
static bool is_small_constant(const builder *b, const ts_op *op) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  if (op->code != TS_OP_CONSTANT || b->options->no_fusion) return false;
  for (size_t i = 0; i < root->results.count; i++)
    if (root->results.data[i] == op->first_result) return false;
  return value_bytes(b, op->first_result) <= SMALL_CONSTANT_BYTES;
}

static ts_status small_constant(builder *b, const ts_op *op) {
  const ts_value *v = ts_graph_value(b->graph, op->first_result);
  ts_buffer *buffer;
  TS_TRY(ts_buffer_create(ts_pool_default(), v->dtype, v->shape, &buffer));
  for (int64_t i = 0; i < ts_shape_elements(v->shape); i++)
    ts_scalar_store(v->dtype, op->attrs->constant.value, (char *)buffer->data + (size_t)i * ts_dtype_size(v->dtype));
  ts_status status = hold_constant(b, op, buffer);
  ts_buffer_release(buffer);
  return status;
}

static ts_status plain_op(builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  if (op->code == TS_OP_LITERAL) return hold_constant(b, op, op->attrs->literal.buffer);
  if (is_small_constant(b, op)) return small_constant(b, op);
  if (ts_lower_is_alias(b->graph, id)) {
    b->map[op->first_result] = b->map[op->operands[0]];
    return TS_SUCCESS;
  }
  const product_kind *kind;
  if (op->code == TS_OP_DOT) {
    TS_TRY(find_kind(b, op, &kind));
    if (kind->strided) return gemm_step(b, block, id, kind);
  }
  if (ts_op_get_class(op->code) == TS_CLASS_SCAN) return scan_step(b, block, id);
  ts_status status = kernel_step(b, block, id);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  return reference_step(b, block, id);
}

/* ---- control ---- */

/* Ops of a region in place of the op that holds it. */
static ts_status inline_region(builder *b, ts_block *block, const ts_op *op, ts_region_id id) {
  const ts_region *region = ts_graph_region(b->graph, id);
  for (size_t i = 0; i < region->params.count; i++) b->map[region->params.data[i]] = b->map[op->operands[i]];
  TS_TRY(build_region(b, id, block));
  for (size_t i = 0; i < region->results.count; i++) b->map[op->first_result + i] = b->map[region->results.data[i]];
  return TS_SUCCESS;
}

/* True when the storage was made by a step at or after `position` and can stand for
 * one result only. */
static bool own_temp(const builder *b, ts_storage_id id, int32_t position) {
  const ts_storage *s = &b->exe->storages.data[id];
  return s->kind == TS_STORAGE_TEMP && s->first >= position && s->merged == id && !s->carried && !s->next;
}

/* What the body hands on as it is needs no memory of the loop's: its regions read the operand itself. The step keeps
 * the other values; `slots` says which they are of the op's. */
static ts_status pass_through(builder *b, ts_step *step, const ts_region *condition, const ts_region *body,
                              uint32_t **slots) {
  const ts_op *op = ts_graph_op(b->graph, step->op);
  uint32_t kept = 0;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)op->result_count + 1, slots));
  for (uint32_t i = 0; i < op->result_count; i++) {
    bool same = body->results.data[i] == body->params.data[i];
    ts_storage_id id = step->operands[i], own = step->results[i];
    b->map[condition->params.data[i]] = b->map[body->params.data[i]] = same ? id : own;
    if (same) {
      b->map[op->first_result + i] = id;
      b->exe->storages.data[own].first = INT32_MAX;
      b->exe->storages.data[own].last = -1;
      continue;
    }
    step->operands[kept] = id;
    step->results[kept] = own;
    (*slots)[kept++] = i;
  }
  step->operand_count = step->result_count = kept;
  return TS_SUCCESS;
}

/* Where an iteration leaves the next value of the step's value i. */
static ts_status bind_next(builder *b, ts_step *step, uint32_t i, ts_storage_id value, int32_t body_start) {
  step->loop.next[i] = value;
  if (value == step->results[i]) return TS_SUCCESS; /* an alias of the old value */
  if (!own_temp(b, value, body_start)) {
    TS_TRY(new_storage(b, TS_STORAGE_TEMP, 0, b->exe->storages.data[step->results[i]].bytes, &step->loop.next[i]));
    TS_TRY(copy_step(b, &step->loop.body, value, step->loop.next[i], step->op));
  }
  ts_storage *s = &b->exe->storages.data[step->loop.next[i]];
  s->next = true; /* marks it taken, too */
  s->loop = step->position;
  s->loop_index = i;
  return TS_SUCCESS;
}

/* What goes from one iteration to the next, and what all of them read, keeps its memory for the whole loop. */
static void keep_for_loop(builder *b, const ts_step *step, const ts_op *op) {
  int32_t end = b->position++;
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_storage *carried = &b->exe->storages.data[step->results[i]];
    carried->last_in_loop = carried->last;
    use_at(b, step->results[i], end);
    use_at(b, step->loop.next[i], step->position);
    use_at(b, step->loop.next[i], end);
  }
  for (uint32_t i = 0; i < op->result_count; i++) use_at(b, b->map[op->first_result + i], end);
}

static ts_status fill_while(builder *b, ts_step *step) {
  const ts_op *op = ts_graph_op(b->graph, step->op);
  const ts_region *condition = ts_graph_region(b->graph, op->attrs->regions.regions[0]);
  const ts_region *body = ts_graph_region(b->graph, op->attrs->regions.regions[1]);
  uint32_t *slots;
  TS_TRY(pass_through(b, step, condition, body, &slots));
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_storage *s = &b->exe->storages.data[step->results[i]];
    s->carried = true;
    s->loop = step->position;
    s->loop_index = i;
  }
  TS_TRY(build_region(b, op->attrs->regions.regions[0], &step->loop.condition));
  step->loop.condition_result = b->map[condition->results.data[0]];
  use_at(b, step->loop.condition_result, b->position++);
  int32_t body_start = b->position;
  TS_TRY(build_region(b, op->attrs->regions.regions[1], &step->loop.body));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)step->result_count + 1, &step->loop.next));
  for (uint32_t i = 0; i < step->result_count; i++)
    TS_TRY(bind_next(b, step, i, b->map[body->results.data[slots[i]]], body_start));
  keep_for_loop(b, step, op);
  step->cost_ns = INT64_MAX;
  return TS_SUCCESS;
}

static ts_status cond_branch(builder *b, ts_step *step, const ts_op *op, int which) {
  ts_block *block = &step->cond.branches[which];
  const ts_region *region = ts_graph_region(b->graph, op->attrs->regions.regions[which]);
  for (size_t i = 0; i < region->params.count; i++) b->map[region->params.data[i]] = b->map[op->operands[i + 1]];
  int32_t start = b->position;
  TS_TRY(build_region(b, op->attrs->regions.regions[which], block));
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_storage_id v = b->map[region->results.data[i]], target = step->results[i];
    if (own_temp(b, v, start)) {
      ts_storage *s = &b->exe->storages.data[v];
      use_at(b, target, s->first);
      use_at(b, target, s->last);
      s->merged = target;
    } else {
      TS_TRY(copy_step(b, block, v, target, step->op));
    }
  }
  return TS_SUCCESS;
}

static ts_status fill_cond(builder *b, ts_step *step) {
  const ts_op *op = ts_graph_op(b->graph, step->op);
  for (int which = 0; which < 2; which++) TS_TRY(cond_branch(b, step, op, which));
  int32_t end = b->position++;
  for (uint32_t i = 0; i < op->result_count; i++) use_at(b, step->results[i], end);
  int64_t cost[2] = {0, 0};
  for (int which = 0; which < 2; which++)
    for (size_t i = 0; i < step->cond.branches[which].steps.count; i++)
      cost[which] = add_cost(cost[which], step->cond.branches[which].steps.data[i].cost_ns);
  step->cost_ns = add_cost(20, cost[0] > cost[1] ? cost[0] : cost[1]);
  return TS_SUCCESS;
}

static ts_status control_step(builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  bool loop = ts_graph_op(b->graph, id)->code == TS_OP_WHILE;
  TS_TRY(start_step(b, loop ? TS_STEP_WHILE : TS_STEP_COND, id, &step));
  ts_status status = loop ? fill_while(b, &step) : fill_cond(b, &step);
  if (!status) status = TS_VEC_PUSH(&block->steps, step);
  if (status) ts_step_deinit(&step);
  return status;
}

static ts_status whole_step(builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  TS_TRY(start_step(b, TS_STEP_WHOLE, id, &step));
  step.cost_ns = ts_whole_cost_ns(b->graph, ts_graph_op(b->graph, id));
  step.whole.words = (int32_t)b->exe->words.count;
  ts_kernel_source source;
  const int64_t *constants;
  int32_t constant_count;
  char *text;
  TS_TRY(ts_whole_lower(b->graph, id, &b->exe->arena, &text, &source, &constants, &constant_count));
  ts_status status = ts_choose_source(&b->chooser, text, &source, &step.whole.kernel);
  for (uint32_t i = 0; i < step.operand_count + step.result_count + 1 && !status; i++)
    status = TS_VEC_PUSH(&b->exe->words, 0);
  for (int32_t i = 0; i < constant_count && !status; i++) status = TS_VEC_PUSH(&b->exe->words, constants[i]);
  return status ? status : TS_VEC_PUSH(&block->steps, step);
}

static ts_status build_op(builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  switch (op->code) {
  case TS_OP_WHILE:
  case TS_OP_COND:
    if (!b->options->no_fusion && ts_whole_supported(b->graph, id)) return whole_step(b, block, id);
    return control_step(b, block, id);
  case TS_OP_CALL: return inline_region(b, block, op, op->attrs->regions.regions[0]);
  case TS_OP_FUSION: {
    ts_status status = kernel_step(b, block, id);
    if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
    ts_status_free(status);
    return inline_region(b, block, op, op->attrs->fusion.region);
  }
  default: return plain_op(b, block, id);
  }
}

static ts_status build_region(builder *b, ts_region_id id, ts_block *block) {
  for (size_t i = 0; i < ts_graph_region(b->graph, id)->ops.count; i++) {
    TS_TRY(ts_check_cancelled(b->options->cancel, "the compile"));
    TS_TRY(build_op(b, block, ts_graph_region(b->graph, id)->ops.data[i]));
  }
  return TS_SUCCESS;
}

/* ---- the whole ---- */

static ts_status bind_params(builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, root->params.count + 1, &b->exe->param_storages));
  for (size_t i = 0; i < root->params.count; i++) {
    ts_value_id v = root->params.data[i];
    TS_TRY(new_storage(b, TS_STORAGE_ARG, (uint32_t)i, value_bytes(b, v), &b->map[v]));
    b->exe->param_storages[i] = b->map[v];
    use_at(b, b->map[v], 0);
  }
  return TS_SUCCESS;
}

/* Results that the program makes get buffers of their own; arguments and constants are handed back as they are. */
static ts_status bind_results(builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, root->results.count + 1, &b->exe->result_storages));
  for (size_t i = 0; i < root->results.count; i++) {
    ts_storage_id id = ts_storage_find(b->exe, b->map[root->results.data[i]]);
    ts_storage *s = &b->exe->storages.data[id];
    use_at(b, id, b->position);
    if (s->kind == TS_STORAGE_TEMP) {
      s->kind = TS_STORAGE_RESULT;
      s->index = (uint32_t)b->exe->result_buffers++;
    }
    b->exe->result_storages[i] = id;
  }
  return TS_SUCCESS;
}

static ts_status set_entry(void *context, ts_step *step) {
  ts_executable *exe = context;
  if (step->kind == TS_STEP_GEMM && step->gemm.epilogue) {
    ts_step_launch *l = &step->gemm.epilogue->launch;
    l->entry = ts_kernel_entry(exe->kernels.data[l->kernel]);
  }
  if (step->kind == TS_STEP_WHOLE) step->whole.entry = ts_kernel_entry(exe->kernels.data[step->whole.kernel]);
  for (int32_t i = 0; step->kind == TS_STEP_LAUNCH && i < step->launch.lowered->launch_count; i++) {
    ts_step_launch *l = &step->launch.launches[i];
    l->entry = ts_kernel_entry(exe->kernels.data[l->kernel]);
  }
  return TS_SUCCESS;
}

static ts_status take_kernels(builder *b) {
  ts_chooser *c = &b->chooser;
  size_t count = c->batch.requests.count;
  TS_TRY(TS_VEC_RESERVE(&b->exe->kernels, count + 1));
  TS_TRY(ts_jit_batch_take(&c->batch, b->exe->kernels.data));
  b->exe->kernels.count = count;
  ts_jit_prefetch(c->later.data, c->later.count);
  for (size_t i = 0; i < b->kinds.count; i++) {
    const product_kind *kind = &b->kinds.data[i];
    if (kind->gemm) ts_gemm_adopt(kind->gemm, b->exe->kernels.data[kind->kernel]);
  }
  return ts_block_walk(&b->exe->root, set_entry, b->exe);
}

/* For as much as the program's own ops take, about. */
static ts_status make_room(builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  TS_TRY(TS_VEC_RESERVE(&b->exe->storages, 2 * root->ops.count + root->params.count));
  TS_TRY(TS_VEC_RESERVE(&b->exe->words, 8 * root->ops.count));
  return TS_VEC_RESERVE(&b->exe->root.steps, root->ops.count);
}

static bool kernels_are_there(void *batch) { return !ts_jit_batch_is_pending(batch); }

/* What a run will allocate: while LLVM works, pages can be had for nothing. */
static void prepare_memory(builder *b) {
  const ts_executable *exe = b->exe;
  int64_t sizes[TS_POOL_PREPARED];
  size_t count = 0;
  const ts_enough enough = {kernels_are_there, &b->chooser.batch};
  if (enough.is(enough.context)) return;
  ts_jit_make_way();
  sizes[count++] = exe->block_bytes[TS_LAYOUT_HOSTED];
  for (size_t i = 0; i < exe->storages.count && count < TS_POOL_PREPARED; i++) {
    const ts_storage *s = &exe->storages.data[i];
    if (s->kind == TS_STORAGE_RESULT && s->merged == i) sizes[count++] = s->bytes;
  }
  ts_pool_prepare(ts_pool_default(), sizes, count, &enough);
}

static ts_status build(builder *b) {
  ts_executable *exe = b->exe;
  TS_TRY(TS_NEW_ARRAY(b->graph->values.count, &b->map));
  TS_TRY(make_room(b));
  TS_TRY(bind_params(b));
  int64_t start = ts_system_ns();
  TS_TRY(build_region(b, TS_ROOT, &exe->root));
  TS_TRY(bind_results(b));
  exe->positions = b->position + 1;
  TS_TRY(ts_assign(exe));
  int64_t lowered = ts_system_ns();
  prepare_memory(b);
  TS_TRY(take_kernels(b));
  exe->stats.lower_ns = lowered - start;
  exe->stats.kernel_ns = ts_system_ns() - lowered;
  for (size_t i = 0; i < exe->root.steps.count; i++)
    exe->stats.cost_ns = add_cost(exe->stats.cost_ns, exe->root.steps.data[i].cost_ns);
  return TS_SUCCESS;
}

ts_status ts_build(ts_executable *exe, const ts_compile_options *options) {
  builder b = {.exe = exe, .graph = exe->graph, .position = 1, .options = options, .no_scratch = TS_NO_ID};
  ts_chooser_init(&b.chooser, exe->graph, &exe->arena, options);
  ts_status status = build(&b);
  ts_chooser_deinit(&b.chooser);
  TS_VEC_FREE(&b.kinds);
  ts_free(b.map);
  return status;
}

/* Matrix products as steps, and what is done with each part of a product while it is in cache. */
#include "exec/builder.h"

#include <string.h>

/* ---- kinds ---- */

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
  *out = (ts_gemm_shape){0};
  bool ok =
      collapse(l, ls, &lhs_batch, &out->batch, &out->lhs_batch) && collapse(l, ls, &lhs_free, &out->m, &out->lhs_row) &&
      collapse(l, ls, &lhs_contract, &out->k, &out->lhs_col) && collapse(r, rs, &rhs_batch, &batch, &out->rhs_batch) &&
      collapse(r, rs, &rhs_contract, &k, &out->rhs_row) && collapse(r, rs, &rhs_free, &out->n, &out->rhs_col);
  out->out_row = out->n;
  out->out_batch = out->m * out->n;
  return ok;
}

static ts_status prepare_gemm(ts_builder *b, ts_product *product, uint32_t *out_kernel) {
  ts_kernel_source source;
  char *text;
  product->cost_ns = ts_gemm_cost(product->dtype, &product->shape);
  TS_TRY(TS_VEC_RESERVE(&b->exe->gemms, b->exe->gemms.count + 1));
  TS_TRY(ts_gemm_prepare(product->dtype, &product->shape, &product->gemm, &source));
  b->exe->gemms.data[b->exe->gemms.count++] = product->gemm; /* from now on a compile thread may read it */
  TS_TRY(ts_strdup(source.text, &text));
  source.text = text;
  return ts_choose_source(&b->chooser, text, &source, out_kernel);
}

static ts_status make_kind(ts_builder *b, const ts_op *op, ts_product_kind *kind) {
  ts_gemm_shape shape;
  if (!gemm_shape(b->graph, op, &shape)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &kind->product));
  kind->product->shape = shape;
  kind->product->dtype = kind->dtype;
  return prepare_gemm(b, kind->product, &kind->kernel);
}

enum { KINDS_SEEN = 16 };

ts_status ts_builder_product(ts_builder *b, const ts_op *op, const ts_product_kind **out) {
  const ts_value *lhs = ts_graph_value(b->graph, op->operands[0]), *rhs = ts_graph_value(b->graph, op->operands[1]);
  size_t last = b->kinds.count > KINDS_SEEN ? b->kinds.count - KINDS_SEEN : 0;
  for (size_t i = b->kinds.count; i-- > last;) {
    const ts_product_kind *k = *out = &b->kinds.data[i];
    if (k->attrs == op->attrs && k->lhs == lhs->shape && k->rhs == rhs->shape && k->dtype == lhs->dtype)
      return TS_SUCCESS;
  }
  ts_product_kind kind = {.attrs = op->attrs, .lhs = lhs->shape, .rhs = rhs->shape, .dtype = lhs->dtype};
  TS_TRY(make_kind(b, op, &kind));
  TS_TRY(TS_VEC_PUSH(&b->kinds, kind));
  *out = &b->kinds.data[b->kinds.count - 1];
  return TS_SUCCESS;
}

ts_status ts_builder_gemm(ts_builder *b, ts_block *block, const ts_op *op, const ts_product *product) {
  ts_step step;
  TS_TRY(ts_builder_start(b, TS_STEP_GEMM, op, 0, &step));
  step.gemm.product = product;
  step.cost_ns = product->cost_ns;
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- a product and what is done with it ---- */

/* Notes which operands of the op are the value in the storage, maybe in another shape. */
static ts_status find_readers(ts_builder *b, const ts_op *op, ts_storage_id id) {
  b->readers.count = 0;
  for (uint32_t o = 0; o < op->operand_count; o++)
    if (b->map[op->operands[o]] == id) TS_TRY(TS_VEC_PUSH(&b->readers, o));
  return TS_SUCCESS;
}

/* True when the op could be done at the step: its other operands are there by then. */
static bool is_ready_at(const ts_builder *b, const ts_op *op, const ts_step *step) {
  for (uint32_t o = 0; o < op->operand_count; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = ts_builder_storage(b, id);
    bool given = s->kind == TS_MEMORY_ARG || s->kind == TS_MEMORY_CONST;
    if (!given && id != *ts_step_results(step) && s->first >= step->position) return false;
  }
  return true;
}

/* The block's step at a position; NULL when there is none. It is mostly the last one. */
static ts_step *step_at(const ts_block *block, int32_t position) {
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

/* The last of the block's products that the op reads; NULL when there is none, or the op has to wait for something
 * else. The op comes forward to it: no operand of the product lives longer for that, and the op's result takes no more
 * memory than the product. */
static ts_step *find_product(const ts_builder *b, const ts_block *block, const ts_op *op) {
  ts_step *best = NULL;
  for (uint32_t o = 0; o < op->operand_count && !b->options->no_fusion; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = ts_builder_storage(b, id);
    ts_step *step = s->kind == TS_MEMORY_TEMP ? step_at(block, s->first) : NULL;
    if (!step || step->kind != TS_STEP_GEMM || step->gemm.epilogue || *ts_step_results(step) != id) continue;
    if (!best || step->position > best->position) best = step;
  }
  return best && is_ready_at(b, op, best) ? best : NULL;
}

/* On one thread, a launch that would have several is better off by itself. */
static bool is_worth_it(const ts_step *step, const ts_work *work) {
  const ts_product *product = step->gemm.product;
  return work->launches[0].tasks <= 1 || ts_gemm_is_large(product->gemm, &product->shape);
}

/* The product's step does the op, too. */
static ts_status join(ts_builder *b, ts_step *step, const ts_op *op, const ts_work *work) {
  enum { FIRST = TS_PRODUCT_OPERANDS };
  ts_storage_id *ids, *own = step->ids;
  size_t count = (size_t)FIRST + op->operand_count + op->result_count + 2;
  TS_TRY(ts_arena_take(&b->exe->arena, count * sizeof(*ids), (void **)&ids));
  memcpy(ids, own, FIRST * sizeof(*ids));
  step->ids = ids;
  step->operand_count = FIRST + op->operand_count;
  step->result_count = op->result_count;
  ts_builder_read(b, op, step->position, ids + FIRST);
  TS_TRY(ts_builder_write(b, op, step->position, ts_step_results(step)));
  ts_storage_id *besides = ts_step_besides(step);
  besides[0] = own[FIRST];
  TS_TRY(ts_builder_scratch(b, step->position, work, &besides[1]));
  step->gemm.epilogue = work;
  step->cost_ns = ts_cost_add(step->cost_ns, work->cost_ns);
  return ts_builder_name(b, step, op);
}

ts_status ts_builder_try_epilogue(ts_builder *b, ts_block *block, ts_op_id id, bool *out_done) {
  const ts_work *work;
  const ts_op *op = ts_graph_op(b->graph, id);
  *out_done = false;
  ts_step *step = find_product(b, block, op);
  if (!step) return TS_SUCCESS;
  TS_TRY(find_readers(b, op, *ts_step_results(step)));
  TS_TRY(ts_choose(&b->chooser, id, true, &work));
  if (work->lowered.launch_count != 1 || !is_worth_it(step, work)) return TS_SUCCESS;
  const ts_launch *launch = &work->lowered.launches[0];
  if (!ts_epilogue_fits(step->gemm.product, launch, b->readers.data, b->readers.count)) return TS_SUCCESS;
  *out_done = true;
  return join(b, step, op, work);
}

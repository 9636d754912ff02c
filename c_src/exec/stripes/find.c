/* Finds chains: a product, a kernel on its rows, and a product of these rows. */
#include "base/alloc.h"
#include "exec/stripes/stripes.h"
#include "pass/rewrite.h"

#include <string.h>

/* One search from a second product backwards. */
typedef struct search {
  const ts_graph *graph;
  const uint32_t *uses; /* of each value */
  ts_chain chain;
} search;

static ts_op_id maker_of(const ts_graph *g, ts_value_id v) { return ts_graph_value(g, v)->op; }

static bool is_product(const ts_graph *g, ts_op_id id) {
  const ts_op *op = ts_graph_op(g, id);
  return (op->code == TS_OP_DOT || op->code == TS_OP_WIDE_DOT) && !ts_graph_is_vector_dot(g, op);
}

static bool is_kernel(const ts_graph *g, ts_op_id id) {
  const ts_op *op = ts_graph_op(g, id);
  if (op->code == TS_OP_FUSION) return op->result_count == 1;
  const ts_op_class class = ts_op_get_class(op->code);
  if (class == TS_CLASS_CONTROL || class == TS_CLASS_COLLECTIVE || ts_op_is_ordered(op->code)) return false;
  return op->result_count == 1 && op->operand_count > 0 &&
         !ts_routine_of(op->code, ts_graph_value(g, op->operands[0])->dtype);
}

/* The op that makes the value, before reshapes. */
static ts_op_id before_reshapes(const ts_graph *g, ts_value_id v) {
  ts_op_id id = maker_of(g, v);
  while (id != TS_NO_ID && ts_lower_is_alias(g, id)) id = maker_of(g, ts_graph_op(g, id)->operands[0]);
  return id;
}

static bool has(const ts_chain *c, ts_op_id id) {
  for (uint32_t i = 0; i < c->count; i++)
    if (c->ops[i] == id) return true;
  return false;
}

/* Adds the op that makes the value, and the reshapes before it; false when there is no room. */
static bool add_makers(search *s, ts_value_id v) {
  ts_op_id id = maker_of(s->graph, v);
  while (!has(&s->chain, id)) {
    if (s->chain.count == TS_CHAIN_OPS) return false;
    s->chain.ops[s->chain.count++] = id;
    if (!ts_lower_is_alias(s->graph, id)) break;
    id = maker_of(s->graph, ts_graph_op(s->graph, id)->operands[0]);
  }
  return true;
}

/* True when only ops of the chain read what its ops make, but its last one. */
static bool is_closed(const search *s) {
  const ts_chain *c = &s->chain;
  for (uint32_t i = 0; i + 1 < c->count; i++) {
    const ts_value_id made = ts_graph_op(s->graph, c->ops[i])->first_result;
    uint32_t inside = 0;
    for (uint32_t k = 0; k < c->count; k++) {
      const ts_op *reader = ts_graph_op(s->graph, c->ops[k]);
      for (uint32_t o = 0; o < reader->operand_count; o++) inside += reader->operands[o] == made;
    }
    if (s->uses[made] != inside) return false;
  }
  return true;
}

static void sort(ts_chain *c) {
  for (uint32_t i = 1; i < c->count; i++)
    for (uint32_t k = i; k > 0 && c->ops[k - 1] > c->ops[k]; k--) {
      const ts_op_id swap = c->ops[k];
      c->ops[k] = c->ops[k - 1];
      c->ops[k - 1] = swap;
    }
}

/* Tries `first` as the product that the kernel reads. */
static bool fits(search *s, ts_op_id first) {
  const ts_op *kernel = ts_graph_op(s->graph, s->chain.kernel), *second = ts_graph_op(s->graph, s->chain.second);
  s->chain.first = first;
  s->chain.ops[0] = s->chain.second;
  s->chain.count = 1;
  s->chain.reads = 0;
  if (!add_makers(s, second->operands[0])) return false;
  for (uint32_t i = 0; i < kernel->operand_count && i < 64; i++) {
    if (before_reshapes(s->graph, kernel->operands[i]) != first) continue;
    s->chain.reads |= UINT64_C(1) << i;
    if (!add_makers(s, kernel->operands[i])) return false;
  }
  sort(&s->chain);
  return is_closed(s) && ts_stripes_fit(s->graph, &s->chain);
}

/* The kernel that makes the lhs of a product, if it reads a product. */
static ts_op_id find_kernel(const ts_graph *g, ts_op_id second) {
  const ts_op_id id = before_reshapes(g, ts_graph_op(g, second)->operands[0]);
  return id != TS_NO_ID && !is_product(g, id) && is_kernel(g, id) ? id : TS_NO_ID;
}

static bool find(search *s, ts_op_id second) {
  const ts_op *kernel;
  s->chain = (ts_chain){.second = second, .move = TS_NO_ID, .kernel = find_kernel(s->graph, second)};
  if (s->chain.kernel == TS_NO_ID) return false;
  kernel = ts_graph_op(s->graph, s->chain.kernel);
  for (uint32_t i = 0; i < kernel->operand_count; i++) {
    const ts_op_id first = before_reshapes(s->graph, kernel->operands[i]);
    if (first != TS_NO_ID && is_product(s->graph, first) && fits(s, first)) return true;
  }
  return false;
}

/* A quick answer for most programs: false when no kernel lies between two products. */
static bool may_have(const ts_graph *g, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    if (!is_product(g, region->ops.data[i])) continue;
    const ts_op_id kernel = find_kernel(g, region->ops.data[i]);
    if (kernel == TS_NO_ID) continue;
    const ts_op *op = ts_graph_op(g, kernel);
    for (uint32_t k = 0; k < op->operand_count; k++) {
      const ts_op_id first = before_reshapes(g, op->operands[k]);
      if (first != TS_NO_ID && is_product(g, first)) return true;
    }
  }
  return false;
}

static bool is_free(const ts_chains *chains, const ts_chain *chain) {
  for (uint32_t i = 0; i < chain->count; i++)
    if (chains->numbers[chain->ops[i]]) return false;
  return true;
}

static void number(ts_chains *chains, uint32_t n) {
  const ts_chain *chain = &chains->found.data[n - 1];
  for (uint32_t i = 0; i < chain->count; i++) chains->numbers[chain->ops[i]] = n;
}

/* Adds an op to the chain whose result alone it reads, perhaps reshaped, and which it moves. */
static void add_move(search *s, ts_chains *chains, ts_op_id id) {
  const ts_op *op = ts_graph_op(s->graph, id);
  if (op->operand_count != 1 || !is_kernel(s->graph, id)) return;
  const ts_op_id second = before_reshapes(s->graph, op->operands[0]);
  if (second == TS_NO_ID || !chains->numbers[second] || ts_lower_is_alias(s->graph, id)) return;
  const uint32_t n = chains->numbers[second];
  ts_chain *chain = &chains->found.data[n - 1];
  if (chain->second != second || chain->move != TS_NO_ID) return;
  s->chain = *chain;
  s->chain.move = id;
  if (!add_makers(s, op->first_result) || !add_makers(s, op->operands[0])) return;
  sort(&s->chain);
  if (!is_closed(s)) return;
  *chain = s->chain;
  number(chains, n);
}

static ts_status find_all(search *s, const ts_region *region, ts_chains *out) {
  TS_TRY(TS_NEW_ARRAY(s->graph->ops.count, &out->numbers));
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op_id id = region->ops.data[i];
    if (!is_product(s->graph, id)) {
      add_move(s, out, id);
    } else if (find(s, id) && is_free(out, &s->chain)) {
      TS_TRY(TS_VEC_PUSH(&out->found, s->chain));
      number(out, (uint32_t)out->found.count);
    }
  }
  return TS_SUCCESS;
}

ts_status ts_chains_find(const ts_graph *graph, ts_region_id id, ts_chains *out) {
  const ts_region *region = ts_graph_region(graph, id);
  uint32_t *uses;
  *out = (ts_chains){.numbers = NULL};
  if (!may_have(graph, region)) return TS_SUCCESS;
  TS_TRY(ts_liveness_count(graph, &uses));
  search s = {.graph = graph, .uses = uses};
  ts_status status = find_all(&s, region, out);
  ts_free(uses);
  if (status) ts_chains_deinit(out);
  return status;
}

void ts_chains_deinit(ts_chains *chains) {
  TS_VEC_FREE(&chains->found);
  ts_free(chains->numbers);
  chains->numbers = NULL;
}

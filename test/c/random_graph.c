#include "random_internal.h"

#include <stdlib.h>

/* ---- numbers ---- */

uint64_t rng_next(rng *r) {
  uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

int64_t rng_below(rng *r, int64_t n) { return n <= 1 ? 0 : (int64_t)(rng_next(r) % (uint64_t)n); }
int64_t rng_between(rng *r, int64_t low, int64_t high) { return low + rng_below(r, high - low + 1); }
bool rng_chance(rng *r, int percent) { return rng_below(r, 100) < percent; }

/* ---- types and shapes ---- */

static bool is_narrow(ts_dtype type) { return ts_dtype_bits(type) <= 16; }

static bool allowed(const generator *g, ts_dtype type) {
  if (g->flavour == NARROW && !g->options.dtypes && !is_narrow(type)) return false;
  return ts_dtype_supported(type) && (g->options.dtypes == 0 || g->options.dtypes >> type & 1);
}

static ts_dtype random_dtype_where(generator *g, bool (*wanted)(ts_dtype), ts_dtype otherwise) {
  for (int tries = 0; tries < 100; tries++) {
    ts_dtype type = (ts_dtype)rng_below(&g->random, TS_DTYPE_COUNT);
    if (allowed(g, type) && wanted(type)) return type;
  }
  return otherwise;
}

/* Complex numbers are within make_complex: few ops take them. */
static bool any_dtype(ts_dtype type) { return ts_dtype_supported(type) && !ts_dtype_is_complex(type); }
static bool float_dtype(ts_dtype type) { return ts_dtype_is_float(type); }
static bool integer_dtype(ts_dtype type) { return ts_dtype_is_integer(type); }

ts_dtype random_float_dtype(generator *g) { return random_dtype_where(g, float_dtype, TS_F32); }
ts_dtype random_integer_dtype(generator *g) { return random_dtype_where(g, integer_dtype, TS_S32); }

ts_dtype random_dtype(generator *g) {
  if (rng_chance(&g->random, 30) && allowed(g, TS_F32)) return TS_F32;
  return random_dtype_where(g, any_dtype, TS_S32);
}

/* An empty dim counts as 1: reducing it away leaves the others. */
bool fits(const generator *g, const ts_shape *shape) {
  int64_t product = 1;
  for (int32_t d = 0; d < shape->rank; d++) {
    product *= shape->dims[d] > 0 ? shape->dims[d] : 1;
    if (product > g->options.max_elements) return false;
  }
  return true;
}

static int64_t random_dim(generator *g) {
  static const int64_t even[] = {2, 3, 4, 6, 6, 8, 12, 12, 24};
  if (g->options.even && rng_chance(&g->random, 95)) return RNG_PICK(&g->random, even);
  static const int64_t common[] = {1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 129};
  return rng_chance(&g->random, g->flavour == EMPTIES ? 20 : 4) ? 0 : RNG_PICK(&g->random, common);
}

static ts_shape fresh_shape(generator *g) {
  static const int32_t ranks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
  ts_shape shape = {.rank = RNG_PICK(&g->random, ranks)};
  if (g->flavour == SCALARS && rng_chance(&g->random, 80)) shape.rank = 0;
  if (g->flavour != SCALARS && rng_chance(&g->random, 5)) shape.rank = (int32_t)rng_between(&g->random, 6, 10);
  for (int32_t d = 0; d < shape.rank; d++) {
    shape.dims[d] = random_dim(g);
    while (!fits(g, &shape)) shape.dims[d] /= 2; /* dims to come are still 0 */
  }
  return shape;
}

ts_shape random_shape(generator *g) {
  return rng_chance(&g->random, 80) ? RNG_PICK(&g->random, g->shapes) : fresh_shape(g);
}

ts_type type_of(const generator *g, ts_value_id value) {
  const ts_value *v = ts_graph_value(g->graph, value);
  return (ts_type){v->dtype, *v->shape};
}

/* ---- adding ---- */

ts_status add_op(generator *g, scope *s, ts_opcode code, const ts_attrs *attrs, const ts_value_id *operands,
                 size_t count, ts_value_id *out) {
  return ts_graph_add_op(g->graph, s->region, code, (ts_values){operands, count}, attrs, out);
}

ts_status add_unary(generator *g, scope *s, ts_opcode code, ts_value_id x, ts_value_id *out) {
  return add_op(g, s, code, NULL, &x, 1, out);
}

ts_status add_binary(generator *g, scope *s, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id *out) {
  return add_op(g, s, code, NULL, (ts_value_id[]){a, b}, 2, out);
}

ts_status add_constant(generator *g, scope *s, ts_dtype type, const ts_shape *shape, double value, ts_value_id *out) {
  return ts_graph_constant(g->graph, s->region, type, shape, ts_scalar_from_f64(type, value), out);
}

ts_status offer(scope *s, ts_value_id value, bool approximate) {
  return TS_VEC_PUSH(&s->values, ((candidate){value, approximate}));
}

/* ---- picking ---- */

candidate pick_any(generator *g, scope *s) {
  int64_t a = rng_below(&g->random, (int64_t)s->values.count), b = rng_below(&g->random, (int64_t)s->values.count);
  return s->values.data[a > b ? a : b];
}

ts_value_id pick(generator *g, scope *s) {
  for (;;) {
    candidate c = pick_any(g, s);
    if (!c.approximate) return c.id;
  }
}

static bool find_like(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out) {
  size_t count = s->values.count, start = (size_t)rng_below(&g->random, (int64_t)count);
  for (size_t i = 0; i < count; i++) {
    candidate c = s->values.data[(start + i) % count];
    const ts_value *value = ts_graph_value(g->graph, c.id);
    if (c.approximate || value->dtype != type || !ts_shape_equal(value->shape, shape)) continue;
    *out = c.id;
    return true;
  }
  return false;
}

/* A value of the shape, or a value that numpy's rules broadcast to it, of any type. */
static ts_status make_like(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out) {
  size_t count = s->values.count, start = (size_t)rng_below(&g->random, (int64_t)count);
  for (size_t i = 0; i < count; i++) {
    candidate c = s->values.data[(start + i) % count];
    ts_type from = type_of(g, c.id);
    ts_shape joined;
    if (c.approximate || from.shape.rank > shape->rank) continue;
    if (!ts_status_consume_ok(ts_shape_broadcast(&from.shape, shape, &joined)) || !ts_shape_equal(&joined, shape))
      continue;
    ts_value_id value = c.id;
    if (from.dtype != type) TS_TRY(ts_graph_convert(g->graph, s->region, value, type, &value));
    return ts_graph_broadcast_to(g->graph, s->region, value, shape, out);
  }
  return add_constant(g, s, type, shape, (double)rng_between(&g->random, -3, 9), out);
}

static ts_status make_iota(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out) {
  int32_t axis = (int32_t)rng_between(&g->random, -1, shape->rank - 1);
  ts_attrs attrs = {.iota = {.dtype = type, .shape = *shape, .axis = axis}};
  return add_op(g, s, TS_OP_IOTA, &attrs, NULL, 0, out);
}

ts_status pick_like(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out) {
  if (rng_chance(&g->random, 60) && find_like(g, s, type, shape, out)) return TS_SUCCESS;
  int64_t way = rng_below(&g->random, 10);
  if (way < 3 && s->depth == 0) {
    TS_TRY(ts_graph_add_param(g->graph, s->region, type, shape, out));
  } else if (way < 8) {
    TS_TRY(make_like(g, s, type, shape, out));
  } else if (way == 8) {
    TS_TRY(make_iota(g, s, type, shape, out));
  } else {
    TS_TRY(add_constant(g, s, type, shape, (double)rng_between(&g->random, -4, 40) / 4, out));
  }
  return offer(s, *out, false);
}

ts_status pick_float(generator *g, scope *s, ts_value_id *out) {
  *out = pick(g, s);
  if (ts_dtype_is_float(type_of(g, *out).dtype)) return TS_SUCCESS;
  TS_TRY(ts_graph_convert(g->graph, s->region, *out, random_float_dtype(g), out));
  return offer(s, *out, false);
}

/* ---- the whole ---- */

static const struct {
  production make;
  int weight;
  bool control, dot;
} productions[] = {
    {make_chain, 30, false, false},  {make_reinterpreted, 3, false, false}, {make_complex, 4, false, false},
    {make_source, 4, false, false},  {make_move, 24, false, false},         {make_indexed, 8, false, false},
    {make_reduce, 10, false, false}, {make_arg_reduce, 3, false, false},    {make_scan, 3, false, false},
    {make_windows, 3, false, false}, {make_row_program, 5, false, false},   {make_contraction, 5, false, true},
    {make_control, 5, true, false},  {make_region_reduce, 2, true, false},  {make_siblings, 8, false, false},
    {make_window, 8, false, false},  {make_linalg, 3, false, true},         {make_conv, 4, false, true},
    {make_sort, 3, false, false},
};

enum { PRODUCTIONS = sizeof productions / sizeof *productions };

static int64_t total_weight(void) {
  int64_t total = 0;
  for (size_t i = 0; i < PRODUCTIONS; i++) total += productions[i].weight;
  return total;
}

static production random_sum(generator *g) {
  static const production sums[] = {make_reduce,      make_reduce,      make_siblings,
                                    make_row_program, make_contraction, make_contraction};
  return RNG_PICK(&g->random, sums);
}

static production random_production(generator *g, const scope *s) {
  bool loops = g->flavour == LOOPS || g->flavour == SCALARS;
  int max_depth = loops ? 3 : 2;
  if (loops && s->depth < max_depth && !g->options.no_control && rng_chance(&g->random, 15)) return make_control;
  if (g->options.sums > 0 && rng_chance(&g->random, g->options.sums)) return random_sum(g);
  for (;;) {
    int64_t at = rng_below(&g->random, total_weight());
    size_t i = 0;
    while (at >= productions[i].weight) at -= productions[i++].weight;
    if (productions[i].control && (g->options.no_control || s->depth >= max_depth)) continue;
    if (productions[i].dot && g->options.no_dot) continue;
    return productions[i].make;
  }
}

ts_status fill_scope(generator *g, scope *s, int steps) {
  for (int i = 0; i < steps; i++) TS_TRY(random_production(g, s)(g, s));
  return TS_SUCCESS;
}

static ts_status make_params(generator *g, scope *s) {
  int64_t count = rng_between(&g->random, 1, 5);
  for (int64_t i = 0; i < count; i++) {
    ts_shape shape = random_shape(g);
    ts_value_id param;
    TS_TRY(ts_graph_add_param(g->graph, s->region, random_dtype(g), &shape, &param));
    TS_TRY(offer(s, param, false));
  }
  return TS_SUCCESS;
}

/* A result that is a parameter, or the previous result, unchanged or reshaped. */
static ts_status alias(generator *g, scope *s, ts_value_id before, ts_value_id *out) {
  *out = rng_chance(&g->random, 50) ? before : ts_graph_region(g->graph, TS_ROOT)->params.data[0];
  return rng_chance(&g->random, 50) ? add_reshape(g, s, *out, out) : TS_SUCCESS;
}

static ts_status make_root(generator *g, scope *s) {
  ts_value_id results[4];
  size_t count = (size_t)rng_between(&g->random, 1, 4);
  TS_TRY(make_params(g, s));
  TS_TRY(fill_scope(g, s, g->options.steps));
  results[0] = s->values.data[s->values.count - 1].id;
  for (size_t i = 1; i < count; i++) {
    results[i] = pick_any(g, s).id;
    if (rng_chance(&g->random, 20)) TS_TRY(alias(g, s, results[i - 1], &results[i]));
  }
  return ts_graph_set_results(g->graph, TS_ROOT, results, count);
}

/* Rows of a few elements, which have kernels of their own from 2048 points on. */
static void make_short_rows(generator *g) {
  const int64_t columns = rng_between(&g->random, 2, 9);
  const int64_t rows = rng_between(&g->random, 2048 / columns, g->options.max_elements / columns);
  g->shapes[0] = (ts_shape){.rank = 2, .dims = {rows, columns}};
}

static void init(generator *g, uint64_t seed, const ts_random_options *options) {
  *g = (generator){.random = {.state = seed * UINT64_C(0xD1342543DE82EF95) + 1}};
  if (options) g->options = *options;
  if (!g->options.steps) g->options.steps = 10;
  bool large = !g->options.max_elements && rng_chance(&g->random, 8);
  if (!g->options.max_elements) g->options.max_elements = large ? 50000 : 4096;
  if (rng_chance(&g->random, 50)) g->flavour = (flavour)rng_below(&g->random, FLAVOURS);
  for (int i = 0; i < FAMILY_SHAPES; i++) g->shapes[i] = fresh_shape(g);
  /* Past TS_REDUCE_BLOCK reductions have more than one block. */
  if (large) g->shapes[0] = (ts_shape){.rank = 1, .dims = {rng_between(&g->random, 16380, 50000)}};
  if (large) g->shapes[1] = (ts_shape){.rank = 2, .dims = {2, rng_between(&g->random, 16380, 25000)}};
  if (g->flavour == LOOPS && g->options.max_elements >= 4096 && rng_chance(&g->random, 50)) make_short_rows(g);
}

/* Nothing is computed with them in regions. */
void ts_random_transformed(const ts_graph *graph, bool *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  bool *from = calloc(graph->values.count, sizeof *from);
  for (size_t i = 0; from && i < graph->ops.count; i++) {
    const ts_op *op = &graph->ops.data[i];
    bool is = ts_op_get_class(op->code) == TS_CLASS_FFT;
    for (uint32_t o = 0; o < op->operand_count; o++) is |= from[op->operands[o]];
    for (uint32_t r = 0; r < op->result_count; r++) from[op->first_result + r] = is;
  }
  for (size_t i = 0; i < root->results.count; i++) out[i] = from && from[root->results.data[i]];
  free(from);
}

ts_status ts_random_graph(uint64_t seed, const ts_random_options *options, ts_graph **out) {
  generator g;
  *out = NULL;
  init(&g, seed, options);
  TS_TRY(ts_graph_create(&g.graph));
  scope root = {.region = TS_ROOT, .approximate_allowed = !g.options.exact_only};
  ts_status status = make_root(&g, &root);
  TS_VEC_FREE(&root.values);
  if (status) {
    ts_graph_destroy(g.graph);
    return ts_error_context(status, "random graph %llu", (unsigned long long)seed);
  }
  *out = g.graph;
  return TS_SUCCESS;
}

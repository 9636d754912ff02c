/* Writes programs for test/xla/run.py: as modules of StableHLO, with arguments and with Tessera's results.
 *   xla_cases ops OUT                  each op with every type (test/xla/ops.h)
 *   xla_cases random OUT SEED COUNT    random programs (test/c/random_graph.h), of the seeds from SEED on
 *   xla_cases recorded OUT FILE.ts...  programs as text, with their arguments' bytes in FILE.args
 * With FOR_PLUGIN=1 in the environment also what Tessera makes fit for a plugin: programs with types of fewer than 8
 * bits and floats of 8 bits, and factorizations, which are loops there.
 * Each program is written unchanged, and once more cut into its ops. There every op works on arguments (Tessera's own
 * intermediate values), so that an op's difference does not hide or excuse the next one's. The text of a case says how
 * each result may differ:
 *   exact              equal bits
 *   approx OP          a function's value: a few units in the last place
 *   sum N K            N terms may be added in another order: result K is the sum of their magnitudes
 *   factors OP N A...  result N of a factorization of arguments A...: run.py puts all results together again
 *   unknown OP         computed from an inexact value: only the cut program is compared
 * XLA's threads flush subnormal floats, so subnormal arguments become zeros. */
#include "exec/executable.h"
#include "ir/stablehlo/stablehlo.h"
#include "jit/jit.h"
#include "ops.h"
#include "pass/pass.h"
#include "random_graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
  ts_buffer **data;
  size_t count;
} values;

static void free_values(values *v) {
  for (size_t i = 0; v->data && i < v->count; i++) ts_buffer_release(v->data[i]);
  ts_free(v->data);
  *v = (values){0};
}

static ts_status new_values(size_t count, values *out) {
  out->count = count;
  return TS_NEW_ARRAY(count, &out->data);
}

/* ---- subnormal numbers ---- */

static bool is_subnormal(ts_dtype type, uint64_t bits) {
  uint64_t fraction = type == TS_F64 ? 0xFFFFFFFFFFFFF : type == TS_F32 ? 0x7FFFFF : 0x7F;
  uint64_t exponent = type == TS_F64 ? 0x7FF : 0xFF;
  int width = type == TS_F64 ? 52 : type == TS_F32 ? 23 : 7;
  return (bits >> width & exponent) == 0 && (bits & fraction);
}

/* How many are; they become zeros if asked for. f16 is computed in f32, where its own are normal. */
static int64_t subnormals(const ts_buffer *b, bool flush) {
  int64_t count = 0;
  size_t size = ts_dtype_size(b->dtype);
  if (!ts_dtype_is_float(b->dtype) || b->dtype == TS_F16) return 0;
  for (int64_t i = 0; i < ts_shape_elements(&b->shape); i++) {
    char *at = (char *)b->data + (size_t)i * size;
    ts_scalar x = ts_scalar_load(b->dtype, at);
    if (!is_subnormal(b->dtype, x.bits)) continue;
    count++;
    x.bits &= UINT64_C(1) << (8 * size - 1);
    if (flush) ts_scalar_store(b->dtype, x, at);
  }
  return count;
}

/* Copies that are ours to change. */
static ts_status flushed(const ts_buffer *from, ts_buffer **out) {
  TS_TRY(ts_buffer_create(ts_pool_default(), from->dtype, &from->shape, out));
  if (from->bytes > 0) memcpy((*out)->data, from->data, (size_t)from->bytes);
  subnormals(*out, true);
  return TS_SUCCESS;
}

/* ---- programs ---- */

typedef struct program {
  ts_graph *graph;
  values args, results;
  /* For each result the number of the result with its terms' magnitudes, or 0. NULL: the program is not cut. */
  const uint32_t *scales;
  const char *left_out; /* why, or NULL */
  bool may_lack_form;   /* in StableHLO */
} program;

/* ---- what may differ ---- */

typedef enum nature { EXACT, APPROX, SUM, FACTORS, UNKNOWN } nature;

typedef struct judgement {
  nature nature;
  ts_opcode op;  /* where it began to differ */
  bool computed; /* by an op that XLA may fuse with the next: a product and a sum become one fma */
} judgement;

/* From this number of elements on XLA has several accumulators; each begins with the initial value. */
#define MANY_FOLDED 16

/* How many elements a fold takes. */
static int64_t folded(const ts_graph *g, const ts_op *op) {
  const ts_shape *shape = ts_graph_value(g, op->operands[0])->shape;
  const ts_dims *axes = &op->attrs->reduce.axes;
  int64_t count = 1;
  for (int32_t i = 0; i < axes->rank; i++) count *= shape->dims[axes->dims[i]];
  return count;
}

/* One op that gives the same however its operands are grouped and repeated. */
static bool folds_idempotently(const ts_graph *g, const ts_op *op) {
  const ts_region *region = ts_graph_region(g, op->attrs->reduce.region);
  if (region->ops.count != 1) return false;
  ts_opcode code = ts_graph_op(g, region->ops.data[0])->code;
  return code == TS_OP_MIN || code == TS_OP_MAX;
}

/* Ops that StableHLO lacks. Their results have no agreed bits, nor, where a matrix is nearly singular, agreed digits.
 */
static bool is_factorization(ts_opcode code) {
  return ts_op_get_class(code) == TS_CLASS_LINALG && code != TS_OP_CHOLESKY && code != TS_OP_TRIANGULAR_SOLVE;
}

/* Of complex numbers, the ops that do not take each part by itself. */
static nature complex_nature(ts_opcode code) {
  switch (ts_op_get_class(code)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_SCAN:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_FFT: return APPROX;
  case TS_CLASS_REDUCE: return code == TS_OP_REDUCE_SUM || code == TS_OP_REDUCE_PRODUCT ? APPROX : EXACT;
  default: break;
  }
  bool computes = code == TS_OP_MULTIPLY || code == TS_OP_POW || code == TS_OP_ABS || code == TS_OP_SIGN;
  return computes ? APPROX : EXACT;
}

/* The ops that XLA computes to the same bits as Tessera, given the same operands. */
static nature own_nature(const ts_graph *g, const ts_op *op) {
  ts_dtype type = op->operand_count ? ts_graph_value(g, op->operands[0])->dtype : TS_S32;
  bool is_float = ts_dtype_is_float(type);
  if (is_factorization(op->code)) return FACTORS;
  if (ts_dtype_is_complex(ts_graph_value(g, op->first_result)->dtype) || ts_dtype_is_complex(type))
    return complex_nature(op->code);
  switch (op->code) {
  case TS_OP_SQRT: return EXACT;
  case TS_OP_POW: /* except large exponents: judge */
  case TS_OP_CONV:
  case TS_OP_CHOLESKY:
  case TS_OP_TRIANGULAR_SOLVE:
  case TS_OP_ATAN2:
  case TS_OP_REDUCE_PRODUCT:
  case TS_OP_CUMULATIVE_PRODUCT:
  case TS_OP_WINDOW_PRODUCT: return is_float ? APPROX : EXACT;
  case TS_OP_WINDOW_SCATTER_MAX:
  case TS_OP_WINDOW_SCATTER_MIN: return is_float ? UNKNOWN : EXACT; /* several of a window's sums in another order */
  case TS_OP_REDUCE:
    if (folded(g, op) == 1) return UNKNOWN; /* XLA returns the element, for any initial value */
    if (folds_idempotently(g, op)) return EXACT;
    return is_float || folded(g, op) >= MANY_FOLDED ? UNKNOWN : EXACT;
  case TS_OP_REDUCE_SUM:
  case TS_OP_CUMULATIVE_SUM:
  case TS_OP_WINDOW_SUM:
  case TS_OP_DOT: return is_float ? SUM : EXACT;
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT: return ts_dtype_is_float(ts_graph_value(g, op->first_result)->dtype) ? SUM : EXACT;
  default: return ts_op_get_class(op->code) == TS_CLASS_UNARY_FLOAT ? APPROX : EXACT;
  }
}

/* XLA divides by a broadcast vector, or by a constant, in that it multiplies by the reciprocal. */
static bool becomes_reciprocal(const ts_graph *g, const ts_op *op) {
  if (op->code != TS_OP_DIVIDE) return false;
  return ts_graph_value(g, op->operands[1])->op != TS_NO_ID;
}

static bool only_moves(const ts_op *op) {
  ts_op_class class = ts_op_get_class(op->code);
  return class == TS_CLASS_SHAPE || class == TS_CLASS_INDEXED || op->code == TS_OP_SELECT;
}

/* The region's first op, at any depth, whose result differs; TS_OP_COUNT for none. */
static ts_opcode region_differs(const ts_graph *g, ts_region_id id) {
  const ts_region *region = ts_graph_region(g, id);
  bool multiplied = false;
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(g, region->ops.data[i]);
    ts_region_id inner[2];
    size_t count = op->attrs ? ts_op_regions(op, inner) : 0;
    bool is_float = ts_dtype_is_float(ts_graph_value(g, op->first_result)->dtype);
    if (own_nature(g, op) != EXACT || becomes_reciprocal(g, op)) return op->code;
    if (multiplied && is_float && (op->code == TS_OP_ADD || op->code == TS_OP_SUBTRACT)) return op->code;
    multiplied = multiplied || (is_float && op->code == TS_OP_MULTIPLY);
    for (size_t r = 0; r < count; r++) {
      ts_opcode differs = region_differs(g, inner[r]);
      if (differs != TS_OP_COUNT) return differs;
    }
  }
  return TS_OP_COUNT;
}

/* XLA reads six bits of an integer exponent, and takes an unsigned one with its top bit set for a negative one. */
static bool is_large_exponent(ts_dtype type, ts_scalar x) {
  return ts_dtype_is_unsigned(type) ? x.u64 > 63 : x.s64 > 63;
}

/* Also true when that cannot be decided, since the exponents are not an argument. */
static bool has_large_exponents(const ts_graph *g, const ts_op *op, const values *args) {
  const ts_value *exponent = ts_graph_value(g, op->operands[1]);
  if (!ts_dtype_is_integer(exponent->dtype)) return false;
  if (exponent->op != TS_NO_ID) return true;
  const ts_buffer *b = args->data[exponent->index];
  for (int64_t i = 0; i < ts_shape_elements(&b->shape); i++) {
    const char *at = (const char *)b->data + (size_t)i * ts_dtype_size(b->dtype);
    if (is_large_exponent(b->dtype, ts_scalar_load(b->dtype, at))) return true;
  }
  return false;
}

static judgement judge(const program *p, const ts_op *op, const judgement *of) {
  const ts_graph *g = p->graph;
  judgement worst = {0};
  ts_region_id regions[2];
  size_t count = op->attrs ? ts_op_regions(op, regions) : 0;
  bool is_sum = op->code == TS_OP_ADD || op->code == TS_OP_SUBTRACT, fuses = false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (of[op->operands[i]].nature > worst.nature) worst = of[op->operands[i]];
    fuses = fuses || of[op->operands[i]].computed;
  }
  bool is_float = ts_dtype_is_float(ts_graph_value(g, op->first_result)->dtype);
  nature own = becomes_reciprocal(g, op) ? APPROX : own_nature(g, op);
  if (op->code == TS_OP_POW && has_large_exponents(g, op, &p->args)) own = UNKNOWN;
  for (size_t r = 0; r < count && own == EXACT; r++) {
    ts_opcode differs = region_differs(g, regions[r]);
    if (differs != TS_OP_COUNT) return (judgement){UNKNOWN, differs, true};
  }
  bool computed = fuses || (is_float && op->code == TS_OP_MULTIPLY);
  if (worst.nature == APPROX && own == EXACT && only_moves(op)) return (judgement){APPROX, worst.op, computed};
  if (worst.nature != EXACT) return (judgement){UNKNOWN, worst.op, computed};
  if (own == EXACT && is_float && is_sum && fuses) return (judgement){UNKNOWN, op->code, computed};
  return (judgement){own, op->code, computed};
}

/* ---- running and writing ---- */

static ts_status run(program *p) {
  ts_executable *exe;
  TS_TRY(new_values(ts_graph_region(p->graph, TS_ROOT)->results.count, &p->results));
  TS_TRY(ts_executable_create(p->graph, NULL, &exe));
  ts_status status = ts_executable_run(exe, p->args.data, p->args.count, NULL, p->results.data);
  ts_executable_release(exe);
  return status;
}

static int64_t terms(const ts_graph *g, const ts_op *op) {
  const ts_shape *shape = ts_graph_value(g, op->operands[0])->shape;
  bool is_dot = ts_op_get_class(op->code) == TS_CLASS_DOT;
  const ts_dims *axes = is_dot ? &op->attrs->dot.lhs_contract : &op->attrs->axes;
  int64_t count = 1;
  if (op->code == TS_OP_WINDOW_SUM) return ts_shape_elements(&op->attrs->window.sizes);
  if (op->code == TS_OP_CUMULATIVE_SUM) return shape->dims[op->attrs->scan.axis];
  for (int32_t i = 0; i < axes->rank; i++) count *= shape->dims[axes->dims[i]];
  return count;
}

static void write_type(FILE *to, const char *what, const ts_buffer *b) {
  fprintf(to, "%s %s", what, ts_dtype_name(b->dtype));
  for (int32_t d = 0; d < b->shape.rank; d++) fprintf(to, "%c%lld", d ? ',' : ' ', (long long)b->shape.dims[d]);
  if (b->shape.rank == 0) fputs(" -", to);
}

/* In the cut program the operands are arguments, and all results of an op stand one after another. */
static void write_factors(FILE *to, const program *p, ts_value_id id) {
  const ts_op *op = ts_graph_op(p->graph, ts_graph_value(p->graph, id)->op);
  fprintf(to, " factors %s %u", ts_op_name(op->code), (unsigned)(id - op->first_result));
  for (uint32_t i = 0; i < op->operand_count; i++)
    fprintf(to, " %u", (unsigned)ts_graph_value(p->graph, op->operands[i])->index);
  fputs("\n", to);
}

static void write_verdict(FILE *to, const program *p, size_t r, const judgement *of) {
  static const char *const names[] = {"exact", "approx", "unknown", "unknown", "unknown"};
  ts_value_id id = ts_graph_region(p->graph, TS_ROOT)->results.data[r];
  judgement j = of[id];
  if (j.nature == FACTORS && p->scales) {
    write_factors(to, p, id);
    return;
  }
  if (j.nature == SUM && p->scales && p->scales[r]) {
    const ts_op *op = ts_graph_op(p->graph, ts_graph_value(p->graph, id)->op);
    fprintf(to, " sum %lld %u %s\n", (long long)terms(p->graph, op), p->scales[r], ts_op_name(op->code));
  } else {
    fprintf(to, " %s %s\n", names[j.nature], j.nature == EXACT ? "-" : ts_op_name(j.op));
  }
}

static ts_status write_text(const program *p, FILE *to, const judgement *of) {
  if (p->left_out) fprintf(to, "left out: %s\n", p->left_out);
  for (size_t i = 0; i < p->args.count; i++) {
    write_type(to, "arg", p->args.data[i]);
    fputs("\n", to);
  }
  for (size_t i = 0; i < p->results.count; i++) {
    write_type(to, "result", p->results.data[i]);
    write_verdict(to, p, i, of);
  }
  return TS_SUCCESS;
}

static ts_status write_judged(const program *p, FILE *to) {
  judgement *of;
  const ts_region *root = ts_graph_region(p->graph, TS_ROOT);
  TS_TRY(TS_NEW_ARRAY(p->graph->values.count, &of));
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_op *op = ts_graph_op(p->graph, root->ops.data[i]);
    judgement j = judge(p, op, of);
    for (uint32_t r = 0; r < op->result_count; r++) of[op->first_result + r] = j;
  }
  ts_status status = write_text(p, to, of);
  ts_free(of);
  return status;
}

static ts_status write_bytes(const program *p, FILE *to) {
  for (size_t i = 0; i < p->args.count + p->results.count; i++) {
    const ts_buffer *b = i < p->args.count ? p->args.data[i] : p->results.data[i - p->args.count];
    if (b->bytes > 0) fwrite(b->data, 1, (size_t)b->bytes, to);
  }
  return TS_SUCCESS;
}

static ts_status write_printed(const program *p, FILE *to, ts_status (*print)(const ts_graph *, ts_text *)) {
  ts_text text = {0};
  ts_status status = print(p->graph, &text);
  if (!status) fwrite(text.data, 1, text.length, to);
  ts_text_deinit(&text);
  return status;
}

static bool is_for_plugin(void) { return getenv("FOR_PLUGIN") != NULL; }

static ts_status print_module(const ts_graph *graph, ts_text *out) {
  ts_graph *loops;
  if (!is_for_plugin() || !ts_factor_loops_apply(graph)) return ts_graph_print_stablehlo(graph, out);
  TS_TRY(ts_pass_factor_loops(graph, &(ts_pass_options){0}, &loops));
  ts_status status = ts_graph_print_stablehlo(loops, out);
  ts_graph_destroy(loops);
  return status;
}

static ts_status write_module(const program *p, FILE *to) { return write_printed(p, to, print_module); }
static ts_status write_graph(const program *p, FILE *to) { return write_printed(p, to, ts_graph_print); }

static ts_status write_file(const program *p, const char *path, const char *suffix,
                            ts_status (*write)(const program *, FILE *)) {
  char name[1024];
  snprintf(name, sizeof name, "%s%s", path, suffix);
  FILE *file = fopen(name, "wb");
  if (!file) return ts_error(TS_INVALID_ARGUMENT, "%s: %s", name, strerror(errno));
  ts_status status = write(p, file);
  if (fclose(file) && !status) status = ts_error(TS_DATA_LOSS, "%s: cannot write", name);
  return status;
}

static bool has_small_types(const ts_graph *g) {
  if (is_for_plugin()) return false;
  for (size_t i = 0; i < g->values.count; i++)
    if (ts_dtype_is_small(ts_graph_value(g, (ts_value_id)i)->dtype)) return true;
  return false;
}

static ts_status write_program(program *p, const char *path) {
  TS_TRY(write_file(p, path, ".ts", write_graph));
  if (has_small_types(p->graph)) p->left_out = "XLA's CPU has not all types of fewer than 8 bits and floats of 8 bits";
  ts_status status = write_file(p, path, ".mlir", write_module);
  if (status && p->may_lack_form && ts_status_code(status) == TS_UNIMPLEMENTED) {
    ts_status_free(status);
    status = TS_SUCCESS;
    p->left_out = "an op has no form in StableHLO";
  }
  TS_TRY(status);
  TS_TRY(write_file(p, path, ".bin", write_bytes));
  return write_file(p, path, ".txt", write_judged);
}

/* ---- cutting ---- */

typedef struct cutter {
  const ts_graph *from;
  program *to;
  /* For each value of `from`: its elements, its value in `to`, and its parameter of `to`, or TS_NO_ID. */
  const ts_buffer *const *known;
  ts_value_id *map, *params;
  TS_VEC(ts_value_id) results;
  TS_VEC(uint32_t) scales;
  TS_VEC(ts_buffer *) args;
} cutter;

static ts_status use_param(cutter *c, ts_value_id id) {
  const ts_value *value = ts_graph_value(c->from, id);
  ts_buffer *arg;
  if (c->params[id] == TS_NO_ID) {
    TS_TRY(ts_graph_add_param(c->to->graph, TS_ROOT, value->dtype, value->shape, &c->params[id]));
    TS_TRY(flushed(c->known[id], &arg));
    ts_status status = TS_VEC_PUSH(&c->args, arg);
    if (status) ts_buffer_release(arg);
    TS_TRY(status);
  }
  c->map[id] = c->params[id];
  return TS_SUCCESS;
}

static ts_status add_result(cutter *c, ts_value_id id) {
  TS_TRY(TS_VEC_PUSH(&c->results, id));
  return TS_VEC_PUSH(&c->scales, 0);
}

/* The magnitude of a value, in the type of the sum: an integer's own type may lack it. */
static ts_status add_magnitude(cutter *c, ts_value_id id, ts_dtype type, ts_value_id *out) {
  TS_TRY(ts_graph_convert(c->to->graph, TS_ROOT, id, type, &id));
  return ts_graph_add_op(c->to->graph, TS_ROOT, TS_OP_ABS, (ts_values){&id, 1}, NULL, out);
}

/* The same sum of the operands' magnitudes. */
static ts_status add_scale(cutter *c, const ts_op *op) {
  ts_value_id operands[3], scale;
  ts_dtype type = ts_graph_value(c->from, op->first_result)->dtype;
  for (uint32_t i = 0; i < op->operand_count; i++)
    TS_TRY(add_magnitude(c, c->map[op->operands[i]], type, &operands[i]));
  TS_TRY(ts_graph_add_op(c->to->graph, TS_ROOT, op->code, (ts_values){operands, op->operand_count}, op->attrs, &scale));
  c->scales.data[c->scales.count - 1] = (uint32_t)c->results.count;
  return add_result(c, scale);
}

static ts_status cut_op(cutter *c, ts_op_id id) {
  const ts_op *op = ts_graph_op(c->from, id);
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(use_param(c, op->operands[i]));
  TS_TRY(ts_graph_copy_op(c->from, id, c->to->graph, TS_ROOT, c->map));
  for (uint32_t r = 0; r < op->result_count; r++) TS_TRY(add_result(c, c->map[op->first_result + r]));
  return own_nature(c->from, op) == SUM ? add_scale(c, op) : TS_SUCCESS;
}

static ts_status cut_ops(cutter *c) {
  const ts_region *root = ts_graph_region(c->from, TS_ROOT);
  for (size_t i = 0; i < root->ops.count; i++) TS_TRY(cut_op(c, root->ops.data[i]));
  return ts_graph_set_results(c->to->graph, TS_ROOT, c->results.data, c->results.count);
}

/* Takes the cutter's arguments and scales into the program. */
static ts_status cut(const program *open, const ts_buffer *const *known, const char *path) {
  const ts_graph *graph = open->graph;
  program p = {.may_lack_form = open->may_lack_form};
  cutter c = {.from = graph, .to = &p, .known = known};
  ts_status status = ts_graph_create(&p.graph);
  if (!status) status = TS_NEW_ARRAY(graph->values.count, &c.map);
  if (!status) status = TS_NEW_ARRAY(graph->values.count, &c.params);
  for (size_t i = 0; !status && i < graph->values.count; i++) c.params[i] = TS_NO_ID;
  if (!status) status = cut_ops(&c);
  p.args = (values){c.args.data, c.args.count};
  p.scales = c.scales.data;
  if (!status) status = run(&p);
  if (!status) status = write_program(&p, path);
  free_values(&p.results);
  for (size_t i = 0; i < c.args.count; i++) ts_buffer_release(c.args.data[i]);
  TS_VEC_FREE(&c.args);
  TS_VEC_FREE(&c.results);
  TS_VEC_FREE(&c.scales);
  ts_free(c.map);
  ts_free(c.params);
  ts_graph_destroy(p.graph);
  return status;
}

/* ---- one program, both ways ---- */

/* The same program with every value of the root for a result. */
static ts_status run_open(program *p) {
  TS_VEC(ts_value_id) all = {0};
  ts_status status = TS_SUCCESS;
  for (size_t v = 0; !status && v < p->graph->values.count; v++) {
    if (p->graph->values.data[v].region == TS_ROOT) status = TS_VEC_PUSH(&all, (ts_value_id)v);
  }
  if (!status) status = ts_graph_set_results(p->graph, TS_ROOT, all.data, all.count);
  if (!status) status = run(p);
  TS_VEC_FREE(&all);
  return status;
}

static ts_status cut_by(const program *open, const char *path, const char **out_left_out) {
  const ts_region *root = ts_graph_region(open->graph, TS_ROOT);
  const ts_buffer **known;
  char name[1024];
  TS_TRY(TS_NEW_ARRAY(open->graph->values.count, &known));
  for (size_t i = 0; i < root->results.count; i++) {
    known[root->results.data[i]] = open->results.data[i];
    if (subnormals(open->results.data[i], false) > 0) *out_left_out = "subnormal values on the way";
  }
  snprintf(name, sizeof name, "%s-cut", path);
  ts_status status = root->ops.count > 0 ? cut(open, known, name) : TS_SUCCESS;
  ts_free(known);
  return status;
}

static ts_status both_ways(program *p, const char *path) {
  program open = {.args = p->args, .may_lack_form = p->may_lack_form};
  for (size_t i = 0; i < p->args.count; i++) subnormals(p->args.data[i], true);
  ts_status status = ts_graph_clone(p->graph, &open.graph);
  if (!status) status = run_open(&open);
  if (!status) status = cut_by(&open, path, &p->left_out);
  free_values(&open.results);
  ts_graph_destroy(open.graph);
  if (!status) status = run(p);
  return status ? status : write_program(p, path);
}

/* ---- where they come from ---- */

static void free_program(program *p) {
  free_values(&p->args);
  free_values(&p->results);
  ts_graph_destroy(p->graph);
}

/* So that XLA's answers can be compared. */
static void shrink_exponents(ts_buffer *b) {
  for (int64_t i = 0; i < ts_shape_elements(&b->shape); i++) {
    char *at = (char *)b->data + (size_t)i * ts_dtype_size(b->dtype);
    ts_scalar x = ts_scalar_load(b->dtype, at);
    if (is_large_exponent(b->dtype, x)) ts_scalar_store(b->dtype, ts_scalar_from_s64(b->dtype, x.s64 & 63), at);
  }
}

/* Complex numbers that are NaN, infinite or on the branch cut of a function have no agreed results, and neither has
 * what mixes all elements of a line. */
static bool is_tame(const ts_graph *g, size_t arg) {
  ts_op_class class = ts_op_get_class(g->ops.data[0].code);
  ts_dtype type = ts_graph_value(g, ts_graph_region(g, TS_ROOT)->params.data[arg])->dtype;
  if (ts_dtype_is_complex(type)) return true;
  return ts_dtype_is_float(type) &&
         (class == TS_CLASS_LINALG || class == TS_CLASS_FFT || g->ops.data[0].code == TS_OP_CONV);
}

/* Small numbers that differ from each other; square matrices are positive definite. */
static void tame(ts_buffer *b) {
  int64_t n = b->shape.rank >= 2 ? b->shape.dims[b->shape.rank - 1] : 0;
  bool square = n > 1 && b->shape.dims[b->shape.rank - 2] == n;
  for (int64_t i = 0; i < ts_shape_elements(&b->shape); i++) {
    int64_t row = square ? i / n % n : i, col = square ? i % n : 0;
    double re = square && row == col ? 9 : (double)((row + col) * 7 % 11 - 5) / 4;
    double im = square ? (double)(row - col) / 8 : (double)(i * 5 % 13 - 6.5) / 4;
    ts_scalar x =
        ts_dtype_is_complex(b->dtype) ? ts_scalar_complex(b->dtype, re, im) : ts_scalar_from_f64(b->dtype, re);
    ts_scalar_store(b->dtype, x, (char *)b->data + (size_t)i * ts_dtype_size(b->dtype));
  }
}

/* One op is cut already: only that form is written. Takes the graph. */
static ts_status op_program(void *out, const char *name, ts_graph *graph) {
  program p = {.graph = graph};
  char path[900];
  const char *subnormal = NULL;
  snprintf(path, sizeof path, "%s/%s", (const char *)out, name);
  ts_status status = ts_random_args(9, graph, ts_pool_default(), &p.args.data); /* NaN, limits and the like */
  if (!status) {
    p.args.count = ts_graph_region(graph, TS_ROOT)->params.count;
    for (size_t i = 0; i < p.args.count; i++) subnormals(p.args.data[i], true);
    for (size_t i = 0; i < p.args.count; i++)
      if (is_tame(graph, i)) tame(p.args.data[i]);
    if (graph->ops.data[0].code == TS_OP_POW && ts_dtype_is_integer(p.args.data[1]->dtype))
      shrink_exponents(p.args.data[1]);
    status = run_open(&p);
  }
  if (!status) status = cut_by(&p, path, &subnormal);
  free_program(&p);
  return status;
}

/* Programs with types that XLA's CPU has not are passed over. */
static ts_status random_program(uint64_t seed, const char *out, bool *out_written) {
  ts_random_options options = {.exact_only = seed % 2 == 0, .max_elements = 600, .no_library = true};
  program p = {.may_lack_form = true};
  char path[900];
  snprintf(path, sizeof path, "%s/seed-%llu", out, (unsigned long long)seed);
  ts_status status = ts_random_graph(seed, &options, &p.graph);
  *out_written = !status && !has_small_types(p.graph);
  if (!status && !*out_written) {
    free_program(&p);
    return TS_SUCCESS;
  }
  if (!status) status = ts_random_args(seed, p.graph, ts_pool_default(), &p.args.data);
  if (!status) {
    p.args.count = ts_graph_region(p.graph, TS_ROOT)->params.count;
    status = both_ways(&p, path);
  }
  free_program(&p);
  return ts_error_context(status, "seed %llu", (unsigned long long)seed);
}

static ts_status read_file(const char *path, ts_text *out) {
  char chunk[1 << 14];
  size_t count;
  FILE *file = fopen(path, "rb");
  if (!file) return ts_error(TS_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  while ((count = fread(chunk, 1, sizeof chunk, file)) > 0) ts_text_append_n(out, chunk, count);
  fclose(file);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static ts_status take_args(program *p, const ts_text *bytes) {
  const ts_region *root = ts_graph_region(p->graph, TS_ROOT);
  size_t at = 0;
  TS_TRY(new_values(root->params.count, &p->args));
  for (size_t i = 0; i < p->args.count; i++) {
    const ts_value *value = ts_graph_value(p->graph, root->params.data[i]);
    TS_TRY(ts_buffer_create(ts_pool_default(), value->dtype, value->shape, &p->args.data[i]));
    size_t size = (size_t)p->args.data[i]->bytes;
    if (bytes->length - at < size) return ts_error(TS_INVALID_ARGUMENT, "the arguments end too early");
    if (size > 0) memcpy(p->args.data[i]->data, bytes->data + at, size);
    at += size;
  }
  return TS_SUCCESS;
}

static ts_status recorded_program(const char *file, const char *out) {
  program p = {.may_lack_form = true};
  ts_text text = {0}, bytes = {0};
  char path[900];
  const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  int length = (int)strlen(file) - 3;
  snprintf(path, sizeof path, "%.*s.args", length, file);
  ts_status status = read_file(file, &text);
  if (!status) status = read_file(path, &bytes);
  if (!status) status = ts_graph_parse(text.data, text.length, &p.graph);
  if (!status) status = take_args(&p, &bytes);
  snprintf(path, sizeof path, "%s/%.*s", out, (int)strlen(name) - 3, name);
  if (!status) status = both_ways(&p, path);
  ts_text_deinit(&text);
  ts_text_deinit(&bytes);
  free_program(&p);
  return ts_error_context(status, "%s", file);
}

static ts_status write_all(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "random") == 0) {
    uint64_t first = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10);
    uint64_t passed_over = 0;
    for (uint64_t seed = first; seed < first + count + passed_over; seed++) {
      bool written;
      TS_TRY(random_program(seed, argv[2], &written));
      passed_over += !written;
    }
    printf("random programs: %llu written, %llu passed over: types of fewer than 8 bits or floats of 8 bits\n",
           (unsigned long long)count, (unsigned long long)passed_over);
    return TS_SUCCESS;
  }
  if (argc == 3 && strcmp(argv[1], "ops") == 0) return xla_visit_ops(op_program, argv[2]);
  if (argc < 4 || strcmp(argv[1], "recorded") != 0)
    return ts_error(TS_INVALID_ARGUMENT, "usage: xla_cases ops OUT | random OUT SEED COUNT | recorded OUT FILE.ts...");
  for (int i = 3; i < argc; i++) TS_TRY(recorded_program(argv[i], argv[2]));
  return TS_SUCCESS;
}

int main(int argc, char **argv) {
  ts_status status = write_all(argc, argv);
  ts_jit_stop(); /* no compile may run on while exit() takes LLVM apart */
  if (!status) return 0;
  fprintf(stderr, "error: %s\n", ts_status_message(status));
  ts_status_free(status);
  return 1;
}

/* Random programs are printed as StableHLO, and read back (ir/stablehlo/stablehlo.h, stablehlo/read.h). They give the
 * same results, bit for bit. Each of their ops makes the round trip as a program of its own as well. It stays the same
 * or becomes ops that what_becomes allows. TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the programs. */
#include "graph_text.h"
#include "ir/stablehlo/stablehlo.h"
#include "open_order.h"
#include "pass/pass.h"
#include "shard_run.h"
#include "stablehlo/read.h"
#include "tool/compare.h"

#include <math.h>

enum { DEFAULT_COUNT = 300 };

/* ---- there and back ---- */

static void check(uint64_t seed, const char *what, ts_status status) {
  ck_assert_msg(!status, "seed %llu, %s: %s", (unsigned long long)seed, what, ts_status_message(status));
}

/* Without ops that nothing uses: the reader makes an op of each line. Values are numbered in their order. */
static ts_graph *without_unused(ts_graph *graph) {
  const ts_pass_options options = {0};
  ts_graph *used;
  ck_assert_ok(ts_pass_find("dce", 3)->run(graph, &options, &used));
  ts_graph_destroy(graph);
  return used;
}

static ts_graph *there_and_back(uint64_t seed, const ts_graph *graph) {
  const ts_stablehlo_options options = {.barriers = (ts_stablehlo_barriers)(seed % 3),
                                        .rounds_products = seed % 2 == 0};
  ts_text module = {0};
  ts_graph *back;
  check(seed, "printing", ts_graph_print_stablehlo_with(graph, &options, &module));
  check(seed, "reading", ts_stablehlo_read(module.data, module.length, &back));
  check(seed, "verifying", ts_graph_verify(back));
  ts_text_deinit(&module);
  return without_unused(back);
}

static void check_types(uint64_t seed, const ts_graph *a, const ts_graph *b, ts_values x, ts_values y) {
  ck_assert_msg(x.count == y.count, "seed %llu: %zu values became %zu", (unsigned long long)seed, x.count, y.count);
  for (size_t i = 0; i < x.count; i++) {
    const ts_value *v = ts_graph_value(a, x.data[i]), *w = ts_graph_value(b, y.data[i]);
    ck_assert_msg(v->dtype == w->dtype && ts_shape_equal(v->shape, w->shape), "seed %llu: %s became %s",
                  (unsigned long long)seed, TS_SHAPE_STR(v->dtype, v->shape), TS_SHAPE_STR(w->dtype, w->shape));
  }
}

static void check_signature(uint64_t seed, const ts_graph *a, const ts_graph *b) {
  const ts_region *x = ts_graph_region(a, TS_ROOT), *y = ts_graph_region(b, TS_ROOT);
  check_types(seed, a, b, (ts_values){x->params.data, x->params.count}, (ts_values){y->params.data, y->params.count});
  check_types(seed, a, b, (ts_values){x->results.data, x->results.count},
              (ts_values){y->results.data, y->results.count});
}

/* ---- sums whose order StableHLO leaves open ---- */

/* Numbers that give the same in any order: a few ones, minus ones and twos among the rest, which is 0, or 1 for
 * products; integers, which become floats, too. So no sum or product of them is rounded, whatever the type is. */
static void set_orderless(rng *r, bool of_products, ts_buffer *b) {
  static const double few[] = {1, -1, -1, 2};
  const int64_t count = ts_shape_elements(&b->shape);
  const bool is_integer = ts_dtype_is_integer(b->dtype);
  for (int64_t i = 0; (is_integer || ts_dtype_is_float(b->dtype)) && i < count; i++) {
    const double signed_number = rng_below(r, count) < 3 ? RNG_PICK(r, few) : of_products;
    const double number = is_integer ? fabs(signed_number) : signed_number; /* some are unsigned */
    ts_scalar_store(b->dtype, ts_scalar_from_f64(b->dtype, number),
                    (char *)b->data + (size_t)i * ts_dtype_size(b->dtype));
  }
}

static void make_args_orderless(uint64_t seed, const ts_graph *g, const ts_op *op, ts_buffer **args) {
  const size_t count = ts_graph_region(g, TS_ROOT)->params.count;
  rng r = {.state = seed};
  const bool is_fold = op->code == TS_OP_REDUCE;
  const bool of_products =
      is_fold && ts_graph_op(g, ts_graph_region(g, op->attrs->reduce.region)->ops.data[0])->code == TS_OP_MULTIPLY;
  for (size_t i = 0; i < count; i++) set_orderless(&r, of_products, args[i]);
}

/* ---- results ---- */

/* Bit for bit, except results that `open` says. */
static void check_results(uint64_t seed, const ts_graph *graph, const ts_graph *back, ts_buffer **data,
                          const bool *open) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  const tensors args = {data, root->params.count};
  tensors expected, results;
  char message[TS_COMPARE_TEXT];
  check(seed, "running", run_whole(graph, &args, &expected));
  check(seed, "running what was read", run_whole(back, &args, &results));
  for (size_t i = 0; i < results.count; i++) {
    if (open && open[root->results.data[i]]) continue;
    if (ts_compare_buffers(results.data[i], expected.data[i], 0, message)) continue;
    ck_abort_msg("seed %llu, result %zu: %s\n%s%s", (unsigned long long)seed, i, message, graph_text(graph),
                 graph_text(back));
  }
  tensors_release(&expected);
  tensors_release(&results);
}

/* ---- single ops ---- */

/* What an op may become. */
typedef enum becomes {
  ITSELF,
  LESS,      /* nothing is left where it changes nothing: its operand, or a constant without elements */
  WITH_GLUE, /* itself among conversions of its operands and its result, or with moved dims */
  OTHERS     /* ops of the same meaning: StableHLO has no such op, or has another one for that */
} becomes;

static becomes what_becomes(ts_opcode code) {
  switch ((int)code) {
  case TS_OP_RESHAPE:
  case TS_OP_TRANSPOSE:
  case TS_OP_BROADCAST:
  case TS_OP_REVERSE:
  case TS_OP_CONVERT:
  case TS_OP_BITCAST:
  case TS_OP_ABS:
  case TS_OP_CEIL:
  case TS_OP_FLOOR:
  case TS_OP_ROUND: return LESS;
  case TS_OP_CONSTANT: /* 0, if it has no elements */
  case TS_OP_LITERAL:  /* a constant, if it has one element */
  case TS_OP_EYE:      /* a comparison of positions */
  case TS_OP_SIGN:     /* the minimum with 1 of unsigned numbers */
  case TS_OP_IS_NAN:   /* comparisons */
  case TS_OP_IS_INFINITY:
  case TS_OP_TOP_K:    /* a sort, and a slice */
  case TS_OP_WIDE_DOT: /* conversions, and dot_general */
  case TS_OP_SCALED_DOT:
  case TS_OP_QUANTIZED_DOT:
  case TS_OP_REDUCE: /* a sum or a product, if its region is one */
  case TS_OP_CALL:   /* the ops of its region */
  case TS_OP_COND:   /* the values that each region uses, and no others */
  case TS_OP_WHILE: /* what its regions become */ return OTHERS;
  default: break;
  }
  switch ((int)ts_op_get_class(code)) {
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_WINDOW:
  case TS_CLASS_INDEXED:
  case TS_CLASS_SORT:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_FFT: return WITH_GLUE;
  default: return code == TS_OP_IOTA || code == TS_OP_PAD ? WITH_GLUE : ITSELF;
  }
}

static bool is_among(const ts_opcode *codes, size_t count, ts_opcode code) {
  for (size_t i = 0; i < count; i++)
    if (codes[i] == code) return true;
  return false;
}

/* Ops around an op: conversions, indices that s64 cannot represent, order of dims, zeros above a diagonal, the greatest
 * and the least number of a type without infinity. */
static bool is_glue(ts_opcode code) {
  static const ts_opcode glue[] = {TS_OP_CONVERT, TS_OP_CONSTANT, TS_OP_RESHAPE,       TS_OP_TRANSPOSE,
                                   TS_OP_SLICE,   TS_OP_PAD,      TS_OP_BROADCAST,     TS_OP_MIN,
                                   TS_OP_MAX,     TS_OP_IOTA,     TS_OP_GREATER_EQUAL, TS_OP_SELECT};
  return is_among(glue, sizeof glue / sizeof *glue, code);
}

/* What picks the elements of a matrix that linear algebra reads: a triangle, and the real parts of a diagonal. */
static bool picks_elements(ts_opcode code) {
  static const ts_opcode picks[] = {TS_OP_GREATER, TS_OP_LESS, TS_OP_LESS_EQUAL,
                                    TS_OP_EQUAL,   TS_OP_REAL, TS_OP_COMPLEX};
  return is_among(picks, sizeof picks / sizeof *picks, code);
}

static bool may_surround(ts_opcode code, ts_opcode other) {
  return is_glue(other) || (ts_op_get_class(code) == TS_CLASS_LINALG && picks_elements(other));
}

/* Of an axis of one element, or of vectors, an op is another one as well. */
static bool is_same_kind(ts_opcode code, ts_opcode other) {
  if (code == other) return true;
  if (ts_op_get_class(code) == TS_CLASS_SCAN) return ts_op_get_class(other) == TS_CLASS_WINDOW;
  if (ts_op_get_class(code) == TS_CLASS_WINDOW)
    return ts_op_get_class(other) == TS_CLASS_SCAN || other == TS_OP_ADD; /* the one window of a scalar */
  if (code == TS_OP_ARGSORT) return other == TS_OP_TAKE_ALONG;            /* positions that the type cannot represent */
  return code == TS_OP_TAKE_ALONG && other == TS_OP_TAKE;
}

static bool may_become(const ts_graph *back, ts_opcode code) {
  const becomes what = what_becomes(code);
  const ts_region *root = ts_graph_region(back, TS_ROOT);
  size_t others = 0, same = 0;
  if (what == OTHERS) return true;
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_opcode made = ts_graph_op(back, root->ops.data[i])->code;
    same += is_same_kind(code, made);
    others += !is_same_kind(code, made) && !may_surround(code, made);
  }
  return what != ITSELF && others == 0 && same <= (what == WITH_GLUE ? 2 : 0); /* without elements it is none */
}

/* A parameter for each operand; a loop keeps its constants, so that it ends. */
static void add_operand(const ts_graph *from, const ts_op *op, ts_value_id operand, ts_graph *to, ts_value_id *map) {
  const ts_op_id made = ts_graph_value(from, operand)->op;
  if (map[operand] != TS_NO_ID) return;
  if (op->code == TS_OP_WHILE && made != TS_NO_ID && ts_graph_op(from, made)->code == TS_OP_CONSTANT)
    ck_assert_ok(ts_graph_copy_op(from, made, to, TS_ROOT, map));
  else
    ck_assert_ok(ts_graph_add_param_like(to, TS_ROOT, from, operand, &map[operand]));
}

/* A program of one op of the root. */
static ts_graph *cut_op(const ts_graph *from, ts_op_id id) {
  const ts_op *op = ts_graph_op(from, id);
  ts_graph *to;
  ts_value_id *map, *results;
  ck_assert_ok(ts_graph_create(&to));
  ck_assert_ok(TS_NEW_ARRAY(from->values.count + 1, &map));
  ck_assert_ok(TS_NEW_ARRAY(op->result_count + 1, &results));
  for (size_t i = 0; i < from->values.count; i++) map[i] = TS_NO_ID;
  for (uint32_t i = 0; i < op->operand_count; i++) add_operand(from, op, op->operands[i], to, map);
  ck_assert_ok(ts_graph_copy_op(from, id, to, TS_ROOT, map));
  for (uint32_t i = 0; i < op->result_count; i++) results[i] = map[op->first_result + i];
  ck_assert_ok(ts_graph_set_results(to, TS_ROOT, results, op->result_count));
  ts_free(map);
  ts_free(results);
  return to;
}

static int64_t same[TS_OP_COUNT], lowered[TS_OP_COUNT];

static void check_op(uint64_t seed, const ts_graph *from, ts_op_id id) {
  const ts_opcode code = ts_graph_op(from, id)->code;
  ts_graph *one = without_unused(cut_op(from, id)), *back = there_and_back(seed, one);
  char *before = graph_text(one), *after = graph_text(back);
  const bool is_same = strcmp(before, after) == 0;
  ts_buffer **args;
  is_same ? same[code]++ : lowered[code]++;
  if (!is_same) {
    ck_assert_msg(may_become(back, code), "seed %llu: %s becomes other ops\n%s%s", (unsigned long long)seed,
                  ts_op_name(code), before, after);
    ck_assert_ok(ts_random_args(seed, one, ts_pool_default(), &args));
    const ts_region *root = ts_graph_region(one, TS_ROOT);
    const ts_op *op = ts_graph_op(one, root->ops.data[root->ops.count - 1]);
    if (open_order_has(one, op)) make_args_orderless(seed, one, op, args);
    bool *open = NULL;
    if (ts_op_get_class(code) == TS_CLASS_CONTROL) ck_assert_ok(open_order_find(one, &open));
    check_results(seed, one, back, args, open);
    ts_free(open);
    ts_random_args_free(args, root->params.count);
  }
  ts_free(before);
  ts_free(after);
  ts_graph_destroy(one);
  ts_graph_destroy(back);
}

/* ---- random programs ---- */

static void check_program(uint64_t seed) {
  const ts_random_options options = {.exact_only = seed % 4 == 0, .no_factors = true};
  ts_graph *graph;
  ts_buffer **args;
  ck_assert_ok(ts_random_graph(seed, &options, &graph));
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args));
  ts_graph *back = there_and_back(seed, graph);
  check_signature(seed, graph, back);
  bool *open;
  ck_assert_ok(open_order_find(graph, &open));
  check_results(seed, graph, back, args, open);
  ts_free(open);
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (size_t i = 0; i < root->ops.count; i++) check_op(seed, graph, root->ops.data[i]);
  ts_random_args_free(args, root->params.count);
  ts_graph_destroy(graph);
  ts_graph_destroy(back);
}

/* Most ops of a large number of programs are themselves again. */
START_TEST(programs_come_back)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  int64_t themselves = 0, others = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++) check_program(seed);
  for (int code = 0; code < TS_OP_COUNT; code++) themselves += same[code], others += lowered[code];
  printf("seeds %llu to %llu: %lld ops are the same, %lld lowered\n", (unsigned long long)seeds.first,
         (unsigned long long)(seeds.first + seeds.count - 1), (long long)themselves, (long long)others);
  if (seeds.count >= DEFAULT_COUNT / 2) ck_assert_int_gt(themselves, 3 * others);
}
END_TEST

/* ---- faults that random programs found ---- */

static void check_text(const char *before, const char *after) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(before, strlen(before), &graph));
  ts_graph *back = there_and_back(0, graph);
  char *text = graph_text(back);
  ck_assert_str_eq(text, after ? after : before);
  ts_free(text);
  ts_graph_destroy(back);
  ts_graph_destroy(graph);
}

#define GRAPH(params, result, op) "graph @main(" params ") -> (" result ") {\n" op "}\n"

/* Predicates are numbers in Tessera, and booleans in StableHLO. */
START_TEST(predicates_stay_numbers)
{
  check_text(GRAPH("%0: u8[3], %1: f32[3], %2: f32[3]", "f32[3]", "  %3 = select %0, %1, %2 : f32[3]\n  return %3\n"),
             NULL);
  check_text(GRAPH("%0: f32[3], %1: f32[3]", "u8[3]", "  %2 = logical_xor %0, %1 : u8[3]\n  return %2\n"), NULL);
  check_text(GRAPH("%0: f32[3,4]", "u8[3]", "  %1 = reduce_all %0 {axes = [1]} : u8[3]\n  return %1\n"), NULL);
  check_text(GRAPH("%0: s16[3,4]", "u8[3]", "  %1 = reduce_any %0 {axes = [1]} : u8[3]\n  return %1\n"), NULL);
  /* a comparison is one already */
  check_text(GRAPH("%0: f32[3], %1: f32[3]", "f32[3]",
                   "  %2 = less %0, %1 : u8[3]\n  %3 = select %2, %0, %1 : f32[3]\n  return %3\n"),
             NULL);
}
END_TEST

/* A sum begins with 0, to which -0 is added. */
START_TEST(a_sum_over_no_axes_stays)
{ check_text(GRAPH("%0: f32[3]", "f32[3]", "  %1 = reduce_sum %0 {axes = []} : f32[3]\n  return %1\n"), NULL); }
END_TEST

START_TEST(a_type_without_infinity_has_none)
{
  check_text(GRAPH("%0: f8_e4m3fn[3]", "u8[3]", "  %1 = is_infinity %0 : u8[3]\n  return %1\n"),
             GRAPH("%0: f8_e4m3fn[3]", "u8[3]", "  %1 = constant 0 : u8[3]\n  return %1\n"));
}
END_TEST

START_TEST(the_last_of_equals_is_one_op)
{
  check_text(GRAPH("%0: f32[3,4]", "s64[3]", "  %1 = argmax %0 {axis = 1, high = true} : s64[3]\n  return %1\n"), NULL);
  check_text(GRAPH("%0: u16[3,4]", "s64[4]", "  %1 = argmin %0 {axis = 0, high = true} : s64[4]\n  return %1\n"), NULL);
}
END_TEST

START_TEST(ops_of_positions_are_one_op)
{
  check_text(GRAPH("%0: f32[3,4], %1: s64[3,2]", "f32[3,2]",
                   "  %2 = take_along_axis %0, %1 {axis = 1} : f32[3,2]\n  return %2\n"),
             NULL);
  check_text(
      GRAPH("%0: f32[3,4]", "s8[3,4]", "  %1 = argsort %0 {axis = 0, descending = true} : s8[3,4]\n  return %1\n"),
      NULL);
  check_text(GRAPH("%0: f32[3], %1: f32[3], %2: f32[3]", "f32[3]", "  %3 = clamp %0, %1, %2 : f32[3]\n  return %3\n"),
             NULL);
}
END_TEST

/* ---- barriers */

#define OPERANDS "%0: f32[3], %1: f32[3], %2: f32[]"

static size_t count_barriers(const ts_graph *graph, ts_stablehlo_barriers barriers) {
  const ts_stablehlo_options options = {.barriers = barriers};
  ts_text module = {0};
  size_t count = 0;
  ck_assert_ok(ts_graph_print_stablehlo_with(graph, &options, &module));
  for (const char *at = module.data; (at = strstr(at, "optimization_barrier")); at++) count++;
  ts_text_deinit(&module);
  return count;
}

/* Programs, with how many barriers compilers get that fuse up to a barrier, and others. */
static const struct {
  const char *text;
  size_t few, all;
} barred[] = {
    /* x / y, x / y / z, x / (y / z), and through a reshape and a transpose */
    {GRAPH(OPERANDS, "f32[3]", "  %3 = divide %0, %1 : f32[3]\n  return %3\n"), 0, 0},
    {GRAPH(OPERANDS, "f32[3]", "  %3 = divide %0, %1 : f32[3]\n  %4 = divide %3, %1 : f32[3]\n  return %4\n"), 1, 1},
    {GRAPH(OPERANDS, "f32[3]", "  %3 = divide %0, %1 : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  return %4\n"), 1, 1},
    {GRAPH("%0: c64[3,4]", "c64[12]",
           "  %1 = divide %0, %0 : c64[3,4]\n  %2 = transpose %1 {axes = [1, 0]} : c64[4,3]\n"
           "  %3 = reshape %2 {shape = [12]} : c64[12]\n  %4 = divide %3, %3 : c64[12]\n  return %4\n"),
     2, 2},
    /* of integers */
    {GRAPH("%0: s32[3]", "s32[3]", "  %1 = quotient %0, %0 : s32[3]\n  %2 = quotient %0, %1 : s32[3]\n  return %2\n"),
     0, 0},
    /* x / repeated, x / 3, and x / 1e38, whose reciprocal is subnormal */
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = broadcast %2 {shape = [3], axes = []} : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  return %4\n"),
     0, 1},
    {GRAPH(OPERANDS, "f32[3]", "  %3 = constant 3 : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  return %4\n"), 0, 0},
    {GRAPH(OPERANDS, "f32[3]", "  %3 = constant 1.0e38 : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  return %4\n"), 1, 1},
    /* x / 3 / y, x / y / 3: compilers make a product of a division by 3; x / y / 1e38, x / 3 / 3 */
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  %5 = divide %4, %1 : f32[3]\n  return %5\n"),
     0, 0},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = divide %0, %1 : f32[3]\n  %5 = divide %4, %3 : f32[3]\n  return %5\n"),
     0, 0},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 1.0e38 : f32[3]\n  %4 = divide %0, %1 : f32[3]\n  %5 = divide %4, %3 : f32[3]\n"
           "  return %5\n"),
     2, 2},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = divide %0, %3 : f32[3]\n  %5 = divide %4, %3 : f32[3]\n  return %5\n"),
     0, 1},
    /* x * 3 * 3, x * 3 * y, x + 3 - 3, x * 3 + y * 3 */
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = multiply %0, %3 : f32[3]\n  %5 = multiply %3, %4 : f32[3]\n"
           "  return %5\n"),
     0, 1},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = multiply %0, %3 : f32[3]\n  %5 = multiply %1, %4 : f32[3]\n"
           "  return %5\n"),
     0, 0},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = add %0, %3 : f32[3]\n  %5 = subtract %4, %3 : f32[3]\n  return %5\n"),
     0, 1},
    {GRAPH(OPERANDS, "f32[3]",
           "  %3 = constant 3 : f32[3]\n  %4 = multiply %0, %3 : f32[3]\n  %5 = multiply %1, %3 : f32[3]\n"
           "  %6 = add %4, %5 : f32[3]\n  return %6\n"),
     0, 2},
};

/* A barrier changes no meaning: programs_come_back() has them too. */
START_TEST(compilers_get_barriers)
{
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(barred[_i].text, strlen(barred[_i].text), &graph));
  ck_assert_uint_eq(count_barriers(graph, TS_STABLEHLO_NO_BARRIERS), 0);
  ck_assert_uint_eq(count_barriers(graph, TS_STABLEHLO_FEW_BARRIERS), barred[_i].few);
  ck_assert_uint_eq(count_barriers(graph, TS_STABLEHLO_ALL_BARRIERS), barred[_i].all);
  ts_graph_destroy(graph);
}
END_TEST

/* ---- products for accelerators */

#define DOT "lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []"

static const struct {
  const char *text, *result, *precision, *accelerators_result, *accelerators_precision;
} products[] = {
    {GRAPH("%0: bf16[3,4], %1: bf16[4,5]", "bf16[3,5]",
           "  %2 = dot_general %0, %1 {" DOT "} : bf16[3,5]\n  return %2\n"),
     "(tensor<3x5xf32>)", "precision HIGHEST", "(tensor<3x5xbf16>)", "precision DEFAULT"},
    {GRAPH("%0: f16[3,4], %1: f16[4,5]", "f16[3,5]", "  %2 = dot_general %0, %1 {" DOT "} : f16[3,5]\n  return %2\n"),
     "(tensor<3x5xf32>)", "precision HIGHEST", "(tensor<3x5xf16>)", "precision HIGHEST"},
    {GRAPH("%0: f32[3,4], %1: f32[4,5]", "f32[3,5]", "  %2 = dot_general %0, %1 {" DOT "} : f32[3,5]\n  return %2\n"),
     "(tensor<3x5xf32>)", "precision HIGHEST", "(tensor<3x5xf32>)", "precision HIGHEST"},
    {GRAPH("%0: bf16[1,5,2], %1: bf16[3,2,4]", "bf16[1,3,4]",
           "  %2 = conv %0, %1 {strides = [1], low = [0], high = [0], input_dilation = [1], kernel_dilation = [1], "
           "groups = 1} : bf16[1,3,4]\n  return %2\n"),
     "(tensor<1x3x4xf32>)", "precision HIGHEST", "(tensor<1x3x4xbf16>)", "precision DEFAULT"},
};

static void check_product(const ts_graph *graph, ts_stablehlo_options options, const char *result,
                          const char *precision) {
  ts_text module = {0};
  char *text;
  ck_assert_ok(ts_graph_print_stablehlo_with(graph, &options, &module));
  ck_assert_ok(ts_text_finish(&module, &text));
  ck_assert_msg(strstr(text, result) && strstr(text, precision), "no %s or no %s: %s", result, precision, text);
  ts_free(text);
}

/* Accelerators round the results of products of halves themselves: a conversion would be a second pass over them. */
START_TEST(accelerators_round_products)
{
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(products[_i].text, strlen(products[_i].text), &graph));
  check_product(graph, (ts_stablehlo_options){.replicas = false}, products[_i].result, products[_i].precision);
  check_product(graph, ts_stablehlo_for_accelerators(), products[_i].accelerators_result,
                products[_i].accelerators_precision);
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("round_trip");
  TCase *cases = tcase_create("round_trip");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, predicates_stay_numbers);
  tcase_add_test(cases, a_sum_over_no_axes_stays);
  tcase_add_test(cases, a_type_without_infinity_has_none);
  tcase_add_test(cases, the_last_of_equals_is_one_op);
  tcase_add_test(cases, ops_of_positions_are_one_op);
  tcase_add_loop_test(cases, compilers_get_barriers, 0, sizeof barred / sizeof *barred);
  tcase_add_loop_test(cases, accelerators_round_products, 0, sizeof products / sizeof *products);
  tcase_add_test(cases, programs_come_back);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }

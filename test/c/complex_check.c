#include "complex_check.h"

#include "base/alloc.h"
#include "exec/executable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static bool read_number(FILE *file, double *out) {
  uint64_t bits;
  if (fscanf(file, "%" SCNx64, &bits) != 1) return false;
  memcpy(out, &bits, sizeof bits);
  return true;
}

static bool read_numbers(FILE *file, double *out, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!read_number(file, &out[i])) return false;
  return true;
}

static bool skip_comments(FILE *file) {
  char line[256];
  long at = ftell(file);
  while (fgets(line, sizeof line, file) && line[0] == '#') at = ftell(file);
  return fseek(file, at, SEEK_SET) == 0;
}

static bool find_op(const char *name, ts_opcode *out) {
  for (int code = 0; code < TS_OP_COUNT; code++) {
    *out = (ts_opcode)code;
    if (strcmp(ts_op_name(*out), name) == 0) return true;
  }
  return false;
}

static bool read_function(FILE *file, int64_t count, complex_function *out) {
  char name[32];
  if (fscanf(file, " function %31s %d", name, &out->operands) != 2 || !find_op(name, &out->op)) return false;
  out->values = malloc((size_t)count * sizeof *out->values);
  return out->values && read_numbers(file, out->values[0], 4 * count);
}

static bool read_table(FILE *file, complex_table *out) {
  int64_t wide;
  if (!skip_comments(file) || fscanf(file, "points %" SCNd64 " %" SCNd64, &out->both, &wide) != 2) return false;
  out->count = out->both + wide;
  out->points = malloc((size_t)out->count * sizeof *out->points);
  if (!out->points || !read_numbers(file, out->points[0], 2 * out->count)) return false;
  while (fscanf(file, " ") != EOF && !feof(file)) {
    if (out->function_count == COMPLEX_MOST_FUNCTIONS) return false;
    if (!read_function(file, out->count, &out->functions[out->function_count++])) return false;
  }
  return out->function_count > 0;
}

ts_status complex_table_read(complex_table *out) {
  static const char path[] = "test/accuracy/complex.txt";
  *out = (complex_table){0};
  FILE *file = fopen(path, "r");
  bool good = file && read_table(file, out);
  if (file) fclose(file);
  if (good) return TS_SUCCESS;
  complex_table_free(out);
  return ts_error(TS_INVALID_ARGUMENT, "%s cannot be read", path);
}

void complex_table_free(complex_table *table) {
  free(table->points);
  for (int i = 0; i < table->function_count; i++) free(table->functions[i].values);
}

/* ---- running ---- */

static ts_status make_graph(ts_opcode op, int operands, ts_dtype type, int64_t count, ts_graph *graph) {
  const ts_shape shape = {.rank = 1, .dims = {count}};
  ts_value_id values[2], result;
  for (int i = 0; i < operands; i++) TS_TRY(ts_graph_add_param(graph, TS_ROOT, type, &shape, &values[i]));
  TS_TRY(ts_graph_add_op(graph, TS_ROOT, op, (ts_values){values, (size_t)operands}, NULL, &result));
  return ts_graph_set_results(graph, TS_ROOT, &result, 1);
}

static ts_status compile(ts_opcode op, int operands, ts_dtype type, int64_t count, ts_executable **out) {
  ts_graph *graph;
  TS_TRY(ts_graph_create(&graph));
  ts_status status = make_graph(op, operands, type, count, graph);
  if (!status) status = ts_executable_create(graph, NULL, out);
  ts_graph_destroy(graph);
  return status;
}

static void put(ts_buffer *buffer, int64_t i, double value) {
  if (buffer->dtype == TS_C64)
    ((float *)buffer->data)[i] = (float)value;
  else
    ((double *)buffer->data)[i] = value;
}

static double get(const ts_buffer *buffer, int64_t i) {
  return buffer->dtype == TS_C64 ? (double)((const float *)buffer->data)[i] : ((const double *)buffer->data)[i];
}

/* A function at points; a binary function has two for each call. */
typedef struct points_call {
  ts_opcode op;
  int operands;
  ts_dtype type;
  int64_t count;
  const double (*points[2])[2];
} points_call;

static ts_status make_args(const points_call *call, ts_buffer **args) {
  const ts_shape shape = {.rank = 1, .dims = {call->count}};
  for (int i = 0; i < call->operands; i++) {
    TS_TRY(ts_buffer_create(ts_pool_default(), call->type, &shape, &args[i]));
    for (int64_t p = 0; p < 2 * call->count; p++) put(args[i], p, call->points[i][p / 2][p % 2]);
  }
  return TS_SUCCESS;
}

static ts_status run_points(const points_call *call, ts_buffer **out) {
  ts_buffer *args[2] = {NULL};
  ts_executable *exe = NULL;
  ts_status status = make_args(call, args);
  if (!status) status = compile(call->op, call->operands, call->type, call->count, &exe);
  if (!status) status = ts_executable_run(exe, args, (size_t)call->operands, NULL, out);
  ts_executable_release(exe);
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
  return status;
}

/* ---- errors ---- */

/* The exact number at the type: infinite if it rounds to infinity. */
static long double at_type(ts_dtype type, const double number[2]) {
  long double exact = (long double)number[0] + (long double)number[1];
  if (type == TS_C64 && fabsl(exact) >= 0x1.ffffffp127L) return copysignl(INFINITY, exact);
  return exact;
}

static double part_error(double got, long double want, long double unit) {
  if (isinf(want)) return (long double)got == want ? 0 : INFINITY;
  return isfinite(got) ? (double)(fabsl((long double)got - want) / unit) : INFINITY;
}

/* In units of the larger part's last place. This is the unit of the modulus or, between sqrt(1/2) and 1 times a power
 * of 2, half of it. */
static double error_of(ts_dtype type, const double got[2], const double want[4]) {
  const int digits = type == TS_C64 ? 24 : 53, least = type == TS_C64 ? -126 : -1022;
  const long double re = at_type(type, want), im = at_type(type, want + 2);
  const long double modulus = isinf(re) || isinf(im) ? 1 : hypotl(re, im);
  int exponent = least;
  if (modulus > 0) frexpl(modulus, &exponent);
  const long double unit = ldexpl(1, (exponent - 1 > least ? exponent - 1 : least) - digits + 1);
  if (!isinf(re) != !isinf(im)) return isinf(re) ? part_error(got[0], re, 1) : part_error(got[1], im, 1);
  const double re_error = part_error(got[0], re, unit), im_error = part_error(got[1], im, unit);
  return isinf(re_error) || isinf(im_error) ? INFINITY : hypot(re_error, im_error);
}

/* As in complex.py. */
static int64_t partner(const complex_table *t, int64_t i) {
  return i < t->both ? (7 * i + 3) % t->both : t->both + (7 * (i - t->both) + 3) % (t->count - t->both);
}

ts_status complex_measure(const complex_table *table, const complex_function *function, ts_dtype type,
                          complex_worst *out) {
  const int64_t count = type == TS_C64 ? table->both : table->count;
  double(*others)[2] = malloc((size_t)count * sizeof *others);
  ts_buffer *result;
  if (!others) return ts_error_no_memory();
  for (int64_t i = 0; i < count; i++) memcpy(others[i], table->points[partner(table, i)], sizeof *others);
  points_call call = {function->op, function->operands, type, count, {table->points, others}};
  ts_status status = run_points(&call, &result);
  free(others);
  if (status) return status;
  *out = (complex_worst){0};
  for (int64_t i = 0; i < count; i++) {
    const double got[2] = {get(result, 2 * i), get(result, 2 * i + 1)};
    const double error = error_of(type, got, function->values[i]);
    if (isnan(function->values[i][0])) continue;
    if (error > out->error) *out = (complex_worst){error, table->points[i][0], table->points[i][1]};
  }
  ts_buffer_release(result);
  return TS_SUCCESS;
}

/* ---- specials ---- */

typedef double complex (*special_function)(double complex);
static const struct {
  ts_opcode op;
  special_function fn;
  bool periodic; /* of an infinite angle the result's signs are open */
} special_functions[] = {{TS_OP_EXP, cexp, true},      {TS_OP_LOG, clog, false},     {TS_OP_COS, ccos, true},
                         {TS_OP_SIN, csin, true},      {TS_OP_TAN, ctan, true},      {TS_OP_COSH, ccosh, true},
                         {TS_OP_SINH, csinh, true},    {TS_OP_TANH, ctanh, true},    {TS_OP_ACOS, cacos, false},
                         {TS_OP_ASIN, casin, false},   {TS_OP_ATAN, catan, false},   {TS_OP_ACOSH, cacosh, false},
                         {TS_OP_ASINH, casinh, false}, {TS_OP_ATANH, catanh, false}, {TS_OP_SQRT, csqrt, false}};
const int complex_special_function_count = sizeof special_functions / sizeof *special_functions;

/* Sines and cosines of 2 and 5 have all signs. Then a subnormal number of each type, and a large one. */
static const double specials[][2] = {{0.0, 0.0},
                                     {-0.0, -0.0},
                                     {1.0, 1.0},
                                     {-1.0, -1.0},
                                     {(double)INFINITY, (double)INFINITY},
                                     {-(double)INFINITY, -(double)INFINITY},
                                     {(double)NAN, (double)NAN},
                                     {2.0, 2.0},
                                     {-2.0, -2.0},
                                     {5.0, 5.0},
                                     {0x1p-140, 0x1p-1040},
                                     {-0x1p-140, -0x1p-1040},
                                     {0x1p120, 0x1p1000}};
enum { SPECIALS = sizeof specials / sizeof *specials };
_Static_assert((int)SPECIALS == (int)COMPLEX_SPECIALS, "the header says how many");

/* If the other part is NaN, the sign of a part is open in some rows of annex G. */
static bool same_class(double got, double want, bool open_sign) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got) || want == 0 || got == 0)
    return !isinf(want) == !isinf(got) && (want == 0) == (got == 0) && (open_sign || !signbit(want) == !signbit(got));
  return !signbit(want) == !signbit(got);
}

ts_status complex_check_specials(int which, ts_dtype type, complex_specials *out) {
  double points[SPECIALS * SPECIALS][2];
  ts_buffer *result;
  for (int i = 0; i < SPECIALS * SPECIALS; i++)
    for (int part = 0; part < 2; part++)
      points[i][part] = specials[part ? i % SPECIALS : i / SPECIALS][type == TS_C128];
  points_call call = {special_functions[which].op, 1, type, SPECIALS * SPECIALS, {points, NULL}};
  *out = (complex_specials){.op = call.op, .points = call.count};
  TS_TRY(run_points(&call, &result));
  for (int64_t i = 0; i < call.count; i++) {
    const double complex exact = special_functions[which].fn(CMPLX(points[i][0], points[i][1]));
    const double complex want = type == TS_C64 ? (double complex)(float complex)exact : exact;
    const bool turns = special_functions[which].periodic && isinf(points[i][0]) && isinf(points[i][1]);
    const bool open = turns || isnan(points[i][0]) || isnan(points[i][1]) || isnan(creal(want)) || isnan(cimag(want));
    if (same_class(get(result, 2 * i), creal(want), open) && same_class(get(result, 2 * i + 1), cimag(want), open))
      continue;
    if (out->wrong++ == 0) out->re = points[i][0], out->im = points[i][1];
  }
  ts_buffer_release(result);
  return TS_SUCCESS;
}

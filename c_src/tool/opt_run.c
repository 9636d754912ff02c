#include "tool/opt_run.h"

#include "exec/executable.h"
#include "ir/syntax.h"
#include "kernel/ref.h"
#include "shard/shard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tensors {
  ts_buffer **data;
  size_t count;
} tensors;

static void free_tensors(tensors *t) {
  for (size_t i = 0; t->data && i < t->count; i++) ts_buffer_release(t->data[i]);
  ts_free(t->data);
  t->data = NULL;
}

static ts_status new_tensors(size_t count, tensors *out) {
  out->count = count;
  TS_TRY(TS_NEW_ARRAY(count + 1, &out->data));
  memset(out->data, 0, (count + 1) * sizeof(*out->data));
  return TS_SUCCESS;
}

/* ---- arguments ---- */

static void store(ts_buffer *buffer, ts_dtype type, int64_t i, ts_scalar value) {
  ts_scalar_store(type, value, (char *)buffer->data + (size_t)i * ts_dtype_size(type));
}

/* Whole numbers from -4 to 4, in quarters for floats: small enough that sums stay exact, and readable. */
static void fill(ts_buffer *buffer, uint64_t *state) {
  ts_dtype part = ts_dtype_part(buffer->dtype);
  int64_t count = ts_shape_elements(&buffer->shape) * (ts_dtype_is_complex(buffer->dtype) ? 2 : 1);
  for (int64_t i = 0; i < count; i++) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    int64_t quarters = (int64_t)(*state >> 33) % 33 - 16;
    bool is_float = ts_dtype_is_float(part), is_signed = ts_dtype_is_signed(part);
    store(buffer, part, i,
          is_float ? ts_scalar_from_f64(part, (double)quarters / 4)
                   : ts_scalar_from_s64(part, is_signed ? quarters / 4 : (quarters + 16) / 4));
  }
}

static ts_status parse(ts_buffer *buffer, size_t argument, const char *text) {
  const char *at = text;
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++) {
    size_t length = *at == '(' ? strcspn(at, ")") : 0; /* a complex number */
    length += strcspn(at + length, ",");
    ts_scalar value;
    if (!ts_scalar_parse(buffer->dtype, at, length, &value))
      return ts_error(TS_INVALID_ARGUMENT, "argument %zu: '%.*s' is no %s", argument, (int)length, at,
                      ts_dtype_name(buffer->dtype));
    store(buffer, buffer->dtype, i, value);
    at = at[length] ? at + length + 1 : text;
  }
  return TS_SUCCESS;
}

static ts_status make_args(const ts_graph *graph, const ts_opt_run *options, tensors *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  uint64_t state = options->seed;
  TS_TRY(new_tensors(root->params.count, out));
  if (options->inputs.count > out->count)
    return ts_error(TS_INVALID_ARGUMENT, "the graph takes %zu arguments, %zu are given", out->count,
                    options->inputs.count);
  for (size_t i = 0; i < out->count; i++) {
    const ts_value *param = ts_graph_value(graph, root->params.data[i]);
    TS_TRY(ts_buffer_create(ts_pool_default(), param->dtype, param->shape, &out->data[i]));
    if (i < options->inputs.count)
      TS_TRY(parse(out->data[i], i, options->inputs.data[i]));
    else
      fill(out->data[i], &state);
  }
  return TS_SUCCESS;
}

/* ---- results ---- */

static const void *element(const ts_buffer *buffer, int64_t i) {
  return (const char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype);
}

static ts_status print(size_t index, const ts_buffer *buffer) {
  ts_text text = {0};
  char *string;
  ts_text_format(&text, "result %zu: %s =", index, TS_SHAPE_STR(buffer->dtype, &buffer->shape));
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++) {
    ts_text_append(&text, " ");
    ts_scalar_print(&text, buffer->dtype, ts_scalar_load(buffer->dtype, element(buffer, i)));
  }
  ts_status status = ts_text_finish(&text, &string);
  if (status) return status;
  puts(string);
  ts_free(string);
  return TS_SUCCESS;
}

/* By the distance in units of the larger part: the smaller one of a product or quotient may cancel. */
static bool agree_complex(ts_dtype type, const void *a, const void *b) {
  ts_scalar p = ts_scalar_load(type, a), q = ts_scalar_load(type, b);
  double x = ts_scalar_to_f64(type, p), y = ts_scalar_imag(type, p);
  double u = ts_scalar_to_f64(type, q), v = ts_scalar_imag(type, q);
  double unit = (type == TS_C128 ? 0x1p-52 : 0x1p-23) * fmax(fabs(u), fabs(v));
  bool re = (isnan(x) && isnan(u)) || x == u || fabs(x - u) <= 64 * unit;
  return re && ((isnan(y) && isnan(v)) || y == v || fabs(y - v) <= 64 * unit);
}

/* Math functions may differ between the two by a few units in the last place. */
static bool agree(ts_dtype type, const void *a, const void *b) {
  if (memcmp(a, b, ts_dtype_size(type)) == 0) return true;
  if (ts_dtype_is_complex(type)) return agree_complex(type, a, b);
  if (!ts_dtype_is_float(type)) return false;
  double x = ts_scalar_to_f64(type, ts_scalar_load(type, a)), y = ts_scalar_to_f64(type, ts_scalar_load(type, b));
  double unit = ldexp(1, 1 - ts_dtype_precision(type));
  return (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= 64 * unit * fmax(fabs(x), fabs(y));
}

static ts_status compare(const tensors *got, const tensors *expected) {
  for (size_t r = 0; r < got->count; r++) {
    const ts_buffer *a = got->data[r], *b = expected->data[r];
    for (int64_t i = 0; i < ts_shape_elements(&a->shape); i++) {
      if (agree(a->dtype, element(a, i), element(b, i))) continue;
      return ts_error(TS_INTERNAL, "result %zu, element %lld: got %.17g, interpreted %.17g", r, (long long)i,
                      ts_scalar_to_f64(a->dtype, ts_scalar_load(a->dtype, element(a, i))),
                      ts_scalar_to_f64(b->dtype, ts_scalar_load(b->dtype, element(b, i))));
    }
  }
  puts("the interpreter agrees");
  return TS_SUCCESS;
}

/* ---- running ---- */

static ts_status explain(const ts_executable *exe) {
  ts_text text = {0};
  ts_status status = ts_executable_explain(exe, &text);
  if (!status) fwrite(text.data, 1, text.length, stdout);
  ts_text_deinit(&text);
  return status;
}

static ts_status run_compiled(const ts_graph *graph, const ts_opt_run *options, const tensors *args, tensors *out) {
  ts_executable *exe;
  TS_TRY(ts_executable_create(graph, NULL, &exe));
  ts_status status = options->explain ? explain(exe) : TS_SUCCESS;
  if (!status && args) status = ts_executable_run(exe, args->data, args->count, NULL, out->data);
  ts_executable_release(exe);
  return status;
}

/* ---- partitions ---- */

static ts_status cut_args(const ts_graph *graph, const tensors *args, tensors *out) {
  TS_TRY(new_tensors(args->count * (size_t)ts_mesh_partitions(&graph->mesh), out));
  for (size_t i = 0; i < out->count; i++)
    TS_TRY(ts_shard_cut(&graph->mesh, ts_graph_sharding(graph, TS_PARAMS, i % args->count), args->data[i % args->count],
                        (int32_t)(i / args->count), ts_pool_default(), &out->data[i]));
  return TS_SUCCESS;
}

static ts_status join_results(const ts_graph *graph, const tensors *parts, tensors *out) {
  int32_t partitions = ts_mesh_partitions(&graph->mesh);
  for (size_t i = 0; i < out->count; i++) {
    ts_buffer *all[TS_MAX_PARTITIONS];
    for (int32_t p = 0; p < partitions; p++) all[p] = parts->data[(size_t)p * out->count + i];
    TS_TRY(ts_shard_join(&graph->mesh, ts_graph_sharding(graph, TS_RESULTS, i), all, ts_pool_default(), &out->data[i]));
  }
  return TS_SUCCESS;
}

static ts_status run_parts(const ts_graph *graph, const tensors *args, tensors *out) {
  tensors parts = {0}, results = {0};
  ts_status status = cut_args(graph, args, &parts);
  if (!status) status = new_tensors(out->count * (size_t)ts_mesh_partitions(&graph->mesh), &results);
  if (!status) status = ts_ref_run_partitions(graph, parts.data, args->count, ts_pool_default(), results.data);
  if (!status) status = join_results(graph, &results, out);
  free_tensors(&parts);
  free_tensors(&results);
  return status;
}

static ts_status run_partitioned(const ts_graph *graph, const tensors *args, tensors *out) {
  ts_graph *partitioned;
  TS_TRY(ts_shard_partition(graph, NULL, NULL, &partitioned));
  ts_status status = ts_graph_verify(partitioned);
  if (!status) status = run_parts(partitioned, args, out);
  ts_graph_destroy(partitioned);
  return status;
}

static ts_status run_both(const ts_graph *graph, const ts_opt_run *options, tensors *args, tensors *results,
                          tensors *expected) {
  size_t count = ts_graph_region(graph, TS_ROOT)->results.count;
  TS_TRY(make_args(graph, options, args));
  TS_TRY(new_tensors(count, results));
  TS_TRY(new_tensors(count, expected));
  if (options->partitions)
    TS_TRY(run_partitioned(graph, args, results));
  else if (options->ref)
    TS_TRY(ts_ref_run(graph, args->data, args->count, ts_pool_default(), results->data));
  else
    TS_TRY(run_compiled(graph, options, args, results));
  for (size_t i = 0; options->run && i < count; i++) TS_TRY(print(i, results->data[i]));
  if (!options->check) return TS_SUCCESS;
  TS_TRY(ts_ref_run(graph, args->data, args->count, ts_pool_default(), expected->data));
  return compare(results, expected);
}

ts_status ts_opt_run_graph(const ts_graph *graph, const ts_opt_run *options) {
  if (!options->run && !options->check) return run_compiled(graph, options, NULL, NULL);
  tensors args = {0}, results = {0}, expected = {0};
  ts_status status = run_both(graph, options, &args, &results, &expected);
  free_tensors(&args);
  free_tensors(&results);
  free_tensors(&expected);
  return status;
}

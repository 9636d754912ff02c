#include "tool/opt_args.h"

#include "ir/syntax.h"
#include "tool/random_args.h"

#include <string.h>

ts_status ts_opt_tensors_create(size_t count, ts_opt_tensors *out) {
  out->count = count;
  return TS_NEW_ARRAY(count, &out->data);
}

void ts_opt_tensors_clear(ts_opt_tensors *tensors) {
  for (size_t i = 0; tensors->data && i < tensors->count; i++) {
    ts_buffer_release(tensors->data[i]);
    tensors->data[i] = NULL;
  }
}

void ts_opt_tensors_deinit(ts_opt_tensors *tensors) {
  ts_opt_tensors_clear(tensors);
  ts_free(tensors->data);
  tensors->data = NULL;
}

static void store(ts_buffer *buffer, ts_dtype type, int64_t i, ts_scalar value) {
  ts_scalar_store(type, value, (char *)buffer->data + (size_t)i * ts_dtype_size(type));
}

static int64_t next_quarters(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)(*state >> 33) % 33 - 16;
}

static ts_scalar small_number(ts_dtype type, int64_t quarters) {
  if (ts_dtype_is_float(type)) return ts_scalar_from_f64(type, (double)quarters / 4);
  return ts_scalar_from_s64(type, ts_dtype_is_signed(type) ? quarters / 4 : (quarters + 16) / 4);
}

/* Whole numbers from -4 to 4, in quarters for floats: small enough that sums stay exact, and readable. */
static void fill(ts_buffer *buffer, uint64_t *state) {
  ts_dtype part = ts_dtype_part(buffer->dtype);
  int64_t count = ts_shape_elements(&buffer->shape) * (ts_dtype_is_complex(buffer->dtype) ? 2 : 1);
  for (int64_t i = 0; i < count; i++) store(buffer, part, i, small_number(part, next_quarters(state)));
}

static ts_status make_small(const ts_graph *graph, uint64_t seed, ts_opt_tensors *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  TS_TRY(ts_opt_tensors_create(root->params.count, out));
  for (size_t i = 0; i < out->count; i++) {
    const ts_value *param = ts_graph_value(graph, root->params.data[i]);
    TS_TRY(ts_buffer_create(ts_pool_default(), param->dtype, param->shape, &out->data[i]));
    fill(out->data[i], &seed);
  }
  return TS_SUCCESS;
}

static ts_status make_special(const ts_graph *graph, uint64_t seed, ts_opt_tensors *out) {
  out->count = ts_graph_region(graph, TS_ROOT)->params.count;
  return ts_random_args(seed, graph, ts_pool_default(), &out->data);
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

ts_status ts_opt_args(const ts_graph *graph, const ts_opt_run *options, ts_opt_tensors *out) {
  TS_TRY((options->special ? make_special : make_small)(graph, options->seed, out));
  if (options->inputs.count > out->count)
    return ts_error(TS_INVALID_ARGUMENT, "the graph takes %zu arguments, %zu are given", out->count,
                    options->inputs.count);
  for (size_t i = 0; i < options->inputs.count; i++) TS_TRY(parse(out->data[i], i, options->inputs.data[i]));
  return TS_SUCCESS;
}

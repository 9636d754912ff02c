#include "random_internal.h"

#include <math.h>

/* What the numbers of one tensor are like. */
typedef enum style { SMALL_INTEGERS, AROUND_ZERO, ANY_SIZE, SPECIALS, STYLES } style;

static double random_unit(rng *r) { return (double)(rng_next(r) >> 11) * 0x1p-53; }

static double random_special(rng *r) {
  static const double specials[] = {0,     -0.0, 1,        -1,     INFINITY, -INFINITY, NAN,   0.5,    -0.5,
                                    2.5,   -2.5, 1e-45,    -1e-40, 1e38,     -3e38,     65504, -65520, 5e-324,
                                    1e300, 6e-8, 16777216, 0x1p31, -0x1p63,  88.5,      -104,  0.1};
  return RNG_PICK(r, specials);
}

static double random_float(rng *r, style s) {
  switch (s) {
  case SMALL_INTEGERS: return (double)rng_between(r, -8, 8);
  case AROUND_ZERO: return random_unit(r) * 4 - 2;
  case ANY_SIZE: return ldexp(random_unit(r) * 2 - 1, (int)rng_between(r, -20, 20));
  default: return rng_chance(r, 40) ? random_special(r) : random_unit(r) * 10 - 5;
  }
}

static ts_scalar random_integer(rng *r, ts_dtype type, style s) {
  switch (s) {
  case SMALL_INTEGERS: return ts_scalar_from_s64(type, rng_between(r, -3, 10));
  case AROUND_ZERO: return ts_scalar_from_s64(type, rng_between(r, 0, 1));
  case ANY_SIZE: return ts_scalar_from_u64(type, rng_next(r));
  default: break;
  }
  switch (rng_below(r, 5)) {
  case 0: return ts_dtype_lowest(type);
  case 1: return ts_dtype_highest(type);
  case 2: return ts_scalar_from_s64(type, -1);
  default: return ts_scalar_from_s64(type, rng_between(r, -70, 70));
  }
}

static void fill(rng *r, ts_buffer *buffer) {
  style s = (style)rng_below(r, STYLES);
  bool is_float = ts_dtype_is_float(buffer->dtype);
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++) {
    ts_scalar value =
        is_float ? ts_scalar_from_f64(buffer->dtype, random_float(r, s)) : random_integer(r, buffer->dtype, s);
    ts_scalar_store(buffer->dtype, value, (char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype));
  }
}

void ts_random_args_free(ts_buffer **args, size_t count) {
  for (size_t i = 0; args && i < count; i++) ts_buffer_release(args[i]);
  ts_free(args);
}

ts_status ts_random_args(uint64_t seed, const ts_graph *graph, ts_pool *pool, ts_buffer ***out_args) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  rng r = {.state = seed ^ UINT64_C(0x5851F42D4C957F2D)};
  TS_TRY(TS_NEW_ARRAY(root->params.count, out_args));
  for (size_t i = 0; i < root->params.count; i++) {
    const ts_value *param = ts_graph_value(graph, root->params.data[i]);
    ts_status status = ts_buffer_create(pool, param->dtype, param->shape, &(*out_args)[i]);
    if (status) {
      ts_random_args_free(*out_args, root->params.count);
      *out_args = NULL;
      return status;
    }
    fill(&r, (*out_args)[i]);
  }
  return TS_SUCCESS;
}

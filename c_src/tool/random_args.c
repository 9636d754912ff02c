#include "tool/random_args.h"

#include <math.h>

/* SplitMix64. */
typedef struct rng {
  uint64_t state;
} rng;

static uint64_t next(rng *r) {
  uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static int64_t below(rng *r, int64_t n) { return (int64_t)(next(r) % (uint64_t)n); }
static int64_t between(rng *r, int64_t low, int64_t high) { return low + below(r, high - low + 1); }
static double unit(rng *r) { return (double)(next(r) >> 11) * 0x1p-53; }

/* The range of the numbers of one tensor. */
typedef enum style { SMALL_INTEGERS, AROUND_ZERO, ANY_SIZE, SPECIALS, STYLES } style;

static double random_special(rng *r) {
  static const double specials[] = {0,     -0.0, 1,        -1,     INFINITY, -INFINITY, NAN,   0.5,    -0.5,
                                    2.5,   -2.5, 1e-45,    -1e-40, 1e38,     -3e38,     65504, -65520, 5e-324,
                                    1e300, 6e-8, 16777216, 0x1p31, -0x1p63,  88.5,      -104,  0.1};
  return specials[below(r, sizeof specials / sizeof *specials)];
}

static double random_float(rng *r, style s) {
  switch (s) {
  case SMALL_INTEGERS: return (double)between(r, -8, 8);
  case AROUND_ZERO: return unit(r) * 4 - 2;
  case ANY_SIZE: return ldexp(unit(r) * 2 - 1, (int)between(r, -20, 20));
  default: return below(r, 100) < 40 ? random_special(r) : unit(r) * 10 - 5;
  }
}

static ts_scalar random_integer(rng *r, ts_dtype type, style s) {
  switch (s) {
  case SMALL_INTEGERS: return ts_scalar_from_s64(type, between(r, -3, 10));
  case AROUND_ZERO: return ts_scalar_from_s64(type, between(r, 0, 1));
  case ANY_SIZE: return ts_scalar_from_u64(type, next(r));
  default: break;
  }
  switch (below(r, 5)) {
  case 0: return ts_dtype_lowest(type);
  case 1: return ts_dtype_highest(type);
  case 2: return ts_scalar_from_s64(type, -1);
  default: return ts_scalar_from_s64(type, between(r, -70, 70));
  }
}

static void fill(rng *r, ts_buffer *buffer) {
  style s = (style)below(r, STYLES);
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

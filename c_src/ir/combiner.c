#include "ir/combiner.h"

static const ts_combiner sum = {TS_COMBINE_SUM, TS_OP_ADD, false},
                         product = {TS_COMBINE_PRODUCT, TS_OP_MULTIPLY, false},
                         max = {TS_COMBINE_MAX, TS_OP_MAX, false}, min = {TS_COMBINE_MIN, TS_OP_MIN, false},
                         all = {TS_COMBINE_ALL, TS_OP_AND, true}, any = {TS_COMBINE_ANY, TS_OP_OR, true};

static const ts_combiner *const combiners[TS_OP_COUNT] = {
    [TS_OP_REDUCE_SUM] = &sum,     [TS_OP_REDUCE_PRODUCT] = &product,
    [TS_OP_REDUCE_MAX] = &max,     [TS_OP_REDUCE_MIN] = &min,
    [TS_OP_REDUCE_ALL] = &all,     [TS_OP_REDUCE_ANY] = &any,
    [TS_OP_CUMULATIVE_SUM] = &sum, [TS_OP_CUMULATIVE_PRODUCT] = &product,
    [TS_OP_CUMULATIVE_MAX] = &max, [TS_OP_CUMULATIVE_MIN] = &min,
    [TS_OP_WINDOW_SUM] = &sum,     [TS_OP_WINDOW_PRODUCT] = &product,
    [TS_OP_WINDOW_MAX] = &max,     [TS_OP_WINDOW_MIN] = &min,
};

const ts_combiner *ts_combiner_of(ts_opcode code) { return code < TS_OP_COUNT ? combiners[code] : NULL; }

ts_scalar ts_combiner_identity(const ts_combiner *combiner, ts_dtype type) {
  switch (combiner->kind) {
  case TS_COMBINE_PRODUCT:
  case TS_COMBINE_ALL: return ts_scalar_from_s64(type, 1);
  case TS_COMBINE_MAX: return ts_dtype_lowest(type);
  case TS_COMBINE_MIN: return ts_dtype_highest(type);
  case TS_COMBINE_SUM:
  case TS_COMBINE_ANY: break;
  }
  return ts_scalar_from_s64(type, 0);
}

#include "ir/combiner.h"

static const ts_combiner sum = {TS_COMBINE_SUM, TS_OP_ADD, false},
                         product = {TS_COMBINE_PRODUCT, TS_OP_MULTIPLY, false},
                         max = {TS_COMBINE_MAX, TS_OP_MAX, false}, min = {TS_COMBINE_MIN, TS_OP_MIN, false},
                         all = {TS_COMBINE_ALL, TS_OP_AND, true}, any = {TS_COMBINE_ANY, TS_OP_OR, true},
                         bit_and = {TS_COMBINE_AND, TS_OP_AND, false}, bit_or = {TS_COMBINE_OR, TS_OP_OR, false},
                         bit_xor = {TS_COMBINE_XOR, TS_OP_XOR, false};

static const ts_combiner *of_reduce(ts_opcode code) {
  switch ((ts_ops_REDUCE)code) {
  case TS_OP_REDUCE_SUM: return &sum;
  case TS_OP_REDUCE_PRODUCT: return &product;
  case TS_OP_REDUCE_MAX: return &max;
  case TS_OP_REDUCE_MIN: return &min;
  case TS_OP_REDUCE_ALL: return &all;
  case TS_OP_REDUCE_ANY: return &any;
  case TS_OP_REDUCE: break; /* by its region */
  }
  return NULL;
}

static const ts_combiner *of_scan(ts_opcode code) {
  switch ((ts_ops_SCAN)code) {
  case TS_OP_CUMULATIVE_SUM: return &sum;
  case TS_OP_CUMULATIVE_PRODUCT: return &product;
  case TS_OP_CUMULATIVE_MAX: return &max;
  case TS_OP_CUMULATIVE_MIN: return &min;
  }
  return NULL;
}

static const ts_combiner *of_window(ts_opcode code) {
  switch ((ts_ops_WINDOW)code) {
  case TS_OP_WINDOW_SUM: return &sum;
  case TS_OP_WINDOW_PRODUCT: return &product;
  case TS_OP_WINDOW_MAX: return &max;
  case TS_OP_WINDOW_MIN: return &min;
  case TS_OP_WINDOW_SCATTER_MAX:
  case TS_OP_WINDOW_SCATTER_MIN: break; /* they select */
  }
  return NULL;
}

const ts_combiner *ts_combiner_of(ts_opcode code) {
  ts_op_class class = ts_op_get_class(code);
  if (class == TS_CLASS_REDUCE) return of_reduce(code);
  if (class == TS_CLASS_SCAN) return of_scan(code);
  return class == TS_CLASS_WINDOW ? of_window(code) : NULL;
}

const ts_combiner *ts_combiner_by(ts_opcode binary) {
  const ts_combiner *const of_elements[] = {&sum, &product, &max, &min, &bit_and, &bit_or, &bit_xor};
  for (size_t i = 0; i < sizeof of_elements / sizeof *of_elements; i++)
    if (of_elements[i]->op == binary) return of_elements[i];
  return NULL;
}

bool ts_combiner_is_orderless(ts_opcode code, ts_dtype type) {
  const ts_combiner *by = ts_op_get_class(code) == TS_CLASS_REDUCE ? of_reduce(code) : NULL;
  if (!by) return false;
  return ts_dtype_is_integer(type) || (by->kind != TS_COMBINE_SUM && by->kind != TS_COMBINE_PRODUCT);
}

bool ts_arg_takes_largest(ts_opcode code) {
  switch ((ts_ops_ARG_REDUCE)code) {
  case TS_OP_ARGMAX: return true;
  case TS_OP_ARGMIN: break;
  }
  return false;
}

ts_scalar ts_combiner_identity(const ts_combiner *combiner, ts_dtype type) {
  switch (combiner->kind) {
  case TS_COMBINE_PRODUCT:
  case TS_COMBINE_ALL: return ts_scalar_from_s64(type, 1);
  case TS_COMBINE_MAX: return ts_dtype_lowest(type);
  case TS_COMBINE_MIN: return ts_dtype_highest(type);
  case TS_COMBINE_AND: return ts_scalar_from_s64(type, -1);
  case TS_COMBINE_SUM:
  case TS_COMBINE_ANY:
  case TS_COMBINE_OR:
  case TS_COMBINE_XOR: break;
  }
  return ts_scalar_from_s64(type, 0);
}

ts_opcode ts_collective_combines(ts_opcode code) {
  switch ((ts_ops_COLLECTIVE)code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_REDUCE_SCATTER: return TS_OP_ADD;
  case TS_OP_ALL_REDUCE_PRODUCT: return TS_OP_MULTIPLY;
  case TS_OP_ALL_REDUCE_MIN: return TS_OP_MIN;
  case TS_OP_ALL_REDUCE_MAX: return TS_OP_MAX;
  case TS_OP_ALL_REDUCE_AND: return TS_OP_AND;
  case TS_OP_ALL_REDUCE_OR: return TS_OP_OR;
  case TS_OP_SHARDING_CONSTRAINT:
  case TS_OP_ALL_GATHER:
  case TS_OP_ALL_TO_ALL:
  case TS_OP_COLLECTIVE_PERMUTE:
  case TS_OP_COLLECTIVE_BROADCAST:
  case TS_OP_BARRIER: break;
  }
  return TS_OP_COUNT;
}

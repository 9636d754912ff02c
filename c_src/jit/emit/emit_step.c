/* Elements a few steps apart. The vectors that have them are read as they lie in memory, and shuffles put the elements
 * together. Nothing is read in front of the first element or behind the last one. */
#include "jit/emit/emit_interleave.h"
#include "jit/kernel.h"

/* Where vector `k` of those begins, in elements from the lowest one that is wanted. */
static int first_of(const ts_emit *e, int distance, int k) {
  const int last = (e->lanes - 1) * (distance - 1); /* the one that ends with the highest element */
  return k * e->lanes < last ? k * e->lanes : last;
}

ts_v ts_emit_load_steps(ts_emit *e, ts_dtype type, ts_v address, int step) {
  const int distance = step < 0 ? -step : step, lanes = e->lanes, lowest = step < 0 ? (lanes - 1) * step : 0;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), element = ts_emit_memory_type(e, type);
  ts_v vectors[TS_NEAR_STEP];
  ts_emit_origin of = {{0}, {0}};
  for (int k = 0; k < distance; k++) {
    const int64_t first = lowest + first_of(e, distance, k);
    ts_v at = LLVMConstInt(i64, (unsigned long long)first, 1);
    vectors[k] = ts_emit_load_memory(e, type, LLVMBuildGEP2(e->b, element, address, &at, 1, ""));
  }
  for (int i = 0; i < lanes; i++) {
    const int at = (step < 0 ? lanes - 1 - i : i) * distance;
    of.vector[i] = at / lanes;
    of.lane[i] = at - first_of(e, distance, of.vector[i]);
  }
  return ts_emit_to_register(e, type, ts_emit_join(e, vectors, distance, &of));
}

/* Any bytes through the reader of StableHLO, with what JAX puts around bytecode; a graph that it makes must verify. */
#include "fuzz_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t live = ts_alloc_live();
  fuzz_read((const char *)data, size, NULL);
  fuzz_leaves((const char *)data, size);
  fuzz_processes((const char *)data, size);
  if (ts_alloc_live() != live) abort();
  return 0;
}

/* Any bytes after the first four of MLIR's bytecode through its reader; a graph that it makes must verify. */
#include "fuzz_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t live = ts_alloc_live();
  char *file = malloc(size + 4);
  if (!file) return 0;
  memcpy(file, "ML\xefR", 4);
  if (size) memcpy(file + 4, data, size);
  fuzz_read(file, size + 4, NULL);
  fuzz_leaves(file, size + 4);
  fuzz_processes(file, size + 4);
  free(file);
  if (ts_alloc_live() != live) abort();
  return 0;
}

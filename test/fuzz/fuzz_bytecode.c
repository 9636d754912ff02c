/* Any bytes after the first four of MLIR's bytecode through its reader; a graph that it makes must verify. */
#include "fuzz.h"
#include "stablehlo/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ts_graph *graph;
  int64_t live = ts_alloc_live();
  char *file = malloc(size + 4);
  if (!file) return 0;
  memcpy(file, "ML\xefR", 4);
  if (size) memcpy(file + 4, data, size);
  if (ts_status_consume_ok(ts_stablehlo_read(file, size + 4, &graph))) {
    must(ts_graph_verify(graph), "verify");
    ts_graph_destroy(graph);
  }
  free(file);
  if (ts_alloc_live() != live) abort();
  return 0;
}

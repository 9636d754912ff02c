/* Any bytes through the reader of StableHLO; a graph that it makes must verify. */
#include "fuzz.h"
#include "stablehlo/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ts_graph *graph;
  int64_t live = ts_alloc_live();
  if (!ts_status_consume_ok(ts_stablehlo_read((const char *)data, size, &graph))) {
    if (ts_alloc_live() != live) abort();
    return 0;
  }
  must(ts_graph_verify(graph), "verify");
  ts_graph_destroy(graph);
  if (ts_alloc_live() != live) abort();
  return 0;
}

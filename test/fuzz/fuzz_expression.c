/* Packed programs, as they come from other nodes and from the disk: each is refused or becomes a graph that verifies
 * and whose text parses, and nothing is left. */
#include "front/expr.h"
#include "fuzz.h"
#include "ir/graph.h"

static void check(const ts_graph *graph) {
  must(ts_graph_verify(graph), "verify");
  char *text = print(graph);
  ts_graph *again;
  must(ts_graph_parse(text, strlen(text), &again), "parse");
  ts_graph_destroy(again);
  ts_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ts_graph *graph;
  int64_t live = ts_alloc_live();
  if (!ts_status_consume_ok(ts_expr_unpack(data, size, &graph))) return 0;
  check(graph);
  ts_graph_destroy(graph);
  return ts_alloc_live() == live ? 0 : (abort(), 0);
}

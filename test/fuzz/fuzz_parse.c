/* Any bytes through the parser; what parses must verify, and print to a text
 * that parses to itself. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ts_graph *graph, *again;
  int64_t live = ts_alloc_live();
  if (!ts_status_consume_ok(ts_graph_parse((const char *)data, size, &graph))) {
    if (ts_alloc_live() != live) abort();
    return 0;
  }
  must(ts_graph_verify(graph), "verify");
  char *first = print(graph);
  must(ts_graph_parse(first, strlen(first), &again), "parse again");
  char *second = print(again);
  if (strcmp(first, second) != 0) abort();
  ts_free(first);
  ts_free(second);
  ts_graph_destroy(graph);
  ts_graph_destroy(again);
  if (ts_alloc_live() != live) abort();
  return 0;
}

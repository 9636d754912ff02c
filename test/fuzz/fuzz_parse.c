/* Any bytes through the parser; what parses must verify, and print to a text
 * that parses to itself. */
#include "ir/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(ts_status status, const char *what) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", what, ts_status_message(status));
  abort();
}

static char *print(const ts_graph *graph) {
  ts_text text = {0};
  char *string;
  must(ts_graph_print(graph, &text), "print");
  must(ts_text_finish(&text, &string), "print");
  return string;
}

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

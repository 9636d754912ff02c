/* Shared by the fuzzers. */
#ifndef TS_FUZZ_H
#define TS_FUZZ_H

#include "ir/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What may not fail. */
static inline void must(ts_status status, const char *what) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", what, ts_status_message(status));
  abort();
}

static inline char *print(const ts_graph *graph) {
  ts_text text = {0};
  char *string;
  must(ts_graph_print(graph, &text), "print");
  must(ts_text_finish(&text, &string), "print");
  return string;
}

#endif

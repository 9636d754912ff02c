/* A graph's text, in tests. */
#ifndef TS_TEST_GRAPH_TEXT_H
#define TS_TEST_GRAPH_TEXT_H

#include "ir/graph.h"
#include "testing.h"

/* To be freed by ts_free(). */
static inline char *graph_text(const ts_graph *graph) {
  ts_text text = {0};
  char *string;
  ck_assert_ok(ts_graph_print(graph, &text));
  ck_assert_ok(ts_text_finish(&text, &string));
  return string;
}

#endif

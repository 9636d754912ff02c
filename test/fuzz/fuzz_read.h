/* A program of StableHLO through its reader: as it is, with symbolic sizes for a few lists of arguments, and for
 * several processes. */
#ifndef TS_FUZZ_READ_H
#define TS_FUZZ_READ_H

#include "base/text.h"
#include "fuzz.h"
#include "stablehlo/read.h"

static inline void fuzz_read(const char *text, size_t size, const ts_types *given) {
  ts_graph *graph;
  if (!ts_status_consume_ok(ts_stablehlo_read_for(text, size, given, &graph))) return;
  if (graph) must(ts_graph_verify(graph), "verify");
  const bool is_symbolic = !graph;
  ts_graph_destroy(graph);
  if (!is_symbolic) return;
  if (given) abort(); /* the sizes of the arguments determine all sizes */
  const ts_type row = {TS_F32, {.rank = 2, .dims = {2, 3}}}, long_row = {TS_F32, {.rank = 2, .dims = {4, 3}}};
  const ts_type index = {TS_S32, {.rank = 1, .dims = {2}}};
  fuzz_read(text, size, &(ts_types){&row, 1});
  fuzz_read(text, size, &(ts_types){(ts_type[]){row, long_row}, 2});
  fuzz_read(text, size, &(ts_types){(ts_type[]){row, index}, 2});
}

/* Names and types of arguments and results, which need no graph. */
static inline void fuzz_leaves(const char *text, size_t size) {
  ts_stablehlo_leaves leaves;
  if (!ts_status_consume_ok(ts_stablehlo_read_leaves(text, size, &leaves))) return;
  const struct {
    const ts_stablehlo_leaf *data;
    size_t count;
  } sides[] = {{leaves.params, leaves.param_count}, {leaves.results, leaves.result_count}};
  for (size_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides[side].count; i++) {
      const ts_stablehlo_leaf *leaf = &sides[side].data[i];
      ts_text copy = {0};
      if (leaf->shape->rank < 0) abort();
      if (leaf->name) ts_text_append_n(&copy, leaf->name, leaf->name_length);
      ts_text_deinit(&copy);
    }
  ts_stablehlo_leaves_deinit(&leaves);
}

static inline void fuzz_processes(const char *text, size_t size) {
  static const ts_stablehlo_grid grids[] = {{1, 2}, {1, 4}, {2, 1}, {2, 2}, {3, 2}};
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
    ts_stablehlo_signature signature = {0};
    ts_graph *graph;
    if (!ts_status_consume_ok(ts_stablehlo_read_processes(text, size, &grids[i], &graph, &signature))) continue;
    must(ts_graph_verify(graph), "verify");
    ts_graph_destroy(graph);
    ts_stablehlo_signature_deinit(&signature);
  }
}

#endif

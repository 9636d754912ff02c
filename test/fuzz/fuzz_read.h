/* A program of StableHLO through its reader: as it is, and with symbolic sizes for a few lists of arguments. */
#ifndef TS_FUZZ_READ_H
#define TS_FUZZ_READ_H

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

#endif

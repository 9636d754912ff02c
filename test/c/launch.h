/* Runs lowered ops without a compiler, element by element, for tests of lowering. Every
 * address is checked to lie in its tensor. For use inside of a running check test. */
#ifndef TS_TEST_LAUNCH_H
#define TS_TEST_LAUNCH_H

#include "jit/lower/lower.h"

/* `operands` and `results` belong to the lowered op. With `share`, launches that only copy are left out. */
void test_run_lowered(const ts_lowered *lowered, ts_buffer *const *operands, ts_buffer *const *results, bool share);

/* Runs a whole graph, each op by its launches and, where there are none, by the reference interpreter. Every fusion
 * must lower. General reductions are not handled. `out_results` gets a reference each. */
void test_run_by_launches(const ts_graph *graph, ts_buffer *const *args, ts_buffer **out_results);

#endif

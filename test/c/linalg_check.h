/* How tests compare results of linear algebra. */
#ifndef TS_TEST_LINALG_CHECK_H
#define TS_TEST_LINALG_CHECK_H

#include "ir/graph.h"

/* Judges a run's results of a program of one op: by their defining equations (tool/judge.h) and, if the interpreter
 * defines the op's bits, also by these. */
void check_linalg(const ts_graph *graph, ts_buffer *const *args, ts_buffer *const *results);

#endif

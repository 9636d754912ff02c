/* What a loop leaves unchanged. Internal to pass/. */
#ifndef TS_PASS_HOIST_H
#define TS_PASS_HOIST_H

#include "pass/pass.h"

/* Of a value of a while's body. */
enum {
  TS_INVARIANT = 1, /* it is the same in each iteration */
  TS_FREE = 2,      /* and is made of no loop variable */
};

/* Elementwise ops on fewer bytes than this, and transposes, stay in the loop: they cost less than a kernel of their
 * own. */
#define TS_HOIST_FEW_BYTES 256

/* Marks the values of the body: `state` has a byte for each value of the graph. */
void ts_find_invariants(const ts_graph *graph, const ts_region *body, uint8_t *state);

/* Transposes the matrices that a loop multiplies with a vector in each iteration, where their rows are contiguous along
 * the terms (turn.c). The transposes are in the body, and hoist moves them to before the loop. *out is NULL where there
 * are none. */
ts_status ts_turn_matrices(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

#endif

/* Which slots of a flow are cells: small ones that only launches and copies use. Their values are in registers while
 * the function runs. Where it stops, the live ones are stored into their memory, and loaded again when it continues. */
#ifndef TS_JIT_FLOW_CELLS_H
#define TS_JIT_FLOW_CELLS_H

#include "jit/flow/flow.h"

/* Cells are numbered, and a set of them is a word. */
#define TS_FLOW_MOST_CELLS 64

typedef struct ts_flow_cells {
  int32_t count;
  uint32_t slot[TS_FLOW_MOST_CELLS];
  int64_t bytes[TS_FLOW_MOST_CELLS];
  int32_t *of_slot; /* number of the slot's cell; negative: it is memory */
  uint64_t *live;   /* of each loop, by its number: read at its head or later, before they are written. [0]: when
                       the function begins */
  uint64_t results; /* read after the function */
} ts_flow_cells;

/* Everything lives in `arena`. `most`: bytes of the largest cell. `excluded`: of each slot, whether it must be memory;
 * gets those that the flow excludes. */
ts_status ts_flow_find_cells(const ts_flow *flow, int64_t most, bool *excluded, ts_arena *arena, ts_flow_cells *out);

#endif

/* Programs with callbacks. A plugin cannot call the VM, so such a program is split at its callbacks: *parts* are
 * programs of the plugin, and the client makes the calls between them, in the order of the program. A loop or a branch
 * with a callback inside is done here, too: its condition is read from the device.
 *
 * A split program is immutable. Its parts are released with it. A run of it is a chain of operations, each begun by the
 * end of the one before, so no thread waits for a device or for an answer. */
#ifndef TS_PJRT_SPLIT_H
#define TS_PJRT_SPLIT_H

#include "pjrt/client.h"

typedef enum pj_step_kind {
  PJ_STEP_PART,  /* a program of the plugin */
  PJ_STEP_CALL,  /* the op callback */
  PJ_STEP_WHILE, /* lists: condition, body */
  PJ_STEP_COND,  /* lists: true, false; operand 0 is the predicate */
  PJ_STEP_REGION /* a list, on the operands: the op call */
} pj_step_kind;

/* Slots are numbers of values that are kept between the steps of a list. */
typedef struct pj_step {
  pj_step_kind kind;
  uint32_t operand_count, result_count;
  const uint32_t *operands, *results; /* slots */
  pj_code *part;                      /* PART: a reference of the split program's */
  uint32_t number;                    /* PART: from 1; CALL: which of the program's callbacks */
  const ts_type *const *types;        /* CALL: of the operands, then of the results */
  const struct pj_steps *lists[2];
} pj_step;

/* The steps of a region. Its parameters are the first slots. */
typedef struct pj_steps {
  TS_VEC(pj_step) steps; /* in the split program's arena once they are complete */
  uint32_t slot_count, param_count, result_count;
  const uint32_t *results; /* slots */
  uint32_t *last;          /* of each slot: the last step that uses it; later ones do not need it */
} pj_steps;

struct pj_split {
  ts_arena arena;
  TS_VEC(pj_code *) parts;
  TS_VEC(pj_steps *) lists;
  const pj_steps *root;
};

bool pj_calls_back(const ts_graph *graph);
/* On a thread that may wait for the compiler. */
ts_status pj_split_create(pj_client *client, const ts_graph *graph, ts_precision precision, pj_split **out);
void pj_split_destroy(pj_split *split); /* NULL is allowed */
void pj_split_explain(const pj_split *split, ts_text *out);
void pj_split_run(const ts_run_request *request, ts_done done);

#endif

/* Chooses the kernels of a program while it is built. It lowers each op, selects for each launch a kernel of the
 * program, and cuts the launch into tasks. These own kernels depend on the program alone. It requests the own kernel,
 * or a stand-in: a more general kernel that another program has. explain, costs and the memory plan are those of the
 * own kernels. Equal ops and equal fusions are lowered once (the layers of a network have many). Used by one thread;
 * internal to exec/. */
#ifndef TS_EXEC_CHOOSE_H
#define TS_EXEC_CHOOSE_H

#include "base/map.h"
#include "exec/steps.h"
#include "ir/key.h"
#include "jit/jit.h"
#include "jit/lower/lower.h"

/* A kernel that the chooser knows by its text. */
typedef struct ts_chosen {
  char *text;         /* owned */
  ts_hash128 family;  /* zero: none */
  uint32_t requested; /* index in the batch; TS_NO_ID: stand-ins have served all launches up to now */
  bool own;           /* of the program; else a stand-in only */
} ts_chosen;

typedef struct ts_chooser {
  const ts_graph *graph;
  ts_arena *arena; /* of the executable; holds the lowered ops */
  const ts_compile_options *options;
  ts_jit_batch batch; /* requested kernels, which LLVM compiles in the background */
  TS_VEC(ts_chosen) chosen;
  TS_VEC(ts_kernel_source) later; /* own kernels with a stand-in; `chosen` owns their texts */
  ts_map indices;                 /* text to index in `chosen` + 1 */
  ts_keys known;                  /* key to ts_work */
  TS_VEC(ts_work *) works;        /* the values of `known` */
  TS_VEC(uint32_t) kernels;       /* indices in the batch, one for each launch of the current op */
  TS_VEC(ts_own_kernel *) owns;   /* ts_step_launch.own, one for each launch of the current op */
  bool in_place;                  /* the launches of the op have no kernels: they become parts of a native loop */
  bool cached;                    /* whether the current op's stores stay in the caches */
} ts_chooser;

void ts_chooser_init(ts_chooser *chooser, const ts_graph *graph, ts_arena *arena, const ts_compile_options *options);
/* TS_UNIMPLEMENTED as ts_lower_op. With `cached` the stores do not bypass the caches. The work's kernels are indices
 * into the batch; their entries are set when the batch is complete. */
ts_status ts_choose(ts_chooser *chooser, ts_op_id op, bool cached, const ts_work **out);
/* Requests a kernel of the program; equal ones are requested once. Takes over the source's text. On success what the
 * source points to must not change until the chooser is deinitialized; on failure it is not used. */
ts_status ts_choose_source(ts_chooser *chooser, char *text, const ts_kernel_source *source, uint32_t *out);
/* The number of the program's own kernels. */
int64_t ts_chooser_own_kernels(const ts_chooser *chooser);
void ts_chooser_deinit(ts_chooser *chooser);

#endif

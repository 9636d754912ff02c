/* Chooses the kernels of a program while it is built. It lowers each op, selects for each launch its own kernel or a
 * stand-in (a more general kernel), requests the own kernel at once, and cuts the launch into tasks. Equal ops and
 * equal fusions are lowered once (the layers of a network have many). Used by one thread; internal to exec/. */
#ifndef TS_EXEC_CHOOSE_H
#define TS_EXEC_CHOOSE_H

#include "base/map.h"
#include "exec/steps.h"
#include "ir/key.h"
#include "jit/jit.h"
#include "jit/lower/lower.h"

typedef struct ts_chooser {
  const ts_graph *graph;
  ts_arena *arena; /* of the executable; holds the lowered ops */
  const ts_compile_options *options;
  ts_jit_batch batch;             /* requested kernels, which LLVM compiles in the background */
  TS_VEC(char *) texts;           /* texts of the batch's kernels, owned */
  TS_VEC(ts_hash128) families;    /* families of the batch's kernels; zero: none */
  TS_VEC(ts_kernel_source) later; /* the launches' own kernels, while others stand in; the chooser owns their texts */
  ts_map source_ids;              /* text to index in the batch + 1 */
  ts_keys known;                  /* key to ts_work */
  TS_VEC(ts_work *) works;        /* the values of `known` */
  TS_VEC(uint32_t) kernels;       /* of the op that is being lowered, one for each launch */
  bool cached;                    /* whether the current op's stores stay in the caches */
} ts_chooser;

void ts_chooser_init(ts_chooser *chooser, const ts_graph *graph, ts_arena *arena, const ts_compile_options *options);
/* TS_UNIMPLEMENTED as ts_lower_op. With `cached` the stores do not bypass the caches. The work's kernels are indices
 * into the batch; their entries are set when the batch is complete. */
ts_status ts_choose(ts_chooser *chooser, ts_op_id op, bool cached, const ts_work **out);
/* Requests a kernel; equal ones are requested once. Takes over the text. On success the source must not change until
 * the chooser is deinitialized; on failure it is not used. */
ts_status ts_choose_source(ts_chooser *chooser, char *text, const ts_kernel_source *source, uint32_t *out);
void ts_chooser_deinit(ts_chooser *chooser);

#endif

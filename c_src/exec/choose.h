/* How a program's ops are done by kernels, while it is built: lowers each op, chooses for each launch its own kernel or
 * one that stands in for it, asks for it at once, and cuts the launch into tasks. Equal ops and equal fusions, as the
 * layers of a network have them, are lowered once. One thread's; internal to exec/. */
#ifndef TS_EXEC_CHOOSE_H
#define TS_EXEC_CHOOSE_H

#include "base/map.h"
#include "exec/steps.h"
#include "ir/key.h"
#include "jit/jit.h"
#include "jit/lower.h"

typedef struct ts_chooser {
  const ts_graph *graph;
  ts_arena *arena; /* where what is lowered lives: the executable's */
  const ts_compile_options *options;
  ts_jit_batch batch;             /* kernels that have been asked for; LLVM makes them meanwhile */
  TS_VEC(char *) texts;           /* of those, owned */
  TS_VEC(ts_hash128) families;    /* of each of those; zero: of none */
  TS_VEC(ts_kernel_source) later; /* kernels that others stand in for; their texts are the chooser's */
  ts_map source_ids;              /* text to index in the batch + 1 */
  ts_keys known;                  /* key to ts_work */
  TS_VEC(ts_work *) works;        /* all of those */
  TS_VEC(uint32_t) kernels;       /* of the op that is being lowered, one a launch */
  bool cached;                    /* that one's stores stay in the caches */
} ts_chooser;

void ts_chooser_init(ts_chooser *chooser, const ts_graph *graph, ts_arena *arena, const ts_compile_options *options);
/* TS_UNIMPLEMENTED as ts_lower_op. With `cached` no store goes past the caches. The entries of its kernels are missing,
 * which are indices into the batch. */
ts_status ts_choose(ts_chooser *chooser, ts_op_id op, bool cached, const ts_work **out);
/* Asks for a kernel; equal ones are asked for once. Takes over the text. On success nothing of the source may change
 * until the chooser goes, on failure it is not used. */
ts_status ts_choose_source(ts_chooser *chooser, char *text, const ts_kernel_source *source, uint32_t *out);
void ts_chooser_deinit(ts_chooser *chooser);

#endif

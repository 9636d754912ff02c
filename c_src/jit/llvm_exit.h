/* LLVM and the end of the process. LLVM makes some of its global objects when it first needs them, and each then
 * registers a handler that destroys it at exit. Handlers run last registered first: such an object goes before any
 * handler of ours could wait for a compile thread that is using it. Hence LLVM's late objects are not destroyed at
 * all; the process is about to be gone. */
#ifndef TS_JIT_LLVM_EXIT_H
#define TS_JIT_LLVM_EXIT_H

#include <stdint.h>

/* Has every object that LLVM makes from now on live as long as the process. Before the first thread enters LLVM;
 * not thread-safe. Does nothing where LLVM is not a library of its own. */
void ts_llvm_keep_objects(void);

/* How many objects that was so far. Any thread. */
int64_t ts_llvm_kept_objects(void);

#endif

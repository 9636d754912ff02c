/* Names the code that makes kernels: this build of Tessera and LLVM's version.
 * Computed once per process, thread-safe. */
#ifndef TS_JIT_BUILD_ID_H
#define TS_JIT_BUILD_ID_H

/* Static storage. Another build of the library has another one, so that what an
 * older emitter left on disk is not taken for ours. */
const char *ts_jit_build_id(void);

#endif

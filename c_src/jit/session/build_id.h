/* Identifies the code that generates kernels: this build of Tessera and LLVM's version. Computed once for the process,
 * thread-safe. */
#ifndef TS_JIT_BUILD_ID_H
#define TS_JIT_BUILD_ID_H

/* Static storage. Different builds of the library have different ids, so that objects from an older emitter in the disk
 * cache are not used. */
const char *ts_jit_build_id(void);

#endif

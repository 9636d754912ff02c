/* LLVM and the end of the process. LLVM makes some global objects on first use, and each registers a handler that
 * destroys it at exit. Handlers run in reverse order of registration, so such an object would be destroyed before any
 * handler of ours could wait for a compile thread that uses it. So LLVM's late objects are not destroyed at all; the
 * process ends anyway. */
#ifndef TS_JIT_LLVM_EXIT_H
#define TS_JIT_LLVM_EXIT_H

#include <stdint.h>

/* Makes every object that LLVM creates from now on live as long as the process. Must be called before the first thread
 * enters LLVM; not thread-safe. Where LLVM is linked statically (TS_LLVM_STATIC) all of its objects are kept from the
 * start. */
void ts_llvm_keep_objects(void);

/* The number of kept objects so far. Any thread. */
int64_t ts_llvm_kept_objects(void);

#endif

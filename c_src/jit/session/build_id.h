/* Identifies the code that generates kernels: this build of Tessera and LLVM's version. Computed once for the process,
 * thread-safe. */
#ifndef TS_JIT_BUILD_ID_H
#define TS_JIT_BUILD_ID_H

#include <stddef.h>

enum { TS_BUILD_ID_TEXT = 66 }; /* 32 bytes of a build id as text */

/* Static storage. Different builds of the library have different ids, so that objects from an older emitter in the disk
 * cache are not used. */
const char *ts_jit_build_id(void);
/* Of the library or program that has this address, without LLVM's version. Writes a text with a 0 at the end, and
 * returns its length. `size` is TS_BUILD_ID_TEXT at least. */
size_t ts_jit_build_id_of(const void *address, char *out, size_t size);

#endif

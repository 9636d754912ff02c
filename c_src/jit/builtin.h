/* Kernels that Tessera was built with: objects that builtin_main.c, run by make, has the JIT's own compiler make
 * for every class of machine of the architecture, so that products of matrices never wait for LLVM. An object is
 * found by what the disk cache finds its files by: the class and the text. Constant data, thread-safe. */
#ifndef TS_JIT_BUILTIN_H
#define TS_JIT_BUILTIN_H

#include "jit/jit_internal.h"

typedef struct ts_builtin {
  const char *cpu;  /* of the target */
  const char *text; /* of the kernel */
  const void *data; /* the object, aligned to 8 bytes */
  size_t size;
} ts_builtin;

/* Made by builtin_main.c, for which both are empty. */
extern const ts_builtin ts_builtin_table[];
extern const size_t ts_builtin_count;

/* The object stays the library's. False when there is none for that class of machine and text. */
bool ts_builtin_find(const char *cpu, const char *text, size_t length, ts_object *out);

#endif

/* The disk cache (jit_disk.c): bytes by the text that they were made of. This build and the CPU, which all code depends
 * on, are added to the text. Any thread. */
#ifndef TS_JIT_DISK_H
#define TS_JIT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A relocatable ELF object in memory, or a program of a plugin; owned by its holder (ts_free). */
typedef struct ts_object {
  void *data;
  size_t size;
} ts_object;

/* NULL: the default directory; "": no disk cache */
void ts_disk_configure(const char *dir, int64_t limit_bytes);
/* Whether there is a cache. */
bool ts_disk_is_used(void);
/* False when the cache has no complete and valid object for that text; never an error. */
bool ts_disk_read(const char *text, size_t length, ts_object *out);
/* True when there is a file for that text. */
bool ts_disk_has(const char *text, size_t length);
void ts_disk_write(const char *text, size_t length, const ts_object *object);

#endif

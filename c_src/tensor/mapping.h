/* Memory that other processes on this machine map by a name: POSIX shared memory; and whether memory can be read.
 * Thread-safe. A mapping belongs to the caller that created or opened it, and ends with ts_mapping_release, which also
 * removes its name if it was created here. Remaining names are removed when the process exits; a killed process leaves
 * them behind. */
#ifndef TS_TENSOR_MAPPING_H
#define TS_TENSOR_MAPPING_H

#include "base/status.h"

#include <stdint.h>

#define TS_MAPPING_NAME_BYTES 64

typedef struct ts_mapping {
  void *data;
  int64_t bytes;
  bool created;
  unsigned permissions;             /* of a mapping that this process created */
  struct ts_mapping *next;          /* next mapping with a name that we created */
  struct ts_mapping *older;         /* for the caller: an earlier mapping of the same memory */
  char name[TS_MAPPING_NAME_BYTES]; /* as in shm_open, without the slash */
} ts_mapping;

/* Creates a mapping with a copy of the bytes, at least one, under a new name. `permissions` are file permissions. */
ts_status ts_mapping_create(const void *data, int64_t bytes, unsigned permissions, ts_mapping **out);
/* Maps the first bytes of the memory with this name, writable where that is permitted. */
ts_status ts_mapping_open(const char *name, int64_t bytes, ts_mapping **out);
void ts_mapping_release(void *mapping); /* a ts_mapping; NULL is allowed */

#endif

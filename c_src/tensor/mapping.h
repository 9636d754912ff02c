/* Memory that other processes of this machine map by a name: POSIX shared
 * memory. Thread-safe; a mapping belongs to whoever made or opened it, and goes
 * with ts_mapping_release, with its name if it was made here. Names that are left
 * when the process exits go then; a killed process leaves them behind. */
#ifndef TS_TENSOR_MAPPING_H
#define TS_TENSOR_MAPPING_H

#include "base/status.h"

#include <stdint.h>

#define TS_MAPPING_NAME_BYTES 64

typedef struct ts_mapping {
  void *data;
  int64_t bytes;
  bool created;
  struct ts_mapping *next;          /* of those with names of ours */
  char name[TS_MAPPING_NAME_BYTES]; /* as in shm_open, without the slash */
} ts_mapping;

/* A copy of these bytes, at least one, under a new name. `permissions` are those of a file. */
ts_status ts_mapping_create(const void *data, int64_t bytes, unsigned permissions, ts_mapping **out);
/* The first bytes of what has this name, to be written, too, where that is permitted. */
ts_status ts_mapping_open(const char *name, int64_t bytes, ts_mapping **out);
void ts_mapping_release(void *mapping); /* a ts_mapping; NULL is fine */

/* Whether there is memory at the first and at the last of so many bytes. */
bool ts_mapping_is_there(const void *address, int64_t bytes);

#endif

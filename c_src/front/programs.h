/* The cache of compiled eager ops. The key is everything in a call except the values; eviction is LRU. Each thread also
 * has its recently used programs in a slot, so that callers on several cores share no cache line that one of them
 * writes. Thread-safe. A program lives until it was evicted and its last use has ended. */
#ifndef TS_FRONT_PROGRAMS_H
#define TS_FRONT_PROGRAMS_H

#include "device/device.h"

typedef struct ts_eager_program ts_eager_program;
struct ts_eager_recent;

/* A program in use, to be ended by ts_eager_program_done. Uses do not nest. */
typedef struct ts_eager_use {
  ts_eager_program *program;
  struct ts_eager_recent *recent; /* of the thread, locked; NULL when the use holds a reference of its own */
} ts_eager_use;

/* False on a miss. */
bool ts_eager_program_find(const void *key, size_t size, ts_eager_use *out);
void ts_eager_program_done(ts_eager_use *use);
/* Adds a program; the cache retains it; has no effect if the key is present. */
void ts_eager_program_add(const void *key, size_t size, ts_loaded *executable);
void ts_eager_programs_clear(void);

/* Programs that another cache holds, as the calling thread has used them last: for a lookup without terms. A use is
 * ended as above. */
bool ts_known_program_find(const void *key, size_t size, ts_eager_use *out);
/* The thread's cache retains the program. `form` is the caller's, for its results. */
void ts_known_program_add(const void *key, size_t size, ts_loaded *executable, int form);
int ts_known_program_form(const ts_eager_use *use);
/* Forgets those of all threads. */
void ts_known_programs_clear(void);

ts_loaded *ts_eager_program_executable(const ts_eager_use *use);
/* True when its result has the type of its first argument. */
bool ts_eager_program_is_like(const ts_eager_use *use);

#endif

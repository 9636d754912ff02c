/* The compiled programs of eager ops, by all of a call that is not a value:
 * bounded, the least recently used go first. Every thread keeps those that it
 * used last at hand, so that callers on several cores share no line that one of
 * them writes. Thread-safe. A program lives until it was dropped and nobody
 * uses it. */
#ifndef TS_NIF_PROGRAMS_H
#define TS_NIF_PROGRAMS_H

#include "exec/executable.h"

typedef struct ts_nif_program ts_nif_program;
struct ts_nif_recent;

/* A program in use, to be ended by ts_nif_program_done. Uses do not nest. */
typedef struct ts_nif_use {
  ts_nif_program *program;
  struct ts_nif_recent *recent; /* of the thread, locked; NULL when the use has a reference of its own */
} ts_nif_use;

/* False when there is none. */
bool ts_nif_program_find(const void *key, size_t size, ts_nif_use *out);
void ts_nif_program_done(ts_nif_use *use);
/* Keeps a program, with a reference of its own; a second one for a key is simply not kept. */
void ts_nif_program_add(const void *key, size_t size, ts_executable *executable);
void ts_nif_programs_clear(void);

ts_executable *ts_nif_program_executable(const ts_nif_use *use);
/* Whether it is short, and makes what is like its first argument. */
bool ts_nif_program_is_like(const ts_nif_use *use);

#endif

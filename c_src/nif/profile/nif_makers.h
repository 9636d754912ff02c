/* The processes that have made the tensors in memory. A tensor of 64 KB or more has a mark with its maker and its time.
 * Of smaller tensors, one of each 64 KB that a thread makes has a mark, with the bytes of all of these. So most small
 * tensors cost an addition and a comparison, and the sum of many is right on average. Thread-safe. */
#ifndef TS_NIF_MAKERS_H
#define TS_NIF_MAKERS_H

#include "base/slots.h"

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ts_nif_mark ts_nif_mark;

enum { TS_NIF_MARKED_BYTES = 64 << 10 };

/* The bytes and tensors that this thread has made since its last mark. */
typedef struct ts_nif_unmarked {
  int64_t bytes, tensors;
} ts_nif_unmarked;
extern _Thread_local ts_nif_unmarked ts_nif_unmarked_here TS_STATIC_LOCAL __attribute__((visibility("hidden")));

ts_nif_mark *ts_nif_mark_new(ErlNifEnv *env, int64_t bytes);
/* The mark of a new tensor of the calling process; NULL: it has none. */
static inline ts_nif_mark *ts_nif_mark_tensor(ErlNifEnv *env, int64_t bytes) {
  ts_nif_unmarked *u = &ts_nif_unmarked_here;
  u->bytes += bytes;
  u->tensors++;
  return u->bytes < TS_NIF_MARKED_BYTES ? (ts_nif_mark *)0 : ts_nif_mark_new(env, bytes);
}
/* The tensor's buffer is released, or is another tensor's now. `mark` may be NULL. */
void ts_nif_mark_free(ts_nif_mark *mark);

/* NIF; its Erlang signature is at the body. */
ERL_NIF_TERM ts_nif_makers(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif

/* A flag that is set when the calling process of a long NIF dies. The NIF owns it; it is used on the thread of the NIF
 * and read by the threads that work for it. */
#ifndef TS_NIF_WATCH_H
#define TS_NIF_WATCH_H

#include "nif/nif_util.h"

#include <stdatomic.h>

typedef struct ts_nif_watch {
  _Atomic bool cancel;
  bool watching;
  ErlNifMonitor monitor;
} ts_nif_watch;

bool ts_nif_watch_init(ErlNifEnv *env, ErlNifResourceFlags flags);
ts_status ts_nif_watch_begin(ErlNifEnv *env, ts_nif_watch **out);
void ts_nif_watch_end(ErlNifEnv *env, ts_nif_watch *watch);

#endif

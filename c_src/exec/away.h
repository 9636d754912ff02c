/* Threads for foreign code, of plugins, which may run for any time and wait for anything. A run leaves the scheduler
 * for such a call, and meanwhile holds no thread of the VM or of the pool. There are at most TS_MOST_AWAY threads for
 * foreign code; further calls wait for one in their order, and only for each other. They start when they are needed and
 * stay. Thread-safe. */
#ifndef TS_EXEC_AWAY_H
#define TS_EXEC_AWAY_H

#include <stdbool.h>

enum { TS_MOST_AWAY = 64 };

/* A call; its memory is the caller's, and must live until `run` is called. */
typedef struct ts_away {
  struct ts_away *next;
  void (*run)(void *context);
  void *context;
} ts_away;

/* Has `run` called once on a thread for foreign code. False, without a call, where the system gives no thread. */
bool ts_away_start(ts_away *call);

#endif

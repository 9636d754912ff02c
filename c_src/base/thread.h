/* Threads of ours in a process that is somebody else's. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts a thread that never ends, detached and with every signal blocked: those are the embedding's business. A name
 * is cut after 15 bytes; 0 bytes of stack are the system's default. False when the system refuses. Thread-safe. */
bool ts_thread_start(const char *name, void *(*body)(void *), size_t stack_bytes);

/* For a caller who will keep its CPU busy: where `thread`, of gettid(), waits for that CPU it goes to another one. The
 * system often queues a thread that is woken behind the one that wakes it, because the other CPU is just about to be
 * idle, and leaves it there until the next tick. Changes nothing for good. Thread-safe. */
void ts_thread_move_away(pid_t thread);

/* The same for the first threads of a kind: with more CPUs than that one of them is idle. All zeros is an empty set.
 * Thread-safe. */
#define TS_THREAD_SET_MOST 8
typedef struct ts_thread_set {
  _Atomic int entered;
  _Atomic pid_t threads[TS_THREAD_SET_MOST]; /* 0: none, or none yet */
} ts_thread_set;

/* The calling thread, which must not end. */
void ts_thread_set_enter(ts_thread_set *set);
void ts_thread_set_move_away(ts_thread_set *set);

#endif

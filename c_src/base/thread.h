/* Threads of the library. The process belongs to the embedding, so they leave its signals alone. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts a thread that never ends, detached and with all signals blocked but SIGBUS: they are left to the embedding. A
 * name is cut after 15 bytes; 0 stack bytes: the system's default. False when the system refuses. Thread-safe. */
bool ts_thread_start(const char *name, void *(*body)(void *), size_t stack_bytes);

/* The same for body(context), which may end. */
bool ts_thread_start_with(const char *name, void *(*body)(void *), void *context, size_t stack_bytes);

/* Calls body(context) on a thread with a stack of `stack_bytes`, and waits for it. */
bool ts_thread_run(const char *name, void *(*body)(void *), void *context, size_t stack_bytes);

/* Calls body(context) on the calling thread and on `more` others, and waits for all. Where the system refuses threads
 * there are fewer. */
void ts_threads_run(const char *name, void *(*body)(void *), void *context, int more);

/* For a caller that keeps its CPU busy: if `thread` (of gettid()) waits for that CPU, it is moved to another one. Linux
 * often queues a woken thread behind its waker, because the other CPU is just about to become idle, and leaves it there
 * until the next tick. The thread's affinity is unchanged afterwards. Thread-safe. */
void ts_thread_move_away(pid_t thread);

#endif

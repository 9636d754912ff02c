/* Threads of ours in a process that is somebody else's. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

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

#endif

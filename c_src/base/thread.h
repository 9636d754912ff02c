/* Threads of ours in a process that is somebody else's. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Starts a thread that never ends, detached and with every signal blocked: those are the embedding's business. A name
 * is cut after 15 bytes; 0 bytes of stack are the system's default. False when the system refuses. Thread-safe. */
bool ts_thread_start(const char *name, void *(*body)(void *), size_t stack_bytes);

#endif

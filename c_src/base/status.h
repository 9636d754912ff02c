/* A status is NULL for success, else an owned error with a code and a message. The receiver of a status owns it, and
 * passes it on or releases it with ts_status_free(). It is immutable, so it may move between threads. */
#ifndef TS_BASE_STATUS_H
#define TS_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ts_code {
  TS_OK = 0,
  TS_INVALID_ARGUMENT,    /* the caller's graph, shape, type or value is wrong */
  TS_OUT_OF_RANGE,        /* a size or index exceeds what can be represented */
  TS_RESOURCE_EXHAUSTED,  /* memory, a limit, or another bounded resource is exhausted */
  TS_FAILED_PRECONDITION, /* right call, wrong state: deallocated, donated, ... */
  TS_UNIMPLEMENTED,       /* valid but not supported */
  TS_CANCELLED,           /* the run was stopped on request */
  TS_DATA_LOSS,           /* a file or object is corrupt */
  TS_UNAVAILABLE,         /* another rank of the job is lost, and the job with it; or a device fails */
  TS_ELSEWHERE,           /* the host cannot read a tensor that is on a device */
  TS_INTERNAL,            /* a bug in Tessera or in a library that it calls */
} ts_code;

typedef struct ts_error *ts_status;

#define TS_SUCCESS ((ts_status)0)

/* Makes an error; never returns NULL. When there is no memory for the message
 * it returns a static error of code TS_RESOURCE_EXHAUSTED. */
ts_status ts_error(ts_code code, const char *format, ...) __attribute__((format(printf, 2, 3), returns_nonnull));

/* Prepends "context: " to the message of an error; passes success through. Consumes `status`. */
ts_status ts_error_context(ts_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The static out-of-memory error, for the allocator itself. */
ts_status ts_error_no_memory(void) __attribute__((returns_nonnull));

ts_code ts_status_code(ts_status status);        /* TS_OK for NULL */
const char *ts_status_message(ts_status status); /* "" for NULL; lives as long as the status */
const char *ts_code_name(ts_code code);          /* "invalid_argument", ... */
void ts_status_free(ts_status status);           /* NULL is allowed */
bool ts_status_consume_ok(ts_status status);     /* frees it; true for success */
/* Keeps the first error of several threads in *kept, whose owner frees it. Consumes `status`. */
void ts_status_keep_first(_Atomic(ts_status) *kept, ts_status status);

/* The analyzer ignores returns_nonnull, and would follow paths where an error is a success. */
#ifdef __clang_analyzer__
static inline ts_status ts_error_assume(ts_status status) {
  if (!status) __builtin_unreachable();
  return status;
}
#define ts_error(...) ts_error_assume((ts_error)(__VA_ARGS__))
#define ts_error_no_memory() ts_error_assume((ts_error_no_memory)())
#endif

/* Returns early with the error of `expression`, if any. */
#define TS_TRY(expression)                     \
  do {                                         \
    ts_status ts_try_status_ = (expression);   \
    if (ts_try_status_) return ts_try_status_; \
  } while (0)

/* The same for functions that must clean up: sets `status` and jumps. */
#define TS_GOTO(label, status, expression)     \
  do {                                         \
    if (((status) = (expression))) goto label; \
  } while (0)

#endif

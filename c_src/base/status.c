#include "base/status.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct ts_error {
  ts_code code;
  bool is_static;
  char message[];
};

/* A struct of its own, since a flexible array member cannot be initialised portably. */
static struct {
  ts_code code;
  bool is_static;
  char message[16];
} no_memory = {TS_RESOURCE_EXHAUSTED, true, "out of memory"};

_Static_assert(offsetof(struct ts_error, message) == sizeof(ts_code) + sizeof(bool),
               "the static error must have the layout of ts_error");

ts_status(ts_error_no_memory)(void) { return (ts_status)&no_memory; }

/* An error with room for `length` characters, or the static one. */
static ts_status error_new(ts_code code, size_t length) {
  ts_status status = ts_malloc_raw(sizeof(*status) + length + 1);
  if (!status) return ts_error_no_memory();
  status->code = code;
  status->is_static = false;
  return status;
}

ts_status(ts_error)(ts_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) length = 0;

  ts_status status = error_new(code, (size_t)length);
  if (status->is_static) return status;
  status->message[0] = '\0';
  va_start(args, format);
  vsnprintf(status->message, (size_t)length + 1, format, args);
  va_end(args);
  return status;
}

ts_status ts_error_context(ts_status status, const char *format, ...) {
  if (!status || status->is_static) return status;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return status;

  size_t old_length = strlen(status->message);
  ts_status longer = error_new(status->code, (size_t)length + 2 + old_length);
  if (longer->is_static) return status; /* the original error says more than "out of memory" */
  va_start(args, format);
  vsnprintf(longer->message, (size_t)length + 1, format, args);
  va_end(args);
  memcpy(longer->message + length, ": ", 2);
  memcpy(longer->message + length + 2, status->message, old_length + 1);
  ts_status_free(status);
  return longer;
}

ts_code ts_status_code(ts_status status) { return status ? status->code : TS_OK; }

const char *ts_status_message(ts_status status) { return status ? status->message : ""; }

const char *ts_code_name(ts_code code) {
  switch (code) {
  case TS_OK: return "ok";
  case TS_INVALID_ARGUMENT: return "invalid_argument";
  case TS_OUT_OF_RANGE: return "out_of_range";
  case TS_RESOURCE_EXHAUSTED: return "resource_exhausted";
  case TS_FAILED_PRECONDITION: return "failed_precondition";
  case TS_UNIMPLEMENTED: return "unimplemented";
  case TS_CANCELLED: return "cancelled";
  case TS_DATA_LOSS: return "data_loss";
  case TS_UNAVAILABLE: return "unavailable";
  case TS_ELSEWHERE: return "elsewhere";
  case TS_INTERNAL: return "internal";
  }
  return "unknown";
}

void ts_status_free(ts_status status) {
  if (status && !status->is_static) ts_free(status);
}

bool ts_status_consume_ok(ts_status status) {
  bool ok = !status;
  ts_status_free(status);
  return ok;
}

void ts_status_keep_first(_Atomic(ts_status) *kept, ts_status status) {
  ts_status none = TS_SUCCESS;
  if (status && !atomic_compare_exchange_strong(kept, &none, status)) ts_status_free(status);
}

#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(ts_log_sink) current_sink;

void ts_log_set_sink(ts_log_sink sink) { atomic_store(&current_sink, sink); }

void ts_log_warning(const char *format, ...) {
  /* Bounded and on the stack: a warning must not fail for want of memory. */
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  ts_log_sink sink = atomic_load(&current_sink);
  if (sink) {
    sink(message);
  } else {
    fprintf(stderr, "tessera: warning: %s\n", message);
  }
}

bool ts_dump_enabled(const char *what) {
  const char *list = getenv("TESSERA_DUMP");
  size_t length = strlen(what);
  while (list && *list) {
    size_t item = strcspn(list, ",");
    if (item == length && memcmp(list, what, length) == 0) return true;
    list += item;
    list += *list == ',';
  }
  return false;
}

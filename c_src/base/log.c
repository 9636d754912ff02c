#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(ts_log_sink) current_sink;

void ts_log_set_sink(ts_log_sink sink) { atomic_store(&current_sink, sink); }

void ts_log_warning(const char *format, ...) {
  /* On the stack and of fixed size, so that a warning does not need memory. */
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

/* Read once: every compilation asks, and searching a long environment is slow. */
static char dumped[256];
static pthread_once_t dumped_is_read = PTHREAD_ONCE_INIT;

static void read_dumped(void) {
  const char *list = getenv("TESSERA_DUMP");
  if (list) snprintf(dumped, sizeof(dumped), "%s", list);
}

bool ts_dump_enabled(const char *what) {
  (void)pthread_once(&dumped_is_read, read_dumped);
  if (!*dumped) return false;
  const char *list = dumped;
  size_t length = strlen(what);
  while (*list) {
    size_t item = strcspn(list, ",");
    if (item == length && memcmp(list, what, length) == 0) return true;
    list += item;
    list += *list == ',';
  }
  return false;
}

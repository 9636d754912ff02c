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

static const char dump_names[] = "graph,passes,kernels,llvm,asm,plan";

/* Whether a list, with commas between its items, has that item. */
static bool has_item(const char *list, const char *item, size_t length) {
  while (*list) {
    size_t next = strcspn(list, ",");
    if (next == length && memcmp(list, item, length) == 0) return true;
    list += next;
    list += *list == ',';
  }
  return false;
}

ts_status ts_dump_check(const char *setting, const char *list) {
  for (const char *item = list; *list;) {
    size_t length = strcspn(item, ",");
    if (!has_item(dump_names, item, length))
      return ts_error(TS_INVALID_ARGUMENT, "%s: expected a list of %s, got \"%s\"", setting, dump_names, list);
    if (!item[length]) break;
    item += length + 1;
  }
  return TS_SUCCESS;
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
  return has_item(dumped, what, strlen(what));
}

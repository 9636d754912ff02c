/* perf's map file and gdb's JIT interface (gdb manual, "JIT Compilation
 * Interface": the two names below are fixed by it). */
#include "jit/session/jit_internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct ts_gdb_entry {
  struct ts_gdb_entry *next, *previous;
  const char *image;
  uint64_t size;
} ts_gdb_entry;

struct gdb_descriptor {
  uint32_t version;
  uint32_t action; /* 0 none, 1 register, 2 unregister */
  ts_gdb_entry *relevant, *first;
};

extern struct gdb_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

struct gdb_descriptor __jit_debug_descriptor = {.version = 1};

/* gdb sets a breakpoint here; the barrier keeps the call. */
__attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool ts_debug_wants_gdb(void) { return getenv("TESSERA_GDB") != NULL; }

static void tell(uint32_t action, ts_gdb_entry *entry) {
  __jit_debug_descriptor.action = action;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_register_code();
}

ts_gdb_entry *ts_debug_register(void *image, size_t size) {
  ts_gdb_entry *entry;
  if (!ts_status_consume_ok(TS_NEW(&entry))) {
    ts_free(image);
    return NULL;
  }
  entry->image = image;
  entry->size = size;
  pthread_mutex_lock(&lock);
  entry->next = __jit_debug_descriptor.first;
  if (entry->next) entry->next->previous = entry;
  __jit_debug_descriptor.first = entry;
  tell(1, entry);
  pthread_mutex_unlock(&lock);
  return entry;
}

void ts_debug_unregister(ts_gdb_entry *entry) {
  pthread_mutex_lock(&lock);
  if (entry->next) entry->next->previous = entry->previous;
  if (entry->previous) {
    entry->previous->next = entry->next;
  } else {
    __jit_debug_descriptor.first = entry->next;
  }
  tell(2, entry);
  pthread_mutex_unlock(&lock);
  ts_free((void *)(uintptr_t)entry->image);
  ts_free(entry);
}

/* Every user may write to the folder: files of other users and links are left alone. */
static FILE *open_map(const char *path) {
  struct stat s;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (file < 0) return NULL;
  bool is_ours = fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1;
  FILE *map = is_ours ? fdopen(file, "a") : NULL;
  if (!map) close(file);
  return map;
}

void ts_debug_note_perf(const char *name, const void *start, size_t size) {
  if (!getenv("TESSERA_PERF")) return;
  char path[64];
  snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
  pthread_mutex_lock(&lock);
  FILE *file = open_map(path);
  if (file) {
    fprintf(file, "%lx %zx %s\n", (unsigned long)(uintptr_t)start, size, name);
    fclose(file);
  }
  pthread_mutex_unlock(&lock);
}

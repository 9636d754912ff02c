#include "tensor/mapping.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many names to try: one may be left over from a killed process with our process id. */
#define MOST_TRIES 1000

/* ---- names of ours, for the process's end */

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  ts_mapping *first;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void unlink_name(const ts_mapping *mapping) {
  char path[TS_MAPPING_NAME_BYTES + 1];
  snprintf(path, sizeof(path), "/%s", mapping->name);
  shm_unlink(path);
}

/* Removes the names only: a thread may still use the memory. */
static void unlink_all(void) {
  pthread_mutex_lock(&names.lock);
  for (const ts_mapping *mapping = names.first; mapping; mapping = mapping->next) unlink_name(mapping);
  names.first = NULL;
  pthread_mutex_unlock(&names.lock);
}

static void unlink_at_exit(void) { ts_system_at_exit(unlink_all); }

static void add_name(ts_mapping *mapping) {
  pthread_once(&names.once, unlink_at_exit);
  pthread_mutex_lock(&names.lock);
  mapping->next = names.first;
  names.first = mapping;
  pthread_mutex_unlock(&names.lock);
}

static void remove_name(ts_mapping *mapping) {
  pthread_mutex_lock(&names.lock);
  ts_mapping **link = &names.first;
  while (*link && *link != mapping) link = &(*link)->next;
  if (*link) {
    *link = mapping->next;
    unlink_name(mapping);
  }
  pthread_mutex_unlock(&names.lock);
}

/* ---- files */

static bool is_shortage(int error) {
  return error == ENOMEM || error == ENOSPC || error == EFBIG || error == EMFILE || error == ENFILE;
}

static ts_status failed(const char *what, const char *name, int error) {
  return ts_error(is_shortage(error) ? TS_RESOURCE_EXHAUSTED : TS_INVALID_ARGUMENT, "cannot %s shared memory %s: %s",
                  what, name, strerror(error));
}

/* Creates a file with shm_open; `out_name` begins with the slash. */
static ts_status new_file(char *out_name, int *out_file) {
  static _Atomic unsigned long next;
  for (int i = 0; i < MOST_TRIES; i++) {
    snprintf(out_name, TS_MAPPING_NAME_BYTES + 1, "/tessera-ipc-%ld-%lu", (long)getpid(), atomic_fetch_add(&next, 1));
    *out_file = shm_open(out_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*out_file >= 0) return TS_SUCCESS;
    if (errno != EEXIST) break;
  }
  return failed("create", out_name + 1, errno);
}

static ts_status map_file(const char *name, int file, int64_t bytes, int protection, ts_mapping **out) {
  void *data = ts_file_map(file, (size_t)bytes, protection);
  if (!data) return failed("map", name, errno);
  ts_status status = TS_NEW(out);
  if (status) {
    ts_file_unmap(data, (size_t)bytes);
    return status;
  }
  (*out)->data = data;
  (*out)->bytes = bytes;
  snprintf((*out)->name, sizeof((*out)->name), "%s", name);
  return TS_SUCCESS;
}

/* Reserves the space first: without it, a write to a page could end in SIGBUS later. */
static ts_status fill_file(const char *name, int file, const void *data, int64_t bytes, unsigned permissions,
                           ts_mapping **out) {
  int error = posix_fallocate(file, 0, bytes);
  if (error) return failed("fill", name, error);
  if (fchmod(file, (mode_t)permissions) != 0) return failed("permit", name, errno);
  TS_TRY(map_file(name, file, bytes, PROT_READ | PROT_WRITE, out));
  memcpy((*out)->data, data, (size_t)bytes);
  (*out)->created = true;
  (*out)->permissions = permissions;
  add_name(*out);
  return TS_SUCCESS;
}

ts_status ts_mapping_create(const void *data, int64_t bytes, unsigned permissions, ts_mapping **out) {
  char name[TS_MAPPING_NAME_BYTES + 1];
  int file;
  *out = NULL;
  if (bytes < 1) return ts_error(TS_INVALID_ARGUMENT, "cannot share %lld bytes", (long long)bytes);
  TS_TRY(new_file(name, &file));
  ts_status status = fill_file(name + 1, file, data, bytes, permissions, out);
  close(file);
  if (status) shm_unlink(name);
  return status;
}

static ts_status open_file(const char *name, int *out_file, int *out_protection) {
  char path[TS_MAPPING_NAME_BYTES + 1];
  if (!*name || strchr(name, '/') || strlen(name) >= TS_MAPPING_NAME_BYTES)
    return ts_error(TS_INVALID_ARGUMENT, "no name of shared memory: \"%.*s\"", TS_MAPPING_NAME_BYTES, name);
  snprintf(path, sizeof(path), "/%s", name);
  *out_protection = PROT_READ | PROT_WRITE;
  *out_file = shm_open(path, O_RDWR | O_CLOEXEC, 0);
  if (*out_file < 0 && errno == EACCES) {
    *out_protection = PROT_READ;
    *out_file = shm_open(path, O_RDONLY | O_CLOEXEC, 0);
  }
  return *out_file < 0 ? failed("open", name, errno) : TS_SUCCESS;
}

/* A file without blocks gets them when it is read, and the system may have no room for them. */
static ts_status map_checked(const char *name, int file, int64_t bytes, int protection, ts_mapping **out) {
  TS_TRY(map_file(name, file, bytes, protection, out));
  ts_status status = ts_system_check_readable((*out)->data, bytes);
  if (!status) return TS_SUCCESS;
  ts_mapping_release(*out);
  *out = NULL;
  return ts_error_context(status, "shared memory %s", name);
}

ts_status ts_mapping_open(const char *name, int64_t bytes, ts_mapping **out) {
  int file, protection;
  struct stat file_stat;
  *out = NULL;
  TS_TRY(open_file(name, &file, &protection));
  ts_status status = TS_SUCCESS;
  if (fstat(file, &file_stat) != 0)
    status = failed("open", name, errno);
  else if (!S_ISREG(file_stat.st_mode))
    status = ts_error(TS_INVALID_ARGUMENT, "%s is no shared memory", name);
  else if (bytes < 1 || file_stat.st_size < bytes)
    status = ts_error(TS_INVALID_ARGUMENT, "shared memory %s has %lld bytes, expected at least %lld", name,
                      (long long)file_stat.st_size, (long long)bytes);
  else
    status = map_checked(name, file, bytes, protection, out);
  close(file);
  return status;
}

void ts_mapping_release(void *mapping) {
  ts_mapping *m = mapping;
  if (!m) return;
  if (m->created) remove_name(m);
  ts_file_unmap(m->data, (size_t)m->bytes);
  ts_free(m);
}

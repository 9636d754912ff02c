/* The disk cache: one file for each kernel, named by the hash of its key, which holds everything that the code depends
 * on: the text, the CPU, this build of Tessera, LLVM's version. Files hold machine code, so no other user may have
 * access to the directory. Any number of processes may share it: files appear complete, by renaming, and are checked
 * when read, so that any fault (no space, no permission, a torn or foreign file) costs only a compile. */
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "jit/session/build_id.h"
#include "jit/session/jit_internal.h"
#include "jit/session/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_LIMIT_BYTES ((int64_t)256 << 20)
#define MAX_FILE_BYTES ((int64_t)64 << 20)
#define PATH_BYTES 4096
#define NAME_BYTES 64
#define SUFFIX ".kernel"
#define TEMPORARY_PREFIX "tmp-"
/* The total size is checked when a process has written the limit divided by SWEEPS_PER_LIMIT. */
#define SWEEPS_PER_LIMIT 32
/* Bytes that an empty file takes on the disk, about. */
#define FILE_OVERHEAD_BYTES 512
#define STALE_SECONDS 3600

typedef struct file_header {
  char magic[8];
  uint64_t checksum; /* of all bytes that follow */
  uint64_t key_size;
  uint64_t object_size;
} file_header;

static const char magic[8] = {'T', 'S', 'K', 'E', 'R', 'N', '0', '1'};

/* Written under the lock, read under it or shared. */
static struct {
  pthread_rwlock_t lock;
  bool opened;       /* an attempt to open it was made */
  unsigned openings; /* number of attempts so far */
  int directory;     /* -1: no cache */
  char path[PATH_BYTES];
  bool path_given;
  int64_t limit;
} disk = {.lock = PTHREAD_RWLOCK_INITIALIZER, .directory = -1, .limit = DEFAULT_LIMIT_BYTES};

/* ---- the directory ---- */

/* False when there is no place for the directory. */
static bool default_path(char *out) {
  const char *dir = getenv("TESSERA_CACHE_DIR");
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (dir) {
    n = strcmp(dir, "none") == 0 ? 0 : snprintf(out, PATH_BYTES, "%s", dir);
  } else if (xdg && xdg[0] == '/') {
    n = snprintf(out, PATH_BYTES, "%s/tessera", xdg);
  } else if (home && home[0] == '/') {
    n = snprintf(out, PATH_BYTES, "%s/.cache/tessera", home);
  }
  return n > 0 && n < PATH_BYTES;
}

/* Returns the first error other than EEXIST: where the directory cannot be opened, this is the cause. */
static int make_directories(const char *path) {
  char part[PATH_BYTES];
  snprintf(part, sizeof(part), "%s", path);
  int first = 0;
  for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash) *slash = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST && !first) first = errno;
    if (!slash) return first;
    *slash = '/';
  }
}

static const char *objection(int directory) {
  struct stat s;
  if (fstat(directory, &s) != 0) return strerror(errno);
  if (s.st_uid != geteuid()) return "it belongs to another user";
  if (s.st_mode & 077) return "others may enter it (its mode must be 0700)";
  return NULL;
}

static const char *cannot_open(int unmade, int error) {
  if (error == ENOTDIR || error == ELOOP) return "not a directory";
  return strerror(error == ENOENT && unmade ? unmade : error);
}

/* Checks the open descriptor, not the path, so that the checked directory is the one in use. Tries again if another
 * process removes the directory in between. */
static int open_directory(const char *path) {
  int unmade, directory, tries = 3;
  do {
    unmade = make_directories(path);
    directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  } while (directory < 0 && errno == ENOENT && --tries > 0);
  const char *reason = directory < 0 ? cannot_open(unmade, errno) : objection(directory);
  if (!reason) return directory;
  ts_log_warning("no disk cache for kernels in %s: %s", path, reason);
  if (directory >= 0) close(directory);
  return -1;
}

static void open_once(void) {
  pthread_rwlock_wrlock(&disk.lock);
  if (!disk.opened) {
    disk.opened = true;
    disk.openings++;
    bool wanted = disk.path_given ? disk.path[0] != 0 : default_path(disk.path);
    disk.directory = wanted ? open_directory(disk.path) : -1;
  }
  pthread_rwlock_unlock(&disk.lock);
}

/* Takes the shared lock if there is a cache; opens it on first use. */
static bool enter(void) {
  pthread_rwlock_rdlock(&disk.lock);
  if (!disk.opened) {
    pthread_rwlock_unlock(&disk.lock);
    open_once();
    pthread_rwlock_rdlock(&disk.lock);
  }
  if (disk.directory >= 0) return true;
  pthread_rwlock_unlock(&disk.lock);
  return false;
}

static void leave(void) { pthread_rwlock_unlock(&disk.lock); }

/* Closes the directory; the next enter() opens it again. The lock is held exclusively. */
static void let_go(void) {
  if (disk.directory >= 0) close(disk.directory);
  disk.directory = -1;
  disk.opened = false;
}

/* Closes the directory if it is still from the given opening. */
static void let_go_of(unsigned opening) {
  pthread_rwlock_wrlock(&disk.lock);
  if (disk.openings == opening) let_go();
  pthread_rwlock_unlock(&disk.lock);
}

void ts_disk_configure(const char *dir, int64_t limit_bytes) {
  pthread_rwlock_wrlock(&disk.lock);
  let_go();
  disk.path_given = dir != NULL;
  int n = snprintf(disk.path, sizeof(disk.path), "%s", dir ? dir : "");
  if (n >= (int)sizeof(disk.path)) disk.path[0] = 0;
  disk.limit = limit_bytes > 0 ? limit_bytes : DEFAULT_LIMIT_BYTES;
  pthread_rwlock_unlock(&disk.lock);
}

bool ts_disk_is_used(void) {
  bool used = enter();
  if (used) leave();
  return used;
}

/* ---- keys ---- */

typedef struct disk_key {
  char *data;
  size_t size;
  char name[NAME_BYTES];
} disk_key;

/* False when there is no memory. */
static bool make_key(const char *text, size_t length, disk_key *out) {
  const ts_target *target = ts_target_host();
  ts_text key = {0};
  ts_text_format(&key, "tessera %s\n%s %s %s\n", ts_jit_build_id(), target->triple, target->cpu, target->features);
  ts_text_append_n(&key, text, length);
  out->size = key.length;
  if (!ts_status_consume_ok(ts_text_finish(&key, &out->data))) return false;
  ts_hash128 hash = ts_hash(out->data, out->size);
  snprintf(out->name, sizeof(out->name), "%016llx%016llx" SUFFIX, (unsigned long long)hash.hi,
           (unsigned long long)hash.lo);
  return true;
}

/* ---- reading ---- */

static bool is_whole(const uint8_t *data, size_t size, const disk_key *key) {
  file_header header;
  memcpy(&header, data, sizeof(header));
  size_t expected;
  if (memcmp(header.magic, magic, sizeof(magic)) != 0 || header.key_size != key->size) return false;
  if (!ts_add_size(sizeof(header) + key->size, header.object_size, &expected) || expected != size) return false;
  if (memcmp(data + sizeof(header), key->data, key->size) != 0) return false;
  return ts_hash64(data + 16, size - 16) == header.checksum;
}

/* Updates the modification time of a file in use, at most once an hour: this makes eviction LRU. */
static void touch(int file, const struct stat *s) {
  if (time(NULL) - s->st_mtime > STALE_SECONDS) futimens(file, NULL);
}

/* Moves the object to the front of the buffer that holds the file. */
static bool read_file(int file, const disk_key *key, ts_object *out) {
  struct stat s;
  if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid()) return false;
  size_t front = sizeof(file_header) + key->size;
  if (s.st_size < (int64_t)front || s.st_size > MAX_FILE_BYTES) return false;
  size_t size = (size_t)s.st_size;
  void *data;
  if (!ts_status_consume_ok(ts_alloc(size, &data))) return false;
  if (!ts_file_read(file, data, size) || !is_whole(data, size, key)) {
    ts_free(data);
    return false;
  }
  touch(file, &s);
  *out = (ts_object){.data = memmove(data, (char *)data + front, size - front), .size = size - front};
  return true;
}

bool ts_disk_read(const char *text, size_t length, ts_object *out) {
  disk_key key;
  if (!enter()) return false;
  bool found = false;
  if (make_key(text, length, &key)) {
    int file = openat(disk.directory, key.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0) {
      found = read_file(file, &key, out);
      close(file);
    }
    ts_free(key.data);
  }
  leave();
  return found;
}

bool ts_disk_has(const char *text, size_t length) {
  disk_key key;
  if (!enter()) return false;
  bool found = false;
  if (make_key(text, length, &key)) {
    found = faccessat(disk.directory, key.name, R_OK, 0) == 0;
    ts_free(key.data);
  }
  leave();
  return found;
}

/* ---- the bound ---- */

typedef struct cached_file {
  char name[NAME_BYTES];
  int64_t size;
  int64_t modified;
} cached_file;

typedef TS_VEC(cached_file) cached_files;

static int by_age(const void *a, const void *b) {
  int64_t x = ((const cached_file *)a)->modified, y = ((const cached_file *)b)->modified;
  return x < y ? -1 : x > y;
}

static bool ends_with(const char *name, const char *suffix) {
  size_t n = strlen(name), m = strlen(suffix);
  return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Also removes temporary files of processes that died. */
static ts_status list_files(DIR *dir, cached_files *out, int64_t *out_total) {
  int directory = dirfd(dir);
  int64_t now = (int64_t)time(NULL);
  for (struct dirent *entry; (entry = readdir(dir));) {
    bool temporary = strncmp(entry->d_name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) == 0;
    struct stat s;
    if (strlen(entry->d_name) >= NAME_BYTES || (!temporary && !ends_with(entry->d_name, SUFFIX))) continue;
    if (fstatat(directory, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    if (temporary) {
      if (now - s.st_mtime > STALE_SECONDS) unlinkat(directory, entry->d_name, 0);
      continue;
    }
    cached_file file = {.size = s.st_size, .modified = s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec};
    snprintf(file.name, sizeof(file.name), "%.63s", entry->d_name);
    TS_TRY(TS_VEC_PUSH(out, file));
    *out_total += s.st_size;
  }
  return TS_SUCCESS;
}

/* Evicts the oldest files until an eighth of the limit is free. */
static void sweep(void) {
  int copy = openat(disk.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
  if (!dir) {
    if (copy >= 0) close(copy);
    return;
  }
  cached_files files = {0};
  int64_t total = 0;
  ts_status_free(list_files(dir, &files, &total));
  if (files.count > 0 && total > disk.limit) {
    qsort(files.data, files.count, sizeof(*files.data), by_age);
    for (size_t i = 0; i < files.count && total > disk.limit - disk.limit / 8; i++) {
      if (unlinkat(disk.directory, files.data[i].name, 0) == 0) total -= files.data[i].size;
    }
  }
  TS_VEC_FREE(&files);
  closedir(dir);
}

/* ---- writing ---- */

/* False when the directory was removed or is being emptied, so that a file cannot be created or is lost already. */
static bool write_file(const disk_key *key, const void *data, size_t size) {
  char temporary[TS_FILE_NAME_BYTES];
  int file = ts_file_create(disk.directory, TEMPORARY_PREFIX, temporary);
  if (file < 0) return errno != ENOENT && errno != ESTALE;
  bool whole = ts_file_write(file, data, size);
  whole = close(file) == 0 && whole;
  if (whole && renameat(disk.directory, temporary, disk.directory, key->name) == 0) return true;
  bool there = !whole || (errno != ENOENT && errno != ESTALE);
  unlinkat(disk.directory, temporary, 0);
  return there;
}

static size_t file_size(const disk_key *key, const ts_object *object) {
  return sizeof(file_header) + key->size + object->size;
}

/* Listing the directory takes as long as many writes, so it is not done for each. */
static bool is_time_to_sweep(size_t size) {
  static _Atomic int64_t writes, unchecked;
  const int64_t added = (int64_t)size + FILE_OVERHEAD_BYTES, part = disk.limit / SWEEPS_PER_LIMIT;
  /* Many short processes, each of which writes less than a part, check now and then, too. */
  if (atomic_fetch_add(&writes, 1) == 0 && getpid() % SWEEPS_PER_LIMIT == 0) return true;
  if (atomic_fetch_add(&unchecked, added) + added < part) return false;
  atomic_store(&unchecked, 0);
  return true;
}

static bool write_object(const disk_key *key, const ts_object *object) {
  size_t size = file_size(key, object);
  uint8_t *data;
  if (!ts_status_consume_ok(ts_alloc(size, (void **)&data))) return true;
  file_header header = {.key_size = key->size, .object_size = object->size};
  memcpy(header.magic, magic, sizeof(magic));
  memcpy(data, &header, sizeof(header));
  memcpy(data + sizeof(header), key->data, key->size);
  memcpy(data + sizeof(header) + key->size, object->data, object->size);
  header.checksum = ts_hash64(data + 16, size - 16);
  memcpy(data, &header, sizeof(header));
  bool there = write_file(key, data, size);
  ts_free(data);
  return there;
}

/* False when the directory is gone; the next enter() creates it. */
static bool try_write(const disk_key *key, const ts_object *object) {
  if (!enter()) return true;
  unsigned opening = disk.openings;
  bool there = write_object(key, object);
  if (there && is_time_to_sweep(file_size(key, object))) sweep();
  leave();
  if (!there) let_go_of(opening);
  return there;
}

void ts_disk_write(const char *text, size_t length, const ts_object *object) {
  disk_key key;
  if (!make_key(text, length, &key)) return;
  if (!try_write(&key, object)) (void)try_write(&key, object);
  ts_free(key.data);
}

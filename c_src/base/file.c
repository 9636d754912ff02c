#include "base/file.h"

#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_PREFIX ".tessera-"
/* How many names to try. One of 2^128 is taken only where the system has no random numbers. */
#define MOST_TRIES 100
/* Temporary files of this age belong to no one who still writes. */
#define STALE_SECONDS 3600

/* ---- reading and writing */

const char *ts_file_objection(int file) {
  struct stat s;
  if (fstat(file, &s) != 0) return strerror(errno);
  if (s.st_uid != geteuid() && s.st_uid != 0) return "it belongs to another user";
  if (s.st_mode & (S_IWGRP | S_IWOTH)) return "other users may write to it";
  return NULL;
}

bool ts_file_read(int file, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = read(file, (char *)to + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

bool ts_file_write(int file, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = write(file, (const char *)from + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* The whole pages of `size` bytes, and one at each end. */
static size_t room_of(size_t size, size_t page) { return (size + page - 1) / page * page + 2 * page; }

void *ts_file_map(int file, size_t size, int protection) {
  const size_t page = page_size(), room = room_of(size, page);
  char *base = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NULL;
  if (mmap(base + page, size, protection, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED) return base + page;
  int error = errno;
  munmap(base, room);
  errno = error;
  return NULL;
}

void ts_file_unmap(const void *data, size_t size) {
  const size_t page = page_size();
  munmap((char *)(uintptr_t)data - page, room_of(size, page));
}

static ts_status refused(const char *reason) { return ts_error(TS_FAILED_PRECONDITION, "%s", reason); }

static ts_status check_open(int file, int64_t *out_bytes) {
  struct stat s;
  if (fstat(file, &s) != 0) return refused(strerror(errno));
  if (!S_ISREG(s.st_mode)) return refused("it is no regular file");
  const char *objection = ts_file_objection(file);
  if (objection) return refused(objection);
  *out_bytes = s.st_size;
  return TS_SUCCESS;
}

ts_status ts_file_open(const char *path, int *out, int64_t *out_bytes) {
  *out = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (*out < 0) {
    if (errno == ENOENT) return TS_SUCCESS;
    return refused(errno == ELOOP ? "it is a symbolic link" : strerror(errno));
  }
  ts_status status = check_open(*out, out_bytes);
  if (!status) return TS_SUCCESS;
  close(*out);
  *out = -1;
  return status;
}

/* ---- temporary files */

static void random_name(const char *prefix, char out[TS_FILE_NAME_BYTES]) {
  uint64_t random[2];
  if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), (uintptr_t)random};
    ts_hash128 hash = ts_hash(seed, sizeof seed);
    random[0] = hash.hi;
    random[1] = hash.lo;
  }
  snprintf(out, TS_FILE_NAME_BYTES, "%.31s%016llx%016llx", prefix, (unsigned long long)random[0],
           (unsigned long long)random[1]);
}

int ts_file_create(int directory, const char *prefix, char out_name[TS_FILE_NAME_BYTES]) {
  int file = -1;
  for (int tries = 0; file < 0 && tries < MOST_TRIES; tries++) {
    random_name(prefix, out_name);
    file = openat(directory, out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file >= 0) (void)fchmod(file, 0600); /* for any umask */
  return file;
}

static bool is_stale(int directory, const char *name, time_t now) {
  struct stat s;
  if (strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) != 0) return false;
  return fstatat(directory, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
         now - s.st_mtime > STALE_SECONDS;
}

/* Removes temporary files of processes that were killed. */
static void sweep(int directory) {
  int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
  if (!dir) {
    if (copy >= 0) close(copy);
    return;
  }
  time_t now = time(NULL);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (is_stale(directory, entry->d_name, now)) unlinkat(directory, entry->d_name, 0);
  closedir(dir);
}

/* ---- sealed files */

typedef struct seal {
  char magic[8]; /* with the version of this header */
  ts_file_layout layout;
  uint64_t size;
  uint64_t checksum[2]; /* of this header with the checksum of the contents in this place */
} seal;

static const char magic[8] = {'T', 'E', 'S', 'S', 'E', 'R', 'A', 2};

_Static_assert(sizeof(seal) <= sizeof((ts_sealed){0}.header), "the header has room");

static seal make_seal(const ts_file_layout *layout, const void *contents, size_t size) {
  seal made = {.layout = *layout, .size = size};
  memcpy(made.magic, magic, sizeof magic);
  ts_hash128 hash = ts_hash(contents, size);
  made.checksum[0] = hash.hi;
  made.checksum[1] = hash.lo;
  hash = ts_hash(&made, sizeof made);
  made.checksum[0] = hash.hi;
  made.checksum[1] = hash.lo;
  return made;
}

static ts_status check_header(const seal *header, const ts_file_layout *layout, int64_t bytes, int64_t limit) {
  if (memcmp(header->magic, magic, sizeof magic - 1) != 0) return refused("it is none");
  if (header->magic[7] != magic[7] || memcmp(&header->layout, layout, sizeof *layout) != 0)
    return refused("it is for another Tessera version");
  if (header->size != (uint64_t)bytes - sizeof *header) return refused("it is damaged");
  if (header->size <= (uint64_t)limit) return TS_SUCCESS;
  return ts_error(TS_RESOURCE_EXHAUSTED, "it has %llu bytes, at most %lld are read", (unsigned long long)header->size,
                  (long long)limit);
}

static ts_status open_sealed(const ts_file_layout *layout, int64_t bytes, int64_t limit, ts_sealed *out) {
  seal header;
  if (bytes < (int64_t)sizeof header) return refused("it is none");
  if (!ts_file_read(out->file, &header, sizeof header)) return refused("it cannot be read");
  TS_TRY(check_header(&header, layout, bytes, limit));
  memcpy(out->header, &header, sizeof header);
  out->size = (size_t)header.size;
  return TS_SUCCESS;
}

ts_status ts_sealed_open(const char *path, const ts_file_layout *layout, int64_t limit, ts_sealed *out) {
  int64_t bytes = 0;
  *out = (ts_sealed){.file = -1};
  TS_TRY(ts_file_open(path, &out->file, &bytes));
  if (out->file < 0) return TS_SUCCESS;
  ts_status status = open_sealed(layout, bytes, limit, out);
  if (status) ts_sealed_close(out);
  return status;
}

ts_status ts_sealed_read(ts_sealed *sealed, void *to) {
  seal header;
  memcpy(&header, sealed->header, sizeof header);
  bool whole = ts_file_read(sealed->file, to, sealed->size);
  ts_sealed_close(sealed);
  if (!whole) return refused("it cannot be read");
  seal expected = make_seal(&header.layout, to, sealed->size);
  return memcmp(&expected, &header, sizeof header) == 0 ? TS_SUCCESS : refused("it is damaged");
}

void ts_sealed_close(ts_sealed *sealed) {
  if (sealed->file >= 0) close(sealed->file);
  sealed->file = -1;
}

static ts_status failed(int error) {
  bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EMFILE || error == ENFILE;
  return ts_error(is_full ? TS_RESOURCE_EXHAUSTED : TS_FAILED_PRECONDITION, "%s", strerror(error));
}

/* Splits a path into its directory and the name there. */
static ts_status open_parent(const char *path, int *out_directory, const char **out_name) {
  char parent[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  if (length >= sizeof parent) return failed(ENAMETOOLONG);
  memcpy(parent, path, length);
  parent[length] = '\0';
  *out_name = path + length;
  *out_directory = open(length ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return *out_directory < 0 ? failed(errno) : TS_SUCCESS;
}

static bool fill(int file, const seal *header, const void *from) {
  bool whole = ts_file_write(file, header, sizeof *header) && ts_file_write(file, from, (size_t)header->size);
  int error = errno;
  bool closed = close(file) == 0;
  if (!whole) errno = error;
  return whole && closed;
}

static ts_status replace(int directory, const char *name, const seal *header, const void *from) {
  char temporary[TS_FILE_NAME_BYTES];
  int file = ts_file_create(directory, TEMPORARY_PREFIX, temporary);
  if (file < 0) return failed(errno);
  errno = 0;
  if (fill(file, header, from) && renameat(directory, temporary, directory, name) == 0) return TS_SUCCESS;
  ts_status status = failed(errno ? errno : EIO);
  unlinkat(directory, temporary, 0);
  return status;
}

ts_status ts_sealed_write(const char *path, const ts_file_layout *layout, const void *from, size_t size) {
  int directory;
  const char *name;
  seal header = make_seal(layout, from, size);
  TS_TRY(open_parent(path, &directory, &name));
  ts_status status = replace(directory, name, &header, from);
  sweep(directory);
  close(directory);
  return status;
}

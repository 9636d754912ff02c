/* Any bytes as a file of the disk cache and as the object in it. The first byte chooses the file: the bytes alone, the
 * right header and the bytes, or a header with one wrong byte. A file that is read has the written bytes; an object
 * that loads is unloaded. The code in it is trusted and not run. */
#include "fuzz.h"
#include "jit/session/jit_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char text[] = "fuzzed";
static char folder[] = "/tmp/tessera-fuzz-XXXXXX", file[512];

static void clean_up(void) {
  unlink(file);
  rmdir(folder);
}

/* Where the cache puts the kernel of our text: it is the only file. */
static void find_file(void) {
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (entry->d_name[0] != '.') snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
  if (!dir || !file[0]) abort();
  closedir(dir);
}

static void put_file(const uint8_t *data, size_t size) {
  int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0 || write(out, data, size) != (ssize_t)size) abort();
  close(out);
}

static void start(void) {
  if (file[0]) return;
  if (!mkdtemp(folder)) abort();
  ts_disk_configure(folder, 0);
  ts_disk_write(text, strlen(text), &(ts_object){(void *)(uintptr_t) "x", 1});
  find_file();
  atexit(clean_up);
}

static void load(const ts_object *object) {
  static const char *const names[] = {"f", "", "tessera_fuzz"};
  for (int i = 0; i < 3; i++) {
    ts_module module;
    if (!ts_status_consume_ok(ts_module_load(object, names[i], &module))) continue;
    if (!module.entry || !module.base) abort();
    ts_module_unload(&module);
  }
}

static void flip(size_t at) {
  uint8_t byte;
  int both = open(file, O_RDWR);
  off_t end = lseek(both, 0, SEEK_END);
  at %= (size_t)end;
  if (both < 0 || pread(both, &byte, 1, (off_t)at) != 1) abort();
  byte ^= 1;
  if (pwrite(both, &byte, 1, (off_t)at) != 1) abort();
  close(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  start();
  int64_t live = ts_alloc_live();
  ts_object read, given = {(void *)(uintptr_t)(data + 1), size - 1};
  if (size < 3) return 0;
  if (data[0] % 3 == 0)
    put_file(data + 1, size - 1);
  else
    ts_disk_write(text, strlen(text), &given);
  if (data[0] % 3 == 1) flip((size_t)data[1] << 8 | data[2]);
  bool found = ts_disk_read(text, strlen(text), &read);
  if (found != (data[0] % 3 == 2) && data[0] % 3 != 0) abort();
  if (found) load(&read);
  if (found && data[0] % 3 == 2 && (read.size != given.size || memcmp(read.data, given.data, read.size) != 0)) abort();
  if (found) ts_free(read.data);
  return ts_alloc_live() == live ? 0 : (abort(), 0);
}

#include "jit/session/jit_internal.h"
#include "jit_kernels.h"
#include "testing.h"

#include "base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test has a folder of its own under `root`. */

static char root[64], cache[96], other[96];
static int warnings;
static char last_warning[512];

static void on_warning(const char *message) {
  warnings++;
  snprintf(last_warning, sizeof(last_warning), "%s", message);
}

static void use(const char *dir, int64_t limit) {
  const ts_jit_options options = {.cache_dir = dir, .disk_cache_bytes = limit};
  ts_jit_configure(&options);
  ts_jit_trim();
  warnings = 0;
}

static void setup(void) {
  strcpy(root, "/tmp/tessera-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
  snprintf(cache, sizeof(cache), "%s/deep/cache", root);
  snprintf(other, sizeof(other), "%s/other", root);
  ts_log_set_sink(on_warning);
  use(cache, 0);
}

static void teardown(void) {
  use("", 0);
  ts_log_set_sink(NULL);
  char command[128];
  snprintf(command, sizeof(command), "rm -rf %s", root);
  ck_assert_int_eq(system(command), 0);
}

static ts_jit_stats stats(void) {
  ts_jit_stats s;
  ts_jit_get_stats(&s);
  return s;
}

/* How a kernel that is not in memory comes about. */
typedef enum origin { COMPILED, LOADED } origin;

static void get(int32_t constant, origin expected) {
  adder a;
  ts_kernel *kernel;
  adder_init(&a, constant);
  ts_jit_stats before = stats();
  ck_assert_ok(ts_jit_get_kernels(&a.source, 1, &kernel));
  adder_check(kernel, constant);
  ts_kernel_release(kernel);
  ts_jit_trim();
  ck_assert_int_eq(stats().compiled - before.compiled, expected == COMPILED);
  ck_assert_int_eq(stats().loaded - before.loaded, expected == LOADED);
}

/* Counts files and bytes; writes the path of one of the files to `path`. */
static int count_files(const char *dir, char *path, size_t path_size, int64_t *bytes) {
  DIR *d = opendir(dir);
  int n = 0;
  *bytes = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    n++;
    snprintf(path, path_size, "%s/%s", dir, e->d_name);
    struct stat s;
    ck_assert_int_eq(stat(path, &s), 0);
    *bytes += s.st_size;
  }
  if (d) closedir(d);
  return n;
}

static int files_in(const char *dir) {
  char path[512];
  int64_t bytes;
  return count_files(dir, path, sizeof(path), &bytes);
}

/* The only file there: its name, and its content (ts_free). */
static uint8_t *only_file(char *path, size_t path_size, size_t *size) {
  int64_t bytes;
  ck_assert_int_eq(count_files(cache, path, path_size, &bytes), 1);
  *size = (size_t)bytes;
  uint8_t *data;
  ck_assert_ok(ts_alloc(*size, (void **)&data));
  FILE *file = fopen(path, "rb");
  ck_assert_uint_eq(fread(data, 1, *size, file), *size);
  fclose(file);
  return data;
}

static void write_over(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  ck_assert_uint_eq(fwrite(data, 1, size, file), size);
  fclose(file);
}

START_TEST(kernels_come_back)
{
  get(1, COMPILED);
  get(2, COMPILED);
  ck_assert_int_eq(files_in(cache), 2);
  struct stat s;
  ck_assert_int_eq(stat(cache, &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0700);
  get(1, LOADED);
  get(2, LOADED);
  use(cache, 0);
  get(1, LOADED);
  use("", 0);
  get(1, COMPILED);
  ck_assert_int_eq(warnings, 0);
}
END_TEST

START_TEST(environment_names_the_place)
{
  char path[160];
  setenv("TESSERA_CACHE_DIR", other, 1);
  use(NULL, 0);
  get(1, COMPILED);
  ck_assert_int_eq(files_in(other), 1);
  for (int i = 0; i < 2; i++) {
    setenv("TESSERA_CACHE_DIR", i ? "none" : "", 1);
    use(NULL, 0);
    get(1, COMPILED);
    ck_assert_int_eq(warnings, 0);
  }
  unsetenv("TESSERA_CACHE_DIR");
  setenv("XDG_CACHE_HOME", root, 1);
  use(NULL, 0);
  get(1, COMPILED);
  snprintf(path, sizeof(path), "%s/tessera", root);
  ck_assert_int_eq(files_in(path), 1);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", root, 1);
  use(NULL, 0);
  get(1, COMPILED);
  snprintf(path, sizeof(path), "%s/.cache/tessera", root);
  ck_assert_int_eq(files_in(path), 1);
}
END_TEST

/* ---- directories that are not ours alone */

static void check_refused(const char *dir, const char *reason) {
  use(dir, 0);
  get(1, COMPILED);
  get(1, COMPILED);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(last_warning, reason) != NULL, "%s", last_warning);
}

START_TEST(open_directory_is_refused)
{
  ck_assert_int_eq(mkdir(other, 0700), 0);
  ck_assert_int_eq(chmod(other, 0755), 0);
  check_refused(other, "0700");
  ck_assert_int_eq(files_in(other), 0);
}
END_TEST

START_TEST(symlink_is_refused)
{
  char real[128];
  snprintf(real, sizeof(real), "%s/real", root);
  ck_assert_int_eq(mkdir(real, 0700), 0);
  ck_assert_int_eq(symlink(real, other), 0);
  check_refused(other, "not a directory");
  ck_assert_int_eq(files_in(real), 0);
}
END_TEST

START_TEST(foreign_directory_is_refused)
{
  if (geteuid() == 0) {
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_eq(chown(other, 12345, 12345), 0);
    check_refused(other, "another user");
  } else {
    check_refused("/usr", "another user");
  }
}
END_TEST

START_TEST(impossible_directories_are_refused)
{
  check_refused("/proc/no/such/place", "No such file");
  write_over(other, "x", 1);
  check_refused(other, "not a directory");
}
END_TEST

/* ---- files that are not whole */

START_TEST(damaged_files_are_replaced)
{
  char path[512];
  size_t size;
  get(1, COMPILED);
  uint8_t *data = only_file(path, sizeof(path), &size);
  for (size_t i = 0; i < size; i += i < 40 ? 3 : 97) {
    data[i] ^= 0x10;
    write_over(path, data, size);
    data[i] ^= 0x10;
    get(1, COMPILED);
    get(1, LOADED);
  }
  const size_t cuts[] = {0, 1, 31, 32, 33, size / 2, size - 1};
  for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
    write_over(path, data, cuts[i]);
    get(1, COMPILED);
    get(1, LOADED);
  }
  ts_free(data);
  ck_assert_int_eq(files_in(cache), 1);
}
END_TEST

START_TEST(a_file_of_another_kernel_is_not_taken)
{
  char path[512], path2[512];
  size_t size;
  int64_t bytes;
  get(1, COMPILED);
  uint8_t *data = only_file(path, sizeof(path), &size);
  ck_assert_int_eq(unlink(path), 0);
  get(2, COMPILED);
  count_files(cache, path2, sizeof(path2), &bytes);
  write_over(path2, data, size);
  get(2, COMPILED);
  ts_free(data);
}
END_TEST

START_TEST(odd_things_in_the_files_place)
{
  char path[512];
  int64_t bytes;
  get(1, COMPILED);
  count_files(cache, path, sizeof(path), &bytes);
  unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0); /* must not block */
  get(1, COMPILED);
  get(1, LOADED);
  unlink(path);
  ck_assert_int_eq(symlink("/etc/passwd", path), 0);
  get(1, COMPILED);
  get(1, LOADED);
  unlink(path);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  get(1, COMPILED);
  get(1, COMPILED);
}
END_TEST

/* ---- disks that take nothing */

START_TEST(full_disk)
{
  struct rlimit old, none;
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
  none = old;
  none.rlim_cur = 100;
  get(1, COMPILED);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
  get(2, COMPILED);
  get(2, COMPILED);
  get(1, LOADED);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_DFL);
  ck_assert_int_eq(files_in(cache), 1);
}
END_TEST

START_TEST(read_only_directory)
{
  bool root_user = geteuid() == 0;
  ck_assert_int_eq(chmod(root, 0711), 0);
  ck_assert_int_eq(mkdir(other, 0700), 0);
  if (root_user) ck_assert_int_eq(chown(other, 65534, 65534), 0);
  if (root_user) ck_assert_int_eq(seteuid(65534), 0);
  use(other, 0);
  get(1, COMPILED);
  ck_assert_int_eq(chmod(other, 0500), 0);
  get(2, COMPILED);
  get(2, COMPILED);
  get(1, LOADED);
  ck_assert_int_eq(chmod(other, 0700), 0);
  if (root_user) ck_assert_int_eq(seteuid(0), 0);
  ck_assert_int_eq(files_in(other), 1);
}
END_TEST

/* The message says why the first missing folder could not be made. */
START_TEST(unmakable_directory)
{
  bool root_user = geteuid() == 0;
  ck_assert_int_eq(chmod(root, 0511), 0);
  if (root_user) ck_assert_int_eq(seteuid(65534), 0);
  use(cache, 0);
  get(1, COMPILED);
  get(2, COMPILED);
  if (root_user) ck_assert_int_eq(seteuid(0), 0);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(last_warning, "Permission denied") != NULL, "%s", last_warning);
}
END_TEST

static int remove_cache(void) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf %s/deep 2>/dev/null", root);
  return system(command);
}

START_TEST(vanished_directory)
{
  get(1, COMPILED);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(remove_cache(), 0);
    get(1, COMPILED);
    get(2, COMPILED);
    get(1, LOADED);
    ck_assert_int_eq(files_in(cache), 2);
  }
  struct stat s;
  ck_assert_int_eq(stat(cache, &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0700);
  ck_assert_int_eq(warnings, 0);
}
END_TEST

/* Something else is in its place. */
START_TEST(vanished_for_good)
{
  char deep[96];
  snprintf(deep, sizeof(deep), "%s/deep", root);
  get(1, COMPILED);
  ck_assert_int_eq(remove_cache(), 0);
  write_over(deep, "", 0);
  for (int32_t i = 1; i < 4; i++) get(i, COMPILED);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(last_warning, "not a directory") != NULL, "%s", last_warning);
}
END_TEST

/* Gets kernels [first, first + count) and runs them; false when one is not had. */
static bool get_some(int32_t first, int32_t count) {
  ts_kernel *kernel;
  for (int32_t k = first; k < first + count; k++) {
    adder a;
    adder_init(&a, k);
    if (!ts_status_consume_ok(ts_jit_get_kernels(&a.source, 1, &kernel))) return false;
    adder_check(kernel, k);
    ts_kernel_release(kernel);
  }
  return true;
}

static void *get_twenty(void *first) { return get_some(*(const int32_t *)first, 20) ? NULL : first; }

START_TEST(vanishing_while_many_write)
{
  pthread_t threads[3];
  int32_t firsts[] = {0, 10, 100};
  void *failed;
  for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, get_twenty, &firsts[i]), 0);
  for (int i = 0; i < 10; i++) {
    (void)remove_cache(); /* fails when a file has just come */
    usleep(5000);
  }
  for (int i = 0; i < 3; i++) {
    pthread_join(threads[i], &failed);
    ck_assert_ptr_null(failed);
  }
  ck_assert_int_eq(remove_cache(), 0);
  get(200, COMPILED);
  get(200, LOADED);
  ck_assert_int_eq(warnings, 0);
}
END_TEST

/* ---- sharing and the bound */

START_TEST(processes_share_it)
{
  pid_t children[4];
  for (int i = 0; i < 4; i++) {
    children[i] = fork();
    if (children[i] == 0) _exit(get_some(0, 10) ? 0 : 1);
  }
  for (int i = 0; i < 4; i++) {
    int status;
    ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
    ck_assert_int_eq(status, 0);
  }
  ck_assert_int_eq(files_in(cache), 10);
  for (int32_t k = 0; k < 10; k++) get(k, LOADED);
}
END_TEST

START_TEST(the_bound_holds)
{
  enum { LIMIT = 24 << 10 };
  char path[512];
  int64_t bytes;
  use(cache, LIMIT);
  get(0, COMPILED);
  for (int32_t i = 1; i <= 64; i++) get(i, COMPILED); /* two sweeps at least */
  int files = count_files(cache, path, sizeof(path), &bytes);
  ck_assert_int_gt(files, 0);
  ck_assert_int_lt(files, 60);
  ck_assert_int_le(bytes, LIMIT + 32 * 2000); /* the rest after one sweep, and the writes until the next */
  get(64, LOADED);
  get(0, COMPILED);
}
END_TEST

/* ---- the loader, on damaged objects */

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

START_TEST(hostile_objects)
{
  char path[512], name[TS_KERNEL_NAME_BYTES];
  size_t size;
  adder a;
  adder_init(&a, 1);
  get(1, COMPILED);
  uint8_t *data = only_file(path, sizeof(path), &size);
  const uint8_t *elf = memmem(data, size, "\177ELF", 4);
  size_t elf_size = size - (size_t)(elf - data);
  ts_hash128 hash = ts_hash(a.text, strlen(a.text));
  snprintf(name, sizeof(name), "tessera_test_%016llx", (unsigned long long)hash.lo);

  uint8_t *copy;
  ts_module module;
  ck_assert_ok(ts_alloc(elf_size, (void **)&copy));
  ts_object object = {.data = copy, .size = elf_size};
  memcpy(copy, elf, elf_size);
  ck_assert_ok(ts_module_load(&object, name, &module));
  ts_module_unload(&module);
  ck_assert_error(ts_module_load(&object, "another", &module), TS_DATA_LOSS, "another");

  uint32_t state = 12345;
  int refused = 0;
  for (int round = 0; round < 20000; round++) {
    memcpy(copy, elf, elf_size);
    int changes = 1 + (int)(next_random(&state) % 4);
    for (int i = 0; i < changes; i++) copy[next_random(&state) % elf_size] = (uint8_t)next_random(&state);
    object.size = round % 8 == 0 ? next_random(&state) % elf_size : elf_size;
    if (ts_status_consume_ok(ts_module_load(&object, name, &module))) {
      ts_module_unload(&module);
    } else {
      refused++;
    }
  }
  ck_assert_int_gt(refused, 1000);
  ts_free(copy);
  ts_free(data);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("jit_disk");
  TCase *tc = tcase_create("jit_disk");
  tcase_add_checked_fixture(tc, setup, teardown);
  tcase_set_timeout(tc, 60);
  if (getenv("CK_FORK") == NULL) tcase_add_test(tc, processes_share_it); /* first: it forks without threads */
  tcase_add_test(tc, kernels_come_back);
  tcase_add_test(tc, environment_names_the_place);
  tcase_add_test(tc, open_directory_is_refused);
  tcase_add_test(tc, symlink_is_refused);
  tcase_add_test(tc, foreign_directory_is_refused);
  tcase_add_test(tc, impossible_directories_are_refused);
  tcase_add_test(tc, damaged_files_are_replaced);
  tcase_add_test(tc, a_file_of_another_kernel_is_not_taken);
  tcase_add_test(tc, odd_things_in_the_files_place);
  tcase_add_test(tc, full_disk);
  tcase_add_test(tc, read_only_directory);
  tcase_add_test(tc, unmakable_directory);
  tcase_add_test(tc, vanished_directory);
  tcase_add_test(tc, vanished_for_good);
  tcase_add_test(tc, vanishing_while_many_write);
  tcase_add_test(tc, the_bound_holds);
  tcase_add_test(tc, hostile_objects);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }

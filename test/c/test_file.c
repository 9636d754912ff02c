#include "base/file.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/regular_file.h"
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

/* Each test has a folder of its own under `root`, with the path of a file in it. */
static char root[64], path[96];
static const ts_file_layout layout = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const char contents[] = "what the file holds";

#define HEADER 48

static void setup(void) {
  strcpy(root, "/tmp/tessera-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
  snprintf(path, sizeof(path), "%s/f", root);
}

static void teardown(void) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf %s", root);
  ck_assert_int_eq(system(command), 0);
}

static int files(void) {
  int count = 0;
  DIR *dir = opendir(root);
  for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
  closedir(dir);
  return count;
}

static void put(const char *name, const void *bytes, size_t size) {
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ck_assert_int_ge(file, 0);
  ck_assert(ts_file_write(file, bytes, size));
  ck_assert_int_eq(close(file), 0);
}

/* The file's contents, or an error. */
static ts_status get(const char *name, int64_t limit, char *out, size_t *out_size) {
  ts_sealed sealed;
  TS_TRY(ts_sealed_open(name, &layout, limit, &sealed));
  ck_assert_int_ge(sealed.file, 0);
  *out_size = sealed.size;
  return ts_sealed_read(&sealed, out);
}

static void check_refused(const char *why) {
  char out[256];
  size_t size;
  ck_assert_error(get(path, 200, out, &size), TS_FAILED_PRECONDITION, why);
}

static void check_written(void) {
  char out[256];
  size_t size;
  ck_assert_ok(ts_sealed_write(path, &layout, contents, sizeof contents));
  ck_assert_ok(get(path, 200, out, &size));
  ck_assert_uint_eq(size, sizeof contents);
  ck_assert_mem_eq(out, contents, size);
  ck_assert_int_eq(files(), 1);
}

START_TEST(written_and_read)
{
  struct stat s;
  ts_sealed none;
  mode_t mask = umask(0277); /* does not matter */
  ck_assert_ok(ts_sealed_open(path, &layout, 100, &none));
  ck_assert_int_eq(none.file, -1);
  check_written();
  check_written();
  ck_assert_int_eq(stat(path, &s), 0);
  ck_assert_int_eq(s.st_mode & 07777, 0600);
  umask(mask);
  ck_assert_int_eq(chmod(path, 0444), 0); /* others may read it */
  check_written();
  ck_assert_ok(ts_sealed_write(path, &layout, NULL, 0));
  char out[1];
  size_t size;
  ck_assert_ok(get(path, 0, out, &size));
  ck_assert_uint_eq(size, 0);
}
END_TEST

/* No other file counts as this one: each flipped bit, each length. */
START_TEST(damage_is_found)
{
  char whole[HEADER + sizeof contents + 1], other[sizeof whole], out[256];
  size_t length = HEADER + sizeof contents, size;
  check_written();
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert(ts_file_read(file, whole, length));
  ck_assert(!ts_file_read(file, other, 1));
  close(file);
  for (size_t bit = 0; bit < 8 * length; bit++) {
    memcpy(other, whole, length);
    other[bit / 8] = (char)(other[bit / 8] ^ 1 << bit % 8);
    put(path, other, length);
    check_refused("it is ");
  }
  for (size_t shorter = 0; shorter < length; shorter++) {
    put(path, whole, shorter);
    check_refused("it is ");
  }
  whole[length] = 0;
  put(path, whole, length + 1);
  check_refused("it is damaged");
  put(path, whole, length);
  ck_assert_ok(get(path, 200, out, &size));
}
END_TEST

START_TEST(what_is_for_others)
{
  char out[256];
  size_t size;
  ts_file_layout other = layout;
  other.bytes[15]++;
  put(path, "TESSERA\001 of another version, as long as a header is at least", 60);
  check_refused("another Tessera version");
  put(path, "no file of ours, as long as a header is at least...........", 60);
  check_refused("it is none");
  ck_assert_ok(ts_sealed_write(path, &other, contents, sizeof contents));
  check_refused("another Tessera version");
  check_written();
  ck_assert_error(get(path, sizeof contents - 1, out, &size), TS_RESOURCE_EXHAUSTED, "at most 19 are read");
}
END_TEST

/* A header that promises more than there is costs nothing. */
START_TEST(large_file)
{
  check_written();
  ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
  check_refused("it is damaged");
}
END_TEST

/* Another kind of file at the path is not followed, not waited for, and replaced. */
START_TEST(other_things)
{
  char victim[128];
  snprintf(victim, sizeof(victim), "%s/victim", root);
  ck_assert_ok(ts_sealed_write(victim, &layout, contents, sizeof contents));
  ck_assert_int_eq(symlink(victim, path), 0);
  check_refused("it is a symbolic link");
  ck_assert_ok(ts_sealed_write(path, &layout, "other", 5));
  char out[256];
  size_t size;
  ck_assert_ok(get(victim, 200, out, &size));
  ck_assert_mem_eq(out, contents, size);
  ck_assert_int_eq(unlink(victim), 0);
  ck_assert_int_eq(unlink(path), 0);

  ck_assert_int_eq(symlink("/dev/full", path), 0);
  check_refused("it is a symbolic link");
  check_written();
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  check_refused("it is no regular file");
  check_written();
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  check_refused("it is no regular file");
  ck_assert_error(ts_sealed_write(path, &layout, contents, 1), TS_FAILED_PRECONDITION, "directory");
  ck_assert_int_eq(files(), 1);
  ck_assert_int_eq(rmdir(path), 0);

  ts_sealed sealed;
  ck_assert_error(ts_sealed_open("/dev/zero", &layout, 100, &sealed), TS_FAILED_PRECONDITION, "no regular file");
  ck_assert_error(ts_sealed_write("/proc/none/x", &layout, contents, 1), TS_FAILED_PRECONDITION, "No such file");
}
END_TEST

START_TEST(others_may_write)
{
  check_written();
  const mode_t modes[] = {0602, 0620, 0666};
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(chmod(path, modes[i]), 0);
    check_refused("other users may write to it");
  }
  check_written();
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(path, 12345, 0), 0);
    check_refused("it belongs to another user");
    check_written();
  }
}
END_TEST

/* Files of a killed process are removed, files that another process is writing are not. */
START_TEST(left_over)
{
  char old[128], recent[128];
  snprintf(old, sizeof(old), "%s/.tessera-old", root);
  snprintf(recent, sizeof(recent), "%s/.tessera-recent", root);
  put(old, "x", 1);
  put(recent, "x", 1);
  const struct utimbuf then = {.actime = 1, .modtime = 1};
  ck_assert_int_eq(utime(old, &then), 0);
  ck_assert_ok(ts_sealed_write(path, &layout, contents, sizeof contents));
  ck_assert_int_ne(access(old, F_OK), 0);
  ck_assert_int_eq(access(recent, F_OK), 0);
}
END_TEST

START_TEST(names_are_random)
{
  char names[2][TS_FILE_NAME_BYTES];
  int directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 2; i++) {
    int file = ts_file_create(directory, "p-", names[i]);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_uint_eq(strlen(names[i]), 34);
  }
  ck_assert_str_ne(names[0], names[1]);
  close(directory);
}
END_TEST

/* ---- mapped files */

#define PAGES 16
static char page_of_ones[4096];

static void put_pages(void) {
  memset(page_of_ones, 1, sizeof page_of_ones);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (int i = 0; i < PAGES; i++) ck_assert(ts_file_write(file, page_of_ones, sizeof page_of_ones));
  ck_assert_int_eq(close(file), 0);
}

static int sum_of(const ts_mapped_file *mapped) {
  int sum = 0;
  for (size_t i = 0; i < mapped->size; i++) sum += ((const volatile char *)mapped->data)[i];
  return sum;
}

START_TEST(mapped_is_what_the_file_has)
{
  ts_mapped_file mapped, again;
  put_pages();
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  ck_assert_uint_eq(mapped.size, PAGES * sizeof page_of_ones);
  ck_assert_int_eq(sum_of(&mapped), PAGES * 4096);
  ck_assert_ok(ts_mapped_file_open(path, &again));
  ts_mapped_file_close(&mapped);
  ts_mapped_file_close(&mapped);
  ck_assert_int_eq(sum_of(&again), PAGES * 4096);
  ck_assert(!ts_mapped_file_is_cut(&again));
  ts_mapped_file_close(&again);
  put(path, "", 0);
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  ck_assert_uint_eq(mapped.size, 0);
  ts_mapped_file_close(&mapped);
}
END_TEST

/* Reads of whole words may go past either end. */
START_TEST(mapped_between_pages)
{
  ts_mapped_file mapped;
  put_pages();
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  const volatile char *data = mapped.data;
  ck_assert_int_eq(data[-1] + data[-8] + data[mapped.size] + data[mapped.size + 7], 0);
  ts_mapped_file_close(&mapped);
}
END_TEST

START_TEST(mapped_is_refused)
{
  ts_mapped_file mapped;
  ck_assert_error(ts_mapped_file_open(path, &mapped), TS_UNAVAILABLE, "No such file");
  ck_assert_error(ts_mapped_file_open(root, &mapped), TS_FAILED_PRECONDITION, "directory");
  ck_assert_error(ts_mapped_file_open("/dev/null", &mapped), TS_FAILED_PRECONDITION, "no regular file");
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ck_assert_error(ts_mapped_file_open(path, &mapped), TS_FAILED_PRECONDITION, "no regular file");
}
END_TEST

static char warning[256];
static sem_t warned;

static void take_warning(const char *message) {
  snprintf(warning, sizeof warning, "%s", message);
  sem_post(&warned);
}

/* The lost pages read as zeros, the others as they were, and one warning names the file. */
START_TEST(mapped_and_cut)
{
  ts_mapped_file mapped, other;
  ck_assert_int_eq(sem_init(&warned, 0, 0), 0);
  ts_log_set_sink(take_warning);
  put_pages();
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  ck_assert_ok(ts_mapped_file_open(path, &other));
  ck_assert_int_eq(truncate(path, 5 * 4096 + 100), 0);
  ck_assert_int_eq(sum_of(&mapped), 5 * 4096 + 100);
  ck_assert_int_eq(sum_of(&mapped), 5 * 4096 + 100);
  ck_assert(ts_mapped_file_is_cut(&mapped));
  ck_assert(!ts_mapped_file_is_cut(&other));
  ck_assert_int_eq(sem_wait(&warned), 0);
  ck_assert_ptr_nonnull(strstr(warning, path));
  ts_mapped_file_close(&other);
  ts_mapped_file_close(&mapped);
  put_pages();
  ck_assert_ok(ts_mapped_file_open(path, &mapped)); /* the same range again */
  ck_assert(!ts_mapped_file_is_cut(&mapped));
  ck_assert_int_eq(sum_of(&mapped), PAGES * 4096);
  ts_mapped_file_close(&mapped);
  ts_log_set_sink(NULL);
}
END_TEST

/* ---- files that are read as a whole */

#define WORDS ((size_t)6 << 20) /* of eight bytes: so large a file is read by several threads */

static void put_words(uint64_t *words) {
  for (size_t i = 0; i < WORDS; i++) words[i] = i * 0x9e3779b97f4a7c15u;
  put(path, words, WORDS * sizeof *words);
}

static bool never(void *context) {
  (void)context;
  return false;
}

START_TEST(read_as_a_whole)
{
  ts_regular_file file;
  uint64_t *words = malloc(WORDS * sizeof *words), *read = calloc(WORDS, sizeof *words);
  put_words(words);
  ck_assert_ok(ts_regular_file_open(path, &file));
  ck_assert_uint_eq(file.size, WORDS * sizeof *words);
  ck_assert_ok(ts_regular_file_read(&file, read, (ts_goes_on){0}));
  ck_assert(memcmp(words, read, file.size) == 0);
  ck_assert_error(ts_regular_file_read(&file, read, (ts_goes_on){.ask = never}), TS_CANCELLED, "cancelled");
  ck_assert_int_eq(truncate(path, 1000), 0);
  ck_assert_error(ts_regular_file_read(&file, read, (ts_goes_on){0}), TS_DATA_LOSS, "shorter");
  ts_regular_file_close(&file);
  ts_regular_file_close(&file);
  put(path, "abc", 3);
  ck_assert_ok(ts_regular_file_open(path, &file));
  ck_assert_ok(ts_regular_file_read(&file, read, (ts_goes_on){0}));
  ck_assert(file.size == 3 && memcmp(read, "abc", 3) == 0);
  ts_regular_file_close(&file);
  ck_assert_error(ts_regular_file_open(root, &file), TS_FAILED_PRECONDITION, "directory");
  ck_assert_int_eq(file.file, -1);
  free(words);
  free(read);
}
END_TEST

/* A page past the end of a file that is no mapping of ours: the process ends by SIGBUS, as without the handler. */
START_TEST(fault_elsewhere)
{
  ts_mapped_file mapped;
  put_pages();
  ck_assert_ptr_ne(signal(SIGBUS, SIG_DFL), SIG_ERR); /* not a sanitizer's handler */
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  int file = open(path, O_RDONLY | O_CLOEXEC);
  const volatile char *beyond = mmap(NULL, 2 * PAGES * 4096, PROT_READ, MAP_SHARED, file, 0);
  ck_assert_ptr_ne((const void *)(uintptr_t)beyond, MAP_FAILED);
  (void)beyond[PAGES * 4096];
}
END_TEST

static _Atomic int seen;
static void *replacement;

static void see(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  seen++;
  replacement = mmap(info->si_addr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The previous handler gets foreign faults. */
START_TEST(fault_for_another_handler)
{
  ts_mapped_file mapped;
  put_pages();
  ck_assert_int_eq(sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = see, .sa_flags = SA_SIGINFO}, NULL), 0);
  ck_assert_ok(ts_mapped_file_open(path, &mapped));
  int file = open(path, O_RDONLY | O_CLOEXEC);
  char *beyond = mmap(NULL, 2 * PAGES * 4096, PROT_READ, MAP_SHARED, file, 0);
  ck_assert_ptr_ne(beyond, MAP_FAILED);
  ck_assert_int_eq(((volatile char *)beyond)[PAGES * 4096], 0);
  ck_assert_int_eq(seen, 1);
  ck_assert_ptr_eq(replacement, beyond + PAGES * 4096);
  ts_mapped_file_close(&mapped);
  close(file);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("file");
  TCase *tests = tcase_create("file");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, written_and_read);
  tcase_add_test(tests, damage_is_found);
  tcase_add_test(tests, what_is_for_others);
  tcase_add_test(tests, large_file);
  tcase_add_test(tests, other_things);
  tcase_add_test(tests, others_may_write);
  tcase_add_test(tests, left_over);
  tcase_add_test(tests, names_are_random);
  tcase_add_test(tests, mapped_is_what_the_file_has);
  tcase_add_test(tests, mapped_between_pages);
  tcase_add_test(tests, mapped_is_refused);
  tcase_add_test(tests, mapped_and_cut);
  tcase_add_test(tests, read_as_a_whole);
  /* a fork for each test, so that its handler is its own */
  tcase_add_test_raise_signal(tests, fault_elsewhere, SIGBUS);
  tcase_add_test(tests, fault_for_another_handler);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}

#include "base/cgroup.h"
#include "testing.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Groups as the system tells of them, in a folder of the test's own. */

static char root[64], groups[80];
static const ts_cgroup where = {.groups = groups, .root = root};

static void setup(void) {
  strcpy(root, "/tmp/tessera-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
  snprintf(groups, sizeof(groups), "%s/groups", root);
}

static void teardown(void) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf %s", root);
  ck_assert_int_eq(system(command), 0);
}

/* Writes a file below the root, and the folders that it is in. */
static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", root, name);
  for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  FILE *file = fopen(path, "we");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
}

static void check(int64_t memory, int cpus) {
  ck_assert_int_eq(ts_cgroup_memory(&where), memory);
  ck_assert_int_eq(ts_cgroup_cpus(&where), cpus);
}

START_TEST(without_groups)
{
  check(INT64_MAX, INT_MAX);
  put("groups", "");
  check(INT64_MAX, INT_MAX);
  put("groups", "no group\n0::/a/b\n");
  check(INT64_MAX, INT_MAX);
}
END_TEST

START_TEST(version_2)
{
  put("groups", "0::/a/b\n");
  put("a/b/memory.max", "max\n");
  put("a/b/cpu.max", "max 100000\n");
  check(INT64_MAX, INT_MAX);
  put("a/b/memory.max", "5000\n");
  put("a/b/cpu.max", "400000 100000\n");
  check(5000, 4);
  /* of a parent group, which is less */
  put("a/memory.max", "4000\n");
  put("a/cpu.max", "150000 100000\n");
  check(4000, 2);
  put("cpu.max", "50000 100000\n");
  put("memory.max", "3000\n");
  check(3000, 1);
}
END_TEST

START_TEST(version_1)
{
  put("groups", "12:devices:/d\n4:memory:/m/n\n3:cpu,cpuacct:/c\n0::/\n");
  put("memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  put("cpu/c/cpu.cfs_quota_us", "-1\n");
  put("cpu/c/cpu.cfs_period_us", "100000\n");
  check(9223372036854771712, INT_MAX);
  put("memory/m/n/memory.limit_in_bytes", "7000\n");
  put("cpu/c/cpu.cfs_quota_us", "250000\n");
  check(7000, 3);
}
END_TEST

/* The name of the host's group, whose files are not here; the root is the container's. */
START_TEST(container)
{
  put("groups", "0::/host/container\n");
  put("cpu.max", "200000 100000\n");
  put("memory.max", "6000\n");
  check(6000, 2);
}
END_TEST

START_TEST(nonsense)
{
  put("groups", "0::/a\n");
  const char *texts[] = {"", "x\n", "-1 -1\n", "0 0\n", "100\n", "99999999999999999999 1\n"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    put("a/cpu.max", texts[i]);
    put("a/memory.max", i == 4 ? "" : i == 5 ? "max" : texts[i]);
    check(INT64_MAX, INT_MAX);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cgroup");
  TCase *tests = tcase_create("cgroup");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, without_groups);
  tcase_add_test(tests, version_2);
  tcase_add_test(tests, version_1);
  tcase_add_test(tests, container);
  tcase_add_test(tests, nonsense);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}

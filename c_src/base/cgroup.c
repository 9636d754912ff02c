#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const ts_cgroup ts_cgroup_own = {.groups = "/proc/self/cgroup", .root = "/sys/fs/cgroup"};

#define NO_LIMIT INT64_MAX

/* How many of the first two numbers of a file could be read ("max" is not a number). */
static int read_numbers(const char *folder, const char *name, int64_t *first, int64_t *second) {
  char path[4096];
  int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
  if (!file) return 0;
  n = fscanf(file, "%" SCNd64 " %" SCNd64, first, second);
  fclose(file);
  return n;
}

/* ---- one group: what its folder says */

typedef int64_t read_fn(const char *folder);

static int64_t read_bytes(const char *folder, const char *name) {
  int64_t bytes, none;
  return read_numbers(folder, name, &bytes, &none) >= 1 && bytes > 0 ? bytes : NO_LIMIT;
}

static int64_t bytes_v1(const char *folder) { return read_bytes(folder, "memory.limit_in_bytes"); }
static int64_t bytes_v2(const char *folder) { return read_bytes(folder, "memory.max"); }

static int64_t whole_cpus(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? quota / period + (quota % period != 0) : NO_LIMIT;
}

static int64_t cpus_v1(const char *folder) {
  int64_t quota, period, none;
  if (read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) < 1) return NO_LIMIT;
  if (read_numbers(folder, "cpu.cfs_period_us", &period, &none) < 1) return NO_LIMIT;
  return whole_cpus(quota, period);
}

static int64_t cpus_v2(const char *folder) {
  int64_t quota, period;
  return read_numbers(folder, "cpu.max", &quota, &period) == 2 ? whole_cpus(quota, period) : NO_LIMIT;
}

/* ---- ours and those above it */

/* True when `name` is in the list "cpu,cpuacct"; "" is in the empty list of version 2. */
static bool is_among(const char *name, const char *list) {
  size_t size = strlen(name);
  for (;;) {
    size_t item = strcspn(list, ",");
    if (item == size && strncmp(list, name, size) == 0) return true;
    if (!list[item]) return false;
    list += item + 1;
  }
}

/* Reads our group's path below the controller's root from a line "4:memory:/a/b". */
static bool find_group(const char *groups, const char *controller, char *out, size_t size) {
  FILE *file = fopen(groups, "re");
  if (!file) return false;
  bool found = false;
  char line[2048];
  while (!found && fgets(line, sizeof(line), file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) continue;
    *path++ = '\0';
    found = is_among(controller, controllers + 1);
    if (found) snprintf(out, size, "%s", strcmp(path, "/") == 0 ? "" : path);
  }
  fclose(file);
  return found;
}

/* The smallest value in the group's directory and its parents. Inside a container the path may be the host's; then
 * missing files read as "no limit", up to the container's root. */
static int64_t least(const ts_cgroup *where, const char *controller, read_fn *read) {
  char group[2048], folder[4096];
  if (!find_group(where->groups, controller, group, sizeof(group))) return NO_LIMIT;
  int64_t limit = NO_LIMIT;
  for (;;) {
    snprintf(folder, sizeof(folder), "%s%s%s%s", where->root, *controller ? "/" : "", controller, group);
    int64_t here = read(folder);
    if (here < limit) limit = here;
    char *slash = strrchr(group, '/');
    if (!slash) return limit;
    *slash = '\0';
  }
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t ts_cgroup_memory(const ts_cgroup *where) {
  return lesser(least(where, "", bytes_v2), least(where, "memory", bytes_v1));
}

int ts_cgroup_cpus(const ts_cgroup *where) {
  return (int)lesser(lesser(least(where, "", cpus_v2), least(where, "cpu", cpus_v1)), INT_MAX);
}

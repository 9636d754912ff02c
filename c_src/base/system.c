#include "base/system.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The number in a one-line file; INT64_MAX when there is none ("max", no such file). */
static int64_t read_number(const char *path) {
  int64_t number = INT64_MAX;
  FILE *file = fopen(path, "re");
  if (!file) return number;
  if (fscanf(file, "%" SCNd64, &number) != 1) number = INT64_MAX;
  fclose(file);
  return number > 0 ? number : INT64_MAX;
}

/* Our group's path below the root of controller `name` ("" for version 2). */
static bool cgroup_path(const char *name, char *out, size_t size) {
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file) return false;
  bool found = false;
  char line[2048];
  while (!found && fgets(line, sizeof(line), file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) continue;
    *path++ = '\0';
    found = strcmp(controllers + 1, name) == 0;
    if (found) snprintf(out, size, "%s", strcmp(path, "/") == 0 ? "" : path);
  }
  fclose(file);
  return found;
}

/* The least limit of our group and its ancestors. Inside a container the path
 * may be the host's; then the missing files read as "no limit", up to the root. */
static int64_t cgroup_memory(const char *controller, const char *root, const char *file) {
  char group[2048], path[4096];
  if (!cgroup_path(controller, group, sizeof(group))) return INT64_MAX;
  int64_t limit = INT64_MAX;
  for (;;) {
    snprintf(path, sizeof(path), "%s%s/%s", root, group, file);
    limit = least(limit, read_number(path));
    char *slash = strrchr(group, '/');
    if (!slash) return limit;
    *slash = '\0';
  }
}

int64_t ts_system_memory(void) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t memory = pages > 0 && page > 0 ? pages * page : INT64_MAX;
  memory = least(memory, cgroup_memory("", CGROUP_ROOT, "memory.max"));
  return least(memory, cgroup_memory("memory", CGROUP_ROOT "/memory", "memory.limit_in_bytes"));
}

int64_t ts_system_coarse_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t ts_system_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Limits of the process's control group, version 1 or 2, and of the groups above it. Stateless: files are read at each
 * call. */
#ifndef TS_BASE_CGROUP_H
#define TS_BASE_CGROUP_H

#include <stdint.h>

/* Where the files are; tests use other places. */
typedef struct ts_cgroup {
  const char *groups; /* the file that lists our groups */
  const char *root;   /* the directory of all groups */
} ts_cgroup;

extern const ts_cgroup ts_cgroup_own;

/* Bytes; INT64_MAX without a limit. */
int64_t ts_cgroup_memory(const ts_cgroup *where);
/* The CPUs that the quota allows, rounded up; INT_MAX without a quota. */
int ts_cgroup_cpus(const ts_cgroup *where);

#endif

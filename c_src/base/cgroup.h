/* Limits of the control group that we run in, of version 1 or 2, and of those above it. Stateless: files are read at
 * each call. */
#ifndef TS_BASE_CGROUP_H
#define TS_BASE_CGROUP_H

#include <stdint.h>

/* Where the system tells: other places are for tests. */
typedef struct ts_cgroup {
  const char *groups; /* the file that names our groups */
  const char *root;   /* the folder of all groups */
} ts_cgroup;

extern const ts_cgroup ts_cgroup_own;

/* Bytes; INT64_MAX without a limit. */
int64_t ts_cgroup_memory(const ts_cgroup *where);
/* The CPUs that the quota amounts to, rounded up; INT_MAX without one. */
int ts_cgroup_cpus(const ts_cgroup *where);

#endif

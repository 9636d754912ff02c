/* Shared by the programs of test/mpi: the library is loaded as a rank's node loads it. */
#ifndef TS_TEST_MPI_OPEN_H
#define TS_TEST_MPI_OPEN_H

#include "base/system.h"
#include "comm/mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Aborts, which ends all ranks. Needs a variable `carrier`. */
#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, carrier->rank, #condition); \
      abort();                                                                                \
    }                                                                                         \
  } while (0)

static inline ts_status test_open_carrier(const char *path, int64_t patience_ns, int64_t build,
                                          const ts_mpi_library **out_library, ts_carrier **out) {
  static const ts_mpi_core core = {ts_error, ts_system_ns, ts_carrier_agrees};
  const char *part = getenv("TESSERA_TEST_PART");
  ts_mpi_options options = {
      .patience_ns = patience_ns, .version = 7, .build = build, .part_bytes = part ? atoll(part) : 0};
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return ts_error(TS_FAILED_PRECONDITION, "%s", dlerror());
  *out_library = dlsym(handle, TS_MPI_SYMBOL);
  if (!*out_library || (*out_library)->abi != TS_MPI_ABI) return ts_error(TS_FAILED_PRECONDITION, "not the library");
  return (*out_library)->open(&core, &options, out);
}

#endif

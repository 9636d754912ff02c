/* The interface of priv/tessera_mpi.so: a carrier over MPI (exec/carrier.h). It is a library of its own, loaded on
 * demand, so that nothing else needs MPI. It calls Tessera through the table ts_mpi_core and exports one symbol.
 *
 * MPI is called by one thread at a time: the one which `open` starts, or one in `post` that helps. It takes posted
 * exchanges, sends their headers and blocks as messages between two ranks, and sleeps when nothing arrives for some
 * time, at once where a host has more ranks than CPUs, until a rank of the host rings (comm/bells.h) or it is time to
 * look again. A rank that waits for another asks it for a sign of life, which that rank's thread gives while the rank
 * computes: so a long computation or transfer is no silence, and a stopped or cut off rank is found before an
 * exchange's own deadline. `open` and `close` may be called once in a process, by any thread; `post` by any thread. */
#ifndef TS_COMM_MPI_H
#define TS_COMM_MPI_H

#include "exec/carrier.h"

enum { TS_MPI_ABI = 5, TS_MPI_VERSION_TEXT = 128 };

#define TS_MPI_SYMBOL "ts_mpi_table"

/* Tessera's functions; must outlive the library. */
typedef struct ts_mpi_core {
  ts_status (*error)(ts_code code, const char *format, ...);
  int64_t (*now_ns)(void);
  bool (*agrees)(const ts_carrier_header *headers, int32_t ranks);
} ts_mpi_core;

/* Properties that must be equal on all ranks, but for the level. */
typedef struct ts_mpi_options {
  int64_t patience_ns; /* how long a rank that is waited for may be silent; 0: for ever */
  int64_t version;     /* of the programs that ranks exchange: not negative, the same on all ranks */
  int64_t build;       /* of the C libraries: the same */
  int64_t part_bytes;  /* of a block that are one message, for tests; 0: by where the ranks are */
  int32_t level;       /* of this process's instruction set; becomes the least of all ranks */
} ts_mpi_options;

typedef struct ts_mpi_library {
  int32_t abi;
  /* Initializes MPI and waits for all ranks. The carrier lives until the process ends. */
  ts_status (*open)(const ts_mpi_core *core, ts_mpi_options *options, ts_carrier **out);
  /* Finalizes MPI, once all posted exchanges are done; all ranks do so together. An error when that took longer. The
   * process must end by _exit() then, since MPI still has a thread. */
  ts_status (*close)(ts_carrier *carrier, int64_t timeout_ns);
  /* The library's name and version, one line. Only after `open`. */
  const char *(*version)(ts_carrier *carrier);
} ts_mpi_library;

#endif

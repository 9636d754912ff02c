/* The interface of priv/tessera_mpi.so: a carrier over MPI (group/carrier.h). It is a library of its own, loaded on
 * demand, so that nothing else needs MPI. It calls Tessera through the table ts_mpi_core and exports one symbol.
 *
 * MPI is called by one thread at a time: the thread which `open` starts, or a thread in `post` that helps. It takes
 * posted exchanges, and sends their headers and blocks as messages between two ranks. When nothing arrives for some
 * time (at once where a host has more ranks than CPUs), it sleeps until a rank of the host rings (comm/bells.h) or it
 * is time to look again. A rank that waits for another asks that rank for a sign of life, and the other rank's thread
 * answers while the rank computes. So a long computation or transfer is no silence, and a stopped or cut off rank is
 * found before an exchange's own deadline. `open` and `close` may be called once in a process, by any thread; `post` by
 * any thread. An exchange that is posted when MPI was finalized is done with an error. */
#ifndef TS_COMM_MPI_H
#define TS_COMM_MPI_H

#include "group/carrier.h"

enum { TS_MPI_ABI = 7, TS_MPI_VERSION_TEXT = 128 };

#define TS_MPI_SYMBOL "ts_mpi_table"

/* Tessera's functions; must outlive the library. */
typedef struct ts_mpi_core {
  ts_status (*error)(ts_code code, const char *format, ...);
  int64_t (*now_ns)(void);
  bool (*agrees)(const ts_carrier_header *headers, int32_t ranks);
} ts_mpi_core;

/* Properties that must be equal on all ranks, except the last two. */
typedef struct ts_mpi_options {
  int64_t patience_ns; /* how long a rank that is waited for may be silent; 0: for ever */
  int64_t version;     /* of the programs that ranks exchange: not negative, the same on all ranks */
  int64_t build;       /* of the C libraries: the same */
  int64_t part_bytes;  /* bytes of a block in one message; 0: by where the ranks are. Becomes the least of all ranks */
  int32_t level;       /* of this process's instruction set; becomes the least of all ranks */
} ts_mpi_options;

/* Bytes of messages, with headers and signs of life, between this rank and others. */
typedef struct ts_mpi_moved {
  int64_t sent, received;
} ts_mpi_moved;

/* Bytes of a part of a block, which is one message, where ranks are on several hosts: `here` ranks on this host,
 * `elsewhere` on others. All ranks take the least of their results. Each pair of them may have two parts on the same
 * network at a time. A sign of life waits behind all these parts: up to 2 MB, less than 2 s at 10 Mbit/s. */
static inline int64_t ts_mpi_part_bytes(int32_t here, int32_t elsewhere) {
  const int64_t pairs = (int64_t)here * elsewhere;
  int64_t part = INT64_C(1) << 18;
  while (part > 8192 && part * pairs > INT64_C(1) << 20) part /= 2;
  return part;
}

typedef struct ts_mpi_library {
  int32_t abi;
  /* Initializes MPI and waits for all ranks. The carrier lives until the process ends. */
  ts_status (*open)(const ts_mpi_core *core, ts_mpi_options *options, ts_carrier **out);
  /* Finalizes MPI, once all posted exchanges are done and all ranks have closed theirs. An error when that took longer,
   * or a rank is silent. The process must end by _exit() then, since MPI still has a thread. */
  ts_status (*close)(ts_carrier *carrier, int64_t timeout_ns);
  /* The library's name and version, one line. Only after `open`. */
  const char *(*version)(ts_carrier *carrier);
  /* Since `open`; by any thread. */
  ts_mpi_moved (*moved)(ts_carrier *carrier);
} ts_mpi_library;

#endif

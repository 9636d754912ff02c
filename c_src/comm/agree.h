/* Agreement of the ranks of a job before their first exchange. */
#ifndef TS_COMM_AGREE_H
#define TS_COMM_AGREE_H

#include "comm/mpi.h"

#include <mpi.h>

/* Called by all ranks of the job together, by the thread that calls MPI. All get the least level and the least part of
 * a block. An error on all of them where versions or builds differ: it names a rank that differs from rank 0, and its
 * host. */
ts_status ts_mpi_agree(const ts_mpi_core *core, MPI_Comm comm, ts_mpi_options *options);

#endif

#include "comm/agree.h"

#include <limits.h>
#include <string.h>

/* The facts about a rank that it sends to the others. */
typedef struct identity {
  int64_t version, build;
  char host[MPI_MAX_PROCESSOR_NAME + 1];
} identity;

static void identify(const ts_mpi_options *options, identity *out) {
  int length = 0;
  memset(out, 0, sizeof *out);
  out->version = options->version;
  out->build = options->build;
  if (MPI_Get_processor_name(out->host, &length) != MPI_SUCCESS) strcpy(out->host, "?");
}

static bool differs(const identity *a, const identity *b) { return a->version != b->version || a->build != b->build; }

/* The first rank that differs from rank 0, and both identities. */
static bool find_other(MPI_Comm comm, const identity *own, int *out_rank, identity *zero, identity *other) {
  int rank, first = INT_MAX;
  MPI_Comm_rank(comm, &rank);
  *zero = *other = *own;
  if (MPI_Bcast(zero, sizeof *zero, MPI_BYTE, 0, comm) != MPI_SUCCESS) return false;
  int candidate = differs(own, zero) ? rank : INT_MAX;
  if (MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS || first == INT_MAX) return false;
  *out_rank = first;
  return MPI_Bcast(other, sizeof *other, MPI_BYTE, first, comm) == MPI_SUCCESS;
}

static ts_status no_answer(const ts_mpi_core *core) {
  return core->error(TS_UNAVAILABLE, "MPI does not reach all ranks");
}

static ts_status refuse(const ts_mpi_core *core, MPI_Comm comm, const ts_mpi_options *options) {
  identity own, zero, other;
  int rank;
  identify(options, &own);
  if (!find_other(comm, &own, &rank, &zero, &other)) return no_answer(core);
  if (other.version != zero.version)
    return core->error(TS_FAILED_PRECONDITION,
                       "rank %d on %s has another version of Tessera than rank 0 on %s, or another architecture", rank,
                       other.host, zero.host);
  return core->error(TS_FAILED_PRECONDITION,
                     "rank %d on %s has another build of Tessera's C libraries than rank 0 on %s", rank, other.host,
                     zero.host);
}

/* Numbers are equal if the least is the largest. */
ts_status ts_mpi_agree(const ts_mpi_core *core, MPI_Comm comm, ts_mpi_options *options) {
  enum { LEVEL, PART, VERSION, NO_VERSION, BUILD, NO_BUILD, COUNT };
  int64_t least[COUNT],
      own[COUNT] = {[LEVEL] = options->level,         [PART] = options->part_bytes, [VERSION] = options->version,
                    [NO_VERSION] = -options->version, [BUILD] = options->build,     [NO_BUILD] = -options->build};
  if (MPI_Allreduce(own, least, COUNT, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS) return no_answer(core);
  options->level = (int32_t)least[LEVEL];
  options->part_bytes = least[PART];
  if (least[VERSION] == -least[NO_VERSION] && least[BUILD] == -least[NO_BUILD]) return TS_SUCCESS;
  return refuse(core, comm, options);
}

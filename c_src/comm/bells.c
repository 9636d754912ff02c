#include "comm/bells.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The rank in `all` of each rank of the host. */
static bool translate(const ts_bells *b, MPI_Comm all, int *out) {
  MPI_Group here, everywhere;
  int *numbers = malloc((size_t)b->ranks_here * sizeof *numbers);
  if (!numbers) return false;
  for (int i = 0; i < b->ranks_here; i++) numbers[i] = i;
  MPI_Comm_group(b->host, &here);
  MPI_Comm_group(all, &everywhere);
  MPI_Group_translate_ranks(here, b->ranks_here, numbers, everywhere, out);
  MPI_Group_free(&here);
  MPI_Group_free(&everywhere);
  free(numbers);
  return true;
}

static bool find_bells(ts_bells *b, MPI_Comm all) {
  int *ranks = malloc((size_t)b->ranks_here * sizeof *ranks);
  bool found = ranks && translate(b, all, ranks);
  for (int i = 0; found && i < b->ranks_here; i++) {
    MPI_Aint size;
    int unit;
    void *bell;
    found = MPI_Win_shared_query(b->window, i, &size, &unit, &bell) == MPI_SUCCESS && size >= (MPI_Aint)sizeof(ts_bell);
    if (found) b->others[ranks[i]] = bell;
  }
  free(ranks);
  return found;
}

/* All ranks of the host learn whether all of them have memory. */
static bool all_have(const ts_bells *b, bool has) {
  int own = has, least = 0;
  return MPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, b->host) == MPI_SUCCESS && least;
}

static void share(ts_bells *b, MPI_Comm all) {
  ts_bell *own = NULL;
  bool has = MPI_Win_allocate_shared(sizeof *own, 1, MPI_INFO_NULL, b->host, (void *)&own, &b->window) == MPI_SUCCESS;
  if (!has) b->window = MPI_WIN_NULL;
  if (has) atomic_init(&own->rings, 0), atomic_init(&own->listeners, 0);
  if (has) has = find_bells(b, all);
  if (all_have(b, has)) b->own = own;
}

bool ts_bells_open(ts_bells *b, MPI_Comm all) {
  int ranks, here;
  *b = (ts_bells){.own = &b->alone, .window = MPI_WIN_NULL};
  MPI_Comm_size(all, &ranks);
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &b->host);
  MPI_Comm_set_errhandler(b->host, MPI_ERRORS_RETURN);
  MPI_Comm_size(b->host, &here);
  b->ranks_here = here;
  b->others = calloc((size_t)ranks, sizeof *b->others);
  if (!all_have(b, b->others)) return false;
  share(b, all);
  return true;
}

void ts_bells_close(ts_bells *b) {
  b->own = &b->alone;
  free(b->others);
  b->others = NULL;
  if (b->window != MPI_WIN_NULL) MPI_Win_free(&b->window);
  MPI_Comm_free(&b->host);
}

bool ts_bells_reach(const ts_bells *b, int32_t rank) { return b->own != &b->alone && b->others[rank]; }

static void ring(ts_bell *bell) {
  atomic_fetch_add(&bell->rings, 1);
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Either this thread sees that the other rank listens, or the other rank sees the message: it looks once more after it
 * has set `listeners`. */
void ts_bells_ring(const ts_bells *b, int32_t rank) {
  atomic_thread_fence(memory_order_seq_cst);
  if (ts_bells_reach(b, rank) && atomic_load(&b->others[rank]->listeners)) ring(b->others[rank]);
}

void ts_bells_ring_own(const ts_bells *b) { ring(b->own); }

uint32_t ts_bells_count(const ts_bells *b) { return atomic_load(&b->own->rings); }

uint32_t ts_bells_listen(const ts_bells *b) {
  uint32_t seen = ts_bells_count(b);
  atomic_fetch_add(&b->own->listeners, 1);
  atomic_thread_fence(memory_order_seq_cst);
  return seen;
}

void ts_bells_stop_listening(const ts_bells *b) { atomic_fetch_sub(&b->own->listeners, 1); }

void ts_bells_sleep(const ts_bells *b, uint32_t seen, int64_t ns) {
  const struct timespec most = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  syscall(SYS_futex, &b->own->rings, FUTEX_WAIT, seen, &most, NULL, 0);
}

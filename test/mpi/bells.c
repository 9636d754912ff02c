/* Bells between the ranks of this host: mpirun -np RANKS mpi_bells. Prints "bells on N ranks: ok". A lost ring would
 * make a round take as long as the sleep, longer than the limit of the test. */
#include "comm/bells.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 2000, MOST_S = 100 };

static ts_bells bells;
static int rank, ranks;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #condition); \
      abort();                                                                       \
    }                                                                                \
  } while (0)

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* As a carrier's thread waits: it listens, looks, and sleeps if there is nothing. */
static void wait_for(const _Atomic int *word, int value) {
  while (atomic_load(word) < value) {
    uint32_t seen = ts_bells_listen(&bells);
    if (atomic_load(word) < value) ts_bells_sleep(&bells, seen, (int64_t)MOST_S * 2000000000);
    ts_bells_stop_listening(&bells);
  }
}

/* Rounds: each rank writes to the next rank's word, rings its bell, and waits for its own word. */
static void pass_on(_Atomic int *const *words) {
  int next = (rank + 1) % ranks;
  int64_t begun = now_ns();
  for (int round = 1; round <= ROUNDS; round++) {
    if (rank > 0) wait_for(words[rank], round);
    atomic_store(words[next], round);
    if (ranks > 1) ts_bells_ring(&bells, next);
    if (rank == 0) wait_for(words[rank], round);
  }
  CHECK(now_ns() - begun < (int64_t)MOST_S * 1000000000);
}

static void *ring_own(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    atomic_fetch_add((_Atomic int *)arg, 1);
    ts_bells_ring_own(&bells);
  }
  return NULL;
}

/* Another thread of the process rings, whether this one listens to other ranks or not. */
static void own_thread(void) {
  _Atomic int word = 0;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, ring_own, &word) == 0);
  int64_t begun = now_ns();
  while (atomic_load(&word) < ROUNDS) {
    uint32_t seen = ts_bells_count(&bells);
    if (atomic_load(&word) < ROUNDS) ts_bells_sleep(&bells, seen, (int64_t)MOST_S * 2000000000);
  }
  CHECK(now_ns() - begun < (int64_t)MOST_S * 1000000000);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* Without a ring a sleep ends by itself, and a rank that does not listen is not rung. */
static void silence(void) {
  uint32_t seen = ts_bells_count(&bells);
  int64_t begun = now_ns();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int other = 0; other < ranks; other++) ts_bells_ring(&bells, other);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ts_bells_count(&bells) == seen);
  ts_bells_sleep(&bells, seen, 5000000);
  CHECK(now_ns() - begun >= 5000000);
}

/* A word for each rank, in memory that all ranks of the host share. */
static void with_words(MPI_Win *out_window, _Atomic int **words) {
  void *own = NULL;
  CHECK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&own, out_window) == MPI_SUCCESS);
  atomic_init((_Atomic int *)own, 0);
  for (int i = 0; i < ranks; i++) {
    MPI_Aint size;
    int unit;
    CHECK(MPI_Win_shared_query(*out_window, i, &size, &unit, (void *)&words[i]) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  MPI_Win window;
  _Atomic int *words[64] = {NULL};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(ranks <= 64 && ts_bells_open(&bells, MPI_COMM_WORLD));
  CHECK(bells.ranks_here == ranks);
  for (int other = 0; other < ranks; other++) CHECK(ts_bells_reach(&bells, other));
  silence();
  own_thread();
  with_words(&window, words);
  pass_on(words);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  ts_bells_close(&bells);
  for (int other = 0; other < ranks; other++) CHECK(!ts_bells_reach(&bells, other));
  own_thread();
  if (rank == 0) printf("bells on %d ranks: ok\n", ranks);
  return MPI_Finalize();
}

/* Times MPI_Allreduce of floats: the peer of a cluster's all_reduce. Prints "BYTES MICROSECONDS" of the median of
 * rounds for each size given; a round is the mean of some calls.
 *
 *   mpirun -n 4 ... build/bench/peer_mpi 4 1048576 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 9

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double round_of(const float *in, float *out, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < calls; i++) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / calls;
}

static void time_size(int rank, size_t bytes) {
  int count = (int)(bytes / sizeof(float));
  float *in = calloc((size_t)count, sizeof(float)), *out = calloc((size_t)count, sizeof(float));
  if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 1);
  int calls = bytes < 65536 ? 1000 : 5;
  double times[ROUNDS];
  (void)round_of(in, out, count, calls);
  for (int i = 0; i < ROUNDS; i++) times[i] = round_of(in, out, count, calls);
  qsort(times, ROUNDS, sizeof times[0], by_value);
  if (rank == 0) printf("%zu %.3f\n", bytes, times[ROUNDS / 2] * 1e6);
  free(in);
  free(out);
}

int main(int argc, char **argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; i++) time_size(rank, strtoul(argv[i], NULL, 10));
  MPI_Finalize();
  return 0;
}

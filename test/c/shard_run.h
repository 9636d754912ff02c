/* Running a program with a mesh: whole, and as its partitions, for differential tests. Thread-safe. */
#ifndef TS_TEST_SHARD_RUN_H
#define TS_TEST_SHARD_RUN_H

#include "ir/graph.h"
#include "random_internal.h"

typedef struct tensors {
  ts_buffer **data;
  size_t count;
} tensors;

ts_status tensors_make(size_t count, tensors *out); /* all NULL */
void tensors_release(tensors *t);
/* The parts of all arguments: first of partition 0, then of partition 1, and so on. */
ts_status tensors_cut(const ts_graph *g, const tensors *args, tensors *out);

/* Each axis of the mesh cuts a dim that it divides, or none. */
void random_sharding(rng *r, const ts_mesh *mesh, const ts_shape *shape, ts_sharding *out);
/* Gives `percent` of the arguments, or results, a random sharding. */
ts_status random_shardings(rng *r, ts_graph *graph, ts_root_side side, int percent);

/* Of each three random programs one has integers only: nothing in it depends on the order of a reduction. One is mostly
 * sums of floats. Its arguments should be plain numbers: sums with infinities have no bounds. */
bool random_has_sums(uint64_t seed);
/* A random program on one of these meshes, with random shardings; of the options `steps` and `max_elements` count. */
ts_status random_sharded_graph(uint64_t seed, const ts_random_options *size, const ts_mesh *meshes, size_t count,
                               ts_graph **out);

/* By the interpreter; `out` is the caller's to release, also after an error. */
ts_status run_whole(const ts_graph *graph, const tensors *args, tensors *out);
/* Cuts the arguments, runs all partitions in step, joins the results. */
ts_status run_partitions(const ts_graph *partitioned, const tensors *args, tensors *out);

#endif

/* Cuts tensors into parts and joins them. */
#include "shard/shard.h"

#include <string.h>

/* A part as rows that are contiguous in the part and in the whole. */
typedef struct rows {
  int32_t rank; /* of the dims outside of a row */
  size_t bytes; /* of a row */
  int64_t count;
} rows;

/* A row ends at the last dim that is cut: all later dims are whole. */
static rows find_rows(const ts_shape *whole, const ts_buffer *part) {
  rows r = {.rank = part->shape.rank, .bytes = ts_dtype_size(part->dtype), .count = 1};
  bool contiguous = true;
  while (r.rank > 0 && contiguous) {
    r.rank--;
    r.bytes *= (size_t)part->shape.dims[r.rank];
    contiguous = part->shape.dims[r.rank] == whole->dims[r.rank];
  }
  for (int32_t d = 0; d < r.rank; d++) r.count *= part->shape.dims[d];
  return r;
}

void ts_shard_copy_part(const ts_mesh *mesh, const ts_sharding *sharding, ts_buffer *whole, ts_buffer *part,
                        int32_t partition, ts_part_copy way) {
  int64_t strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0}, first = 0;
  ts_shape start;
  size_t size = ts_dtype_size(part->dtype);
  rows r = find_rows(&whole->shape, part);
  if (r.bytes == 0) return;
  ts_sharding_start(mesh, sharding, &part->shape, partition, &start);
  ts_shape_strides(&whole->shape, strides);
  for (int32_t d = 0; d < start.rank; d++) first += start.dims[d] * strides[d];
  for (int64_t i = 0; i < r.count; i++) {
    int64_t at = first;
    for (int32_t d = 0; d < r.rank; d++) at += index[d] * strides[d];
    char *in_whole = (char *)whole->data + (size_t)at * size, *in_part = (char *)part->data + (size_t)i * r.bytes;
    memcpy(way == TS_PART_OUT ? in_part : in_whole, way == TS_PART_OUT ? in_whole : in_part, r.bytes);
    for (int32_t d = r.rank - 1; d >= 0 && ++index[d] == part->shape.dims[d]; d--) index[d] = 0;
  }
}

int32_t ts_shard_first_like(const ts_mesh *mesh, const ts_sharding *sharding, int32_t partition) {
  int32_t at[TS_MAX_MESH_AXES], first = 0;
  bool cuts[TS_MAX_MESH_AXES] = {false};
  for (int32_t i = 0; i < sharding->count; i++) cuts[sharding->cuts[i].axis] = true;
  ts_mesh_coordinates(mesh, partition, at);
  for (int32_t axis = 0; axis < mesh->rank; axis++) first = first * mesh->sizes[axis] + (cuts[axis] ? at[axis] : 0);
  return first;
}

ts_status ts_shard_cut(const ts_mesh *mesh, const ts_sharding *sharding, const ts_buffer *whole, int32_t partition,
                       ts_pool *pool, ts_buffer **out) {
  ts_shape part;
  ts_sharding_part(mesh, sharding, &whole->shape, &part);
  TS_TRY(ts_buffer_create(pool, whole->dtype, &part, out));
  ts_shard_copy_part(mesh, sharding, (ts_buffer *)whole, *out, partition, TS_PART_OUT);
  return TS_SUCCESS;
}

ts_status ts_shard_join(const ts_mesh *mesh, const ts_sharding *sharding, ts_buffer *const *parts, ts_pool *pool,
                        ts_buffer **out) {
  ts_shape whole;
  ts_sharding_whole(mesh, sharding, &parts[0]->shape, &whole);
  TS_TRY(ts_buffer_create(pool, parts[0]->dtype, &whole, out));
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++)
    if (ts_shard_first_like(mesh, sharding, p) == p) ts_shard_copy_part(mesh, sharding, *out, parts[p], p, TS_PART_IN);
  return TS_SUCCESS;
}

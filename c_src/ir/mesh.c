#include "ir/mesh.h"

#include <stdio.h>
#include <string.h>

ts_status ts_mesh_set_name(char out[TS_MESH_NAME], const char *name, size_t length) {
  if (length == 0 || length >= TS_MESH_NAME || memchr(name, 0, length))
    return ts_error(TS_INVALID_ARGUMENT, "a name of a mesh or axis has %zu bytes, expected 1 to %d, none of them 0",
                    length, TS_MESH_NAME - 1);
  memcpy(out, name, length);
  out[length] = '\0';
  return TS_SUCCESS;
}

const char *ts_mesh_axis_name(const ts_mesh *mesh, int32_t axis, char room[TS_MESH_NAME]) {
  if (*mesh->axis_names[axis]) return mesh->axis_names[axis];
  snprintf(room, TS_MESH_NAME, "axis_%d", axis);
  return room;
}

static ts_status check_names(const ts_mesh *mesh) {
  for (int32_t i = 1; i < mesh->rank; i++) {
    if (!*mesh->axis_names[i] != !*mesh->axis_names[0])
      return ts_error(TS_INVALID_ARGUMENT, "some axes of the mesh have names, expected all or none");
    for (int32_t k = 0; k < i && *mesh->axis_names[i]; k++)
      if (strcmp(mesh->axis_names[i], mesh->axis_names[k]) == 0)
        return ts_error(TS_INVALID_ARGUMENT, "two axes of the mesh have the name '%s'", mesh->axis_names[i]);
  }
  return TS_SUCCESS;
}

ts_status ts_mesh_check(const ts_mesh *mesh) {
  int64_t devices = 1;
  if (mesh->rank < 0 || mesh->rank > TS_MAX_MESH_AXES)
    return ts_error(TS_INVALID_ARGUMENT, "the mesh has %d axes, expected at most %d", mesh->rank, TS_MAX_MESH_AXES);
  for (int32_t i = 0; i < mesh->rank; i++) {
    if (mesh->sizes[i] < 1)
      return ts_error(TS_INVALID_ARGUMENT, "axis %d of the mesh has size %d, expected at least 1", i, mesh->sizes[i]);
    devices *= mesh->sizes[i];
    if (devices > TS_MAX_PARTITIONS)
      return ts_error(TS_INVALID_ARGUMENT, "the mesh has more than %d devices", TS_MAX_PARTITIONS);
  }
  return check_names(mesh);
}

int32_t ts_mesh_partitions(const ts_mesh *mesh) {
  int32_t count = 1;
  for (int32_t i = 0; i < mesh->rank; i++) count *= mesh->sizes[i];
  return count;
}

void ts_mesh_coordinates(const ts_mesh *mesh, int32_t partition, int32_t out[TS_MAX_MESH_AXES]) {
  for (int32_t i = mesh->rank - 1; i >= 0; i--) {
    out[i] = partition % mesh->sizes[i];
    partition /= mesh->sizes[i];
  }
}

/* ---- groups ---- */

int32_t ts_mesh_group_size(const ts_mesh *mesh, const ts_dims *axes) {
  int32_t count = 1;
  for (int32_t i = 0; i < axes->rank; i++) count *= mesh->sizes[axes->dims[i]];
  return count;
}

static int32_t partition_at(const ts_mesh *mesh, const int32_t *coordinates) {
  int32_t partition = 0;
  for (int32_t i = 0; i < mesh->rank; i++) partition = partition * mesh->sizes[i] + coordinates[i];
  return partition;
}

int32_t ts_mesh_member(const ts_mesh *mesh, const ts_dims *axes, int32_t partition, int32_t index) {
  int32_t at[TS_MAX_MESH_AXES];
  ts_mesh_coordinates(mesh, partition, at);
  for (int32_t i = axes->rank - 1; i >= 0; i--) {
    at[axes->dims[i]] = index % mesh->sizes[axes->dims[i]];
    index /= mesh->sizes[axes->dims[i]];
  }
  return partition_at(mesh, at);
}

int32_t ts_mesh_index(const ts_mesh *mesh, const ts_dims *axes, int32_t partition) {
  int32_t at[TS_MAX_MESH_AXES], index = 0;
  ts_mesh_coordinates(mesh, partition, at);
  for (int32_t i = 0; i < axes->rank; i++) index = index * mesh->sizes[axes->dims[i]] + at[axes->dims[i]];
  return index;
}

/* ---- shardings ---- */

int32_t ts_sharding_axes(const ts_sharding *sharding, int32_t dim, uint8_t out[TS_MAX_MESH_AXES]) {
  int32_t count = 0;
  for (int32_t i = 0; i < sharding->count; i++)
    if (sharding->cuts[i].dim == dim) out[count++] = sharding->cuts[i].axis;
  return count;
}

void ts_sharding_add(ts_sharding *sharding, ts_cut cut) {
  int32_t at = sharding->count++;
  for (; at > 0 && sharding->cuts[at - 1].dim > cut.dim; at--) sharding->cuts[at] = sharding->cuts[at - 1];
  sharding->cuts[at] = cut;
}

static ts_status check_cut(const ts_mesh *mesh, int64_t axis, int64_t dim, const ts_shape *shape) {
  if (axis < 0 || axis >= mesh->rank)
    return ts_error(TS_INVALID_ARGUMENT, "a sharding has mesh axis %lld, expected one of [0, %d)", (long long)axis,
                    mesh->rank);
  if (dim < 0 || dim >= shape->rank)
    return ts_error(TS_INVALID_ARGUMENT, "a sharding cuts dim %lld, expected one of [0, %d)", (long long)dim,
                    shape->rank);
  return TS_SUCCESS;
}

static ts_status check_parts(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *shape) {
  for (int32_t d = 0; d < shape->rank; d++) {
    int64_t parts = 1;
    for (int32_t i = 0; i < sharding->count; i++)
      if (sharding->cuts[i].dim == d) parts *= mesh->sizes[sharding->cuts[i].axis];
    if (shape->dims[d] % parts != 0)
      return ts_error(TS_INVALID_ARGUMENT, "dim %d of size %lld is cut into %lld parts, expected a divisor", d,
                      (long long)shape->dims[d], (long long)parts);
  }
  return TS_SUCCESS;
}

ts_status ts_sharding_make(const ts_mesh *mesh, const ts_dims *axes, const ts_dims *dims, const ts_shape *shape,
                           ts_sharding *out) {
  unsigned seen = 0;
  out->count = 0;
  if (axes->rank != dims->rank)
    return ts_error(TS_INVALID_ARGUMENT, "a sharding has %d axes and %d dims, expected as many", axes->rank,
                    dims->rank);
  for (int32_t i = 0; i < axes->rank; i++) {
    TS_TRY(check_cut(mesh, axes->dims[i], dims->dims[i], shape));
    if (seen >> axes->dims[i] & 1)
      return ts_error(TS_INVALID_ARGUMENT, "a sharding has mesh axis %lld twice, expected distinct axes",
                      (long long)axes->dims[i]);
    seen |= 1u << axes->dims[i];
    ts_sharding_add(out, (ts_cut){(uint8_t)axes->dims[i], (uint8_t)dims->dims[i]});
  }
  return check_parts(mesh, out, shape);
}

ts_status ts_sharding_check(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *shape) {
  ts_dims axes = {.rank = sharding->count}, dims = {.rank = sharding->count};
  ts_sharding canonical;
  if (sharding->count < 0 || sharding->count > TS_MAX_MESH_AXES)
    return ts_error(TS_INVALID_ARGUMENT, "a sharding has %d cuts", sharding->count);
  for (int32_t i = 0; i < sharding->count; i++) {
    axes.dims[i] = sharding->cuts[i].axis;
    dims.dims[i] = sharding->cuts[i].dim;
  }
  TS_TRY(ts_sharding_make(mesh, &axes, &dims, shape, &canonical));
  return ts_sharding_equal(&canonical, sharding) ? TS_SUCCESS
                                                 : ts_error(TS_INTERNAL, "a sharding's cuts are not ordered by dim");
}

bool ts_sharding_equal(const ts_sharding *a, const ts_sharding *b) {
  if (a->count != b->count) return false;
  for (int32_t i = 0; i < a->count; i++)
    if (a->cuts[i].axis != b->cuts[i].axis || a->cuts[i].dim != b->cuts[i].dim) return false;
  return true;
}

void ts_sharding_part(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *shape, ts_shape *out) {
  ts_shape_copy(out, shape);
  for (int32_t i = 0; i < sharding->count; i++) out->dims[sharding->cuts[i].dim] /= mesh->sizes[sharding->cuts[i].axis];
}

void ts_sharding_whole(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *part, ts_shape *out) {
  ts_shape_copy(out, part);
  for (int32_t i = 0; i < sharding->count; i++) {
    int64_t *dim = &out->dims[sharding->cuts[i].dim], size = mesh->sizes[sharding->cuts[i].axis];
    if (__builtin_mul_overflow(*dim, size, dim)) *dim = INT64_MAX;
  }
}

void ts_sharding_start(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *part, int32_t partition,
                       ts_shape *out) {
  int32_t at[TS_MAX_MESH_AXES];
  ts_mesh_coordinates(mesh, partition, at);
  out->rank = part->rank;
  for (int32_t d = 0; d < part->rank; d++) out->dims[d] = 0;
  for (int32_t i = 0; i < sharding->count; i++) {
    ts_cut cut = sharding->cuts[i];
    out->dims[cut.dim] = out->dims[cut.dim] * mesh->sizes[cut.axis] + at[cut.axis];
  }
  for (int32_t d = 0; d < part->rank; d++) out->dims[d] *= part->dims[d];
}

void ts_sharding_print(const ts_sharding *sharding, int32_t rank, ts_text *out) {
  ts_text_append(out, "[");
  for (int32_t d = 0; d < rank; d++) {
    const char *before = "";
    ts_text_append(out, d ? ",[" : "[");
    for (int32_t i = 0; i < sharding->count; i++) {
      if (sharding->cuts[i].dim != d) continue;
      ts_text_format(out, "%s%d", before, sharding->cuts[i].axis);
      before = ",";
    }
    ts_text_append(out, "]");
  }
  ts_text_append(out, "]");
}

/* Meshes of devices, and which mesh axes cut which dims of a tensor. Pure values, thread-safe.
 *
 * A mesh has axes with sizes; a partition is a point of it, and partitions are numbered in row-major order. A sharding
 * is a list of cuts: mesh axis `axis` cuts dim `dim` into as many equal parts as the axis is long. A dim that several
 * axes cut is cut by the first of them, and each part by the next. Over the axes that it does not name a tensor is
 * replicated. */
#ifndef TS_IR_MESH_H
#define TS_IR_MESH_H

#include "base/text.h"
#include "tensor/shape.h"

#define TS_MAX_MESH_AXES 8
#define TS_MAX_PARTITIONS 32768 /* of a mesh: executables number them in 16 bits */
#define TS_MESH_NAME 64         /* bytes of a name, with the end */

typedef struct ts_mesh {
  int32_t rank; /* the number of axes; 0: there is no mesh */
  int32_t sizes[TS_MAX_MESH_AXES];
  bool partitioned; /* values are parts; the root's shardings define how parts make up the whole */
  bool coordinates; /* the root's last parameter is s32[rank], a partition's coordinates: a run provides it */
  char name[TS_MESH_NAME];
  char axis_names[TS_MAX_MESH_AXES][TS_MESH_NAME]; /* of all axes, or empty; they change no bits */
} ts_mesh;

typedef struct ts_cut {
  uint8_t axis, dim;
} ts_cut;

/* In canonical form the cuts are ordered by dim. */
typedef struct ts_sharding {
  int32_t count;
  ts_cut cuts[TS_MAX_MESH_AXES];
} ts_sharding;

/* Checks the number of axes and of devices, and that the names of axes differ. */
ts_status ts_mesh_check(const ts_mesh *mesh);
/* Copies a name of 1 to TS_MESH_NAME - 1 nonzero bytes. */
ts_status ts_mesh_set_name(char out[TS_MESH_NAME], const char *name, size_t length);
/* The name of an axis: "axis_0" for the first one of a mesh without names. `room` is for that. */
const char *ts_mesh_axis_name(const ts_mesh *mesh, int32_t axis, char room[TS_MESH_NAME]);
static inline const char *ts_mesh_name(const ts_mesh *mesh) { return *mesh->name ? mesh->name : "mesh"; }
int32_t ts_mesh_partitions(const ts_mesh *mesh); /* 1 without a mesh */
/* The coordinates of a partition. */
void ts_mesh_coordinates(const ts_mesh *mesh, int32_t partition, int32_t out[TS_MAX_MESH_AXES]);

/* The number of devices that share all coordinates except the coordinates of `axes`. */
int32_t ts_mesh_group_size(const ts_mesh *mesh, const ts_dims *axes);
/* The partition that is a member of a partition's group, by its index: row-major over `axes` in their order. */
int32_t ts_mesh_member(const ts_mesh *mesh, const ts_dims *axes, int32_t partition, int32_t index);
/* The index of a partition in its group. */
int32_t ts_mesh_index(const ts_mesh *mesh, const ts_dims *axes, int32_t partition);

/* The sharding of two lists of one length: axis axes[i] cuts dim dims[i]. Checks that the axes are distinct axes of the
 * mesh and that they divide the shape. */
ts_status ts_sharding_make(const ts_mesh *mesh, const ts_dims *axes, const ts_dims *dims, const ts_shape *shape,
                           ts_sharding *out);
ts_status ts_sharding_check(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *shape);
/* The axes that cut a dim, in order; returns how many. */
int32_t ts_sharding_axes(const ts_sharding *sharding, int32_t dim, uint8_t out[TS_MAX_MESH_AXES]);
/* Inserts a cut after all cuts of its dim and of earlier dims. */
void ts_sharding_add(ts_sharding *sharding, ts_cut cut);
bool ts_sharding_equal(const ts_sharding *a, const ts_sharding *b);
/* The shape of one part. */
void ts_sharding_part(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *shape, ts_shape *out);
/* The whole shape, if `part` is the shape of one part; dims may overflow, which ts_shape_check finds. */
void ts_sharding_whole(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *part, ts_shape *out);
/* Where a partition's part begins. */
void ts_sharding_start(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *part, int32_t partition,
                       ts_shape *out);
/* "[[0],[],[1,2]]": the axes that cut each dim. */
void ts_sharding_print(const ts_sharding *sharding, int32_t rank, ts_text *out);

#endif

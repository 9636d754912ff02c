/* Programs on a mesh, and parts of tensors, as NIFs. A mesh is the list of its axes' sizes; a sharding is a list of
 * {Axis, Dim}, both numbers from 0. tessera_mesh.erl makes these from users' meshes and shardings. */
#ifndef TS_NIF_MESH_H
#define TS_NIF_MESH_H

#include "ir/graph.h"
#include "nif/nif_util.h"

/* A list with the sharding of each argument or result of a program, or undefined. */
ERL_NIF_TERM ts_nif_root_shardings(ErlNifEnv *env, const ts_graph *graph, ts_root_side side);

ERL_NIF_TERM ts_nif_set_mesh(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_set_shardings(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_stablehlo_shardings(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_partition(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_cut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_join(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_interpret(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif

#include "nif/nif_local.h"

#include "nif/nif_graph_internal.h"
#include "nif/nif_mesh.h"
#include "shard/shard.h"

/* ---- the mesh ---- */

static ts_status local_view(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  (void)env, (void)args, (void)out;
  return ts_tracer_set_local(&b->tracer, &b->tracer.graph->mesh);
}

ERL_NIF_TERM ts_nif_local_view(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* local_view(Builder) -> ok: the traced program is the program of one partition of its mesh; the mesh must be set */
  (void)argc;
  return ts_nif_with_builder(env, argv, local_view);
}

/* For parts: no cut need divide them. */
static ts_status local_sharding(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_dims axes, dims;
  ts_shape any = {.rank = TS_MAX_RANK};
  ts_sharding sharding;
  int64_t index;
  (void)out;
  TS_TRY(ts_nif_get_int(env, args[1], "an index", &index));
  TS_TRY(ts_nif_get_dims(env, args[2], &axes));
  TS_TRY(ts_nif_get_dims(env, args[3], &dims));
  if (index < 0 || index > UINT16_MAX)
    return ts_error(TS_INVALID_ARGUMENT, "no argument or result %lld", (long long)index);
  TS_TRY(ts_sharding_make(&b->tracer.graph->mesh, &axes, &dims, &any, &sharding));
  ts_root_side side = enif_is_identical(args[0], ts_atom.parameter_) ? TS_PARAMS : TS_RESULTS;
  return ts_graph_set_sharding(b->tracer.graph, side, (size_t)index, &sharding);
}

ERL_NIF_TERM ts_nif_local_sharding(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* local_sharding(Builder, parameter | result, Index, [Axis], [Dim]) -> ok: mesh axis i cuts dim i of the whole tensor
   * of the argument or result */
  (void)argc;
  return ts_nif_with_builder(env, argv, local_sharding);
}

static ts_status coordinates(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id id;
  (void)args;
  TS_TRY(ts_tracer_coordinates(&b->tracer, &id));
  *out = ts_nif_value_term(env, b, id);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_coordinates(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* coordinates(Builder) -> Traced: s32[axes] */
  (void)argc;
  return ts_nif_with_builder(env, argv, coordinates);
}

/* ---- axes over which values vary ---- */

static ts_status varying(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ERL_NIF_TERM head, tail = args[0];
  ts_value_id id;
  ts_axis_set axes;
  *out = enif_make_list(env, 0);
  while (enif_get_list_cell(env, tail, &head, &tail)) {
    TS_TRY(ts_nif_value_id(env, b, head, &id));
    TS_TRY(ts_tracer_varying(&b->tracer, id, &axes));
    *out = enif_make_list_cell(env, enif_make_uint(env, axes), *out);
  }
  if (!enif_make_reverse_list(env, *out, out)) return ts_error_no_memory();
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_varying(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* varying(Builder, [Traced]) -> [Axes :: non_neg_integer()]: bit i for axis i; the values may be of any region */
  (void)argc;
  return ts_nif_with_builder(env, argv, varying);
}

static ts_status vary(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  int64_t axes;
  ts_value_id id;
  (void)out;
  TS_TRY(ts_nif_value_id(env, b, args[0], &id));
  TS_TRY(ts_nif_get_int(env, args[1], "a set of axes", &axes));
  if (axes < 0 || axes >> b->tracer.graph->mesh.rank) return ts_nif_expected(env, "a set of axes of the mesh", args[1]);
  return ts_tracer_vary(&b->tracer, id, (ts_axis_set)axes);
}

ERL_NIF_TERM ts_nif_vary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* vary(Builder, Traced, Axes) -> ok: from now on the value also counts as varying over these axes */
  (void)argc;
  return ts_nif_with_builder(env, argv, vary);
}

static ts_status has_collective(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  unsigned id;
  if (!enif_get_uint(env, args[0], &id) || id >= b->tracer.graph->regions.count)
    return ts_nif_expected(env, "a region of the program", args[0]);
  *out = ts_graph_region(b->tracer.graph, id)->has_effect ? ts_atom.true_ : ts_atom.false_;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_has_collective(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* has_collective(Builder, Region) -> boolean(): or another op that must happen in order */
  (void)argc;
  return ts_nif_with_builder(env, argv, has_collective);
}

/* ---- after tracing ---- */

/* Takes over the program. */
static ts_status describe(ErlNifEnv *env, ts_graph *graph, ERL_NIF_TERM *out) {
  ERL_NIF_TERM builder, cuts = ts_nif_root_shardings(env, graph, TS_RESULTS);
  ts_text report = {0};
  ts_status status = ts_shard_print_report(graph, NULL, &report);
  if (status)
    ts_graph_destroy(graph);
  else
    status = ts_nif_builder_of(env, graph, &builder);
  if (!status) *out = enif_make_tuple3(env, builder, cuts, ts_nif_binary(env, report.data, report.length));
  ts_text_deinit(&report);
  return status;
}

ERL_NIF_TERM ts_nif_combine(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* combine(Builder) -> {Builder, [Cuts], Report :: binary()}: the finished program with fewer messages and without
   * dead ops, how its results are cut, and what partitions do together */
  ts_nif_builder *b;
  const ts_graph *graph;
  ts_graph *combined;
  ERL_NIF_TERM term;
  (void)argc;
  if (!ts_nif_builder_get(env, argv[0], &b)) return ts_nif_error(env, ts_nif_expected(env, "a program", argv[0]));
  TS_NIF_TRY(env, ts_nif_builder_graph(b, &graph));
  TS_NIF_TRY(env, ts_shard_combine(graph, &combined));
  TS_NIF_TRY(env, describe(env, combined, &term));
  return term;
}

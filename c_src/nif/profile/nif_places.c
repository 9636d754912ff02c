#include "nif/profile/nif_places.h"

#include "exec/places.h"
#include "nif/nif_executable.h"
#include "nif/nif_graph_internal.h"

ERL_NIF_TERM ts_nif_lines(ErlNifEnv *env, const ts_line *lines, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;)
    list = enif_make_list_cell(env, ts_nif_binary(env, lines[i].data, lines[i].size), list);
  return list;
}

/* ---- of a program that is traced */

static ts_status record(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_graph *graph = b->tracer.graph;
  (void)env, (void)args, (void)out;
  return graph->places ? TS_SUCCESS : ts_places_create(&graph->places);
}

ERL_NIF_TERM ts_nif_places_record(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* places_record(Builder) -> ok: op/4 returns {placed, Result} from now on, to be followed by places_set/2 */
  (void)argc;
  return ts_nif_with_builder(env, argv, record);
}

static ts_status get_place(ErlNifEnv *env, ts_places *places, ERL_NIF_TERM term, ts_place *out) {
  ErlNifBinary line;
  if (enif_get_uint(env, term, out)) return TS_SUCCESS;
  if (!enif_inspect_binary(env, term, &line)) return ts_nif_expected(env, "a line or a place", term);
  return ts_places_add(places, line.data, line.size, out);
}

static ts_status set(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_place place;
  ts_graph *graph = b->tracer.graph;
  (void)out;
  if (!graph->places) return TS_SUCCESS;
  TS_TRY(get_place(env, graph->places, args[0], &place));
  for (; b->placed < graph->ops.count; b->placed++)
    if (!graph->ops.data[b->placed].place) graph->ops.data[b->placed].place = place;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_places_set(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* places_set(Builder, Line :: binary() | Place) -> ok: the place of the ops that were added since the last call,
   * except for copies of ops, which have one. Place 0 is none. */
  (void)argc;
  return ts_nif_with_builder(env, argv, set);
}

static ts_status of(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id value;
  const ts_graph *graph = b->tracer.graph;
  TS_TRY(ts_nif_value_id(env, b, args[0], &value));
  ts_op_id op = ts_graph_value(graph, value)->op;
  *out = enif_make_uint(env, op == TS_NO_ID ? 0 : ts_graph_op(graph, op)->place);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_places_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* places_of(Builder, Traced) -> Place: of the op that makes the value; 0 if there is none */
  (void)argc;
  return ts_nif_with_builder(env, argv, of);
}

/* ---- of a compiled program */

/* NULL for a program of another platform, which tells no steps. */
static ts_status get_host_program(ErlNifEnv *env, ERL_NIF_TERM term, ts_executable **out) {
  ts_loaded *loaded;
  TS_TRY(ts_nif_executable_get(env, term, &loaded));
  *out = ts_host_program(loaded);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_places_known(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* places_known(Executable) -> boolean(): also true where there are no steps that could have a place */
  ts_executable *exe;
  (void)argc;
  TS_NIF_TRY(env, get_host_program(env, argv[0], &exe));
  return !exe || ts_executable_has_places(exe) ? ts_atom.true_ : ts_atom.false_;
}

ERL_NIF_TERM ts_nif_places_lend(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* places_lend(Executable, From) -> boolean(): gives the steps the places of the same program, compiled again; false
   * if it is not the same */
  ts_executable *exe, *from;
  bool taken = false;
  (void)argc;
  TS_NIF_TRY(env, get_host_program(env, argv[0], &exe));
  TS_NIF_TRY(env, get_host_program(env, argv[1], &from));
  if (exe && from) TS_NIF_TRY(env, ts_executable_take_places(exe, from, &taken));
  return taken ? ts_atom.true_ : ts_atom.false_;
}

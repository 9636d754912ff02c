/* Finished programs as text, and from text: Tessera's own and StableHLO's. */
#include "base/map.h"
#include "ir/stablehlo/stablehlo.h"
#include "nif/nif_graph_internal.h"
#include "stablehlo/read.h"

/* ---- to text ---- */

static ts_status get_finished(ErlNifEnv *env, ERL_NIF_TERM term, const ts_graph **out) {
  ts_nif_builder *b;
  TS_TRY(ts_nif_builder_expect(env, term, &b));
  return ts_nif_builder_graph(b, out);
}

static ERL_NIF_TERM print_finished(ErlNifEnv *env, ERL_NIF_TERM term, ts_status (*print)(const ts_graph *, ts_text *)) {
  const ts_graph *graph;
  ts_text text = {0};
  TS_NIF_TRY(env, get_finished(env, term, &graph));
  return ts_nif_text(env, print(graph, &text), &text);
}

ERL_NIF_TERM ts_nif_graph_text(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* graph_text(Builder) -> binary(): of a finished program */
  (void)argc;
  return print_finished(env, argv[0], ts_graph_print);
}

/* Ops whose text is printed in the time that a hop to a dirty scheduler may take. */
enum { SHORT_TEXT = 300 };

ERL_NIF_TERM ts_nif_described(ErlNifEnv *env, const ts_text *text) {
  ts_hash128 hash = ts_hash(text->data, text->length);
  return enif_make_tuple2(env, ts_nif_binary(env, text->data, text->length),
                          ts_nif_binary(env, (const char *)&hash, sizeof(hash)));
}

static ERL_NIF_TERM describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  const ts_graph *graph;
  ts_text text = {0};
  (void)argc;
  TS_NIF_TRY(env, get_finished(env, argv[0], &graph));
  ts_status status = ts_graph_print(graph, &text);
  if (status) {
    ts_text_deinit(&text);
    return ts_nif_error(env, status);
  }
  ERL_NIF_TERM term = ts_nif_described(env, &text);
  ts_text_deinit(&text);
  return term;
}

ERL_NIF_TERM ts_nif_describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* describe(Builder) -> {Text :: binary(), Hash :: <<_:128>>}: the text of a finished program and its hash. A long
   * program is printed on a dirty scheduler. */
  const ts_graph *graph;
  TS_NIF_TRY(env, get_finished(env, argv[0], &graph));
  if (graph->ops.count <= SHORT_TEXT) return describe(env, argc, argv);
  return enif_schedule_nif(env, "describe", ERL_NIF_DIRTY_JOB_CPU_BOUND, describe, argc, argv);
}

ERL_NIF_TERM ts_nif_graph_stablehlo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* graph_stablehlo(Builder) -> binary(): the same as a module of StableHLO */
  (void)argc;
  return print_finished(env, argv[0], ts_graph_print_stablehlo);
}

/* ---- from text ---- */

static ts_status read_for(ErlNifEnv *env, const ErlNifBinary *text, ERL_NIF_TERM list, ts_graph **out) {
  ts_nif_types types;
  TS_TRY(ts_nif_types_get(env, list, &types));
  const ts_types given = ts_nif_types_of(&types);
  ts_status status = ts_stablehlo_read_for((const char *)text->data, text->size, &given, out);
  TS_VEC_FREE(&types);
  return status;
}

ERL_NIF_TERM ts_nif_read_stablehlo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* read_stablehlo(Text :: binary()) -> Builder | symbolic: the program of a module of StableHLO; `symbolic` if sizes
   * of its arguments are symbols
   * read_stablehlo(Text, [{Type, Shape}]) -> Builder: the program for arguments of these types
   * read_stablehlo(Text, Partitions) -> Builder | symbolic: the program on whole tensors of a module for several
   * partitions, with its mesh and the shardings of its values */
  ErlNifBinary text;
  ERL_NIF_TERM term;
  ErlNifSInt64 partitions;
  ts_graph *graph;
  if (!enif_inspect_binary(env, argv[0], &text)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  if (argc > 1 && enif_get_int64(env, argv[1], &partitions))
    TS_NIF_TRY(env, ts_stablehlo_read_whole((const char *)text.data, text.size, partitions, &graph));
  else if (argc > 1)
    TS_NIF_TRY(env, read_for(env, &text, argv[1], &graph));
  else
    TS_NIF_TRY(env, ts_stablehlo_read_for((const char *)text.data, text.size, NULL, &graph));
  if (!graph) return enif_make_atom(env, "symbolic");
  TS_NIF_TRY(env, ts_nif_builder_of(env, graph, &term));
  return term;
}

static ERL_NIF_TERM leaf_terms(ErlNifEnv *env, const ts_stablehlo_leaf *leaves, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) {
    const ts_stablehlo_leaf *leaf = &leaves[i];
    const ERL_NIF_TERM name = leaf->name ? ts_nif_binary(env, leaf->name, leaf->name_length) : ts_atom.undefined_;
    const ERL_NIF_TERM term = enif_make_tuple3(env, name, ts_nif_dtype(leaf->dtype), ts_nif_shape(env, leaf->shape));
    list = enif_make_list_cell(env, term, list);
  }
  return list;
}

ERL_NIF_TERM ts_nif_stablehlo_leaves(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* stablehlo_leaves(Text :: binary()) -> {Arguments, Results}, each [{Name :: binary() | undefined, Type, Shape}]: a
   * size that is a symbol is -1 */
  ErlNifBinary text;
  ts_stablehlo_leaves leaves;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &text)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  TS_NIF_TRY(env, ts_stablehlo_read_leaves((const char *)text.data, text.size, &leaves));
  const ERL_NIF_TERM term = enif_make_tuple2(env, leaf_terms(env, leaves.params, leaves.param_count),
                                             leaf_terms(env, leaves.results, leaves.result_count));
  ts_stablehlo_leaves_deinit(&leaves);
  return term;
}

ERL_NIF_TERM ts_nif_parse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* parse(Text :: binary()) -> Builder: a finished program from its text */
  ErlNifBinary text;
  ERL_NIF_TERM term;
  ts_graph *graph;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &text)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  TS_NIF_TRY(env, ts_graph_parse((const char *)text.data, text.size, &graph));
  TS_NIF_TRY(env, ts_nif_builder_of(env, graph, &term));
  return term;
}

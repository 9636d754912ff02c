/* A program while it is traced (front/tracer.h), as a resource with a lock. In Erlang its values are
 * {tessera, [Builder | Id], Type, Shape}. Thread-safe. */
#ifndef TS_NIF_GRAPH_H
#define TS_NIF_GRAPH_H

#include "front/tracer.h"
#include "nif/nif_attrs.h"
#include "nif/nif_tensor.h"

typedef struct ts_nif_builder ts_nif_builder;

bool ts_nif_builder_init(ErlNifEnv *env, ErlNifResourceFlags flags);
bool ts_nif_builder_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out);
/* The graph, after tracing has ended. It lives as long as the builder. */
ts_status ts_nif_builder_graph(ts_nif_builder *builder, const ts_graph **out);
/* Calls `edit` on the graph, whether tracing has ended or not, while no other call adds to it. */
ts_status ts_nif_builder_edit(ts_nif_builder *builder, ts_status (*edit)(ts_graph *graph, void *context),
                              void *context);
/* A builder that owns a finished graph; on failure the graph is destroyed. */
ts_status ts_nif_builder_of(ErlNifEnv *env, ts_graph *graph, ERL_NIF_TERM *out);
/* op/4 while tracing: adds the op to the current region. {placed, Result} where places are recorded. */
ERL_NIF_TERM ts_nif_builder_op(ErlNifEnv *env, ts_nif_builder *builder, ts_opcode code, const ERL_NIF_TERM argv[]);

ERL_NIF_TERM ts_nif_builder_new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_param(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_value(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_region_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_region_enter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_region_leave(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_region_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_callback(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_custom_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_control(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_inline_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_inline_region(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_ops(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* ---- nif_text.c ---- */
/* {Text, Hash}: the program as text, which can be parsed again, and its hash. */
ERL_NIF_TERM ts_nif_described(ErlNifEnv *env, const ts_text *text);
ERL_NIF_TERM ts_nif_graph_text(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_graph_stablehlo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_read_stablehlo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_stablehlo_leaves(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_parse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif

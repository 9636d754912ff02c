/* How the parameters and results of a program for several partitions are cut. A caller learns the cuts by an extension
 * of the interface: it needs them where it leaves the choice to the compiler. A message is an OpShardingProto. */
#include "plugin/plugin.h"

#include <string.h>

/* ---- messages */

static void write_list(ts_text *out, char tag, const int64_t *numbers, size_t count) {
  ts_text body = {0};
  for (size_t i = 0; i < count; i++) plugin_write_number(&body, (uint64_t)numbers[i]);
  ts_text_append_n(out, &tag, 1);
  plugin_write_number(out, body.length);
  if (body.length) ts_text_append_n(out, body.data, body.length);
  out->failed = out->failed || body.failed;
  ts_text_deinit(&body);
}

/* Where a partition's part is among all parts, in row-major order. */
static int64_t place_of(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *parts, int32_t partition) {
  int64_t place = 0;
  ts_shape start, one = {.rank = parts->rank};
  for (int32_t d = 0; d < parts->rank; d++) one.dims[d] = 1;
  ts_sharding_start(mesh, sharding, &one, partition, &start);
  for (int32_t d = 0; d < parts->rank; d++) place = place * parts->dims[d] + start.dims[d];
  return place;
}

/* Partitions by their parts. Partitions that have the same part are neighbours, as if a last dim had an element for
 * each. */
static void list_partitions(const ts_mesh *mesh, const ts_sharding *sharding, const ts_shape *parts, int64_t same,
                            int64_t *out) {
  const int32_t count = ts_mesh_partitions(mesh);
  for (int32_t p = 0; p < count; p++) out[p] = -1;
  for (int32_t p = 0; p < count; p++) {
    int64_t at = place_of(mesh, sharding, parts, p) * same;
    while (out[at] >= 0) at++;
    out[at] = p;
  }
}

/* REPLICATED is 0, OTHER 3. */
static ts_status write_sharding(const ts_mesh *mesh, const ts_sharding *sharding, int32_t rank, ts_text *out) {
  ts_shape one = {.rank = rank}, parts;
  int64_t partitions[PLUGIN_MOST_DEVICES] = {0}, same = ts_mesh_partitions(mesh);
  for (int32_t d = 0; d < rank; d++) one.dims[d] = 1;
  ts_sharding_whole(mesh, sharding, &one, &parts);
  for (int32_t d = 0; d < rank; d++) same /= parts.dims[d];
  if (same == ts_mesh_partitions(mesh)) {
    ts_text_append_n(out, "\x08\x00", 2);
    return out->failed ? ts_error_no_memory() : TS_SUCCESS;
  }
  if (same > 1 && rank == TS_MAX_RANK) return ts_error(TS_UNIMPLEMENTED, "a value with too many dims is cut");
  list_partitions(mesh, sharding, &parts, same, partitions);
  if (same > 1) parts.dims[parts.rank++] = same;
  ts_text_append_n(out, "\x08\x03", 2);
  write_list(out, 0x1a, parts.dims, (size_t)parts.rank);
  write_list(out, 0x22, partitions, (size_t)ts_mesh_partitions(mesh));
  if (same > 1) ts_text_append_n(out, "\x30\x01", 2);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static ts_status write_value(const ts_graph *graph, ts_root_side side, size_t i, plugin_messages *out) {
  static const ts_sharding whole = {0};
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  const ts_sharding *given = ts_graph_sharding(graph, side, i);
  const size_t count = side == TS_PARAMS ? root->params.count : root->results.count;
  const ts_value_id *values = side == TS_PARAMS ? root->params.data : root->results.data;
  ts_text text = {0};
  ts_status status = write_sharding(&graph->mesh, given ? given : &whole,
                                    i < count ? ts_graph_value(graph, values[i])->shape->rank : 0, &text);
  out->sizes[i] = text.length;
  if (!status) status = ts_text_finish(&text, &out->messages[i]);
  ts_text_deinit(&text);
  return status;
}

/* Of no result at all a caller expects one message. */
ts_status plugin_shardings_write(const ts_graph *graph, ts_root_side side, size_t count, plugin_messages *out) {
  if (count == 0 && side == TS_RESULTS) count = 1;
  TS_TRY(TS_NEW_ARRAY(count + 1, &out->messages));
  out->count = count;
  TS_TRY(TS_NEW_ARRAY(count + 1, &out->sizes));
  for (size_t i = 0; i < count; i++) TS_TRY(write_value(graph, side, i, out));
  return TS_SUCCESS;
}

void plugin_messages_deinit(plugin_messages *messages) {
  for (size_t i = 0; i < messages->count; i++) ts_free(messages->messages[i]);
  ts_free(messages->messages);
  ts_free(messages->sizes);
  *messages = (plugin_messages){0};
}

/* ---- the extension */

static ts_status answer_cuts(pj_args *args, const plugin_messages *cuts) {
  args->shardings.count = cuts->count;
  args->shardings.messages = (const char *const *)cuts->messages;
  args->shardings.sizes = cuts->sizes;
  return TS_SUCCESS;
}

static ts_status of_parameters(pj_args *args) { return answer_cuts(args, &args->shardings.executable->code->cuts[0]); }

static ts_status of_results(pj_args *args) { return answer_cuts(args, &args->shardings.executable->code->cuts[1]); }

enum { LEAST = offsetof(pj_args, shardings.sizes) + sizeof(((pj_args *)0)->shardings.sizes) };

static pj_error *call_parameters(pj_args *args) {
  return plugin_answer(args, LEAST, "PJRT_Shardings_PJRT_Executable_ParameterShardings", of_parameters);
}

static pj_error *call_results(pj_args *args) {
  return plugin_answer(args, LEAST, "PJRT_Shardings_PJRT_Executable_OutputShardings", of_results);
}

const plugin_shardings_extension plugin_shardings = {.head = {.size = sizeof plugin_shardings, .kind = PJ_SHARDINGS},
                                                     .parameters = call_parameters,
                                                     .results = call_results};

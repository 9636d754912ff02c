#include "base/map.h"
#include "pjrt/split.h"

/* ---- programs and their types */

ts_status pj_code_new(pj_client *client, size_t params, size_t results, pj_code **out) {
  pj_code *code;
  ts_type *types;
  size_t count = params + results;
  TS_TRY(TS_NEW(&code));
  *code = (pj_code){.refs = 1, .client = client, .partitions = 1, .param_count = params, .result_count = results};
  ts_status status = TS_NEW_ARRAY(count + 1, &code->types);
  if (!status) status = TS_NEW_ARRAY(count + 1, &types);
  if (status) {
    ts_free(code->types);
    ts_free(code);
    return status;
  }
  for (size_t i = 0; i <= count; i++) code->types[i] = &types[i];
  *out = code;
  return TS_SUCCESS;
}

void pj_code_destroy(pj_code *code) {
  if (!code) return;
  pj_destroy(code->client->plugin, PJ_LOADED_DESTROY, code->loaded);
  pj_split_destroy(code->split);
  for (int32_t i = 0; code->coordinates && i < code->partitions; i++) pj_memory_release(code->coordinates[i]);
  ts_free(code->coordinates);
  ts_free(code->grid);
  ts_free((void *)(uintptr_t)code->types[0]);
  ts_free(code->types);
  ts_free(code->text);
  ts_free(code->saved.data);
  ts_free(code);
}

void pj_code_describe(pj_code *code, ts_program *out) {
  pj_client_retain(code->client);
  *out = (ts_program){.program = code,
                      .param_count = code->param_count,
                      .result_count = code->result_count,
                      .param_types = code->types,
                      .result_types = code->types + code->param_count,
                      .partitions = code->partitions,
                      .coordinates = code->coordinates != NULL,
                      .calls_back = code->split != NULL,
                      .cost_ns = INT64_MAX};
}

static void release_now(pj_job *job) {
  pj_code *code = (pj_code *)((char *)job - offsetof(pj_code, ending)), *again = code->again;
  pj_client *client = code->client;
  pj_code_destroy(code);
  pj_client_release(client);
  if (again) pj_release_program(again);
}

void pj_release_program(void *program) {
  pj_code *code = program;
  if (atomic_fetch_sub(&code->refs, 1) != 1) return;
  code->ending.body = release_now;
  pj_work(&code->ending);
}

/* ---- operations */

typedef struct compile_job {
  pj_job job;
  ts_status (*make)(const struct compile_job *c, pj_client *client, pj_code **out);
  pj_door *door;
  const ts_graph *graph;
  ts_precision precision;
  const ts_saved_program *saved;
  const pj_code *code;
  ts_program *out;
  ts_text *text;
  ts_done done;
} compile_job;

static void begin(compile_job given) {
  compile_job *c = NULL;
  ts_status status = TS_NEW(&c);
  if (status) {
    ts_done_call(given.done, status);
    return;
  }
  *c = given;
  pj_work(&c->job);
}

static void end(compile_job *c, ts_status status) {
  ts_done done = c->done;
  ts_free(c);
  ts_done_call(done, status);
}

/* Makes the program for the present client. */
static void make_now(pj_job *job) {
  compile_job *c = (compile_job *)job;
  pj_client *client;
  pj_code *code;
  ts_status status = pj_door_client(c->door, &client);
  if (!status) {
    status = c->make(c, client, &code);
    if (!status) pj_code_describe(code, c->out);
    pj_client_release(client);
  }
  end(c, status);
}

static ts_status compile_graph(const compile_job *c, pj_client *client, pj_code **out) {
  return pj_compile_now(client, c->graph, c->precision, out);
}

void pj_compile(void *door, const ts_graph *graph, const ts_program_options *options, ts_program *out, ts_done done) {
  *out = (ts_program){0};
  if (options->nonblocking)
    ts_done_call(done, TS_SUCCESS);
  else
    begin((compile_job){.job.body = make_now,
                        .make = compile_graph,
                        .door = door,
                        .graph = graph,
                        .precision = options->precision,
                        .out = out,
                        .done = done});
}

/* ---- saving and loading
 * A saved program: the head, counts, the identity of the client, the types, and the plugin's bytes. */

typedef struct head {
  char magic[8];
  uint64_t size, hash; /* of the rest of the file */
} head;

typedef struct counts {
  uint64_t identity, params, results;
} counts;

static const char magic[8] = "TSPJRT1";

static void append_types(const pj_code *code, ts_text *out) {
  for (size_t i = 0; i < code->param_count + code->result_count; i++) {
    const ts_type *type = code->types[i];
    uint8_t dtype = (uint8_t)type->dtype, rank = (uint8_t)type->shape.rank;
    ts_text_append_n(out, (const char *)&dtype, 1);
    ts_text_append_n(out, (const char *)&rank, 1);
    ts_text_append_n(out, (const char *)type->shape.dims, (size_t)rank * sizeof *type->shape.dims);
  }
}

static ts_status save(const pj_code *code, ts_text *out) {
  if (code->split) return ts_error(TS_UNIMPLEMENTED, "a program of a plugin that calls back is not saved");
  const counts n = {strlen(code->client->identity), code->param_count, code->result_count};
  size_t start = out->length;
  head h = {.size = 0};
  memcpy(h.magic, magic, sizeof magic);
  ts_text_append_n(out, (const char *)&h, sizeof h);
  ts_text_append_n(out, (const char *)&n, sizeof n);
  ts_text_append_n(out, code->client->identity, n.identity);
  append_types(code, out);
  TS_TRY(pj_code_append(code, out));
  if (out->failed) return ts_error_no_memory();
  h.size = out->length - start - sizeof h;
  h.hash = ts_hash64(out->data + start + sizeof h, h.size);
  memcpy(out->data + start, &h, sizeof h);
  return TS_SUCCESS;
}

ts_status pj_explain(const void *program, ts_text *out) {
  const pj_code *code = program;
  if (code->split)
    pj_split_explain(code->split, out);
  else
    ts_text_append(out, "The plugin runs the program as a whole.\n");
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static void save_now(pj_job *job) {
  compile_job *c = (compile_job *)job;
  end(c, save(c->code, c->text));
}

void pj_save(const void *program, ts_text *out, ts_done done) {
  begin((compile_job){.job.body = save_now, .code = program, .text = out, .done = done});
}

/* The unread rest. */
typedef struct rest {
  const char *at;
  size_t size;
} rest;

static bool take(rest *r, void *to, size_t size) {
  if (size > r->size) return false;
  memcpy(to, r->at, size);
  r->at += size;
  r->size -= size;
  return true;
}

static bool take_type(rest *r, ts_type *out) {
  uint8_t dtype, rank;
  ts_shape shape;
  if (!take(r, &dtype, 1) || !take(r, &rank, 1) || dtype >= TS_DTYPE_COUNT || rank > TS_MAX_RANK) return false;
  shape.rank = rank;
  if (!take(r, shape.dims, rank * sizeof *shape.dims)) return false;
  if (!ts_status_consume_ok(ts_shape_check(&shape, (ts_dtype)dtype))) return false;
  ts_type_set(out, (ts_dtype)dtype, &shape);
  return true;
}

static ts_status not_saved(void) {
  return ts_error(TS_INVALID_ARGUMENT, "these bytes are no saved program of the platform pjrt, or not all of one");
}

static ts_status load_code(pj_code *code, rest r) {
  for (size_t i = 0; i < code->param_count + code->result_count; i++)
    if (!take_type(&r, pj_code_type(code, i))) return not_saved();
  return pj_code_load(code, r.at, r.size);
}

static ts_status load(const compile_job *c, pj_client *client, pj_code **out) {
  rest r = {c->saved->bytes, c->saved->size};
  pj_code *code;
  counts n;
  head h;
  if (!take(&r, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic) != 0 || h.size != r.size ||
      h.hash != ts_hash64(r.at, r.size) || !take(&r, &n, sizeof n) || n.identity > r.size || n.params > r.size ||
      n.results > r.size)
    return not_saved();
  if (n.identity != strlen(client->identity) || memcmp(r.at, client->identity, n.identity) != 0)
    return ts_error(TS_INVALID_ARGUMENT, "the program was saved for %.*s, and the plugin is %s", (int)n.identity, r.at,
                    client->identity);
  r.at += n.identity;
  r.size -= n.identity;
  TS_TRY(pj_code_new(client, n.params, n.results, &code));
  ts_status status = load_code(code, r);
  if (status)
    pj_code_destroy(code);
  else
    *out = code;
  return status;
}

void pj_load(void *door, const ts_saved_program *saved, ts_program *out, ts_done done) {
  *out = (ts_program){0};
  begin((compile_job){.job.body = make_now, .make = load, .door = door, .saved = saved, .out = out, .done = done});
}

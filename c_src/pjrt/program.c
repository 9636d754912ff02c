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

/* ---- operations: jobs. With a deadline a job does not use memory of the caller's, but copies of it. */

typedef struct compile_job {
  pj_job job;
  pj_deadline deadline;
  ts_status (*make)(struct compile_job *c, pj_code **out);
  pj_door *door;
  pj_client *client; /* a reference */
  const ts_graph *graph;
  ts_graph *own_graph;
  ts_precision precision;
  ts_saved_program saved;
  char *own_bytes;
  pj_code *code; /* of a save: the program; a reference */
  pj_code *made; /* the new program; a reference */
  ts_text saving;
  ts_program *out; /* the caller's */
  ts_text *text;   /* the caller's */
} compile_job;

static void free_job(compile_job *c) {
  ts_graph_destroy(c->own_graph);
  ts_free(c->own_bytes);
  ts_text_deinit(&c->saving);
  pj_code_destroy(c->made);
  if (c->code) pj_release_program(c->code);
  pj_client_release(c->client);
  ts_free(c);
}

/* Copies the caller's graph and bytes, if the job has a deadline. */
static ts_status copy(compile_job *c) {
  if (!c->client->deadlines.compile_ms) return TS_SUCCESS;
  if (c->graph) {
    TS_TRY(ts_graph_clone(c->graph, &c->own_graph));
    c->graph = c->own_graph;
  }
  if (c->saved.bytes) {
    TS_TRY(ts_alloc(c->saved.size + 1, (void **)&c->own_bytes));
    memcpy(c->own_bytes, c->saved.bytes, c->saved.size);
    c->saved.bytes = c->own_bytes;
  }
  return TS_SUCCESS;
}

/* Only an isolated client can be followed by another client. Jobs of isolated clients have no deadline here: their
 * process is ended instead. */
static ts_status follow(compile_job *c) {
  pj_client *next;
  if (!c->door || pj_has_deadline(&c->deadline)) return TS_SUCCESS;
  TS_TRY(pj_door_client(c->door, &next));
  pj_client_release(c->client);
  c->client = next;
  return TS_SUCCESS;
}

static ts_status hand_over(compile_job *c) {
  if (c->text) {
    ts_text_append_n(c->text, c->saving.data, c->saving.length);
    return c->text->failed ? ts_error_no_memory() : TS_SUCCESS;
  }
  pj_code_describe(c->made, c->out);
  c->made = NULL;
  return TS_SUCCESS;
}

static void end(compile_job *c, ts_status status) {
  ts_done done = c->deadline.done;
  bool awaited = pj_deadline_end(&c->deadline);
  if (awaited && !status) status = hand_over(c);
  free_job(c);
  if (awaited)
    ts_done_call(done, status);
  else
    ts_status_free(status);
}

static void make_now(pj_job *job) {
  compile_job *c = (compile_job *)job;
  ts_status status = pj_deadline_check(&c->deadline);
  if (!status) status = follow(c);
  if (!status) status = c->make(c, &c->made);
  end(c, status);
}

/* Takes the reference to the client over. */
static void begin(compile_job given, const char *what, ts_done done) {
  compile_job *c = NULL;
  ts_status status = TS_NEW(&c);
  if (status) {
    pj_client_release(given.client);
    ts_done_call(done, status);
    return;
  }
  *c = given;
  c->job.body = make_now;
  c->deadline.done = done;
  if (c->code) pj_code_retain(c->code);
  status = copy(c);
  const pj_limit limit = pj_client_compile_limit(c->client, what);
  if (!status) status = pj_deadline_begin(&c->deadline, &limit, done);
  if (status)
    end(c, status);
  else
    pj_work(&c->job);
}

static ts_status compile_graph(compile_job *c, pj_code **out) {
  return pj_compile_now(c->client, c->graph, c->precision, out);
}

void pj_compile(void *door, const ts_graph *graph, const ts_program_options *options, ts_program *out, ts_done done) {
  *out = (ts_program){0};
  if (options->nonblocking)
    ts_done_call(done, TS_SUCCESS);
  else
    begin((compile_job){.make = compile_graph,
                        .door = door,
                        .client = pj_door_present(door),
                        .graph = graph,
                        .precision = options->precision,
                        .out = out},
          "the compilation", done);
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

static ts_status save_code(compile_job *c, pj_code **out) {
  *out = NULL;
  return save(c->code, &c->saving);
}

void pj_save(const void *program, ts_text *out, ts_done done) {
  pj_code *code = (pj_code *)(uintptr_t)program;
  pj_client_retain(code->client);
  begin((compile_job){.make = save_code, .client = code->client, .code = code, .text = out}, "saving the program",
        done);
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

static ts_status load(compile_job *c, pj_code **out) {
  pj_client *client = c->client;
  rest r = {c->saved.bytes, c->saved.size};
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
  begin((compile_job){.make = load, .door = door, .client = pj_door_present(door), .saved = *saved, .out = out},
        "loading the program", done);
}

#include "async_device.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "device/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 64, STACK_BYTES = 8 << 20, FAIL_EVERY = 10, DEVICES = 4 };
static const uint64_t MASK = UINT64_C(0x5aa53cc35aa53cc3);

/* ---- what exists, and errors on request */

static _Atomic int64_t live, left[TEST_ASYNC_OPS] = {-1, -1, -1, -1, -1, -1, -1, -1};

void test_async_fail_after(test_async_op op, int64_t successes) { atomic_store(&left[op], successes); }
int64_t test_async_live(void) { return atomic_load(&live); }

typedef struct async_client {
  int64_t limit;
  bool fails;
  _Atomic int64_t bytes, peak, allocations, operations;
} async_client;

static ts_status on_request(test_async_op op, async_client *client) {
  static const char *const names[] = {"open", "compile", "save", "load", "from_host", "to_host", "copy", "run"};
  int64_t n = atomic_load(&left[op]);
  bool fails = client && client->fails && atomic_fetch_add(&client->operations, 1) % FAIL_EVERY == FAIL_EVERY - 1;
  if (n > 0) atomic_fetch_sub(&left[op], 1);
  if (n != 0 && !fails) return TS_SUCCESS;
  return ts_error(TS_UNAVAILABLE, "the device failed at %s", names[op]);
}

/* ---- threads: a thread starts when none is free, and stays */

typedef struct job {
  struct job *next;
  void (*body)(struct job *job);
  test_async_op op;
  async_client *client; /* NULL: not known */
  ts_done done;
} job;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t signal;
  job *jobs;
  int count, threads, idle;
  uint64_t random;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .signal = PTHREAD_COND_INITIALIZER, .random = 88172645463325252u};

static uint64_t next_random(void) {
  queue.random ^= queue.random << 13;
  queue.random ^= queue.random >> 7;
  queue.random ^= queue.random << 17;
  return queue.random;
}

/* Any of the jobs. The lock is held. */
static job *take_job(void) {
  job **at = &queue.jobs;
  for (uint64_t skip = next_random() % (uint64_t)queue.count; skip > 0; skip--) at = &(*at)->next;
  job *taken = *at;
  *at = taken->next;
  queue.count--;
  return taken;
}

static void *work(void *nothing) {
  pthread_mutex_lock(&queue.lock);
  while (true) {
    queue.idle++;
    while (!queue.jobs) pthread_cond_wait(&queue.signal, &queue.lock);
    queue.idle--;
    job *j = take_job();
    long late = (long)(next_random() % 8 == 0 ? next_random() % 200000 : 0);
    pthread_mutex_unlock(&queue.lock);
    if (late) nanosleep(&(struct timespec){.tv_nsec = late}, NULL);
    j->body(j);
    pthread_mutex_lock(&queue.lock);
  }
  return nothing;
}

static void enqueue(job *j) {
  pthread_mutex_lock(&queue.lock);
  j->next = queue.jobs;
  queue.jobs = j;
  queue.count++;
  bool more = queue.idle < queue.count && queue.threads < MOST_THREADS;
  if (more) queue.threads++;
  pthread_cond_signal(&queue.signal);
  pthread_mutex_unlock(&queue.lock);
  if (more && !ts_thread_start("async_device", work, STACK_BYTES)) abort(); /* of a test */
}

/* Ends an operation, and its job. */
static void finish(job *j, ts_status status) {
  ts_done done = j->done;
  ts_free(j);
  atomic_fetch_sub(&live, 1);
  ts_done_call(done, status);
}

/* Makes the job of an operation. After that nothing can fail before it is finished. On failure the operation has
 * ended. */
static job *begin(size_t size, job given) {
  job *j;
  ts_status status = ts_alloc(size, (void **)&j);
  if (status) {
    ts_done_call(given.done, status);
    return NULL;
  }
  *j = given;
  atomic_fetch_add(&live, 1);
  return j;
}

#define BEGIN(type, ...) ((type *)begin(sizeof(type), (job){__VA_ARGS__}))

/* ---- clients */

typedef struct open_job {
  job job;
  ts_open_options options;
  bool fails;
  ts_opened *out;
} open_job;

static void open_now(job *j) {
  open_job *o = (open_job *)j;
  async_client *c;
  ts_status status = on_request(j->op, NULL);
  if (!status) status = TS_NEW(&c);
  if (!status) {
    c->limit = o->options.memory_limit < 0 ? INT64_MAX : o->options.memory_limit;
    c->fails = o->fails;
    atomic_fetch_add(&live, 1);
    *o->out = (ts_opened){c, o->options.device_count ? o->options.device_count : DEVICES};
  }
  finish(j, status);
}

static void open_client(const ts_open_options *options, ts_opened *out, ts_done done, bool fails) {
  open_job *o = BEGIN(open_job, .body = open_now, .op = TEST_ASYNC_OPEN, .done = done);
  if (!o) return;
  o->options = *options;
  o->fails = fails;
  o->out = out;
  enqueue(&o->job);
}

static void async_open(const ts_open_options *options, ts_opened *out, ts_done done) {
  open_client(options, out, done, false);
}

static void failing_open(const ts_open_options *options, ts_opened *out, ts_done done) {
  open_client(options, out, done, true);
}

static void async_close(void *client) {
  ts_free(client);
  atomic_fetch_sub(&live, 1);
}

static ts_status enumerate(ts_device_description *out, int32_t room, int32_t *out_count) {
  *out_count = DEVICES;
  for (int32_t i = 0; i < room && i < DEVICES; i++) out[i] = (ts_device_description){.id = i, .kind = "test"};
  return TS_SUCCESS;
}

static void get_memory(void *client, ts_memory_stats *out) {
  async_client *c = client;
  *out = (ts_memory_stats){.live = atomic_load(&c->bytes),
                           .peak = atomic_load(&c->peak),
                           .limit = c->limit,
                           .allocations = atomic_load(&c->allocations)};
}

/* ---- memory */

typedef struct memory {
  async_client *client;
  int32_t device;
  int64_t bytes;
  unsigned char *masked;
} memory;

static void apply_mask(unsigned char *out, const unsigned char *in, int64_t bytes) {
  int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, in + i, 8);
    word ^= MASK;
    memcpy(out + i, &word, 8);
  }
  for (; i < bytes; i++) out[i] = in[i] ^ (unsigned char)(MASK >> 8 * (i % 8));
}

static ts_status reserve(async_client *c, int64_t bytes) {
  int64_t now = atomic_fetch_add(&c->bytes, bytes) + bytes, peak = atomic_load(&c->peak);
  if (now > c->limit) {
    atomic_fetch_sub(&c->bytes, bytes);
    return ts_error(TS_RESOURCE_EXHAUSTED, "the device has no memory for %lld bytes, the limit is %lld bytes",
                    (long long)bytes, (long long)c->limit);
  }
  while (now > peak && !atomic_compare_exchange_weak(&c->peak, &peak, now)) continue;
  atomic_fetch_add(&c->allocations, 1);
  return TS_SUCCESS;
}

static ts_status allocate(memory *m) {
  TS_TRY(reserve(m->client, m->bytes));
  ts_status status = ts_alloc((size_t)m->bytes + 1, (void **)&m->masked);
  if (status) atomic_fetch_sub(&m->client->bytes, m->bytes);
  return status;
}

static ts_status make_memory(async_client *client, int32_t device, const ts_type *type, memory **out) {
  memory *m;
  TS_TRY(TS_NEW(&m));
  *m = (memory){.client = client, .device = device, .bytes = ts_shape_bytes(&type->shape, type->dtype)};
  ts_status status = allocate(m);
  if (status) {
    ts_free(m);
    return status;
  }
  atomic_fetch_add(&live, 1);
  *out = m;
  return TS_SUCCESS;
}

static void release_memory(void *own) {
  memory *m = own;
  atomic_fetch_sub(&m->client->bytes, m->bytes);
  ts_free(m->masked);
  ts_free(m);
  atomic_fetch_sub(&live, 1);
}

typedef struct transfer_job {
  job job;
  const ts_placement *placement;
  const void *data;
  memory *source;
  int64_t bytes;
  void *to;
  void **out;
} transfer_job;

static ts_status place(const ts_placement *p, memory **out) {
  ts_type type;
  ts_type_set(&type, p->dtype, p->shape);
  return make_memory(p->client, p->device, &type, out);
}

static void from_host_now(job *j) {
  transfer_job *t = (transfer_job *)j;
  memory *m;
  ts_status status = on_request(j->op, j->client);
  if (!status) status = place(t->placement, &m);
  if (!status) {
    apply_mask(m->masked, t->data, m->bytes);
    *t->out = m;
  }
  finish(j, status);
}

static void from_host(const ts_placement *placement, const void *data, void **out_memory, ts_done done) {
  transfer_job *t =
      BEGIN(transfer_job, .body = from_host_now, .op = TEST_ASYNC_FROM_HOST, .done = done, .client = placement->client);
  if (!t) return;
  t->placement = placement;
  t->data = data;
  t->out = out_memory;
  enqueue(&t->job);
}

static void to_host_now(job *j) {
  transfer_job *t = (transfer_job *)j;
  ts_status status = on_request(j->op, j->client);
  if (!status) apply_mask(t->to, t->source->masked, t->bytes);
  finish(j, status);
}

static void to_host(void *own, int64_t bytes, void *out, ts_done done) {
  memory *m = own;
  transfer_job *t =
      BEGIN(transfer_job, .body = to_host_now, .op = TEST_ASYNC_TO_HOST, .done = done, .client = m->client);
  if (!t) return;
  t->source = m;
  t->bytes = bytes;
  t->to = out;
  enqueue(&t->job);
}

static void copy_now(job *j) {
  transfer_job *t = (transfer_job *)j;
  memory *m;
  ts_status status = on_request(j->op, j->client);
  if (!status) status = place(t->placement, &m);
  if (!status) {
    memcpy(m->masked, t->source->masked, (size_t)m->bytes);
    *t->out = m;
  }
  finish(j, status);
}

static void copy(void *own, const ts_placement *placement, void **out_memory, ts_done done) {
  transfer_job *t =
      BEGIN(transfer_job, .body = copy_now, .op = TEST_ASYNC_COPY, .done = done, .client = placement->client);
  if (!t) return;
  t->source = own;
  t->placement = placement;
  t->out = out_memory;
  enqueue(&t->job);
}

/* ---- programs: the host's; load() makes them again from their graph */

typedef struct program {
  ts_program host;
  ts_graph *graph;
  ts_program_options options;
  async_client *client;
} program;

static void release_program(void *own) {
  program *p = own;
  ts_graph_destroy(p->graph);
  if (p->host.program) ts_platform_host.release_program(p->host.program);
  ts_free(p);
  atomic_fetch_sub(&live, 1);
}

/* The host calls it before its function returns. */
static void keep_status(ts_status status, void *out) { *(ts_status *)out = status; }

static ts_status make_program(async_client *client, const ts_graph *graph, const ts_program_options *options,
                              ts_program *out) {
  program *p;
  ts_status status;
  TS_TRY(TS_NEW(&p));
  atomic_fetch_add(&live, 1);
  p->options = *options;
  p->options.nonblocking = false;
  p->client = client;
  ts_platform_host.compile(NULL, graph, &p->options, &p->host, (ts_done){keep_status, &status});
  p->options.cancel = NULL;
  if (!status) status = ts_graph_clone(graph, &p->graph);
  if (status) {
    release_program(p);
    return status;
  }
  *out = p->host;
  out->program = p;
  out->is_short = false;
  return TS_SUCCESS;
}

typedef struct compile_job {
  job job;
  const ts_graph *graph;
  const ts_saved_program *saved;
  const program *program;
  ts_program_options options;
  ts_program *out;
  ts_text *text;
} compile_job;

static void compile_now(job *j) {
  compile_job *c = (compile_job *)j;
  ts_status status = on_request(j->op, j->client);
  if (!status) status = make_program(j->client, c->graph, &c->options, c->out);
  finish(j, status);
}

static void compile(void *client, const ts_graph *graph, const ts_program_options *options, ts_program *out,
                    ts_done done) {
  *out = (ts_program){0};
  if (options->nonblocking) {
    ts_done_call(done, TS_SUCCESS);
    return;
  }
  compile_job *c = BEGIN(compile_job, .body = compile_now, .op = TEST_ASYNC_COMPILE, .done = done, .client = client);
  if (!c) return;
  c->graph = graph;
  c->options = *options;
  c->out = out;
  enqueue(&c->job);
}

static void save_now(job *j) {
  compile_job *c = (compile_job *)j;
  ts_status status = on_request(j->op, j->client);
  if (!status) {
    ts_text_append_n(c->text, c->program->options.no_fusion ? "F" : "f", 1);
    ts_text_append_n(c->text, c->program->options.no_simplify ? "S" : "s", 1);
    status = ts_graph_print(c->program->graph, c->text);
  }
  finish(j, status);
}

static void save(const void *own, ts_text *out, ts_done done) {
  const program *p = own;
  compile_job *c = BEGIN(compile_job, .body = save_now, .op = TEST_ASYNC_SAVE, .done = done, .client = p->client);
  if (!c) return;
  c->program = p;
  c->text = out;
  enqueue(&c->job);
}

static ts_status load_program(const compile_job *c) {
  const char *text = c->saved->bytes;
  ts_graph *graph;
  if (c->saved->size < 2 || (text[0] | 32) != 'f' || (text[1] | 32) != 's')
    return ts_error(TS_INVALID_ARGUMENT, "these bytes are no program of the platform async");
  ts_program_options options = {.no_fusion = text[0] == 'F', .no_simplify = text[1] == 'S'};
  TS_TRY(ts_graph_parse(text + 2, c->saved->size - 2, &graph));
  ts_status status = make_program(c->job.client, graph, &options, c->out);
  ts_graph_destroy(graph);
  return status;
}

static void load_now(job *j) {
  ts_status status = on_request(j->op, j->client);
  if (!status) status = load_program((compile_job *)j);
  finish(j, status);
}

static void load(void *client, const ts_saved_program *saved, ts_program *out, ts_done done) {
  compile_job *c = BEGIN(compile_job, .body = load_now, .op = TEST_ASYNC_LOAD, .done = done, .client = client);
  *out = (ts_program){0};
  if (!c) return;
  c->saved = saved;
  c->out = out;
  enqueue(&c->job);
}

static void get_stats(const void *own, ts_program_stats *out) {
  ts_platform_host.get_stats(((const program *)own)->host.program, out);
}

static ts_status explain(const void *own, ts_text *out) {
  return ts_platform_host.explain(((const program *)own)->host.program, out);
}

/* ---- runs: the host's, on copies of the arguments */

typedef struct run_job {
  job job;
  const ts_run_request *request;
  ts_run_request host;
  void **args, **results; /* the host's memory */
  size_t result_count;
  ts_program_call call;
  ts_program_call *asking; /* the host's call; `call` is the copy that is handed out */
  job answer;
  ts_status refused;
  void **answers;
} run_job;

static void release_host(void **memories, size_t count) {
  for (size_t i = 0; memories && i < count; i++)
    if (memories[i]) ts_platform_host.release_memory(memories[i]);
}

static void end_run(run_job *r, ts_status status) {
  release_host(r->args, r->request->arg_count);
  release_host(r->results, r->result_count);
  ts_free(r->args);
  ts_free(r->results);
  finish(&r->job, status);
}

/* As the type of its parameter: the argument may be a view of memory that was made with another shape. */
static ts_status fetch_arg(const memory *m, const ts_type *type, void **out) {
  unsigned char *bytes;
  ts_status status;
  TS_TRY(ts_alloc((size_t)m->bytes + 1, (void **)&bytes));
  apply_mask(bytes, m->masked, m->bytes);
  ts_placement p = {.dtype = type->dtype, .shape = &type->shape, .bytes = m->bytes};
  ts_platform_host.from_host(&p, bytes, out, (ts_done){keep_status, &status});
  ts_free(bytes);
  return status;
}

static ts_status return_result(run_job *r, size_t i, void **out) {
  const program *p = r->request->program;
  size_t each = p->host.result_count;
  memory *m;
  unsigned char *bytes;
  ts_status status;
  TS_TRY(make_memory(p->client, r->request->devices[i / each], p->host.result_types[i % each], &m));
  status = ts_alloc((size_t)m->bytes + 1, (void **)&bytes);
  if (status) {
    release_memory(m);
    return status;
  }
  ts_platform_host.to_host(r->results[i], m->bytes, bytes, (ts_done){keep_status, &status});
  apply_mask(m->masked, bytes, m->bytes);
  ts_free(bytes);
  *out = m;
  return status;
}

static ts_status return_results(run_job *r) {
  for (size_t i = 0; i < r->result_count; i++) {
    ts_status status = return_result(r, i, &r->request->results[i]);
    if (!status) continue;
    while (i-- > 0) {
      release_memory(r->request->results[i]);
      r->request->results[i] = NULL;
    }
    return status;
  }
  return TS_SUCCESS;
}

static void ran(ts_status status, void *arg) {
  run_job *r = arg;
  if (!status) status = return_results(r);
  for (size_t i = 0; !status && i < r->request->arg_count; i++)
    if (ts_bits_has(r->request->donated, i)) release_memory(r->request->args[i]);
  end_run(r, status);
}

static run_job *of_answer(job *j) { return (run_job *)((char *)j - offsetof(run_job, answer)); }
static run_job *of_call(ts_program_call *c) { return (run_job *)((char *)c - offsetof(run_job, call)); }

static void answer_now(job *j) {
  run_job *r = of_answer(j);
  ts_program_call *asking = r->asking;
  void **answers = r->answers;
  uint32_t count = r->call.result_count;
  r->answers = NULL;
  asking->answer(asking, r->refused, (const void *const *)answers); /* the run may end before this returns */
  for (uint32_t i = 0; answers && i < count; i++) ts_free(answers[i]);
  ts_free(answers);
}

static ts_status copy_answer(run_job *r, uint32_t i, const void *from) {
  const ts_type *type = r->call.result_types[i];
  int64_t bytes = ts_shape_bytes(&type->shape, type->dtype);
  TS_TRY(ts_alloc((size_t)bytes + 1, &r->answers[i]));
  memcpy(r->answers[i], from, (size_t)bytes);
  return TS_SUCCESS;
}

/* Runs on any thread, also a scheduler's: a thread of this device continues. */
static void answer(ts_program_call *call, ts_status status, const void *const *results) {
  run_job *r = of_call(call);
  if (!status) status = TS_NEW_ARRAY(call->result_count, &r->answers);
  for (uint32_t i = 0; !status && i < call->result_count; i++) status = copy_answer(r, i, results[i]);
  r->refused = status;
  r->answer = (job){.body = answer_now};
  enqueue(&r->answer);
}

static void called(ts_program_call *call, void *arg) {
  run_job *r = arg;
  r->asking = call;
  r->call = *call;
  r->call.answer = answer;
  r->request->call(&r->call, r->request->call_arg);
}

static ts_status prepare_run(run_job *r) {
  const ts_run_request *q = r->request;
  const program *p = q->program;
  r->result_count = p->host.result_count * (size_t)q->device_count;
  TS_TRY(TS_NEW_ARRAY(q->arg_count, &r->args));
  TS_TRY(TS_NEW_ARRAY(r->result_count, &r->results));
  size_t each = q->arg_count / (size_t)q->device_count;
  for (size_t i = 0; i < q->arg_count; i++) TS_TRY(fetch_arg(q->args[i], p->host.param_types[i % each], &r->args[i]));
  r->host = *q;
  r->host.program = p->host.program;
  r->host.client = NULL;
  r->host.args = r->args;
  r->host.results = r->results;
  r->host.donated = (ts_bits){0};
  r->host.call = called;
  r->host.call_arg = r;
  return TS_SUCCESS;
}

static void run_now(job *j) {
  run_job *r = (run_job *)j;
  ts_status status = on_request(j->op, j->client);
  if (!status) status = prepare_run(r);
  if (status)
    end_run(r, status);
  else
    ts_platform_host.run(&r->host, (ts_done){ran, r});
}

static void run(const ts_run_request *request, ts_done done) {
  run_job *r = BEGIN(run_job, .body = run_now, .op = TEST_ASYNC_RUN, .done = done, .client = request->client);
  if (!r) return;
  r->request = request;
  enqueue(&r->job);
}

#define PLATFORM(its_name, its_open)                                                                                  \
  {                                                                                                                   \
    .name = its_name, .flags = TS_PLATFORM_SAVES | TS_PLATFORM_CALLS_BACK | TS_PLATFORM_GROUPS | TS_PLATFORM_CANCELS, \
    .enumerate = enumerate, .open = its_open, .close = async_close, .get_memory = get_memory, .compile = compile,     \
    .save = save, .load = load, .release_program = release_program, .get_stats = get_stats, .explain = explain,       \
    .from_host = from_host, .to_host = to_host, .copy = copy, .release_memory = release_memory, .run = run            \
  }

const ts_platform test_async = PLATFORM("async", async_open);
const ts_platform test_async_failing = PLATFORM("async_failing", failing_open);

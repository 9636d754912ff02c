/* Runs of split programs. A run is a stack of frames, one for each list of steps that has begun. Only go() changes the
 * state of a run, in one thread at a time. The operations that it begins end by ended(), on any thread, and the last of
 * them calls go() again. */
#include "pjrt/split.h"

typedef struct frame {
  struct frame *up;
  const pj_steps *list;
  size_t place;       /* index of the next step, or of the step that has begun */
  bool is_condition;  /* of a loop */
  pj_memory *slots[]; /* references; NULL: not made yet, or not needed any more */
} frame;

typedef struct split_run {
  const ts_run_request *request;
  pj_code *program; /* a reference */
  int32_t device;
  frame *top;
  ts_status (*then)(struct split_run *r); /* called by go(); NULL: the run has ended */
  bool waits;                             /* `then` has begun operations */
  _Atomic int missing;                    /* operations, and 1 while they are begun */
  ts_status _Atomic failed;               /* the operations' first error */
  ts_run_request part;
  ts_program_call call;
  void **host; /* the operands or the results of a call, in host memory */
  size_t host_count;
  void **made;       /* the results of an operation */
  uint8_t predicate; /* of a loop or a branch */
  ts_done done;
} split_run;

static void go(split_run *r);

/* ---- operations */

static void ended(ts_status status, void *arg) {
  split_run *r = arg;
  ts_status_keep_first(&r->failed, status);
  if (atomic_fetch_sub(&r->missing, 1) == 1) go(r);
}

/* The caller begins so many operations. After the last of them go() calls `then`. */
static ts_done expect(split_run *r, uint32_t count, ts_status (*then)(split_run *)) {
  r->then = then;
  r->waits = true;
  atomic_store(&r->missing, (int)count + 1);
  return (ts_done){ended, r};
}

/* ---- frames */

static const pj_step *step_of(const frame *f) { return &f->list->steps.data[f->place]; }

static void set_slot(frame *f, uint32_t slot, pj_memory *memory) {
  pj_memory_release(f->slots[slot]);
  f->slots[slot] = memory;
}

static void share_slot(frame *f, uint32_t slot, pj_memory *memory) {
  pj_memory_retain(memory);
  set_slot(f, slot, memory);
}

/* Begins a list with the values of these slots of the present frame. */
static ts_status push(split_run *r, const pj_steps *list, const uint32_t *slots) {
  frame *f;
  TS_TRY(ts_alloc(sizeof *f + list->slot_count * sizeof *f->slots, (void **)&f));
  f->up = r->top;
  f->list = list;
  for (uint32_t i = 0; i < list->param_count; i++) share_slot(f, i, r->top->slots[slots[i]]);
  r->top = f;
  return TS_SUCCESS;
}

static void pop(split_run *r) {
  frame *f = r->top;
  r->top = f->up;
  for (uint32_t i = 0; i < f->list->slot_count; i++) pj_memory_release(f->slots[i]);
  ts_free(f);
}

/* ---- steps */

static ts_status next(split_run *r);

/* The step is done: values that no later step needs are released. */
static ts_status advance(split_run *r) {
  frame *f = r->top;
  for (uint32_t i = 0; i < f->list->slot_count; i++)
    if (f->list->last[i] <= f->place) set_slot(f, i, NULL);
  f->place++;
  r->then = next;
  return TS_SUCCESS;
}

/* Results of an operation become the step's. */
static ts_status keep_made(split_run *r) {
  const pj_step *step = step_of(r->top);
  for (uint32_t i = 0; i < step->result_count; i++) {
    set_slot(r->top, step->results[i], r->made[i]);
    r->made[i] = NULL;
  }
  ts_free(r->made);
  r->made = NULL;
  return advance(r);
}

/* ---- parts */

static ts_status ran_part(split_run *r) {
  ts_free((void *)(uintptr_t)r->part.args);
  r->part.args = NULL;
  return keep_made(r);
}

static ts_status run_part(split_run *r) {
  const pj_step *step = step_of(r->top);
  void **args;
  TS_TRY(TS_NEW_ARRAY(step->result_count, &r->made));
  TS_TRY(TS_NEW_ARRAY(step->operand_count, &args));
  for (uint32_t i = 0; i < step->operand_count; i++) args[i] = r->top->slots[step->operands[i]];
  r->part = (ts_run_request){.program = step->part,
                             .client = r->request->client,
                             .devices = &r->device,
                             .device_count = 1,
                             .args = args,
                             .arg_count = step->operand_count,
                             .results = r->made};
  pj_run(&r->part, expect(r, 1, ran_part));
  return TS_SUCCESS;
}

/* ---- calls: operands to the host, the call, results to the device */

static void free_host(split_run *r) {
  for (size_t i = 0; r->host && i < r->host_count; i++) ts_free(r->host[i]);
  ts_free(r->host);
  r->host = NULL;
}

static int64_t bytes_of(const ts_type *type) { return ts_shape_bytes(&type->shape, type->dtype); }

static ts_status new_host(split_run *r, const ts_type *const *types, uint32_t count) {
  r->host_count = count;
  TS_TRY(TS_NEW_ARRAY(count, &r->host));
  for (uint32_t i = 0; i < count; i++) TS_TRY(ts_alloc((size_t)bytes_of(types[i]) + 1, &r->host[i]));
  return TS_SUCCESS;
}

static ts_status return_results(split_run *r) {
  const pj_step *step = step_of(r->top);
  const ts_type *const *types = step->types + step->operand_count;
  TS_TRY(TS_NEW_ARRAY(step->result_count, &r->made));
  ts_done done = expect(r, step->result_count, keep_made);
  for (uint32_t i = 0; i < step->result_count; i++) {
    const ts_placement p = {.client = r->request->client,
                            .device = r->device,
                            .dtype = types[i]->dtype,
                            .shape = &types[i]->shape,
                            .bytes = bytes_of(types[i])};
    pj_from_host(&p, r->host[i], &r->made[i], done);
  }
  return TS_SUCCESS;
}

/* Any thread calls this, also a scheduler: the operations that it begins are done by threads of the client. */
static void answer(ts_program_call *call, ts_status status, const void *const *results) {
  split_run *r = (split_run *)((char *)call - offsetof(split_run, call));
  free_host(r);
  if (!status) status = new_host(r, call->result_types, call->result_count);
  for (uint32_t i = 0; !status && i < call->result_count; i++)
    memcpy(r->host[i], results[i], (size_t)bytes_of(call->result_types[i]));
  ended(status, r);
}

static ts_status call_back(split_run *r) {
  const pj_step *step = step_of(r->top);
  r->call = (ts_program_call){.index = step->number,
                              .operand_count = step->operand_count,
                              .result_count = step->result_count,
                              .operand_types = step->types,
                              .result_types = step->types + step->operand_count,
                              .operands = (const void *const *)r->host,
                              .answer = answer};
  (void)expect(r, 1, return_results);
  r->request->call(&r->call, r->request->call_arg);
  return TS_SUCCESS;
}

static ts_status fetch_operands(split_run *r) {
  const pj_step *step = step_of(r->top);
  free_host(r);
  TS_TRY(new_host(r, step->types, step->operand_count));
  ts_done done = expect(r, step->operand_count, call_back);
  for (uint32_t i = 0; i < step->operand_count; i++)
    pj_to_host(r->top->slots[step->operands[i]], bytes_of(step->types[i]), r->host[i], done);
  return TS_SUCCESS;
}

/* ---- loops and branches */

static ts_status decide(split_run *r) {
  const pj_step *step = step_of(r->top);
  return push(r, step->lists[r->predicate ? 0 : 1], step->operands + 1);
}

static ts_status decided(split_run *r) {
  r->then = next;
  return decide(r);
}

/* The loop's values are in the slots of its results. */
static ts_status repeat(split_run *r) {
  const pj_step *step = step_of(r->top);
  if (!r->predicate) return advance(r);
  r->then = next;
  return push(r, step->lists[1], step->results);
}

static ts_status read_predicate(split_run *r, pj_memory *memory, ts_status (*then)(split_run *)) {
  pj_to_host(memory, 1, &r->predicate, expect(r, 1, then));
  return TS_SUCCESS;
}

static ts_status test(split_run *r) {
  const pj_step *step = step_of(r->top);
  const ts_run_control *control = r->request->control;
  TS_TRY(ts_check_cancelled(control ? &control->cancel : NULL, "the run"));
  TS_TRY(push(r, step->lists[0], step->results));
  r->top->is_condition = true;
  r->then = next;
  return TS_SUCCESS;
}

static ts_status begin_loop(split_run *r) {
  const pj_step *step = step_of(r->top);
  for (uint32_t i = 0; i < step->result_count; i++)
    share_slot(r->top, step->results[i], r->top->slots[step->operands[i]]);
  return test(r);
}

/* The memory of the condition's result stays until it is read: the frame is left afterwards. */
static ts_status tested(split_run *r) {
  pop(r);
  return repeat(r);
}

/* A list has ended. Its results are those of the step that began it, or of the program. */
static ts_status return_from_list(split_run *r) {
  frame *f = r->top, *up = f->up;
  if (!up) {
    r->then = NULL;
    return TS_SUCCESS;
  }
  if (f->is_condition) return read_predicate(r, f->slots[f->list->results[0]], tested);
  const pj_step *step = step_of(up);
  for (uint32_t i = 0; i < step->result_count; i++) share_slot(up, step->results[i], f->slots[f->list->results[i]]);
  pop(r);
  return step->kind == PJ_STEP_WHILE ? test(r) : advance(r);
}

static ts_status next(split_run *r) {
  frame *f = r->top;
  if (f->place == f->list->steps.count) return return_from_list(r);
  const pj_step *step = step_of(f);
  switch (step->kind) {
  case PJ_STEP_PART: return run_part(r);
  case PJ_STEP_CALL: return fetch_operands(r);
  case PJ_STEP_WHILE: return begin_loop(r);
  case PJ_STEP_COND: return read_predicate(r, f->slots[step->operands[0]], decided);
  case PJ_STEP_REGION: return push(r, step->lists[0], step->operands);
  }
  return ts_error(TS_INTERNAL, "a step of kind %d", (int)step->kind);
}

/* ---- runs */

static void take_results(split_run *r) {
  const ts_run_request *q = r->request;
  for (uint32_t i = 0; i < r->top->list->result_count; i++) {
    pj_memory *m = r->top->slots[r->top->list->results[i]];
    pj_memory_retain(m);
    q->results[i] = m;
  }
  for (size_t i = 0; i < q->arg_count; i++)
    if (ts_bits_has(q->donated, i)) pj_memory_release(q->args[i]);
}

static void finish(split_run *r, ts_status status) {
  ts_done done = r->done;
  if (!status) take_results(r);
  for (size_t i = 0; r->made && i < step_of(r->top)->result_count; i++) pj_memory_release(r->made[i]);
  while (r->top) pop(r);
  ts_free((void *)(uintptr_t)r->part.args);
  ts_free(r->made);
  free_host(r);
  pj_release_program(r->program);
  ts_free(r);
  ts_done_call(done, status);
}

static void go(split_run *r) {
  while (true) {
    ts_status status = atomic_exchange(&r->failed, NULL);
    r->waits = false;
    if (!status) status = r->then(r);
    if (status || !r->then) {
      finish(r, status);
      return;
    }
    if (r->waits && atomic_fetch_sub(&r->missing, 1) != 1) return;
  }
}

static ts_status check(const ts_run_request *q) {
  const pj_code *code = q->program;
  if (q->device_count != 1)
    return ts_error(TS_UNIMPLEMENTED, "a plugin runs programs of one partition, got %d", q->device_count);
  if (q->arg_count == code->param_count) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", code->param_count, q->arg_count);
}

static ts_status create(const ts_run_request *q, ts_done done, split_run **out) {
  pj_code *code = (pj_code *)(uintptr_t)q->program;
  const pj_steps *root = code->split->root;
  split_run *r;
  TS_TRY(check(q));
  TS_TRY(TS_NEW(&r));
  *r = (split_run){.request = q, .program = code, .device = q->devices[0], .then = next, .done = done};
  ts_status status = ts_alloc(sizeof *r->top + root->slot_count * sizeof *r->top->slots, (void **)&r->top);
  if (status) {
    ts_free(r);
    return status;
  }
  r->top->list = root;
  for (uint32_t i = 0; i < root->param_count; i++) share_slot(r->top, i, q->args[i]);
  pj_code_retain(code);
  *out = r;
  return TS_SUCCESS;
}

void pj_split_run(const ts_run_request *request, ts_done done) {
  split_run *r;
  ts_status status = create(request, done, &r);
  if (status)
    ts_done_call(done, status);
  else
    go(r);
}

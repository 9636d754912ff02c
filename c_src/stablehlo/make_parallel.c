/* interpreter.run_parallel: functions that run as processes, a grid of replicas and partitions. All of them become one
 * graph. Each process's ops are made until one waits for others: for the members of its group, or for a value of a
 * channel. Then the next process continues. */
#include "stablehlo/make.h"

typedef struct process {
  const mlir_func *func;
  make_scope scope;
  size_t at; /* the op that comes next */
  make_call call;
  make_value *operands;
  bool is_waiting;  /* `call` is of the op at `at`, a collective */
  make_group group; /* of this collective */
} process;

typedef struct sent {
  mlir_token channel;
  make_value value;
  bool is_taken;
} sent;

typedef struct parallel {
  const make_call *m;
  make_grid grid;
  process *processes;
  size_t count;
  TS_VEC(sent) sent;
  const mlir_attr *infeed;
  size_t fed;    /* values of the infeed that were taken */
  ts_map groups; /* of each collective that a process came to, by the op */
} parallel;

static const mlir_op *next_op(const process *p) { return &p->func->body.ops[p->at]; }

static bool is_done(const process *p) { return p->at + 1 >= p->func->body.op_count; }

static ts_status begin_call(parallel *a, process *p) {
  const mlir_op *op = next_op(p);
  p->call = (make_call){.r = a->m->r, .op = op, .region = a->m->region, .scope = &p->scope};
  TS_TRY(TS_ARENA_ARRAY(&a->m->r->arena, op->operand_count + 1, &p->operands));
  TS_TRY(TS_ARENA_ARRAY(&a->m->r->arena, op->types.count + 1, &p->call.results));
  p->call.operands = p->operands;
  return make_look_up_operands(&p->call, p->operands);
}

static ts_status finish_call(process *p) {
  TS_TRY(make_bind_results(&p->call));
  p->is_waiting = false;
  p->at++;
  return TS_SUCCESS;
}

/* ---- collectives */

/* Processes that run one function share what its collectives say. */
static ts_status find_groups(parallel *a, const make_call *m, const make_groups **out) {
  const mlir_op *op = m->op;
  make_groups *made = ts_map_get(&a->groups, &op, sizeof op);
  *out = made;
  if (made) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, 1, &made));
  TS_TRY(make_read_groups(m, &a->grid, made));
  ts_status status = ts_map_put(&a->groups, &op, sizeof op, made);
  if (status) make_groups_deinit(made);
  *out = made;
  return status;
}

static void free_groups(parallel *a) {
  const void *key;
  size_t key_size, cursor = 0;
  void *groups;
  while (ts_map_next(&a->groups, &cursor, &key, &key_size, &groups)) make_groups_deinit(groups);
  ts_map_deinit(&a->groups);
}

/* Whether a process has come to a collective of the same kind. */
static bool has_come(const parallel *a, const process *p, size_t other) {
  return a->processes[other].is_waiting && mlir_tokens_equal(next_op(&a->processes[other])->name, next_op(p)->name);
}

/* The members of a group have come: all of them get their results. */
static ts_status run_group(parallel *a, const make_group *group) {
  const make_call **members;
  TS_TRY(TS_ARENA_ARRAY(&a->m->r->arena, group->count, &members));
  for (size_t i = 0; i < group->count; i++) members[i] = &a->processes[make_member(group, i)].call;
  for (size_t i = 0; i < group->count; i++) TS_TRY(make_collective(members[i], members, group->count, i));
  for (size_t i = 0; i < group->count; i++) TS_TRY(finish_call(&a->processes[make_member(group, i)]));
  return TS_SUCCESS;
}

/* A permutation is of all processes: each has another group, its source and itself. */
static ts_status run_permutation(parallel *a) {
  for (size_t i = 0; i < a->count; i++) {
    const make_group *group = &a->processes[i].group;
    const make_call *call = &a->processes[i].call, *source = call;
    if (group->count) source = &a->processes[make_member(group, 0)].call;
    TS_TRY(make_collective(call, &source, group->count ? 1 : 0, 0));
  }
  for (size_t i = 0; i < a->count; i++) TS_TRY(finish_call(&a->processes[i]));
  return TS_SUCCESS;
}

static ts_status step_collective(parallel *a, size_t own) {
  process *p = &a->processes[own];
  if (!p->is_waiting) {
    const make_groups *groups;
    TS_TRY(begin_call(a, p));
    TS_TRY(make_check_regions(&p->call));
    TS_TRY(find_groups(a, &p->call, &groups));
    p->group = make_find_group(groups, own);
  }
  p->is_waiting = true;
  if (mlir_token_is(next_op(p)->name, "stablehlo.collective_permute")) {
    for (size_t i = 0; i < a->count; i++)
      if (!has_come(a, p, i)) return TS_SUCCESS;
    return run_permutation(a);
  }
  for (size_t i = 0; i < p->group.count; i++)
    if (!has_come(a, p, make_member(&p->group, i))) return TS_SUCCESS;
  if (p->group.count) return run_group(a, &p->group);
  TS_TRY(make_collective(&p->call, NULL, 0, 0));
  return finish_call(p);
}

/* ---- channels */

static ts_status channel_of(const make_call *m, mlir_token *out) {
  const mlir_attr *handle = make_find_channel(m, "channel_handle");
  if (!handle) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute channel_handle");
  *out = handle->token;
  return TS_SUCCESS;
}

static ts_status token_result(const make_call *m, size_t i) {
  if (i + 1 != m->op->types.count)
    return make_error(m, TS_INVALID_ARGUMENT, "it has %zu results, expected %zu", m->op->types.count, i + 1);
  return make_token(m, i);
}

static ts_status step_send(parallel *a, process *p) {
  sent s = {0};
  TS_TRY(begin_call(a, p));
  TS_TRY(make_count_operands(&p->call, 2));
  TS_TRY(channel_of(&p->call, &s.channel));
  s.value = p->operands[0];
  TS_TRY(TS_VEC_PUSH(&a->sent, s));
  TS_TRY(token_result(&p->call, 0));
  return finish_call(p);
}

static ts_status step_recv(parallel *a, process *p) {
  mlir_token channel;
  TS_TRY(begin_call(a, p));
  TS_TRY(make_count_operands(&p->call, 1));
  TS_TRY(channel_of(&p->call, &channel));
  for (size_t i = 0; i < a->sent.count; i++) {
    sent *s = &a->sent.data[i];
    if (s->is_taken || !mlir_tokens_equal(s->channel, channel)) continue;
    s->is_taken = true;
    p->call.results[0] = s->value;
    TS_TRY(token_result(&p->call, 1));
    return finish_call(p);
  }
  return TS_SUCCESS;
}

/* The result of the next function of the infeed. */
static ts_status step_infeed(parallel *a, process *p) {
  TS_TRY(begin_call(a, p));
  if (!a->infeed || a->fed >= a->infeed->count) return make_error(&p->call, TS_INVALID_ARGUMENT, "nothing is fed");
  const mlir_func *func = make_find_func(a->m->r, a->infeed->items[a->fed++].token);
  make_scope scope = {0};
  make_value result;
  if (!func || func->body.op_count == 0 || func->body.param_count ||
      func->body.ops[func->body.op_count - 1].operand_count != 1)
    return make_error(&p->call, TS_INVALID_ARGUMENT, "what is fed is no function with one result");
  ts_status status = make_block(a->m->r, &func->body, a->m->region, &scope, &result);
  make_scope_deinit(&scope);
  TS_TRY(status);
  TS_TRY(make_count_operands(&p->call, 1));
  p->call.results[0] = result;
  TS_TRY(token_result(&p->call, 1));
  return finish_call(p);
}

static ts_status step_outfeed(parallel *a, process *p) {
  TS_TRY(begin_call(a, p));
  TS_TRY(token_result(&p->call, 0));
  return finish_call(p);
}

/* ---- processes */

static ts_status step(parallel *a, size_t own) {
  process *p = &a->processes[own];
  const mlir_op *op = next_op(p);
  a->m->r->process = own;
  if (make_find(op->name) == make_in_collective) return step_collective(a, own);
  if (mlir_token_is(op->name, "stablehlo.send")) return step_send(a, p);
  if (mlir_token_is(op->name, "stablehlo.recv")) return step_recv(a, p);
  if (mlir_token_is(op->name, "stablehlo.infeed")) return step_infeed(a, p);
  if (mlir_token_is(op->name, "stablehlo.outfeed")) return step_outfeed(a, p);
  TS_TRY(make_op(a->m->r, op, a->m->region, &p->scope));
  p->at++;
  return TS_SUCCESS;
}

static ts_status run_all(parallel *a) {
  bool any = true, all = false;
  while (any) {
    any = false;
    all = true;
    for (size_t i = 0; i < a->count; i++) {
      process *p = &a->processes[i];
      size_t before;
      do {
        before = p->at;
        if (!is_done(p)) TS_TRY(step(a, i));
        any = any || p->at != before;
      } while (p->at != before);
      all = all && is_done(p);
    }
  }
  return all ? TS_SUCCESS : make_error(a->m, TS_INVALID_ARGUMENT, "its processes wait for each other");
}

/* Gives each process its arguments. */
static ts_status open_processes(parallel *a, const mlir_attr *programs) {
  size_t next = 0;
  for (size_t i = 0; i < a->count; i++) {
    process *p = &a->processes[i];
    const mlir_attr *row = &programs->items[i / (size_t)a->grid.partitions];
    const mlir_token name = row->items[i % (size_t)a->grid.partitions].token;
    p->func = make_find_func(a->m->r, name);
    if (!p->func || p->func->body.op_count == 0)
      return make_error(a->m, TS_INVALID_ARGUMENT, "there is no function @%.*s", (int)name.length, name.text);
    for (size_t j = 0; j < p->func->body.param_count; j++) {
      if (next == a->m->op->operand_count) return make_error(a->m, TS_INVALID_ARGUMENT, "it has too few operands");
      TS_TRY(make_check_argument(a->m, p->func, j, next));
      TS_TRY(make_bind(&p->scope, p->func->body.params[j], 0, 1, a->m->operands[next++]));
    }
  }
  if (next == a->m->op->operand_count) return TS_SUCCESS;
  return make_error(a->m, TS_INVALID_ARGUMENT, "it has too many operands");
}

static ts_status take_results(const parallel *a) {
  size_t next = 0;
  for (size_t i = 0; i < a->count; i++) {
    const process *p = &a->processes[i];
    const mlir_op *last = next_op(p);
    for (size_t j = 0; j < last->operand_count; j++) {
      if (next == a->m->op->types.count) return make_error(a->m, TS_INVALID_ARGUMENT, "it has too few results");
      TS_TRY(make_look_up(&p->scope, last->operands[j], &a->m->results[next++]));
    }
  }
  if (next == a->m->op->types.count) return TS_SUCCESS;
  return make_error(a->m, TS_INVALID_ARGUMENT, "it has too many results");
}

static ts_status read_grid(parallel *a, const mlir_attr *programs) {
  if (!programs || programs->kind != MLIR_ATTR_LIST || programs->count == 0 || programs->count > 1000)
    return make_error(a->m, TS_INVALID_ARGUMENT, "expected programs, a list of lists of functions");
  a->grid.replicas = (int64_t)programs->count;
  a->grid.partitions = (int64_t)programs->items[0].count;
  for (size_t i = 0; i < programs->count; i++)
    if (programs->items[i].kind != MLIR_ATTR_LIST || (int64_t)programs->items[i].count != a->grid.partitions ||
        a->grid.partitions < 1 || a->grid.partitions > 1000)
      return make_error(a->m, TS_INVALID_ARGUMENT, "its lists of programs are of several lengths");
  a->count = (size_t)make_count_processes(&a->grid);
  if (a->count > 4096) return make_error(a->m, TS_UNIMPLEMENTED, "it has more than 4096 processes");
  return TS_ARENA_ARRAY(&a->m->r->arena, a->count, &a->processes);
}

static ts_status run(parallel *a, const mlir_attr *programs) {
  TS_TRY(open_processes(a, programs));
  TS_TRY(run_all(a));
  return take_results(a);
}

ts_status make_in_parallel(const make_call *m) {
  parallel a = {.m = m, .infeed = make_attr(m, "infeed")};
  const mlir_attr *programs = make_attr(m, "programs");
  const make_grid *outer = m->r->grid;
  const size_t own = m->r->process;
  if (outer) return make_error(m, TS_UNIMPLEMENTED, "processes in processes cannot be read");
  if (a.infeed && a.infeed->kind != MLIR_ATTR_LIST) return make_error(m, TS_INVALID_ARGUMENT, "infeed is no list");
  TS_TRY(read_grid(&a, programs));
  m->r->grid = &a.grid;
  ts_status status = run(&a, programs);
  m->r->grid = outer;
  m->r->process = own;
  for (size_t i = 0; i < a.count; i++) make_scope_deinit(&a.processes[i].scope);
  free_groups(&a);
  TS_VEC_FREE(&a.sent);
  return status;
}

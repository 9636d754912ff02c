/* Plugins and their calls, as a routine and in the interpreter. */
#include "kernel/custom.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/shared_object.h"
#include "base/system.h"
#include "base/text.h"
#include "base/vec.h"
#include "kernel/lapack.h"
#include "kernel/routine.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The first version of tessera_plugin.h, and the first version with names for all types. */
enum { FIRST_VERSION = 1, ALL_TYPES_VERSION = 2 };

/* ---- plugins ---- */

typedef struct known_target {
  const tessera_plugin *plugin;
  const tessera_target *target;
} known_target;

/* Never freed: programs point into plugins. */
static struct {
  pthread_mutex_t lock;
  TS_VEC(known_target) list;
} targets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_in(const tessera_plugin *plugin, const char *name, known_target *out) {
  for (uint32_t i = 0; i < plugin->target_count; i++)
    if (strcmp(plugin->targets[i].name, name) == 0) {
      *out = (known_target){plugin, &plugin->targets[i]};
      return true;
    }
  return false;
}

/* Of a loaded plugin, or of LAPACK. */
static bool find(const char *name, known_target *out) {
  for (size_t i = 0; i < targets.list.count; i++)
    if (strcmp(targets.list.data[i].target->name, name) == 0) {
      *out = targets.list.data[i];
      return true;
    }
  return find_in(ts_lapack_plugin(), name, out);
}

enum { MOST_TARGETS = 10000, MOST_NAME = 255, PAGE = 4096 };

static bool is_name_character(char c, bool is_first) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (!is_first && ((c >= '0' && c <= '9') || c == '.'));
}

/* True also where there is no file descriptor or memory to find out. */
static bool can_read(const void *address, size_t bytes) {
  ts_status status = ts_system_check_readable(address, (int64_t)bytes);
  bool can = ts_status_code(status) != TS_INVALID_ARGUMENT;
  ts_status_free(status);
  return can;
}

/* The fault of a plugin's name: only a name without fault is shown in messages. NULL without a fault. */
static const char *why_no_name(const char *name) {
  if (!name) return "has no name";
  for (size_t i = 0; i <= MOST_NAME; i++) {
    bool is_new_page = i == 0 || (uintptr_t)(name + i) % PAGE == 0;
    if (is_new_page && !can_read(name + i, 1)) return "has a name at an address that cannot be read";
    if (!name[i]) return i > 0 ? NULL : "has no name";
    if (!is_name_character(name[i], i == 0)) return "has a name that is not a letter, then letters, digits, _ and .";
  }
  return "has a name of more than 255 characters";
}

static ts_status check_plugin(const char *path, const tessera_plugin *plugin) {
  if (!plugin) return ts_error(TS_INVALID_ARGUMENT, "%s: tessera_plugin_get gives no plugin", path);
  if (!can_read(plugin, sizeof *plugin))
    return ts_error(TS_INVALID_ARGUMENT, "%s: tessera_plugin_get gives an address that cannot be read", path);
  if (plugin->version < FIRST_VERSION || plugin->version > TESSERA_PLUGIN_VERSION)
    return ts_error(TS_INVALID_ARGUMENT,
                    "%s: the plugin is of version %u of tessera_plugin.h, expected version %d to %d", path,
                    plugin->version, FIRST_VERSION, TESSERA_PLUGIN_VERSION);
  const char *why = why_no_name(plugin->name);
  if (why) return ts_error(TS_INVALID_ARGUMENT, "%s: the plugin %s", path, why);
  if (plugin->call_bytes != sizeof(tessera_call))
    return ts_error(TS_INVALID_ARGUMENT,
                    "%s: plugin %s has calls of %u bytes, expected %zu: it says a version that is not its own", path,
                    plugin->name, plugin->call_bytes, sizeof(tessera_call));
  /* printed as a signed number: the plugin's author may have written -1 */
  if (plugin->target_count > MOST_TARGETS)
    return ts_error(TS_INVALID_ARGUMENT, "%s: plugin %s claims %d targets, expected 1 to %d", path, plugin->name,
                    (int)plugin->target_count, MOST_TARGETS);
  if (plugin->target_count == 0 || !plugin->targets)
    return ts_error(TS_INVALID_ARGUMENT, "%s: plugin %s has no targets", path, plugin->name);
  if (!can_read(plugin->targets, plugin->target_count * sizeof *plugin->targets))
    return ts_error(TS_INVALID_ARGUMENT, "%s: plugin %s claims %u targets at an address that cannot be read", path,
                    plugin->name, plugin->target_count);
  return TS_SUCCESS;
}

static ts_status check_target(const char *path, const tessera_plugin *plugin, uint32_t i) {
  const tessera_target *target = &plugin->targets[i];
  const char *why = why_no_name(target->name);
  if (why) return ts_error(TS_INVALID_ARGUMENT, "%s: target %u of plugin %s %s", path, i + 1, plugin->name, why);
  if (!target->run)
    return ts_error(TS_INVALID_ARGUMENT, "%s: target %s of plugin %s cannot run", path, target->name, plugin->name);
  for (uint32_t k = 0; k < i; k++)
    if (strcmp(plugin->targets[k].name, target->name) == 0)
      return ts_error(TS_INVALID_ARGUMENT, "%s: plugin %s has target %s twice", path, plugin->name, target->name);
  known_target known;
  if (find(target->name, &known) && known.plugin != plugin)
    return ts_error(TS_FAILED_PRECONDITION, "%s: plugin %s has target %s, which is of plugin %s already", path,
                    plugin->name, target->name, known.plugin->name);
  return TS_SUCCESS;
}

/* All targets or none. */
static ts_status add_targets(const char *path, const tessera_plugin *plugin) {
  for (uint32_t i = 0; i < plugin->target_count; i++) TS_TRY(check_target(path, plugin, i));
  TS_TRY(TS_VEC_RESERVE(&targets.list, targets.list.count + plugin->target_count));
  known_target known;
  for (uint32_t i = 0; i < plugin->target_count; i++)
    if (!find(plugin->targets[i].name, &known))
      targets.list.data[targets.list.count++] = (known_target){plugin, &plugin->targets[i]};
  return TS_SUCCESS;
}

typedef const tessera_plugin *(*get_plugin)(void);

/* False for a variable of that name: to call it would end the process. */
static bool is_function(void *found) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  if (!dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || info.dli_saddr != found) return true;
  return ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT && ELF64_ST_TYPE(symbol->st_info) != STT_TLS;
}

static ts_status load(const char *path, void *object, const tessera_plugin **out) {
  get_plugin get;
  void *found = dlsym(object, "tessera_plugin_get");
  if (!found || !is_function(found))
    return ts_error(TS_INVALID_ARGUMENT, "%s has no function tessera_plugin_get", path);
  *(void **)&get = found;
  *out = get();
  TS_TRY(check_plugin(path, *out));
  pthread_mutex_lock(&targets.lock);
  ts_status status = add_targets(path, *out);
  pthread_mutex_unlock(&targets.lock);
  return status;
}

ts_status ts_custom_load(const char *path, const tessera_plugin **out) {
  void *object;
  ts_status status = ts_shared_object_open(path, &object);
  if (status) return ts_error_context(status, "the plugin cannot be loaded");
  status = load(path, object, out);
  if (status) dlclose(object); /* a refused plugin has no calls */
  return status;
}

static ts_status find_target(const char *name, known_target *out) {
  pthread_mutex_lock(&targets.lock);
  const bool is_known = find(name, out);
  pthread_mutex_unlock(&targets.lock);
  if (is_known) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION,
                  "custom_call: no loaded plugin has the target %s; tessera:load_plugin/1 loads one", name);
}

/* ---- calls ---- */

/* More than a machine has, and little enough for sums. */
#define MOST_WORKSPACE (INT64_C(1) << 56)

/* The part of a call that its plan keeps: pointers are set for each run. */
typedef struct custom_plan {
  known_target known;
  tessera_call call;
  tessera_needs needs;
} custom_plan;

/* `core` of a call. */
typedef struct running_call {
  const _Atomic bool *cancel;
  const ts_parallel *parallel;
  char error[512];
} running_call;

static void set_error(const tessera_call *call, const char *text) {
  running_call *running = call->core;
  size_t length = text ? strnlen(text, sizeof running->error - 1) : 0, whole = ts_utf8_prefix(text ? text : "", length);
  if (length - whole < 4 && length == sizeof running->error - 1) length = whole; /* the last character was cut */
  if (length > 0) memcpy(running->error, text, length);
  running->error[length] = '\0';
}

static bool is_cancelled(const tessera_call *call) {
  const running_call *running = call->core;
  return running->cancel && atomic_load_explicit(running->cancel, memory_order_relaxed);
}

static void run_parts(const tessera_call *call, int64_t count, void (*part)(void *, int64_t, int), void *arg) {
  const running_call *running = call->core;
  ts_parallel_run(running->parallel, count, part, arg);
}

static const tessera_core core = {set_error, is_cancelled, run_parts};

static tessera_type type_of(ts_dtype dtype, const tessera_plugin *plugin) {
  if (plugin->version < ALL_TYPES_VERSION && ts_dtype_is_small(dtype)) return TESSERA_OTHER;
  switch (dtype) {
  case TS_S2: return TESSERA_S2;
  case TS_S4: return TESSERA_S4;
  case TS_U2: return TESSERA_U2;
  case TS_U4: return TESSERA_U4;
  case TS_F8: return TESSERA_F8;
  case TS_F8E4M3FN: return TESSERA_F8_E4M3FN;
  case TS_S8: return TESSERA_S8;
  case TS_S16: return TESSERA_S16;
  case TS_S32: return TESSERA_S32;
  case TS_S64: return TESSERA_S64;
  case TS_U8: return TESSERA_U8;
  case TS_U16: return TESSERA_U16;
  case TS_U32: return TESSERA_U32;
  case TS_U64: return TESSERA_U64;
  case TS_F16: return TESSERA_F16;
  case TS_BF16: return TESSERA_BF16;
  case TS_F32: return TESSERA_F32;
  case TS_F64: return TESSERA_F64;
  case TS_C64: return TESSERA_C64;
  case TS_C128: return TESSERA_C128;
  default: return TESSERA_OTHER;
  }
}

/* The place for a call's descriptions of tensors, and their plugin. */
typedef struct description {
  const ts_graph *graph;
  ts_arena *arena;
  const tessera_plugin *plugin;
} description;

static ts_status describe(const description *d, ts_value_id id, tessera_tensor *out) {
  const ts_value *v = ts_graph_value(d->graph, id);
  void *dims;
  TS_TRY(ts_arena_copy(d->arena, v->shape->dims, (size_t)v->shape->rank * sizeof *v->shape->dims, &dims));
  *out = (tessera_tensor){.type = type_of(v->dtype, d->plugin),
                          .rank = v->shape->rank,
                          .dims = dims,
                          .elements = ts_shape_elements(v->shape),
                          .bytes = ts_shape_bytes(v->shape, v->dtype)};
  return TS_SUCCESS;
}

static ts_status describe_all(const description *d, const ts_op *op, tessera_call *out) {
  tessera_tensor *tensors;
  TS_TRY(TS_ARENA_ARRAY(d->arena, (size_t)op->operand_count + op->result_count, &tensors));
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(describe(d, op->operands[i], &tensors[i]));
  out->operands = tensors;
  out->operand_count = (int32_t)op->operand_count;
  tensors += op->operand_count;
  for (uint32_t i = 0; i < op->result_count; i++) TS_TRY(describe(d, op->first_result + i, &tensors[i]));
  out->results = tensors;
  out->result_count = (int32_t)op->result_count;
  return TS_SUCCESS;
}

static ts_status failed(const known_target *known, ts_code code, const running_call *running) {
  return ts_error(code, "custom_call: %s of plugin %s: %s", known->target->name, known->plugin->name,
                  running->error[0] ? running->error : "it failed without a reason");
}

static ts_status check_call(custom_plan *plan) {
  running_call running = {.parallel = &ts_parallel_serial};
  tessera_call call = plan->call;
  call.threads = 1;
  call.core = &running;
  if (!plan->known.target->check) return TS_SUCCESS;
  if (plan->known.target->check(&core, &call, &plan->needs) != TESSERA_OK)
    return failed(&plan->known, TS_INVALID_ARGUMENT, &running);
  if (plan->needs.workspace < 0 || plan->needs.workspace > MOST_WORKSPACE)
    return ts_error(TS_OUT_OF_RANGE, "custom_call: %s of plugin %s asks for %lld bytes of workspace",
                    plan->known.target->name, plan->known.plugin->name, (long long)plan->needs.workspace);
  plan->call.workspace_bytes = plan->needs.workspace;
  return TS_SUCCESS;
}

static ts_status make_plan(const ts_graph *g, const ts_op *op, ts_arena *arena, custom_plan *out) {
  const ts_buffer *text = op->attrs->custom.call;
  TS_TRY(ts_custom_parse(arena, text->data, (size_t)text->bytes, &out->call));
  TS_TRY(find_target(out->call.target, &out->known));
  TS_TRY(describe_all(&(description){g, arena, out->known.plugin}, op, &out->call));
  return check_call(out);
}

/* The memory and the threads of one run. */
typedef struct call_run {
  tessera_tensor *tensors; /* operands, then results, with data */
  void *workspace;
  const ts_parallel *parallel;
  const _Atomic bool *cancel;
} call_run;

static ts_status run_call(const custom_plan *plan, const call_run *run) {
  running_call running = {.cancel = run->cancel, .parallel = run->parallel};
  tessera_call call = plan->call;
  call.operands = run->tensors;
  call.results = run->tensors + call.operand_count;
  call.threads = run->parallel->width;
  call.workspace = run->workspace;
  call.core = &running;
  int failure = plan->known.target->run(&core, &call);
  TS_TRY(ts_check_cancelled(run->cancel, "the run"));
  return failure == TESSERA_OK ? TS_SUCCESS : failed(&plan->known, TS_FAILED_PRECONDITION, &running);
}

/* A copy of the tensors' descriptions; each run adds its pointers to it. */
static ts_status copy_tensors(const tessera_call *call, tessera_tensor **out) {
  size_t operands = (size_t)call->operand_count, results = (size_t)call->result_count;
  TS_TRY(TS_NEW_ARRAY(operands + results + 1, out));
  if (operands > 0) memcpy(*out, call->operands, operands * sizeof **out);
  if (results > 0) memcpy(*out + operands, call->results, results * sizeof **out);
  return TS_SUCCESS;
}

/* ---- the alignment that the interface promises ---- */

static bool is_aligned(const tessera_tensor *t) { return t->bytes == 0 || (uintptr_t)t->data % TS_POOL_ALIGNMENT == 0; }

/* Copies of the operands that are not aligned, in one block of `bytes` bytes. An operand may be a part of another
 * tensor, or the memory of a binary. */
typedef struct copies {
  int64_t bytes;
  void *block;
} copies;

static ts_status align_operands(tessera_tensor *operands, int32_t count, copies *out) {
  *out = (copies){0};
  for (int32_t i = 0; i < count; i++)
    if (!is_aligned(&operands[i])) out->bytes += ts_pool_padded(operands[i].bytes);
  if (out->bytes == 0) return TS_SUCCESS;
  TS_TRY(ts_pool_alloc(ts_pool_default(), out->bytes, &out->block));
  char *to = out->block;
  for (int32_t i = 0; i < count; i++) {
    tessera_tensor *t = &operands[i];
    if (is_aligned(t)) continue;
    memcpy(to, t->data, (size_t)t->bytes);
    t->data = to;
    to += ts_pool_padded(t->bytes);
  }
  return TS_SUCCESS;
}

/* Runs the call on aligned operands. */
static ts_status run_aligned(const custom_plan *plan, const call_run *run) {
  copies aligned;
  TS_TRY(align_operands(run->tensors, plan->call.operand_count, &aligned));
  ts_status status = run_call(plan, run);
  if (aligned.block) ts_pool_free(ts_pool_default(), aligned.block, aligned.bytes);
  return status;
}

/* ---- the routine ---- */

/* Of a call that does not say how long it takes: a run with it leaves the scheduler, so that it can be cancelled. */
enum { UNKNOWN_NS = 10 * 1000 * 1000 };

/* To leave the scheduler for a call, and to come back, takes tens of microseconds. */
enum { LONG_NS = 1000 * 1000 };

static ts_status custom_plan_make(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  custom_plan *plan;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &plan));
  TS_TRY(make_plan(request->graph, op, request->arena, plan));
  out->state = plan;
  out->varies = true;
  out->cost_ns = plan->needs.nanoseconds > 0 ? plan->needs.nanoseconds : UNKNOWN_NS;
  out->is_foreign = out->cost_ns >= LONG_NS;
  out->workspace = plan->needs.workspace;
  return TS_SUCCESS;
}

static ts_status custom_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const custom_plan *custom = plan->state;
  tessera_tensor *tensors;
  TS_TRY(copy_tensors(&custom->call, &tensors));
  for (int32_t i = 0; i < custom->call.operand_count; i++)
    tensors[i].data = (void *)(uintptr_t)ts_routine_operand(run, (uint32_t)i);
  for (int32_t i = 0; i < custom->call.result_count; i++)
    tensors[custom->call.operand_count + i].data = ts_routine_result(run, (uint32_t)i);
  ts_status status = run_aligned(custom, &(call_run){tensors, run->workspace, run->parallel, run->cancel});
  ts_free(tensors);
  return status;
}

const ts_routine ts_custom_routine = {"custom_call", custom_plan_make, NULL, custom_run, NULL};

/* ---- the interpreter ---- */

static ts_status compute(const ts_custom_values *values, const custom_plan *plan, void *workspace,
                         const _Atomic bool *cancel) {
  tessera_tensor *tensors;
  TS_TRY(copy_tensors(&plan->call, &tensors));
  for (int32_t i = 0; i < plan->call.operand_count; i++) tensors[i].data = values->operands[i]->data;
  for (int32_t i = 0; i < plan->call.result_count; i++)
    tensors[plan->call.operand_count + i].data = values->results[i]->data;
  ts_status status = run_aligned(plan, &(call_run){tensors, workspace, &ts_parallel_serial, cancel});
  ts_free(tensors);
  return status;
}

ts_status ts_custom_compute(const ts_custom_values *values, ts_pool *pool, const _Atomic bool *cancel) {
  ts_arena arena;
  custom_plan plan = {0};
  ts_buffer *workspace = NULL;
  ts_arena_init(&arena);
  ts_status status = make_plan(values->graph, values->op, &arena, &plan);
  if (!status && plan.needs.workspace > 0)
    status = ts_buffer_create(pool, TS_U8, &(ts_shape){.rank = 1, .dims = {plan.needs.workspace}}, &workspace);
  if (!status) status = compute(values, &plan, workspace ? workspace->data : NULL, cancel);
  ts_buffer_release(workspace);
  ts_arena_deinit(&arena);
  return status;
}

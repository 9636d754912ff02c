#include "nif/nif_eager.h"

#include "front/call.h"
#include "front/programs.h"
#include "nif/digest/nif_digest.h"
#include "nif/expr/nif_expr.h"
#include "nif/nif_job.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_profile.h"
#include "nif/run/nif_run.h"

#include <string.h>

ERL_NIF_TERM ts_nif_eager_clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* eager_clear() -> ok */
  (void)env, (void)argc, (void)argv;
  ts_eager_programs_clear();
  ts_nif_expr_forget();
  ts_nif_digest_forget();
  return ts_atom.ok_;
}

/* ---- a call ---- */

enum { FEW = 4 };

/* A call, and what its terms hold: tensors are pinned. */
typedef struct call {
  ts_call of;
  ts_nif_args args;
  ts_number *numbers, few[FEW];
} call;

static ts_status get_operand(ErlNifEnv *env, ERL_NIF_TERM term, call *c) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  if (ts_nif_tessera_get(env, term, &ref)) {
    if (ts_nif_tensor_get(env, ref, &tensor)) return ts_nif_args_add_tensor(&c->args, tensor, false);
    if (enif_is_list(env, ref))
      return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
  }
  if (!ts_nif_get_number(env, term, &c->numbers[c->args.count]))
    return ts_nif_expected(env, "a tensor or a number", term);
  ts_nif_args_add_buffer(&c->args, NULL);
  return TS_SUCCESS;
}

static void free_call(call *c) {
  ts_nif_args_done(&c->args, false);
  if (c->numbers != c->few) ts_free(c->numbers);
}

/* After the operands were decoded. */
static void set_operands(call *c) {
  c->of.buffers = c->args.buffers;
  c->of.numbers = c->numbers;
  c->of.count = c->args.count;
  c->of.device = ts_call_device(c->args.buffers, c->args.count);
}

static ts_status get_operands(ErlNifEnv *env, ERL_NIF_TERM list, unsigned count, call *c) {
  ERL_NIF_TERM head;
  if (count > FEW) TS_TRY(TS_NEW_ARRAY(count, &c->numbers));
  for (unsigned i = 0; i < count && enif_get_list_cell(env, list, &head, &list); i++) {
    ts_status status = get_operand(env, head, c);
    if (status) return ts_error_context(status, "%s, operand %u", ts_op_name(c->of.code), i + 1);
  }
  set_operands(c);
  return TS_SUCCESS;
}

/* On success the caller must free the call. */
static ts_status get_call(ErlNifEnv *env, const ERL_NIF_TERM argv[], call *out) {
  unsigned count;
  out->numbers = out->few;
  TS_TRY(ts_nif_get_opcode(env, argv[1], &out->of.code));
  TS_TRY(ts_nif_get_attrs(env, out->of.code, argv[3], &out->of.attrs));
  if (!enif_get_list_length(env, argv[2], &count)) return ts_nif_expected(env, "a list of operands", argv[2]);
  TS_TRY(ts_nif_args_init(&out->args, count));
  ts_status status = get_operands(env, argv[2], count, out);
  if (status) free_call(out);
  return status;
}

static bool find_program(const ts_call_key *k, ts_eager_use *out) {
  return ts_eager_program_find(k->data, k->words * sizeof *k->data, out);
}

/* ---- running ---- */

/* A tensor for the one result, or a list of tensors. Takes the results over. */
static ts_status make_results(ErlNifEnv *env, ts_buffer **results, size_t count, ERL_NIF_TERM *out) {
  ERL_NIF_TERM term, list = enif_make_list(env, 0);
  ts_status status = TS_SUCCESS;
  if (count == 1) return ts_nif_tensor_make(env, results[0], out);
  for (size_t i = count; i-- > 0;) {
    if (status)
      ts_buffer_release(results[i]);
    else if (!(status = ts_nif_tensor_make(env, results[i], &term)))
      list = enif_make_list_cell(env, term, list);
  }
  *out = list;
  return status;
}

/* Numbers get the types that the program has for them. Ends the use of the arguments. */
static ts_status run_call(ErlNifEnv *env, const ts_loaded *executable, call *c, ts_run_control *control,
                          ERL_NIF_TERM *out) {
  const ts_type *const *types = executable->param_types;
  ts_buffer *results[TS_MAX_RESULTS];
  c->args.checked = true;
  for (size_t i = 0; i < c->args.count; i++)
    if (!c->args.buffers[i]) TS_TRY(ts_nif_number_buffer(&c->numbers[i], types[i], &c->args.buffers[i]));
  ts_run_options options = {.device = c->of.device, .control = control, .profile = ts_nif_profile(env)};
  TS_TRY(ts_nif_run_program(executable, &c->args, &options, results));
  return make_results(env, results, executable->result_count, out);
}

static ts_status make_view(ErlNifEnv *env, const call *c, ERL_NIF_TERM *out) {
  ts_buffer *view, *base = c->args.buffers[0];
  TS_TRY(ts_buffer_alias(base, base->dtype, &c->of.attrs.shape, &view));
  return ts_nif_tensor_make(env, view, out);
}

/* ---- on devices that the process waits for: the caller runs the program that it gets ---- */

static ERL_NIF_TERM program_of(ErlNifEnv *env, ts_loaded *executable, ts_device *device) {
  ERL_NIF_TERM term;
  TS_NIF_TRY(env, ts_nif_executable_make(env, executable, device, &term));
  return enif_make_tuple2(env, ts_atom.program_, term);
}

static ERL_NIF_TERM op_compiled(ErlNifEnv *env, ts_nif_job *job) {
  ts_loaded *executable = job->loaded;
  job->loaded = NULL;
  ts_eager_program_add(job->key, job->key_bytes, executable);
  return program_of(env, executable, job->device);
}

static ts_status start_compiling(ErlNifEnv *env, const call *c, const ts_call_key *k, ts_nif_job *job) {
  job->device = c->of.device;
  job->key_bytes = k->words * sizeof *k->data;
  TS_TRY(ts_alloc(job->key_bytes, &job->key));
  memcpy(job->key, k->data, job->key_bytes);
  TS_TRY(ts_call_graph(&c->of, &job->graph));
  ErlNifEnv *before = ts_nif_calling(env);
  ts_loaded_create_start(job->device->client, job->graph, &(ts_program_options){.cancel = &job->cancel}, &job->loaded,
                         ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return TS_SUCCESS;
}

static ERL_NIF_TERM compile_there(ErlNifEnv *env, const call *c, const ts_call_key *k) {
  ts_nif_job *job;
  TS_NIF_TRY(env, ts_nif_job_new(env, op_compiled, &job));
  ts_status status = start_compiling(env, c, k, job);
  if (!status) return ts_nif_job_return(env, job);
  ts_nif_job_drop(job);
  return ts_nif_error(env, status);
}

static ERL_NIF_TERM found_there(ErlNifEnv *env, const call *c, ts_eager_use *use) {
  ts_loaded *executable = ts_eager_program_executable(use);
  ts_loaded_retain(executable);
  ts_eager_program_done(use);
  return program_of(env, executable, c->of.device);
}

/* ---- on all devices ---- */

/* On a dirty scheduler, where compiling and long runs are allowed. */
static ts_status run_dirty(ErlNifEnv *env, call *c, const ts_call_key *k, ts_run_control *control, ERL_NIF_TERM *out) {
  ts_loaded *executable;
  ts_eager_use use;
  if (find_program(k, &use)) {
    executable = ts_eager_program_executable(&use);
    ts_loaded_retain(executable); /* a cache use is for short programs only */
    ts_eager_program_done(&use);
  } else {
    TS_TRY(ts_call_compile(&c->of, &control->cancel, &executable));
    ts_eager_program_add(k->data, k->words * sizeof *k->data, executable);
  }
  ts_status status = run_call(env, executable, c, control, out);
  ts_loaded_release(executable);
  return status;
}

static void begin_there(ErlNifEnv *env, const call *c, const ts_call_key *k, bool *out_done, ERL_NIF_TERM *out) {
  if ((*out_done = ts_device_waits(c->of.device))) *out = compile_there(env, c, k);
}

/* *out_done is false when the call must move to a dirty scheduler. A program that was found says whether the process
 * waits for its device: the program is read anyway, and the device's platform is not. */
static ts_status run_here(ErlNifEnv *env, call *c, const ts_call_key *k, bool *out_done, ERL_NIF_TERM *out) {
  ts_eager_use use;
  ts_status status = TS_SUCCESS;
  *out_done = false;
  if (!find_program(k, &use)) {
    begin_there(env, c, k, out_done, out);
    return TS_SUCCESS;
  }
  const ts_loaded *executable = ts_eager_program_executable(&use);
  if (executable->waits) {
    *out_done = true;
    *out = found_there(env, c, &use);
    return TS_SUCCESS;
  }
  if (ts_loaded_stays(executable)) {
    *out_done = true;
    status = run_call(env, executable, c, NULL, out);
    ts_nif_spend(env, executable);
  }
  ts_eager_program_done(&use);
  return status;
}

/* On a dirty scheduler `out_done` is NULL, else `control` is. */
static ts_status run_op(ErlNifEnv *env, const ERL_NIF_TERM argv[], ts_run_control *control, bool *out_done,
                        ERL_NIF_TERM *out) {
  call c;
  ts_call_key k;
  TS_TRY(get_call(env, argv, &c));
  ts_status status;
  if (ts_call_is_view(&c.of)) {
    if (out_done) *out_done = true;
    status = make_view(env, &c, out);
  } else if (!(status = ts_call_key_init(&c.of, &k))) {
    status = out_done ? run_here(env, &c, &k, out_done, out) : run_dirty(env, &c, &k, control, out);
    ts_call_key_deinit(&k);
  }
  free_call(&c);
  return status;
}

/* The arguments of op/4, then a run that watches the caller. */
static ERL_NIF_TERM op_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM term, run = argv[argc - 1];
  ts_status status = run_op(env, argv, &ts_nif_run_get(env, run)->control, NULL, &term);
  return ts_nif_run_return(
      env, run, status ? ts_nif_error(env, status) : ts_nif_profiled(env, ts_nif_with_much_pressure(env, term)));
}

ERL_NIF_TERM ts_nif_op(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* op(Builder | undefined, Name :: atom(), [Tensor | number()], Attrs) -> Tensor | [Tensor, ...] | {program,
   * Executable} | {waiting, Job}: a list when the op has several results. On a device that the process waits for,
   * {program, Executable}, at once or as the job's result: run/4 with the same operands gives the list of results.
   * Traced when there is a builder, else run at once: here when that is short, or on a dirty scheduler. Or crowded, as
   * run/4. */
  ts_nif_builder *builder;
  ts_opcode code;
  bool done;
  ERL_NIF_TERM term;
  if (!ts_nif_is_atom(argv[0], ts_atom.undefined_) && ts_nif_builder_get(env, argv[0], &builder)) {
    TS_NIF_TRY(env, ts_nif_get_opcode(env, argv[1], &code));
    return ts_nif_builder_op(env, builder, code, argv);
  }
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  if (ts_nif_is_crowded()) return ts_atom.crowded_;
  TS_NIF_TRY(env, run_op(env, argv, NULL, &done, &term));
  if (done) return ts_nif_profiled(env, ts_nif_with_much_pressure(env, term));
  return ts_nif_run_move(env, op_dirty, argc, argv);
}

/* ---- the short way ---- */

static bool get_handles(ErlNifEnv *env, int count, const ERL_NIF_TERM *refs, ts_nif_args *args) {
  ts_nif_tensor *tensor;
  for (int i = 0; i < count; i++)
    if (!ts_nif_tensor_get(env, refs[i], &tensor) || !ts_status_consume_ok(ts_nif_args_add_tensor(args, tensor, false)))
      return false;
  return true;
}

/* *out_done is false when the caller must use op/4. */
static ts_status run_like(ErlNifEnv *env, call *c, bool *out_done, ERL_NIF_TERM *out) {
  ts_call_key k;
  ts_eager_use use;
  ts_buffer *result;
  set_operands(c);
  TS_TRY(ts_call_key_init(&c->of, &k));
  bool found = find_program(&k, &use);
  ts_call_key_deinit(&k);
  if (!found) return TS_SUCCESS;
  const ts_loaded *executable = ts_eager_program_executable(&use);
  ts_status status = TS_SUCCESS;
  *out_done = ts_eager_program_is_like(&use) && ts_loaded_stays(executable);
  if (*out_done) {
    c->args.checked = true;
    status = ts_nif_run_program(executable, &c->args, &(ts_run_options){.device = c->of.device}, &result);
    if (!status) status = ts_nif_tensor_make_handle(env, result, out);
    ts_nif_spend(env, executable);
  }
  ts_eager_program_done(&use);
  return status;
}

ERL_NIF_TERM ts_nif_op_like(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* op_like(Name, Ref), op_like(Name, Ref, Ref) -> Ref | {pressure, Ref} | crowded | false: runs an op without
   * attributes at once, if its result has the type and shape of the first operand and its program is cached. Otherwise
   * false: the caller must use op/4. */
  call c;
  ERL_NIF_TERM ref = ts_atom.false_;
  bool done = false;
  if (!ts_status_consume_ok(ts_nif_get_opcode(env, argv[0], &c.of.code)) || ts_op_attr_kind(c.of.code) != TS_ATTR_NONE)
    return ts_atom.false_;
  if (!ts_status_consume_ok(ts_nif_turn_check(env)) || ts_nif_profile(env)) return ts_atom.false_;
  if (ts_nif_is_crowded()) return ts_atom.crowded_;
  c.numbers = c.few;
  (void)ts_nif_args_init(&c.args, FEW); /* cannot fail: so few need no allocation */
  ts_status status = get_handles(env, argc - 1, argv + 1, &c.args) ? run_like(env, &c, &done, &ref) : TS_SUCCESS;
  free_call(&c);
  if (status) return ts_nif_error(env, status);
  return done ? ts_nif_with_much_pressure(env, ref) : ts_atom.false_;
}

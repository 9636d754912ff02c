#include "nif/run/nif_known.h"

#include "front/programs.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_profile.h"
#include "nif/run/nif_run.h"

#include <string.h>

enum { FEW = 8, ID_BYTES = 16, MOST_WORDS = 64 };

/* What a function returns: its one result, or a container of all of its results. */
typedef enum result_form { LEAF, TUPLE, LIST } result_form;

/* What selects a program, and the arguments that it was made of. */
typedef struct known {
  ts_nif_args args;
  ts_number numbers[FEW];
  size_t words;
  uint64_t key[MOST_WORDS];
} known;

static bool add_buffer(known *k, const ts_buffer *b) {
  size_t rank = (size_t)b->shape.rank;
  if (k->words + 1 + rank > MOST_WORDS) return false;
  k->key[k->words++] = (uint64_t)b->dtype << 32 | rank;
  for (size_t d = 0; d < rank; d++) k->key[k->words++] = (uint64_t)b->shape.dims[d];
  return true;
}

/* As tessera_tree:number_type/1; an atom is no number there, and complex ones are rare. */
static bool add_number(ErlNifEnv *env, ERL_NIF_TERM term, known *k) {
  ts_number *n = &k->numbers[k->args.count];
  if (k->words == MOST_WORDS || enif_is_atom(env, term) || !ts_nif_get_number(env, term, n) ||
      n->kind == TS_NUMBER_COMPLEX)
    return false;
  k->key[k->words++] = UINT64_C(1) << 63 | (uint64_t)ts_number_dtype(n);
  ts_nif_args_add_buffer(&k->args, NULL);
  return true;
}

static bool add_arg(ErlNifEnv *env, ERL_NIF_TERM term, known *k) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  if (!ts_nif_tessera_get(env, term, &ref)) return add_number(env, term, k);
  return ts_nif_tensor_get(env, ref, &tensor) &&
         ts_status_consume_ok(ts_nif_args_add_tensor(&k->args, tensor, false)) && add_buffer(k, tensor->buffer);
}

/* False for a call that has to take the long way. In any case the arguments need ts_nif_args_done. */
static bool get_call(ErlNifEnv *env, ERL_NIF_TERM id, ERL_NIF_TERM list, known *out) {
  ErlNifBinary bytes;
  ERL_NIF_TERM head;
  (void)ts_nif_args_init(&out->args, FEW); /* cannot fail: so few need no allocation */
  if (!enif_inspect_binary(env, id, &bytes) || bytes.size != ID_BYTES) return false;
  memcpy(out->key, bytes.data, ID_BYTES);
  out->words = ID_BYTES / sizeof *out->key;
  while (enif_get_list_cell(env, list, &head, &list))
    if (out->args.count == FEW || !add_arg(env, head, out)) return false;
  return enif_is_empty_list(env, list);
}

/* ---- calls ---- */

/* Tensors of all results, or of none after an error. */
static ts_status make_tensors(ErlNifEnv *env, ts_buffer *const *results, size_t count, ERL_NIF_TERM *out) {
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; i < count; i++)
    if (status)
      ts_buffer_release(results[i]);
    else
      status = ts_nif_tensor_make(env, results[i], &out[i]);
  return status;
}

static ERL_NIF_TERM in_form(ErlNifEnv *env, result_form form, const ERL_NIF_TERM *tensors, size_t count) {
  switch (form) {
  case TUPLE: return enif_make_tuple_from_array(env, tensors, (unsigned)count);
  case LIST: return enif_make_list_from_array(env, tensors, (unsigned)count);
  case LEAF: break;
  }
  return tensors[0];
}

/* Any error sends the caller the long way, which tells it. */
static ts_status run(ErlNifEnv *env, const ts_eager_use *use, int threads, known *k, ERL_NIF_TERM *out) {
  ts_buffer *results[FEW];
  ERL_NIF_TERM tensors[FEW];
  ts_run_options options = {.threads = threads};
  const ts_loaded *executable = ts_eager_program_executable(use);
  k->args.checked = true;
  for (size_t i = 0; i < k->args.count; i++)
    if (!k->args.buffers[i])
      TS_TRY(ts_nif_number_buffer(&k->numbers[i], executable->param_types[i], &k->args.buffers[i]));
  TS_TRY(ts_nif_run_program(executable, &k->args, &options, results));
  TS_TRY(make_tensors(env, results, executable->result_count, tensors));
  *out = in_form(env, (result_form)ts_known_program_form(use), tensors, executable->result_count);
  return TS_SUCCESS;
}

static ERL_NIF_TERM run_known(ErlNifEnv *env, int threads, known *k) {
  ts_eager_use use;
  ERL_NIF_TERM term = ts_atom.false_;
  if (!ts_known_program_find(k->key, k->words * sizeof *k->key, &use)) return term;
  const ts_loaded *executable = ts_eager_program_executable(&use);
  if (ts_loaded_stays(executable)) {
    if (ts_nif_is_crowded()) {
      term = ts_atom.crowded_;
    } else if (ts_status_consume_ok(run(env, &use, threads, k, &term))) {
      ts_nif_spend(env, executable);
      term = ts_nif_with_much_pressure(env, term);
    } else {
      term = ts_atom.false_;
    }
  }
  ts_eager_program_done(&use);
  return term;
}

ERL_NIF_TERM ts_nif_run_known(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_known(Id, [Tensor | number()], Threads) -> Result | {pressure, Result} | crowded | false: runs the program that
   * known_add/4 was given for this function and these types, and returns what the function does. Otherwise false, and
   * the caller must use run/4. */
  known k;
  int threads;
  (void)argc;
  if (!ts_status_consume_ok(ts_nif_turn_check(env)) || ts_nif_profile(env) ||
      !ts_status_consume_ok(ts_nif_get_threads(env, argv[2], &threads)))
    return ts_atom.false_;
  ERL_NIF_TERM term = get_call(env, argv[0], argv[1], &k) ? run_known(env, threads, &k) : ts_atom.false_;
  ts_nif_args_done(&k.args, false);
  return term;
}

/* ---- the programs ---- */

/* Others are no shorter this way. */
static bool is_plain(const ts_nif_bound *program) {
  const ts_loaded *p = program->loaded;
  return !program->device && !p->waits && !p->may_stop && !p->calls_back && !p->coordinates && p->partitions <= 1 &&
         p->result_count > 0 && p->result_count <= FEW && ts_loaded_stays(p);
}

static bool fits(const ts_loaded *executable, const known *k) {
  if (executable->param_count != k->args.count) return false;
  for (size_t i = 0; i < k->args.count; i++) {
    const ts_type *type = executable->param_types[i];
    const ts_buffer *b = k->args.buffers[i];
    if (b ? b->dtype != type->dtype || !ts_shape_equal(&b->shape, &type->shape) : type->shape.rank != 0) return false;
  }
  return true;
}

static result_form get_form(ERL_NIF_TERM name) {
  if (ts_nif_is_atom(name, ts_atom.tuple_)) return TUPLE;
  return ts_nif_is_atom(name, ts_atom.list_) ? LIST : LEAF;
}

ERL_NIF_TERM ts_nif_known_add(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* known_add(Id, [Tensor | number()], Executable, leaf | tuple | list) -> ok: the program of this function for
   * arguments of these types. The function returns its one result, or a container of them. */
  known k;
  ts_nif_bound program;
  (void)argc;
  if (!ts_nif_executable_find(env, argv[2], &program) || !is_plain(&program)) return ts_atom.ok_;
  if (get_call(env, argv[0], argv[1], &k) && fits(program.loaded, &k))
    ts_known_program_add(k.key, k.words * sizeof *k.key, program.loaded, get_form(argv[3]));
  ts_nif_args_done(&k.args, false);
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_known_clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* known_clear() -> ok */
  (void)env, (void)argc, (void)argv;
  ts_known_programs_clear();
  return ts_atom.ok_;
}

/* Callbacks: a run returns with a call, and continues with the answer. */
#include "nif/nif_attrs.h"
#include "nif/run/nif_run.h"

#include <string.h>

/* ---- calls ---- */

/* {callback, Run, Index, [Binary]}: the contents of the operands, as to_binary gives them. */
ts_status ts_nif_run_make_call(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term, ERL_NIF_TERM *out) {
  ts_run_call call;
  ERL_NIF_TERM binary, list = enif_make_list(env, 0);
  ts_device_run_get_call(r->execution, &call);
  for (uint32_t i = call.operand_count; i-- > 0;) {
    const ts_type *type = call.operand_types[i];
    int64_t elements = ts_shape_elements(&type->shape);
    size_t bytes = (size_t)ts_nif_packed_bytes(type->dtype, elements);
    unsigned char *data = enif_make_new_binary(env, bytes, &binary);
    if (!data) return ts_error_no_memory();
    const void *operand = ts_device_run_operand(r->execution, i);
    if (ts_dtype_bits(type->dtype) < 8)
      ts_nif_pack(type->dtype, operand, elements, data);
    else
      memcpy(data, operand, bytes);
    list = enif_make_list_cell(env, binary, list);
  }
  atomic_store(&r->asks, true);
  *out = enif_make_tuple4(env, ts_atom.callback_, term, enif_make_uint(env, call.index), list);
  return TS_SUCCESS;
}

/* ---- answers ---- */

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

/* Reads a tensor or a number as a reference to a buffer; a number gets the expected type. */
static ts_status get_result(ErlNifEnv *env, ERL_NIF_TERM term, const ts_type *type, ts_buffer **out) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  ts_number number;
  if (ts_nif_tessera_get(env, term, &ref) && ts_nif_tensor_get(env, ref, &tensor)) {
    TS_TRY(ts_nif_tensor_pin(tensor));
    *out = tensor->buffer;
    ts_buffer_retain(*out);
    ts_nif_tensor_unpin(tensor);
    return TS_SUCCESS;
  }
  if (!ts_nif_get_number(env, term, &number)) return ts_nif_expected(env, "a tensor or a number", term);
  return ts_nif_number_buffer(&number, type, out);
}

static ts_status get_results(ErlNifEnv *env, ERL_NIF_TERM list, const ts_run_call *call, ts_buffer **out) {
  ERL_NIF_TERM head;
  for (uint32_t i = 0; i < call->result_count; i++) {
    ts_status status = enif_get_list_cell(env, list, &head, &list)
                           ? get_result(env, head, call->result_types[i], &out[i])
                           : ts_error(TS_INVALID_ARGUMENT, "expected %u results, got %u", call->result_count, i);
    if (!status) continue;
    release_all(out, i);
    return ts_error_context(status, "result %u of a callback", i + 1);
  }
  if (enif_is_empty_list(env, list)) return TS_SUCCESS;
  release_all(out, call->result_count);
  return ts_error(TS_INVALID_ARGUMENT, "expected %u results of a callback, got more", call->result_count);
}

/* A run of the host would wait here for the transfer of a result that the host cannot read. */
static ts_status check_here(const ts_loaded *executable, ts_buffer *const *given, size_t count) {
  void *bytes;
  for (size_t i = 0; !executable->waits && i < count; i++) TS_TRY(ts_device_bytes(given[i], &bytes));
  return TS_SUCCESS;
}

static ts_status take_answer(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM list) {
  ts_run_call call;
  ts_buffer **given;
  ts_device_run_get_call(r->execution, &call);
  TS_TRY(TS_NEW_ARRAY(call.result_count, &given));
  ts_status status = get_results(env, list, &call, given);
  if (!status) {
    status = check_here(r->executable, given, call.result_count);
    if (!status) status = ts_device_run_answer(r->execution, given, call.result_count);
    release_all(given, call.result_count);
  }
  ts_free(given);
  return status;
}

static ts_status get_asking(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_long_run **out) {
  *out = ts_nif_run_get(env, term);
  if (!*out) return ts_nif_expected(env, "a run", term);
  if (atomic_exchange(&(*out)->asks, false)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "the run waits for no answer");
}

ERL_NIF_TERM ts_nif_run_answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_answer(Run, [Tensor | number()]) -> as run/4: passes the results of the callback that the run waits for, and
   * resumes it. A wrong answer ends the run; after the error `elsewhere' it still waits for an answer. */
  ts_nif_long_run *r;
  (void)argc;
  TS_NIF_TRY(env, get_asking(env, argv[0], &r));
  ts_status status = take_answer(env, r, argv[1]);
  if (ts_status_code(status) == TS_ELSEWHERE) {
    atomic_store(&r->asks, true);
    return ts_nif_error(env, status);
  }
  if (status) {
    ts_nif_run_drop(r);
    return ts_nif_run_return(env, argv[0], ts_nif_error(env, status));
  }
  return ts_nif_run_go_on(env, r, argv[0], r->executable->is_short || r->executable->waits);
}

ERL_NIF_TERM ts_nif_run_abandon(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_abandon(Run) -> ok: ends the run instead of answering; its arguments and memory are released at once */
  ts_nif_long_run *r;
  (void)argc;
  TS_NIF_TRY(env, get_asking(env, argv[0], &r));
  ts_nif_run_drop(r);
  return ts_nif_run_return(env, argv[0], ts_atom.ok_);
}

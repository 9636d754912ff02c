/* Tensors as resources. In Erlang one is {tessera, Ref, Type, Shape}. A resource holds one reference to its buffer
 * until it is collected, deallocated or donated; a call that uses the buffer pins the resource meanwhile.
 * Thread-safe. */
#ifndef TS_NIF_TENSOR_H
#define TS_NIF_TENSOR_H

#include "nif/nif_device.h"
#include "nif/nif_util.h"
#include "tensor/buffer.h"

/* States, by `pins`: n > 0: alive, with n - 1 calls that use it; 0: released. A deallocated one refuses new pins and is
 * released with the last. */
typedef struct ts_nif_tensor {
  _Atomic uint32_t pins;
  _Atomic bool deallocated;
  ts_buffer *buffer;
  struct ts_nif_mark *mark;          /* freed with its buffer; NULL: none (nif/profile/nif_makers.h) */
  struct ts_mapping *_Atomic shared; /* its newest copy in shared memory, or NULL; removed with the resource */
} ts_nif_tensor;

bool ts_nif_tensor_init(ErlNifEnv *env, ErlNifResourceFlags flags);
bool ts_nif_binary_init(ErlNifEnv *env, ErlNifResourceFlags flags); /* nif_binary.c */

/* A copy of more bytes takes longer than a millisecond, at 4 GB/s, and needs a dirty scheduler. */
#define TS_NIF_LONG_COPY ((size_t)4 << 20)

/* The term for a new tensor, which its buffer's device counts; takes over the caller's reference, also on failure. */
ts_status ts_nif_tensor_make(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out);
/* The same, but only Ref. */
ts_status ts_nif_tensor_make_handle(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out);
/* False when `term` is no tensor handle. The pointer lives as long as the term. */
bool ts_nif_tensor_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out);
/* False when `term` is no {tessera, Ref, ...}. Else returns Ref, of whatever kind. */
bool ts_nif_tessera_get(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out_ref);

/* On success tensor->buffer may be used until ts_nif_tensor_unpin. */
ts_status ts_nif_tensor_pin(ts_nif_tensor *tensor);
/* Finds and pins the tensor in a NIF's argument. */
ts_status ts_nif_tensor_get_pinned(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out);
void ts_nif_tensor_unpin(ts_nif_tensor *tensor);
/* Takes the buffer out of a tensor that no other call uses; false when one does. Undone by give_back. */
bool ts_nif_tensor_take(ts_nif_tensor *tensor);
void ts_nif_tensor_give_back(ts_nif_tensor *tensor);
/* After a take, when the run has taken over the buffer. */
void ts_nif_tensor_taken(ts_nif_tensor *tensor);

/* The status of a NIF on a dirty scheduler whose process has died (enif_is_current_process_alive() is false). No
 * process receives it. */
static inline ts_status ts_nif_caller_died(void) { return ts_error(TS_CANCELLED, "the calling process has died"); }

/* Whether the caller should collect garbage before it makes tensors, so that these take the memory that the last ones
 * leave, while it is in the caches. The NIF then returns `crowded` and does nothing else. Each caller that is told so
 * stands for more than a megabyte of new tensors, so a call that is repeated is not put off for ever. */
bool ts_nif_is_crowded(void);
/* The result of a NIF that made tensors: `term`, or {pressure, term} when the process should collect garbage. A NIF
 * that asks ts_nif_is_crowded() first uses ts_nif_with_much_pressure(). */
ERL_NIF_TERM ts_nif_with_pressure(ErlNifEnv *env, ERL_NIF_TERM term);
ERL_NIF_TERM ts_nif_with_much_pressure(ErlNifEnv *env, ERL_NIF_TERM term);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_deallocate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_device_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_is_elsewhere(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_to_device(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_reset_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_trim(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
/* nif_binary.c */
ERL_NIF_TERM ts_nif_from_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_to_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
/* nif_list.c */
ERL_NIF_TERM ts_nif_from_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_to_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* A binary of `bytes` bytes of a buffer in host memory. The binary keeps the buffer alive. The bytes may not begin
 * where a page does. */
ts_status ts_nif_view(ErlNifEnv *env, ts_buffer *buffer, int64_t at, int64_t bytes, ERL_NIF_TERM *out);
/* Bytes of `elements` in a binary. Elements of fewer than 8 bits are packed there, the first in the high bits, and the
 * last byte is padded with zeros. */
int64_t ts_nif_packed_bytes(ts_dtype dtype, int64_t elements);
/* Packs elements of a type of fewer than 8 bits. */
void ts_nif_pack(ts_dtype dtype, const void *elements, int64_t count, unsigned char *out);

#endif

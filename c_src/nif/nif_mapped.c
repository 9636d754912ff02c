#include "nif/nif_mapped.h"

#include "base/mapped_file.h"
#include "base/regular_file.h"
#include "nif/nif_tensor.h"
#include "nif/nif_turns.h"

#include <limits.h>
#include <stdint.h>

static ErlNifResourceType *mapped_type;

static void destroy(ErlNifEnv *env, void *file) {
  (void)env;
  ts_mapped_file_close(file);
}

bool ts_nif_mapped_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  mapped_type = enif_open_resource_type(env, NULL, "tessera_mapped_file", destroy, flags, NULL);
  return mapped_type;
}

ERL_NIF_TERM ts_nif_map_file(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* map_file(Path) -> binary(): the contents of a regular file; terms with parts of the binary keep the mapping */
  char path[PATH_MAX];
  ts_mapped_file opened;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_path(env, argv[0], path));
  TS_NIF_TRY(env, ts_mapped_file_open(path, &opened));
  ts_mapped_file *file = enif_alloc_resource(mapped_type, sizeof *file);
  if (!file) {
    ts_mapped_file_close(&opened);
    return ts_nif_error(env, ts_error_no_memory());
  }
  *file = opened;
  ERL_NIF_TERM binary =
      file->size > 0 ? enif_make_resource_binary(env, file, file->data, file->size) : ts_nif_binary(env, "", 0);
  enif_release_resource(file);
  return binary;
}

/* ---- copies ---- */

static bool is_wanted(void *env) { return enif_is_current_process_alive(env); }

/* A binary of tensor memory. Its bytes begin one unit of alignment behind a page, so that a tensor's binary may be a
 * view of them as well (nif_binary.c). */
static ts_status read_open(ErlNifEnv *env, const ts_regular_file *file, ERL_NIF_TERM *out) {
  ts_buffer *buffer;
  if (file->size > INT64_MAX - TS_POOL_ALIGNMENT) return ts_error(TS_OUT_OF_RANGE, "it is too large");
  const ts_shape shape = {.rank = 1, .dims = {(int64_t)file->size + TS_POOL_ALIGNMENT}};
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_U8, &shape, &buffer));
  char *to = (char *)buffer->data + TS_POOL_ALIGNMENT;
  ts_status status = ts_regular_file_read(file, to, (ts_goes_on){.ask = is_wanted, .context = env});
  if (!status) status = ts_nif_view(env, buffer, TS_POOL_ALIGNMENT, (int64_t)file->size, out);
  ts_buffer_release(buffer);
  return status;
}

ERL_NIF_TERM ts_nif_read_file(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* read_file(Path) -> binary() | {pressure, binary()}: a copy of the contents of a regular file, in tensor memory */
  char path[PATH_MAX];
  ts_regular_file file;
  ERL_NIF_TERM contents;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_path(env, argv[0], path));
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  TS_NIF_TRY(env, ts_regular_file_open(path, &file));
  ts_status status = TS_SUCCESS;
  if (file.size > 0)
    status = read_open(env, &file, &contents);
  else
    contents = ts_nif_binary(env, "", 0);
  ts_regular_file_close(&file);
  return status ? ts_nif_error(env, status) : ts_nif_with_pressure(env, contents);
}

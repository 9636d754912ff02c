#include "nif/nif_file.h"

#include "base/file.h"
#include "nif/nif_util.h"
#include "tensor/pool.h"

#include <string.h>

static ts_status get_place(ErlNifEnv *env, const ERL_NIF_TERM argv[], char out_path[PATH_MAX],
                           ts_file_layout *out_layout) {
  ErlNifBinary layout;
  TS_TRY(ts_nif_get_path(env, argv[0], out_path));
  if (!enif_inspect_binary(env, argv[1], &layout) || layout.size != sizeof out_layout->bytes)
    return ts_nif_expected(env, "the hash of a layout", argv[1]);
  memcpy(out_layout->bytes, layout.data, layout.size);
  return TS_SUCCESS;
}

/* What holds the contents is not tensor memory, but tensors are made of them. */
static int64_t most_bytes(void) {
  ts_pool_stats stats;
  ts_pool_get_stats(ts_pool_default(), &stats);
  return stats.limit;
}

static ts_status read_into(ts_sealed *sealed, ErlNifBinary *out) {
  if (enif_alloc_binary(sealed->size, out)) {
    ts_status status = ts_sealed_read(sealed, out->data);
    if (status) enif_release_binary(out);
    return status;
  }
  ts_sealed_close(sealed);
  return ts_error_no_memory();
}

ERL_NIF_TERM ts_nif_file_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* file_read(Path, Layout) -> Contents | undefined: undefined where there is no file. An error says why a file is not
   * used */
  char path[PATH_MAX];
  ts_file_layout layout;
  ts_sealed sealed;
  ErlNifBinary contents;
  (void)argc;
  TS_NIF_TRY(env, get_place(env, argv, path, &layout));
  TS_NIF_TRY(env, ts_sealed_open(path, &layout, most_bytes(), &sealed));
  if (sealed.file < 0) return ts_atom.undefined_;
  TS_NIF_TRY(env, read_into(&sealed, &contents));
  return enif_make_binary(env, &contents);
}

ERL_NIF_TERM ts_nif_file_write(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* file_write(Path, Layout, Contents) -> ok: replaces an existing file */
  char path[PATH_MAX];
  ts_file_layout layout;
  ErlNifBinary contents;
  (void)argc;
  TS_NIF_TRY(env, get_place(env, argv, path, &layout));
  if (!enif_inspect_binary(env, argv[2], &contents))
    return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[2]));
  TS_NIF_TRY(env, ts_sealed_write(path, &layout, contents.data, contents.size));
  return ts_atom.ok_;
}

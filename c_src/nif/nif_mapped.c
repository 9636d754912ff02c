#include "nif/nif_mapped.h"

#include "base/mapped_file.h"
#include "nif/nif_util.h"

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

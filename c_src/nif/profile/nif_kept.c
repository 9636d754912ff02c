#include "nif/profile/nif_kept.h"

#include "nif/nif_util.h"

typedef struct kept {
  ErlNifEnv *env;
  ERL_NIF_TERM term;
} kept;

static ErlNifResourceType *kept_type;

static void destroy(ErlNifEnv *env, void *object) {
  (void)env;
  enif_free_env(((kept *)object)->env);
}

bool ts_nif_kept_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  kept_type = enif_open_resource_type(env, NULL, "tessera_kept", destroy, flags, NULL);
  return kept_type;
}

ERL_NIF_TERM ts_nif_keep(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* keep(Term) -> Kept: with a copy of the term, without sharing */
  (void)argc;
  ErlNifEnv *own = enif_alloc_env();
  if (!own) return ts_nif_error(env, ts_error_no_memory());
  kept *made = enif_alloc_resource(kept_type, sizeof *made);
  if (!made) {
    enif_free_env(own);
    return ts_nif_error(env, ts_error_no_memory());
  }
  *made = (kept){.env = own, .term = enif_make_copy(own, argv[0])};
  ERL_NIF_TERM term = enif_make_resource(env, made);
  enif_release_resource(made);
  return term;
}

ERL_NIF_TERM ts_nif_kept(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* kept(Kept) -> [Term]: [] for a reference of another node or of an earlier load of the library */
  void *found;
  (void)argc;
  if (!enif_get_resource(env, argv[0], kept_type, &found)) return enif_make_list(env, 0);
  return enif_make_list1(env, enif_make_copy(env, ((const kept *)found)->term));
}

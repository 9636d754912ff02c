#include "nif/nif_rank.h"

#include "base/map.h"
#include "base/shared_object.h"
#include "base/system.h"
#include "comm/mpi.h"
#include "jit/session/build_id.h"
#include "jit/session/target.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <unistd.h>

static ts_carrier *_Atomic carrier;
static const ts_mpi_library *library; /* set before the carrier */

ts_carrier *ts_nif_rank_carrier(void) { return atomic_load(&carrier); }

static ts_status load_library(const char *path, const ts_mpi_library **out) {
  void *handle;
  ts_status status = ts_shared_object_open(path, &handle);
  if (status) return ts_error_context(status, "the library for MPI cannot be loaded");
  *out = dlsym(handle, TS_MPI_SYMBOL);
  if (*out && (*out)->abi == TS_MPI_ABI) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "%s is of another version of Tessera", path);
}

/* So that a program gives the same bits on all ranks, they use the same instructions. */
static ts_status take_level(int level) {
  if (ts_target_limit(level)) return TS_SUCCESS;
  return ts_error(
      TS_FAILED_PRECONDITION,
      "a rank has no more than the instruction set %s, and this one has compiled programs for another: join "
      "before that, or set TESSERA_ISA=%s everywhere",
      ts_target_level_name(level), ts_target_level_name(level));
}

/* A number of 62 bits for the builds of both libraries. */
static int64_t build_number(void) {
  char of_mpi[TS_BUILD_ID_TEXT];
  const char *own = ts_jit_build_id();
  size_t length = ts_jit_build_id_of(library, of_mpi, sizeof of_mpi);
  return (int64_t)((ts_hash64(own, strlen(own)) * 3 + ts_hash64(of_mpi, length)) >> 2);
}

static ts_status open_carrier(const char *path, ts_mpi_options *options) {
  static const ts_mpi_core core = {ts_error, ts_system_ns, ts_carrier_agrees};
  ts_carrier *opened;
  options->level = ts_target_level();
  TS_TRY(load_library(path, &library));
  options->build = build_number();
  TS_TRY(library->open(&core, options, &opened));
  TS_TRY(take_level(options->level));
  atomic_store(&carrier, opened);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_rank_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_open(Path, Milliseconds, Version) -> {Rank, Ranks, Mpi}: starts MPI, of this process of a job; waits for the
   * other ranks, which must give the same Version, and have the same builds of the libraries. A rank may be silent for
   * so long. All use the least instruction set */
  char path[4096];
  int64_t patience;
  ts_mpi_options options = {0};
  ErlNifBinary given;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &given) || given.size >= sizeof path)
    return ts_nif_error(env, ts_nif_expected(env, "a path", argv[0]));
  memcpy(path, given.data, given.size);
  path[given.size] = 0;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "milliseconds", &patience));
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[2], "a version", &options.version));
  options.patience_ns = patience * 1000000;
  TS_NIF_TRY(env, open_carrier(path, &options));
  const char *version = library->version(carrier);
  return enif_make_tuple3(env, enif_make_int(env, carrier->rank), enif_make_int(env, carrier->ranks),
                          ts_nif_binary(env, version, strlen(version)));
}

ERL_NIF_TERM ts_nif_rank_isa(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_isa() -> {Architecture, Name}: what programs are compiled for, or will be */
  bool is_arm = ts_target_all(&(size_t){0})->arch == TS_ARCH_AARCH64;
  const char *name = ts_target_level_name(ts_target_level()), *arch = is_arm ? "aarch64" : "x86_64";
  (void)argc, (void)argv;
  return enif_make_tuple2(env, ts_nif_binary(env, arch, strlen(arch)), ts_nif_binary(env, name, strlen(name)));
}

ERL_NIF_TERM ts_nif_rank_build(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_build() -> Text: of another build of this library, or with another LLVM, it is another text */
  const char *build = ts_jit_build_id();
  (void)argc, (void)argv;
  return ts_nif_binary(env, build, strlen(build));
}

ERL_NIF_TERM ts_nif_rank_moved(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_moved() -> {Sent, Received}: bytes of MPI's messages with other ranks, with headers and signs of life */
  const ts_mpi_moved moved = carrier ? library->moved(carrier) : (ts_mpi_moved){0};
  (void)argc, (void)argv;
  return enif_make_tuple2(env, enif_make_int64(env, moved.sent), enif_make_int64(env, moved.received));
}

ERL_NIF_TERM ts_nif_rank_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_close(Milliseconds) -> ok: finalizes MPI, if it was started, as all ranks do */
  int64_t timeout;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "milliseconds", &timeout));
  if (carrier) TS_NIF_TRY(env, library->close(carrier, timeout * 1000000));
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_rank_exit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* rank_exit(Status): ends the process without its libraries' destructors, which would wait for other ranks */
  int64_t status;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "a status", &status));
  _exit((int)(status & 255));
}

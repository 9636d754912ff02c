/* The table of NIFs, and loading. The library is linked -z nodelete: its pool, threads and caches outlive every load
 * and purge of the module, so load is idempotent and upgrade only takes over the resource types. */
#include "nif/digest/nif_digest.h"
#include "nif/expr/nif_expr.h"
#include "nif/nif_block.h"
#include "nif/nif_eager.h"
#include "nif/nif_executable.h"
#include "nif/nif_file.h"
#include "nif/nif_graph.h"
#include "nif/nif_job.h"
#include "nif/nif_local.h"
#include "nif/nif_mapped.h"
#include "nif/nif_mesh.h"
#include "nif/nif_pointer.h"
#include "nif/nif_proxy.h"
#include "nif/nif_rank.h"
#include "nif/nif_signature.h"
#include "nif/nif_turns.h"
#include "nif/nif_watch.h"
#include "nif/profile/nif_kept.h"
#include "nif/profile/nif_makers.h"
#include "nif/profile/nif_places.h"
#include "nif/profile/nif_profile.h"
#include "nif/run/nif_group.h"
#include "nif/run/nif_known.h"
#include "nif/run/nif_run.h"

#include "base/log.h"
#include "exec/pool.h"
#include "jit/jit.h"
#include "kernel/custom.h"

#include <string.h>

/* The version of resources, terms and this table. The Erlang module has the version that it was written for. */
#ifndef TS_NIF_ABI
#define TS_NIF_ABI 27
#endif

/* Why load refuses: the code it returns. tessera_library.erl has the messages. */
enum { REFUSED_ABI = 1, REFUSED_RESOURCES = 2, REFUSED_COPY = 3, REFUSED_ENVIRONMENT = 4 };

/* Kept by the VM between load and unload, and passed to the next version. */
typedef struct private_data {
  uint32_t magic, abi;
  const void *copy; /* identifies this copy of the library: an address in it */
} private_data;

#define MAGIC 0x7e55e7a1u

/* ---- warnings go to a process ---- */

static ErlNifMutex *log_lock;
static ErlNifPid log_pid;

static void log_to_process(const char *message) {
  enif_mutex_lock(log_lock);
  ErlNifPid pid = log_pid;
  enif_mutex_unlock(log_lock);
  ErlNifEnv *env = enif_alloc_env();
  if (!env) return;
  ERL_NIF_TERM text = ts_nif_binary(env, message, strlen(message));
  enif_send(NULL, &pid, env, enif_make_tuple2(env, ts_atom.tessera_log_, text));
  enif_free_env(env);
}

static ERL_NIF_TERM set_log_process(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* set_log_process(pid()) -> ok: it gets {tessera_log, Text :: binary()} */
  ErlNifPid pid;
  (void)argc;
  if (!enif_get_local_pid(env, argv[0], &pid)) return ts_nif_error(env, ts_nif_expected(env, "a local pid", argv[0]));
  enif_mutex_lock(log_lock);
  log_pid = pid;

  enif_mutex_unlock(log_lock);
  ts_log_set_sink(log_to_process);
  return ts_atom.ok_;
}

/* ---- the JIT ---- */

static ERL_NIF_TERM jit_stats(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* jit_stats() -> #{compiled, loaded, reused, evicted, kernels, ... := integer()} */
  ts_jit_stats s;
  (void)argc, (void)argv;
  ts_jit_get_stats(&s);
  ERL_NIF_TERM map, keys[] = {ts_atom.compiled_,       ts_atom.loaded_,     ts_atom.reused_,     ts_atom.evicted_,
                              ts_atom.kernels_,        ts_atom.code_bytes_, ts_atom.compile_ns_, ts_atom.link_ns_,
                              ts_atom.failed_threads_, ts_atom.background_};
  int64_t numbers[] = {s.compiled,   s.loaded,     s.reused,  s.evicted,        s.kernels,
                       s.code_bytes, s.compile_ns, s.link_ns, s.failed_threads, s.background};
  ERL_NIF_TERM values[sizeof numbers / sizeof *numbers];
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) values[i] = enif_make_int64(env, numbers[i]);
  enif_make_map_from_arrays(env, keys, values, sizeof keys / sizeof *keys, &map);
  return map;
}

static ERL_NIF_TERM jit_configure(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* jit_configure(CacheDir :: binary() | undefined, DiskBytes | 0) -> ok; <<>> means no disk cache */
  ErlNifBinary dir;
  int64_t bytes;
  char path[4096];
  (void)argc;
  bool has_dir = enif_inspect_binary(env, argv[0], &dir);
  if (has_dir && (dir.size >= sizeof path || memchr(dir.data, 0, dir.size)))
    return ts_nif_error(env, ts_nif_expected(env, "a path", argv[0]));
  if (has_dir) {
    memcpy(path, dir.data, dir.size);
    path[dir.size] = '\0';
  }
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "a number of bytes", &bytes));
  ts_jit_configure(&(ts_jit_options){.cache_dir = has_dir ? path : NULL, .disk_cache_bytes = bytes});
  return ts_atom.ok_;
}

static ERL_NIF_TERM load_plugin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* load_plugin(Path :: binary()) -> [Target :: binary()] */
  ErlNifBinary given;
  char path[4096];
  const tessera_plugin *plugin;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &given) || given.size >= sizeof path || memchr(given.data, 0, given.size))
    return ts_nif_error(env, ts_nif_expected(env, "a path", argv[0]));
  memcpy(path, given.data, given.size);
  path[given.size] = '\0';
  TS_NIF_TRY(env, ts_custom_load(path, &plugin));
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (uint32_t i = plugin->target_count; i-- > 0;) {
    const char *name = plugin->targets[i].name;
    list = enif_make_list_cell(env, ts_nif_binary(env, name, strlen(name)), list);
  }
  return list;
}

static ERL_NIF_TERM inject_fatal(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* inject_fatal(Count) -> ok: the next compilations fail as if LLVM had a fatal error; for tests */
  int64_t count;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "a count", &count));
  ts_jit_inject_fatal((int)count);
  return ts_atom.ok_;
}

static ERL_NIF_TERM fail_allocation(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* fail_allocation(N) -> Failed: the N-th allocation from now on and all later ones fail; 0: none. Returns how many
   * failed since the last call; for tests */
  int64_t n;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "a count", &n));
  ERL_NIF_TERM failures = enif_make_int64(env, ts_alloc_failures());
  ts_alloc_fail_after(n, true);
  return failures;
}

static ERL_NIF_TERM live_blocks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* live_blocks() -> integer(): allocated blocks of metadata; for tests */
  (void)argc, (void)argv;
  return enif_make_int64(env, ts_alloc_live());
}

static ERL_NIF_TERM cpu_count(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* cpu_count() -> pos_integer() */
  (void)argc, (void)argv;
  return enif_make_int(env, ts_cpu_count());
}

/* ---- loading ---- */

static bool open_all(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ts_nif_util_init(env);
  ts_nif_op_init(env);
  ts_nif_signature_init(env);
  if (!log_lock) log_lock = enif_mutex_create("tessera_log");
  return log_lock && ts_nif_device_init(env) && ts_nif_tensor_init(env, flags) && ts_nif_binary_init(env, flags) &&
         ts_nif_builder_init(env, flags) && ts_nif_watch_init(env, flags) && ts_nif_job_init(env, flags) &&
         ts_nif_expr_init(env, flags) && ts_nif_digest_init(env, flags) && ts_nif_proxy_init(env, flags) &&
         ts_nif_block_init(env, flags) && ts_nif_mapped_init(env, flags) && ts_nif_executable_init(env, flags) &&
         ts_nif_run_init(env, flags) && ts_nif_profile_init(env, flags) && ts_nif_kept_init(env, flags);
}

/* From OTP 26 on the VM tells when it halts; in earlier releases an exit handler has to suffice. */
#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION >= 17
static void on_halt(void *priv) {
  (void)priv;
  ts_jit_stop();
}

static void watch_halt(ErlNifEnv *env) { enif_set_option(env, ERL_NIF_OPT_ON_HALT, on_halt); }
#else
static void watch_halt(ErlNifEnv *env) { (void)env; }
#endif

/* The common part of load and upgrade. */
static int start(ErlNifEnv *env, void **out_priv, int abi) {
  if (abi != TS_NIF_ABI) return REFUSED_ABI;
  if (!open_all(env, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER)) return REFUSED_RESOURCES;
  watch_halt(env);
  private_data *data = enif_alloc(sizeof *data);
  if (!data) return REFUSED_RESOURCES;
  *data = (private_data){MAGIC, TS_NIF_ABI, &log_lock};
  *out_priv = data;
  return 0;
}

/* {ABI, Pid} of load_nif/2. */
static bool get_info(ErlNifEnv *env, ERL_NIF_TERM info, int *out_abi, ErlNifPid *out_pid) {
  int arity;
  const ERL_NIF_TERM *items;
  return enif_get_tuple(env, info, &arity, &items) && arity == 2 && enif_get_int(env, items[0], out_abi) &&
         enif_get_local_pid(env, items[1], out_pid);
}

/* An error has no other way to Erlang than a message: load returns but a number. */
static void tell(ErlNifEnv *env, const ErlNifPid *pid, ts_status error) {
  ErlNifEnv *own = enif_alloc_env();
  if (own) {
    ERL_NIF_TERM text = ts_nif_binary(own, ts_status_message(error), strlen(ts_status_message(error)));
    enif_send(env, pid, own, enif_make_tuple2(own, enif_make_atom(own, "tessera_refused"), text));
    enif_free_env(own);
  }
  ts_status_free(error);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info) {
  int abi;
  ErlNifPid pid;
  if (!get_info(env, info, &abi, &pid)) return REFUSED_ABI;
  ts_status wrong = ts_jit_check_environment();
  if (wrong) {
    tell(env, &pid, wrong);
    return REFUSED_ENVIRONMENT;
  }
  int refused = start(env, priv, abi);
  if (refused) return refused;
  ts_alloc_keep_freed();
  return refused;
}

/* A new version of the module may use the loaded library. Another copy of the library is refused: it would have a pool,
 * caches and threads of its own, and could not use the tensors of the first one. */
static int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info) {
  const private_data *old = *old_priv;
  int abi;
  ErlNifPid pid;
  if (!get_info(env, info, &abi, &pid)) return REFUSED_ABI;
  if (!old || old->magic != MAGIC || old->abi != TS_NIF_ABI) return REFUSED_ABI;
  if (old->copy != &log_lock) return REFUSED_COPY;
  return start(env, priv, abi);
}

static void unload(ErlNifEnv *env, void *priv) {
  (void)env;
  enif_free(priv);
}

#define CPU ERL_NIF_DIRTY_JOB_CPU_BOUND

static ErlNifFunc functions[] = {
    {"from_binary", 4, ts_nif_from_binary, 0},
    {"from_binary", 5, ts_nif_from_binary, 0},
    {"from_list", 2, ts_nif_from_list, 0},
    {"from_list", 3, ts_nif_from_list, 0},
    {"to_binary", 2, ts_nif_to_binary, 0},
    {"to_list", 1, ts_nif_to_list, 0},
    {"deallocate", 1, ts_nif_deallocate, 0},
    {"device", 1, ts_nif_device_of, 0},
    {"to_device", 3, ts_nif_to_device, 0},
    {"is_elsewhere", 1, ts_nif_is_elsewhere, 0},
    {"address", 1, ts_nif_address, 0},
    {"from_address", 4, ts_nif_from_address, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"share", 2, ts_nif_share, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"share", 3, ts_nif_share, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"from_shared", 4, ts_nif_from_shared, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"file_read", 2, ts_nif_file_read, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"file_write", 3, ts_nif_file_write, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"map_file", 1, ts_nif_map_file, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"read_file", 1, ts_nif_read_file, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"client_open", 6, ts_nif_client_open, 0},
    {"client_close", 1, ts_nif_client_close, 0},
    {"client_waits", 1, ts_nif_client_waits, 0},
    {"default_client", 0, ts_nif_default_client, 0},
    {"default_client", 1, ts_nif_default_client, 0},
    {"platforms", 0, ts_nif_platforms, 0},
    {"platform_devices", 1, ts_nif_platform_devices, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"client_devices", 1, ts_nif_client_devices, 0},
    {"clients", 0, ts_nif_clients, 0},
    {"memory", 0, ts_nif_memory, 0},
    {"memory", 1, ts_nif_memory, 0},
    {"client_memory", 1, ts_nif_client_memory, 0},
    {"reset_client_peak", 1, ts_nif_reset_client_peak, 0},
    {"set_limit", 1, ts_nif_set_limit, CPU},
    {"set_limit", 2, ts_nif_set_limit, CPU},
    {"reset_peak", 0, ts_nif_reset_peak, 0},
    {"trim", 0, ts_nif_trim, CPU},
    {"collected", 1, ts_nif_collected, 0},
    {"let_in", 1, ts_nif_let_in, 0},
    {"op", 4, ts_nif_op, 0},
    {"op_like", 2, ts_nif_op_like, 0},
    {"op_like", 3, ts_nif_op_like, 0},
    {"eager_clear", 0, ts_nif_eager_clear, CPU},
    {"builder_new", 1, ts_nif_builder_new, 0},
    {"param", 3, ts_nif_param, 0},
    {"value", 2, ts_nif_value, 0},
    {"region_open", 3, ts_nif_region_open, 0},
    {"region_enter", 2, ts_nif_region_enter, 0},
    {"region_leave", 1, ts_nif_region_leave, 0},
    {"region_finish", 2, ts_nif_region_finish, 0},
    {"control", 5, ts_nif_control, 0},
    {"callback", 4, ts_nif_callback, 0},
    {"custom_call", 4, ts_nif_custom_call, 0},
    {"load_plugin", 1, load_plugin, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"inline_region", 4, ts_nif_inline_region, 0},
    {"inline_program", 3, ts_nif_inline_program, 0},
    {"ops", 3, ts_nif_ops, 0},
    {"finish", 2, ts_nif_finish, 0},
    {"local_view", 1, ts_nif_local_view, 0},
    {"local_sharding", 5, ts_nif_local_sharding, 0},
    {"coordinates", 1, ts_nif_coordinates, 0},
    {"varying", 2, ts_nif_varying, 0},
    {"vary", 3, ts_nif_vary, 0},
    {"has_collective", 2, ts_nif_has_collective, 0},
    {"combine", 1, ts_nif_combine, CPU},
    {"digest", 2, ts_nif_digest, 0},
    {"digest_more", 2, ts_nif_digest_more, 0},
    {"signature", 1, ts_nif_signature, 0},
    {"expression_read", 2, ts_nif_expression_read, 0},
    {"expression_program", 3, ts_nif_expression_program, 0},
    {"expression_pack", 3, ts_nif_expression_pack, 0},
    {"expression_unpack", 1, ts_nif_expression_unpack, 0},
    {"graph_text", 1, ts_nif_graph_text, CPU},
    {"describe", 1, ts_nif_describe, 0},
    {"graph_stablehlo", 1, ts_nif_graph_stablehlo, CPU},
    {"parse", 1, ts_nif_parse, CPU},
    {"read_stablehlo", 1, ts_nif_read_stablehlo, CPU},
    {"read_stablehlo", 2, ts_nif_read_stablehlo, CPU},
    {"stablehlo_leaves", 1, ts_nif_stablehlo_leaves, CPU},
    {"stablehlo_shardings", 1, ts_nif_stablehlo_shardings, CPU},
    {"set_mesh", 3, ts_nif_set_mesh, 0},
    {"set_shardings", 3, ts_nif_set_shardings, 0},
    {"partition", 1, ts_nif_partition, CPU},
    {"cut", 4, ts_nif_cut, 0},
    {"join", 4, ts_nif_join, 0},
    {"interpret", 3, ts_nif_interpret, CPU},
    {"on_device", 2, ts_nif_on_device, 0},
    {"compile", 2, ts_nif_compile, 0},
    {"run", 4, ts_nif_run, 0},
    {"run_known", 3, ts_nif_run_known, 0},
    {"known_add", 4, ts_nif_known_add, 0},
    {"known_clear", 0, ts_nif_known_clear, CPU},
    {"run_answer", 2, ts_nif_run_answer, 0},
    {"run_abandon", 1, ts_nif_run_abandon, 0},
    {"run_group", 4, ts_nif_run_group, 0},
    {"run_resume", 1, ts_nif_run_resume, 0},
    {"run_rank", 5, ts_nif_run_rank, 0},
    {"run_refuse", 3, ts_nif_run_refuse, 0},
    {"block", 2, ts_nif_block, 0},
    {"block_append", 2, ts_nif_block_append, 0},
    {"block_binary", 1, ts_nif_block_binary, 0},
    {"block_tensor", 4, ts_nif_block_tensor, 0},
    {"place", 4, ts_nif_place, 0},
    {"place_is_full", 1, ts_nif_place_is_full, 0},
    {"place_collected", 1, ts_nif_place_collected, 0},
    {"proxy", 3, ts_nif_proxy, 0},
    {"is_proxy", 1, ts_nif_is_proxy, 0},
    {"proxy_info", 1, ts_nif_proxy_info, 0},
    {"proxy_take", 1, ts_nif_proxy_take, 0},
    {"rank_open", 3, ts_nif_rank_open, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"rank_isa", 0, ts_nif_rank_isa, 0},
    {"rank_build", 0, ts_nif_rank_build, 0},
    {"rank_moved", 0, ts_nif_rank_moved, 0},
    {"rank_close", 1, ts_nif_rank_close, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"rank_exit", 1, ts_nif_rank_exit, 0},
    {"executable_info", 1, ts_nif_executable_info, 0},
    {"executable_kernels", 1, ts_nif_executable_kernels, 0},
    {"explain", 1, ts_nif_explain, CPU},
    {"makers", 0, ts_nif_makers, CPU},
    {"profile_start", 1, ts_nif_profile_start, 0},
    {"profile_stop", 1, ts_nif_profile_stop, CPU},
    {"profile_lines", 1, ts_nif_profile_lines, CPU},
    {"profile_rows", 1, ts_nif_profile_rows, CPU},
    {"places_record", 1, ts_nif_places_record, 0},
    {"places_set", 2, ts_nif_places_set, 0},
    {"places_of", 2, ts_nif_places_of, 0},
    {"places_known", 1, ts_nif_places_known, 0},
    {"places_lend", 2, ts_nif_places_lend, CPU},
    {"keep", 1, ts_nif_keep, 0},
    {"kept", 1, ts_nif_kept, 0},
    {"jit_stats", 0, jit_stats, 0},
    {"jit_configure", 2, jit_configure, 0},
    {"set_log_process", 1, set_log_process, 0},
    {"inject_fatal", 1, inject_fatal, 0},
    {"fail_allocation", 1, fail_allocation, 0},
    {"live_blocks", 0, live_blocks, 0},
    {"cpu_count", 0, cpu_count, 0},
};

/* The library is built with hidden symbols; the VM looks this one up. */
#pragma GCC visibility push(default)
ERL_NIF_INIT(tessera_nif, functions, load, NULL, upgrade, unload)
#pragma GCC visibility pop

#include "nif/nif_device.h"

#include "nif/nif_job.h"

#include "base/arena.h"
#include "pjrt/pjrt.h"

#include <string.h>

/* The atoms of the clients, by index. A row is complete before it is counted, so readers need no lock. Atoms are never
 * freed. */
static struct {
  ERL_NIF_TERM name;
  ts_client *client;
} rows[TS_MAX_CLIENTS];
static _Atomic int row_count;
static ErlNifMutex *lock;

static ts_client *find(ERL_NIF_TERM name) {
  int count = atomic_load_explicit(&row_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (enif_is_identical(rows[i].name, name)) return rows[i].client;
  return NULL;
}

/* The lock is held. */
static void add_row(ERL_NIF_TERM name, ts_client *client) {
  if (find(name)) return;
  int count = atomic_load(&row_count);
  rows[count].name = name;
  rows[count].client = client;
  atomic_store_explicit(&row_count, count + 1, memory_order_release);
}

bool ts_nif_device_init(ErlNifEnv *env) {
  (void)env;
  if (lock) return true; /* an upgrade */
  lock = enif_mutex_create("tessera_clients");
  if (!lock) return false;
  add_row(ts_atom.host_, ts_client_host());
  return ts_status_consume_ok(ts_platform_add(&ts_platform_pjrt));
}

ts_status ts_nif_get_client(ErlNifEnv *env, ERL_NIF_TERM term, ts_client **out) {
  *out = find(term);
  if (*out) return TS_SUCCESS;
  return ts_nif_expected(env, "the name of a client that was opened", term);
}

ts_status ts_nif_get_device(ErlNifEnv *env, ERL_NIF_TERM term, ts_device **out) {
  const ERL_NIF_TERM *items;
  int count;
  int64_t id;
  ts_client *client;
  *out = ts_device_default();
  if (enif_is_identical(term, ts_atom.undefined_)) return TS_SUCCESS;
  if (!enif_get_tuple(env, term, &count, &items) || count != 2)
    return ts_nif_expected(env, "a device as {Client, Number}", term);
  TS_TRY(ts_nif_get_client(env, items[0], &client));
  TS_TRY(ts_nif_get_int(env, items[1], "the number of a device", &id));
  return ts_client_device(client, id, out);
}

static ERL_NIF_TERM name_of(const ts_client *client) {
  int count = atomic_load_explicit(&row_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (rows[i].client == client) return rows[i].name;
  return ts_atom.undefined_;
}

ERL_NIF_TERM ts_nif_device(ErlNifEnv *env, const ts_device *device) {
  return enif_make_tuple2(env, name_of(device->client), enif_make_int(env, device->id));
}

/* ---- opening */

static ts_status get_optional(ErlNifEnv *env, ERL_NIF_TERM term, const char *what, int64_t most, int64_t *out) {
  *out = -1;
  if (enif_is_identical(term, ts_atom.undefined_)) return TS_SUCCESS;
  TS_TRY(ts_nif_get_int(env, term, what, out));
  return *out < 0 || *out > most ? ts_nif_expected(env, what, term) : TS_SUCCESS;
}

static ts_status get_platform(ErlNifEnv *env, ERL_NIF_TERM term, const ts_platform **out) {
  char name[64];
  *out = &ts_platform_host;
  if (enif_is_identical(term, ts_atom.undefined_)) return TS_SUCCESS;
  *out = enif_get_atom(env, term, name, sizeof name, ERL_NIF_LATIN1) ? ts_platform_find(name) : NULL;
  return *out ? TS_SUCCESS : ts_nif_expected(env, "the name of a platform that this library has", term);
}

/* ---- settings of other platforms: a list of {Name :: binary(), binary() | integer() | float() | boolean()} */

enum { MOST_SETTINGS = 64 };

typedef struct settings {
  ts_setting items[MOST_SETTINGS];
  size_t count;
  ts_arena texts;
} settings;

static ts_status get_text(ErlNifEnv *env, ERL_NIF_TERM term, ts_arena *texts, const char **out) {
  ErlNifBinary text;
  char *copy;
  if (!enif_inspect_binary(env, term, &text) || memchr(text.data, 0, text.size))
    return ts_nif_expected(env, "a text without zeros as an option of a client", term);
  TS_TRY(ts_arena_alloc(texts, text.size + 1, (void **)&copy));
  memcpy(copy, text.data, text.size);
  *out = copy;
  return TS_SUCCESS;
}

static ts_status get_value(ErlNifEnv *env, ERL_NIF_TERM term, ts_arena *texts, ts_setting *out) {
  ErlNifSInt64 integer;
  if (enif_is_identical(term, ts_atom.true_) || enif_is_identical(term, ts_atom.false_)) {
    out->kind = TS_SETTING_BOOLEAN;
    out->integer = enif_is_identical(term, ts_atom.true_);
  } else if (enif_get_int64(env, term, &integer)) {
    out->kind = TS_SETTING_INTEGER;
    out->integer = integer;
  } else if (enif_get_double(env, term, &out->number)) {
    out->kind = TS_SETTING_FLOAT;
  } else {
    out->kind = TS_SETTING_TEXT;
    return get_text(env, term, texts, &out->text);
  }
  return TS_SUCCESS;
}

static ts_status get_settings(ErlNifEnv *env, ERL_NIF_TERM list, settings *out) {
  ERL_NIF_TERM first;
  const ERL_NIF_TERM *pair;
  int count;
  for (out->count = 0; enif_get_list_cell(env, list, &first, &list); out->count++) {
    ts_setting *item = &out->items[out->count];
    if (out->count == MOST_SETTINGS || !enif_get_tuple(env, first, &count, &pair) || count != 2)
      return ts_nif_expected(env, "at most 64 options of a client, each {Name, Value}", first);
    *item = (ts_setting){0};
    TS_TRY(get_text(env, pair[0], &out->texts, &item->name));
    TS_TRY(get_value(env, pair[1], &out->texts, item));
  }
  return TS_SUCCESS;
}

static ts_status get_opening(ErlNifEnv *env, const ERL_NIF_TERM argv[], char *name, ts_client_options *out) {
  int64_t devices, limit, threads;
  if (!enif_get_atom(env, argv[0], name, TS_CLIENT_NAME_BYTES, ERL_NIF_LATIN1))
    return ts_nif_expected(env, "the name of a client, an atom of Latin-1 characters", argv[0]);
  TS_TRY(get_optional(env, argv[1], "a number of devices", INT32_MAX, &devices));
  TS_TRY(get_optional(env, argv[2], "a limit in bytes", INT64_MAX, &limit));
  TS_TRY(get_optional(env, argv[3], "a number of threads", INT16_MAX, &threads));
  *out = (ts_client_options){
      .device_count = devices < 0 ? 0 : (int32_t)devices, .memory_limit = limit, .threads = (int)threads};
  return get_platform(env, argv[4], &out->platform);
}

static ERL_NIF_TERM client_opened(ErlNifEnv *env, ts_nif_job *job) {
  (void)env;
  enif_mutex_lock(lock);
  add_row(job->name, job->client);
  enif_mutex_unlock(lock);
  return ts_atom.ok_;
}

/* What the settings are is copied before this returns. */
static ts_status begin_opening(ErlNifEnv *env, const ERL_NIF_TERM argv[], settings *given, ts_nif_job **out) {
  char name[TS_CLIENT_NAME_BYTES];
  ts_client_options options;
  TS_TRY(get_opening(env, argv, name, &options));
  TS_TRY(get_settings(env, argv[5], given));
  options.settings = (ts_settings){given->items, given->count};
  TS_TRY(ts_nif_job_new(env, client_opened, out));
  (*out)->name = argv[0];
  ErlNifEnv *before = ts_nif_calling(env);
  ts_client_open_start(name, &options, &(*out)->client, ts_nif_job_done(*out));
  (void)ts_nif_calling(before);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_client_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_open(Name, Devices | undefined, MemoryLimit | undefined, Threads | undefined, Platform | undefined,
   * Settings) -> ok | {waiting, Job}: opens a client, of the host without a platform, or adds devices to an open one
   * and sets what is given. Settings are those of another platform. */
  settings *given;
  ts_nif_job *job;
  (void)argc;
  TS_NIF_TRY(env, TS_NEW(&given));
  ts_arena_init(&given->texts);
  ts_status status = begin_opening(env, argv, given, &job);
  ts_arena_deinit(&given->texts);
  ts_free(given);
  TS_NIF_TRY(env, status);
  return ts_nif_job_return(env, job);
}

ERL_NIF_TERM ts_nif_client_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_close(Name) -> ok: no new use of the client begins, and with its last use it is closed */
  ts_client *client;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  TS_NIF_TRY(env, ts_client_close(client));
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_client_waits(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_waits(Name) -> boolean(): true for an open client whose tensors the host cannot read: processes wait for
   * it */
  ts_client *client = find(argv[0]);
  (void)env, (void)argc;
  return client && !client->platform->direct ? ts_atom.true_ : ts_atom.false_;
}

ERL_NIF_TERM ts_nif_default_client(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* default_client() -> Name, default_client(Name) -> ok: the client of tensors and programs without a given device */
  ts_client *client;
  if (!argc) return name_of(ts_device_default()->client);
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  ts_client_set_default(client);
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_platforms(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* platforms() -> [atom()]: the platforms of this library, `host' first */
  const ts_platform *found[TS_MAX_PLATFORMS];
  ERL_NIF_TERM list = enif_make_list(env, 0);
  (void)argc, (void)argv;
  for (int i = ts_platforms(found, TS_MAX_PLATFORMS); i-- > 0;)
    list = enif_make_list_cell(env, enif_make_atom(env, found[i]->name), list);
  return list;
}

ERL_NIF_TERM ts_nif_platform_devices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* platform_devices(Platform) -> [{Number, Kind :: binary(), Bytes}]: the devices that a client could have; 0 bytes:
   * unknown
   */
  const ts_platform *platform;
  ts_device_description found[TS_MAX_DEVICES];
  int32_t count;
  ERL_NIF_TERM list = enif_make_list(env, 0);
  (void)argc;
  TS_NIF_TRY(env, get_platform(env, argv[0], &platform));
  TS_NIF_TRY(env, platform->enumerate(found, TS_MAX_DEVICES, &count));
  for (int32_t i = count < TS_MAX_DEVICES ? count : TS_MAX_DEVICES; i-- > 0;)
    list = enif_make_list_cell(env,
                               enif_make_tuple3(env, enif_make_int(env, found[i].id),
                                                ts_nif_binary(env, found[i].kind, strlen(found[i].kind)),
                                                enif_make_int64(env, found[i].memory_bytes)),
                               list);
  return list;
}

ERL_NIF_TERM ts_nif_clients(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* clients() -> [{Name, Platform :: binary(), Devices :: pos_integer()}] in the order of opening */
  ERL_NIF_TERM list = enif_make_list(env, 0);
  (void)argc, (void)argv;
  for (int i = atomic_load_explicit(&row_count, memory_order_acquire); i-- > 0;) {
    ts_client *client = rows[i].client;
    const char *platform = client->platform->name;
    ERL_NIF_TERM row = enif_make_tuple3(env, rows[i].name, ts_nif_binary(env, platform, strlen(platform)),
                                        enif_make_int(env, atomic_load(&client->device_count)));
    list = enif_make_list_cell(env, row, list);
  }
  return list;
}

ERL_NIF_TERM ts_nif_client_devices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_devices(Name) -> non_neg_integer(): 0 for a client that is not open */
  (void)argc;
  ts_client *client = find(argv[0]);
  bool is_open = client && !atomic_load(&client->is_closed);
  return enif_make_int(env, is_open ? atomic_load(&client->device_count) : 0);
}

/* ---- memory */

ERL_NIF_TERM ts_nif_client_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_memory(Client) -> {Held, Peak, [{Device, Held, Peak}]} */
  ts_client *client;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  ERL_NIF_TERM list = enif_make_list(env, 0);
  int64_t now = 0; /* of the list, not ts_client_held: both agree, although tensors are made and freed meanwhile */
  for (int i = atomic_load_explicit(&client->device_count, memory_order_acquire); i-- > 0;) {
    int64_t held, peak;
    ts_device_get_held(client, i, &held, &peak);
    now += held;
    ERL_NIF_TERM number = enif_make_int(env, i), bytes = enif_make_int64(env, held);
    list = enif_make_list_cell(env, enif_make_tuple3(env, number, bytes, enif_make_int64(env, peak)), list);
  }
  ts_client_note_peak(client, now);
  return enif_make_tuple3(env, enif_make_int64(env, now), enif_make_int64(env, atomic_load(&client->peak)), list);
}

ERL_NIF_TERM ts_nif_reset_client_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* reset_client_peak(Client) -> ok */
  ts_client *client;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  ts_client_reset_peak(client);
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* memory(), memory(Client) -> #{live, peak, pooled, limit, held, allocations := integer()}: of the client's pool; and
   * what handles of all clients, or of this one, hold */
  ts_memory_stats stats;
  ts_client *client = ts_client_host();
  if (argc) TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  ts_client_get_memory(client, &stats);
  int64_t held = argc ? ts_client_held(client) : ts_devices_held();
  ERL_NIF_TERM map,
      keys[] = {ts_atom.live_, ts_atom.peak_, ts_atom.pooled_, ts_atom.limit_, ts_atom.held_, ts_atom.allocations_};
  ERL_NIF_TERM values[] = {enif_make_int64(env, stats.live),   enif_make_int64(env, stats.peak),
                           enif_make_int64(env, stats.pooled), enif_make_int64(env, stats.limit),
                           enif_make_int64(env, held),         enif_make_int64(env, stats.allocations)};
  enif_make_map_from_arrays(env, keys, values, sizeof keys / sizeof *keys, &map);
  return map;
}

ERL_NIF_TERM ts_nif_set_limit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* set_limit(Bytes), set_limit(Client, Bytes) -> ok */
  int64_t limit;
  ts_client *client = ts_client_host();
  if (argc == 2) TS_NIF_TRY(env, ts_nif_get_client(env, argv[0], &client));
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[argc - 1], "a limit in bytes", &limit));
  if (limit < 0) return ts_nif_error(env, ts_nif_expected(env, "a limit of at least 0 bytes", argv[argc - 1]));
  TS_NIF_TRY(env, ts_client_set_limit(client, limit));
  return ts_atom.ok_;
}

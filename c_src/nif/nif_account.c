#include "nif/nif_account.h"

#include "base/slots.h"

#include <stdatomic.h>

#define MAX_CLIENTS 32
#define MAX_DEVICES 64

/* Every thread counts on its own and reports to the total when its balance is this large. So the total may be off by
 * this much for each thread, and so may a peak that lies between two calls. */
#define TELL_BYTES ((int64_t)256 << 10)

typedef struct client {
  ERL_NIF_TERM name; /* an atom, which is never freed */
  _Atomic int64_t told, peak;
} client;

typedef struct device {
  client *client;
  int64_t id;
  _Atomic int64_t told;
  ts_counter untold;
} device;

/* Rows are only added, under the lock, and are complete before they are counted, so readers need no lock. */
static ErlNifMutex *lock;
static client clients[MAX_CLIENTS];
static device devices[MAX_DEVICES];
static _Atomic int client_count, device_count;
static _Atomic int64_t told;

static client *find_client(ERL_NIF_TERM name) {
  int count = atomic_load_explicit(&client_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (enif_is_identical(clients[i].name, name)) return &clients[i];
  return NULL;
}

static int find_device(const client *owner, int64_t id) {
  int count = atomic_load_explicit(&device_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (devices[i].client == owner && devices[i].id == id) return i;
  return -1;
}

static client *add_client(ERL_NIF_TERM name) {
  int count = atomic_load(&client_count);
  if (count == MAX_CLIENTS) return NULL;
  clients[count].name = name;
  atomic_store_explicit(&client_count, count + 1, memory_order_release);
  return &clients[count];
}

static int add_device(client *owner, int64_t id) {
  int count = atomic_load(&device_count);
  if (count == MAX_DEVICES) return -1;
  devices[count].client = owner;
  devices[count].id = id;
  atomic_store_explicit(&device_count, count + 1, memory_order_release);
  return count;
}

/* The lock is held; another thread may have added the rows meanwhile. */
static int find_or_add(ERL_NIF_TERM name, int64_t id) {
  client *owner = find_client(name);
  if (!owner) owner = add_client(name);
  if (!owner) return -1;
  int found = find_device(owner, id);
  return found >= 0 ? found : add_device(owner, id);
}

bool ts_nif_account_init(void) {
  if (lock) return true; /* an upgrade */
  lock = enif_mutex_create("tessera_account");
  return lock && find_or_add(ts_atom.host_, 0) == TS_NIF_HOST_ACCOUNT;
}

ts_status ts_nif_account_find(ErlNifEnv *env, ERL_NIF_TERM name, ERL_NIF_TERM device_id, ts_nif_account *out) {
  int64_t id;
  if (!enif_is_atom(env, name)) return ts_nif_expected(env, "the name of a client", name);
  TS_TRY(ts_nif_get_int(env, device_id, "the number of a device", &id));
  const client *owner = find_client(name);
  int found = owner ? find_device(owner, id) : -1;
  if (found < 0) {
    enif_mutex_lock(lock);
    found = find_or_add(name, id);
    enif_mutex_unlock(lock);
  }
  if (found < 0)
    return ts_error(TS_RESOURCE_EXHAUSTED, "there are more than %d clients or %d devices", MAX_CLIENTS, MAX_DEVICES);
  *out = (ts_nif_account)found;
  return TS_SUCCESS;
}

static void raise_to(_Atomic int64_t *peak, int64_t value) {
  int64_t old = atomic_load_explicit(peak, memory_order_relaxed);
  while (old < value &&
         !atomic_compare_exchange_weak_explicit(peak, &old, value, memory_order_relaxed, memory_order_relaxed))
    ;
}

void ts_nif_account_add(ts_nif_account account, int64_t bytes) {
  device *of = &devices[account];
  int64_t n = ts_counter_add(&of->untold, bytes);
  if (n > -TELL_BYTES && n < TELL_BYTES) return;
  (void)ts_counter_add(&of->untold, -n);
  atomic_fetch_add_explicit(&told, n, memory_order_relaxed);
  atomic_fetch_add_explicit(&of->told, n, memory_order_relaxed);
  int64_t held = atomic_fetch_add_explicit(&of->client->told, n, memory_order_relaxed) + n;
  if (n > 0) raise_to(&of->client->peak, held);
}

static int64_t device_held(device *of) {
  return atomic_load_explicit(&of->told, memory_order_relaxed) + ts_counter_sum(&of->untold);
}

/* Of one client, or of all when `of` is NULL. */
static int64_t held_by(const client *of) {
  int64_t total = 0;
  int count = atomic_load_explicit(&device_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (!of || devices[i].client == of) total += device_held(&devices[i]);
  return total;
}

int64_t ts_nif_account_total(void) { return held_by(NULL); }

int64_t ts_nif_account_told(void) { return atomic_load_explicit(&told, memory_order_relaxed); }

/* ---- NIFs */

ERL_NIF_TERM ts_nif_client_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* client_memory(Client) -> {Held, Peak, [{Device, Held}]}; a client without tensors so far has no devices */
  (void)argc;
  client *of = find_client(argv[0]);
  ERL_NIF_TERM list = enif_make_list(env, 0);
  if (!of) return enif_make_tuple3(env, enif_make_int(env, 0), enif_make_int(env, 0), list);
  int64_t now = 0; /* the sum over the list, so that both agree: tensors are made and freed meanwhile */
  for (int i = atomic_load_explicit(&device_count, memory_order_acquire); i-- > 0;) {
    if (devices[i].client != of) continue;
    int64_t held = device_held(&devices[i]);
    now += held;
    ERL_NIF_TERM pair = enif_make_tuple2(env, enif_make_int64(env, devices[i].id), enif_make_int64(env, held));
    list = enif_make_list_cell(env, pair, list);
  }
  raise_to(&of->peak, now);
  return enif_make_tuple3(env, enif_make_int64(env, now), enif_make_int64(env, atomic_load(&of->peak)), list);
}

ERL_NIF_TERM ts_nif_reset_client_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* reset_client_peak(Client) -> ok */
  (void)env, (void)argc;
  client *of = find_client(argv[0]);
  if (of) atomic_store(&of->peak, held_by(of));
  return ts_atom.ok_;
}

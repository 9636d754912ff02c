/* The carrier over MPI, in each rank of mpirun: exchanges LIBRARY CASE. Rank 0 prints that the case is well; a rank
 * that finds an error aborts, which ends all. */
#include "open.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 256, RUNS = 6, STEPS = 5, LATENCIES = 2000, PATIENCE_S = 2, STOPPED_S = 4, HELP_NS = 1000000 };

static ts_carrier *carrier;
static const ts_mpi_library *library;

/* One run's exchange, with its memory. */
typedef struct exchange {
  ts_exchange e;
  ts_carrier_header headers[MOST_RANKS]; /* as they were when it was done */
  ts_carrier_block sends[MOST_RANKS], receives[MOST_RANKS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_done;
  ts_status status;
} exchange;

static void note_done(ts_exchange *self, ts_status status) {
  exchange *x = self->context;
  pthread_mutex_lock(&x->lock);
  if (!status) memcpy(x->headers, self->headers, (size_t)carrier->ranks * sizeof *x->headers);
  x->status = status;
  x->is_done = true;
  pthread_cond_signal(&x->changed);
  pthread_mutex_unlock(&x->lock);
}

/* Bytes from one rank to another: none, few, or more than a message that MPI keeps. */
static int64_t length(uint64_t run, uint32_t step, int32_t from, int32_t to) {
  static const int64_t lengths[] = {0, 1, 4, 1000, 70000, 2500000};
  return from == to ? 0 : lengths[(run * 7 + step * 3 + (uint32_t)from * 5 + (uint32_t)to) % 6];
}

static char byte(uint64_t run, uint32_t step, int32_t from, int32_t to, int64_t i) {
  return (char)(run * 31 + step * 17 + (uint32_t)from * 13 + (uint32_t)to * 7 + (uint64_t)i * 3 + (uint64_t)i / 251);
}

/* Adds a block, if it has bytes. */
static void add_block(ts_carrier_block *blocks, int32_t *count, int32_t rank, int64_t bytes) {
  int64_t at = *count > 0 ? blocks[*count - 1].at + blocks[*count - 1].bytes : 0;
  if (bytes > 0) blocks[(*count)++] = (ts_carrier_block){rank, at, bytes};
}

static int64_t bytes_of(const ts_carrier_block *blocks, int32_t count) {
  return count > 0 ? blocks[count - 1].at + blocks[count - 1].bytes : 0;
}

/* Without blocks and without memory for them. */
static exchange *new_empty_exchange(uint64_t run, uint32_t step) {
  exchange *x = calloc(1, sizeof *x);
  CHECK(x && carrier->ranks <= MOST_RANKS);
  x->e = (ts_exchange){.header = {.run = run, .sequence = step},
                       .sends = x->sends,
                       .receives = x->receives,
                       .deadline_ns = INT64_MAX,
                       .done = note_done,
                       .context = x};
  pthread_mutex_init(&x->lock, NULL);
  pthread_cond_init(&x->changed, NULL);
  return x;
}

static exchange *new_exchange(uint64_t run, uint32_t step) {
  exchange *x = new_empty_exchange(run, step);
  for (int32_t r = 0; r < carrier->ranks; r++) {
    add_block(x->sends, &x->e.send_count, r, length(run, step, carrier->rank, r));
    add_block(x->receives, &x->e.receive_count, r, length(run, step, r, carrier->rank));
  }
  char *send = malloc((size_t)bytes_of(x->sends, x->e.send_count) + 1);
  char *receive = malloc((size_t)bytes_of(x->receives, x->e.receive_count) + 1);
  CHECK(send && receive);
  memset(receive, 0x55, (size_t)bytes_of(x->receives, x->e.receive_count));
  for (const ts_carrier_block *b = x->sends; b < x->sends + x->e.send_count; b++)
    for (int64_t i = 0; i < b->bytes; i++) send[b->at + i] = byte(run, step, carrier->rank, b->rank, i);
  x->e.send = send;
  x->e.receive = receive;
  return x;
}

static void wait_for(exchange *x) {
  pthread_mutex_lock(&x->lock);
  while (!x->is_done) pthread_cond_wait(&x->changed, &x->lock);
  pthread_mutex_unlock(&x->lock);
}

static void free_exchange(exchange *x) {
  ts_status_free(x->status);
  free((char *)x->e.send), free(x->e.receive), free(x);
}

static void check_blocks(const exchange *x, uint64_t run, uint32_t step) {
  CHECK(!x->status);
  for (int32_t r = 0; r < carrier->ranks; r++) {
    CHECK(x->headers[r].run == run && x->headers[r].sequence == step);
  }
  for (const ts_carrier_block *b = x->receives; b < x->receives + x->e.receive_count; b++)
    for (int64_t i = 0; i < b->bytes; i++) CHECK(x->e.receive[b->at + i] == byte(run, step, b->rank, carrier->rank, i));
}

static void check_untouched(const exchange *x) {
  for (int64_t i = 0; i < bytes_of(x->receives, x->e.receive_count); i++) CHECK(x->e.receive[i] == 0x55);
}

/* Several runs at once; each rank posts them in an order of its own. */
static void test_exchanges(void) {
  for (uint32_t step = 0; step < STEPS; step++) {
    exchange *all[RUNS];
    for (uint64_t i = 0; i < RUNS; i++) {
      uint64_t run = (i + (uint64_t)carrier->rank * 2) % RUNS;
      all[run] = new_exchange(run, step);
      carrier->post(carrier, &all[run]->e, (int64_t)(run % 3) * 100000);
    }
    for (uint64_t run = 0; run < RUNS; run++) {
      wait_for(all[run]);
      check_blocks(all[run], run, step);
      free_exchange(all[run]);
    }
  }
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The time of an exchange of `bytes` bytes with each rank. The received bytes are added as floats. */
static int64_t time_exchange(uint64_t run, uint32_t step, int64_t bytes, bool adds) {
  exchange *x = new_empty_exchange(run, step);
  for (int32_t r = 0; r < carrier->ranks; r++) {
    if (r == carrier->rank) continue;
    x->sends[x->e.send_count++] = (ts_carrier_block){r, 0, bytes};
    x->receives[x->e.receive_count] = (ts_carrier_block){r, x->e.receive_count * bytes, bytes};
    x->e.receive_count++;
  }
  float *sum = calloc(1, (size_t)bytes + 1), *received = calloc((size_t)carrier->ranks, (size_t)bytes + 1);
  CHECK(sum && received && (x->e.send = calloc(1, (size_t)bytes + 1)));
  x->e.receive = (char *)received;
  int64_t begun = ts_system_ns();
  carrier->post(carrier, &x->e, HELP_NS);
  wait_for(x);
  for (int32_t i = 0; adds && i < x->e.receive_count; i++)
    for (int64_t k = 0; k < bytes / 4; k++) sum[k] += received[i * (bytes / 4) + k];
  int64_t time = ts_system_ns() - begun;
  CHECK(!x->status);
  free(sum);
  free_exchange(x);
  return time;
}

static double microseconds(const int64_t *times, uint32_t at) { return (double)times[at] / 1e3; }

static void print_latency(void) {
  int64_t times[LATENCIES];
  for (uint32_t i = 0; i < LATENCIES; i++) times[i] = time_exchange(1000, i, 4, false);
  qsort(times, LATENCIES, sizeof *times, compare);
  if (carrier->rank == 0)
    fprintf(stderr, "4 bytes: best %.1f us, median %.1f us\n", microseconds(times, 0),
            microseconds(times, LATENCIES / 2));
}

/* The two ways of an all_reduce of N bytes, in turns (group/algorithms.c): `everywhere` exchanges all N with each rank,
 * `shares` a share of N, twice. For the threshold of group/selection.c. */
static void print_sizes(void) {
  static int64_t times[2][LATENCIES];
  for (int64_t bytes = 1 << 10; bytes <= 1 << 20; bytes *= 2) {
    const int64_t share = bytes / carrier->ranks / 4 * 4;
    const uint32_t turns = bytes <= 1 << 16 ? 600 : 100;
    for (uint32_t i = 0; i < turns; i++) {
      times[0][i] = time_exchange(1000, i * 3, bytes, true);
      times[1][i] = time_exchange(1000, i * 3 + 1, share, true) + time_exchange(1000, i * 3 + 2, share, false);
    }
    for (int k = 0; k < 2; k++) qsort(times[k], turns, sizeof *times[k], compare);
    if (carrier->rank == 0)
      printf(
          "%4lld KB: everywhere best %.0f us, quarter %.0f us, median %.0f us; shares best %.0f us, quarter %.0f us, "
          "median %.0f us\n",
          (long long)bytes >> 10, microseconds(times[0], 0), microseconds(times[0], turns / 4),
          microseconds(times[0], turns / 2), microseconds(times[1], 0), microseconds(times[1], turns / 4),
          microseconds(times[1], turns / 2));
  }
}

/* A rank that has failed sends nothing, and all get its header; so do ranks at other places. The job lives on. */
static void test_failures(void) {
  for (int32_t bad = 0; bad < carrier->ranks; bad++) {
    exchange *x = new_exchange(100 + (uint64_t)bad, 1);
    if (carrier->rank == bad) {
      x->e.header.code = TS_RESOURCE_EXHAUSTED;
      strcpy(x->e.header.text, "no memory");
      x->e.send_count = 0;
    }
    carrier->post(carrier, &x->e, HELP_NS);
    wait_for(x);
    CHECK(!x->status && x->headers[bad].code == TS_RESOURCE_EXHAUSTED && !strcmp(x->headers[bad].text, "no memory"));
    check_untouched(x);
    free_exchange(x);
    exchange *y = new_exchange(200 + (uint64_t)bad, 2);
    if (carrier->rank == bad) y->e.header.path = 9;
    carrier->post(carrier, &y->e, HELP_NS);
    wait_for(y);
    CHECK(!y->status && y->headers[bad].path == 9);
    check_untouched(y);
    free_exchange(y);
  }
  test_exchanges();
}

/* The last rank takes no part: the others get an error that names it, and every later exchange fails at once. */
static void test_silence(void) {
  int32_t silent = carrier->ranks - 1;
  char expected[64];
  if (carrier->rank == silent) {
    sleep(3);
    return;
  }
  snprintf(expected, sizeof expected, "rank %d did not make the same call before the deadline", silent);
  for (int i = 0; i < 2; i++) {
    exchange *x = new_exchange(7, (uint32_t)i);
    x->e.deadline_ns = i == 0 ? ts_system_ns() + 300000000 : INT64_MAX;
    carrier->post(carrier, &x->e, HELP_NS);
    wait_for(x);
    CHECK(x->status && !strcmp(ts_status_message(x->status), expected));
    free_exchange(x);
  }
}

/* Continues the process after `seconds`. */
static void continue_after(unsigned seconds) {
  pid_t self = getpid();
  if (fork() != 0) return;
  sleep(seconds);
  kill(self, SIGCONT);
  _exit(0);
}

/* A rank that computes for longer than a rank may be silent is waited for. A stopped rank is not: the others get an
 * error that names it, after the patience and before it continues. */
static void test_signs_of_life(void) {
  int32_t last = carrier->ranks - 1;
  char expected[64];
  if (carrier->rank == last) sleep(2 * PATIENCE_S);
  exchange *x = new_exchange(7, 0);
  carrier->post(carrier, &x->e, HELP_NS);
  wait_for(x);
  check_blocks(x, 7, 0);
  free_exchange(x);
  if (carrier->rank == last) {
    continue_after(PATIENCE_S + STOPPED_S);
    raise(SIGSTOP);
    return;
  }
  snprintf(expected, sizeof expected, "rank %d did not answer before the deadline", last);
  usleep(200000); /* until it is stopped */
  int64_t begun = ts_system_ns();
  x = new_exchange(8, 0);
  carrier->post(carrier, &x->e, HELP_NS);
  wait_for(x);
  int64_t ms = (ts_system_ns() - begun) / 1000000;
  CHECK(x->status && !strcmp(ts_status_message(x->status), expected));
  CHECK(ms >= PATIENCE_S * 1000 && ms < (PATIENCE_S + STOPPED_S) * 1000);
  free_exchange(x);
}

/* Bytes of headers and blocks, the same on both sides of each pair. */
static void test_moved(void) {
  const ts_mpi_moved before = library->moved(carrier);
  exchange *x = new_exchange(2000, 0);
  const int64_t sent = bytes_of(x->sends, x->e.send_count), received = bytes_of(x->receives, x->e.receive_count);
  carrier->post(carrier, &x->e, HELP_NS);
  wait_for(x);
  CHECK(!x->status);
  free_exchange(x);
  const ts_mpi_moved after = library->moved(carrier);
  const int64_t headers = (carrier->ranks - 1) * (int64_t)(sizeof(ts_carrier_header) + 8);
  CHECK(after.sent - before.sent == sent + headers && after.received - before.received >= received);
}

static void test_closed(void) {
  exchange *x = new_exchange(3000, 0);
  carrier->post(carrier, &x->e, HELP_NS);
  wait_for(x);
  CHECK(x->status && ts_status_code(x->status) == TS_UNAVAILABLE);
  CHECK(!strcmp(ts_status_message(x->status), "MPI was finalized"));
  free_exchange(x);
}

/* The last rank has another build of the libraries: no rank can exchange, and all learn its number. */
static int test_builds(const char *path) {
  int rank = atoi(getenv("OMPI_COMM_WORLD_RANK")), last = atoi(getenv("OMPI_COMM_WORLD_SIZE")) - 1;
  char host[64] = "", expected[256];
  ts_status status = test_open_carrier(path, 0, rank == last ? 2 : 1, &library, &carrier);
  gethostname(host, sizeof host);
  snprintf(expected, sizeof expected, "rank %d on %s has another build of Tessera's C libraries than rank 0 on %s",
           last, host, host);
  CHECK(status && ts_status_code(status) == TS_FAILED_PRECONDITION && !strcmp(ts_status_message(status), expected));
  ts_status_free(status);
  if (rank == 0) printf("builds on %d ranks: ok\n", last + 1);
  fflush(stdout);
  sleep(rank == 0 ? 1 : 2); /* until rank 0 has printed */
  _exit(0);
}

/* Called where the carrier calls MPI. */
static bool never_returns(const ts_carrier_header *headers, int32_t ranks) {
  (void)headers, (void)ranks;
  while (true) pause();
  return false;
}

/* A thread that does not come back from MPI: the process ends, and says why. */
static int test_stuck(const char *path) {
  static const ts_mpi_core core = {ts_error, ts_system_ns, never_returns};
  ts_mpi_options options = {.patience_ns = 1000000000, .version = 7, .build = 1};
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  library = handle ? dlsym(handle, TS_MPI_SYMBOL) : NULL;
  if (!library || library->open(&core, &options, &carrier)) return 1;
  exchange *x = new_exchange(7, 0);
  carrier->post(carrier, &x->e, 0);
  wait_for(x);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  if (!strcmp(argv[2], "stuck")) return test_stuck(argv[1]);
  if (!strcmp(argv[2], "builds")) return test_builds(argv[1]);
  bool signs = !strcmp(argv[2], "signs");
  ts_status status = test_open_carrier(argv[1], signs ? PATIENCE_S * (int64_t)1000000000 : 0, 1, &library, &carrier);
  if (status) {
    fprintf(stderr, "%s\n", ts_status_message(status));
    return 1;
  }
  bool silence = signs || !strcmp(argv[2], "silence"); /* so MPI cannot be finalized */
  if (signs)
    test_signs_of_life();
  else if (silence)
    test_silence();
  else if (!strcmp(argv[2], "failures"))
    test_failures();
  else if (!strcmp(argv[2], "sizes"))
    print_sizes();
  else
    test_exchanges(), print_latency(), test_moved();
  if (!silence) CHECK(ts_status_consume_ok(library->close(carrier, 20000000000)));
  if (!silence) test_closed();
  if (carrier->rank == 0) printf("%s on %d ranks: ok\n", argv[2], carrier->ranks);
  fflush(stdout);
  if (silence) sleep(carrier->rank == 0 ? 1 : 2); /* until rank 0 has printed */
  _exit(0);
}

/* Runs a fuzzer without libFuzzer: it is linked to the objects of AddressSanitizer's build and needs no others. It
 * tries each file of the corpus, and then changed ones. Nothing guides the changes. `make fuzz` runs guided fuzzers.
 * usage: PROGRAM SEED COUNT FOUND FILE...     writes the input that ended it to the file FOUND */
#include "fuzz.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

enum { MOST_FILES = 1000, MOST_BYTES = 1 << 16, MOST_SECONDS = 100 };

typedef struct input {
  uint8_t *data;
  size_t size;
} input;

static input corpus[MOST_FILES], current;
static size_t count;
static const char *found;
static uint64_t state;

static size_t below(size_t n) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return n ? (size_t)(state >> 33) % n : 0;
}

/* ---- what ends the program */

/* Only calls that a signal's handler may make. */
static void keep_input(void) {
  static const char words[] = "replay: kept the input that ended this program\n";
  const int file = open(found, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || write(file, current.data, current.size) < 0 || write(STDERR_FILENO, words, sizeof words - 1) < 0)
    return;
  close(file);
}

static void on_signal(int number) {
  keep_input();
  signal(number, SIG_DFL);
  raise(number);
}

static void watch(void) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(keep_input);
#endif
  signal(SIGABRT, on_signal);
  signal(SIGALRM, on_signal);
}

static void run(input in) {
  current = in;
  alarm(MOST_SECONDS);
  LLVMFuzzerTestOneInput(in.data, in.size);
  alarm(0);
}

/* ---- inputs */

static input read_input(const char *path) {
  FILE *file = fopen(path, "rb");
  input in = {malloc(MOST_BYTES), 0};
  if (file && in.data) in.size = fread(in.data, 1, MOST_BYTES, file);
  if (!file || !in.data || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
  return in;
}

/* A piece of any input, instead of a piece of this one or between two. */
static input spliced(input in) {
  const input other = corpus[below(count)];
  const size_t from = below(other.size + 1), length = below(other.size - from + 1), at = below(in.size + 1);
  const size_t gap = below(2) ? 0 : below(in.size - at + 1);
  input out = {malloc(in.size + length + 1), in.size - gap + length};
  memcpy(out.data, in.data, at);
  memcpy(out.data + at, other.data + from, length);
  memcpy(out.data + at + length, in.data + at + gap, in.size - at - gap);
  free(in.data);
  return out;
}

static void change_byte(input in) {
  static const uint8_t likely[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', ',', '[', ']', '{', '}', '%', ' ', '\n'};
  if (in.size == 0) return;
  uint8_t *at = in.data + below(in.size);
  *at = below(2) ? likely[below(sizeof likely)] : (uint8_t)(*at ^ (1u << below(8)));
}

static input changed(void) {
  const input one = corpus[below(count)];
  input in = {malloc(one.size + 1), one.size};
  memcpy(in.data, one.data, one.size);
  for (size_t changes = 1 + below(4); changes > 0; changes--) {
    if (below(3) == 0 && in.size < MOST_BYTES)
      in = spliced(in);
    else
      change_byte(in);
  }
  return in;
}

int main(int argc, char **argv) {
  if (argc < 5 || argc - 4 > MOST_FILES) return 2;
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const size_t changes = strtoull(argv[2], NULL, 10);
  found = argv[3];
  state = seed;
  for (int i = 4; i < argc; i++) corpus[count++] = read_input(argv[i]);
  watch();
  for (size_t i = 0; i < count; i++) run(corpus[i]);
  for (size_t i = 0; i < changes; i++) {
    const input in = changed();
    run(in);
    free(in.data);
  }
  printf("Done %zu runs of a corpus of %zu files, seed %" PRIu64 "\n", count + changes, count, seed);
  return 0;
}

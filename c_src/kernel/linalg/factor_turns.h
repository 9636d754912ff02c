/* Rotations of the lines of orthogonal matrices, as the steps of QL and QR make them. The rotations of many steps are
 * kept. Then all threads apply them, each to some elements of all lines, while one of them computes the next ones.
 * Every element gets all of them in order, so its bits are the same by any number of threads. */
#ifndef TS_KERNEL_FACTOR_TURNS_H
#define TS_KERNEL_FACTOR_TURNS_H

#include "kernel/linalg/factor_internal.h"

/* Rotations of neighbours in order: of a line with the next, or with the previous one (`step` -1). */
typedef struct factor_wave {
  int64_t line, step, first, count; /* first: of the angles */
} factor_wave;

/* The kept rotations of a matrix's lines. */
typedef struct factor_batch {
  char *angles; /* cosines and sines, elements of the matrix */
  factor_wave *waves;
  int64_t angle_count, wave_count, angle_room, wave_room;
} factor_batch;

typedef struct factor_turns {
  factor_lines lines;
  char *parts; /* room for these lines: a task's elements are contiguous during its rotations */
  factor_batch batch[2];
} factor_turns;

typedef struct factor_turning {
  const factor *f;
  factor_turns *turns; /* of `count` matrices */
  int count;
  void *state;
  /* Adds waves to the batches of all matrices while they have room; true when there are no more. */
  bool (*more)(void *state, factor_batch *const *batches);
} factor_turning;

/* Bytes for the rotations of a matrix with n values. */
int64_t factor_turns_bytes(int64_t n);
/* Lines, room for as many, and room for the steps of n values in memory aligned to 8 bytes; returns the end of the used
 * memory.
 */
char *factor_turns_init(factor_turns *turns, const factor_lines *lines, char *parts, int64_t n, char *room);
/* Until `more` is true and all is applied. */
ts_status factor_turns_run(const factor_turning *t);

/* True when a wave of n rotations has room. */
static inline bool factor_batch_has_room(const factor_batch *b, int64_t n) {
  return b->wave_count < b->wave_room && b->angle_count + n <= b->angle_room;
}
static inline void factor_begin_wave(factor_batch *b, int64_t line, int64_t step) {
  b->waves[b->wave_count++] = (factor_wave){line, step, b->angle_count, 0};
}
static inline void factor_add_turn(const factor *f, factor_batch *b, double cosine, double sine) {
  factor_set(f, b->angles, 2 * b->angle_count, cosine);
  factor_set(f, b->angles, 2 * b->angle_count + 1, sine);
  b->angle_count++;
  b->waves[b->wave_count - 1].count++;
}

#endif

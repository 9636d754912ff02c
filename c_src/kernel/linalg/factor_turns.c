#include "kernel/linalg/factor_turns.h"

#include <string.h>

/* Steps of full length that are kept. */
#define KEPT 32
/* Waves that are applied to some lines while these are in the first cache, and how many lines. */
#define GROUP 16
#define LINES 32
/* Bytes of each line for a task: several vectors of every instruction set. */
#define PART_BYTES 256
/* With this number of elements several threads apply rotations. */
#define SHARED_ELEMENTS 4096

static int64_t wave_room(int64_t n) { return 4 * n + KEPT; }

int64_t factor_turns_bytes(int64_t n) {
  return 2 * (KEPT * n * 2 * (int64_t)sizeof(double) + wave_room(n) * (int64_t)sizeof(factor_wave));
}

char *factor_turns_init(factor_turns *turns, const factor_lines *lines, char *parts, int64_t n, char *room) {
  turns->lines = *lines;
  turns->parts = parts;
  for (int i = 0; i < 2; i++) {
    factor_batch *b = &turns->batch[i];
    *b = (factor_batch){.waves = (factor_wave *)(void *)room, .angle_room = KEPT * n, .wave_room = wave_room(n)};
    b->angles = (char *)(b->waves + b->wave_room);
    room = b->angles + KEPT * n * 2 * (int64_t)sizeof(double);
  }
  return room;
}

/* ---- waves: the rotations of one QL or QR step, of neighbouring lines in one direction ---- */

typedef struct part {
  const factor *f;
  const factor_turns *turns;
  const factor_batch *batch; /* or NULL */
  int64_t element, count;    /* elements [element, element + count) of each line */
  int64_t plane;             /* offset of the elements' plane, in bytes */
  char *data;                /* copies of the elements, one line after the other */
} part;

/* The first index of a wave, along its direction. */
static int64_t start_of(const factor_wave *w) { return w->step * w->line; }

/* The rotations of a wave at the indices from `from` to `end` - 1. */
static void turn(const part *p, const factor_wave *w, int64_t from, int64_t end) {
  const int64_t start = start_of(w), first = ts_linalg_max(from - start, 0),
                last = ts_linalg_min(end - start, w->count);
  if (first >= last) return;
  const ts_linalg_turns t = {factor_at(p->f, p->batch->angles, 2 * (w->first + first)), last - first};
  char *line = factor_at(p->f, p->data, (w->line + w->step * first) * p->count);
  p->f->v->turn(&t, line, w->step * p->count, p->count);
}

/* Waves of one direction: each applies its rotation one index behind the previous wave, so it reads rotated lines. */
static void turn_group(const part *p, const factor_wave *waves, int64_t count) {
  int64_t from = INT64_MAX, end = INT64_MIN;
  for (int64_t i = 0; i < count; i++) {
    from = ts_linalg_min(from, start_of(&waves[i]));
    end = ts_linalg_max(end, start_of(&waves[i]) + waves[i].count);
  }
  for (int64_t at = from; at < end + count; at += LINES)
    for (int64_t i = 0; i < count; i++) turn(p, &waves[i], at - i, at - i + LINES);
}

static void turn_part(const part *p, const factor_batch *b) {
  int64_t i = 0;
  while (i < b->wave_count && !ts_cancelled(p->f->cancel)) {
    int64_t count = 1;
    while (count < GROUP && i + count < b->wave_count && b->waves[i + count].step == b->waves[i].step) count++;
    turn_group(p, b->waves + i, count);
    i += count;
  }
}

/* Gathers elements of all lines into contiguous memory, or scatters them back. */
static void move(const part *p, bool back) {
  const int64_t bytes = p->count * p->f->size;
  for (int64_t i = 0; i < p->turns->lines.count; i++) {
    char *line = factor_at(p->f, factor_line(p->f, &p->turns->lines, i) + p->plane, p->element),
         *other = p->data + i * bytes;
    memcpy(back ? line : other, back ? other : line, (size_t)bytes);
  }
}

/* ---- tasks: the first computes, the others apply ---- */

typedef struct turning {
  const factor_turning *t;
  int ready; /* the batches that are applied */
  bool done;
} turning;

static void compute(turning *r) {
  factor_batch *batches[2];
  for (int i = 0; i < r->t->count; i++) {
    batches[i] = &r->t->turns[i].batch[!r->ready];
    batches[i]->angle_count = batches[i]->wave_count = 0;
  }
  if (!r->done) r->done = r->t->more(r->t->state, batches);
}

static int64_t parts_of(const factor_turning *t, int64_t length) {
  const int64_t some = PART_BYTES / t->f->size;
  return (length + some - 1) / some;
}

/* Part `number` of all matrices and their planes. */
static part find_part(const factor_turning *t, int64_t number, int which) {
  const factor_turns *turns = t->turns;
  for (; number >= factor_planes(t->f) * parts_of(t, turns->lines.length); turns++)
    number -= factor_planes(t->f) * parts_of(t, turns->lines.length);
  const int64_t each = parts_of(t, turns->lines.length), plane = number / each * t->f->plane;
  const int64_t some = PART_BYTES / t->f->size, element = number % each * some;
  return (part){.f = t->f,
                .turns = turns,
                .batch = &turns->batch[which],
                .element = element,
                .count = ts_linalg_min(some, turns->lines.length - element),
                .plane = plane,
                .data = factor_at(t->f, turns->parts + plane, element * turns->lines.count)};
}

static void turn_task(void *arg, int64_t number, int worker) {
  turning *r = arg;
  (void)worker;
  if (number == 0) {
    compute(r);
    return;
  }
  const part p = find_part(r->t, number - 1, r->ready);
  turn_part(&p, p.batch);
}

static void move_task(void *arg, int64_t number, int worker) {
  const turning *r = arg;
  const part p = find_part(r->t, number, 0);
  (void)worker;
  move(&p, r->done);
}

static bool has_waves(const factor_turning *t, int which) {
  bool has = false;
  for (int i = 0; i < t->count; i++) has |= t->turns[i].batch[which].wave_count > 0;
  return has;
}

ts_status factor_turns_run(const factor_turning *t) {
  turning r = {.t = t, .ready = 1};
  int64_t elements = 0, parts = 0;
  for (int i = 0; i < t->count; i++) {
    elements += t->turns[i].lines.length * t->turns[i].lines.count;
    parts += factor_planes(t->f) * parts_of(t, t->turns[i].lines.length);
  }
  const ts_parallel *parallel = elements < SHARED_ELEMENTS ? &ts_parallel_serial : t->f->parallel;
  ts_parallel_run(parallel, parts, move_task, &r);
  compute(&r);
  for (r.ready = 0; has_waves(t, r.ready); r.ready = !r.ready) {
    ts_parallel_run(parallel, 1 + parts, turn_task, &r);
    TS_TRY(ts_check_cancelled(t->f->cancel, ts_op_name(t->f->spec->op)));
  }
  ts_parallel_run(parallel, parts, move_task, &r);
  return ts_check_cancelled(t->f->cancel, ts_op_name(t->f->spec->op));
}

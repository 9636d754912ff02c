/* The memory planner. */
#include "exec/plan.h"
#include "testing.h"

static bool alive_together(const ts_usage *a, const ts_usage *b) { return a->first <= b->last && b->first <= a->last; }

static void check_plan(const ts_usage *u, int32_t n, int64_t total) {
  for (int32_t i = 0; i < n; i++) {
    ck_assert_int_eq(u[i].offset % TS_PLAN_ALIGNMENT, 0);
    ck_assert_int_ge(u[i].offset, 0);
    ck_assert_int_le(u[i].offset + u[i].bytes, total);
    for (int32_t k = 0; k < i; k++) {
      if (!alive_together(&u[i], &u[k]) || !u[i].bytes || !u[k].bytes) continue;
      ck_assert(u[i].offset + u[i].bytes <= u[k].offset || u[k].offset + u[k].bytes <= u[i].offset);
    }
  }
}

START_TEST(nothing_takes_nothing)
{
  int64_t total = -1;
  ck_assert_ok(ts_plan_offsets(NULL, 0, &total));
  ck_assert_int_eq(total, 0);
  ts_usage empty = {.first = 0, .last = 5};
  ck_assert_ok(ts_plan_offsets(&empty, 1, &total));
  ck_assert_int_eq(total, 0);
}
END_TEST

START_TEST(those_that_never_meet_share)
{
  ts_usage u[] = {{.first = 0, .last = 1, .bytes = 640},
                  {.first = 2, .last = 3, .bytes = 640},
                  {.first = 4, .last = 4, .bytes = 100}};
  int64_t total;
  ck_assert_ok(ts_plan_offsets(u, 3, &total));
  check_plan(u, 3, total);
  ck_assert_int_eq(total, 640);
}
END_TEST

START_TEST(the_smallest_gap_that_fits_is_taken)
{
  /* between the first two there is room for the third at position 1 only */
  ts_usage u[] = {{.first = 0, .last = 2, .bytes = 1024},
                  {.first = 0, .last = 0, .bytes = 512},
                  {.first = 1, .last = 2, .bytes = 512}};
  int64_t total;
  ck_assert_ok(ts_plan_offsets(u, 3, &total));
  check_plan(u, 3, total);
  ck_assert_int_eq(total, 1536);
}
END_TEST

/* A chain of equal sizes is the common case: the plan must not exceed the peak. */
START_TEST(a_chain_takes_two)
{
  ts_usage u[100];
  for (int i = 0; i < 100; i++) u[i] = (ts_usage){.first = i, .last = i + 1, .bytes = 4096};
  int64_t total, peak;
  ck_assert_ok(ts_plan_offsets(u, 100, &total));
  ck_assert_ok(ts_plan_live_peak(u, 100, &peak));
  check_plan(u, 100, total);
  ck_assert_int_eq(total, 8192);
  ck_assert_int_eq(peak, 8192);
}
END_TEST

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

START_TEST(random_plans_hold)
{
  for (uint64_t seed = 1; seed <= 200; seed++) {
    uint64_t state = seed;
    ts_usage u[60];
    int32_t n = 1 + (int32_t)(next_random(&state) % 60);
    for (int32_t i = 0; i < n; i++) {
      int32_t first = (int32_t)(next_random(&state) % 40);
      u[i] = (ts_usage){.first = first,
                        .last = first + (int32_t)(next_random(&state) % 10),
                        .bytes = (int64_t)(next_random(&state) % 5000)};
    }
    int64_t total, peak;
    ck_assert_ok(ts_plan_offsets(u, n, &total));
    ck_assert_ok(ts_plan_live_peak(u, n, &peak));
    check_plan(u, n, total);
    ck_assert_int_ge(total, peak);
    ck_assert_int_le(total, 2 * peak + 60 * TS_PLAN_ALIGNMENT);
  }
}
END_TEST

START_TEST(random_plans_in_order_hold)
{
  for (uint64_t seed = 1; seed <= 200; seed++) {
    uint64_t state = seed;
    ts_usage u[60];
    const int32_t n = 1 + (int32_t)(next_random(&state) % 60), most = seed % 2 ? 10 : 40;
    for (int32_t i = 0; i < n; i++) {
      const int32_t first = (int32_t)(next_random(&state) % 40) - 3;
      const int64_t bytes = (int64_t)(next_random(&state) % (seed % 3 ? 5000 : 200));
      const int32_t last = first + (int32_t)(next_random(&state) % (uint64_t)most);
      u[i] = (ts_usage){.first = first, .last = last < 0 ? 0 : last, .bytes = bytes};
    }
    int64_t total, peak;
    ck_assert_ok(ts_plan_sweep(u, n, &total));
    ck_assert_ok(ts_plan_live_peak(u, n, &peak));
    check_plan(u, n, total);
    ck_assert_int_ge(total, peak);
  }
}
END_TEST

/* As of the gradient of a chain: every usage meets every other one, and afterwards each one's memory is used again. */
START_TEST(many_that_live_long_take_what_lives)
{
  enum { N = 20000, BYTES = TS_PLAN_ALIGNMENT };
  ts_usage *u = calloc(2 * N, sizeof *u);
  char *taken = calloc(N + 1, 1);
  int64_t total, peak;
  for (int i = 0; i < N; i++) {
    u[i] = (ts_usage){.first = i, .last = 2 * N - i, .bytes = BYTES};
    u[N + i] = (ts_usage){.first = N + i + 1, .last = N + i + 2, .bytes = BYTES};
  }
  ck_assert_ok(ts_plan_offsets(u, 2 * N, &total));
  ck_assert_ok(ts_plan_live_peak(u, 2 * N, &peak));
  ck_assert_int_eq(total, peak);
  for (int i = 0; i < N; i++) {
    const int64_t at = u[i].offset / BYTES;
    ck_assert(u[i].offset % BYTES == 0 && u[i].offset < total && !taken[at]);
    taken[at] = true;
  }
  check_plan(u + N - 100, 200, total);
  check_plan(u + 2 * N - 200, 200, total);
  free(u);
  free(taken);
}
END_TEST

/* As the header says, without any lists: the largest usage without a place takes the smallest gap between the
 * usages that are alive with it. */
static void plan_plainly(ts_usage *u, int32_t n) {
  for (int32_t i = 0; i < n; i++) u[i].offset = -1;
  for (int32_t placed = 0; placed < n; placed++) {
    ts_usage *next = NULL;
    for (int32_t i = 0; i < n; i++)
      if (u[i].offset < 0 && (!next || u[i].bytes > next->bytes)) next = &u[i];
    int64_t best = -1, best_size = INT64_MAX, end = 0, size = (next->bytes + 63) & ~INT64_C(63);
    for (;;) { /* from one block to the next one that begins after the end of all earlier blocks */
      const ts_usage *above = NULL;
      int64_t reach = end;
      for (int32_t i = 0; i < n; i++) {
        if (u[i].offset < 0 || !alive_together(&u[i], next)) continue;
        int64_t u_end = u[i].offset + ((u[i].bytes + 63) & ~INT64_C(63));
        if (u[i].offset <= end && u_end > reach) reach = u_end;
        if (u[i].offset >= end && (!above || u[i].offset < above->offset)) above = &u[i];
      }
      if (reach > end) {
        end = reach;
        continue;
      }
      if (!above) break;
      int64_t gap = above->offset - end;
      if (gap >= size && gap < best_size) best = end, best_size = gap;
      end = above->offset + ((above->bytes + 63) & ~INT64_C(63));
    }
    next->offset = best >= 0 ? best : end;
  }
}

START_TEST(many_usages_are_placed_as_few_are)
{
  for (uint64_t seed = 1; seed <= 10; seed++) {
    uint64_t state = seed;
    ts_usage u[150], plain[150];
    for (int32_t i = 0; i < 150; i++) {
      int32_t first = (int32_t)(next_random(&state) % 200), length = (int32_t)(next_random(&state) % 5);
      if (i % 7 == 0) length = (int32_t)(next_random(&state) % 150);
      u[i] = (ts_usage){.first = first,
                        .last = first + length,
                        .bytes = 64 * (1 + (int64_t)(next_random(&state) % (seed % 2 ? 3 : 40)))};
    }
    memcpy(plain, u, sizeof u);
    plan_plainly(plain, 150);
    int64_t total;
    ck_assert_ok(ts_plan_offsets(u, 150, &total));
    check_plan(u, 150, total);
    for (int32_t i = 0; i < 150; i++) ck_assert_int_eq(u[i].offset, plain[i].offset);
  }
}
END_TEST

/* In a room: before its end, inside it, apart from usages that are alive with it. */
static void check_rooms(const ts_usage *u, int32_t n, const ts_room *rooms) {
  for (int32_t i = 0; i < n; i++) {
    if (u[i].room < 0 || u[i].bytes == 0) continue;
    ck_assert_int_lt(u[i].last, rooms[u[i].room].until);
    ck_assert_int_le(u[i].offset + u[i].bytes, rooms[u[i].room].bytes);
    for (int32_t k = 0; k < i; k++) {
      bool together = u[k].room == u[i].room && u[k].first <= u[i].last && u[i].first <= u[k].last && u[k].bytes > 0;
      if (together) ck_assert(u[k].offset + u[k].bytes <= u[i].offset || u[i].offset + u[i].bytes <= u[k].offset);
    }
  }
}

START_TEST(rooms_are_used_before_their_end)
{
  const ts_room rooms[] = {{.until = 3, .bytes = 1000}, {.until = 2, .bytes = 100}};
  ts_usage u[] = {{.first = 0, .last = 1, .bytes = 900},  /* the large room */
                  {.first = 0, .last = 2, .bytes = 100},  /* after that one it would overlap nothing, but does not fit
                                                           * whole */
                  {.first = 2, .last = 2, .bytes = 1000}, /* the large room again */
                  {.first = 0, .last = 1, .bytes = 64},   /* the small one */
                  {.first = 2, .last = 3, .bytes = 64}};  /* too late for either */
  int64_t total;
  ck_assert_ok(ts_plan_rooms(u, 5, rooms, 2, &total));
  check_rooms(u, 5, rooms);
  ck_assert_int_eq(u[0].room, 0);
  ck_assert_int_eq(u[1].room, -1);
  ck_assert_int_eq(u[2].room, 0);
  ck_assert_int_eq(u[3].room, 1);
  ck_assert_int_eq(u[4].room, -1);
  ck_assert_int_eq(total, 192);
}
END_TEST

START_TEST(random_plans_with_rooms_hold)
{
  for (uint64_t seed = 1; seed <= 200; seed++) {
    uint64_t state = seed;
    ts_usage u[60], block[60];
    ts_room rooms[4];
    int32_t n = 1 + (int32_t)(next_random(&state) % 60), in_block = 0;
    for (int32_t i = 0; i < 4; i++)
      rooms[i] = (ts_room){(int32_t)(next_random(&state) % 40), (int64_t)(next_random(&state) % 9000)};
    for (int32_t i = 0; i < n; i++) {
      int32_t first = (int32_t)(next_random(&state) % 40), last = first + (int32_t)(next_random(&state) % 10);
      u[i] = (ts_usage){.first = first, .last = last, .bytes = (int64_t)(next_random(&state) % 5000)};
    }
    int64_t total;
    ck_assert_ok(ts_plan_rooms(u, n, rooms, 4, &total));
    check_rooms(u, n, rooms);
    for (int32_t i = 0; i < n; i++)
      if (u[i].room < 0) block[in_block++] = u[i];
    check_plan(block, in_block, total);
  }
}
END_TEST

static void plan_some(void) {
  ts_usage u[100];
  int64_t total;
  for (int i = 0; i < 100; i++) u[i] = (ts_usage){.first = i, .last = i + 1, .bytes = 64};
  ts_status_free(ts_plan_offsets(u, 2, &total));
  ts_status_free(ts_plan_offsets(u, 100, &total));
  ts_status_free(ts_plan_live_peak(u, 2, &total));
  for (int i = 0; i < 100; i++) u[i].last = i + i % 7;
  ts_status_free(ts_plan_sweep(u, 100, &total));
}

START_TEST(failing_allocations_leak_nothing)
{ CK_FAIL_EACH_ALLOCATION(plan_some()); }
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("plan");
  TCase *t = tcase_create("plan");
  tcase_add_test(t, nothing_takes_nothing);
  tcase_add_test(t, those_that_never_meet_share);
  tcase_add_test(t, the_smallest_gap_that_fits_is_taken);
  tcase_add_test(t, a_chain_takes_two);
  tcase_add_test(t, random_plans_hold);
  tcase_add_test(t, random_plans_in_order_hold);
  tcase_add_test(t, many_that_live_long_take_what_lives);
  tcase_add_test(t, many_usages_are_placed_as_few_are);
  tcase_add_test(t, rooms_are_used_before_their_end);
  tcase_add_test(t, random_plans_with_rooms_hold);
  tcase_add_test(t, failing_allocations_leak_nothing);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }

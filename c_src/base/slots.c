#include "base/slots.h"

static _Atomic int given;
static _Thread_local int own; /* the slot and one; 0 before there is one */

static int new_slot(void) {
  int number = atomic_fetch_add_explicit(&given, 1, memory_order_relaxed);
  own = number % TS_SLOTS + 1;
  return own - 1;
}

int ts_slot(void) { return own ? own - 1 : new_slot(); }

int ts_slot_count(void) {
  int count = atomic_load_explicit(&given, memory_order_relaxed);
  return count < TS_SLOTS ? count : TS_SLOTS;
}

int64_t ts_counter_add(ts_counter *counter, int64_t n) {
  return atomic_fetch_add_explicit(&counter->slots[ts_slot()].value, n, memory_order_relaxed) + n;
}

int64_t ts_counter_sum(ts_counter *counter) {
  int64_t sum = 0;
  for (int i = 0; i < TS_SLOTS; i++) sum += atomic_load_explicit(&counter->slots[i].value, memory_order_relaxed);
  return sum;
}

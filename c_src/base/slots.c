#include "base/slots.h"

_Thread_local int ts_slot_mark;
static _Atomic int given;

int ts_slot_new(void) {
  int number = atomic_fetch_add_explicit(&given, 1, memory_order_relaxed);
  int slot = number < TS_OWN_SLOTS ? number : TS_OWN_SLOTS + (number - TS_OWN_SLOTS) % (TS_SLOTS - TS_OWN_SLOTS);
  ts_slot_mark = slot + 1;
  return slot;
}

int ts_slot_count(void) {
  int count = atomic_load_explicit(&given, memory_order_relaxed);
  return count < TS_SLOTS ? count : TS_SLOTS;
}

int64_t ts_counter_sum(ts_counter *counter) {
  int64_t sum = 0;
  for (int i = 0; i < TS_SLOTS; i++) sum += atomic_load_explicit(&counter->slots[i].value, memory_order_relaxed);
  return sum;
}

#include "operation_end.h"

#include "testing.h"

#include <sched.h>
#include <stdatomic.h>

void test_ended(ts_status status, void *arg) {
  end *e = arg;
  e->status = status;
  atomic_fetch_add(&e->times, 1);
}

ts_status wait_for(end *e) {
  while (atomic_load(&e->times) == 0) sched_yield();
  for (int i = 0; i < 3; i++) sched_yield();
  ck_assert_int_eq(atomic_load(&e->times), 1);
  atomic_store(&e->times, 0);
  return e->status;
}

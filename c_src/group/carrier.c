#include "group/carrier.h"

#include <stdio.h>

/* The first rank that has failed; -1. A cancellation counts only if no rank has another error, because it may be a
 * consequence of that error. */
static int32_t find_failed(const ts_carrier_header *headers, int32_t ranks) {
  int32_t cancelled = -1;
  for (int32_t r = 0; r < ranks; r++) {
    if (headers[r].code != TS_OK && headers[r].code != TS_CANCELLED) return r;
    if (headers[r].code == TS_CANCELLED && cancelled < 0) cancelled = r;
  }
  return cancelled;
}

/* The first rank that is at another step than rank 0; -1. */
static int32_t find_other(const ts_carrier_header *headers, int32_t ranks) {
  for (int32_t r = 1; r < ranks; r++)
    if (headers[r].run != headers->run || headers[r].sequence != headers->sequence || headers[r].path != headers->path)
      return r;
  return -1;
}

bool ts_carrier_agrees(const ts_carrier_header *headers, int32_t ranks) {
  return find_failed(headers, ranks) < 0 && find_other(headers, ranks) < 0;
}

/* Where a rank is. */
static void describe(const ts_carrier_header *h, char *out, size_t size) {
  snprintf(out, size, "exchange %u of run %llu (%016llx%s%.*s)", h->sequence, (unsigned long long)h->run,
           (unsigned long long)h->path, h->text[0] ? ", " : "", TS_CARRIER_TEXT, h->text);
}

ts_status ts_carrier_check(const ts_carrier_header *headers, int32_t ranks) {
  int32_t failed = find_failed(headers, ranks), other = find_other(headers, ranks);
  if (failed >= 0)
    return ts_error((ts_code)headers[failed].code, "rank %d: %.*s", failed, TS_CARRIER_TEXT, headers[failed].text);
  if (other < 0) return TS_SUCCESS;
  char places[2][160];
  describe(headers, places[0], sizeof places[0]);
  describe(&headers[other], places[1], sizeof places[1]);
  return ts_error(TS_FAILED_PRECONDITION, "ranks 0 and %d are at different places of the program: %s, and %s", other,
                  places[0], places[1]);
}

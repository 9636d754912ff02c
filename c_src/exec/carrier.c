#include "exec/carrier.h"

/* The first rank that has failed; -1. A cancellation counts only where no rank has another error, which it may be a
 * consequence of. */
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

ts_status ts_carrier_check(const ts_carrier_header *headers, int32_t ranks) {
  int32_t failed = find_failed(headers, ranks), other = find_other(headers, ranks);
  if (failed >= 0)
    return ts_error((ts_code)headers[failed].code, "rank %d: %.*s", failed, TS_CARRIER_TEXT, headers[failed].text);
  if (other < 0) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION,
                  "ranks 0 and %d are at different places of the program: exchange %u of run %llu (%016llx), and %u of "
                  "run %llu (%016llx)",
                  other, headers->sequence, (unsigned long long)headers->run, (unsigned long long)headers->path,
                  headers[other].sequence, (unsigned long long)headers[other].run,
                  (unsigned long long)headers[other].path);
}

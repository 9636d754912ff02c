#!/bin/sh
# Runs the given test programs, with $RUNNER before each, and prints each
# one's summary line; a failure prints all of its output. Exits 1 when any failed.
failed=0
case ${BUILD:-normal} in
  tsan) export CK_FORK=no TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" ;;
  asan) export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1" ;;
esac
# The sanitizers' shadow memory clashes with addresses that a kernel with a
# large randomisation range hands out.
without_aslr=
case ${BUILD:-normal} in
  asan | tsan | fuzz) if setarch -R true 2>/dev/null; then without_aslr="setarch -R"; fi ;;
esac

for program in "$@"; do
  name=$(basename "$program")
  if output=$($without_aslr ${RUNNER:-} "$program" 2>&1); then
    printf '  %-24s %s\n' "$name" "$(printf '%s\n' "$output" | grep -E '^[0-9]+%: ' | tail -n 1)"
  else
    printf '  %-24s FAILED\n%s\n' "$name" "$output"
    failed=1
  fi
done
exit $failed

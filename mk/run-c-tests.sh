#!/bin/sh
# Runs the given test programs, with $RUNNER before each, as many at a time as there are CPUs ($JOBS), and prints each
# one's summary line; a failure prints all of its output. Exits 1 when any failed or none was given.
case ${BUILD:-normal} in
  tsan) export CK_FORK=no TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" ;;
  asan) export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1" ;;
esac

# A busy machine may need more time than a test asks for.
export CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-5}"

# A program that ends well without a test has not tested anything.
one() {
  # The sanitizers' shadow memory clashes with addresses that a kernel with a
  # large randomisation range hands out.
  without_aslr=
  case ${BUILD:-normal} in
    asan | tsan | fuzz) if setarch -R true 2>/dev/null; then without_aslr="setarch -R"; fi ;;
  esac
  name=$(basename "$1")
  output=$($without_aslr timeout -k 10 3000 ${RUNNER:-} "$1" 2>&1)
  status=$?
  summary=$(printf '%s\n' "$output" | grep -E '^[0-9]+%: Checks: [1-9]' | tail -n 1)
  if [ $status -eq 0 ] && [ -n "$summary" ]; then
    printf '  %-24s %s\n' "$name" "$summary"
  else
    printf '  %-24s FAILED with status %s\n%s\n' "$name" $status "$output"
    return 1
  fi
}

if [ "$1" = --one ]; then
  one "$2"
  exit
fi
{
  printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 1 "$0" --one
  echo "status $?"
} | awk '
  /^status / { failed = $2 != 0; next }
  { print; fflush() }
  /^  [^ ]+ +[0-9]+%: Checks: / { programs++; sub(/.*Checks: /, ""); checks += $0 }
  END { printf "C tests: %d checks in %d programs%s\n", checks, programs, failed ? ", and FAILURES" : " passed"
        exit failed || !programs }'

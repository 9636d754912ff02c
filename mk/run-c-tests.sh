#!/bin/sh
# Runs the given test programs, with $RUNNER before each, as many at a time as there are CPUs ($JOBS), and prints each
# one's summary line when it ends, and what it left out; a failure prints all of its output. Exits 1 when any failed or none was given.
# TESSERA_TIMES names a file that gets a line for each program: its seconds, its name, and the seconds of CPUs.
#
# Some programs run their tests in one process, and take a tenth of the time that a process for each test takes. If one
# fails, it runs again with a process for each test, which names a test that ended its process. CK_FORK=yes runs all so.
case ${BUILD:-normal} in
  tsan) export CK_FORK=no TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" ;;
  *asan) export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1" ;;
esac

# TESSERA_C_ISA is an instruction set for the C tests alone, below the instruction set of this machine.
[ -z "${TESSERA_C_ISA:-}" ] || export TESSERA_ISA="$TESSERA_C_ISA"

# A busy machine may need more time than a test asks for. A virtual machine may stand still for minutes, so tests without a
# limit of their own get ten minutes.
export CK_DEFAULT_TIMEOUT="${CK_DEFAULT_TIMEOUT:-30}"
export CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-20}"

# Whether the tests of a program share one process, and with it what the compiler has loaded. None of these programs counts
# blocks of memory, of which threads of an earlier test may still take or free one.
shares_process() {
  case $1 in
    test_compiled | test_complex | test_conv | test_emit_memory | test_epilogue | test_fft | test_gemm_amx | test_gemm_small) ;;
    test_kernel_groups | test_matrix_classes | test_scan | test_scatter | test_search | test_small | test_sort_op) ;;
    test_vecmath | test_window) ;;
    *) return 1 ;;
  esac
}

# Adds a line to $TESSERA_TIMES: milliseconds $1 as seconds, name $2, and the seconds of CPUs of the processes that this one has
# waited for, which a pipe from `times` would not know.
note_times() {
  times >"$TESSERA_TIMES.$$"
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, part, "m"); s += part[1] * 60 + part[2] } printf "%.1f", s }' "$TESSERA_TIMES.$$")
  rm -f "$TESSERA_TIMES.$$"
  printf '%d.%03d C: %s (%s, %s s of CPUs)\n' $(($1 / 1000)) $(($1 % 1000)) "$2" "${BUILD:-normal}" "$cpu" >>"$TESSERA_TIMES"
}

# Prints "count PASSED FAILED" and then what the user sees. A program that ends well without a test has not tested
# anything; one that ends badly after its tests passed has failed, too.
one() {
  # The sanitizers' shadow memory clashes with addresses that a kernel with a
  # large randomisation range hands out.
  without_aslr=
  case ${BUILD:-normal} in
    *asan | tsan | fuzz) if setarch -R true 2>/dev/null; then without_aslr="setarch -R"; fi ;;
  esac
  name=$(basename "$1")
  # check has time limits only for tests in processes of their own
  fork=${CK_FORK:-yes} limit=7200
  if [ -z "${CK_FORK:-}" ] && shares_process "$name"; then fork=no limit=2400; fi
  began=$(date +%s%N)
  output=$(CK_FORK=$fork $without_aslr timeout -k 10 $limit ${RUNNER:-} "$1" 2>&1)
  status=$?
  if [ $status -ne 0 ] && [ "$fork" = no ] && [ -z "${CK_FORK:-}" ]; then
    output="$output
again, with a process for each test:
$(CK_FORK=yes $without_aslr timeout -k 10 7200 ${RUNNER:-} "$1" 2>&1)"
  fi
  milliseconds=$((($(date +%s%N) - began) / 1000000))
  [ -z "${TESSERA_TIMES:-}" ] || note_times $milliseconds "$name"
  summary=$(printf '%s\n' "$output" | grep -E '^[0-9]+%: Checks: [1-9]' | tail -n 1)
  # shellcheck disable=SC2046
  set -- $(printf '%s' "${summary:-Checks: 0 0 0}" | sed 's/.*Checks: //' | tr -dc '0-9 ')
  failed=$(($2 + $3))
  if [ $status -eq 0 ] && [ -n "$summary" ]; then
    printf 'count %d 0\n  %-24s %s\n' "$1" "$name" "$summary"
    printf '%s\n' "$output" | grep 'is left out' | sed 's/^/  /' || true
  else
    printf 'count %d %d\n  %-24s FAILED with status %s\n%s\n' $(($1 - failed)) $((failed > 0 ? failed : 1)) "$name" $status \
      "$output"
    return 1
  fi
}

# Passes the lines on as they come: Debian's awk would wait for many of them.
total() {
  passed=0 failed=0 status=1
  while IFS= read -r line; do
    case $line in
    "count "*)
      # shellcheck disable=SC2086
      set -- $line
      passed=$((passed + $2)) failed=$((failed + $3)) ;;
    "status "*) status=${line#status } ;;
    *) printf '%s\n' "$line" ;;
    esac
  done
  echo "C tests: $passed passed, $failed failed"
  [ "$status" -eq 0 ] && [ $failed -eq 0 ] && [ $passed -gt 0 ]
}

if [ "$1" = --one ]; then
  one "$2"
  exit
fi
{
  printf '%s\n' "$@" | xargs -d '\n' -P "${JOBS:-$(nproc)}" -n 1 "$0" --one
  echo "status $?"
} | total

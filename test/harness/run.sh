#!/bin/sh
# What runs the C tests: it counts, fails where a program does, and prints each line when the program has ended.
# usage: test/harness/run.sh
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# program NAME STATUS COMMAND: what it prints, or does besides
program() {
  printf '#!/bin/sh\n%s\nexit %s\n' "$3" "$2" >"$work/$1" && chmod +x "$work/$1"
}

# expect STATUS PATTERN PROGRAM...: the runner's status, and a whole line that it prints
expect() {
  wanted=$1 pattern=$2
  shift 2
  set -- "$@" end
  while [ "$1" != end ]; do set -- "$@" "$work/$1"; shift; done
  shift
  BUILD=normal JOBS=4 mk/run-c-tests.sh "$@" >"$work/out" 2>&1
  status=$?
  if [ $status -eq "$wanted" ] && grep -qx -- "$pattern" "$work/out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "  harness: status $status, expected $wanted and '$pattern'"
    cat "$work/out"
  fi
}

program "of three" 0 'echo "100%: Checks: 3, Failures: 0, Errors: 0"'
program fails 1 'echo said; echo "50%: Checks: 4, Failures: 1, Errors: 1"'
program crashes 139 'echo said'
program ends_badly 1 'echo "100%: Checks: 2, Failures: 0, Errors: 0"'
program test_small 1 'echo "100%: Checks: 2, Failures: 0, Errors: 0"; [ "$CK_FORK" = no ] || exit 0'
program test_scan 139 'echo said'
program nothing 0 'echo "100%: Checks: 0, Failures: 0, Errors: 0"'

expect 0 'C tests: 3 passed, 0 failed' "of three"
expect 0 '  of three                 100%: Checks: 3, Failures: 0, Errors: 0' "of three"
expect 1 'C tests: 5 passed, 2 failed' "of three" fails
expect 1 'said' fails
expect 1 'C tests: 3 passed, 1 failed' crashes "of three"
expect 1 'C tests: 2 passed, 1 failed' ends_badly
expect 1 'C tests: 0 passed, 1 failed' nothing
expect 1 'again, with a process for each test:' test_scan
expect 1 'C tests: 2 passed, 1 failed' test_small

# This one ends well only once the line of another has been seen.
program waits 0 "for i in \$(seq 300); do [ -e '$work/seen' ] && break; sleep 0.1; done
  [ -e '$work/seen' ] && echo '100%: Checks: 1, Failures: 0, Errors: 0'"
JOBS=2 mk/run-c-tests.sh "$work/waits" "$work/of three" | while IFS= read -r line; do
  case $line in "  of three "*) : >"$work/seen" ;; esac
  printf '%s\n' "$line"
done >"$work/out"
if grep -qx 'C tests: 4 passed, 0 failed' "$work/out"; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo "  harness: a line waits for the end of another program"
  cat "$work/out"
fi

echo "harness: $passed passed, $failed failed"
[ $failed -eq 0 ]

#!/bin/sh
# Golden tests: tessera-opt reads each FILE.ts here or below, and what it prints must be FILE.out, byte for byte. A graph
# in FILE.out is read and printed again. Where there is a FILE.stablehlo, that is what --stablehlo must print. The first
# line of FILE.ts says what to run and to check, and that it must fail when the output is an error message:
#   // passes: simplify,cse
#   // fails
#   // fails passes: fuse
#   // same passes: fuse        the interpreter must give the same bits for both graphs, too
#   // checks passes: fuse      that, and the compiled graph must give what the interpreter gives
#   // checks                   only that: there is no FILE.out
#   // checks bits              the same bits, for numbers of any size, NaN and infinities, in each mode of compilation and
#                               kind of run
#   // checks bits of plain     the bits of the graph compiled without fusion and simplification
# A line "// also passes: normalize,fuse" names passes that give the same FILE.out.
# A line "// counts: steps 1, kernels 2" names lines of what --counts prints.
# A line "// sends: 1 collective, 4 bytes" says what a program on a mesh communicates, which UPDATE does not change.
# usage: test/golden/run.sh [FILE.ts ...]
#   UPDATE=1          rewrites the outputs
#   TESSERA_OPT=path  the program to test
cd "$(dirname "$0")/../.." || exit 2
opt=${TESSERA_OPT:-build/${BUILD:-normal}/tessera-opt}
[ -x "$opt" ] || { echo "golden: no $opt, run make first" >&2; exit 2; }
[ $# -gt 0 ] || set -- $(find test/golden -name '*.ts' | sort)
actual=$(mktemp) || exit 2
trap 'rm -f "$actual"' EXIT
total=0 failed=0

fail() {
  echo "  $1: $2"
  failed=$((failed + 1))
}

# compare INPUT EXPECTED WANTED_CODE ARGUMENTS...
compare() {
  input=$1 expected=$2 wanted=$3
  shift 3
  total=$((total + 1))
  "$opt" "$@" "$input" >"$actual" 2>&1
  code=$?
  if [ "$code" -ne "$wanted" ]; then
    fail "$expected" "exit code $code, expected $wanted"
    head -n 5 "$actual"
  elif [ -n "${UPDATE:-}" ]; then
    cp "$actual" "$expected"
  elif [ ! -f "$expected" ]; then
    fail "$input" "there is no $expected; UPDATE=1 makes it"
  elif ! cmp -s "$actual" "$expected"; then
    fail "$expected" "differs"
    diff -u "$expected" "$actual" | head -n 40
  fi
}

# check INPUT OPTION...: the results agree.
check() {
  input=$1
  shift
  total=$((total + 1))
  "$opt" "$@" "$input" >"$actual" 2>&1 && tail -n 1 "$actual" | grep -q ' agrees$' && return
  fail "$input" "$*"
  head -n 5 "$actual"
}

# check_bits INPUT OPTION...: equal bits for each seed.
check_bits() {
  for seed in 1 2 3; do check "$@" --ulps=0 --special --seed=$seed; done
}

# count INPUT LINES: what --counts prints has these lines, which are separated by commas.
count() {
  total=$((total + 1))
  "$opt" --counts "$1" >"$actual" 2>&1
  missing=$(printf '%s\n' "$2" | tr , '\n' | sed 's/^ *//' | grep -vxFf "$actual") || return
  fail "$1" "no $missing"
  cat "$actual"
}

# read_back OUTPUT: a printed graph is read and printed again, without comments.
read_back() {
  grep -v '^//' "$1" | head -n 1 | grep -q '^graph ' || return
  total=$((total + 1))
  grep -v '^//' "$1" >"$actual"
  "$opt" "$1" 2>&1 | cmp -s - "$actual" && return
  fail "$1" 'is printed in another way'
}

for file in "$@"; do
  first=$(head -n 1 "$file")
  passes=
  case $first in '//'*passes:*) passes=$(printf '%s' "${first#*passes:}" | tr -d ' ') ;; esac
  counts=$(sed -n 's,^// counts: ,,p' "$file")
  [ -z "$counts" ] || count "$file" "$counts"
  case $first in '// same'* | '// checks'*passes:*) check_bits "$file" --check --ref --pass="$passes" ;; esac
  case $first in
    '// checks bits of plain'*) check_bits "$file" --check=plain --modes ;;
    '// checks bits'*) check_bits "$file" --check --modes ;;
    '// checks'*) check "$file" --check ;;
  esac
  case $first in *passes:*) ;; '// checks'*) continue ;; esac
  wanted=0
  case $first in '// fails'*) wanted=1 ;; esac
  compare "$file" "${file%.ts}.out" "$wanted" --pass="$passes"
  also=$(sed -n 's,^// also passes: ,,p' "$file")
  [ -z "$also" ] || compare "$file" "${file%.ts}.out" "$wanted" --pass="$also"
  read_back "${file%.ts}.out"
  sends=$(sed -n 's,^// sends: ,,p' "$file")
  [ -z "$sends" ] || grep -q "^$sends of each of" "${file%.ts}.out" || fail "$file" "does not send $sends"
  [ ! -f "${file%.ts}.stablehlo" ] || compare "$file" "${file%.ts}.stablehlo" 0 --stablehlo --pass=
done
echo "golden: $((total - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]

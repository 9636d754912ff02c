#!/bin/sh
# Ops that the table has and no layer knows (TS_TEST_ROWS in c_src/ir/op.def): what follows from the table works, the
# rest refuses them by name, and in a usual build they would not compile. (The class of ops that all layers know is
# tested by test/c/test_results.c and tessera_results_tests.erl.)
# usage: test/rows/run.sh TESSERA_OPT 'COMPILER FLAGS'
cd "$(dirname "$0")/../.." || exit 2
opt=$1 compile=$2 total=0 failed=0
text=$(mktemp) || exit 2
trap 'rm -f "$text"' EXIT

fail() {
  echo "  rows: $1"
  failed=$((failed + 1))
}

# expect WORDS ARGUMENTS...: tessera-opt fails and says so.
expect() {
  words=$1
  shift
  total=$((total + 1))
  if output=$("$opt" "$@" "$text" 2>&1); then
    fail "tessera-opt $* takes what it should not know"
  else
    case $output in *"$words"*) ;; *) fail "tessera-opt $*: '$output', expected '$words'" ;; esac
  fi
}

# prints OP: the text is read and printed as it is.
prints() {
  total=$((total + 1))
  "$opt" "$text" 2>&1 | grep -q "$1" || fail "$1 is not printed"
}

# check OP RESULT OPERANDS [ATTRIBUTES]
check() {
  printf 'graph @t(%%0: f32[2,3], %%1: f32[2,3]) -> (%s) {\n  %%2 = %s %s%s : %s\n  return %%2\n}\n' \
    "$2" "$1" "$3" "${4:-}" "$2" >"$text"
  prints "$1"
  expect "$1 has no meaning" --ref
  expect "$1" --run
  expect "$1" --stablehlo
}

check test_math 'f32[2,3]' '%0'
check test_unary 'f32[2,3]' '%0'
check test_binary 'f32[2,3]' '%0, %1'
check test_compare 'u8[2,3]' '%0, %1'

printf 'graph @t(%%0: f32[2,3]) -> (f32[2,3]) {\n  %%1 = test_shape %%0 {axes = [0]} : f32[2,3]\n  return %%1\n}\n' >"$text"
expect "test_shape has no inference"

# Each layer's switch is one that the compiler checks.
for file in c_src/ir/infer_shape.c c_src/ir/stablehlo_shape.c c_src/kernel/ref_scalar.c c_src/kernel/ref_shape.c \
  c_src/jit/emit/emit_op.c c_src/jit/math/vecmath.c; do
  total=$((total + 1))
  # shellcheck disable=SC2086
  output=$($compile $(sed -n 's/^LLVM_CFLAGS := //p' build/config.mk) -DTS_TEST_ROWS -fsyntax-only "$file" 2>&1) &&
    fail "$file compiles without the cases of new ops"
  case $output in *TEST_*) ;; *) fail "$file: '$output', expected an error that names the op" ;; esac
done

# Types that have a row and nothing else are refused by name where they come in.
for type in f8 c64 s4; do
  printf 'graph @t(%%0: %s[2]) -> (%s[2]) {\n  return %%0\n}\n' $type $type >"$text"
  expect "type $type is not supported yet" --run
done

echo "rows: $((total - failed)) passed, $failed failed"
[ $failed -eq 0 ]

#!/bin/sh
# Ops that the table has and no layer knows (TS_TEST_ROWS in c_src/ir/op.def): what follows from the table works, the
# rest refuses them by name, and in a usual build they would not compile. (The class of ops that all layers know is
# tested by test/c/test_results.c and tessera_results_tests.erl.)
# usage: test/rows/run.sh TESSERA_OPT 'COMPILER FLAGS'     BUILD=rows-asan: the variant of TESSERA_OPT
#   UPDATE=1  rewrites test/rows/missing_*.txt, the places that do not compile without a row
cd "$(dirname "$0")/../.." || exit 2
opt=$1 compile=$2 total=0 failed=0
text=$(mktemp) || exit 2
trap 'rm -f "$text"' EXIT
# As in mk/run-c-tests.sh.
without_aslr=
case ${BUILD:-} in *asan) if setarch -R true 2>/dev/null; then without_aslr="setarch -R"; fi ;; esac

fail() {
  echo "  rows: $1"
  failed=$((failed + 1))
}

# expect WORDS ARGUMENTS...: tessera-opt fails and says so.
expect() {
  words=$1
  shift
  total=$((total + 1))
  if output=$($without_aslr "$opt" "$@" "$text" 2>&1); then
    fail "tessera-opt $* takes what it should not know"
  else
    case $output in *"$words"*) ;; *) fail "tessera-opt $*: '$output', expected '$words'" ;; esac
  fi
}

# prints OP: the text is read and printed as it is.
prints() {
  total=$((total + 1))
  $without_aslr "$opt" "$text" 2>&1 | grep -q "$1" || fail "$1 is not printed"
}

# check OP RESULT OPERANDS [ATTRIBUTES [TYPE]]
check() {
  printf 'graph @t(%%0: %s[2,3], %%1: %s[2,3]) -> (%s) {\n  %%2 = %s %s%s : %s\n  return %%2\n}\n' \
    "${5:-f32}" "${5:-f32}" "$2" "$1" "$3" "${4:-}" "$2" >"$text"
  prints "$1"
  expect "$1 has no meaning" --ref
  expect "$1" --run
  expect "$1" --stablehlo
}

check test_math 'f32[2,3]' '%0'
check test_unary 'f32[2,3]' '%0'
check test_binary 'f32[2,3]' '%0, %1'
check test_compare 'u8[2,3]' '%0, %1'
check test_reduce 'f32[2]' '%0' ' {axes = [1]}'

printf 'graph @t(%%0: f32[2,3]) -> (f32[2,3]) {\n  %%1 = test_shape %%0 {axes = [0]} : f32[2,3]\n  return %%1\n}\n' >"$text"
expect "test_shape has no inference"

# Complex numbers, which these rows take, have meanings and formulas of their own.
check test_math 'c64[2,3]' '%0' '' c64
check test_unary 'c64[2,3]' '%0' '' c64
check test_binary 'c64[2,3]' '%0, %1' '' c64
check test_compare 'u8[2,3]' '%0, %1' '' c64
for type in f32 c64; do
  printf 'graph @t(%%0: %s[3,3]) -> (%s[3,3]) {\n  %%1 = test_linalg %%0 : %s[3,3]\n  return %%1\n}\n' \
    $type $type $type >"$text"
  expect "test_linalg has no inference"
done

# Each layer's switch is one that the compiler checks. TS_FLOAT_T16 is the dummy type's case.
checked() {
  total=$((total + 1))
  # shellcheck disable=SC2086
  output=$($compile $(sed -n 's/^LLVM_CFLAGS := //p' build/config.mk) -DTS_TEST_ROWS -fsyntax-only "$2" 2>&1) &&
    fail "$2 compiles without the cases of $1"
  case $output in *$1*) ;; *) fail "$2: '$output', expected an error that names $1" ;; esac
}
for file in c_src/ir/infer_shape.c c_src/ir/stablehlo/stablehlo_shape.c c_src/kernel/ref/ref_scalar.c c_src/kernel/ref/ref_shape.c \
  c_src/jit/emit/emit_op.c c_src/jit/math/vecmath.c c_src/kernel/ref/ref_complex.c c_src/pass/complex/complex_math.c \
  c_src/ir/infer_linalg.c c_src/ir/stablehlo/stablehlo_linalg.c c_src/kernel/ref/ref_linalg.c c_src/kernel/linalg/factor.c c_src/shard/factors.c \
  c_src/ir/infer_mesh.c c_src/ir/stablehlo/stablehlo_mesh.c c_src/ir/graph.c c_src/shard/combine.c c_src/exec/build_mesh.c \
  c_src/jit/loop/loop_plan.c; do
  checked TEST_ "$file"
done
checked TS_FLOAT_T16 c_src/ir/stablehlo/stablehlo_write.c

# A row without its entries: an op more in every class, a class more, a type more of every kind, a type of fields more.
# Each place that tells them apart must not compile, and the error names the place and what it lacks. `missing` has the
# tables with such a row; the compiler looks there first.
missing=$(mktemp -d) || exit 2
trap 'rm -rf "$text" "$missing"' EXIT
mkdir -p "$missing/ops/ir" "$missing/types/tensor" "$missing/fields/ir"
awk '/^TS_CLASS_END\(/ { class = $0; gsub(/^.*\(|\).*$/, "", class); row(class) }
  { print }
  /^TS_CLASS_END\(CONTROL\)/ { print "TS_CLASS(MISSING)"; row("ALONE"); print "TS_CLASS_END(MISSING)" }
  function row(of) {
    print "TS_OP(MISSING_" of ", \"missing_" of "\", 1, 1, NONE, PURE, FIXED, PLAIN, ALONE, COMPLEX)"
  }' c_src/ir/op.def >"$missing/ops/ir/op.def"
awk '/^#undef/ { row("SIGNED", 128); row("UNSIGNED", 128); row("FLOAT", 128); row("COMPLEX", 64) }
  { print }
  function row(kind, bits, name) {
    name = "MISSING_" kind
    print "TS_DTYPE(" name ", \"" name "\", " bits ", " bits ", " kind ", " name ", " name ", KERNELS)"
  }' c_src/tensor/dtype.def >"$missing/types/tensor/dtype.def"
sed 's/^TS_ATTRS_END(FFT/TS_ATTR(fft., missing, MISSING)\n&/' c_src/ir/attr.def >"$missing/fields/ir/attr.def"
sed 's/^  TS_FIELD_SHAPE,/&\n  TS_FIELD_MISSING,/; s/^#define TS_C_INT .*/&\n#define TS_C_MISSING int32_t/' \
  c_src/ir/graph.h >"$missing/fields/ir/graph.h"

# refused TABLES: a line for each file, "PLACES FILE lacks WHAT"; an assertion is named by its text.
refused() {
  # shellcheck disable=SC2086,SC2046
  grep -lrE 'switch \(|_Static_assert' c_src --include='*.c' | grep -v '^c_src/comm/' | sort |
    LC_ALL=C xargs $compile -iquote "$missing/$1" $(sed -n 's/^\(LLVM\|ERL\)_CFLAGS := //p' build/config.mk) -fsyntax-only 2>&1 |
    sed -n -e "s/^\(c_src[^ ]*\): error: enumeration value '\([^']*\)' not handled.*/\1 lacks \2/p" \
      -e 's/^.* error: static.assert[^"]* "\([^"]*\)".*/asserts: \1/p' |
    sort -u | sed '/^c_src/s/:[0-9:]*//' | sort | uniq -c | sed 's/^ *//'
}
for tables in ops types fields; do
  total=$((total + 1))
  refused $tables >"$text"
  if [ -n "${UPDATE:-}" ]; then
    cp "$text" test/rows/missing_$tables.txt
  else
    cmp -s "$text" test/rows/missing_$tables.txt || {
      fail "places that do not compile without a row of $tables differ from test/rows/missing_$tables.txt:"
      diff test/rows/missing_$tables.txt "$text"
    }
  fi
done

# Each class has such a place in these layers, but for those whose ops a layer treats alike: by one rule of types, by the
# combiner (ir/combiner.c), by a name that is refused where there is none, or as one op (ir/op.c asserts that).
tells() {
  layer=$1 files=$2 alike=" $3 "
  for class in $(sed -n 's/^TS_CLASS(\(.*\))/\1/p' c_src/ir/op.def); do
    case $class,$alike in TEST,* | *" $class "*) continue ;; esac
    total=$((total + 1))
    grep -qE "c_src/$files[^ ]* lacks TS_IN_CLASS_MISSING_$class\$" test/rows/missing_ops.txt ||
      fail "a new op of class $class compiles without an entry in $layer"
  done
}
combined='REDUCE ARG_REDUCE SCAN' one='SELECT CLAMP'
elementwise='UNARY_FLOAT UNARY UNARY_INTEGER BINARY BINARY_FLOAT BINARY_INTEGER COMPARE'
tells inference ir/infer "$elementwise PREDICATE ARG_REDUCE SCAN $one"
tells 'the interpreter' kernel/ref "$combined $one"
tells StableHLO ir/stablehlo "$elementwise COMPLEX $combined $one"
tells 'what combines' ir/combiner "$(sed -n 's/^TS_CLASS(\(.*\))/\1/p' c_src/ir/op.def | grep -vxE 'REDUCE|ARG_REDUCE|SCAN' | tr '\n' ' ')"
tells emission jit/ "$(sed -n 's/^TS_CLASS(\(.*\))/\1/p' c_src/ir/op.def |
  grep -vxE 'UNARY_FLOAT|UNARY|UNARY_INTEGER|PREDICATE|COMPLEX|BINARY|BINARY_FLOAT|BINARY_INTEGER|COMPARE' | tr '\n' ' ')"

# A row without a column, and one with a cost or a kind of attributes that there is not.
# short FILE SOURCE ROW COLUMN NEW WORDS: the row's column becomes NEW, or goes, and SOURCE's error says WORDS.
short() {
  total=$((total + 1))
  mkdir -p "$missing/short/$(dirname "$1")"
  sed "/^$3/s/$4/$5/" "c_src/$1" >"$missing/short/$1"
  # shellcheck disable=SC2086
  output=$(LC_ALL=C $compile -iquote "$missing/short" -fsyntax-only "$2" 2>&1) && fail "$1 compiles with a wrong row $3"
  case $output in *"$6"*) ;; *) fail "$1, row $3: '$output', expected '$6'" ;; esac
  rm -r "$missing/short"
}
short ir/op.def c_src/ir/op.c 'TS_OP(ADD,' 'PLAIN, ' '' 'TS_OP'
short ir/op.def c_src/ir/op.c 'TS_OP(ADD,' 'PLAIN, ' 'UNHEARD, ' 'COST_UNHEARD'
short ir/op.def c_src/ir/op.c 'TS_OP(ADD,' 'NONE, ' 'UNHEARD, ' 'TS_ATTR_UNHEARD'
short tensor/dtype.def c_src/tensor/dtype.c 'TS_DTYPE(F32,' ', *KERNELS' '' 'TS_DTYPE'
short tensor/dtype.def c_src/tensor/dtype.c 'TS_DTYPE(F32,' 'KERNELS' 'UNHEARD' 'TS_LAYERS_UNHEARD'
short ir/attr.def c_src/ir/attrs.c 'TS_ATTR(iota., axis' 'INT' 'UNHEARD' 'TS_C_UNHEARD'

# Every op on a type that has values and nothing else (t16, bf16 by another name): no kernel and no routine takes it for
# a type that it knows, so the interpreter computes the same, and what needs more than values refuses it by name.
# Complex numbers have parts of f32 and f64 only, and products with quantised weights operands of f32, f16 and bf16.
every_op() {
  sed -e "s/\bbf16\b/f64/g; s/\bf32\b/$1/g; s/0x7fc00001/0x7fc1/; s/0000803f00000040/803f0040/" \
    -e 's/bitcast %0 : u32/bitcast %0 : u16/' -e '/: c64/d; / = real /d; / = imag /d; / = irfft /d; / = quantized_dot /d' test/golden/ir/every_op.ts |
    awk '/^\/\// { next }
      /^graph/ { sub(/-> .*/, ""); head = $0; next }
      /^  return/ || /^}/ { next }
      { lines = lines $0 "\n" }
      /^  %/ { split($0, side, " = "); pending = side[1] }
      (/^  %/ && !/{$/) || /^  }/ { sub(/.* : /, ""); values = values ", " pending; types = types ", " $0 }
      END { printf "%s-> (%s) {\n%s  return %s\n}\n", head, substr(types, 3), lines, substr(values, 3) }'
}
every_op bf16 >"$text"
expected=$($without_aslr "$opt" --run --ref "$text" 2>&1)
every_op t16 >"$text"
for way in --ref ''; do
  total=$((total + 1))
  # shellcheck disable=SC2086
  output=$($without_aslr "$opt" --run $way "$text" 2>&1 | sed 's/\bt16\b/bf16/g')
  [ "$output" = "$expected" ] && [ "$(echo "$output" | grep -c '^result')" -gt 100 ] || {
    fail "t16 $way differs from bf16"
    [ -z "$V" ] || { echo "$expected" >"$text.a"; echo "$output" | diff "$text.a" -; rm -f "$text.a"; }
  }
done
expect 'type t16 has no form in StableHLO' --stablehlo

# The interpreter's plan of x * x is not that of x * y.
total=$((total + 1))
printf 'graph @t(%%0: t16[4], %%1: t16[4]) -> (t16[4], t16[4]) {\n  %%2 = multiply %%0, %%0 : t16[4]
  %%3 = multiply %%0, %%1 : t16[4]\n  return %%2, %%3\n}\n' >"$text"
$without_aslr "$opt" --check "$text" >/dev/null 2>&1 || fail 'x * x and x * y share a plan'

echo "rows: $((total - failed)) passed, $failed failed"
[ $failed -eq 0 ]

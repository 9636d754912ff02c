#!/bin/sh
# What tessera-opt prints when it compiles and runs a graph.
# usage: test/golden/tool.sh        TESSERA_OPT=path: the program to test
cd "$(dirname "$0")/../.." || exit 2
opt=${TESSERA_OPT:-build/${BUILD:-normal}/tessera-opt}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
total=0 failed=0
cat >"$work/graph.ts" <<'END'
graph @main(%0: s32[2,3], %1: f32[]) -> (s32[2], f32[]) {
  %2 = reduce_sum %0 {axes = [1]} : s32[2]
  %3 = tanh %1 : f32[]
  return %2, %3
}
END

# expect CODE PATTERN OPTION...: the exit code, and a line of the output
expect() {
  wanted=$1 pattern=$2
  shift 2
  total=$((total + 1))
  timeout 60 "$opt" "$@" "$work/graph.ts" >"$work/out" 2>&1
  code=$?
  if [ $code -ne "$wanted" ] || ! grep -q -- "$pattern" "$work/out"; then
    failed=$((failed + 1))
    echo "  tessera-opt $*: exit code $code, expected $wanted and '$pattern'"
    head -n 20 "$work/out"
  fi
}

expect 0 '^usage:' --help
TESSERA_ISA=altivec expect 1 'TESSERA_ISA: expected one of .*, got "altivec"' --run
TESSERA_DUMP=graf expect 1 'TESSERA_DUMP: expected a list of graph,passes,.*, got "graf"' --run
expect 2 '^usage:' --no-such-option
expect 2 '^usage:' --dump=graph,llvms
expect 2 '^usage:' --dump=
expect 2 '^usage:' --check --seed=x
expect 2 '^usage:' --check=nothing
expect 2 '^usage:' --check --ulps=-1
expect 2 '^usage:' --check --ulps=2147483648
expect 2 '^usage:' --check --seed=99999999999999999999
expect 0 '^result 0: s32\[2\] = 6 15$' --run --input=1,2,3,4,5,6 --input=0
expect 0 '^result 1: f32\[\] = 0' --run --input=1,2,3,4,5,6 --input=0
expect 0 '^result 0: s32\[2\] = 3 3$' --ref --input=1 --input=0
expect 0 '^the interpreter agrees$' --check --seed=7 --pass=simplify,fuse
expect 0 '^the interpreter agrees$' --check --ref --pass=simplify,fuse --special --seed=3 --ulps=0
expect 0 '^the interpreter agrees$' --check --modes --special --input=1,2,3
expect 0 '^the plain program agrees$' --check=plain --modes --ulps=0 --special
expect 0 '^result 0: ' --check --run
expect 0 '^steps 2$' --counts
expect 0 '^bytes of results 12$' --check --counts
expect 0 '^2 parameters, 2 results' --explain
expect 1 "argument 0: 'x' is no s32" --run --input=x
expect 1 'takes 2 arguments, 3 are given' --run --input=1 --input=2 --input=3
expect 0 '^0 s32 load 0' --kernels
expect 0 '^graph @main' --dump=graph
expect 0 '^  func.func public @main(%0: tensor<2x3xi32>' --stablehlo
expect 0 '^  func.func public @main(%0: tensor<2x3xi32>' --accelerator --pass=guard,fold
expect 0 '^// after fuse' --dump=passes
expect 0 '^define ' --dump=llvm
expect 0 '^; assembly of ' --dump=asm
expect 0 'parameters, 2 results' --dump=plan
expect 1 'the program has no mesh' --partitions
cat >"$work/graph.ts" <<'END'
graph @main mesh [2] (%0: s32[2,4] sharded [[],[0]]) -> (s32[2]) {
  %1 = reduce_sum %0 {axes = [1]} : s32[2]
  return %1
}
END
expect 0 '^result 0: s32\[2\] = 4 8$' --partitions --input=1,1,1,1,2,2,2,2
expect 0 '^the interpreter agrees' --partitions --check
expect 0 '^all_reduce_sum over \[0\]: 1 tensor, 8 bytes' --pass=report
expect 0 'sdy.sharding = #sdy.sharding<@mesh, \[{}, {"axis_0"}\]>' --stablehlo
# Programs of StableHLO: text, bytecode, an export of JAX.
program=test/stablehlo/names/network
expect_program() {
  cp "$program.$1" "$work/graph.ts"
  shift
  expect "$@"
}
for form in mlir vhlo exported; do
  expect_program $form 1 '^error: the program has symbols for sizes: --size=N gives a size$'
  expect_program $form 0 '^graph @main(%0: f32\[3\], %1: f32\[2,3\], %2: f32\[5,2\]) -> (f32\[5,3\])' --size=5
  expect_program $form 0 '^the interpreter agrees$' --size=5 --check --pass=pipeline
  expect_program $form 0 '^result 0: f32\[1,3\] = 3.0 5.0 7.0$' --size=1 --run --input=1 --input=1,2,3 --input=1
done
for size in 0 -1 x 2147483648; do expect 2 '^usage:' --size=$size; done
program=test/stablehlo/mesh/whole
expect_program vhlo 0 '^the interpreter agrees$' --partitions --check
printf '// a comment\n\n  func.func @main(%%x: tensor<f32>) {\n  return %%y : tensor<f32>\n}' >"$work/graph.ts"
expect 1 '^error: line 4, column 10: expected a value that is defined before, found '
printf 'func @main' >"$work/graph.ts"
expect 1 "^error: line 1, column 1: expected 'graph', found 'func'"
head -c 100 test/stablehlo/names/network.vhlo >"$work/graph.ts"
expect 1 '^error: byte [0-9]*: '
# A function's result is not that of the interpreter to the bit.
cat >"$work/graph.ts" <<'END'
graph @main(%0: f32[4000]) -> (f32[4000]) {
  %1 = tanh %0 : f32[4000]
  return %1
}
END
expect 1 '^error: result 0, got and expected: .* elements differ, first at [0-9]*: ' --check --ulps=0 --special --seed=4
expect 0 '^the interpreter agrees$' --check --ulps=4 --special --seed=4
cp test/golden/pass/fuse_shared.out "$work/graph.ts" # in the text each fusion has a region of its own
expect 0 '^// 6 regions, 5 fusions$' --pass=count
cp test/golden/epilogue/bias_and_relu.ts "$work/graph.ts"
expect 0 'on the parts of the product$' --explain
mv "$work/graph.ts" "$work/gone"
expect 1 "cannot open $work/graph.ts: No such file" --run
echo "tessera-opt: $((total - failed)) passed, $failed failed"
[ $failed -eq 0 ]

#!/bin/sh
# Checks which switches over ops, classes, kinds of attributes and kinds of kernels have a `default:`. Without one the
# compiler names the ops that lack a case; with one a new op silently gets what the label says. The list below has the
# switches where this is right, because the label leaves the op to slower code or refuses it by name: a file, the
# expression of the switch, and how many such switches the file has.
cd "$(dirname "$0")/.." || exit 2
expected=$(sort <<'END'
1 c_src/ir/stablehlo/stablehlo_mesh.c (int)op->code
1 c_src/ir/stablehlo/stablehlo_mesh.c ts_collective_combines(code)
1 c_src/jit/emit/whole_emit.c code
2 c_src/jit/lower/lower.c op->code
2 c_src/kernel/ref/ref_complex.c code
1 c_src/pass/collapse.c op->code
2 c_src/pass/collapse.c ts_op_attr_kind(op->code)
1 c_src/pass/complex/complex.c code
1 c_src/pass/complex/complex.c ts_op_get_class(code)
1 c_src/pass/fuse_plan.c op->code
1 c_src/pass/nest_build.c op->code
1 c_src/pass/simplify.c ts_op_get_class(call->op->code)
3 c_src/pass/simplify_arithmetic.c s->op->code
2 c_src/pass/simplify_shape.c s->op->code
1 c_src/pass/widen.c op->code
1 c_src/shard/factors.c (int)op->code
1 c_src/shard/factors.c code
1 c_src/shard/factors.c op->code
1 c_src/shard/factors.c ts_op_get_class(op->code)
1 c_src/shard/halo.c (int)op->code
1 c_src/shard/halo.c (int)s->op->code
1 c_src/shard/masked.c (int)s->op->code
1 c_src/shard/varying.c ts_op_get_class(op->code)
END
)

# clang-format gives a switch and its labels the same indentation. The front end's kinds of nodes are not ops.
found=$(find c_src -name '*.[ch]' ! -path 'c_src/nif/*' | sort | xargs awk '
  /^ *switch \(/ { match($0, /^ */); expression[RLENGTH] = $0 }
  /^ *default:/ {
    match($0, /^ */)
    text = expression[RLENGTH]
    sub(/^ *switch \(/, "", text)
    sub(/\) \{.*$/, "", text)
    if (text ~ /code|class|kind|(^|[^a-z_])op($|[^a-z_])|opcode|attr/) print FILENAME " " text
  }' | sort | uniq -c | sed 's/^ *//' | sort)

[ "$found" = "$expected" ] && exit 0
a=$(mktemp) b=$(mktemp)
printf '%s\n' "$expected" >"$a"
printf '%s\n' "$found" >"$b"
diff "$a" "$b" | sed -n \
  -e 's/^> \([0-9]*\) \([^ ]*\) \(.*\)/\2: \1 `default:` in switches over \3: name all cases, or add it to mk\/check-defaults.sh/p' \
  -e 's/^< \([0-9]*\) \([^ ]*\) \(.*\)/\2: mk\/check-defaults.sh expects \1 `default:` in switches over \3/p'
rm -f "$a" "$b"
exit 1

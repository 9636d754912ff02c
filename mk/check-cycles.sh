#!/bin/sh
# Checks that no two files of c_src use each other's functions, also through others: reads the symbols of the objects in
# build/normal, or of the folder that is given. The list below names the groups of files that may, each with the reason.
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/normal}
objects=$(find "$build/c_src" -name '*.o' 2>/dev/null | while read -r object; do
  source=${object#"$build/"}
  [ -f "${source%.o}.c" ] && echo "$object"
done)
[ -n "$objects" ] || { echo "$build has no objects: make core"; exit 1; }
groups=$(mktemp) || exit 1
trap 'rm -f "$groups" "$groups.edges"' EXIT
sed '/^#/d' <<'END' | sed ':join; /\\$/{ N; s/\\\n//; b join; }' >"$groups"
# an allocation that fails is an error, and an error is allocated
base/alloc base/status
# the steps of a loop have regions, which have steps
exec/build exec/build_control
# a run stops at a callback, and the answer continues it
nif/run/nif_answer nif/run/nif_run
# the grammar of MLIR: a type has attributes, and an attribute types
stablehlo/mlir_attr stablehlo/mlir_sharding stablehlo/mlir_type
# the same in bytecode
stablehlo/bytecode_attr stablehlo/bytecode_sdy stablehlo/bytecode_type
# an op with regions is partitioned by partitioning their ops
shard/control shard/partial shard/partition
# a plugin that ends is opened again, with its clients, programs and memory; a split program has programs
pjrt/client pjrt/compile pjrt/memory pjrt/open pjrt/program pjrt/run pjrt/share pjrt/split \
  pjrt/split_run
# a rule adds ops, to which the rules are applied
pass/collapse pass/complex/complex pass/complex/complex_formula pass/complex/complex_math \
  pass/complex/complex_power pass/fold pass/guard pass/rules pass/simplify pass/simplify_arithmetic \
  pass/simplify_shape pass/vector_dot pass/widen
# an op with regions is read by reading their ops, in the one table of all ops
stablehlo/make_chlo stablehlo/make_collective stablehlo/make_control stablehlo/make_custom \
  stablehlo/make_dynamic stablehlo/make_fold stablehlo/make_gather stablehlo/make_lapack stablehlo/make_ops \
  stablehlo/make_order stablehlo/make_parallel stablehlo/make_reduce stablehlo/make_sort stablehlo/make_sparse \
  stablehlo/make_tridiagonal stablehlo/make_tuple stablehlo/mesh/make_axes stablehlo/mesh/make_local \
  stablehlo/mesh/make_members stablehlo/mesh/make_mesh stablehlo/read
END
# shellcheck disable=SC2086
nm -A $objects | awk -v build="$build/c_src/" -v groups="$groups" '
# Marks the members of the group that a file uses, also through others.
function reach(from, group,    at, next_, todo) {
  delete seen
  todo = from
  while (split(todo, parts, " ") > 0) {
    todo = ""
    for (at in parts)
      for (next_ in group_of)
        if (group_of[next_] == group && (parts[at], next_) in edge && !(next_ in seen)) {
          seen[next_] = 1
          todo = todo " " next_
        }
  }
}
BEGIN {
  while ((getline line <groups) > 0) {
    count = split(line, names, " ")
    groups_count++
    first_of[groups_count] = names[1]
    for (i = 1; i <= count; i++) group_of[names[i]] = groups_count
  }
}
{
  file = substr($1, length(build) + 1)
  sub(/\.o:.*/, "", file)
  if ($(NF - 1) == "U") used[file, $NF] = 1
  else if ($(NF - 1) ~ /^[TDBRC]$/) defined[$NF] = file
}
END {
  for (pair in used) {
    split(pair, part, SUBSEP)
    if (part[2] in defined && defined[part[2]] != part[1]) edge[part[1], defined[part[2]]] = 1
  }
  for (pair in edge) {
    split(pair, part, SUBSEP)
    # a group is one file, its first, to the files outside of it
    from = part[1] in group_of ? first_of[group_of[part[1]]] : part[1]
    to = part[2] in group_of ? first_of[group_of[part[2]]] : part[2]
    if (from != to) print from, to
  }
  for (file in group_of) {
    reach(file, group_of[file])
    for (other in group_of)
      if (group_of[other] == group_of[file] && !(other in seen)) print "unneeded", file
  }
}' | sort -u >"$groups.edges"
sed -n 's/^unneeded \(.*\)/mk\/check-cycles.sh: c_src\/\1.c is no part of its group any more/p' "$groups.edges" | grep . && exit 1
loops=$(tsort <"$groups.edges" 2>&1 >/dev/null |
  sed -n 's/^tsort: -: input contains a loop:/these files use each other:/p; s/^tsort: \([^-].*\)/  c_src\/\1.c/p')
[ -z "$loops" ] || { echo "$loops"; exit 1; }

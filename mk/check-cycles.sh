#!/bin/sh
# Checks that no two files of c_src/kernel and c_src/group use each other's functions, also through others: reads the
# symbols of the objects in build/normal, or of the folder that is given.
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/normal}
objects=$(find "$build/c_src/kernel" "$build/c_src/group" -name '*.o' 2>/dev/null | while read -r object; do
  source=${object#"$build/"}
  [ -f "${source%.o}.c" ] && echo "$object"
done)
[ -n "$objects" ] || { echo "$build has no objects: make core"; exit 1; }
# shellcheck disable=SC2086
nm -A $objects | awk -v build="$build/" '
{
  file = substr($1, length(build) + 1)
  sub(/\.o:.*/, ".c", file)
  if ($(NF - 1) == "U") used[file, $NF] = 1
  else if ($(NF - 1) ~ /^[TDBRC]$/) defined[$NF] = file
}
END {
  for (pair in used) {
    split(pair, part, SUBSEP)
    if (part[2] in defined && defined[part[2]] != part[1]) print part[1], defined[part[2]]
  }
}' | sort -u | tsort 2>&1 >/dev/null | sed -n 's/^tsort: -: input contains a loop:/these files use each other:/p; s/^tsort: c_src/  c_src/p' | {
  loops=$(cat)
  [ -z "$loops" ] || { echo "$loops"; exit 1; }
}

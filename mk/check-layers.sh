#!/bin/sh
# Checks the table of layers: a layer includes headers of its own and of those
# before it in the list, and each foreign library belongs to one layer. A folder
# has at most 45 files.
cd "$(dirname "$0")/.." || exit 1
find c_src -type f | sed 's,/[^/]*$,,' | sort | uniq -c | awk '
$1 > 45 { print $2 ": " $1 " files, at most 45"; failed = 1 }
END { exit failed }' || exit 1

find c_src -name '*.[ch]' -o -name '*.def' | sort | xargs awk '
BEGIN {
  count = split("base tensor ir stablehlo pass shard jit kernel exec group comm device pjrt plugin front nif tool", layer)
  for (i = 1; i <= count; i++) order[layer[i]] = i
  # header pattern -> the files that may include it
  owner["^llvm-c/"] = "^c_src/jit/"
  owner["^llvm/"] = "^none$"
  owner["^(cblas|lapacke?)\\.h$"] = "^none$" # docs/linalg.md
  owner["^sleef\\.h$"] = "^c_src/(jit|kernel)/"
  owner["^xxhash\\.h$"] = "^c_src/base/"
  owner["^mpi\\.h$"] = "^c_src/comm/"
  owner["^erl_nif\\.h$"] = "^c_src/nif/"
}
function report(text) {
  printf "%s:%d: %s\n", FILENAME, FNR, text
  failed = 1
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  header = $0
  sub(/^[^"<]*["<]/, "", header)
  sub(/[">].*$/, "", header)
  split(FILENAME, path, "/")
  split(header, parts, "/")
  from = path[2]
  to = parts[1]
  if (to in order && header ~ /\//) {
    if (!(from in order)) report("no such layer: " from)
    else if (order[to] > order[from] || (from == "tool" && to == "nif")) report("layer " from " may not include " header)
  }
  if (FILENAME ~ "^c_src/kernel/ref/" && header ~ "^(kernel|exec)/" && header !~ "^kernel/(ref/|custom\\.h|routine\\.h)")
    report("the interpreter may not include " header)
  for (pattern in owner) {
    if (header ~ pattern && FILENAME !~ owner[pattern]) report("only " owner[pattern] " may include " header)
  }
}
END { exit failed }'

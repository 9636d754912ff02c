#!/bin/sh
# Checks that comments of c_src/, erl/, lib/ and test/ name things by the terms of docs/glossary.md, not by words that stand for a
# reader's guess. Test: mk/check-words.sh FILE checks FILE alone.
cd "$(dirname "$0")/.." || exit 1

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else find c_src erl lib test/c test/erl test/mpi -name '*.[ch]' -o -name '*.def' -o -name '*.erl' -o -name '*.ex' | sort; fi |
  xargs awk '
BEGIN {
  instead["nobody"] = "say which thread, caller or op does not"
  instead["somebody"] = "name the thread, caller, owner or waiter"
  instead["anybody"] = instead["somebody"]
  instead["everybody"] = "name the threads or callers"
  instead["whoever"] = instead["somebody"]
  instead["at hand"] = "current, cached, in memory"
  instead["goes"] = "name the action: is freed, is written, is passed to, continues"
  instead["hasty"] = "give the cost or the order"
}
# The part of a line that is a comment. Of Elixir: all, as documentation is in strings.
function comment(line, out, at) {
  if (FILENAME ~ /\.ex$/) return line
  if (FILENAME ~ /\.erl$/) {
    gsub(/"([^"\\]|\\.)*"|\$./, "", line)
    at = index(line, "%")
    return at ? substr(line, at) : ""
  }
  if (!inside) gsub(/"([^"\\]|\\.)*"/, "", line)
  while (line != "") {
    at = index(line, inside ? "*/" : "/*")
    if (inside) out = out " " (at ? substr(line, 1, at - 1) : line)
    if (!at) break
    line = substr(line, at + 2)
    inside = !inside
  }
  return out
}
FNR == 1 { inside = 0 }
{
  text = tolower(comment($0))
  for (word in instead) {
    if (text ~ "(^|[^a-z_])" word "([^a-z_]|$)") {
      printf "%s:%d: \"%s\" in a comment: %s (docs/glossary.md has the terms)\n", FILENAME, FNR, word, instead[word]
      failed = 1
    }
  }
}
END { exit failed }'

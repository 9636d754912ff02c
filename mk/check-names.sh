#!/bin/sh
# Checks that what documentation names in backquotes exists: source files (with or without their folder, `*` for any
# characters), and C names that begin with ts_ or TS_. NAME and ts_x stand for any.
# usage: mk/check-names.sh [FILE.md ...]
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- README.md CONTRIBUTING.md docs/*.md
known=$(mktemp) || exit 1
trap 'rm -f "$known"' EXIT
{
  find c_src erl lib include test mk bench examples deploy mix.exs -type f | sed 'p; s,.*/,,'
  echo checksum.exs # of the package (docs/packages.md)
  sed -nE 's/^(%%|#) ([A-Za-z0-9_.\/-]+)$/\2/p' docs/tutorial-*.md # files that readers write
  grep -rhoE '\b(ts|TS)_[A-Za-z0-9_]+' c_src include test/c test/rows
} | sort -u >"$known"
awk -v known="$known" '
function as_regex(pattern) {
  gsub(/[.+()]/, "\\\\&", pattern)
  gsub(/\*/, "[^ ]*", pattern)
  return "(^|/)" pattern "$"
}
function exists(name,  i, regex) {
  if (name in is_known) return 1
  if (name ~ /[\/*]/) {
    regex = as_regex(name)
    for (i = 1; i <= count; i++) if (all[i] ~ regex) return 1
  }
  return 0
}
BEGIN {
  while ((getline name < known) > 0) {
    all[++count] = name
    is_known[name] = 1
  }
}
FNR == 1 { fenced = 0 }
/^```/ { fenced = !fenced }
!fenced && FILENAME != "docs/adding.md" {
  n = split($0, parts, "`")
  for (i = 2; i <= n; i += 2) {
    name = parts[i]
    sub(/\(\)$/, "", name)
    if (name !~ /^[A-Za-z0-9_.*\/-]+\.(c|h|def|erl|hrl|sh|exs?|py|ts|awk|escript)$/ && name !~ /^(ts|TS)_[A-Za-z0-9_*]+$/) continue
    if (name ~ /NAME/ || name == "ts_x" || exists(name)) continue
    printf "%s:%d: there is no %s\n", FILENAME, FNR, name
    failed = 1
  }
}
END { exit failed }' "$@"

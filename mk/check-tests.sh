#!/bin/sh
# Checks that docs/tests.md tells where each source file is tested: a file has a test of its name, or a row below "Source
# files" whose folder and patterns match it. Tests and paths that the page names must exist, a pattern must match a file,
# and the page names each test that has no source file's name.
cd "$(dirname "$0")/.." || exit 1
page=docs/tests.md
{
  find c_src -name '*.c'
  find erl -name '*.erl'
  find lib -name '*.ex'
  find test/c -name 'test_*.c'
  find test/erl -name '*_tests.erl'
} | sort | awk -v page="$page" '
function fail(text) {
  print text
  failed = 1
}
function base(path) {
  sub(/.*\//, "", path)
  sub(/\.(c|erl|ex)$/, "", path)
  return path
}
# The words of a cell that stand in backquotes, to out[1..].
function words(cell, out,  n, i, parts) {
  n = split(cell, parts, "`")
  for (i = 2; i < n; i += 2) out[i / 2] = parts[i]
  return int((n - 1) / 2)
}
function as_regex(pattern) {
  gsub(/\./, "\\.", pattern)
  gsub(/\*/, ".*", pattern)
  return "^" pattern "$"
}
# A test or a path that the page names.
function check_word(word, line,  path) {
  named[word] = 1
  if (word ~ /^test_[a-z0-9_]+$/) path = "test/c/" word ".c"
  else if (word ~ /^tessera_[a-z0-9_]+_tests$/) path = "test/erl/" word ".erl"
  else if (word ~ /^(c_src|erl|lib|test|docs)\/[A-Za-z0-9_.\/*-]+$/ && word !~ /NAME/) path = word
  if (path != "" && system("ls -d " path " >/dev/null 2>&1")) fail(page ":" line ": there is no " path)
}
function read_row(row, line,  cells, folder, files, tests, i, n) {
  split(row, cells, "|")
  if (words(cells[2], folder) == 0) return
  n = words(cells[3], files)
  if (words(cells[4], tests) == 0) fail(page ":" line ": no test")
  for (i = 1; i <= n; i++) {
    count++
    in_folder[count] = folder[1]
    regex[count] = as_regex(files[i])
    where[count] = page ":" line ": " folder[1] "/" files[i]
  }
}
function read_page(  text, line, i, n, found, below) {
  while ((getline text < page) > 0) {
    line++
    if (text ~ /^## /) below = text == "## Source files"
    n = words(text, found)
    for (i = 1; i <= n; i++) check_word(found[i], line)
    if (below && text ~ /^\|/) read_row(text, line)
  }
  if (!count) fail(page ": no rows below \"Source files\"")
}
function has_row(path,  folder, i, found) {
  folder = path
  sub(/\/[^\/]*$/, "", folder)
  for (i = 1; i <= count; i++) {
    if (in_folder[i] == folder && base(path) ~ regex[i]) found = used[i] = 1
  }
  return found
}
BEGIN { read_page() }
/^test\// { test[base($0)] = $0; next }
{ source[++sources] = $0 }
END {
  for (i = 1; i <= sources; i++) {
    name = base(source[i])
    own = source[i] ~ /^c_src/ ? "test_" name : name "_tests"
    if (own in test) of_file[own] = 1
    if (!has_row(source[i]) && !(own in test)) fail(source[i] ": " page " does not tell where it is tested")
  }
  for (i = 1; i <= count; i++) if (!(i in used)) fail(where[i] " is no source file")
  for (name in test) if (!(name in of_file) && !(name in named)) fail(test[name] ": " page " does not name it")
  exit failed
}'

#!/bin/sh
# Golden tests: tessera-opt reads each FILE.ts here or below, and what it prints must be FILE.out, byte for byte. A graph
# in FILE.out is read and printed again. Where there is a FILE.stablehlo, that is what --stablehlo must print. The first
# line of FILE.ts says what to run and to check, and that it must fail when the output is an error message:
#   // passes: simplify,cse
#   // fails
#   // fails passes: fuse
#   // same passes: fuse        the interpreter must give the same bits for both graphs, too
#   // checks passes: fuse      that, and the compiled graph must give what the interpreter gives
#   // checks                   only that: there is no FILE.out
#   // checks bits              the same bits, for numbers of any size, NaN and infinities, in each mode of compilation and
#                               kind of run
#   // checks bits passes: fuse  that, and all of "checks passes: fuse"
#   // checks bits of plain     the bits of the graph compiled without fusion and simplification
#   // checks bits of plain, but NaN   the same for numbers that give no NaN: other code may give NaNs of other signs
# A line "// also passes: normalize,fuse" names passes that give the same FILE.out.
# A line "// reads: FILE ..." names files that are read in place of FILE.ts, such as programs of StableHLO: each gives the
# same FILE.out. A line "// options: --size=3" has options for all runs.
# A line "// counts: steps 1, kernels 2" names lines of what --counts prints.
# A line "// sends: 1 collective, 4 bytes" says what a program on a mesh communicates, which UPDATE does not change.
# All runs are lines of a file, for one process (tessera-opt --batch). Where that ends early, the run that it has ended in
# has failed, and another process takes the next ones.
# usage: test/golden/run.sh [FILE.ts ...]
#   UPDATE=1          rewrites the outputs
#   TESSERA_OPT=path  the program to test
#   TESSERA_PART=0    of the seeds of "bits" the first, 1 the second, 2 the third, 3 the first: for runs with a sanitizer
#   TESSERA_HALF, TESSERA_WAITS   both: one seed; the other half takes another one, and the third waits (test/c/testing.h)
cd "$(dirname "$0")/../.." || exit 2
opt=${TESSERA_OPT:-build/${BUILD:-normal}/tessera-opt}
[ -x "$opt" ] || { echo "golden: no $opt, run make first" >&2; exit 2; }
[ $# -gt 0 ] || set -- $(find test/golden -name '*.ts' | sort)
part=${TESSERA_PART:+$((TESSERA_PART % 3))}
[ -n "$part" ] || [ -z "${TESSERA_HALF:-}" ] || [ -z "${TESSERA_WAITS:-}" ] || part=$(((TESSERA_WAITS + 1 + TESSERA_HALF) % 3))
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
total=0 failed=0 code=0 tab=$(printf '\t')

# What to run, and what to expect of it: "ARGUMENTS<tab>KIND<tab>INPUT<tab>EXPECTED" for each run.
plan() {
  awk -v part="$part" '
    function run(arguments, kind, expected) { printf "%s %s %s\t%s\t%s\t%s\n", options, arguments, input, kind, input, expected }
    function check_bits(arguments, seed) {
      for (seed = 1; seed <= 3; seed++)
        if (part == "" || seed == part + 1) run(arguments " --ulps=0 --seed=" seed, "agrees")
    }
    function exists(file, line, is) { is = (getline line <file) >= 0; close(file); return is }
    function is_graph(file, line, is) {
      while ((getline line <file) > 0 && line ~ /^\/\//) ;
      is = line ~ /^graph /
      close(file)
      return is
    }
    function plan_file(stem, files, count, i) {
      stem = substr(input, 1, length(input) - 3)
      count = split(reads == "" ? input : reads, files, " ")
      for (i = 1; i <= count; i++) {
        input = files[i]
        plan_input(stem)
      }
      if (!prints_text()) return
      if (is_graph(stem ".out")) {
        input = stem ".out"; options = ""
        run("", "back", input)
      }
      if (sends != "") printf "\tsends\t%s\t%s\n", stem ".ts", sends
    }
    function prints_text() { return first !~ /^\/\/ checks/ || passes != "" }
    function plan_input(stem, is_first, wanted) {
      is_first = first ~ /^\/\/ checks/
      if (counts != "") run("--counts", "counts", counts)
      if (first ~ /^\/\/ same/ || (is_first && passes != "")) check_bits("--check --ref --special --pass=" passes)
      if (first ~ /^\/\/ checks bits of plain, but NaN/) check_bits("--check=plain --modes")
      else if (first ~ /^\/\/ checks bits of plain/) check_bits("--check=plain --modes --special")
      else if (first ~ /^\/\/ checks bits/) check_bits("--check --modes --special")
      if (is_first && (passes != "" || first !~ /^\/\/ checks bits/)) run("--check", "agrees")
      if (!prints_text()) return
      wanted = first ~ /^\/\/ fails/ ? "fails" : "prints"
      run("--pass=" passes, wanted, stem ".out")
      if (also != "") run("--pass=" also, wanted, stem ".out")
      if (exists(stem ".stablehlo")) run("--stablehlo --pass=", "prints", stem ".stablehlo")
    }
    function text_after(line, words) { return substr(line, index(line, words) + length(words)) }
    FNR == 1 {
      if (input != "") plan_file()
      input = FILENAME; first = $0; passes = counts = also = sends = reads = options = ""
      if (/^\/\/.*passes:/) { passes = text_after($0, "passes:"); gsub(/ /, "", passes) }
    }
    /^\/\/ counts: / { counts = text_after($0, "// counts: ") }
    /^\/\/ also passes: / { also = text_after($0, "// also passes: "); gsub(/ /, "", also) }
    /^\/\/ reads: / { reads = text_after($0, "// reads: ") }
    /^\/\/ options: / { options = text_after($0, "// options: ") }
    /^\/\/ sends: / { sends = text_after($0, "// sends: ") }
    END { if (input != "") plan_file() }' "$@"
}

# Runs the lines of $work/runs; a line of $work/codes for each.
run_all() {
  wanted=$(wc -l <"$work/runs")
  : >"$work/codes"
  while count=$(wc -l <"$work/codes") && [ "$count" -lt "$wanted" ]; do
    tail -n +$((count + 1)) "$work/runs" >"$work/rest"
    "$opt" --batch "$work/rest" >>"$work/codes" 2>"$work/errors"
    code=$?
    [ "$(wc -l <"$work/codes")" -lt "$wanted" ] || break
    head -n 20 "$work/errors"
    echo "$((code == 0 ? 1 : code)) ended" >>"$work/codes"
  done
}

# fail INPUT WORDS
fail() {
  echo "  $1: $2$([ "$code" -le 1 ] || echo ", exit code $code")"
  failed=$((failed + 1))
}

# compare INPUT EXPECTED WANTED_CODE
compare() {
  if [ "$code" -ne "$3" ]; then
    fail "$2" "exit code $code, expected $3"
    head -n 5 "$actual"
  elif [ -n "${UPDATE:-}" ]; then
    cp "$actual" "$2"
  elif [ ! -f "$2" ]; then
    fail "$1" "there is no $2; UPDATE=1 makes it"
  elif ! cmp -s "$actual" "$2"; then
    fail "$2" "differs"
    diff -u "$2" "$actual" | head -n 40
  fi
}

agrees() {
  [ "$code" -eq 0 ] && tail -n 1 "$actual" | grep -q ' agrees$' && return
  fail "$1" "$2"
  head -n 5 "$actual"
}

# counts INPUT LINES: what --counts prints has these lines, which are separated by commas.
counts() {
  missing=$(printf '%s\n' "$2" | tr , '\n' | sed 's/^ *//' | grep -vxFf "$actual") || return
  fail "$1" "no $missing"
  cat "$actual"
}

# A printed graph is read and printed again, without comments.
back() {
  grep -v '^//' "$1" | cmp -s - "$actual" && return
  fail "$1" 'is printed in another way'
}

plan "$@" >"$work/plan"
awk -F '\t' -v work="$work" '$1 != "" { print work "/" ++n " " $1 }' "$work/plan" | tr -s ' ' >"$work/runs"
run_all
exec 3<"$work/codes"
run=0
while IFS= read -r line; do
  arguments=${line%%"$tab"*} line=${line#*"$tab"}
  kind=${line%%"$tab"*} line=${line#*"$tab"}
  input=${line%%"$tab"*} expected=${line#*"$tab"}
  if [ "$kind" = sends ]; then
    grep -q "^$expected of each of" "${input%.ts}.out" || fail "$input" "does not send $expected"
    continue
  fi
  total=$((total + 1)) run=$((run + 1))
  actual=$work/$run
  [ -e "$actual" ] || : >"$actual"
  read -r code _ <&3
  case $kind in
  prints) compare "$input" "$expected" 0 ;;
  fails) compare "$input" "$expected" 1 ;;
  agrees) agrees "$input" "$arguments" ;;
  counts) counts "$input" "$expected" ;;
  back) [ -n "${UPDATE:-}" ] || back "$input" ;;
  esac
done <"$work/plan"
if [ -n "${UPDATE:-}" ] && [ $failed -eq 0 ]; then # what is new is read back
  UPDATE= "$0" "$@"
  exit
fi
echo "golden: $((total - failed)) passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$total" -gt 0 ]

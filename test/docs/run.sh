#!/bin/bash
# Runs the commands of README.md, CONTRIBUTING.md and docs/: the lines of their ```sh blocks. Prints the commands that
# it leaves out, each with the reason. The tutorials (docs/tutorial-*.md) are followed by test/docs/tutorial.escript. (The Erlang examples are run by test/erl/tessera_doc_tests.erl, those in Elixir by
# test/nx/docs_test.exs.) Also checks that the files exist that links and text name.
#
#   test/docs/run.sh [PATTERN]     all commands, or those that match
#
# More of them run with
#   ERL_LIBS=folder       compiled applications nx, complex and telemetry, for commands that need Nx
#   NX_REPOSITORY=folder  a checkout of Nx, for its test suites
#   IMAGE_ROOT=folder     for the roots of examples/first/build-without-docker.sh (root; 3 GB, 8 minutes)
set -u
cd "$(dirname "$0")/../.." || exit 2
pattern=${1:-}
pages=(README.md CONTRIBUTING.md docs/*.md)
nx=${ERL_LIBS:-}
unset ERL_LIBS MAKEFLAGS MFLAGS MAKELEVEL # what is run here is not part of the make that runs this
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
ran=0 left=0 failed=0

# "page:line<TAB>command" for each, without comments.
commands() {
  awk '
    FNR == 1 { inside = 0; tutorial = FILENAME ~ /tutorial-/ }
    tutorial { next }
    /^```/ { inside = ($0 == "```sh"); next }
    inside {
      sub(/ +# .*$/, "")
      if (/\\$/) { sub(/\\$/, ""); held = held $0; next }
      if (held $0 != "") print FILENAME ":" FNR "\t" held $0
      held = ""
    }' "${pages[@]}"
}

leave() {
  left=$((left + 1))
  echo "  left out: $command ($1)"
}

# Runs $1 for $command.
run() {
  local start=$SECONDS
  if (eval "$1") >"$work/log" 2>&1 </dev/null; then
    ran=$((ran + 1))
    echo "  ran: $command ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "$place: $command"
    echo "  fails:"
    tail -n 40 "$work/log"
  fi
}

has_jax() { python3 -c 'import jax, torch, numpy' 2>/dev/null; }
has_nx() { [ -n "$nx" ] && command -v elixir >/dev/null; }

with_nx() { if has_nx; then run "ERL_LIBS=$nx ${1#ERL_LIBS=FOLDER }"; else leave "needs Nx: set ERL_LIBS"; fi; }

# A command that takes long is run in a cheaper form.
decide() {
  case $command in
  "./setup"*) leave "installs packages: .ci/run does this on fresh machines" ;;
  "make -j2 test" | "make asan tsan" | "make lint") leave ".ci/run runs it" ;;
  "make check" | "make analyze" | "make fuzz "*) leave "a part of what .ci/run and make test-all run" ;;
  "mk/debian-test.sh "*) leave ".ci/run runs it; needs root, 20 minutes" ;;
  "make precompiled"* | "make test-packages"*) leave ".ci/run runs make test-packages" ;;
  "curl "* | "systemctl "* | "install "* | "tar xzf tessera"* | "erlc -o /opt"*) leave "needs an installed service: test/deploy/run.sh runs its parts" ;;
  "make test-docs") leave "this is it" ;;
  "make test-golden UPDATE=1") leave "changes files" ;;
  "test/aarch64/run.sh"*) leave "downloads 1.7 GB, takes half an hour" ;;
  "make && erl -pa ebin") run "make && echo 'halt().' | erl -pa ebin" ;;
  "make bench") run "ONLY=matmul_64 BUDGET=0.05 make bench" ;;
  "make accuracy") run "make accuracy ARGS='1000003 sqrt'" ;;
  "make bench-models "*) leave "loads whole models, for half an hour" ;;
  *PEERS=python3) if has_jax; then run "ONLY=matmul_64 XLA_COUNT=1 $command"; else leave "needs a Python with JAX"; fi ;;
  "cd examples/first" | "mix "* | "iex "* | "elixir examples/"*) leave "needs Hex: test/nx/docs_test.exs runs it with a local Nx" ;;
  *" --batch LINES") run "echo '$work/out $work/file' >$work/lines && ${command/LINES/$work/lines}" ;;
  "docker "*) if docker info >/dev/null 2>&1; then run "$command"; else leave "needs Docker"; fi ;;
  *STABLEHLO=*) leave "needs a copy of StableHLO's repository" ;;
  *PJRT_PLUGIN=* | TESSERA_MESH_PLUGIN=*) leave "needs a plugin: test_platform and tessera_pjrt_tests have one of their own" ;;
  "make test-cuda"*) leave "needs a GPU of NVIDIA" ;;
  *build-without-docker.sh*)
    if [ -n "${IMAGE_ROOT:-}" ]; then run "NX_LIBS=$nx ${command/FOLDER/$IMAGE_ROOT}"; else leave "set IMAGE_ROOT"; fi ;;
  *NX_REPOSITORY*) if [ -n "${NX_REPOSITORY:-}" ]; then with_nx "${command/NX_REPOSITORY/$NX_REPOSITORY}"; else leave "set NX_REPOSITORY"; fi ;;
  "ERL_LIBS=FOLDER "*) with_nx "$command" ;;
  *) run "${command/FILE/$work/file}" ;;
  esac
}

check_links() {
  while IFS=: read -r page link; do
    [ -e "$(dirname "$page")/$link" ] || { failed=$((failed + 1)); echo "$page: the link $link leads nowhere"; }
  done < <(grep -oHE '\]\([^)#]+' "${pages[@]}" | grep -v '](http' | sed 's/\](//')
}

# Files that the text names in backquotes: from the root, c_src/ or erl/.
check_files() {
  while IFS=: read -r page file; do
    [ -e "$file" ] || [ -e "c_src/$file" ] || [ -e "erl/$file" ] || { failed=$((failed + 1)); echo "$page: there is no $file"; }
  done < <(grep -oHE '`[a-z][a-z0-9_.-]*/[A-Za-z0-9_/.-]+\.(c|h|def|erl|hrl|exs?|sh|py|md)`' "${pages[@]}" | tr -d '`')
}

# The site (make doc) has no link that leads nowhere, since its generator finds these.
check_site() {
  local site=$PWD/mk/site.escript
  mkdir -p "$work/site/docs" "$work/site/bench"
  printf '# A\n\n[a](docs/b.md#b-two) and [no page](docs/none.md)\n' >"$work/site/README.md"
  # shellcheck disable=SC2016 # backquotes of Markdown
  printf '# B\n\n## B *two*\n\n| a | b |\n|---|---|\n| [no anchor](../README.md#c) | `x \\| y` |\n' >"$work/site/docs/b.md"
  for page in CONTRIBUTING.md CHANGELOG.md bench/RESULTS.md bench/HISTORY.md; do echo '# C' >"$work/site/$page"; done
  if (cd "$work/site" && "$site" out) >"$work/log" 2>&1 || [ "$(grep -c 'leads nowhere' "$work/log")" != 2 ] || ! grep -q 'README.md: the link docs/none.md' "$work/log" ||
    ! grep -q 'docs/b.md: the link ../README.md#c' "$work/log" || ! grep -q '<code>x | y</code>' "$work/site/out/b.html" || ! grep -q 'id="b-two"' "$work/site/out/b.html"; then
    failed=$((failed + 1))
    echo "mk/site.escript does not find what is wrong:"
    cat "$work/log"
  fi
}

# Tables of bench/RESULTS.md that the README counts: the section, the number of the table in it, and the column with the ratio to the fastest other
# library. `behind': the table lists only workloads that are behind.
figures='sixteen-cores 1 6 behind
products-of-bf16-by-amx 1 5 all
sums-in-chains-and-blocks 3 6 all
on-an-nvidia-h100-by-xlas-plugin 1 4 all'
check_figures() {
  local anchor table column which counted said
  while read -r anchor table column which; do
    counted=$(awk -F' *[|] *' -v anchor="$anchor" -v table="$table" -v column="$((column + 1))" '
      /^#/ { name = tolower($0); sub(/^#+ /, "", name); gsub(/[^a-z0-9 -]/, "", name); gsub(/ /, "-", name) }
      name != anchor { next }
      !/^[|]/ { line = 0; next }
      ++line == 1 { found++ }
      found == table && line > 2 { value = $column; gsub(/[*]/, "", value); count++; ahead += value + 0 >= 1; if (count == 1 || value + 0 < least) least = value + 0 }
      END { printf "%d %d %.2f", ahead, count, least }' bench/RESULTS.md)
    said=$(sed -nE "s/^\| \[[^]]*\]\(bench\/RESULTS\.md#$anchor\)[^|]*\| ([0-9]+) of ([0-9]+) \| [0-9.]* \| ([0-9.]+),.*/\1 \2 \3/p" README.md)
    [ "$which" = all ] || said=$(awk '{ print 0, $2 - $1, $3 }' <<<"$said")
    [ "$counted" = "$said" ] || { failed=$((failed + 1)); echo "README.md: $anchor: $said (ahead, of, the least), but the table has $counted"; }
  done <<<"$figures"
}

# Commands outside of ```sh blocks would not be run.
check_blocks() {
  if grep -nE '^    (\$ )?(make|erl|elixir|mix|\./|[A-Z_]+=[^ ]+ [a-z])' "${pages[@]}"; then
    failed=$((failed + 1))
    echo 'these commands do not stand in ```sh blocks'
  fi
}

make >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
erl -noshell -pa ebin -eval 'io:put_chars(tessera:to_text(fun tessera:multiply/2,
  [tessera:template(f32, {3}), tessera:template(f32, {})])), halt().' >"$work/file" || exit 1

while IFS=$'\t' read -r place command; do
  case $command in *"$pattern"*) decide ;; esac
done < <(commands | awk -F'\t' '!seen[$2]++') # each once
for page in docs/tutorial-*.md; do # whose commands belong together
  [[ $page = *"$pattern"* ]] || continue
  if NX_LIBS=$nx test/docs/tutorial.escript "$page"; then ran=$((ran + 1)); else failed=$((failed + 1)); fi
done
# Notebooks that need no Nx; the others: test/nx/docs_test.exs.
for page in livebooks/tensors.livemd livebooks/digits.livemd; do
  case $page in *"$pattern"*)
    place=$page command="elixir -pa ebin test/docs/livebook.exs $page"
    if command -v elixir >/dev/null; then run "$command"; else leave "there is no Elixir here"; fi
    ;;
  esac
done
check_links
check_files
check_blocks
check_figures
check_site
echo "  $left of the documentation's commands left out"
echo "Documentation: $ran passed, $failed failed"
[ $failed = 0 ] && [ $ran -gt 0 ]

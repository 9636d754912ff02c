#!/bin/sh
# Tessera as a dependency of a rebar3 project: fresh projects with this repository's HEAD as a git dependency, and with a
# checkout beside them, compile, and their code runs. Of two machines that share the tests the one with TESSERA_HALF=0 has the
# git dependency, the other one the checkout.
# usage: test/rebar3/run.sh
cd "$(dirname "$0")/../.." || exit 2
PATH=$PATH:$PWD/.tools
# Where everything must be there, what is not is a failure.
left_out() {
  echo "rebar3: left out, $1"
  [ -z "${TESSERA_CI:-}" ] || exit 1
}
command -v rebar3 >/dev/null || { left_out "no rebar3 here; ./setup takes the program out of Debian's package"; exit 0; }

unset MAKEFLAGS MFLAGS MAKELEVEL # what these start is not part of the make that runs this
here=$PWD passed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

fail() {
  echo "rebar3: $1"
  [ ! -f "$work/log" ] || cat "$work/log"
  echo "rebar3: $passed passed, 1 failed"
  exit 1
}

# project NAME DEPENDENCY
project() {
  mkdir -p "$work/$1/src"
  echo "{deps, [$2]}." >"$work/$1/rebar.config"
  cat >"$work/$1/src/app.app.src" <<'END'
{application, app, [{description, "uses tessera"}, {vsn, "1"}, {applications, [kernel, stdlib, tessera]}]}.
END
  cat >"$work/$1/src/app.erl" <<'END'
-module(app).
-include_lib("tessera/include/tessera.hrl").
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(app),
    F = tessera:jit(fun(X, W) -> tessera:sum(tessera:multiply(tessera:dot(X, W), 0.5)) end),
    #tessera{type = f32, shape = {}} = Y = F(tessera:iota({2, 3}, f32), tessera:ones({3, 2}, f32)),
    15.0 = tessera:to_number(Y),
    %% what h(tessera) prints
    {ok, {docs_v1, _, erlang, _, #{<<"en">> := _}, _, _}} = code:get_doc(tessera),
    io:format("ran").
END
}

# Nothing is fetched but this repository. Everything that rebar3 makes is an application.
compiles_and_runs() {
  cd "$work/$1" || exit 2
  HOME=$work HEX_OFFLINE=1 rebar3 compile >"$work/log" 2>&1 || fail "the project with $2 does not compile"
  output=$(erl -noshell -pa _build/default/*/*/ebin -eval 'app:main(), halt().' 2>&1)
  [ "$output" = ran ] || fail "the program with $2 does not run: $output"
  passed=$((passed + 1))
  echo "rebar3: a project with $2 compiles and runs"
  cd "$here" || exit 2
}

if [ "${TESSERA_HALF:-}" = 1 ]; then
  echo "rebar3: left out, a project with a git dependency; the other half runs it"
elif ! command -v git >/dev/null; then
  left_out "no git here: a project with a git dependency"
elif ! head=$(git rev-parse --verify -q HEAD); then
  left_out "not a git checkout: a project with a git dependency"
else
  project by_git "{tessera, {git, \"file://$here\", {ref, \"$head\"}}}"
  compiles_and_runs by_git "a git dependency"
fi

if [ "${TESSERA_HALF:-}" = 0 ]; then
  echo "rebar3: left out, a project with a checkout beside it; the other half runs it"
else
  project beside tessera
  mkdir -p "$work/beside/_checkouts"
  test/copy_tree.sh "$work/tessera" || fail "the tree cannot be copied"
  ln -s "$work/tessera" "$work/beside/_checkouts/tessera"
  compiles_and_runs beside "a checkout beside it"
fi
echo "rebar3: $passed passed, 0 failed"

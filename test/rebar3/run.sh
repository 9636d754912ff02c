#!/bin/sh
# Tessera as a dependency of a rebar3 project: a fresh project with this
# repository's HEAD as a git dependency compiles, and its code runs.
# usage: test/rebar3/run.sh
cd "$(dirname "$0")/../.." || exit 2
for tool in rebar3 git; do
  # Where everything must be there, what is not is a failure.
  command -v $tool >/dev/null || { echo "rebar3: no $tool here, skipped"; [ -z "${TESSERA_CI:-}" ]; exit; }
done
head=$(git rev-parse --verify -q HEAD) || { echo "rebar3: not a git checkout, skipped"; exit 0; }

unset MAKEFLAGS MFLAGS MAKELEVEL # what these start is not part of the make that runs this
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/app/src"
cat >"$work/app/rebar.config" <<END
{deps, [{tessera, {git, "file://$PWD", {ref, "$head"}}}]}.
END
cat >"$work/app/src/app.app.src" <<'END'
{application, app, [{description, "uses tessera"}, {vsn, "1"}, {applications, [kernel, stdlib, tessera]}]}.
END
cat >"$work/app/src/app.erl" <<'END'
-module(app).
-include_lib("tessera/include/tessera.hrl").
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(app),
    F = tessera:jit(fun(X, W) -> tessera:sum(tessera:multiply(tessera:dot(X, W), 0.5)) end),
    #tessera{type = f32, shape = {}} = Y = F(tessera:iota({2, 3}, f32), tessera:ones({3, 2}, f32)),
    15.0 = tessera:to_number(Y),
    io:format("ran").
END

# Nothing is fetched but this repository.
cd "$work/app" || exit 2
if ! HOME=$work HEX_OFFLINE=1 rebar3 compile >"$work/log" 2>&1; then
  echo "rebar3: the project does not compile"
  cat "$work/log"
  exit 1
fi
output=$(erl -noshell -pa _build/default/lib/*/ebin -eval 'app:main(), halt().' 2>&1)
[ "$output" = ran ] || { echo "rebar3: the program does not run: $output"; exit 1; }
echo "rebar3: a project that depends on this one compiles and runs"

#!/bin/sh
# Runs xref and dialyzer over ebin/, xref over bench/ and examples/ as well, and looks at the format of lib/ and mix.exs. The modules of erl/nx/ call Elixir and Nx,
# which users load, and which are not here. Beams of lib/ are read with the help of Elixir's own library.
cd "$(dirname "$0")/.." || exit 1
failed=0
export LC_ALL=C.UTF-8

set -- ebin/*.beam
if command -v elixir >/dev/null; then
  library=$(elixir -e 'IO.write(Path.dirname(:code.lib_dir(:elixir)))') && export ERL_LIBS="$library${ERL_LIBS:+:$ERL_LIBS}"
  mix format --check-formatted || failed=1
else
  echo "lint: no Elixir here, lib/ is skipped"
  [ -z "${TESSERA_CI:-}" ] || failed=1
  for beam; do
    shift
    case $beam in ebin/Elixir.*) ;; *) set -- "$@" "$beam" ;; esac
  done
fi

undefined=$(erl -noshell -eval '
  {ok, _} = xref:start(lint),
  ok = xref:set_default(lint, [{verbose, false}, {warnings, false}]),
  ok = xref:set_library_path(lint, code:get_path()),
  [{ok, _} = xref:add_directory(lint, Folder) || Folder <- ["ebin", "build/bench", "build/examples"]],
  HasElixir = filelib:wildcard("ebin/Elixir.*.beam") =/= [],
  Foreign = fun(M) ->
    Name = atom_to_list(M),
    M =:= telemetry orelse (lists:prefix("Elixir.", Name) andalso not (HasElixir andalso lists:prefix("Elixir.Tessera", Name)))
  end,
  [[io:format("~p:~p/~p: ~s~p~n", [M, F, A, Text, Call])
    || {{M, F, A}, {Other, Called, _} = Call} <- element(2, xref:analyze(lint, Check)), not Foreign(Other),
       atom_to_list(Called) =/= "__impl__"] % of a protocol, for each type that may implement it
   || {Check, Text} <- [{undefined_function_calls, "calls what is not there: "},
                        {deprecated_function_calls, "calls what is deprecated: "}]],
  [io:format("~p: is not used~n", [F]) || F <- element(2, xref:analyze(lint, locals_not_used))],
  halt().') || failed=1
[ -z "$undefined" ] || { echo "$undefined"; failed=1; }

if command -v dialyzer >/dev/null; then
  release=$(erl -noshell -eval 'io:format("~s", [erlang:system_info(otp_release)]), halt().')
  # .ci/run keeps it where it keeps other things that are slow to make. Dialyzer itself sees whether OTP has changed.
  plt=${TESSERA_PLT_FOLDER:-build}/otp-$release.plt
  if [ ! -f "$plt" ]; then
    echo "lint: making $plt, once"
    # Its own warnings are about OTP.
    nice dialyzer --quiet --build_plt --output_plt "$plt.$$" --apps erts kernel stdlib >build/plt.log 2>&1
    mv "$plt.$$" "$plt" || { cat build/plt.log; exit 1; }
  fi
  # Functions that raise are many. [Program | Id] is a value of a program: an improper list takes the fewest
  # words. Unknown are Elixir's modules, with the callbacks of its protocols, and what of ours is unknown xref has found.
  options="--no_indentation -Wunmatched_returns -Wno_return -Wno_improper_lists"
  [ "$release" -ge 26 ] && options="$options -Wno_unknown"
  # Dialyzer reads the misspelt options of test/dialyzer/ as well, and must find each.
  misspelt=test/dialyzer/misspelt_options.erl
  mkdir -p build/dialyzer
  erlc +debug_info -o build/dialyzer "$misspelt" || failed=1
  # shellcheck disable=SC2086
  nice dialyzer --quiet --plt "$plt" $options "$@" build/dialyzer/misspelt_options.beam >build/dialyzer.all 2>&1
  grep "^misspelt_options.erl:" build/dialyzer.all >build/dialyzer.misspelt
  grep -v -e "^misspelt_options.erl:" -e "Callback info about the 'Elixir\..*' behaviour is not available" -e "^$" build/dialyzer.all >build/dialyzer.log && { cat build/dialyzer.log; failed=1; }
  grep -n "^[a-z_]*(.*) -> " "$misspelt" | while IFS=: read -r line _; do
    grep -q "^misspelt_options.erl:$line:.*\(breaks the contract\|will never return\)" build/dialyzer.misspelt ||
      echo "$misspelt:$line: dialyzer does not find this"
  done >build/dialyzer.missed
  [ ! -s build/dialyzer.missed ] || { cat build/dialyzer.missed; failed=1; }
else
  echo "lint: no dialyzer here, it is skipped"
  [ -z "${TESSERA_CI:-}" ] || failed=1
fi
exit $failed

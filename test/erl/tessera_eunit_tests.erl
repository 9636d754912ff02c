%% The runner of these tests: its output, and that it reports a failure.
-module(tessera_eunit_tests).
-include_lib("eunit/include/eunit.hrl").

%% Runs a module of that text in another VM: the runner's answer, and all that was printed.
run(Body) ->
    Dir = tessera_test:temporary("eunit"),
    Source = filename:join(Dir, "some_tests.erl"),
    ok = file:write_file(Source, ["-module(some_tests).\n-compile([export_all, nowarn_export_all]).\n", Body]),
    Eval = io_lib:format(
        "{ok, some_tests, Beam} = compile:file(~p, [binary]), {module, _} = code:load_binary(some_tests, ~p, Beam), "
        "Answer = {tessera_eunit:run(\"Erlang tests\", [some_tests])}, io:format(\"~~w.~~n\", [Answer]), halt(0).", [Source, Source]),
    {{Passed}, Text} = tessera_test:answer(tessera_test:vm([], Eval, [])),
    {Passed, Text}.

has(Text, Word) -> string:find(Text, Word) =/= nomatch.

%% Log events are printed if the test fails, and not if it passes.
log_test_() ->
    {timeout, 60, fun() ->
        {true, Quiet} = run("a_test() -> logger:error(\"said ~s\", [so]), spawn(fun() -> exit(oh) end), timer:sleep(100).\n"),
        ?assertEqual({false, false, Quiet}, {has(Quiet, "said so"), has(Quiet, "oh"), Quiet}),
        ?assert(has(Quiet, "\nErlang tests: 1 passed, 0 failed\n")),
        {false, Loud} = run("a_test() -> logger:error(\"said so\"), timer:sleep(100), error(wrong).\n"
                            "b_test_() -> fun() -> logger:error(\"said nothing\") end.\n"),
        ?assertEqual({true, true, false, Loud}, {has(Loud, "wrong"), has(Loud, "said so"), has(Loud, "said nothing"), Loud}),
        ?assert(has(Loud, "\nErlang tests: 1 passed, 1 failed\n"))
    end}.

%% One whose preparation fails has not passed, and neither has a module without tests.
no_test_passes_by_itself_test_() ->
    {timeout, 60, fun() ->
        {false, Text} = run("a_test_() -> {setup, fun() -> logger:error(\"said so\"), error(wrong) end, fun() -> ok end}.\n"),
        ?assert(has(Text, "said so")),
        ?assert(has(Text, "\nErlang tests: 0 passed, 1 failed\n")),
        {false, _} = run("")
    end}.

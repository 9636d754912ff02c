%% Many processes at once, and processes that are killed at any time: no value is
%% lost, and no caller waits for a dead one.
-module(tessera_concurrency_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [until/1]).
-export([halting/1]).

%% Bytes of tensors and blocks of metadata, when the killed processes have ended and the caches are empty.
in_use() ->
    ok = tessera:clear_cache(),
    [garbage_collect(P) || P <- processes()],
    timer:sleep(20),
    Blocks = tessera_test:blocks(),
    {maps:get(live, tessera:memory()), Blocks}.

%% One program that is not in the cache, called by 40 processes. Some are killed, the compiling one among them: the
%% others get the program.
killed_compilers_test_() ->
    {timeout, 60, fun() ->
        [begin
             F = tessera:jit(fun(X) -> lists:foldl(fun(I, Y) -> tessera:tanh(tessera:add(Y, Round * 100 + I)) end, X,
                                                   lists:seq(1, 20)) end),
             Workers = [spawn_monitor(fun() -> exit({result, tessera:to_number(tessera:multiply(F(0.5), 0))}) end)
                        || _ <- lists:seq(1, 40)],
             timer:sleep(Round rem 4),
             {Doomed, Others} = lists:split(10, Workers),
             [exit(Pid, kill) || {Pid, _} <- Doomed],
             [receive {'DOWN', M, _, _, Reason} -> ?assertEqual({result, 0.0}, Reason) end || {_, M} <- Others],
             [receive {'DOWN', M, _, _, _} -> ok end || {_, M} <- Doomed]
         end || Round <- lists:seq(1, 8)]
    end}.

%% Processes that compile, run and free tensors are killed at random times; all of their memory is freed.
killed_anywhere_test_() ->
    {timeout, 120, fun() ->
        Loop = tessera:jit(fun(X) -> tessera:while(X, fun(A) -> tessera:less(tessera:sum(A), 1.0e6) end,
                                                   fun(A) -> tessera:add(A, 1) end) end),
        Taken = tessera:jit(fun(X) -> tessera:negate(X) end, #{donate => [1]}),
        X = tessera:linspace(0, 1, 10000),
        Work = [fun() -> Loop(X) end,
                fun() -> Taken(tessera:add(X, 1)) end,
                fun() -> put(view, tessera:to_binary(tessera:exp(X))) end,
                fun() -> tessera:from_binary(tessera:to_binary(X), f32, {100, 100}) end,
                fun() -> (tessera:jit(fun(Y) -> tessera:add(Y, rand:uniform(50)) end))(X) end,
                fun() -> tessera:to_list(tessera:tensor(lists:seq(1, 1000))) end],
        Mixed = fun Again(N) -> (lists:nth(1 + N rem length(Work), Work))(), Again(N + 1) end,
        Round = fun() ->
            Pids = [spawn(fun() -> Mixed(I) end) || I <- lists:seq(1, 50)],
            timer:sleep(30),
            [begin timer:sleep(rand:uniform(3)), exit(Pid, kill) end || Pid <- Pids]
        end,
        Round(), % fills the caches
        Before = in_use(),
        [Round() || _ <- lists:seq(1, 5)],
        until(fun() -> at_most(Before, in_use()) end)
    end}.

at_most({Bytes, Blocks}, {Bytes1, Blocks1}) -> Bytes1 =< Bytes andalso Blocks1 =< Blocks.

%% Views die in other processes than the tensors, at other times.
views_elsewhere_test_() ->
    {timeout, 60, fun() ->
        {Before, _} = in_use(),
        Parent = self(),
        Readers = [spawn_monitor(fun() -> receive {view, View} -> Parent ! {self(), erlang:crc32(View)} end end)
                   || _ <- lists:seq(1, 200)],
        Expected = [begin
                        T = tessera:add(tessera:iota({5000}), N),
                        Reader ! {view, tessera:to_binary(T)},
                        _ = [tessera:deallocate(T) || N rem 2 =:= 0],
                        {Reader, erlang:crc32(<< <<I:32/native>> || I <- lists:seq(N, N + 4999) >>)}
                    end || {N, {Reader, _}} <- lists:zip(lists:seq(1, 200), Readers)],
        [receive {Reader, Sum} -> ?assertEqual(Expect, Sum) end || {Reader, Expect} <- Expected],
        [receive {'DOWN', M, _, _, _} -> ok end || {_, M} <- Readers],
        until(fun() -> {After, _} = in_use(), After =< Before end)
    end}.

%% Compiling, clearing, trimming and asking, all at once.
everything_at_once_test_() ->
    {timeout, 60, fun() ->
        Until = erlang:monotonic_time(millisecond) + 1000,
        Work = [fun(N) -> F = tessera:jit(fun(X) -> tessera:multiply(X, N rem 7) end),
                          ?assertEqual(3 * (N rem 7), tessera:to_number(F(3))) end,
                fun(_) -> ?assertEqual([2, 3], tessera:to_list(tessera:add(tessera:tensor([1, 2]), 1))) end,
                fun(_) -> ok = tessera:clear_cache() end,
                fun(_) -> ok = tessera:trim() end,
                fun(_) -> #{live := _, jit := #{}} = tessera:memory() end,
                fun(_) -> <<_, _/binary>> = tessera:explain(fun(X) -> tessera:exp(X) end, [tessera:template(f32, {9})]) end],
        Repeat = fun Again(Do, N) ->
            Do(N),
            case erlang:monotonic_time(millisecond) < Until of true -> Again(Do, N + 1); false -> ok end
        end,
        Workers = [spawn_monitor(fun() -> Repeat(Do, Seed) end) || Do <- Work, Seed <- [1, 2, 3]],
        [receive {'DOWN', M, _, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers]
    end}.

%% A VM that halts while kernels are compiled, at once or a little later, ends as it was told to.
halt_test_() ->
    {timeout, 120, fun() ->
        compile_layers(1), % is on disk then, and must not be taken from there
        [?assertEqual({Ms, 7, <<>>}, {Ms, Status, Text})
         || Ms <- lists:seq(0, 150, 10), {Status, Text} <- [halted_after(Ms)]],
        ?assertEqual({7, <<>>}, halted(compile_and_halt))
    end}.

halted_after(Ms) -> halted({halt_while_compiling, Ms}).

%% The environment of a port knows no empty value: "none" is what turns the cache off.
halted(Work) ->
    Eval = io_lib:format("~s:halting(~0p).", [?MODULE, Work]),
    exit_status(tessera_test:vm([], Eval, [{env, [{"TESSERA_CACHE_DIR", "none"}]}]), <<>>).

exit_status(Port, Text) ->
    receive
        {Port, {data, Data}} -> exit_status(Port, <<Text/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Text}
    end.

halting({halt_while_compiling, Ms}) ->
    spawn(fun() -> [compile_layers(N) || N <- lists:seq(1, 60)] end),
    timer:sleep(Ms),
    halt(7);
%% Such a VM takes no kernel from a disk cache.
halting(compile_and_halt) ->
    compile_layers(1),
    #{jit := #{compiled := Compiled, loaded := 0}} = tessera:memory(),
    true = Compiled > 0,
    halt(7).

compile_layers(N) ->
    Layers = fun(X) -> lists:foldl(fun(I, Y) -> tessera:tanh(tessera:add(tessera:sin(Y), I)) end, X, lists:seq(1, N)) end,
    (tessera:jit(Layers))(tessera:zeros({5, N})).

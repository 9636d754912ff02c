%% Long runs take turns: some that never end do not keep others from their end,
%% and end with their callers wherever these are killed.
-module(tessera_slices_tests).
-include_lib("eunit/include/eunit.hrl").
-export([beside_endless/1]).

%% Loops that never end: in one native function, in steps, and over a large tensor.
endless() ->
    [{fun(X) -> tessera:while(X, fun(_) -> 1 end, fun(A) -> tessera:add(A, 1) end) end, fun() -> tessera:tensor(0) end},
     {fun(X) -> tessera:while(X, fun(A) -> tessera:greater_equal(tessera:sum(A), 0) end,
                              fun(A) -> tessera:multiply(A, 1.0) end) end, fun() -> tessera:ones({64}) end},
     {fun(X) -> tessera:while(X, fun(A) -> tessera:greater_equal(tessera:sum(A), 0) end,
                              fun(A) -> tessera:multiply(A, 1.0) end) end, fun() -> tessera:ones({100000}) end}].

%% Also of unknown length, so that the run moves to a dirty scheduler. It must be exact after any number of slices.
counting() ->
    tessera:jit(fun(N) ->
        tessera:while({0, 1, N}, fun({I, _, Limit}) -> tessera:less(I, Limit) end,
                      fun({I, A, Limit}) -> {tessera:add(I, 1), tessera:add(tessera:multiply(A, 3), I), Limit} end)
    end).

count(F, N) ->
    {I, A, _} = F(tessera:tensor(N)),
    {tessera:to_number(I), tessera:to_number(A)}.

%% The CPU time in ms that the whole VM takes for F: other load of the machine has no effect.
ms(F) ->
    Before = cpu(),
    Result = F(),
    {cpu() - Before, Result}.

%% CPU time in ms of a small and a long run at the same time as `Count` endless ones, until these have stopped after their
%% callers were killed. Returns when all their memory is freed: tensors and metadata, except the memory of a compile in the
%% background.
beside_endless(Count) ->
    {ok, _} = application:ensure_all_started(tessera),
    Loops = [{tessera:jit(F), Make} || {F, Make} <- endless()],
    Counting = counting(),
    Small = count(Counting, 10),
    Long = count(Counting, 30000000), % some three slices
    Spawn = fun(N) ->
                    Pids = [begin
                                {F, Make} = lists:nth(1 + I rem length(Loops), Loops),
                                spawn(fun() -> F(Make()) end)
                            end || I <- lists:seq(1, N)],
                    timer:sleep(300),
                    Pids
            end,
    Kill = fun(Pids) -> [exit(Pid, kill) || Pid <- Pids], ms(fun() -> idle(100) end) end,
    _ = Kill(Spawn(3)), % fills the caches
    Held = held(),
    Blocks = tessera_test:blocks(),
    Pids = Spawn(Count),
    {SmallMs, Small} = ms(fun() -> count(Counting, 10) end),
    {LongMs, Long} = ms(fun() -> count(Counting, 30000000) end),
    true = lists:all(fun is_process_alive/1, Pids),
    {KillMs, idle} = Kill(Pids),
    ok = tessera_test:until_freed(fun() -> held() =< Held end),
    ok = tessera_test:until_freed(fun() -> tessera_nif:live_blocks() - Blocks < 20 end),
    {SmallMs, LongMs, KillMs}.

held() -> maps:get(held, tessera:memory()).

%% Until the VM has used less than a quarter of a core for a while.
idle(Ms) ->
    Before = cpu(),
    timer:sleep(Ms),
    case cpu() - Before =< Ms div 4 of
        true -> idle;
        false -> idle(Ms)
    end.

%% CPU time in ms, in clock ticks of 10.
cpu() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, After] = binary:split(Text, <<") ">>),
    Fields = binary:split(After, <<" ">>, [global]),
    10 * (binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields))).

in_node(Flags, Count) ->
    Eval = io_lib:format("io:format(\"~~w.~~n\", [~p:beside_endless(~b)]), halt(0).", [?MODULE, Count]),
    tessera_test:answer(tessera_test:vm(Flags, Eval, [])).

%% Without turns the first two would never come back. A slice is 20 ms; each of the others may have one first.
fair_test_() ->
    [{timeout, 100, fun() ->
        {{SmallMs, LongMs, KillMs}, _} = in_node(Flags, 8),
        Cpus = erlang:system_info(logical_processors_available),
        ?assertMatch({Ms, _} when Ms < 1000 * Cpus, {SmallMs, small}),
        ?assertMatch({Ms, _} when Ms < 5000 * Cpus, {LongMs, long}),
        ?assertMatch({Ms, _} when Ms < 500 * Cpus, {KillMs, kill})
     end} || Flags <- [["+SDcpu", "1:1"], []]].

%% A paused and resumed run has the same result as an unpaused one, alone and with others.
exact_test_() ->
    {timeout, 60, fun() ->
        F = counting(),
        Expected = lists:foldl(fun(I, A) -> wrap(A * 3 + I) end, 1, lists:seq(0, 299999)),
        ?assertEqual({300000, Expected}, count(F, 300000)),
        Long = count(F, 20000000),
        Workers = [spawn_monitor(fun() -> exit({result, count(F, 20000000)}) end) || _ <- lists:seq(1, 6)],
        [receive {'DOWN', M, process, _, Reason} -> ?assertEqual({result, Long}, Reason) end || {_, M} <- Workers]
    end}.

wrap(N) ->
    <<Wrapped:32/signed>> = <<N:32>>,
    Wrapped.

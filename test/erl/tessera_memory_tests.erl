%% Memory that tensors hold is given back in time: the bars of the design. Each test runs in a node of its own, so that
%% other tests' memory does not count.
-module(tessera_memory_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/2, raises/3]).
-export([make_and_drop/1, given_back/0, idle_holders/0, told/0, log/2, limit/0, results/0, looped/0, call_again/0, promoted/0, stats/0]).

-define(MB, (1 bsl 20)).

%% Runs Function of this module in a new VM and returns its result.
in_node(Function, Args) ->
    Eval = io_lib:format("io:format(\"~~w.~~n\", [{apply(~p, ~p, ~p)}]), halt(0).", [?MODULE, Function, Args]),
    {{Term}, _} = tessera_test:answer(tessera_test:vm([], Eval, [])),
    Term.

%% ---- 10,000 tensors of 1 MB, made and dropped

make_and_drop(LiveMb) ->
    Kept = [ones(1) || _ <- lists:seq(1, LiveMb)],
    lists:foreach(fun(_) -> ones(1) end, lists:seq(1, 10000)),
    [1 = tessera:to_number(tessera:at(T, [0])) || T <- Kept],
    tessera_test:resident() div ?MB.

ones(Mb) -> tessera:ones({Mb * ?MB}, u8).

%% A sanitizer keeps freed memory for a while, so the resident size means nothing.
resident_test(Timeout, F) ->
    case os:getenv("TESSERA_SANITIZER") of
        false -> {timeout, Timeout, F};
        Name -> fun() -> io:format(user, "tessera_memory_tests: skipped, resident memory is ~s's~n", [Name]) end
    end.

dropped_test_() ->
    resident_test(120, fun() -> ?assert(in_node(make_and_drop, [0]) =< 250) end).

dropped_beside_a_gigabyte_test_() ->
    resident_test(120, fun() -> ?assert(in_node(make_and_drop, [1024]) =< 1700) end).

%% ---- memory that is returned only after a collection counts as late garbage

%% The most megabytes that were live while garbage was made, after much was given back.
given_back() ->
    Much = [ones(1) || _ <- lists:seq(1, 500)],
    _ = tessera_nif:collected(major),
    lists:foreach(fun tessera:deallocate/1, Much),
    ones(1),
    ok = tessera:reset_peak_memory(),
    lists:foreach(fun(_) -> ones(1) end, lists:seq(1, 2000)),
    #{peak := Peak} = tessera:memory(),
    Peak div ?MB.

given_back_test_() ->
    {timeout, 120, fun() -> ?assert(in_node(given_back, []) =< 100) end}.

%% ---- a loop's results are freed early, by minor collections, and older garbage at last by a major one

%% The median and the most of the megabytes that are held after a call. A result that some collections found alive waits for a major one.
looped() ->
    Held = lists:sort([begin _ = ones(4), held() end || _ <- lists:seq(1, 300)]),
    {lists:nth(150, Held), lists:last(Held)}.

held() -> maps:get(held, tessera:memory()) div ?MB.

looped_test_() ->
    {timeout, 120, fun() ->
        {Median, Most} = in_node(looped, []),
        ?assert(Median =< 24),
        ?assert(Most =< 72)
    end}.

%% ---- a loop of calls takes the memory of its last result again

%% Megabytes of memory, in use and kept free, that a hundred calls with results of 8 MB have taken.
call_again() ->
    X = tessera:full({2 bsl 20}, 1.0, f32),
    Jit = tessera:jit(fun(V) -> tessera:negate(V) end),
    [block_bytes(Call) || Call <- [fun() -> Jit(X) end, fun() -> tessera:negate(X) end, fun() -> tessera:reverse(X, [0]) end]].

block_bytes(Call) ->
    _ = [Call() || _ <- [1, 2]],
    true = garbage_collect(),
    ok = timer:sleep(100),
    ok = tessera:trim(),
    #{live := Live, pooled := Pooled} = tessera:memory(),
    lists:foreach(fun(_) -> Call() end, lists:seq(1, 100)),
    #{live := After, pooled := Kept} = tessera:memory(),
    (After + Kept - Live - Pooled) div ?MB.

call_again_test_() ->
    {timeout, 120, fun() -> [?assert(Taken =< 20) || Taken <- in_node(call_again, [])] end}.

%% Megabytes before 200 MB that survived minor collections were dropped, and after 2000 others were made.
promoted() ->
    Kept = [ones(1) || _ <- lists:seq(1, 200)],
    lists:foreach(fun(_) -> ones(1) end, lists:seq(1, 100)),
    Before = held(),
    _ = tessera:at(hd(Kept), [0]),
    lists:foreach(fun(_) -> ones(1) end, lists:seq(1, 2000)),
    {Before, held()}.

promoted_test_() ->
    {timeout, 120, fun() ->
        {Before, After} = in_node(promoted, []),
        ?assert(Before >= 200),
        ?assert(After =< 100)
    end}.

%% ---- processes that hold dead tensors and do nothing

%% Live megabytes before and after.
idle_holders() ->
    Self = self(),
    Holders = [spawn(fun() -> hold_dead(Self) end) || _ <- lists:seq(1, 500)],
    [receive {holding, P} -> ok end || P <- Holders],
    #{live := Live} = tessera:memory(),
    ok = tessera:set_memory_limit(Live + ?MB),
    %% There is room for this only when the holders are collected.
    T = ones(100),
    #{live := After} = tessera:memory(),
    _ = tessera:at(T, [0]),
    {Live div ?MB, After div ?MB}.

%% Keeps no reference to the tensor but in garbage.
hold_dead(Parent) ->
    use(ones(1)),
    Parent ! {holding, self()},
    receive stop -> ok end.

%% Makes no tensor: a call that makes one may be asked to collect garbage.
use(T) -> put(shape, tessera:shape(T)).

idle_holders_test_() ->
    {timeout, 120, fun() ->
        {Before, After} = in_node(idle_holders, []),
        ?assert(Before >= 400),
        ?assert(After < 150)
    end}.

%% Who watches the VM is told that all processes have collected garbage. A module stands in the place of telemetry.
told() ->
    true = register(tessera_telemetry_test, self()),
    {module, telemetry} = tessera_nx_compiler_tests:load_telemetry(),
    ok = logger:set_primary_config(level, debug),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = logger:remove_handler(default),
    _ = idle_holders(),
    {receive {[tessera, garbage_collection], #{duration := Duration, processes := Count}, #{caller := Pid}} -> {Duration > 0, Count, Pid =:= self()} after 0 -> none end,
     receive {logged, Text} -> Text after 0 -> none end}.

log(#{msg := {Format, Args}}, #{config := Pid}) when is_list(Format) ->
    case lists:flatten(io_lib:format(Format, Args)) of
        "tessera: " ++ Text -> Pid ! {logged, Text};
        _ -> ok
    end;
log(_, _) -> ok.

told_test_() ->
    {timeout, 120, fun() ->
        {{true, Count, true}, Text} = in_node(told, []),
        ?assert(Count >= 500),
        ?assertMatch({match, _}, re:run(Text, "^at the limit of tensor memory [0-9]+ processes collected garbage in [0-9]+ ms$"))
    end}.

%% ---- the limit

limit() ->
    ok = tessera:set_memory_limit(64 * ?MB),
    Kept = ones(40),
    Result = try ones(40) of _ -> none catch error:{Code, Message} -> {Code, Message} end,
    %% Nothing else is harmed.
    lists:foreach(fun(_) -> ones(10) end, lists:seq(1, 20)),
    {tessera:to_number(tessera:at(Kept, [-1])), Result}.

limit_test_() ->
    {timeout, 60, fun() ->
        {1, {resource_exhausted, Message}} = in_node(limit, []),
        [?assertNotEqual({nomatch, Message}, {string:find(Message, Word), Message}) || Word <- ["u8[41943040]", "limit", "67108864 bytes"]]
    end}.

%% Results of compiled programs count as well.
results() ->
    F = tessera:jit(fun(X) -> {tessera:add(X, 1), tessera:multiply(X, 2)} end),
    X = tessera:zeros({?MB div 4}),
    lists:foreach(fun(_) -> F(X) end, lists:seq(1, 3000)),
    tessera_test:resident() div ?MB.

results_test_() ->
    resident_test(60, fun() -> ?assert(in_node(results, []) =< 250) end).

%% In a node of its own: garbage of other tests may be freed at any time.
stats_test_() -> {timeout, 60, fun() -> ok = in_node(stats, []) end}.

stats() ->
    #{live := L, peak := P, pooled := Q, limit := M, held := H, allocations := A, jit := #{compiled := _}, programs := N} =
        tessera:memory(),
    ?assert(L >= 0 andalso P >= L andalso Q >= 0 andalso L + Q =< M andalso H >= 0 andalso A >= 0 andalso N >= 0),
    T = tessera:add(tessera:iota({1 bsl 20}), 1),
    ?assert(maps:get(live, tessera:memory()) >= L + (4 bsl 20) - 4096),
    ok = tessera:deallocate(T),
    ok = tessera:trim(),
    ?assertEqual(0, maps:get(pooled, tessera:memory())),
    ok = tessera:reset_peak_memory(),
    ?assertEqual(maps:get(live, tessera:memory()), maps:get(peak, tessera:memory())),
    raises(invalid_argument, fun() -> tessera:set_memory_limit(-1) end).

%% ---- by client

%% What Tessera.Client says: exact bytes, of each client its own.
client_memory_test() ->
    Place = fun(Name, Device, Bytes) ->
                    Typespec = #{'__struct__' => 'Elixir.Tessera.Typespec', type => {u, 8}, shape => {Bytes}},
                    tessera_nx_buffer:place_on_device(<<0:Bytes/unit:8>>, Typespec, tessera_test:client(Name), Device)
            end,
    Client = tessera_test:client(client_memory_test),
    Stats = fun() -> tessera_nx_client:get_memory_statistics(Client) end,
    Others = fun() -> tessera_nif:client_memory(client_memory_test_other) end,
    Move = fun(Handle, Device) -> tessera_nif:to_device(Handle, Device, false) end,
    ?assertEqual(#{allocated => 0, peak => 0, per_device => #{0 => 0, 1 => 0}, peak_per_device => #{0 => 0, 1 => 0}}, Stats()),
    A = Place(client_memory_test, 0, 13),
    B = Place(client_memory_test, 1, 10001),
    _C = Place(client_memory_test_other, 0, 5),
    ?assertEqual(#{allocated => 10014, peak => 10014, per_device => #{0 => 13, 1 => 10001}, peak_per_device => #{0 => 13, 1 => 10001}}, Stats()),
    ok = tessera_nx_buffer:deallocate(B),
    already_deallocated = tessera_nx_buffer:deallocate(B),
    ?assertEqual(#{allocated => 13, peak => 10014, per_device => #{0 => 13, 1 => 0}, peak_per_device => #{0 => 13, 1 => 10001}}, Stats()),
    ok = tessera_nx_client:reset_peak_memory(Client),
    ?assertEqual(#{allocated => 13, peak => 13, per_device => #{0 => 13, 1 => 0}, peak_per_device => #{0 => 13, 1 => 0}}, Stats()),
    %% to another client, and back
    #{ref := Ref} = A,
    Moved = Move(Ref, {client_memory_test_other, 0}),
    ?assertMatch({#{allocated := 13}, {18, 18, [{0, 18, 18} | _]}}, {Stats(), Others()}),
    ok = tessera_nif:deallocate(Moved),
    ?assertMatch({#{allocated := 13}, {5, 18, [{0, 5, 18} | _]}}, {Stats(), Others()}),
    View = Move(Ref, {client_memory_test, 1}),
    ?assertMatch(#{allocated := 26, per_device := #{0 := 13, 1 := 13}}, Stats()),
    ok = tessera_nif:deallocate(View),
    ok = tessera_nx_buffer:deallocate(A),
    ?assertMatch({error, #{code := failed_precondition}}, Move(Ref, {client_memory_test, 0})),
    [?assertMatch({error, #{code := invalid_argument}}, Move(Wrong, Device))
     || {Wrong, Device} <- [{Ref, {"no name", 0}}, {Ref, {host, nowhere}}, {Ref, {host, -1}}, {Ref, {host, 1000}},
                            {Ref, {no_such_client, 0}}, {Ref, host}, {make_ref(), {host, 0}}]],
    ?assertMatch(#{allocated := 0}, Stats()).

%% A call that lacks memory is repeated. If a try has overwritten a donated argument, the caller gets the error of the first try, the lack of
%% memory. Else the caller gets the error of the last try.
repeated_test() ->
    {ok, _} = application:ensure_all_started(tessera),
    Error = fun(Code, Text) -> {error, #{code => Code, message => Text}} end,
    Short = Error(resource_exhausted, <<"no memory">>),
    Gone = Error(failed_precondition, <<"argument 1: the tensor was deallocated or donated">>),
    Other = Error(failed_precondition, <<"the moon is full">>),
    Told = fun(Answers) ->
                   put(answers, Answers),
                   Call = fun() -> [Answer | Rest] = get(answers), put(answers, Rest), Answer end,
                   tessera_memory:result(Call(), Call, fun(#{message := Text}) -> Text end)
           end,
    ?assertEqual([<<"no memory">>, <<"no memory">>, <<"the moon is full">>, <<"the moon is full">>, made],
                 [Told(Answers) || Answers <- [[Short, Gone], [Short, Short, Gone], [Short, Other], [Short, Short, Short, Other], [Short, Short, {pressure, made}]]]).

%% Profiles: counts that follow from the program, lines, processes, nested profiles, functions that raise or are killed, bounds of memory. The table, the
%% trace and the flame graph.
-module(tessera_profile_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(QUIET, #{speed => false}).

%% Five steps, of them three in a loop, whose tensors are too large for one function.
looped() -> looped(0, 4).

looped(From, To) ->
    tessera:jit(fun(X) ->
                        {_, Y} = tessera:while({From, tessera:cumulative_sum(X)}, fun({I, _}) -> tessera:less(I, To) end,
                                               fun({I, A}) -> {tessera:add(I, 1), tessera:cumulative_sum(A)} end),
                        tessera:sum(Y)
                end).

numbers() -> tessera:iota({5000}, f32).

on_host(Test) -> fun() -> tessera_eunit:on_host(Test) end.

counts_test_() ->
    on_host(fun() ->
        F = looped(),
        X = numbers(),
        {_, #{runs := 3, programs := [Program]} = Profile} = tessera:profile(fun() -> [F(X) || _ <- [1, 2, 3]] end, [], ?QUIET),
        #{runs := 3, ns := Ns, longest_ns := Longest, steps := Steps} = Program,
        %% before the loop once a run; in it four times; its condition five times
        [Outer] = [S || #{depth := 0, op := <<"cumulative_sum">>} = S <- Steps],
        [Inner] = [S || #{depth := 1, op := <<"cumulative_sum">>} = S <- Steps],
        [While] = [S || #{kind := <<"while">>} = S <- Steps],
        ?assertMatch(#{count := 3, flops := 0, bytes := 40000}, Outer),
        ?assertMatch(#{count := 12}, Inner),
        ?assertMatch(#{count := 3}, While),
        ?assertEqual([15], [Count || #{depth := 1, ops := <<"less">>, count := Count} <- Steps]),
        %% times fit into one another
        Sum = lists:sum([Own || #{depth := 0, ns := Own} <- Steps]),
        ?assert(Sum =< Ns),
        ?assert(maps:get(ns, Inner) =< maps:get(ns, While)),
        ?assert(Longest =< Ns),
        [?assert(One =< All andalso One > 0) || #{ns := All, longest_ns := One, count := Count} <- Steps, Count > 0],
        #{wall_ns := Wall, run_ns := Ns, trace_ns := Traced, compile_ns := Compiled, outside_ns := Outside, events_left_out := 0, uncounted := 0} = Profile,
        ?assertEqual(Wall, Ns + Traced + Compiled + Outside),
        ?assert(Traced > 0 andalso Compiled > 0)
    end).

%% A loop of small tensors is one step, which names the ops of the loop. So is a loop over numbers.
native_test_() ->
    on_host(fun() ->
        F = looped(),
        {_, #{programs := [#{steps := Steps}]}} = tessera:profile(fun() -> F(tessera:tensor([0.0, 0.5])) end, [], ?QUIET),
        ?assertMatch([#{count := 1, depth := 0, op := <<"while">>, ops := <<"less, add, cumulative_sum">>}], [S || #{kind := <<"native">>} = S <- Steps]),
        ?assertEqual([], [S || #{depth := Depth} = S <- Steps, Depth > 0]),
        G = tessera:jit(fun(X) -> tessera:while(X, fun(Y) -> tessera:less(Y, 4) end, fun(Y) -> tessera:add(tessera:exp(Y), 1) end) end),
        {_, #{programs := [#{steps := [Whole]}]}} = tessera:profile(G, [tessera:tensor(0.5)], ?QUIET),
        ?assertMatch(#{kind := <<"whole">>, op := <<"while">>, ops := <<"less, exp, add">>}, Whole)
    end).

%% After a profile the process holds the profile, and not the code that was read for lines.
memory_test_() ->
    on_host(fun() ->
        F = looped(),
        X = numbers(),
        Memory = fun() -> element(2, process_info(self(), memory)) end,
        Held = fun(Call) ->
                       {_, Monitor} = spawn_monitor(fun() ->
                                                            true = erlang:garbage_collect(),
                                                            Before = Memory(),
                                                            _ = tessera:profile(Call, [], #{speed => false, events => 100}),
                                                            exit({held, Memory() - Before})
                                                    end),
                       receive {'DOWN', Monitor, process, _, Reason} -> {held, Bytes} = Reason, Bytes end
               end,
        [?assertMatch({Runs, Bytes} when Bytes < 1000000, {Runs, Held(fun() -> [F(X) || _ <- lists:seq(1, Runs)] end)}) || Runs <- [1, 1000]]
    end).

%% Of a product.
flops_test_() ->
    on_host(fun() ->
        A = tessera:ones({8, 16}, f32),
        {_, #{programs := [#{bytes := 1024, steps := [Step]}]}} = tessera:profile(fun tessera:dot/2, [A, tessera:ones({16, 32}, f32)], ?QUIET),
        ?assertMatch(#{flops := 2 * 8 * 16 * 32, bytes := 4 * (8 * 16 + 16 * 32 + 8 * 32), type := <<"f32[8,32]">>, ops := <<"dot_general">>}, Step)
    end).

%% A sum of many elements is two launches, each with its time.
launches_test_() ->
    on_host(fun() ->
        X = tessera:iota({1000, 1000}, f32),
        {_, #{programs := [#{steps := Steps}]}} = tessera:profile(fun tessera:sum/1, [X], ?QUIET),
        [#{launch := -1, ns := All} | Launches] = Steps,
        ?assertMatch([#{launch := 0, depth := 1}, #{launch := 1} | _], Launches),
        ?assert(lists:sum([Ns || #{ns := Ns} <- Launches]) =< All)
    end).

%% Of the user's code that called: of a compiled function, and of an operation that runs at once.
lines_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) -> tessera:tan(X) end),
        X = tessera:tensor([1.0, 2.0, 3.0]),
        {Lines, #{programs := Programs}} =
            tessera:profile(fun() ->
                                    A = F(X), First = ?LINE,
                                    B = tessera:atan2(A, X), Second = ?LINE,
                                    _ = [A, B],
                                    [First, Second]
                            end, [], ?QUIET),
        ?assertEqual(Lines, [Line || #{line := {?MODULE, _, _, _, Line}} <- Programs])
    end).

raises_test_() ->
    on_host(fun() ->
        X = tessera:tensor([1.0]),
        ?assertError(mine, tessera:profile(fun() -> _ = tessera:sin(X), error(mine) end, [], ?QUIET)),
        ?assertExit(mine, tessera:profile(fun() -> exit(mine) end, [], ?QUIET)),
        tessera_test:raises(invalid_argument, "add(f32[2], f32[3])", fun() -> tessera:profile(fun tessera:add/2, [tessera:ones({2}), tessera:ones({3})], ?QUIET) end),
        %% nothing is left: neither in the process nor in the library
        ?assertEqual([], [Key || {Key, _} <- get(), Key =:= '$tessera_profiled']),
        ok = tessera_memory:make_room(), % a NIF may ask for it first
        ?assertMatch(#tessera{}, tessera_nif:op(undefined, sin, [X], [])),
        {_, #{runs := 1}} = tessera:profile(fun tessera:cos/1, [X], ?QUIET)
    end).

%% A process is killed in the middle of a run that its profile measures. The profile ends with it.
killed_test_() ->
    {timeout, 60, on_host(fun() ->
        Endless = tessera:jit(fun(X) -> tessera:while(X, fun(_) -> tessera:equal(0, 0) end, fun(Y) -> tessera:cumulative_sum(tessera:tanh(Y)) end) end),
        Self = self(),
        {Pid, Monitor} = spawn_monitor(fun() ->
                                               tessera:profile(fun() ->
                                                                       _ = tessera:sin(1.0),
                                                                       Self ! runs,
                                                                       Endless(tessera:ones({100}, f32))
                                                               end, [], ?QUIET)
                                       end),
        receive runs -> ok end,
        true = exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
        {_, #{runs := 1}} = tessera:profile(fun tessera:sin/1, [2.0], ?QUIET)
    end)}.

%% The inner profile has what happened in it, the outer one all.
nested_test_() ->
    on_host(fun() ->
        X = tessera:tensor([1.0, 4.0]),
        {{{_, Inner}, Failed}, Outer} =
            tessera:profile(fun() ->
                                    _ = tessera:sin(X),
                                    Own = tessera:profile(fun() -> _ = tessera:cos(X), tessera:cos(X) end, [], ?QUIET),
                                    Raised = (catch tessera:profile(fun() -> _ = tessera:tan(X), throw(mine) end, [], ?QUIET)),
                                    _ = tessera:sqrt(X),
                                    {Own, Raised}
                            end, [], ?QUIET),
        ?assertEqual(mine, Failed),
        ?assertEqual([{<<"cos">>, 2}], ran(Inner)),
        ?assertEqual([{<<"cos">>, 2}, {<<"sin">>, 1}, {<<"sqrt">>, 1}, {<<"tan">>, 1}], lists:sort(ran(Outer))),
        ?assertEqual([], [Number || #{number := Number, line := unknown, steps := [#{ops := Ops}]} <- maps:get(programs, Outer), Ops =/= <<"tan">>])
    end).

ran(#{programs := Programs}) -> [{Op, Runs} || #{runs := Runs, steps := [#{op := Op}]} <- Programs].

%% Each process has its own.
many_test_() ->
    {timeout, 60, on_host(fun() ->
        F = tessera:jit(fun(X) -> tessera:add(X, 1) end),
        _ = F(1),
        Pids = [spawn_monitor(fun() ->
                                      {_, #{runs := Runs}} = tessera:profile(fun() -> [F(1) || _ <- lists:seq(1, N)] end, [], ?QUIET),
                                      exit({ran, Runs})
                              end) || N <- lists:seq(1, 30)],
        ?assertEqual([{ran, N} || N <- lists:seq(1, 30)], [receive {'DOWN', M, process, Pid, Reason} -> Reason end || {Pid, M} <- Pids])
    end)}.

others_are_not_in_it_test_() ->
    on_host(fun() ->
        F = fun() -> {Pid, Monitor} = spawn_monitor(fun() -> tessera:sin(1.0) end), receive {'DOWN', Monitor, process, Pid, normal} -> ok end end,
        ?assertMatch({ok, #{runs := 0, programs := [], events := []}}, tessera:profile(F, [], ?QUIET))
    end).

%% The times that are kept are bounded, the counts are not.
bounded_test_() ->
    on_host(fun() ->
        F = looped(),
        X = numbers(),
        _ = F(X),
        Runs = fun() -> [F(X) || _ <- lists:seq(1, 100)] end,
        {_, #{events := All, events_left_out := 0}} = tessera:profile(Runs, [], ?QUIET),
        {_, #{events := Few, events_left_out := LeftOut, runs := 100}} = tessera:profile(Runs, [], #{speed => false, events => 7}),
        ?assertEqual(7, length(Few)),
        ?assertEqual(length(All), 7 + LeftOut),
        {_, #{events := [], runs := 100}} = tessera:profile(Runs, [], #{speed => false, events => 0})
    end).

%% Two partitions, each with its steps.
partitions_test_() ->
    on_host(fun() ->
        ok = tessera:open_client(profile_client, #{device_count => 2}),
        G = tessera:shard_map(fun(X) -> tessera:all_reduce(tessera:sin(X), sum, 0) end, #{shape => {2}}, [#{0 => [0]}], #{}, #{client => profile_client}),
        Args = [[tessera:tensor([1.0])], [tessera:tensor([2.0])]],
        {_, #{events := Events, programs := [#{runs := 2, steps := Steps}]}} = tessera:profile(G, [Args], ?QUIET),
        ?assertEqual([0, 1], lists:usort([P || {run, _, _, _, _, _, P} <- Events])),
        %% the time of a collective is the time until both have come and it is done
        ?assertMatch([#{count := 2, ns := Ns}] when Ns > 0, [S || #{kind := <<"collective">>} = S <- Steps])
    end).

refused_test() ->
    F = fun tessera:sin/1,
    [tessera_test:raises(invalid_argument, Words, fun() -> tessera:profile(G, Args, Options) end)
     || {Words, G, Args, Options} <- [{"expected a function", 1, [], #{}}, {"a list of 1 arguments", F, [], #{}}, {"a list of 1 arguments", F, 7, #{}},
                                      {"a map of options", F, [1.0], []}, {"unknown options [size]", F, [1.0], #{size => 1}},
                                      {"events is -1", F, [1.0], #{events => -1}}, {"events is 1000001", F, [1.0], #{events => 1000001}},
                                      {"speed is 1", F, [1.0], #{speed => 1}}, {"ranks is some, expected own or all", F, [1.0], #{ranks => some}}]],
    ?assertMatch({error, #{code := invalid_argument}}, tessera_nif:profile_start(-1)),
    ?assertMatch({error, #{code := invalid_argument}}, tessera_nif:profile_stop(make_ref())),
    {Profile, _} = tessera_nif:profile_start(0),
    Self = self(),
    Other = spawn(fun() -> Self ! {other, tessera_nif:profile_stop(Profile)} end),
    ?assertMatch({error, #{code := failed_precondition}}, receive {other, Answer} -> _ = Other, Answer end),
    ?assertMatch({[], <<>>, 0, 0}, tessera_nif:profile_stop(Profile)),
    ?assertMatch({error, #{code := failed_precondition}}, tessera_nif:profile_stop(Profile)).

%% ---- what is printed

profile() ->
    New = erlang:unique_integer([positive, monotonic]),
    F = looped(New, New + 4), % a new program
    X = numbers(),
    {_, Profile} = tessera:profile(fun() -> F(X), tessera:sin(1.0) end, []),
    Profile.

table_test_() ->
    {timeout, 60, on_host(fun() ->
        #{speed := #{bytes_per_s := Bytes, flops_per_s := Flops}} = Profile = profile(),
        ?assert(Bytes > 0 andalso Flops > 0),
        Table = tessera_profile:table(Profile),
        [?assertMatch({Words, {match, _}}, {Words, re:run(Table, Words, [multiline])})
         || Words <- ["^[0-9]+ [a-z]+ in all: .* in 2 runs of 2 programs", "^this machine: [0-9.]+ GB/s", "^program [0-9]+, called at tessera_profile_tests.erl:[0-9]+ .*1 runs",
                      "^  while +while", "^    [a-z]+ +cumulative_sum", "^    launch .* less \\[tessera_profile_tests.erl:[0-9]+\\]$", "sin \\[tessera_profile_tests.erl:[0-9]+\\]$"]]
    end)}.

%% Perfetto's own format: a list of events, whose times lie in one another.
trace_test_() ->
    {timeout, 60, on_host(fun() ->
        Profile = profile(),
        ?assertEqual(#{runs => 2, events_left_out => 0, uncounted => 0}, maps:with([runs, events_left_out, uncounted], Profile)),
        #{<<"traceEvents">> := Events} = decoded(tessera_profile:chrome_trace(Profile)),
        Complete = [Event || #{<<"ph">> := <<"X">>} = Event <- Events],
        ?assertEqual(length(maps:get(events, Profile)), length(Complete)),
        Runs = [{Begin, Begin + Took} || #{<<"cat">> := <<"run">>, <<"ts">> := Begin, <<"dur">> := Took} <- Complete],
        ?assertEqual(2, length(Runs)),
        [?assert(lists:any(fun({From, To}) -> Begin >= From - 0.01 andalso Begin + Took =< To + 0.01 end, Runs))
         || #{<<"cat">> := <<"step">>, <<"ts">> := Begin, <<"dur">> := Took} <- Complete],
        ?assertMatch([_ | _], [Name || #{<<"cat">> := <<"erlang">>, <<"name">> := Name} <- Complete, Name =:= <<"trace">>])
    end)}.

decoded(Json) ->
    {ok, Value} = tessera_json:decode(Json),
    maps_of(Value).

maps_of({object, Members}) -> maps:from_list([{Name, maps_of(Value)} || {Name, Value} <- Members]);
maps_of(List) when is_list(List) -> [maps_of(Value) || Value <- List];
maps_of(Other) -> Other.

%% Boxes lie in the picture, and each in one below it.
flame_test_() ->
    {timeout, 60, on_host(fun() ->
        Svg = tessera_profile:flame_graph(profile()),
        {match, Found} = re:run(Svg, "<rect x=\"([0-9.]+)\" y=\"([0-9]+)\" width=\"([0-9.]+)\"", [global, {capture, all_but_first, list}]),
        Boxes = [{list_to_float(X), list_to_integer(Y), list_to_float(Width)} || [X, Y, Width] <- Found],
        Floor = lists:max([Y || {_, Y, _} <- Boxes]),
        ?assertEqual(1, length([Y || {_, Y, _} <- Boxes, Y =:= Floor])),
        [?assert(lists:any(fun({BelowX, BelowY, Below}) -> BelowY =:= Y + 18 andalso X >= BelowX - 0.11 andalso X + Width =< BelowX + Below + 0.21 end, Boxes))
         || {X, Y, Width} <- Boxes, Y < Floor],
        [?assertEqual(length(Boxes), length(binary:matches(Svg, Tag))) || Tag <- [<<"<g>">>, <<"</g>">>, <<"<title>">>, <<"</title>">>, <<"<text ">>, <<"</text>">>]]
    end)}.

%% Names are escaped.
escaped_test() ->
    Program = #{number => 1, runs => 1, ns => 10, longest_ns => 10, bytes => 0, pieces => 0, line => {m, 'a<b"&\\', 0, undefined, 0}, steps => []},
    Profile = #{wall_ns => 10, run_ns => 10, trace_ns => 0, compile_ns => 0, outside_ns => 0, runs => 1, programs => [Program], speed => none,
                events => [{run, 1, 0, 0, 10, 1, 0}], events_left_out => 0, uncounted => 0},
    ?assertMatch(#{<<"traceEvents">> := [_, _, _, #{<<"args">> := #{<<"called">> := <<", called by m:a<b\"&\\/0">>}}]}, decoded(tessera_profile:chrome_trace(Profile))),
    ?assertMatch({match, _}, re:run(tessera_profile:flame_graph(Profile), "m:a&lt;b&quot;&amp;")),
    ?assertMatch({match, _}, re:run(tessera_profile:table(Profile), "called by m:a<b")).

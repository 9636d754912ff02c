%% The table of platforms: functions over a mesh run on a platform of the test, and reach this platform by the table alone. Modules outside of
%% erl/cluster name no module of erl/cluster.
-module(tessera_platform_tests).
-behaviour(tessera_platform).
-device(host).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-export([is_client/1, is_taken/1, is_tensor/1, clear/0, flags/0, key/1, room/2, own/2, turn/3, home/2, compile/4, profiled/2, kernels/1, explain/1, run/5, measured/3,
         distribute/5, read/2, device/1, deallocate/1]).

-define(NODE, tessera_platform_node).
-define(MESH, #{shape => {2}}).
-define(CUT, #{0 => [0]}).
-define(OPTIONS, #{client => platform_of_test, input_shardings => [?CUT]}).

%% ---- a platform of two devices of the client `host': programs are wrapped, and each call of the table is noted

%% The client `interpreted_of_test' has any number of partitions. The interpreter of partitions runs its programs.

is_client(Client) -> Client =:= platform_of_test orelse Client =:= interpreted_of_test.
is_taken(Name) -> Name =:= platform_of_test.
is_tensor(Ref) -> get(own_tensor) =:= Ref.
clear() -> noted(clear, ok).
flags() -> [handles].
key(_) -> test.
room(interpreted_of_test, _) -> ok;
room(_, Partitions) when Partitions =< 2 -> noted(room, tessera_platform:room(host, Partitions));
room(_, Partitions) -> {refused, "~b partitions are too many for the test", [Partitions]}.
own(_, Partitions) -> noted(own, Partitions).
turn(_, Name, F) -> noted({turn, unicode:characters_to_binary(Name())}, F()).
home(_, N) -> {host, N}.
compile(interpreted_of_test, Part, _, _) -> {interpreted, Part};
compile(_, Part, Options, Types) -> noted({compile, Options, Types}, wrapped(?NODE:compile(host, Part, Options, Types))).
profiled(_, {interpreted, _}) -> {none, host};
profiled(_, {test, Program}) -> {Program, host}.
kernels({test, Program}) -> ?NODE:kernels(Program).
explain({test, _}) -> "steps of the test".
run(_, {interpreted, Part}, Lists, _, _) -> tessera_nif:interpret(Part, Lists, host);
run(Client, {test, Program}, Lists, Threads, Donated) ->
    ok = case tessera_run:is_profiled() of true -> tessera_run:note(Client, length(Lists), Program); false -> ok end,
    noted(run, case get(fails) of
                   undefined -> ?NODE:run(host, Program, Lists, Threads, Donated);
                   Error -> Error
               end).
%% Rank 0 computes for 100 ns, rank 1 for 700 ns in 2 partitions each. Both end a collective at the same time. The clocks of the ranks are apart.
measured(_, Runs, {_, own}) ->
    Row = fun(Kind, Ns) -> {0, -1, Kind, <<"op">>, <<"op">>, <<"f32[2]">>, 8, 0, 2, Ns, Ns, 1} end,
    Count = length(Runs),
    Now = erlang:monotonic_time(nanosecond),
    Event = fun(Number, From, To, Partition) -> <<0:32, Number:32/native, From:64/native, To:64/native, 1:32/native, Partition:32/native>> end,
    Events = fun(Own, Ahead) -> [[Event(0, Ahead, Ahead + Own, P), Event(1, Ahead + Own, Ahead + 1000, P), Event(16#ffffffff, Ahead, Ahead + 1000, P)] || P <- [0, 1]] end,
    [#{rank => Rank, host => <<"host">>, clock => {Ahead, 3},
       programs => [{1, 2, {7 + Rank, 2 * Count, 2000 * Count, 1000, 8, 1, [Row(<<"launch">>, 2 * Own), Row(<<"collective">>, 2000 - 2 * Own)]},
                     {iolist_to_binary(Events(Own, Now + Ahead)), Rank}}]}
     || {Rank, Own, Ahead} <- [{0, 100, 0}, {1, 700, 1000000000000}]].
distribute(_, _, _, _, Pieces) -> noted(distribute, Pieces()).
read(_, Elements) -> {transfer, fun() -> noted({read, Elements}, <<1:32/float-native, 2:32/float-native>>) end}.
device(_) -> {platform_of_test, 7}.
deallocate(_) -> noted(deallocate, deallocated).

wrapped({error, _} = Error) -> Error;
wrapped(Program) -> {test, Program}.

noted(What, Result) ->
    _ = put(noted, [What | notes()]),
    Result.

notes() -> case get(noted) of undefined -> []; Notes -> Notes end.

asked() ->
    Notes = lists:reverse(notes()),
    _ = erase(noted),
    Notes.

%% ---- tests

platform_test_() ->
    {setup, fun registered/0, fun tessera_platform:register/1,
     [{timeout, 60, Test} || Test <- [fun mesh/0, fun names/0, fun tensors/0, fun errors/0, fun long_permutations/0, fun profile/0]]}.

%% Returns the platforms of before.
registered() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(host, #{device_count => 2}),
    Before = persistent_term:get(tessera_platform, []),
    ok = tessera_platform:register([?MODULE | Before]),
    Before.

mesh() ->
    _ = asked(),
    Parts = tessera_mesh:shard(tessera:tensor([1.0, 2.0, 3.0, 4.0]), ?MESH, ?CUT, platform_of_test),
    ?assertEqual([room, distribute], asked()),
    F = tessera:shard_jit(fun(X) -> tessera:add(tessera:sum(X), X) end, ?MESH, ?OPTIONS),
    ?assertEqual([room], asked()),
    ?assertEqual([[11.0, 12.0], [13.0, 14.0]], [tessera:to_list(Part) || Part <- F([[Part] || Part <- Parts])]),
    ?assertMatch([own, {compile, [], [{f32, {2}}]}, run, {turn, <<"shard_jit of tessera_platform_tests:", _/binary>>}], asked()),
    _ = F([[Part] || Part <- Parts]),
    ?assertMatch([own, run, {turn, _}], asked()),
    Text = tessera:explain(F, [[[Part] || Part <- Parts]]),
    ?assertMatch({_, _}, binary:match(Text, <<"of client platform_of_test">>)),
    ?assertEqual(<<"steps of the test">>, binary:part(Text, byte_size(Text), -byte_size(<<"steps of the test">>))).

names() ->
    ?assertEqual({devices, tessera_nif:client_devices(host)}, tessera_platform:room(host, 65)),
    ?assertEqual({devices, 0}, tessera_platform:room(no_such_client, 1)),
    ?assertEqual([true, true, false, true], [tessera_platform:has(Client, Flag) || Client <- [host, platform_of_test], Flag <- [ops, handles]]),
    ?assertEqual([host, test], [tessera_platform:key(Client) || Client <- [host, platform_of_test]]),
    ?assertError({failed_precondition, _}, tessera:open_client(platform_of_test, #{device_count => 1})),
    _ = asked(),
    ok = tessera_platform:clear(),
    ?assertEqual([clear], asked()).

%% The platform reads and ends its tensors, and tells their device. The library does so for its own tensors.
tensors() ->
    Tensor = tessera:tensor([5.0, 6.0]),
    ?assertEqual({host, 0}, tessera:device(Tensor)),
    _ = asked(),
    Own = Tensor#tessera{ref = make_ref()},
    ?assertError({invalid_argument, _}, tessera:device(Own)),
    _ = put(own_tensor, Own#tessera.ref),
    ?assertEqual({platform_of_test, 7}, tessera:device(Own)),
    ?assertEqual(<<1:32/float-native, 2:32/float-native>>, tessera:to_binary(Own)),
    ?assertEqual([{read, -1}], asked()),
    ?assertEqual({deallocated, [deallocate]}, {tessera_remote:deallocate(Own#tessera.ref), asked()}),
    _ = erase(own_tensor),
    ?assertEqual([5.0, 6.0], tessera:to_list(Tensor)),
    ?assertEqual([], asked()).

errors() ->
    Wide = #{shape => {4}},
    ?assertError({invalid_argument, <<"shard_jit: 4 partitions are too many for the test">>}, tessera:shard_jit(fun(X) -> X end, Wide, ?OPTIONS)),
    ?assertError({invalid_argument, <<"shard(s32[4]): 4 partitions are too many for the test">>},
                 tessera_mesh:shard(tessera:iota({4}), Wide, ?CUT, platform_of_test)),
    F = tessera:shard_jit(fun(X) -> X end, ?MESH, ?OPTIONS),
    _ = put(fails, {error, #{code => data_loss, message => <<"the run of the test failed">>}}),
    ?assertError({data_loss, _}, F([[tessera:tensor([1.0])], [tessera:tensor([2.0])]])),
    _ = erase(fails),
    %% a process that is no cluster
    ?assertError({unavailable, _}, tessera:shard_jit(fun(X) -> X end, ?MESH, maps:put(client, self(), ?OPTIONS))).

%% One row a rank, the waits, and the slowest rank, with the line of the call. A nested profile has its own runs, the outer one has all.
profile() ->
    F = tessera:shard_jit(fun(X) -> tessera:add(X, 2) end, ?MESH, ?OPTIONS),
    Call = fun() -> _ = F([[tessera:tensor([1.0])], [tessera:tensor([2.0])]]), ok end,
    {{ok, Inner}, #{clusters := [Cluster]} = Outer} =
        tessera:profile(fun() -> Call(), tessera:profile(Call, [], #{speed => false}) end, [], #{speed => false}),
    ?assertMatch(#{cluster := platform_of_test, slowest := 1, ranks := [#{rank := 0}, #{rank := 1}]}, Cluster),
    #{ranks := [Fast, Slow]} = Cluster,
    ?assertMatch(#{host := <<"host">>, partitions := 2, runs := 2, ns := 2000, collective_ns := 900, computing_ns := 1100, waiting_ns := 600}, Fast),
    ?assertMatch(#{runs := 2, collective_ns := 300, computing_ns := 1700, waiting_ns := 0, programs := [#{number := 8, runs := 4, line := Line}]}
                   when element(1, Line) =:= ?MODULE, Slow),
    ?assertMatch(#{clusters := [#{ranks := [#{runs := 1, ns := 1000}, #{}]}]}, Inner),
    ok = on_one_clock(Outer, Fast, Slow),
    Table = tessera_profile:table(Outer),
    [?assertMatch({Part, {_, _}}, {Part, binary:match(Table, Part)})
     || Part <- [<<"cluster platform_of_test: 2 ranks">>, <<"slowest: rank 1 on host computes for 1700 ns; the others wait for 600 ns on average">>,
                 <<"on rank 1:">>]],
    {_, #{clusters := []}} = tessera:profile(fun() -> tessera:add(1, 2) end, [], #{speed => false}).

%% More pairs than an op lists: for all partitions, and for some; for a container of two types; the gradient.
long_permutations() ->
    Count = 150,
    Members = lists:seq(0, Count - 1),
    Numbers = [{rand:uniform(), I} || I <- Members],
    To = [I || {_, I} <- lists:sort(Numbers)],
    [begin
         Pairs = lists:sublist(lists:zip(Members, To), Length),
         Sources = maps:from_list([{T, F} || {F, T} <- Pairs]),
         Moved = fun(Values, Zero) -> [case Sources of #{I := F} -> lists:nth(F + 1, Values); #{} -> Zero end || I <- Members] end,
         Back = [case lists:keyfind(I, 1, Pairs) of {_, T} -> [2.0 * T, 2.0 * T]; false -> [0.0, 0.0] end || I <- Members],
         F = fun(X, N) ->
                     Loss = fun(V) -> tessera:sum(tessera:multiply(tessera_mesh:permute(V, Pairs, a), tessera:multiply(2, tessera_mesh:axis_index(a)))) end,
                     {tessera_mesh:permute({X, N}, Pairs, a), (tessera:grad(Loss))(X)}
             end,
         Map = tessera:shard_map(F, #{shape => {Count}, axes => [a]}, [#{0 => [a]}, #{0 => [a]}], {{#{0 => [a]}, #{0 => [a]}}, #{0 => [a]}},
                                 #{client => interpreted_of_test}),
         Results = Map([[tessera:tensor([I + 0.5, -0.0]), tessera:tensor([I - 99], s16)] || I <- Members]),
         ?assertEqual(Moved([[I + 0.5, -0.0] || I <- Members], [0.0, 0.0]), [tessera:to_list(X) || {{X, _}, _} <- Results]),
         ?assertEqual(Moved([[I - 99] || I <- Members], [0]), [tessera:to_list(N) || {{_, N}, _} <- Results]),
         ?assertEqual(Back, [tessera:to_list(G) || {_, G} <- Results])
     end || Length <- [0, 64, 65, 129, Count]],
    ok.

%% The clock of rank 1 is 1000 s ahead. The runs of both ranks begin together. Rank 0 waits in the collective from 100 to 700 ns of the run.
on_one_clock(Profile, #{events := Zero} = Fast, #{events := One} = Slow) ->
    Runs = fun(Events) -> [{Begin, End} || {run, 1, 0, Begin, End, 1, _} <- Events] end,
    [{Begin, End}, {Begin, End}] = Runs(Zero),
    ?assertEqual(Runs(Zero), Runs(One)),
    ?assertEqual(Begin + 1000, End),
    ?assertEqual([{wait, 1, 2, Begin + 100, Begin + 700, P} || P <- [0, 1]], [Event || {wait, _, _, _, _, _} = Event <- Zero]),
    ?assertEqual([], [Event || {wait, _, _, _, _, _} = Event <- One]),
    ?assertMatch([{0, 3}, {1, 3}], [{LeftOut, Error} || #{events_left_out := LeftOut, clock_error_ns := Error} <- [Fast, Slow]]),
    %% a process of the trace for each rank, with a lane for each partition
    {ok, {object, [_, {_, Rows}]}} = tessera_json:decode(tessera_profile:chrome_trace(Profile)),
    Maps = [maps:from_list(Row) || {object, Row} <- Rows],
    ?assertEqual([{1, <<"this VM">>}, {2, <<"cluster platform_of_test, rank 0 on host">>}, {3, <<"cluster platform_of_test, rank 1 on host">>}],
                 [{Pid, Name} || #{<<"name">> := <<"process_name">>, <<"pid">> := Pid, <<"args">> := {object, [{_, Name}]}} <- Maps]),
    ?assertEqual([{<<"run">>, 2}, {<<"run">>, 3}, {<<"wait">>, 2}],
                 lists:usort([{Category, Pid} || #{<<"cat">> := Category, <<"pid">> := Pid} <- Maps, Pid > 1, Category =/= <<"step">>, Category =/= <<"collective">>])),
    ?assertEqual([{2, 1}, {2, 2}, {3, 1}, {3, 2}],
                 lists:sort([{Pid, Lane} || #{<<"cat">> := <<"collective">>, <<"pid">> := Pid, <<"tid">> := Lane, <<"dur">> := Took} <- Maps, Took > 0])),
    Flame = tessera_profile:flame_graph(Profile),
    [?assertMatch({Part, {_, _}}, {Part, binary:match(Flame, Part)})
     || Part <- [<<"<title>rank 0 on host: 2000 ns">>, <<"<title>rank 1 on host: 2000 ns">>, <<"<title>wait: 600 ns">>, <<"<title>collective op: 900 ns">>]],
    ok.

%% Modules of other folders reach clusters by the table, or by the public module in Tessera.Cluster's (tessera_nx_cluster).
no_forks_test() ->
    Root = filename:dirname(code:which(tessera_platform)),
    Of = fun(Folder) -> [list_to_atom(filename:basename(File, ".erl")) || File <- filelib:wildcard("erl/" ++ Folder ++ "/*.erl")] end,
    Clusters = Of("cluster"),
    ?assert(lists:member(tessera_cluster_driver, Clusters)),
    Others = lists:append([Of(filename:basename(Folder)) || Folder <- filelib:wildcard("erl/*"), filename:basename(Folder) =/= "cluster"]),
    Calls = [{Module, Called} || Module <- Others, {ok, {_, [{imports, Imports}]}} <- [beam_lib:chunks(filename:join(Root, Module), [imports])],
                                 {Called, _, _} <- Imports, lists:member(Called, Clusters)],
    ?assertEqual([{tessera_nx_cluster, tessera_cluster}], lists:usort(Calls)).

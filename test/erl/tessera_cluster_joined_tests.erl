%% Clusters without a driver: programs that mpirun starts, whose processes join. Each test starts real jobs on this host; a process
%% runs a function of this module, and writes its result into a file of its own.
-module(tessera_cluster_joined_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [launchers/0, gone/1]).
-import(tessera_test, [in_folder/1, until/1]).
-export([main/1]).
%% For other modules of tests.
-export([program/3]).
%% The functions of the processes.
-export([errors/1, bits/1, together/1, saves/1, disagrees/1, fills/1, halts/1, leaves/1, waits/1, stops/1, stops_before/1, stops_meanwhile/1, dies/1, fails/1, ends/1, alone/1, refused/1, differs/1]).

-define(WITHIN, 600000).
%% Variables that could make a process take itself for a rank.
-define(LAUNCHED, ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "PMIX_RANK"]).

%% ---- jobs

jobs_test_() ->
    [{lists:concat([Name]), {timeout, 240, in_folder(Test)}}
     || Launcher <- launchers(), Launcher =/= none,
        {Name, Test} <- [{"errors that the job survives", fun errors_test_on/1}, {"the bits of one node", fun bits_test_on/1},
                         {"functions and tensors", fun together_test_on/1}, {"saved tensors", fun saves_test_on/1},
                         {"saves that differ", fun disagrees_test_on/1}, {"a full disk", fun fills_test_on/1}, {"a rank stopped in a save", fun halts_test_on/1},
                         {"a rank that leaves early", fun leaves_test_on/1}, {"a rank that never calls", fun waits_test_on/1},
                         {"a stopped rank", fun stops_test_on/1},
                         {"a rank stopped before it leaves", fun(Folder) -> stops_leaving_test_on(stops_before, Folder) end},
                         {"a rank stopped while it leaves", fun(Folder) -> stops_leaving_test_on(stops_meanwhile, Folder) end},
                         {"a killed rank", fun dies_test_on/1},
                         {"a program that fails", fun fails_test_on/1}, {"nodes that end", fun ends_test_on/1},
                         {"another build of the C library", fun differs_test_on/1},
                         {"a launcher that MPI does not know", fun unknown_launcher/1}]].

alone_test_() -> [{"alone", {timeout, 120, in_folder(fun alone_test_on/1)}}, {"without the library", {timeout, 120, in_folder(fun no_library/1)}}].

options_test() ->
    [?assertMatch({error, {invalid_argument, <<"tessera_cluster: ", _/binary>>}}, tessera_cluster:join(Options))
     || Options <- [#{ranks => 2}, #{devices => 0}, #{devices => 65}, #{threads => none}, #{memory_limit => 0}, #{deadline => 1}, #{call_timeout => 0},
                    #{call_timeout => never}, #{start_timeout => infinity}, #{name => "a"}, [a], [{devices, 1} | b], 7]].

%% Runs a function on `Ranks` ranks: mpirun's status, its output, and the terms that each rank has written, in the order
%% of ranks.
mpirun(Ranks, Function, Folder) ->
    {Status, Output} = launched(Ranks, arguments(Function, Folder)),
    {Status, Output, [Term || Rank <- lists:seq(0, Ranks - 1), Term <- written(Folder, Rank)]}.

launched(Ranks, Arguments) -> launched(Ranks, erl(), Arguments).

launched(Ranks, Program, Arguments) ->
    Mpirun = os:find_executable("mpirun"),
    Shared = case string:find(os:cmd("mpirun --version"), "(Open MPI) 4.") of nomatch -> "sm"; _ -> "vader" end,
    process(Mpirun, ["--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self," ++ Shared,
                     "-np", integer_to_list(Ranks), Program | Arguments], []).

%% The status and the output of `Ranks` ranks with these arguments of erl, and modules in the folder; 0: of one process without mpirun.
program(0, Folder, Arguments) -> process(erl(), vm(filename:dirname(code:which(tessera)), Folder) ++ Arguments ++ ["-s", "init", "stop"], []);
program(Ranks, Folder, Arguments) -> launched(Ranks, vm(filename:dirname(code:which(tessera)), Folder) ++ Arguments ++ ["-s", "init", "stop"]).

written(Folder, Rank) ->
    case file:consult(filename:join(Folder, integer_to_list(Rank))) of
        {ok, Terms} -> [Terms];
        {error, _} -> []
    end.

erl() -> filename:join([code:root_dir(), "bin", "erl"]).

arguments(Function, Folder) -> arguments(Function, Folder, filename:dirname(code:which(tessera))).

arguments(Function, Folder, Ebin) ->
    vm(Ebin, filename:dirname(code:which(?MODULE)))
        ++ ["-run", atom_to_list(?MODULE), "main", atom_to_list(Function), Folder, "-s", "init", "stop"].

vm(Ebin, Folder) -> ["+S", "1:1", "-noshell", "-noinput", "-pa", filename:absname(Ebin), filename:absname(Folder)].

process(Path, Args, Env) ->
    Clean = [{Name, false} || Name <- ["ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS" | ?LAUNCHED]],
    Root = [{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}, {"ERL_CRASH_DUMP_SECONDS", "0"}],
    Port = open_port({spawn_executable, Path}, [{args, Args}, {env, Clean ++ Root ++ Env}, exit_status, stderr_to_stdout, binary, hide]),
    collected(Port, []).

collected(Port, Output) ->
    receive
        {Port, {data, Bytes}} -> collected(Port, [Output, Bytes]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    after ?WITHIN ->
            {os_pid, Pid} = erlang:port_info(Port, os_pid),
            _ = os:cmd("kill -TERM " ++ integer_to_list(Pid)),
            error({no_end, iolist_to_binary(Output)})
    end.

%% ---- the work of a process

main([Function, Folder]) ->
    put(folder, Folder),
    apply(?MODULE, list_to_existing_atom(Function), [Folder]).

join(Options) ->
    {ok, Cluster} = tessera_cluster:join(maps:merge(#{threads => 1}, Options)),
    #{rank := Rank} = tessera_cluster:info(Cluster),
    put(rank, Rank),
    ok = write({pid, list_to_binary(os:getpid())}),
    {Cluster, Rank}.

write(Term) ->
    file:write_file(filename:join(get(folder), integer_to_list(get(rank))), io_lib:format("~0p.~n", [Term]), [append]).

attempt(Name, F) -> write({Name, outcome(F)}).

outcome(F) ->
    try {ok, F()}
    catch error:{Code, Text} when is_atom(Code) -> {Code, Text}
    end.

sums(Cluster, Ranks) ->
    tessera:shard_map(fun(X) -> tessera_mesh:all_reduce(X, sum, 0) end, #{shape => {Ranks}}, [#{0 => [0]}], #{0 => [0]}, #{client => Cluster}).

%% The sum of the numbers of the ranks.
call(Cluster, Rank) ->
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    [Sum] = (sums(Cluster, length(Ranks)))([[tessera:tensor([float(Rank)])]]),
    tessera:to_list(Sum).

%% ---- the tests, and the functions that their processes run

errors(_) ->
    {Cluster, Rank} = join(#{name => joined}),
    Sums = sums(joined, 2),
    Sum = fun() -> call(joined, Rank) end,
    Own = fun(First, Second) -> case Rank of 0 -> First; 1 -> Second end end,
    One = [[tessera:tensor([1.0])]],
    ok = write({info, tessera_cluster:info(joined)}),
    attempt(sum, Sum),
    attempt(programs, fun() -> (Own(Sums, on_parts(fun(X) -> tessera_mesh:all_reduce(X, max, 0) end)))(One) end),
    attempt(no_collective, fun() -> (on_parts(Own(fun tessera:sin/1, fun tessera:cos/1)))(One) end),
    attempt(shapes, fun() -> Sums([[tessera:zeros({Own(1, 2)})]]) end),
    attempt(argument, fun() -> Sums(Own(One, [[nonsense]])) end),
    attempt(lists, fun() -> Sums(Own(One, One ++ One)) end),
    attempt(mesh, fun() -> sums(joined, 3) end),
    attempt(devices, fun() -> sums(joined, 4) end),
    attempt(sum, Sum),
    #{live := Live} = tessera:memory(),
    Large = on_parts(fun(X) -> tessera_mesh:all_reduce(tessera:sort(tessera:broadcast(X, {1000000})), max, 0) end),
    ok = tessera:set_memory_limit(Live + Own(1 bsl 30, 1 bsl 20)),
    attempt(memory, fun() -> Large(One) end),
    ok = tessera:set_memory_limit(Live + (1 bsl 25)),
    %% results of 4 MB that are garbage
    attempt(garbage, fun() -> lists:foreach(fun(_) -> [_] = Large(One) end, lists:seq(1, 30)) end),
    ok = tessera:set_memory_limit(1 bsl 40),
    dead_caller(Rank, Sums, One),
    attempt(sum, Sum),
    attempt(at_once, fun() -> [done || _ <- [1, 2, 3, 4], done <- [at_once(Sum)]] end),
    attempt(shard, fun() -> [tessera:to_list(Part) || Part <- tessera_mesh:shard(tessera:iota({4}), #{shape => {2}}, #{0 => [0]}, Cluster)] end),
    attempt(twice, fun() -> tessera_cluster:join(#{}) end),
    attempt(leave, fun() -> tessera_cluster:leave(Cluster) end),
    attempt(left, Sum),
    attempt(info, fun() -> maps:get(state, tessera_cluster:info(joined)) end),
    attempt(stop, fun() -> tessera_cluster:stop(Cluster) end),
    attempt(again, fun() -> tessera_cluster:join(#{}) end).

on_parts(F) -> tessera:shard_map(F, #{shape => {2}}, [#{0 => [0]}], #{0 => [0]}, #{client => joined}).

%% On rank 0 a caller is killed that waits for rank 1, which calls when the run has ended on rank 0.
dead_caller(0, Sums, One) ->
    {Caller, Monitor} = spawn_monitor(fun() -> Sums(One) end),
    until(fun is_running/0),
    exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, _} -> ok end,
    until(fun() -> not is_running() end),
    ok = write(killed);
dead_caller(1, Sums, One) ->
    until(fun() -> lists:member(killed, lists:append(written(get(folder), 0))) end),
    attempt(caller, fun() -> Sums(One) end).

%% The cluster's process has a process for the run.
is_running() -> lists:any(fun({_, _, _, {runs, _, _, _}}) -> true; (_) -> false end, tuple_to_list(sys:get_state(joined))).

%% Processes of a rank that call the same program get their turns one after the other.
at_once(Sum) ->
    Monitors = [spawn_monitor(fun() -> [1.0] = Sum() end) || _ <- [1, 2, 3]],
    [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Monitors],
    done.

errors_test_on(Folder) ->
    {0, _, [Zero, One]} = mpirun(2, errors, Folder),
    [begin
         #{state := up, rank := Rank, mpi := <<"Open MPI", _/binary>>, ranks := [_, _] = Ranks} = proplists:get_value(info, All),
         ?assertMatch([#{rank := 0, devices := 1, threads := 1}, #{rank := 1, host := <<_, _/binary>>, os_pid := <<_/binary>>}], Ranks),
         ?assertEqual([{ok, [1.0]}], lists:usort(proplists:get_all_values(sum, All))),
         [has(Key, Code, Text, All) || {Key, Code, Text} <- both(Rank)],
         ?assertMatch({ok, _}, proplists:get_value(garbage, All)),
         ?assertEqual({ok, [done, done, done, done]}, proplists:get_value(at_once, All)),
         ?assertMatch({ok, {error, {failed_precondition, <<"this node has joined a cluster before">>}}}, proplists:get_value(twice, All)),
         ?assertEqual({ok, ok}, proplists:get_value(leave, All)),
         ?assertEqual([left], [State || {info, {ok, State}} <- All]),
         ?assertMatch({ok, {error, {failed_precondition, <<"MPI was started before", _/binary>>}}}, proplists:get_value(again, All))
     end || {Rank, All} <- [{0, Zero}, {1, One}]],
    ?assertEqual([[0, 1], [2, 3]], [Part || All <- [Zero, One], {shard, {ok, [Part]}} <- All]),
    has(caller, cancelled, "rank 0 on .*: the (run was abandoned|calling process has ended)", One).

%% Errors of both ranks; a rank's own errors are raised there as they are.
both(Rank) ->
    Others = fun(Own, Text) when Own =:= Rank -> Text;
                (Own, Text) -> lists:concat(["rank ", Own, " on [^ ]+: .*", Text])
             end,
    [{programs, failed_precondition, "ranks 0 and 1 are at different places of the program: .*run 3 .*shard_map of .*shard_map of"},
     {no_collective, failed_precondition, "ranks 0 and 1 are at different places"},
     {shapes, failed_precondition, "ranks 0 and 1 are at different places"},
     {argument, invalid_argument, Others(1, "expected a tensor")},
     {lists, invalid_argument, Others(1, "got 2 argument lists, expected 1 argument list")},
     {mesh, invalid_argument, "the mesh has 3 partitions, and the cluster has 2 ranks of 1 devices"},
     {devices, invalid_argument, "the mesh has 4 partitions, and the cluster has 2 ranks of 1 devices"},
     {memory, resource_exhausted, Others(1, "")},
     {left, unavailable, "this rank has left the cluster"}].

has(Key, Code, Text, All) ->
    ?assertMatch({Key, {Code, _}}, lists:keyfind(Key, 1, All)),
    {Key, {Code, Said}} = lists:keyfind(Key, 1, All),
    ?assertMatch({_, {match, _}, _}, {Key, re:run(Said, Text, [dotall]), Said}).

%% The same programs on 1, 2 and 4 ranks, and on the devices of this node.
bits(_) ->
    {Cluster, Rank} = join(#{devices => 4}),
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    Each = 4 div length(Ranks),
    [write({Rank * Each + I, Results}) || {I, Results} <- lists:zip(lists:seq(0, Each - 1), results(Cluster, Rank * Each, Each))],
    tessera_cluster:leave(Cluster).

%% The digests of the results, for each of these partitions.
results(Client, First, Count) ->
    Calls = [[tessera:to_binary(T) || T <- Part] || {F, Lists} <- programs(Client), Part <- F(lists:sublist(Lists, First + 1, Count))],
    [[erlang:md5(lists:nth((Call - 1) * Count + Own, Calls)) || Call <- lists:seq(1, length(Calls) div Count)] || Own <- lists:seq(1, Count)].

programs(Client) ->
    Mesh = #{shape => {2, 2}},
    Options = #{client => Client},
    Parts = fun(Shape) -> [tessera:sin(tessera:add(tessera:iota(Shape, f32), float(P))) || P <- [1, 2, 3, 4]] end,
    Loss = fun(W, X) -> tessera:mean(tessera:tanh(tessera:dot(X, W))) end,
    [{tessera:shard_jit(fun(X, W) -> tuple_to_list((tessera:value_and_grad(fun(Own) -> Loss(Own, X) end))(W)) end, Mesh, Options#{input_shardings => [#{0 => [0, 1]}, #{}]}),
      [[X, hd(Parts({33, 9}))] || X <- Parts({7, 33})]},
     {tessera:shard_jit(fun(X) -> [tessera:sum(X), tessera:softmax(X)] end, Mesh, Options#{input_shardings => [#{0 => [0], 1 => [1]}]}),
      [[X] || X <- Parts({5, 6})]}].

bits_test_on(Folder) ->
    ok = tessera:open_client(host, #{device_count => 4}),
    Here = lists:zip(lists:seq(0, 3), results(host, 0, 4)),
    [begin
         Own = filename:join(Folder, integer_to_list(Ranks)),
         ok = file:make_dir(Own),
         {0, _, All} = mpirun(Ranks, bits, Own),
         ?assertEqual({Ranks, Here}, {Ranks, [Pair || {P, _} = Pair <- lists:append(All), is_integer(P)]})
     end || Ranks <- [1, 2, 4]].

%% Functions, tensors, and calls that have to be the same on all ranks.
together(_) ->
    {Cluster, Rank} = join(#{name => joined, devices => 2}),
    Own = fun(First, Second) -> case Rank of 0 -> First; 1 -> Second end end,
    Map = fun(F) -> fun() -> tessera_cluster:map(joined, F) end end,
    Sum = fun() -> call(joined, Rank) end,
    attempt(noop, fun() -> tessera_cluster:noop(joined, 3) end),
    attempt(map, Map(fun(R) -> {R, self()} =:= {Rank, self()} andalso 10 * R end)),
    attempt(map_args, fun() -> tessera_cluster:map(Cluster, fun(R, {A, T}) -> {R, A, tessera:to_list(T)} end, [{a, tessera:tensor([Rank])}]) end),
    attempt(map_collective, Map(fun(_) -> Sum() end)),
    Long = binary:copy(<<"0123456789">>, 300),
    attempt(map_fails, Map(fun(1) -> error({data_loss, Long}); (R) -> R end)),
    attempt(map_code, Map(fun(1) -> error({code_of_its_own, <<"why">>}); (R) -> R end)),
    attempt(map_exits, fun() -> try (Map(fun(1) -> exit(stop_it); (R) -> R end))() catch exit:stop_it -> exited end end),
    attempt(map_count, fun() -> tessera_cluster:map(joined, fun(_, A) -> A end, Own([1], [1, 2])) end),
    attempt(map_others, Map(Own(fun lists:sort/1, fun lists:reverse/1))),
    attempt(map_or_noop, Own(fun() -> tessera_cluster:noop(joined) end, Map(fun(R) -> R end))),
    attempt(map_or_program, Own(Map(fun(R) -> R end), Sum)),
    attempt(map_dies, fun() -> died(fun() -> (Map(fun(R) -> R =:= 0 andalso exit(self(), kill) end))() end) end),
    attempt(sum, Sum),
    attempt(profile, fun() -> profiled(Own, Sum) end),
    attempt(profile_all, fun() -> profiled_all(Sum) end),
    Lists = tessera_cluster:put(joined, [#{x => tessera:tensor([float(2 * Rank + I)]), n => I} || I <- [0, 1]]),
    attempt(put, fun() -> [{I, tessera:device(X)} || #{x := X, n := I} <- Lists] end),
    attempt(put_used, fun() -> [tessera:to_list(Y) || Y <- (sums(joined, 4))([[X] || #{x := X} <- Lists])] end),
    attempt(put_count, fun() -> tessera_cluster:put(joined, [1, 2, 3]) end),
    attempt(put_none, fun() -> tessera_cluster:put(joined, []) end),
    attempt(put_term, fun() -> tessera_cluster:put(joined, nonsense) end),
    Traced = tessera:shard_map(fun(X) -> ok = tessera_cluster:noop(joined), X end, #{shape => {2}}, [#{0 => [0]}], #{0 => [0]}, #{client => joined}),
    attempt(nested, fun() -> Traced([[tessera:tensor([1.0])]]) end),
    attempt(clear_cache, fun() -> tessera_cluster:clear_cache(joined) end),
    attempt(sum, Sum),
    attempt(leave, fun() -> tessera_cluster:leave(joined) end),
    attempt(left, Map(fun(R) -> R end)).

%% What becomes of a call whose process is killed on rank 0.
died(F) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({said, outcome(F)}) end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end.

%% Only rank 0 has a profile, of its own rank: two runs of one program with one collective each.
profiled(Own, Sum) ->
    Twice = fun() -> [Sum(), Sum()] end,
    (Own(fun() ->
                 {[Result, Result], #{clusters := [#{cluster := joined, slowest := none, ranks := [Rank]}]} = Profile} = tessera:profile(Twice, [], #{speed => false}),
                 #{rank := 0, partitions := 1, runs := 2, waiting_ns := 0, programs := [#{steps := Steps}]} = Rank,
                 [2] = [Count || #{kind := <<"collective">>, count := Count} <- Steps],
                 [[_ | _]] = [Lines || #{kind := <<"collective">>, lines := Lines} <- Steps],
                 {_, _} = binary:match(tessera_profile:table(Profile), <<"on rank 0:">>),
                 Result
         end, fun() -> hd(Twice()) end))().

%% Both ranks have a profile of both. Their collectives meet on one clock: each ends after both have begun.
profiled_all(Sum) ->
    Twice = fun() -> [Sum(), Sum()] end,
    {_, #{clusters := [#{ranks := [#{rank := 0}, #{rank := 1}] = Ranks, slowest := Slowest}]} = Profile} = tessera:profile(Twice, [], #{speed => false, ranks => all}),
    true = lists:member(Slowest, [0, 1]),
    [[{Begin, End}, {Later, Last}], [{OtherBegin, OtherEnd}, {OtherLater, OtherLast}]] =
        [[{From, To} || {run, _, S, From, To, _, _} <- Events, S > 0, maps:get(kind, lists:nth(S, Steps)) =:= <<"collective">>]
         || #{events := Events, programs := [#{steps := Steps}]} <- Ranks],
    Error = lists:sum([Own || #{clock_error_ns := Own} <- Ranks]),
    [true, true] = [lists:all(fun(#{launch := Launch, lines := Lines}) -> Launch >= 0 orelse Lines =/= [] end, Steps) || #{programs := [#{steps := Steps}]} <- Ranks],
    {_, _} = binary:match(tessera_profile:chrome_trace(Profile), <<"cluster joined, rank 1 on ">>),
    [End + Error >= OtherBegin, OtherEnd + Error >= Begin, Last + Error >= OtherLater, OtherLast + Error >= Later].

together_test_on(Folder) ->
    {0, _, [Zero, One] = Both} = mpirun(2, together, Folder),
    Get = fun(Key) -> [proplists:get_value(Key, All) || All <- Both] end,
    ?assertEqual([{ok, ok}, {ok, ok}], Get(noop)),
    ?assertEqual([{ok, [0]}, {ok, [10]}], Get(map)),
    ?assertEqual(Get(sum), Get(profile)),
    ?assertEqual([{ok, [true, true, true, true]} || _ <- Both], Get(profile_all)),
    ?assertEqual([{ok, [{0, a, [0]}]}, {ok, [{1, a, [1]}]}], Get(map_args)),
    [has(map_collective, failed_precondition, "shard_map of .*: called within another call of the cluster, map of", All) || All <- Both],
    [Other, Itself] = Get(map_fails),
    Long = binary:copy(<<"0123456789">>, 300),
    ?assertEqual({data_loss, Long}, Itself),
    ?assertMatch({{data_loss, _}, {match, _}}, {Other, re:run(element(2, Other), ["^rank 1 on [^ ]+: ", Long, "$"])}),
    has(map_code, internal, "rank 1 on [^ ]+: code_of_its_own: why", Zero),
    has(map_code, code_of_its_own, "^why", One),
    has(map_exits, internal, "rank 1 on [^ ]+: .exit,stop_it.", Zero),
    ?assertEqual({ok, exited}, proplists:get_value(map_exits, One)),
    has(map_count, invalid_argument, "rank 1 on [^ ]+: map: got 2 arguments, expected one", Zero),
    has(map_count, invalid_argument, "^map: got 2 arguments, expected one", One),
    [has(Key, failed_precondition, Text, All)
     || All <- Both,
        {Key, Text} <- [{map_others, "ranks 0 and 1 are at different places of the program: .*map of lists:sort/1.*map of lists:reverse/1"},
                        {map_or_noop, "ranks 0 and 1 are at different places of the program: .*noop.*map of tessera_cluster_joined_tests:"},
                        {map_or_program, "ranks 0 and 1 are at different places of the program: .*map of .*shard_map of "}]],
    ?assertMatch([{ok, killed}, {ok, {said, {cancelled, <<"rank 0 on ", _/binary>>}}}], Get(map_dies)),
    ?assertEqual([{ok, [1.0]}], lists:usort([Sum || All <- Both, {sum, Sum} <- All])),
    ?assertEqual([{ok, [{0, {host, 0}}, {1, {host, 1}}]} || _ <- Both], Get(put)),
    ?assertEqual([{ok, [[6.0], [6.0]]} || _ <- Both], Get(put_used)),
    [has(Key, invalid_argument, Text, All)
     || All <- Both, {Key, Text} <- [{put_count, "put: got 3 lists, and this rank has 2 devices"}, {put_none, "put: got 0 lists"},
                                     {put_term, "put: expected a list with a container for each partition"}]],
    [has(nested, failed_precondition, "noop: called within another call of the cluster, shard_map of ", All) || All <- Both],
    ?assertEqual([{ok, ok}, {ok, ok}], Get(clear_cache)),
    ?assertEqual([{ok, ok}, {ok, ok}], Get(leave)),
    [has(left, unavailable, "this rank has left the cluster", All) || All <- Both].

%% ---- saved tensors

-define(SAVED, {#{0 => [0], 1 => [1]}, #{b => #{0 => [1]}, n => #{}}, #{}}).

whole() -> {tessera:reshape(tessera:iota({64}, f32), {8, 8}), tessera:tensor([1, 2, 3, 4], s8), tessera:tensor([nan, -0.0, infinity], bf16)}.

%% The parts of a container of a client, cut for a mesh: of all partitions, or of this rank's.
parts(Client, Mesh) ->
    {A, #{b := B}, C} = ?SAVED,
    {Matrix, Bias, Numbers} = whole(),
    [{M, #{b => Own, n => 7}, N} || {M, Own, N} <- lists:zip3(tessera_mesh:shard(Matrix, Mesh, A, Client), tessera_mesh:shard(Bias, Mesh, B, Client),
                                                              tessera_mesh:shard(Numbers, Mesh, C, Client))].

contents(Parts) ->
    [erlang:phash2({tessera:shape(M), tessera:to_binary(M), tessera:to_binary(B), N, tessera:to_binary(O)}) || {M, #{b := B, n := N}, O} <- Parts].

%% Loads a driver's save, in several meshes, and saves the same.
saves(Folder) ->
    {Cluster, _} = join(#{devices => 4}),
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    Path = filename:join(Folder, "by_ranks"),
    Load = fun(From, Mesh) -> contents(tessera_cluster:load(Cluster, From, Mesh)) end,
    attempt(driver, fun() -> contents(tessera_cluster:load(Cluster, filename:join(Folder, "../by_driver"))) end),
    [attempt({driver, Shape}, fun() -> Load(filename:join(Folder, "../by_driver"), #{shape => Shape}) end) || Shape <- [{4, 1}, {1, 4}, {2, 2}]],
    Mesh = #{shape => {2, 2}},
    Parts = parts(Cluster, Mesh),
    attempt(parts, fun() -> length(Parts) * length(Ranks) end),
    attempt(save, fun() -> tessera_cluster:save(Path, Parts, Mesh, ?SAVED) end),
    attempt(own, fun() -> contents(tessera_cluster:load(Cluster, Path)) end),
    [attempt({own, Shape}, fun() -> Load(Path, #{shape => Shape}) end) || Shape <- [{4, 1}, {1, 4}, {2, 2}]],
    %% without a mesh, over an earlier save
    Plain = filename:join(Folder, "plain"),
    [attempt(plain, fun() -> tessera_cluster:save(Plain, [{N, M} || {M, _, _} <- Parts]) end) || N <- [1, 2]],
    attempt(plain_loaded, fun() -> [{N, tessera:to_binary(M)} || {N, M} <- tessera_cluster:load(Cluster, Plain)] =:= [{2, tessera:to_binary(M)} || {M, _, _} <- Parts] end),
    attempt(devices, fun() -> [tessera:device(M) || {_, M} <- tessera_cluster:load(Cluster, Plain)] end),
    tessera_cluster:leave(Cluster).

saves_test_on(Folder) ->
    {ok, _} = application:ensure_all_started(tessera),
    {ok, Driver} = tessera_cluster:start_link(#{ranks => 2, devices => 2, mpirun => none}),
    Meshes = [{4, 1}, {1, 4}, {2, 2}],
    Mesh = #{shape => {2, 2}},
    Path = filename:join(Folder, "by_driver"),
    ok = tessera_cluster:save(Path, parts(Driver, Mesh), Mesh, ?SAVED),
    Expected = [{Shape, contents(parts(Driver, #{shape => Shape}))} || Shape <- Meshes],
    [begin
         Own = filename:join(Folder, integer_to_list(Ranks)),
         ok = file:make_dir(Own),
         {0, _, All} = mpirun(Ranks, saves, Own),
         Loaded = fun(Key) -> lists:append([Parts || Rank <- All, {Found, {ok, Parts}} <- Rank, Found =:= Key]) end,
         ?assertEqual({Ranks, [proplists:get_value({2, 2}, Expected) || _ <- [driver, own]]}, {Ranks, [Loaded(Key) || Key <- [driver, own]]}),
         [?assertEqual({Ranks, By, Shape, Contents}, {Ranks, By, Shape, Loaded({By, Shape})}) || By <- [driver, own], {Shape, Contents} <- Expected],
         [?assertEqual([{ok, ok}, {ok, ok}, {ok, ok}, {ok, 4}, {ok, true}],
                       proplists:get_all_values(plain, Rank) ++ [proplists:get_value(Key, Rank) || Key <- [save, parts, plain_loaded]]) || Rank <- All],
         ?assertEqual([{host, I} || _ <- All, I <- lists:seq(0, 4 div Ranks - 1)], Loaded(devices)),
         By = filename:join(Own, "by_ranks"),
         [?assertEqual({Ranks, Shape, Contents}, {Ranks, Shape, contents(tessera_cluster:load(Driver, By, #{shape => Shape}))}) || {Shape, Contents} <- Expected],
         ?assertEqual([1.0, 1.0, 1.0, 1.0], [N / 2 || {N, _} <- tessera_cluster:load(Driver, filename:join(Own, "plain"))]),
         ?assertEqual(2 * (Ranks + 1), length(element(2, file:list_dir(Own))) - Ranks),
         Ranks =/= 2 orelse ?assertEqual(tensors_of(Path), tensors_of(By))
     end || Ranks <- [1, 2, 4]],
    ok = tessera_cluster:stop(Driver).

%% The files of the ranks, without the number of the save, and the index without it.
tensors_of(Path) ->
    Index = tessera_cluster_files:read_index(Path),
    Header = 8 + length("{\"__metadata__\":{\"tessera.save\":\""),
    {maps:remove(save, Index), [begin
                                    {ok, <<Same:Header/binary, _:32/binary, Bytes/binary>>} = file:read_file(File),
                                    {Same, Bytes}
                                end || File <- lists:sort(files_of(Path, ".*"))]}.

files_of(Path, Rest) -> [filename:join(filename:dirname(Path), File) || File <- filelib:wildcard(filename:basename(Path) ++ Rest, filename:dirname(Path))].

%% Arguments that must be the same on all ranks. An earlier save stays; no other file does.
disagrees(Folder) ->
    {Cluster, Rank} = join(#{devices => 2}),
    Own = fun(First, Second) -> case Rank of 0 -> First; 1 -> Second end end,
    Path = filename:join(Folder, "model"),
    Parts = tessera_cluster:put(Cluster, [tessera:tensor([float(Rank), float(I)]) || I <- [0, 1]]),
    Save = fun(At, Given) -> fun() -> tessera_cluster:save(At, Given) end end,
    Load = fun(At) -> fun() -> [tessera:to_list(T) || T <- tessera_cluster:load(Cluster, At)] end end,
    Meshed = fun(Shape, Sharding) -> fun() -> tessera_cluster:save(Path, Parts, #{shape => Shape}, Sharding) end end,
    attempt(saved, Save(Path, Parts)),
    attempt(paths, Save(Own(Path, Path ++ "_other"), Parts)),
    attempt(long_paths, Save(Own(Path, Path ++ lists:duplicate(100, $a)), Parts)),
    attempt(counts, Save(Path, Own(Parts, tl(Parts)))),
    attempt(forms, Save(Path, Own(Parts, [{T} || T <- Parts]))),
    attempt(numbers, Save(Path, [1, Own(1, 1.0)])),
    attempt(no_list, Save(Path, Own(Parts, nonsense))),
    attempt(no_path, Save(Own(Path, {nonsense}), Parts)),
    attempt(meshes, Own(Meshed({4}, #{0 => [0]}), Meshed({2, 2}, #{0 => [0]}))),
    attempt(shardings, Own(Meshed({4}, #{0 => [0]}), Meshed({4}, #{}))),
    attempt(mesh, Meshed({2}, #{0 => [0]})),
    attempt(plain, Own(Save(Path, Parts), Meshed({4}, #{}))),
    attempt(save_or_load, Own(Save(Path, Parts), Load(Path))),
    attempt(save_or_program, Own(Save(Path, Parts), fun() -> (sums(Cluster, 2))([[hd(Parts)]]) end)),
    attempt(unwritable, Save("/proc/no/such", Parts)),
    attempt(missing, Load(Path ++ "_not")),
    attempt(one_missing, Load(Own(Path, Path ++ "_not"))),
    attempt(load_meshes, fun() -> tessera_cluster:load(Cluster, Path, #{shape => Own({4}, {2, 2})}) end),
    attempt(load, Load(Path)),
    attempt(files, fun() -> length(files_of(Path, "*")) end),
    tessera_cluster:leave(Cluster).

disagrees_test_on(Folder) ->
    {0, _, [Zero, One] = Both} = mpirun(2, disagrees, Folder),
    [?assertEqual({ok, ok}, proplists:get_value(saved, All)) || All <- Both],
    [has(Key, Code, Text, All)
     || All <- Both,
        {Key, Code, Text} <- [{paths, failed_precondition, "save: ranks 0 and 1 differ: the paths are .*model and .*model_other"},
                              {long_paths, failed_precondition, "save: ranks 0 and 1 differ: the paths are .*model and .*modelaaaaaaaaaa"},
                              {counts, failed_precondition, "save: ranks 0 and 1 differ: they have 2 and 1 containers"},
                              {forms, failed_precondition, "save: ranks 0 and 1 differ: their containers differ in form, types or shapes"},
                              {no_list, invalid_argument, "save: expected a list with a container for each partition"},
                              {no_path, invalid_argument, "save: expected the name of a file, got .nonsense."},
                              {meshes, failed_precondition, "save: ranks 0 and 1 differ: the sizes of the mesh are .4. and .2,2."},
                              {shardings, failed_precondition, "save: ranks 0 and 1 differ: the shardings"},
                              {mesh, invalid_argument, "save: got 4 containers, expected one for each partition of "},
                              {plain, failed_precondition, "save: ranks 0 and 1 differ: the sizes of the mesh are none and .4."},
                              {save_or_load, failed_precondition, "ranks 0 and 1 are at different places of the program: .*save .*load "},
                              {save_or_program, failed_precondition, "ranks 0 and 1 are at different places of the program: .*save .*shard_map"},
                              {unwritable, failed_precondition, "/proc/no/such"},
                              {missing, failed_precondition, "model_not: no such file"},
                              {one_missing, failed_precondition, "model_not: no such file"},
                              {load_meshes, invalid_argument, "was saved without a mesh"}]],
    has(numbers, invalid_argument, "^save: the containers of two partitions differ", One),
    has(numbers, invalid_argument, "^rank 1 on [^ ]+: save: the containers of two partitions differ", Zero),
    has(one_missing, failed_precondition, "^rank 1 on ", Zero),
    ?assertEqual([{ok, [[0.0, 0.0], [0.0, 1.0]]}, {ok, [[1.0, 0.0], [1.0, 1.0]]}], [proplists:get_value(load, All) || All <- Both]),
    ?assertEqual([{ok, 3}, {ok, 3}], [proplists:get_value(files, All) || All <- Both]).

%% An earlier save survives a save without room.
fills(Folder) ->
    {Cluster, Rank} = join(#{}),
    Path = filename:join([Folder, "disk", "model"]),
    Put = fun(Size) -> tessera_cluster:put(Cluster, [tessera:broadcast(float(Rank), {Size})]) end,
    Files = fun() -> lists:sort(filelib:wildcard("*", filename:dirname(Path))) end,
    attempt(small, fun() -> tessera_cluster:save(Path, Put(100)) end),
    Before = Files(),
    attempt(large, fun() -> tessera_cluster:save(Path, Put(1000000)) end),
    attempt(wait, fun() -> tessera_cluster:noop(Cluster) end),
    attempt(files, fun() -> Files() =:= Before end),
    attempt(load, fun() -> [tessera:shape(T) || T <- tessera_cluster:load(Cluster, Path)] end),
    tessera_cluster:leave(Cluster).

fills_test_on(Folder) ->
    Disk = filename:join(Folder, "disk"),
    ok = file:make_dir(Disk),
    case os:cmd("mount -t tmpfs -o size=1m tmpfs " ++ tessera_test:quoted(Disk)) of
        "" ->
            try fills_on(Folder)
            after "" = os:cmd("umount " ++ tessera_test:quoted(Disk))
            end;
        Why -> io:format(user, "saving on a full disk is not tested, as a file system cannot be mounted here: ~ts", [Why])
    end.

fills_on(Folder) ->
    {0, _, Both} = mpirun(2, fills, Folder),
    [begin
         ?assertEqual({ok, ok}, proplists:get_value(small, All)),
         has(large, resource_exhausted, "no space left", All),
         ?assertEqual({ok, true}, proplists:get_value(files, All)),
         ?assertEqual({ok, [{100}]}, proplists:get_value(load, All))
     end || All <- Both].

%% Rank 1 is stopped instead of saving.
halts(Folder) ->
    {Cluster, Rank} = join(#{deadline => 4000}),
    Path = filename:join(Folder, "model"),
    Parts = tessera_cluster:put(Cluster, [tessera:tensor([float(Rank)])]),
    attempt(saved, fun() -> tessera_cluster:save(Path, Parts) end),
    case Rank of
        0 ->
            attempt(save, fun() -> tessera_cluster:save(Path, Parts) end),
            attempt(files, fun() -> length(filelib:wildcard("model*", Folder)) end),
            erlang:halt(5);
        1 -> stop()
    end.

halts_test_on(Folder) ->
    {5, _, [Zero, One]} = mpirun(2, halts, Folder),
    ?assertEqual([{ok, ok}, {ok, ok}], [proplists:get_value(saved, All) || All <- [Zero, One]]),
    has(save, unavailable, "rank 1 on [^ ]+ did not answer before the deadline", Zero),
    ?assertEqual({ok, 3}, proplists:get_value(files, Zero)),
    gone(pids([Zero, One])).

%% Rank 1 leaves while rank 0 calls.
leaves(_) ->
    {Cluster, Rank} = join(#{}),
    case Rank of
        0 -> [attempt(call, fun() -> call(Cluster, Rank) end) || _ <- [1, 2]];
        1 -> ok
    end,
    attempt(leave, fun() -> tessera_cluster:leave(Cluster) end).

leaves_test_on(Folder) ->
    {0, _, [Zero, One]} = mpirun(2, leaves, Folder),
    [?assertMatch({{unavailable, _}, {match, _}}, {Outcome, re:run(element(2, Outcome), "rank 1 on [^ ]+: it has left the cluster")})
     || Outcome <- proplists:get_all_values(call, Zero)],
    ?assertEqual({ok, ok}, proplists:get_value(leave, One)).

%% Rank 1 is alive and does not call: the call ends by its own time, and the job with it.
waits(Folder) ->
    {Cluster, Rank} = join(#{call_timeout => 3000, deadline => 60000}),
    case Rank of
        0 ->
            [attempt(call, fun() -> call(Cluster, Rank) end) || _ <- [1, 2]],
            ok = write(done);
        1 -> until(fun() -> lists:member(done, lists:append(written(Folder, 0))) end)
    end,
    erlang:halt(7).

waits_test_on(Folder) ->
    {Status, _, [Zero, One]} = mpirun(2, waits, Folder),
    ?assertNotEqual(0, Status),
    [?assertMatch({{unavailable, _}, {match, _}}, {Outcome, re:run(element(2, Outcome), "rank 1 on [^ ]+ did not make the same call before the deadline")})
     || Outcome <- proplists:get_all_values(call, Zero)],
    gone(pids([Zero, One])).

pids(Ranks) -> [Pid || All <- Ranks, {pid, Pid} <- All].

%% Rank 1 is stopped: rank 0 learns it after the deadline, lives on, and ends the job by its status.
stops(_) ->
    {Cluster, Rank} = join(#{deadline => 4000}),
    attempt(before, fun() -> call(Cluster, Rank) end),
    case Rank of
        0 ->
            attempt(call, fun() -> call(Cluster, Rank) end),
            attempt(alive, fun() -> tessera:to_list(tessera:add(tessera:tensor([1, 2]), 1)) end),
            attempt(down, fun() -> maps:get(state, tessera_cluster:info(Cluster)) end),
            attempt(leave, fun() -> tessera_cluster:leave(Cluster) end),
            erlang:halt(5);
        1 -> stop()
    end.

%% Under load os:cmd may return before all threads of this node are stopped.
stop() ->
    _ = os:cmd("kill -STOP " ++ os:getpid()),
    receive after infinity -> ok end.

stops_test_on(Folder) ->
    {5, _, [Zero, One]} = mpirun(2, stops, Folder),
    has(call, unavailable, "rank 1 on [^ ]+ did not answer before the deadline", Zero),
    ?assertEqual({ok, [2, 3]}, proplists:get_value(alive, Zero)),
    ?assertEqual({ok, down}, proplists:get_value(down, Zero)),
    ?assertMatch({ok, {error, {unavailable, _}}}, proplists:get_value(leave, Zero)),
    gone(pids([Zero, One])).

%% Rank 1 is stopped before it leaves, or while it waits for rank 0 to leave: rank 0 learns it after the deadline.
stops_before(_) -> stops_leaving(fun(_) -> ok end).

stops_meanwhile(_) ->
    stops_leaving(fun(Cluster) ->
                          _ = spawn(fun() -> tessera_cluster:leave(Cluster) end),
                          until(fun() -> maps:get(state, tessera_cluster:info(Cluster)) =:= left end),
                          timer:sleep(500)
                  end).

stops_leaving(First) ->
    {Cluster, Rank} = join(#{deadline => 4000}),
    attempt(before, fun() -> call(Cluster, Rank) end),
    case Rank of
        0 ->
            until(fun() -> is_stopped(lists:append(written(get(folder), 1))) end),
            attempt(leave, fun() -> tessera_cluster:leave(Cluster) end),
            attempt(alive, fun() -> tessera:to_list(tessera:add(tessera:tensor([1, 2]), 1)) end),
            erlang:halt(5);
        1 ->
            First(Cluster),
            ok = write(stops),
            stop()
    end.

%% Whether all threads of the rank that has written this are stopped.
is_stopped(Written) ->
    lists:member(stops, Written)
        andalso lists:all(fun(Task) ->
                                  {ok, Stat} = file:read_file(Task),
                                  binary:match(Stat, <<") T ">>) =/= nomatch
                          end, filelib:wildcard("/proc/" ++ binary_to_list(proplists:get_value(pid, Written)) ++ "/task/*/stat")).

stops_leaving_test_on(Function, Folder) ->
    {5, _, [Zero, One]} = mpirun(2, Function, Folder),
    {ok, {error, {unavailable, Text}}} = proplists:get_value(leave, Zero),
    ?assertMatch({match, _}, re:run(Text, "rank 1 on [^ ]+ did not answer before the deadline")),
    ?assertEqual({ok, [2, 3]}, proplists:get_value(alive, Zero)),
    gone(pids([Zero, One])).

%% Rank 1 is killed: mpirun ends the others.
dies(_) ->
    {Cluster, Rank} = join(#{deadline => 4000}),
    attempt(before, fun() -> call(Cluster, Rank) end),
    case Rank of
        1 -> os:cmd("kill -KILL " ++ os:getpid());
        _ -> call(Cluster, Rank)
    end.

dies_test_on(Folder) ->
    {Status, _, Ranks} = mpirun(3, dies, Folder),
    ?assertNotEqual(0, Status),
    ?assertMatch([_, _, _], pids(Ranks)),
    gone(pids(Ranks)).

%% The program fails on rank 1: an error of the whole job.
fails(_) ->
    {Cluster, Rank} = join(#{}),
    attempt(before, fun() -> call(Cluster, Rank) end),
    Rank =:= 1 andalso error(this_program_fails),
    call(Cluster, Rank).

fails_test_on(Folder) ->
    {Status, Output, Ranks} = mpirun(3, fails, Folder),
    ?assertNotEqual(0, Status),
    ?assertMatch({match, _}, re:run(Output, "this_program_fails")),
    gone(pids(Ranks)).

%% Nodes that stop leave the cluster first.
ends(_) ->
    {Cluster, Rank} = join(#{}),
    attempt(call, fun() -> call(Cluster, Rank) end).

ends_test_on(Folder) ->
    {0, _, Ranks} = mpirun(3, ends, Folder),
    ?assertEqual([{ok, [3.0]} || _ <- Ranks], [Outcome || All <- Ranks, {call, Outcome} <- All]),
    gone(pids(Ranks)).

%% ---- without mpirun

%% The only rank of its cluster, which may be joined again.
alone(Folder) ->
    [begin
         {Cluster, 0} = join(#{devices => 2}),
         ok = write({info, tessera_cluster:info(Cluster)}),
         F = sums(Cluster, 2),
         attempt(call, fun() -> [tessera:to_list(Y) || Y <- F([[tessera:tensor([I])] || I <- [1.0, 2.0]])] end),
         attempt(argument, fun() -> F([[nonsense], [1]]) end),
         attempt(mesh, fun() -> sums(Cluster, 3) end),
         attempt(map, fun() -> ok = tessera_cluster:noop(Cluster), tessera_cluster:map(Cluster, fun(0) -> alone end) end),
         attempt(map_fails, fun() -> tessera_cluster:map(Cluster, fun(0) -> error({data_loss, <<"lost">>}) end) end),
         attempt(save, fun() ->
                     Path = filename:join(Folder, "model"),
                     ok = tessera_cluster:save(Path, tessera_cluster:put(Cluster, [{1, tessera:tensor([I])} || I <- [1, 2]])),
                     [{N, tessera:to_list(T), tessera:device(T)} || {N, T} <- tessera_cluster:load(Cluster, Path)]
                 end),
         attempt(twice, fun() -> tessera_cluster:join(#{}) end),
         attempt(leave, fun() -> tessera_cluster:leave(Cluster) end),
         ok = tessera_cluster:stop(Cluster)
     end || _ <- [first, second]].

alone_test_on(Folder) ->
    {0, _} = process(erl(), arguments(alone, Folder), []),
    [All] = written(Folder, 0),
    ?assertMatch(#{rank := 0, ranks := [#{rank := 0, devices := 2}], mpi := none, state := up}, proplists:get_value(info, All)),
    ?assertEqual({ok, [[3.0], [3.0]]}, proplists:get_value(call, All)),
    ?assertEqual({ok, [alone]}, proplists:get_value(map, All)),
    ?assertEqual({data_loss, <<"lost">>}, proplists:get_value(map_fails, All)),
    ?assertEqual([{ok, [{1, [1], {host, 0}}, {1, [2], {host, 1}}]} || _ <- [first, second]], proplists:get_all_values(save, All)),
    has(argument, invalid_argument, "nonsense", All),
    has(mesh, invalid_argument, "the cluster has 1 ranks of 2 devices", All),
    ?assertMatch({ok, {error, {failed_precondition, <<"this node has joined", _/binary>>}}}, proplists:get_value(twice, All)),
    ?assertEqual([{ok, ok}, {ok, ok}], proplists:get_all_values(leave, All)).

refused(_) ->
    put(rank, 0),
    {error, Error} = tessera_cluster:join(#{}),
    write({refused, Error}).

%% A build without MPI, under a launcher.
no_library(Folder) ->
    Real = filename:absname(filename:dirname(code:which(tessera))),
    Priv = filename:join(Folder, "priv"),
    ok = file:make_dir(Priv),
    ok = file:make_symlink(Real, filename:join(Folder, "ebin")),
    ok = file:make_symlink(filename:absname(tessera_library:path() ++ ".so"), filename:join(Priv, "tessera_nif.so")),
    {0, _} = process(erl(), arguments(refused, Folder, filename:join(Folder, "ebin")), [{"OMPI_COMM_WORLD_SIZE", "2"}]),
    has(refused, failed_precondition, "OMPI_COMM_WORLD_SIZE=2.*tessera_mpi.so is not there: Tessera was built without Open MPI", hd(written(Folder, 0))).

%% Both ranks learn the rank that differs. If MPI reports it, MPI is not finalized, and the job fails.
differs(Folder) ->
    put(rank, os:getenv("OMPI_COMM_WORLD_RANK")),
    Result = tessera_cluster:join(#{}),
    ok = file:write_file(filename:join(Folder, get(rank)), io_lib:format("~0p.~n", [Result])),
    halt(1).

differs_test_on(Folder) ->
    {Ebin, _} = tessera_cluster_tests:other_build(Folder),
    %% Debian 13's mpirun crashes when it is given two programs.
    Script = filename:join(Folder, "either"),
    ok = file:write_file(Script, ["#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] && exec", command(arguments(differs, Folder)),
                                  "\nexec", command(arguments(differs, Folder, Ebin)), "\n"]),
    ok = file:change_mode(Script, 8#700),
    {_, Output} = launched(2, Script, []),
    Said = written(Folder, 0) ++ written(Folder, 1),   % the first one that ends may end the other
    ?assertNotEqual({[], Output}, {Said, Output}),
    [begin
         [{error, {failed_precondition, Text}}] = Terms,
         ?assertMatch({match, _}, re:run(Text, "^rank 1 on [^ ]+ has another build of Tessera's C libraries than rank 0 on "))
     end || Terms <- Said].

command(Arguments) -> [[" '", Word, "'"] || Word <- [erl() | Arguments]].

%% Each process would be the only rank of a job of its own.
unknown_launcher(Folder) ->
    {0, _} = process(erl(), arguments(refused, Folder), [{"SLURM_STEP_NUM_TASKS", "3"}]),
    has(refused, failed_precondition, "SLURM_STEP_NUM_TASKS is 3, but to Open MPI .* this is the only process", hd(written(Folder, 0))).

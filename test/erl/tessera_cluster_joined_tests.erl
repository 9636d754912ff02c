%% Clusters without a driver: programs that mpirun starts, whose processes join. Each test starts real jobs on this host; a process
%% runs a function of this module, and writes what it has found into a file of its own.
-module(tessera_cluster_joined_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [launchers/0, gone/1, in_folder/1, until/1]).
-export([main/1]).
%% For other modules of tests.
-export([program/3]).
%% What the processes run.
-export([errors/1, bits/1, leaves/1, waits/1, stops/1, dies/1, fails/1, ends/1, alone/1, refused/1]).

-define(WITHIN, 600000).
%% Variables by which a process could take itself for a rank.
-define(LAUNCHED, ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "PMIX_RANK"]).

%% ---- jobs

jobs_test_() ->
    [{lists:concat([Name]), {timeout, 240, in_folder(Test)}}
     || Launcher <- launchers(), Launcher =/= none,
        {Name, Test} <- [{"errors that the job survives", fun errors_test_on/1}, {"the bits of one node", fun bits_test_on/1},
                         {"a rank that leaves early", fun leaves_test_on/1}, {"a rank that never calls", fun waits_test_on/1},
                         {"a stopped rank", fun stops_test_on/1}, {"a killed rank", fun dies_test_on/1},
                         {"a program that fails", fun fails_test_on/1}, {"nodes that end", fun ends_test_on/1},
                         {"a launcher that MPI does not know", fun unknown_launcher/1}]].

alone_test_() -> [{"alone", {timeout, 120, in_folder(fun alone_test_on/1)}}, {"without the library", {timeout, 120, in_folder(fun no_library/1)}}].

options_test() ->
    [?assertMatch({error, {invalid_argument, <<"tessera_cluster: ", _/binary>>}}, tessera_cluster:join(Options))
     || Options <- [#{ranks => 2}, #{devices => 0}, #{devices => 65}, #{threads => none}, #{memory_limit => 0}, #{deadline => 1}, #{call_timeout => 0},
                    #{call_timeout => never}, #{start_timeout => infinity}, #{name => "a"}, [a], [{devices, 1} | b], 7]].

%% So many ranks run a function: mpirun's status, what it printed, and what each rank has written, in the order of ranks.
mpirun(Ranks, Function, Folder) ->
    {Status, Output} = launched(Ranks, arguments(Function, Folder)),
    {Status, Output, [Term || Rank <- lists:seq(0, Ranks - 1), Term <- written(Folder, Rank)]}.

launched(Ranks, Arguments) ->
    {ok, {Mpirun, Major}} = tessera_cluster_command:version("mpirun"),
    Shared = case Major of 4 -> "vader"; 5 -> "sm" end,
    process(Mpirun, ["-np", integer_to_list(Ranks), "--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self," ++ Shared,
                     erl() | Arguments], []).

%% The status and the output of so many ranks with these arguments of erl, and modules in the folder; 0: of one process without mpirun.
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

%% ---- what a process does

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
    tessera:shard_map(fun(X) -> tessera:all_reduce(X, sum, 0) end, #{shape => {Ranks}}, [#{0 => [0]}], #{0 => [0]}, #{client => Cluster}).

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
    attempt(programs, fun() -> (Own(Sums, on_parts(fun(X) -> tessera:all_reduce(X, max, 0) end)))(One) end),
    attempt(no_collective, fun() -> (on_parts(Own(fun tessera:sin/1, fun tessera:cos/1)))(One) end),
    attempt(shapes, fun() -> Sums([[tessera:zeros({Own(1, 2)})]]) end),
    attempt(argument, fun() -> Sums(Own(One, [[nonsense]])) end),
    attempt(lists, fun() -> Sums(Own(One, One ++ One)) end),
    attempt(mesh, fun() -> sums(joined, 3) end),
    attempt(devices, fun() -> sums(joined, 4) end),
    attempt(map, fun() -> tessera_cluster:map(joined, fun(R) -> R end) end),
    attempt(sum, Sum),
    #{live := Live} = tessera:memory(),
    Large = on_parts(fun(X) -> tessera:all_reduce(tessera:sort(tessera:broadcast(X, {1000000})), max, 0) end),
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

%% On rank 0 a caller is killed that waits for rank 1.
dead_caller(0, Sums, One) ->
    {Caller, Monitor} = spawn_monitor(fun() -> Sums(One) end),
    until(fun() -> erlang:process_info(Caller, status) =:= {status, waiting} end),
    timer:sleep(300),
    exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, _} -> ok end;
dead_caller(1, Sums, One) ->
    timer:sleep(2000),
    attempt(caller, fun() -> Sums(One) end).

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
     {map, unimplemented, "has joined the cluster as one of its ranks"},
     {memory, resource_exhausted, Others(1, "")},
     {left, unavailable, "this rank has left the cluster"}].

has(Key, Code, Text, All) ->
    ?assertMatch({Key, {Code, _}}, lists:keyfind(Key, 1, All)),
    {Key, {Code, Said}} = lists:keyfind(Key, 1, All),
    ?assertMatch({{match, _}, _}, {re:run(Said, Text, [dotall]), Said}).

%% The same programs on 1, 2 and 4 ranks, and on the devices of this node.
bits(_) ->
    {Cluster, Rank} = join(#{devices => 4}),
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    Each = 4 div length(Ranks),
    [write({Rank * Each + I, Results}) || {I, Results} <- lists:zip(lists:seq(0, Each - 1), results(Cluster, Rank * Each, Each))],
    tessera_cluster:leave(Cluster).

%% For each of these partitions the digests of its results.
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
        1 -> os:cmd("kill -STOP " ++ os:getpid())
    end.

stops_test_on(Folder) ->
    {5, _, [Zero, One]} = mpirun(2, stops, Folder),
    has(call, unavailable, "rank 1 on [^ ]+ did not answer before the deadline", Zero),
    ?assertEqual({ok, [2, 3]}, proplists:get_value(alive, Zero)),
    ?assertEqual({ok, down}, proplists:get_value(down, Zero)),
    ?assertMatch({ok, {error, {unavailable, _}}}, proplists:get_value(leave, Zero)),
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

%% The program fails on rank 1, which is an error of the whole job.
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
alone(_) ->
    [begin
         {Cluster, 0} = join(#{devices => 2}),
         ok = write({info, tessera_cluster:info(Cluster)}),
         F = sums(Cluster, 2),
         attempt(call, fun() -> [tessera:to_list(Y) || Y <- F([[tessera:tensor([I])] || I <- [1.0, 2.0]])] end),
         attempt(argument, fun() -> F([[nonsense], [1]]) end),
         attempt(mesh, fun() -> sums(Cluster, 3) end),
         attempt(twice, fun() -> tessera_cluster:join(#{}) end),
         attempt(leave, fun() -> tessera_cluster:leave(Cluster) end),
         ok = tessera_cluster:stop(Cluster)
     end || _ <- [first, second]].

alone_test_on(Folder) ->
    {0, _} = process(erl(), arguments(alone, Folder), []),
    [All] = written(Folder, 0),
    ?assertMatch(#{rank := 0, ranks := [#{rank := 0, devices := 2}], mpi := none, state := up}, proplists:get_value(info, All)),
    ?assertEqual({ok, [[3.0], [3.0]]}, proplists:get_value(call, All)),
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
    ok = file:make_symlink(tessera_library:path() ++ ".so", filename:join(Priv, "tessera_nif.so")),
    {0, _} = process(erl(), arguments(refused, Folder, filename:join(Folder, "ebin")), [{"OMPI_COMM_WORLD_SIZE", "2"}]),
    has(refused, failed_precondition, "OMPI_COMM_WORLD_SIZE=2.*tessera_mpi.so is not there: Tessera was built without Open MPI", hd(written(Folder, 0))).

%% Each process would be the only rank of a job of its own.
unknown_launcher(Folder) ->
    {0, _} = process(erl(), arguments(refused, Folder), [{"SLURM_STEP_NUM_TASKS", "3"}]),
    has(refused, failed_precondition, "SLURM_STEP_NUM_TASKS is 3, but to Open MPI .* this is the only process", hd(written(Folder, 0))).

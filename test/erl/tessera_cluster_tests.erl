%% Clusters: the handshake, the control plane and its faults. Ranks are started directly, and by mpirun where it is installed; some
%% tests put a script in the place of mpirun, which starts the ranks when it is told to.
-module(tessera_cluster_tests).
-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").
-export([driver/1]).
%% For other modules of tests.
-export([launchers/0, started/2, pids/1, stop/2, signal/2, is_running/1, gone/1, on_ranks/2, busy/1, runs_of/1, listening/1, fake/3, ranks/2, script/3, connect/2,
         refused/3, refused/4, other_build/1]).
-import(tessera_test, [in_folder/1, until/1]).

%% Milliseconds for steps that take far less on an idle machine.
-define(WITHIN, 240000).

%% ---- pure parts

handshake_test() ->
    Key = tessera_cluster_wire:key(),
    [Driver, Rank] = [tessera_cluster_wire:nonce() || _ <- [1, 2]],
    Ticket = tessera_cluster_wire:ticket(Key),
    ?assertEqual(ok, tessera_cluster_wire:check_ticket(Key, Ticket)),
    ?assertNotEqual(Ticket, tessera_cluster_wire:ticket(Key)),
    [?assertEqual(error, tessera_cluster_wire:check_ticket(Key, Wrong))
     || Wrong <- [<<>>, flipped(Ticket, 0), flipped(Ticket, 20), flipped(Ticket, byte_size(Ticket) - 1), <<Ticket/binary, 0>>,
                  tessera_cluster_wire:ticket(tessera_cluster_wire:key())]],
    ?assertEqual({ok, Driver}, tessera_cluster_wire:read_greeting(tessera_cluster_wire:greeting(Driver))),
    ?assertEqual(error, tessera_cluster_wire:read_greeting(<<"tessera cluster 0\n", Driver/binary>>)),
    Hello = iolist_to_binary(tessera_cluster_wire:hello(Key, Driver, Rank, #{rank => 1})),
    ?assertEqual({ok, Rank, #{rank => 1}}, tessera_cluster_wire:read_hello(Key, Driver, Hello)),
    Config = iolist_to_binary(tessera_cluster_wire:config(Key, Driver, Rank, #{deadline => 7})),
    ?assertEqual({ok, #{deadline => 7}}, tessera_cluster_wire:read_config(Key, Driver, Rank, Config)),
    %% a recording, another key, the other side's proof, a changed byte, a part
    Other = tessera_cluster_wire:nonce(),
    ?assertEqual(error, tessera_cluster_wire:read_hello(Key, Other, Hello)),
    ?assertEqual(error, tessera_cluster_wire:read_hello(tessera_cluster_wire:key(), Driver, Hello)),
    ?assertEqual(error, tessera_cluster_wire:read_config(Key, Driver, Other, Config)),
    ?assertEqual(error, tessera_cluster_wire:read_config(Key, Driver, Rank, binary:part(Hello, 32, byte_size(Hello) - 32))),
    [?assertEqual(error, tessera_cluster_wire:read_hello(Key, Driver, flipped(Hello, At))) || At <- [0, 31, 32, 63, 64, byte_size(Hello) - 1]],
    [?assertEqual(error, tessera_cluster_wire:read_hello(Key, Driver, binary:part(Hello, 0, Size))) || Size <- [0, 1, 63, 64]].

flipped(Binary, At) ->
    <<Head:At/binary, Byte, Tail/binary>> = Binary,
    <<Head/binary, (Byte bxor 1), Tail/binary>>.

%% A rank of many starts MPI, too, which knows of one rank here. In a node of its own, which keeps its configuration.
many_ranks_test_() ->
    {timeout, 60, fun() ->
        Config = "#{rank => 0, ranks => 257, devices => 1, threads => 1, deadline => 6000}",
        Eval = "os:putenv(\"OMPI_COMM_WORLD_SIZE\", \"257\"), io:format(\"~w.~n\", [tessera_rank_work:configure(" ++ Config ++ ")]), halt(0).",
        {Configured, _} = tessera_test:answer(tessera_test:vm([], Eval, [])),
        case filelib:is_regular(tessera_rank_work:mpi()) of
            true ->
                {error, #{code := failed_precondition, message := Text}} = Configured,
                ?assertNotEqual(nomatch, string:find(Text, " says that this is rank 0 of 1: "));
            false -> ?assertMatch({ok, #{mpi := none, devices := 1}}, Configured)
        end
    end}.

%% Another node's atoms are not made here.
safe_test() ->
    ?assertEqual(error, tessera_cluster_wire:decode(<<131, 119, 21, "tessera_atom_unheard_">>)),
    [?assertEqual(error, tessera_cluster_wire:decode_message(Text)) || Text <- [<<>>, <<0, 131>>, <<1, 0>>, <<4, 1:32, 9:64>>]].

options_test() ->
    Refused = fun(Options) ->
                      {error, {invalid_argument, Text}} = tessera_cluster:start_link(Options),
                      binary_to_list(Text)
              end,
    ?assertMatch("tessera_cluster: the option ranks is missing", Refused(#{})),
    ?assertMatch("tessera_cluster: unknown option rank, the options are [" ++ _, Refused(#{ranks => 2, rank => 2})),
    [?assertMatch("tessera_cluster: the option " ++ _, Refused(#{ranks => 2, Name => Value}))
     || {Name, Value} <- [{ranks, 0}, {ranks, 4097}, {ranks, two}, {devices, 0}, {devices, 65}, {threads, 0}, {memory_limit, 0}, {deadline, 99},
                          {start_timeout, -1}, {mpirun, ""}, {mpirun, [0]}, {hosts, [""]}, {hosts, [{"a", 0}]}, {hosts, ["a" | b]},
                          {hosts, ["a"]}, {mca, [{"a", 1}]}, {env, [a]}, {listen, {1, 2}}, {listen, "127.0.0.1"}, {restarts, 3},
                          {restarts, {1, 0}}, {name, "a"}, {directory, 1}, {max_message, 1}]],
    ?assertMatch("tessera_cluster: expected a map" ++ _, Refused([{ranks, 2} | a])).

command_test_() -> in_folder(fun command/1).

%% The command line of mpirun, for both versions: ranks share no core, and it has no secret.
command(Folder) ->
    [begin
         Fake = script(Folder, "fake", ["echo 'mpirun (Open MPI) ", Version, "'"]),
         {ok, Options} = tessera_cluster_options:check(#{ranks => 3, mpirun => Fake, threads => 2, hosts => ["a", {"b", 2}], listen => {10, 0, 0, 1},
                                                          mca => [{"pml", "ucx"}], env => [{"OMP_NUM_THREADS", "1"}]}),
         Place = #{address => {10, 0, 0, 1}, port => 99, key_file => "/a/key", mark => "mark", own => "/own", shared => "/shared"},
         {ok, [{launcher, Fake, Args, Env}]} = tessera_cluster_command:commands(Options, Place),
         Line = unicode:characters_to_list(lists:join(" ", Args)),
         [?assertNotEqual(nomatch, string:find(Line, Part))
          || Part <- ["-np 3 ", "--bind-to none", "--mca pml ucx", ["--mca btl self,", Memory, ",tcp"], ["--mca btl_", Memory, "_backing_directory /shared"], "--host a,b:2", "-x OMP_NUM_THREADS",
                      "+S 2:2", "tessera_rank main 10.0.0.1 99 /a/key"]],
         ?assertEqual("1", proplists:get_value("OMP_NUM_THREADS", Env)),
         ?assertEqual(false, proplists:get_value("ERL_AFLAGS", Env))
     end || {Version, Memory} <- [{"4.1.4", "vader"}, {"5.0.7", "sm"}]].

%% ---- clusters

cluster_test_() ->
    [{lists:concat([Name, " by ", case Launcher of none -> "itself"; _ -> Launcher end]), {timeout, 120, fun() -> Test(Launcher) end}}
     || Launcher <- launchers(),
        {Name, Test} <- [{"calls", fun calls/1}, {"killed rank", fun killed/1}, {"stopped rank", fun stopped/1},
                         {"killed driver", fun killed_driver/1}, {"dead caller", fun dead_caller/1}, {"large messages", fun large/1}]].

%% Without mpirun the same tests run on ranks that are started directly. With a sanitizer, which sees C and no Erlang, they run once.
launchers() ->
    case {os:find_executable("mpirun"), os:getenv("TESSERA_CI")} of
        {false, Ci} when Ci =:= false; Ci =:= "" ->
            io:format(user, "clusters by mpirun are not tested: no mpirun here (./setup --mpi)~n", []),
            [none];
        _ -> [none || os:getenv("TESSERA_SANITIZER") =:= false] ++ ["mpirun"]
    end.

started(Launcher, Options) ->
    {ok, _} = application:ensure_all_started(tessera),
    {ok, Cluster} = tessera_cluster:start_link(maps:merge(#{ranks => 2, mpirun => Launcher}, Options)),
    {Cluster, pids(Cluster)}.

pids(Cluster) -> [Pid || #{os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))].

stop(Cluster, Pids) ->
    ok = tessera_cluster:stop(Cluster),
    [?assertNot(is_running(Pid)) || Pid <- Pids].

%% A process that has ended may still be listed, as Z or X, until its parent has read its status.
is_running(Pid) -> not lists:member(status(Pid), ["", "Z", "X"]).

%% The letter of the kernel, "" for a missing process. The program ps hangs where a sanitizer is preloaded.
status(Pid) ->
    case file:read_file("/proc/" ++ binary_to_list(Pid) ++ "/stat") of
        {ok, Text} ->
            <<" ", State, _/binary>> = lists:last(binary:split(Text, <<")">>, [global])),
            [State];
        {error, _} -> ""
    end.

signal(Name, Pid) -> "" = os:cmd("kill -" ++ Name ++ " " ++ binary_to_list(Pid)).

calls(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 3, devices => 2, threads => 1, memory_limit => 1 bsl 28, name => tessera_cluster_test}),
    ?assertEqual([ok, ok, ok], tessera_cluster:call(tessera_cluster_test, noop)),
    ?assertEqual(Pids, [list_to_binary(Pid) || Pid <- on_ranks(Cluster, fun os:getpid/0)]),
    ?assertEqual([0.0, 2.0, 4.0], tessera_cluster:map(Cluster, fun(Rank) -> tessera:to_number(tessera:multiply(2.0, Rank)) end)),
    ?assertEqual([nonode@nohost], lists:usort(on_ranks(Cluster, fun erlang:node/0))),
    ?assertEqual([2], lists:usort(on_ranks(Cluster, fun() -> tessera_nif:client_devices(host) end))),
    ?assertEqual([1 bsl 28], lists:usort(on_ranks(Cluster, fun() -> maps:get(limit, tessera:memory()) end))),
    ?assertMatch(#{state := up, restarts := 0, last_error := none,
                   ranks := [#{rank := 0, devices := 2, threads := 1}, #{rank := 1}, #{rank := 2, sent_bytes := Sent, heard_ms := _, mpi_sent_bytes := _, mpi_received_bytes := _, memory := #{vm := _, live := _}}]}
                   when Sent > 0, tessera_cluster:info(Cluster)),
    %% an error of one rank, a rank that knows an atom that this node does not
    ?assertError({out_of_range, <<"rank 1 on ", _/binary>>},
                 on_ranks(Cluster, fun() -> [error({out_of_range, <<"here">>}) || os:getenv("TESSERA_RANK", os:getenv("OMPI_COMM_WORLD_RANK")) =:= "1"] end)),
    ?assertError({failed_precondition, <<"the reply of rank 0 on ", _/binary>>},
                 on_ranks(Cluster, fun() -> list_to_atom("unheard_of_" ++ os:getpid()) end)),
    ?assertEqual({error, {failed_precondition, <<"the name tessera_cluster_test is taken">>}},
                 tessera_cluster:start_link(#{ranks => 1, mpirun => none, name => tessera_cluster_test})),
    {Second, Others} = started(Launcher, #{ranks => 1}),
    ?assertEqual([ok], tessera_cluster:call(Second, noop)),
    stop(Second, Others),
    ?assertEqual([ok, ok, ok], tessera_cluster:call(Cluster, noop)),
    stop(Cluster, Pids),
    ?assertError({unavailable, _}, tessera_cluster:call(Cluster, noop)).

on_ranks(Cluster, F) -> tessera_cluster:call(Cluster, {apply, term_to_binary(F), term_to_binary([]), {}}).

%% A process whose call keeps all ranks busy, and its monitor. Returns when they are busy.
busy(Cluster) ->
    Work = fun() -> register(tessera_cluster_test_work, self()), timer:sleep(600000) end,
    {Caller, Monitor} = spawn_monitor(fun() -> on_ranks(Cluster, Work) end),
    until(fun() -> lists:all(fun(Works) -> Works end, works(Cluster)) end),
    {Caller, Monitor}.

works(Cluster) -> on_ranks(Cluster, fun() -> is_pid(whereis(tessera_cluster_test_work)) end).

%% Runs that are on their way, as the process that sends them knows.
runs_of(Cluster) ->
    #{queue := Queue} = tessera_cluster_state:connections(Cluster),
    maps:keys(element(4, sys:get_state(Queue))).

%% A caller that waits gets an error with the rank and its host; the next call finds the cluster started again.
killed(Launcher) ->
    {Cluster, [_, Second] = Pids} = started(Launcher, #{}),
    {Caller, Monitor} = busy(Cluster),
    signal("KILL", Second),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} ->
            ?assertMatch({match, _}, re:run(Text, "^rank 1 on [^ ]+: its connection was closed"))
    end,
    ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)),
    gone(Pids),
    ?assertMatch(#{restarts := 1, last_error := {unavailable, <<"rank 1 on ", _/binary>>}}, tessera_cluster:info(Cluster)),
    stop(Cluster, pids(Cluster)).

%% Too many restarts end the cluster, and only the cluster.
stopped(Launcher) ->
    process_flag(trap_exit, true),
    {Cluster, [First, _] = Pids} = started(Launcher, #{deadline => 3000, restarts => {0, 60}}),
    {Caller, Monitor} = busy(Cluster),
    signal("STOP", First),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} ->
            ?assertMatch({match, _}, re:run(Text, "^rank 0 on [^ ]+: nothing was heard of it for 3000 ms$"))
    end,
    receive {'EXIT', Cluster, Reason} -> ?assertMatch({shutdown, {lost, #{message := <<"rank 0 on ", _/binary>>}}}, Reason)
    after ?WITHIN -> error(cluster_lives)
    end,
    gone(Pids),
    process_flag(trap_exit, false).

gone(Pids) -> gone(Pids, erlang:monotonic_time(millisecond) + ?WITHIN).

gone(Pids, Until) ->
    case lists:filter(fun is_running/1, Pids) of
        [] -> ok;
        Left ->
            ?assert(erlang:monotonic_time(millisecond) < Until),
            timer:sleep(50),
            gone(Left, Until)
    end.

killed_driver(Launcher) ->
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noshell", "-noinput" | tessera_test:paths()] ++ ["-run", atom_to_list(?MODULE), "driver", atom_to_list(maybe_atom(Launcher))]},
                      {line, 1000}, exit_status]),
    Pids = receive {Port, {data, {eol, "ranks " ++ Line}}} -> [list_to_binary(Pid) || Pid <- string:lexemes(Line, " ")]
           after ?WITHIN * 2 -> error(no_driver)
           end,
    ?assertEqual([true, true], [is_running(Pid) || Pid <- Pids]),
    {os_pid, Driver} = erlang:port_info(Port, os_pid),
    signal("KILL", integer_to_binary(Driver)),
    gone(Pids).

maybe_atom(none) -> none;
maybe_atom(Text) -> list_to_atom(Text).

%% The program of the driver that is killed.
driver([Launcher]) ->
    {_, Pids} = started(case Launcher of "none" -> none; _ -> Launcher end, #{}),
    io:format("ranks ~s~n", [lists:join(" ", Pids)]),
    timer:sleep(infinity).

%% The rank ends the work of a dead caller.
dead_caller(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{}),
    {Caller, _} = busy(Cluster),
    exit(Caller, kill),
    until(fun() -> works(Cluster) =:= [false, false] end),
    stop(Cluster, Pids).

%% Both directions at once, with a deadline that a stalled socket would pass; then more than is allowed.
large(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{max_message => 1 bsl 25, deadline => 10000}),
    Bytes = rand:bytes(1 bsl 23),
    Echo = fun(Sent) -> Sent end,
    ?assertEqual([Bytes, Bytes], tessera_cluster:map(Cluster, fun(_, Sent) -> Echo(Sent) end, [Bytes, Bytes])),
    ?assertEqual([Bytes, Bytes], tessera_cluster:call(Cluster, {apply, term_to_binary(Echo), term_to_binary([Bytes]), {}})),   % in one binary
    ?assertError({resource_exhausted, <<"rank 0 on ", _/binary>>}, on_ranks(Cluster, fun() -> rand:bytes((1 bsl 25) + 1) end)),
    ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)),
    ?assertMatch(#{last_error := none, restarts := 0}, tessera_cluster:info(Cluster)),
    stop(Cluster, Pids).

%% ---- sharded programs, which need MPI

sharded_test_() ->
    [{lists:concat([Name, " by ", Launcher]), {timeout, 200, fun() -> Test(Launcher) end}}
     || Launcher <- launchers(), Launcher =/= none,
        {Name, Test} <- [{"bits", fun same_bits/1}, {"refusals", fun refusals/1}, {"memory", fun little_memory/1},
                         {"a function of defn", fun defn/1}, {"a rank killed in a run", fun killed_in_run/1}]].

%% A layer and its gradient, data-parallel over one axis and the contraction split over another: collectives in and across ranks. The
%% mesh fixes the bits, for any number of ranks and devices of a rank.
same_bits(Launcher) ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(tessera_cluster_host, #{device_count => 4}),
    Here = results(tessera_cluster_host),
    ?assertEqual(4, length(Here)),
    [begin
         {Cluster, Pids} = started(Launcher, #{ranks => Ranks, devices => Devices, threads => 1, name => tessera_cluster_ranks}),
         ?assertEqual(Here, results(tessera_cluster_ranks)),
         ?assertEqual(Here, results(Cluster)),
         ?assertMatch([_ | _], binary_to_list(hd([Mpi || #{mpi := Mpi} <- maps:get(ranks, tessera_cluster:info(Cluster))]))),
         stop(Cluster, Pids)
     end || {Ranks, Devices} <- [{1, 4}, {2, 2}, {4, 1}]].

results(Client) ->
    F = tessera:shard_jit(tessera:value_and_grad(fun loss/2), #{shape => {2, 2}},
                          #{client => Client, input_shardings => [#{0 => [1], 1 => [0]}, #{0 => [0]}]}),
    [{tessera:to_binary(Loss), [tessera:to_binary(G) || G <- gradients(Gradient)]} || {Loss, Gradient} <- F(arguments())].

gradients(Gradient) when is_tuple(Gradient), element(1, Gradient) =/= tessera -> tuple_to_list(Gradient);
gradients(Gradient) -> [Gradient].

loss(W, X) -> tessera:sum(tessera:tanh(tessera:dot(X, W))).

%% Parts of w f32[16,12], which the axes 1 and 0 cut, and of x f32[10,16], whose rows axis 0 cuts; the values are
%% arbitrary.
arguments() -> [[counted({8, 6}, 7.0 + P), counted({5, 16}, 100.0 + P div 2)] || P <- [0, 1, 2, 3]].

counted({Rows, Columns} = Shape, By) ->
    tessera:reshape(tessera:tensor([I / By || I <- lists:seq(1, Rows * Columns)], f32), Shape).

refusals(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 2, devices => 2}),
    Sum = fun(Shape) -> tessera:shard_jit(fun(X) -> tessera:sum(X) end, #{shape => Shape}, #{client => Cluster, input_shardings => [#{0 => [0]}]}) end,
    [?assertError({invalid_argument, <<"shard_jit: the mesh has ", _, " partitions, and the cluster has 2 ranks of 2 devices", _/binary>>}, Sum({Size}))
     || Size <- [1, 3, 6]],
    F = Sum({4}),
    ?assertError({invalid_argument, _}, F([[tessera:tensor([1.0])]])),
    ?assertEqual([10.0, 10.0, 10.0, 10.0], [tessera:to_number(S) || S <- F([[tessera:tensor([float(I)])] || I <- [1, 2, 3, 4]])]),
    stop(Cluster, Pids),
    ?assertError({unavailable, _}, F([[tessera:tensor([float(I)])] || I <- [1, 2, 3, 4]])).

%% Elixir's shard_jit, with an expression as Nx makes it: x * sum(x) of a vector with parts on the ranks. Its axis is a vectorized
%% one, and Nx is not asked for its name.
defn(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 2, name => tessera_cluster_ranks}),
    X = nx(node, {4}, [parameter, [0]]),
    Vectorized = fun(T) -> T#{shape := {}, names := [], vectorized_axes := [{rows, 2}]} end,
    F = fun(_) -> nx(node, {4}, [multiply, [X, nx(node, {}, [sum, [X, [{axes, [0]}, {keep_axes, false}]]])]]) end,
    Run = fun(Client) ->
                  tessera_nx_compiler:shard_jit(F, #{'__struct__' => 'Elixir.Nx.Mesh', name => <<"mesh">>, shape => {2}}, [Vectorized(X)], F,
                                                   [[fun() -> Vectorized(nx(floats, {2}, [Numbers])) end] || Numbers <- [[1, 2], [3, 4]]],
                                                   [{client, Client}, {input_shardings, [#{rows => [0]}]}])
          end,
    Read = fun(#{data := #{buffer := Buffer}}) -> tessera_nx_buffer:read(Buffer) end,
    Expected = [<< <<(10.0 * I):32/float-native>> || I <- Part >> || Part <- [[1, 2], [3, 4]]],
    [begin
         Parts = Run(Client),
         ?assertEqual([{Client, 0}, {Client, 1}], [{Name, Device} || #{data := #{buffer := #{client_name := Name, device_id := Device}}} <- Parts]),
         ?assertEqual(Expected, [Read(Part) || Part <- Parts])
     end || Client <- [tessera_cluster_ranks, Cluster, Cluster]],
    %% parts stay on their ranks and are arguments there; ops of this node fetch them
    [First, Second] = Run(tessera_cluster_ranks),
    Twice = fun(_) -> nx(node, {4}, [add, [X, X]]) end,
    Again = tessera_nx_compiler:shard_jit(Twice, #{'__struct__' => 'Elixir.Nx.Mesh', name => <<"mesh">>, shape => {2}}, [Vectorized(X)], Twice,
                                             [[fun() -> Vectorized(Part) end] || Part <- [First, Second]],
                                             [{client, tessera_cluster_ranks}, {input_shardings, [#{rows => [0]}]}]),
    ?assertEqual([<<20.0:32/float-native, 40.0:32/float-native>>, <<60.0:32/float-native, 80.0:32/float-native>>], [Read(Part) || Part <- Again]),
    Sum = tessera_nx_eager:binary(add, nx_tensor({2}, nil), First, Second),
    ?assertEqual(<<40.0:32/float-native, 60.0:32/float-native>>, Read(Sum)),
    Default = tessera_nx_client:default_name(),
    ?assertMatch(#{data := #{buffer := #{client_name := Default, device_id := 0}}}, Sum),
    ?assertError(#{message := <<"tessera_cluster_ranks is a cluster, which only ", _/binary>>}, tessera_nx_client:'fetch!'(tessera_cluster_ranks)),
    stop(Cluster, Pids).

nx(node, Shape, [Op, Args]) ->
    nx_tensor(Shape, #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => Args, context => root});
nx(floats, Shape, [Numbers]) ->
    nx_tensor(Shape, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => << <<N:32/float-native>> || N <- Numbers >>}).

nx_tensor(Shape, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => {f, 32}, shape => Shape,
      names => lists:duplicate(tuple_size(Shape), nil), vectorized_axes => [], 'donatable?' => false}.

%% A rank without memory for its arguments, and then for a value of the program: the job lives.
little_memory(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 2, memory_limit => 1 bsl 24}),
    Sum = tessera:shard_jit(fun(X) -> tessera:sum(X) end, #{shape => {2}}, #{client => Cluster, input_shardings => [#{0 => [0]}]}),
    Large = tessera:shard_jit(fun(X) -> tessera:sum(tessera:sort(tessera:broadcast(X, {4000000, 2}))) end, #{shape => {2}},
                              #{client => Cluster, input_shardings => [#{0 => [0]}]}),
    Lists = fun(Elements) -> [[tessera:broadcast(1.0, {Elements})] || _ <- [1, 2]] end,
    Numbers = fun(Results) -> [tessera:to_binary(Result) || Result <- Results] end,
    ?assertError({resource_exhausted, <<_/binary>>}, Numbers(Sum(Lists(8000000)))),
    ?assertError({resource_exhausted, <<_/binary>>}, Numbers(Large(Lists(1)))),
    ?assertEqual([2000.0, 2000.0], [tessera:to_number(S) || S <- Sum(Lists(1000))]),
    ?assertEqual(Pids, pids(Cluster)),
    stop(Cluster, Pids).

%% The caller learns the lost rank; the next call finds new ranks, and sends them the program again.
killed_in_run(Launcher) ->
    {Cluster, [First, _] = Pids} = started(Launcher, #{ranks => 2}),
    Long = tessera:shard_jit(fun(X) ->
                                     tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 2000000000) end,
                                                   fun({I, Y}) -> {tessera:add(I, 1), tessera:add(Y, tessera:sum(Y))} end)
                             end, #{shape => {2}}, #{client => Cluster, input_shardings => [#{0 => [0]}]}),
    Sum = tessera:shard_jit(fun(X) -> tessera:sum(X) end, #{shape => {2}}, #{client => Cluster, input_shardings => [#{0 => [0]}]}),
    Arguments = [[tessera:tensor([0.0])], [tessera:tensor([0.0])]],
    ?assertEqual([0.0, 0.0], [tessera:to_number(S) || S <- Sum(Arguments)]),
    {Caller, Monitor} = spawn_monitor(fun() -> [tessera:to_list(Number) || {Number, _} <- Long(Arguments)] end),
    until(fun() -> runs_of(Cluster) =/= [] end),
    timer:sleep(500),
    signal("KILL", First),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} ->
            ?assertMatch({match, _}, re:run(Text, "rank [01] on [^ ]+: its connection was closed"))
    end,
    ?assertEqual([0.0, 0.0], [tessera:to_number(S) || S <- Sum(Arguments)]),
    gone(Pids),
    stop(Cluster, pids(Cluster)).

%% ---- errors

%% Each error has an error info that the shell and logger print, and no frame of Tessera's inside.
error_info_test_() -> {timeout, 60, in_folder(fun error_info/1)}.

error_info(Folder) ->
    {Cluster, Pids} = started(none, #{}),
    Tensor = hd(tessera_cluster:map(Cluster, fun(_) -> tessera:tensor(1.0) end)),
    ok = file:write_file(Folder ++ "/damaged", <<"tessera index 1\n0000">>),
    [with_info(Code, F)
     || {Code, F} <- [{unavailable, fun() -> tessera_cluster:map(no_cluster, fun(_) -> ok end) end},
                      {unavailable, fun() -> tessera_cluster:info(no_cluster) end},
                      {unavailable, fun() -> tessera_cluster:stop(no_cluster) end},
                      {invalid_argument, fun() -> tessera_cluster:info("cluster") end},
                      {invalid_argument, fun() -> tessera_cluster:map(Cluster, fun(_, _) -> ok end, [1]) end},
                      {invalid_argument, fun() -> tessera_cluster:put(Cluster, [Tensor | Tensor]) end},
                      {invalid_argument, fun() -> tessera_cluster:put(Cluster, [Tensor]) end},
                      {out_of_range, fun() -> tessera_cluster:map(Cluster, fun(_) -> error({out_of_range, <<"here">>}) end) end},
                      {invalid_argument, fun() -> tessera_cluster:save({no, path}, [Tensor, Tensor]) end},
                      {invalid_argument, fun() -> tessera_cluster:load(Cluster, 7.0) end},
                      {data_loss, fun() -> tessera_cluster:load(Cluster, Folder ++ "/damaged") end}]],
    stop(Cluster, Pids),
    with_info(unavailable, fun() -> tessera:to_list(Tensor) end),
    with_info(unavailable, fun() -> tessera_cluster:call(Cluster, noop) end).

with_info(Code, F) ->
    try F() of
        Result -> error({no_error, Code, Result})
    catch error:{Is, Message} = Reason:Trace ->
            [{_, _, _, Location} | Callers] = Trace,
            ?assertEqual({Code, Message}, {Is, Message}),
            #{module := Module} = proplists:get_value(error_info, Location),
            ?assertMatch(#{general := Message}, Module:format_error(Reason, Trace)),
            ?assertEqual([], [Frame || {Own, _, _, _} = Frame <- Callers, Own =/= ?MODULE, lists:prefix("tessera_cluster", atom_to_list(Own))]),
            ?assertNotEqual(nomatch, string:find(erl_error:format_exception(error, Reason, Trace), "*** "))
    end.

%% ---- starts that fail, and strangers

failing_test_() -> {timeout, 120, in_folder(fun failing/1)}.

failing(Folder) ->
    Start = fun(Options) ->
                    {error, {Code, Text}} = tessera_cluster:start_link(maps:merge(#{ranks => 2, directory => Folder}, Options)),
                    {Code, binary_to_list(Text)}
            end,
    ?assertMatch({failed_precondition, "there is no /no/mpirun here: install Open MPI" ++ _}, Start(#{mpirun => "/no/mpirun"})),
    Other = script(Folder, "other", ["echo HYDRA build details:"]),
    {failed_precondition, Version} = Start(#{mpirun => Other}),
    ?assertEqual(Other ++ " is not Open MPI 4.1 or 5.0: it says HYDRA build details:", Version),
    Fails = fake(Folder, "fails", ["echo there are not enough slots; exit 3"]),
    ?assertEqual({unavailable, Fails ++ " ended with status 3 before all ranks were ready: there are not enough slots"}, Start(#{mpirun => Fails})),
    Sleeps = fake(Folder, "sleeps", ["exec sleep 30"]),
    ?assertEqual({unavailable, "0 of 2 ranks were ready, and nothing came of the others for 3000 ms; 0 had joined; missing: rank 0, rank 1; 0 connections were refused"},
                 Start(#{mpirun => Sleeps, start_timeout => 3000})),
    ?assertMatch({unavailable, "no file for the key in " ++ _}, Start(#{mpirun => none, directory => "/proc/no"})),
    ?assertMatch({unavailable, "no socket on 192.0.2.1: " ++ _}, Start(#{mpirun => none, listen => {192, 0, 2, 1}})),
    %% no key is left, and nothing runs
    ?assertEqual(["fails", "other", "sleeps"], lists:sort(element(2, file:list_dir(Folder)))).

pauses_test_() -> {timeout, 120, in_folder(fun pauses/1)}.

%% Three starts after a rank's end fail at once: the fourth comes at least 0.5, 1 and 2 s later.
pauses(Folder) ->
    Counts = ["n=$(cat ", Folder, "/starts 2>/dev/null || echo 0); n=$((n + 1)); echo $n >", Folder, "/starts\n"],
    Fails = fake(Folder, "sometimes", [Counts, "[ $n -lt 2 ] || [ $n -gt 4 ] || exit 3\n", ranks(2, "")]),
    {Cluster, [First | _] = Pids} = started(Fails, #{directory => Folder, restarts => {4, 600}}),
    Began = erlang:monotonic_time(millisecond),
    signal("KILL", First),
    until(fun() -> maps:get(restarts, tessera_cluster:info(Cluster)) > 0 end),
    ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)),
    ?assert(erlang:monotonic_time(millisecond) - Began >= 3500),
    ?assertMatch(#{restarts := 4, state := up}, tessera_cluster:info(Cluster)),
    stop(Cluster, Pids ++ pids(Cluster)).

strangers_test_() -> {timeout, 120, in_folder(fun strangers/1)}.

%% While the socket listens: a scan, bytes of another protocol, an oversized frame, a wrong key, a replayed handshake. The start is not
%% disturbed. The key's file is for its owner alone; neither the file nor its contents are visible to other users.
strangers(Folder) ->
    Waits = fake(Folder, "waits", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args\n",
                                   "while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n", ranks(2, "")]),
    Self = self(),
    Starter = spawn_link(fun() ->
                                 {Cluster, Pids} = started(Waits, #{directory => Folder}),
                                 Self ! {self(), Cluster, Pids},
                                 receive stop -> stop(Cluster, Pids) end,
                                 Self ! {self(), stopped}
                         end),
    {Port, KeyFile} = listening(Folder),
    {ok, #file_info{mode = Mode}} = file:read_file_info(KeyFile),
    ?assertEqual(8#600, Mode band 8#777),
    {ok, #file_info{mode = FolderMode}} = file:read_file_info(filename:dirname(KeyFile)),
    ?assertEqual(8#700, FolderMode band 8#777),
    {ok, Key} = file:read_file(KeyFile),
    {ok, Args} = file:read_file(Folder ++ "/args"),
    [?assertEqual(nomatch, binary:match(Args, Secret)) || Secret <- [Key, binary:encode_hex(Key), base64:encode(Key)]],
    ok = gen_tcp:close(connect(Port, [])),
    refused(Port, [], <<"GET / HTTP/1.0\r\n\r\n">>),
    refused(Port, [], <<-1:32, 0:8000>>),
    refused(Port, [{packet, 4}], <<0:40000>>),
    Own = tessera_cluster_wire:hidden(Key),
    Hello = fun(With) -> iolist_to_binary(tessera_cluster_wire:hello(With, <<0:256>>, <<0:256>>, #{rank => 0, host => <<"a">>})) end,
    refused(Port, [{packet, 4}], Hello(Own)),
    refused(Port, [{packet, 4}], tessera_cluster_wire:ticket(tessera_cluster_wire:key())),
    refused(Port, tessera_cluster_wire:ticket(Own), <<>>, <<"GET / HTTP/1.0\r\n\r\n">>),
    refused(Port, tessera_cluster_wire:ticket(Own), {packet, 4}, <<0:40000>>),
    refused(Port, tessera_cluster_wire:ticket(Own), {packet, 4}, Hello(tessera_cluster_wire:key())),
    refused(Port, tessera_cluster_wire:ticket(Own), {packet, 4}, Hello(Own)),
    ok = file:write_file(Folder ++ "/go", <<>>),
    receive {Starter, Cluster, _} -> ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)) end,
    %% now nothing listens, and the key is gone
    ?assertEqual({error, econnrefused}, gen_tcp:connect({127, 0, 0, 1}, Port, [])),
    ?assertEqual({error, enoent}, file:read_file_info(filename:dirname(KeyFile))),
    Starter ! stop,
    receive {Starter, stopped} -> ok end.

connect(Port, Options) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false} | Options]),
    Socket.

%% A stranger gets nothing.
refused(Port, Options, Bytes) -> left(connect(Port, Options), Bytes).

%% The driver's greeting is all that one gets who repeats a ticket.
refused(Port, Ticket, Options, Bytes) ->
    Socket = connect(Port, [{packet, 4}]),
    ok = gen_tcp:send(Socket, Ticket),
    {ok, <<"tessera cluster 1\n", _:32/binary>>} = gen_tcp:recv(Socket, 0, ?WITHIN),
    ok = inet:setopts(Socket, case Options of <<>> -> [{packet, raw}]; _ -> [Options] end),
    left(Socket, Bytes).

left(Socket, Bytes) ->
    _ = gen_tcp:send(Socket, Bytes),
    _ = gen_tcp:shutdown(Socket, write),
    ?assertMatch({error, _}, gen_tcp:recv(Socket, 0, ?WITHIN)),
    ok = gen_tcp:close(Socket).

%% The port and the file with the key, from the arguments of the script.
listening(Folder) ->
    until(fun() -> filelib:is_regular(Folder ++ "/args") end),
    {ok, Args} = file:read_file(Folder ++ "/args"),
    {match, [Port, KeyFile]} = re:run(Args, "main 127\\.0\\.0\\.1 ([0-9]+) ([^ ]+)", [{capture, all_but_first, list}]),
    {list_to_integer(Port), KeyFile}.

liars_test_() -> {timeout, 120, in_folder(fun liars/1)}.

%% A process that has the key and another rank number or version than expected ends the start.
liars(Folder) ->
    Start = fun(Name, Lines) ->
                    {error, {unavailable, Text}} = tessera_cluster:start_link(#{ranks => 2, directory => Folder, mpirun => fake(Folder, Name, Lines)}),
                    binary_to_list(Text)
            end,
    [?assertMatch({match, _}, re:run(Start(Name, Lines), ["^a process on [^ ]+ says that it is rank ", Says]))
     || {Name, Lines, Says} <- [{"twice", ranks(2, "r=1"), "1: a process on [^ ]+ is that rank$"},
                                {"large", ranks(2, "r=$((r + 2))"), "[23]: the cluster has 2$"},
                                {"singles", ranks(2, "n=1"), "[01]: it belongs to 1 ranks and not to 2: "}]].

%% An application in the folder that has this one's modules, and another build of its C library: the folder of its modules, and the build.
other_build(Folder) ->
    {App, Priv} = {filename:join(Folder, "tessera"), filename:join([Folder, "tessera", "priv"])},
    ok = filelib:ensure_dir(filename:join(Priv, "any")),
    Ebin = filename:join(App, "ebin"),
    ok = file:make_symlink(filename:absname(filename:dirname(code:which(tessera))), Ebin),
    [ok = file:make_symlink(Mpi, filename:join(Priv, filename:basename(Mpi)))
     || Mpi <- [filename:join(filename:absname(filename:dirname(tessera_library:path())), "tessera_mpi.so")], filelib:is_regular(Mpi)],
    [Id, Llvm] = binary:split(tessera_nif:rank_build(), <<" ">>),
    {ok, Library} = file:read_file(tessera_library:path() ++ ".so"),
    <<First, Rest/binary>> = Bytes = binary:decode_hex(Id),
    [{At, Size}] = binary:matches(Library, Bytes),
    <<Before:At/binary, _:Size/binary, After/binary>> = Library,
    Changed = <<(First bxor 1), Rest/binary>>,
    ok = file:write_file(filename:join(Priv, "tessera_nif.so"), [Before, Changed, After]),
    {Ebin, <<(string:lowercase(binary:encode_hex(Changed)))/binary, " ", Llvm/binary>>}.

%% ---- scripts in the place of mpirun

%% A script that prints mpirun's version, and runs these lines when it should start ranks.
fake(Folder, Name, Lines) -> script(Folder, Name, ["[ \"$1\" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit; }\n", Lines]).

%% Starts ranks r of n, after Change; the arguments before the ranks' program are mpirun's.
ranks(Count, Change) ->
    ["until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n",
     "for r in ", lists:join(" ", [integer_to_list(Rank) || Rank <- lists:seq(0, Count - 1)]), "; do n=", integer_to_list(Count), "; ", Change,
     "\nTESSERA_RANK=$r TESSERA_RANKS=$n \"$@\" & done; wait\n"].

script(Folder, Name, Lines) ->
    Path = filename:join(Folder, Name),
    ok = file:write_file(Path, ["#!/bin/sh\n" | Lines]),
    ok = file:change_mode(Path, 8#700),
    Path.

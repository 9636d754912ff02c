%% How clusters start, and how starts end: names, options, what an error says, and that nothing is left of a start that failed. Scripts in the
%% place of mpirun and of ssh do what those do when something is wrong.
-module(tessera_cluster_start_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [started/2, stop/2, fake/3, script/3, ranks/2]).
-import(tessera_test, [in_folder/1, until/1]).
-export([held/2]).

-define(NAME, tessera_cluster_start_test).
-define(WITHIN, 60000).

%% A start in a process of its own, and its result.
starts(Options) ->
    Self = self(),
    {Starter, _} = spawn_monitor(fun() ->
                                         process_flag(trap_exit, true),
                                         Self ! {self(), tessera_cluster:start_link(Options)},
                                         receive stop -> ok end
                                 end),
    Starter.

result(Starter) ->
    receive {Starter, Result} -> Result
    after ?WITHIN -> error(no_result)
    end.

%% ---- names

names_test_() ->
    {setup, fun() -> {ok, _} = application:ensure_all_started(tessera) end,
     [{timeout, 120, in_folder(Test)} || Test <- [fun failed_name/1, fun killed_starter/1, fun killed_cluster/1, fun supervised/1, fun first_start/1]]
     ++ [{timeout, 120, fun reserved/0}, {timeout, 60, fun unknown/0}]}.

identity(Client) -> tessera:shard_jit(fun(X) -> X end, #{shape => {1}}, #{client => Client, input_shardings => [#{}]}).

%% A name whose first start fails is that of nothing, and may be used again.
failed_name(Folder) ->
    Fails = fake(Folder, "fails", ["exit 3"]),
    ?assertMatch({error, {unavailable, _}}, tessera_cluster:start_link(#{ranks => 1, mpirun => Fails, name => ?NAME})),
    ?assertEqual(undefined, whereis(?NAME)),
    ?assertNot(tessera_cluster:is_cluster(?NAME)),
    ?assertError({invalid_argument, _}, identity(?NAME)),
    ?assertEqual([[1.0]], [tessera:to_list(X) || X <- (identity(host))([[tessera:tensor([1.0])]])]),
    %% the name is free for a client
    Client = tessera_cluster_start_client,
    ?assertMatch({error, {unavailable, _}}, tessera_cluster:start_link(#{ranks => 1, mpirun => Fails, name => Client})),
    ok = tessera:open_client(Client, #{device_count => 1}),
    ?assertEqual([[1.0]], [tessera:to_list(X) || X <- (identity(Client))([[tessera:tensor([1.0])]])]),
    {Cluster, Pids} = started(none, #{ranks => 1, name => ?NAME}),
    ?assert(tessera_cluster:is_cluster(?NAME)),
    stop(Cluster, Pids).

%% A cluster that is killed while it starts.
killed_starter(Folder) ->
    Name = tessera_cluster_start_killed,
    Starter = starts(#{ranks => 1, mpirun => fake(Folder, "sleeps", ["exec sleep 60"]), name => Name}),
    until(fun() -> is_pid(whereis(Name)) end),
    exit(whereis(Name), kill),
    ?assertEqual({error, killed}, result(Starter)),
    ?assertNot(tessera_cluster:is_cluster(Name)),
    Starter ! stop.

%% A cluster that was up and is killed: calls by its name say that it has ended, and the name is free.
killed_cluster(_) ->
    process_flag(trap_exit, true),
    {Cluster, Pids} = started(none, #{ranks => 1, name => ?NAME}),
    exit(Cluster, kill),
    receive {'EXIT', Cluster, killed} -> ok end,
    [?assertError({unavailable, <<"the cluster tessera_cluster_start_test has ended", _/binary>>}, Call())
     || Call <- [fun() -> tessera_cluster:noop(?NAME) end, fun() -> identity(?NAME) end, fun() -> tessera_cluster:info(?NAME) end,
                 fun() -> tessera_cluster:map(?NAME, fun(Rank) -> Rank end) end, fun() -> tessera_cluster:put(?NAME, [tessera:tensor(1)]) end]],
    tessera_cluster_tests:gone(Pids),
    {Again, Others} = started(none, #{ranks => 1, name => ?NAME}),
    ?assertEqual(ok, tessera_cluster:noop(?NAME)),
    stop(Again, Others),
    process_flag(trap_exit, false).

%% While a supervisor has not yet started the cluster again, calls by its name are told that it has ended; then they work.
supervised(_) ->
    process_flag(trap_exit, true),
    Test = self(),
    Spec = (tessera_cluster:child_spec(#{ranks => 1}))#{start := {?MODULE, held, [Test, #{ranks => 1, mpirun => none, name => ?NAME, restarts => {0, 60}}]}},
    Supervisor = spawn_link(fun() ->
                                    {ok, Pid} = supervisor:start_link({local, tessera_cluster_start_sup}, tessera_test_sup, {#{}, [Spec]}),
                                    unlink(Pid),
                                    Test ! {supervisor, Pid}
                            end),
    receive {held, First} -> First ! go end,
    Sup = receive {supervisor, Pid} -> Pid end,
    receive {'EXIT', Supervisor, normal} -> ok end,
    ?assertEqual(ok, tessera_cluster:noop(?NAME)),
    [#{os_pid := Rank}] = maps:get(ranks, tessera_cluster:info(?NAME)),
    tessera_cluster_tests:signal("KILL", Rank),
    receive {held, Second} ->
            ?assertError({unavailable, <<"the cluster ", _/binary>>}, identity(?NAME)),
            ?assertError({unavailable, <<"the cluster ", _/binary>>}, tessera_cluster:noop(?NAME)),
            Second ! go
    end,
    until(fun() -> is_pid(whereis(?NAME)) end),
    ?assertEqual(ok, tessera_cluster:noop(?NAME)),
    gen_server:stop(Sup),
    process_flag(trap_exit, false).

%% Starts a cluster when the test says so.
held(Test, Options) ->
    Test ! {held, self()},
    receive go -> tessera_cluster:start_link(Options) end.

%% During its first start a cluster tells what it does, however long that takes, and can be stopped.
first_start(Folder) ->
    Starter = starts(#{ranks => 1, mpirun => fake(Folder, "sleeps", ["exec sleep 60"]), name => ?NAME}),
    until(fun() -> is_pid(whereis(?NAME)) end),
    ?assertMatch(#{state := starting, ranks := [], restarts := 0, last_error := none}, tessera_cluster:info(?NAME)),
    Waits = spawn_monitor(fun() -> tessera_cluster:noop(?NAME) end),
    ok = tessera_cluster:stop(?NAME),
    ?assertEqual({error, {unavailable, <<"the cluster was stopped before all ranks were ready">>}}, result(Starter)),
    {Caller, Monitor} = Waits,
    receive {'DOWN', Monitor, process, Caller, Reason} -> ?assertMatch({{unavailable, _}, _}, Reason) end,
    ?assertNot(tessera_cluster:is_cluster(tessera_cluster_start_none)),
    Starter ! stop.

%% Names that are those of clients.
reserved() ->
    Refused = fun(Options) ->
                      {error, {Code, Text}} = tessera_cluster:start_link(Options#{ranks => 1, mpirun => none}),
                      {Code, binary_to_list(Text)}
              end,
    [?assertMatch({invalid_argument, "tessera_cluster: the option name: expected an atom other than host and nil" ++ _}, Refused(#{name => Name}))
     || Name <- [host, nil, "text"]],
    ok = tessera:open_client(tessera_cluster_start_open, #{device_count => 1}),
    ?assertEqual({failed_precondition, "the name tessera_cluster_start_open is that of a client"}, Refused(#{name => tessera_cluster_start_open})),
    ?assertMatch({error, {failed_precondition, <<"the name tessera_cluster_start_open is that of a client">>}},
                 tessera_cluster:join(#{name => tessera_cluster_start_open})),
    {Cluster, Pids} = started(none, #{ranks => 1, name => ?NAME}),
    ?assertError({failed_precondition, <<_/binary>>}, tessera:open_client(?NAME, #{device_count => 1})),
    ?assertEqual({failed_precondition, "the name tessera_cluster_start_test is taken"}, Refused(#{name => ?NAME})),
    ?assertMatch({error, {failed_precondition, <<"leave: this node has not joined the cluster ", _/binary>>}}, tessera_cluster:leave(?NAME)),
    ?assertMatch({error, {failed_precondition, <<"leave: this node has not joined the cluster ", _/binary>>}}, tessera_cluster:leave(Cluster)),
    stop(Cluster, Pids).

%% What is no cluster.
unknown() ->
    [begin
         ?assertError({unavailable, <<"there is no cluster no_cluster">>}, Call(no_cluster)),
         ?assertError({unavailable, <<"there is no cluster kernel_sup">>}, Call(kernel_sup)),
         ?assertError({unavailable, _}, Call(ended())),
         ?assertError({invalid_argument, <<"expected a cluster, which is a process or its name, got ", _/binary>>}, Call("ranks"))
     end || Call <- [fun tessera_cluster:info/1, fun tessera_cluster:stop/1, fun tessera_cluster:noop/1, fun tessera_cluster:clear_cache/1]],
    ?assertMatch({error, {failed_precondition, <<"leave: this node is in no cluster no_cluster">>}}, tessera_cluster:leave(no_cluster)),
    ?assertMatch({error, {failed_precondition, <<"leave: this node is in no cluster", _/binary>>}},
                 tessera_cluster:leave(ended())).

%% A process that has ended.
ended() ->
    {Pid, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Pid, _} -> Pid end.

%% ---- options

options_test() ->
    Refused = fun(Options) ->
                      {error, {invalid_argument, Text}} = tessera_cluster:start_link(Options),
                      binary_to_list(Text)
              end,
    ?assertMatch("tessera_cluster: unknown option rank, the options are [" ++ _, Refused(#{rank => 2})),
    ?assertMatch("tessera_cluster: the option listen: 127.0.0.1 is an address of this host alone" ++ _,
                 Refused(#{ranks => 2, hosts => ["a"], listen => {127, 0, 0, 1}})),
    ?assertMatch("tessera_cluster: the option listen: ::1 is an address of this host alone" ++ _,
                 Refused(#{ranks => 2, hosts => ["a"], listen => {0, 0, 0, 0, 0, 0, 0, 1}})),
    ?assertMatch("tessera_cluster: the option hosts needs listen" ++ _, Refused(#{ranks => 2, hosts => ["a"]})),
    ?assertMatch("tessera_cluster: the option hosts needs mpirun" ++ _, Refused(#{ranks => 2, hosts => ["a"], listen => {10, 0, 0, 1}, mpirun => none})),
    [?assertMatch("tessera_cluster: the option env: expected a list of {Name, Value} of texts, names without =, got " ++ _, Refused(#{ranks => 1, env => [Pair]}))
     || Pair <- [{"A=B", "x"}, {<<"A=B">>, "x"}, {"", "x"}, {"A", [0]}, {"A", x}, a]],
    [?assertMatch("tessera_cluster: the option listen: expected one address" ++ _, Refused(#{ranks => 1, listen => Address}))
     || Address <- [{0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, {1, 2, 3, 256}, any]],
    %% each option, each of another type
    {error, {invalid_argument, Text}} = tessera_cluster:start_link(#{no_option => 1}),
    {match, [Names]} = re:run(Text, "the options are \\[(.*)\\]", [{capture, all_but_first, list}]),
    [?assertMatch({_, "tessera_cluster: the option " ++ _}, {{Name, Value}, Refused(#{ranks => 1, Name => Value})})
     || Name <- [list_to_atom(string:trim(N)) || N <- string:lexemes(Names, ",")],
        Value <- [-1, 1.5, <<255>>, {}, #{}, [a | b], fun() -> ok end, self(), [[]]],
        not (Name =:= mpirun andalso Value =:= none)],
    ?assertMatch(#{id := {tessera_cluster, undefined}}, tessera_cluster:child_spec([{ranks, 2} | a])),
    ?assertMatch(#{id := {tessera_cluster, a}}, tessera_cluster:child_spec([{ranks, 2}, {name, a}])).

%% Starts of clusters, and their ends: names, options, texts of errors, and no traces of a failed start. Scripts instead of mpirun and ssh
%% behave like these when something is wrong.
-module(tessera_cluster_start_tests).
-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").
-import(tessera_cluster_tests, [started/2, stop/2, fake/3, script/3, launchers/0, listening/1, signal/2, gone/1]).
-import(tessera_test, [in_folder/1, until/1]).
-export([held/2, driver/1, without/0]).

-define(NAME, tessera_cluster_start_test).
-define(WITHIN, 240000).

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

%% ---- applications of OTP that are not there

%% A peer that has lost the path of an application: an error that names it, and no process is left.
not_installed_test_() ->
    {timeout, 120, fun() -> tessera_peers:with(1, fun([Peer]) -> tessera_peers:call(Peer, ?MODULE, without, []) end) end}.

without() ->
    {ok, _} = application:ensure_all_started(tessera),
    process_flag(trap_exit, true),
    _ = [begin
             _ = application:stop(Application),
             _ = code:purge(Application),
             true = code:delete(Application),
             true = code:del_path(Application)
         end || Application <- [ssl, crypto], {module, _} <- [code:ensure_loaded(Application)]],
    [begin
         {error, {failed_precondition, Text}} = Start(),
         {true, _} = {string:find(Text, Needed) =/= nomatch, Text}
     end || {Start, Needed} <- [{fun() -> tessera_cluster:start_link(#{ranks => 1, mpirun => none}) end, "Debian it is the package erlang-crypto"},
                                {fun() -> tessera_cluster:join(#{}) end, "a cluster needs the application crypto"}]],
    {error, {invalid_argument, _}} = tessera_cluster:start_link(#{ranks => 0}),
    receive {'EXIT', Pid, Reason} -> error({Pid, Reason}) after 0 -> ok end.

%% ---- names

names_test_() ->
    {setup, fun() -> {ok, _} = application:ensure_all_started(tessera) end,
     [{timeout, 120, in_folder(Test)} || Test <- [fun failed_name/1, fun killed_starter/1, fun killed_cluster/1, fun supervised/1, fun first_start/1, fun new_directory/1]]
     ++ [{timeout, 120, fun reserved/0}, {timeout, 60, fun unknown/0}]}.

identity(Client) -> tessera:shard_jit(fun(X) -> X end, #{shape => {1}}, #{client => Client, input_shardings => [#{}]}).

%% The folder for the key is by default also the one of the disk cache, which uses no folder that others may enter.
new_directory(Folder) ->
    Directory = filename:join([Folder, "cache", "tessera"]),
    {ok, Cluster} = tessera_cluster:start_link(#{ranks => 1, mpirun => none, directory => Directory}),
    {ok, #file_info{mode = Mode}} = file:read_file_info(Directory),
    ?assertEqual(8#700, Mode band 8#777),
    tessera_cluster:stop(Cluster).

%% A name whose first start fails is free, and may be used again.
failed_name(Folder) ->
    Fails = fake(Folder, "fails", ["exit 3"]),
    ?assertMatch({error, {unavailable, _}}, tessera_cluster:start_link(#{ranks => 1, mpirun => Fails, name => ?NAME})),
    ?assertEqual(undefined, whereis(?NAME)),
    ?assert(tessera_platform:has(?NAME, ops)),
    ?assertError({invalid_argument, _}, identity(?NAME)),
    ?assertEqual([[1.0]], [tessera:to_list(X) || X <- (identity(host))([[tessera:tensor([1.0])]])]),
    %% the name is free for a client
    Client = tessera_cluster_start_client,
    ?assertMatch({error, {unavailable, _}}, tessera_cluster:start_link(#{ranks => 1, mpirun => Fails, name => Client})),
    ok = tessera:open_client(Client, #{device_count => 1}),
    ?assertEqual([[1.0]], [tessera:to_list(X) || X <- (identity(Client))([[tessera:tensor([1.0])]])]),
    {Cluster, Pids} = started(none, #{ranks => 1, name => ?NAME}),
    ?assertNot(tessera_platform:has(?NAME, ops)),
    stop(Cluster, Pids).

%% A cluster that is killed while it starts.
killed_starter(Folder) ->
    Name = tessera_cluster_start_killed,
    Starter = starts(#{ranks => 1, mpirun => fake(Folder, "sleeps", ["exec sleep 60"]), name => Name}),
    until(fun() -> is_pid(whereis(Name)) end),
    exit(whereis(Name), kill),
    ?assertEqual({error, killed}, result(Starter)),
    ?assert(tessera_platform:has(Name, ops)),
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

%% During a first start of any length a cluster reports its state, and can be stopped.
first_start(Folder) ->
    Starter = starts(#{ranks => 1, mpirun => fake(Folder, "sleeps", ["exec sleep 60"]), name => ?NAME}),
    until(fun() -> is_pid(whereis(?NAME)) end),
    ?assertMatch(#{state := starting, ranks := [], restarts := 0, last_error := none}, tessera_cluster:info(?NAME)),
    Waits = spawn_monitor(fun() -> tessera_cluster:noop(?NAME) end),
    ok = tessera_cluster:stop(?NAME),
    ?assertEqual({error, {unavailable, <<"the cluster was stopped before all ranks were ready">>}}, result(Starter)),
    {Caller, Monitor} = Waits,
    receive {'DOWN', Monitor, process, Caller, Reason} -> ?assertMatch({{unavailable, _}, _}, Reason) end,
    ?assert(tessera_platform:has(tessera_cluster_start_none, ops)),
    Starter ! stop.

%% Names of clients.
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

%% Names and pids without a cluster.
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

%% ---- what starts leave

left_test_() ->
    [{Name, {timeout, 120, in_tmpdir(Test)}}
     || {Name, Test} <- [{"killed processes", fun killed_processes/1}, {"killed driver", fun killed_driver/1}, {"hanging version", fun hanging_version/1},
                         {"others", fun others/1}]]
    ++ [{"killed mpirun", {timeout, 200, in_tmpdir(fun killed_mpirun/1)}} || lists:member("mpirun", launchers())].

%% A test in a folder that is also TMPDIR. At its end nothing of a start is there, and no process has a mark that the test has noted.
in_tmpdir(Test) ->
    in_folder(fun(Folder) ->
                      {ok, _} = application:ensure_all_started(tessera),
                      Before = os:getenv("TMPDIR"),
                      true = os:putenv("TMPDIR", Folder),
                      try Test(Folder)
                      after case Before of false -> os:unsetenv("TMPDIR"); _ -> os:putenv("TMPDIR", Before) end
                      end
              end).

%% The marks of the folders in TMPDIR: each start has one or two.
marks(Folder) ->
    {ok, Names} = file:list_dir(Folder),
    lists:usort([lists:flatten(lists:join(".", lists:sublist(string:lexemes(Rest, "."), 4))) || "tessera-" ++ Rest <- Names]).

nothing_left(Folder, Marks) ->
    ?assertEqual([], marks(Folder)),
    [?assertEqual({Mark, []}, {Mark, tessera_cluster_leftovers:processes(Mark)}) || Mark <- Marks],
    [?assertNot(filelib:is_dir(tessera_cluster_leftovers:folder(tessera_cluster_leftovers:shared_memory(), Mark))) || Mark <- Marks].

%% A script that starts a process of its own and writes both pids, as mpirun does with ssh.
hangs(Folder, Name) ->
    script(Folder, Name, ["sleep 1000 & echo $! $$ >", Folder, "/pids.new && mv ", Folder, "/pids.new ", Folder, "/pids; wait\n"]).

pids(Folder) ->
    until(fun() -> filelib:is_regular(Folder ++ "/pids") end),
    {ok, Text} = file:read_file(Folder ++ "/pids"),
    ok = file:delete(Folder ++ "/pids"),
    binary:split(Text, [<<" ">>, <<"\n">>], [global, trim_all]).

%% Whichever process of a start is killed, the start ends with an error and leaves nothing.
killed_processes(Folder) ->
    Hangs = hangs(Folder, "hangs"),
    Fake = fake(Folder, "fake", ["exec ", Hangs]),
    [begin
         Name = tessera_cluster_start_ended,
         Starter = starts(#{ranks => 2, mpirun => Fake, name => Name}),
         Pids = pids(Folder),
         [_] = Marks = marks(Folder),
         ?assert(lists:all(fun tessera_cluster_tests:is_running/1, Pids)),
         Cluster = whereis(Name),
         #{job := Job, launcher := Launcher, acceptor := Acceptor} = processes(Cluster),
         exit(maps:get(Which, #{cluster => Cluster, job => Job, launcher => Launcher, acceptor => Acceptor, starter => Starter}), kill),
         _ = [?assertMatch({Which, {error, _}}, {Which, result(Starter)}) || Which =/= starter],
         gone(Pids),
         until(fun() -> marks(Folder) =:= [] end),
         nothing_left(Folder, Marks),
         until(fun() -> whereis(Name) =:= undefined end),
         ?assert(tessera_platform:has(Name, ops)),
         Starter ! stop
     end || Which <- [cluster, job, launcher, acceptor, starter]].

processes(Cluster) ->
    [Job] = [Pid || Pid <- linked(Cluster), initial(Pid) =:= tessera_cluster_job],
    Waiting = fun(Module) -> [Pid || Pid <- linked(Job), {current_stacktrace, Trace} <- [process_info(Pid, current_stacktrace)], lists:keymember(Module, 1, Trace)] end,
    Modules = [tessera_cluster_launcher, tessera_cluster_door],
    until(fun() -> [1, 1] =:= [length(Waiting(Module)) || Module <- Modules] end),
    [[Launcher], [Acceptor]] = [Waiting(Module) || Module <- Modules],
    #{job => Job, launcher => Launcher, acceptor => Acceptor}.

linked(Pid) -> [Other || Other <- element(2, process_info(Pid, links)), is_pid(Other)].

initial(Pid) -> element(1, proc_lib:translate_initial_call(Pid)).

%% A driver that is killed while it starts leaves its folder with the key, and mpirun that waits: the next start of this user removes them.
killed_driver(Folder) ->
    Hangs = hangs(Folder, "hangs"),
    Fake = fake(Folder, "fake", ["exec ", Hangs]),
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noshell", "-noinput" | tessera_test:paths()] ++ ["-run", atom_to_list(?MODULE), "driver", Fake]}, exit_status]),
    Pids = pids(Folder),
    [Mark] = Marks = marks(Folder),
    %% Starts of other tests on this host sweep the folder of shared memory as well, but not while this VM owns it.
    ok = tessera_cluster_leftovers:enter(Mark),
    {os_pid, Driver} = erlang:port_info(Port, os_pid),
    signal("KILL", integer_to_binary(Driver)),
    receive {Port, {exit_status, _}} -> ok end,
    ?assertEqual(Marks, marks(Folder)),
    until(fun() -> length(tessera_cluster_leftovers:processes(Mark)) =:= 2 end),   % the script's mv, too, ends
    [Owner] = owners(Mark),
    ok = file:delete(Owner),
    {Cluster, Ranks} = started(none, #{ranks => 1}),
    gone(Pids),
    stop(Cluster, Ranks),
    nothing_left(Folder, Marks).

%% The files of the processes that own the folder of shared memory.
owners(Mark) -> filelib:wildcard(tessera_cluster_leftovers:folder(tessera_cluster_leftovers:shared_memory(), Mark) ++ "/owner.*").

driver([Fake]) ->
    {ok, _} = application:ensure_all_started(tessera),
    tessera_cluster:start_link(#{ranks => 2, mpirun => Fake}).

%% A program that does not print its version is ended, with its processes.
hanging_version(Folder) ->
    {error, {failed_precondition, Text}} = tessera_cluster:start_link(#{ranks => 2, mpirun => hangs(Folder, "hangs"), start_timeout => 4000}),
    ?assertMatch({match, _}, re:run(Text, "/hangs --version did not end in 3000 ms$")),
    gone(pids(Folder)),
    nothing_left(Folder, []),
    %% a start that is given up meanwhile
    Starter = starts(#{ranks => 2, mpirun => Folder ++ "/hangs", name => ?NAME}),
    Pids = pids(Folder),
    ok = tessera_cluster:stop(?NAME),
    ?assertMatch({error, {unavailable, _}}, result(Starter)),
    gone(Pids),
    nothing_left(Folder, []),
    Starter ! stop.

%% Processes that start others until they are killed: all are gone when kill/1 returns, not only told to end.
kill_test_() -> {timeout, 60, fun kill/0}.

kill() ->
    Mark = tessera_cluster_leftovers:mark(),
    _ = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "while :; do sh -c 'sleep 1000; :' & sleep 0.01; done"]}, {env, [tessera_cluster_leftovers:variable(Mark)]}]),
    until(fun() -> length(tessera_cluster_leftovers:processes(Mark)) > 10 end),
    ok = tessera_cluster_leftovers:kill(Mark),
    ?assertEqual([], tessera_cluster_leftovers:processes(Mark)).

%% Traces of other starts stay: of a running process, of another host, of other programs.
others(Folder) ->
    Mark = tessera_cluster_leftovers:mark(),
    [_, Where, Pid, Began] = string:lexemes(Mark, "."),
    Stay = ["tessera-" ++ Mark, "tessera-" ++ Mark ++ ".mpi", "tessera-00.0." ++ Pid ++ ".1", "tessera-00", "tessera-a.b.c.d.e", "tessera-00." ++ Where ++ ".x.1"],
    Left = ["tessera-00." ++ Where ++ "." ++ Pid ++ "." ++ integer_to_list(list_to_integer(Began) + 1), "tessera-01." ++ Where ++ ".4194305.7.mpi"],
    [ok = file:make_dir(filename:join(Folder, Name)) || Name <- Stay ++ Left],
    [ok = file:write_file(filename:join([Folder, Name, "file"]), <<"a">>) || Name <- Stay ++ Left],
    ok = tessera_cluster_leftovers:sweep([Folder]),
    {ok, Names} = file:list_dir(Folder),
    ?assertEqual(lists:sort(Stay), lists:sort(Names)).

%% mpirun is killed when the ranks are there, and in the next start, while one rank waits in it for another.
killed_mpirun(Folder) ->
    process_flag(trap_exit, true),
    {Cluster, Pids} = started("mpirun", #{ranks => 2, threads => 1, restarts => {0, 60}}),
    [Mark] = marks(Folder),
    Shared = tessera_cluster_leftovers:folder(tessera_cluster_leftovers:shared_memory(), Mark),
    unnamed(Pids, Shared),
    ok = tessera_cluster_leftovers:signal("KILL", mpirun(Mark)),
    receive {'EXIT', Cluster, Reason} -> ?assertMatch({shutdown, {lost, _}}, Reason) end,
    gone(Pids),
    nothing_left(Folder, [Mark]),
    Waits = script(Folder, "waits", through(Folder, "[ $OMPI_COMM_WORLD_RANK = 0 ] && exec \"$@\"; sleep 1000")),
    Starter = starts(#{ranks => 2, threads => 1, mpirun => Waits, name => ?NAME}),
    until(fun() -> marks(Folder) =/= [] end),
    [Second] = marks(Folder),
    %% the rank has begun MPI
    until(fun() -> owners(Second) =/= [] end),
    ok = tessera_cluster_leftovers:signal("KILL", mpirun(Second)),
    {error, {unavailable, Text}} = result(Starter),
    ?assertMatch({_, {match, _}}, {Text, re:run(Text, "^[^ ]*/waits was ended by signal 9 before all ranks were ready")}),
    nothing_left(Folder, [Second]),
    Starter ! stop,
    process_flag(trap_exit, false).

%% The ranks share memory without a name: nothing of it is left when all processes of a host are killed, including mpirun's.
unnamed(Pids, Folder) ->
    ?assertEqual({Folder, {error, enoent}}, {Folder, file:list_dir(Folder)}),
    [begin
         {ok, Maps} = file:read_file("/proc/" ++ binary_to_list(Pid) ++ "/maps"),
         ?assertMatch({match, [_ | _]}, re:run(Maps, [Folder, "/\\S*segment\\S* \\(deleted\\)"], [global]))
     end || Pid <- Pids].

%% The process with the mark that mpirun is.
mpirun(Mark) ->
    [Pid || Pid <- tessera_cluster_leftovers:processes(Mark), {ok, Name} <- [file:read_file("/proc/" ++ Pid ++ "/comm")],
            lists:member(Name, [<<"mpirun\n">>, <<"prterun\n">>, <<"prte\n">>, <<"orterun\n">>])].

%% The lines of a script that is mpirun with another program instead of erl for its ranks: a script with these lines, whose arguments are erl and its
%% arguments.
through(Folder, Lines) ->
    Rank = script(Folder, "rank", Lines),
    ["for arg; do shift; case $arg in */erl) set -- \"$@\" ", Rank, " \"$arg\" ;; *) set -- \"$@\" \"$arg\" ;; esac; done; exec mpirun \"$@\"\n"].

%% ---- the text of an error

%% The tags of both versions of Open MPI, in whole lines, in lines that were written in parts, and between ranks.
tags_test() ->
    [?assertEqual({Line, Expected}, {Line, tessera_cluster_output:parse(launcher, Line)})
     || {Line, Expected} <- [{<<"no tag [1,2]">>, [{launcher, <<"no tag [1,2]">>}]},
                             {<<"[1,12]<stdout>:text">>, [{12, <<"text">>}]},
                             {<<"[1,0]<stderr>: text">>, [{0, <<"text">>}]},
                             {<<"[1,0]<stdout>:">>, [{0, <<>>}]},
                             {<<"[1,1]<stderr>:exec: [1,1]<stderr>:/no/erl: not found[1,1]<stderr>:">>, [{1, <<"exec: /no/erl: not found">>}]},
                             {<<"[1,1]<stdout>:one[1,0]<stdout>:two">>, [{1, <<"one">>}, {0, <<"two">>}]},
                             {<<"mpirun: [1,1]<stdout>:one">>, [{launcher, <<"mpirun: ">>}, {1, <<"one">>}]}]].

errors_test_() ->
    [{Name, {timeout, 120, in_tmpdir(Test)}} || {Name, Test} <- [{"without mpirun", fun rank_by_itself/1}, {"no library of MPI", fun without_mpi/1},
                                                                {"progress", fun slow_start/1}, {"slow MPI", fun slow_mpi/1},
                                                                {"lost daemon", fun lost_daemon/1}]]
    ++ [{Name, {timeout, 120, in_tmpdir(Test)}} || lists:member("mpirun", launchers()),
                                                   {Name, Test} <- [{"first rank", fun first_rank/1}, {"refused ssh", fun refused_ssh/1},
                                                                    {"hanging ssh", fun hanging_ssh/1}]].

failed(Options) ->
    {error, {unavailable, Text}} = tessera_cluster:start_link(Options),
    binary_to_list(Text).

%% mpirun reports a lost daemon, and ends with a status that a signal could also have caused. The rank ends with it, before it has joined, or after it
%% (three seconds mostly suffice): the error is mpirun's alone.
lost_daemon(Folder) ->
    Script = tessera_cluster_tests:fake(Folder, "loses", ["until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n"
                                                         "TESSERA_RANK=0 TESSERA_RANKS=2 \"$@\" & rank=$!\nsleep $SECONDS_TO_JOIN\n"
                                                         "kill -KILL $rank\nsleep 0.3\nline=", lists:duplicate(74, $-),
                                                         "\necho $line; echo ORTE has lost a daemon.; echo $line\nexit 205\n"]),
    [begin
         Text = failed(#{ranks => 2, threads => 1, mpirun => Script, env => [{"SECONDS_TO_JOIN", Seconds}]}),
         ?assertMatch({_, {match, _}}, {Text, re:run(Text, "/loses ended with status 205 before all ranks were ready: (.*; )?ORTE has lost a daemon\\.$")}),
         nothing_left(Folder, [])
     end || Seconds <- ["0", "3"]].

%% A rank that is started directly and ends, while another one is there.
rank_by_itself(Folder) ->
    Broken = script(Folder, "tessera_rank.erl", []),
    ok = file:write_file(Broken, "-module(tessera_rank). -export([main/1]). main(_) -> io:format(\"this is broken~n\"), erlang:halt(3)."),
    {ok, tessera_rank} = compile:file(Broken, [{outdir, Folder}]),
    Text = failed(#{ranks => 2, mpirun => none, env => [{"ERL_LIBS", ""}, {"ERL_ZFLAGS", "-pa " ++ Folder}]}),
    ?assertMatch({match, _}, re:run(Text, "^rank [01] on [^ ]+ ended with status 3 before all ranks were ready: this is broken$")),
    nothing_left(Folder, []).

%% Of the ranks that mpirun has started one fails in some way. mpirun ends the other, which may have joined: the first one is named, with its output.
first_rank(Folder) ->
    [begin
         Script = script(Folder, "broken", through(Folder, ["[ $OMPI_COMM_WORLD_RANK = 1 ] || exec \"$@\"\n", Lines])),
         Text = failed(#{ranks => 2, threads => 1, mpirun => Script}),
         ?assertMatch({_, {match, _}}, {Text, re:run(Text, ["^rank 1 on [^ ]+ ended with status ", Says])}),
         nothing_left(Folder, [])
     end || {Lines, Says} <- [{"echo first; echo last >&2; exit 7", "7 before all ranks were ready: (first; last|last; first)$"},
                              {"sleep 2; echo late; exit 7", "7 before all ranks were ready: late$"},   % the other one has joined
                              {"sleep 2; kill -KILL $$", "137 before all ranks were ready(: Killed)?$"},
                              {"exec /no/erl \"$@\"", "127 before all ranks were ready: .*/no/erl: .*not found$"}]].

ssh(Folder, Lines) ->
    {ok, Host} = inet:gethostname(),
    Agent = script(Folder, "agent", Lines),
    #{ranks => 2, threads => 1, hosts => [Host, "tessera-no-host"], listen => other_address(), directory => Folder, tls => false,
      env => [{"OMPI_MCA_plm_rsh_agent", Agent}, {"PRTE_MCA_plm_ssh_agent", Agent}]}.

%% What ssh says is in the error, and Open MPI's advice is not.
refused_ssh(Folder) ->
    Options = ssh(Folder, "echo 'root@tessera-no-host: Permission denied (publickey,password).' >&2; exit 255"),
    Text = failed(Options),
    ?assertMatch({_, {match, _}}, {Text, re:run(Text, "^mpirun ended with status [0-9]+ before all ranks were ready: root@tessera-no-host: Permission denied")}),
    ?assertEqual({Text, nomatch}, {Text, re:run(Text, "not finding the required libraries")}),
    nothing_left(Folder, []).

%% An ssh that does not return is ended, and the error names its host.
hanging_ssh(Folder) ->
    Options = ssh(Folder, ["echo $$ >", Folder, "/pids.new && mv ", Folder, "/pids.new ", Folder, "/pids; exec sleep 1000"]),
    Text = failed(Options#{start_timeout => 6000}),
    ?assertMatch({_, {match, _}}, {Text, re:run(Text, "^0 of 2 ranks were ready, and nothing came of the others for 6000 ms; 0 had joined; missing: rank 0, rank 1; "
                                                      "no rank has joined from .*tessera-no-host; 0 connections were refused")}),
    gone(pids(Folder)),
    nothing_left(Folder, []).

%% An address of this host that is no loopback, where there is one; no rank connects to it here.
other_address() ->
    {ok, Interfaces} = inet:getifaddrs(),
    hd([Address || {_, Properties} <- Interfaces, {addr, {First, _, _, _} = Address} <- Properties, First =/= 127] ++ [{127, 0, 0, 1}]).

%% One rank's Tessera was built without MPI.
without_mpi(Folder) ->
    {App, Priv} = {filename:join(Folder, "tessera"), filename:join([Folder, "tessera", "priv"])},
    ok = filelib:ensure_dir(filename:join(Priv, "any")),
    Ebin = filename:join(App, "ebin"),
    ok = file:make_symlink(filename:absname(filename:dirname(code:which(tessera))), Ebin),
    ok = file:make_symlink(filename:absname(tessera_library:path() ++ ".so"), filename:join(Priv, "tessera_nif.so")),
    Lines = ["until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n",
             "TESSERA_RANK=0 TESSERA_RANKS=2 \"$@\" & ERL_FLAGS=\"-pa ", Ebin, "\" TESSERA_RANK=1 TESSERA_RANKS=2 \"$@\" & wait\n"],
    case filelib:is_regular(tessera_rank_work:mpi()) of
        true ->
            Text = failed(#{ranks => 2, mpirun => fake(Folder, "other", Lines)}),
            ?assertMatch({_, {match, _}}, {Text, re:run(Text, "^a process on [^ ]+ says that it is rank [01]: (its Tessera|a rank) on [^ ]+ has no library for MPI ")});
        false -> ok   % no rank has it then
    end.

%% A start with ranks that still join may take longer than start_timeout, the longest time without progress.
slow_start(Folder) ->
    Sleeps = fake(Folder, "sleeps", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; exec sleep 1000"]),
    Starter = starts(#{ranks => 4, mpirun => Sleeps, start_timeout => 6000, deadline => 60000, name => ?NAME}),
    {Port, KeyFile} = listening(Folder),
    {ok, Key} = file:read_file(KeyFile),
    Sockets = [begin
                   Socket = tessera_cluster_fault_tests:impostor(Port, Key, #{rank => Rank, size => 4}),
                   timer:sleep(2200),
                   Socket
               end || Rank <- [0, 1, 2]],
    ?assertMatch(#{state := starting}, tessera_cluster:info(?NAME)),
    receive {Starter, Early} -> error({ended, Early}) after 0 -> ok end,
    ?assertMatch({error, {unavailable, <<"0 of 4 ranks were ready, and nothing came of the others for 6000 ms; 3 had joined; missing: rank 3;", _/binary>>}},
                 result(Starter)),
    [gen_tcp:close(Socket) || Socket <- Sockets],
    nothing_left(Folder, []),
    Starter ! stop.

%% Ranks that took long to join have longer to start MPI.
slow_mpi(Folder) ->
    Sleeps = fake(Folder, "sleeps", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; exec sleep 1000"]),
    Starter = starts(#{ranks => 1, mpirun => Sleeps, start_timeout => 4000}),
    {Port, KeyFile} = listening(Folder),
    {ok, Key} = file:read_file(KeyFile),
    timer:sleep(1500),
    Socket = tessera_cluster_fault_tests:impostor(Port, Key, #{size => 1}),
    Beats = spawn_link(fun() -> beat(Socket) end),
    {error, {unavailable, Text}} = result(Starter),
    {match, [Ms]} = re:run(Text, "^0 of 1 ranks were ready, and nothing came of the others for ([0-9]+) ms; 1 had joined; not ready: rank 0;", [{capture, all_but_first, list}]),
    ?assert(list_to_integer(Ms) >= 6000),
    unlink(Beats),
    exit(Beats, kill),
    ok = gen_tcp:close(Socket),
    nothing_left(Folder, []),
    Starter ! stop.

beat(Socket) ->
    Frame = iolist_to_binary(tessera_cluster_wire:beat()),
    _ = gen_tcp:send(Socket, [<<(byte_size(Frame)):32>>, Frame]),
    timer:sleep(1000),
    beat(Socket).

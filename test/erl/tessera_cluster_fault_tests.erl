%% Faults of clusters while programs run on them, strangers and wrong ranks, and secrets. Each test ends with a
%% call that works: on the same ranks where the job must live, else on new ones.
-module(tessera_cluster_fault_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [launchers/0, started/2, pids/1, stop/2, signal/2, gone/1, on_ranks/2, runs_of/1, fake/3, ranks/2, listening/1]).
-import(tessera_test, [in_folder/1, is_timed/0, until/1]).
-export([log/2, driver/0, listening_sockets/1, impostor/3]).

%% The least time of any other timer is the default deadline of 10 s. So on an idle machine a report that comes from another timer is
%% later than the slack.
-define(SLACK, 3000).
-define(KILLED, 2000).
-define(WITHIN, 240000).
-define(PASSWORD, <<"rosebud-2f7c">>).

%% ---- faults while programs run: these need MPI

runs_test_() ->
    [{lists:concat([Name, " by ", Launcher]), {timeout, 200, fun() -> Test(Launcher) end}}
     || Launcher <- launchers(), Launcher =/= none,
        {Name, Test} <- [{"killed ranks", fun killed/1}, {"a stopped rank", fun stopped/1}, {"dead callers", fun dead_callers/1},
                         {"one rank fails", fun one_fails/1}, {"jobs at once", fun at_once/1},
                         {"instruction sets", fun instruction_sets/1}, {"listeners", fun listeners/1}]].

%% Partitions on a mesh of one axis, each with its own argument.
on_parts(Cluster, F, Ranks) -> tessera:shard_map(F, #{shape => {Ranks}}, [#{0 => [0]}], #{0 => [0]}, #{client => Cluster}).

%% Local work and a sum over the ranks, again and again: Work iterations that need no other rank come before each sum.
endless(Cluster, Ranks, Work) ->
    Local = fun(X) ->
                    {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, Work) end,
                                           fun({I, Y}) -> {tessera:add(I, 1), tessera:tanh(Y)} end),
                    Y
            end,
    on_parts(Cluster, fun(X) ->
                              {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 1000000000) end,
                                                     fun({I, Y}) -> {tessera:add(I, 1), tessera_mesh:all_reduce(Local(Y), mean, 0)} end),
                              Y
                      end, Ranks).

sums(Cluster, Ranks) -> on_parts(Cluster, fun(X) -> tessera_mesh:all_reduce(X, sum, 0) end, Ranks).

%% Every rank gets the sum 1 + 2 + ... of the ranks' numbers.
check_sums(Cluster, Ranks) ->
    Sum = Ranks * (Ranks + 1) / 2,
    ?assertEqual([[Sum] || _ <- lists:seq(1, Ranks)],
                 [tessera:to_list(Y) || Y <- (sums(Cluster, Ranks))([[tessera:tensor([float(I)])] || I <- lists:seq(1, Ranks)])]).

%% Results stay on the ranks until they are read.
read(Results) -> [tessera:to_binary(Result) || Result <- Results].

%% The error of a call that runs on all ranks when the fault begins, and milliseconds from then to the report.
report(Cluster, Call, Fault) ->
    {Caller, Monitor} = spawn_monitor(Call),
    until(fun() -> runs_of(Cluster) =/= [] end),
    timer:sleep(700),   % it runs
    Began = erlang:monotonic_time(millisecond),
    Fault(),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} -> {Text, erlang:monotonic_time(millisecond) - Began}
    after ?WITHIN -> error(no_report)
    end.

said(Name, Ms, Bar) ->
    io:format(user, "cluster faults: ~ts: reported after ~b ms, the bar is ~b~n", [Name, Ms, Bar]),
    ?assert(not is_timed() orelse Ms =< Bar + ?SLACK).

killed(Launcher) ->
    {Cluster, _} = started(Launcher, #{ranks => 2, threads => 1, restarts => {10, 600}}),
    check_sums(Cluster, 2),
    [begin
         [_, Second] = Pids = pids(Cluster),
         Endless = endless(Cluster, 2, Work),
         {Text, Ms} = report(Cluster, fun() -> read(Endless([[tessera:broadcast(1.0, {Elements})] || _ <- [1, 2]])) end, fun() -> signal("KILL", Second) end),
         ?assertMatch({match, _}, re:run(Text, "rank [01] on [^ ]+: ")),
         said(["a rank killed ", Where], Ms, ?KILLED),
         gone(Pids),
         check_sums(Cluster, 2)
     end || {Where, Elements, Work} <- [{"before the first collective", 4096, 2000000000}, {"in a collective", 4000000, 0},
                                        {"between collectives", 1000, 10000}]],
    ?assertMatch(#{restarts := 3}, tessera_cluster:info(Cluster)),
    stop(Cluster, pids(Cluster)).

stopped(Launcher) ->
    Deadline = 4000,
    {Cluster, [First, _] = Pids} = started(Launcher, #{ranks => 2, threads => 1, deadline => Deadline}),
    Endless = endless(Cluster, 2, 100),
    {Text, Ms} = report(Cluster, fun() -> read(Endless([[tessera:broadcast(1.0, {100})] || _ <- [1, 2]])) end, fun() -> signal("STOP", First) end),
    %% the driver sees it, or the waiting rank
    ?assertMatch({match, _}, re:run(Text, "(rank 0 on [^ ]+: nothing was heard of it for 4000 ms|rank 1 on [^ ]+: rank 0 did not answer)")),
    ?assert(Ms >= Deadline div 2),
    said("a stopped rank", Ms, Deadline + 1000),
    gone(Pids),
    check_sums(Cluster, 2),
    stop(Cluster, pids(Cluster)).

%% Callers that die before, in and between collectives: the ranks end their work and stay.
dead_callers(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 2, threads => 1}),
    [begin
         Endless = endless(Cluster, 2, Work),
         {Caller, Monitor} = spawn_monitor(fun() -> read(Endless([[tessera:broadcast(1.0, {Elements})] || _ <- [1, 2]])) end),
         until(fun() -> runs_of(Cluster) =/= [] end),
         timer:sleep(500),
         exit(Caller, kill),
         receive {'DOWN', Monitor, process, Caller, killed} -> ok end,
         until(fun() -> lists:all(fun is_idle/1, Pids) end),
         check_sums(Cluster, 2)
     end || {Elements, Work} <- [{4096, 2000000000}, {4000000, 0}, {1000, 10000}]],
    ?assertEqual(Pids, pids(Cluster)),
    stop(Cluster, Pids).

%% Less than a fifth of one CPU.
is_idle(Pid) ->
    Before = ticks(Pid),
    timer:sleep(300),
    ticks(Pid) - Before =< 6.

%% Hundredths of a second of CPU.
ticks(Pid) ->
    {ok, Text} = file:read_file("/proc/" ++ binary_to_list(Pid) ++ "/stat"),
    Fields = binary:split(lists:last(binary:split(Text, <<") ">>, [global])), <<" ">>, [global]),
    binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields)).

%% Only one rank has no memory for the program: the caller gets that error, and the job lives.
one_fails(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 3, threads => 1}),
    Large = on_parts(Cluster, fun(X) -> tessera_mesh:all_reduce(tessera:sort(tessera:broadcast(X, {1000000})), max, 0) end, 3),
    Arguments = [[tessera:tensor([float(I)])] || I <- [1, 2, 3]],
    Limit = fun(Bytes) -> tessera_cluster:map(Cluster, fun(1) -> tessera:set_memory_limit(Bytes); (_) -> ok end) end,
    [_, #{live := Live}, _] = tessera_cluster:map(Cluster, fun(_) -> tessera:memory() end),
    _ = Limit(Live + (1 bsl 20)),
    ?assertError({resource_exhausted, _}, read(Large(Arguments))),
    check_sums(Cluster, 3),
    _ = Limit(1 bsl 40),
    ?assertEqual([3.0, 3.0, 3.0], [tessera:to_number(tessera:reduce_max(Y)) || Y <- Large(Arguments)]),
    ?assertEqual(Pids, pids(Cluster)),
    stop(Cluster, Pids).

%% Four callers with programs of their own on four ranks, and two clusters, at the same time.
at_once(Launcher) ->
    {Cluster, Pids} = started(Launcher, #{ranks => 4, threads => 1}),
    {Other, Others} = started(Launcher, #{ranks => 2, threads => 1}),
    Call = fun(On, Ranks, K) ->
                   F = on_parts(On, fun(X) ->
                                            {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 20) end,
                                                                   fun({I, Y}) -> {tessera:add(I, 1), tessera_mesh:all_reduce(tessera:multiply(Y, 0.1 * K), sum, 0)} end),
                                            Y
                                    end, Ranks),
                   Lists = [[tessera:broadcast(float(I), {1000 * K})] || I <- lists:seq(1, Ranks)],
                   fun() -> [tessera:to_binary(Y) || Y <- F(Lists)] end
           end,
    Calls = [Call(Cluster, 4, K) || K <- [1, 2, 3, 4]] ++ [Call(Other, 2, K) || K <- [1, 2]],
    Expected = [C() || C <- Calls],
    Self = self(),
    Workers = [spawn_link(fun() -> Self ! {self(), [C() || _ <- lists:seq(1, 5)]} end) || C <- Calls],
    [receive {Worker, Results} -> ?assertEqual([Value], lists:usort(Results))
     after ?WITHIN * 2 -> error(no_result)
     end || {Worker, Value} <- lists:zip(Workers, Expected)],
    stop(Other, Others),
    check_sums(Cluster, 4),
    stop(Cluster, Pids).

%% A rank with a lesser instruction set: all ranks take it, and a program has the bits of that set.
instruction_sets(Launcher) ->
    (in_folder(fun(Folder) -> instruction_sets(Launcher, Folder) end))().

instruction_sets(Launcher, Folder) ->
    case {erlang:system_info(system_architecture), os:getenv("TESSERA_ISA")} of
        {"x86_64" ++ _, false} ->
            {Alike, First} = started(Launcher, #{ranks => 2, threads => 1, env => [{"TESSERA_ISA", "sse4"}]}),
            Expected = tanhs(Alike),
            stop(Alike, First),
            Mixed = launch_with(Folder, Launcher, "[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || export TESSERA_ISA=sse4"),
            {Cluster, Pids} = started(Mixed, #{ranks => 2, threads => 1}),
            ?assertMatch(#{ranks := [#{isa := <<"sse4">>}, #{isa := <<"sse4">>}]}, tessera_cluster:info(Cluster)),
            ?assertEqual(Expected, tanhs(Cluster)),
            stop(Cluster, Pids);
        Other -> io:format(user, "cluster faults: instruction sets that differ: left out: ~0p~n", [Other])
    end.

tanhs(Cluster) ->
    F = on_parts(Cluster, fun(X) -> tessera_mesh:all_reduce(tessera:tanh(X), sum, 0) end, 2),
    [tessera:to_binary(Y) || Y <- F([[tessera:divide(tessera:iota({1001}), float(I))] || I <- [777, 555]])].

%% A script that calls the real mpirun, whose ranks do this first.
launch_with(Folder, Launcher, Line) ->
    Rank = tessera_cluster_tests:script(Folder, "rank", [Line, "\nexec \"$@\"\n"]),
    tessera_cluster_tests:script(Folder, "launch",
                                 ["[ \"$1\" != --version ] || exec ", Launcher, " --version\n",
                                  "n=$#; for a; do case $a in */erl) set -- \"$@\" ", Rank, " ;; esac; set -- \"$@\" \"$a\"; done\n",
                                  "shift $n\nexec ", Launcher, " \"$@\"\n"]).

%% Driver and ranks of one host have no socket that another host could reach. mpirun's socket for its daemons cannot be bound to
%% an address in Open MPI 4.1.
listeners(Launcher) ->
    Own = listening_sockets(os:getpid()),
    {Cluster, Pids} = started(Launcher, #{ranks => 2, threads => 1}),
    check_sums(Cluster, 2),
    ?assertEqual(Own, listening_sockets(os:getpid())),
    ?assertEqual([], [{Pid, Address} || Pid <- Pids, Address <- listening_sockets(binary_to_list(Pid)), not is_loopback(Address)]),
    stop(Cluster, Pids).

is_loopback(<<"0100007F:", _/binary>>) -> true;
is_loopback(<<"00000000000000000000000001000000:", _/binary>>) -> true;
is_loopback(_) -> false.

%% The addresses of a process's listening sockets, in the kernel's form.
listening_sockets(Process) ->
    Folder = "/proc/" ++ Process ++ "/fd",
    {ok, Names} = file:list_dir(Folder),
    Inodes = [Inode || Name <- Names, {ok, "socket:[" ++ Inode} <- [file:read_link(filename:join(Folder, Name))]],
    lists:sort([Address || File <- ["tcp", "tcp6"], {Address, Inode} <- listeners_in("/proc/" ++ Process ++ "/net/" ++ File),
                           lists:member(Inode ++ "]", Inodes)]).

listeners_in(File) ->
    {ok, Text} = file:read_file(File),
    [{Address, binary_to_list(lists:nth(10, Fields))}
     || Line <- tl(binary:split(Text, <<"\n">>, [global])), [_, Address, _, <<"0A">> | _] = Fields <- [binary:split(Line, <<" ">>, [global, trim_all])]].

%% ---- wrong ranks

%% ---- stopped processes, without MPI

paused_test_() -> {timeout, 120, fun paused/0}.

%% The driver and all ranks are stopped for longer than any of them waits for another, as in a virtual machine that is paused. Then they go on.
%% Ranks 0 and 2 are leaders.
paused() ->
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noshell" | tessera_test:paths()] ++ ["-run", atom_to_list(?MODULE), "driver"]}, {line, 1000}, exit_status, stderr_to_stdout]),
    Ranks = receive {Port, {data, {eol, "ranks " ++ Line}}} -> Line after 2 * ?WITHIN -> error(no_driver) end,
    {os_pid, Driver} = erlang:port_info(Port, os_pid),
    Signal = fun(Name) -> "" = os:cmd(["kill -", Name, " ", integer_to_list(Driver), " ", Ranks]) end,
    Signal("STOP"),
    timer:sleep(6000),
    Signal("CONT"),
    timer:sleep(1000),
    true = port_command(Port, "go\n"),
    receive {Port, {data, {eol, Last}}} -> ?assertEqual("the same: true", Last) after 2 * ?WITHIN -> error(no_answer) end,
    receive {Port, {exit_status, Status}} -> ?assertEqual(0, Status) after ?WITHIN -> error(no_end) end.

%% The program of the driver that is stopped.
driver() ->
    {Cluster, Pids} = started(none, #{ranks => 4, threads => 1, tree => {1, 2}, deadline => 4000}),
    io:format("ranks ~s~n", [lists:join(" ", Pids)]),
    _ = io:get_line(""),
    [ok, ok, ok, ok] = tessera_cluster:call(Cluster, noop),
    io:format("the same: ~p~n", [pids(Cluster) =:= Pids]),
    stop(Cluster, Pids),
    halt(0).

acceptor_test_() -> {timeout, 120, in_folder(fun acceptor/1)}.

%% The start ends with the process that accepts connections, not after its time limit.
acceptor(Folder) ->
    Sleeps = fake(Folder, "sleeps", ["exec sleep 60"]),
    Self = self(),
    Starter = spawn_link(fun() -> Self ! {self(), tessera_cluster:start_link(#{ranks => 2, directory => Folder, mpirun => Sleeps})} end),
    until(fun() -> acceptors() =/= [] end),
    [true = exit(Acceptor, kill) || Acceptor <- acceptors()],
    receive {Starter, Result} ->
            ?assertEqual({error, {unavailable, <<"the process that accepts connections ended: killed">>}}, Result)
    after ?WITHIN div 2 -> error(no_end)
    end.

acceptors() ->
    [Process || Process <- processes(), {current_stacktrace, Trace} <- [process_info(Process, current_stacktrace)],
                {tessera_cluster_door, accept, _, _} <- Trace].

versions_test_() -> {timeout, 120, in_folder(fun versions/1)}.

%% One rank finds another version of a module first.
versions(Folder) ->
    {ok, Source} = file:read_file(filename:join([filename:dirname(code:which(tessera_cluster)), "..", "erl", "cluster", "tessera_cluster_wire.erl"])),
    Changed = filename:join(Folder, "tessera_cluster_wire.erl"),
    ok = file:write_file(Changed, string:replace([Source, "another() -> ok.\n"], "-export", "-export([another/0]).\n-export")),
    {ok, _} = compile:file(Changed, [{outdir, Folder}]),
    Lines = ["until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n",
             "TESSERA_RANK=0 TESSERA_RANKS=2 \"$@\" & ERL_FLAGS=\"-pa ", Folder, "\" TESSERA_RANK=1 TESSERA_RANKS=2 \"$@\" & wait\n"],
    {error, {unavailable, Text}} = tessera_cluster:start_link(#{ranks => 2, directory => Folder, mpirun => fake(Folder, "other", Lines)}),
    ?assertMatch({match, _}, re:run(Text, "^a process on [^ ]+ says that it is rank 1: its version is .*, and this node's is ")).

builds_test_() ->
    [{"one rank", {timeout, 120, in_folder(fun one_build/1)}}, {"ranks of another architecture", {timeout, 120, in_folder(fun other_builds/1)}}].

%% One rank loads another build of the C library, with the same modules.
one_build(Folder) ->
    {Ebin, Build} = tessera_cluster_tests:other_build(Folder),
    Lines = ["until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n",
             "TESSERA_RANK=0 TESSERA_RANKS=2 \"$@\" & ERL_FLAGS=\"-pa ", Ebin, "\" TESSERA_RANK=1 TESSERA_RANKS=2 \"$@\" & wait\n"],
    {error, {unavailable, Text}} = tessera_cluster:start_link(#{ranks => 2, directory => Folder, mpirun => fake(Folder, "other", Lines)}),
    {match, [Said, Own]} = re:run(Text, "^a process on [^ ]+ says that it is rank 1: the build of its C library is (.*), and this node's is (.*): build ",
                                  [{capture, all_but_first, binary}]),
    ?assertEqual({Build, tessera_nif:rank_build()}, {Said, Own}).

%% The driver's build says nothing of them, but they are compared with each other.
other_builds(Folder) ->
    ?assertMatch({match, _}, re:run(impostors(Folder, #{cpu => <<"pdp11">>, build => <<"a">>}, #{cpu => <<"pdp11">>, build => <<"b">>}),
                                    "^a process on impostor says that it is rank 1: the build of its C library is b, and that of a rank on impostor is a: ")).

silent_test_() -> [{lists:concat(["silent strangers, TLS: ", Tls]), {timeout, 120, in_folder(fun(Folder) -> silent(Folder, Tls) end)}} || Tls <- [false, true]].

%% More silent strangers than there are places do not keep ranks from joining: neither strangers that came before, nor strangers that keep coming.
silent(Folder, Tls) ->
    #{level := Level} = logger:get_primary_config(),
    Waits = fake(Folder, "waits", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args\n",
                                   "while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n", ranks(2, "")]),
    Self = self(),
    ok = logger:set_primary_config(level, error),   % a warning for each stranger
    try
        Starter = spawn_link(fun() ->
                                     {Cluster, Pids} = started(Waits, #{directory => Folder, tls => Tls}),
                                     Self ! {self(), tessera_cluster:call(Cluster, noop)},
                                     stop(Cluster, Pids),
                                     Self ! {self(), stopped}
                             end),
        {Port, _} = listening(Folder),
        Silent = [tessera_cluster_tests:connect(Port, []) || _ <- lists:seq(1, 200)],
        {More, Monitor} = spawn_monitor(fun() -> knocks(Port) end),
        ok = file:write_file(Folder ++ "/go", <<>>),
        receive {Starter, Result} -> ?assertEqual([ok, ok], Result) end,
        receive {'DOWN', Monitor, process, More, Reason} -> ?assertEqual(normal, Reason) end,   % nothing listens any more
        [ok = gen_tcp:close(Socket) || Socket <- Silent],
        receive {Starter, stopped} -> ok end
    after ok = logger:set_primary_config(level, Level)
    end.

knocks(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
        {ok, _} ->
            timer:sleep(10),
            knocks(Port);
        {error, _} -> ok
    end.

authenticated_test_() -> {timeout, 120, in_folder(fun authenticated/1)}.

%% A rank that has the key and breaks the protocol, or has another kind of CPU, ends the start with an error that names it.
authenticated(Folder) ->
    Sleeps = fake(Folder, "sleeps", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; exec sleep 60"]),
    Start = fun(Change, Bytes) ->
                    Self = self(),
                    {Starter, Monitor} = spawn_monitor(fun() -> Self ! {self(), tessera_cluster:start_link(
                        #{ranks => 2, directory => Folder, mpirun => Sleeps, max_message => 1 bsl 20})} end),
                    {Port, KeyFile} = listening(Folder),
                    {ok, Key} = file:read_file(KeyFile),
                    Socket = impostor(Port, Key, Change),
                    [_ = gen_tcp:send(Socket, B) || B <- Bytes],
                    {error, {unavailable, Text}} = receive {Starter, Result} -> Result after ?WITHIN -> error(no_end) end,
                    receive {'DOWN', Monitor, process, Starter, _} -> ok end,
                    ok = gen_tcp:close(Socket),
                    ok = file:delete(Folder ++ "/args"),
                    binary_to_list(Text)
            end,
    Frame = fun(Bytes) -> [<<(iolist_size(Bytes)):32>>, Bytes] end,
    Bad = fun(Bytes) -> Start(#{}, [Frame(Bytes)]) end,
    ?assertEqual("rank 0 on impostor: it sent a malformed message", Bad([2, 0, <<131>>])),
    ?assertEqual("rank 0 on impostor: it sent a malformed message", Bad([2, 0, term_to_binary({ready, 7})])),
    ?assertEqual("rank 0 on impostor: it sent a malformed message", Bad([2, 0, <<131, 119, 21, "tessera_atom_unheard_">>])),
    ?assertEqual("rank 0 on impostor: it sent a malformed frame", Bad([9])),
    ?assertEqual("rank 0 on impostor: it sent an oversized frame", Start(#{}, [<<(1 bsl 21):32>>, <<0:8000>>])),
    ?assertEqual("rank 0 on impostor: it sent a message of more than 1048576 bytes",
                 Start(#{}, [Frame([1, binary:copy(<<1>>, 1000000)]), Frame([1, binary:copy(<<1>>, 1000000)])])),
    ?assertEqual("a process on impostor says that it is rank 7: the cluster has 2", Start(#{rank => 7}, [])),
    ?assertMatch("a process on impostor says that it is rank 0: it belongs to none ranks and not to 2" ++ _, Start(#{size => none}, [])).

%% A rank that has the key. Returns when the driver has answered, or has refused it.
impostor(Port, Key, Change) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, 4}, {active, false}]),
    Own = tessera_cluster_wire:hidden(Key),
    ok = gen_tcp:send(Socket, tessera_cluster_wire:ticket(Own)),
    {ok, Greeting} = gen_tcp:recv(Socket, 0, ?WITHIN),
    {ok, Driver} = tessera_cluster_wire:read_greeting(Greeting),
    Hello = #{rank => 0, size => 2, host => <<"impostor">>, os_pid => <<"1">>, version => tessera_rank:version(), otp_release => <<"27">>,
              cpu => element(1, tessera_nif:rank_isa()), build => tessera_nif:rank_build()},
    ok = gen_tcp:send(Socket, tessera_cluster_wire:hello(Own, Driver, tessera_cluster_wire:nonce(), maps:merge(Hello, Change))),
    _ = gen_tcp:recv(Socket, 0, ?WITHIN),
    ok = inet:setopts(Socket, [{packet, raw}]),
    Socket.

cpus_test_() -> {timeout, 120, in_folder(fun cpus/1)}.

cpus(Folder) ->
    ?assertMatch({match, _}, re:run(impostors(Folder, #{cpu => <<"pdp11">>}, #{}),
                                    "^a process on impostor says that it is rank 1: its CPU is [^ ]+, and that of a rank on impostor is pdp11")).

%% The error of a start with two impostors, rank 0 and rank 1, whose greetings are changed so.
impostors(Folder, First, Second) ->
    Waits = fake(Folder, "waits", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; exec sleep 60"]),
    Self = self(),
    Starter = spawn_link(fun() -> Self ! {self(), tessera_cluster:start_link(#{ranks => 2, directory => Folder, mpirun => Waits})} end),
    {Port, KeyFile} = listening(Folder),
    {ok, Key} = file:read_file(KeyFile),
    Sockets = [impostor(Port, Key, First), impostor(Port, Key, Second#{rank => 1})],
    Said = receive {Starter, {error, {unavailable, Text}}} -> Text
           after ?WITHIN -> error(no_end)
           end,
    [ok = gen_tcp:close(Socket) || Socket <- Sockets],
    Said.

%% ---- secrets

secrets_test_() ->
    [{Name, {timeout, 120, in_folder(fun(Folder) -> secrets(Folder, Tls) end)}} || {Name, Tls} <- [{"secrets", false}, {"secrets with TLS", true}]].

%% The key is not in any command line, environment, printed state or stack of a process, or line of the log at any level. This holds while ranks
%% start, when they are ready, and when a process with the key ends by an error. The log does not have the user's variables either.
secrets(Folder, Tls) ->
    #{level := Level} = logger:get_primary_config(),
    Table = ets:new(log, [public, ordered_set]),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{table => Table}, level => all}),
    ok = logger:set_primary_config(level, all),
    try
        Waits = fake(Folder, "waits", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; echo waits\n",
                                       "while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n", ranks(2, "")]),
        Self = self(),
        Starter = spawn_link(fun() ->
                                     {Cluster, Pids} = started(Waits, #{directory => Folder, tls => Tls, env => [{"TESSERA_TEST_PASSWORD", ?PASSWORD}]}),
                                     Self ! {self(), Cluster, Pids},
                                     receive stop -> stop(Cluster, Pids) end,
                                     Self ! {self(), stopped}
                             end),
        {Port, KeyFile} = listening(Folder),
        Secrets = secrets_in(KeyFile, Tls),
        no_secret(Secrets),
        Stranger = tessera_cluster_tests:connect(Port, []),
        until(fun() -> length(own_processes()) >= 5 end),   % cluster, job, door, launcher, link
        not_printed(Secrets),
        ok = file:write_file(Folder ++ "/go", <<>>),
        {Cluster, Pids} = receive {Starter, Name, There} -> {Name, There} end,
        ok = gen_tcp:close(Stranger),
        no_secret(Secrets),
        not_printed(Secrets),
        ?assert(lists:all(fun tessera_cluster_tests:is_running/1, Pids)),
        #{links := Links} = tessera_cluster_state:connections(Cluster),
        element(1, Links) ! {request, no, request, of_this, form},
        until(fun() -> maps:get(restarts, tessera_cluster:info(Cluster)) > 0 end),
        until(fun() -> [1 || {_, Line} <- ets:tab2list(Table), binary:match(Line, <<"of_this">>) =/= nomatch] =/= [] end),
        _ = tessera_cluster_state:connections(Cluster),
        Starter ! stop,
        receive {Starter, stopped} -> ok end,
        Lines = [Line || {_, Line} <- ets:tab2list(Table)],
        [?assertEqual(nomatch, binary:match(Line, Secret)) || Line <- Lines, Secret <- [?PASSWORD | forms(Secrets)]]
    after
        ok = logger:set_primary_config(level, Level),
        ok = logger:remove_handler(?MODULE)
    end.

%% What sys, and a shell's i() and bt(), show of a cluster's processes. sys shows no variables of the user either.
not_printed(Secrets) ->
    [[?assertEqual({Process, nomatch}, {Process, binary:match(Text, Secret)}) || Secret <- forms(Secrets) ++ More]
     || Process <- own_processes(), {Text, More} <- shown(Process)].

shown(Process) ->
    [{Text, []} || {backtrace, Text} <- [process_info(Process, backtrace)]] ++ [{printed_term(Status), [?PASSWORD]} || is_server(Process), Status <- status(Process)].

%% No status if the process has ended meanwhile, as the process of a stranger's connection may have.
status(Process) ->
    try [sys:get_status(Process, ?WITHIN)]
    catch exit:_ ->
            ?assertNot(is_process_alive(Process)),
            []
    end.

printed_term(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).

is_server(Process) ->
    case process_info(Process, dictionary) of
        {dictionary, Dictionary} -> lists:any(fun({'$initial_call', {_, init, 1}}) -> true; (_) -> false end, Dictionary);
        undefined -> false
    end.

%% The processes of clusters; without processes of tests, which have the options that they pass.
own_processes() ->
    [Process || Process <- processes(), Modules <- [modules(Process)], lists:any(fun(M) -> lists:prefix("tessera_cluster", M) end, Modules),
                not lists:any(fun(M) -> lists:suffix("_tests", M) end, Modules)].

modules(Process) ->
    case process_info(Process, [current_stacktrace, dictionary]) of
        [{_, Trace}, {_, Dictionary}] -> [atom_to_list(M) || M <- [M || {M, _, _, _} <- Trace] ++ [M || {'$initial_call', {M, _, _}} <- Dictionary]];
        undefined -> []
    end.

%% The key of the proofs, and the private key of TLS.
secrets_in(KeyFile, Tls) ->
    {ok, <<Key:32/binary, Certificate/binary>>} = file:read_file(KeyFile),
    ?assertEqual(Tls, Certificate =/= <<>>),
    case file:read_file(filename:join(filename:dirname(KeyFile), "tls.pem")) of
        {ok, Pem} ->
            [{'Certificate', Certificate, _}, {'ECPrivateKey', PrivateKey, _}] = public_key:pem_decode(Pem),
            [Key, element(3, public_key:der_decode('ECPrivateKey', PrivateKey))];
        {error, enoent} when not Tls -> [Key]
    end.

%% As a handler of the log.
log(Event, #{config := #{table := Table}}) ->
    ets:insert(Table, {erlang:unique_integer([monotonic]), printed_term(Event)}).

%% As they are, and as they would be printed.
forms(Secrets) -> lists:append([printed(Secret) || Secret <- Secrets]).

printed(Secret) ->
    Printed = unicode:characters_to_binary(io_lib:format("~w", [Secret])),
    [Secret, binary:encode_hex(Secret), string:lowercase(binary:encode_hex(Secret)), base64:encode(Secret),
     binary:part(Printed, 2, byte_size(Printed) - 4)].

no_secret(Secrets) ->
    {ok, Names} = file:list_dir("/proc"),
    Texts = [Text || Name <- Names, hd(Name) =< $9, File <- ["cmdline", "environ"],
                     {ok, Text} <- [file:read_file(filename:join(["/proc", Name, File]))]],
    ?assert(length(Texts) > 4),
    [?assertEqual(nomatch, binary:match(Text, Secret)) || Text <- Texts, Secret <- forms(Secrets)].

%% ---- messages of sys, and labels

%% Each process that is no worker answers: what starts ranks, what accepts their connections, what leads, what answers requests. Its state is shown without
%% the key, it can be suspended and continues, and it has a label where OTP has labels.
sys_test_() -> {timeout, 120, in_folder(fun sys/1)}.

-define(SPECIAL, [{tessera_cluster_launcher, loop}, {tessera_cluster_log, wait}, {tessera_cluster_door, accept}, {tessera_rank, wait}, {tessera_rank_leader, wait}]).

%% Ranks 0 and 2 are leaders.
sys(Folder) ->
    Fake = fake(Folder, "late", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args; while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n",
                                 ranks(4, "")]),
    Self = self(),
    Starter = spawn_link(fun() ->
                                 {Cluster, Pids} = started(Fake, #{ranks => 4, threads => 1, tree => {1, 2}, directory => Folder}),
                                 Self ! {started, Cluster},
                                 receive stop -> stop(Cluster, Pids) end,
                                 Self ! stopped
                         end),
    {_, KeyFile} = listening(Folder),
    {ok, <<Key:32/binary, _/binary>>} = file:read_file(KeyFile),
    %% between two connections a door is elsewhere for a moment
    until(fun() -> answering(Key) =:= [tessera_cluster_door, tessera_cluster_launcher, tessera_cluster_log] end),
    ok = file:write_file(Folder ++ "/go", <<>>),
    Cluster = receive {started, Pid} -> Pid end,
    ?assertEqual([[tessera_rank, tessera_rank_leader], [tessera_rank], [tessera_rank, tessera_rank_leader], [tessera_rank]],
                 tessera_cluster:map(Cluster, fun(_) -> answering(Key) end)),
    ?assertEqual([tessera_cluster_launcher, tessera_cluster_log], answering(Key)),
    ?assertEqual([ok, ok, ok, ok], tessera_cluster:call(Cluster, noop)),
    Starter ! stop,
    receive stopped -> ok end.

answering(Key) ->
    lists:sort([begin
                    ok = answers(Process, Key),
                    Module
                end || Process <- processes(), {current_stacktrace, Trace} <- [process_info(Process, current_stacktrace)],
                       {Module, Function} <- ?SPECIAL, lists:any(fun({M, F, _, _}) -> M =:= Module andalso F =:= Function end, Trace)]).

answers(Process, Key) ->
    Status = sys:get_status(Process, ?WITHIN),
    nomatch = binary:match(printed_term(Status), [printed_term(Key), Key]),
    State = sys:get_state(Process, ?WITHIN),
    State = sys:replace_state(Process, fun(Same) -> Same end, ?WITHIN),
    ok = sys:suspend(Process, ?WITHIN),
    ok = sys:resume(Process, ?WITHIN),
    Module = proc_lib,
    false = erlang:function_exported(Module, get_label, 1) andalso Module:get_label(Process) =:= undefined,
    ok.

%% Clusters over two hosts, which test/mpi/hosts.sh makes: the same bits as in one VM, slow and cut cables, a killed driver. Prints
%% what each case took, and ends the node with 0 when all have passed.
-module(tessera_hosts).
-export([main/1, driver/1]).

-define(SLACK, 3000).
-define(DEADLINE, 6000).
-define(WITHIN, 60000).

main([A, B, Folder]) ->
    logger:set_primary_config(level, critical),
    {ok, _} = application:ensure_all_started(tessera),
    Hosts = {A, B, Folder},
    Results = [run(Name, Test, Hosts) || {Name, Test} <- [{"bits", fun bits/1}, {"slow cable", fun slow/1}, {"cut cables", fun cut/1},
                                                          {"cut cable between ranks", fun cut_data/1}, {"killed driver", fun killed_driver/1}]],
    Failed = length([R || R <- Results, R =/= ok]),
    io:format("MPI tests on two hosts: ~b passed, ~b failed~n", [length(Results) - Failed, Failed]),
    halt(min(Failed, 1)).

%% A case that fails leaves its cluster to the next one's start, which ends it.
run(Name, Test, Hosts) ->
    Began = now_ms(),
    try Test(Hosts) of
        Said -> io:format("two hosts: ~ts: ok in ~b ms~ts~n", [Name, now_ms() - Began, Said])
    catch Class:Reason:Trace -> io:format("two hosts: ~ts FAILED: ~tp~n", [Name, {Class, Reason, Trace}]), failed
    end.

now_ms() -> erlang:monotonic_time(millisecond).

start(Hosts) -> start(Hosts, "10.213.2.0/24").

%% With this network for the bytes of collectives.
start({A, B, Folder}, Network) ->
    Agent = filename:join(Folder, "agent"),
    _ = [tessera_cluster:stop(?MODULE) || is_pid(whereis(?MODULE))],
    {ok, Cluster} = tessera_cluster:start_link(
        #{name => ?MODULE, ranks => 4, hosts => [{A, 2}, {B, 2}], listen => {10, 213, 1, 1}, directory => Folder, deadline => ?DEADLINE, threads => 1,
          restarts => {10, 600}, mca => [{"btl_tcp_if_include", Network}, {"oob_tcp_if_include", "10.213.1.0/24"}],
          env => [{"OMPI_MCA_plm_rsh_agent", Agent}, {"PRTE_MCA_plm_ssh_agent", Agent}]}),
    Cluster.

%% ---- cases

%% The hosts are what they say, and the mesh fixes the bits.
bits({A, B, _} = Hosts) ->
    Before = pids(Hosts),
    Cluster = start(Hosts),
    Names = [list_to_binary(Host) || Host <- [A, A, B, B]],
    Names = [Host || #{host := Host} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    ok = tessera:open_client(hosts, #{device_count => 4}),
    Here = results(hosts),
    Here = results(Cluster),
    ok = tessera_cluster:stop(Cluster),
    nothing_left(Hosts, Before),
    "".

results(Client) ->
    Step = fun(W, X) -> tessera:sum(tessera:tanh(tessera:dot(X, W))) end,
    F = tessera:shard_jit(tessera:value_and_grad(Step), #{shape => {2, 2}},
                          #{client => Client, input_shardings => [#{0 => [1], 1 => [0]}, #{0 => [0]}]}),
    [{tessera:to_binary(Loss), tessera:to_binary(element(1, Gradients))}
     || {Loss, Gradients} <- [{L, as_tuple(G)} || {L, G} <- F([[counted({60, 40}, 7.0 + P), counted({50, 120}, 100.0 + P div 2)] || P <- [0, 1, 2, 3]])]].

as_tuple(Gradients) when element(1, Gradients) =/= tessera -> Gradients;
as_tuple(Gradient) -> {Gradient}.

counted({Rows, Columns} = Shape, By) ->
    tessera:reshape(tessera:divide(tessera:iota({Rows * Columns}), By * 100), Shape).

sums(Cluster) -> tessera:shard_map(fun(X) -> tessera:all_reduce(X, sum, 0) end, #{shape => {4}}, [#{0 => [0]}], #{0 => [0]}, #{client => Cluster}).

check_sums(Cluster, Elements) ->
    Results = (sums(Cluster))([[tessera:broadcast(float(I), {Elements})] || I <- [1, 2, 3, 4]]),
    [10.0, 10.0, 10.0, 10.0] = [tessera:to_number(tessera:reduce_max(Y)) || Y <- Results],
    [10.0, 10.0, 10.0, 10.0] = [tessera:to_number(tessera:reduce_min(Y)) || Y <- Results].

%% Ranks between which bytes come slowly are not silent. The cable has 10 Mbit/s and 20 ms, and carries 17.6 MB each way: 2 ranks of a host give
%% each of 2 others 2.2 MB, twice. So already one rank's block takes longer than the deadline.
slow({A, B, Folder} = Hosts) ->
    Relay = open_port({spawn_executable, filename:join(Folder, "relay")},
                      [{args, [A, B, "slow", "20", "10000000", "300"]}, {line, 1000}, exit_status, stderr_to_stdout]),
    try
        "ready" = line(Relay),
        [[] = command(["ip -n ", Host, " addr add 10.213.3.", Own, "/24 dev slow && ip -n ", Host, " link set slow up"]) || {Host, Own} <- [{A, "1"}, {B, "2"}]],
        Before = pids(Hosts),
        Cluster = start(Hosts, "10.213.3.0/24"),
        Took = timed(fun() -> check_sums(Cluster, 2200000) end),
        #{restarts := 0, state := up} = tessera_cluster:info(Cluster),
        Took > ?DEADLINE orelse error({not_slow, Took}),
        check_sums(Cluster, 1000),
        ok = tessera_cluster:stop(Cluster),
        nothing_left(Hosts, Before),
        true = port_command(Relay, "end"),
        {Passed, 0} = rest(Relay, []),
        [Less, _] = Bytes = lists:sort([list_to_integer(N) || Line <- Passed, {match, [N]} <- [re:run(Line, " ([0-9]+) bytes", [{capture, all_but_first, list}])]]),
        Less > 17600000 orelse error({other_cable, Passed}),
        [{Host, [_ | _]} = {Host, command(["ip -n ", Host, " link show slow 2>&1 | grep 'does not exist'"])} || Host <- [A, B]],
        io_lib:format("; a collective took ~b ms, the deadline is ~b; bytes each way: ~0p", [Took, ?DEADLINE, Bytes])
    after
        catch port_close(Relay)   % whose input has ended then
    end.

line(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line;
        {Port, {exit_status, Status}} -> error({ended, Status})
    after ?WITHIN -> error(no_line)
    end.

%% The lines until the end, and the status.
rest(Port, Lines) ->
    receive
        {Port, {data, {eol, Line}}} -> rest(Port, Lines ++ [Line]);
        {Port, {exit_status, Status}} -> {Lines, Status}
    after ?WITHIN -> error({no_end, Lines})
    end.

timed(F) ->
    Began = now_ms(),
    _ = F(),
    now_ms() - Began.

%% The driver hears nothing of two ranks, or a rank tells it that it hears nothing of them, before it is found silent itself.
cut({A, _, _} = Hosts) ->
    Set = fun(State) -> [[] = command(["ip -n ", A, " link set ", Cable, " ", State]) || Cable <- ["control", "data"]] end,
    cut(Hosts, {fun() -> Set("down") end, fun() -> Set("up") end, both}, "rank [0123] (on|did not answer)").

%% The driver still hears all ranks, which no longer hear each other: packets between them are sent to an address that no host has.
cut_data({A, B, _} = Hosts) ->
    Set = fun(How) ->
                  [[] = command(["ip -n ", Host, " neigh ", How(Address)]) || {Host, Address} <- [{A, "10.213.2.2"}, {B, "10.213.2.1"}]]
          end,
    Down = fun() -> Set(fun(Address) -> ["replace ", Address, " lladdr 02:00:00:00:00:99 dev data nud permanent"] end) end,
    Up = fun() -> Set(fun(Address) -> ["del ", Address, " dev data"] end) end,
    cut(Hosts, {Down, Up, data}, "rank [0123] did not answer before the deadline").

cut({_, B, _} = Hosts, {Down, Up, Which}, Says) ->
    Before = pids(Hosts),
    Cluster = start(Hosts),
    Ranks = [Pid || #{os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    Endless = tessera:shard_map(
        fun(X) ->
                {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 1000000000) end,
                                       fun({I, Y}) -> {tessera:add(I, 1), tessera:all_reduce(Y, mean, 0)} end),
                Y
        end, #{shape => {4}}, [#{0 => [0]}], #{0 => [0]}, #{client => Cluster}),
    {Caller, Monitor} = spawn_monitor(fun() -> [tessera:to_binary(Y) || Y <- Endless([[tessera:broadcast(1.0, {50000})] || _ <- [1, 2, 3, 4]])] end),
    timer:sleep(1500),
    Cut = now_ms(),
    _ = Down(),
    {Text, Reported, Gone} = try cut_off(Which, B, {Caller, Monitor, Cut}, Ranks, Before)
                             after Up()
                             end,
    match =:= re:run(Text, Says, [{capture, none}]) orelse error({said, Text}),
    Reported =< ?DEADLINE + 1000 + slack() orelse error({reported_after, Reported, Text}),
    check_sums(Cluster, 1000),
    ok = tessera_cluster:stop(Cluster),
    nothing_left(Hosts, Before),
    io_lib:format("; reported after ~b ms, the bar is ~b; gone after ~b ms: ~ts", [Reported, ?DEADLINE + 1000, Gone, Text]).

%% Nothing of the lost job runs on either host while they are still apart. Where the driver reaches both, it has started a new one.
cut_off(Which, B, {Caller, Monitor, Cut}, Ranks, {_, BeforeB}) ->
    Text = receive {'DOWN', Monitor, process, Caller, {{unavailable, Said}, _}} -> Said after ?WITHIN -> error(no_report) end,
    Reported = now_ms() - Cut,
    until(fun() -> not lists:any(fun is_running/1, Ranks) end),
    Which =:= data orelse none(fun() -> pids_of(B) -- BeforeB end),
    {Text, Reported, now_ms() - Cut}.

%% Milliseconds beyond a bar: SLACK for the test's own processes, and as much again for each process that a CPU has to run besides.
slack() ->
    {ok, Text} = file:read_file("/proc/loadavg"),
    Load = binary_to_float(hd(binary:split(Text, <<" ">>))),
    ?SLACK + ceil(?SLACK * Load / erlang:system_info(schedulers_online)).

killed_driver(Hosts) ->
    Before = pids(Hosts),
    {A, B, Folder} = Hosts,
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noshell", "-noinput", "-pa", "ebin", "build/test-mpi", "-run", "tessera_hosts", "driver", A, B, Folder]},
                      {line, 1000}, exit_status]),
    receive {Port, {data, {eol, "ready"}}} -> ok after ?WITHIN -> error(no_driver) end,
    {os_pid, Driver} = erlang:port_info(Port, os_pid),
    Began = now_ms(),
    "" = command(["kill -KILL ", integer_to_list(Driver)]),
    nothing_left(Hosts, Before),
    io_lib:format("; all processes of both hosts ended in ~b ms", [now_ms() - Began]).

driver(Hosts) ->
    {ok, _} = application:ensure_all_started(tessera),
    _ = start(list_to_tuple(Hosts)),
    io:format("ready~n"),
    timer:sleep(infinity).

%% ---- processes

command(Command) -> os:cmd(lists:flatten(Command)).

pids({A, B, _}) -> {pids_of(A), pids_of(B)}.

%% Those that run in it, without zombies, which their parent has not read yet.
pids_of(Host) -> [Pid || Pid <- string:lexemes(command(["ip netns pids ", Host]), "\n"), is_running(Pid)].

%% Commands of this node are processes of its host, too, for a moment.
nothing_left(Hosts, {A, B}) ->
    none(fun() ->
                 {NowA, NowB} = pids(Hosts),
                 (NowA -- A) ++ (NowB -- B)
         end).

none(Pids) -> none(Pids, now_ms() + ?WITHIN).

none(Pids, Until) ->
    case [{Pid, Name} || Pid <- Pids(), Name <- [name(Pid)], not lists:member(Name, ["sh", "ip", ""])] of
        [] -> ok;
        Left ->
            now_ms() < Until orelse error({runs, Left}),
            timer:sleep(50),
            none(Pids, Until)
    end.

name(Pid) ->
    case file:read_file(["/proc/", Pid, "/comm"]) of
        {ok, Name} -> string:trim(binary_to_list(Name));
        {error, _} -> ""
    end.

is_running(Pid) ->
    case file:read_file(["/proc/", Pid, "/stat"]) of
        {ok, Text} ->
            <<" ", State, _/binary>> = lists:last(binary:split(Text, <<")">>, [global])),
            State =/= $Z;
        {error, _} -> false
    end.

until(Is) -> until(Is, now_ms() + ?WITHIN).

until(Is, Until) ->
    case Is() of
        true -> ok;
        false ->
            now_ms() < Until orelse error(too_late),
            timer:sleep(50),
            until(Is, Until)
    end.

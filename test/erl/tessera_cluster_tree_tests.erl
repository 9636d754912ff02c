%% The tree of sockets: its form, real ranks in a small one, and more than a hundred light ranks (tessera_light_ranks).
-module(tessera_cluster_tree_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [busy/1, connect/2, fake/3, is_running/1, listening/1, refused/3, refused/4]).
-import(tessera_test, [in_folder/1, until/1]).
-export([launcher/3]).

-define(WITHIN, 240000).

%% ---- its form

form_test() ->
    [check(Ranks, Tree) || Tree <- [{64, 32}, {1, 2}, {2, 2}, {4, 3}, {3, 10}], Ranks <- [1, 2, 3, 4, 5, 7, 16, 63, 64, 65, 100, 1000]],
    check(4096, {64, 32}),
    New = fun(Ranks) -> tessera_cluster_tree:new(Ranks, {64, 32}) end,
    ?assertEqual([1, 1, 2, 2, 3, 3], [tessera_cluster_tree:depth(New(Ranks)) || Ranks <- [1, 64, 65, 2048, 2049, 4096]]),
    %% the table of docs/distribution.md: sockets of the driver, and of a leader to its children
    Sockets = fun(Tree, Ranks) -> length([R || R <- lists:seq(0, Ranks - 1), tessera_cluster_tree:parent(R, Tree) =:= driver]) end,
    ?assertEqual([{8, 0}, {64, 0}, {4, 31}, {16, 31}, {64, 31}, {4, 62}],
                 [{Sockets(New(Ranks), Ranks), length(tessera_cluster_tree:children(0, New(Ranks)))} || Ranks <- [8, 64, 128, 512, 2048, 4096]]),
    ?assertEqual([driver, 0, 0, 32, 1024, driver], [tessera_cluster_tree:parent(Rank, New(4096)) || Rank <- [0, 1, 32, 33, 1056, 1024]]).

%% Each rank is reached from the driver, through at most depth/1 sockets, and has few children.
check(Ranks, {Direct, Radix} = Limits) ->
    Tree = tessera_cluster_tree:new(Ranks, Limits),
    All = lists:seq(0, Ranks - 1),
    Roots = [Rank || Rank <- All, tessera_cluster_tree:parent(Rank, Tree) =:= driver],
    ?assert(length(Roots) =< Direct),
    Depth = tessera_cluster_tree:depth(Tree),
    ?assertEqual(All, lists:sort(lists:append([below(Root, Depth, Tree) || Root <- Roots]))),
    [begin
         ?assert(length(tessera_cluster_tree:children(Rank, Tree)) =< (Depth - 1) * (Radix - 1)),
         [?assertEqual(Child, tessera_cluster_tree:towards(Rank, To, Tree))
          || Child <- tessera_cluster_tree:children(Rank, Tree), To <- below(Child, Depth, Tree)]
     end || Rank <- Roots],
    ?assertEqual(none, tessera_cluster_tree:towards(Ranks, hd(Roots), Tree)).

below(Rank, Depth, Tree) when Depth > 0 ->
    [?assertEqual(Rank, tessera_cluster_tree:parent(Child, Tree)) || Child <- tessera_cluster_tree:children(Rank, Tree)],
    [Rank | lists:append([below(Child, Depth - 1, Tree) || Child <- tessera_cluster_tree:children(Rank, Tree)])].

%% ---- ranks

real_test_() ->
    [{Title, {timeout, 120, Test}} || {Title, Test} <- [{"real ranks in a tree", fun() -> real(#{}) end},
                                                        {"real ranks in a tree with TLS", fun() -> real(#{tls => true}) end},
                                                        {"a leader killed", fun() -> killed(2) end},
                                                        {"a rank below a leader of a leader killed", fun() -> killed(3) end},
                                                        {"a rank stopped", fun stopped/0}]].

%% 0 and 4 are connected to the driver, 2 to 0, 6 to 4, and the odd ones to the rank before them.
started(Options) ->
    {ok, _} = application:ensure_all_started(tessera),
    {ok, Cluster} = tessera_cluster:start_link(maps:merge(#{ranks => 7, mpirun => none, threads => 1, tree => {2, 2}}, Options)),
    Cluster.

real(Options) ->
    Cluster = started(Options),
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    ?assertEqual([driver, 0, 0, 2, driver, 4, 4], [Parent || #{parent := Parent} <- Ranks]),
    ?assertEqual(lists:duplicate(7, ok), tessera_cluster:call(Cluster, noop)),
    ?assertEqual(lists:seq(0, 12, 2), tessera_cluster:map(Cluster, fun(Rank) -> 2 * Rank end)),
    Bytes = rand:bytes(3000000), % several frames, both ways, for each
    ?assertEqual(lists:duplicate(7, Bytes), tessera_cluster:map(Cluster, fun(_) -> Bytes end)),
    ?assertError({out_of_range, <<"rank 3 on ", _/binary>>}, tessera_cluster:map(Cluster, fun(3) -> error({out_of_range, <<"here">>}); (_) -> ok end)),
    Parts = tessera_cluster:map(Cluster, fun(Rank) -> tessera:tensor([float(Rank)]) end),
    ?assertEqual([[float(Rank)] || Rank <- lists:seq(0, 6)], [tessera:to_list(Part) || Part <- Parts]),
    ok = tessera_cluster:stop(Cluster),
    [?assertNot(is_running(Pid)) || #{os_pid := Pid} <- Ranks].

%% The error names it, though another rank heard of it; nothing is left, and the next call finds new ranks.
killed(Rank) ->
    Cluster = started(#{}),
    #{ranks := Ranks} = tessera_cluster:info(Cluster),
    {Caller, Monitor} = busy(Cluster),
    [Pid] = [Pid || #{rank := R, os_pid := Pid} <- Ranks, R =:= Rank],
    "" = os:cmd("kill -KILL " ++ binary_to_list(Pid)),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} ->
            ?assertMatch({match, _}, re:run(Text, ["^rank ", integer_to_list(Rank), " on [^ ]+: its connection to its leader was closed$"]))
    end,
    ?assertEqual(lists:duplicate(7, ok), tessera_cluster:call(Cluster, noop)),
    [until(fun() -> not is_running(Old) end) || #{os_pid := Old} <- Ranks],
    ok = tessera_cluster:stop(Cluster).

stopped() ->
    Cluster = started(#{deadline => 3000}),
    [Pid] = [Pid || #{rank := 6, os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    {Caller, Monitor} = busy(Cluster),
    "" = os:cmd("kill -STOP " ++ binary_to_list(Pid)),
    receive {'DOWN', Monitor, process, Caller, Reason} -> ?assertMatch({{unavailable, _}, _}, Reason) end,
    ?assertMatch(#{last_error := {unavailable, <<"rank 6 on ", _/binary>>}}, tessera_cluster:info(Cluster)),
    ok = tessera_cluster:stop(Cluster),
    until(fun() -> not is_running(Pid) end).

%% While a leader waits for its last child, strangers find its port: a scan, a silent one, bytes of another protocol, an oversized frame, a wrong
%% key, a replayed handshake; and processes that have the key, but are no child of it. The start is not disturbed.
strangers_test_() -> {timeout, 120, in_folder(fun strangers/1)}.

strangers(Folder) ->
    Late = fake(Folder, "late", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args\n",
                                 "until case $1 in */erl) true ;; *) false ;; esac; do shift; done\n",
                                 "for r in 0 1 2 3 4 5 6; do [ $r != 6 ] || while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n",
                                 "TESSERA_RANK=$r TESSERA_RANKS=7 \"$@\" & echo $! >", Folder, "/rank$r; done; wait\n"]),
    Self = self(),
    Starter = spawn_link(fun() ->
                                 Cluster = started(#{mpirun => Late, directory => Folder}),
                                 Self ! {self(), Cluster},
                                 receive stop -> ok = tessera_cluster:stop(Cluster) end,
                                 Self ! {self(), stopped}
                         end),
    {_, KeyFile} = listening(Folder),
    {ok, Key} = file:read_file(KeyFile),
    Leader = Folder ++ "/rank4",
    until(fun() -> ports(Leader) =/= [] end),
    [Port] = ports(Leader),
    Silent = connect(Port, []),
    ok = gen_tcp:close(connect(Port, [])),
    Own = tessera_cluster_wire:hidden(Key),
    Ticket = tessera_cluster_wire:ticket(Own),
    Hello = fun(With) -> iolist_to_binary(tessera_cluster_wire:hello(With, <<0:256>>, <<0:256>>, #{rank => 6})) end,
    refused(Port, [], <<"GET / HTTP/1.0\r\n\r\n">>),
    refused(Port, [], <<-1:32, 0:8000>>),
    refused(Port, [{packet, 4}], Hello(Own)),
    refused(Port, Ticket, {packet, 4}, Hello(tessera_cluster_wire:key())),
    refused(Port, Ticket, {packet, 4}, Hello(Own)),
    [?assertEqual(refused, joined(Port, Own, Rank)) || Rank <- [0, 3, 4, 7, -1, a]],
    ok = file:write_file(Folder ++ "/go", <<>>),
    receive {Starter, Cluster} -> ?assertEqual(lists:duplicate(7, ok), tessera_cluster:call(Cluster, noop)) end,
    ?assertMatch(#{restarts := 0}, tessera_cluster:info(Cluster)),
    ?assertEqual([], ports(Leader)),
    ok = gen_tcp:close(Silent),
    Starter ! stop,
    receive {Starter, stopped} -> ok end.

%% The ports of the rank whose pid is in a file.
ports(File) ->
    case file:read_file(File) of
        {ok, Pid} when Pid =/= <<>> ->
            [list_to_integer(Port, 16) || Address <- tessera_cluster_fault_tests:listening_sockets(string:trim(binary_to_list(Pid))),
                                          Port <- [lists:last(string:lexemes(binary_to_list(Address), ":"))]];
        _ -> []
    end.

%% The leader's answer to a process that proves that it has the key, and claims to be this rank.
joined(Port, Key, Rank) ->
    Socket = connect(Port, [{packet, 4}]),
    ok = gen_tcp:send(Socket, tessera_cluster_wire:ticket(Key)),
    {ok, Greeting} = gen_tcp:recv(Socket, 0, ?WITHIN),
    {ok, Nonce} = tessera_cluster_wire:read_greeting(Greeting),
    ok = gen_tcp:send(Socket, tessera_cluster_wire:hello(Key, Nonce, <<1:256>>, #{rank => Rank})),
    Answer = gen_tcp:recv(Socket, 0, ?WITHIN),
    ok = gen_tcp:close(Socket),
    case Answer of
        {error, closed} -> refused;
        {ok, _} -> joined
    end.

%% ---- light ranks

light_test_() ->
    [{lists:concat([Ranks, " light ranks, TLS: ", Tls]), {timeout, 200, fun() -> light(Ranks, #{tree => Tree, tls => Tls}, Direct) end}}
     || {Ranks, Tree, Direct, Tls} <- [{144, {64, 32}, 5, false}, {144, {3, 5}, 2, false}, {144, {64, 32}, 5, true}]].

%% The driver has few sockets, and sends a request to all ranks over these only.
light(Ranks, Options, Direct) ->
    {ok, _} = application:ensure_all_started(tessera),
    Folder = string:trim(os:cmd("mktemp -d")),
    Before = sockets(),
    {ok, Cluster} = tessera_cluster:start_link(Options#{ranks => Ranks, threads => 1, mpirun => launcher(Folder, Ranks, 3)}),
    try
        until(fun() -> length(sockets() -- Before) =:= Direct end),
        ?assertEqual(lists:duplicate(Ranks, ok), tessera_cluster:call(Cluster, noop)),
        Earlier = sent(Cluster),
        ?assertEqual(lists:duplicate(Ranks, 1000000), tessera_cluster:call(Cluster, {size, binary:copy(<<7>>, 1000000)})),
        Sent = sent(Cluster) - Earlier,
        ?assert(Sent > Direct * 1000000 andalso Sent < (Direct + 1) * 1000000),
        ?assertEqual([binary:copy(<<1>>, 100000)], lists:usort(tessera_cluster:call(Cluster, {make, 100000}))),
        %% a caller that dies leaves nothing behind
        Links = tuple_to_list(maps:get(links, tessera_cluster_state:connections(Cluster))),
        {Caller, Monitor} = spawn_monitor(fun() -> tessera_cluster:call(Cluster, {size, binary:copy(<<7>>, 5000000)}) end),
        exit(Caller, kill),
        receive {'DOWN', Monitor, process, Caller, _} -> ok end,
        ?assertEqual(lists:duplicate(Ranks, ok), tessera_cluster:call(Cluster, noop)),
        ?assertEqual([], [Link || Link <- Links, not is_process_alive(Link)])
    after
        ok = tessera_cluster:stop(Cluster),
        ok = file:del_dir_r(Folder)
    end.

sockets() -> [Port || Port <- erlang:ports(), erlang:port_info(Port, name) =:= {name, "tcp_inet"}].

sent(Cluster) -> lists:sum([Sent || #{sent_bytes := Sent} <- maps:get(ranks, tessera_cluster:info(Cluster))]).

%% Instead of mpirun: `Vms` VMs with an equal part of the ranks each.
launcher(Folder, Ranks, Vms) ->
    Path = filename:join(Folder, "launcher"),
    Each = Ranks div Vms,
    ok = file:write_file(Path, ["#!/bin/sh\n[ \"$1\" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit; }\n",
                                "shift $(($# - 4))\n",
                                [["erl +S 1:1 -noshell -noinput ", tessera_test:shell_paths(), " -run tessera_light_ranks main ", integer_to_list(Vm * Each), " ",
                                  integer_to_list(Each), " ", integer_to_list(Ranks), " \"$@\" &\n"] || Vm <- lists:seq(0, Vms - 1)],
                                "wait\n"]),
    ok = file:change_mode(Path, 8#700),
    Path.

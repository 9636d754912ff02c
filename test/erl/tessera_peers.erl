%% Nodes besides the testing node, connected with one another over the loopback device only, without epmd: a node's name
%% has its port. The testing node is not connected; it talks to them over their standard input and output.
-module(tessera_peers).
-export([with/2, call/2, call/4, stop/1, node_of/1]).
-export([start_link/0, register_node/2, register_node/3, listen_port_please/2, port_please/2, port_please/3,
         address_please/3, names/1]).

%% Milliseconds for what takes seconds on an idle machine, and attempts to start a peer.
-define(WITHIN, 240000).
-define(ATTEMPTS, 3).

%% Calls F with `Count` peers, which end with it.
with(Count, F) ->
    Peers = [start() || _ <- lists:seq(1, Count)],
    try F(Peers)
    after [stop(Peer) || Peer <- Peers]
    end.

start() -> start(?ATTEMPTS).

%% Another program may take the port before the peer does: then the peer ends, and another one has another port.
start(Left) ->
    try started(free_port()) of
        {ok, Pid, Node} -> {Pid, Node}
    catch exit:{boot_failed, _} when Left > 1 -> start(Left - 1)
    end.

%% Other tests use many sockets without a number. Linux gives these sockets higher ports.
free_port() ->
    Port = 20000 + rand:uniform(12000),
    case gen_tcp:listen(Port, [{ip, {127, 0, 0, 1}}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            Port;
        {error, _} -> free_port()
    end.

started(Port) ->
    peer:start(#{name => "peer_" ++ os:getpid() ++ "_" ++ integer_to_list(Port), host => "127.0.0.1", longnames => true,
                 connection => standard_io, wait_boot => ?WITHIN,
                 args => ["-epmd_module", atom_to_list(?MODULE), "-start_epmd", "false", "-connect_all", "false",
                          "-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-setcookie", os:getpid() | tessera_test:paths()]}).

node_of({_, Node}) -> Node.

call(Peer, F) -> call(Peer, erlang, apply, [F, []]).

call({Pid, _}, Module, Function, Args) -> peer:call(Pid, Module, Function, Args, ?WITHIN).

stop({Pid, _}) ->
    try peer:stop(Pid)
    catch exit:_ -> ok
    end.

%% ---- in the place of epmd

start_link() -> ignore.

register_node(_Name, _Port) -> {ok, 1}.

register_node(_Name, _Port, _Family) -> {ok, 1}.

listen_port_please(Name, _Host) -> {ok, port(Name)}.

port_please(Name, _Host) -> {port, port(Name), 6}.

port_please(Name, Host, _Timeout) -> port_please(Name, Host).

address_please(Name, _Host, _Family) -> {ok, {127, 0, 0, 1}, port(Name), 6}.

names(_Host) -> {error, address}.

port(Name) -> list_to_integer(lists:last(string:split(lists:concat([Name]), "_", all))).

%% @private The leader's part of a rank: the connections to its children, the ranks that are connected to the driver through it. A process
%% listens until all children have joined. Each connection has a writer and a reader. The reader passes frames on to the rank's own writer, and reads
%% the next one when that has sent them. The processes are linked, so all end with the rank. docs/distribution.md has the protocol.
-module(tessera_rank_leader).
-export([start_link/1]).

%% Milliseconds for each step of the handshake.
-define(HANDSHAKE, 10000).

%% `address' is the address to listen on; `writer' is the rank's own, which sends to the driver or to the rank's leader.
-type options() :: #{credentials := tessera_cluster_tls:credentials(), address := inet:ip_address(), deadline := pos_integer(), rank := non_neg_integer(),
                     tree := tessera_cluster_tree:tree(), children := [non_neg_integer()], writer := pid()}.

%% Listens on a free port, and returns it. The caller, the rank's main process, gets {below, Rank, Writer} when a child has joined, and
%% {lost_below, Rank, Text} when one is lost.
-spec start_link(options()) -> {ok, pid(), inet:port_number()}.
start_link(#{address := Address, children := Children} = Options) ->
    {ok, Listen} = tessera_cluster_socket:listen(Address, length(Children) + 8),
    Owner = self(),
    Leader = tessera_cluster_process:start_link(?MODULE, fun() -> lead(Listen, Options#{owner => Owner}) end),
    ok = tessera_cluster_socket:give(Listen, Leader),
    {ok, Leader, tessera_cluster_socket:port(Listen)}.

%% Another process accepts connections, so that this one can receive messages.
lead(Listen, #{owner := Owner, children := Children} = Options) ->
    process_flag(trap_exit, true),
    Leader = self(),
    Serve = fun(Socket) ->
                    Door = self(),
                    spawn(fun() -> receive 'begin' -> admit(Socket, Leader, Door, Options) end end)
            end,
    _ = tessera_cluster_door:start_link(Listen, length(Children), Serve, fun(Child) -> Child ! evict end),
    wait({Listen, Owner, Children, #{}}).

%% Closes the listening socket when all children have joined.
wait({Listen, Owner, Missing, Joined} = State) ->
    _ = [tessera_cluster_socket:close(Listen) || Missing =:= []],
    receive
        {joins, Child, Rank} ->
            Child ! {joins, lists:member(Rank, Missing)},
            case lists:member(Rank, Missing) of
                true ->
                    true = link(Child),
                    wait({Listen, Owner, lists:delete(Rank, Missing), Joined#{Child => Rank}});
                false -> wait(State)
            end;
        {'EXIT', Owner, _} -> exit(shutdown);
        {'EXIT', Child, Reason} when is_map_key(Child, Joined) ->
            Owner ! {lost_below, maps:get(Child, Joined), text(Reason)},
            wait(State);
        {'EXIT', _, _} -> wait(State);
        {system, From, Request} -> tessera_cluster_process:system({From, Request}, Owner, State, {fun wait/1, fun(Whole) -> Whole end})
    end.

text({lost, Text}) -> unicode:characters_to_binary(Text);
text({shutdown, {send, timeout}}) -> <<"it took nothing from its leader within the deadline">>;
text({shutdown, {send, _}}) -> closed();
text(Reason) -> unicode:characters_to_binary(io_lib:format("its connection to its leader ended: ~0tP", [Reason, 20])).

closed() -> <<"its connection to its leader was closed">>.

%% ---- the reader of a child, linked to the child's writer and to the leader

%% A connection that fails before its handshake is verified may be any process's, so that is no error.
admit(Socket, Leader, Door, #{credentials := {Key, _}} = Options) ->
    ok = tessera_cluster_socket:next(Socket),
    case first(Socket) of
        {frame, Frame} ->
            case tessera_cluster_wire:check_ticket(Key, Frame) of
                ok ->
                    ok = tessera_cluster_door:known(Door),
                    secure(Socket, Leader, Options);
                error -> ok
            end;
        _ -> ok
    end.

%% The first frame, or the end.
first(Socket) ->
    receive
        evict -> closed;
        Message ->
            case tessera_cluster_socket:event(Message, Socket) of
                none -> first(Socket);
                Event -> Event
            end
    after ?HANDSHAKE -> closed
    end.

secure(Socket, Leader, #{credentials := {_, Identity}} = Options) ->
    case tessera_cluster_socket:secure(Socket, server, Identity, ?HANDSHAKE) of
        {ok, Secured} -> greet(Secured, Leader, Options);
        {error, _} -> ok
    end.

greet(Socket, Leader, #{credentials := {Key, _}} = Options) ->
    Nonce = tessera_cluster_wire:nonce(),
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:greeting(Nonce)),
    case tessera_cluster_socket:read(Socket, ?HANDSHAKE) of
        {ok, Frame} ->
            case tessera_cluster_wire:read_hello(Key, Nonce, Frame) of
                {ok, Theirs, #{rank := Rank}} -> joins(Socket, Leader, Rank, {Nonce, Theirs}, Options);
                _ -> ok
            end;
        {error, _} -> ok
    end.

joins(Socket, Leader, Rank, {Nonce, Theirs}, #{credentials := {Key, _}, deadline := Deadline, owner := Owner} = Options) ->
    Leader ! {joins, self(), Rank},
    receive
        {joins, true} ->
            _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:config(Key, Nonce, Theirs, #{})),
            _ = tessera_cluster_socket:authenticated(Socket),
            Owner ! {below, Rank, tessera_cluster_socket:start_writer(Socket, max(1, Deadline div 6), Deadline)},
            ok = tessera_cluster_process:label({tessera_rank_reader, Rank}),
            read(Socket, Rank, Options);
        {joins, false} -> ok
    end.

read(Socket, Rank, #{deadline := Deadline} = Options) ->
    Begun = erlang:monotonic_time(millisecond),
    case tessera_cluster_socket:read(Socket, Deadline) of
        {ok, Frame} ->
            ok = pass_up(tessera_cluster_wire:address(Frame), Frame, Rank, Options),
            read(Socket, Rank, Options);
        {error, timeout} ->
            %% A late timeout means that this process was stopped: the child may have been stopped as well.
            erlang:monotonic_time(millisecond) - Begun > Deadline + Deadline div 2
                orelse exit({lost, io_lib:format("its leader heard nothing of it for ~b ms", [Deadline])}),
            read(Socket, Rank, Options);
        {error, emsgsize} -> exit({lost, "it sent an oversized frame"});
        {error, _} -> exit({lost, closed()})
    end.

%% Passes a frame on. A beat only tells the leader that its child is alive.
pass_up(own, Frame, Rank, #{writer := Writer}) ->
    case Frame =:= iolist_to_binary(tessera_cluster_wire:beat()) of
        true -> ok;
        false -> tessera_cluster_socket:pass_on(Writer, tessera_cluster_wire:route(Rank, Frame))
    end;
pass_up({rank, Of, _}, Frame, Rank, #{writer := Writer, rank := Own, tree := Tree}) ->
    case tessera_cluster_tree:towards(Own, Of, Tree) of
        Rank -> tessera_cluster_socket:pass_on(Writer, Frame);
        _ -> exit({lost, io_lib:format("it sent a frame of rank ~b", [Of])})
    end;
pass_up({all, _}, _, _, _) -> exit({lost, "it sent a malformed frame"}).

%% @private A link: the driver's process for one rank. It does the driver's part of the handshake, then sends requests and passes
%% replies on to their callers. It ends with its job, and the job ends when a link reports its rank as lost. A rank that has a
%% leader is told in the handshake to connect to that leader. From then on the link has no socket of its own: its frames pass through the
%% link of the leader that is connected to the driver, here called its root. docs/distribution.md has the protocol.
-module(tessera_cluster_link).
-behaviour(gen_server).
-export([start/2, evict/1, accepted/3, placed/2, send_request/2, send_request/3, send_to_all/4, cancel/2, forget/2, leave/1, statistics/1, collect/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).
-export_type([request/0]).

%% Milliseconds for the whole handshake.
-define(HANDSHAKE, 10000).
%% The longest time between two checks for a sign of life, in milliseconds.
-define(LOOK, 500).
%% A run is delayed, to be bundled with others, if the rank has this number of requests before it,
-define(DEEP, 8).
%% if its body has at most this number of bytes,
-define(SMALL, 16384).
%% and if at most `HELD' messages, including frees, are delayed. They are delayed for `HOLD' milliseconds.
-define(HELD, 8).
-define(HOLD, 2).
%% Bytes of a message that may be garbage of the link.
-define(KEPT, 1048576).

-record(state, {job       :: pid(),
                door      :: pid(),                       % tessera_cluster_door, which has accepted the connection
                key       :: none | tessera_cluster_wire:key(),
                identity  :: tessera_cluster_socket:identity(),
                config    :: map(),                       % the job's `deadline' and `max_message'
                socket    :: tessera_cluster_socket:socket(),
                step      :: ticket | hello | joining | starting | up,
                nonce     :: binary(),
                theirs = <<>> :: binary(),                % the rank's nonce
                rank = none :: none | non_neg_integer(),
                host = <<"?">> :: binary(),
                peer = {error, none} :: {ok, {inet:ip_address(), inet:port_number()}} | {error, term()},
                root = none :: none | pid(),              % none: the rank is connected to the driver
                below = #{} :: #{non_neg_integer() => pid()},  % the links whose frames pass through this one
                writer = none :: none | pid(),            % the root's, where there is one
                place = none :: none | reference(),       % for proxies of the rank's values
                reader    :: tessera_cluster_reader:reader(),
                seen = 0  :: integer(),                   % when the last frame came, in milliseconds
                checked = 0 :: integer(),                 % when check/1 last ran
                late = 0  :: integer(),                   % when it last ran late
                waiting = #{} :: #{pos_integer() => {reference(), reference()}}, % the caller's alias, and its monitor
                held = [] :: [tessera_cluster_wire:encoded()],                  % messages that wait to be sent together, the last one first
                sent = 0  :: non_neg_integer(),
                received = 0 :: non_neg_integer()}).

-type request() :: reference().

%% Starts a link for a connection that was accepted. The handshake begins with the message `begin': the caller sends it after it has made
%% the link the owner of the socket.
-spec start(pid(), #{credentials := tessera_cluster_tls:credentials(), socket := tessera_cluster_socket:socket(), door := pid(), config := map()}) ->
          {ok, pid()}.
start(Job, Connection) -> gen_server:start(?MODULE, {Job, Connection}, []).

%% Called by the door: others need the place of who has said nothing yet.
-spec evict(pid()) -> ok.
evict(Link) -> gen_server:cast(Link, evict).

%% Called by the job: the rank may be configured. Root is the link through which its frames pass, or none.
-spec accepted(pid(), map(), none | pid()) -> ok.
accepted(Link, Config, Root) -> gen_server:cast(Link, {accepted, Config, Root}).

%% Called by the job when all ranks are ready. Place is the place of the proxies that replies of this rank contain.
-spec placed(pid(), reference()) -> ok.
placed(Link, Place) -> gen_server:cast(Link, {placed, Place}).

%% Sends a request with this encoded body to the rank. The caller gets the reply as a message, for collect/2.
-spec send_request(pid(), tessera_cluster_blocks:body()) -> request().
send_request(Link, Body) -> send_request(Link, #{}, Body).

-spec send_request(pid(), tessera_cluster_wire:head(), tessera_cluster_blocks:body()) -> request().
send_request(Link, Head, Body) -> send_request(Link, one, Head, Body).

%% The same for a request to all ranks. The caller calls this for each link of the job, with the same number and body, and from the highest rank to the
%% lowest. So every link notes its request before the root sends one frame for the rank and all below it.
-spec send_to_all(pid(), pos_integer(), tessera_cluster_wire:head(), tessera_cluster_blocks:body()) -> request().
send_to_all(Link, Id, Head, Body) -> send_request(Link, {all, Id}, Head, Body).

send_request(Link, To, Head, Body) ->
    Request = monitor(process, Link, [{alias, demonitor}]),
    Link ! {request, {Request, self()}, To, Head, Body},
    Request.

%% Cancels the request on the rank, and drops its reply.
-spec cancel(pid(), request()) -> ok.
cancel(Link, Request) ->
    true = demonitor(Request, [flush]),
    Link ! {cancel, Request},
    receive {Request, _, _, _, _} -> ok after 0 -> ok end.

%% Frees these values of the rank.
-spec forget(pid(), [integer()]) -> ok.
forget(Link, Ids) -> gen_server:cast(Link, {free, Ids}).

%% Asks the rank to finalize MPI and to end.
-spec leave(pid()) -> ok.
leave(Link) -> gen_server:cast(Link, {message, leave}).

%% Bytes sent and received, and the milliseconds since the last frame of the rank, or of its root.
-spec statistics(pid()) -> map().
statistics(Link) -> gen_server:call(Link, statistics, infinity).

%% Waits up to Timeout milliseconds for the reply to a request of the caller, whose tensors are proxies. An error is the rank's, or
%% `unavailable' when the cluster was lost.
-spec collect(request(), timeout()) -> {ok, term()} | {error, map()} | timeout.
collect(Request, Timeout) ->
    receive
        {Request, Rank, Host, Proxies, Reply} ->
            true = demonitor(Request, [flush]),
            with_proxies(decoded(Reply, name(Rank, Host)), Proxies);
        {'DOWN', Request, process, _, Reason} -> {error, tessera_cluster_error:lost(Reason)}
    after Timeout -> timeout
    end.

with_proxies({ok, Reply}, [_ | _] = Proxies) -> {ok, tessera_cluster_terms:with_proxies(Reply, list_to_tuple(Proxies))};
with_proxies(Reply, _) -> Reply.

%% An error of a block is that there was no memory for it here.
decoded({Text, Blocks}, Name) ->
    case [Error || {error, _} = Error <- Blocks] of
        [] -> answer(tessera_cluster_wire:decode(Text), Blocks, Name);
        [{error, #{code := Code, message := Why}} | _] -> {error, tessera_cluster_error:new(Code, "the reply of ~ts: ~ts", [Name, Why])}
    end.

answer({ok, {ok, Result}}, Blocks, _) -> {ok, tessera_cluster_blocks:unpack(Result, list_to_tuple(Blocks), fun tessera_cluster_blocks:binary/1)};
answer({ok, {error, Code, Text}}, _, Name) when is_atom(Code), is_binary(Text) ->
    {error, tessera_cluster_error:new(Code, "~ts: ~ts", [Name, Text])};
answer(_, _, Name) ->
    {error, tessera_cluster_error:new(failed_precondition, "the reply of ~ts has an atom or a fun that this node does not know",
                                      [Name])}.

%% ---- the process

init({Job, #{credentials := {Key, Identity}, socket := Socket, door := Door, config := #{max_message := Limit} = Config}}) ->
    _ = monitor(process, Job),
    _ = erlang:send_after(?HANDSHAKE, self(), handshake_over),
    {ok, #state{job = Job, key = Key, identity = Identity, socket = Socket, door = Door, step = ticket, nonce = tessera_cluster_wire:nonce(), config = Config,
                reader = tessera_cluster_reader:new(Limit, false)}}.

handle_call(statistics, _, #state{sent = Sent, received = Received, root = Root} = State) ->
    {reply, #{sent_bytes => Sent, received_bytes => Received, heard_ms => now_ms() - seen(Root, State)}, State};
handle_call(seen, _, #state{seen = Seen} = State) -> {reply, Seen, State};
handle_call(_, _, State) -> {reply, error, State}.

handle_cast(evict, #state{step = ticket} = State) -> lost("it said nothing, and others came", [], State);
handle_cast({accepted, Config, none}, #state{step = joining} = State) -> configure(Config, State);
handle_cast({accepted, Config, Root}, #state{step = joining} = State) -> redirect(Config, State#state{root = Root});
handle_cast({placed, Place}, State) -> {noreply, State#state{place = Place}};
handle_cast({message, Message}, #state{writer = Writer} = State) when is_pid(Writer) -> {noreply, send(Message, State)};
handle_cast({free, _} = Message, #state{writer = Writer} = State) when is_pid(Writer) -> {noreply, hold(Message, State)};
handle_cast(_, State) -> {noreply, State}.

handle_info({request, From, To, Head, Body}, State) -> without_garbage(tessera_cluster_blocks:has_blocks(Body), request(From, To, Head, Body, State));
handle_info({routed, Frame}, #state{received = Received} = State) -> framed(Frame, State#state{received = Received + byte_size(Frame)});
handle_info({below, Rank, Link}, #state{below = Below, writer = Writer} = State) ->
    Link ! {root, Writer},
    {noreply, State#state{below = Below#{Rank => Link}}};
handle_info({root, Writer}, State) -> {noreply, State#state{writer = Writer, step = starting}};
handle_info({cancel, Request}, State) -> {noreply, cancelled(fun({Alias, _}) -> Alias =:= Request end, State)};
handle_info({'DOWN', _, process, Job, Reason}, #state{job = Job} = State) -> {stop, job_reason(Reason), State};
%% The queue, which calls runs, ends with the job: the rank would tell those who read results that these were cancelled.
handle_info({'DOWN', _, process, _, {shutdown, {lost, _}}}, State) -> {noreply, State};
handle_info({'DOWN', Monitor, process, _, _}, State) -> {noreply, cancelled(fun({_, M}) -> M =:= Monitor end, State)};
handle_info(release, State) -> {noreply, release(State)};
handle_info(check, State) -> check(State);
handle_info('begin', #state{socket = Socket} = State) -> again(State#state{peer = tessera_cluster_socket:peername(Socket)});
handle_info({secured, {ok, Socket}}, #state{nonce = Nonce} = State) ->
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:greeting(Nonce)),
    again(State#state{socket = Socket});
handle_info({secured, {error, Reason}}, State) -> lost("its TLS handshake failed: ~0tP", [Reason, 20], State);
handle_info(handshake_over, #state{step = Step} = State) when Step =:= ticket; Step =:= hello ->
    lost("no handshake in ~b ms", [?HANDSHAKE], State);
handle_info({'EXIT', Writer, {shutdown, {send, timeout}}}, #state{writer = Writer, config = #{deadline := Deadline}} = State) ->
    lost("it took nothing for ~b ms", [Deadline], State);
handle_info({'EXIT', Writer, _}, #state{writer = Writer} = State) -> gone("its connection was closed", [], State);
handle_info(Message, #state{socket = Socket} = State) -> event(tessera_cluster_socket:event(Message, Socket), State).

event({frame, Frame}, #state{received = Received} = State) ->
    received(Frame, State#state{seen = now_ms(), received = Received + byte_size(Frame)});
event(closed, #state{root = Root} = State) when Root =/= none -> {noreply, State};
event(closed, State) -> gone("its connection was closed", [], State);
event({error, emsgsize}, State) -> lost("it sent an oversized frame", [], State);
event({error, Reason}, State) -> gone("its connection failed: ~0p", [Reason], State);
event(none, State) -> {noreply, State}.

terminate(_, #state{socket = Socket}) -> tessera_cluster_socket:close(Socket).

%% The printed state is without the key.
format_status(#{state := #state{} = State} = Status) -> Status#{state := State#state{key = none, identity = none}};
format_status(Status) -> Status.

job_reason({shutdown, {lost, _}} = Reason) -> Reason;
job_reason({shutdown, _} = Reason) -> Reason;
job_reason(_) -> {shutdown, stopped}.

now_ms() -> erlang:monotonic_time(millisecond).

%% ---- frames

%% The TLS handshake comes after the ticket, and the driver's greeting after that.
received(Frame, #state{step = ticket, key = Key, door = Door, socket = Socket, identity = Identity} = State) ->
    case tessera_cluster_wire:check_ticket(Key, Frame) of
        ok ->
            ok = tessera_cluster_door:known(Door),
            ok = tessera_cluster_socket:start_securing(Socket, Identity, ?HANDSHAKE),
            {noreply, State#state{step = hello}};
        error -> lost("its first frame is no rank's", [], State)
    end;
received(Frame, #state{step = hello, key = Key, nonce = Nonce, job = Job} = State) ->
    case tessera_cluster_wire:read_hello(Key, Nonce, Frame) of
        {ok, Theirs, #{rank := Rank, host := Host} = Hello} when is_integer(Rank), is_binary(Host) ->
            ok = tessera_cluster_process:label({?MODULE, Rank}),
            Job ! {hello, self(), Hello},
            {noreply, State#state{step = joining, theirs = Theirs, rank = Rank, host = Host}};
        _ -> lost("its handshake is wrong", [], State)
    end;
received(Frame, #state{below = Below} = State) ->
    case tessera_cluster_wire:address(Frame) of
        own -> framed(Frame, State);
        {rank, Rank, Inner} when is_map_key(Rank, Below) ->
            maps:get(Rank, Below) ! {routed, Inner},
            {noreply, State};
        _ -> lost("it sent a frame of a rank that is not below it", [], State)
    end.

framed(Frame, #state{reader = Reader} = State) ->
    case tessera_cluster_reader:read(Frame, Reader) of
        {message, Text, Blocks, Next} -> message(Text, Blocks, State#state{reader = Next});
        {error, What} -> lost("it sent ~s", [What], State);
        {_, Next} -> {noreply, State#state{reader = Next}}
    end.

%% The next frame of the handshake.
again(#state{socket = Socket} = State) ->
    ok = tessera_cluster_socket:next(Socket),
    {noreply, State}.

configure(Config, #state{socket = Socket, key = Key, nonce = Nonce, theirs = Theirs, config = #{deadline := Deadline}} = State) ->
    process_flag(trap_exit, true),
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:config(Key, Nonce, Theirs, Config)),
    _ = tessera_cluster_socket:authenticated(Socket),
    Writer = tessera_cluster_socket:start_writer(Socket, max(1, Deadline div 6), Deadline),
    ok = tessera_cluster_socket:stream(Socket),
    self() ! check,
    Now = now_ms(),
    {noreply, State#state{step = starting, writer = Writer, seen = Now, checked = Now, late = Now}}.

%% The configuration has the leader's address. The rank closes this connection and connects to its leader.
redirect(Config, #state{socket = Socket, key = Key, nonce = Nonce, theirs = Theirs, root = Root, rank = Rank} = State) ->
    Root ! {below, Rank, self()},
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:config(Key, Nonce, Theirs, Config)),
    again(State).

%% A root that has ended, and with it the job, is no error of this link.
seen(none, #state{seen = Seen}) -> Seen;
seen(Root, #state{seen = Seen}) ->
    try gen_server:call(Root, seen, infinity)
    catch exit:_ -> Seen
    end.

%% This process keeps no binaries of a large message as garbage: it might not collect them for long.
without_garbage(false, State) -> {noreply, State};
without_garbage(true, State) -> {noreply, State, hibernate}.

%% A reply is decoded by its caller: a large one would keep the link from reading on.
message(Message, Blocks, State) ->
    case tessera_cluster_wire:decode_message(Message) of
        {ok, {reply, Id, Values, Reply}} -> without_garbage(byte_size(Message) > ?KEPT orelse Blocks =/= [], replied(Id, Values, {Reply, Blocks}, State));
        {ok, {finished, Ids}} when is_list(Ids) -> {noreply, lists:foldl(fun(Id, Now) -> replied(Id, [], {<<>>, []}, Now) end, State, Ids)};
        {ok, {unneeded, Id}} -> {noreply, unneeded(Id, State)};
        {ok, {ready, Info}} when is_map(Info), State#state.step =:= starting ->
            State#state.job ! {ready, self(), State#state.rank, Info},
            {noreply, State#state{step = up}};
        {ok, {failed, Code, Text}} when is_atom(Code), is_binary(Text) -> lost_as(Code, "~ts", [Text], State);
        {ok, {listening, Port}} when is_integer(Port), State#state.step =:= starting ->
            {ok, {Address, _}} = State#state.peer,
            State#state.job ! {listening, self(), State#state.rank, {Address, Port}},
            {noreply, State};
        {ok, {lost_below, Rank, Text}} when is_integer(Rank), is_binary(Text) ->
            State#state.job ! {lost_below, self(), Rank, Text},
            {noreply, State};
        _ -> lost("it sent a malformed message", [], State)
    end.

%% If the caller has died, the values of the reply are freed: by their proxies if the message was sent, else here.
replied(Id, Values, Reply, #state{waiting = Waiting, rank = Rank, host = Host} = State) ->
    case maps:take(Id, Waiting) of
        {{Alias, Monitor}, Rest} ->
            true = demonitor(Monitor, [flush]),
            Alias ! {Alias, Rank, Host, [tessera_nif:proxy(State#state.place, Value, Bytes) || {Value, Bytes} <- Values], Reply},
            State#state{waiting = Rest};
        error when Values =:= [] -> State;
        error -> send({free, [Value || {Value, _} <- Values]}, State)
    end.

%% All results of the request were freed on the rank: the queue may cancel the run.
unneeded(Id, #state{waiting = Waiting} = State) ->
    _ = [Alias ! {Alias, unneeded} || #{Id := {Alias, _}} <- [Waiting]],
    State.

%% ---- requests

request({Alias, Caller}, To, Head, Body, #state{waiting = Waiting} = State) ->
    Id = case To of
             {all, Given} -> Given;
             one -> erlang:unique_integer([positive])
         end,
    Waits = State#state{waiting = Waiting#{Id => {Alias, monitor(process, Caller)}}},
    case To of
        one when is_map_key(lane, Head), map_size(Waiting) >= ?DEEP -> hold_small({request, Id, Head, Body}, Waits);
        one -> send({request, Id, Head, Body}, Waits);
        {all, _} -> send_all({request, Id, Head, Body}, release(Waits))
    end.

hold_small({request, _, _, Body} = Request, State) ->
    case tessera_cluster_blocks:bytes(Body) =< ?SMALL of
        true -> hold(Request, State);
        false -> send(Request, State)
    end.

%% Cancels the requests that Is selects: the one with an alias, or all of a caller that died.
cancelled(Is, #state{waiting = Waiting} = State) ->
    Ids = [Id || {Id, Request} <- maps:to_list(Waiting), Is(Request)],
    lists:foldl(fun(Id, #state{waiting = Left} = Now) ->
                        {_, Monitor} = maps:get(Id, Left),
                        true = demonitor(Monitor, [flush]),
                        send({cancel, Id}, Now#state{waiting = maps:remove(Id, Left)})
                end, State, Ids).

%% Sends the message after the delayed ones: their order stays. A message with blocks is no part of a bundle.
send(Message, State) ->
    Encoded = tessera_cluster_wire:encode(Message),
    #state{held = Held} = Now = case tessera_cluster_wire:is_plain(Encoded) of
                                    true -> State;
                                    false -> release(State)
                                end,
    release(Now#state{held = [Encoded | Held]}).

%% Holds back a message that the rank does not need at once. Each send costs a thread switch on both sides, which many short runs share so.
hold(Message, #state{held = Held} = State) ->
    _ = [erlang:send_after(?HOLD, self(), release) || Held =:= []],
    Holds = State#state{held = [tessera_cluster_wire:encode(Message) | Held]},
    case length(Held) + 1 of
        ?HELD -> release(Holds);
        _ -> Holds
    end.

release(#state{held = []} = State) -> State;
release(#state{held = Held, writer = Writer, sent = Sent, root = Root, rank = Rank} = State) ->
    Bundle = tessera_cluster_wire:bundle(lists:reverse(Held)),
    ok = case Root of
             none -> tessera_cluster_socket:send(Writer, Bundle);
             _ -> tessera_cluster_socket:send_to(Writer, Rank, Bundle)
         end,
    State#state{held = [], sent = Sent + tessera_cluster_wire:size(Bundle)}.

send_all(_, #state{root = Root} = State) when Root =/= none -> State;
send_all(Message, #state{below = Below} = State) when Below =:= #{} -> send(Message, State);
send_all(Message, #state{writer = Writer, sent = Sent} = State) ->
    Encoded = tessera_cluster_wire:encode(Message),
    ok = tessera_cluster_socket:send_to_all(Writer, Encoded),
    State#state{sent = Sent + tessera_cluster_wire:size(Encoded)}.

%% ---- the end

%% Runs at least six times in a deadline and twice in a second. A check is late because this node was stopped or busy. Frames may have arrived then that
%% were not read yet, and the rank may have been stopped as well: it has the whole deadline again.
check(#state{checked = Checked, late = Late, config = #{deadline := Deadline}} = State) ->
    Now = now_ms(),
    checked(Now, State#state{checked = Now, late = case Now - Checked < Deadline div 2 of true -> Late; false -> Now end}).

checked(Now, #state{seen = Seen, late = Late, config = #{deadline := Deadline}} = State) when Now - Seen > Deadline, Now - Late > Deadline ->
    lost("nothing was heard of it for ~b ms", [Deadline], State);
checked(_, #state{config = #{deadline := Deadline}} = State) ->
    _ = erlang:send_after(min(?LOOK, max(1, Deadline div 6)), self(), check),
    {noreply, State}.

lost(Format, Values, State) -> lost_as(unavailable, Format, Values, State).

%% The connection has ended. While ranks start, another rank or mpirun may be the cause; the job finds out.
gone(Format, Values, #state{step = hello} = State) -> lost(Format, Values, State);
gone(Format, Values, State) ->
    State#state.job ! {gone, self()},
    lost(Format, Values, State).

%% Before its handshake is verified the peer may be any process on the network, so its failure is no error of the job.
lost_as(_, Format, Values, #state{step = Step, job = Job, peer = Peer} = State) when Step =:= ticket; Step =:= hello ->
    Job ! {stranger, self(), Peer, unicode:characters_to_binary(io_lib:format(Format, Values))},
    {stop, {shutdown, stranger}, State};
lost_as(Code, Format, Values, State) ->
    Error = tessera_cluster_error:new(Code, "~ts: " ++ Format, [name(State) | Values]),
    State#state.job ! {lost, self(), State#state.rank, Error},
    {stop, {shutdown, {lost, Error}}, State}.

name(#state{rank = Rank, host = Host}) -> name(Rank, Host).

name(Rank, Host) -> io_lib:format("rank ~p on ~ts", [Rank, Host]).

%% @private A connection between driver and rank, the same on both sides, over TCP or TLS: the only module that knows which of them. And a
%% process that writes and beats, so that the reader never waits for the other side to read. It is linked to the process that
%% started it and ends with the socket.
-module(tessera_cluster_socket).
-export([listen/2, port/1, accept/2, connect/3, secure/4, start_securing/3, give/2]).
-export([write/2, read/2, next/1, stream/1, event/2, authenticated/1, peername/1, sockname/1, close/1]).
-export([start_writer/3, send/2, send_to/3, send_to_all/2, pass/2, pass_on/2, flush/1]).
-export_type([socket/0, identity/0]).

%% A frame of the handshake has at most this number of bytes.
-define(HANDSHAKE, 4096).
%% A frame of a message: a part and its tag; on the way through a leader also a rank.
-define(FRAME, 1048580).
%% Frames that may wait in the reader's mailbox.
-define(WAITING, 64).

-type socket() :: {tcp, gen_tcp:socket()} | {tls, ssl:sslsocket()}.
-type identity() :: none | tessera_cluster_tls:identity().

%% ---- connections

%% Listens on a free port of the address.
-spec listen(inet:ip_address(), pos_integer()) -> {ok, socket()} | {error, inet:posix()}.
listen(Address, Backlog) -> over_tcp(gen_tcp:listen(0, [family(Address), {ip, Address}, {backlog, Backlog} | options()])).

-spec port(socket()) -> inet:port_number().
port({tcp, Listen}) ->
    {ok, Port} = inet:port(Listen),
    Port.

%% An accepted connection is secured next, before anything is read.
-spec accept(socket(), timeout()) -> {ok, socket()} | {error, timeout | closed | term()}.
accept({tcp, Listen}, Timeout) -> over_tcp(gen_tcp:accept(Listen, Timeout)).

-spec connect(inet:ip_address(), inet:port_number(), timeout()) -> {ok, socket()} | {error, inet:posix() | timeout}.
connect(Address, Port, Timeout) -> over_tcp(gen_tcp:connect(Address, Port, [family(Address) | options()], Timeout)).

over_tcp({ok, Socket}) -> {ok, {tcp, Socket}};
over_tcp(Error) -> Error.

family(Address) when tuple_size(Address) =:= 4 -> inet;
family(_) -> inet6.

%% A peer whose host is gone is found in a minute where nothing else looks for it (Linux: TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT).
options() ->
    [binary, {packet, 4}, {packet_size, ?HANDSHAKE}, {active, false}, {nodelay, true}, {keepalive, true}
     | [{raw, 6, Option, <<Value:32/native>>} || {Option, Value} <- [{4, 30}, {5, 10}, {6, 3}]]].

%% With an identity the connection is encrypted, and the other side has the same identity. An error closes it.
-spec secure(socket(), client | server, identity(), timeout()) -> {ok, socket()} | {error, term()}.
secure(Socket, _, none, _) -> {ok, Socket};
secure({tcp, Socket}, Role, Identity, Timeout) ->
    Options = tessera_cluster_tls:options(Role, Identity),
    try shake_hands(Role, Socket, Options, Timeout) of
        {ok, Secured} ->
            _ = ssl:setopts(Secured, [{packet_size, ?HANDSHAKE}]),   % which is not taken over
            {ok, {tls, Secured}};
        {error, Reason} ->
            ok = gen_tcp:close(Socket),
            {error, Reason}
    catch exit:Reason ->
            ok = gen_tcp:close(Socket),
            {error, Reason}
    end.

shake_hands(server, Socket, Options, Timeout) -> ssl:handshake(Socket, Options, Timeout);
shake_hands(client, Socket, Options, Timeout) -> ssl:connect(Socket, Options, Timeout).

%% The same for one who accepts and must not wait; the result is sent to the caller as {secured, Result}.
-spec start_securing(socket(), identity(), timeout()) -> ok.
start_securing(Socket, none, _) ->
    self() ! {secured, {ok, Socket}},
    ok;
start_securing(Socket, Identity, Timeout) ->
    Owner = self(),
    Helper = spawn_link(fun() ->
                                receive 'begin' -> ok end,
                                Result = secure(Socket, server, Identity, Timeout),
                                _ = [give(Secured, Owner) || {ok, Secured} <- [Result]],
                                Owner ! {secured, Result}
                        end),
    _ = give(Socket, Helper),
    Helper ! 'begin',
    ok.

%% The process becomes the reader.
-spec give(socket(), pid()) -> ok | {error, term()}.
give({tcp, Socket}, Pid) -> gen_tcp:controlling_process(Socket, Pid);
give({tls, Socket}, Pid) -> ssl:controlling_process(Socket, Pid).

-spec write(socket(), iodata()) -> ok | {error, term()}.
write({tcp, Socket}, Frame) -> gen_tcp:send(Socket, Frame);
write({tls, Socket}, Frame) -> ssl:send(Socket, Frame).

%% The next frame.
-spec read(socket(), timeout()) -> {ok, binary()} | {error, closed | timeout | emsgsize | term()}.
read({tcp, Socket}, Timeout) -> gen_tcp:recv(Socket, 0, Timeout);
read({tls, Socket}, Timeout) ->
    case ssl:recv(Socket, 0, Timeout) of
        {ok, Frame} -> {ok, Frame};
        {error, Reason} -> {error, reason(Reason)}
    end.

%% The next frame, or the end, comes as a message, which event/2 reads.
-spec next(socket()) -> ok.
next(Socket) -> ask(Socket, once).

%% All frames from now on, and the end, come as messages, which event/2 reads. The VM stops to look at a socket that is not asked for frames, and
%% begins anew costs a thread switch, so frames are asked for by the dozen. A reader that falls behind is sent no more of them.
-spec stream(socket()) -> ok.
stream(Socket) -> ask(Socket, ?WAITING).

%% A connection that has ended may send no message of it any more.
ask({Kind, Port} = Socket, Frames) ->
    _ = [self() ! {closed(Kind), Port} || {error, _} <- [set(Socket, [{active, Frames}])]],
    ok.

closed(tcp) -> tcp_closed;
closed(tls) -> ssl_closed.

%% The event in a message, for this socket.
-spec event(term(), socket()) -> {frame, binary()} | closed | {error, term()} | none.
event({tcp, Socket, Frame}, {tcp, Socket}) -> {frame, Frame};
event({tcp_closed, Socket}, {tcp, Socket}) -> closed;
event({tcp_error, Socket, Reason}, {tcp, Socket}) -> {error, Reason};
event({tcp_passive, Port}, {tcp, Port} = Socket) -> more(Socket);
event({ssl, Socket, Frame}, {tls, Socket}) -> {frame, Frame};
event({ssl_closed, Socket}, {tls, Socket}) -> closed;
event({ssl_error, Socket, Reason}, {tls, Socket}) -> {error, reason(Reason)};
event({ssl_passive, Port}, {tls, Port} = Socket) -> more(Socket);
event(_, _) -> none.

more(Socket) ->
    ok = stream(Socket),
    none.

%% As gen_tcp calls it.
reason({invalid_packet, _}) -> emsgsize;
reason(Reason) -> Reason.

%% Allows frames of messages.
-spec authenticated(socket()) -> ok | {error, term()}.
authenticated(Socket) -> set(Socket, [{packet_size, ?FRAME}, {sndbuf, 262144}, {recbuf, 262144}]).

set({tcp, Socket}, Options) -> inet:setopts(Socket, Options);
set({tls, Socket}, Options) -> ssl:setopts(Socket, Options).

-spec peername(socket()) -> {ok, {inet:ip_address(), inet:port_number()}} | {error, term()}.
peername({tcp, Socket}) -> inet:peername(Socket);
peername({tls, Socket}) -> ssl:peername(Socket).

-spec sockname(socket()) -> {ok, {inet:ip_address(), inet:port_number()}} | {error, term()}.
sockname({tcp, Socket}) -> inet:sockname(Socket);
sockname({tls, Socket}) -> ssl:sockname(Socket).

%% TLS says goodbye, and waits for an answer: another process does.
-spec close(socket()) -> ok.
close({tcp, Socket}) -> gen_tcp:close(Socket);
close({tls, Socket}) ->
    _ = spawn(fun() -> catch ssl:close(Socket) end),
    ok.

%% ---- the writer

%% Sends at least one frame in each Period, in milliseconds; a send that takes Deadline is an error.
-spec start_writer(socket(), pos_integer(), pos_integer()) -> pid().
start_writer(Socket, Period, Deadline) ->
    spawn_opt(fun() ->
                      ok = tessera_cluster_process:label(tessera_cluster_writer),
                      _ = set(Socket, [{send_timeout, Deadline}, {send_timeout_close, true}]),
                      write(Socket, Period, [tessera_cluster_wire:beat()])
              end, [link, {priority, high}]).

%% Sends a message, already encoded.
-spec send(pid(), tessera_cluster_wire:encoded()) -> ok.
send(Writer, Message) ->
    Writer ! {send, Message},
    ok.

%% Sends a message to a rank that is connected through the other side.
-spec send_to(pid(), non_neg_integer(), tessera_cluster_wire:encoded()) -> ok.
send_to(Writer, Rank, Message) ->
    Writer ! {send_to, Rank, Message},
    ok.

%% Sends a message to the other side and all ranks that are connected through it.
-spec send_to_all(pid(), tessera_cluster_wire:encoded()) -> ok.
send_to_all(Writer, Message) ->
    Writer ! {send_to_all, Message},
    ok.

%% Sends a frame as it is.
-spec pass(pid(), iodata()) -> ok.
pass(Writer, Frame) ->
    Writer ! {pass, Frame},
    ok.

%% The same; returns when it was sent, or the writer has ended.
-spec pass_on(pid(), iodata()) -> ok.
pass_on(Writer, Frame) ->
    ok = pass(Writer, Frame),
    flush(Writer).

%% Waits until everything is sent, or the writer has ended.
-spec flush(pid()) -> ok.
flush(Writer) ->
    Monitor = monitor(process, Writer),
    Writer ! {flush, self(), Monitor},
    receive
        {flushed, Monitor} -> true = demonitor(Monitor, [flush]), ok;
        {'DOWN', Monitor, process, _, _} -> ok
    end.

write(Socket, Period, [collect | Frames]) ->
    true = garbage_collect(),
    write(Socket, Period, Frames);
write(Socket, Period, [Frame | Frames]) ->
    case write(Socket, Frame) of
        ok -> write(Socket, Period, Frames);
        {error, Reason} -> exit({shutdown, {send, Reason}})
    end;
write(Socket, Period, []) ->
    receive
        {send, Message} -> write(Socket, Period, tessera_cluster_wire:frames(Message), fun(Frame) -> Frame end);
        {send_to, Rank, Message} ->
            write(Socket, Period, tessera_cluster_wire:frames(Message), fun(Frame) -> tessera_cluster_wire:route(Rank, Frame) end);
        {send_to_all, Message} -> write(Socket, Period, tessera_cluster_wire:frames(Message), fun tessera_cluster_wire:to_all/1);
        {pass, Frame} -> write(Socket, Period, [Frame]);
        {flush, From, Ref} ->
            From ! {flushed, Ref},
            write(Socket, Period, [])
    after Period -> write(Socket, Period, [tessera_cluster_wire:beat()])
    end.

%% After a message of several frames this process would keep its binaries until it has more garbage, which may be never.
write(Socket, Period, [Frame], With) -> write(Socket, Period, [With(Frame)]);
write(Socket, Period, Frames, With) -> write(Socket, Period, [With(Frame) || Frame <- Frames] ++ [collect]).

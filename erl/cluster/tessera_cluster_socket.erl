%% @private A connection between driver and rank, the same on both sides: a process that writes and beats, so that
%% the reader never waits for the other side to read. It is linked to the process that started it and ends with the socket.
-module(tessera_cluster_socket).
-export([options/0, authenticated/1, start_writer/3, send/2, send_to/3, send_to_all/2, pass/2, pass_on/2, flush/1, close/1]).

%% A frame of the handshake has at most so many bytes.
-define(HANDSHAKE, 4096).
%% A frame of a message: a part and its tag; on the way through a leader also a rank.
-define(FRAME, 1048580).

-spec options() -> [gen_tcp:option()].
options() -> [binary, {packet, 4}, {packet_size, ?HANDSHAKE}, {active, false}, {nodelay, true}, {keepalive, true}].

%% Allows frames of messages.
-spec authenticated(gen_tcp:socket()) -> ok | {error, term()}.
authenticated(Socket) -> inet:setopts(Socket, [{packet_size, ?FRAME}, {sndbuf, 262144}, {recbuf, 262144}]).

%% Sends at least one frame in each Period, in milliseconds; a send that takes Deadline is an error.
-spec start_writer(gen_tcp:socket(), pos_integer(), pos_integer()) -> pid().
start_writer(Socket, Period, Deadline) ->
    spawn_opt(fun() ->
                      _ = inet:setopts(Socket, [{send_timeout, Deadline}, {send_timeout_close, true}]),
                      write(Socket, Period, [tessera_cluster_wire:beat()])
              end, [link, {priority, high}]).

%% Sends a message, already encoded.
-spec send(pid(), iodata()) -> ok.
send(Writer, Message) ->
    Writer ! {send, Message},
    ok.

%% Sends a message to a rank that is connected through the other side.
-spec send_to(pid(), non_neg_integer(), iodata()) -> ok.
send_to(Writer, Rank, Message) ->
    Writer ! {send_to, Rank, Message},
    ok.

%% Sends a message to the other side and all ranks that are connected through it.
-spec send_to_all(pid(), iodata()) -> ok.
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

-spec close(gen_tcp:socket()) -> ok.
close(Socket) -> gen_tcp:close(Socket).

write(Socket, Period, [Frame | Frames]) ->
    case gen_tcp:send(Socket, Frame) of
        ok -> write(Socket, Period, Frames);
        {error, Reason} -> exit({shutdown, {send, Reason}})
    end;
write(Socket, Period, []) ->
    receive
        {send, Message} -> write(Socket, Period, tessera_cluster_wire:frames(Message));
        {send_to, Rank, Message} ->
            write(Socket, Period, [tessera_cluster_wire:route(Rank, Frame) || Frame <- tessera_cluster_wire:frames(Message)]);
        {send_to_all, Message} ->
            write(Socket, Period, [tessera_cluster_wire:to_all(Frame) || Frame <- tessera_cluster_wire:frames(Message)]);
        {pass, Frame} -> write(Socket, Period, [Frame]);
        {flush, From, Ref} ->
            From ! {flushed, Ref},
            write(Socket, Period, [])
    after Period -> write(Socket, Period, [tessera_cluster_wire:beat()])
    end.

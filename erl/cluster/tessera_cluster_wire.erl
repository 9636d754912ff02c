%% @private The format of what a cluster's driver and ranks send each other: the handshake, messages, and the frames into which a message is
%% split. Pure functions. docs/distribution.md has the protocol.
-module(tessera_cluster_wire).
-export([nonce/0, key/0, greeting/1, read_greeting/1, hello/4, read_hello/3, config/4, read_config/4]).
-export([beat/0, encode/1, bundle/1, decode_message/1, frames/1, new/1, read/2, decode/1]).
-export([route/2, to_all/1, address/1]).
-export_type([reader/0, message/0, head/0]).

-define(VERSION, "tessera cluster 1\n").
-define(NONCE, 32).
-define(MAC, 32).
%% The most bytes of a message in one frame: a beat has to wait for at most one frame.
-define(PART, 1048576).
-define(BEAT, 0).
-define(MORE, 1).
-define(LAST, 2).
%% A frame from or for a rank that is connected through a leader; a frame for a rank and all ranks below it.
-define(ROUTE, 3).
-define(ALL, 4).
%% The first byte of a message.
-define(TERM, 0).
-define(REQUEST, 1).
-define(REPLY, 2).
-define(BUNDLE, 3).

-type nonce() :: <<_:256>>.
-type key() :: <<_:256>>.
%% How a request uses values. The rank's main process counts uses in the order in which requests arrive, without decoding their bodies.
%% `makes': the results, which have consecutive numbers; `uses': values that it reads; `takes': values that are donated to it. Requests with the
%% same `lane' run one after the other.
-type head() :: #{makes => {First :: pos_integer(), Count :: non_neg_integer()}, uses => [pos_integer()], takes => [pos_integer()],
                  lane => non_neg_integer()}.
-type message() :: {request, pos_integer(), head(), iodata()}
                 | {reply, pos_integer(), [{Id :: pos_integer(), Bytes :: non_neg_integer()}], iodata()}
                 | term().
%% The parts of an incomplete message, the last one first; how many bytes they have; the limit.
-opaque reader() :: {[binary()], non_neg_integer(), pos_integer()}.

-spec nonce() -> nonce().
nonce() -> crypto:strong_rand_bytes(?NONCE).

-spec key() -> key().
key() -> crypto:strong_rand_bytes(32).

%% ---- the handshake

-spec greeting(nonce()) -> binary().
greeting(Nonce) -> <<?VERSION, Nonce/binary>>.

-spec read_greeting(binary()) -> {ok, nonce()} | error.
read_greeting(<<?VERSION, Nonce:?NONCE/binary>>) -> {ok, Nonce};
read_greeting(_) -> error.

%% The rank's answer to the driver's greeting: its properties, and a MAC of both nonces that proves that it knows the key.
-spec hello(key(), nonce(), nonce(), map()) -> iodata().
hello(Key, Driver, Rank, Hello) ->
    Text = term_to_binary(Hello),
    [Rank, mac(Key, <<"rank">>, Driver, Rank, Text), Text].

%% The rank's nonce and properties, if the MAC is right.
-spec read_hello(key(), nonce(), binary()) -> {ok, nonce(), map()} | error.
read_hello(Key, Driver, <<Rank:?NONCE/binary, Mac:?MAC/binary, Text/binary>>) ->
    proved(mac(Key, <<"rank">>, Driver, Rank, Text), Mac, Text, fun(Hello) -> {ok, Rank, Hello} end);
read_hello(_, _, _) -> error.

%% The driver's answer: the configuration, with a MAC that proves that the driver knows the key, too.
-spec config(key(), nonce(), nonce(), map()) -> iodata().
config(Key, Driver, Rank, Config) ->
    Text = term_to_binary(Config),
    [mac(Key, <<"driver">>, Driver, Rank, Text), Text].

-spec read_config(key(), nonce(), nonce(), binary()) -> {ok, map()} | error.
read_config(Key, Driver, Rank, <<Mac:?MAC/binary, Text/binary>>) ->
    proved(mac(Key, <<"driver">>, Driver, Rank, Text), Mac, Text, fun(Config) -> {ok, Config} end);
read_config(_, _, _, _) -> error.

mac(Key, Who, Driver, Rank, Text) -> crypto:mac(hmac, sha256, Key, [Who, Driver, Rank, Text]).

%% The term is decoded only when its MAC is right.
proved(Own, Given, Text, Make) ->
    case crypto:hash_equals(Own, Given) andalso decode(Text) of
        {ok, Map} when is_map(Map) -> Make(Map);
        _ -> error
    end.

%% ---- messages

-spec beat() -> iodata().
beat() -> <<?BEAT>>.

%% The bytes of a message; binaries in it are not copied. The body of a request or reply is encoded already, so a request to all ranks is encoded
%% once. A reply lists the values that the rank made for it, with their sizes in bytes.
-spec encode(message()) -> iodata().
encode({request, Id, Head, Body}) ->
    Encoded = term_to_binary(Head),
    [<<?REQUEST, Id:64, (byte_size(Encoded)):32, Encoded/binary>> | Body];
encode({reply, Id, Values, Body}) ->
    [<<?REPLY, Id:64, (length(Values)):32, << <<Value:64, Bytes:64>> || {Value, Bytes} <- Values >>/binary>> | Body];
encode(Other) -> [<<?TERM>> | term_to_iovec(Other)].

%% One message with several encoded ones in it: one frame, and one switch to the reader's thread, in place of several.
-spec bundle([iodata(), ...]) -> iodata().
bundle([Message]) -> Message;
bundle(Messages) -> [<<?BUNDLE>> | [[<<(iolist_size(Message)):32>> | Message] || Message <- Messages]].

%% The messages of a bundle are not decoded.
-spec decode_message(binary()) -> {ok, message() | {bundle, [binary()]}} | error.
decode_message(<<?REQUEST, Id:64, Size:32, Encoded:Size/binary, Body/binary>>) ->
    case decode(Encoded) of
        {ok, Head} when is_map(Head) -> {ok, {request, Id, Head, Body}};
        _ -> error
    end;
decode_message(<<?REPLY, Id:64, Count:32, Values:(Count * 16)/binary, Body/binary>>) ->
    {ok, {reply, Id, [{Value, Bytes} || <<Value:64, Bytes:64>> <= Values], Body}};
decode_message(<<?BUNDLE, Messages/binary>>) ->
    case parts(Messages, []) of
        error -> error;
        Parts -> {ok, {bundle, Parts}}
    end;
decode_message(<<?TERM, Term/binary>>) -> decode(Term);
decode_message(_) -> error.

parts(<<Size:32, Part:Size/binary, Rest/binary>>, Parts) -> parts(Rest, [Part | Parts]);
parts(<<>>, Parts) -> lists:reverse(Parts);
parts(_, _) -> error.

%% Splits an encoded message into frames.
-spec frames(iodata()) -> [iodata()].
frames(Message) -> split(erlang:iolist_to_iovec(Message), [], 0).

split([], Part, _) -> [[?LAST | lists:reverse(Part)]];
split([Binary | Rest], Part, Size) when Size + byte_size(Binary) =< ?PART ->
    split(Rest, [Binary | Part], Size + byte_size(Binary));
split([Binary | Rest], Part, Size) ->
    <<Head:(?PART - Size)/binary, Tail/binary>> = Binary,
    [[?MORE | lists:reverse(Part, [Head])] | split([Tail | Rest], [], 0)].

%% A frame from or for a rank that is connected through a leader.
-spec route(non_neg_integer(), iodata()) -> iodata().
route(Rank, Frame) -> [<<?ROUTE, Rank:16>> | Frame].

%% A frame for a rank and all that are connected through it.
-spec to_all(iodata()) -> iodata().
to_all(Frame) -> [?ALL | Frame].

%% The rank that a frame is from or for: another one, the receiver and all below it, or the receiver or sender itself.
-spec address(binary()) -> {rank, non_neg_integer(), binary()} | {all, binary()} | own.
address(<<?ROUTE, Rank:16, Frame/binary>>) -> {rank, Rank, Frame};
address(<<?ALL, Frame/binary>>) -> {all, Frame};
address(_) -> own.

%% Puts frames together into messages of at most Limit bytes.
-spec new(pos_integer()) -> reader().
new(Limit) -> {[], 0, Limit}.

%% Takes the next frame, of address `own': a beat, a part of a message, or the last part of one. The error says what the peer sent.
-spec read(binary(), reader()) -> {beat, reader()} | {more, reader()} | {message, binary(), reader()} | {error, binary()}.
read(<<?BEAT>>, Reader) -> {beat, Reader};
read(<<_, Part/binary>>, {_, Size, Limit}) when Size + byte_size(Part) > Limit ->
    {error, iolist_to_binary(io_lib:format("a message of more than ~b bytes", [Limit]))};
read(<<?MORE, Part/binary>>, {Parts, Size, Limit}) -> {more, {[Part | Parts], Size + byte_size(Part), Limit}};
read(<<?LAST, Part/binary>>, {[], _, Limit}) -> {message, Part, new(Limit)};
read(<<?LAST, Part/binary>>, {Parts, _, Limit}) ->
    {message, iolist_to_binary(lists:reverse(Parts, [Part])), new(Limit)};
read(_, _) -> {error, <<"a malformed frame">>}.

%% Decodes a term. Fails if it has atoms that do not exist here: a peer must not fill the table of atoms.
-spec decode(binary()) -> {ok, term()} | error.
decode(Binary) ->
    try {ok, binary_to_term(Binary, [safe])}
    catch error:badarg -> error
    end.

%% @private The format of the bytes between a cluster's driver and its ranks: the handshake, messages, and the frames that make up a
%% message. Pure functions; tessera_cluster_reader puts frames together. docs/distribution.md has the protocol.
-module(tessera_cluster_wire).
-export([nonce/0, key/0, hidden/1, ticket/1, check_ticket/2, greeting/1, read_greeting/1, hello/4, read_hello/3, config/4, read_config/4]).
-export([beat/0, encode/1, size/1, is_plain/1, bundle/1, decode_message/1, frames/1, frame/1, blocks/1, decode/1, extra/1]).
-export([route/2, to_all/1, address/1]).
-export_type([key/0, message/0, encoded/0, head/0]).

-define(VERSION, "tessera cluster 1\n").
-define(TICKET, "tessera rank 1\n").
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
%% A frame of bytes of a block.
-define(DATA, 5).
%% The first byte of the text of a message. The last one: sizes of blocks come before the text of the message whose they are.
-define(TERM, 0).
-define(REQUEST, 1).
-define(REPLY, 2).
-define(BUNDLE, 3).
-define(BLOCKS, 4).

-type nonce() :: <<_:256>>.
%% Behind a fun, so that neither a state nor a stack that is printed shows it.
-type key() :: fun(() -> <<_:256>>).
%% How a request uses values. The rank's main process counts uses in the order of arriving requests, without decoding their bodies. `makes': the
%% results, with consecutive numbers; `uses': values that it reads; `takes': values that are donated to it. Requests with the same `lane' run
%% one after the other.
-type head() :: #{makes => {First :: pos_integer(), Count :: non_neg_integer()}, uses => [pos_integer()], takes => [pos_integer()],
                  lane => non_neg_integer()}.
%% The body is encoded before it is sent, or the text of a received message.
-type message() :: {request, pos_integer(), head(), tessera_cluster_blocks:body() | binary()}
                 | {reply, pos_integer(), values(), tessera_cluster_blocks:body() | binary()}
                 | term().
-type values() :: [{Id :: pos_integer(), Bytes :: non_neg_integer()}].
%% Text, and the bytes of blocks that follow it.
-opaque encoded() :: {iodata(), [binary()]}.

-spec nonce() -> nonce().
nonce() -> crypto:strong_rand_bytes(?NONCE).

-spec key() -> key().
key() -> hidden(crypto:strong_rand_bytes(32)).

-spec hidden(<<_:256>>) -> key().
hidden(Bytes) -> fun() -> Bytes end.

%% ---- the handshake

%% The first frame of a rank, before anything is encrypted: only a holder of the key can make it. It proves nothing more: an eavesdropper may
%% repeat it.
-spec ticket(key()) -> binary().
ticket(Key) ->
    Nonce = nonce(),
    <<?TICKET, Nonce/binary, (mac(Key, <<"ticket">>, Nonce, <<>>, <<>>))/binary>>.

-spec check_ticket(key(), binary()) -> ok | error.
check_ticket(Key, <<?TICKET, Nonce:?NONCE/binary, Mac:?MAC/binary>>) ->
    case crypto:hash_equals(mac(Key, <<"ticket">>, Nonce, <<>>, <<>>), Mac) of
        true -> ok;
        false -> error
    end;
check_ticket(_, _) -> error.

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

%% The driver's answer: the configuration, with a MAC that proves that the driver also knows the key.
-spec config(key(), nonce(), nonce(), map()) -> iodata().
config(Key, Driver, Rank, Config) ->
    Text = term_to_binary(Config),
    [mac(Key, <<"driver">>, Driver, Rank, Text), Text].

-spec read_config(key(), nonce(), nonce(), binary()) -> {ok, map()} | error.
read_config(Key, Driver, Rank, <<Mac:?MAC/binary, Text/binary>>) ->
    proved(mac(Key, <<"driver">>, Driver, Rank, Text), Mac, Text, fun(Config) -> {ok, Config} end);
read_config(_, _, _, _) -> error.

%% An error of crypto would show its arguments.
mac(Key, Who, Driver, Rank, Text) ->
    try crypto:mac(hmac, sha256, Key(), [Who, Driver, Rank, Text])
    catch Class:_ -> error({crypto, Class})
    end.

%% The term is decoded only when its MAC is right.
proved(Own, Given, Text, Make) ->
    case crypto:hash_equals(Own, Given) andalso decode(Text) of
        {ok, Map} when is_map(Map) -> Make(Map);
        _ -> error
    end.

%% ---- messages

-spec beat() -> iodata().
beat() -> <<?BEAT>>.

%% The body of a request or reply is encoded already, so a request to all ranks is encoded once. Binaries are not copied. A reply lists the values
%% that the rank made for it, with their sizes in bytes.
-spec encode(message()) -> encoded().
encode({request, Id, Head, {Text, Blocks}}) ->
    Encoded = term_to_binary(Head),
    {[<<?REQUEST, Id:64, (byte_size(Encoded)):32, Encoded/binary>> | Text], Blocks};
encode({reply, Id, Values, {Text, Blocks}}) ->
    {[<<?REPLY, Id:64, (length(Values)):32, << <<Value:64, Bytes:64>> || {Value, Bytes} <- Values >>/binary>> | Text], Blocks};
encode(Other) -> {[<<?TERM>> | term_to_iovec(Other)], []}.

%% The most bytes that a message has besides its body.
-spec extra({request, head()} | {reply, values()}) -> non_neg_integer().
extra({request, Head}) -> 64 + erlang:external_size(Head);
extra({reply, Values}) -> 64 + 16 * length(Values).

-spec size(encoded()) -> non_neg_integer().
size({Text, Blocks}) -> iolist_size(Text) + lists:sum([byte_size(Block) || Block <- Blocks]).

%% Whether it has no blocks.
-spec is_plain(encoded()) -> boolean().
is_plain({_, Blocks}) -> Blocks =:= [].

%% One message from several plain encoded ones: it takes one frame and one switch to the reader's thread.
-spec bundle([encoded(), ...]) -> encoded().
bundle([Message]) -> Message;
bundle(Messages) -> {[<<?BUNDLE>> | [[<<(iolist_size(Text)):32>> | Text] || {Text, []} <- Messages]], []}.

%% The text of a message. The messages of a bundle are not decoded.
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

%% Splits a message into frames: first the frames of its text, which begins with the sizes of the blocks, then the
%% frames of each block.
-spec frames(encoded()) -> [iodata()].
frames({Text, []}) -> text_frames(Text);
frames({Text, Blocks}) ->
    Sizes = << <<(byte_size(Block)):64>> || Block <- Blocks >>,
    text_frames([<<?BLOCKS, (length(Blocks)):32, Sizes/binary>> | Text]) ++ lists:append([data_frames(Block) || Block <- Blocks]).

text_frames(Text) -> split(erlang:iolist_to_iovec(Text), [], 0).

split([], Part, _) -> [[?LAST | lists:reverse(Part)]];
split([Binary | Rest], Part, Size) when Size + byte_size(Binary) =< ?PART ->
    split(Rest, [Binary | Part], Size + byte_size(Binary));
split([Binary | Rest], Part, Size) ->
    <<Head:(?PART - Size)/binary, Tail/binary>> = Binary,
    [[?MORE | lists:reverse(Part, [Head])] | split([Tail | Rest], [], 0)].

data_frames(<<Part:?PART/binary, Rest/binary>>) when Rest =/= <<>> -> [[?DATA, Part] | data_frames(Rest)];
data_frames(Last) -> [[?DATA, Last]].

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

%% The contents of a frame of address `own'.
-spec frame(binary()) -> beat | {more | last | data, binary()} | malformed.
frame(<<?BEAT>>) -> beat;
frame(<<?MORE, Part/binary>>) -> {more, Part};
frame(<<?LAST, Part/binary>>) -> {last, Part};
frame(<<?DATA, Part/binary>>) when Part =/= <<>> -> {data, Part};
frame(_) -> malformed.

%% The sizes of the blocks that follow a text, and the rest of it; none without blocks.
-spec blocks(binary()) -> {[pos_integer(), ...], binary()} | none | error.
blocks(<<?BLOCKS, Count:32, Sizes:(Count * 8)/binary, Rest/binary>>) when Count > 0 ->
    List = [Size || <<Size:64>> <= Sizes],
    case lists:member(0, List) of
        true -> error;
        false -> {List, Rest}
    end;
blocks(<<?BLOCKS, _/binary>>) -> error;
blocks(_) -> none.

%% Decodes a term. Fails if it has atoms that do not exist here: a peer must not fill the table of atoms.
-spec decode(binary()) -> {ok, term()} | error.
decode(Binary) ->
    try {ok, binary_to_term(Binary, [safe])}
    catch error:badarg -> error
    end.

%% @private Blocks: bytes that a cluster's driver and ranks send each other outside of terms. A term that is sent has a stand-in in the place of each
%% large binary in its lists, tuples and values of maps. The bytes follow it as they are, and the receiver fills a block of memory
%% (nif/nif_block.h), which becomes a binary, or on a rank a tensor. So neither a copy of the whole nor a limit of the external term format stands between
%% the two.
%%
%% The sender counts the bytes of a message before it encodes anything, and refuses more than `max_message'.
-module(tessera_cluster_blocks).
-export([pack/3, packed/1, to_binary/1, bytes/1, has_blocks/1, extract/1, unpack/3, block/2, binary/1]).
-export_type([body/0, block/0, limit/0]).

%% Smaller binaries stay in their term: a frame of their own costs more than the copy.
-define(LARGE, 65536).
-define(STAND_IN, '$tessera_block').
%% The most bytes of an encoded term: OTP 25 crashes when it decodes a binary of 2 GiB in one.
-define(TERM, 16#7fffffff).

%% An encoded term, and the bytes of its stand-ins.
-opaque body() :: {iodata(), [binary()]}.
%% Of a term that was received: filled memory, or why there was none.
-type block() :: reference() | {error, map()}.
-type limit() :: pos_integer() | infinity.

%% Encodes a term that is sent with Extra other bytes. Too large are a message above the limit, or a term above the limit of terms. The number is the
%% message's size.
-spec pack(term(), non_neg_integer(), limit()) -> {ok, body()} | {error, {message | term, Bytes :: pos_integer(), Limit :: pos_integer()}}.
pack(Term, Extra, Limit) ->
    {Small, Blocks} = extract(Term),
    Size = erlang:external_size(Small),
    case Size + Extra + lists:sum([byte_size(Block) + 8 || Block <- Blocks]) of
        Bytes when Bytes > Limit -> {error, {message, Bytes, Limit}};   % an atom is greater than a number
        _ when Size > ?TERM -> {error, {term, Size, ?TERM}};
        _ -> {ok, {term_to_iovec(Small), Blocks}}
    end.

%% The same for a small term.
-spec packed(term()) -> body().
packed(Term) -> {term_to_iovec(Term), []}.

%% A term without large binaries as one.
-spec to_binary(term()) -> binary() | {error, {term, Bytes :: pos_integer(), Limit :: pos_integer()}}.
to_binary(Term) ->
    case erlang:external_size(Term) of
        Size when Size > ?TERM -> {error, {term, Size, ?TERM}};
        _ -> term_to_binary(Term)
    end.

-spec bytes(body()) -> non_neg_integer().
bytes({Text, Blocks}) -> iolist_size(Text) + lists:sum([byte_size(Block) || Block <- Blocks]).

-spec has_blocks(body()) -> boolean().
has_blocks({_, Blocks}) -> Blocks =/= [].

%% The term with stand-ins, and the binaries, numbered from 1.
-spec extract(term()) -> {term(), [binary()]}.
extract(Term) ->
    case has_large(Term) of
        false -> {Term, []};
        true ->
            {Small, {_, Blocks}} = fold(fun extracted/2, {0, []}, Term),
            {Small, lists:reverse(Blocks)}
    end.

extracted(Binary, {Count, Blocks}) when byte_size(Binary) >= ?LARGE -> {{?STAND_IN, Count + 1}, {Count + 1, [Binary | Blocks]}};
extracted(Other, Acc) -> {Other, Acc}.

%% Most terms have none, and this makes no garbage.
has_large(Binary) when is_binary(Binary) -> byte_size(Binary) >= ?LARGE;
has_large([Head | Tail]) -> has_large(Head) orelse has_large(Tail);
has_large(Tuple) when is_tuple(Tuple) -> has_large_element(tuple_size(Tuple), Tuple);
has_large(Map) when is_map(Map) -> has_large(maps:values(Map));
has_large(_) -> false.

has_large_element(0, _) -> false;
has_large_element(I, Tuple) -> has_large(element(I, Tuple)) orelse has_large_element(I - 1, Tuple).

%% The term with its stand-ins replaced by the results of Make for their blocks.
-spec unpack(term(), tuple(), fun((block()) -> term())) -> term().
unpack(Term, {}, _) -> Term;
unpack(Term, Blocks, Make) ->
    {Whole, none} = fold(fun({?STAND_IN, I}, none) -> {Make(element(I, Blocks)), none};
                            (Other, none) -> {Other, none}
                         end, none, Term),
    Whole.

%% The block of a stand-in. A small binary has none.
-spec block(term(), tuple()) -> block() | binary().
block({?STAND_IN, I}, Blocks) -> element(I, Blocks);
block(Binary, _) -> Binary.

%% A block as a binary. Raises the error of a block without memory.
-spec binary(block() | binary()) -> binary().
binary(Binary) when is_binary(Binary) -> Binary;
binary({error, Error}) -> tessera_cluster_error:raise(Error);
binary(Block) ->
    case tessera_nif:block_binary(Block) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Binary -> Binary
    end.

%% The term with each binary and stand-in replaced, and an accumulator, from left to right.
fold(F, Acc, Binary) when is_binary(Binary) -> F(Binary, Acc);
fold(F, Acc, {?STAND_IN, _} = StandIn) -> F(StandIn, Acc);
fold(F, Acc, Term) -> tessera_cluster_terms:parts(fun(Part, Next) -> fold(F, Next, Part) end, Acc, Term).

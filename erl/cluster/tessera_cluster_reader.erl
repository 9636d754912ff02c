%% @private Puts frames together into messages: the text of a message, then its blocks (tessera_cluster_blocks), which are filled as their frames
%% come. So of a large message there is never more than its own memory and a frame. docs/distribution.md has the protocol.
-module(tessera_cluster_reader).
-export([new/2, read/2]).
-export_type([reader/0]).

%% A block that is being filled, or the reason why it cannot be (its bytes are then dropped); and its number of missing
%% bytes.
-type filling() :: {tessera_cluster_blocks:block(), Left :: pos_integer()}.
-record(reader, {limit    :: pos_integer(),               % bytes of a message
                 pooled   :: boolean(),                   % the memory of blocks is that of tensors
                 parts = [] :: [binary()],                % of an incomplete text, the last one first
                 size = 0 :: non_neg_integer(),           % bytes of these
                 text = none :: none | binary(),          % of a message whose blocks come now
                 filling = none :: none | filling(),
                 sizes = [] :: [pos_integer()],           % of the blocks after that one
                 blocks = [] :: [tessera_cluster_blocks:block()]}).   % those before it, the last one first
-opaque reader() :: #reader{}.

%% Of a rank, whose blocks become tensors (pooled), or of the driver.
-spec new(pos_integer(), boolean()) -> reader().
new(Limit, Pooled) -> #reader{limit = Limit, pooled = Pooled}.

%% Takes the next frame, of address `own': a beat, a part of a message, or its last part. The error describes the peer's
%% fault.
-spec read(binary(), reader()) -> {beat, reader()} | {more, reader()} | {message, binary(), [tessera_cluster_blocks:block()], reader()}
                                | {error, binary()}.
read(Frame, #reader{text = Text, parts = Parts, size = Size, limit = Limit} = Reader) ->
    case tessera_cluster_wire:frame(Frame) of
        beat -> {beat, Reader};
        {data, Bytes} when Text =/= none -> filled(Bytes, Reader);
        {Kind, Part} when Kind =/= data, Text =:= none ->
            case Size + byte_size(Part) of
                Larger when Larger > Limit -> too_large(Limit);
                Larger when Kind =:= more -> {more, Reader#reader{parts = [Part | Parts], size = Larger}};
                _ -> whole(joined(Part, Parts), Reader#reader{parts = [], size = 0})
            end;
        _ -> malformed()
    end.

joined(Part, []) -> Part;
joined(Part, Parts) -> iolist_to_binary(lists:reverse(Parts, [Part])).

too_large(Limit) -> {error, iolist_to_binary(io_lib:format("a message of more than ~b bytes", [Limit]))}.

malformed() -> {error, <<"a malformed frame">>}.

whole(Text, #reader{limit = Limit} = Reader) ->
    case tessera_cluster_wire:blocks(Text) of
        none -> {message, Text, [], Reader};
        {Sizes, Rest} ->
            case byte_size(Text) + lists:sum(Sizes) > Limit of
                true -> too_large(Limit);
                false -> {more, next(Reader#reader{text = Rest, sizes = Sizes})}
            end;
        error -> malformed()
    end.

%% Memory for the next block.
next(#reader{sizes = [Size | Sizes], pooled = Pooled} = Reader) ->
    Reader#reader{filling = {tessera_nif:block(Size, Pooled), Size}, sizes = Sizes}.

%% A frame has bytes of one block.
filled(Bytes, #reader{filling = {Block, Left}, blocks = Blocks} = Reader) when byte_size(Bytes) =< Left ->
    ok = append(Block, Bytes),
    case Left - byte_size(Bytes) of
        0 -> ended(Reader#reader{filling = none, blocks = [Block | Blocks]});
        Fewer -> {more, Reader#reader{filling = {Block, Fewer}}}
    end;
filled(_, _) -> malformed().

append({error, _}, _) -> ok;
append(Block, Bytes) -> tessera_nif:block_append(Block, Bytes).

ended(#reader{sizes = [], text = Text, blocks = Blocks} = Reader) ->
    {message, Text, lists:reverse(Blocks), Reader#reader{text = none, blocks = []}};
ended(Reader) -> {more, next(Reader)}.

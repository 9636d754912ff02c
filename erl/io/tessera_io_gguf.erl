%% @private GGUF, the format of llama.cpp's models (versions 2 and 3, little-endian). Its quantised blocks become f32 when the tensor is made:
%% Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K. Matrices of Q4_0, Q4_1, Q8_0 and Q4_K may become quantised weights instead.
-module(tessera_io_gguf).
-export([decode/2]).

-define(MAGIC, "GGUF").
%% More tensors, keys or items of an array than any model has.
-define(MOST, 10000000).

%% The tensors by name, and the metadata. GGUF says sizes from the innermost one.
-spec decode(binary(), widen | keep) -> {[tessera_io_file:entry()], [{binary(), term()}]}.
decode(<<?MAGIC, Version:32/little, Count:64/little, Keys:64/little, Rest/binary>> = File, Quantized)
  when Version =:= 2 orelse Version =:= 3, Count =< ?MOST, Keys =< ?MOST ->
    {Meta, Rest1} = times(Keys, fun pair/1, Rest),
    {Infos, Rest2} = times(Count, fun info/1, Rest1),
    Alignment = case lists:keyfind(<<"general.alignment">>, 1, Meta) of
                    {_, A} when is_integer(A), A > 0, A =< 65536 -> A;
                    false -> 32;
                    _ -> bad("its alignment is no number of bytes", [])
                end,
    Header = byte_size(File) - byte_size(Rest2),
    Start = (Header + Alignment - 1) div Alignment * Alignment,
    {[entry(File, Start, Info, Quantized) || Info <- Infos], Meta};
decode(<<?MAGIC, Version:32/little, _/binary>>, _) -> bad("version ~b of GGUF is not known, or it has too many parts", [Version]);
decode(_, _) -> bad("it does not begin as a GGUF file", []).

times(N, F, Bytes) -> times(N, F, Bytes, []).

times(0, _, Rest, Items) -> {lists:reverse(Items), Rest};
times(N, F, Bytes, Items) ->
    {Item, Rest} = F(Bytes),
    times(N - 1, F, Rest, [Item | Items]).

pair(Bytes) ->
    {Key, Rest} = string(Bytes),
    case Rest of
        <<Type:32/little, More/binary>> ->
            {Value, After} = value(Type, More, 4),
            {{Key, Value}, After};
        _ -> short()
    end.

string(<<Length:64/little, Text:Length/binary, Rest/binary>>) -> {Text, Rest};
string(_) -> short().

value(0, <<V, Rest/binary>>, _) -> {V, Rest};
value(1, <<V/signed, Rest/binary>>, _) -> {V, Rest};
value(2, <<V:16/little, Rest/binary>>, _) -> {V, Rest};
value(3, <<V:16/little-signed, Rest/binary>>, _) -> {V, Rest};
value(4, <<V:32/little, Rest/binary>>, _) -> {V, Rest};
value(5, <<V:32/little-signed, Rest/binary>>, _) -> {V, Rest};
value(6, <<V:4/binary, Rest/binary>>, _) -> {number(V), Rest};
value(7, <<V, Rest/binary>>, _) -> {V =/= 0, Rest};
value(8, Bytes, _) -> string(Bytes);
value(9, <<Type:32/little, Count:64/little, Rest/binary>>, Depth) when Depth > 0, Count =< ?MOST ->
    times(Count, fun(Bytes) -> value(Type, Bytes, Depth - 1) end, Rest);
value(10, <<V:64/little, Rest/binary>>, _) -> {V, Rest};
value(11, <<V:64/little-signed, Rest/binary>>, _) -> {V, Rest};
value(12, <<V:8/binary, Rest/binary>>, _) -> {number(V), Rest};
value(Type, _, _) when Type > 12 -> bad("a value of its metadata has the type ~b", [Type]);
value(_, _, _) -> short().

number(<<V:32/little-float>>) -> V;
number(<<V:64/little-float>>) -> V;
number(<<_:7, Sign:1, _/bitstring>> = Bytes) ->
    case {Bytes, Sign} of
        {<<0:16, 128, _>>, _} -> infinite(binary:last(Bytes));
        {<<0:48, 240, _>>, _} -> infinite(binary:last(Bytes));
        _ -> nan
    end.

infinite(Last) when Last >= 128 -> neg_infinity;
infinite(_) -> infinity.

info(Bytes) ->
    {Name, Rest} = string(Bytes),
    case Rest of
        <<Rank:32/little, Sizes:(Rank * 8)/binary, Type:32/little, Offset:64/little, More/binary>> when Rank =< 64 ->
            {{Name, lists:reverse([Size || <<Size:64/little>> <= Sizes]), Type, Offset}, More};
        _ -> short()
    end.

entry(File, Start, {Name, Sizes, Code, Offset}, Quantized) ->
    Shape = list_to_tuple(Sizes),
    Elements = tessera_type:elements(Shape),
    {Type, InBlock, BlockBytes} = form(Code, Name),
    Row = case Sizes of [] -> 1; _ -> lists:last(Sizes) end,
    Row rem InBlock =:= 0 orelse bad("~ts has rows of ~b elements, in blocks of ~b", [Name, Row, InBlock]),
    At = Start + Offset,
    Size = Elements div InBlock * BlockBytes,
    At + Size =< byte_size(File) orelse bad("it ends after ~b bytes, and ~ts takes ~b at ~b", [byte_size(File), Name, Size, At]),
    Bytes = fun() -> binary:part(File, At, Size) end,
    case Type of
        {blocks, _} when Quantized =:= keep, tuple_size(Shape) =:= 2, Elements > 0, Code =:= 2 orelse Code =:= 3 orelse Code =:= 8 orelse Code =:= 12 ->
            {Name, f32, Shape, fun() -> weight(Code, Bytes(), Elements div InBlock, BlockBytes, Shape) end};
        {blocks, Widen} -> {Name, f32, Shape, fun() -> blocks(Bytes(), Elements div InBlock, BlockBytes, Shape, Widen) end};
        _ -> {Name, Type, Shape, fun() -> tessera_io_file:tensor(Bytes(), Type, Shape) end}
    end.

%% The type of an element or how blocks are widened, the elements of a block, and its bytes.
form(0, _) -> {f32, 1, 4};
form(1, _) -> {f16, 1, 2};
form(2, _) -> {{blocks, fun q4_0/1}, 32, 18};
form(3, _) -> {{blocks, fun q4_1/1}, 32, 20};
form(6, _) -> {{blocks, fun q5_0/1}, 32, 22};
form(7, _) -> {{blocks, fun q5_1/1}, 32, 24};
form(8, _) -> {{blocks, fun q8_0/1}, 32, 34};
form(12, _) -> {{blocks, fun q4_k/1}, 256, 144};
form(13, _) -> {{blocks, fun q5_k/1}, 256, 176};
form(14, _) -> {{blocks, fun q6_k/1}, 256, 210};
form(24, _) -> {s8, 1, 1};
form(25, _) -> {s16, 1, 2};
form(26, _) -> {s32, 1, 4};
form(27, _) -> {s64, 1, 8};
form(28, _) -> {f64, 1, 8};
form(30, _) -> {bf16, 1, 2};
form(Code, Name) -> tessera_io_file:fail(unimplemented, "~ts is quantised in the form ~b of ggml, which is not known", [Name, Code]).

-spec short() -> no_return().
short() -> bad("it ends within its header", []).

-spec bad(io:format(), [term()]) -> no_return().
bad(Format, Values) -> tessera_io_file:fail(data_loss, Format, Values).

%% ---- blocks: {Blocks, Bytes} of u8 becomes {Blocks, Elements} of f32

blocks(_, 0, _, Shape, _) -> tessera:broadcast(tessera:tensor(0.0, f32), Shape);
blocks(Bytes, Blocks, BlockBytes, Shape, Widen) ->
    Raw = tessera_io_file:tensor(Bytes, u8, {Blocks, BlockBytes}),
    (tessera:jit(fun(X) -> tessera:reshape(Widen(X), Shape) end))(Raw).

%% ---- blocks as a quantised weight: the rows of the matrix become columns

weight(Code, Bytes, Blocks, BlockBytes, Shape) ->
    Raw = tessera_io_file:tensor(Bytes, u8, {Blocks, BlockBytes}),
    (tessera:jit(fun(X) -> packed(Code, X, Shape) end))(Raw).

packed(Code, X, {Rows, Columns}) ->
    {Form, Q, Numbers} = numbers(Code, X),
    Turned = fun(Y, Count) -> tessera:transpose(tessera:reshape(Y, {Rows, Count})) end,
    tessera_quantize:from_numbers(Form, Turned(tessera:as_type(Q, u32), Columns), [Turned(N, Columns div 32) || N <- Numbers]).

%% The numbers, and the scale and the zero or minimum of each 32 numbers, in the forms of tessera:quantize/2.
numbers(2, X) -> {{4, 32, scale}, nibbles(columns(X, 2, 16)), [f16(half(X, 0))]};
numbers(3, X) -> {{4, 32, minimum}, nibbles(columns(X, 4, 16)), [f16(half(X, 0)), f16(tessera:negate(half(X, 2)))]};
numbers(8, X) -> {{8, 32, scale}, tessera:bitwise_xor(columns(X, 2, 32), 128), [f16(half(X, 0))]};
numbers(12, X) ->
    {Scale, Minimum} = super_scales(X),
    {{4, 32, minimum}, quarters(columns(X, 16, 128), fun low/1, fun high/1), [Scale, Minimum]}.

f16(X) -> tessera:as_type(X, f16).

%% Columns of the blocks.
columns(X, From, Count) ->
    {Blocks, _} = tessera:shape(X),
    tessera:slice(X, [0, From], [Blocks, Count]).

%% Two bytes, the lower one first, as a number of f16: {Blocks, 1} of f32.
half(X, From) ->
    Low = tessera:as_type(columns(X, From, 1), u16),
    High = tessera:as_type(columns(X, From + 1, 1), u16),
    tessera:as_type(tessera:bitcast(tessera:bitwise_or(Low, tessera:left_shift(High, 8)), f16), f32).

low(X) -> tessera:bitwise_and(X, 15).
high(X) -> tessera:right_shift(X, 4).
f32(X) -> tessera:as_type(X, f32).
times(X, Y) -> tessera:multiply(X, Y).
joined(Xs) -> tessera:concatenate(Xs, 1).

%% The lower halves of the bytes are the first elements.
nibbles(X) -> joined([low(X), high(X)]).

%% Bit I of four bytes, for I from 0 to 31: {Blocks, 32} of u8.
bits(X, From) ->
    {Blocks, _} = tessera:shape(X),
    Spread = tessera:reshape(tessera:broadcast(tessera:reshape(columns(X, From, 4), {Blocks, 4, 1}), {Blocks, 4, 8}), {Blocks, 32}),
    Shift = tessera:as_type(tessera:remainder(tessera:iota({1, 32}, s32, 1), 8), u8),
    tessera:bitwise_and(tessera:right_shift(Spread, Shift), 1).

q4_0(X) -> times(half(X, 0), tessera:subtract(f32(nibbles(columns(X, 2, 16))), 8.0)).

q4_1(X) -> tessera:add(times(half(X, 0), f32(nibbles(columns(X, 4, 16)))), half(X, 2)).

five(X, Bits, From) -> f32(tessera:bitwise_or(nibbles(columns(X, From, 16)), tessera:left_shift(bits(X, Bits), 4))).

q5_0(X) -> times(half(X, 0), tessera:subtract(five(X, 2, 6), 16.0)).

q5_1(X) -> tessera:add(times(half(X, 0), five(X, 4, 8)), half(X, 2)).

q8_0(X) -> times(half(X, 0), f32(tessera:bitcast(columns(X, 2, 32), s8))).

%% Six bits for the scale and the minimum of each eighth of a block, in twelve bytes.
scales(X, From) ->
    [A, B, C] = [columns(X, From + 4 * I, 4) || I <- [0, 1, 2]],
    Top = fun(Y) -> tessera:left_shift(tessera:right_shift(Y, 6), 4) end,
    Six = fun(Y) -> tessera:bitwise_and(Y, 63) end,
    {joined([Six(A), tessera:bitwise_or(low(C), Top(A))]), joined([Six(B), tessera:bitwise_or(high(C), Top(B))])}.

q4_k(X) -> super(X, quarters(columns(X, 16, 128), fun low/1, fun high/1)).

q5_k(X) ->
    High = columns(X, 16, 32),
    Bit = fun(I) -> tessera:left_shift(tessera:bitwise_and(tessera:right_shift(High, I), 1), 4) end,
    Quarter = fun(J) ->
                      Part = columns(X, 48 + 32 * J, 32),
                      [tessera:bitwise_or(low(Part), Bit(2 * J)), tessera:bitwise_or(high(Part), Bit(2 * J + 1))]
              end,
    super(X, joined(lists:append([Quarter(J) || J <- [0, 1, 2, 3]]))).

quarters(X, First, Second) -> joined(lists:append([[First(P), Second(P)] || J <- [0, 1, 2, 3], P <- [columns(X, 32 * J, 32)]])).

%% d * scale and dmin * minimum of each eighth.
super_scales(X) ->
    {Blocks, _} = tessera:shape(X),
    {Scales, Minima} = scales(X, 4),
    Eighths = fun(Y) -> tessera:reshape(Y, {Blocks, 8, 1}) end,
    {Eighths(times(half(X, 0), f32(Scales))), Eighths(times(half(X, 2), f32(Minima)))}.

%% d * scale * q - dmin * minimum
super(X, Q) ->
    {Blocks, _} = tessera:shape(X),
    {Scale, Minimum} = super_scales(X),
    tessera:reshape(tessera:subtract(times(Scale, f32(tessera:reshape(Q, {Blocks, 8, 32}))), Minimum), {Blocks, 256}).

%% d * scale * (q - 32), with four bits of q in 128 bytes and two in 64; a scale for each 16 elements.
q6_k(X) ->
    {Blocks, _} = tessera:shape(X),
    Half = fun(N) ->
                   [A, B] = [columns(X, 64 * N + 32 * I, 32) || I <- [0, 1]],
                   H = columns(X, 128 + 32 * N, 32),
                   Two = fun(Shift) -> tessera:left_shift(tessera:bitwise_and(tessera:right_shift(H, Shift), 3), 4) end,
                   [tessera:bitwise_or(low(A), Two(0)), tessera:bitwise_or(low(B), Two(2)),
                    tessera:bitwise_or(high(A), Two(4)), tessera:bitwise_or(high(B), Two(6))]
           end,
    Q = tessera:subtract(f32(joined(Half(0) ++ Half(1))), 32.0),
    Scale = times(half(X, 208), f32(tessera:bitcast(columns(X, 192, 16), s8))),
    tessera:reshape(times(tessera:reshape(Scale, {Blocks, 16, 1}), tessera:reshape(Q, {Blocks, 16, 16})), {Blocks, 256}).

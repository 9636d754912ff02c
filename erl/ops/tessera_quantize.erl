%% @private Quantised weights (c_src/tensor/quantized.h): they are made, unpacked, and multiplied with. The API in tessera.erl documents
%% the functions. A weight is a map, so that it is passed and saved as containers are. What is no tensor in it is a binary: numbers would be traced.
-module(tessera_quantize).
-include("tessera.hrl").
-export([quantize/2, dequantize/2, dot/2, from_numbers/3, shares/6]).
-export_type([quantized/0]).

-type quantized() :: #{quantized := binary(), words := tessera_type:tensor(), scales := tessera_type:tensor(),
                       zeros => tessera_type:tensor(), minimums => tessera_type:tensor()}.
-type form() :: scale | zero | minimum.
%% What a weight's binary says, and its form.
-record(weight, {bits :: 4 | 8, group :: pos_integer(), form :: form(), k :: non_neg_integer(), n :: non_neg_integer()}).
-type weight() :: #weight{}.
%% Words, scales, and a list of the zeros or minimums if there are any.
-type tensors() :: {tessera_type:tensor(), tessera_type:tensor(), [tessera_type:tensor()]}.

-define(COLUMNS, 64).
-define(MOST_GROUP, (1 bsl 31)).
%% f32 holds it also if a scale of few digits was rounded up.
-define(MOST_WEIGHT, 3.2e38).
-define(MOST_F16, 65504.0).

%% ---- making one

-spec quantize(tessera_type:tensor(), tessera_options:quantize_options()) -> quantized().
quantize(W, Given) ->
    Args = [W, Given],
    #{bits := Bits, group := Group, form := Form, axis := Axis, scales := Type} =
        tessera_ops:options(quantize, Args, Given, #{bits => 8, group => 32, form => scale, axis => 0, scales => f32}),
    lists:member(Bits, [4, 8]) orelse refuse(Args, "bits is ~ts, expected 4 or 8", Bits),
    is_integer(Group) andalso Group > 0 andalso Group rem 8 =:= 0 andalso Group < ?MOST_GROUP
        orelse refuse(Args, "group is ~ts, expected a multiple of 8", Group),
    lists:member(Form, [scale, zero, minimum]) orelse refuse(Args, "form is ~ts, expected scale, zero or minimum", Form),
    lists:member(Type, [f32, bf16, f16]) orelse refuse(Args, "scales is ~ts, expected f32, bf16 or f16", Type),
    tessera_operand:rank(quantize, W) =:= 2 andalso tessera_type:is_float_type(tessera_operand:type_of(W))
        orelse refuse(Args, "expected a matrix of floats, got ~ts", W),
    Contracted = tessera_ops:axis_option(quantize, Args, Axis, 2),
    Make = fun(Matrix) -> numbers(oriented(Matrix, Contracted), {Bits, Group, Form}, Type) end,
    {Words, Scales, Others} = tessera_jit:in_program(Make, W),
    {K, N} = oriented_shape(tessera_operand:shape_of(W), Contracted),
    weight(#weight{bits = Bits, group = Group, form = Form, k = K, n = N}, {Words, Scales, Others}).

-spec refuse([term()], string(), term()) -> no_return().
refuse(Args, Format, Value) ->
    tessera_error:raise(quantize, Args, invalid_argument, "quantize: " ++ Format, [tessera_error:show(Value)]).

oriented(W, 0) -> W;
oriented(W, 1) -> tessera_ops:transpose(W, [1, 0]).

oriented_shape(Shape, 0) -> Shape;
oriented_shape({N, K}, 1) -> {K, N}.

-spec weight(weight(), tensors()) -> quantized().
weight(#weight{bits = Bits, group = Group, form = Form, k = K, n = N}, {Words, Scales, Others}) ->
    Text = iolist_to_binary(io_lib:format("u~b in groups of ~b: ~b x ~b", [Bits, Group, K, N])),
    Weight = #{quantized => Text, words => Words, scales => Scales},
    case {Form, Others} of
        {scale, []} -> Weight;
        {zero, [Zeros]} -> Weight#{zeros => Zeros};
        {minimum, [Minimums]} -> Weight#{minimums => Minimums}
    end.

%% The tensors of the matrix [K, N]. The scales are rounded first, so that the numbers fit them.
-spec numbers(tessera_type:tensor(), {4 | 8, pos_integer(), form()}, tessera_type:type()) -> tensors().
numbers(W, {Bits, Group, Form}, Type) ->
    {K, N} = tessera_operand:shape_of(W),
    Groups = ceil_div(K, Group),
    Grouped = tessera_ops:reshape(padded(limited(tessera_ops:as_type(W, f32), {Bits, Form}, Type), Groups * Group, N), {Groups, Group, N}),
    {Scale, Others, Number} = chosen(Form, Grouped, Bits, Type),
    Most = float((1 bsl Bits) - 1),
    Q = tessera_ops:as_type(tessera_elementwise:clip(tessera_elementwise:round(Number), 0.0, Most), u32),
    {words(tessera_ops:reshape(Q, {Groups * Group, N}), K, Bits), stored(Scale, Type), [stored(Other, Type) || Other <- Others]}.

%% Weights beyond the range of the form would have an infinite scale or minimum, and their group NaN.
limited(W, {Bits, Form}, Type) ->
    Most = case Form of scale -> most_number(Form, Bits) * most_scale(Form, Bits, Type); _ -> ?MOST_WEIGHT end,
    Least = case {Form, Type} of {minimum, f16} -> ?MOST_F16; _ -> Most end,
    tessera_elementwise:clip(W, -Least, Most).

%% What the largest scale is multiplied with has at most this size. With zeros such a group reaches as far below 0 as above, or its type is f16.
most_number(scale, 8) -> 127;
most_number(minimum, Bits) -> (1 bsl Bits) - 1;
most_number(_, Bits) -> 1 bsl (Bits - 1).

%% Their type holds this scale, and f32 its products.
most_scale(Form, Bits, f16) -> min(most_scale(Form, Bits, f32), ?MOST_F16);
most_scale(Form, Bits, _) -> ?MOST_WEIGHT / most_number(Form, Bits).

%% The scale and what else the form has, each for a group, and the number of each weight before it is rounded. 127 and -127 are as far
%% from the middle of 8 bits as each other; of 4 bits the weight of the largest size is -8, one more number than with 7.
chosen(scale, W, 8, Type) ->
    Scale = rounded(multiply(of_group(reduce_max, tessera_elementwise:abs(W)), 1 / 127), Type),
    {Scale, [], add(divided(W, Scale), 128.0)};
chosen(scale, W, 4, Type) ->
    {Low, High} = {of_group(reduce_min, W), of_group(reduce_max, W)},
    Extreme = tessera_elementwise:select(tessera_elementwise:greater(tessera_elementwise:negate(Low), High), Low, High),
    Scale = rounded(multiply(Extreme, -1 / 8), Type),
    {Scale, [], add(divided(W, Scale), 8.0)};
chosen(Form, W, Bits, Type) ->
    Most = float((1 bsl Bits) - 1),
    MostScale = most_scale(Form, Bits, Type),
    High = tessera_elementwise:max(of_group(reduce_max, W), 0.0),
    %% The lower end of a group that is too wide: what the upper end leaves, and at least half of the range.
    Half = MostScale * Most / 2,
    Least = tessera_elementwise:subtract(-Half, tessera_elementwise:max(tessera_elementwise:subtract(Half, High), 0.0)),
    Low = tessera_elementwise:max(tessera_elementwise:min(of_group(reduce_min, W), 0.0), Least),
    %% f32 may not hold the difference, but that of the halves
    Width = tessera_elementwise:subtract(multiply(High, 0.5), multiply(Low, 0.5)),
    Scale = rounded(tessera_elementwise:min(multiply(Width, 2 / Most), MostScale), Type),
    case Form of
        minimum ->
            Minimum = rounded(tessera_elementwise:negate(Low), Type),
            {Scale, [Minimum], divided(add(W, Minimum), Scale)};
        zero ->
            Zero = rounded(tessera_elementwise:round(divided(tessera_elementwise:negate(Low), Scale)), Type),
            {Scale, [Zero], add(divided(W, Scale), Zero)}
    end.

of_group(reduce_min, W) -> tessera_ops:reduce_min(W, #{axes => 1, keep_axes => true});
of_group(reduce_max, W) -> tessera_ops:reduce_max(W, #{axes => 1, keep_axes => true}).

add(A, B) -> tessera_elementwise:add(A, B).
multiply(A, B) -> tessera_elementwise:multiply(A, B).

rounded(X, Type) -> tessera_ops:as_type(tessera_ops:as_type(X, Type), f32).

stored(X, Type) -> panels(tessera_ops:as_type(tessera_ops:squeeze(X, #{axes => 1}), Type)).

%% A group whose scale is 0 consists of zeros.
divided(W, Scale) ->
    IsZero = tessera_elementwise:equal(Scale, 0.0),
    tessera_elementwise:select(IsZero, 0.0, tessera_elementwise:divide(W, tessera_elementwise:select(IsZero, 1.0, Scale))).

%% ---- layout

ceil_div(A, B) -> (A + B - 1) div B.

padded(X, Rows, Columns) ->
    {K, N} = tessera_operand:shape_of(X),
    tessera_ops:pad(X, 0, [{0, Rows - K, 0}, {0, Columns - N, 0}]).

%% [Rows, N] as [panels, Rows, columns].
panels(X) ->
    {Rows, N} = tessera_operand:shape_of(X),
    Panels = ceil_div(N, ?COLUMNS),
    Cut = tessera_ops:reshape(padded(X, Rows, Panels * ?COLUMNS), {Rows, Panels, ?COLUMNS}),
    tessera_ops:transpose(Cut, [1, 0, 2]).

%% The words of the first K rows of a matrix of u32, which has them as whole words at least.
words(Q, K, Bits) ->
    Each = 32 div Bits,
    {_, N} = tessera_operand:shape_of(Q),
    Words = ceil_div(K, Each),
    P = panels(tessera_ops:slice(Q, [0, 0], [Words * Each, N])),
    {Panels, _, _} = tessera_operand:shape_of(P),
    Numbers = tessera_ops:reshape(P, {Panels, Words, Each, ?COLUMNS}),
    %% the bits of numbers do not meet
    tessera_ops:as_type(tessera_ops:sum(tessera_elementwise:left_shift(Numbers, places(Each, Bits)), #{axes => 2}), u32).

%% Where each number of a word begins: [Each, 1] of u32.
places(Each, Bits) -> multiply(tessera_array:iota({Each, 1}, u32, 0), tessera_ops:as_type(Bits, u32)).

%% A weight of numbers that are known: Q [K, N] of u32, scales and zeros or minimums [groups, N].
-spec from_numbers({4 | 8, pos_integer(), form()}, tessera_type:tensor(), [tessera_type:tensor()]) -> quantized().
from_numbers({Bits, Group, Form}, Q, [Scales | Others]) ->
    {K, N} = tessera_operand:shape_of(Q),
    Pack = fun({Numbers, S, O}) -> {words(padded(Numbers, ceil_div(K, 8) * 8, N), K, Bits), panels(S), [panels(X) || X <- O]} end,
    weight(#weight{bits = Bits, group = Group, form = Form, k = K, n = N}, tessera_jit:in_program(Pack, {Q, Scales, Others})).

%% ---- the matrix

-spec dequantize(quantized(), tessera_type:type()) -> tessera_type:tensor().
dequantize(Q, Type) ->
    Args = [Q, Type],
    Weight = described(dequantize, Args, Q),
    tessera_type:is_float_type(Type) orelse
        tessera_error:raise(dequantize, Args, invalid_argument, "dequantize: the type is ~ts, expected a float", [tessera_error:show(Type)]),
    in_matrix(Weight, Q, Type).

in_matrix(Weight, Q, Type) -> tessera_jit:in_program(fun(Tensors) -> matrix(Weight, Tensors, Type) end, tensors(Q)).

-spec tensors(quantized()) -> tensors().
tensors(#{words := Words, scales := Scales} = Q) ->
    {Words, Scales, case Q of
                        #{zeros := Zeros} -> [Zeros];
                        #{minimums := Minimums} -> [Minimums];
                        _ -> []
                    end}.

%% What the binary says, and which tensors there are.
-spec described(atom(), [term()], term()) -> weight().
described(Name, Args, #{quantized := Text, words := #tessera{}, scales := #tessera{}} = Q) when is_binary(Text) ->
    Form = case Q of
               #{zeros := #tessera{}} -> zero;
               #{minimums := #tessera{}} -> minimum;
               _ -> scale
           end,
    case io_lib:fread("u~d in groups of ~d: ~d x ~d", binary_to_list(Text)) of
        {ok, [Bits, Group, K, N], []} when Bits =:= 4 orelse Bits =:= 8, Group > 0, K >= 0, N >= 0 ->
            Weight = #weight{bits = Bits, group = Group, form = Form, k = K, n = N},
            lists:all(fun(X) -> X end, fits(Weight, tensors(Q))) orelse not_quantized(Name, Args, Q),
            Weight;
        _ -> not_quantized(Name, Args, Q)
    end;
described(Name, Args, Other) -> not_quantized(Name, Args, Other).

fits(#weight{bits = Bits, group = Group, k = K, n = N}, {Words, Scales, Others}) ->
    Panels = ceil_div(N, ?COLUMNS),
    Of = fun(#tessera{shape = Shape}, Rows) -> Shape =:= {Panels, Rows, ?COLUMNS} end,
    [Of(Words, ceil_div(K, 32 div Bits)) | [Of(X, ceil_div(K, Group)) || X <- [Scales | Others]]].

-spec not_quantized(atom(), [term()], term()) -> no_return().
not_quantized(Name, Args, Other) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a quantised weight of tessera:quantize, got ~ts",
                        [Name, tessera_error:show(Other)]).

%% In the order of c_src/tensor/quantized.h.
-spec matrix(weight(), tensors(), tessera_type:type()) -> tessera_type:tensor().
matrix(#weight{k = K, n = N} = Weight, Tensors, Type) ->
    W = values(Weight, Tensors),
    {Panels, _, _} = tessera_operand:shape_of(W),
    Whole = tessera_ops:reshape(tessera_ops:transpose(tessera_ops:as_type(W, Type), [1, 0, 2]), {K, Panels * ?COLUMNS}),
    tessera_ops:slice(Whole, [0, 0], [K, N]).

%% [panels, K, columns] of f32.
values(#weight{form = Form} = Weight, {_, Scales, Others} = Tensors) ->
    Scaled = multiply(factors(Weight, Tensors), spread(Weight, Scales)),
    case {Form, Others} of
        {minimum, [Minimums]} -> tessera_elementwise:subtract(Scaled, spread(Weight, Minimums));
        _ -> Scaled
    end.

%% [panels, K, columns]: what the scales are multiplied with.
factors(#weight{form = Form, bits = Bits} = Weight, {Words, _, Others}) ->
    Q = unpacked(Weight, Words),
    case {Form, Others} of
        {scale, []} -> tessera_elementwise:subtract(Q, float(1 bsl (Bits - 1)));
        {zero, [Zeros]} -> tessera_elementwise:subtract(Q, spread(Weight, Zeros));
        {minimum, [_]} -> Q
    end.

unpacked(#weight{bits = Bits, k = K}, Words) ->
    {Panels, Rows, _} = tessera_operand:shape_of(Words),
    Each = 32 div Bits,
    Apart = tessera_elementwise:right_shift(tessera_ops:reshape(Words, {Panels, Rows, 1, ?COLUMNS}), places(Each, Bits)),
    Q = tessera_elementwise:bitwise_and(Apart, tessera_ops:as_type((1 bsl Bits) - 1, u32)),
    first_rows(tessera_ops:reshape(tessera_ops:as_type(Q, f32), {Panels, Rows * Each, ?COLUMNS}), K).

first_rows(X, K) ->
    {Panels, _, _} = tessera_operand:shape_of(X),
    tessera_ops:slice(X, [0, 0, 0], [Panels, K, ?COLUMNS]).

%% The number of each group for each of its rows.
spread(#weight{group = Group, k = K}, X) ->
    {Panels, Groups, _} = tessera_operand:shape_of(X),
    Each = tessera_ops:broadcast_to(tessera_ops:reshape(tessera_ops:as_type(X, f32), {Panels, Groups, 1, ?COLUMNS}),
                                    {Panels, Groups, Group, ?COLUMNS}),
    first_rows(tessera_ops:reshape(Each, {Panels, Groups * Group, ?COLUMNS}), K).

%% ---- products

%% X times the weight, over the last axis of X. An X of a type that no product of weights has is multiplied with the matrix.
-spec dot(tessera_type:operand(), quantized()) -> tessera_type:tensor().
dot(X, Q) ->
    Args = [X, Q],
    #weight{bits = Bits, group = Group, form = Form, k = K, n = N} = Weight = described(dot, Args, Q),
    Shape = tessera_operand:shape_of(tessera_operand:operand(dot, X)),
    tuple_size(Shape) > 0 andalso element(tuple_size(Shape), Shape) =:= K orelse
        tessera_error:raise(dot, Args, invalid_argument, "dot: the last axis of ~ts has to be the first one of the quantised weight {~b,~b}",
                            [tessera_error:show(X), K, N]),
    {Words, Scales, Others} = tensors(Q),
    case tessera_operand:type_of(X) of
        Type when Type =:= f32; Type =:= bf16; Type =:= f16 ->
            tessera_trace:op(dot, quantized_dot, [X, Words, Scales | Others], {Bits, Group, index(Form), N});
        Type -> tessera_ops:dot(X, in_matrix(Weight, Q, tessera_type:to_float(Type)))
    end.

index(scale) -> 0;
index(zero) -> 1;
index(minimum) -> 2.

form(0) -> scale;
form(1) -> zero;
form(2) -> minimum.

%% ---- gradients

%% The shares of X, the words, the scales and the others in the gradient C of the product.
-spec shares(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), [tessera_type:tensor()], term()) ->
          [fun(() -> tessera_type:tensor()) | none].
shares(C, #tessera{type = Type, shape = Shape} = X, Words, Scales, Others, {Bits, Group, Form, N}) ->
    Rank = tuple_size(Shape),
    Weight = #weight{bits = Bits, group = Group, form = form(Form), k = element(Rank, Shape), n = N},
    Tensors = {Words, Scales, Others},
    [fun() -> tessera_ops:dot(C, [Rank - 1], matrix(Weight, Tensors, Type), [1]) end,
     none | number_shares(Weight, Tensors, fun() -> matrix_share(X, C) end)].

%% The gradient of the matrix, in panels of f32: it may leave the range of X's type where the sums over groups do not.
matrix_share(#tessera{shape = Shape} = X, C) ->
    Rows = lists:seq(0, tuple_size(Shape) - 2),
    [Wide, WideC] = [tessera_ops:as_type(T, f32) || T <- [X, C]],
    panels(tessera_ops:dot(Wide, Rows, WideC, Rows)).

number_shares(#weight{form = Form} = Weight, {_, #tessera{type = Type} = Scales, _} = Tensors, Share) ->
    Sum = fun(X) -> tessera_ops:as_type(group_sums(Weight, X), Type) end,
    OfScales = fun() -> Sum(multiply(Share(), factors(Weight, Tensors))) end,
    OfOthers = case Form of
                   scale -> [];
                   zero -> [fun() -> Sum(tessera_elementwise:negate(multiply(Share(), spread(Weight, Scales)))) end];
                   minimum -> [fun() -> Sum(tessera_elementwise:negate(Share())) end]
               end,
    [OfScales | OfOthers].

%% [panels, K, columns] to [panels, groups, columns].
group_sums(#weight{group = Group, k = K}, X) ->
    {Panels, _, _} = tessera_operand:shape_of(X),
    Groups = ceil_div(K, Group),
    Whole = tessera_ops:pad(X, 0, [{0, 0, 0}, {0, Groups * Group - K, 0}, {0, 0, 0}]),
    tessera_ops:sum(tessera_ops:reshape(Whole, {Panels, Groups, Group, ?COLUMNS}), #{axes => 2}).

%% @private Reading and writing at index vectors, and the gradients of these ops. Indices have their vectors in the last
%% axis, one number for each of the indexed axes of the tensor.
%%
%% The first two are also for the Nx plug, which has ops of its own: Op applies a core op.
-module(tessera_indices).
-include("tessera.hrl").
-export([gather/4, update/6]).
-export([gather/3, indexed/5]).
-export([untake/4, untake_along/4, indexed_add_shares/4, indexed_put_shares/4]).

-type op() :: fun((atom(), [tessera_type:operand()], term()) -> tessera_type:tensor()).

%% ---- by ops of the core

%% The slices at the indices: the axes of Indices but its last, then the tensor's axes that are not indexed. Each index is
%% moved to the nearest one in range. The indexed axes are merged into one, and take reads it at linear indices.
-spec gather(op(), tessera_type:tensor(), tessera_type:tensor(), [non_neg_integer()]) -> tessera_type:tensor().
gather(Op, #tessera{shape = Shape} = A, #tessera{shape = IndexShape} = Indices, Axes) ->
    Dims = tuple_to_list(Shape),
    Kept = tessera_type:dims(length(Dims)) -- Axes,
    [KeptDims, Sizes] = [[lists:nth(I + 1, Dims) || I <- Some] || Some <- [Kept, Axes]],
    Flat = reshape(Op, transpose(Op, A, Axes ++ Kept), [product(Sizes) | KeptDims]),
    Op(take, [Flat, linear_index(Op, Indices, lists:droplast(tuple_to_list(IndexShape)), Sizes)], 0).

linear_index(Op, Indices, Batch, [_]) -> reshape(Op, Indices, Batch);
linear_index(Op, Indices, Batch, Sizes) ->
    {_, Index} = lists:foldl(
        fun(Size, {I, Sum}) -> {I + 1, add_scaled(Op, Sum, Size, into(Op, column(Op, Indices, Batch, I), Size))} end,
        {0, none}, Sizes),
    Index.

%% Clamped to [0, Size) as s64. That type holds the bounds, unlike some narrower types, and all indices except u64's, which are
%% clamped first. An empty axis has nothing to read.
into(Op, #tessera{type = u64} = Indices, Size) -> convert(Op, clamp(Op, Indices, Size), s64);
into(Op, Indices, Size) -> clamp(Op, convert(Op, Indices, s64), Size).

clamp(Op, Indices, Size) -> Op(clamp, [Indices, 0, max(0, Size - 1)], []).

convert(_, #tessera{type = Type} = Value, Type) -> Value;
convert(Op, Value, Type) -> Op(convert, [Value], Type).

add_scaled(_, none, _, Index) -> Index;
add_scaled(Op, Sum, Size, Index) -> Op(add, [Op(multiply, [Sum, Size], []), Index], []).

%% The numbers of one indexed axis.
column(Op, Indices, Batch, I) ->
    Starts = [0 || _ <- Batch] ++ [I],
    reshape(Op, Op(slice, [Indices], {Starts, Batch ++ [I + 1], [1 || _ <- Starts]}), Batch).

%% indexed_add or indexed_put for any number of indexed axes: the core takes one.
-spec update(op(), indexed_add | indexed_put, tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(),
             [non_neg_integer()]) -> tessera_type:tensor().
update(Op, Name, Target, #tessera{shape = IndexShape} = Indices, #tessera{shape = UpdateShape} = Updates, Axes) ->
    Batch = lists:droplast(tuple_to_list(IndexShape)),
    Rows = product(Batch),
    Kept = lists:nthtail(length(Batch), tuple_to_list(UpdateShape)),
    Op(Name, [Target, reshape(Op, Indices, [Rows, length(Axes)]), reshape(Op, Updates, [Rows | Kept])], Axes).

reshape(Op, #tessera{shape = Shape} = Value, Dims) ->
    case list_to_tuple(Dims) of
        Shape -> Value;
        Other -> Op(reshape, [Value], Other)
    end.

transpose(Op, Value, Order) ->
    case lists:sort(Order) of
        Order -> Value;
        _ -> Op(transpose, [Value], Order)
    end.

product(Dims) -> lists:foldl(fun erlang:'*'/2, 1, Dims).

%% ---- the API

-spec gather(tessera_type:tensor(), tessera_type:tensor(), tessera_options:axes_options()) -> tessera_type:tensor().
gather(Tensor, Indices, Options) ->
    [T, I] = [tessera_operand:tensor(gather, Arg) || Arg <- [Tensor, Indices]],
    Axes = axes(gather, [Tensor, Indices, Options], T, I, Options),
    gather(op(gather), T, I, Axes).

-spec indexed(indexed_add | indexed_put, tessera_type:operand(), tessera_type:operand(), tessera_type:operand(), tessera_options:axes_options()) ->
          tessera_type:tensor().
indexed(Name, Target, Indices, Updates, Options) ->
    Args = [Target, Indices, Updates, Options],
    [T, I, U] = [tessera_operand:tensor(Name, Arg) || Arg <- [Target, Indices, Updates]],
    Axes = axes(Name, Args, T, I, Options),
    Batch = lists:droplast(dims(I)),
    Kept = tessera_type:dims(length(dims(T))) -- Axes,
    Expected = Batch ++ [lists:nth(K + 1, dims(T)) || K <- Kept],
    dims(U) =:= Expected orelse
        tessera_error:raise(Name, Args, invalid_argument,
                            "~s: expected updates of shape ~ts, the indices' axes but the last and the target's axes that "
                            "are not indexed, got ~ts",
                            [Name, tessera_error:show(list_to_tuple(Expected)), tessera_error:show(U#tessera.shape)]),
    update(op(Name), Name, T, I, U, Axes).

op(Name) -> fun(Core, Operands, Attrs) -> tessera_trace:op(Name, Core, Operands, Attrs) end.

%% The axes, as many as the indices have numbers; by default the first ones.
axes(Name, Args, #tessera{shape = Shape}, #tessera{shape = IndexShape, type = Type}, Options) when tuple_size(IndexShape) > 0 ->
    tessera_type:is_float_type(Type) andalso
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected indices of an integer type, got ~s", [Name, Type]),
    Count = element(tuple_size(IndexShape), IndexShape),
    #{axes := Given} = tessera_ops:options(Name, Args, Options, #{axes => first}),
    Axes = case Given of
               first -> tessera_type:dims(min(Count, tuple_size(Shape) + 1));
               _ -> tessera_type:axes(Name, Args, Given, tuple_size(Shape))
           end,
    length(Axes) =:= Count andalso Count > 0 andalso Count =< tuple_size(Shape) andalso Axes =:= lists:usort(Axes) orelse
        tessera_error:raise(Name, Args, invalid_argument,
                            "~s: expected as many axes, in increasing order, as the indices' last axis has numbers, ~b, got ~0p "
                            "of a tensor of rank ~b", [Name, Count, Axes, tuple_size(Shape)]),
    Axes;
axes(Name, Args, _, _, _) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a tensor, and indices with vectors in their last axis",
                        [Name]).

dims(#tessera{shape = Shape}) -> tuple_to_list(Shape).

%% ---- gradients: C is the result's

zeros_like(#tessera{type = Type, shape = Shape}) -> tessera_array:full(Shape, 0, Type).

%% The gradient is added at the clamped indices of the read elements.
-spec untake(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), non_neg_integer()) -> tessera_type:tensor().
untake(C, X, Indices, Axis) ->
    {Before, [Size | After]} = lists:split(Axis, dims(X)),
    Count = tessera_array:size(Indices),
    Places = length(dims(Indices)),
    Last = length(dims(C)) - 1,
    Order = lists:seq(Axis, Axis + Places - 1) ++ lists:seq(0, Axis - 1) ++ lists:seq(Axis + Places, Last),
    Rows = tessera_ops:reshape(tessera_ops:transpose(C, Order), list_to_tuple([Count | Before ++ After])),
    indexed(indexed_add, zeros_like(X), tessera_ops:reshape(into(Indices, Size), {Count, 1}), Rows, #{axes => [Axis]}).

%% Each element is one row, at its linear index.
-spec untake_along(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), non_neg_integer()) -> tessera_type:tensor().
untake_along(C, X, Indices, Axis) ->
    Shape = Indices#tessera.shape,
    Strides = strides(dims(X)),
    At = fun(I) when I =:= Axis -> into(Indices, lists:nth(I + 1, dims(X)));
            (I) -> tessera_array:iota(Shape, s64, I)
         end,
    Linear = lists:foldl(fun({I, Stride}, Sum) -> tessera_elementwise:add(Sum, tessera_elementwise:multiply(At(I), Stride)) end,
                         tessera_array:full(Shape, 0, s64), lists:zip(tessera_type:dims(length(Strides)), Strides)),
    Flat = tessera_array:full({tessera_array:size(X)}, 0, X#tessera.type),
    Count = tessera_array:size(Indices),
    Sum = indexed(indexed_add, Flat, tessera_ops:reshape(Linear, {Count, 1}), tessera_ops:reshape(C, {Count}), #{}),
    tessera_ops:reshape(Sum, X#tessera.shape).

strides(Dims) ->
    {Strides, _} = lists:mapfoldr(fun(Dim, Stride) -> {Stride, Stride * Dim} end, 1, Dims),
    Strides.

into(Indices, Size) -> into(op(take), Indices, Size).

%% Rows that were dropped get no gradient.
-spec indexed_add_shares(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), [non_neg_integer()]) ->
          [none | fun(() -> tessera_type:tensor())].
indexed_add_shares(C, Indices, Updates, Axes) ->
    [fun() -> C end, none,
     fun() -> where(inside(Indices, [lists:nth(Axis + 1, dims(C)) || Axis <- Axes]), read(C, Indices, Axes), Updates) end].

%% Elements of the target that were overwritten get no gradient, and of several rows that were put at
%% one place only the last gets one.
-spec indexed_put_shares(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), [non_neg_integer()]) ->
          [none | fun(() -> tessera_type:tensor())].
indexed_put_shares(C, Indices, Updates, Axes) ->
    Sizes = [lists:nth(Axis + 1, dims(C)) || Axis <- Axes],
    [fun() -> indexed(indexed_put, C, Indices, zeros_like(Updates), #{axes => Axes}) end, none,
     fun() ->
             [Rows | _] = dims(Indices),
             Row = tessera_array:iota({Rows}, s64),
             Last = indexed(indexed_put, tessera_array:full(list_to_tuple(Sizes), -1, s64), Indices, Row, #{}),
             Wins = tessera_elementwise:equal(read(Last, Indices, tessera_type:dims(length(Axes))), Row),
             where(tessera_elementwise:logical_and(Wins, inside(Indices, Sizes)), read(C, Indices, Axes), Updates)
     end].

%% An empty tensor cannot be read, and no row is inside of it.
read(C, Indices, Axes) ->
    case tessera_array:size(C) of
        0 -> tessera_array:full(list_to_tuple([hd(dims(Indices)) |
                                         [lists:nth(I + 1, dims(C)) || I <- tessera_type:dims(length(dims(C))) -- Axes]]),
                          0, C#tessera.type);
        _ -> gather(C, Indices, #{axes => Axes})
    end.

%% An index of u64 that s64 does not hold is negative there, so that it is outside.
inside(Indices, Sizes) ->
    Wide = tessera_ops:as_type(Indices, s64),
    Bounds = tessera_array:tensor([Sizes], s64),
    tessera_ops:all(tessera_elementwise:logical_and(tessera_elementwise:greater_equal(Wide, 0), tessera_elementwise:less(Wide, Bounds)), #{axes => [1]}).

where(Rows, #tessera{type = Type, shape = Shape} = Value, _) ->
    tessera_elementwise:select(tessera_ops:broadcast(Rows, Shape, [0]), Value, tessera_array:full({}, 0, Type)).

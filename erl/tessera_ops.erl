%% @private Ops that are more than one op of the core, or whose arguments need
%% work before the core sees them. The API in tessera.erl documents them.
-module(tessera_ops).
-include("tessera.hrl").
-export([as_type/2, broadcast_to/2, broadcast/3, reshape/2, flatten/1, squeeze/2, new_axis/2, transpose/2, reverse/2,
         slice/4, at/2, put_slice/3, pad/3, concatenate/2, stack/2, split/3, take/3, take_along_axis/3,
         reduce/3, fold/4, mean/2, variance/2, arg/3, cumulative/3, logsumexp/2, softmax/2, log_softmax/2, one_hot/3,
         dot/2, dot/4, dot/6, outer/2, linspace/4, source/2, source/3, tensor/2, operand/2, shape_of/1, type_of/1]).

-type options() :: map().

%% ---- arguments

%% The options with defaults; unknown ones are an error.
-spec options(atom(), [term()], options(), options()) -> options().
options(Name, Args, Options, Defaults) when is_map(Options) ->
    case maps:keys(maps:without(maps:keys(Defaults), Options)) of
        [] -> maps:merge(Defaults, Options);
        Unknown ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: unknown options ~0p, expected some of ~0p",
                                [Name, Unknown, maps:keys(Defaults)])
    end;
options(Name, Args, Options, _) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a map of options, got ~0p", [Name, Options]).

%% The argument of the function called Name, which must be a tensor or a number.
-spec operand(atom(), term()) -> tessera:operand().
operand(_, #tessera{shape = Shape} = Tensor) when is_tuple(Shape) -> Tensor;
operand(_, Number) when is_number(Number); Number =:= nan; Number =:= infinity; Number =:= neg_infinity -> Number;
operand(Name, Other) ->
    tessera_error:raise(Name, [Other], invalid_argument,
                        "~s: expected a tensor or a number, got ~0P", [Name, Other, 10]).

%% A number as a tensor.
-spec tensor(atom(), tessera:operand()) -> tessera:tensor().
tensor(Name, Operand) ->
    case operand(Name, Operand) of
        #tessera{} = Tensor -> Tensor;
        Number ->
            case tessera_trace:is_tracing() of
                true -> tessera_trace:value(Number);
                false -> tessera:tensor(Number)
            end
    end.

-spec shape_of(tessera:operand()) -> tessera:shape().
shape_of(#tessera{shape = Shape}) when is_tuple(Shape) -> Shape;
shape_of(_) -> {}.

-spec type_of(tessera:operand()) -> tessera:type().
type_of(#tessera{type = Type}) -> Type;
type_of(N) when is_number(N) -> tessera_tree:number_type(N);
type_of(_) -> f32.

rank(Operand) -> tuple_size(shape_of(Operand)).

dims(Operand) -> tuple_to_list(shape_of(Operand)).

%% ---- creation

%% iota, eye and constant: ops without operands.
-spec source(atom(), term()) -> tessera:tensor().
source(Name, Attrs) -> source(Name, Name, Attrs).

%% The same for a function of another name.
-spec source(atom(), atom(), term()) -> tessera:tensor().
source(User, Name, Attrs) -> tessera_trace:op(User, Name, [], Attrs).

-spec linspace(number(), number(), pos_integer(), tessera:type()) -> tessera:tensor().
linspace(From, To, Count, Type) when is_integer(Count), Count > 1, is_number(From), is_number(To) ->
    tessera_type:is_float_type(Type) orelse
        tessera_error:raise(linspace, [From, To, Count, Type], invalid_argument,
                            "linspace: expected a float type, got ~0P",
                            [Type, 10]),
    Steps = source(linspace, iota, {Type, {Count}, 0}),
    Step = try (To - From) / (Count - 1)
           catch error:badarith ->
               tessera_error:raise(linspace, [From, To, Count, Type], out_of_range,
                                   "linspace: the distance from ~0p to ~0p is no float", [From, To])
           end,
    tessera:add(tessera:multiply(Steps, Step), From);
linspace(From, To, Count, _Type) ->
    tessera_error:raise(linspace, [From, To, Count], invalid_argument, 
                        "linspace: expected two numbers and a count above 1, got ~0P",
                        [[From, To, Count], 20]).

%% Indices to rows with a one at that place.
-spec one_hot(tessera:tensor(), pos_integer(), tessera:type()) -> tessera:tensor().
one_hot(Indices, Size, Type) ->
    tessera_type:is_float_type(type_of(Indices)) andalso
        tessera_error:raise(one_hot, [Indices, Size, Type], invalid_argument, "one_hot(~s): expected integers",
                            [tessera_type:format(type_of(Indices), shape_of(Indices))]),
    Places = source(one_hot, iota, {type_of(Indices), {Size}, 0}),
    as_type(tessera:equal(new_axis(Indices, -1), Places), Type).

%% ---- types and shapes

-spec as_type(tessera:operand(), tessera:type()) -> tessera:tensor().
as_type(#tessera{type = Type} = Tensor, Type) -> Tensor;
as_type(Operand, Type) -> tessera_trace:op(as_type, convert, [Operand], Type).

-spec reshape(tessera:operand(), tessera:shape()) -> tessera:tensor().
reshape(#tessera{shape = Shape} = Tensor, Shape) -> Tensor;
reshape(Operand, Shape) -> tessera_trace:op(reshape, [tensor(reshape, Operand)], Shape).

-spec flatten(tessera:operand()) -> tessera:tensor().
flatten(Operand) -> reshape(Operand, {tessera_type:elements(shape_of(Operand))}).

-spec squeeze(tessera:operand(), all | [integer()]) -> tessera:tensor().
squeeze(Operand, Which) ->
    Dims = dims(Operand),
    Numbered = lists:zip(tessera_type:dims(length(Dims)), Dims),
    Axes = case Which of
               all -> [I || {I, 1} <- Numbered];
               _ -> tessera_type:axes(squeeze, [Operand, Which], Which, length(Dims))
           end,
    [tessera_error:raise(squeeze, [Operand, Which], invalid_argument, "squeeze(~s): axis ~b has size ~b, expected 1",
                         [tessera_type:format(type_of(Operand), shape_of(Operand)), I, D])
     || {I, D} <- Numbered, D =/= 1, lists:member(I, Axes)],
    reshape(Operand, list_to_tuple([D || {I, D} <- Numbered, not lists:member(I, Axes)])).

-spec new_axis(tessera:operand(), integer()) -> tessera:tensor().
new_axis(Operand, Axis) ->
    Dims = dims(Operand),
    {Before, After} = lists:split(tessera_type:axis(new_axis, [Operand, Axis], Axis, length(Dims) + 1), Dims),
    reshape(Operand, list_to_tuple(Before ++ [1 | After])).

-spec broadcast_to(tessera:operand(), tessera:shape()) -> tessera:tensor().
broadcast_to(#tessera{shape = Shape} = Tensor, Shape) -> Tensor;
broadcast_to(Operand, Shape) ->
    Rank = rank(Operand),
    Lead = tuple_size(tessera_type:shape(broadcast, [Operand, Shape], Shape)) - Rank,
    Lead >= 0 orelse
        tessera_error:raise(broadcast, [Operand, Shape], invalid_argument,
                            "broadcast(~s): the shape ~0p has a smaller rank",
                            [tessera_type:format(type_of(Operand), shape_of(Operand)), Shape]),
    broadcast(Operand, Shape, lists:seq(Lead, Lead + Rank - 1)).

-spec broadcast(tessera:operand(), tessera:shape(), [integer()]) -> tessera:tensor().
broadcast(Operand, Shape, Axes) ->
    Args = [Operand, Shape, Axes],
    Rank = tuple_size(tessera_type:shape(broadcast, Args, Shape)),
    tessera_trace:op(broadcast, [Operand], {Shape, tessera_type:axes(broadcast, Args, Axes, Rank)}).

-spec transpose(tessera:operand(), reverse | [integer()]) -> tessera:tensor().
transpose(Operand, reverse) ->
    case rank(Operand) of
        Rank when Rank < 2 -> tensor(transpose, Operand);
        Rank -> tessera_trace:op(transpose, [Operand], lists:reverse(tessera_type:dims(Rank)))
    end;
transpose(Operand, Axes) ->
    tessera_trace:op(transpose, [Operand], tessera_type:axes(transpose, [Operand, Axes], Axes, rank(Operand))).

-spec reverse(tessera:operand(), all | [integer()]) -> tessera:tensor().
reverse(Operand, Axes) ->
    tessera_trace:op(reverse, [Operand], tessera_type:axes(reverse, [Operand, Axes], Axes, rank(Operand))).

%% ---- indexing

%% Static when all starts are integers.
-spec slice(tessera:tensor(), [tessera:operand()], [non_neg_integer()], [pos_integer()] | ones) -> tessera:tensor().
slice(Tensor, Starts, Lengths, Strides) ->
    Args = [Tensor, Starts, Lengths, Strides],
    Rank = rank(Tensor),
    lists:all(fun(List) -> tessera_type:is_proper(List) andalso length(List) =:= Rank end, [Starts, Lengths]) orelse
        tessera_error:raise(slice, Args, invalid_argument,
                                   "slice(~s): expected ~b starts and lengths, got ~0P and ~0P",
                            [tessera_type:format(type_of(Tensor), shape_of(Tensor)), Rank, Starts, 20, Lengths, 20]),
    are_sizes(Lengths) orelse
        tessera_error:raise(slice, Args, invalid_argument, "slice: the lengths ~0p are no sizes", [Lengths]),
    Steps = case Strides of
                ones -> lists:duplicate(Rank, 1);
                _ -> Strides
            end,
    case lists:all(fun erlang:is_integer/1, Starts) of
        true -> static_slice(Tensor, Starts, Lengths, Steps);
        false ->
            Window = tessera_trace:op(slice, dynamic_slice, [Tensor | Starts], list_to_tuple(Lengths)),
            case lists:all(fun(Step) -> Step =:= 1 end, Steps) of
                true -> Window;
                false -> static_slice(Window, lists:duplicate(Rank, 0), Lengths, Steps)
            end
    end.

are_sizes(List) -> tessera_type:is_proper(List) andalso lists:all(fun(N) -> is_integer(N) andalso N >= 0 end, List).

static_slice(Tensor, Starts, Lengths, Strides) ->
    Limits = lists:zipwith(fun erlang:'+'/2, Starts, Lengths),
    tessera_trace:op(slice, [Tensor], {Starts, Limits, Strides}).

%% The part of a tensor at these indices of its first axes.
-spec at(tessera:tensor(), [tessera:operand()]) -> tessera:tensor().
at(Tensor, Indices) ->
    Dims = dims(Tensor),
    tessera_type:is_proper(Indices) orelse
        tessera_error:raise(at, [Tensor, Indices], invalid_argument,
                            "at: expected a list of indices, got ~0P", [Indices, 10]),
    Count = length(Indices),
    Count =< length(Dims) orelse
        tessera_error:raise(at, [Tensor, Indices], invalid_argument, "at(~s): ~b indices, expected at most ~b",
                            [tessera_type:format(type_of(Tensor), shape_of(Tensor)), Count, length(Dims)]),
    Rest = lists:nthtail(Count, Dims),
    Starts = lists:zipwith(fun from_end/2, Indices, lists:sublist(Dims, Count)),
    Part = slice(Tensor, Starts ++ [0 || _ <- Rest], [1 || _ <- Starts] ++ Rest, ones),
    reshape(Part, list_to_tuple(Rest)).

from_end(Index, Dim) when is_integer(Index), Index < 0 -> Index + Dim;
from_end(Index, _) -> Index.

-spec put_slice(tessera:tensor(), [tessera:operand()], tessera:operand()) -> tessera:tensor().
put_slice(Tensor, Starts, Slice) when is_list(Starts) ->
    tessera_trace:op(put_slice, [Tensor, Slice | Starts], []);
put_slice(Tensor, Starts, Slice) ->
    tessera_error:raise(put_slice, [Tensor, Starts, Slice], invalid_argument,
                        "put_slice: expected a list of starts, got ~0p", [Starts]).

-spec pad(tessera:tensor(), tessera:operand(), [{integer(), integer(), non_neg_integer()}]) -> tessera:tensor().
pad(Tensor, Value, Config) ->
    try lists:unzip3(Config) of
        {Lows, Highs, Interiors} -> tessera_trace:op(pad, [Tensor, Value], {Lows, Highs, Interiors})
    catch error:function_clause ->
        tessera_error:raise(pad, [Tensor, Value, Config], invalid_argument,
                            "pad: expected a list of {Low, High, Interior}, got ~0p", [Config])
    end.

-spec concatenate([tessera:tensor()], integer()) -> tessera:tensor().
concatenate([First | _] = Tensors, Axis) ->
    tessera_trace:op(concatenate, Tensors, tessera_type:axis(concatenate, [Tensors], Axis, rank(First)));
concatenate(Tensors, _Axis) ->
    tessera_error:raise(concatenate, [Tensors], invalid_argument, "concatenate: expected a list of tensors, got ~0p",
                        [Tensors]).

-spec stack([tessera:operand()], integer()) -> tessera:tensor().
stack(Tensors, Axis) ->
    Tensors =/= [] andalso tessera_type:is_proper(Tensors) orelse
        tessera_error:raise(stack, [Tensors], invalid_argument,
                            "stack: expected a list of tensors, got ~0P", [Tensors, 10]),
    Axis1 = tessera_type:axis(stack, [Tensors], Axis, rank(hd(Tensors)) + 1),
    concatenate([new_axis(T, Axis1) || T <- Tensors], Axis1).

%% Into parts of these sizes along an axis.
-spec split(tessera:tensor(), [non_neg_integer()], integer()) -> [tessera:tensor()].
split(Tensor, Sizes, Axis) ->
    Axis1 = tessera_type:axis(split, [Tensor, Sizes], Axis, rank(Tensor)),
    Dims = dims(Tensor),
    Total = lists:nth(Axis1 + 1, Dims),
    are_sizes(Sizes) andalso lists:sum(Sizes) =:= Total orelse
        tessera_error:raise(split, [Tensor, Sizes], invalid_argument,
                            "split(~s): expected sizes that add up to ~b, got ~0P",
                            [tessera_type:format(type_of(Tensor), shape_of(Tensor)), Total, Sizes, 20]),
    {Before, [_ | After]} = lists:split(Axis1, Dims),
    {Parts, _} = lists:mapfoldl(
        fun(Size, From) ->
                Starts = [0 || _ <- Before] ++ [From] ++ [0 || _ <- After],
                {slice(Tensor, Starts, Before ++ [Size | After], ones), From + Size}
        end, 0, Sizes),
    Parts.

-spec take(tessera:tensor(), tessera:operand(), options()) -> tessera:tensor().
take(Tensor, Indices, Options) ->
    #{axis := Axis} = options(take, [Tensor, Indices, Options], Options, #{axis => 0}),
    tessera_trace:op(take, [Tensor, Indices], tessera_type:axis(take, [Tensor, Indices, Options], Axis, rank(Tensor))).

-spec take_along_axis(tessera:tensor(), tessera:tensor(), options()) -> tessera:tensor().
take_along_axis(Tensor, Indices, Options) ->
    Args = [Tensor, Indices, Options],
    #{axis := Axis} = options(take_along_axis, Args, Options, #{axis => 0}),
    tessera_trace:op(take_along_axis, [Tensor, Indices],
                     tessera_type:axis(take_along_axis, Args, Axis, rank(Tensor))).

%% ---- reductions

-define(REDUCTION, #{axes => all, keep_axes => false}).

%% By the name that users know.
-spec reduce(atom(), tessera:operand(), options()) -> tessera:tensor().
reduce(Name, Operand, Options) ->
    #{axes := Axes, keep_axes := Keep} = options(Name, [Operand, Options], Options, ?REDUCTION),
    Axes1 = tessera_type:axes(Name, [Operand, Options], Axes, rank(Operand)),
    keep_axes(tessera_trace:op(Name, core_name(Name), [Operand], Axes1), Operand, Axes1, Keep).

core_name(sum) -> reduce_sum;
core_name(product) -> reduce_product;
core_name(all) -> reduce_all;
core_name(any) -> reduce_any;
core_name(Name) -> Name.

%% Puts the reduced axes back, with size 1.
keep_axes(Result, _Operand, _Axes, false) -> Result;
keep_axes(Result, Operand, Axes, true) ->
    Dims = dims(Operand),
    Kept = [case lists:member(I, Axes) of true -> 1; false -> D end
            || {I, D} <- lists:zip(tessera_type:dims(length(Dims)), Dims)],
    reshape(Result, list_to_tuple(Kept)).

%% With a function of the user's.
-spec fold(tessera:operand(), tessera:operand(), fun(), options()) -> tessera:tensor().
fold(Operand, Initial, F, Options) ->
    Args = [Operand, Initial, F, Options],
    #{axes := Axes, keep_axes := Keep} = options(reduce, Args, Options, ?REDUCTION),
    Axes1 = tessera_type:axes(reduce, Args, Axes, rank(Operand)),
    keep_axes(tessera_control:reduce(tensor(reduce, Operand), Initial, F, Axes1), Operand, Axes1, Keep).

%% How many elements one element of the result is made of.
reduced_count(Name, Operand, Options) ->
    #{axes := Axes} = options(Name, [Operand, Options], Options, ?REDUCTION),
    Axes1 = tessera_type:axes(Name, [Operand, Options], Axes, rank(Operand)),
    lists:foldl(fun(Axis, N) -> N * element(Axis + 1, shape_of(Operand)) end, 1, Axes1).

-spec mean(tessera:operand(), options()) -> tessera:tensor().
mean(Operand, Options) ->
    Count = reduced_count(mean, Operand, Options),
    tessera:divide(reduce(sum, Operand, Options), float(Count)).

%% ddof: what is subtracted from the count that is divided by.
-spec variance(tessera:operand(), options()) -> tessera:tensor().
variance(Operand, Options0) ->
    #{ddof := Ddof} = All = options(variance, [Operand, Options0], Options0, maps:put(ddof, 0, ?REDUCTION)),
    Options = maps:remove(ddof, All),
    Count = reduced_count(variance, Operand, Options),
    Difference = tessera:subtract(Operand, mean(Operand, Options#{keep_axes => true})),
    tessera:divide(reduce(sum, tessera:multiply(Difference, Difference), Options), float(Count - Ddof)).

-spec arg(argmax | argmin, tessera:operand(), options()) -> tessera:tensor().
arg(Name, Operand, Options) ->
    Args = [Operand, Options],
    #{axis := Axis, keep_axis := Keep, tie_break := Tie, type := Type} =
        options(Name, Args, Options, #{axis => none, keep_axis => false, tie_break => low, type => s32}),
    lists:member(Tie, [low, high]) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: tie_break is ~0p, expected low or high", [Name, Tie]),
    Rank = rank(Operand),
    Axis1 = case Axis of
                none -> -1;
                _ -> tessera_type:axis(Name, Args, Axis, Rank)
            end,
    Axes = case Axis of
               none -> tessera_type:dims(Rank);
               _ -> [Axis1]
           end,
    keep_axes(tessera_trace:op(Name, [Operand], {Axis1, Tie =:= high, Type}), Operand, Axes, Keep).

-spec cumulative(atom(), tessera:operand(), options()) -> tessera:tensor().
cumulative(Name, Operand, Options) ->
    Args = [Operand, Options],
    #{axis := Axis, reverse := Reverse} = options(Name, Args, Options, #{axis => 0, reverse => false}),
    tessera_trace:op(Name, [Operand], {tessera_type:axis(Name, Args, Axis, rank(Operand)), Reverse}).

%% The largest element is taken out, so that nothing overflows; where it is infinite, nothing is.
-spec logsumexp(tessera:operand(), options()) -> tessera:tensor().
logsumexp(Operand, Options) ->
    #{axes := Axes, keep_axes := Keep} = options(logsumexp, [Operand, Options], Options, ?REDUCTION),
    Largest = finite_max(Operand, Axes),
    Exps = tessera:exp(tessera:subtract(Operand, Largest)),
    Result = tessera:add(tessera:log(reduce(sum, Exps, #{axes => Axes, keep_axes => true})), Largest),
    Axes1 = tessera_type:axes(logsumexp, [Operand, Options], Axes, rank(Operand)),
    case Keep of
        true -> Result;
        false -> squeeze(Result, Axes1)
    end.

%% It cancels out, so no gradient goes through it.
finite_max(Operand, Axes) ->
    Largest = tessera:stop_grad(reduce(reduce_max, Operand, #{axes => Axes, keep_axes => true})),
    tessera:select(tessera:is_infinity(Largest), 0, Largest).

-spec softmax(tessera:operand(), options()) -> tessera:tensor().
softmax(Operand, Options) ->
    #{axes := Axes} = options(softmax, [Operand, Options], Options, #{axes => [-1]}),
    Largest = tessera:stop_grad(reduce(reduce_max, Operand, #{axes => Axes, keep_axes => true})),
    Exps = tessera:exp(tessera:subtract(Operand, Largest)),
    tessera:divide(Exps, reduce(sum, Exps, #{axes => Axes, keep_axes => true})).

%% Not X - logsumexp(X): between large numbers that would lose all digits.
-spec log_softmax(tessera:operand(), options()) -> tessera:tensor().
log_softmax(Operand, Options) ->
    #{axes := Axes} = options(log_softmax, [Operand, Options], Options, #{axes => [-1]}),
    Largest = tessera:stop_grad(reduce(reduce_max, Operand, #{axes => Axes, keep_axes => true})),
    Shifted = tessera:subtract(Operand, Largest),
    tessera:subtract(Shifted, tessera:log(reduce(sum, tessera:exp(Shifted), #{axes => Axes, keep_axes => true}))).

%% ---- contraction

%% The last axis of A with the last but one of B; scalars multiply.
-spec dot(tessera:operand(), tessera:operand()) -> tessera:tensor().
dot(A, B) ->
    case {rank(A), rank(B)} of
        {0, _} -> tessera:multiply(A, B);
        {_, 0} -> tessera:multiply(A, B);
        {RankA, 1} -> dot(A, [RankA - 1], B, [0]);
        {RankA, RankB} -> dot(A, [RankA - 1], B, [RankB - 2])
    end.

-spec dot(tessera:tensor(), [integer()], tessera:tensor(), [integer()]) -> tessera:tensor().
dot(A, AxesA, B, AxesB) -> dot(A, AxesA, [], B, AxesB, []).

-spec dot(tessera:tensor(), [integer()], [integer()], tessera:tensor(), [integer()], [integer()]) -> tessera:tensor().
dot(A, AxesA, BatchA, B, AxesB, BatchB) ->
    Args = [A, AxesA, BatchA, B, AxesB, BatchB],
    [ContractA, Batch1] = [tessera_type:axes(dot, Args, Axes, rank(A)) || Axes <- [AxesA, BatchA]],
    [ContractB, Batch2] = [tessera_type:axes(dot, Args, Axes, rank(B)) || Axes <- [AxesB, BatchB]],
    tessera_trace:op(dot, dot_general, [A, B], {ContractA, Batch1, ContractB, Batch2}).

-spec outer(tessera:operand(), tessera:operand()) -> tessera:tensor().
outer(A, B) -> tessera:multiply(new_axis(flatten(A), 1), new_axis(flatten(B), 0)).

%% @private Statistics: averages, reductions that leave NaN out, covariances, histograms, search in sorted numbers, and interpolation. The API in
%% tessera.erl documents them.
-module(tessera_statistics).
-include("tessera.hrl").
-export([average/2, nan_reduce/3, nan_mean/2, nan_variance/2, nan_standard_deviation/2, nan_arg/3, nan_median/2, nan_quantile/3]).
-export([cov/2, corrcoef/2, diff/2, searchsorted/3, digitize/3, histogram/3, bincount/2, interp/4, nonzero/2, argwhere/2]).

-type operand() :: tessera_type:operand().
-type tensor() :: tessera_type:tensor().

%% 2^63 - 1
-define(LARGEST, 16#7fffffffffffffff).
-define(REDUCTION, #{axes => all, keep_axes => false}).

%% ---- averages

-spec average(operand(), tessera_options:average_options()) -> tensor().
average(X, Options) ->
    Args = [X, Options],
    #{axes := Axes0, keep_axes := Keep, weights := Weights} = tessera_ops:options(average, Args, Options, maps:put(weights, none, ?REDUCTION)),
    Reduce = #{axes => Axes0, keep_axes => Keep},
    case Weights of
        none -> tessera_ops:mean(X, Reduce);
        _ ->
            Axes = tessera_type:axes(average, Args, Axes0, tessera_operand:rank(average, X)),
            [Wide, Share] = [tessera_ops:widened(average, T) || T <- [X, weights(Args, X, Weights, Axes)]],
            Total = tessera_ops:sum(Share, Reduce),
            tessera_ops:narrowed(average, tessera_elementwise:divide(tessera_ops:sum(tessera_elementwise:multiply(Wide, Share), Reduce), Total), X)
    end.

%% Weights of each element, or of each index of one axis.
weights(Args, X, Weights, Axes) ->
    Shape = tessera_operand:shape_of(average, X),
    case {tessera_operand:shape_of(average, Weights), Axes} of
        {Shape, _} -> Weights;
        {{Size}, [Axis]} when element(Axis + 1, Shape) =:= Size -> tessera_ops:broadcast(Weights, Shape, Axis);
        {Other, _} ->
            tessera_error:raise(average, Args, invalid_argument, "average: weights of the shape ~0p are for neither ~0p nor one of its axes", [Other, Shape])
    end.

%% ---- without NaN

%% nan_sum and so on. Where all elements are NaN nan_sum is 0, nan_product 1, and the others NaN.
-spec nan_reduce(nan_sum | nan_product | nan_max | nan_min, operand(), tessera_options:reduce_options()) -> tensor().
nan_reduce(Name, X, Options) ->
    case is_inexact(Name, X) of
        false -> plain(Name, X, Options);
        true ->
            Missing = tessera_elementwise:is_nan(X),
            Reduced = plain(Name, tessera_elementwise:select(Missing, neutral(Name, X), X), Options),
            case lists:member(Name, [nan_sum, nan_product]) of
                true -> Reduced;
                false -> tessera_elementwise:select(tessera_ops:all(Missing, Options), nan, Reduced)
            end
    end.

plain(nan_sum, X, Options) -> tessera_ops:sum(X, Options);
plain(nan_product, X, Options) -> tessera_ops:product(X, Options);
plain(nan_max, X, Options) -> tessera_ops:reduce_max(X, Options);
plain(nan_min, X, Options) -> tessera_ops:reduce_min(X, Options).

neutral(Name, X) ->
    Type = tessera_operand:type_of(X),
    case Name of
        nan_sum -> tessera_array:full({}, 0, Type);
        nan_product -> tessera_array:full({}, 1, Type);
        nan_max -> tessera_windows:bound(Type, neg_infinity);
        nan_min -> tessera_windows:bound(Type, infinity)
    end.

is_inexact(Name, X) -> tessera_type:is_inexact_type(tessera_operand:type_of(tessera_operand:contents(Name, X))).

-spec nan_mean(operand(), tessera_options:reduce_options()) -> tensor().
nan_mean(X, Options) ->
    case is_inexact(nan_mean, X) of
        false -> tessera_ops:mean(X, Options);
        true ->
            {Sum, Count} = sum_and_count(nan_mean, X, Options),
            tessera_ops:narrowed(nan_mean, tessera_elementwise:divide(Sum, Count), X)
    end.

%% In the type of sums.
sum_and_count(Name, X, Options) ->
    #tessera{type = Type} = Wide = tessera_ops:widened(Name, tessera_operand:tensor(Name, X)),
    Missing = tessera_elementwise:is_nan(X),
    Sum = tessera_ops:sum(tessera_elementwise:select(Missing, tessera_array:full({}, 0, Type), Wide), Options),
    Count = tessera_ops:sum(tessera_ops:as_type(Name, tessera_elementwise:logical_not(Missing), s64), Options),
    {Sum, tessera_ops:as_type(Name, Count, tessera_type:part(Type))}.

-spec nan_variance(operand(), tessera_options:variance_options()) -> tensor().
nan_variance(X, Options) -> spread(nan_variance, X, Options, fun(V) -> V end).

-spec nan_standard_deviation(operand(), tessera_options:variance_options()) -> tensor().
nan_standard_deviation(X, Options) -> spread(nan_standard_deviation, X, Options, fun tessera_elementwise:sqrt/1).

spread(Name, X, Options0, Last) ->
    Args = [X, Options0],
    #{ddof := Ddof} = All = tessera_ops:options(Name, Args, Options0, maps:put(ddof, 0, ?REDUCTION)),
    Options = maps:remove(ddof, All),
    is_number(Ddof) orelse tessera_error:raise(Name, Args, invalid_argument, "~s: ddof is ~ts, expected a number", [Name, tessera_error:show(Ddof)]),
    Tensor = floating(Name, tessera_operand:tensor(Name, X)),
    {Sum, Count} = sum_and_count(Name, Tensor, Options#{keep_axes => true}),
    #tessera{type = Wide} = Distance = tessera_elementwise:subtract(tessera_ops:widened(Name, Tensor), tessera_elementwise:divide(Sum, Count)),
    %% Left out before it is squared: the gradient of the square of a NaN is a NaN, also times 0.
    Counted = tessera_elementwise:select(tessera_elementwise:is_nan(Tensor), tessera_array:full({}, 0, Wide), Distance),
    Size = case tessera_type:is_complex_type(Wide) of true -> tessera_elementwise:abs(Counted); false -> Counted end,
    Squares = tessera_ops:sum(tessera_elementwise:multiply(Size, Size), Options),
    {_, Left} = sum_and_count(Name, Tensor, Options),
    Divisor = tessera_elementwise:max(tessera_elementwise:subtract(Left, float(Ddof)), 0),
    Type = tessera_type:part(tessera_type:to_float(tessera_operand:type_of(tessera_operand:contents(Name, X)))),
    tessera_ops:as_type(Name, Last(tessera_elementwise:divide(Squares, Divisor)), Type).

%% Integers as f64.
floating(Name, #tessera{type = Type} = Tensor) ->
    case tessera_type:is_inexact_type(Type) of
        true -> Tensor;
        false -> tessera_ops:as_type(Name, Tensor, f64)
    end.

%% nan_argmax and nan_argmin; where all are NaN the first one.
-spec nan_arg(nan_argmax | nan_argmin, operand(), tessera_options:arg_options()) -> tensor().
nan_arg(Name, X, Options) ->
    {Own, Limit} = case Name of nan_argmax -> {argmax, nan_max}; nan_argmin -> {argmin, nan_min} end,
    Filled = case is_inexact(Name, X) of
                 true -> tessera_elementwise:select(tessera_elementwise:is_nan(X), neutral(Limit, X), X);
                 false -> X
             end,
    tessera_ops:arg(Own, Filled, Options).

-spec nan_median(operand(), tessera_options:reduce_options()) -> tensor().
nan_median(X, Options) -> nan_fraction(nan_median, [X, Options], X, 0.5, Options).

-spec nan_quantile(operand(), number(), tessera_options:reduce_options()) -> tensor().
nan_quantile(X, Fraction, Options) ->
    Args = [X, Fraction, Options],
    is_number(Fraction) andalso Fraction >= 0 andalso Fraction =< 1 orelse
        tessera_error:raise(nan_quantile, Args, invalid_argument, "nan_quantile: expected a number from 0 to 1, got ~ts",
                            [tessera_error:show(Fraction)]),
    nan_fraction(nan_quantile, Args, X, Fraction, Options).

%% A sort puts NaN last, so the position is one among the elements before.
nan_fraction(Name, Args, X, Fraction, Options) ->
    #{axes := Axes0, keep_axes := Keep} = tessera_ops:options(Name, Args, Options, ?REDUCTION),
    #tessera{shape = Shape} = Tensor = floating(Name, tessera_operand:tensor(Name, X)),
    Axes = tessera_type:axes(Name, Args, Axes0, tuple_size(Shape)),
    {Given, Axis} = tessera_order:lines(Name, Tensor, Axes),
    Lines = filled(Given, Axis),
    Wide = tessera_ops:widened(Name, tessera_order:sort(Lines, #{axis => Axis})),
    Count = tessera_ops:sum(tessera_ops:as_type(Name, tessera_elementwise:logical_not(tessera_elementwise:is_nan(Lines)), s64), #{axis => Axis, keep_axis => true}),
    Place = tessera_elementwise:multiply(tessera_elementwise:max(tessera_elementwise:subtract(tessera_ops:as_type(Name, Count, f64), 1), 0), float(Fraction)),
    Below = tessera_elementwise:floor(Place),
    [Low, High] = [tessera_ops:take_along_axis(Wide, tessera_ops:as_type(Name, At, s64), #{axis => Axis}) || At <- [Below, tessera_elementwise:ceil(Place)]],
    [Share, Rest] = [tessera_ops:as_type(Name, Part, Wide#tessera.type) || Above <- [tessera_elementwise:subtract(Place, Below)],
                                                                           Part <- [Above, tessera_elementwise:subtract(1, Above)]],
    Value = tessera_order:mixed(Low, High, Share, Rest),
    Result = tessera_ops:squeeze(tessera_ops:narrowed(Name, Value, tessera_operand:contents(Name, X)), Axis),
    tessera_ops:keep_axes(Result, Tensor, Axes, Keep).

%% Of no number the result is that of NaN alone.
filled(#tessera{shape = Shape, type = Type} = Lines, Axis) ->
    case element(Axis + 1, Shape) of
        0 -> tessera_array:full(setelement(Axis + 1, Shape, 1), nan, Type);
        _ -> Lines
    end.

%% ---- covariances

%% Each row of X is a variable, and each column an observation; with `rows' false it is the other way.
-spec cov(operand(), tessera_options:cov_options()) -> tensor().
cov(X, Options) ->
    {Wide, Own} = covariances(cov, X, Options, 1),
    tessera_ops:narrowed(cov, Wide, Own).

covariances(Name, X, Options, Default) ->
    Args = [X, Options],
    #{ddof := Ddof, rows := Rows} = tessera_ops:options(Name, Args, Options, #{ddof => Default, rows => true}),
    is_number(Ddof) orelse tessera_error:raise(Name, Args, invalid_argument, "~s: ddof is ~ts, expected a number", [Name, tessera_error:show(Ddof)]),
    Tensor = tessera_operand:tensor(Name, X),
    Table = case {Tensor#tessera.shape, Rows} of
                {{_}, _} -> tessera_ops:new_axis(Tensor, 0);
                {{_, _}, true} -> Tensor;
                {{_, _}, false} -> tessera_ops:transpose(Tensor, reverse);
                {Shape, _} -> tessera_error:raise(Name, Args, invalid_argument, "~s: expected a vector or a matrix, got the shape ~0p", [Name, Shape])
            end,
    Wide = tessera_ops:widened(Name, Table),
    Distance = tessera_elementwise:subtract(Wide, tessera_ops:mean(Wide, #{axes => [1], keep_axes => true})),
    Other = case tessera_type:is_complex_type(Wide#tessera.type) of true -> tessera_complex:conjugate(Distance); false -> Distance end,
    Count = element(2, Wide#tessera.shape),
    Sums = tessera_elementwise:divide(tessera_ops:dot(Distance, [1], Other, [1]), float(max(0, Count - Ddof))),
    {case Tensor#tessera.shape of {_} -> tessera_ops:reshape(Sums, {}); _ -> Sums end, Tensor}.

-spec corrcoef(operand(), tessera_options:corrcoef_options()) -> tensor().
corrcoef(X, Options) ->
    #{rows := Rows} = tessera_ops:options(corrcoef, [X, Options], Options, #{rows => true}),
    {Wide, Own} = covariances(corrcoef, X, #{rows => Rows}, 1),
    Result = case Wide#tessera.shape of
                 {} -> tessera_elementwise:divide(Wide, Wide);
                 _ ->
                     Deviations = tessera_elementwise:sqrt(tessera_complex:real(tessera_shapes:diag(Wide, 0))),
                     Scaled = tessera_elementwise:divide(tessera_elementwise:divide(Wide, tessera_ops:new_axis(Deviations, 1)), Deviations),
                     limited(Scaled)
             end,
    tessera_ops:narrowed(corrcoef, Result, Own).

%% Rounding may lead beyond 1.
limited(#tessera{type = Type} = X) ->
    case tessera_type:is_complex_type(Type) of
        true -> X;
        false -> tessera_elementwise:clip(X, -1, 1)
    end.

%% ---- differences

-spec diff(operand(), tessera_options:diff_options()) -> tensor().
diff(X, Options) ->
    Args = [X, Options],
    #{axis := Axis0, order := Order} = tessera_ops:options(diff, Args, Options, #{axis => -1, order => 1}),
    is_integer(Order) andalso Order >= 0 orelse
        tessera_error:raise(diff, Args, invalid_argument, "diff: order is ~ts, expected how many times differences are taken", [tessera_error:show(Order)]),
    Axis = tessera_ops:axis_option(diff, Args, Axis0, tessera_operand:rank(diff, X)),
    #tessera{shape = Shape} = Tensor = tessera_operand:tensor(diff, X),
    Times = min(Order, element(Axis + 1, Shape)),   % then the axis is empty
    lists:foldl(fun(_, Last) -> difference(Last, Axis) end, Tensor, lists:seq(1, Times)).

difference(#tessera{shape = Shape} = X, Axis) ->
    Count = max(0, element(Axis + 1, Shape) - 1),
    [Before, After] = [tessera_order:part(X, Axis, min(From, element(Axis + 1, Shape)), Count) || From <- [0, 1]],
    tessera_elementwise:subtract(After, Before).

%% ---- search

%% Where each value would stand in a sorted vector: before equal elements (left) or after them (right). NaN stands last.
-spec searchsorted(operand(), operand(), tessera_options:searchsorted_options()) -> tensor().
searchsorted(Sorted, Values, Options) ->
    Args = [Sorted, Values, Options],
    #{side := Side, type := Type} = tessera_ops:options(searchsorted, Args, Options, #{side => left, type => default}),
    lists:member(Side, [left, right]) orelse
        tessera_error:raise(searchsorted, Args, invalid_argument, "searchsorted: side is ~ts, expected left or right", [tessera_error:show(Side)]),
    {Line, Size} = vector(searchsorted, Args, Sorted),
    Own = tessera_ops:index_type(searchsorted, Args, Type, Size + 1),
    tessera_ops:as_type(searchsorted, places(Line, Size, Values, Side), Own).

vector(Name, Args, X) ->
    case tessera_operand:tensor(Name, X) of
        #tessera{shape = {Size}} = Line -> {Line, Size};
        #tessera{shape = Shape} -> tessera_error:raise(Name, Args, invalid_argument, "~s: expected a vector, got the shape ~0p", [Name, Shape])
    end.

%% By halving: the number of elements that stand before the value, found bit by bit from the highest.
places(Line, Size, Values, Side) ->
    Shape = tessera_operand:shape_of(searchsorted, Values),
    lists:foldl(fun(Step, Found) -> step(Line, Size, Values, Side, Found, Step) end, tessera_array:zeros(Shape, s64), steps(Size, 1, [])).

steps(Size, Step, Steps) when Step > Size -> Steps;
steps(Size, Step, Steps) -> steps(Size, 2 * Step, [Step | Steps]).

step(Line, Size, Values, Side, Found, Step) ->
    Next = tessera_elementwise:add(Found, Step),
    Element = tessera_ops:take(Line, tessera_elementwise:clip(tessera_elementwise:subtract(Next, 1), 0, Size - 1)),
    Fits = tessera_elementwise:logical_and(tessera_elementwise:less_equal(Next, Size), is_before(Element, Values, Side)),
    tessera_elementwise:select(Fits, Next, Found).

is_before(Element, Value, left) -> before(Element, Value);
is_before(Element, Value, right) -> tessera_elementwise:logical_not(before(Value, Element)).

%% In the order of sort.
before(A, B) ->
    case {is_inexact(searchsorted, A), is_inexact(searchsorted, B)} of
        {_, false} -> tessera_elementwise:less(A, B);
        {false, true} -> tessera_elementwise:logical_or(tessera_elementwise:less(A, B), tessera_elementwise:is_nan(B));
        {true, true} ->
            LastOnly = tessera_elementwise:logical_and(tessera_elementwise:is_nan(B), tessera_elementwise:logical_not(tessera_elementwise:is_nan(A))),
            tessera_elementwise:logical_or(tessera_elementwise:less(A, B), LastOnly)
    end.

%% The bin of each value: i where Bins[i - 1] =< X < Bins[i], and with `right' Bins[i - 1] < X =< Bins[i].
-spec digitize(operand(), operand(), tessera_options:digitize_options()) -> tensor().
digitize(X, Bins, Options) ->
    Args = [X, Bins, Options],
    #{right := Right} = tessera_ops:options(digitize, Args, Options, #{right => false}),
    {Line, Size} = vector(digitize, Args, Bins),
    tessera_ops:as_type(digitize, places(Line, Size, X, case Right of true -> left; false -> right end), tessera_type:index_type(Size + 1)).

%% ---- counts

%% {Counts, Edges}. The last bin has its right edge, too.
-spec histogram(operand(), pos_integer() | [number()] | tensor(), tessera_options:histogram_options()) -> {tensor(), tensor()}.
histogram(X, Bins, Options) ->
    Args = [X, Bins, Options],
    #{range := Range, weights := Weights, density := Density} =
        tessera_ops:options(histogram, Args, Options, #{range => all, weights => none, density => false}),
    Line = tessera_ops:flatten(X),
    Given = edges(Args, Line, Bins, Range),
    Edges = floating(histogram, Given),
    {Size} = Edges#tessera.shape,
    Size > 1 orelse tessera_error:raise(histogram, Args, invalid_argument, "histogram: expected two edges or more, got ~b", [Size]),
    [Values, Ends] = [tessera_ops:as_type(histogram, T, common_type(Line, Given)) || T <- [Line, Given]],
    Bin = tessera_elementwise:subtract(places(Ends, Size, Values, right), 1),
    Last = tessera_elementwise:equal(Values, tessera_shapes:at(Ends, [-1])),
    Own = tessera_elementwise:select(Last, Size - 2, Bin),
    Inside = tessera_elementwise:logical_and(tessera_elementwise:greater_equal(Own, 0), tessera_elementwise:less(Own, Size - 1)),
    {Counts, Type} = counted(histogram, Args, Own, Inside, Weights, Size - 1, tessera_operand:shape_of(histogram, X)),
    {case Density of
         true -> density(Counts, Edges, tessera_type:to_float(tessera_type:merge(Type, Edges#tessera.type)));
         false -> tessera_ops:as_type(histogram, Counts, Type)
     end, Edges}.

%% Elements and edges are compared in a type that holds both: f32 would round numbers of f64 and large integers.
common_type(#tessera{type = A}, #tessera{type = B}) ->
    IsInexact = fun tessera_type:is_inexact_type/1,
    case {IsInexact(A), IsInexact(B)} of
        {false, false} -> integers_of(A, B);
        {true, true} when A =/= f64, B =/= f64 -> f32;
        _ -> f64
    end.

%% No integer type holds all numbers of u64 and negative ones.
integers_of(A, B) ->
    case {lists:member(u64, [A, B]), tessera_type:merge(A, B)} of
        {true, s64} -> f64;
        {_, Type} -> Type
    end.

%% In f64: sums of weights and widths of bins may be beyond the range of a narrow type, or have more digits.
density(#tessera{type = Type} = Counts, Edges, Own) ->
    Wide = case tessera_type:is_complex_type(Type) of true -> c128; false -> f64 end,
    Shares = tessera_ops:as_type(histogram, Counts, Wide),
    Widths = difference(tessera_ops:as_type(histogram, Edges, f64), 0),
    tessera_ops:as_type(histogram, tessera_elementwise:divide(tessera_elementwise:divide(Shares, Widths), tessera_ops:sum(Shares)), Own).

%% Edges are floats: f64 for f64 and for integers, which f32 would not hold.
edges(Args, #tessera{type = Type} = Line, Bins, Range) when is_integer(Bins), Bins > 0 ->
    Own = case Type of f32 -> f32; f16 -> f32; bf16 -> f32; _ -> f64 end,
    {Low, High} = case Range of
                      all when Line#tessera.shape =:= {0} -> {0.0, 1.0};
                      all -> {tessera_ops:reduce_min(Line), tessera_ops:reduce_max(Line)};
                      {From, To} when is_number(From), is_number(To), From =< To -> {From, To};
                      _ -> tessera_error:raise(histogram, Args, invalid_argument, "histogram: range is ~ts, expected {Low, High}", [tessera_error:show(Range)])
                  end,
    [First0, Last0] = [tessera_ops:as_type(histogram, End, f64) || End <- [Low, High]],
    %% of equal ends the range is half a unit wider on both sides
    Half = tessera_elementwise:select(tessera_elementwise:equal(First0, Last0), 0.5, 0.0),
    [First, Last] = [tessera_elementwise:subtract(First0, Half), tessera_elementwise:add(Last0, Half)],
    Index = tessera_ops:source(histogram, iota, {f64, {Bins + 1}, 0}),
    Step = tessera_elementwise:divide(tessera_elementwise:subtract(Last, First), float(Bins)),
    Inner = tessera_elementwise:add(First, tessera_elementwise:multiply(Index, Step)),
    tessera_ops:as_type(histogram, tessera_elementwise:select(tessera_elementwise:equal(Index, float(Bins)), Last, Inner), Own);
edges(Args, #tessera{type = Type}, Bins, all) when is_list(Bins); is_record(Bins, tessera) ->
    Tensor = case Bins of
                 #tessera{} -> tessera_operand:tensor(histogram, Bins);
                 _ -> listed(tessera_array:tensor(Bins), Bins, Type)
             end,
    {Edges, _} = vector(histogram, Args, Tensor),
    Edges;
edges(Args, _, Bins, _) ->
    tessera_error:raise(histogram, Args, invalid_argument, "histogram: expected a number of bins, or edges and no range, got ~ts", [tessera_error:show(Bins)]).

%% Floats of a list are f32 beside an f32, f16 or bf16, and f64 beside other types: edges have that type there, too.
listed(#tessera{type = f32}, Bins, Type) when Type =/= f32, Type =/= f16, Type =/= bf16 -> tessera_array:tensor(Bins, f64);
listed(Edges, _, _) -> Edges.

%% How many indices, or which sum of weights, each of Size bins has; and the type of the result, to which sums of weights are rounded once.
counted(Name, Args, Index, Inside, Weights, Size, Shape) ->
    {Ones, Type} = case Weights of
                       none -> {tessera_ops:as_type(Name, Inside, s64), s64};
                       _ ->
                           tessera_operand:shape_of(Name, Weights) =:= Shape orelse
                               tessera_error:raise(Name, Args, invalid_argument, "~s: weights have the shape ~0p, expected ~0p",
                                                   [Name, tessera_operand:shape_of(Name, Weights), Shape]),
                           #tessera{type = Own} = Flat = tessera_ops:flatten(Weights),
                           {tessera_elementwise:select(Inside, summed(Name, Flat), 0), tessera_type:sum_type(Own)}
                   end,
    Safe = tessera_elementwise:select(Inside, Index, tessera_array:full({}, 0, s64)),
    None = tessera_array:zeros({Size}, Ones#tessera.type),
    {case Size of
         0 -> None;
         _ -> tessera_indices:indexed(indexed_add, None, tessera_ops:new_axis(Safe, 1), Ones, #{})
     end, Type}.

%% In the type of sums: of many narrow weights each step would round or wrap.
summed(Name, #tessera{type = Type} = Weights) ->
    case tessera_type:is_inexact_type(Type) of
        true -> tessera_ops:widened(Name, Weights);
        false -> tessera_ops:as_type(Name, Weights, tessera_type:sum_type(Type))
    end.

%% How often each number from 0 on is there.
-spec bincount(operand(), tessera_options:bincount_options()) -> tensor().
bincount(X, Options) ->
    Args = [X, Options],
    #{length := Length0, weights := Weights} = tessera_ops:options(bincount, Args, Options, #{length => default, weights => none}),
    #tessera{type = Type, shape = Shape} = Tensor = tessera_operand:tensor(bincount, X),
    tessera_type:is_inexact_type(Type) andalso
        tessera_error:raise(bincount, Args, invalid_argument, "bincount: expected integers, got ~s", [Type]),
    Line = indices(tessera_ops:flatten(Tensor)),
    Length = case Length0 of
                 default -> tessera_array:known_size(bincount, Args, longest(Line), "length");
                 _ when is_integer(Length0), Length0 >= 0 -> Length0;
                 _ -> tessera_error:raise(bincount, Args, invalid_argument, "bincount: length is ~ts, expected a size", [tessera_error:show(Length0)])
             end,
    Inside = tessera_elementwise:logical_and(tessera_elementwise:greater_equal(Line, 0), tessera_elementwise:less(Line, Length)),
    {Counts, Own} = counted(bincount, Args, Line, Inside, Weights, Length, Shape),
    tessera_ops:as_type(bincount, Counts, Own).

%% In s64. Its largest number stands for all beyond it: no length reaches it.
indices(#tessera{type = u64} = Line) -> tessera_ops:as_type(bincount, tessera_elementwise:min(Line, tessera_array:full({}, ?LARGEST, u64)), s64);
indices(Line) -> tessera_ops:as_type(bincount, Line, s64).

longest(#tessera{shape = {0}}) -> tessera_array:full({}, 0, s64);
longest(Line) -> tessera_elementwise:max(tessera_elementwise:add(tessera_elementwise:min(tessera_ops:reduce_max(Line), ?LARGEST - 1), 1), 0).

%% ---- interpolation

%% The values at X of the line through the points (Xs, Ys), with Xs in ascending order.
-spec interp(operand(), operand(), operand(), tessera_options:interp_options()) -> tensor().
interp(X, Xs, Ys, Options) ->
    Args = [X, Xs, Ys, Options],
    #{left := Left, right := Right} = tessera_ops:options(interp, Args, Options, #{left => first, right => last}),
    {Line, Size} = vector(interp, Args, Xs),
    {Heights, Size1} = vector(interp, Args, Ys),
    Size =:= Size1 andalso Size > 0 orelse
        tessera_error:raise(interp, Args, invalid_argument, "interp: expected as many heights as places, and one at least, got ~b and ~b", [Size1, Size]),
    Type = tessera_type:to_float(tessera_type:merge_all([T || #tessera{type = T} <- [X, Line, Heights]], [N || N <- [X], not is_record(N, tessera)])),
    [tessera_error:raise(interp, Args, invalid_argument, "interp: expected real places, got ~ts", [tessera_error:show(T)])
     || T <- [X, Line], is_complex(T)],
    Part = tessera_type:part(Type),
    Point = case X of #tessera{} -> X; Number -> tessera_array:full({}, Number, Part) end,
    Wide = fun(T) -> tessera_ops:as_type(interp, tessera_ops:as_type(interp, T, Part), f64) end,
    [At, Places] = [Wide(T) || T <- [Point, Line]],
    Along = fun(Values, Ends) -> along(At, {Places, Size}, Wide(Values), Ends) end,
    Result = case tessera_type:is_complex_type(Type) of
                 false ->
                     [tessera_error:raise(interp, Args, invalid_argument, "interp: the heights are real, got the end ~ts", [tessera_error:show(End)])
                      || End <- [Left, Right], is_complex(End)],
                     Along(Heights, {Left, Right});
                 true ->
                     Re = Along(tessera_complex:real(Heights), {end_part(real, Left), end_part(real, Right)}),
                     Im = Along(tessera_complex:imag(Heights), {end_part(imag, Left), end_part(imag, Right)}),
                     %% as in NumPy
                     tessera_complex:complex(Re, tessera_elementwise:select(tessera_elementwise:is_nan(At), 0.0, Im))
             end,
    tessera_ops:as_type(interp, Result, Type).

is_complex({complex, _, _}) -> true;
is_complex(#tessera{type = Type}) -> tessera_type:is_complex_type(Type);
is_complex(_) -> false.

end_part(_, End) when End =:= first; End =:= last -> End;
end_part(real, {complex, Re, _}) -> Re;
end_part(imag, {complex, _, Im}) -> Im;
end_part(real, #tessera{} = End) -> tessera_complex:real(End);
end_part(imag, #tessera{} = End) -> tessera_complex:imag(End);
end_part(real, End) -> End;
end_part(imag, _) -> 0.

%% All of f64.
along(At, {Places, Size}, Values, {Left, Right}) ->
    After = tessera_elementwise:clip(places(Places, Size, At, right), 1, max(1, Size - 1)),
    [[X0, X1], [Y0, Y1]] = [[tessera_ops:take(T, tessera_elementwise:clip(tessera_elementwise:subtract(After, Back), 0, Size - 1)) || Back <- [1, 0]] || T <- [Places, Values]],
    [First, Last, Lowest, Highest] = [tessera_shapes:at(T, [I]) || T <- [Values, Places], I <- [0, -1]],
    [IsBefore, IsAfter] = [tessera_elementwise:less(At, Lowest), tessera_elementwise:greater(At, Highest)],
    %% A place outside is left out first: times the infinity of one, gradients of 0 would be NaN.
    Near = tessera_elementwise:select(tessera_elementwise:logical_or(IsBefore, IsAfter), X0, At),
    Between = between(Near, {X0, Y0}, {X1, Y1}),
    [Low, High] = [case End of
                       Default -> Known;
                       _ -> End
                   end || {End, Default, Known} <- [{Left, first, First}, {Right, last, Last}]],
    Inside = tessera_elementwise:select(tessera_elementwise:equal(At, Highest), Last, Between),
    tessera_elementwise:select(IsBefore, Low, tessera_elementwise:select(IsAfter, High, Inside)).

%% The height at X of the line through two points. As in NumPy it is computed from the second one where that from the first one is NaN, and a line
%% beside infinities is level at its points and between points of equal height.
between(X, {X0, Y0}, {X1, Y1}) ->
    Width = tessera_elementwise:subtract(X1, X0),
    IsStep = tessera_elementwise:equal(Width, 0),
    Slope = tessera_elementwise:divide(tessera_elementwise:subtract(Y1, Y0), tessera_elementwise:select(IsStep, 1, Width)),
    Left = tessera_elementwise:add(tessera_elementwise:multiply(Slope, tessera_elementwise:subtract(X, X0)), Y0),
    Again = tessera_elementwise:is_nan(Left),
    %% What is not taken has no gradient: the infinity of a point times 0 would be NaN.
    [Rise, Point] = [tessera_elementwise:select(Again, T, Else) || {T, Else} <- [{Slope, 0}, {X1, X}]],
    Right = tessera_elementwise:add(tessera_elementwise:multiply(Rise, tessera_elementwise:subtract(X, Point)), Y1),
    [IsFirst, IsNumber, IsLevel] = [tessera_elementwise:equal(A, B) || {A, B} <- [{X, X0}, {X, X}, {Y0, Y1}]],
    Level = tessera_elementwise:logical_and(tessera_elementwise:is_nan(Right), tessera_elementwise:logical_and(IsNumber, IsLevel)),
    Other = tessera_elementwise:select(tessera_elementwise:logical_or(IsFirst, Level), Y0, Right),
    tessera_elementwise:select(IsStep, Y1, tessera_elementwise:select(Again, Other, Left)).

%% ---- where elements are not zero

%% The indices of the elements that are not zero: a vector for each axis.
-spec nonzero(operand(), tessera_options:nonzero_options()) -> [tensor()].
nonzero(X, Options) ->
    {Table, Rank} = found(nonzero, X, Options),
    [tessera_shapes:at(Table, [all, Axis]) || Axis <- tessera_type:dims(Rank)].

%% The same as rows.
-spec argwhere(operand(), tessera_options:nonzero_options()) -> tensor().
argwhere(X, Options) -> element(1, found(argwhere, X, Options)).

found(Name, X, Options) ->
    Args = [X, Options],
    #{size := Size0, fill := Fill} = tessera_ops:options(Name, Args, Options, #{size => all, fill => 0}),
    #tessera{shape = Shape} = Tensor = tessera_operand:tensor(Name, X),
    Is = tessera_elementwise:not_equal(tessera_ops:flatten(Tensor), 0),
    Count = tessera_ops:sum(tessera_ops:as_type(Name, Is, s64)),
    Size = case Size0 of
               all -> tessera_array:known_size(Name, Args, Count, "size");
               _ when is_integer(Size0), Size0 >= 0 -> Size0;
               _ -> tessera_error:raise(Name, Args, invalid_argument, "~s: size is ~ts, expected how many elements are found", [Name, tessera_error:show(Size0)])
           end,
    Type = tessera_type:index_type(lists:max([0 | tuple_to_list(Shape)])),
    {N} = Is#tessera.shape,
    Order = tessera_order:argsort(Is, #{descending => true, type => s64}),
    Own = min(Size, N),
    Flat = tessera_order:part(Order, 0, 0, Own),
    Columns = [tessera_elementwise:remainder(tessera_elementwise:quotient(Flat, max(1, Stride)), max(1, Dim))
               || {Dim, Stride} <- lists:zip(tuple_to_list(Shape), strides(tuple_to_list(Shape)))],
    Rank = tuple_size(Shape),
    Table = case Columns of
                [] -> tessera_array:zeros({Own, 0}, s64);
                _ -> tessera_ops:stack(Columns, 1)
            end,
    Known = tessera_elementwise:less(tessera_ops:source(Name, iota, {s64, {Own, Rank}, 0}), Count),
    Filled = tessera_elementwise:select(Known, Table, tessera_array:full({}, Fill, s64)),
    {tessera_ops:as_type(Name, tessera_ops:pad(Filled, tessera_array:full({}, Fill, s64), [{0, Size - Own, 0}, {0, 0, 0}]), Type), Rank}.

strides([]) -> [];
strides([_ | Dims]) -> [lists:foldl(fun erlang:'*'/2, 1, Dims) | strides(Dims)].

%% @private Sorting, and functions of sorted tensors. The API in tessera.erl documents it.
-module(tessera_order).
-include("tessera.hrl").
-export([sort/2, argsort/2, top_k/3, median/2, quantile/3, mode/2, unique/2]).
%% for modules of more ops
-export([lines/3, part/4, mixed/4]).

-type fractions() :: number() | [number()] | tessera_type:tensor().

-spec sort(tessera_type:tensor(), tessera_options:sort_options()) -> tessera_type:tensor().
sort(Tensor, Options) ->
    Args = [Tensor, Options],
    #{axis := Axis, descending := Descending} = tessera_ops:options(sort, Args, Options, #{axis => 0, descending => false}),
    sorted(sort, Tensor, tessera_ops:axis_option(sort, Args, Axis, tessera_operand:rank(sort, Tensor)), Descending).

sorted(Name, Tensor, Axis, Descending) -> tessera_trace:op(Name, sort, [Tensor], {Axis, Descending}).

-spec argsort(tessera_type:tensor(), tessera_options:argsort_options()) -> tessera_type:tensor().
argsort(Tensor, Options) ->
    Args = [Tensor, Options],
    #{axis := Axis0, descending := Descending, type := Type} =
        tessera_ops:options(argsort, Args, Options, #{axis => 0, descending => false, type => default}),
    Axis = tessera_ops:axis_option(argsort, Args, Axis0, tessera_operand:rank(argsort, Tensor)),
    order(argsort, Tensor, Axis, Descending, tessera_ops:index_type(argsort, Args, Type, axis_size(Tensor, Axis))).

order(Name, Tensor, Axis, Descending, Type) -> tessera_trace:op(Name, argsort, [Tensor], {Axis, Descending, Type}).

-spec top_k(tessera_type:tensor(), non_neg_integer(), tessera_options:top_k_options()) -> {tessera_type:tensor(), tessera_type:tensor()}.
top_k(Tensor, K, Options) ->
    Args = [Tensor, K, Options],
    #{axis := Axis0, type := Type0} = tessera_ops:options(top_k, Args, Options, #{axis => -1, type => default}),
    Axis = tessera_ops:axis_option(top_k, Args, Axis0, tessera_operand:rank(top_k, Tensor)),
    Size = axis_size(Tensor, Axis),
    is_integer(K) andalso K >= 0 andalso K =< Size orelse
        tessera_error:raise(top_k, Args, invalid_argument, "~s: expected at most ~b elements, the size of axis ~b, got ~ts",
                            [top_k, Size, Axis, tessera_error:show(K)]),
    Type = tessera_ops:index_type(top_k, Args, Type0, Size),
    case Size < 1 bsl 31 of
        true ->
            Last = tessera_operand:rank(top_k, Tensor) - 1,
            [Values, Indices] = [swap(top_k, Result, Axis, Last)
                                 || Result <- tessera_trace:results(top_k, [swap(top_k, Tensor, Axis, Last)], K)],
            {Values, tessera_ops:as_type(top_k, Indices, Type)};
        false ->
            %% more than the op takes
            Indices = part(order(top_k, Tensor, Axis, true, s64), Axis, 0, K),
            {along(Tensor, Indices, Axis), tessera_ops:as_type(top_k, Indices, Type)}
    end.

%% With two axes exchanged.
swap(_, Tensor, Axis, Axis) -> Tensor;
swap(Name, #tessera{shape = Shape} = Tensor, A, B) ->
    Order = [case I of A -> B; B -> A; _ -> I end || I <- tessera_type:dims(tuple_size(Shape))],
    tessera_trace:op(Name, transpose, [Tensor], Order).

%% ---- quantiles

-spec median(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
median(Operand, Options) ->
    _ = tessera_ops:options(median, [Operand, Options], Options, #{axes => all, keep_axes => false}),
    quantile(median, [Operand, Options], Operand, 0.5, Options).

-spec quantile(tessera_type:operand(), fractions(), tessera_options:quantile_options()) -> tessera_type:tensor().
quantile(Operand, Fractions, Options) -> quantile(quantile, [Operand, Fractions, Options], Operand, Fractions, Options).

quantile(Name, Args, Operand, Fractions, Options) ->
    #{axes := Axes0, keep_axes := Keep, method := Method} =
        tessera_ops:options(Name, Args, Options, #{axes => all, keep_axes => false, method => linear}),
    lists:member(Method, [linear, lower, higher, nearest, midpoint]) orelse
        tessera_error:raise(Name, Args, invalid_argument,
                            "~s: method is ~ts, expected linear, lower, higher, nearest or midpoint",
                            [Name, tessera_error:show(Method)]),
    Tensor = tessera_operand:tensor(Name, Operand),
    Axes = tessera_type:axes(Name, Args, Axes0, tessera_operand:rank(Name, Tensor)),
    {Lines, Axis} = lines(Name, Tensor, Axes),
    {Count, Positions} = positions(Name, Args, Fractions, axis_size(Lines, Axis)),
    Values = between(Name, sorted(Name, Lines, Axis, false), Axis, Positions, Method),
    arrange(Values, Axis, Count, Tensor, Axes, Keep).

%% The number of fractions, `one' when they are no list, and their positions among N sorted elements.
positions(Name, Args, #tessera{shape = Shape} = Fractions, N) when tuple_size(Shape) < 2 ->
    Wide = tessera_elementwise:clip(tessera_ops:as_type(Name, Fractions, f64), 0, 1),
    Count = case Shape of {} -> one; {Size} -> Size end,
    is_float_tensor(Fractions) orelse bad_fractions(Name, Args, Fractions),
    {Count, tessera_elementwise:multiply(tessera_ops:flatten(Wide), float(max(0, N - 1)))};
positions(Name, Args, Fractions, N) when is_list(Fractions) ->
    tessera_type:is_proper(Fractions) orelse bad_fractions(Name, Args, Fractions),
    [is_fraction(F) orelse bad_fractions(Name, Args, Fractions) || F <- Fractions],
    Positions = [F * float(max(0, N - 1)) || F <- Fractions],
    {length(Positions), tessera_ops:reshape(tessera_array:tensor(Positions, f64), {length(Positions)})};
positions(Name, Args, Fraction, N) ->
    is_fraction(Fraction) orelse bad_fractions(Name, Args, Fraction),
    {one, tessera_array:tensor([Fraction * float(max(0, N - 1))], f64)}.

is_fraction(F) -> is_number(F) andalso F >= 0 andalso F =< 1.

is_float_tensor(#tessera{type = Type}) -> tessera_type:is_float_type(Type).

-spec bad_fractions(atom(), [term()], term()) -> no_return().
bad_fractions(Name, Args, Fractions) ->
    tessera_error:raise(Name, Args, invalid_argument,
                        "~s: expected a number from 0 to 1, a list of them, or floats of rank 0 or 1, got ~ts",
                        [Name, tessera_error:show(Fractions)]).

%% Values at positions between the elements of a sorted axis. A NaN is the last element.
between(Name, Sorted, Axis, Positions, Method) ->
    case axis_size(Sorted, Axis) of
        0 -> no_values(Name, Sorted, Axis, Positions, Method);
        N ->
            Values = interpolate(Name, Sorted, Axis, Positions, Method),
            case is_float_tensor(Sorted) of
                true -> tessera_elementwise:select(tessera_elementwise:is_nan(part(Sorted, Axis, N - 1, 1)), nan, Values);
                false -> Values
            end
    end.

no_values(Name, #tessera{shape = Shape} = Sorted, Axis, Positions, Method) ->
    is_float_tensor(Sorted) orelse Method =:= linear orelse Method =:= midpoint orelse
        tessera_error:raise(Name, [Sorted], invalid_argument, "~s: expected at least one element, as method ~s gives one of them and ~s has no NaN",
                            [Name, Method, Sorted#tessera.type]),
    tessera_ops:narrowed(Name, tessera_array:full(setelement(Axis + 1, Shape, tessera_array:size(Positions)), nan, f32), Sorted).

interpolate(_, Sorted, Axis, Positions, lower) -> at(Sorted, Axis, tessera_elementwise:floor(Positions));
interpolate(_, Sorted, Axis, Positions, higher) -> at(Sorted, Axis, tessera_elementwise:ceil(Positions));
interpolate(_, Sorted, Axis, Positions, nearest) -> at(Sorted, Axis, nearest(Positions));
interpolate(Name, Sorted, Axis, Positions, Method) ->
    Floor = tessera_elementwise:floor(Positions),
    [#tessera{type = Type, shape = Shape} = Low, High] =
        [tessera_ops:widened(Name, at(Sorted, Axis, P)) || P <- [Floor, tessera_elementwise:ceil(Positions)]],
    Above = case Method of
                linear -> tessera_elementwise:subtract(Positions, Floor);
                midpoint -> tessera_array:full(Positions#tessera.shape, 0.5, f64)
            end,
    [Share, Rest] = [tessera_ops:broadcast(tessera_ops:as_type(Name, Part, Type), Shape, [Axis])
                     || Part <- [Above, tessera_elementwise:subtract(1, Above)]],
    tessera_ops:narrowed(Name, mixed(Low, High, Share, Rest), Sorted).

%% Low and High in the shares Rest and Share, which are 1 together.
-spec mixed(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
mixed(Low0, High0, Share, Rest) ->
    %% Equal infinities stay: they have no difference, and times a share without a gradient they would be NaN.
    Stays = tessera_elementwise:logical_and(tessera_elementwise:equal(Low0, High0), tessera_elementwise:is_infinity(Low0)),
    [Low, High] = [tessera_elementwise:select(Stays, 0, T) || T <- [Low0, High0]],
    Mixed = tessera_elementwise:add(tessera_elementwise:multiply(Low, Rest), tessera_elementwise:multiply(High, Share)),
    %% Between equal elements there is nothing to round, but each has its share of the gradient.
    Same = tessera_elementwise:add(Low, tessera_elementwise:multiply(tessera_elementwise:subtract(High, Low), Share)),
    tessera_elementwise:select(Stays, Low0, tessera_elementwise:select(tessera_elementwise:equal(Low, High), Same, Mixed)).

at(Sorted, Axis, Positions) -> tessera_ops:take(Sorted, tessera_ops:as_type(Positions, s64), #{axis => Axis}).

%% Rounds to the nearest integer, and halves to even.
nearest(Positions) ->
    Floor = tessera_elementwise:floor(Positions),
    Above = tessera_elementwise:subtract(Positions, Floor),
    Odd = tessera_elementwise:remainder(Floor, 2),
    Up = tessera_elementwise:logical_or(tessera_elementwise:greater(Above, 0.5), tessera_elementwise:logical_and(tessera_elementwise:equal(Above, 0.5), Odd)),
    tessera_elementwise:add(Floor, tessera_ops:as_type(Up, f64)).

%% The axis of results to the front, where there were several fractions.
arrange(Values, _, one, Tensor, Axes, Keep) ->
    Kept = [element(I + 1, Tensor#tessera.shape) || I <- tessera_type:dims(tuple_size(Tensor#tessera.shape)) -- Axes],
    tessera_ops:keep_axes(tessera_ops:reshape(Values, list_to_tuple(Kept)), Tensor, Axes, Keep);
arrange(#tessera{shape = Shape} = Values, Axis, Count, Tensor, Axes, Keep) ->
    Front = tessera_ops:transpose(Values, [Axis | tessera_type:dims(tuple_size(Shape)) -- [Axis]]),
    case Keep of
        false -> Front;
        true ->
            Dims = [case lists:member(I, Axes) of true -> 1; false -> element(I + 1, Tensor#tessera.shape) end
                    || I <- tessera_type:dims(tuple_size(Tensor#tessera.shape))],
            tessera_ops:reshape(Front, list_to_tuple([Count | Dims]))
    end.

%% ---- runs of equal elements

-spec mode(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
mode(Operand, Options) ->
    Args = [Operand, Options],
    #{axes := Axes0, keep_axes := Keep} = tessera_ops:options(mode, Args, Options, #{axes => all, keep_axes => false}),
    Tensor = tessera_operand:tensor(mode, Operand),
    Axes = tessera_type:axes(mode, Args, Axes0, tessera_operand:rank(mode, Tensor)),
    {Lines, Axis} = lines(mode, Tensor, Axes),
    axis_size(Lines, Axis) > 0 orelse
        tessera_error:raise(mode, Args, invalid_argument, "~s: expected at least one element", [mode]),
    Sorted = sorted(mode, Lines, Axis, false),
    Values = along(Sorted, longest_run(Sorted, Axis), Axis),
    tessera_ops:keep_axes(tessera_ops:squeeze(Values, Axis), Tensor, Axes, Keep).

%% Where the longest run begins; the axis stays with size 1.
longest_run(#tessera{shape = Shape} = Sorted, Axis) ->
    Type = tessera_type:index_type(axis_size(Sorted, Axis)),
    Index = tessera_array:iota(Shape, Type, Axis),
    Begin = tessera_ops:cumulative_max(tessera_elementwise:select(begins_run(Sorted, Axis), Index, 0), #{axis => Axis}),
    End = tessera_ops:argmax(tessera_elementwise:subtract(Index, Begin), #{axis => Axis, keep_axis => true, type => Type}),
    along(Begin, End, Axis).

%% Whether an element of a sorted axis differs from the previous one; the first does.
begins_run(#tessera{shape = Shape} = Sorted, Axis) ->
    case axis_size(Sorted, Axis) of
        0 -> tessera_array:full(Shape, 1, u8);
        N ->
            Other = differ(part(Sorted, Axis, 0, N - 1), part(Sorted, Axis, 1, N - 1)),
            tessera_ops:pad(Other, 1, [case I of Axis -> {1, 0, 0}; _ -> {0, 0, 0} end
                                   || I <- tessera_type:dims(tuple_size(Shape))])
    end.

differ(A, B) ->
    case is_float_tensor(A) of
        true -> tessera_elementwise:logical_and(tessera_elementwise:not_equal(A, B), tessera_elementwise:logical_not(tessera_elementwise:is_nan(A)));
        false -> tessera_elementwise:not_equal(A, B)
    end.

-spec unique(tessera_type:tensor(), tessera_options:unique_options()) -> tessera_type:tensor().
unique(Tensor, Options) ->
    Args = [Tensor, Options],
    #{size := Size, fill := Fill} = tessera_ops:options(unique, Args, Options, #{size => all, fill => largest}),
    Size =:= all orelse is_integer(Size) andalso Size >= 0 orelse
        tessera_error:raise(unique, Args, invalid_argument, "~s: size is ~ts, expected how many elements the result has",
                            [unique, tessera_error:show(Size)]),
    Fill =:= largest orelse tessera_operand:rank(unique, Fill) =:= 0 orelse
        tessera_error:raise(unique, Args, invalid_argument, "~s: fill is ~ts, expected a number",
                            [unique, tessera_error:show(Fill)]),
    Wide = tessera_operand:tensor(unique, Tensor),
    {Flat, 0} = lines(unique, Wide, tessera_type:dims(tuple_size(Wide#tessera.shape))),
    Sorted = sorted(unique, Flat, 0, false),
    Begins = begins_run(Sorted, 0),
    Count = tessera_ops:sum(tessera_ops:as_type(Begins, s64)),
    Order = order(unique, Begins, 0, true, s64),
    case Size of
        all -> tessera_ops:take(Sorted, part(Order, 0, 0, tessera_array:known_size(unique, Args, Count, "size")));
        _ -> padded(Args, Sorted, Order, Count, Size, Fill)
    end.

padded(Args, #tessera{type = Type, shape = {N}} = Sorted, Order, Count, Size, Fill) ->
    N > 0 orelse Size =:= 0 orelse Fill =/= largest orelse
        tessera_error:raise(unique, Args, invalid_argument, "~s: there is no largest element; the option fill gives one",
                            [unique]),
    Own = min(N, Size),
    Rest = case Fill of
               largest when N > 0 -> part(Sorted, 0, N - 1, 1);
               largest -> tessera_array:full({1}, 0, Type);
               _ -> tessera_array:full({1}, Fill, Type)
           end,
    Values = tessera_elementwise:select(tessera_elementwise:less(tessera_array:iota({Own}, s64), Count), tessera_ops:take(Sorted, part(Order, 0, 0, Own)), Rest),
    tessera_ops:concatenate([Values, tessera_trace:op(unique, broadcast, [Rest], {{Size - Own}, [0]})]).

%% ---- parts

%% The axes as one: the elements that belong together are lines along it.
-spec lines(atom(), tessera_type:tensor(), [non_neg_integer()]) -> {tessera_type:tensor(), non_neg_integer()}.
lines(_, Tensor, [Axis]) -> {Tensor, Axis};
lines(Name, #tessera{shape = Shape} = Tensor, Axes) ->
    Kept = tessera_type:dims(tuple_size(Shape)) -- Axes,
    Dims = [element(I + 1, Shape) || I <- Kept],
    N = lists:foldl(fun(Axis, Product) -> Product * element(Axis + 1, Shape) end, 1, Axes),
    Front = case lists:sort(Kept ++ Axes) =:= Kept ++ Axes of
                true -> Tensor;
                false -> tessera_trace:op(Name, transpose, [Tensor], Kept ++ Axes)
            end,
    {tessera_trace:op(Name, reshape, [Front], list_to_tuple(Dims ++ [N])), length(Kept)}.

axis_size(#tessera{shape = Shape}, Axis) -> element(Axis + 1, Shape).

along(Tensor, Indices, Axis) -> tessera_ops:take_along_axis(Tensor, Indices, #{axis => Axis}).

%% Count indices of an axis, from the index From on.
-spec part(tessera_type:tensor(), non_neg_integer(), non_neg_integer(), non_neg_integer()) -> tessera_type:tensor().
part(#tessera{shape = Shape} = Tensor, Axis, From, Count) ->
    case element(Axis + 1, Shape) of
        Count -> Tensor;
        _ ->
            Starts = [case I of Axis -> From; _ -> 0 end || I <- tessera_type:dims(tuple_size(Shape))],
            tessera_ops:slice(Tensor, Starts, tuple_to_list(setelement(Axis + 1, Shape, Count)))
    end.

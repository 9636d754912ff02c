%% @private Operations that take several ops of the core, or whose arguments are converted first. The
%% API in tessera.erl documents them.
-module(tessera_ops).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-export([as_type/2, as_type/3, axis_size/2, broadcast_to/2, broadcast_to/3, broadcast/3, reshape/2, flatten/1, squeeze/2,
         new_axis/2, transpose/2, reverse/2, slice/4, slice_of/5, put_slice/3, pad/3, concatenate/2, stack/2, split/3,
         take/3, take_along_axis/3, reduce/3, fold/4, mean/2, variance/2, standard_deviation/2, arg/3, cumulative/3,
         logsumexp/2, softmax/2, log_softmax/2, one_hot/3, dot/2, dot/3, dot/4, dot/6, outer/2, pow/2, iota/3, type_and_shape/4, linspace/4,
         source/2, source/3]).
%% the same with defaults
-export([slice/3, concatenate/1, stack/1, take/2, take_along_axis/2, sum/1, sum/2, product/1, product/2, all/1, all/2, any/1, any/2,
         reduce_max/1, reduce_max/2, reduce_min/1, reduce_min/2, argmax/1, argmax/2, argmin/1, argmin/2, cumulative_sum/1,
         cumulative_sum/2, cumulative_product/1, cumulative_product/2, cumulative_min/1, cumulative_min/2, cumulative_max/1,
         cumulative_max/2]).

%% for modules of more ops
-export([options/4, axis_option/4, index_type/4, keep_axes/4, widened/2, narrowed/3]).


%% ---- arguments

%% Options with two names; the defaults of a function have one of them.
-define(SYNONYMS, [{axis, axes}, {axes, axis}, {keep_axis, keep_axes}, {keep_axes, keep_axis}]).

%% The options with defaults, under the defaults' names; unknown ones are an error.
-spec options(atom(), [term()], map(), map()) -> map().
options(_, _, Options, Defaults) when map_size(Options) =:= 0 -> Defaults;
options(Name, Args, Options, Defaults) when is_map(Options) ->
    Named = case maps:keys(maps:without(maps:keys(Defaults), Options)) of
                [] -> Options;
                Others -> renamed(Name, Args, Options, Defaults, Others)
            end,
    [tessera_error:raise(Name, Args, invalid_argument, "~s: ~s is ~ts, expected true or false",
                         [Name, Key, tessera_error:show(Value)])
     || {Key, Value} <- maps:to_list(Named), is_boolean(map_get(Key, Defaults)), not is_boolean(Value)],
    maps:merge(Defaults, Named);
options(Name, Args, Options, _) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a map of options, got ~ts",
                        [Name, tessera_error:show(Options)]).

%% Renames options whose other name is in the defaults.
renamed(Name, Args, Options, Defaults, Others) ->
    Synonyms = [Pair || {Other, Own} = Pair <- ?SYNONYMS, is_map_key(Own, Defaults), not is_map_key(Other, Defaults)],
    Known = lists:sort(maps:keys(Defaults) ++ [Other || {Other, _} <- Synonyms]),
    Others -- Known =:= [] orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: unknown options ~ts, expected some of ~0p",
                            [Name, tessera_error:show(Others -- Known), Known]),
    lists:foldl(fun(Pair, Given) -> rename(Name, Args, Pair, Given) end, Options, Synonyms).

rename(Name, Args, {Other, Own}, Given) ->
    case Given of
        #{Other := _, Own := _} ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: ~s and ~s are the same option, expected one of them",
                                [Name, Own, Other]);
        #{Other := Value} -> (maps:remove(Other, Given))#{Own => Value};
        _ -> Given
    end.

%% The axis of an option for one axis; also a list of one.
-spec axis_option(atom(), [term()], tessera_type:axes(), non_neg_integer()) -> non_neg_integer().
axis_option(Name, Args, [Axis], Rank) -> tessera_type:axis(Name, Args, Axis, Rank);
axis_option(Name, Args, Axis, Rank) when not is_list(Axis) -> tessera_type:axis(Name, Args, Axis, Rank);
axis_option(Name, Args, Axes, _) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected one axis, got ~ts",
                        [Name, tessera_error:show(Axes)]).

%% The axes of an argument that is a map of options with them or the axes alone.
axes_argument(Name, Args, Options, Default) when is_map(Options) ->
    [Axes] = maps:values(options(Name, Args, Options, Default)),
    Axes;
axes_argument(_, _, Axes, _) -> Axes.

%% The same for one axis.
axis_argument(Name, Args, Options, Rank) ->
    axis_option(Name, Args, axes_argument(Name, Args, Options, #{axis => 0}), Rank).

dims(Name, Operand) -> tuple_to_list(tessera_operand:shape_of(Name, Operand)).

%% ---- creation

%% iota, eye and constant: ops without operands.
-spec source(atom(), term()) -> tessera_type:tensor().
source(Name, Attrs) -> source(Name, Name, Attrs).

%% The same for a function of another name.
-spec source(atom(), atom(), term()) -> tessera_type:tensor().
source(User, Name, Attrs) -> tessera_trace:op(User, Name, [], Attrs).

%% Checks a type and a shape, for an error with all arguments of the function.
type(Name, Args, Type) ->
    tessera_type:is_type(Type) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected a type such as f32 or s64, got ~ts",
                            [Name, tessera_error:show(Type)]),
    ok.

-spec type_and_shape(atom(), [term()], term(), term()) -> ok.
type_and_shape(Name, Args, Type, Shape) ->
    ok = type(Name, Args, Type),
    _ = tessera_type:shape(Name, Args, Shape),
    ok.

%% The index of each element along an axis, or of all in row-major order when that is -1.
-spec iota([term()], tessera_type:shape(), tessera_options:iota_options() | {tessera_type:type(), all | integer() | #{axis => all | tessera_options:iota_options()}}) ->
          tessera_type:tensor().
iota(Args, Shape, {Type, Axis}) -> iota(Args, Shape, Type, axes_argument(iota, Args, Axis, #{axis => all}));
iota(Args, Shape, Options) ->
    #{type := Type, axis := Axis} = options(iota, Args, Options, #{type => default, axis => all}),
    iota(Args, Shape, Type, Axis).

iota(Args, Shape, Type, Axis) ->
    Type =:= default orelse type(iota, Args, Type),
    Rank = tuple_size(tessera_type:shape(iota, Args, Shape)),
    Axis1 = case Axis of
                all -> -1;
                _ -> axis_option(iota, Args, Axis, Rank)
            end,
    Count = case Axis1 of
                -1 -> tessera_type:elements(Shape);
                _ -> element(Axis1 + 1, Shape)
            end,
    source(iota, {index_type(iota, Args, Type, Count), Shape, Axis1}).

%% The type for that many indices, unless one is given. An index that would wrap is an error, as a number out of range is; the core
%% reports invalid types.
-spec index_type(atom(), [term()], default | tessera_type:type(), non_neg_integer()) -> tessera_type:type().
index_type(_, _, default, Count) -> tessera_type:index_type(Count);
index_type(Name, Args, Type, Count) ->
    not tessera_type:is_type(Type) orelse Count =:= 0 orelse tessera_type:fits(Type, Count - 1) orelse
        tessera_error:raise(Name, Args, out_of_range, "~s: the index ~b does not fit in ~s", [Name, Count - 1, Type]),
    Type.

%% In f64, rounded once: in f16 and f32 neither the index nor the step would be exact.
-spec linspace(number(), number(), pos_integer(), tessera_type:type()) -> tessera_type:tensor().
linspace(From, To, Count, Type) when is_integer(Count), Count > 0, is_number(From), is_number(To) ->
    tessera_type:is_float_type(Type) orelse
        tessera_error:raise(linspace, [From, To, Count, Type], invalid_argument,
                            "linspace: expected a float type, got ~ts",
                            [tessera_error:show(Type)]),
    {First, Last, Step} = try {float(From), float(To), (To - From) / max(1, Count - 1)}
                          catch error:badarith ->
                              tessera_error:raise(linspace, [From, To, Count, Type], out_of_range,
                                                  "linspace: the distance from ~0p to ~0p is no float", [From, To])
                          end,
    Index = source(linspace, iota, {f64, {Count}, 0}),
    Line = tessera_elementwise:add(tessera_elementwise:multiply(Index, Step), First),
    as_type(linspace, tessera_elementwise:select(tessera_elementwise:equal(Index, max(1, Count - 1)), Last, Line), Type);
linspace(From, To, Count, _Type) ->
    tessera_error:raise(linspace, [], invalid_argument, "linspace: expected two numbers and a count above 0, got ~ts",
                        [lists:join(", ", [tessera_error:show(Arg) || Arg <- [From, To, Count]])]).

%% Converts indices to rows with a one at that index. Indices are compared in a type that
%% can represent all of them.
-spec one_hot(tessera_type:tensor(), pos_integer(), tessera_type:type()) -> tessera_type:tensor().
one_hot(Indices, Size, Type) ->
    tessera_type:is_inexact_type(tessera_operand:type_of(tessera_operand:contents(one_hot, Indices))) andalso
        tessera_error:raise(one_hot, [Indices, Size, Type], invalid_argument, "one_hot(~s): expected integers",
                            [tessera_type:format(tessera_operand:type_of(Indices), tessera_operand:shape_of(Indices))]),
    is_integer(Size) andalso Size >= 0 orelse
        tessera_error:raise(one_hot, [Indices], invalid_argument, "one_hot: expected a size, got ~ts",
                            [tessera_error:show(Size)]),
    Places = source(one_hot, iota, {tessera_type:merge_number(tessera_operand:type_of(Indices), max(0, Size - 1)), {Size}, 0}),
    as_type(one_hot, tessera_elementwise:equal(new_axis(one_hot, Indices, -1), Places), Type).

%% ---- types and shapes

-spec as_type(tessera_type:operand(), tessera_type:type()) -> tessera_type:tensor().
as_type(Operand, Type) -> as_type(as_type, Operand, Type).

%% These functions and others below name the called API function in errors.
as_type(Name, #tessera{ref = Ref, type = Type} = Tensor, Type) when Ref =/= undefined -> tessera_operand:tensor(Name, Tensor);
as_type(Name, Operand, Type) -> tessera_trace:op(Name, convert, [Operand], Type).

-spec reshape(tessera_type:operand(), tuple()) -> tessera_type:tensor().
reshape(Operand, Shape) -> reshape(reshape, Operand, inferred(Operand, Shape)).

%% A shape whose size -1 is replaced by the size that the number of elements requires.
inferred(Operand, Shape) when is_tuple(Shape) ->
    Sizes = tuple_to_list(Shape),
    case {[I || {I, -1} <- lists:zip(lists:seq(1, length(Sizes)), Sizes)], lists:delete(-1, Sizes)} of
        {[], _} -> Shape;
        {[Place], Others} ->
            Known = tessera_type:elements(tessera_type:shape(reshape, [Operand, Shape], list_to_tuple(Others))),
            Elements = tessera_type:elements(tessera_operand:shape_of(reshape, Operand)),
            Known > 0 andalso Elements rem Known =:= 0 orelse
                tessera_error:raise(reshape, [Operand, Shape], invalid_argument,
                                    "reshape: no size in place of -1 makes ~b element~s of the shape ~0p",
                                    [Elements, [$s || Elements =/= 1], Shape]),
            setelement(Place, Shape, Elements div Known);
        _ -> tessera_error:raise(reshape, [Operand, Shape], invalid_argument, "reshape: one size may be -1, got ~0p", [Shape])
    end;
inferred(_, Shape) -> Shape.

reshape(Name, #tessera{ref = Ref, shape = Shape} = Tensor, Shape) when Ref =/= undefined -> tessera_operand:tensor(Name, Tensor);
reshape(Name, Operand, Shape) -> tessera_trace:op(Name, reshape, [tessera_operand:tensor(Name, Operand)], Shape).

-spec flatten(tessera_type:operand()) -> tessera_type:tensor().
flatten(Operand) -> flatten(flatten, Operand).

flatten(Name, Operand) -> reshape(Name, Operand, {tessera_type:elements(tessera_operand:shape_of(Name, Operand))}).

-spec axis_size(tessera_type:operand(), integer() | tessera_options:axis_options()) -> non_neg_integer().
axis_size(Operand, Options) ->
    Args = [Operand, Options],
    Shape = tessera_operand:shape_of(tessera_operand:operand(axis_size, Operand)),
    Axis = axes_argument(axis_size, Args, Options, #{axis => none}),
    element(axis_option(axis_size, Args, Axis, tuple_size(Shape)) + 1, Shape).

-spec squeeze(tessera_type:operand(), tessera_type:axes() | tessera_options:axes_options()) -> tessera_type:tensor().
squeeze(Operand, Options) ->
    Which = axes_argument(squeeze, [Operand, Options], Options, #{axes => all}),
    Dims = dims(squeeze, Operand),
    Numbered = lists:zip(tessera_type:dims(length(Dims)), Dims),
    Axes = case Which of
               all -> [I || {I, 1} <- Numbered];
               _ -> tessera_type:axes(squeeze, [Operand, Which], Which, length(Dims))
           end,
    [tessera_error:raise(squeeze, [Operand, Which], invalid_argument, "squeeze(~s): axis ~b has size ~b, expected 1",
                         [tessera_type:format(tessera_operand:type_of(Operand), tessera_operand:shape_of(Operand)), I, D])
     || {I, D} <- Numbered, D =/= 1, lists:member(I, Axes)],
    reshape(squeeze, Operand, list_to_tuple([D || {I, D} <- Numbered, not lists:member(I, Axes)])).

-spec new_axis(tessera_type:operand(), integer() | tessera_options:axis_options()) -> tessera_type:tensor().
new_axis(Operand, Options) ->
    new_axis(new_axis, Operand, axis_argument(new_axis, [Operand, Options], Options, tessera_operand:rank(new_axis, Operand) + 1)).

new_axis(Name, Operand, Axis) ->
    Dims = dims(Name, Operand),
    {Before, After} = lists:split(tessera_type:axis(Name, [Operand, Axis], Axis, length(Dims) + 1), Dims),
    reshape(Name, Operand, list_to_tuple(Before ++ [1 | After])).

-spec broadcast_to(tessera_type:operand(), tessera_type:shape()) -> tessera_type:tensor().
broadcast_to(Operand, Shape) -> broadcast_to(broadcast, Operand, Shape).

%% The same for a function of another name.
-spec broadcast_to(atom(), tessera_type:operand(), tessera_type:shape()) -> tessera_type:tensor().
broadcast_to(Name, #tessera{ref = Ref, shape = Shape} = Tensor, Shape) when Ref =/= undefined -> tessera_operand:tensor(Name, Tensor);
broadcast_to(Name, Operand, Shape) ->
    Rank = tessera_operand:rank(Name, Operand),
    Lead = tuple_size(tessera_type:shape(Name, [Operand, Shape], Shape)) - Rank,
    Lead >= 0 orelse
        tessera_error:raise(Name, [Operand, Shape], invalid_argument, "~s: the shape ~0p has a smaller rank",
                            [Name, Shape]),
    broadcast(Name, Operand, Shape, lists:seq(Lead, Lead + Rank - 1)).

-spec broadcast(tessera_type:operand(), tessera_type:shape(), tessera_type:axes() | tessera_options:axes_options()) -> tessera_type:tensor().
broadcast(Operand, Shape, Options) ->
    case axes_argument(broadcast, [Operand, Shape, Options], Options, #{axes => last}) of
        last -> broadcast_to(Operand, Shape);
        Axes -> broadcast(broadcast, Operand, Shape, Axes)
    end.

broadcast(Name, Operand, Shape, Axes) ->
    Args = [Operand, Shape, Axes],
    Rank = tuple_size(tessera_type:shape(Name, Args, Shape)),
    tessera_trace:op(Name, broadcast, [Operand], {Shape, tessera_type:axes(Name, Args, Axes, Rank)}).

-spec transpose(tessera_type:operand(), reverse | tessera_type:axes() | tessera_options:axes_options()) -> tessera_type:tensor().
transpose(Operand, Options) when is_map(Options) ->
    transpose(Operand, axes_argument(transpose, [Operand, Options], Options, #{axes => reverse}));
transpose(Operand, reverse) ->
    case tessera_operand:rank(transpose, Operand) of
        Rank when Rank < 2 -> tessera_operand:tensor(transpose, Operand);
        Rank -> tessera_trace:op(transpose, [Operand], lists:reverse(tessera_type:dims(Rank)))
    end;
transpose(Operand, Axes) ->
    tessera_trace:op(transpose, [Operand],
                     tessera_type:axes(transpose, [Operand, Axes], Axes, tessera_operand:rank(transpose, Operand))).

-spec reverse(tessera_type:operand(), tessera_type:axes() | tessera_options:axes_options()) -> tessera_type:tensor().
reverse(Operand, Options) ->
    Axes = axes_argument(reverse, [Operand, Options], Options, #{axes => all}),
    tessera_trace:op(reverse, [Operand], tessera_type:axes(reverse, [Operand, Axes], Axes, tessera_operand:rank(reverse, Operand))).

%% ---- indexing

%% Static when all starts are integers.
-spec slice(tessera_type:tensor(), [tessera_type:operand()], [non_neg_integer()], [pos_integer()] | ones) -> tessera_type:tensor().
slice(Tensor, Starts, Lengths, Strides) -> slice_of(slice, Tensor, Starts, Lengths, Strides).

%% The same for a function of another name.
-spec slice_of(atom(), tessera_type:tensor(), [tessera_type:operand()], [non_neg_integer()], [pos_integer()] | ones) -> tessera_type:tensor().
slice_of(Name, Tensor, Starts, Lengths, Strides) ->
    Rank = tessera_operand:rank(Name, Tensor),
    Steps = case Strides of
                ones -> lists:duplicate(Rank, 1);
                _ -> Strides
            end,
    [one_an_axis(Name, Tensor, What, Rank, List)
     || {What, List} <- [{"starts", Starts}, {"lengths", Lengths}, {"strides", Steps}]],
    are_sizes(Lengths) orelse
        tessera_error:raise(Name, [Tensor], invalid_argument, "~s: the lengths ~ts are no sizes",
                            [Name, tessera_error:show(Lengths)]),
    case lists:all(fun erlang:is_integer/1, Starts) of
        true -> static_slice(Name, Tensor, Starts, Lengths, Steps);
        false ->
            check_starts(Name, Tensor, Starts, Lengths),
            Window = tessera_trace:op(Name, dynamic_slice, [Tensor | Starts], list_to_tuple(Lengths)),
            case lists:all(fun(Step) -> Step =:= 1 end, Steps) of
                true -> Window;
                false -> static_slice(Name, Window, lists:duplicate(Rank, 0), Lengths, Steps)
            end
    end.

%% Checks the integers among starts; others are tensors.
check_starts(Name, Tensor, Starts, Lengths) ->
    Places = lists:zip3(Starts, Lengths, tuple_to_list(tessera_operand:shape_of(Tensor))),
    [tessera_error:raise(Name, [Tensor], invalid_argument,
                         "~s: ~b elements from ~b on are not in axis ~b, which has ~b", [Name, Length, Start, Axis, Dim])
     || {Axis, {Start, Length, Dim}} <- lists:zip(tessera_type:dims(length(Places)), Places), is_integer(Start),
        Start < 0 orelse Start + Length > Dim].

%% Checks that a list has one entry for each axis.
one_an_axis(Name, Tensor, What, Rank, List) ->
    tessera_type:is_proper(List) andalso length(List) =:= Rank orelse
        tessera_error:raise(Name, [Tensor], invalid_argument,
                            "~s: expected a list of ~b ~s, one for each axis, got ~ts",
                            [Name, Rank, What, tessera_error:show(List)]).

are_sizes(List) -> tessera_type:is_proper(List) andalso lists:all(fun(N) -> is_integer(N) andalso N >= 0 end, List).

static_slice(Name, Tensor, Starts, Lengths, Strides) ->
    Limits = lists:zipwith(fun erlang:'+'/2, Starts, Lengths),
    tessera_trace:op(Name, slice, [Tensor], {Starts, Limits, Strides}).

-spec put_slice(tessera_type:tensor(), [tessera_type:operand()], tessera_type:operand()) -> tessera_type:tensor().
put_slice(Tensor, Starts, Slice) ->
    one_an_axis(put_slice, Tensor, "starts", tessera_operand:rank(put_slice, Tensor), Starts),
    tessera_trace:op(put_slice, [Tensor, Slice | Starts], []).

-spec pad(tessera_type:tensor(), tessera_type:operand(), [{integer(), integer(), non_neg_integer()}]) -> tessera_type:tensor().
pad(Tensor, Value, Config) ->
    one_an_axis(pad, Tensor, "{Low, High, Interior}", tessera_operand:rank(pad, Tensor), Config),
    lists:all(fun({Low, High, Interior}) -> is_integer(Low) andalso is_integer(High) andalso is_integer(Interior);
                 (_) -> false
              end, Config) orelse
        tessera_error:raise(pad, [Tensor], invalid_argument,
                            "pad: expected {Low, High, Interior} for each axis, got ~ts",
                            [tessera_error:show(Config)]),
    tessera_trace:op(pad, [Tensor, Value], lists:unzip3(Config)).

-spec concatenate([tessera_type:tensor()], integer() | tessera_options:axis_options()) -> tessera_type:tensor().
concatenate(Tensors, Options) ->
    First = first_of(concatenate, Tensors),
    tessera_trace:op(concatenate, Tensors, axis_argument(concatenate, [Tensors, Options], Options, tessera_operand:rank(concatenate, First))).

first_of(Name, Tensors) ->
    Tensors =/= [] andalso tessera_type:is_proper(Tensors) orelse
        tessera_error:raise(Name, [], invalid_argument, "~s: expected a list of tensors, got ~ts",
                            [Name, tessera_error:show(Tensors)]),
    hd(Tensors).

-spec stack([tessera_type:operand()], integer() | tessera_options:axis_options()) -> tessera_type:tensor().
stack(Tensors, Options) ->
    First = first_of(stack, Tensors),
    Axis1 = axis_argument(stack, [Tensors, Options], Options, tessera_operand:rank(stack, First) + 1),
    [tessera_operand:shape_of(stack, T) =:= tessera_operand:shape_of(First) orelse
         tessera_error:raise(stack, [Tensors], invalid_argument, "stack: expected tensors of one shape", [])
     || T <- Tensors],
    tessera_trace:op(stack, concatenate, [new_axis(stack, T, Axis1) || T <- placed(stack, Tensors)], Axis1).

%% Converts numbers to the common type of all operands.
placed(Name, Operands) ->
    case [N || N <- Operands, not is_record(N, tessera)] of
        [] -> Operands;
        Numbers ->
            Type = tessera_type:merge_all([T || #tessera{type = T} <- Operands], Numbers),
            [case Operand of
                 #tessera{} -> Operand;
                 Number -> number(Name, Number, Type)
             end || Operand <- Operands]
    end.

number(Name, Number, Type) ->
    case tessera_trace:is_tracing() of
        true -> source(Name, constant, {Type, {}, Number});
        false -> tessera_memory:made(Name, [Number], fun() -> tessera_nif:from_list(Number, Type) end)
    end.

%% Splits into parts of these sizes along an axis.
-spec split(tessera_type:tensor(), [non_neg_integer()], integer() | tessera_options:axis_options()) -> [tessera_type:tensor()].
split(Tensor, Sizes, Options) ->
    Dims = dims(split, Tensor),
    Axis1 = axis_argument(split, [Tensor, Sizes, Options], Options, length(Dims)),
    Total = lists:nth(Axis1 + 1, Dims),
    are_sizes(Sizes) andalso lists:sum(Sizes) =:= Total orelse
        tessera_error:raise(split, [Tensor], invalid_argument,
                            "split: expected a list of sizes that add up to ~b, the size of axis ~b, got ~ts",
                            [Total, Axis1, tessera_error:show(Sizes)]),
    {Before, [_ | After]} = lists:split(Axis1, Dims),
    {Parts, _} = lists:mapfoldl(
        fun(Size, From) ->
                Starts = [0 || _ <- Before] ++ [From] ++ [0 || _ <- After],
                {slice_of(split, Tensor, Starts, Before ++ [Size | After], ones), From + Size}
        end, 0, Sizes),
    Parts.

-spec take(tessera_type:tensor(), tessera_type:operand(), tessera_options:axis_options()) -> tessera_type:tensor().
take(Tensor, Indices, Options) ->
    #{axis := Axis} = options(take, [Tensor, Indices, Options], Options, #{axis => 0}),
    tessera_trace:op(take, [Tensor, Indices], axis_option(take, [Tensor, Indices, Options], Axis, tessera_operand:rank(take, Tensor))).

-spec take_along_axis(tessera_type:tensor(), tessera_type:tensor(), tessera_options:axis_options()) -> tessera_type:tensor().
take_along_axis(Tensor, Indices, Options) ->
    Args = [Tensor, Indices, Options],
    #{axis := Axis} = options(take_along_axis, Args, Options, #{axis => 0}),
    tessera_trace:op(take_along_axis, [Tensor, Indices],
                     axis_option(take_along_axis, Args, Axis, tessera_operand:rank(take_along_axis, Tensor))).

%% ---- reductions

-define(REDUCTION, #{axes => all, keep_axes => false}).

%% A reduction by the name that users know.
-spec reduce(atom(), tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
reduce(Name, Operand, Options) -> reduce(Name, core_name(Name), Operand, Options).

%% By the core's name, for a function of another name.
reduce(Name, Core, Operand, Options) ->
    #{axes := Axes, keep_axes := Keep} = options(Name, [Operand, Options], Options, ?REDUCTION),
    Axes1 = tessera_type:axes(Name, [Operand, Options], Axes, tessera_operand:rank(Name, Operand)),
    keep_axes(tessera_trace:op(Name, Core, [Operand], Axes1), Operand, Axes1, Keep).

core_name(sum) -> reduce_sum;
core_name(product) -> reduce_product;
core_name(all) -> reduce_all;
core_name(any) -> reduce_any;
core_name(Name) -> Name.

%% Puts the reduced axes back, with size 1.
-spec keep_axes(tessera_type:tensor(), tessera_type:operand(), [non_neg_integer()], boolean()) -> tessera_type:tensor().
keep_axes(Result, _Operand, _Axes, false) -> Result;
keep_axes(Result, Operand, Axes, true) ->
    Dims = tuple_to_list(tessera_operand:shape_of(Operand)),
    Kept = [case lists:member(I, Axes) of true -> 1; false -> D end
            || {I, D} <- lists:zip(tessera_type:dims(length(Dims)), Dims)],
    reshape(Result, list_to_tuple(Kept)).

%% With a function of the user's.
-spec fold(tessera_type:operand(), tessera_type:operand(), fun(), tessera_options:reduce_options()) -> tessera_type:tensor().
fold(Operand, Initial, F, Options) ->
    Args = [Operand, Initial, F, Options],
    #{axes := Axes, keep_axes := Keep} = options(reduce, Args, Options, ?REDUCTION),
    Axes1 = tessera_type:axes(reduce, Args, Axes, tessera_operand:rank(reduce, Operand)),
    keep_axes(tessera_control:reduce(reduce, tessera_operand:tensor(reduce, Operand), Initial, F, Axes1), Operand, Axes1, Keep).

%% The number of elements that are reduced to one.
reduced_count(Name, Operand, Options) ->
    #{axes := Axes} = options(Name, [Operand, Options], Options, ?REDUCTION),
    Axes1 = tessera_type:axes(Name, [Operand, Options], Axes, tessera_operand:rank(Name, Operand)),
    count(Operand, Axes1).

count(Operand, Axes) -> lists:foldl(fun(Axis, N) -> N * element(Axis + 1, tessera_operand:shape_of(Operand)) end, 1, Axes).

%% Converts to a type whose sums of many elements neither wrap nor overflow: f64 for integers, f32 for f16 and bf16. The
%% result is rounded once, to the result type of a division.
-spec widened(atom(), tessera_type:operand()) -> tessera_type:operand().
widened(Name, Operand) ->
    case tessera_operand:type_of(tessera_operand:contents(Name, Operand)) of
        f64 -> Operand;
        f32 -> Operand;
        c64 -> Operand;
        c128 -> Operand;
        Type -> as_type(Name, Operand, case tessera_type:is_float_type(Type) of true -> f32; false -> f64 end)
    end.

-spec narrowed(atom(), tessera_type:tensor(), tessera_type:operand()) -> tessera_type:tensor().
narrowed(Name, Result, Operand) -> as_type(Name, Result, tessera_type:to_float(tessera_operand:type_of(Operand))).

-spec mean(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
mean(Operand, Options) ->
    Count = reduced_count(mean, Operand, Options),
    narrowed(mean, wide_mean(mean, widened(mean, Operand), Count, Options), Operand).

wide_mean(Name, Operand, Count, Options) ->
    tessera_elementwise:divide(reduce(Name, reduce_sum, Operand, Options), float(Count)).

-spec variance(tessera_type:operand(), tessera_options:variance_options()) -> tessera_type:tensor().
variance(Operand, Options) -> real_narrowed(variance, wide_variance(variance, Operand, Options), Operand).

%% The same for a result that is real, also of complex numbers.
real_narrowed(Name, Result, Operand) ->
    as_type(Name, Result, tessera_type:part(tessera_type:to_float(tessera_operand:type_of(Operand)))).

%% ddof is subtracted from the count before the division; with no more elements than ddof there is no variance. For complex numbers
%% the squares are squared distances from the mean.
wide_variance(Name, Operand, Options0) ->
    #{ddof := Ddof} = All = options(Name, [Operand, Options0], Options0, maps:put(ddof, 0, ?REDUCTION)),
    Options = maps:remove(ddof, All),
    is_number(Ddof) orelse
        tessera_error:raise(Name, [Operand], invalid_argument, "~s: ddof is ~ts, expected a number",
                            [Name, tessera_error:show(Ddof)]),
    Count = reduced_count(Name, Operand, Options),
    Wide = widened(Name, Operand),
    Difference = tessera_elementwise:subtract(Wide, wide_mean(Name, Wide, Count, Options#{keep_axes => true})),
    Squares = reduce(sum, squared(Difference), Options),
    tessera_elementwise:divide(Squares, float(max(0, Count - Ddof))).

squared(X) ->
    case tessera_type:is_complex_type(tessera_operand:type_of(X)) of
        true ->
            [Re, Im] = [tessera_complex:real(X), tessera_complex:imag(X)],
            tessera_elementwise:add(tessera_elementwise:multiply(Re, Re), tessera_elementwise:multiply(Im, Im));
        false -> tessera_elementwise:multiply(X, X)
    end.

-spec standard_deviation(tessera_type:operand(), tessera_options:variance_options()) -> tessera_type:tensor().
standard_deviation(Operand, Options) ->
    real_narrowed(standard_deviation, tessera_elementwise:sqrt(wide_variance(standard_deviation, Operand, Options)), Operand).

-spec arg(argmax | argmin, tessera_type:operand(), tessera_options:arg_options()) -> tessera_type:tensor().
arg(Name, Operand, Options) ->
    Args = [Operand, Options],
    #{axis := Axis, keep_axis := Keep, tie_break := Tie, type := Type} =
        options(Name, Args, Options, #{axis => all, keep_axis => false, tie_break => low, type => default}),
    lists:member(Tie, [low, high]) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: tie_break is ~ts, expected low or high",
                            [Name, tessera_error:show(Tie)]),
    Rank = tessera_operand:rank(Name, Operand),
    {Axis1, Axes} = case Axis of
                        all -> {-1, tessera_type:dims(Rank)};
                        _ ->
                            One = axis_option(Name, Args, Axis, Rank),
                            {One, [One]}
                    end,
    Count = count(Operand, Axes),
    Count > 0 orelse count(Operand, tessera_type:dims(Rank) -- Axes) =:= 0 orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected at least one element", [Name]),
    Own = index_type(Name, Args, Type, Count),
    keep_axes(tessera_trace:op(Name, [Operand], {Axis1, Tie =:= high, Own}), Operand, Axes, Keep).

-spec cumulative(atom(), tessera_type:operand(), tessera_options:cumulative_options()) -> tessera_type:tensor().
cumulative(Name, Operand, Options) ->
    Args = [Operand, Options],
    #{axis := Axis, reverse := Reverse} = options(Name, Args, Options, #{axis => 0, reverse => false}),
    Type = tessera_operand:type_of(tessera_operand:contents(Name, Operand)),
    tessera_trace:op(Name, [as_type(Name, Operand, cumulative_type(Name, Type))],
                     {axis_option(Name, Args, Axis, tessera_operand:rank(Name, Operand)), Reverse}).

%% Widened as by sum/2 and product/2.
cumulative_type(Name, Type) when Name =:= cumulative_sum; Name =:= cumulative_product -> tessera_type:sum_type(Type);
cumulative_type(_, Type) -> Type.

%% Subtracts the largest element, so that nothing overflows; not where it is infinite.
-spec logsumexp(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
logsumexp(Operand, Options) ->
    #{axes := Axes0, keep_axes := Keep} = options(logsumexp, [Operand, Options], Options, ?REDUCTION),
    Axes = tessera_type:axes(logsumexp, [Operand, Options], Axes0, tessera_operand:rank(logsumexp, Operand)),
    Wide = widened(logsumexp, Operand),
    Largest = finite_max(logsumexp, Wide, Axes),
    Exps = tessera_elementwise:exp(tessera_elementwise:subtract(Wide, Largest)),
    Logs = tessera_elementwise:add(tessera_elementwise:log(reduce(sum, Exps, #{axes => Axes, keep_axes => true})), Largest),
    Result = narrowed(logsumexp, Logs, Operand),
    case Keep of
        true -> Result;
        false -> squeeze(Result, Axes)
    end.

%% The largest element cancels out, so it has no gradient. Of complex numbers it is the largest real part, which decides how large exp is.
largest(Name, Operand, Axes) ->
    Sizes = case tessera_type:is_complex_type(tessera_operand:type_of(Operand)) of true -> tessera_complex:real(Operand); false -> Operand end,
    tessera_trace:stop_grad(reduce(Name, reduce_max, Sizes, #{axes => Axes, keep_axes => true})).

finite_max(Name, Operand, Axes) ->
    Largest = largest(Name, Operand, Axes),
    tessera_elementwise:select(tessera_elementwise:is_infinity(Largest), 0, Largest).

-spec softmax(tessera_type:operand(), tessera_options:axes_options()) -> tessera_type:tensor().
softmax(Operand, Options) ->
    Axes = softmax_axes(softmax, Operand, Options),
    Exps = tessera_elementwise:exp(shifted(softmax, Operand, Axes)),
    narrowed(softmax, tessera_elementwise:divide(Exps, reduce(sum, Exps, #{axes => Axes, keep_axes => true})), Operand).

%% The operand minus the largest element, in the type of the sum.
shifted(Name, Operand, Axes) ->
    Wide = widened(Name, Operand),
    tessera_elementwise:subtract(Wide, largest(Name, Wide, Axes)).

softmax_axes(Name, Operand, Options) ->
    #{axes := Axes} = options(Name, [Operand, Options], Options, #{axes => [-1]}),
    tessera_type:axes(Name, [Operand, Options], Axes, tessera_operand:rank(Name, Operand)).

%% Not X - logsumexp(X): between large numbers that would lose all digits.
-spec log_softmax(tessera_type:operand(), tessera_options:axes_options()) -> tessera_type:tensor().
log_softmax(Operand, Options) ->
    Axes = softmax_axes(log_softmax, Operand, Options),
    Shifted = shifted(log_softmax, Operand, Axes),
    Sum = reduce(sum, tessera_elementwise:exp(Shifted), #{axes => Axes, keep_axes => true}),
    narrowed(log_softmax, tessera_elementwise:subtract(Shifted, tessera_elementwise:log(Sum)), Operand).

%% ---- arithmetic

%% An integer to a negative power is not an integer: an error if the call shows it.
-spec pow(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
pow(Base, Exponent) when is_integer(Exponent), Exponent < 0 ->
    tessera_type:is_inexact_type(tessera_operand:type_of(tessera_operand:contents(pow, Base))) orelse
        tessera_error:raise(pow, [Base, Exponent], invalid_argument,
                            "pow: an integer to the power of ~b is no integer; tessera:pow(X, ~b.0) gives a float",
                            [Exponent, Exponent]),
    tessera_trace:op(pow, [Base, Exponent], []);
pow(Base, Exponent) -> tessera_trace:op(pow, [Base, Exponent], []).

%% ---- contraction

%% Contracts the last axis of A with the last but one of B; scalars multiply.
-spec dot(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
dot(A, B) ->
    case {tessera_operand:rank(dot, A), tessera_operand:rank(dot, B)} of
        {RankA, RankB} when RankA =:= 0; RankB =:= 0 -> tessera_trace:op(dot, multiply, [A, B], []);
        {RankA, 1} -> dot(A, [RankA - 1], B, [0]);
        {RankA, RankB} -> dot(A, [RankA - 1], B, [RankB - 2])
    end.

%% Without axes as dot/2, of the axes that are no batch.
-spec dot(tessera_type:operand(), tessera_type:operand(), tessera_options:dot_options()) -> tessera_type:tensor().
dot(A, B, Options) ->
    Args = [A, B, Options],
    #{axes := Axes, batch_axes := Batch} = options(dot, Args, Options, #{axes => default, batch_axes => {[], []}}),
    {BatchA, BatchB} = pair(Args, batch_axes, Batch),
    {AxesA, AxesB} = case Axes of
                         default -> inner(free(Args, A, BatchA), free(Args, B, BatchB));
                         _ -> pair(Args, axes, Axes)
                     end,
    dot(A, AxesA, BatchA, B, AxesB, BatchB).

pair(_, _, {_, _} = Pair) -> Pair;
pair(Args, Key, Other) ->
    tessera_error:raise(dot, Args, invalid_argument, "dot: ~s is ~ts, expected {AxesOfA, AxesOfB}", [Key, tessera_error:show(Other)]).

free(Args, Operand, Batch) ->
    Rank = tessera_operand:rank(dot, Operand),
    tessera_type:dims(Rank) -- tessera_type:axes(dot, Args, Batch, Rank).

inner(FreeA, FreeB) when FreeA =:= []; FreeB =:= [] -> {[], []};
inner(FreeA, [Only]) -> {[lists:last(FreeA)], [Only]};
inner(FreeA, FreeB) -> {[lists:last(FreeA)], [lists:nth(length(FreeB) - 1, FreeB)]}.

-spec dot(tessera_type:tensor(), tessera_type:axes(), tessera_type:tensor(), tessera_type:axes()) -> tessera_type:tensor().
dot(A, AxesA, B, AxesB) -> dot(A, AxesA, [], B, AxesB, []).

-spec dot(tessera_type:tensor(), tessera_type:axes(), tessera_type:axes(), tessera_type:tensor(), tessera_type:axes(), tessera_type:axes()) ->
          tessera_type:tensor().
dot(A, AxesA, BatchA, B, AxesB, BatchB) ->
    Args = [A, AxesA, BatchA, B, AxesB, BatchB],
    [ContractA, Batch1] = [tessera_type:axes(dot, Args, Axes, tessera_operand:rank(dot, A)) || Axes <- [AxesA, BatchA]],
    [ContractB, Batch2] = [tessera_type:axes(dot, Args, Axes, tessera_operand:rank(dot, B)) || Axes <- [AxesB, BatchB]],
    tessera_trace:op(dot, dot_general, [A, B], {ContractA, Batch1, ContractB, Batch2}).

-spec outer(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
outer(A, B) ->
    Operands = lists:zip(placed(outer, [tessera_operand:contents(outer, Operand) || Operand <- [A, B]]), [1, 0]),
    [Column, Row] = [new_axis(outer, flatten(outer, Operand), Axis) || {Operand, Axis} <- Operands],
    tessera_trace:op(outer, multiply, [Column, Row], []).

%% ---- with defaults

-spec slice(tessera_type:operand(), [tessera_type:operand()], [pos_integer()]) -> tessera_type:tensor().
slice(Tensor, Starts, Lengths) -> slice(Tensor, Starts, Lengths, ones).

-spec concatenate([tessera_type:operand()]) -> tessera_type:tensor().
concatenate(Tensors) -> concatenate(Tensors, 0).

-spec stack([tessera_type:operand()]) -> tessera_type:tensor().
stack(Tensors) -> stack(Tensors, 0).

-spec take(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
take(Tensor, Indices) -> take(Tensor, Indices, #{}).

-spec take_along_axis(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
take_along_axis(Tensor, Indices) -> take_along_axis(Tensor, Indices, #{}).

-spec sum(tessera_type:operand()) -> tessera_type:tensor().
sum(X) -> sum(X, #{}).

-spec sum(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
sum(X, Options) -> reduce(sum, X, Options).

-spec product(tessera_type:operand()) -> tessera_type:tensor().
product(X) -> product(X, #{}).

-spec product(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
product(X, Options) -> reduce(product, X, Options).

-spec all(tessera_type:operand()) -> tessera_type:tensor().
all(X) -> all(X, #{}).

-spec all(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
all(X, Options) -> reduce(all, X, Options).

-spec any(tessera_type:operand()) -> tessera_type:tensor().
any(X) -> any(X, #{}).

-spec any(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
any(X, Options) -> reduce(any, X, Options).

-spec reduce_max(tessera_type:operand()) -> tessera_type:tensor().
reduce_max(X) -> reduce_max(X, #{}).

-spec reduce_max(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
reduce_max(X, Options) -> reduce(reduce_max, X, Options).

-spec reduce_min(tessera_type:operand()) -> tessera_type:tensor().
reduce_min(X) -> reduce_min(X, #{}).

-spec reduce_min(tessera_type:operand(), tessera_options:reduce_options()) -> tessera_type:tensor().
reduce_min(X, Options) -> reduce(reduce_min, X, Options).

-spec argmax(tessera_type:operand()) -> tessera_type:tensor().
argmax(X) -> argmax(X, #{}).

-spec argmax(tessera_type:operand(), tessera_options:arg_options()) -> tessera_type:tensor().
argmax(X, Options) -> arg(argmax, X, Options).

-spec argmin(tessera_type:operand()) -> tessera_type:tensor().
argmin(X) -> argmin(X, #{}).

-spec argmin(tessera_type:operand(), tessera_options:arg_options()) -> tessera_type:tensor().
argmin(X, Options) -> arg(argmin, X, Options).

-spec cumulative_sum(tessera_type:operand()) -> tessera_type:tensor().
cumulative_sum(X) -> cumulative_sum(X, #{}).

-spec cumulative_sum(tessera_type:operand(), tessera_options:cumulative_options()) -> tessera_type:tensor().
cumulative_sum(X, Options) -> cumulative(cumulative_sum, X, Options).

-spec cumulative_product(tessera_type:operand()) -> tessera_type:tensor().
cumulative_product(X) -> cumulative_product(X, #{}).

-spec cumulative_product(tessera_type:operand(), tessera_options:cumulative_options()) -> tessera_type:tensor().
cumulative_product(X, Options) -> cumulative(cumulative_product, X, Options).

-spec cumulative_min(tessera_type:operand()) -> tessera_type:tensor().
cumulative_min(X) -> cumulative_min(X, #{}).

-spec cumulative_min(tessera_type:operand(), tessera_options:cumulative_options()) -> tessera_type:tensor().
cumulative_min(X, Options) -> cumulative(cumulative_min, X, Options).

-spec cumulative_max(tessera_type:operand()) -> tessera_type:tensor().
cumulative_max(X) -> cumulative_max(X, #{}).

-spec cumulative_max(tessera_type:operand(), tessera_options:cumulative_options()) -> tessera_type:tensor().
cumulative_max(X, Options) -> cumulative(cumulative_max, X, Options).

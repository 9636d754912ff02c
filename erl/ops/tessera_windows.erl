%% @private Windows that slide over a tensor, and their gradients.
%%
%% The first two are also for the Nx plug, which has ops of its own: Op applies a core op.
-module(tessera_windows).
-include("tessera.hrl").
-export([unfold/4, attributes/4]).
-export([fold/4, mean/3, reduce/5, scatter/6]).
-export([sum_share/3, product_share/4, choice_share/4, scatter_shares/5]).
-export([one_an_axis/5, padding/4, bound/2]).

-type op() :: fun((atom(), [tessera_type:operand()], term()) -> tessera_type:tensor()).
%% Sizes, strides, padding before and after, dilation: for each axis, as the core has them.
-type window() :: {[pos_integer()], [pos_integer()], [integer()], [integer()], [pos_integer()]}.

%% Limit for the elements of a window that is unfolded: each is a slice.
-define(MOST_PLACES, 65536).

%% ---- by ops of the core

-spec attributes([pos_integer()], [pos_integer()], [{integer(), integer()}], [pos_integer()]) -> window().
attributes(Sizes, Strides, Padding, Dilation) ->
    {Low, High} = lists:unzip(Padding),
    {Sizes, Strides, Low, High, Dilation}.

%% The elements of each window along a new first axis, in their order; Outside is the value of the padding.
-spec unfold(op(), tessera_type:tensor(), tessera_type:operand(), window()) -> tessera_type:tensor().
unfold(Op, #tessera{shape = Shape} = X, Outside, {Sizes, Strides, Low, High, Dilation}) ->
    Count = lists:foldl(fun erlang:'*'/2, 1, Sizes),
    Count =< ?MOST_PLACES orelse
        tessera_error:raise(window_reduce, [X], invalid_argument,
                            "window_reduce: a window of ~b places, expected at most ~b", [Count, ?MOST_PLACES]),
    Dims = tuple_to_list(Shape),
    Padded = case lists:all(fun(N) -> N =:= 0 end, Low ++ High) of
                 true -> X;
                 false -> Op(pad, [X, Outside], {Low, High, [0 || _ <- Low]})
             end,
    Counts = [count(Dim + L + H, Size, Stride, D)
              || {{Dim, Size, Stride}, {L, H, D}} <- lists:zip(lists:zip3(Dims, Sizes, Strides), lists:zip3(Low, High, Dilation))],
    Parts = [part(Op, Padded, Place, Counts, Strides, Dilation) || Place <- places(Sizes)],
    case Parts of
        [Part] -> Part;
        _ -> Op(concatenate, Parts, 0)
    end.

count(Dim, Size, Stride, Dilation) ->
    case Dim - (Size - 1) * Dilation of
        Room when Room < 1 -> 0;
        Room -> (Room - 1) div Stride + 1
    end.

%% The positions in a window, in row-major order.
places([]) -> [[]];
places([Size | Sizes]) ->
    Rest = places(Sizes),
    [[I | Place] || I <- tessera_type:dims(Size), Place <- Rest].

%% The element at one position of each window.
part(Op, X, Place, Counts, Strides, Dilation) ->
    None = [0 || _ <- Counts],
    Part = case lists:member(0, Counts) of
               true -> Op(slice, [X], {None, None, [1 || _ <- Counts]});
               false ->
                   Starts = [At * D || {At, D} <- lists:zip(Place, Dilation)],
                   Limits = [Start + (Count - 1) * Stride + 1
                             || {Start, Count, Stride} <- lists:zip3(Starts, Counts, Strides)],
                   Op(slice, [X], {Starts, Limits, Strides})
           end,
    Op(reshape, [Part], list_to_tuple([1 | Counts])).

%% ---- the API

-spec fold(atom(), tessera_type:operand(), tessera_type:shape(), tessera_options:window_options()) -> tessera_type:tensor().
fold(Name, Operand, Sizes, Options) ->
    X = tessera_operand:tensor(Name, Operand),
    Window = window(Name, [Operand, Sizes, Options], X, Sizes, Options),
    tessera_trace:op(Name, [tessera_ops:as_type(Name, X, fold_type(Name, X#tessera.type))], Window).

%% The type of folds over windows, as for sum/2 and product/2.
fold_type(Name, Type) when Name =:= window_sum; Name =:= window_product -> tessera_type:sum_type(Type);
fold_type(_, Type) -> Type.

%% The sum divided by the number of elements of a window, in a type that neither wraps nor overflows.
-spec mean(tessera_type:operand(), tessera_type:shape(), tessera_options:window_options()) -> tessera_type:tensor().
mean(Operand, Sizes, Options) ->
    X = tessera_operand:tensor(window_mean, Operand),
    Window = window(window_mean, [Operand, Sizes, Options], X, Sizes, Options),
    Sum = tessera_trace:op(window_mean, window_sum, [tessera_ops:widened(window_mean, X)], Window),
    Count = lists:foldl(fun erlang:'*'/2, 1, element(1, Window)),
    tessera_ops:narrowed(window_mean, tessera_elementwise:divide(Sum, float(Count)), X).

-spec reduce(tessera_type:operand(), tessera_type:operand(), tessera_type:shape(), fun(), tessera_options:window_options()) -> tessera_type:tensor().
reduce(Operand, Initial, Sizes, F, Options) ->
    X = tessera_operand:tensor(window_reduce, Operand),
    Window = window(window_reduce, [Operand, Initial, Sizes, F, Options], X, Sizes, Options),
    tessera_control:reduce(window_reduce, unfold(op(window_reduce), X, Initial, Window), Initial, F, [0]).

-spec scatter(atom(), tessera_type:operand(), tessera_type:operand(), tessera_type:operand(), tessera_type:shape(), tessera_options:window_scatter_options()) ->
          tessera_type:tensor().
scatter(Name, Operand, Source, Initial, Sizes, Options) ->
    X = tessera_operand:tensor(Name, Operand),
    Args = [Operand, Source, Initial, Sizes, Options],
    Given = tessera_ops:options(Name, Args, Options, #{strides => 1, padding => valid}),
    Window = window(Name, Args, X, Sizes, Given#{dilation => 1}),
    tessera_trace:op(Name, [X, Source, Initial], Window).

op(Name) -> fun(Core, Operands, Attrs) -> tessera_trace:op(Name, Core, Operands, Attrs) end.

window(Name, Args, #tessera{shape = Shape}, Sizes, Options) ->
    #{strides := Strides, padding := Padding, dilation := Dilation} =
        tessera_ops:options(Name, Args, Options, #{strides => 1, padding => valid, dilation => 1}),
    Rank = tuple_size(Shape),
    [Sizes1, Strides1, Dilation1] = [one_an_axis(Name, Args, What, Rank, Given)
                                     || {What, Given} <- [{"window", Sizes}, {"strides", Strides}, {"dilation", Dilation}]],
    Spans = [(Size - 1) * D + 1 || {Size, D} <- lists:zip(Sizes1, Dilation1)],
    attributes(Sizes1, Strides1, padding(Name, Args, lists:zip3(tuple_to_list(Shape), Spans, Strides1), Padding), Dilation1).

%% A positive number for each axis, or one for all; a list or a tuple.
-spec one_an_axis(atom(), [term()], string(), non_neg_integer(), term()) -> [pos_integer()].
one_an_axis(_, _, _, Rank, N) when is_integer(N), N > 0, N < 1 bsl 63 -> lists:duplicate(Rank, N);
one_an_axis(Name, Args, What, Rank, Given) ->
    List = case is_tuple(Given) of
               true -> tuple_to_list(Given);
               false -> Given
           end,
    tessera_type:is_proper(List) andalso length(List) =:= Rank andalso
        lists:all(fun(N) -> is_integer(N) andalso N > 0 andalso N < 1 bsl 63 end, List) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected ~s of ~b positive integers, one for each axis, got ~ts",
                            [Name, What, Rank, tessera_error:show(Given)]),
    List.

%% Axes are {Size, Span of the window, Stride}. With `same' there are as many windows as strides fit into the axis.
-spec padding(atom(), [term()], [{non_neg_integer(), pos_integer(), pos_integer()}], term()) -> [{integer(), integer()}].
padding(_, _, Axes, valid) -> [{0, 0} || _ <- Axes];
padding(_, _, Axes, same) ->
    [begin
         Count = (Dim + Stride - 1) div Stride,
         All = max(0, (Count - 1) * Stride + Span - Dim),
         {All div 2, All - All div 2}
     end || {Dim, Span, Stride} <- Axes];
padding(Name, Args, Axes, Given) ->
    tessera_type:is_proper(Given) andalso length(Given) =:= length(Axes) andalso
        lists:all(fun({Low, High}) -> is_integer(Low) andalso is_integer(High);
                     (_) -> false
                  end, Given) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected padding valid, same or a list of ~b {Low, High}, got ~ts",
                            [Name, length(Axes), tessera_error:show(Given)]),
    Given.

%% ---- gradients: C is the result's

%% The gradient of an element is the sum over the windows that it is in: a window of C, dilated by the strides.
-spec sum_share(tessera_type:tensor(), tessera_type:tensor(), window()) -> tessera_type:tensor().
sum_share(#tessera{shape = Windows} = C, #tessera{shape = Shape}, {Sizes, Strides, Low, _, Dilation}) ->
    Wide = case lists:all(fun(Stride) -> Stride =:= 1 end, Strides) of
               true -> C;
               false -> tessera_ops:pad(C, 0, [{0, 0, Stride - 1} || Stride <- Strides])
           end,
    Before = [(Size - 1) * D - L || {Size, D, L} <- lists:zip3(Sizes, Dilation, Low)],
    After = [Dim + L - covered(Count, Stride)
             || {{Dim, L}, Count, Stride} <- lists:zip3(lists:zip(tuple_to_list(Shape), Low), tuple_to_list(Windows), Strides)],
    tessera_trace:op(grad, window_sum, [Wide], {Sizes, [1 || _ <- Sizes], Before, After, Dilation}).

covered(0, _) -> 0;
covered(Count, Stride) -> (Count - 1) * Stride + 1.

%% Others(C, Elements) is the gradient of the elements of each window, along the first axis, for their product. It takes as much memory
%% as all windows have elements.
-spec product_share(tessera_type:tensor(), tessera_type:tensor(), window(), fun((tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor())) ->
          tessera_type:tensor().
product_share(C, #tessera{type = Type} = X, Window, Others) ->
    folded_back(Others(C, unfold(op(grad), X, tessera_array:full({}, 1, Type), Window)), X, Window).

%% The gradient of a window's maximum or minimum belongs to its selected element: the last of equal ones. With dilation it takes as
%% much memory as all windows have elements.
-spec choice_share(atom(), tessera_type:tensor(), tessera_type:tensor(), window()) -> tessera_type:tensor().
choice_share(Scatter, C, #tessera{type = Type} = X, {_, _, _, _, Dilation} = Window) ->
    case lists:all(fun(D) -> D =:= 1 end, Dilation) of
        true -> tessera_trace:op(grad, Scatter, [X, C, tessera_array:full({}, 0, Type)], Window);
        false ->
            Best = best_places(Scatter, X, Window),
            Places = lists:foldl(fun erlang:'*'/2, 1, element(1, Window)),
            Shape = setelement(1, Best#tessera.shape, Places),
            Chosen = tessera_elementwise:equal(tessera_array:iota(Shape, s64, 0), Best),
            folded_back(tessera_elementwise:select(Chosen, tessera_ops:new_axis(C, 0), tessera_array:full({}, 0, Type)), X, Window)
    end.

%% The index of the element that Scatter selects in each window, with a first axis of size 1; -1 where a window has only padding. Scatter
%% takes the next element unless the one before is better, so it leaves a NaN for any element behind it.
best_places(Scatter, #tessera{type = Type, shape = Shape} = X, Window) ->
    {Reduce, Worse, Least} = case Scatter of
                                  window_scatter_max -> {fun tessera_ops:reduce_max/2, fun tessera_elementwise:less/2, neg_infinity};
                                  window_scatter_min -> {fun tessera_ops:reduce_min/2, fun tessera_elementwise:greater/2, infinity}
                              end,
    Elements = unfold(op(grad), X, tessera_array:full({}, 0, Type), Window),
    %% The padding is told by its place: elements may have any value.
    Inside = unfold(op(grad), tessera_array:full(Shape, 1, u8), tessera_array:full({}, 0, u8), Window),
    Places = tessera_array:iota(Elements#tessera.shape, s64, 0),
    Last = fun(Which) -> tessera_ops:reduce_max(tessera_elementwise:select(Which, Places, -1), #{axes => 0, keep_axes => true}) end,
    From = tessera_elementwise:min(tessera_elementwise:add(Last(tessera_elementwise:is_nan(Elements)), 1), Last(Inside)),
    Candidates = tessera_elementwise:logical_and(Inside, tessera_elementwise:greater_equal(Places, From)),
    Best = Reduce(tessera_elementwise:select(Candidates, Elements, bound(Type, Least)), #{axes => 0, keep_axes => true}),
    Last(tessera_elementwise:logical_and(Candidates, tessera_elementwise:logical_not(Worse(Elements, Best)))).

%% The sum of all elements of windows that are a place of X; unfold makes such windows. It is rounded once.
folded_back(Elements, #tessera{type = Type, shape = Shape}, {Sizes, Strides, Low, _, Dilation}) ->
    [_ | Counts] = tuple_to_list(Elements#tessera.shape),
    case lists:member(0, Counts) of
        true -> tessera_array:full(Shape, 0, Type);
        false ->
            #tessera{type = Wide} = All = tessera_ops:widened(grad, Elements),
            Add = fun({Index, Place}, Sum) ->
                          Part = tessera_ops:reshape(tessera_ops:slice(All, [Index | [0 || _ <- Counts]], [1 | Counts]),
                                                 list_to_tuple(Counts)),
                          tessera_elementwise:add(Sum, tessera_ops:pad(Part, 0, spread(Place, tuple_to_list(Shape), Counts, Strides, Low, Dilation)))
                  end,
            tessera_ops:as_type(lists:foldl(Add, tessera_array:full(Shape, 0, Wide), lists:enumerate(0, places(Sizes))), Type)
    end.

%% Where the elements at one place of the windows are, as padding around and between them.
spread([], [], [], [], [], []) -> [];
spread([At | Ats], [Dim | Dims], [Count | Counts], [Stride | Strides], [L | Low], [D | Dilation]) ->
    Before = At * D - L,
    [{Before, Dim - Before - covered(Count, Stride), Stride - 1} | spread(Ats, Dims, Counts, Strides, Low, Dilation)].

%% The gradient of the source is C at the selected element; the gradient of the initial value is the sum of C.
-spec scatter_shares(atom(), tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), window()) ->
          [none | fun(() -> tessera_type:tensor())].
scatter_shares(Name, C, #tessera{type = Type} = X, #tessera{shape = Shape}, Window) ->
    [none,
     fun() ->
             Best = best_places(Name, X, Window),
             Read = tessera_ops:take_along_axis(unfold(op(grad), C, tessera_array:full({}, 0, Type), Window), Best, #{axis => 0}),
             tessera_ops:reshape(Read, Shape)
     end,
     fun() -> tessera_ops:as_type(grad, tessera_ops:sum(C), Type) end].

%% The least or the largest value of a type. f8_e4m3fn has no infinity.
-spec bound(tessera_type:type(), infinity | neg_infinity) -> tessera_type:tensor().
bound(f8_e4m3fn, neg_infinity) -> tessera_array:full({}, -448, f8_e4m3fn);
bound(f8_e4m3fn, infinity) -> tessera_array:full({}, 448, f8_e4m3fn);
bound(Type, Which) -> tessera_array:full({}, Which, Type).

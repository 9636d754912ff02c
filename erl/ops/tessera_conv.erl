%% @private Convolution, and its gradients as convolutions.
%%
%% The first is also for the Nx plug, which has ops of its own: Op applies a core op.
-module(tessera_conv).
-include("tessera.hrl").
-export([lower/4]).
-export([conv/3, input_share/4, kernel_share/4]).

-type op() :: fun((atom(), [tessera_type:operand()], term()) -> tessera_type:tensor()).

%% ---- by ops of the core: operands of any layout. A permutation says which axes are {batch, channels, spatial ones} of the
%% operand and the result, {features, channels, spatial ones} of the kernel.

-type numbers() :: [non_neg_integer()].
-type lowered() :: #{input := numbers(), kernel := numbers(), output := numbers(), strides := numbers(), padding := [{integer(), integer()}],
                     input_dilation := numbers(), kernel_dilation := numbers(), feature_groups := pos_integer(), batch_groups := pos_integer(),
                     atom() => term()}.

-spec lower(op(), tessera_type:tensor(), tessera_type:tensor(), lowered()) -> tessera_type:tensor().
lower(Op, X, Kernel, #{input := [Batch, Channels | InX], kernel := [Features, From | InKernel], output := Output} = Options) ->
    #{strides := Strides, padding := Padding, input_dilation := InputDilation, kernel_dilation := KernelDilation,
      feature_groups := FeatureGroups, batch_groups := BatchGroups} = Options,
    Last = transpose(Op, X, [Batch | InX] ++ [Channels]),
    Grouped = group_batches(Op, Last, BatchGroups),
    {Low, High} = lists:unzip(Padding),
    Result = Op(conv, [Grouped, transpose(Op, Kernel, InKernel ++ [From, Features])],
                {Strides, Low, High, InputDilation, KernelDilation, FeatureGroups * BatchGroups}),
    transpose(Op, Result, places(Output)).

%% The axis of the result that each of its axes is here, where channels are last.
places([Batch, Channels | Spatial]) ->
    Count = length(Spatial),
    Own = [{Batch, 0}, {Channels, Count + 1} | lists:zip(Spatial, lists:seq(1, Count))],
    [Axis || {_, Axis} <- lists:sort(Own)].

%% Groups of the batch become groups of channels.
group_batches(_, X, 1) -> X;
group_batches(Op, #tessera{shape = Shape} = X, Groups) ->
    [Batch | Rest] = tuple_to_list(Shape),
    {Spatial, [Channels]} = lists:split(length(Rest) - 1, Rest),
    Count = length(Spatial),
    Split = Op(reshape, [X], list_to_tuple([Groups, Batch div Groups | Rest])),
    Moved = Op(transpose, [Split], [1] ++ lists:seq(2, Count + 1) ++ [0, Count + 2]),
    Op(reshape, [Moved], list_to_tuple([Batch div Groups | Spatial] ++ [Groups * Channels])).

transpose(Op, X, Order) ->
    case lists:sort(Order) of
        Order -> X;
        _ -> Op(transpose, [X], Order)
    end.

%% ---- the API

-spec conv(tessera_type:operand(), tessera_type:operand(), tessera_options:conv_options()) -> tessera_type:tensor().
conv(Operand, Kernel, Options) ->
    Args = [Operand, Kernel, Options],
    [X, K] = [tessera_operand:tensor(conv, Arg) || Arg <- [Operand, Kernel]],
    Type = tessera_type:to_float(tessera_type:merge(X#tessera.type, K#tessera.type)),
    Rank = tuple_size(X#tessera.shape),
    Rank >= 2 andalso tuple_size(K#tessera.shape) =:= Rank orelse
        tessera_error:raise(conv, Args, invalid_argument, "conv: expected an operand and a kernel of one rank, at least 2", []),
    Given = tessera_ops:options(conv, Args, Options,
                                #{strides => 1, padding => valid, input_dilation => 1, kernel_dilation => 1,
                                  feature_groups => 1, batch_groups => 1, layout => channels_last}),
    {InX, InKernel, InOutput} = layout(Args, maps:get(layout, Given), Rank),
    Lists = maps:map(fun(Key, Value) -> tessera_windows:one_an_axis(conv, Args, atom_to_list(Key), Rank - 2, Value) end,
                     maps:with([strides, input_dilation, kernel_dilation], Given)),
    Groups = maps:with([feature_groups, batch_groups], Given),
    check_groups(Args, Groups, element(hd(InX) + 1, X#tessera.shape)),
    Padding = tessera_windows:padding(conv, Args, axes(X, K, InX, InKernel, Lists), maps:get(padding, Given)),
    Full = maps:merge(maps:merge(Lists, Groups),
                      #{padding => Padding, input => InX, kernel => InKernel, output => InOutput}),
    [A, B] = [tessera_ops:as_type(conv, T, Type) || T <- [X, K]],
    lower(fun(Core, Operands, Attrs) -> tessera_trace:op(conv, Core, Operands, Attrs) end, A, B, Full).

%% {Dilated size of the operand, dilated size of the kernel, stride} of each spatial axis.
axes(#tessera{shape = Shape}, #tessera{shape = KernelShape}, [_, _ | InX], [_, _ | InKernel],
     #{strides := Strides, input_dilation := InputDilation, kernel_dilation := KernelDilation}) ->
    Sizes = [covered(element(Axis + 1, Shape), D) || {Axis, D} <- lists:zip(InX, InputDilation)],
    Spans = [covered(element(Axis + 1, KernelShape), D) || {Axis, D} <- lists:zip(InKernel, KernelDilation)],
    lists:zip3(Sizes, Spans, Strides).

layout(_, channels_last, Rank) ->
    Input = [0, Rank - 1 | lists:seq(1, Rank - 2)],
    {Input, [Rank - 1, Rank - 2 | lists:seq(0, Rank - 3)], Input};
layout(_, channels_first, Rank) ->
    Axes = lists:seq(0, Rank - 1),
    {Axes, Axes, Axes};
layout(Args, {Input, Kernel, Output} = Layout, Rank) ->
    Axes = lists:seq(0, Rank - 1),
    [tessera_type:is_proper(List) andalso lists:sort(List) =:= Axes orelse bad_layout(Args, Layout, Rank)
     || List <- [Input, Kernel, Output]],
    Layout;
layout(Args, Layout, Rank) -> bad_layout(Args, Layout, Rank).

-spec bad_layout([term()], term(), non_neg_integer()) -> no_return().
bad_layout(Args, Layout, Rank) ->
    tessera_error:raise(conv, Args, invalid_argument,
                        "conv: expected layout channels_last, channels_first or {Input, Kernel, Output} of the axes ~0p each, "
                        "got ~ts", [lists:seq(0, Rank - 1), tessera_error:show(Layout)]).

check_groups(Args, #{feature_groups := F, batch_groups := B}, Batch) ->
    is_integer(F) andalso is_integer(B) andalso F > 0 andalso B > 0 andalso (F =:= 1 orelse B =:= 1) andalso
        Batch rem B =:= 0 andalso F < 1 bsl 31 orelse
        tessera_error:raise(conv, Args, invalid_argument,
                            "conv: expected feature_groups or batch_groups, positive, and batch_groups to divide the batch "
                            "of ~b, got ~ts and ~ts", [Batch, tessera_error:show(F), tessera_error:show(B)]).

covered(0, _) -> 0;
covered(Count, Step) -> (Count - 1) * Step + 1.

%% ---- gradients: C is the result's, X and K as the core has them

%% A convolution of C, dilated by the strides, with the kernel reversed along its spatial axes.
-spec input_share(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), tuple()) -> tessera_type:tensor().
input_share(C, X, K, {Strides, Low, _, InputDilation, KernelDilation, Groups}) ->
    Spatial = spatial(K, 0),
    Rank = length(Spatial),
    [Channels, Features] = [element(Rank + I, K#tessera.shape) || I <- [1, 2]],
    Reversed = tessera_ops:reverse(K, tessera_type:dims(Rank)),
    Split = tessera_ops:reshape(Reversed, list_to_tuple(Spatial ++ [Channels, Groups, Features div Groups])),
    Turned = tessera_ops:transpose(Split, tessera_type:dims(Rank) ++ [Rank + 2, Rank + 1, Rank]),
    Weights = tessera_ops:reshape(Turned, list_to_tuple(Spatial ++ [Features div Groups, Groups * Channels])),
    Before = [(Size - 1) * D - L || {Size, D, L} <- lists:zip3(Spatial, KernelDilation, Low)],
    After = [covered(Dim, E) + (Size - 1) * D - B - covered(Count, Stride)
             || {{Dim, E, Size}, {D, B}, {Count, Stride}} <-
                    lists:zip3(lists:zip3(spatial(X, 1), InputDilation, Spatial), lists:zip(KernelDilation, Before),
                               lists:zip(spatial(C, 1), Strides))],
    case tessera_array:size(X) of
        0 -> zeros_like(X);
        _ -> op([C, Weights], {InputDilation, Before, After, Strides, KernelDilation, Groups})
    end.

%% A convolution of X by C, with channels for the batch, and the batch for channels.
-spec kernel_share(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), tuple()) -> tessera_type:tensor().
kernel_share(C, X, K, {Strides, Low, _, InputDilation, KernelDilation, Groups} = Attrs) ->
    case tessera_array:size(C) =:= 0 orelse tessera_array:size(X) =:= 0 of
        true -> zeros_like(K);
        false ->
            case is_depthwise(X, K, Attrs) of
                true -> depthwise_share(C, X, K, Attrs);
                false -> kernel_share(C, X, K, Strides, Low, InputDilation, KernelDilation, Groups)
            end
    end.

kernel_share(C, X, K, Strides, Low, InputDilation, KernelDilation, Groups) ->
    Spatial = spatial(X, 1),
    Rank = length(Spatial),
    Batch = element(1, X#tessera.shape),
    Channels = element(Rank + 2, X#tessera.shape) div Groups,
    Middle = lists:seq(1, Rank),
    Split = tessera_ops:reshape(X, list_to_tuple([Batch | Spatial] ++ [Groups, Channels])),
    Turned = tessera_ops:transpose(Split, [Rank + 2 | Middle] ++ [Rank + 1, 0]),
    Operand = tessera_ops:reshape(Turned, list_to_tuple([Channels | Spatial] ++ [Groups * Batch])),
    Weights = tessera_ops:transpose(C, Middle ++ [0, Rank + 1]),
    High = [covered(Size, D) + covered(Count, Stride) - 1 - L - covered(Dim, E)
            || {{Size, D, Count}, {Stride, L}, {Dim, E}} <-
                   lists:zip3(lists:zip3(spatial(K, 0), KernelDilation, spatial(C, 1)), lists:zip(Strides, Low),
                              lists:zip(Spatial, InputDilation))],
    Share = op([Operand, Weights], {KernelDilation, Low, High, InputDilation, Strides, Groups}),
    tessera_ops:transpose(Share, Middle ++ [0, Rank + 1]).

op(Operands, Attrs) -> tessera_trace:op(grad, conv, Operands, Attrs).

%% Each tap is a sum over the products of two slices, and there are few taps. As a grouped convolution, groups of one channel would
%% be products with one column.
-define(FEW_PLACES, 64).
is_depthwise(X, K, {_, _, _, InputDilation, _, Groups}) ->
    Places = lists:foldl(fun erlang:'*'/2, 1, spatial(K, 0)),
    Channels = element(tuple_size(X#tessera.shape), X#tessera.shape),
    Features = element(tuple_size(K#tessera.shape), K#tessera.shape),
    Groups > 1 andalso Channels =:= Groups andalso Features =:= Groups andalso Places =< ?FEW_PLACES
        andalso lists:all(fun(E) -> E =:= 1 end, InputDilation).

depthwise_share(C, X, K, {Strides, Low, High, _, KernelDilation, _}) ->
    Rank = length(Strides),
    Padded = tessera_ops:pad(X, 0, [{0, 0, 0}] ++ [{L, H, 0} || {L, H} <- lists:zip(Low, High)] ++ [{0, 0, 0}]),
    Counts = spatial(C, 1),
    Sums = [begin
                Starts = [At * D || {At, D} <- lists:zip(Place, KernelDilation)],
                Lengths = [covered(Count, Stride) || {Count, Stride} <- lists:zip(Counts, Strides)],
                Ends = tuple_to_list(X#tessera.shape),
                Part = tessera_ops:slice(Padded, [0 | Starts] ++ [0], [hd(Ends) | Lengths] ++ [lists:last(Ends)],
                                     [1 | Strides] ++ [1]),
                %% A product may leave the range of a narrow type where the sum does not.
                [WidePart, WideC] = [tessera_ops:widened(grad, T) || T <- [Part, C]],
                Sum = tessera_ops:sum(tessera_elementwise:multiply(WidePart, WideC), #{axes => lists:seq(0, Rank)}),
                tessera_ops:new_axis(tessera_ops:as_type(grad, Sum, K#tessera.type), 0)
            end || Place <- places_of(spatial(K, 0))],
    tessera_ops:reshape(tessera_ops:concatenate(Sums), K#tessera.shape).

places_of([]) -> [[]];
places_of([Size | Sizes]) -> [[I | Place] || I <- tessera_type:dims(Size), Place <- places_of(Sizes)].

zeros_like(#tessera{type = Type, shape = Shape}) -> tessera_array:full(Shape, 0, Type).

%% The sizes of the spatial axes, which follow `Before' other axes.
spatial(#tessera{shape = Shape}, Before) -> lists:sublist(tuple_to_list(Shape), Before + 1, tuple_size(Shape) - 2).

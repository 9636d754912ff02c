%% @private Ops that make ranges and masks, or move elements without computing with them. The API in tessera.erl documents them.
-module(tessera_shapes).
-include("tessera.hrl").
-export([arange/4, full_like/3, tile/2, repeat/3, roll/3, swap_axes/3, move_axis/3, diag/2, tri/2, triangle/3, meshgrid/2]).
-export([at/2, rolled/3]).

-type operand() :: tessera_type:operand().
-type tensor() :: tessera_type:tensor().

%% ---- ranges

%% Start, Start + Step, ... before Stop. Integers are counted in 64 bits where these hold them, others in f64, and rounded once.
-spec arange(number(), number(), number(), default | tessera_type:type()) -> tensor().
arange(Start, Stop, Step, Type) when is_number(Start), is_number(Stop), is_number(Step), Step /= 0 ->
    Args = [Start, Stop, Step, Type],
    Type =:= default orelse tessera_type:is_type(Type) orelse
        tessera_error:raise(arange, Args, invalid_argument, "arange: expected a type such as f32 or s64, got ~ts", [tessera_error:show(Type)]),
    case lists:all(fun is_integer/1, [Start, Stop, Step]) of
        true -> integers(Args, Start, Step, whole_count(Start, Stop, Step), Type);
        false -> floats(Args, Start, Step, float_count(Args, Start, Stop, Step), Type)
    end;
arange(Start, Stop, Step, Type) ->
    tessera_error:raise(arange, [Start, Stop, Step, Type], invalid_argument, "arange: expected numbers and a step other than 0, got ~ts",
                        [lists:join(", ", [tessera_error:show(Arg) || Arg <- [Start, Stop, Step]])]).

%% ceil((Stop - Start) / Step), and none below zero.
whole_count(Start, Stop, Step) when Step < 0 -> whole_count(Stop, Start, -Step);
whole_count(Start, Stop, Step) -> max(0, (Stop - Start + Step - 1) div Step).

float_count(Args, Start, Stop, Step) ->
    try max(0, ceil((Stop - Start) / Step))
    catch error:badarith -> tessera_error:raise(arange, Args, out_of_range, "arange: the number of steps from ~0p to ~0p is no float", [Start, Stop])
    end.

integers(Args, Start, Step, Count, Type) ->
    Ends = [Start, Start + Step * max(0, Count - 1)],
    Own = case Type of
              default -> hd([T || T <- [s32, s64, u64], fits(T, Ends)] ++ [none]);
              _ -> Type
          end,
    Own =/= none andalso (tessera_type:is_inexact_type(Own) orelse fits(Own, Ends)) orelse
        tessera_error:raise(arange, Args, out_of_range, "arange: ~b does not fit in ~s", [lists:last(Ends), case Own of none -> u64; _ -> Own end]),
    case [T || T <- [s64, u64], fits(T, Ends)] of
        [] -> floats(Args, Start, Step, Count, Own);
        [Counted | _] ->
            %% in s64 a number of u64 wraps, and wraps back
            Index = tessera_ops:source(arange, iota, {s64, {Count}, 0}),
            Numbers = tessera_elementwise:add(tessera_elementwise:multiply(Index, wrapped(Step)), wrapped(Start)),
            tessera_ops:as_type(arange, tessera_ops:as_type(arange, Numbers, Counted), Own)
    end.

fits(Type, Numbers) -> lists:all(fun(N) -> tessera_type:fits(Type, N) end, Numbers).

wrapped(N) ->
    <<Signed:64/signed>> = <<N:64>>,
    tessera_array:full({}, Signed, s64).

floats(Args, Start, Step, Count, Type) ->
    Own = case Type of default -> f32; _ -> Type end,
    tessera_type:is_inexact_type(Own) orelse
        tessera_error:raise(arange, Args, invalid_argument, "arange: floats make no ~s", [Own]),
    Index = tessera_ops:source(arange, iota, {f64, {Count}, 0}),
    [By, From] = [in_float(Args, N) || N <- [Step, Start]],
    tessera_ops:as_type(arange, tessera_elementwise:add(tessera_elementwise:multiply(Index, By), From), Own).

in_float(Args, N) ->
    try float(N)
    catch error:badarg -> tessera_error:raise(arange, Args, out_of_range, "arange: an integer of ~b digits is no float", [length(integer_to_list(abs(N)))])
    end.

%% With the shape of X, and its type for `same'.
-spec full_like(operand(), operand(), same | tessera_type:type()) -> tensor().
full_like(X, Value, Type) ->
    #tessera{type = Own, shape = Shape} = tessera_operand:tensor(full_like, X),
    tessera_array:full(Shape, Value, case Type of same -> Own; _ -> Type end).

-spec meshgrid([operand()], tessera_options:meshgrid_options()) -> [tensor()].
meshgrid(Lines, Options) ->
    Args = [Lines, Options],
    #{indexing := Indexing} = tessera_ops:options(meshgrid, Args, Options, #{indexing => xy}),
    lists:member(Indexing, [xy, ij]) orelse
        tessera_error:raise(meshgrid, Args, invalid_argument, "meshgrid: indexing is ~ts, expected xy or ij", [tessera_error:show(Indexing)]),
    tessera_type:is_proper(Lines) andalso lists:all(fun(Line) -> tessera_operand:rank(meshgrid, Line) < 2 end, Lines) orelse
        tessera_error:raise(meshgrid, Args, invalid_argument, "meshgrid: expected a list of tensors of rank 1 at most", []),
    Places = case {Indexing, tessera_type:dims(length(Lines))} of
                 {xy, [0, 1 | More]} -> [1, 0 | More];
                 {_, InOrder} -> InOrder
             end,
    Sizes = [Size || {_, Size} <- lists:sort(lists:zip(Places, [tessera_array:size(Line) || Line <- Lines]))],
    [tessera_ops:broadcast(tessera_ops:flatten(Line), list_to_tuple(Sizes), Place) || {Line, Place} <- lists:zip(Lines, Places)].

%% ---- copies

%% Counts that are fewer than the axes are those of the last axes, as in NumPy.
-spec tile(operand(), non_neg_integer() | [non_neg_integer()]) -> tensor().
tile(X, Count) when is_integer(Count) -> tile(X, [Count]);
tile(X, Counts) ->
    tessera_type:is_proper(Counts) andalso lists:all(fun(N) -> is_integer(N) andalso N >= 0 end, Counts) orelse
        tessera_error:raise(tile, [X, Counts], invalid_argument, "tile: expected a count or a list of them, got ~ts", [tessera_error:show(Counts)]),
    Dims = tuple_to_list(tessera_operand:shape_of(tile, X)),
    Rank = max(length(Dims), length(Counts)),
    [Sizes, Copies] = [lists:duplicate(Rank - length(List), 1) ++ List || List <- [Dims, Counts]],
    %% Each axis becomes two, of the sizes 1 and its own. The first one stretches to the count.
    Split = tessera_ops:reshape(X, list_to_tuple(lists:append([[1, Size] || Size <- Sizes]))),
    Wide = tessera_ops:broadcast_to(tile, Split, list_to_tuple(lists:append([[N, Size] || {N, Size} <- lists:zip(Copies, Sizes)]))),
    tessera_ops:reshape(Wide, list_to_tuple([N * Size || {N, Size} <- lists:zip(Copies, Sizes)])).

-spec repeat(operand(), non_neg_integer() | [non_neg_integer()], tessera_options:axis_options()) -> tensor().
repeat(X, Counts, Options) ->
    Args = [X, Counts, Options],
    #{axis := Axis0} = tessera_ops:options(repeat, Args, Options, #{axis => flat}),
    {Tensor, Axis} = case Axis0 of
                         flat -> {tessera_ops:flatten(X), 0};
                         _ -> {tessera_operand:tensor(repeat, X), tessera_ops:axis_option(repeat, Args, Axis0, tessera_operand:rank(repeat, X))}
                     end,
    repeated(Args, Tensor, Counts, Axis).

repeated(_, #tessera{shape = Shape} = Tensor, Count, Axis) when is_integer(Count), Count >= 0 ->
    {Before, [Size | After]} = lists:split(Axis, tuple_to_list(Shape)),
    Column = tessera_ops:new_axis(Tensor, Axis + 1),
    Wide = tessera_ops:broadcast_to(repeat, Column, list_to_tuple(Before ++ [Size, Count | After])),
    tessera_ops:reshape(Wide, list_to_tuple(Before ++ [Size * Count | After]));
repeated(Args, #tessera{shape = Shape} = Tensor, Counts, Axis) ->
    Size = element(Axis + 1, Shape),
    tessera_type:is_proper(Counts) andalso length(Counts) =:= Size andalso lists:all(fun(N) -> is_integer(N) andalso N >= 0 end, Counts) orelse
        tessera_error:raise(repeat, Args, invalid_argument, "repeat: expected a count or a list of ~b counts, one for each element of axis ~b, got ~ts",
                            [Size, Axis, tessera_error:show(Counts)]),
    Indices = lists:append([lists:duplicate(N, I) || {I, N} <- lists:zip(tessera_type:dims(Size), Counts)]),
    tessera_ops:take(Tensor, tessera_array:tensor(Indices, s64), #{axis => Axis}).

%% ---- order of elements and axes

-spec roll(operand(), integer() | [integer()], tessera_options:axes_options()) -> tensor().
roll(X, Shifts, Options) ->
    Args = [X, Shifts, Options],
    #{axes := Axes0} = tessera_ops:options(roll, Args, Options, #{axes => flat}),
    case Axes0 of
        flat ->
            is_integer(Shifts) orelse not_shifts(Args, Shifts, "an integer"),
            tessera_ops:reshape(rolled(tessera_ops:flatten(X), 0, Shifts), tessera_operand:shape_of(roll, X));
        _ ->
            Axes = tessera_type:axes(roll, Args, Axes0, tessera_operand:rank(roll, X)),
            Each = case Shifts of
                       One when is_integer(One) -> [One || _ <- Axes];
                       _ -> Shifts
                   end,
            tessera_type:is_proper(Each) andalso length(Each) =:= length(Axes) andalso lists:all(fun is_integer/1, Each) orelse
                not_shifts(Args, Shifts, io_lib:format("an integer or a list of ~b", [length(Axes)])),
            lists:foldl(fun({Axis, Shift}, Tensor) -> rolled(Tensor, Axis, Shift) end, tessera_operand:tensor(roll, X), lists:zip(Axes, Each))
    end.

-spec not_shifts([term()], term(), iodata()) -> no_return().
not_shifts(Args, Shifts, Expected) ->
    tessera_error:raise(roll, Args, invalid_argument, "roll: expected ~ts, got ~ts", [Expected, tessera_error:show(Shifts)]).

rolled(#tessera{shape = Shape} = Tensor, Axis, Shift) ->
    case element(Axis + 1, Shape) of
        Size when Size < 2; Shift rem Size =:= 0 -> Tensor;
        Size ->
            By = ((Shift rem Size) + Size) rem Size,
            [Front, Back] = tessera_ops:split(Tensor, [Size - By, By], Axis),
            tessera_ops:concatenate([Back, Front], Axis)
    end.

-spec swap_axes(operand(), integer(), integer()) -> tensor().
swap_axes(X, Axis1, Axis2) ->
    Rank = tessera_operand:rank(swap_axes, X),
    [A, B] = [tessera_type:axis(swap_axes, [X, Axis1, Axis2], Axis, Rank) || Axis <- [Axis1, Axis2]],
    tessera_ops:transpose(X, [case I of A -> B; B -> A; _ -> I end || I <- tessera_type:dims(Rank)]).

%% Axis From of X is axis To of the result. The other axes keep their order.
-spec move_axis(operand(), integer() | [integer()], integer() | [integer()]) -> tensor().
move_axis(X, From, To) ->
    Args = [X, From, To],
    Rank = tessera_operand:rank(move_axis, X),
    [Sources, Places] = [tessera_type:axes(move_axis, Args, Axes, Rank) || Axes <- [From, To]],
    length(Sources) =:= length(Places) orelse
        tessera_error:raise(move_axis, Args, invalid_argument, "move_axis: ~b axes are moved to ~b places", [length(Sources), length(Places)]),
    Others = tessera_type:dims(Rank) -- Sources,
    Placed = lists:zip(tessera_type:dims(Rank) -- Places, Others) ++ lists:zip(Places, Sources),
    tessera_ops:transpose(X, [Axis || {_, Axis} <- lists:sort(Placed)]).

%% ---- diagonals and triangles

%% Of a vector the matrix with that diagonal, of a matrix its diagonal. Offset counts to the right.
-spec diag(operand(), integer()) -> tensor().
diag(X, Offset) when is_integer(Offset) ->
    case tessera_operand:shape_of(diag, X) of
        {Size} ->
            Side = Size + abs(Offset),
            [Rows, Columns] = [{max(0, Where), Side - Size - max(0, Where), 0} || Where <- [-Offset, Offset]],
            Square = tessera_elementwise:select(tessera_array:eye(Size, u8), tessera_ops:new_axis(X, 1), tessera_array:full({}, 0, tessera_operand:type_of(X))),
            tessera_ops:pad(Square, tessera_array:full({}, 0, tessera_operand:type_of(X)), [Rows, Columns]);
        {Rows, Columns} ->
            %% the diagonal is every (Columns + 1)-th element of the flat matrix
            Count = max(0, min(Rows - max(0, -Offset), Columns - max(0, Offset))),
            First = max(0, -Offset) * Columns + max(0, Offset),
            Indices = [First + I * (Columns + 1) || I <- tessera_type:dims(Count)],
            tessera_ops:take(tessera_ops:flatten(X), tessera_array:tensor(Indices, s64));
        Shape -> tessera_error:raise(diag, [X, Offset], invalid_argument, "diag: expected a vector or a matrix, got the shape ~0p", [Shape])
    end;
diag(X, Offset) -> not_offset(diag, [X, Offset], Offset).

-spec not_offset(atom(), [term()], term()) -> no_return().
not_offset(Name, Args, Offset) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected the offset of a diagonal, got ~ts", [Name, tessera_error:show(Offset)]).

-spec tri(non_neg_integer(), tessera_options:tri_options()) -> tensor().
tri(Rows, Options) ->
    Args = [Rows, Options],
    #{columns := Columns0, offset := Offset, type := Type} = tessera_ops:options(tri, Args, Options, #{columns => rows, offset => 0, type => f32}),
    Columns = case Columns0 of rows -> Rows; _ -> Columns0 end,
    is_integer(Offset) orelse not_offset(tri, Args, Offset),
    ok = tessera_ops:type_and_shape(tri, Args, Type, {Rows, Columns}),
    tessera_ops:as_type(tri, is_lower({Rows, Columns}, Offset), Type).

%% Whether elements are on the diagonal or under it. A diagonal further away than the matrix is large has all elements on one side. The sum
%% with its offset might not fit in 64 bits.
is_lower(Shape, Offset) ->
    Rank = tuple_size(Shape),
    [Row, Column] = [tessera_ops:source(tri, iota, {s64, Shape, Axis}) || Axis <- [Rank - 2, Rank - 1]],
    Nearest = max(-element(Rank - 1, Shape), min(element(Rank, Shape), Offset)),
    tessera_elementwise:less_equal(Column, tessera_elementwise:add(Row, Nearest)).

%% tril and triu: of the last two axes.
-spec triangle(tril | triu, operand(), integer()) -> tensor().
triangle(Name, X, Offset) ->
    Shape = tessera_operand:shape_of(Name, X),
    is_integer(Offset) orelse not_offset(Name, [X, Offset], Offset),
    tuple_size(Shape) >= 2 orelse
        tessera_error:raise(Name, [X, Offset], invalid_argument, "~s: expected a matrix, or a batch of them, got the shape ~0p", [Name, Shape]),
    Zero = tessera_array:full({}, 0, tessera_operand:type_of(X)),
    case Name of
        tril -> tessera_elementwise:select(is_lower(Shape, Offset), X, Zero);
        triu -> tessera_elementwise:select(is_lower(Shape, Offset - 1), Zero, X)
    end.

%% ---- parts, as Python writes them

%% Indices of one axis each: an integer or a tensor of rank 0, which takes its axis away; {From, To} and {From, To, Step}, `all';
%% new_axis; '...' for whole axes in the place of those without an index. The last axes are whole where no '...' is written.
-spec at(tensor(), [term()]) -> tensor().
at(Tensor, Indices) ->
    Args = [Tensor, Indices],
    tessera_type:is_proper(Indices) orelse
        tessera_error:raise(at, Args, invalid_argument, "at: expected a list of indices, got ~ts", [tessera_error:show(Indices)]),
    Dims = tuple_to_list(tessera_operand:shape_of(at, Tensor)),
    Whole = spread(Args, Indices, length(Dims)),
    Cuts = cuts(Args, Whole, Dims, 0),
    Part = cut(Tensor, Cuts),
    Backwards = [Axis || {Axis, {_, _, Step, _}} <- lists:zip(tessera_type:dims(length(Cuts)), Cuts), Step < 0],
    Forwards = case Backwards of
                   [] -> Part;
                   _ -> tessera_ops:reverse(Part, Backwards)
               end,
    tessera_ops:reshape(Forwards, list_to_tuple(result_dims(Whole, Cuts))).

%% With `all' for each axis that has no index.
spread(Args, Indices, Rank) ->
    Count = length([I || I <- Indices, I =/= new_axis, I =/= '...']),
    Count =< Rank orelse
        tessera_error:raise(at, Args, invalid_argument, "at: ~b indices, expected at most ~b", [Count, Rank]),
    Others = lists:duplicate(Rank - Count, all),
    case lists:splitwith(fun(I) -> I =/= '...' end, Indices) of
        {_, []} -> Indices ++ Others;
        {Before, ['...' | After]} ->
            not lists:member('...', After) orelse
                tessera_error:raise(at, Args, invalid_argument, "at: '...' stands there more than once", []),
            Before ++ Others ++ After
    end.

%% {Start, Length, Step, Kept} for each axis; with a step below 0 the elements are those of the same slice forwards.
cuts(_, [], [], _) -> [];
cuts(Args, [new_axis | Indices], Dims, Axis) -> cuts(Args, Indices, Dims, Axis);
cuts(Args, [Index | Indices], [Dim | Dims], Axis) -> [axis_cut(Args, Index, Dim, Axis) | cuts(Args, Indices, Dims, Axis + 1)].

axis_cut(_, all, Dim, _) -> {0, Dim, 1, true};
axis_cut(Args, {From, To}, Dim, Axis) -> axis_cut(Args, {From, To, 1}, Dim, Axis);
axis_cut(_, {From, To, Step}, Dim, _) when (From =:= all orelse is_integer(From)), (To =:= all orelse is_integer(To)), is_integer(Step), Step =/= 0 ->
    range(bounds(From, To, Step, Dim), Step);
axis_cut(_, Index, Dim, _) when is_integer(Index), Index >= -Dim, Index < Dim -> {(Index + Dim) rem Dim, 1, 1, false};
axis_cut(Args, Index, Dim, Axis) when is_integer(Index) ->
    tessera_error:raise(at, Args, invalid_argument, "at: no index ~b in axis ~b, which has size ~b", [Index, Axis, Dim]);
axis_cut(_, #tessera{} = Index, _, _) -> {Index, 1, 1, false};
axis_cut(Args, Other, _, Axis) ->
    tessera_error:raise(at, Args, invalid_argument,
                        "at: for axis ~b expected an index, {From, To}, {From, To, Step}, all, new_axis or '...', got ~ts", [Axis, tessera_error:show(Other)]).

%% Of a slice: where it begins and where it ends, moved into the axis, as Python does. Backwards the end may be before the first element.
bounds(From, To, Step, Dim) when Step > 0 -> {bound(From, 0, 0, Dim, Dim), bound(To, Dim, 0, Dim, Dim)};
bounds(From, To, _, Dim) -> {bound(From, Dim - 1, -1, Dim - 1, Dim), bound(To, -1, -1, Dim - 1, Dim)}.

bound(all, Default, _, _, _) -> Default;
bound(I, _, Low, High, Dim) when I < 0 -> min(High, max(Low, I + Dim));
bound(I, _, Low, High, _) -> min(High, max(Low, I)).

range({First, Limit}, Step) when Step > 0 -> {First, max(0, Limit - First), Step, true};
range({First, Limit}, Step) when Limit >= First -> {0, 0, Step, true};
range({First, Limit}, Step) ->
    Count = (First - Limit - Step - 1) div -Step,
    Last = First + (Count - 1) * Step,
    {Last, First - Last + 1, Step, true}.

cut(Tensor, []) -> tessera_operand:tensor(at, Tensor);
cut(Tensor, Cuts) ->
    Dims = tuple_to_list(tessera_operand:shape_of(at, Tensor)),
    IsWhole = lists:all(fun({{0, Dim, Step, _}, Dim}) -> abs(Step) =:= 1; (_) -> false end, lists:zip(Cuts, Dims)),
    case IsWhole of
        true -> tessera_operand:tensor(at, Tensor);
        false -> tessera_ops:slice_of(at, Tensor, [First || {First, _, _, _} <- Cuts], [Length || {_, Length, _, _} <- Cuts],
                                      [abs(Step) || {_, _, Step, _} <- Cuts])
    end.

result_dims([new_axis | Indices], Cuts) -> [1 | result_dims(Indices, Cuts)];
result_dims([_ | Indices], [{_, Length, Step, true} | Cuts]) -> [(Length + abs(Step) - 1) div abs(Step) | result_dims(Indices, Cuts)];
result_dims([_ | Indices], [_ | Cuts]) -> result_dims(Indices, Cuts);
result_dims([], []) -> [].

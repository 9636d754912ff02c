%% @private Products of tensors by the names of their axes (A. Einstein's convention, as NumPy writes it), and products with names of their
%% own. The API in tessera.erl documents them.
-module(tessera_einsum).
-include("tessera.hrl").
-export([einsum/2, matmul/2, kron/2, cross/3, trace/2, slogdet/1]).

-type operand() :: tessera_type:operand().
-type tensor() :: tessera_type:tensor().
%% The label of an axis: its letter, or {dots, N} where three dots stand for the axis; N counts these axes from the last one.
-type label() :: char() | {dots, pos_integer()}.
%% A tensor, and a label for each of its axes.
-type term_() :: {tensor(), [label()]}.

%% Up to so many operands the cheapest order of the products is found, of 3^N pairs of parts; with more, each product is the cheapest next one.
-define(MOST_PLANNED, 7).

%% ---- einsum

-spec einsum(iodata(), [operand()]) -> tensor().
einsum(Text, Operands) ->
    Args = [Text, Operands],
    tessera_type:is_proper(Operands) andalso Operands =/= [] orelse fail(Args, "expected a list of operands", []),
    {Inputs, Output} = parse(Args, characters(Args, Text)),
    length(Inputs) =:= length(Operands) orelse fail(Args, "~b operands, but ~b are written", [length(Operands), length(Inputs)]),
    Tensors = [tessera_operand:tensor(einsum, Operand) || Operand <- merged(Operands)],
    Labelled = [{T, labels(Args, Labels, T)} || {T, Labels} <- lists:zip(Tensors, Inputs)],
    Sizes = sizes(Args, Labelled),
    Result = case Output of
                 implicit -> implicit(Labelled);
                 _ -> output(Args, Output, Labelled)
             end,
    Thin = [without_ones(Term, Sizes) || Term <- Labelled],
    Terms = [summed(Term, lists:append([Labels || {_, Labels} <- lists:delete(Term, Thin)]) ++ Result) || Term <- Thin],
    {Tensor, Labels} = multiply_all(Terms, Result, Sizes),
    arranged(Tensor, Labels, Result).

%% Numbers take the type of the tensors they meet.
merged(Operands) ->
    Types = [Type || #tessera{type = Type} <- Operands],
    [case Operand of
         #tessera{} -> Operand;
         Number when Types =/= [] -> tessera_array:full({}, Number, tessera_type:merge_all(Types, [Number]));
         Number -> Number
     end || Operand <- Operands].

-spec fail([term()], string(), [term()]) -> no_return().
fail(Args, Format, Values) -> tessera_error:raise(einsum, Args, invalid_argument, "einsum: " ++ Format, Values).

characters(Args, Text) ->
    try unicode:characters_to_list(Text) of
        List when is_list(List) -> [C || C <- List, C =/= $\s];
        _ -> fail(Args, "expected a text such as \"ij,jk->ik\", got ~ts", [tessera_error:show(Text)])
    catch error:badarg -> fail(Args, "expected a text such as \"ij,jk->ik\", got ~ts", [tessera_error:show(Text)])
    end.

%% {Letters of each operand, letters of the result}; `dots' stands for three dots.
parse(Args, Text) ->
    case string:split(Text, "->", all) of
        [Inputs] -> {inputs(Args, Inputs), implicit};
        [Inputs, Output] -> {inputs(Args, Inputs), letters(Args, Output)};
        _ -> fail(Args, "more than one -> in \"~ts\"", [Text])
    end.

inputs(Args, Text) -> [letters(Args, Input) || Input <- string:split(Text, ",", all)].

letters(_, []) -> [];
letters(Args, "..." ++ Rest) ->
    Letters = letters(Args, Rest),
    not lists:member(dots, Letters) orelse fail(Args, "... stands twice in one operand", []),
    [dots | Letters];
letters(Args, [C | Rest]) when C >= $a, C =< $z; C >= $A, C =< $Z -> [C | letters(Args, Rest)];
letters(Args, [C | _]) -> fail(Args, "expected letters, commas, ... and ->, got \"~tc\"", [C]).

%% A label for each axis of an operand.
labels(Args, Letters, #tessera{shape = Shape}) ->
    Rank = tuple_size(Shape),
    Named = length([C || C <- Letters, C =/= dots]),
    Named =:= Rank orelse Named < Rank andalso lists:member(dots, Letters) orelse
        fail(Args, "an operand of the shape ~0p has ~b axes, and ~b are written", [Shape, Rank, Named]),
    lists:append([case C of
                      dots -> [{dots, N} || N <- lists:seq(Rank - Named, 1, -1)];
                      _ -> [C]
                  end || C <- Letters]).

%% The size of each label. Axes of size 1 stretch.
sizes(Args, Labelled) ->
    lists:foldl(fun({Label, Size}, Sizes) ->
                        case Sizes of
                            #{Label := Known} when Known =:= Size; Size =:= 1 -> Sizes;
                            #{Label := Known} when Known > 1 -> fail(Args, "axis ~ts has the sizes ~b and ~b", [name(Label), Known, Size]);
                            _ -> Sizes#{Label => Size}
                        end
                end, #{}, [{L, D} || {#tessera{shape = Shape}, Labels} <- Labelled, {L, D} <- lists:zip(Labels, tuple_to_list(Shape))]).

name({dots, _}) -> "...";
name(Letter) -> [Letter].

%% The result's labels where no -> is written: the labels of dots, then each letter that is written once, in alphabetic order.
implicit(Labelled) ->
    All = [L || {_, Labels} <- Labelled, L <- Labels],
    Dots = lists:usort([N || {dots, N} <- All]),
    [{dots, N} || N <- lists:reverse(Dots)] ++ [L || L <- lists:usort(All), is_integer(L), length([1 || M <- All, M =:= L]) =:= 1].

output(Args, Letters, Labelled) ->
    All = lists:usort([L || {_, Labels} <- Labelled, L <- Labels]),
    Dots = [{dots, N} || {dots, N} <- lists:reverse(All)],
    Labels = lists:append([case C of dots -> Dots; _ -> [C] end || C <- Letters]),
    [fail(Args, "the result's axis ~ts is in no operand", [name(L)]) || L <- Labels, not lists:member(L, All)],
    length(lists:usort(Labels)) =:= length(Labels) orelse fail(Args, "an axis stands twice in the result", []),
    %% NumPy's rule: what dots stand for is not summed
    Dots -- Labels =:= [] orelse fail(Args, "the result has no ... for the operands' axes", []),
    Labels.

%% An operand with different labels: of repeated ones the diagonal. An axis of size 1 that stretches to others is dropped.
without_ones({Tensor, Labels}, Sizes) ->
    {#tessera{shape = Shape} = Diagonal, Different} = diagonals(Tensor, Labels),
    Numbered = lists:zip(tessera_type:dims(length(Different)), Different),
    Ones = [Axis || {Axis, Label} <- Numbered, element(Axis + 1, Shape) =:= 1, map_get(Label, Sizes) =/= 1],
    {tessera_ops:squeeze(Diagonal, Ones), [Label || {Axis, Label} <- Numbered, not lists:member(Axis, Ones)]}.

%% Sums over what only this operand has.
summed({#tessera{type = Type} = Tensor, Labels}, Needed) ->
    case [place(L, Labels) || L <- Labels, not lists:member(L, Needed)] of
        [] -> {Tensor, Labels};
        Axes -> {tessera_ops:as_type(einsum, tessera_ops:sum(Tensor, #{axes => Axes}), Type), [L || L <- Labels, lists:member(L, Needed)]}
    end.

place(Label, Labels) -> length(lists:takewhile(fun(L) -> L =/= Label end, Labels)).

diagonals(Tensor, Labels) ->
    case [L || L <- lists:usort(Labels), length([1 || M <- Labels, M =:= L]) > 1] of
        [] -> {Tensor, Labels};
        [Label | _] ->
            [First, Second | _] = [Axis || {Axis, L} <- lists:zip(tessera_type:dims(length(Labels)), Labels), L =:= Label],
            {Before, [_ | After]} = lists:split(Second, Labels),
            diagonals(diagonal(Tensor, First, Second), Before ++ After)
    end.

%% The elements whose indices along two axes are equal, along the first of them.
diagonal(#tessera{shape = Shape} = Tensor, First, Second) ->
    Size = min(element(First + 1, Shape), element(Second + 1, Shape)),
    Rank = tuple_size(Shape),
    Ends = tessera_shapes:move_axis(Tensor, [First, Second], [Rank - 2, Rank - 1]),
    {Batch, [_, Columns]} = lists:split(Rank - 2, tuple_to_list(Ends#tessera.shape)),
    Flat = tessera_ops:reshape(Ends, list_to_tuple(Batch ++ [-1 || Size > 0] ++ [0 || Size =:= 0])),
    Places = tessera_array:tensor([I * (Columns + 1) || I <- tessera_type:dims(Size)], s64),
    tessera_shapes:move_axis(tessera_ops:take(Flat, Places, #{axis => -1}), Rank - 2, First).

%% The product of all terms; each product sums what no later one and not the result needs.
-spec multiply_all([term_()], [label()], #{label() => non_neg_integer()}) -> term_().
multiply_all([Term], _, _) -> Term;
multiply_all(Terms, Result, Sizes) when length(Terms) =< ?MOST_PLANNED ->
    Numbered = maps:from_list(lists:zip(lists:seq(1, length(Terms)), Terms)),
    Labels = maps:map(fun(_, {_, Own}) -> Own end, Numbered),
    {_, _, Plan} = cheapest(maps:keys(Numbered), Labels, Result, Sizes),
    carry_out(Plan, Numbered, Labels, Result);
multiply_all(Terms, Result, Sizes) ->
    Numbered = lists:zip(lists:seq(1, length(Terms)), Terms),
    Pairs = [{cost(A, B, Sizes), I, J} || {I, {_, A}} <- Numbered, {J, {_, B}} <- Numbered, I < J],
    {_, I, J} = lists:min(Pairs),
    [{_, A}, {_, B}] = [lists:keyfind(N, 1, Numbered) || N <- [I, J]],
    Others = [Term || {N, Term} <- Numbered, N =/= I, N =/= J],
    Needed = Result ++ [L || {_, Own} <- Others, L <- Own],
    multiply_all([multiply(A, B, Needed) | Others], Result, Sizes).

%% The number of multiplications.
cost(A, B, Sizes) -> lists:foldl(fun(L, N) -> N * map_get(L, Sizes) end, 1, lists:usort(A ++ B)).

%% {Cost, Labels, Plan} of the product of these terms, a plan being a number or a pair of plans: the best of all pairs of parts.
cheapest(Set, Labels, Result, Sizes) -> element(1, cheapest(Set, Labels, Result, Sizes, #{})).

cheapest([N], Labels, _, _, Known) -> {{0, map_get(N, Labels), N}, Known};
cheapest(Set, _, _, _, Known) when is_map_key(Set, Known) -> {map_get(Set, Known), Known};
cheapest([First | Rest] = Set, Labels, Result, Sizes, Known) ->
    Needed = needed(Set, Labels, Result),
    {Plans, All} = lists:mapfoldl(
        fun(Some, Known1) ->
                Part = [First | Some],
                {{CostA, LabelsA, PlanA}, Known2} = cheapest(Part, Labels, Result, Sizes, Known1),
                {{CostB, LabelsB, PlanB}, Known3} = cheapest(Set -- Part, Labels, Result, Sizes, Known2),
                Own = [L || L <- lists:usort(LabelsA ++ LabelsB), lists:member(L, Needed)],
                {{CostA + CostB + cost(LabelsA, LabelsB, Sizes), Own, {PlanA, PlanB}}, Known3}
        end, Known, [Some || Some <- subsets(Rest), Some =/= Rest]),
    Best = lists:min(Plans),
    {Best, All#{Set => Best}}.

subsets([]) -> [[]];
subsets([N | Rest]) ->
    Without = subsets(Rest),
    Without ++ [[N | Some] || Some <- Without].

%% What the result and the terms outside of a set have.
needed(Set, Labels, Result) -> Result ++ lists:append(maps:values(maps:without(Set, Labels))).

carry_out(N, Terms, _, _) when is_integer(N) -> map_get(N, Terms);
carry_out({A, B} = Plan, Terms, Labels, Result) ->
    multiply(carry_out(A, Terms, Labels, Result), carry_out(B, Terms, Labels, Result), needed(members(Plan), Labels, Result)).

members({A, B}) -> members(A) ++ members(B);
members(N) -> [N].

%% The product of two terms, summed over the labels that are not needed. Each such label is in both: what only one had was summed before.
multiply({A, LabelsA}, {B, LabelsB}, Needed) ->
    Both = [L || L <- LabelsA, lists:member(L, LabelsB)],
    {Batch, Contracted} = lists:partition(fun(L) -> lists:member(L, Needed) end, Both),
    [PlacesA, PlacesB] = [[[place(L, Own) || L <- Some] || Some <- [Contracted, Batch]] || Own <- [LabelsA, LabelsB]],
    [[AxesA, BatchA], [AxesB, BatchB]] = [PlacesA, PlacesB],
    Labels = Batch ++ (LabelsA -- Both) ++ (LabelsB -- Both),
    {tessera_ops:dot(A, AxesA, BatchA, B, AxesB, BatchB), Labels}.

arranged(Tensor, Labels, Labels) -> Tensor;
arranged(Tensor, Labels, Result) -> tessera_ops:transpose(Tensor, [place(L, Labels) || L <- Result]).

%% ---- products

%% NumPy's rules: vectors are rows or columns, and other leading axes are batches, which stretch.
-spec matmul(operand(), operand()) -> tensor().
matmul(A, B) ->
    [RankA, RankB] = Ranks = [tessera_operand:rank(matmul, X) || X <- [A, B]],
    lists:min(Ranks) > 0 orelse
        tessera_error:raise(matmul, [A, B], invalid_argument, "matmul: expected vectors or matrices, got a number", []),
    Row = [tessera_ops:new_axis(A, 0) || RankA =:= 1] ++ [A || RankA > 1],
    Column = [tessera_ops:new_axis(B, 1) || RankB =:= 1] ++ [B || RankB > 1],
    Product = matrices([A, B], hd(Row), hd(Column)),
    tessera_ops:squeeze(Product, [-2 || RankA =:= 1] ++ [-1 || RankB =:= 1]).

matrices(Args, #tessera{shape = ShapeA} = A, #tessera{shape = ShapeB} = B) ->
    {BatchA, [Rows, Inner]} = lists:split(tuple_size(ShapeA) - 2, tuple_to_list(ShapeA)),
    {BatchB, [InnerB, Columns]} = lists:split(tuple_size(ShapeB) - 2, tuple_to_list(ShapeB)),
    Inner =:= InnerB orelse
        tessera_error:raise(matmul, Args, invalid_argument, "matmul: rows of ~b elements meet columns of ~b", [Inner, InnerB]),
    case tessera_type:broadcast(list_to_tuple(BatchA), list_to_tuple(BatchB)) of
        error -> tessera_error:raise(matmul, Args, invalid_argument, "matmul: the batches of ~0p and ~0p do not match", [ShapeA, ShapeB]);
        {} -> tessera_ops:dot(A, B);
        Batch -> batches(A, B, tuple_to_list(Batch), Rows, Inner, Columns)
    end.

%% A second operand without batches is one matrix for all rows of the first.
batches(A, #tessera{shape = {_, _}} = B, _, _, _, _) -> tessera_ops:dot(A, [tuple_size(A#tessera.shape) - 1], B, [0]);
batches(A, B, Batch, Rows, Inner, Columns) ->
    Axes = tessera_type:dims(length(Batch)),
    WideA = tessera_ops:broadcast_to(matmul, A, list_to_tuple(Batch ++ [Rows, Inner])),
    WideB = tessera_ops:broadcast_to(matmul, B, list_to_tuple(Batch ++ [Inner, Columns])),
    tessera_ops:dot(WideA, [length(Batch) + 1], Axes, WideB, [length(Batch)], Axes).

%% Axes that only one operand has are of size 1 in the other.
-spec kron(operand(), operand()) -> tensor().
kron(A, B) ->
    [DimsA, DimsB] = [tuple_to_list(tessera_operand:shape_of(kron, X)) || X <- [A, B]],
    Rank = max(length(DimsA), length(DimsB)),
    [SizesA, SizesB] = [lists:duplicate(Rank - length(Dims), 1) ++ Dims || Dims <- [DimsA, DimsB]],
    Outer = [tessera_ops:reshape(A, list_to_tuple(lists:append([[N, 1] || N <- SizesA]))),
             tessera_ops:reshape(B, list_to_tuple(lists:append([[1, N] || N <- SizesB])))],
    tessera_ops:reshape(tessera_trace:op(kron, multiply, Outer, []), list_to_tuple([M * N || {M, N} <- lists:zip(SizesA, SizesB)])).

-spec cross(operand(), operand(), tessera_options:axis_options()) -> tensor().
cross(A, B, Options) ->
    Args = [A, B, Options],
    #{axis := Axis0} = tessera_ops:options(cross, Args, Options, #{axis => -1}),
    [AxisA, AxisB] = [tessera_ops:axis_option(cross, Args, Axis0, tessera_operand:rank(cross, X)) || X <- [A, B]],
    [element(Axis + 1, tessera_operand:shape_of(cross, X)) =:= 3 orelse
         tessera_error:raise(cross, Args, invalid_argument, "cross: expected three elements along the axis, got the shape ~0p",
                             [tessera_operand:shape_of(cross, X)])
     || {X, Axis} <- [{A, AxisA}, {B, AxisB}]],
    %% Vectors in the last axis: the other axes are broadcast, also where one operand has fewer.
    [[A1, A2], [B1, B2]] =
        [[tessera_shapes:rolled(Last, tuple_size(Last#tessera.shape) - 1, By) || By <- [-1, -2]]
         || {X, Axis} <- [{A, AxisA}, {B, AxisB}], Last <- [tessera_shapes:move_axis(X, Axis, -1)]],
    Vectors = tessera_elementwise:subtract(tessera_elementwise:multiply(A1, B2), tessera_elementwise:multiply(A2, B1)),
    tessera_shapes:move_axis(Vectors, -1, tessera_ops:axis_option(cross, Args, Axis0, tuple_size(Vectors#tessera.shape))).

%% The sum of the diagonal of two axes, the last two unless given.
-spec trace(operand(), tessera_options:trace_options()) -> tensor().
trace(X, Options) ->
    Args = [X, Options],
    #{axes := Axes0, offset := Offset} = tessera_ops:options(trace, Args, Options, #{axes => [-2, -1], offset => 0}),
    Rank = tessera_operand:rank(trace, X),
    Rank >= 2 andalso is_integer(Offset) orelse
        tessera_error:raise(trace, Args, invalid_argument, "trace: expected a matrix and the offset of a diagonal, got the rank ~b and ~ts",
                            [Rank, tessera_error:show(Offset)]),
    [Rows, Columns] = case tessera_type:axes(trace, Args, Axes0, Rank) of
                          [_, _] = Two -> Two;
                          Axes -> tessera_error:raise(trace, Args, invalid_argument, "trace: expected two axes, got ~0p", [Axes])
                      end,
    tessera_ops:sum(on_diagonal(trace, X, Rows, Columns, Offset), #{axes => [Rows, Columns]}).

%% X with zeros outside of the diagonal of two axes.
on_diagonal(Name, X, Rows, Columns, Offset) ->
    [Row, Column] = places(Name, X, [Rows, Columns]),
    Is = tessera_elementwise:equal(Column, tessera_elementwise:add(Row, Offset)),
    tessera_elementwise:select(Is, X, tessera_array:full({}, 0, tessera_operand:type_of(X))).

%% The index of each element of X along these axes.
places(Name, X, Axes) -> [tessera_ops:source(Name, iota, {s64, tessera_operand:shape_of(Name, X), Axis}) || Axis <- Axes].

%% {Sign, log |determinant|}, by LU: the determinant itself may be beyond the range of floats.
-spec slogdet(operand()) -> {tensor(), tensor()}.
slogdet(A) ->
    {P, _, #tessera{type = Type, shape = Shape} = U} = tessera_linalg:lu(A),
    Rank = tuple_size(Shape),
    Diagonal = tessera_ops:sum(on_diagonal(slogdet, U, Rank - 2, Rank - 1, 0), #{axes => [-1]}),
    Sizes = tessera_elementwise:abs(Diagonal),
    Signs = case tessera_type:is_complex_type(Type) of
                true ->
                    IsZero = tessera_elementwise:equal(Sizes, 0),
                    tessera_elementwise:select(IsZero, Diagonal, tessera_elementwise:divide(Diagonal, tessera_elementwise:select(IsZero, 1, Sizes)));
                false -> tessera_elementwise:sign(Diagonal)
            end,
    Sign = tessera_elementwise:multiply(tessera_ops:product(Signs, #{axes => [-1]}), tessera_ops:as_type(slogdet, parity(P), Type)),
    {Sign, tessera_ops:sum(tessera_elementwise:log(Sizes), #{axes => [-1]})}.

%% 1 or -1 for a permutation matrix: whether the number of its inversions is even.
parity(#tessera{shape = Shape} = P) ->
    Rank = tuple_size(Shape),
    Order = tessera_ops:argmax(tessera_elementwise:abs(P), #{axis => -1, type => s64}),
    [Before, After] = [tessera_ops:new_axis(Order, Axis) || Axis <- [-1, Rank - 2]],
    [Row, Column] = places(slogdet, P, [Rank - 2, Rank - 1]),
    Inverted = tessera_elementwise:logical_and(tessera_elementwise:less(Row, Column), tessera_elementwise:greater(Before, After)),
    Count = tessera_ops:sum(tessera_ops:as_type(Inverted, s64), #{axes => [-2, -1]}),
    tessera_elementwise:subtract(1, tessera_elementwise:multiply(2, tessera_elementwise:remainder(Count, 2))).

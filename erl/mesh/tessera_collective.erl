%% @private The local view of a program on a mesh: collectives by the names of axes (docs/distribution.md).
-module(tessera_collective).
-include("tessera.hrl").
-export([all_reduce/3, all_gather/3, reduce_scatter/3, all_to_all/4, permute/3, shift/3, broadcast_from/3, barrier/2, vary/2,
         axis_index/1, axis_size/1]).
%% for modules that trace
-export([on_mesh/2, sum_over/2, own_part/3, on_member/3]).
-export_type([axes/0]).

%% TS_MAX_RANK of c_src/tensor/shape.h, the most entries of a list in an op.
-define(MAX_PAIRS, 64).

-type axes() :: tessera_sharding:axis() | [tessera_sharding:axis()].

%% ---- the mesh

%% Traces F as the program of one partition.
-spec on_mesh(tessera_sharding:checked(), fun(() -> Result)) -> Result.
on_mesh(Mesh, F) ->
    Program = tessera_trace:current(),
    ok = tessera_error:check(shard_map, [], tessera_nif:set_mesh(Program, tessera_sharding:sizes(Mesh), tessera_sharding:names(Mesh))),
    ok = tessera_error:check(shard_map, [], tessera_nif:local_view(Program)),
    [_ | Axes] = tessera_sharding:names(Mesh),
    tessera_varying:on_mesh(Mesh, Axes, F).

-spec mesh(atom(), [term()]) -> tessera_sharding:checked().
mesh(Name, Args) ->
    case tessera_varying:mesh() of
        undefined ->
            tessera_error:raise(Name, Args, failed_precondition,
                                "~s: expected to be called inside of a function of tessera:shard_map/4, which has a mesh", [Name]);
        {ok, Mesh} -> Mesh
    end.

%% The numbers of axes that a user names: one, or a list of several.
-spec axes(atom(), [term()], axes()) -> [non_neg_integer()].
axes(Name, Args, Axes) when is_list(Axes) ->
    Mesh = mesh(Name, Args),
    tessera_type:is_proper(Axes) orelse bad(Name, Args, "expected a list of mesh axes, got ~ts", [tessera_error:show(Axes)]),
    Numbers = [tessera_sharding:axis(Name, Args, Mesh, Axis) || Axis <- Axes],
    Numbers =/= [] orelse bad(Name, Args, "expected at least one mesh axis", []),
    length(lists:usort(Numbers)) =:= length(Numbers) orelse
        bad(Name, Args, "a mesh axis occurs twice in ~ts", [tessera_error:show(Axes)]),
    Numbers;
axes(Name, Args, Axis) -> axes(Name, Args, [Axis]).

-spec bad(atom(), [term()], io:format(), [term()]) -> no_return().
bad(Name, Args, Format, Values) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: " ++ Format, [Name | Values]).

group_size(Axes) ->
    {ok, Mesh} = tessera_varying:mesh(),
    product([lists:nth(Axis + 1, tessera_sharding:sizes(Mesh)) || Axis <- Axes]).

product(Numbers) -> lists:foldl(fun erlang:'*'/2, 1, Numbers).

%% ---- containers

%% Applies an op to all tensors and numbers of a container. Those with equal attributes are one op, and so one message.
on_leaves(Name, Op, Term, Attrs) ->
    {Signature, Leaves} = tessera_tree:flatten(Term),
    Leaves =/= [] orelse bad(Name, [Term], "expected a tensor, a number or a container of them, got ~ts",
                             [tessera_error:show(Term)]),
    Values = [tessera_trace:value(Name, Leaf) || Leaf <- Leaves],
    tessera_tree:unflatten(leaves_of(Signature), in_one(Name, Op, [{Value, Attrs(Value)} || Value <- Values])).

in_one(Name, Op, [{_, Attrs} | _] = Pairs) ->
    case lists:all(fun({_, Own}) -> Own =:= Attrs end, Pairs) of
        true -> apply_op(Name, Op, [Value || {Value, _} <- Pairs], Attrs);
        false -> lists:append([apply_op(Name, Op, [Value], Own) || {Value, Own} <- Pairs])
    end.

apply_op(Name, Op, [_] = Values, Attrs) -> [tessera_trace:op(Name, Op, Values, Attrs)];
apply_op(Name, Op, Values, Attrs) -> tessera_trace:results(Name, Op, Values, Attrs).

%% The container's form without the types of its leaves (the op changes them); numbers become tensors.
leaves_of({map, Keys, Signatures}) -> {map, Keys, [leaves_of(S) || S <- Signatures]};
leaves_of({Kind, Signatures}) when Kind =:= tuple; Kind =:= list -> {Kind, [leaves_of(S) || S <- Signatures]};
leaves_of(Leaf) -> Leaf.

dim(Name, Args, #tessera{shape = Shape}, Dim) -> tessera_type:axis(Name, Args, Dim, tuple_size(Shape)).

%% ---- collectives

-spec all_reduce(term(), sum | mean | product | min | max | 'and' | 'or', axes()) -> term().
all_reduce(Term, mean, Axis) ->
    Count = float(group_size(axes(all_reduce, [Term, mean, Axis], Axis))),
    {Signature, Leaves} = tessera_tree:flatten(all_reduce(Term, sum, Axis)),
    tessera_tree:unflatten(Signature, [mean_of(Leaf, Count) || Leaf <- Leaves]);
all_reduce(Term, Operation, Axis) ->
    Args = [Term, Operation, Axis],
    Axes = axes(all_reduce, Args, Axis),
    on_leaves(all_reduce, operation(Args, Operation), Term, fun(_) -> Axes end).

mean_of(Leaf, Count) -> tessera_elementwise:divide(Leaf, Count).

operation(_, sum) -> all_reduce_sum;
operation(_, product) -> all_reduce_product;
operation(_, min) -> all_reduce_min;
operation(_, max) -> all_reduce_max;
operation(_, 'and') -> all_reduce_and;
operation(_, 'or') -> all_reduce_or;
operation(Args, Other) ->
    bad(all_reduce, Args, "the operation is ~ts, expected sum, mean, product, min, max, 'and' or 'or'", [tessera_error:show(Other)]).

-spec all_gather(term(), integer(), axes()) -> term().
all_gather(Term, Dim, Axis) -> along(all_gather, Term, Dim, Axis).

-spec reduce_scatter(term(), integer(), axes()) -> term().
reduce_scatter(Term, Dim, Axis) -> along(reduce_scatter, Term, Dim, Axis).

along(Name, Term, Dim, Axis) ->
    Args = [Term, Dim, Axis],
    Axes = axes(Name, Args, Axis),
    on_leaves(Name, Name, Term, fun(Value) -> {Axes, dim(Name, Args, Value, Dim)} end).

-spec all_to_all(term(), integer(), integer(), axes()) -> term().
all_to_all(Term, Split, Concat, Axis) ->
    Args = [Term, Split, Concat, Axis],
    Axes = axes(all_to_all, Args, Axis),
    on_leaves(all_to_all, all_to_all, Term,
              fun(Value) -> {Axes, dim(all_to_all, Args, Value, Split), dim(all_to_all, Args, Value, Concat)} end).

-spec permute(term(), [{non_neg_integer(), non_neg_integer()}], axes()) -> term().
permute(Term, Pairs, Axis) -> permute(permute, [Term, Pairs, Axis], Term, Pairs, Axis).

permute(Name, Args, Term, Pairs, Axis) ->
    Axes = axes(Name, Args, Axis),
    tessera_type:is_proper(Pairs) andalso lists:all(fun is_pair/1, Pairs) orelse
        bad(Name, Args, "expected a list of {From, To}, got ~ts", [tessera_error:show(Pairs)]),
    {From, To} = lists:unzip(Pairs),
    _ = members(Name, Args, From, Axes, "from"),
    _ = members(Name, Args, To, Axes, "to"),
    case length(Pairs) =< ?MAX_PAIRS of
        true -> permute_once(Name, Term, Pairs, Axes);
        false -> permute_long(Name, Term, lists:keysort(2, Pairs), Axes)
    end.

permute_once(Name, Term, Pairs, Axes) ->
    {From, To} = lists:unzip(Pairs),
    Attrs = {Axes, From, To},
    on_leaves(Name, collective_permute, Term, fun(_) -> Attrs end).

%% More pairs than an op lists are several ops. Each gives zeros to a partition that is not among its targets. Pairs are in the order of their targets,
%% so one comparison selects the op that has a partition as a target.
permute_long(Name, Term, Pairs, Axes) when length(Pairs) =< ?MAX_PAIRS -> permute_once(Name, Term, Pairs, Axes);
permute_long(Name, Term, Pairs, Axes) ->
    {First, Rest} = lists:split(?MAX_PAIRS, Pairs),
    {_, Last} = lists:last(First),
    Is = tessera_elementwise:less_equal(index(Axes), Last),
    {Signature, Firsts} = tessera_tree:flatten(permute_once(Name, Term, First, Axes)),
    {_, Rests} = tessera_tree:flatten(permute_long(Name, Term, Rest, Axes)),
    tessera_tree:unflatten(Signature, [tessera_elementwise:select(Is, A, B) || {A, B} <- lists:zip(Firsts, Rests)]).

is_pair({From, To}) -> is_integer(From) andalso is_integer(To);
is_pair(_) -> false.

members(Name, Args, Members, Axes, What) ->
    Count = group_size(Axes),
    [Member >= 0 andalso Member < Count orelse
         bad(Name, Args, "~b is no partition of an axis of size ~b", [Member, Count]) || Member <- Members],
    length(lists:usort(Members)) =:= length(Members) orelse
        bad(Name, Args, "two pairs go ~s one partition: ~w", [What, Members]),
    Members.

-spec shift(term(), integer(), axes()) -> term().
shift(Term, By, Axis) ->
    Args = [Term, By, Axis],
    Count = group_size(axes(shift, Args, Axis)),
    is_integer(By) orelse bad(shift, Args, "expected a number of places, got ~ts", [tessera_error:show(By)]),
    permute(shift, Args, Term, [{From, ((From + By) rem Count + Count) rem Count} || From <- lists:seq(0, Count - 1)], Axis).

-spec broadcast_from(term(), non_neg_integer(), axes()) -> term().
broadcast_from(Term, Root, Axis) ->
    Args = [Term, Root, Axis],
    Axes = axes(broadcast_from, Args, Axis),
    is_integer(Root) andalso Root >= 0 andalso Root < group_size(Axes) orelse
        bad(broadcast_from, Args, "the root is ~ts, expected a number below ~b", [tessera_error:show(Root), group_size(Axes)]),
    on_leaves(broadcast_from, collective_broadcast, Term, fun(_) -> {Axes, Root} end).

-spec barrier(term(), axes()) -> term().
barrier(Term, Axis) ->
    Axes = axes(barrier, [Term, Axis], Axis),
    on_leaves(barrier, barrier, Term, fun(_) -> Axes end).

-spec vary(term(), axes()) -> term().
vary(Term, Axis) ->
    Set = tessera_varying:set(axes(vary, [Term, Axis], Axis)),
    {Signature, Leaves} = tessera_tree:flatten(Term),
    tessera_tree:unflatten(Signature, [varied(tessera_trace:value(vary, Leaf), Set) || Leaf <- Leaves]).

varied(#tessera{shape = Shape} = Value, Set) -> tessera_varying:marked(tessera_trace:op(vary, reshape, [Value], Shape), Set).

%% ---- where a partition is

-spec axis_size(axes()) -> pos_integer().
axis_size(Axis) -> group_size(axes(axis_size, [Axis], Axis)).

-spec axis_index(axes()) -> tessera_type:tensor().
axis_index(Axis) -> index(axes(axis_index, [Axis], Axis)).

%% In row-major order over several axes.
index(Axes) ->
    Coordinates = tessera_error:check(axis_index, [], tessera_nif:coordinates(tessera_trace:current())),
    [First | Rest] = [{Axis, coordinate(Coordinates, Axis)} || Axis <- Axes],
    lists:foldl(fun({Axis, Own}, Index) -> tessera_elementwise:add(tessera_elementwise:multiply(Index, group_size([Axis])), Own) end,
                element(2, First), Rest).

coordinate(Coordinates, Axis) ->
    tessera_trace:op(axis_index, reshape, [tessera_ops:slice(Coordinates, [Axis], [1])], {}).

%% ---- for gradients

%% The sums over a set of axes, as one message.
-spec sum_over([tessera_type:tensor()], tessera_varying:set()) -> [tessera_type:tensor()].
sum_over([], _) -> [];
sum_over(Values, 0) -> Values;
sum_over(Values, Set) -> apply_op(grad, all_reduce_sum, Values, tessera_varying:axes_of(Set)).

%% The part of a partition along a dim.
-spec own_part(tessera_type:tensor(), non_neg_integer(), [non_neg_integer()]) -> tessera_type:tensor().
own_part(#tessera{shape = Shape} = Value, Dim, Axes) ->
    Size = element(Dim + 1, Shape) div group_size(Axes),
    Starts = [case I of Dim -> tessera_elementwise:multiply(index(Axes), Size); _ -> 0 end || I <- tessera_type:dims(tuple_size(Shape))],
    tessera_trace:op(grad, dynamic_slice, [Value | Starts], setelement(Dim + 1, Shape, Size)).

%% The value on one member of each group, and zeros on the others.
-spec on_member(tessera_type:tensor(), non_neg_integer(), [non_neg_integer()]) -> tessera_type:tensor().
on_member(Value, Member, Axes) -> tessera_elementwise:select(tessera_elementwise:equal(index(Axes), Member), Value, 0).

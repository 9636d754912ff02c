%% @doc Meshes of devices, shardings, and tensors in parts.
%%
%% A mesh is a grid of devices: `#{shape => {2, 2}}', with an optional `name' and optional names of its `axes'. A partition is a
%% point of the grid. Partitions are numbered from 0 in row-major order, and device I of a client holds partition I.
%%
%% A sharding says which axes of the mesh cut which dims of a tensor into equal parts: `#{0 => [0], 1 => [<<"columns">>]}'. An
%% axis is its number, or its name. A dim that several axes cut is cut by the first of them, and each part by the next. A
%% negative dim counts from the end. Over axes that it does not name a tensor is replicated; `#{}' is on every device as a whole.
%% {@link tessera:shard_jit/3} runs functions on parts.
%% ```
%% 1> tessera:open_client(mesh_devices, #{device_count => 2}).
%% ok
%% 2> Parts = tessera_mesh:shard(tessera:iota({4}), #{shape => {2}}, #{0 => [0]}, mesh_devices).
%% 3> [{tessera:device(Part), tessera:to_list(Part)} || Part <- Parts].
%% [{{mesh_devices,0},[0,1]},{{mesh_devices,1},[2,3]}]
%% 4> tessera:to_list(tessera_mesh:gather(Parts, #{shape => {2}}, #{0 => [0]})).
%% [0,1,2,3]
%% '''
-module(tessera_mesh).
-include("tessera.hrl").
-export([shard/3, shard/4, gather/3, results/2, draw/3, partitions/1]).
-export([sharding_constraint/2, all_reduce/3, all_gather/3, reduce_scatter/3, all_to_all/4, permute/3, shift/3, broadcast_from/3, barrier/2,
         vary/2, axis_index/1, axis_size/1]).
-export_type([mesh/0, axis/0, sharding/0]).

-type mesh() :: tessera_sharding:mesh().
%% `#{shape => {2, 2}, name => grid, axes => [rows, columns]}': the sizes of the axes. Without `axes' their names are `<<"axis_0">>',
%% `<<"axis_1">>', and so on. Names are atoms or binaries.
-type axis() :: tessera_sharding:axis().
%% The number of a mesh axis, or its name.
-type sharding() :: tessera_sharding:sharding().
%% `#{Dim => [Axis]}': the mesh axes that cut each dim.

%% ---- tensors in parts

%% @doc The parts of a tensor, by partition; part I is on device I of the client `host'. Every cut must divide its dim. Parts
%% that are equal share their memory.
-spec shard(tessera:tensor(), mesh(), sharding()) -> [tessera:tensor()].
shard(Tensor, Mesh, Sharding) -> shard(Tensor, Mesh, Sharding, tessera_nif:default_client()).

%% @doc The parts of a tensor, by partition; part I is on device I of that client, or on the rank of a cluster that has partition I. Every
%% cut must divide its dim. Parts that are equal share their memory.
-spec shard(tessera:tensor(), mesh(), sharding(), atom() | pid()) -> [tessera:tensor()].
shard(Tensor, Mesh, Sharding, Client) ->
    Args = [Tensor, Mesh, Sharding, Client],
    Checked = tessera_sharding:check(shard, Args, Mesh),
    ok = tessera_sharding:check_client(shard, Args, Checked, Client),
    #tessera{ref = Ref, type = Type, shape = Shape} = Here = tensor(shard, Args, Tensor),
    Cuts = tessera_sharding:cuts(shard, Args, Checked, Sharding, tuple_size(Shape)),
    tessera_sharding:even(tessera_sharding:sizes(Checked), Cuts, Shape) =:= Cuts orelse uneven(Args, Checked, Cuts, {Type, Shape}),
    Pieces = fun() -> pieces(Here, Checked, Cuts) end,
    tessera_error:check(shard, Args, tessera_platform:distribute(Client, Ref, tessera_sharding:sizes(Checked), Cuts, Pieces)).

%% The parts as slices, one for each position, which partitions share.
pieces(#tessera{shape = Shape} = Tensor, Mesh, Cuts) ->
    Part = tessera_sharding:part(tessera_sharding:sizes(Mesh), Cuts, Shape),
    Starts = [tessera_sharding:start(tessera_sharding:sizes(Mesh), Cuts, Part, Partition) || Partition <- tessera_type:dims(tessera_sharding:count(Mesh))],
    Pieces = maps:from_list([{Start, piece(Tensor, Start, Part)} || Start <- lists:usort(Starts)]),
    [maps:get(Start, Pieces) || Start <- Starts].

piece(#tessera{shape = Shape} = Tensor, _, Shape) -> Tensor;
piece(Tensor, Start, Part) -> tessera:slice(Tensor, Start, tuple_to_list(Part)).

%% @doc The tensor of these parts: one part of each partition, all with one type and shape. It is on the device of the first
%% part. Of parts that are replicas the first counts; that they are equal is not checked.
-spec gather([tessera:tensor()], mesh(), sharding()) -> tessera:tensor().
gather(Parts, Mesh, Sharding) ->
    Args = [Parts, Mesh, Sharding],
    Checked = tessera_sharding:check(gather, Args, Mesh),
    Count = tessera_sharding:count(Checked),
    tessera_type:is_proper(Parts) andalso length(Parts) =:= Count orelse
        raise(gather, Args, "expected a list of ~b parts, one for each partition of ~ts, got ~ts",
              [Count, tessera_sharding:format(Checked), tessera_error:show(Parts)]),
    [#tessera{ref = First, shape = Shape} | _] = Tensors = [tensor(gather, Args, Part) || Part <- Parts],
    Cuts = tessera_sharding:cuts(gather, Args, Checked, Sharding, tuple_size(Shape)),
    Whole = result(gather, Args, fun() -> join(Tensors, First, tessera_sharding:sizes(Checked), Cuts) end),
    back(Whole, hd(Parts)).

%% To the device of the first part, if the host cannot read that one.
back(Whole, #tessera{ref = Ref}) ->
    case tessera_nif:is_elsewhere(Ref) of
        true -> tessera:to_device(Whole, tessera_nif:device(Ref));
        false -> Whole
    end.

join(Tensors, First, Sizes, Cuts) ->
    case tessera_nif:device(First) of
        {error, _} = Error -> Error;
        Device -> tessera_nif:join([Ref || #tessera{ref = Ref} <- Tensors], Sizes, Cuts, Device)
    end.

%% @doc The shardings of the results of a function of {@link tessera:shard_jit/3} for these argument lists, which may
%% have templates: the form of its result, with a sharding instead of each tensor. {@link gather/3} takes these.
%% ```
%% 1> F = tessera:shard_jit(fun(X) -> {tessera:transpose(X), tessera:sum(X)} end, #{shape => {1}},
%% 1>                       #{input_shardings => [#{0 => [0]}]}).
%% 2> tessera_mesh:results(F, [[tessera:template(f32, {4, 4})]]).
%% {#{1 => [0]},#{}}
%% '''
-spec results(fun(([[term()]]) -> [term()]), [[term()]]) -> term().
results(F, Lists) -> tessera_shard:results(F, Lists).

%% A tensor of this node.
tensor(Name, Args, #tessera{ref = Ref} = Tensor) when is_reference(Ref) ->
    case tessera_remote:is_elsewhere(Tensor) of
        true -> tessera_error:check(Name, Args, tessera_remote:fetch(Tensor));
        false -> Tensor
    end;
tensor(Name, Args, #tessera{ref = [_ | _]}) ->
    tessera_error:raise(Name, Args, failed_precondition, "~s: a traced value has no parts yet", [Name]);
tensor(Name, Args, Other) -> raise(Name, Args, "expected a tensor, got ~ts", [tessera_error:show(Other)]).

result(Name, Args, Make) ->
    tessera_memory:result(Make(), Make, fun(Cause) -> tessera_error:raise(Name, Args, Cause) end).

-spec uneven([term()], tessera_sharding:checked(), tessera_sharding:cuts(), {tessera:type(), tessera:shape()}) -> no_return().
uneven(Args, Mesh, Cuts, {Type, Shape}) ->
    Sizes = tessera_sharding:sizes(Mesh),
    [{Dim, Parts} | _] = [{Dim, Parts} || {Dim, Axes} <- lists:sort(maps:to_list(tessera_sharding:sharding(Cuts))),
                                          Parts <- [product([lists:nth(Axis + 1, Sizes) || Axis <- Axes])],
                                          element(Dim + 1, Shape) rem Parts =/= 0],
    raise(shard, Args, "dim ~b of ~ts cannot be cut into ~b equal parts", [Dim, tessera_type:format(Type, Shape), Parts]).

-spec raise(atom(), [term()], io:format(), [term()]) -> no_return().
raise(Name, Args, Format, Values) ->
    tessera_error:raise(Name, Args, invalid_argument, atom_to_list(Name) ++ ": " ++ Format, Values).

product(Numbers) -> lists:foldl(fun erlang:'*'/2, 1, Numbers).

%% @doc The number of partitions of a mesh.
%% ```
%% 1> tessera_mesh:partitions(#{shape => {2, 3}}).
%% 6
%% '''
-spec partitions(mesh()) -> pos_integer().
partitions(Mesh) -> tessera_sharding:count(tessera_sharding:check(partitions, [Mesh], Mesh)).

%% ---- functions of parts

%% @doc In a function of {@link tessera:shard_jit/3}: its argument, cut as the sharding says (see {@link tessera_mesh}); `#{}' is
%% replicated. The function's results stay the same; the sharding holds also where another would send fewer bytes, and
%% values made of it tend to be cut like it. The argument is a tensor, a number or a container of them; all are cut in the
%% same way. Its gradient is cut like it. A cut must divide its dim. Outside such a function it is an error, since there is
%% no mesh.
%% ```
%% 1> tessera:open_client(two, #{device_count => 2}).
%% ok
%% 2> Outer = fun(X, Y) -> tessera_mesh:sharding_constraint(tessera:outer(X, Y), #{1 => [rows]}) end.
%% 3> F = tessera:shard_jit(Outer, #{shape => {2}, axes => [rows]}, #{input_shardings => [#{}, #{}], client => two}).
%% 4> Vectors = [tessera:tensor([1, 2]), tessera:tensor([3, 4])].
%% 5> [tessera:to_list(Part) || Part <- F([Vectors, Vectors])].
%% [[[3],[6]],[[4],[8]]]
%% '''
-spec sharding_constraint(Term, sharding()) -> Term.
sharding_constraint(Term, Sharding) -> tessera_constraint:constrain(Term, Sharding).

%% @doc In a function of {@link tessera:shard_map/4}: each element combined over the partitions along a mesh axis: a name, a
%% number or a list of names and numbers. All of them get the result. The first argument is a tensor, a number or a
%% container of them, sent as one message. `mean' gives floats; `and' and `or' are of the bits. Floats are combined in a
%% balanced tree, so the bits do not depend on threads; f16 and bf16 are summed in f32.
-spec all_reduce(Term, sum | mean | product | min | max | 'and' | 'or', axis() | [axis()]) -> Term.
all_reduce(Term, Operation, Axis) -> tessera_collective:all_reduce(Term, Operation, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the tensors of all partitions along a mesh axis, joined along a dim. Also of
%% a container.
-spec all_gather(Term, integer(), axis() | [axis()]) -> Term.
all_gather(Term, Dim, Axis) -> tessera_collective:all_gather(Term, Dim, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the sum over the partitions along a mesh axis. Each partition gets its
%% part of a dim. The number of partitions must divide the dim. Also of a container.
-spec reduce_scatter(Term, integer(), axis() | [axis()]) -> Term.
reduce_scatter(Term, Dim, Axis) -> tessera_collective:reduce_scatter(Term, Dim, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: cuts the dim Split into one part for each partition along a mesh axis, sends
%% each its part, and joins the received parts along the dim Concat. The number of partitions must divide the dim Split.
%% Also of a container.
-spec all_to_all(Term, integer(), integer(), axis() | [axis()]) -> Term.
all_to_all(Term, Split, Concat, Axis) -> tessera_collective:all_to_all(Term, Split, Concat, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: for each `{From, To}' the partition with index To along a mesh axis gets
%% what From has. A partition that receives nothing gets zeros. Also of a container.
-spec permute(Term, [{non_neg_integer(), non_neg_integer()}], axis() | [axis()]) -> Term.
permute(Term, Pairs, Axis) -> tessera_collective:permute(Term, Pairs, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the term of the partition By places before, in a ring along a mesh axis.
%% Also of a container.
-spec shift(Term, integer(), axis() | [axis()]) -> Term.
shift(Term, By, Axis) -> tessera_collective:shift(Term, By, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the term of the partition with index Root along a mesh axis. Also of a
%% container.
-spec broadcast_from(Term, non_neg_integer(), axis() | [axis()]) -> Term.
broadcast_from(Term, Root, Axis) -> tessera_collective:broadcast_from(Term, Root, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: its argument, but not before all partitions along a mesh axis have come here.
-spec barrier(Term, axis() | [axis()]) -> Term.
barrier(Term, Axis) -> tessera_collective:barrier(Term, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: its argument, marked as a value that may differ between the partitions
%% along a mesh axis. Gradients with respect to it are not summed over that axis.
-spec vary(Term, axis() | [axis()]) -> Term.
vary(Term, Axis) -> tessera_collective:vary(Term, Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the index of the partition along a mesh axis, a scalar s32; of several axes
%% in row-major order.
-spec axis_index(axis() | [axis()]) -> tessera:tensor().
axis_index(Axis) -> tessera_collective:axis_index(Axis).

%% @doc In a function of {@link tessera:shard_map/4}: the number of partitions along a mesh axis, or along several: an integer.
-spec axis_size(axis() | [axis()]) -> pos_integer().
axis_size(Axis) -> tessera_collective:axis_size(Axis).

%% ---- pictures

%% @doc A picture of a sharding for the terminal: which devices hold which part of a tensor, or of one of that shape. Rows are
%% parts of the last dim but one, columns parts of the last dim; tensors of higher rank have a picture for each part of the
%% dims before. Print it by `io:put_chars/1'.
%% ```
%% 1> io:put_chars(tessera_mesh:draw({4, 6}, #{shape => {2, 2}}, #{0 => [0]})).
%%        0..5
%%      +------+
%% 0..1 |  0 1 |
%%      +------+
%% 2..3 |  2 3 |
%%      +------+
%% '''
-spec draw(tessera:tensor() | tessera:shape(), mesh(), sharding()) -> iolist().
draw(Tensor, Mesh, Sharding) ->
    Args = [Tensor, Mesh, Sharding],
    Checked = tessera_sharding:check(draw, Args, Mesh),
    Shape = case Tensor of
                #tessera{shape = Own} -> Own;
                _ -> tessera_type:shape(draw, Args, Tensor)
            end,
    Cuts = tessera_sharding:cuts(draw, Args, Checked, Sharding, tuple_size(Shape)),
    tessera_sharding:even(tessera_sharding:sizes(Checked), Cuts, Shape) =:= Cuts orelse
        raise(draw, Args, "the sharding ~0p does not cut the shape ~0p into equal parts", [Sharding, Shape]),
    Holders = holders(tessera_sharding:sizes(Checked), Cuts, tuple_size(Shape)),
    {Leading, Rows, Columns} = ranges(tessera_sharding:sizes(Checked), Cuts, Shape),
    [picture(Outer, Rows, Columns, Holders) || Outer <- combinations(Leading)].

%% The partitions that hold the part at each position: one number for each dim.
holders(Sizes, Cuts, Rank) ->
    lists:foldr(fun(Partition, Map) ->
                        At = tessera_sharding:position(Sizes, Cuts, Rank, Partition),
                        maps:update_with(At, fun(Others) -> [Partition | Others] end, [Partition], Map)
                end, #{}, tessera_type:dims(product(Sizes))).

%% {Position, First, Last} of the parts of each dim: of the leading dims, and of the last two.
ranges(Sizes, Cuts, Shape) ->
    All = [parts(product([lists:nth(Axis + 1, Sizes) || {Axis, D} <- Cuts, D =:= Dim]), element(Dim + 1, Shape))
           || Dim <- tessera_type:dims(tuple_size(Shape))],
    case lists:reverse(All) of
        [] -> {[], none, none};
        [Columns] -> {[], none, Columns};
        [Columns, Rows | Leading] -> {lists:reverse(Leading), Rows, Columns}
    end.

parts(Count, Size) ->
    Each = Size div Count,
    [{I, I * Each, (I + 1) * Each - 1} || I <- tessera_type:dims(Count)].

combinations([Parts | Rest]) -> [[Part | Outer] || Part <- Parts, Outer <- combinations(Rest)];
combinations([]) -> [[]].

picture(Outer, Rows, Columns, Holders) ->
    Before = [I || {I, _, _} <- Outer],
    Table = [{label(Row), [cell(Before ++ at(Row) ++ at(Column), Holders) || Column <- listed(Columns)]}
             || Row <- listed(Rows)],
    Head = [label(Column) || Column <- listed(Columns)],
    [title(Outer), table(Head, Table)].

listed(none) -> [none];
listed(Parts) -> Parts.

at(none) -> [];
at({I, _, _}) -> [I].

label(none) -> "";
label({_, First, Last}) when Last < First -> "none";
label({_, Same, Same}) -> integer_to_list(Same);
label({_, First, Last}) -> integer_to_list(First) ++ ".." ++ integer_to_list(Last).

cell(At, Holders) -> lists:flatten(lists:join(" ", [integer_to_list(Partition) || Partition <- maps:get(At, Holders)])).

title([]) -> [];
title(Outer) -> [lists:join(", ", [["[", label(Part), "]"] || Part <- Outer]), $\n].

table(Head, Table) ->
    Side = lists:max([length(Label) || {Label, _} <- Table]),
    Width = lists:max([length(Text) || {_, Cells} <- [{"", Head} | Table], Text <- Cells]),
    Bar = [pad("", Side), " +", [[lists:duplicate(Width + 2, $-), $+] || _ <- Head], $\n],
    [head(Head, Side, Width), Bar, [[row(Label, Cells, Side, Width), Bar] || {Label, Cells} <- Table]].

head([""], _, _) -> [];
head(Head, Side, Width) -> [pad("", Side), "  ", lists:join("  ", [pad(Text, Width + 1) || Text <- Head]), $\n].

row(Label, Cells, Side, Width) -> [pad(Label, Side), " |", [[pad(Cell, Width + 1), " |"] || Cell <- Cells], $\n].

pad(Text, Width) -> [lists:duplicate(Width - length(Text), $\s), Text].

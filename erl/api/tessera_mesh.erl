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
-export([check/3, check_client/4, count/1, sizes/1, names/1, plain/1, cuts/5, axis/4, whole/3, part/3, start/4, even/3, sharding/1, is_sharding/1, format/1]).
-export_type([mesh/0, axis/0, sharding/0, checked/0, cuts/0]).

-define(MAX_AXES, 8).
-define(MAX_PARTITIONS, 256).
-define(MAX_NAME, 63).

-type mesh() :: #{shape := tuple(), name => binary() | atom(), axes => [binary() | atom()]}.
%% The sizes of the axes; their names are `<<"axis_0">>', `<<"axis_1">>', and so on, unless `axes' has others.
-type axis() :: non_neg_integer() | binary() | atom().
%% The number of a mesh axis, or its name.
-type sharding() :: #{integer() => [axis()]}.
%% The mesh axes that cut each dim.
-opaque checked() :: #{name := binary(), shape := tuple(), axes := [binary()]}.
-type cuts() :: [{Axis :: non_neg_integer(), Dim :: non_neg_integer()}].   % ordered by dim

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
    Checked = check(shard, Args, Mesh),
    Is = tessera_cluster:is_cluster(Client),
    ok = case Is of
             true -> tessera_cluster_run:check(Client, count(Checked), fun(Format, Values) -> raise(shard, Args, Format, Values) end);
             false -> check_client(shard, Args, Checked, Client)
         end,
    #tessera{type = Type, shape = Shape} = Here = tensor(shard, Args, Tensor),
    Cuts = cuts(shard, Args, Checked, Sharding, tuple_size(Shape)),
    even(sizes(Checked), Cuts, Shape) =:= Cuts orelse uneven(Args, Checked, Cuts, {Type, Shape}),
    case Is andalso tessera_cluster_joined:find(Client) of
        none -> tessera_cluster:put(Client, pieces(Here, Checked, Cuts));
        #{} = Joined -> tessera_cluster_joined:put(Joined, pieces(Here, Checked, Cuts));
        false -> put(Args, Here, Checked, Cuts)
    end.

%% On the devices of a client of this node. The host cannot write to the devices of all.
put([_, _, _, Client] = Args, #tessera{ref = Ref} = Here, Mesh, Cuts) ->
    case tessera_nif:client_waits(Client) of
        false -> result(shard, Args, fun() -> tessera_nif:cut(Ref, sizes(Mesh), Cuts, Client) end);
        true ->
            Pieces = pieces(Here, Mesh, Cuts),
            [tessera:to_device(Piece, {Client, Device}) || {Device, Piece} <- lists:zip(tessera_type:dims(length(Pieces)), Pieces)]
    end.

%% The same parts as slices, one for each position, which partitions share.
pieces(#tessera{shape = Shape} = Tensor, Mesh, Cuts) ->
    Part = part(sizes(Mesh), Cuts, Shape),
    Starts = [start(sizes(Mesh), Cuts, Part, Partition) || Partition <- tessera_type:dims(count(Mesh))],
    Pieces = maps:from_list([{Start, piece(Tensor, Start, Part)} || Start <- lists:usort(Starts)]),
    [maps:get(Start, Pieces) || Start <- Starts].

piece(#tessera{shape = Shape} = Tensor, _, Shape) -> Tensor;
piece(Tensor, Start, Part) -> tessera:slice(Tensor, Start, tuple_to_list(Part)).

%% @doc The tensor of these parts: one part of each partition, all with one type and shape. It is on the device of the first
%% part. Of parts that are replicas the first counts; that they are equal is not checked.
-spec gather([tessera:tensor()], mesh(), sharding()) -> tessera:tensor().
gather(Parts, Mesh, Sharding) ->
    Args = [Parts, Mesh, Sharding],
    Checked = check(gather, Args, Mesh),
    Count = count(Checked),
    tessera_type:is_proper(Parts) andalso length(Parts) =:= Count orelse
        raise(gather, Args, "expected a list of ~b parts, one for each partition of ~ts, got ~ts",
              [Count, format(Checked), tessera_error:show(Parts)]),
    [#tessera{ref = First, shape = Shape} | _] = Tensors = [tensor(gather, Args, Part) || Part <- Parts],
    Cuts = cuts(gather, Args, Checked, Sharding, tuple_size(Shape)),
    Whole = result(gather, Args, fun() -> join(Tensors, First, sizes(Checked), Cuts) end),
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

-spec uneven([term()], checked(), cuts(), {tessera:type(), tessera:shape()}) -> no_return().
uneven(Args, Mesh, Cuts, {Type, Shape}) ->
    Sizes = sizes(Mesh),
    [{Dim, Parts} | _] = [{Dim, Parts} || {Dim, Axes} <- lists:sort(maps:to_list(sharding(Cuts))),
                                          Parts <- [product([lists:nth(Axis + 1, Sizes) || Axis <- Axes])],
                                          element(Dim + 1, Shape) rem Parts =/= 0],
    raise(shard, Args, "dim ~b of ~ts cannot be cut into ~b equal parts", [Dim, tessera_type:format(Type, Shape), Parts]).

%% ---- checks; errors name the API function Name with its arguments Args

%% @private
-spec check(atom(), [term()], term()) -> checked().
check(Name, Args, #{shape := Shape} = Mesh) ->
    case maps:keys(maps:without([name, shape, axes], Mesh)) of
        [] -> ok;
        Unknown -> raise(Name, Args, "a mesh has name, shape and axes, got also ~0p", [Unknown])
    end,
    ok = check_shape(Name, Args, Shape),
    #{name => name(Name, Args, maps:get(name, Mesh, <<"mesh">>)), shape => Shape,
      axes => axes(Name, Args, maps:get(axes, Mesh, undefined), tuple_size(Shape))};
check(Name, Args, Other) ->
    raise(Name, Args, "expected a mesh such as #{shape => {2,2}}, got ~ts", [tessera_error:show(Other)]).

check_shape(Name, Args, Shape) when is_tuple(Shape), tuple_size(Shape) > 0, tuple_size(Shape) =< ?MAX_AXES ->
    Sizes = tuple_to_list(Shape),
    lists:all(fun(Size) -> is_integer(Size) andalso Size > 0 end, Sizes) orelse
        raise(Name, Args, "the mesh has the shape ~0p, expected sizes of at least 1", [Shape]),
    product(Sizes) =< ?MAX_PARTITIONS orelse
        raise(Name, Args, "the mesh ~0p has more than ~b partitions", [Shape, ?MAX_PARTITIONS]),
    ok;
check_shape(Name, Args, Shape) ->
    raise(Name, Args, "the mesh has the shape ~0p, expected a tuple of 1 to ~b sizes", [Shape, ?MAX_AXES]).

name(_, _, Name) when is_binary(Name), byte_size(Name) > 0, byte_size(Name) =< ?MAX_NAME -> Name;
name(Name, Args, Given) when is_atom(Given) -> name(Name, Args, atom_to_binary(Given, utf8));
name(Name, Args, Other) ->
    raise(Name, Args, "the name of a mesh or axis is ~ts, expected an atom or a binary of 1 to ~b bytes",
          [tessera_error:show(Other), ?MAX_NAME]).

axes(_, _, undefined, Rank) -> [<<"axis_", (integer_to_binary(I))/binary>> || I <- tessera_type:dims(Rank)];
axes(Name, Args, Names, Rank) ->
    tessera_type:is_proper(Names) andalso length(Names) =:= Rank orelse
        raise(Name, Args, "axes is ~ts, expected the names of ~b axes", [tessera_error:show(Names), Rank]),
    Axes = [name(Name, Args, Axis) || Axis <- Names],
    length(lists:usort(Axes)) =:= Rank orelse raise(Name, Args, "two axes of the mesh have one name: ~0p", [Axes]),
    Axes.

%% @private Whether the client has a device for each partition.
-spec check_client(atom(), [term()], checked(), term()) -> ok.
check_client(Name, Args, Mesh, Client) when is_atom(Client) ->
    ok = tessera_client:ensure_configured(Client, count(Mesh)),
    case {count(Mesh), tessera_nif:client_devices(Client)} of
        {_, 0} -> raise(Name, Args, "no client ~0p is open", [Client]);
        {Count, Devices} when Count =< Devices -> ok;
        {Count, Devices} ->
            raise(Name, Args, "~ts has ~b partitions, client ~0p has ~b device~s (tessera:open_client(~0p, #{device_count => ~b}) "
                  "adds devices, and so does ~ts)", [format(Mesh), Count, Client, Devices, plural(Devices), Client, Count,
                                                     setting(Client)])
    end;
check_client(Name, Args, _, Other) -> raise(Name, Args, "client is ~ts, expected an atom", [tessera_error:show(Other)]).

plural(1) -> "";
plural(_) -> "s".

setting(host) -> "the application's setting host_devices or TESSERA_HOST_DEVICES";
setting(_) -> "the application's setting clients".

%% @private The cuts of a tensor of that rank.
-spec cuts(atom(), [term()], checked(), term(), non_neg_integer()) -> cuts().
cuts(Name, Args, Mesh, Sharding, Rank) when is_map(Sharding) ->
    Dims = [{dim(Name, Args, Dim, Rank), Axes} || {Dim, Axes} <- maps:to_list(Sharding)],
    distinct(Name, Args, [Dim || {Dim, _} <- Dims], "dim ~b occurs twice in a sharding"),
    Cuts = [{axis(Name, Args, Mesh, Axis), Dim} || {Dim, Axes} <- lists:sort(Dims), Axis <- list(Name, Args, Axes)],
    distinct(Name, Args, [Axis || {Axis, _} <- Cuts], "axis ~b was used twice in the same sharding"),
    Cuts;
cuts(Name, Args, _, Other, _) ->
    raise(Name, Args, "expected a sharding such as #{0 => [0]}, got ~ts", [tessera_error:show(Other)]).

dim(_, _, Dim, Rank) when is_integer(Dim), Dim >= 0, Dim < Rank -> Dim;
dim(_, _, Dim, Rank) when is_integer(Dim), Dim < 0, Dim >= -Rank -> Dim + Rank;
dim(Name, Args, Dim, Rank) -> raise(Name, Args, "a sharding cuts dim ~ts of a tensor of rank ~b", [tessera_error:show(Dim), Rank]).

list(Name, Args, Axes) ->
    tessera_type:is_proper(Axes) orelse
        raise(Name, Args, "a sharding cuts a dim by ~ts, expected a list of mesh axes", [tessera_error:show(Axes)]),
    Axes.

%% @private The number of an axis.
-spec axis(atom(), [term()], checked(), term()) -> non_neg_integer().
axis(Name, Args, #{axes := Axes}, Axis) when is_integer(Axis) ->
    Axis >= 0 andalso Axis < length(Axes) orelse
        raise(Name, Args, "axis ~b is not valid for mesh with ~b axes", [Axis, length(Axes)]),
    Axis;
axis(Name, Args, #{axes := Axes}, Axis) when is_binary(Axis); is_atom(Axis) ->
    case index(name(Name, Args, Axis), Axes, 0) of
        none -> raise(Name, Args, "the mesh has no axis ~ts, only ~0p", [tessera_error:show(Axis), Axes]);
        Index -> Index
    end;
axis(Name, Args, _, Axis) ->
    raise(Name, Args, "a mesh axis is ~ts, expected its number or its name", [tessera_error:show(Axis)]).

index(_, [], _) -> none;
index(Name, [Name | _], I) -> I;
index(Name, [_ | Names], I) -> index(Name, Names, I + 1).

distinct(Name, Args, Numbers, Format) ->
    case Numbers -- lists:usort(Numbers) of
        [] -> ok;
        [Twice | _] -> raise(Name, Args, Format, [Twice])
    end.

-spec raise(atom(), [term()], io:format(), [term()]) -> no_return().
raise(Name, Args, Format, Values) ->
    tessera_error:raise(Name, Args, invalid_argument, atom_to_list(Name) ++ ": " ++ Format, Values).

%% ---- shapes

%% @doc The number of partitions of a mesh.
%% ```
%% 1> tessera_mesh:partitions(#{shape => {2, 3}}).
%% 6
%% '''
-spec partitions(mesh()) -> pos_integer().
partitions(Mesh) -> count(check(partitions, [Mesh], Mesh)).

%% @private The same for a checked mesh.
-spec count(checked()) -> pos_integer().
count(#{shape := Shape}) -> product(tuple_to_list(Shape)).

%% @private
-spec sizes(checked()) -> [pos_integer()].
sizes(#{shape := Shape}) -> tuple_to_list(Shape).

%% @private The mesh's name, and its axes' names.
-spec names(checked()) -> [binary()].
names(#{name := Name, axes := Axes}) -> [Name | Axes].

%% @private The mesh as users write it.
-spec plain(checked()) -> mesh().
plain(Checked) -> Checked.

%% @private The shape of one part.
-spec part([pos_integer()], cuts(), tessera:shape()) -> tessera:shape().
part(Sizes, Cuts, Whole) ->
    lists:foldl(fun({Axis, Dim}, Shape) ->
                        setelement(Dim + 1, Shape, element(Dim + 1, Shape) div lists:nth(Axis + 1, Sizes))
                end, Whole, Cuts).

%% @private Where the part of a partition begins, in parts of a tensor of that shape each.
-spec start([pos_integer()], cuts(), tessera:shape(), non_neg_integer()) -> [non_neg_integer()].
start(Sizes, Cuts, Part, Partition) ->
    At = position(coordinates(Partition, lists:reverse(Sizes), []), Sizes, Cuts, tuple_size(Part)),
    [I * Length || {I, Length} <- lists:zip(At, tuple_to_list(Part))].

%% @private The whole shape, if Part is the shape of one part.
-spec whole([pos_integer()], cuts(), tessera:shape()) -> tessera:shape().
whole(Sizes, Cuts, Part) ->
    lists:foldl(fun({Axis, Dim}, Shape) ->
                        setelement(Dim + 1, Shape, element(Dim + 1, Shape) * lists:nth(Axis + 1, Sizes))
                end, Part, Cuts).

%% @private The cuts that divide the shape: of each dim the longest prefix of whole axes.
-spec even([pos_integer()], cuts(), tessera:shape()) -> cuts().
even(Sizes, Cuts, Shape) ->
    lists:append([prefix([{Axis, Dim} || {Axis, D} <- Cuts, D =:= Dim], Sizes, element(Dim + 1, Shape))
                  || Dim <- lists:usort([Dim || {_, Dim} <- Cuts])]).

prefix([{Axis, _} = Cut | Cuts], Sizes, Left) ->
    case lists:nth(Axis + 1, Sizes) of
        Size when Left rem Size =:= 0 -> [Cut | prefix(Cuts, Sizes, Left div Size)];
        _ -> []
    end;
prefix([], _, _) -> [].

%% @private
-spec sharding(cuts()) -> #{non_neg_integer() => [non_neg_integer()]}.
sharding(Cuts) ->
    lists:foldr(fun({Axis, Dim}, Map) -> maps:update_with(Dim, fun(Axes) -> [Axis | Axes] end, [Axis], Map) end, #{}, Cuts).

%% @private Whether the term is a sharding, and not a container of some.
-spec is_sharding(term()) -> boolean().
is_sharding(Term) when is_map(Term) -> lists:all(fun is_axes/1, maps:values(Term));
is_sharding(_) -> false.

is_axes(Term) ->
    tessera_type:is_proper(Term) andalso
        lists:all(fun(Axis) -> is_integer(Axis) orelse is_binary(Axis) orelse is_atom(Axis) end, Term).

product(Numbers) -> lists:foldl(fun erlang:'*'/2, 1, Numbers).

%% @private
-spec format(checked()) -> iolist().
format(#{name := Name, shape := Shape}) -> io_lib:format("mesh ~ts ~0p", [Name, Shape]).

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
    Checked = check(draw, Args, Mesh),
    Shape = case Tensor of
                #tessera{shape = Own} -> Own;
                _ -> tessera_type:shape(draw, Args, Tensor)
            end,
    Cuts = cuts(draw, Args, Checked, Sharding, tuple_size(Shape)),
    even(sizes(Checked), Cuts, Shape) =:= Cuts orelse
        raise(draw, Args, "the sharding ~0p does not cut the shape ~0p into equal parts", [Sharding, Shape]),
    Holders = holders(sizes(Checked), Cuts, tuple_size(Shape)),
    {Leading, Rows, Columns} = ranges(sizes(Checked), Cuts, Shape),
    [picture(Outer, Rows, Columns, Holders) || Outer <- combinations(Leading)].

%% The partitions that hold the part at each position: one number for each dim.
holders(Sizes, Cuts, Rank) ->
    lists:foldr(fun(Partition, Map) ->
                        At = position(coordinates(Partition, lists:reverse(Sizes), []), Sizes, Cuts, Rank),
                        maps:update_with(At, fun(Others) -> [Partition | Others] end, [Partition], Map)
                end, #{}, tessera_type:dims(product(Sizes))).

coordinates(_, [], Coordinates) -> Coordinates;
coordinates(Partition, [Size | Sizes], Coordinates) ->
    coordinates(Partition div Size, Sizes, [Partition rem Size | Coordinates]).

position(Coordinates, Sizes, Cuts, Rank) ->
    [lists:foldl(fun({Axis, D}, At) when D =:= Dim -> At * lists:nth(Axis + 1, Sizes) + lists:nth(Axis + 1, Coordinates);
                    (_, At) -> At
                 end, 0, Cuts) || Dim <- tessera_type:dims(Rank)].

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

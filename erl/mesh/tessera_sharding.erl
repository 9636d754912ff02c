%% @private Meshes and shardings as modules of meshes use them: checked, with cuts of dims in place of a sharding's map, and the shapes of
%% parts. tessera_mesh has the terms that users write.
-module(tessera_sharding).
-export([check/3, check_client/4, count/1, sizes/1, names/1, plain/1, cuts/5, axis/4, whole/3, part/3, start/4, position/4, even/3, sharding/1,
         is_sharding/1, format/1]).
-export_type([mesh/0, axis/0, sharding/0, checked/0, cuts/0]).

-define(MAX_AXES, 8).
%% TS_MAX_PARTITIONS of c_src/ir/mesh.h.
-define(MAX_PARTITIONS, 32768).
-define(MAX_NAME, 63).

-type mesh() :: #{shape := tuple(), name => binary() | atom(), axes => [binary() | atom()]}.
-type axis() :: non_neg_integer() | binary() | atom().
-type sharding() :: #{integer() => [axis()]}.
-opaque checked() :: #{name := binary(), shape := tuple(), axes := [binary()]}.
-type cuts() :: [{Axis :: non_neg_integer(), Dim :: non_neg_integer()}].   % ordered by dim

%% ---- checks; errors name the API function Name with its arguments Args

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

%% Whether the client has a device for each partition.
-spec check_client(atom(), [term()], checked(), term()) -> ok.
check_client(Name, Args, Mesh, Client) when is_atom(Client); is_pid(Client) ->
    Count = count(Mesh),
    case tessera_platform:room(Client, Count) of
        ok -> ok;
        {refused, Format, Values} -> raise(Name, Args, Format, Values);
        {devices, 0} -> raise(Name, Args, "no client ~0p is open", [Client]);
        {devices, Devices} ->
            raise(Name, Args, "~ts has ~b partitions, client ~0p has ~b device~s (tessera:open_client(~0p, #{device_count => ~b}) "
                  "adds devices, and so does ~ts)", [format(Mesh), Count, Client, Devices, plural(Devices), Client, Count,
                                                     setting(Client)])
    end;
check_client(Name, Args, _, Other) -> raise(Name, Args, "client is ~ts, expected an atom", [tessera_error:show(Other)]).

plural(1) -> "";
plural(_) -> "s".

setting(host) -> "the application's setting host_devices or TESSERA_HOST_DEVICES";
setting(_) -> "the application's setting clients".

%% The cuts of a tensor of that rank.
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

%% The number of an axis.
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

%% The number of partitions.
-spec count(checked()) -> pos_integer().
count(#{shape := Shape}) -> product(tuple_to_list(Shape)).

-spec sizes(checked()) -> [pos_integer()].
sizes(#{shape := Shape}) -> tuple_to_list(Shape).

%% The mesh's name, and its axes' names.
-spec names(checked()) -> [binary()].
names(#{name := Name, axes := Axes}) -> [Name | Axes].

%% The mesh as users write it.
-spec plain(checked()) -> mesh().
plain(Checked) -> Checked.

%% The shape of one part.
-spec part([pos_integer()], cuts(), tessera_type:shape()) -> tessera_type:shape().
part(Sizes, Cuts, Whole) ->
    lists:foldl(fun({Axis, Dim}, Shape) ->
                        setelement(Dim + 1, Shape, element(Dim + 1, Shape) div lists:nth(Axis + 1, Sizes))
                end, Whole, Cuts).

%% Where the part of a partition begins, in parts of a tensor of that shape each.
-spec start([pos_integer()], cuts(), tessera_type:shape(), non_neg_integer()) -> [non_neg_integer()].
start(Sizes, Cuts, Part, Partition) ->
    At = position(Sizes, Cuts, tuple_size(Part), Partition),
    [I * Length || {I, Length} <- lists:zip(At, tuple_to_list(Part))].

%% Which part of a tensor of that rank a partition has: the part's position along each dim.
-spec position([pos_integer()], cuts(), non_neg_integer(), non_neg_integer()) -> [non_neg_integer()].
position(Sizes, Cuts, Rank, Partition) ->
    Coordinates = coordinates(Partition, lists:reverse(Sizes), []),
    [lists:foldl(fun({Axis, D}, At) when D =:= Dim -> At * lists:nth(Axis + 1, Sizes) + lists:nth(Axis + 1, Coordinates);
                    (_, At) -> At
                 end, 0, Cuts) || Dim <- tessera_type:dims(Rank)].

coordinates(_, [], Coordinates) -> Coordinates;
coordinates(Partition, [Size | Sizes], Coordinates) ->
    coordinates(Partition div Size, Sizes, [Partition rem Size | Coordinates]).

%% The whole shape, if Part is the shape of one part.
-spec whole([pos_integer()], cuts(), tessera_type:shape()) -> tessera_type:shape().
whole(Sizes, Cuts, Part) ->
    lists:foldl(fun({Axis, Dim}, Shape) ->
                        setelement(Dim + 1, Shape, element(Dim + 1, Shape) * lists:nth(Axis + 1, Sizes))
                end, Part, Cuts).

%% The cuts that divide the shape: of each dim the longest prefix of whole axes.
-spec even([pos_integer()], cuts(), tessera_type:shape()) -> cuts().
even(Sizes, Cuts, Shape) ->
    lists:append([prefix([{Axis, Dim} || {Axis, D} <- Cuts, D =:= Dim], Sizes, element(Dim + 1, Shape))
                  || Dim <- lists:usort([Dim || {_, Dim} <- Cuts])]).

prefix([{Axis, _} = Cut | Cuts], Sizes, Left) ->
    case lists:nth(Axis + 1, Sizes) of
        Size when Left rem Size =:= 0 -> [Cut | prefix(Cuts, Sizes, Left div Size)];
        _ -> []
    end;
prefix([], _, _) -> [].

-spec sharding(cuts()) -> #{non_neg_integer() => [non_neg_integer()]}.
sharding(Cuts) ->
    lists:foldr(fun({Axis, Dim}, Map) -> maps:update_with(Dim, fun(Axes) -> [Axis | Axes] end, [Axis], Map) end, #{}, Cuts).

%% Whether the term is a sharding, and not a container of some.
-spec is_sharding(term()) -> boolean().
is_sharding(Term) when is_map(Term) -> lists:all(fun is_axes/1, maps:values(Term));
is_sharding(_) -> false.

is_axes(Term) ->
    tessera_type:is_proper(Term) andalso
        lists:all(fun(Axis) -> is_integer(Axis) orelse is_binary(Axis) orelse is_atom(Axis) end, Term).

product(Numbers) -> lists:foldl(fun erlang:'*'/2, 1, Numbers).

-spec format(checked()) -> iolist().
format(#{name := Name, shape := Shape}) -> io_lib:format("mesh ~ts ~0p", [Name, Shape]).

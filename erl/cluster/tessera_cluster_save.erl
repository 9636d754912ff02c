%% @private Saving and loading tensors of a cluster: the driver's part, and the plans that also serve ranks that all save or load
%% (tessera_cluster_spmd). Ranks write and read files (tessera_cluster_files).
-module(tessera_cluster_save).
-include("tessera.hrl").
-export([save/4, load/3]).
-export([plan/3, keyed/3, name/2, shared_out/2, finish/4, opened/2, fits/1, boxes/4, boxes_of/1, container/3]).
-export_type([plan/0, key/0, keyed/0]).

%% The plan of a save: the form of a partition's container, the sizes of the mesh, the cuts of each leaf, and of each tensor the name and, if
%% the mesh cuts it, the shape of a part.
-type plan() :: #{signature := tessera_tree:signature(), sizes := none | [pos_integer()], cuts := [tessera_sharding:cuts()],
                  names := #{non_neg_integer() => {binary(), whole | tessera:shape()}}}.
%% Equal for equal parts: the number of the leaf, and its start in the whole tensor. Without a mesh the parts of all partitions differ.
-type key() :: {non_neg_integer(), {partition, non_neg_integer()} | [non_neg_integer()]}.
%% The leaves of a partition: tensors (or the atom), and numbers.
-type keyed() :: [{key(), tessera:tensor() | tensor | term()}].
%% Of a partition that is loaded.
-type leaf() :: {number, term()} | {box, tessera_cluster_files:box()}.
-define(IS_TENSOR(Leaf), (Leaf =:= tensor orelse is_record(Leaf, tessera))).

%% A container for each partition. With a mesh and shardings, equal parts are saved once, and can be loaded in another mesh.
-spec save(tessera_cluster_state:cluster(), file:name_all(), [term()], none | {tessera_mesh:mesh(), term()}) -> ok.
save(Cluster, Given, Parts, Layout) ->
    Path = tessera_cluster_files:absolute(save, Given),
    {Plan, Leaves} = plan(Parts, Layout, 1),
    #{links := Links} = Connections = tessera_cluster_state:connections(Cluster),
    Ranks = tuple_size(Links),
    length(Parts) rem Ranks =:= 0 orelse
        refuse("save: got ~b containers, and the cluster has ~b ranks: a container for each partition of a mesh", [length(Parts), Ranks]),
    Save = crypto:strong_rand_bytes(16),
    Keyed = keyed(Plan, Leaves, 0),
    Shared = shared_out(Ranks, Keyed),
    Each = fun(F, Args) -> written(tessera_cluster_values:apply_all(Connections, F, Args), Path, #{save => Save, files => Ranks}) end,
    Written = Each(fun tessera_cluster_files:write/2, [{Path, Save, [{name(Plan, Key), Tensor} || {Key, Tensor} <- Own]} || Own <- Shared]),
    _ = Each(fun tessera_cluster_files:check/2, [{Path, Save} || _ <- Shared]),
    finish({Path, Save}, Plan, Keyed, lists:zip(Shared, Written)).

%% If one rank fails, the files of the others are removed.
written({ok, Pieces}, _, _) -> Pieces;
written({error, Error}, Path, Files) ->
    ok = tessera_cluster_files:remove(Path, Files),
    tessera_cluster_error:raise(Error).

%% Writes the index, when each rank has written its share, and removes the files of an earlier save and of interrupted ones;
%% or the files of this save, if there is no index.
-spec finish({file:name_all(), binary()}, plan(), [keyed()], [{Share :: keyed(), [tessera_cluster_files:piece()]}]) -> ok.
finish({Path, Save}, Plan, Keyed, Written) ->
    Where = maps:from_list([{Key, Piece} || {Own, Pieces} <- Written, {{Key, _}, Piece} <- lists:zip(Own, Pieces)]),
    Ranks = length(Written),
    Old = earlier(Path),
    Files = [{name(Plan, Key), File} || {Key, {File, _, _, _}} <- lists:sort(maps:to_list(Where))],
    try ok = tessera_cluster_files:write_index(Path, index(Save, Ranks, Plan, pieces(Keyed, Where)), Files, wholes(Plan))
    catch Class:Reason:Trace ->
            ok = tessera_cluster_files:remove(Path, #{save => Save, files => Ranks}),
            erlang:raise(Class, Reason, Trace)
    end,
    _ = [tessera_cluster_files:remove(Path, Index) || Index <- Old],
    tessera_cluster_files:sweep(Path, Save, Ranks).

%% The plan and the leaves of a save, from the containers of all partitions, or of one rank's partitions among `Ranks'
%% ranks.
-spec plan([term()], none | {tessera_mesh:mesh(), term()}, pos_integer()) -> {plan(), [[tessera:tensor() | term()]]}.
plan(Parts, Layout, Ranks) ->
    {Signature, Leaves} = flattened(Parts),
    {Sizes, Cuts} = layout(Layout, Signature, length(Parts) * Ranks),
    Names = names(Signature, hd(Leaves)),
    Named = [{I, {Name, part(Sizes, Own, Shape)}}
             || {I, {{_, Shape}, Own}} <- numbered(lists:zip(tessera_tree:types(Signature), Cuts)), #{I := Name} <- [Names]],
    {#{signature => Signature, sizes => Sizes, cuts => Cuts, names => maps:from_list(Named)}, Leaves}.

part(none, _, _) -> whole;
part(Sizes, Cuts, Part) ->
    case tessera_sharding:whole(Sizes, Cuts, Part) of
        Part -> whole;
        _ -> Part
    end.

%% The path to each tensor in the container, as tessera_io names it; or its number, where a key of a map has no text.
names(Signature, Leaves) ->
    try paths(Signature, Leaves)
    catch throw:_ -> maps:from_list([{I, integer_to_binary(I)} || {I, _} <- numbered(Leaves)])
    end.

paths(Signature, Leaves) ->
    Marked = [case Leaf of
                  #tessera{} -> Leaf#tessera{shape = {I}};
                  Number -> Number
              end || {I, Leaf} <- numbered(Leaves)],
    maps:from_list([{I, Name} || {Name, #tessera{shape = {I}}} <- tessera_io_container:names(tessera_tree:unflatten(Signature, Marked))]).

%% The name of a tensor in files: of a part with its slice, without a mesh with its partition.
-spec name(plan(), key()) -> binary().
name(#{names := Names}, {I, Where}) ->
    case {maps:get(I, Names), Where} of
        {{Name, _}, {partition, P}} -> iolist_to_binary([Name, $@, integer_to_binary(P)]);
        {{Name, whole}, _} -> Name;
        {{Name, Part}, Start} ->
            Slices = [[integer_to_binary(From), $:, integer_to_binary(From + Size)] || {From, Size} <- lists:zip(Start, tuple_to_list(Part))],
            iolist_to_binary([Name, $[, lists:join($,, Slices), $]])
    end.

flattened(Parts) ->
    tessera_type:is_proper(Parts) andalso Parts =/= [] orelse
        refuse("save: expected a list with a container for each partition, got ~ts", [tessera_error:show(Parts)]),
    [{Signature, _} | Rest] = Flat = [tessera_tree:flatten(Part) || Part <- Parts],
    [refuse("save: the containers of two partitions differ in form, types or shapes", []) || {Other, _} <- Rest, Other =/= Signature],
    {Signature, [Leaves || {_, Leaves} <- Flat]}.

%% The sizes of the mesh, and the cuts of each leaf.
layout(none, Signature, _) -> {none, [[] || _ <- tessera_tree:types(Signature)]};
layout({Mesh, Shardings}, Signature, Count) ->
    Checked = tessera_sharding:check(save, [], Mesh),
    tessera_sharding:count(Checked) =:= Count orelse
        refuse("save: got ~b containers, expected one for each partition of ~ts", [Count, tessera_sharding:format(Checked)]),
    {tessera_sharding:sizes(Checked), tessera_shard:leaf_cuts({save, Checked}, result, Shardings, Signature)}.

%% Each leaf of each partition with its key; the first partition has the number First.
-spec keyed(plan(), [[term()]], non_neg_integer()) -> [keyed()].
keyed(#{signature := Signature, sizes := Sizes, cuts := Cuts}, Leaves, First) ->
    Types = tessera_tree:types(Signature),
    [[{{I, start(Sizes, Own, Shape, First + P)}, Leaf} || {I, {Leaf, Own, {_, Shape}}} <- numbered(lists:zip3(List, Cuts, Types))]
     || {P, List} <- numbered(Leaves)].

start(none, _, _, P) -> {partition, P};
start(Sizes, Cuts, Shape, P) -> tessera_sharding:start(Sizes, Cuts, Shape, P).

%% The tensors that each rank writes: each once, by the first rank that has it.
-spec shared_out(pos_integer(), [keyed()]) -> [keyed()].
shared_out(Ranks, Keyed) ->
    Each = length(Keyed) div Ranks,
    All = [{P div Each, Own} || {P, List} <- numbered(Keyed), {_, Leaf} = Own <- List, ?IS_TENSOR(Leaf)],
    {Kept, _} = lists:foldl(fun({_, {Key, _}} = Own, {Kept, Seen}) ->
                                    case Seen of
                                        #{Key := _} -> {Kept, Seen};
                                        #{} -> {[Own | Kept], Seen#{Key => true}}
                                    end
                            end, {[], #{}}, All),
    [[Own || {R, Own} <- lists:reverse(Kept), R =:= Rank] || Rank <- lists:seq(0, Ranks - 1)].

numbered(List) -> lists:zip(lists:seq(0, length(List) - 1), List).

pieces(Keyed, Where) ->
    [[case ?IS_TENSOR(Leaf) of
          true -> maps:get(Key, Where);
          false -> {number, Leaf}
      end || {Key, Leaf} <- List] || List <- Keyed].

index(Save, Ranks, #{signature := Signature, sizes := Sizes, cuts := Cuts}, Pieces) ->
    #{save => Save, endian => tessera_cluster_files:endian(), files => Ranks, signature => Signature, mesh => Sizes, parts => Pieces,
      leaves => [{Type, Shape, Own} || {{Type, Shape}, Own} <- lists:zip(tessera_tree:types(Signature), Cuts)]}.

%% The tensors that are saved in parts.
wholes(#{sizes := none}) -> [];
wholes(#{signature := Signature, sizes := Sizes, cuts := Cuts, names := Names}) ->
    [{Name, Type, tessera_sharding:whole(Sizes, Own, Part)}
     || {I, {{Type, Part}, [_ | _] = Own}} <- numbered(lists:zip(tessera_tree:types(Signature), Cuts)), #{I := {Name, _}} <- [Names]].

%% The index that is replaced.
earlier(Path) ->
    try [tessera_cluster_files:read_index(Path)]
    catch error:_ -> []
    end.

%% ---- loading

%% The containers by partition, on the ranks of a cluster that may have another number of them; in the mesh of the save, or another
%% one with as many axes.
-spec load(tessera_cluster_state:cluster(), file:name_all(), none | tessera_mesh:mesh()) -> [term()].
load(Cluster, Given, Mesh) ->
    Path = tessera_cluster_files:absolute(load, Given),
    {#{signature := Signature, save := Save} = Index, Sizes, Count} = opened(Path, Mesh),
    ok = fits(tessera_cluster_run:room(Cluster, Count)),
    #{links := Links} = Connections = tessera_cluster_state:connections(Cluster),
    Each = Count div tuple_size(Links),
    Boxes = boxes(Path, Index, Sizes, lists:seq(0, Count - 1)),
    Plans = [boxes_of(lists:sublist(Boxes, Rank * Each + 1, Each)) || Rank <- lists:seq(0, tuple_size(Links) - 1)],
    Read = raised(tessera_cluster_values:apply_all(Connections, fun tessera_cluster_files:read/2, [{Save, Plan} || Plan <- Plans])),
    Made = [maps:from_list(lists:zip(Plan, Tensors)) || {Plan, Tensors} <- lists:zip(Plans, Read)],
    [container(Signature, List, lists:nth(P div Each + 1, Made)) || {P, List} <- numbered(Boxes)].

%% Whether a save of the opened number of partitions fits into a cluster.
-spec fits(tessera_platform:room()) -> ok.
fits(ok) -> ok;
fits({refused, Format, Values}) -> refuse("load: " ++ Format, Values).

%% The index, the sizes of the loading mesh, and the number of its partitions.
-spec opened(file:name_all(), none | tessera_mesh:mesh()) -> {tessera_cluster_files:index(), none | [pos_integer()], pos_integer()}.
opened(Path, Mesh) ->
    #{parts := Parts, mesh := Saved} = Index = tessera_cluster_files:read_index(Path),
    case sizes(Path, Mesh, Saved) of
        none -> {Index, none, length(Parts)};
        Sizes -> {Index, Sizes, lists:foldl(fun erlang:'*'/2, 1, Sizes)}
    end.

%% The leaves of each of these partitions.
-spec boxes(file:name_all(), tessera_cluster_files:index(), none | [pos_integer()], [non_neg_integer()]) -> [[leaf()]].
boxes(Path, #{parts := [First | _]} = Index, Sizes, Partitions) ->
    [[leaf(Path, Index, Sizes, P, I) || {I, _} <- numbered(First)] || P <- Partitions].

%% The distinct tensors of these partitions.
-spec boxes_of([[leaf()]]) -> [tessera_cluster_files:box()].
boxes_of(Boxes) -> lists:usort([Box || List <- Boxes, {box, Box} <- List]).

-spec container(tessera_tree:signature(), [leaf()], #{tessera_cluster_files:box() => tessera:tensor()}) -> term().
container(Signature, List, Tensors) ->
    Leaves = [case Leaf of
                  {box, Box} -> maps:get(Box, Tensors);
                  {number, Number} -> Number
              end || Leaf <- List],
    tessera_tree:unflatten(Signature, Leaves).

sizes(_, none, Saved) -> Saved;
sizes(Path, _, none) -> refuse("load: ~ts was saved without a mesh, so it can be loaded only with as many partitions", [Path]);
sizes(Path, Mesh, Saved) ->
    Sizes = tessera_sharding:sizes(tessera_sharding:check(load, [], Mesh)),
    length(Sizes) =:= length(Saved) orelse
        refuse("load: ~ts was saved in a mesh of ~b axes, and this one has ~b", [Path, length(Saved), length(Sizes)]),
    Sizes.

%% Leaf I of partition P: a number, or a box with the saved parts that overlap it.
leaf(Path, #{parts := Parts, leaves := Leaves, mesh := Saved}, Sizes, P, I) ->
    {Type, Shape, Cuts} = lists:nth(I + 1, Leaves),
    case {lists:nth(I + 1, hd(Parts)), Sizes} of
        {{number, _}, _} -> lists:nth(I + 1, lists:nth(P rem length(Parts) + 1, Parts));
        {_, none} ->
            Start = [0 || _ <- tuple_to_list(Shape)],
            {box, {Type, Start, Shape, [{Path, lists:nth(I + 1, lists:nth(P + 1, Parts)), Start, Shape}]}};
        _ -> {box, box({Type, tessera_sharding:whole(Saved, Cuts, Shape), Cuts}, Sizes, P, sources(Path, Parts, Saved, Cuts, Shape, I))}
    end.

sources(Path, Parts, Saved, Cuts, Shape, I) ->
    lists:usort([{Path, lists:nth(I + 1, List), tessera_sharding:start(Saved, Cuts, Shape, P), Shape} || {P, List} <- numbered(Parts)]).

box({Type, Whole, Cuts}, Sizes, P, Sources) ->
    tessera_sharding:even(Sizes, Cuts, Whole) =:= Cuts orelse
        refuse("load: a mesh of the sizes ~0p does not cut ~ts into equal parts", [Sizes, tessera_type:format(Type, Whole)]),
    Shape = tessera_sharding:part(Sizes, Cuts, Whole),
    Start = tessera_sharding:start(Sizes, Cuts, Shape, P),
    {Type, Start, Shape, [Source || {_, _, Begin, Saved} = Source <- Sources, overlaps(Start, Shape, Begin, Saved)]}.

overlaps(Start, Shape, Start, Shape) -> true;
overlaps(StartA, ShapeA, StartB, ShapeB) ->
    lists:all(fun({_, Length}) -> Length > 0 end, tessera_cluster_files:overlap(StartA, ShapeA, StartB, ShapeB)).

raised({ok, Results}) -> Results;
raised({error, Error}) -> tessera_cluster_error:raise(Error).

-spec refuse(io:format(), [term()]) -> no_return().
refuse(Format, Values) -> tessera_cluster_error:raise(tessera_cluster_error:new(invalid_argument, Format, Values)).

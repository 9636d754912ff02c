%% @private Containers of Tessera.Cluster: tensors of Nx in lists, tuples, maps and structs of any kind, as the containers of the core.
%% A tensor of Nx becomes one of the core; if it has names or vectorized axes, a tuple that has them, too. So each language loads what the
%% other has saved, and names are saved with their tensors.
-module(tessera_nx_cluster).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([put/2, map/3, save/3, load/3]).

-define(COMPLEX, 'Elixir.Complex').

-type cluster() :: tessera_cluster:cluster().

-spec put(cluster(), [term()]) -> [term()].
put(Cluster, Parts) -> placed(Cluster, tessera_cluster:put(Cluster, to_core(Parts))).

%% By partition.
placed(Cluster, Parts) -> [from_core(Part, {Cluster, P}) || {P, Part} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts)].

%% On a node that has joined, tensors stay as they are. Else a rank gets and returns those of the core, as its results stay there.
-spec map(cluster(), function(), none | [term()]) -> [term()].
map(Cluster, F, Args) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> placed(Cluster, tessera_cluster:map_as(Cluster, F, on_rank(F, Args), to_core(Args)));
        _ -> tessera_cluster:map_as(Cluster, F, F, Args)
    end.

on_rank(F, none) -> fun(Rank) -> to_core(F(Rank)) end;
on_rank(F, _) -> fun(Rank, Arg) -> to_core(F(Rank, from_core(Arg, {host, 0}))) end.

-spec save(file:name_all(), term(), none | {Mesh :: map(), Shardings :: term()}) -> ok.
save(Path, Parts, none) -> tessera_cluster:save(Path, to_core(Parts));
save(Path, Parts, {Mesh, Shardings}) ->
    Checked = tessera_nx_shard:mesh(Mesh),
    Cut = case Parts of
              [First | _] -> shardings(Checked, Shardings, First);
              _ -> #{}   % which save/4 refuses
          end,
    tessera_cluster:save(Path, to_core(Parts), tessera_mesh:plain(Checked), Cut).

-spec load(cluster(), file:name_all(), none | map()) -> [term()].
load(Cluster, Path, none) -> placed(Cluster, tessera_cluster:load(Cluster, Path));
load(Cluster, Path, Mesh) -> placed(Cluster, tessera_cluster:load(Cluster, Path, tessera_mesh:plain(tessera_nx_shard:mesh(Mesh)))).

%% ---- containers

to_core(#{'__struct__' := ?TENSOR} = Tensor) -> tagged(Tensor, tessera_nx_tensor:anywhere(Tensor));
to_core(#{'__struct__' := ?BUFFER, ref := Ref, typespec := #{type := Type, shape := Shape}}) when is_reference(Ref) ->
    {?BUFFER, #tessera{ref = Ref, type = tessera_nx_tensor:core_type(Type), shape = Shape}};
to_core(#{'__struct__' := ?COMPLEX, re := Re, im := Im}) -> {complex, Re, Im};
to_core(Term) -> inside(fun to_core/1, Term).

%% Vectorized axes are leading dims, which have their sizes.
tagged(#{names := Names, vectorized_axes := Vectorized}, Core) ->
    case Vectorized =:= [] andalso lists:all(fun(Name) -> Name =:= nil end, Names) of
        true -> Core;
        false -> {?TENSOR, Core, Names, [Name || {Name, _} <- Vectorized]}
    end.

from_core(#tessera{shape = Shape} = Core, Place) -> tensor(Core, [nil || _ <- tuple_to_list(Shape)], [], Place);
from_core({?TENSOR, #tessera{} = Core, Names, Vectorized}, Place) -> tensor(Core, Names, Vectorized, Place);
from_core({?BUFFER, #tessera{} = Core}, Place) ->
    #{buffer := Buffer} = data(Core, Place),
    Buffer;
from_core({complex, Re, Im}, _) -> #{'__struct__' => ?COMPLEX, re => Re, im => Im};
from_core(Term, Place) -> inside(fun(Item) -> from_core(Item, Place) end, Term).

tensor(#tessera{type = Type, shape = Shape} = Core, Names, Vectorized, Place) ->
    {Outer, Inner} = lists:split(length(Vectorized), tuple_to_list(Shape)),
    (template())#{data => data(Core, Place), type => tessera_type:kind(Type), shape => list_to_tuple(Inner), names => Names,
                  vectorized_axes => lists:zip(Vectorized, Outer)}.

%% As the version of Nx has it that is there.
template() ->
    try ?TENSOR:'__struct__'()
    catch error:undef -> #{'__struct__' => ?TENSOR}
    end.

data(Core, {Client, P}) -> tessera_nx_shard:data(Core, Client, P).

inside(F, [Head | Tail]) -> [F(Head) | inside(F, Tail)];
inside(F, Tuple) when is_tuple(Tuple) -> list_to_tuple([F(Item) || Item <- tuple_to_list(Tuple)]);
inside(F, Map) when is_map(Map) -> maps:map(fun(_, Item) -> F(Item) end, Map);
inside(_, Other) -> Other.

%% The shardings of a container's tensors in the form of the core's one: one for all of them, or a container of the same form. Numbers are
%% not cut.
shardings(Mesh, Sharding, #{'__struct__' := ?TENSOR} = Tensor) ->
    tagged(Tensor, tessera_mesh:sharding(tessera_nx_shard:cuts(Mesh, Sharding, Tensor)));
shardings(_, Sharding, #{'__struct__' := ?BUFFER}) -> {?BUFFER, Sharding};
shardings(_, _, #{'__struct__' := ?COMPLEX}) -> #{};
shardings(Mesh, Shardings, Container) ->
    case tessera_mesh:is_sharding(Shardings) of
        true -> inside(fun(Item) -> shardings(Mesh, Shardings, Item) end, leaf(Container));
        false -> parallel(Mesh, Shardings, Container)
    end.

%% In the place of a number.
leaf(Number) when is_number(Number) -> #{};
leaf(Other) -> Other.

parallel(Mesh, Shardings, Container) when is_tuple(Shardings), is_tuple(Container), tuple_size(Shardings) =:= tuple_size(Container) ->
    list_to_tuple(parallel(Mesh, tuple_to_list(Shardings), tuple_to_list(Container)));
parallel(Mesh, [Sharding | Shardings], [Item | Items]) -> [shardings(Mesh, Sharding, Item) | parallel(Mesh, Shardings, Items)];
parallel(_, [], []) -> [];
parallel(Mesh, Shardings, Container) when is_map(Shardings), is_map(Container), map_size(Shardings) =:= map_size(Container) ->
    maps:map(fun(Key, Item) ->
                     case Shardings of
                         #{Key := Sharding} -> shardings(Mesh, Sharding, Item);
                         #{} -> no_form(Shardings)
                     end
             end, Container);
parallel(_, _, Number) when is_number(Number) -> #{};
parallel(_, Shardings, Container) when is_tuple(Container); is_list(Container); is_map(Container) -> no_form(Shardings);
parallel(_, _, Other) -> Other.

-spec no_form(term()) -> no_return().
no_form(Shardings) ->
    tessera_nx_error:expected("a sharding such as %{0 => [0]}, or a container of them that has the form of the saved one", Shardings).

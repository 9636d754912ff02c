%% @private What Tessera.Cluster does over tessera_cluster: options as Elixir has them, errors as exceptions, and containers: tensors of Nx in lists, tuples, maps and structs of any kind, as the containers of the core.
%% A tensor of Nx becomes one of the core; if it has names or vectorized axes, it becomes a tuple with these. So each language loads the other's
%% saves, and names are saved with their tensors.
-module(tessera_nx_cluster).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([child_spec/1, start_link/1, join/1, put/2, map/2, map/3, save/2, save/4, load/2, load/3, clear_cache/1, noop/2]).

-define(COMPLEX, 'Elixir.Complex').

-type cluster() :: tessera_cluster:cluster().

-type options() :: tessera_cluster:options() | [{atom(), term()}].
-type join_options() :: tessera_cluster:join_options() | [{atom(), term()}].
-type started() :: {ok, pid()} | {error, {atom(), binary()}}.

-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) ->
    Name = case options(Options) of
               #{name := Given} -> Given;
               _ -> nil
           end,
    (tessera_cluster:child_spec(#{ranks => 1}))#{id := {?CLUSTER, Name}, start := {?CLUSTER, start_link, [Options]}}.

-spec start_link(options()) -> started().
start_link(Options) -> tessera_cluster:start_link(options(Options)).

-spec join(join_options()) -> started().
join(Options) -> tessera_cluster:join(options(Options)).

-spec put(cluster(), [term()]) -> [term()].
put(Cluster, Parts) -> core(fun() -> placed(Cluster, tessera_cluster:put(Cluster, to_core(Parts))) end).

%% By partition.
placed(Cluster, Parts) -> [from_core(Part, {Cluster, P}) || {P, Part} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts)].

-spec map(cluster(), function()) -> [term()].
map(Cluster, Fun) when is_function(Fun, 1) -> mapped(Cluster, Fun, none);
map(_, Other) -> tessera_nx_error:expected("a function of one argument", Other).

-spec map(cluster(), function(), [term()]) -> [term()].
map(Cluster, Fun, Args) when is_function(Fun, 2), is_list(Args) -> mapped(Cluster, Fun, Args);
map(_, Fun, Other) when is_function(Fun, 2) -> tessera_nx_error:expected("a list with an argument for each rank", Other);
map(_, Other, _) -> tessera_nx_error:expected("a function of two arguments", Other).

%% On a node that has joined, tensors stay as they are. Else a rank gets and returns tensors of the core, because its results stay
%% there.
mapped(Cluster, F, Args) ->
    core(fun() ->
                 case tessera_platform:has(Cluster, handles) of
                     false -> placed(Cluster, tessera_cluster:map_as(Cluster, F, on_rank(F, Args), to_core(Args)));
                     true -> tessera_cluster:map_as(Cluster, F, F, Args)
                 end
         end).

on_rank(F, none) -> fun(Rank) -> to_core(F(Rank)) end;
on_rank(F, _) -> fun(Rank, Arg) -> to_core(F(Rank, from_core(Arg, {host, 0}))) end.

-spec save(file:name_all(), term()) -> ok.
save(Path, Parts) -> core(fun() -> tessera_cluster:save(Path, to_core(Parts)) end).

-spec save(file:name_all(), term(), map(), term()) -> ok.
save(Path, Parts, Mesh, Shardings) ->
    core(fun() ->
                 Checked = tessera_nx_shard:mesh(Mesh),
                 tessera_cluster:save(Path, to_core(Parts), tessera_sharding:plain(Checked), cut(Checked, Shardings, Parts))
         end).

cut(Mesh, Shardings, [First | _]) -> shardings(Mesh, Shardings, First);
cut(_, _, _) -> #{}.   % tessera_cluster:save/4 refuses the parts

-spec load(cluster(), file:name_all()) -> [term()].
load(Cluster, Path) -> core(fun() -> placed(Cluster, tessera_cluster:load(Cluster, Path)) end).

-spec load(cluster(), file:name_all(), map()) -> [term()].
load(Cluster, Path, Mesh) ->
    core(fun() -> placed(Cluster, tessera_cluster:load(Cluster, Path, tessera_sharding:plain(tessera_nx_shard:mesh(Mesh)))) end).

-spec clear_cache(cluster()) -> ok.
clear_cache(Cluster) -> core(fun() -> tessera_cluster:clear_cache(Cluster) end).

-spec noop(cluster(), pos_integer()) -> ok.
noop(Cluster, Count) -> core(fun() -> tessera_cluster:noop(Cluster, Count) end).

%% The core's errors as exceptions.
core(F) -> tessera_nx_shard:core(F).

%% ---- options

%% The given options; they replace the configured options of that name. start_link/1 refuses a term that is no list of pairs.
options(Given) ->
    try {plain(Given), application:get_env(tessera, clusters, [])} of
        {#{name := Name} = Own, Configured} -> maps:merge(plain(proplists:get_value(Name, Configured, [])), Own);
        {Own, _} -> Own
    catch error:_ -> Given
    end.

plain(Options) when is_map(Options) -> plain(maps:to_list(Options));
plain(Options) -> maps:from_list([{Name, value(Name, Value)} || {Name, Value} <- proper(Options), Value =/= nil]).

proper(Options) ->
    true = lists:all(fun(Pair) -> is_tuple(Pair) andalso tuple_size(Pair) =:= 2 end, Options),
    Options.

value(Name, Pairs) when (Name =:= mca orelse Name =:= env), is_map(Pairs) -> value(Name, maps:to_list(Pairs));
value(Name, Pairs) when (Name =:= mca orelse Name =:= env), is_list(Pairs) -> [pair(Pair) || Pair <- Pairs];
value(_, Value) -> Value.

pair({Name, Value}) when is_atom(Name) -> {atom_to_binary(Name), Value};
pair(Pair) -> Pair.

%% ---- containers

to_core(#{'__struct__' := ?TENSOR} = Tensor) -> tagged(Tensor, tessera_nx_tensor:anywhere(Tensor));
to_core(#{'__struct__' := ?BUFFER, ref := Ref, typespec := #{type := Type, shape := Shape}}) when is_reference(Ref) ->
    {?BUFFER, #tessera{ref = Ref, type = tessera_nx_tensor:core_type(Type), shape = Shape}};
to_core(#{'__struct__' := ?COMPLEX, re := Re, im := Im}) -> {complex, Re, Im};
to_core(Term) -> inside(fun to_core/1, Term).

%% Vectorized axes are leading dims of their sizes.
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

%% In the form of the loaded version of Nx.
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
    tagged(Tensor, tessera_sharding:sharding(tessera_nx_shard:cuts(Mesh, Sharding, Tensor)));
shardings(_, Sharding, #{'__struct__' := ?BUFFER}) -> {?BUFFER, Sharding};
shardings(_, _, #{'__struct__' := ?COMPLEX}) -> #{};
shardings(Mesh, Shardings, Container) ->
    case tessera_sharding:is_sharding(Shardings) of
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

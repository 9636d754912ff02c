%% @private Parts of Nx's tensors on the devices of a mesh: what Tessera.Mesh does.
-module(tessera_nx_mesh).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([shard/4, gather/3, draw/3]).

-spec shard(map(), map(), map(), [{atom(), term()}]) -> [map()].
shard(Given, Mesh, Sharding, Options) ->
    Tensor = 'Elixir.Nx':to_tensor(Given),
    Client = tessera_nx_shard:client(Options),
    {Plain, Cuts} = checked(Tensor, Mesh, Sharding),
    ok = tessera_nx_shard:check_devices(tessera_nx_shard:mesh(Mesh), Client),
    Parts = tessera_nx_shard:core(fun() -> tessera_mesh:shard(tessera_nx_tensor:value(Tensor), Plain, Cuts, Client) end),
    [resized(Tensor, Shape, tessera_nx_shard:data(Part, Client, Device))
     || {Device, #tessera{shape = Shape} = Part} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts)].

%% With vectorized axes as the leading dims of Shape.
resized(#{vectorized_axes := Vectorized} = Tensor, Shape, Data) ->
    {Outer, Inner} = lists:split(length(Vectorized), tuple_to_list(Shape)),
    Tensor#{data := Data, shape := list_to_tuple(Inner),
            vectorized_axes := [{Name, D} || {{Name, _}, D} <- lists:zip(Vectorized, Outer)]}.

-spec gather([map()], map(), map()) -> map().
gather([First | _] = Parts, Mesh, Sharding) ->
    {Plain, Cuts} = checked(First, Mesh, Sharding),
    Values = [tessera_nx_tensor:value(Part) || Part <- Parts],
    #tessera{shape = Shape} = Whole = tessera_nx_shard:core(fun() -> tessera_mesh:gather(Values, Plain, Cuts) end),
    resized(First, Shape, tessera_nx_tensor:data(Whole, tessera:device(Whole)));
gather(Other, _, _) -> tessera_nx_error:expected("a list of tensors", Other).

%% The mesh and the sharding as tessera_mesh takes them.
checked(#{'__struct__' := ?TENSOR} = Tensor, Mesh, Sharding) ->
    Checked = tessera_nx_shard:mesh(Mesh),
    {tessera_sharding:plain(Checked), tessera_sharding:sharding(tessera_nx_shard:cuts(Checked, Sharding, Tensor))};
checked(Other, _, _) -> tessera_nx_error:expected("a tensor", Other).

-spec draw(map() | tuple(), map(), map()) -> binary().
draw(Shape, Mesh, Sharding) when is_tuple(Shape) -> draw('Elixir.Nx':template(Shape, {f, 32}), Mesh, Sharding);
draw(#{'__struct__' := ?TENSOR} = Tensor, Mesh, Sharding) ->
    {Plain, Cuts} = checked(Tensor, Mesh, Sharding),
    unicode:characters_to_binary(
      tessera_nx_shard:core(fun() -> tessera_mesh:draw(tessera_nx_tensor:shape(Tensor), Plain, Cuts) end));
draw(Other, _, _) -> tessera_nx_error:expected("a tensor or a shape", Other).

-module('Elixir.Tessera.Mesh').
-include("tessera.hrl").
-include("tessera_nx.hrl").
-include("tessera_nx_doc.hrl").
?MODULEDOC("Tensors in parts on the devices of a mesh.\n"
     "\n"
     "A mesh is an `Nx.Mesh`: a grid of devices, whose points are the partitions, numbered from 0 in row-major order. Device `i` of\n"
     "a client holds partition `i`. A sharding is a map from dims to lists of mesh axes, as in `Tessera.shard_jit/3`.\n"
     "\n"
     "    mesh = %Nx.Mesh{name: \"mesh\", shape: {2, 2}}\n"
     "    parts = Tessera.Mesh.shard(Nx.iota({4, 6}), mesh, %{0 => [0]})\n"
     "    Tessera.Mesh.gather(parts, mesh, %{0 => [0]})\n"
     "    IO.puts(Tessera.Mesh.draw({4, 6}, mesh, %{0 => [0]}))").
-export(['__info__'/1, shard/3, shard/4, gather/3, draw/3]).

?INTERNAL.
-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).

?DOC("The parts of a tensor, by partition, on the devices of the default client. Every cut must divide its dim.").
-spec shard(map(), map(), map()) -> [map()].
shard(Tensor, Mesh, Sharding) -> shard(Tensor, Mesh, Sharding, []).

?DOC("The parts of a tensor, by partition, on the devices of the option `:client`, or on the ranks of that cluster. Every cut must divide\n"
     "its dim.").
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

?DOC("The tensor of these parts, one of each partition, on the device of the first. Of replicas the first counts.").
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
    {tessera_mesh:plain(Checked), tessera_mesh:sharding(tessera_nx_shard:cuts(Checked, Sharding, Tensor))};
checked(Other, _, _) -> tessera_nx_error:expected("a tensor", Other).

?DOC("A picture of a sharding, as text: which devices hold which part of a tensor, or of one of that shape.").
-spec draw(map() | tuple(), map(), map()) -> binary().
draw(Shape, Mesh, Sharding) when is_tuple(Shape) -> draw('Elixir.Nx':template(Shape, {f, 32}), Mesh, Sharding);
draw(#{'__struct__' := ?TENSOR} = Tensor, Mesh, Sharding) ->
    {Plain, Cuts} = checked(Tensor, Mesh, Sharding),
    unicode:characters_to_binary(
      tessera_nx_shard:core(fun() -> tessera_mesh:draw(tessera_nx_tensor:shape(Tensor), Plain, Cuts) end));
draw(Other, _, _) -> tessera_nx_error:expected("a tensor or a shape", Other).

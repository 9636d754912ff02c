%% @private Files of tensors for Nx: tessera_io with containers of Nx's tensors.
-module(tessera_nx_io).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([load/2, save/3, info/1, read_csv/2]).

-spec load(unicode:chardata(), [{atom(), term()}]) -> term().
load(Path, Options) -> to_nx(tessera_io:load(path(Path), options(Options))).

-spec save(unicode:chardata(), term(), [{atom(), term()}]) -> ok.
save(Path, Container, Options) -> tessera_io:save(path(Path), from_nx(Container), options(Options)).

-spec info(unicode:chardata()) -> #{atom() => term()}.
info(Path) ->
    #{tensors := Tensors} = Info = tessera_io:info(path(Path)),
    Info#{tensors := maps:map(fun(_, {Type, Shape}) -> {tessera_type:kind(Type), Shape} end, Tensors)}.

-spec read_csv(unicode:chardata(), [{atom(), term()}]) -> {[binary()], map()}.
read_csv(Path, Options) ->
    Core = case options(Options) of
               #{type := Type} = Map when is_tuple(Type) -> Map#{type := tessera_nx_tensor:core_type(Type)};
               Map -> Map
           end,
    {Names, Tensor} = tessera_io:read_csv(path(Path), Core),
    {Names, to_nx(Tensor)}.

path(Path) when is_binary(Path) -> Path;
path(Path) when is_list(Path) -> unicode:characters_to_binary(Path);
path(Other) -> tessera_nx_error:expected("a path", Other).

options(Options) ->
    try maps:from_list(Options)
    catch error:_ -> tessera_nx_error:expected("a keyword list", Options)
    end.

%% Tensors of files are in host memory.
to_nx(Container) ->
    {Signature, Leaves} = tessera_tree:flatten(Container),
    tessera_tree:unflatten(Signature, [leaf_to_nx(Leaf) || Leaf <- Leaves]).

leaf_to_nx(#tessera{type = Type, shape = Shape} = Tensor) ->
    ('Elixir.Nx':template(Shape, tessera_type:kind(Type)))#{data := tessera_nx_tensor:data(Tensor, {host, 0})};
leaf_to_nx(Number) -> Number.

%% Names and vectorized axes are not in files.
from_nx(#{'__struct__' := ?TENSOR, vectorized_axes := [_ | _]} = Tensor) ->
    tessera_nx_error:argument("a file has no vectorized axes, got: ~ts", [tessera_nx_error:inspect(Tensor)]);
from_nx(#{'__struct__' := ?TENSOR} = Tensor) -> tessera_nx_tensor:value(Tensor);
from_nx(#{'__struct__' := _} = Struct) ->
    tessera_nx_error:argument("a file has tensors in maps, tuples and lists, and no structs, got: ~ts", [tessera_nx_error:inspect(Struct)]);
from_nx(Map) when is_map(Map) -> maps:map(fun(_, Value) -> from_nx(Value) end, Map);
from_nx(Tuple) when is_tuple(Tuple) -> list_to_tuple([from_nx(Value) || Value <- tuple_to_list(Tuple)]);
from_nx([Head | Tail]) -> [from_nx(Head) | from_nx(Tail)];
from_nx(Other) -> Other.

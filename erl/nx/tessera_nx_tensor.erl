%% @private Tensors of Nx as tensors of the core and back.
-module(tessera_nx_tensor).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([core_type/1, form/1, shape/1, value/1, argument/2, anywhere/1, local/1, readable/1, usable/2, placed/2, is_donatable/1, data/2, on_rank/2, with_value/2,
         with_ref/2, at/2, template/1, flatten/1, rebuild/2, compatible/2]).

%% {f, 32} is f32. Types that the core does not support are refused.
-spec core_type(tuple()) -> tessera:type().
core_type(Nx) ->
    case tessera_type:of_nx(Nx) of
        undefined -> tessera_nx_error:no_type(Nx);
        Type -> Type
    end.

%% Type and shape, with vectorized axes as leading dimensions.
-spec form(map()) -> tessera_nx_ops:form().
form(#{type := Type} = T) -> {core_type(Type), shape(T)}.

-spec shape(map()) -> tessera:shape().
shape(#{shape := Shape, vectorized_axes := []}) -> Shape;
shape(#{shape := Shape, vectorized_axes := Axes}) -> list_to_tuple([D || {_, D} <- Axes] ++ tuple_to_list(Shape)).

%% A tensor of any backend as one of the core, on this node. Those of ranks of a cluster are never of the client host.
-spec value(map()) -> tessera:tensor().
value(#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref, client_name := host}}} = T) when node(Ref) =:= node() -> anywhere(T);
value(T) -> local(anywhere(T)).

%% An argument of a program of that client. Tensors of other backends are copied into host memory: a run copies all of its
%% arguments from there at once. The host reads no memory of other platforms.
-spec argument(map(), atom()) -> tessera:tensor().
argument(#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref, client_name := Client}}} = T, Client) when node(Ref) =:= node() -> value(T);
argument(#{data := #{'__struct__' := ?BACKEND}} = T, Client) -> usable(value(T), Client);
argument(T, _) -> anywhere(T, {host, 0}).

%% A tensor as a program of that client can use it.
-spec usable(tessera:tensor(), atom()) -> tessera:tensor().
usable(Tensor, Client) ->
    case tessera_nif:client_waits(Client) of
        true -> local(Tensor);
        false -> readable(Tensor)
    end.

%% The same, but a tensor of the core stays on its node or rank.
-spec anywhere(map()) -> tessera:tensor().
anywhere(T) -> anywhere(T, undefined).

%% With the device of a tensor that another backend has: undefined for the core's default.
anywhere(#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref}}, type := Type} = T, _) ->
    #tessera{ref = Ref, type = core_type(Type), shape = shape(T)};
anywhere(#{data := #{'__struct__' := ?BINARY, state := Binary}} = T, Device) -> import(T, Binary, Device);
anywhere(#{data := #{'__struct__' := ?EXPR}} = T, _) ->
    tessera_nx_error:argument("cannot pass a tensor expression as argument to defn, got: ~ts",
                              [tessera_nx_error:inspect(T)]);
anywhere(#{'__struct__' := ?TENSOR} = T, Device) -> import(T, 'Elixir.Nx':to_binary(T), Device).

import(T, Binary, Device) ->
    {Type, Shape} = form(T),
    Make = fun() -> tessera_bits:make(Binary, Type, Shape, false, Device) end,
    tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(from_binary, Cause) end).

%% A tensor of the core on this node; a tensor of another node, or of a rank of a cluster, is read from
%% there.
-spec local(tessera:tensor()) -> tessera:tensor().
local(Tensor) ->
    case tessera_remote:is_remote(Tensor) of
        false -> Tensor;
        true -> fetched(tessera_remote:fetch(Tensor))
    end.

%% A tensor that the host can read.
-spec readable(tessera:tensor()) -> tessera:tensor().
readable(Tensor) -> fetched(tessera_remote:local(Tensor)).

%% A tensor that a program holds, where each run can use it without a copy. A tensor of another node is copied by each run.
-spec placed(tessera:tensor(), tessera:device()) -> tessera:tensor().
placed(#tessera{ref = Ref} = Tensor, {Client, _} = Device) ->
    case tessera_nif:client_waits(Client) of
        false -> usable(Tensor, Client);
        true ->
            case tessera_remote:is_remote(Tensor) of
                true -> Tensor;
                false -> Tensor#tessera{ref = at(Ref, Device)}
            end
    end.

fetched({error, Cause}) -> tessera_nx_error:from_core(read, Cause);
fetched(Here) -> Here.

%% Tensors of the released Nx 0.13 have no such mark.
-spec is_donatable(map()) -> boolean().
is_donatable(Tensor) -> maps:get('donatable?', Tensor, false).

%% The field `data' of a tensor of Tessera.Backend.
-spec data(tessera:tensor(), {atom(), non_neg_integer()}) -> map().
data(#tessera{ref = Made} = Tensor, {Client, Device} = Place) -> on_rank(Tensor#tessera{ref = at(Made, Client, Device)}, Place).

%% The same of a tensor that is where it should be: of a cluster's result, the cluster and the partition.
-spec on_rank(tessera:tensor(), {atom() | pid(), non_neg_integer()}) -> map().
on_rank(#tessera{ref = Ref, type = Type, shape = Shape}, {Client, Device}) ->
    Typespec = #{'__struct__' => ?TYPESPEC, type => tessera_type:kind(Type), shape => Shape},
    #{'__struct__' => ?BACKEND,
      buffer => #{'__struct__' => ?BUFFER, ref => Ref, client_name => Client, device_id => Device,
                  typespec => Typespec}}.

%% A tensor made with data/2, with the memory of another one.
-spec with_value(map(), tessera:tensor()) -> map().
with_value(#{data := Data} = T, #tessera{ref = Ref}) -> T#{data := with_ref(Data, Ref)}.

%% The same for the field `data'.
-spec with_ref(map(), reference() | undefined) -> map().
with_ref(#{buffer := #{client_name := Client, device_id := Device} = Buffer} = Data, Ref) ->
    Data#{buffer := Buffer#{ref := at(Ref, Client, Device)}}.

%% Tensors that are made without operands or a device are on device 0 of `host'. Without a handle it is a template.
at(Ref, host, 0) -> Ref;
at(undefined, _, _) -> undefined;
at(Ref, Client, Device) -> at(Ref, {Client, Device}).

%% The handle of the tensor on a device.
-spec at(reference(), tessera:device()) -> reference().
at(Ref, Place) ->
    Move = fun() -> tessera_client:to_device(Ref, Place, false) end,
    Fail = fun(Cause) -> tessera_error:is_gone(Cause) orelse tessera_nx_error:from_core(to_device, Cause), Ref end,
    case Move() of
        Moved when is_reference(Moved) -> Moved;
        Other -> tessera_memory:result(Other, Move, Fail)
    end.

%% The tensor without data.
-spec template(map()) -> map().
template(#{'__struct__' := ?TENSOR} = T) -> T#{data := #{'__struct__' => 'Elixir.Nx.TemplateBackend'}}.

%% ---- containers

%% The tensors in a container, from left to right.
-spec flatten(term()) -> [map() | number()].
flatten(Container) -> lists:reverse(flatten(Container, [])).

flatten(#{'__struct__' := ?TENSOR} = T, Leaves) -> [T | Leaves];
flatten(N, Leaves) when is_number(N) -> [N | Leaves];
flatten(Tuple, Leaves) when is_tuple(Tuple) -> lists:foldl(fun flatten/2, Leaves, tuple_to_list(Tuple));
flatten(#{'__struct__' := 'Elixir.Complex'} = N, Leaves) -> [N | Leaves];
flatten(#{'__struct__' := _} = Struct, Leaves) -> 'Elixir.Nx.Container':reduce(Struct, Leaves, fun flatten/2);
flatten(Map, Leaves) when is_map(Map) ->
    lists:foldl(fun({_, V}, L) -> flatten(V, L) end, Leaves, lists:sort(maps:to_list(Map)));
flatten(Other, Leaves) -> 'Elixir.Nx.Container':reduce(Other, Leaves, fun flatten/2).

%% The container with other leaves.
-spec rebuild(term(), [term()]) -> term().
rebuild(Container, Leaves) ->
    {Result, []} = replace(Container, Leaves),
    Result.

replace(#{'__struct__' := ?TENSOR}, [Leaf | Leaves]) -> {Leaf, Leaves};
replace(N, [Leaf | Leaves]) when is_number(N) -> {Leaf, Leaves};
replace(Tuple, Leaves) when is_tuple(Tuple) ->
    {Items, Rest} = lists:mapfoldl(fun replace/2, Leaves, tuple_to_list(Tuple)),
    {list_to_tuple(Items), Rest};
replace(#{'__struct__' := 'Elixir.Complex'}, [Leaf | Leaves]) -> {Leaf, Leaves};
replace(#{'__struct__' := _} = Struct, Leaves) -> 'Elixir.Nx.Container':traverse(Struct, Leaves, fun replace/2);
replace(Map, Leaves) when is_map(Map) ->
    {Pairs, Rest} = lists:mapfoldl(fun({K, V}, L) ->
                                           {V1, L1} = replace(V, L),
                                           {{K, V1}, L1}
                                   end, Leaves, lists:sort(maps:to_list(Map))),
    {maps:from_list(Pairs), Rest};
replace(Other, Leaves) -> 'Elixir.Nx.Container':traverse(Other, Leaves, fun replace/2).

%% Whether two containers have the same form, and their tensors the same types, shapes and vectorized axes, and names
%% that do not conflict, as Nx.compatible?/2.
-spec compatible(term(), term()) -> boolean().
compatible(#{'__struct__' := ?TENSOR} = A, #{'__struct__' := ?TENSOR} = B) ->
    maps:with([type, shape, vectorized_axes], A) =:= maps:with([type, shape, vectorized_axes], B) andalso
        compatible_names(maps:get(names, A), maps:get(names, B));
compatible(A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) ->
    lists:all(fun({X, Y}) -> compatible(X, Y) end, lists:zip(tuple_to_list(A), tuple_to_list(B)));
compatible(A, B) -> 'Elixir.Nx':'compatible?'(A, B).

compatible_names([Name | A], [Name | B]) -> compatible_names(A, B);
compatible_names([A | NamesA], [B | NamesB]) -> (A =:= nil orelse B =:= nil) andalso compatible_names(NamesA, NamesB);
compatible_names([], []) -> true.

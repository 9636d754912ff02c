%% @private Eager ops of the backend.
-module(tessera_nx_eager).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([op/3, unary/3, binary/4, source/4, from_binary/4, copy/2, jit/3, fold/5, to_batched/3, is_at/2]).

%% Args are those of the callback; tensors are among them, or in lists among them.
-spec op(atom(), map(), [term()]) -> map().
op(Op, Out, Args) ->
    Value = tessera_nx_ops:apply(undefined, Op, tessera_nx_tensor:form(Out), [value(Arg) || Arg <- Args]),
    case places(Args, none) of
        [_ | _] = Places -> placed(Out, Value, preferred(lists:reverse(Places)));
        none -> Out#{data := tessera_nx_tensor:data(Value, tessera_nx_client:place([]))};
        Place -> Out#{data := tessera_nx_tensor:data(Value, Place)}
    end.

%% The core computes on the device of the first tensor.
placed(Out, #tessera{ref = Ref} = Value, Place) ->
    Out#{data := tessera_nx_tensor:on_rank(Value#tessera{ref = tessera_nx_tensor:at(Ref, Place)}, Place)}.

%% A shorter path for results that have the type and shape of the first operand: the core returns a handle, or
%% false, and the general path reports the error.
-define(OURS(Type, Ref, Client, Device),
        #{type := Type, vectorized_axes := [],
          data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref, client_name := Client, device_id := Device}}}).

-spec unary(atom(), map(), map()) -> map().
unary(Op, #{type := Type, shape := Shape} = Out, #{shape := Shape, data := Data} = ?OURS(Type, Ref, _, _) = A) ->
    case handle(tessera_nif:op_like(Op, Ref)) of
        none -> op(Op, Out, [A]);
        New -> Out#{data := tessera_nx_tensor:with_ref(Data, New)}
    end;
unary(Op, Out, A) -> op(Op, Out, [A]).

-spec binary(atom(), map(), map(), map()) -> map().
binary(Op, #{type := Type, shape := Shape} = Out,
       #{shape := Shape, data := Data} = ?OURS(Type, RefA, Client, Device) = A,
       ?OURS(Type, RefB, Client, Device) = B) ->
    case handle(tessera_nif:op_like(Op, RefA, RefB)) of
        none -> op(Op, Out, [A, B]);
        New -> Out#{data := tessera_nx_tensor:with_ref(Data, New)}
    end;
binary(Op, Out, A, B) -> op(Op, Out, [A, B]).

handle(Ref) when is_reference(Ref) -> Ref;
handle({pressure, Ref}) -> tessera_memory:relieved(Ref);
handle(crowded) -> % the general way follows
    ok = tessera_memory:make_room(),
    none;
handle(_) -> none.

value(#{'__struct__' := ?TENSOR} = Tensor) -> tessera_nx_tensor:value(Tensor);
value([#{'__struct__' := ?TENSOR} | _] = List) -> [value(Item) || Item <- List];
value([Item | _] = List) when is_integer(Item) -> [value(I) || I <- List];
value(Other) -> Other.

%% The device of the result is that of the operands. If they are on several, the last explicitly chosen one (not the
%% default device, or a client without automatic transfers) precedes the last of the others.
place(Args) ->
    case places(Args, none) of
        none -> tessera_nx_client:place([]);
        Places when is_list(Places) -> preferred(lists:reverse(Places));
        Place -> Place
    end.

%% One device, or a list of several with the last one as its head. Tensors of other nodes and of clusters do not count, since they are
%% fetched to this node.
places([#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref}}} | Args], Places) when node(Ref) =/= node() ->
    places(Args, Places);
places([#{data := #{'__struct__' := ?BACKEND, buffer := #{client_name := Client, device_id := Device}}} | Args], Places) ->
    case Client =:= host orelse tessera_platform:has(Client, ops) of
        true -> places(Args, add_place({Client, Device}, Places));
        false -> places(Args, Places)
    end;
places([[#{} | _] = List | Args], Places) -> places(Args, places(List, Places));
places([_ | Args], Places) -> places(Args, Places);
places([], Places) -> Places.

add_place(Place, none) -> Place;
add_place(Place, Place) -> Place;
add_place(Place, Places) when is_list(Places) -> [Place | Places];
add_place(Place, Other) -> [Place, Other].

preferred(Places) ->
    case [Place || {Client, Device} = Place <- Places, is_chosen(tessera_nx_client:'fetch!'(Client), Device)] of
        [] -> lists:last(Places);
        Chosen -> lists:last(Chosen)
    end.

is_chosen(#{automatic_transfers := true, default_device_id := Device}, Device) -> false;
is_chosen(_, _) -> true.

%% An op without operands.
-spec source(atom(), map(), [term()], [{atom(), term()}]) -> map().
source(Op, Out, Args, Options) ->
    Value = tessera_nx_ops:apply(undefined, Op, tessera_nx_tensor:form(Out), Args),
    case tessera_nx_client:place(Options) of
        Place when Options =:= [] -> Out#{data := tessera_nx_tensor:data(Value, Place)};
        Place -> placed(Out, Value, Place)      % the core's default client may be another one
    end.

-spec from_binary(map(), bitstring(), boolean(), [{atom(), term()}]) -> map().
from_binary(Out, Binary, MustCopy, Options) ->
    {Type, Shape} = tessera_nx_tensor:form(Out),
    Place = tessera_nx_client:place(Options),
    Make = fun() -> tessera_bits:make(Binary, Type, Shape, MustCopy, Place) end,
    Value = tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(from_binary, Cause) end),
    Out#{data := tessera_nx_tensor:data(Value, Place)}.

%% A copy on the device that the options name. Between devices of a platform the host is not on the way.
-spec copy(map(), [{atom(), term()}]) -> map().
copy(#{data := #{buffer := #{ref := Ref} = Buffer}} = Tensor, Options) ->
    {Client, _} = Place = tessera_nx_client:place(Options),
    case node(Ref) =:= node() andalso tessera_nif:client_waits(Client) andalso not tessera_nif:is_proxy(Ref) of
        false -> from_binary(Tensor, tessera_nx_buffer:read(Buffer), true, Options);
        true ->
            Copy = fun() -> tessera_client:to_device(Ref, Place, true) end,
            Made = tessera_memory:result(Copy(), Copy, fun(Cause) -> tessera_nx_error:from_core(backend_copy, Cause) end),
            Tensor#{data := tessera_nx_tensor:data((tessera_nx_tensor:anywhere(Tensor))#tessera{ref = Made}, Place)}
    end.

%% Compiles a function for these arguments, also while another one is being traced.
-spec jit(function(), [term()], [map()]) -> term().
jit(Fun, Args, Tensors) ->
    {Client, Device} = place(Tensors),
    'Elixir.Nx.Defn':jit_apply(Fun, Args, [{compiler, ?COMPILER}, {on_conflict, force}, {client, Client}, {device_id, Device}]).

%% A left fold by a function that computes one step. As in a compiled fold, elements and accumulator have the result's
%% type.
-spec fold(map(), map(), map(), [{atom(), term()}], fun((map(), map()) -> map())) -> map().
fold(#{type := Type} = Out, A, Initial, Options, Fun) ->
    {Client, Device} = place([A, Initial]),
    Scalar = Out#{shape := {}, names := [], vectorized_axes := []},
    Element = fun(Bytes) -> from_binary(Scalar, Bytes, true, [{client, Client}, {device_id, Device}]) end,
    Step = fun(X, Folded) -> op(as_type, Scalar, [Fun(Element(X), Folded)]) end,
    First = op(as_type, Scalar, [Initial]),
    Results = [bytes(lists:foldl(Step, First, Row)) || Row <- rows(A, Type, axes(A, Options), shape_size(Out))],
    from_binary(Out, list_to_bitstring(Results), false, [{client, Client}, {device_id, Device}]).

axes(#{shape := Shape}, Options) ->
    case lists:keyfind(axes, 1, Options) of
        {_, Axes} when is_list(Axes) -> Axes;
        _ -> tessera_type:dims(tuple_size(Shape))
    end.

shape_size(Tensor) -> tessera_type:elements(tessera_nx_tensor:shape(Tensor)).

%% The elements of each row that is folded, as binaries.
rows(#{shape := Shape} = A, {_, Bits} = Type, Axes, Count) ->
    Order = (tessera_type:dims(tuple_size(Shape)) -- Axes) ++ lists:sort(Axes),
    Form = A#{type := Type, shape := list_to_tuple([element(Axis + 1, Shape) || Axis <- Order])},
    All = bytes(op(transpose, Form, [op(as_type, A#{type := Type}, [A]), Order])),
    Length = bit_size(All) div max(1, Count),
    [[Element || <<Element:Bits/bitstring>> <= part(All, Row * Length, Length)] || Row <- tessera_type:dims(Count)].

part(Bits, Skipped, Length) ->
    <<_:Skipped/bitstring, Part:Length/bitstring, _/bitstring>> = Bits,
    Part.

bytes(#{data := #{buffer := Buffer}}) -> tessera_nx_buffer:read(Buffer).

%% A lazy stream of slices along the first axis.
-spec to_batched(map(), map(), [{atom(), term()}]) -> term().
to_batched(#{shape := OutShape} = Out, #{shape := Shape} = Tensor, Options) ->
    [Batch | Dims] = tuple_to_list(OutShape),
    Size = element(1, Shape),
    Rest = Size rem Batch,
    Last = case Rest =/= 0 andalso proplists:get_value(leftover, Options) =:= repeat of
               true -> Size div Batch;
               false -> Size div Batch - 1
           end,
    Part = fun(T, From, Count) ->
                   Rank = length(Dims),
                   op(slice, T#{shape := list_to_tuple([Count | Dims])},
                      [Tensor, [From | lists:duplicate(Rank, 0)], [Count | Dims], lists:duplicate(Rank + 1, 1)])
           end,
    Each = fun(I) when (I + 1) * Batch =< Size -> Part(Out, I * Batch, Batch);
              (I) -> op(concatenate, Out, [[Part(Out, I * Batch, Rest), Part(Out, 0, Batch - Rest)], 0])
           end,
    'Elixir.Stream':map(lists:seq(0, Last), Each).

%% Whether a buffer is on the device that the options name.
-spec is_at(map(), [{atom(), term()}]) -> boolean().
is_at(#{client_name := Client, device_id := Device, ref := Ref}, Options) ->
    node(Ref) =:= node() andalso tessera_nx_client:place(Options) =:= {Client, Device}.

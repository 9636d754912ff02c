%% @private Ops of the backend, on tensors at hand.
-module(tessera_nx_eager).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([op/3, unary/3, binary/4, source/4, from_binary/4, jit/3, on_host/3, to_batched/3, is_at/2]).

%% Args are as the callback got them; among them, and in lists among them, are tensors.
-spec op(atom(), map(), [term()]) -> map().
op(Op, Out, Args) ->
    Value = tessera_nx_ops:apply(undefined, Op, tessera_nx_tensor:form(Out), [value(Arg) || Arg <- Args]),
    Out#{data := tessera_nx_tensor:data(Value, place(Args))}.

%% Where the result differs from the first operand in nothing but the values, nothing has to be described anew: the
%% core gives a handle, or says no, and the long way finds out why.
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
handle(_) -> none.

value(#{'__struct__' := ?TENSOR} = Tensor) -> tessera_nx_tensor:value(Tensor);
value([#{'__struct__' := ?TENSOR} | _] = List) -> [value(Item) || Item <- List];
value([Item | _] = List) when is_integer(Item) -> [value(I) || I <- List];
value(Other) -> Other.

%% Where the result goes: where the operands are. Of several places the last that was chosen on purpose (another device
%% than the default, or a client without automatic transfers) comes before the last of the others.
place(Args) ->
    case places(Args, none) of
        none -> ?CLIENT:place([]);
        Places when is_list(Places) -> preferred(lists:reverse(Places));
        Place -> Place
    end.

%% One place, or a list where there are several; the last one is the head. Tensors of other nodes are brought here, so
%% they do not count.
places([#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref}}} | Args], Places) when node(Ref) =/= node() ->
    places(Args, Places);
places([#{data := #{'__struct__' := ?BACKEND, buffer := Buffer}} | Args], Places) ->
    #{client_name := Client, device_id := Device} = Buffer,
    places(Args, add_place({Client, Device}, Places));
places([[#{} | _] = List | Args], Places) -> places(Args, places(List, Places));
places([_ | Args], Places) -> places(Args, Places);
places([], Places) -> Places.

add_place(Place, none) -> Place;
add_place(Place, Place) -> Place;
add_place(Place, Places) when is_list(Places) -> [Place | Places];
add_place(Place, Other) -> [Place, Other].

preferred(Places) ->
    case [Place || {Client, Device} = Place <- Places, is_chosen(?CLIENT:'fetch!'(Client), Device)] of
        [] -> lists:last(Places);
        Chosen -> lists:last(Chosen)
    end.

is_chosen(#{automatic_transfers := true, default_device_id := Device}, Device) -> false;
is_chosen(_, _) -> true.

%% An op without operands.
-spec source(atom(), map(), [term()], [{atom(), term()}]) -> map().
source(Op, Out, Args, Options) ->
    Value = tessera_nx_ops:apply(undefined, Op, tessera_nx_tensor:form(Out), Args),
    Out#{data := tessera_nx_tensor:data(Value, ?CLIENT:place(Options))}.

-spec from_binary(map(), binary(), boolean(), [{atom(), term()}]) -> map().
from_binary(Out, Binary, MustCopy, Options) ->
    {Type, Shape} = tessera_nx_tensor:form(Out),
    Make = fun() -> tessera_nif:from_binary(Binary, Type, Shape, MustCopy) end,
    Value = tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(from_binary, Cause) end),
    Out#{data := tessera_nx_tensor:data(Value, ?CLIENT:place(Options))}.

%% Compiles a function for these arguments, also while another one is being traced.
-spec jit(function(), [term()], [map()]) -> term().
jit(Fun, Args, Tensors) ->
    {Client, Device} = place(Tensors),
    'Elixir.Tessera':jit_apply(Fun, Args, [{on_conflict, force}, {client, Client}, {device_id, Device}]).

%% An op of Nx.BinaryBackend, with its result where the operands are.
-spec on_host(atom(), map(), [term()]) -> map().
on_host(Op, Out, Args) ->
    Given = [case Arg of
                 #{'__struct__' := ?TENSOR} -> 'Elixir.Nx':backend_copy(Arg, ?BINARY);
                 _ -> Arg
             end || Arg <- Args],
    #{data := #{state := Binary}} = apply(?BINARY, Op, [Out | Given]),
    {Client, Device} = place(Args),
    from_binary(Out, Binary, false, [{client, Client}, {device_id, Device}]).

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

%% Whether a buffer is where the options ask for it.
-spec is_at(map(), [{atom(), term()}]) -> boolean().
is_at(#{client_name := Client, device_id := Device, ref := Ref}, Options) ->
    node(Ref) =:= node() andalso ?CLIENT:place(Options) =:= {Client, Device}.

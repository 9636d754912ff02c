%% @private The callbacks of Tessera.Backend that are more than one op each. lib/tessera/backend.ex has the others.
-module(tessera_nx_backend).
-include("tessera_nx.hrl").
-export([reduce/5, window_reduce/6, block/4, init/1, backend_copy/3, backend_transfer/3, backend_deallocate/1, to_binary/2, to_pointer/2,
         inspect/2]).

%% ---- functions of the user are compiled

%% Nx's evaluator computes the function, which cannot be traced.
-spec reduce(map(), map(), map(), [{atom(), term()}], function()) -> map().
reduce(Out, A, Initial, Options, Fun) ->
    case erlang:fun_info(Fun, module) of
        {module, 'Elixir.Nx.Defn.Evaluator'} -> tessera_nx_eager:fold(Out, A, Initial, Options, Fun);
        _ -> reduce_traced(Out, A, Initial, Options, Fun)
    end.

reduce_traced(Out, A, Initial, Options, Fun) ->
    Template = tessera_nx_tensor:template(Out),
    tessera_nx_eager:jit(fun(T, I) -> 'Elixir.Nx.Defn.Expr':reduce(Template, T, I, Options, Fun) end, [A, Initial],
                         [A, Initial]).

%% The windows' elements are along an axis, which is folded.
-spec window_reduce(map(), map(), map(), tuple(), [{atom(), term()}], function()) -> map().
window_reduce(#{shape := Shape} = Out, A, Initial, Sizes, Options, Fun) ->
    Places = lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Sizes)),
    Form = Out#{shape := list_to_tuple([Places | tuple_to_list(Shape)]), names := [nil | maps:get(names, Out)]},
    reduce(Out, tessera_nx_eager:op(window_unfold, Form, [A, Initial, Sizes, Options]), Initial, [{axes, [0]}], Fun).

-spec block(map(), term(), [term()], function()) -> term().
block(Struct, _Out, Args, Fun) ->
    {Tensors, Options} = lists:splitwith(fun is_map/1, Args),
    tessera_nx_eager:jit(fun(T) -> 'Elixir.Nx.Defn.Expr':block(Struct, nil, tuple_to_list(T) ++ Options, Fun) end,
                         [list_to_tuple(Tensors)], Tensors).

%% ---- creation

-spec init([{atom(), term()}]) -> [{atom(), term()}].
init(Options) -> 'Elixir.Keyword':'validate!'(Options, [client, device_id]).

%% ---- transfer

%% A copy to the tensor's own device is also a copy.
-spec backend_copy(map(), module(), [{atom(), term()}]) -> map().
backend_copy(Tensor, ?BACKEND, Options) ->
    tessera_nx_eager:copy(Tensor, Options);
backend_copy(Tensor, Backend, Options) -> Backend:from_binary(Tensor, read(Tensor), Options).

-spec backend_transfer(map(), module(), [{atom(), term()}]) -> map().
backend_transfer(#{data := #{buffer := Buffer}} = Tensor, Backend, Options) ->
    case Backend =:= ?BACKEND andalso tessera_nx_eager:is_at(Buffer, Options) of
        true -> Tensor;
        false ->
            try backend_copy(Tensor, Backend, Options)
            after tessera_nx_buffer:deallocate(Buffer)
            end
    end.

-spec backend_deallocate(map()) -> ok | already_deallocated.
backend_deallocate(#{data := #{buffer := Buffer}}) -> tessera_nx_buffer:deallocate(Buffer).

read(#{data := #{buffer := Buffer}}) -> tessera_nx_buffer:read(Buffer).

-spec to_binary(map(), integer()) -> bitstring().
to_binary(#{data := #{buffer := Buffer}}, Limit) -> tessera_nx_buffer:read_elements(Buffer, Limit).

%% ---- pointers

-spec to_pointer(map(), [{atom(), term()}]) -> map().
to_pointer(#{data := #{buffer := Buffer}}, Options) -> tessera_nx_pointer:of_buffer(Buffer, Options).

%% ---- printing

-spec inspect(map(), map()) -> term().
inspect(#{data := #{buffer := Buffer}} = Tensor, #{limit := Limit} = Options) ->
    Text = case tessera_nx_buffer:'deleted?'(Buffer) of
               true -> deallocated(Tensor);
               false ->
                   Elements = tessera_type:elements(tessera_nx_tensor:shape(Tensor)),
                   Shown = case Limit of
                               infinity -> Elements;
                               _ -> min(Limit + 1, Elements)
                           end,
                   'Elixir.Nx.Backend':inspect(Tensor, to_binary(Tensor, Shown), Options)
           end,
    case application:get_env(tessera, add_backend_on_inspect, true) of
        true -> signed(Buffer, Text);
        false -> Text
    end.

deallocated(#{'donatable?' := true}) -> <<"Deallocated due to buffer donation">>;
deallocated(_) -> <<"Deallocated">>.

client(Cluster) when is_pid(Cluster) -> pid_to_list(Cluster);
client(Name) -> Name.

%% Adds the tensor's device on a line of its own.
signed(#{client_name := Client, device_id := Device, ref := Ref}, Text) ->
    "#Ref<" ++ Name = ref_to_list(Ref),
    Line = unicode:characters_to_binary(io_lib:format("Tessera.Backend<~ts:~b, ~s", [client(Client), Device, Name])),
    'Elixir.Inspect.Algebra':concat([Line, 'Elixir.Inspect.Algebra':line(), Text]).

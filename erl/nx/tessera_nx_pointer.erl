%% @private Nx.Pointer: gives other code a tensor's memory, by its address in this
%% VM or by a name to other processes of the machine, and makes tensors of such
%% memory. The maker of a pointer keeps its tensor while the pointer is used.
-module(tessera_nx_pointer).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([of_buffer/2, local/1, shared/2, tensor/5]).

-spec of_buffer(map(), [{atom(), term()}]) -> map().
of_buffer(#{client_name := Client} = Buffer, Given) ->
    _ = tessera_nif:client_waits(Client) andalso address(Buffer), % the first error is that of a device without addresses
    Options = 'Elixir.Keyword':'validate!'(Given, [{mode, local}, {permissions, 8#400}]),
    {_, Permissions} = lists:keyfind(permissions, 1, Options),
    is_integer(Permissions) andalso Permissions >= 0 andalso Permissions =< 8#7777 orelse
        tessera_nx_error:argument(":permissions must be an integer in the range 0..0o7777 (typically an octal literal "
                                  "like 0o400), got: ~ts", [tessera_nx_error:inspect(Permissions)]),
    case lists:keyfind(mode, 1, Options) of
        {_, local} -> local(Buffer);
        {_, ipc} -> shared(Buffer, Permissions);
        {_, Mode} ->
            tessera_nx_error:argument("expected one of :local, :ipc, got: ~ts", [tessera_nx_error:inspect(Mode)])
    end.

%% The address of the elements, in the memory of the host or of the device.
-spec local(map()) -> map().
local(Buffer) ->
    {Address, Bytes, _} = address(Buffer),
    pointer(#{kind => local, address => Address, data_size => Bytes}).

%% The name of a copy of them in shared memory.
-spec shared(map(), non_neg_integer()) -> map().
shared(#{client_name := Client} = Buffer, Permissions) ->
    {Name, Bytes} = check("to_pointer/2", Client, share(Buffer, Permissions)),
    pointer(#{kind => ipc, handle => Name, data_size => Bytes}).

address(#{ref := Ref, client_name := Client}) -> check("to_pointer/2", Client, tessera_run:awaited(tessera_nif:address(Ref))).

%% Copies the elements to shared memory. A plugin's elements are fetched before, if its device is a CPU. A GPU is refused: the interface of plugins has no
%% handles of its memory.
share(#{ref := Ref, client_name := Client} = Buffer, Permissions) ->
    case tessera_nif:is_elsewhere(Ref) of
        false -> tessera_nif:share(Ref, Permissions);
        true ->
            {_, _, Where} = address(Buffer),
            Where =:= host orelse refuse("to_pointer/2", Client, "mode: :ipc needs memory of the host, and mode: :local gives the device's address"),
            share_fetched(Ref, Permissions, tessera_remote:fetch(core(Buffer)))
    end.

share_fetched(Ref, Permissions, #tessera{ref = Contents}) -> tessera_nif:share(Ref, Permissions, Contents);
share_fetched(_, _, Error) -> Error.

core(#{ref := Ref, typespec := #{type := Type, shape := Shape}}) -> #tessera{ref = Ref, type = tessera_nx_tensor:core_type(Type), shape = Shape}.

pointer(Fields) -> maps:merge(#{'__struct__' => ?POINTER, kind => nil, address => nil, handle => nil, data_size => nil}, Fields).

-spec tensor(map(), tuple(), tuple(), [{atom(), term()}], [{atom(), term()}]) -> map().
tensor(#{'__struct__' := ?POINTER, data_size := Size} = Pointer, Type, Shape, Given, Options) ->
    Place = tessera_nx_client:place('Elixir.Keyword':'validate!'(Given, [client, device_id])),
    [{names, Names}] = 'Elixir.Keyword':'validate!'(Options, [{names, nil}]),
    Core = tessera_nx_tensor:core_type(Type),
    Bytes = tessera_type:elements(Shape) * tessera_type:bytes(Core),
    Bytes =:= Size orelse
        tessera_nx_error:argument("invalid pointer data_size for shape, expected: ~b, got: ~ts",
                                  [Bytes, tessera_nx_error:inspect(Size)]),
    Value = open(Pointer, Core, Shape, Place),
    ('Elixir.Nx':template(Shape, Type, [{names, Names}]))#{data := tessera_nx_tensor:data(Value, Place)};
tensor(Other, _, _, _, _) -> tessera_nx_error:expected("an Nx.Pointer", Other).

open(#{kind := local, address := Address}, Type, Shape, {Client, _} = Place) ->
    check("from_pointer/5", Client, tessera_run:awaited(tessera_nif:from_address(Address, Type, Shape, Place)));
open(#{kind := ipc, handle := Name}, Type, Shape, {Client, _} = Place) ->
    case tessera_run:awaited(tessera_nif:from_shared(Name, Type, Shape, Place)) of
        {error, #{code := invalid_argument, message := Message}} ->
            logger:debug("~ts", [Message]),
            tessera_nx_error:runtime("unable to get pointer for IPC handle", []);
        Value -> check("from_pointer/5", Client, Value)
    end;
open(#{kind := Kind}, _, _, _) ->
    tessera_nx_error:argument("expected a pointer of kind :local or :ipc, got: ~ts", [tessera_nx_error:inspect(Kind)]).

check(_, _, {error, #{code := invalid_argument, message := <<"expected a tensor", _/binary>>}}) ->
    tessera_nx_error:runtime("unable to get buffer. It may belong to another node, consider using Nx.backend_transfer/1", []);
check(Function, Client, {error, #{code := elsewhere}}) ->
    tessera_nx_error:argument("Nx.~s is not supported for the ~ts client yet.", [Function, tessera_nx_error:inspect(Client)]);
check(Function, Client, {error, #{code := unimplemented, message := Message}}) -> refuse(Function, Client, Message);
check(_, _, {pressure, Value}) -> Value;
check(_, _, Result) -> tessera_nx_error:check(pointer, Result).

-spec refuse(string(), atom(), iodata()) -> no_return().
refuse(Function, Client, Why) ->
    tessera_nx_error:argument("Nx.~s is not supported for the ~ts client: ~ts", [Function, tessera_nx_error:inspect(Client), Why]).

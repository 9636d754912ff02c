%% @private Nx.Pointer: gives other code a tensor's memory, by its address in this
%% VM or by a name to other processes of the machine, and makes tensors of such
%% memory. The maker of a pointer keeps its tensor while the pointer is used.
-module(tessera_nx_pointer).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([of_buffer/2, tensor/5]).

-spec of_buffer(map(), [{atom(), term()}]) -> map().
of_buffer(#{ref := Ref, client_name := Client}, Given) ->
    ok = check_memory("to_pointer/2", Client),
    Options = 'Elixir.Keyword':'validate!'(Given, [{mode, local}, {permissions, 8#400}]),
    {_, Permissions} = lists:keyfind(permissions, 1, Options),
    is_integer(Permissions) andalso Permissions >= 0 andalso Permissions =< 8#7777 orelse
        tessera_nx_error:argument(":permissions must be an integer in the range 0..0o7777 (typically an octal literal "
                                  "like 0o400), got: ~ts", [tessera_nx_error:inspect(Permissions)]),
    case lists:keyfind(mode, 1, Options) of
        {_, local} ->
            {Address, Bytes} = check(tessera_nif:address(Ref)),
            pointer(#{kind => local, address => Address, data_size => Bytes});
        {_, ipc} ->
            {Name, Bytes} = check(tessera_nif:share(Ref, Permissions)),
            pointer(#{kind => ipc, handle => Name, data_size => Bytes});
        {_, Mode} ->
            tessera_nx_error:argument("expected one of :local, :ipc, got: ~ts", [tessera_nx_error:inspect(Mode)])
    end.

%% Other code reads host memory only.
check_memory(Name, Client) ->
    is_atom(Client) andalso tessera_nif:client_waits(Client) andalso
        tessera_nx_error:argument("Nx.~s is not supported for the ~ts client yet.", [Name, tessera_nx_error:inspect(Client)]),
    ok.

pointer(Fields) -> maps:merge(#{'__struct__' => ?POINTER, kind => nil, address => nil, handle => nil, data_size => nil}, Fields).

-spec tensor(map(), tuple(), tuple(), [{atom(), term()}], [{atom(), term()}]) -> map().
tensor(#{'__struct__' := ?POINTER, data_size := Size} = Pointer, Type, Shape, Given, Options) ->
    {Client, _} = Place = tessera_nx_client:place('Elixir.Keyword':'validate!'(Given, [client, device_id])),
    ok = check_memory("from_pointer/5", Client),
    [{names, Names}] = 'Elixir.Keyword':'validate!'(Options, [{names, nil}]),
    Core = tessera_nx_tensor:core_type(Type),
    Bytes = tessera_type:elements(Shape) * tessera_type:bytes(Core),
    Bytes =:= Size orelse
        tessera_nx_error:argument("invalid pointer data_size for shape, expected: ~b, got: ~ts",
                                  [Bytes, tessera_nx_error:inspect(Size)]),
    Value = open(Pointer, Core, Shape),
    ('Elixir.Nx':template(Shape, Type, [{names, Names}]))#{data := tessera_nx_tensor:data(Value, Place)};
tensor(Other, _, _, _, _) -> tessera_nx_error:expected("an Nx.Pointer", Other).

open(#{kind := local, address := Address}, Type, Shape) -> check(tessera_nif:from_address(Address, Type, Shape));
open(#{kind := ipc, handle := Name}, Type, Shape) ->
    case tessera_nif:from_shared(Name, Type, Shape) of
        {error, #{message := Message}} ->
            logger:debug("~ts", [Message]),
            tessera_nx_error:runtime("unable to get pointer for IPC handle", []);
        Value -> Value
    end;
open(#{kind := Kind}, _, _) ->
    tessera_nx_error:argument("expected a pointer of kind :local or :ipc, got: ~ts", [tessera_nx_error:inspect(Kind)]).

check({error, #{code := invalid_argument, message := <<"expected a tensor", _/binary>>}}) ->
    tessera_nx_error:runtime("unable to get buffer. It may belong to another node, consider using Nx.backend_transfer/1", []);
check(Result) -> tessera_nx_error:check(pointer, Result).

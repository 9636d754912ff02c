%% @private The memory of a tensor of Nx, a struct of Tessera.DeviceBuffer: what that module does.
-module(tessera_nx_buffer).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([from_ref/4, place_on_device/4, copy_to_device/3,
         read/1, read/2, read_elements/2, deallocate/1, 'deleted?'/1]).

-spec from_ref(reference(), map(), non_neg_integer(), map()) -> map().
from_ref(Ref, Client, Device, Typespec) when is_reference(Ref) ->
    {Name, Device} = tessera_nx_client:device(Client, Device),
    #{'__struct__' => ?BUFFER, ref => Ref, client_name => Name, device_id => Device, typespec => Typespec};
from_ref(Other, _, _, _) -> tessera_nx_error:expected("a handle", Other).

-spec place_on_device(bitstring(), map(), map(), non_neg_integer()) -> map().
place_on_device(Binary, #{'__struct__' := ?TYPESPEC, type := Type, shape := Shape} = Typespec, Client, Device) ->
    {Name, Device} = tessera_nx_client:device(Client, Device),
    Core = tessera_nx_tensor:core_type(Type),
    Make = fun() -> tessera_bits:make(Binary, Core, Shape, false, {Name, Device}) end,
    #tessera{ref = Ref} =
        tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(from_binary, Cause) end),
    from_ref(Ref, Client, Device, Typespec);
place_on_device(_, Other, _, _) -> tessera_nx_error:expected("a Tessera.Typespec", Other).

-spec copy_to_device(map(), map(), non_neg_integer()) -> map().
copy_to_device(#{'__struct__' := ?BUFFER, typespec := Typespec} = Buffer, Client, Device) ->
    {_, Device} = tessera_nx_client:device(Client, Device),
    place_on_device(binary:copy(read(Buffer)), Typespec, Client, Device);
copy_to_device(Other, _, _) -> no_buffer(Other).

-spec read(map()) -> bitstring().
read(Buffer) -> read(Buffer, -1).

-spec read(map(), integer()) -> bitstring().
read(#{'__struct__' := ?BUFFER} = Buffer, Bytes) when is_integer(Bytes), Bytes < 0 -> read_elements(Buffer, -1);
read(#{'__struct__' := ?BUFFER, typespec := #{type := {_, Bits}}} = Buffer, Bytes) when is_integer(Bytes) ->
    read_elements(Buffer, (Bytes * 8 + Bits - 1) div Bits);
read(#{'__struct__' := ?BUFFER}, Other) -> tessera_nx_error:expected("a number of bytes", Other);
read(Other, _) -> no_buffer(Other).

-spec read_elements(map(), integer()) -> bitstring().
read_elements(#{'__struct__' := ?BUFFER, ref := Ref, typespec := #{type := Type, shape := Shape}}, Limit)
  when is_integer(Limit) ->
    case tessera_remote:read(Ref, Limit) of
        Binary when is_binary(Binary) ->
            tessera_bits:trim(Binary, tessera_nx_tensor:core_type(Type), tessera_bits:first(Limit, Shape));
        {error, Cause} -> unreadable(read, Cause)
    end;
read_elements(#{'__struct__' := ?BUFFER}, Other) -> tessera_nx_error:expected("a number of elements", Other);
read_elements(Other, _) -> no_buffer(Other).

-spec no_buffer(term()) -> no_return().
no_buffer(Other) -> tessera_nx_error:expected("a Tessera.DeviceBuffer", Other).

-spec unreadable(atom(), map()) -> no_return().
unreadable(_, #{code := invalid_argument}) ->
    tessera_nx_error:runtime("unable to get buffer. It may belong to another node, "
                             "consider using Nx.backend_transfer/1", []);
unreadable(Name, Cause) -> tessera_nx_error:from_core(Name, Cause).

-spec deallocate(map()) -> ok | already_deallocated.
deallocate(#{'__struct__' := ?BUFFER, ref := Ref}) ->
    case tessera_remote:deallocate(Ref) of
        ok -> ok;
        deallocated -> already_deallocated;
        {error, Cause} -> unreadable(deallocate, Cause)
    end;
deallocate(Other) -> no_buffer(Other).

-spec 'deleted?'(map()) -> boolean().
'deleted?'(#{'__struct__' := ?BUFFER, ref := Ref}) ->
    case tessera_remote:read(Ref, 0) of
        {error, #{code := failed_precondition}} -> true;
        {error, Cause} -> unreadable(read, Cause);
        _ -> false
    end;
'deleted?'(Other) -> no_buffer(Other).

%% @private Elements as bitstrings. Elements of fewer than 8 bits are packed, the first one in the high bits; the native
%% library reads and writes whole bytes, the last one padded with zeros.
-module(tessera_bits).
-include("tessera.hrl").
-export([make/4, make/5, of_tensor/3, trim/3, first/2]).

%% As tessera_nif:from_binary/4, from a bitstring.
-spec make(bitstring(), tessera_type:type(), tessera_type:shape(), boolean()) ->
          tessera_type:tensor() | {pressure, tessera_type:tensor()} | tessera_nif:error().
make(Bits, Type, Shape, MustCopy) -> make(Bits, Type, Shape, MustCopy, undefined).

%% The same on a device.
-spec make(bitstring(), tessera_type:type(), tessera_type:shape(), boolean(), tessera_type:device() | undefined) ->
          tessera_type:tensor() | {pressure, tessera_type:tensor()} | tessera_nif:error().
make(Bits, Type, Shape, MustCopy, Device) when Type =:= s4; Type =:= u4; Type =:= s2; Type =:= u2 ->
    case is_bitstring(Bits) andalso tessera_type:is_shape(Shape) of
        true -> make_packed(Bits, Type, Shape, Device);
        false -> tessera_nif:from_binary(Bits, Type, Shape, MustCopy, Device)
    end;
make(Binary, Type, Shape, MustCopy, Device) -> tessera_nif:from_binary(Binary, Type, Shape, MustCopy, Device).

make_packed(Bits, Type, Shape, Device) ->
    case tessera_type:bits(Type) * tessera_type:elements(Shape) of
        Size when Size =:= bit_size(Bits) ->
            Pad = -Size band 7,
            tessera_nif:from_binary(<<Bits/bitstring, 0:Pad>>, Type, Shape, true, Device);
        Size ->
            Message = io_lib:format("~s takes ~b bits, got a bitstring of ~b",
                                    [tessera_type:format(Type, Shape), Size, bit_size(Bits)]),
            {error, #{code => invalid_argument, message => unicode:characters_to_binary(Message)}}
    end.

%% The bits of the elements in the bytes that the native library wrote.
-spec trim(binary(), tessera_type:type(), non_neg_integer()) -> bitstring().
trim(Binary, Type, Elements) when Type =:= s4; Type =:= u4; Type =:= s2; Type =:= u2 ->
    Size = tessera_type:bits(Type) * Elements,
    <<Bits:Size/bitstring, _/bitstring>> = Binary,
    Bits;
trim(Binary, _, _) -> Binary.

%% The same for all elements of a tensor. Type and shape are what its record says, which may be forged.
-spec of_tensor(binary(), term(), term()) -> bitstring() | tessera_nif:error().
of_tensor(Binary, Type, Shape) when Type =:= s4; Type =:= u4; Type =:= s2; Type =:= u2 ->
    Size = case tessera_type:is_shape(Shape) of
               true -> tessera_type:bits(Type) * tessera_type:elements(Shape);
               false -> infinity
           end,
    case Size =< bit_size(Binary) of
        true -> trim(Binary, Type, tessera_type:elements(Shape));
        false -> {error, #{code => invalid_argument, message => <<"the record of the tensor is not its own">>}}
    end;
of_tensor(Binary, _, _) -> Binary.

%% The number of elements to read when the caller asks for at most Limit; all when it is negative.
-spec first(integer(), tessera_type:shape()) -> non_neg_integer().
first(Limit, Shape) when Limit < 0 -> tessera_type:elements(Shape);
first(Limit, Shape) -> min(Limit, tessera_type:elements(Shape)).

%% @private Tensors made of terms, and what can be read of a tensor. The API in tessera.erl documents the functions.
-module(tessera_array).
-include("tessera.hrl").
-compile({no_auto_import, [size/1, byte_size/1]}).
-export([tensor/1, tensor/2, from_binary/3, iota/1, iota/2, iota/3, full/2, full/3, zeros/1, zeros/2, ones/1, ones/2,
         eye/1, eye/2, to_binary/1, to_list/1, to_number/1, type/1, shape/1, rank/1, size/1, byte_size/1,
         known_size/4, is_tensor/1, no_tensor/2]).

-spec tensor(tessera_type:tensor() | tessera_type:operand() | [term()]) -> tessera_type:tensor().
tensor(#tessera{} = T) -> T;
tensor(Data) when is_bitstring(Data) ->
    tessera_error:raise(tensor, [], invalid_argument, "tensor: a binary needs a type: tensor(Binary, Type)", []);
tensor(Data) -> tessera_memory:made(tensor, [Data], fun() -> tessera_nif:from_list(Data, undefined) end).

-spec tensor(tessera_type:tensor() | tessera_type:operand() | [term()] | bitstring(), tessera_type:type()) -> tessera_type:tensor().
tensor(#tessera{} = T, Type) -> tessera_ops:as_type(T, Type);
tensor(Data, Type) when is_bitstring(Data) ->
    case tessera_type:is_type(Type) of
        true ->
            Bits = tessera_type:bits(Type),
            bit_size(Data) rem Bits =:= 0 orelse
                tessera_error:raise(tensor, [], invalid_argument, "tensor: expected a binary of whole ~s, ~s each, got ~s",
                                    [Type, binary_size(Bits), binary_size(bit_size(Data))]),
            from_binary(Data, Type, {bit_size(Data) div Bits});
        false -> tessera_memory:made(tensor, [Data, Type], fun() -> tessera_nif:from_binary(Data, Type, {}, false) end)
    end;
tensor(Data, undefined) ->
    tessera_error:raise(tensor, [Data, undefined], invalid_argument, "tensor: expected a type, got undefined", []);
tensor(Data, Type) -> tessera_memory:made(tensor, [Data, Type], fun() -> tessera_nif:from_list(Data, Type) end).

binary_size(Bits) when Bits rem 8 =:= 0 -> [integer_to_list(Bits div 8), " bytes"];
binary_size(Bits) -> [integer_to_list(Bits), " bits"].

-spec from_binary(bitstring(), tessera_type:type(), tessera_type:shape()) -> tessera_type:tensor().
from_binary(Binary, Type, Shape) ->
    %% A small part of a large binary would keep all of that.
    MustCopy = is_binary(Binary) andalso binary:referenced_byte_size(Binary) > 2 * erlang:byte_size(Binary),
    tessera_memory:made(from_binary, [Binary, Type, Shape],
                        fun() -> tessera_bits:make(Binary, Type, Shape, MustCopy) end).

-spec iota(tessera_type:shape()) -> tessera_type:tensor().
iota(Shape) -> tessera_ops:iota([Shape], Shape, #{}).

-spec iota(tessera_type:shape(), tessera_type:type() | tessera_options:iota_options()) -> tessera_type:tensor().
iota(Shape, Options) when is_map(Options) -> tessera_ops:iota([Shape, Options], Shape, Options);
iota(Shape, Type) -> tessera_ops:iota([Shape, Type], Shape, {Type, all}).

-spec iota(tessera_type:shape(), tessera_type:type(), all | integer() | tessera_options:iota_options()) -> tessera_type:tensor().
iota(Shape, Type, Options) -> tessera_ops:iota([Shape, Type, Options], Shape, {Type, Options}).

-spec full(tessera_type:shape(), tessera_type:operand()) -> tessera_type:tensor().
full(Shape, Number) -> full(full, [Shape, Number], Number, tessera_operand:type_of(Number)).

-spec full(tessera_type:shape(), tessera_type:operand(), tessera_type:type()) -> tessera_type:tensor().
full(Shape, Number, Type) -> full(full, [Shape, Number, Type], Number, Type).

full(Name, [Shape | _] = Args, Value, Type) ->
    ok = tessera_ops:type_and_shape(Name, Args, Type, Shape),
    case Value of
        #tessera{} -> tessera_ops:broadcast_to(Name, tessera_ops:as_type(Name, Value, Type), Shape);
        _ -> tessera_ops:source(Name, constant, {Type, Shape, Value})
    end.

-spec zeros(tessera_type:shape()) -> tessera_type:tensor().
zeros(Shape) -> full(zeros, [Shape], 0, f32).

-spec zeros(tessera_type:shape(), tessera_type:type()) -> tessera_type:tensor().
zeros(Shape, Type) -> full(zeros, [Shape, Type], 0, Type).

-spec ones(tessera_type:shape()) -> tessera_type:tensor().
ones(Shape) -> full(ones, [Shape], 1, f32).

-spec ones(tessera_type:shape(), tessera_type:type()) -> tessera_type:tensor().
ones(Shape, Type) -> full(ones, [Shape, Type], 1, Type).

-spec eye(non_neg_integer() | tessera_type:shape()) -> tessera_type:tensor().
eye(Size) -> eye([Size], Size, f32).

-spec eye(non_neg_integer() | tessera_type:shape(), tessera_type:type()) -> tessera_type:tensor().
eye(Size, Type) -> eye([Size, Type], Size, Type).

eye(Args, Size, Type) when is_integer(Size) -> eye(Args, {Size, Size}, Type);
eye(Args, Shape, _Type) when is_tuple(Shape), tuple_size(Shape) < 2 ->
    tessera_error:raise(eye, Args, invalid_argument, "eye: expected a size or a shape of rank 2 or more, got ~0p",
                        [Shape]);
eye(Args, Shape, Type) ->
    ok = tessera_ops:type_and_shape(eye, Args, Type, Shape),
    tessera_ops:source(eye, {Type, Shape}).

-spec to_binary(tessera_type:tensor()) -> bitstring().
to_binary(Tensor) -> contents(to_binary, Tensor, fun read_binary/1).

read_binary(#tessera{ref = Ref, type = Type, shape = Shape}) ->
    case tessera_remote:read(Ref, -1) of
        Binary when is_binary(Binary) -> tessera_bits:of_tensor(Binary, Type, Shape);
        Error -> Error
    end.

-spec to_list(tessera_type:tensor()) -> tessera_type:operand() | [term()].
to_list(Tensor) -> contents(to_list, Tensor, fun read_list/1).

-spec to_number(tessera_type:tensor()) -> number() | nan | infinity | neg_infinity.
to_number(#tessera{ref = Ref} = Tensor) when Ref =/= undefined ->
    #tessera{type = Type, shape = Shape} = tessera_operand:operand(to_number, Tensor),
    tessera_type:elements(Shape) =:= 1 orelse
        tessera_error:raise(to_number, [Tensor], invalid_argument, "to_number(~s): expected one element",
                            [tessera_type:format(Type, Shape)]),
    unwrap(contents(to_number, Tensor, fun read_list/1));
to_number(Other) -> contents(to_number, Other, fun read_list/1).

%% The number in Tensor, which is the size of a result that depends on contents. While a function is traced there is no such number,
%% and the error names the option of the function Name that gives one.
-spec known_size(atom(), [term()], tessera_type:tensor(), string()) -> number() | nan | infinity | neg_infinity.
known_size(Name, Args, Tensor, Option) ->
    tessera_trace:is_tracing() andalso
        tessera_error:raise(Name, Args, invalid_argument,
                            "~s: the size of the result is not known while a function is traced; the option ~s gives it", [Name, Option]),
    to_number(Tensor).

unwrap([Item]) -> unwrap(Item);
unwrap(Number) -> Number.

contents(Name, #tessera{ref = Ref} = Tensor, Read) when is_reference(Ref) ->
    tessera_trace:check_readable(Name, Tensor),
    tessera_error:check(Name, [Tensor], Read(Tensor));
contents(Name, #tessera{ref = undefined} = Template, _) -> no_tensor(Name, Template);
contents(Name, #tessera{} = Tensor, _) ->
    #tessera{type = Type, shape = Shape} = tessera_operand:operand(Name, Tensor),
    tessera_error:raise(Name, [Tensor], failed_precondition,
                        "~s(~s): the value has no contents while the function is traced",
                        [Name, tessera_type:format(Type, Shape)]);
contents(Name, Other, _) -> no_tensor(Name, Other).

read_list(#tessera{ref = Ref} = Tensor) ->
    case tessera_remote:is_elsewhere(Tensor) of
        false -> tessera_nif:to_list(Ref);
        true ->
            case tessera_remote:fetch(Tensor) of
                #tessera{ref = Here} -> tessera_nif:to_list(Here);
                Error -> Error
            end
    end.

-spec no_tensor(atom(), term()) -> no_return().
no_tensor(Name, #tessera{ref = undefined} = Template) ->
    tessera_error:raise(Name, [], failed_precondition, "~s: expected a tensor, got ~ts, which has no contents",
                        [Name, tessera_error:show(Template)]);
no_tensor(Name, Other) ->
    tessera_error:raise(Name, [], invalid_argument, "~s: expected a tensor, got ~ts",
                        [Name, tessera_error:show(Other)]).

-spec type(tessera_type:operand()) -> tessera_type:type().
type(Operand) -> tessera_operand:type_of(tessera_operand:operand(type, Operand)).

-spec shape(tessera_type:operand()) -> tessera_type:shape().
shape(Operand) -> shape(shape, Operand).

shape(Name, Operand) -> tessera_operand:shape_of(tessera_operand:operand(Name, Operand)).

-spec rank(tessera_type:operand()) -> non_neg_integer().
rank(Operand) -> tuple_size(shape(rank, Operand)).

-spec size(tessera_type:operand()) -> non_neg_integer().
size(Operand) -> tessera_type:elements(shape(size, Operand)).

-spec byte_size(tessera_type:operand()) -> non_neg_integer().
byte_size(Operand) -> tessera_type:elements(shape(byte_size, Operand)) * tessera_type:bytes(type(Operand)).

-spec is_tensor(term()) -> boolean().
is_tensor(Term) -> is_record(Term, tessera).

%% @doc Tensors and compiled functions of them.
%%
%% A tensor is an immutable array of numbers of one {@type type()}. Functions
%% take tensors and plain numbers alike. Shapes broadcast as in NumPy: aligned
%% at the last axis, a size of 1 stretches. Types merge as in Nx: floats win over
%% integers, and a plain number takes the type of the tensor it meets, so that
%% adding 1 keeps `u8' and adding 1.5 to integers gives `f32'. Two plain numbers
%% make `s32' or `f32'. The atoms `nan', `infinity' and `neg_infinity' stand for
%% the floats that Erlang does not have, in both directions.
%%
%% Called on tensors, an op runs at once. {@link jit/1} makes one compiled program
%% of a whole function: while it is traced its arguments are stand-ins, on which
%% the same functions work, but which have no contents yet. Arguments and
%% results are tensors, numbers, and tuples, lists and maps of them. A program is
%% compiled once for each combination of types and shapes; a tensor that the
%% function holds in its environment is an argument like any other, so that it may
%% have another value in the next call without anything being compiled again.
%%
%% Axes count from 0, negative ones from the end. Options are maps.
%%
%% Where to look:
%% <ul>
%% <li>making tensors and reading them: {@link tensor/2}, {@link iota/3}, {@link full/3}, {@link from_binary/3};
%% {@link to_list/1}, {@link to_binary/1}, {@link print/1}, {@link shape/1}, {@link type/1}</li>
%% <li>elementwise: {@link add/2}, {@link multiply/2}, {@link exp/1}, {@link less/2}, {@link select/3},
%% {@link as_type/2} and their kin</li>
%% <li>shapes and parts: {@link reshape/2}, {@link transpose/2}, {@link broadcast/2}, {@link concatenate/2},
%% {@link slice/3}, {@link at/2}, {@link put_slice/3}, {@link take/3}</li>
%% <li>over axes: {@link sum/2}, {@link mean/2}, {@link argmax/2}, {@link cumulative_sum/2}, {@link softmax/2},
%% {@link reduce/4}; products: {@link dot/2}</li>
%% <li>functions: {@link jit/2}, {@link compile/3}, {@link grad/1}, {@link while/3}, {@link 'cond'/3};
%% looking at them: {@link explain/2}, {@link to_text/3}</li>
%% <li>the runtime: {@link memory/0}, {@link set_memory_limit/1}, {@link clear_cache/0}</li>
%% </ul>
%%
%% Misuse raises `error({Code, Message})' with a message that names the op, shapes
%% and types. The codes are `invalid_argument', `out_of_range',
%% `resource_exhausted', `failed_precondition', `unavailable', `unimplemented', `cancelled',
%% `data_loss' and `internal'.
%% ```
%% 1> F = tessera:jit(fun(X, W) -> tessera:sum(tessera:tanh(tessera:dot(X, W))) end).
%% 2> tessera:to_number(F(tessera:iota({2, 3}, f32), tessera:zeros({3, 2}, f32))).
%% 0.0
%% '''
-module(tessera).
-include("tessera.hrl").
-compile({no_auto_import, [abs/1, byte_size/1, ceil/1, floor/1, max/2, min/2, round/1, size/1]}).

%% tensors
-export([tensor/1, tensor/2, from_binary/3, template/2, iota/1, iota/2, iota/3, full/2, full/3, zeros/1, zeros/2,
         ones/1, ones/2, eye/1, eye/2, linspace/3, linspace/4, one_hot/2, one_hot/3,
         to_binary/1, to_list/1, to_number/1, type/1, shape/1, rank/1, size/1, axis_size/2, byte_size/1, is_tensor/1,
         format/1, print/1, deallocate/1]).
%% elementwise
-export([exp/1, expm1/1, log/1, log1p/1, sigmoid/1, cos/1, sin/1, tan/1, cosh/1, sinh/1, tanh/1, acos/1, asin/1,
         atan/1, acosh/1, asinh/1, atanh/1, sqrt/1, rsqrt/1, cbrt/1, erf/1, erfc/1, erf_inv/1, abs/1, negate/1,
         sign/1, ceil/1, floor/1, round/1, bitwise_not/1, count_leading_zeros/1, population_count/1, is_nan/1,
         is_infinity/1,
         logical_not/1, relu/1,
         add/2, subtract/2, multiply/2, divide/2, quotient/2, remainder/2, pow/2, atan2/2, min/2, max/2,
         bitwise_and/2, bitwise_or/2, bitwise_xor/2, left_shift/2, right_shift/2, equal/2, not_equal/2, greater/2,
         less/2, greater_equal/2, less_equal/2, logical_and/2, logical_or/2, logical_xor/2,
         select/3, clip/3, as_type/2, bitcast/2]).
%% shapes and indices
-export([reshape/2, flatten/1, squeeze/1, squeeze/2, new_axis/2, broadcast/2, broadcast/3, transpose/1, transpose/2,
         reverse/1, reverse/2, slice/3, slice/4, at/2, put_slice/3, pad/3, concatenate/1, concatenate/2,
         stack/1, stack/2, split/2, split/3, take/2, take/3, take_along_axis/2, take_along_axis/3]).
%% reductions and contraction
-export([sum/1, sum/2, product/1, product/2, reduce_max/1, reduce_max/2, reduce_min/1, reduce_min/2,
         all/1, all/2, any/1, any/2, mean/1, mean/2, variance/1, variance/2, standard_deviation/1,
         standard_deviation/2, argmax/1, argmax/2, argmin/1, argmin/2, reduce/3, reduce/4,
         cumulative_sum/1, cumulative_sum/2, cumulative_product/1, cumulative_product/2, cumulative_min/1,
         cumulative_min/2, cumulative_max/1, cumulative_max/2, logsumexp/1, logsumexp/2, softmax/1, softmax/2,
         log_softmax/1, log_softmax/2, dot/2, dot/4, dot/6, outer/2]).
%% functions
-export([jit/1, jit/2, compile/2, compile/3, while/3, 'cond'/3, grad/1, value_and_grad/1, stop_grad/1,
         explain/1, explain/2, to_text/2, to_text/3, run_text/2]).
%% the runtime
-export([memory/0, reset_peak_memory/0, set_memory_limit/1, trim/0, clear_cache/0, version/0]).
-export_type([tensor/0, operand/0, type/0, shape/0, options/0]).

-type type() :: s8 | s16 | s32 | s64 | u8 | u16 | u32 | u64 | f16 | bf16 | f32 | f64.
%% The type of elements: signed and unsigned integers and floats, with their bits.
-type shape() :: tuple().
%% The size of each axis: `{}' for a single number, `{2, 3}' for two rows of three.
-type tensor() :: #tessera{}.
-type operand() :: tensor() | number() | nan | infinity | neg_infinity.
-type options() :: map().

%% ---- tensors

%% @doc A tensor of a number, a list or nested lists of numbers. Integers give
%% s32, or s64 where that is too small; floats, or any float among them, f32.
%% ```
%% 1> tessera:shape(tessera:tensor([[1, 2, 3], [4, 5, 6]])).
%% {2,3}
%% 2> tessera:type(tessera:tensor(1.5)).
%% f32
%% '''
-spec tensor(tensor() | operand() | [term()]) -> tensor().
tensor(#tessera{} = T) -> T;
tensor(Data) when is_bitstring(Data) ->
    tessera_error:raise(tensor, [], invalid_argument, "tensor: a binary needs a type: tensor(Binary, Type)", []);
tensor(Data) -> tessera_memory:made(tensor, [Data], fun() -> tessera_nif:from_list(Data, undefined) end).

%% @doc The same with the type given. A binary has the elements in native byte order, in one axis.
%% ```
%% 1> tessera:to_list(tessera:tensor([1, 2.5, nan], f16)).
%% [1.0,2.5,nan]
%% 2> tessera:to_list(tessera:tensor(<<1, 2, 255>>, s8)).
%% [1,2,-1]
%% '''
-spec tensor(tensor() | operand() | [term()] | binary(), type()) -> tensor().
tensor(#tessera{} = T, Type) -> as_type(T, Type);
tensor(Data, Type) when is_binary(Data) ->
    case tessera_type:is_type(Type) of
        true ->
            Bytes = tessera_type:bytes(Type),
            erlang:byte_size(Data) rem Bytes =:= 0 orelse
                tessera_error:raise(tensor, [], invalid_argument,
                                    "tensor: expected a binary of whole ~s, ~b bytes each, got ~b",
                                    [Type, Bytes, erlang:byte_size(Data)]),
            from_binary(Data, Type, {erlang:byte_size(Data) div Bytes});
        false -> tessera_memory:made(tensor, [Data, Type], fun() -> tessera_nif:from_binary(Data, Type, {}, false) end)
    end;
tensor(Data, undefined) ->
    tessera_error:raise(tensor, [Data, undefined], invalid_argument, "tensor: expected a type, got undefined", []);
tensor(Data, Type) -> tessera_memory:made(tensor, [Data, Type], fun() -> tessera_nif:from_list(Data, Type) end).

%% @doc A tensor on the bytes of a binary: elements in row-major order and
%% native byte order. A large binary is not copied, but kept as it is.
%% ```
%% 1> tessera:to_list(tessera:from_binary(<<1, 2, 3, 4>>, u8, {2, 2})).
%% [[1,2],[3,4]]
%% '''
-spec from_binary(binary(), type(), shape()) -> tensor().
from_binary(Binary, Type, Shape) ->
    %% A small part of a large binary would keep all of that.
    MustCopy = is_binary(Binary) andalso binary:referenced_byte_size(Binary) > 2 * erlang:byte_size(Binary),
    tessera_memory:made(from_binary, [Binary, Type, Shape],
                        fun() -> tessera_nif:from_binary(Binary, Type, Shape, MustCopy) end).

%% @doc A stand-in with a type and a shape and no contents, for {@link compile/2}, {@link to_text/2} and
%% {@link explain/2}.
-spec template(type(), shape()) -> tensor().
template(Type, Shape) ->
    tessera_type:is_type(Type) orelse
        tessera_error:raise(template, [Type, Shape], invalid_argument, "template: expected a type such as f32, got ~ts",
                            [tessera_error:show(Type)]),
    _ = tessera_type:shape(template, [Type, Shape], Shape),
    #tessera{type = Type, shape = Shape}.

%% @doc The row-major index of each element: s32.
%% ```
%% 1> tessera:to_list(tessera:iota({2, 3})).
%% [[0,1,2],[3,4,5]]
%% '''
-spec iota(shape()) -> tensor().
iota(Shape) -> iota(Shape, s32).

%% @doc The same of another type.
-spec iota(shape(), type()) -> tensor().
iota(Shape, Type) -> tessera_ops:source(iota, {Type, Shape, -1}).

%% @doc The index along one axis.
%% ```
%% 1> tessera:to_list(tessera:iota({2, 3}, s32, 1)).
%% [[0,1,2],[0,1,2]]
%% '''
-spec iota(shape(), type(), integer()) -> tensor().
iota(Shape, Type, Axis) ->
    Args = [Shape, Type, Axis],
    Rank = tuple_size(tessera_type:shape(iota, Args, Shape)),
    tessera_ops:source(iota, {Type, Shape, tessera_type:axis(iota, Args, Axis, Rank)}).

%% @doc A number everywhere: s32 or f32, as the number is.
-spec full(shape(), operand()) -> tensor().
full(Shape, Number) -> full(full, Shape, Number, tessera_ops:type_of(Number)).

%% @doc A number everywhere.
%% ```
%% 1> tessera:to_list(tessera:full({2, 2}, 7, u8)).
%% [[7,7],[7,7]]
%% '''
-spec full(shape(), operand(), type()) -> tensor().
full(Shape, Number, Type) -> full(full, Shape, Number, Type).

full(Name, Shape, #tessera{} = Value, Type) ->
    tessera_ops:broadcast_to(Name, tessera_ops:as_type(Name, Value, Type), Shape);
full(Name, Shape, Number, Type) -> tessera_ops:source(Name, constant, {Type, Shape, Number}).

%% @doc Zeros, of type f32.
-spec zeros(shape()) -> tensor().
zeros(Shape) -> zeros(Shape, f32).

%% @doc Zeros.
-spec zeros(shape(), type()) -> tensor().
zeros(Shape, Type) -> full(zeros, Shape, 0, Type).

%% @doc Ones, of type f32.
-spec ones(shape()) -> tensor().
ones(Shape) -> ones(Shape, f32).

%% @doc Ones.
-spec ones(shape(), type()) -> tensor().
ones(Shape, Type) -> full(ones, Shape, 1, Type).

%% @doc The same as `eye(Size, s32)'.
-spec eye(non_neg_integer() | shape()) -> tensor().
eye(Size) -> eye(Size, s32).

%% @doc Ones where the last two indices agree, zeros elsewhere. Takes a shape or the size of a square.
%% ```
%% 1> tessera:to_list(tessera:eye(2)).
%% [[1,0],[0,1]]
%% '''
-spec eye(non_neg_integer() | shape(), type()) -> tensor().
eye(Size, Type) when is_integer(Size) -> eye({Size, Size}, Type);
eye(Shape, _Type) when is_tuple(Shape), tuple_size(Shape) < 2 ->
    tessera_error:raise(eye, [], invalid_argument, "eye: expected a size or a shape of rank 2 or more, got ~0p",
                        [Shape]);
eye(Shape, Type) -> tessera_ops:source(eye, {Type, Shape}).

%% @doc Numbers at equal distances, both ends included: f32.
%% ```
%% 1> tessera:to_list(tessera:linspace(0, 1, 5)).
%% [0.0,0.25,0.5,0.75,1.0]
%% '''
-spec linspace(number(), number(), pos_integer()) -> tensor().
linspace(From, To, Count) -> linspace(From, To, Count, f32).

%% @doc The same of another float type.
-spec linspace(number(), number(), pos_integer(), type()) -> tensor().
linspace(From, To, Count, Type) -> tessera_ops:linspace(From, To, Count, Type).

%% @doc For each index a row of Size elements with a one at that place: u8.
%% ```
%% 1> tessera:to_list(tessera:one_hot(tessera:tensor([2, 0]), 3)).
%% [[0,0,1],[1,0,0]]
%% '''
-spec one_hot(tensor(), pos_integer()) -> tensor().
one_hot(Indices, Size) -> one_hot(Indices, Size, u8).

%% @doc The same of another type.
-spec one_hot(tensor(), pos_integer(), type()) -> tensor().
one_hot(Indices, Size, Type) -> tessera_ops:one_hot(Indices, Size, Type).

%% @doc The elements in row-major order and native byte order. The binary is a view that keeps the tensor's memory.
%% ```
%% 1> tessera:to_binary(tessera:tensor([1, 2, 3], u8)).
%% <<1,2,3>>
%% '''
-spec to_binary(tensor()) -> binary().
to_binary(Tensor) -> contents(to_binary, Tensor, fun(#tessera{ref = Ref}) -> tessera_remote:read(Ref, -1) end).

%% @doc The elements as nested lists, a number for a tensor of rank 0.
%% ```
%% 1> tessera:to_list(tessera:tensor([[1.0, infinity], [2.0, 3.0]])).
%% [[1.0,infinity],[2.0,3.0]]
%% '''
-spec to_list(tensor()) -> operand() | [term()].
to_list(Tensor) -> contents(to_list, Tensor, fun read_list/1).

%% @doc The only element.
%% ```
%% 1> tessera:to_number(tessera:sum(tessera:tensor([1, 2, 3]))).
%% 6
%% '''
-spec to_number(tensor()) -> number() | nan | infinity | neg_infinity.
to_number(#tessera{ref = Ref, type = Type, shape = Shape} = Tensor) when Ref =/= undefined, is_tuple(Shape) ->
    tessera_type:elements(Shape) =:= 1 orelse
        tessera_error:raise(to_number, [Tensor], invalid_argument, "to_number(~s): expected one element",
                            [tessera_type:format(Type, Shape)]),
    unwrap(contents(to_number, Tensor, fun read_list/1));
to_number(Other) -> contents(to_number, Other, fun read_list/1).

unwrap([Item]) -> unwrap(Item);
unwrap(Number) -> Number.

contents(Name, #tessera{ref = Ref} = Tensor, Read) when is_reference(Ref) ->
    tessera_trace:check_readable(Name, Tensor),
    tessera_trace:check(Name, [Tensor], Read(Tensor));
contents(Name, #tessera{ref = undefined} = Template, _) -> no_tensor(Name, Template);
contents(Name, #tessera{type = Type, shape = Shape} = Tensor, _) ->
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

%% @doc The type of the elements.
%% ```
%% 1> tessera:type(tessera:add(tessera:tensor([1], u8), 1.5)).
%% f32
%% '''
-spec type(operand()) -> type().
type(Operand) -> tessera_ops:type_of(tessera_ops:operand(type, Operand)).

%% @doc The size of each axis.
-spec shape(operand()) -> shape().
shape(Operand) -> shape(shape, Operand).

%% For the function called Name.
shape(Name, Operand) -> tessera_ops:shape_of(tessera_ops:operand(Name, Operand)).

%% @doc The number of axes.
-spec rank(operand()) -> non_neg_integer().
rank(Operand) -> tuple_size(shape(rank, Operand)).

%% @doc The number of elements.
%% ```
%% 1> tessera:size(tessera:zeros({2, 3})).
%% 6
%% '''
-spec size(operand()) -> non_neg_integer().
size(Operand) -> tessera_type:elements(shape(size, Operand)).

%% @doc The size of one axis.
-spec axis_size(tensor(), integer()) -> non_neg_integer().
axis_size(Tensor, Axis) ->
    Shape = shape(axis_size, Tensor),
    element(tessera_type:axis(axis_size, [Tensor, Axis], Axis, tuple_size(Shape)) + 1, Shape).

%% @doc The bytes of all elements.
-spec byte_size(operand()) -> non_neg_integer().
byte_size(Operand) -> tessera_type:elements(shape(byte_size, Operand)) * tessera_type:bytes(type(Operand)).

-spec is_tensor(term()) -> boolean().
is_tensor(Term) -> is_record(Term, tessera).

%% @doc Type, shape and the first elements, for people.
%% ```
%% 1> io:format("~s", [tessera:format(tessera:tensor([[1, 2], [3, 4]]))]).
%% s32[2,2]
%% [
%%   [1, 2],
%%   [3, 4]
%% ]
%% '''
-spec format(tensor()) -> iolist().
format(#tessera{} = Tensor) -> tessera_print:format(Tensor);
format(Other) -> no_tensor(format, Other).

%% @doc Prints that, and gives the tensor back.
-spec print(Tensor) -> Tensor when Tensor :: tensor().
print(Tensor) ->
    io:format("~ts~n", [format(Tensor)]),
    Tensor.

%% @doc Gives the memory back now, instead of when the tensor is collected. Views
%% of it stay whole. Says whether there was something to give back.
-spec deallocate(tensor()) -> ok | already_deallocated.
deallocate(#tessera{ref = Ref} = Tensor) when Ref =/= undefined ->
    case tessera_trace:check(deallocate, [Tensor], tessera_remote:deallocate(Ref)) of
        ok -> ok;
        deallocated -> already_deallocated
    end;
deallocate(Other) -> no_tensor(deallocate, Other).


%% ---- elementwise, one operand. Math functions give floats: f32 for integers.

%% @doc e to the power of X.
%% ```
%% 1> tessera:to_list(tessera:exp(tessera:tensor([0.0, 1.0]))).
%% [1.0,2.7182817459106445]
%% '''
-spec exp(operand()) -> tensor().
exp(X) -> tessera_trace:op(exp, [X], []).

%% @doc exp(X) - 1, exact near 0.
-spec expm1(operand()) -> tensor().
expm1(X) -> tessera_trace:op(expm1, [X], []).

%% @doc The natural logarithm.
-spec log(operand()) -> tensor().
log(X) -> tessera_trace:op(log, [X], []).

%% @doc log(1 + X), exact near 0.
-spec log1p(operand()) -> tensor().
log1p(X) -> tessera_trace:op(log1p, [X], []).

%% @doc 1 / (1 + exp(-X)).
%% ```
%% 1> tessera:to_number(tessera:sigmoid(0.0)).
%% 0.5
%% '''
-spec sigmoid(operand()) -> tensor().
sigmoid(X) -> tessera_trace:op(sigmoid, [X], []).

%% @doc The cosine.
-spec cos(operand()) -> tensor().
cos(X) -> tessera_trace:op(cos, [X], []).

%% @doc The sine.
-spec sin(operand()) -> tensor().
sin(X) -> tessera_trace:op(sin, [X], []).

%% @doc The tangent.
-spec tan(operand()) -> tensor().
tan(X) -> tessera_trace:op(tan, [X], []).

%% @doc The hyperbolic cosine.
-spec cosh(operand()) -> tensor().
cosh(X) -> tessera_trace:op(cosh, [X], []).

%% @doc The hyperbolic sine.
-spec sinh(operand()) -> tensor().
sinh(X) -> tessera_trace:op(sinh, [X], []).

%% @doc The hyperbolic tangent.
-spec tanh(operand()) -> tensor().
tanh(X) -> tessera_trace:op(tanh, [X], []).

%% @doc The inverse cosine.
-spec acos(operand()) -> tensor().
acos(X) -> tessera_trace:op(acos, [X], []).

%% @doc The inverse sine.
-spec asin(operand()) -> tensor().
asin(X) -> tessera_trace:op(asin, [X], []).

%% @doc The inverse tangent.
-spec atan(operand()) -> tensor().
atan(X) -> tessera_trace:op(atan, [X], []).

%% @doc The inverse hyperbolic cosine.
-spec acosh(operand()) -> tensor().
acosh(X) -> tessera_trace:op(acosh, [X], []).

%% @doc The inverse hyperbolic sine.
-spec asinh(operand()) -> tensor().
asinh(X) -> tessera_trace:op(asinh, [X], []).

%% @doc The inverse hyperbolic tangent.
-spec atanh(operand()) -> tensor().
atanh(X) -> tessera_trace:op(atanh, [X], []).

%% @doc The square root.
%% ```
%% 1> tessera:to_list(tessera:sqrt(tessera:tensor([4, 9]))).
%% [2.0,3.0]
%% '''
-spec sqrt(operand()) -> tensor().
sqrt(X) -> tessera_trace:op(sqrt, [X], []).

%% @doc 1 / sqrt(X).
-spec rsqrt(operand()) -> tensor().
rsqrt(X) -> tessera_trace:op(rsqrt, [X], []).

%% @doc The cube root.
-spec cbrt(operand()) -> tensor().
cbrt(X) -> tessera_trace:op(cbrt, [X], []).

%% @doc The error function.
-spec erf(operand()) -> tensor().
erf(X) -> tessera_trace:op(erf, [X], []).

%% @doc 1 - erf(X).
-spec erfc(operand()) -> tensor().
erfc(X) -> tessera_trace:op(erfc, [X], []).

%% @doc The inverse of the error function.
-spec erf_inv(operand()) -> tensor().
erf_inv(X) -> tessera_trace:op(erf_inv, [X], []).

%% @doc The absolute value.
%% ```
%% 1> tessera:to_list(tessera:abs(tessera:tensor([-2, 3]))).
%% [2,3]
%% '''
-spec abs(operand()) -> tensor().
abs(X) -> tessera_trace:op(abs, [X], []).

%% @doc -X.
%% ```
%% 1> tessera:to_list(tessera:negate(tessera:tensor([-2, 3]))).
%% [2,-3]
%% '''
-spec negate(operand()) -> tensor().
negate(X) -> tessera_trace:op(negate, [X], []).

%% @doc -1, 0 or 1; NaN stays.
%% ```
%% 1> tessera:to_list(tessera:sign(tessera:tensor([-0.5, 0.0, 7.0]))).
%% [-1.0,0.0,1.0]
%% '''
-spec sign(operand()) -> tensor().
sign(X) -> tessera_trace:op(sign, [X], []).

%% @doc The next integer above; X itself for integers.
-spec ceil(operand()) -> tensor().
ceil(X) -> tessera_trace:op(ceil, [X], []).

%% @doc The next integer below; X itself for integers.
-spec floor(operand()) -> tensor().
floor(X) -> tessera_trace:op(floor, [X], []).

%% @doc The nearest integer, halves away from zero.
%% ```
%% 1> tessera:to_list(tessera:round(tessera:tensor([0.5, 1.5, -2.4]))).
%% [1.0,2.0,-2.0]
%% '''
-spec round(operand()) -> tensor().
round(X) -> tessera_trace:op(round, [X], []).

%% @doc Every bit flipped; integers only.
%% ```
%% 1> tessera:to_list(tessera:bitwise_not(tessera:tensor([0, 1], u8))).
%% [255,254]
%% '''
-spec bitwise_not(operand()) -> tensor().
bitwise_not(X) -> tessera_trace:op(bitwise_not, [X], []).

%% @doc Zero bits above the highest one; integers only.
%% ```
%% 1> tessera:to_list(tessera:count_leading_zeros(tessera:tensor([1, 255], u8))).
%% [7,0]
%% '''
-spec count_leading_zeros(operand()) -> tensor().
count_leading_zeros(X) -> tessera_trace:op(count_leading_zeros, [X], []).

%% @doc How many bits are one; integers only.
%% ```
%% 1> tessera:to_list(tessera:population_count(tessera:tensor([7, 8]))).
%% [3,1]
%% '''
-spec population_count(operand()) -> tensor().
population_count(X) -> tessera_trace:op(population_count, [X], []).

%% @doc 1 where an element is NaN, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:is_nan(tessera:tensor([nan, 1.0]))).
%% [1,0]
%% '''
-spec is_nan(operand()) -> tensor().
is_nan(X) -> tessera_trace:op(is_nan, [X], []).

%% @doc 1 where an element is infinite, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:is_infinity(tessera:tensor([neg_infinity, 1.0]))).
%% [1,0]
%% '''
-spec is_infinity(operand()) -> tensor().
is_infinity(X) -> tessera_trace:op(is_infinity, [X], []).

%% ---- elementwise, two operands. Shapes broadcast, types merge.

%% @doc A + B.
%% ```
%% 1> tessera:to_list(tessera:add(tessera:tensor([[1, 2], [3, 4]]), tessera:tensor([10, 20]))).
%% [[11,22],[13,24]]
%% '''
-spec add(operand(), operand()) -> tensor().
add(A, B) -> tessera_trace:op(add, [A, B], []).

%% @doc A - B.
%% ```
%% 1> tessera:to_list(tessera:subtract(10, tessera:tensor([1, 2]))).
%% [9,8]
%% '''
-spec subtract(operand(), operand()) -> tensor().
subtract(A, B) -> tessera_trace:op(subtract, [A, B], []).

%% @doc A * B.
%% ```
%% 1> tessera:to_list(tessera:multiply(tessera:tensor([1, 2]), 1.5)).
%% [1.5,3.0]
%% '''
-spec multiply(operand(), operand()) -> tensor().
multiply(A, B) -> tessera_trace:op(multiply, [A, B], []).

%% @doc A / B, of a float type.
%% ```
%% 1> tessera:to_list(tessera:divide(tessera:tensor([1, 2]), 2)).
%% [0.5,1.0]
%% '''
-spec divide(operand(), operand()) -> tensor().
divide(A, B) -> tessera_trace:op(divide, [A, B], []).

%% @doc Integer division that truncates. By zero gives all ones, and the smallest integer by -1 itself.
%% ```
%% 1> tessera:to_list(tessera:quotient(tessera:tensor([7, -7]), 2)).
%% [3,-3]
%% '''
-spec quotient(operand(), operand()) -> tensor().
quotient(A, B) -> tessera_trace:op(quotient, [A, B], []).

%% @doc What is left of a division, with the sign of A; A itself where B is 0.
%% ```
%% 1> tessera:to_list(tessera:remainder(tessera:tensor([7, -7]), 3)).
%% [1,-1]
%% '''
-spec remainder(operand(), operand()) -> tensor().
remainder(A, B) -> tessera_trace:op(remainder, [A, B], []).

%% @doc A to the power of B. A negative power of integers is cut to an integer; that of 0 is 0.
%% ```
%% 1> tessera:to_list(tessera:pow(tessera:tensor([2, 3]), 2)).
%% [4,9]
%% '''
-spec pow(operand(), operand()) -> tensor().
pow(A, B) -> tessera_trace:op(pow, [A, B], []).

%% @doc The angle of the point (B, A).
-spec atan2(operand(), operand()) -> tensor().
atan2(A, B) -> tessera_trace:op(atan2, [A, B], []).

%% @doc The smaller one; NaN if either is.
%% ```
%% 1> tessera:to_list(tessera:min(tessera:tensor([1, 5]), 3)).
%% [1,3]
%% '''
-spec min(operand(), operand()) -> tensor().
min(A, B) -> tessera_trace:op(min, [A, B], []).

%% @doc The larger one; NaN if either is.
%% ```
%% 1> tessera:to_list(tessera:max(tessera:tensor([1, 5]), 3)).
%% [3,5]
%% '''
-spec max(operand(), operand()) -> tensor().
max(A, B) -> tessera_trace:op(max, [A, B], []).

%% @doc Integers only.
%% ```
%% 1> tessera:to_list(tessera:bitwise_and(tessera:tensor([6, 5]), 3)).
%% [2,1]
%% '''
-spec bitwise_and(operand(), operand()) -> tensor().
bitwise_and(A, B) -> tessera_trace:op(bitwise_and, [A, B], []).

%% @doc Integers only.
%% ```
%% 1> tessera:to_list(tessera:bitwise_or(tessera:tensor([6, 5]), 3)).
%% [7,7]
%% '''
-spec bitwise_or(operand(), operand()) -> tensor().
bitwise_or(A, B) -> tessera_trace:op(bitwise_or, [A, B], []).

%% @doc Integers only.
%% ```
%% 1> tessera:to_list(tessera:bitwise_xor(tessera:tensor([6, 5]), 3)).
%% [5,6]
%% '''
-spec bitwise_xor(operand(), operand()) -> tensor().
bitwise_xor(A, B) -> tessera_trace:op(bitwise_xor, [A, B], []).

%% @doc Integers only; 0 where B is not below the width.
%% ```
%% 1> tessera:to_list(tessera:left_shift(tessera:tensor([1, 3]), 2)).
%% [4,12]
%% '''
-spec left_shift(operand(), operand()) -> tensor().
left_shift(A, B) -> tessera_trace:op(left_shift, [A, B], []).

%% @doc Integers only; keeps the sign of signed types.
%% ```
%% 1> tessera:to_list(tessera:right_shift(tessera:tensor([-8, 9]), 1)).
%% [-4,4]
%% '''
-spec right_shift(operand(), operand()) -> tensor().
right_shift(A, B) -> tessera_trace:op(right_shift, [A, B], []).

%% @doc 1 where A equals B, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:equal(tessera:tensor([1, 2]), 2)).
%% [0,1]
%% '''
-spec equal(operand(), operand()) -> tensor().
equal(A, B) -> tessera_trace:op(equal, [A, B], []).

%% @doc 1 where A differs from B: u8. NaN differs from all.
%% ```
%% 1> tessera:to_list(tessera:not_equal(tessera:tensor([1, 2]), 2)).
%% [1,0]
%% '''
-spec not_equal(operand(), operand()) -> tensor().
not_equal(A, B) -> tessera_trace:op(not_equal, [A, B], []).

%% @doc 1 where A > B: u8.
%% ```
%% 1> tessera:to_list(tessera:greater(tessera:tensor([1, 2, 3]), 2)).
%% [0,0,1]
%% '''
-spec greater(operand(), operand()) -> tensor().
greater(A, B) -> tessera_trace:op(greater, [A, B], []).

%% @doc 1 where A is below B: u8.
%% ```
%% 1> tessera:to_list(tessera:less(tessera:tensor([1, 2, 3]), 2)).
%% [1,0,0]
%% '''
-spec less(operand(), operand()) -> tensor().
less(A, B) -> tessera_trace:op(less, [A, B], []).

%% @doc 1 where A >= B: u8.
%% ```
%% 1> tessera:to_list(tessera:greater_equal(tessera:tensor([1, 2, 3]), 2)).
%% [0,1,1]
%% '''
-spec greater_equal(operand(), operand()) -> tensor().
greater_equal(A, B) -> tessera_trace:op(greater_equal, [A, B], []).

%% @doc 1 where A is at most B: u8.
%% ```
%% 1> tessera:to_list(tessera:less_equal(tessera:tensor([1, 2, 3]), 2)).
%% [1,1,0]
%% '''
-spec less_equal(operand(), operand()) -> tensor().
less_equal(A, B) -> tessera_trace:op(less_equal, [A, B], []).

%% @doc 1 where both are not 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_and(tessera:tensor([0, 1, 2]), 1)).
%% [0,1,1]
%% '''
-spec logical_and(operand(), operand()) -> tensor().
logical_and(A, B) -> tessera_trace:op(logical_and, [A, B], []).

%% @doc 1 where one is not 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_or(tessera:tensor([0, 1, 2]), 0)).
%% [0,1,1]
%% '''
-spec logical_or(operand(), operand()) -> tensor().
logical_or(A, B) -> tessera_trace:op(logical_or, [A, B], []).

%% @doc 1 where exactly one is not 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_xor(tessera:tensor([0, 1, 2]), 1)).
%% [1,0,0]
%% '''
-spec logical_xor(operand(), operand()) -> tensor().
logical_xor(A, B) -> tessera_trace:op(logical_xor, [A, B], []).

%% @doc 1 where X is 0, else 0: u8.
-spec logical_not(operand()) -> tensor().
logical_not(X) -> tessera_trace:op(logical_not, equal, [X, 0], []).

%% @doc The larger of X and 0.
-spec relu(operand()) -> tensor().
relu(X) -> tessera_trace:op(relu, max, [X, 0], []).

%% @doc A where the predicate is not 0, else B; all three broadcast.
%% ```
%% 1> tessera:to_list(tessera:select(tessera:tensor([1, 0]), 5, tessera:tensor([7, 8]))).
%% [5,8]
%% '''
-spec select(operand(), operand(), operand()) -> tensor().
select(Predicate, A, B) -> tessera_trace:op(select, [Predicate, A, B], []).

%% @doc X, but not below Low nor above High.
%% ```
%% 1> tessera:to_list(tessera:clip(tessera:tensor([-1, 5, 20]), 0, 10)).
%% [0,5,10]
%% '''
-spec clip(operand(), operand(), operand()) -> tensor().
clip(X, Low, High) -> tessera_trace:op(clip, clamp, [X, Low, High], []).

%% @doc The elements converted. Floats become integers by truncation, limited to their range, and NaN becomes 0.
%% ```
%% 1> tessera:to_list(tessera:as_type(tessera:tensor([1.9, -300.0]), s8)).
%% [1,-128]
%% '''
-spec as_type(operand(), type()) -> tensor().
as_type(X, Type) -> tessera_ops:as_type(X, Type).

%% @doc The same bits as another type of the same width.
-spec bitcast(tensor(), type()) -> tensor().
bitcast(X, Type) -> tessera_trace:op(bitcast, [X], Type).

%% ---- shapes and indices

%% @doc The same elements, in row-major order, in another shape. Costs nothing.
%% ```
%% 1> tessera:to_list(tessera:reshape(tessera:iota({4}), {2, 2})).
%% [[0,1],[2,3]]
%% '''
-spec reshape(operand(), shape()) -> tensor().
reshape(X, Shape) -> tessera_ops:reshape(X, Shape).

%% @doc All elements in one axis.
-spec flatten(operand()) -> tensor().
flatten(X) -> tessera_ops:flatten(X).

%% @doc Without the axes of size 1.
-spec squeeze(operand()) -> tensor().
squeeze(X) -> tessera_ops:squeeze(X, all).

%% @doc Without these axes, which have size 1.
-spec squeeze(operand(), [integer()]) -> tensor().
squeeze(X, Axes) -> tessera_ops:squeeze(X, Axes).

%% @doc With an axis of size 1 at this place.
%% ```
%% 1> tessera:shape(tessera:new_axis(tessera:iota({3}), -1)).
%% {3,1}
%% '''
-spec new_axis(operand(), integer()) -> tensor().
new_axis(X, Axis) -> tessera_ops:new_axis(X, Axis).

%% @doc Repeated to a shape: aligned at the last axis, sizes of 1 stretch.
%% ```
%% 1> tessera:to_list(tessera:broadcast(tessera:iota({2}), {2, 2})).
%% [[0,1],[0,1]]
%% '''
-spec broadcast(operand(), shape()) -> tensor().
broadcast(X, Shape) -> tessera_ops:broadcast_to(X, Shape).

%% @doc The same, with the axis of the result for each axis of X.
%% ```
%% 1> tessera:to_list(tessera:broadcast(tessera:iota({2}), {2, 2}, [0])).
%% [[0,0],[1,1]]
%% '''
-spec broadcast(operand(), shape(), [integer()]) -> tensor().
broadcast(X, Shape, Axes) -> tessera_ops:broadcast(X, Shape, Axes).

%% @doc With the axes in reverse order.
%% ```
%% 1> tessera:to_list(tessera:transpose(tessera:iota({2, 2}))).
%% [[0,2],[1,3]]
%% '''
-spec transpose(operand()) -> tensor().
transpose(X) -> tessera_ops:transpose(X, reverse).

%% @doc Axis I of the result is axis number I of the list.
-spec transpose(operand(), [integer()]) -> tensor().
transpose(X, Axes) -> tessera_ops:transpose(X, Axes).

%% @doc Backwards along all axes.
-spec reverse(operand()) -> tensor().
reverse(X) -> tessera_ops:reverse(X, all).

%% @doc Backwards along these axes.
-spec reverse(operand(), [integer()]) -> tensor().
reverse(X, Axes) -> tessera_ops:reverse(X, Axes).

%% @doc A part: where it starts and how long it is along each axis. Starts that
%% are integers must be in range; starts that are tensors are moved so that the part fits.
%% ```
%% 1> tessera:to_list(tessera:slice(tessera:iota({3, 3}), [1, 0], [2, 2])).
%% [[3,4],[6,7]]
%% '''
-spec slice(tensor(), [operand()], [non_neg_integer()]) -> tensor().
slice(Tensor, Starts, Lengths) -> tessera_ops:slice(Tensor, Starts, Lengths, ones).

%% @doc The same, of which each axis gives every Stride-th element. Lengths are before that.
-spec slice(tensor(), [operand()], [non_neg_integer()], [pos_integer()]) -> tensor().
slice(Tensor, Starts, Lengths, Strides) -> tessera_ops:slice(Tensor, Starts, Lengths, Strides).

%% @doc What is at these indices of the first axes.
%% ```
%% 1> tessera:to_list(tessera:at(tessera:iota({2, 3}), [-1])).
%% [3,4,5]
%% '''
-spec at(tensor(), [operand()]) -> tensor().
at(Tensor, Indices) -> tessera_ops:at(Tensor, Indices).

%% @doc With a part replaced; starts are moved so that the part fits.
%% ```
%% 1> tessera:to_list(tessera:put_slice(tessera:iota({4}), [1], tessera:tensor([8, 9]))).
%% [0,8,9,3]
%% '''
-spec put_slice(tensor(), [operand()], operand()) -> tensor().
put_slice(Tensor, Starts, Slice) -> tessera_ops:put_slice(Tensor, Starts, Slice).

%% @doc With a value before, after and between the elements: `{Low, High, Interior}' for each axis. Negative Low and
%% High take elements away.
%% ```
%% 1> tessera:to_list(tessera:pad(tessera:iota({3}), 9, [{1, -1, 1}])).
%% [9,0,9,1,9]
%% '''
-spec pad(tensor(), operand(), [{integer(), integer(), non_neg_integer()}]) -> tensor().
pad(Tensor, Value, Config) -> tessera_ops:pad(Tensor, Value, Config).

%% @doc Tensors one after another along the first axis.
-spec concatenate([tensor()]) -> tensor().
concatenate(Tensors) -> tessera_ops:concatenate(Tensors, 0).

%% @doc Along another axis.
%% ```
%% 1> tessera:to_list(tessera:concatenate([tessera:eye(2), tessera:eye(2)], 1)).
%% [[1,0,1,0],[0,1,0,1]]
%% '''
-spec concatenate([tensor()], integer()) -> tensor().
concatenate(Tensors, Axis) -> tessera_ops:concatenate(Tensors, Axis).

%% @doc Tensors of one shape as rows of a new first axis.
-spec stack([operand()]) -> tensor().
stack(Tensors) -> tessera_ops:stack(Tensors, 0).

%% @doc Along a new axis at another place.
-spec stack([operand()], integer()) -> tensor().
stack(Tensors, Axis) -> tessera_ops:stack(Tensors, Axis).

%% @doc Parts of these sizes, along the first axis.
-spec split(tensor(), [non_neg_integer()]) -> [tensor()].
split(Tensor, Sizes) -> tessera_ops:split(Tensor, Sizes, 0).

%% @doc Along another axis.
-spec split(tensor(), [non_neg_integer()], integer()) -> [tensor()].
split(Tensor, Sizes, Axis) -> tessera_ops:split(Tensor, Sizes, Axis).

%% @doc The slices at these indices of the first axis.
-spec take(tensor(), operand()) -> tensor().
take(Tensor, Indices) -> take(Tensor, Indices, #{}).

%% @doc The slices at these indices of an axis, which the indices' axes replace. Indices out of range are moved to the
%% nearest one. Options: `axis'.
%% ```
%% 1> tessera:to_list(tessera:take(tessera:iota({3, 2}), tessera:tensor([2, 0]))).
%% [[4,5],[0,1]]
%% '''
-spec take(tensor(), operand(), options()) -> tensor().
take(Tensor, Indices, Options) -> tessera_ops:take(Tensor, Indices, Options).

%% @doc The same along the first axis.
-spec take_along_axis(tensor(), tensor()) -> tensor().
take_along_axis(Tensor, Indices) -> take_along_axis(Tensor, Indices, #{}).

%% @doc Along an axis, the element at the index that stands at each place. Options: `axis'.
%% ```
%% 1> tessera:to_list(tessera:take_along_axis(tessera:iota({2, 2}), tessera:tensor([[1], [0]]), #{axis => 1})).
%% [[1],[2]]
%% '''
-spec take_along_axis(tensor(), tensor(), options()) -> tensor().
take_along_axis(Tensor, Indices, Options) -> tessera_ops:take_along_axis(Tensor, Indices, Options).

%% ---- reductions

%% @doc The sum of all elements.
-spec sum(operand()) -> tensor().
sum(X) -> tessera_ops:reduce(sum, X, #{}).

%% @doc The sum over axes. Options: `axes', one or a list, all of them unless given; `keep_axes', `true' to keep them
%% with size 1. Small integers add up as s32 or u32.
%% ```
%% 1> tessera:to_list(tessera:sum(tessera:iota({2, 3}), #{axes => [1]})).
%% [3,12]
%% '''
-spec sum(operand(), options()) -> tensor().
sum(X, Options) -> tessera_ops:reduce(sum, X, Options).

%% @doc The product of all elements.
-spec product(operand()) -> tensor().
product(X) -> tessera_ops:reduce(product, X, #{}).

%% @doc The product over axes, with the options of {@link sum/2}.
-spec product(operand(), options()) -> tensor().
product(X, Options) -> tessera_ops:reduce(product, X, Options).

%% @doc The largest element; NaN if there is one.
-spec reduce_max(operand()) -> tensor().
reduce_max(X) -> tessera_ops:reduce(reduce_max, X, #{}).

%% @doc The largest element over axes, with the options of {@link sum/2}.
-spec reduce_max(operand(), options()) -> tensor().
reduce_max(X, Options) -> tessera_ops:reduce(reduce_max, X, Options).

%% @doc The smallest element; NaN if there is one.
-spec reduce_min(operand()) -> tensor().
reduce_min(X) -> tessera_ops:reduce(reduce_min, X, #{}).

%% @doc The smallest element over axes, with the options of {@link sum/2}.
-spec reduce_min(operand(), options()) -> tensor().
reduce_min(X, Options) -> tessera_ops:reduce(reduce_min, X, Options).

%% @doc 1 when no element is 0: u8.
-spec all(operand()) -> tensor().
all(X) -> tessera_ops:reduce(all, X, #{}).

%% @doc The same over axes, with the options of {@link sum/2}.
-spec all(operand(), options()) -> tensor().
all(X, Options) -> tessera_ops:reduce(all, X, Options).

%% @doc 1 when some element is not 0: u8.
-spec any(operand()) -> tensor().
any(X) -> tessera_ops:reduce(any, X, #{}).

%% @doc The same over axes, with the options of {@link sum/2}.
-spec any(operand(), options()) -> tensor().
any(X, Options) -> tessera_ops:reduce(any, X, Options).

%% @doc The mean of all elements.
%% ```
%% 1> tessera:to_number(tessera:mean(tessera:tensor([1, 2, 3, 4]))).
%% 2.5
%% '''
-spec mean(operand()) -> tensor().
mean(X) -> tessera_ops:mean(X, #{}).

%% @doc The mean over axes, with the options of {@link sum/2}.
-spec mean(operand(), options()) -> tensor().
mean(X, Options) -> tessera_ops:mean(X, Options).

%% @doc The variance of all elements.
-spec variance(operand()) -> tensor().
variance(X) -> tessera_ops:variance(X, #{}).

%% @doc The variance over axes. Options: `axes' and `keep_axes' as for {@link sum/2}; `ddof', what is subtracted
%% from the count that is divided by.
%% ```
%% 1> tessera:to_number(tessera:variance(tessera:tensor([1, 2, 3]), #{ddof => 1})).
%% 1.0
%% '''
-spec variance(operand(), options()) -> tensor().
variance(X, Options) -> tessera_ops:variance(X, Options).

%% @doc The square root of the variance.
-spec standard_deviation(operand()) -> tensor().
standard_deviation(X) -> standard_deviation(X, #{}).

%% @doc The same, with the options of {@link variance/2}.
-spec standard_deviation(operand(), options()) -> tensor().
standard_deviation(X, Options) -> tessera_ops:standard_deviation(X, Options).

%% @doc The row-major index of the largest element: s32.
-spec argmax(operand()) -> tensor().
argmax(X) -> tessera_ops:arg(argmax, X, #{}).

%% @doc The index of the largest element. Options: `axis', `keep_axis', `tie_break' (`low' or `high': which of equal
%% ones), `type'.
%% ```
%% 1> tessera:to_list(tessera:argmax(tessera:tensor([[1, 5, 5], [7, 2, 3]]), #{axis => 1, tie_break => high})).
%% [2,0]
%% '''
-spec argmax(operand(), options()) -> tensor().
argmax(X, Options) -> tessera_ops:arg(argmax, X, Options).

%% @doc The row-major index of the smallest element: s32.
-spec argmin(operand()) -> tensor().
argmin(X) -> tessera_ops:arg(argmin, X, #{}).

%% @doc The index of the smallest element, with the options of {@link argmax/2}.
-spec argmin(operand(), options()) -> tensor().
argmin(X, Options) -> tessera_ops:arg(argmin, X, Options).

%% @doc Folds all elements, in row-major order: `F(Element, Accumulator)' gives the next accumulator.
-spec reduce(tensor(), operand(), fun((tensor(), tensor()) -> operand())) -> tensor().
reduce(X, Initial, F) -> reduce(X, Initial, F, #{}).

%% @doc Folds over axes. Options: `axes', `keep_axes'.
%% ```
%% 1> tessera:to_list(tessera:reduce(tessera:tensor([[1, 2], [3, 4]]), 10, fun tessera:add/2, #{axes => [0]})).
%% [14,16]
%% '''
-spec reduce(tensor(), operand(), fun((tensor(), tensor()) -> operand()), options()) -> tensor().
reduce(X, Initial, F, Options) -> tessera_ops:fold(X, Initial, F, Options).

%% @doc The sum of each element and those before it, along the first axis.
-spec cumulative_sum(operand()) -> tensor().
cumulative_sum(X) -> cumulative_sum(X, #{}).

%% @doc Options: `axis', `reverse' (from the end).
%% ```
%% 1> tessera:to_list(tessera:cumulative_sum(tessera:tensor([1, 2, 3]), #{reverse => true})).
%% [6,5,3]
%% '''
-spec cumulative_sum(operand(), options()) -> tensor().
cumulative_sum(X, Options) -> tessera_ops:cumulative(cumulative_sum, X, Options).

%% @doc The product of each element and those before it, along the first axis.
-spec cumulative_product(operand()) -> tensor().
cumulative_product(X) -> cumulative_product(X, #{}).

%% @doc Options as for {@link cumulative_sum/2}.
-spec cumulative_product(operand(), options()) -> tensor().
cumulative_product(X, Options) -> tessera_ops:cumulative(cumulative_product, X, Options).

%% @doc The smallest of each element and those before it, along the first axis.
-spec cumulative_min(operand()) -> tensor().
cumulative_min(X) -> cumulative_min(X, #{}).

%% @doc Options as for {@link cumulative_sum/2}.
-spec cumulative_min(operand(), options()) -> tensor().
cumulative_min(X, Options) -> tessera_ops:cumulative(cumulative_min, X, Options).

%% @doc The largest of each element and those before it, along the first axis.
-spec cumulative_max(operand()) -> tensor().
cumulative_max(X) -> cumulative_max(X, #{}).

%% @doc Options as for {@link cumulative_sum/2}.
-spec cumulative_max(operand(), options()) -> tensor().
cumulative_max(X, Options) -> tessera_ops:cumulative(cumulative_max, X, Options).

%% @doc The logarithm of the sum of exponentials, of all elements.
-spec logsumexp(operand()) -> tensor().
logsumexp(X) -> tessera_ops:logsumexp(X, #{}).

%% @doc The same over axes, with the options of {@link sum/2}; does not overflow.
-spec logsumexp(operand(), options()) -> tensor().
logsumexp(X, Options) -> tessera_ops:logsumexp(X, Options).

%% @doc Exponentials that add up to 1 along the last axis.
%% ```
%% 1> tessera:to_list(tessera:softmax(tessera:tensor([0, 0]))).
%% [0.5,0.5]
%% '''
-spec softmax(operand()) -> tensor().
softmax(X) -> tessera_ops:softmax(X, #{}).

%% @doc Over other `axes'.
-spec softmax(operand(), options()) -> tensor().
softmax(X, Options) -> tessera_ops:softmax(X, Options).

%% @doc The logarithm of {@link softmax/1}.
-spec log_softmax(operand()) -> tensor().
log_softmax(X) -> tessera_ops:log_softmax(X, #{}).

%% @doc Over other `axes'.
-spec log_softmax(operand(), options()) -> tensor().
log_softmax(X, Options) -> tessera_ops:log_softmax(X, Options).

%% @doc The product over the last axis of A and the last but one of B: of vectors and matrices, the usual one.
%% ```
%% 1> tessera:to_list(tessera:dot(tessera:tensor([[1, 2], [3, 4]]), tessera:tensor([1, 1]))).
%% [3,7]
%% '''
-spec dot(operand(), operand()) -> tensor().
dot(A, B) -> tessera_ops:dot(A, B).

%% @doc Over these axes of A and of B, pairwise. The result has the other axes of A, then those of B.
-spec dot(tensor(), [integer()], tensor(), [integer()]) -> tensor().
dot(A, AxesA, B, AxesB) -> tessera_ops:dot(A, AxesA, B, AxesB).

%% @doc The same for each index of the batch axes, which come first in the result:
%% `dot(A, AxesA, BatchA, B, AxesB, BatchB)'.
%% ```
%% 1> A = tessera:iota({2, 1, 2}).
%% 2> tessera:to_list(tessera:dot(A, [2], [0], A, [2], [0])).
%% [[[1]],[[13]]]
%% '''
-spec dot(tensor(), [integer()], [integer()], tensor(), [integer()], [integer()]) -> tensor().
dot(A, AxesA, BatchA, B, AxesB, BatchB) -> tessera_ops:dot(A, AxesA, BatchA, B, AxesB, BatchB).

%% @doc The product of every element of A with every one of B: rank 2.
-spec outer(operand(), operand()) -> tensor().
outer(A, B) -> tessera_ops:outer(A, B).

%% ---- functions

%% @doc A function of the same arity that runs compiled. See the top of this page.
%% ```
%% 1> F = tessera:jit(fun(#{a := A, b := B}) -> {tessera:add(A, B), [tessera:multiply(A, B)]} end).
%% 2> {Sum, [Product]} = F(#{a => tessera:tensor([1, 2]), b => 3}).
%% 3> {tessera:to_list(Sum), tessera:to_list(Product)}.
%% {[4,5],[3,6]}
%% '''
-spec jit(Function) -> Function when Function :: function().
jit(F) -> jit(F, #{}).

%% @doc Options: `threads', at most this many for a call (0: all); `donate', a list of positions of arguments (from 1)
%% whose memory the call may use for its results, after which those tensors are gone; `fuse' and `simplify', whether to
%% do that (`true').
-spec jit(Function, options()) -> Function when Function :: function().
jit(F, Options) -> tessera_jit:jit(F, Options).

%% @doc Compiles now, for arguments like these: a list of tensors, templates, and containers of them. The function
%% it gives takes such arguments only.
%% ```
%% 1> F = tessera:compile(fun tessera:add/2, [tessera:template(f32, {2}), tessera:template(f32, {})]).
%% 2> tessera:to_list(F(tessera:tensor([1.0, 2.0]), 0.5)).
%% [1.5,2.5]
%% '''
-spec compile(Function, [term()]) -> Function when Function :: function().
compile(F, Templates) -> compile(F, Templates, #{}).

%% @doc With the options of {@link jit/2}.
-spec compile(Function, [term()], options()) -> Function when Function :: function().
compile(F, Templates, Options) -> tessera_jit:compile(F, Templates, Options).

%% @doc Repeats Body on what it carries, while Condition gives something else than 0. Types and shapes of what is
%% carried must not change.
%% ```
%% 1> {_, P} = tessera:while({0, 1}, fun({I, _}) -> tessera:less(I, 5) end,
%% 1>                        fun({I, P}) -> {tessera:add(I, 1), tessera:multiply(P, 2)} end).
%% 2> tessera:to_number(P).
%% 32
%% '''
-spec while(Carried, fun((Carried) -> operand()), fun((Carried) -> Carried)) -> Carried.
while(Initial, Condition, Body) -> tessera_control:while(Initial, Condition, Body).

%% @doc What True gives when the predicate is not 0, else what False gives. Only one of them runs; both give terms of
%% one form, whose types merge and shapes broadcast.
%% ```
%% 1> F = tessera:jit(fun(X) -> tessera:'cond'(tessera:greater(X, 0), fun() -> X end, fun() -> 0 end) end).
%% 2> [tessera:to_number(F(N)) || N <- [-2, 3]].
%% [0,3]
%% '''
-spec 'cond'(operand(), fun(() -> Result), fun(() -> Result)) -> Result.
'cond'(Predicate, True, False) -> tessera_control:'cond'(Predicate, True, False).

%% @doc The function that gives the gradient of F with respect to its first argument. F returns one float.
%% ```
%% 1> G = tessera:grad(fun(X) -> tessera:sum(tessera:pow(X, 2)) end).
%% 2> tessera:to_list(G(tessera:tensor([1.0, 3.0]))).
%% [2.0,6.0]
%% '''
-spec grad(function()) -> function().
grad(F) -> tessera_grad:grad(F).

%% @doc The same with the value: `{Value, Gradient}'. The gradient has the form of the first argument, whose integers
%% have the gradient 0.
-spec value_and_grad(function()) -> function().
value_and_grad(F) -> tessera_grad:value_and_grad(F).

%% @doc X, but a constant where gradients are concerned.
-spec stop_grad(operand()) -> tensor().
stop_grad(X) -> tessera_trace:stop_grad(X).

%% @doc The steps, kernels, costs and memory of a function from {@link compile/2}, for people.
-spec explain(function()) -> binary().
explain(F) -> explain(F, []).

%% @doc The same of any function, for these arguments or templates.
-spec explain(function(), [term()]) -> binary().
explain(F, Args) -> tessera_jit:explain(F, Args).

%% @doc The program that a function is for these arguments or templates, as text.
-spec to_text(function(), [term()]) -> binary().
to_text(F, Args) -> to_text(F, Args, tessera).

%% @doc The same in a form: `tessera', which {@link run_text/2} reads, or `stablehlo', a module for other compilers.
-spec to_text(function(), [term()], tessera | stablehlo) -> binary().
to_text(F, Args, Form) -> tessera_jit:text(F, Args, Form).

%% @doc Compiles and runs a program from its text, on tensors; gives the list of its results.
%% ```
%% 1> Text = tessera:to_text(fun(X) -> tessera:add(X, X) end, [tessera:template(s32, {2})]).
%% 2> [Y] = tessera:run_text(Text, [tessera:tensor([1, 2])]).
%% 3> tessera:to_list(Y).
%% [2,4]
%% '''
-spec run_text(binary(), [tensor()]) -> [tensor()].
run_text(Text, Args) -> tessera_jit:run_text(Text, Args).

%% ---- the runtime

%% @doc Bytes of tensor memory: `live' in use, `peak' the most there was, `pooled' kept for reuse or being made to
%% replace a block of small pages, `limit'; `held', what Erlang processes hold, which includes binaries of theirs;
%% `allocations'; and under `jit' the numbers of kernels that were `compiled', `loaded' from disk, `reused', and more.
-spec memory() -> #{live | peak | pooled | limit | held | allocations := integer(), jit := #{atom() => integer()},
                    programs := non_neg_integer()}.
memory() ->
    (tessera_nif:memory())#{jit => tessera_nif:jit_stats(), programs => tessera_cache:size()}.

%% @doc Starts `peak' anew.
-spec reset_peak_memory() -> ok.
reset_peak_memory() -> tessera_nif:reset_peak().

%% @doc The bytes that live and pooled memory may take together. An allocation past that first has garbage collected
%% in all processes, and then raises `resource_exhausted'.
-spec set_memory_limit(non_neg_integer()) -> ok.
set_memory_limit(Bytes) -> tessera_trace:check(set_memory_limit, [Bytes], tessera_nif:set_limit(Bytes)).

%% @doc Gives pooled memory back to the system.
-spec trim() -> ok.
trim() -> tessera_nif:trim().

%% @doc Forgets all compiled programs.
-spec clear_cache() -> ok.
clear_cache() ->
    ok = tessera_nif:eager_clear(),
    tessera_cache:clear().

-spec version() -> string().
version() ->
    _ = application:load(tessera),
    {ok, Version} = application:get_key(tessera, vsn),
    Version.

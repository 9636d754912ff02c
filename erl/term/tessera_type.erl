%% @private Types and shapes where Erlang needs to know them before C does.
-module(tessera_type).
-export([all/0, is_type/1, is_float_type/1, is_complex_type/1, is_inexact_type/1, part/1, merge/2, merge_number/2, merge_all/2, to_float/1,
         sum_type/1, range/1, fits/2, bytes/1, bits/1, kind/1, of_nx/1, index_type/1, broadcast/2, elements/1, axis/4, axes/4, shape/3,
         is_shape/1, is_proper/1, dims/1, format/2]).
-include("tessera.hrl").
-export_type([tensor/0, operand/0, real/0, type/0, shape/0, axes/0, window/0, device/0]).

%% tessera.erl documents the types.
-type device() :: {Client :: atom(), Number :: non_neg_integer()}.
-type type() :: s2 | s4 | s8 | s16 | s32 | s64 | u2 | u4 | u8 | u16 | u32 | u64 |
                f8 | f8_e4m3fn | f16 | bf16 | f32 | f64 | c64 | c128.
-type shape() :: tuple().
-type tensor() :: #tessera{}.
-type real() :: number() | nan | infinity | neg_infinity.
-type operand() :: tensor() | real() | {complex, real(), real()}.
-type axes() :: all | integer() | [integer()].
-type window() :: pos_integer() | tuple() | [pos_integer()].

%% all/0, kind/1, class/1, bytes/1, of_nx/1, from the core's table of types.
-include("tessera_types.hrl").

-spec is_type(term()) -> boolean().
is_type(Type) -> class(Type) =/= undefined.

-spec is_float_type(term()) -> boolean().
is_float_type(Type) -> class(Type) =:= float.

%% The bits of an element in a binary. In memory it takes whole bytes.
-spec bits(type()) -> pos_integer().
bits(Type) ->
    {_, Bits} = kind(Type),
    Bits.

-spec is_complex_type(term()) -> boolean().
is_complex_type(Type) -> class(Type) =:= complex.

%% Floats and complex numbers: types that have gradients and round.
-spec is_inexact_type(term()) -> boolean().
is_inexact_type(Type) -> is_float_type(Type) orelse is_complex_type(Type).

%% The type of the real and imaginary parts; a real type itself.
-spec part(type()) -> type().
part(c64) -> f32;
part(c128) -> f64;
part(Type) -> Type.

%% A float type or complex type itself, f32 for integers.
-spec to_float(type()) -> type().
to_float(Type) ->
    case is_inexact_type(Type) of
        true -> Type;
        false -> f32
    end.

%% The type of a sum or product of elements: integers of less than 32 bits are widened, as in Nx.
-spec sum_type(type()) -> type().
sum_type(Type) ->
    case kind(Type) of
        {s, Bits} when Bits < 32 -> s32;
        {u, Bits} when Bits < 32 -> u32;
        _ -> Type
    end.

%% Nx's promotion: floats over integers, signed over unsigned with room for both.
-spec merge(type(), type()) -> type().
merge(Type, Type) -> Type;
merge(A, B) ->
    case {kind(A), kind(B)} of
        {{c, X}, {c, Y}} when X >= Y -> A;
        {{c, _}, {c, _}} -> B;
        {{c, _}, {f, 64}} -> c128;
        {{c, _}, _} -> A;
        {_, {c, _}} -> merge(B, A);
        {{f, X}, {f, Y}} when X >= Y -> A;
        {{f, _}, {f, _}} -> B;
        {{f, _}, _} -> A;
        {_, {f, _}} -> B;
        {{f8_e4m3fn, _}, _} -> A;
        {_, {f8_e4m3fn, _}} -> B;
        {{bf, _}, _} -> A;
        {_, {bf, _}} -> B;
        {{Same, X}, {Same, Y}} when X >= Y -> A;
        {{Same, _}, {Same, _}} -> B;
        {{u, X}, {s, Y}} -> signed(max(min(2 * X, 64), Y));
        {{s, _}, {u, _}} -> merge(B, A)
    end.

%% The same for a type and a plain number: an integer type is widened until the integer fits; for an integer that
%% fits no type it is the widest.
-spec merge_number(type(), operand()) -> type().
merge_number(Type, {complex, _, _}) ->
    case Type of
        f64 -> c128;
        c128 -> c128;
        _ -> c64
    end;
merge_number(Type, Number) when not is_integer(Number) -> to_float(Type);
merge_number(Type, Integer) ->
    case fits(Type, Integer) orelse kind(Type) of
        true -> Type;
        {u, Bits} when Integer < 0 -> merge_number(signed(min(2 * Bits, 64)), Integer);
        {_, 64} -> Type;
        {u, Bits} -> merge_number(unsigned(2 * Bits), Integer);
        {s, Bits} -> merge_number(signed(2 * Bits), Integer)
    end.

%% The common type of tensors with these types and of numbers, as ts_op_operand_types: independent of their order.
-spec merge_all([type()], [operand()]) -> type().
merge_all([], Numbers) ->
    Large = lists:any(fun(N) -> is_integer(N) andalso N >= 1 bsl 63 end, Numbers),
    merge_all([case Large of true -> u64; false -> s32 end], Numbers);
merge_all([Type | Types], Numbers) ->
    {Sorted, Atoms} = lists:partition(fun erlang:is_number/1, lists:sort(Numbers)),
    lists:foldl(fun(N, T) -> merge_number(T, N) end, lists:foldl(fun merge/2, Type, Types), Sorted ++ Atoms).

%% Whether an element of the type can represent the number; floats round, integers
%% do not.
-spec fits(type(), operand()) -> boolean().
fits(Type, {complex, _, _}) -> is_complex_type(Type);
fits(Type, Number) ->
    is_inexact_type(Type) orelse
        is_integer(Number) andalso
            begin
                {Least, Largest} = range(Type),
                Number >= Least andalso Number =< Largest
            end.

%% The smallest and the largest integer of an integer type.
-spec range(type()) -> {integer(), integer()}.
range(Type) ->
    case kind(Type) of
        {s, Bits} -> {-(1 bsl (Bits - 1)), (1 bsl (Bits - 1)) - 1};
        {u, Bits} -> {0, (1 bsl Bits) - 1}
    end.

unsigned(Bits) -> of_nx({u, Bits}).
signed(Bits) -> of_nx({s, Bits}).

%% The shape that both broadcast to, or error.
-spec broadcast(shape(), shape()) -> shape() | error.
broadcast(Shape, Shape) -> Shape;
broadcast(A, B) ->
    case broadcast_dims(lists:reverse(tuple_to_list(A)), lists:reverse(tuple_to_list(B)), []) of
        error -> error;
        Dims -> list_to_tuple(Dims)
    end.

broadcast_dims([D | As], [D | Bs], Dims) -> broadcast_dims(As, Bs, [D | Dims]);
broadcast_dims([1 | As], [D | Bs], Dims) -> broadcast_dims(As, Bs, [D | Dims]);
broadcast_dims([D | As], [1 | Bs], Dims) -> broadcast_dims(As, Bs, [D | Dims]);
broadcast_dims([], Bs, Dims) -> lists:reverse(Bs, Dims);
broadcast_dims(As, [], Dims) -> lists:reverse(As, Dims);
broadcast_dims(_, _, _) -> error.

-spec elements(shape()) -> non_neg_integer().
elements(Shape) -> lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)).

%% The type of indices below a count, and of counts below it: s32 where that holds them.
-spec index_type(non_neg_integer()) -> s32 | s64.
index_type(Count) when Count =< 1 bsl 31 -> s32;
index_type(_) -> s64.

%% An axis from 0; negative ones count from the end. Name and Args are the caller's, for the error.
-spec axis(atom(), [term()], integer(), non_neg_integer()) -> non_neg_integer().
axis(_, _, Axis, Rank) when is_integer(Axis), Axis >= 0, Axis < Rank -> Axis;
axis(_, _, Axis, Rank) when is_integer(Axis), Axis < 0, Axis >= -Rank -> Axis + Rank;
axis(Name, Args, Axis, Rank) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: no axis ~ts in a tensor of rank ~b",
                        [Name, tessera_error:show(Axis), Rank]).

%% Different axes; `all' of them.
-spec axes(atom(), [term()], all | integer() | [integer()], non_neg_integer()) -> [non_neg_integer()].
axes(_, _, all, Rank) -> dims(Rank);
axes(Name, Args, Axis, Rank) when is_integer(Axis) -> [axis(Name, Args, Axis, Rank)];
axes(Name, Args, Axes, Rank) ->
    is_proper(Axes) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected an axis or a list of axes, got ~ts",
                            [Name, tessera_error:show(Axes)]),
    Result = [axis(Name, Args, Axis, Rank) || Axis <- Axes],
    length(lists:usort(Result)) =:= length(Result) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: an axis is there twice in ~0p", [Name, Axes]),
    Result.

%% A tuple of sizes. C checks their number and the total size.
-spec shape(atom(), [term()], term()) -> shape().
shape(Name, Args, Shape) ->
    is_shape(Shape) orelse bad_shape(Name, Args, Shape),
    Shape.

-spec is_shape(term()) -> boolean().
is_shape(Term) -> is_tuple(Term) andalso are_sizes(tuple_size(Term), Term).

are_sizes(0, _) -> true;
are_sizes(I, Shape) ->
    Size = element(I, Shape),
    is_integer(Size) andalso Size >= 0 andalso are_sizes(I - 1, Shape).

bad_shape(Name, Args, Other) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a shape such as {2, 3}, got ~ts",
                        [Name, tessera_error:show(Other)]).

%% A list that ends in [].
-spec is_proper(term()) -> boolean().
is_proper([_ | Tail]) -> is_proper(Tail);
is_proper(Tail) -> Tail =:= [].

%% 0 .. N-1.
-spec dims(non_neg_integer()) -> [non_neg_integer()].
dims(N) -> lists:seq(0, N - 1).

%% "f32[2,3]"
-spec format(type(), shape()) -> iolist().
format(Type, Shape) ->
    [atom_to_list(Type), $[, lists:join($,, [integer_to_list(D) || D <- tuple_to_list(Shape)]), $]].

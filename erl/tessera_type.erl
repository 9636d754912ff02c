%% @private Types and shapes where Erlang needs to know them before C does.
-module(tessera_type).
-export([is_type/1, is_float_type/1, merge/2, to_float/1, bytes/1, broadcast/2, elements/1,
         axis/4, axes/4, shape/3, is_proper/1, dims/1, format/2]).

-spec is_type(term()) -> boolean().
is_type(Type) -> lists:member(Type, [s8, s16, s32, s64, u8, u16, u32, u64, f16, bf16, f32, f64]).

-spec is_float_type(tessera:type()) -> boolean().
is_float_type(Type) -> lists:member(Type, [f16, bf16, f32, f64]).

-spec to_float(tessera:type()) -> tessera:type().
to_float(Type) ->
    case is_float_type(Type) of
        true -> Type;
        false -> f32
    end.

%% Nx's promotion: floats over integers, signed over unsigned with room for both.
-spec merge(tessera:type(), tessera:type()) -> tessera:type().
merge(Type, Type) -> Type;
merge(A, B) ->
    case {kind(A), kind(B)} of
        {{f, X}, {f, Y}} when X >= Y -> A;
        {{f, _}, {f, _}} -> B;
        {{f, X}, {bf, Y}} when X >= Y -> A;
        {{f, _}, {bf, _}} -> B;
        {{bf, _}, {f, _}} -> merge(B, A);
        {{K, _}, _} when K =:= f; K =:= bf -> A;
        {_, {K, _}} when K =:= f; K =:= bf -> B;
        {{Same, X}, {Same, Y}} when X >= Y -> A;
        {{Same, _}, {Same, _}} -> B;
        {{u, X}, {s, Y}} -> signed(max(min(2 * X, 64), Y));
        {{s, _}, {u, _}} -> merge(B, A)
    end.

signed(16) -> s16;
signed(32) -> s32;
signed(64) -> s64.

kind(s8) -> {s, 8};
kind(s16) -> {s, 16};
kind(s32) -> {s, 32};
kind(s64) -> {s, 64};
kind(u8) -> {u, 8};
kind(u16) -> {u, 16};
kind(u32) -> {u, 32};
kind(u64) -> {u, 64};
kind(f16) -> {f, 16};
kind(bf16) -> {bf, 16};
kind(f32) -> {f, 32};
kind(f64) -> {f, 64}.

-spec bytes(tessera:type()) -> 1 | 2 | 4 | 8.
bytes(Type) ->
    {_, Bits} = kind(Type),
    Bits div 8.

%% The shape that both broadcast to, or error.
-spec broadcast(tessera:shape(), tessera:shape()) -> tessera:shape() | error.
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

-spec elements(tessera:shape()) -> non_neg_integer().
elements(Shape) -> lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)).

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
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected a list of axes, got ~ts",
                            [Name, tessera_error:show(Axes)]),
    Result = [axis(Name, Args, Axis, Rank) || Axis <- Axes],
    length(lists:usort(Result)) =:= length(Result) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: an axis is there twice in ~0p", [Name, Axes]),
    Result.

%% A tuple of sizes. That there are not too many, nor too large ones, is checked in C.
-spec shape(atom(), [term()], term()) -> tessera:shape().
shape(Name, Args, Shape) ->
    is_tuple(Shape) andalso lists:all(fun(D) -> is_integer(D) andalso D >= 0 end, tuple_to_list(Shape)) orelse
        bad_shape(Name, Args, Shape),
    Shape.

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
-spec format(tessera:type(), tessera:shape()) -> iolist().
format(Type, Shape) ->
    [atom_to_list(Type), $[, lists:join($,, [integer_to_list(D) || D <- tuple_to_list(Shape)]), $]].

%% Types of fewer than 8 bits and floats of 8 bits through the Erlang API.
-module(tessera_small_tests).
-include_lib("eunit/include/eunit.hrl").

integers() -> [{s2, -2, 1}, {s4, -8, 7}, {u2, 0, 3}, {u4, 0, 15}].

bits(s2) -> 2;
bits(u2) -> 2;
bits(_) -> 4.

wrap(Type, N) ->
    Bits = bits(Type),
    <<M:Bits>> = <<N:Bits>>,
    case Type of
        _ when (Type =:= s2 orelse Type =:= s4), M >= 1 bsl (Bits - 1) -> M - (1 bsl Bits);
        _ -> M
    end.

%% Every value, written by bit syntax, is read and written.
binary_test_() ->
    [{atom_to_list(Type),
      fun() ->
              Bits = bits(Type),
              Values = lists:seq(Low, High),
              Packed = << <<V:Bits>> || V <- Values >>,
              T = tessera:from_binary(Packed, Type, {length(Values)}),
              ?assertEqual(Values, tessera:to_list(T)),
              ?assertEqual(Packed, tessera:to_binary(T)),
              ?assertEqual(Values, tessera:to_list(tessera:tensor(Packed, Type))),
              ?assertEqual(Packed, tessera:to_binary(tessera:tensor(Values, Type))),
              ?assertEqual(length(Values), tessera:byte_size(T))
      end} || {Type, Low, High} <- integers()].

%% Sizes that fill no byte, and a bitstring that starts inside of one.
unaligned_test() ->
    ?assertEqual(<<1:4, 2:4, 3:4>>, tessera:to_binary(tessera:tensor([1, 2, 3], u4))),
    ?assertEqual(<<1:2>>, tessera:to_binary(tessera:tensor(1, u2))),
    ?assertEqual(<<>>, tessera:to_binary(tessera:tensor([], s4))),
    <<_:3, Inside:12/bitstring, _/bitstring>> = <<0:3, 5:4, -6:4, 7:4, 1:1>>,
    ?assertEqual([5, -6, 7], tessera:to_list(tessera:from_binary(Inside, s4, {3}))),
    <<_:3, Whole:8/bitstring, _/bitstring>> = <<0:3, 5:4, -6:4, 7:4, 1:1>>,
    ?assertEqual([5, -6], tessera:to_list(tessera:tensor(Whole, s4))).

refused_test() ->
    ?assertError({invalid_argument, _}, tessera:from_binary(<<1:4, 2:4>>, s4, {3})),
    ?assertError({invalid_argument, _}, tessera:from_binary(<<1:4, 2:4>>, s4, {1})),
    ?assertError({invalid_argument, _}, tessera:tensor(<<1:3>>, u2)),
    ?assertError({invalid_argument, _}, tessera:tensor(<<1:3>>, u8)),
    ?assertError({out_of_range, _}, tessera:tensor([8], s4)),
    ?assertError({out_of_range, _}, tessera:tensor([-1], u2)).

long_test() ->
    N = 3000001,
    T = tessera:as_type(tessera:iota({N}), s4),
    Packed = tessera:to_binary(T),
    ?assertEqual(4 * N, bit_size(Packed)),
    ?assertEqual(1, tessera:to_number(tessera:all(tessera:equal(T, tessera:from_binary(Packed, s4, {N}))))),
    <<First:64/bitstring, _/bitstring>> = Packed,
    ?assertEqual(<<0:4, 1:4, 2:4, 3:4, 4:4, 5:4, 6:4, 7:4, -8:4, -7:4, -6:4, -5:4, -4:4, -3:4, -2:4, -1:4>>, First).

%% All pairs, eagerly and compiled; each op wraps.
pairs_test_() ->
    [{atom_to_list(Type),
      fun() ->
              Values = lists:seq(Low, High),
              {As, Bs} = lists:unzip([{A, B} || A <- Values, B <- Values]),
              F = fun(X, Y) -> tessera:multiply(tessera:add(X, Y), tessera:subtract(X, Y)) end,
              A = tessera:tensor(As, Type),
              B = tessera:tensor(Bs, Type),
              Expected = [wrap(Type, (X + Y) * (X - Y)) || {X, Y} <- lists:zip(As, Bs)],
              ?assertEqual(Expected, tessera:to_list(F(A, B))),
              ?assertEqual(Expected, tessera:to_list((tessera:jit(F))(A, B))),
              ?assertEqual([wrap(Type, -X) || X <- As], tessera:to_list(tessera:negate(A)))
      end} || {Type, Low, High} <- integers()].

wrap_test() ->
    ?assertEqual([-8], tessera:to_list(tessera:add(tessera:tensor([7], s4), tessera:tensor([1], s4)))).

%% As Nx.Type.merge/2.
promotion_test_() ->
    [?_assertEqual({A, B, Expected}, {A, B, tessera:type(tessera:add(tessera:tensor(1, A), tessera:tensor(1, B)))})
     || {A, B, Expected} <- [{s2, s4, s4}, {u2, s2, s4}, {u4, s4, s8}, {u4, s2, s8}, {u4, u8, u8}, {s4, u8, s16}, {s4, f8, f8},
                             {s64, f8_e4m3fn, f8_e4m3fn}, {f8, f8_e4m3fn, f8}, {f8, bf16, f8}, {bf16, f8_e4m3fn, f8_e4m3fn},
                             {f8, f16, f16}, {f8_e4m3fn, f16, f16}, {f8_e4m3fn, f32, f32}]] ++
    [?_assertEqual({A, N, Expected}, {A, N, tessera:type(tessera:add(tessera:tensor(1, A), N))})
     || {A, N, Expected} <- [{s4, 7, s4}, {s4, 8, s8}, {s4, -8, s4}, {u4, 15, u4}, {u4, 16, u8}, {u4, -1, s8}, {u2, -1, s4},
                             {s2, 2, s4}, {s4, 1.5, f32}, {f8, 1.5, f8}, {f8_e4m3fn, 3, f8_e4m3fn}]].

sums_test() ->
    ?assertEqual({s32, 21}, typed(tessera:sum(tessera:tensor([7, 7, 7], s4)))),
    ?assertEqual({u32, 45}, typed(tessera:sum(tessera:tensor([15, 15, 15], u4)))),
    ?assertEqual({f8, 3.0}, typed(tessera:sum(tessera:tensor([1, 1, 1], f8)))).

typed(T) -> {tessera:type(T), tessera:to_number(T)}.

f8_values(Type) -> tessera:from_binary(list_to_binary(lists:seq(0, 255)), Type, {256}).

%% The values by their definition.
e5m2(Byte) ->
    <<S:1, E:5, M:2>> = <<Byte>>,
    case E of
        31 when M =:= 0, S =:= 0 -> infinity;
        31 when M =:= 0 -> neg_infinity;
        31 -> nan;
        0 -> sign(S) * M * math:pow(2, -16);
        _ -> sign(S) * (4 + M) * math:pow(2, E - 17)
    end.

e4m3fn(Byte) ->
    <<S:1, E:4, M:3>> = <<Byte>>,
    case {E, M} of
        {15, 7} -> nan;
        {0, _} -> sign(S) * M * math:pow(2, -9);
        _ -> sign(S) * (8 + M) * math:pow(2, E - 10)
    end.

sign(0) -> 1.0;
sign(1) -> -1.0.

values_test() ->
    ?assertEqual([plain(e5m2(B)) || B <- lists:seq(0, 255)], [plain(V) || V <- tessera:to_list(f8_values(f8))]),
    ?assertEqual([plain(e4m3fn(B)) || B <- lists:seq(0, 255)], [plain(V) || V <- tessera:to_list(f8_values(f8_e4m3fn))]).

plain(V) when is_float(V) -> V + 0.0;   % -0.0 as 0.0
plain(V) -> V.

overflow_test() ->
    Big = tessera:tensor([61439.0, 61440.0, 1.0e9, infinity, nan], f32),
    ?assertEqual([57344.0, infinity, infinity, infinity, nan], tessera:to_list(tessera:as_type(Big, f8))),
    Past = tessera:tensor([448.0, 464.0, 464.1, infinity, -500.0, nan], f32),
    ?assertEqual([448.0, 448.0, nan, nan, nan, nan], tessera:to_list(tessera:as_type(Past, f8_e4m3fn))).

%% Slightly above the midpoint of 1 and 1.25: by way of f32 it would be a tie.
round_once_test() ->
    X = tessera:tensor([1.125 + math:pow(2, -40)], f64),
    ?assertEqual([1.25], tessera:to_list(tessera:as_type(X, f8))),
    ?assertEqual([1.0], tessera:to_list(tessera:as_type(tessera:tensor([1.125], f64), f8))).

print_test() ->
    ?assertEqual("s4[3]\n[1, -2, 3]", lists:flatten(tessera:format(tessera:tensor([1, -2, 3], s4)))),
    ?assertEqual("f8[3]\n[1.5, 0.25, 57344.0]", lists:flatten(tessera:format(tessera:tensor([1.5, 0.25, 57344], f8)))),
    ?assertEqual("f8_e4m3fn[2]\n[0.10156, 448.0]",
                 lists:flatten(tessera:format(tessera:tensor([0.1, 448], f8_e4m3fn)))).

gradient_test() ->
    G = tessera:grad(fun(X) -> tessera:sum(tessera:multiply(X, X)) end),
    ?assertEqual({f8, [2.0, 4.0]}, begin T = G(tessera:tensor([1, 2], f8)), {tessera:type(T), tessera:to_list(T)} end).

%% Loops, conditions, sorts, indices, products, windows.
ops_test_() ->
    [{atom_to_list(Type), fun() -> ops(Type) end} || Type <- [s2, s4, u2, u4, f8, f8_e4m3fn]].

ops(Type) ->
    X = tessera:tensor([[1, 0, 1], [0, 1, 1]], Type),
    Wide = tessera:as_type(X, s32),
    ?assertEqual(tessera:to_list(tessera:sort(Wide)), integers_of(tessera:sort(X))),
    ?assertEqual(tessera:to_list(tessera:argsort(Wide)), tessera:to_list(tessera:argsort(X))),
    ?assertEqual([[1, 0], [0, 1]], integers_of(tessera:slice(X, [0, 0], [2, 2]))),
    ?assertEqual([[0, 1, 1]], integers_of(tessera:take(X, tessera:tensor([1], u2)))),
    ?assertEqual([[1, 1], [1, 1]], integers_of(tessera:window_max(X, {1, 2}))),
    ?assertEqual([1, 1], integers_of(tessera:reduce_max(X, #{axes => [1]}))),
    Loop = tessera:jit(fun(Y) ->
                               {_, R} = tessera:while({0, Y}, fun({I, _}) -> tessera:less(I, 3) end,
                                                      fun({I, Z}) -> {tessera:add(I, 1), tessera:max(Z, X)} end),
                               R
                       end),
    ?assertEqual(tessera:to_list(Wide), integers_of(Loop(X))),
    Dot = tessera:dot(X, tessera:transpose(X)),
    ?assertEqual(integers_of(tessera:as_type(tessera:dot(Wide, tessera:transpose(Wide)), Type)), integers_of(Dot)).

integers_of(T) -> tessera:to_list(tessera:as_type(T, s32)).

%% A donated argument's memory and a function compiled before.
compile_test() ->
    F = tessera:compile(fun(X) -> tessera:add(X, X) end, [tessera:template(s4, {4})]),
    ?assertEqual([2, 4, -2, -8], tessera:to_list(F(tessera:tensor([1, 2, -1, 4], s4)))).

-module(tessera_complex_tests).
-include("tessera.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TYPES, [c64, c128]).

%% ---- values in and out

values_test_() ->
    Numbers = [{complex, 1.0, -2.0}, {complex, nan, infinity}, {complex, -0.0, neg_infinity}, {complex, 0.5, 0.25}],
    [[?_assertEqual(Numbers, tessera:to_list(tessera:tensor(Numbers, Type))),
      ?_assertEqual([{complex, 3.0, 0.0}, {complex, nan, 0.0}], tessera:to_list(tessera:tensor([3, nan], Type))),
      ?_assertEqual({complex, 1.5, 2.0}, tessera:to_number(tessera:tensor({complex, 1.5, 2}, Type))),
      ?_assertEqual(tessera:to_binary(tessera:tensor([1.5, -2.0], tessera_type:part(Type))),
                    tessera:to_binary(tessera:tensor([{complex, 1.5, -2.0}], Type)))]
     || Type <- ?TYPES].

types_test_() ->
    Type = fun(T) -> tessera:type(T) end,
    Z = {complex, 1, 2},
    [?_assertEqual(c64, Type(tessera:tensor([1, 2.5, Z]))),
     ?_assertEqual(c64, Type(tessera:add(tessera:tensor([1], s64), Z))),
     ?_assertEqual(c128, Type(tessera:add(tessera:tensor([1], f64), Z))),
     ?_assertEqual(c64, Type(tessera:add(tessera:tensor([Z]), 1.5))),
     ?_assertEqual(c128, Type(tessera:add(tessera:tensor([Z]), tessera:tensor([1], f64)))),
     ?_assertEqual(c128, Type(tessera:add(tessera:tensor([Z]), tessera:tensor([Z], c128)))),
     ?_assertEqual(c64, Type(tessera:concatenate([tessera:tensor([1], bf16), tessera:tensor([Z])]))),
     ?_assertEqual(c128, Type(tessera:complex(tessera:tensor([1], f64), 2))),
     ?_assertEqual(f64, Type(tessera:real(tessera:tensor([Z], c128)))),
     ?_assertEqual(f32, Type(tessera:imag(tessera:tensor([1, 2], u8))))].

print_test_() ->
    [?_assertEqual("c64[3]\n[1.0+2.0i, -0.5-0.0i, nan+infinityi]",
                   text(tessera:tensor([{complex, 1, 2}, {complex, -0.5, -0.0}, {complex, nan, infinity}]))),
     ?_assertEqual("c128[] 0.1-infinityi", text(tessera:tensor({complex, 0.1, neg_infinity}, c128)))].

text(Tensor) -> lists:flatten(io_lib:format("~s", [tessera:format(Tensor)])).

%% ---- ops that move elements: as on indices, of more elements than a vector has

moves_test_() ->
    Moves = [fun(X) -> tessera:transpose(X) end, fun(X) -> tessera:reshape(X, {35, 22}) end,
             fun(X) -> tessera:slice(X, [1, 3], [15, 20]) end, fun(X) -> tessera:reverse(X, [1]) end,
             fun(X) -> tessera:broadcast(tessera:at(X, [3]), {4, 35}) end,
             fun(X) -> tessera:concatenate([X, tessera:reverse(X, [0])], 1) end,
             fun(X) -> tessera:pad(X, -7, [{1, 2, 0}, {0, 1, 2}]) end,
             fun(X) -> tessera:take(X, tessera:tensor([3, 0, 21, 100, 5]), #{axis => 0}) end,
             fun(X) -> tessera:take(X, tessera:reverse(tessera:iota({35})), #{axis => 1}) end,
             fun(X) -> tessera:put_slice(X, [2, 5], tessera:full({3, 4}, 9, tessera:type(X))) end,
             fun(X) -> tessera:indexed_put(X, tessera:tensor([[1, 2], [3, 4]]), tessera:tensor([5, 6])) end,
             fun(X) -> tessera:gather(X, tessera:tensor([[1, 2], [21, 34]])) end,
             fun(X) -> tessera:select(tessera:equal(tessera:iota({22, 35}), 3), X, tessera:reverse(X)) end],
    [{lists:flatten(io_lib:format("~s ~b", [Type, I])),
      fun() ->
              Index = tessera:iota({22, 35}, f64),
              Make = fun(X) -> tessera:as_type(tessera:complex(X, tessera:negate(X)), Type) end,
              Expected = lists:flatten(tessera:to_list(Move(Index))),
              Got = lists:flatten(tessera:to_list(Move(Make(Index)))),
              Again = lists:flatten(tessera:to_list((tessera:jit(fun(X) -> Move(Make(X)) end))(Index))),
              ?assertEqual(Expected, [Re || {complex, Re, _} <- Got]),
              ?assertEqual(length(Expected), length(Got)),
              ?assertEqual(Got, Again)
      end} || Type <- ?TYPES, {I, Move} <- lists:zip(lists:seq(1, length(Moves)), Moves)].

%% ---- arithmetic

arithmetic_test_() ->
    A = [{complex, 1.0, 2.0}, {complex, -3.0, 0.5}, {complex, 0.0, 0.0}],
    B = [{complex, 0.5, -1.0}, {complex, 2.0, 2.0}, {complex, 0.0, -0.0}],
    [[?_assertEqual([{complex, 1.5, 1.0}, {complex, -1.0, 2.5}, {complex, 0.0, 0.0}], on(add, A, B, Type)),
      ?_assertEqual([{complex, 0.5, 3.0}, {complex, -5.0, -1.5}, {complex, 0.0, 0.0}], on(subtract, A, B, Type)),
      ?_assertEqual([{complex, 2.5, 0.0}, {complex, -7.0, -5.0}, {complex, 0.0, 0.0}], on(multiply, A, B, Type)),
      ?_assertEqual([0, 0, 1], on(equal, A, B, Type)),
      ?_assertEqual([1, 1, 0], on(not_equal, A, B, Type)),
      ?_assertEqual([1, 1, 0], on(logical_and, A, B, Type)),
      ?_assertEqual([1.0, -3.0, 0.0], tessera:to_list(tessera:real(tessera:tensor(A, Type)))),
      ?_assertEqual([2.0, 0.5, 0.0], tessera:to_list(tessera:imag(tessera:tensor(A, Type)))),
      ?_assertEqual([{complex, -1.0, -2.0}, {complex, 3.0, -0.5}, {complex, -0.0, -0.0}],
                    tessera:to_list(tessera:negate(tessera:tensor(A, Type))))]
     || Type <- ?TYPES].

on(Op, A, B, Type) -> tessera:to_list(tessera:Op(tessera:tensor(A, Type), tessera:tensor(B, Type))).

conversions_test_() ->
    Z = tessera:tensor([{complex, 1.75, 2}, {complex, -3, nan}]),
    [?_assertEqual([1, -3], tessera:to_list(tessera:as_type(Z, s32))),
     ?_assertEqual([1.75, -3.0], tessera:to_list(tessera:as_type(Z, f64))),
     ?_assertEqual([{complex, 1.75, 2.0}, {complex, -3.0, nan}], tessera:to_list(tessera:as_type(Z, c128))),
     ?_assertEqual([{complex, 1.0, 0.0}], tessera:to_list(tessera:as_type(tessera:tensor([1], u8), c64)))].

%% Loops, branches and arguments of complex numbers.
programs_test_() ->
    Double = tessera:jit(fun(X) -> tessera:multiply(X, {complex, 0, 2}) end),
    Loop = tessera:jit(fun(X) ->
                               {_, Z} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 3) end,
                                                      fun({I, Z}) -> {tessera:add(I, 1), tessera:multiply(Z, {complex, 0, 2})} end),
                               Z
                       end),
    [?_assertEqual({complex, -2.0, 2.0}, tessera:to_number(Double({complex, 1, 1}))),
     [?_assertEqual({complex, 8.0, -8.0}, tessera:to_number(Loop(tessera:tensor({complex, 1, 1}, Type)))) || Type <- ?TYPES],
     [?_assertEqual(lists:duplicate(40, {complex, 8.0, -8.0}),
                    tessera:to_list(Loop(tessera:full({40}, {complex, 1, 1}, Type)))) || Type <- ?TYPES]].

text_form_test() ->
    F = fun(X) -> tessera:add(X, {complex, 0.5, nan}) end,
    Text = iolist_to_binary(tessera:to_text(F, [tessera:template(c128, {2})])),
    ?assertMatch({_, _}, binary:match(Text, <<"constant (0.5, 0x7ff8000000000000) : c128">>)),
    [Sum] = tessera:run_text(Text, [tessera:tensor([1, 2], c128)]),
    ?assertEqual([{complex, 1.5, nan}, {complex, 2.5, nan}], tessera:to_list(Sum)).

errors_test_() ->
    Z = tessera:tensor([{complex, 1, 2}]),
    [?_assertError({unimplemented, <<"erf: erf is not implemented for complex numbers">>}, tessera:erf(Z)),
     ?_assertError({invalid_argument, <<"complex(c64[1]): expected real parts, got c64 and s32">>}, tessera:complex(Z, 1))].

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

%% ---- functions

%% By exp, log and the identities of the functions, at points off their cuts.
functions_test_() ->
    Points = [{complex, A, B} || A <- [0.3, -0.7, 1.9], B <- [0.4, -1.3, 2.1]],
    Same = fun(F, G, Type) ->
                   Z = tessera:tensor(Points, Type),
                   fun() -> close(tessera:to_list(F(Z)), tessera:to_list(G(Z)), Type) end
           end,
    Turn = fun(Z) -> tessera:multiply(Z, {complex, 0, 1}) end,
    Back = fun(Z) -> tessera:multiply(Z, {complex, 0, -1}) end,
    Half = fun(Z) -> tessera:multiply(Z, 0.5) end,
    Square = fun(Z) -> tessera:multiply(Z, Z) end,
    Id = fun(Z) -> Z end,
    Exp = fun tessera:exp/1,
    Minus = fun tessera:negate/1,
    Pairs =
        [{exp, fun(Z) -> tessera:exp(tessera:log(Z)) end, Id},
         {cosh, fun tessera:cosh/1, fun(Z) -> Half(tessera:add(Exp(Z), Exp(Minus(Z)))) end},
         {sinh, fun tessera:sinh/1, fun(Z) -> Half(tessera:subtract(Exp(Z), Exp(Minus(Z)))) end},
         {tanh, fun tessera:tanh/1, fun(Z) -> tessera:divide(tessera:sinh(Z), tessera:cosh(Z)) end},
         {cos, fun tessera:cos/1, fun(Z) -> tessera:cosh(Turn(Z)) end},
         {sin, fun tessera:sin/1, fun(Z) -> Back(tessera:sinh(Turn(Z))) end},
         {tan, fun tessera:tan/1, fun(Z) -> tessera:divide(tessera:sin(Z), tessera:cos(Z)) end},
         {acos, fun(Z) -> tessera:cos(tessera:acos(Z)) end, Id},
         {asin, fun(Z) -> tessera:sin(tessera:asin(Z)) end, Id},
         {atan, fun(Z) -> tessera:tan(tessera:atan(Z)) end, Id},
         {acosh, fun(Z) -> tessera:cosh(tessera:acosh(Z)) end, Id},
         {asinh, fun(Z) -> tessera:sinh(tessera:asinh(Z)) end, Id},
         {atanh, fun(Z) -> tessera:tanh(tessera:atanh(Z)) end, Id},
         {sqrt, fun(Z) -> Square(tessera:sqrt(Z)) end, Id},
         {rsqrt, fun(Z) -> tessera:divide(1, Square(tessera:rsqrt(Z))) end, Id},
         {cbrt, fun(Z) -> tessera:multiply(tessera:cbrt(Z), Square(tessera:cbrt(Z))) end, Id},
         {"angle of cbrt", fun(Z) -> tessera:as_type(tessera:multiply(tessera:phase(tessera:cbrt(Z)), 3), tessera:type(Z)) end,
          fun(Z) -> tessera:as_type(tessera:phase(Z), tessera:type(Z)) end},
         {atan2, fun(Z) -> tessera:tan(tessera:atan2(Z, {complex, 2, 0.5})) end, fun(Z) -> tessera:divide(Z, {complex, 2, 0.5}) end},
         {expm1, fun(Z) -> tessera:add(tessera:expm1(Z), 1) end, Exp},
         {log1p, fun(Z) -> tessera:subtract(Exp(tessera:log1p(Z)), 1) end, Id},
         {sigmoid, fun tessera:sigmoid/1, fun(Z) -> tessera:divide(1, tessera:add(Exp(Minus(Z)), 1)) end},
         {pow, fun(Z) -> tessera:pow(Z, 2) end, Square},
         {divide, fun(Z) -> tessera:multiply(tessera:divide(Z, {complex, 3, -4}), {complex, 3, -4}) end, Id},
         {abs, fun(Z) -> Square(tessera:abs(Z)) end, fun(Z) -> tessera:real(tessera:multiply(Z, tessera:conjugate(Z))) end},
         {phase, fun(Z) -> tessera:multiply(tessera:abs(Z), Exp(Turn(tessera:as_type(tessera:phase(Z), tessera:type(Z))))) end, Id}],
    [{lists:concat([Name, " ", Type]), Same(F, G, Type)} || {Name, F, G} <- Pairs, Type <- ?TYPES].

%% Of real numbers it is theirs.
atan2_test_() ->
    [?_assertEqual({complex, math:atan2(Y, X), 0.0},
                   tessera:to_number(tessera:atan2(tessera:tensor({complex, Y, 0}, c128), X)))
     || Y <- [0.0, 7.0, -1.5], X <- [0.0, 2.0, -2.0]].

close(As, Bs, Type) ->
    Tolerance = case Type of
                    c64 -> 3.0e-6;
                    c128 -> 1.0e-13
                end,
    ?assertEqual(length(As), length(Bs)),
    [?assert(distance(A, B) =< Tolerance * (1 + distance(B, {complex, 0.0, 0.0}))) || {A, B} <- lists:zip(As, Bs)].

distance({complex, A, B}, {complex, C, D}) -> math:sqrt((A - C) * (A - C) + (B - D) * (B - D));
distance(A, {complex, C, D}) -> distance({complex, A, 0.0}, {complex, C, D});
distance(A, B) -> abs(A - B).

%% Special values of C99's annex G.
special_test_() ->
    Pi = math:pi(),
    [[?_assertEqual({F, Z, Expected}, {F, Z, tessera:to_number(tessera:F(tessera:tensor(Z, c128)))})]
     || {F, Z, Expected} <-
            [{exp, {complex, neg_infinity, nan}, {complex, 0.0, 0.0}}, {exp, {complex, infinity, nan}, {complex, infinity, nan}},
             {exp, {complex, nan, 0.0}, {complex, nan, 0.0}}, {log, {complex, -0.0, 0.0}, {complex, neg_infinity, Pi}},
             {log, {complex, neg_infinity, nan}, {complex, infinity, nan}}, {log, {complex, -1.0, -0.0}, {complex, 0.0, -Pi}},
             {sqrt, {complex, -4.0, -0.0}, {complex, 0.0, -2.0}}, {sqrt, {complex, nan, infinity}, {complex, infinity, infinity}},
             {sqrt, {complex, -0.0, -0.0}, {complex, 0.0, -0.0}}, {asin, {complex, 2.0, 0.0}, {complex, Pi / 2, math:acosh(2.0)}},
             {acosh, {complex, 1.0, -0.0}, {complex, 0.0, -0.0}}, {abs, {complex, nan, neg_infinity}, infinity},
             {abs, {complex, 0.0, nan}, nan}, {tanh, {complex, infinity, 1.0}, {complex, 1.0, 0.0}},
             {cbrt, {complex, -0.0, -0.0}, {complex, 0.0, -0.0}}, {cbrt, {complex, infinity, -2.0}, {complex, infinity, -0.0}},
             {cbrt, {complex, neg_infinity, 0.0}, {complex, infinity, infinity}}, {cbrt, {complex, 1.0e300, 0.0}, {complex, 1.0e100, 0.0}},
             {cbrt, {complex, nan, 1.0}, {complex, nan, nan}}, {atanh, {complex, 1.0, 0.0}, {complex, infinity, 0.0}}, {sinh, {complex, -0.0, 0.0}, {complex, -0.0, 0.0}},
             {cosh, {complex, 0.0, -0.0}, {complex, 1.0, -0.0}}, {abs, {complex, 3.0e300, 4.0e300}, 5.0e300}]].

%% The parts of sign have no more than the rounding of the size and of the quotient; zeros stay, and so do axes.
sign_test_() ->
    Root = math:sqrt(0.5),
    Cases = [{{3.0, -4.0}, {0.6, -0.8}}, {{-2.0, 0.0}, {-1.0, 0.0}}, {{-2.0, -0.0}, {-1.0, -0.0}}, {{-0.0, 7.5}, {-0.0, 1.0}},
             {{0.0, 0.0}, {0.0, 0.0}}, {{-0.0, -0.0}, {0.0, 0.0}}, {{0.1, -0.1}, {Root, -Root}}, {{1.0, 1.0e-30}, {1.0, 1.0e-30}},
             {{nan, 1.0}, {nan, nan}}, {{0.0, nan}, {nan, nan}}, {{nan, infinity}, {nan, nan}},
             {{infinity, 1.0}, {nan, 0.0}}, {{-1.0, infinity}, {-0.0, nan}}, {{neg_infinity, infinity}, {nan, nan}}],
    Large = fun(c64) -> 3.0e38; (c128) -> 1.5e308 end,
    Least = fun(c64) -> 1.401298464324817e-45; (c128) -> 5.0e-324 end,
    [{lists:flatten(io_lib:format("~0p ~s", [Z, Type])),
      fun() ->
              T = tessera:full({3}, {complex, element(1, Z), element(2, Z)}, Type),
              [begin
                   [{complex, Re, Im} = One, One, One] = tessera:to_list(Got),
                   [?assert(is_close(A, B, Type) orelse {expected, Expected, got, One}) || {A, B} <- lists:zip(tuple_to_list(Expected), [Re, Im])]
               end || Got <- [tessera:sign(T), (tessera:jit(fun tessera:sign/1))(T)]]
      end}
     || Type <- ?TYPES,
        {Z, Expected} <- Cases ++ [{{Large(Type), -Large(Type)}, {Root, -Root}}, {{Least(Type), Least(Type)}, {Root, Root}},
                                   {{0.0, -Least(Type)}, {0.0, -1.0}}, {{Large(Type), Least(Type)}, {1.0, 0.0}}]].

%% The size and the root have no more than their rounding, also where squares of parts leave the range of the type; a part
%% that is infinite makes the size so, beside a NaN too.
size_and_root_test_() ->
    Large = fun(c64) -> 3.0e38; (c128) -> 1.5e308 end,
    Least = fun(c64) -> 1.401298464324817e-45; (c128) -> 5.0e-324 end,
    {Re, Im} = {1.0986841134678098, 0.45508986056222733},
    Root = fun(X, Sign) -> {complex, math:sqrt(X) * Re, Sign * math:sqrt(X) * Im} end,
    [{lists:flatten(io_lib:format("~s ~0p ~s", [F, Z, Type])),
      fun() ->
              T = tessera:full({35}, {complex, element(1, Z), element(2, Z)}, Type),
              [[?assert(is_close_number(Expected, One, Type) orelse {expected, Expected, got, One}) || One <- tessera:to_list(Got)]
               || Got <- [tessera:F(T), (tessera:jit(fun tessera:F/1))(T)]]
      end}
     || Type <- [c64, c128],
        {F, Z, Expected} <-
            [{abs, {3.0, -4.0}, 5.0}, {abs, {-0.0, 0.0}, 0.0}, {abs, {0.0, -2.5}, 2.5}, {abs, {nan, neg_infinity}, infinity},
             {abs, {infinity, nan}, infinity}, {abs, {neg_infinity, 1.0}, infinity}, {abs, {nan, 1.0}, nan}, {abs, {0.0, nan}, nan},
             {abs, {Large(Type), -Large(Type)}, infinity}, {abs, {Large(Type), 1.0}, Large(Type)}, {abs, {Least(Type), -Least(Type)}, Least(Type)},
             {abs, {Least(Type), 1.0}, 1.0}, {abs, {0.6 * Large(Type), 0.8 * Large(Type)}, Large(Type)},
             {sqrt, {Large(Type), -Large(Type)}, Root(Large(Type), -1)}, {sqrt, {Least(Type), Least(Type)}, Root(Least(Type), 1)},
             {sqrt, {-4.0, 0.0}, {complex, 0.0, 2.0}}, {sqrt, {neg_infinity, 1.0}, {complex, 0.0, infinity}},
             {sqrt, {nan, neg_infinity}, {complex, infinity, neg_infinity}}, {sqrt, {infinity, nan}, {complex, infinity, nan}}]].

is_close_number({complex, Re, Im}, {complex, X, Y}, Type) -> is_close(Re, X, Type) andalso is_close(Im, Y, Type);
is_close_number(A, B, Type) -> is_close(A, B, Type).

is_close(Same, Same, _) -> true;
is_close(A, B, Type) when is_float(A), is_float(B) -> abs(A - B) =< case Type of c64 -> 6.0e-8; c128 -> 3.4e-16 end * abs(A);
is_close(_, _, _) -> false.

%% ---- sums and products

sums_test_() ->
    Z = [[{complex, 1.0, 2.0}, {complex, 0.0, -1.0}, {complex, 3.0, 0.0}], [{complex, 2.0, 0.0}, {complex, 0.0, 1.0}, {complex, 0.0, 0.0}]],
    Rows = #{axes => [1]},
    [[?_assertEqual([{complex, 4.0, 1.0}, {complex, 2.0, 1.0}], tessera:to_list(tessera:sum(T, Rows))),
      ?_assertEqual([{complex, 6.0, -3.0}, {complex, 0.0, 0.0}], tessera:to_list(tessera:product(T, Rows))),
      ?_assertEqual([1, 0], tessera:to_list(tessera:all(T, Rows))),
      ?_assertEqual([{complex, 1.0, 0.5}, {complex, 0.0, 0.0}], tessera:to_list(tessera:mean(tessera:tensor(
          [[{complex, 1.0, 1.0}, {complex, 1.0, 0.0}], [{complex, 1.0, 1.0}, {complex, -1.0, -1.0}]], Type), Rows))),
      ?_assertEqual([[{complex, 1.0, 2.0}, {complex, 1.0, 1.0}, {complex, 4.0, 1.0}],
                     [{complex, 2.0, 0.0}, {complex, 2.0, 1.0}, {complex, 2.0, 1.0}]],
                    tessera:to_list(tessera:cumulative_sum(T, #{axis => 1}))),
      ?_assertEqual([[{complex, 1.0, 2.0}, {complex, 2.0, -1.0}, {complex, 6.0, -3.0}],
                     [{complex, 2.0, 0.0}, {complex, 0.0, 2.0}, {complex, 0.0, 0.0}]],
                    tessera:to_list(tessera:cumulative_product(T, #{axis => 1}))),
      ?_assertEqual([{complex, 1.0, 1.0}, {complex, 3.0, -1.0}],
                    tessera:to_list(tessera:at(tessera:window_sum(T, {1, 2}), [0]))),
      ?_assertEqual([{complex, 1.0, 2.0}, {complex, 5.0, 5.0}, {complex, 3.0, 0.0}],
                    tessera:to_list(tessera:at(tessera:indexed_add(T, tessera:tensor([[0, 1]]), tessera:tensor([{complex, 5, 6}])), [0])))]
     || Type <- ?TYPES, T <- [tessera:tensor(Z, Type)]].

%% Against real products of the parts: these are exact here.
dot_test_() ->
    Part = fun(Shape, Seed) -> tessera:subtract(tessera:remainder(tessera:multiply(tessera:iota(Shape, f64), Seed), 7), 3) end,
    Cases = [{{5, 4}, [1], {4, 3}, [0]}, {{4, 5}, [0], {3, 4}, [1]}, {{17, 33}, [1], {33, 20}, [0]},
             {{33, 17}, [0], {20, 33}, [1]}, {{6, 3, 5}, [1, 2], {7, 3, 5}, [1, 2]}, {{6, 3, 5}, [2, 1], {7, 3, 5}, [2, 1]}, {{7}, [0], {7}, [0]}],
    [fun() ->
             [Ar, Ai] = [Part(A, S) || S <- [3, 5]],
             [Br, Bi] = [Part(B, S) || S <- [11, 13]],
             Dot = fun(X, Y) -> tessera:dot(X, Ca, Y, Cb) end,
             Expected = tessera:complex(tessera:subtract(Dot(Ar, Br), Dot(Ai, Bi)), tessera:add(Dot(Ar, Bi), Dot(Ai, Br))),
             Got = Dot(tessera:as_type(tessera:complex(Ar, Ai), Type), tessera:as_type(tessera:complex(Br, Bi), Type)),
             ?assertEqual(Type, tessera:type(Got)),
             ?assertEqual(tessera:to_list(Expected), tessera:to_list(Got))
     end || {A, Ca, B, Cb} <- Cases, Type <- ?TYPES].

conv_test_() ->
    Part = fun(Shape, Seed) -> tessera:subtract(tessera:remainder(tessera:multiply(tessera:iota(Shape, f64), Seed), 7), 3) end,
    [fun() ->
             [Ar, Ai] = [Part({2, 5, 5, 4}, S) || S <- [3, 5]],
             [Br, Bi] = [Part({3, 3, 4, 6}, S) || S <- [11, 13]],
             Conv = fun(X, Y) -> tessera:conv(X, Y) end,
             Expected = tessera:complex(tessera:subtract(Conv(Ar, Br), Conv(Ai, Bi)), tessera:add(Conv(Ar, Bi), Conv(Ai, Br))),
             Got = Conv(tessera:as_type(tessera:complex(Ar, Ai), Type), tessera:as_type(tessera:complex(Br, Bi), Type)),
             ?assertEqual(tessera:to_list(Expected), tessera:to_list(Got))
     end || Type <- ?TYPES].

%% ---- gradients, by Nx's rules: of a real function f of z = x + iy they are df/dx - i df/dy

grad_test_() ->
    Z = tessera:tensor({complex, 3, 4}, c128),
    Grad = fun(F, X) -> tessera:to_number((tessera:grad(F))(X)) end,
    Real = fun(F) -> fun(X) -> tessera:real(F(X)) end end,
    [?_assertEqual({complex, 0.6, -0.8}, Grad(fun tessera:abs/1, Z)),
     ?_assertEqual({complex, 0.0, 0.0}, Grad(fun tessera:abs/1, tessera:tensor({complex, 0, 0}, c128))),
     ?_assertEqual({complex, 1.0, 0.0}, Grad(fun tessera:real/1, Z)),
     ?_assertEqual({complex, 0.0, -1.0}, Grad(fun tessera:imag/1, Z)),
     ?_assertEqual({complex, 0.0, 0.0}, Grad(fun(X) -> tessera:real(tessera:sign(X)) end, tessera:tensor({complex, 0, 0}, c128))),
     [?_test(turns(F, {complex, Re, Im}))
      || F <- [fun(X) -> tessera:real(tessera:multiply({complex, 0.7, -1.3}, tessera:sign(X))) end,
               fun(X) -> tessera:imag(tessera:exp(tessera:sign(tessera:multiply(X, X)))) end],
         {Re, Im} <- [{3.0, 4.0}, {-0.5, 0.2}, {0.0, -2.0}, {1.5, 0.0}]],
     ?_assertEqual({complex, 6.0, 8.0}, Grad(Real(fun(X) -> tessera:multiply(X, X) end), Z)),
     ?_assertEqual({complex, 6.0, -8.0}, Grad(Real(fun(X) -> tessera:multiply(X, tessera:conjugate(X)) end), Z)),
     ?_assertEqual({complex, 1.0, 0.0}, Grad(fun(X) -> tessera:as_type(X, f64) end, Z)),
     ?_assertEqual(6.0, Grad(fun(X) -> tessera:real(tessera:multiply(tessera:complex(X, 1), tessera:complex(X, 1))) end,
                             tessera:tensor(3, f64)))].

%% Computes moments from the parts by hand.
moments_test_() ->
    Z = [{complex, 1.0, 2.0}, {complex, 3.0, -2.0}, {complex, -1.0, 6.0}, {complex, 1.0, 2.0}],
    Matrix = [lists:sublist(Z, 2), lists:nthtail(2, Z)],
    Is = fun(Expected, Actual, Type) ->
                 ?assertEqual(Type, tessera:type(Actual)),
                 tessera_test:near(parts(Expected), parts(tessera:to_list(tessera:flatten(Actual))), 1.0e-6)
         end,
    [?_test(Is(Expected, F(tessera:tensor(Given, Type)), case Kind of real -> tessera_type:part(Type); complex -> Type end))
     || Type <- ?TYPES,
        {Expected, Kind, Given, F} <-
            %% distances from the mean 1 + 2i: 0, sqrt(20), sqrt(20), 0
            [{[10.0], real, Z, fun tessera:variance/1},
             {[40.0 / 3], real, Z, fun(T) -> tessera:variance(T, #{ddof => 1}) end},
             {[math:sqrt(10)], real, Z, fun tessera:standard_deviation/1},
             {[5.0, 5.0], real, Matrix, fun(T) -> tessera:variance(T, #{axes => [1]}) end},
             {[math:sqrt(5), math:sqrt(5)], real, Matrix, fun(T) -> tessera:standard_deviation(T, #{axes => [1], keep_axes => true}) end},
             {[{complex, 1.0, 2.0}], complex, Z, fun tessera:mean/1},
             {[{complex, 2.0, 0.0}, {complex, 1.0, 2.0}, {complex, 0.0, 4.0}], complex, Z, fun(T) -> tessera:window_mean(T, 2) end},
             {[{complex, 1.0, 2.0}], complex, Matrix, fun(T) -> tessera:window_mean(T, {2, 2}) end}]].

parts(List) -> lists:append([case X of {complex, Re, Im} -> [Re, Im]; _ -> [X] end || X <- List]).

%% Against quotients, for tensors and numbers; of integers it is an error.
%% By mpmath: an angle of any size turns the number, and leaves the modulus.
large_power_test_() ->
    [{lists:flatten(io_lib:format("~0p to the power of ~0p", [Base, Exponent])),
      fun() ->
              {complex, Re, Im} = tessera:to_number(tessera:pow(tessera:tensor(Base, c128), tessera:tensor(Exponent, c128))),
              ?assert(abs(Re - X) =< Most * (abs(X) + abs(Y)) andalso abs(Im - Y) =< Most * (abs(X) + abs(Y)))
      end}
     || {Base, Exponent, {X, Y}, Most} <-
            [{{complex, 0, 1}, 1.0e15, {1.0, 0.0}, 1.0e-15}, {{complex, 0, 1}, 1.0e20, {1.0, 0.0}, 1.0e-12},
             {{complex, 0.6, 0.8}, 1.0e15, {-0.19942843543873246, 1.0028150660125563}, 1.0e-14},
             {{complex, 0.6, 0.8}, 1.0e18, {185087542.81139312, 4394300666.0312045}, 1.0e-12}]] ++
    [?_test(begin
                {complex, Re, Im} = tessera:to_number(tessera:pow(tessera:tensor({complex, 0, 1}, Type), tessera:tensor(Exponent, Type))),
                ?assert(abs(math:sqrt(Re * Re + Im * Im) - 1) =< 1.0e-6)
            end)
     || {Type, Exponent} <- [{c64, 1.0e15}, {c64, 1.0e38}, {c128, 1.0e35}, {c128, 1.0e308}]].

negative_power_test_() ->
    Z = [{complex, 1.0, 2.0}, {complex, -0.5, 0.25}, {complex, 3.0, -1.0}],
    [[?_test(begin
                 T = tessera:tensor(Z, Type),
                 Power = tessera:divide(1, lists:foldl(fun(_, P) -> tessera:multiply(P, T) end, T, lists:seq(2, N))),
                 tessera_test:near(parts(tessera:to_list(Power)), parts(tessera:to_list(tessera:pow(T, -N))), 1.0e-6)
             end) || Type <- ?TYPES, N <- [1, 2, 3]],
     ?_test(tessera_test:near([0.2, -0.4], parts([tessera:to_number(tessera:pow({complex, 1.0, 2.0}, -1))]))),
     ?_test(tessera_test:raises(invalid_argument, "integer", fun() -> tessera:pow(tessera:tensor([2]), -1) end))].

%% Numbers whose exponentials have no finite size.
exponentials_test_() ->
    Large = [{complex, 1000.0, 1.0}, {complex, 1000.0, -1.0}, {complex, -1000.0, 2.0}],
    Log = math:log(2 * math:cos(1.0)),
    Ratio = fun(Angle) -> {complex, math:cos(Angle) / (2 * math:cos(1.0)), math:sin(Angle) / (2 * math:cos(1.0))} end,
    [?_test(tessera_test:near(parts(Expected), parts(tessera:to_list(tessera:flatten(tessera:Name(tessera:tensor(Large, c128))))), 1.0e-12))
     || {Name, Expected} <- [{logsumexp, [{complex, 1000 + Log, 0.0}]},
                             {softmax, [Ratio(1.0), Ratio(-1.0), {complex, 0.0, 0.0}]},
                             {log_softmax, [{complex, -Log, 1.0}, {complex, -Log, -1.0}, {complex, -2000 - Log, 2.0}]}]].

%% Functions without a meaning for complex numbers are refused.
no_meaning_test_() ->
    Z = tessera:tensor([{complex, 1.0, 2.0}, {complex, 3.0, 0.0}]),
    [?_test(tessera_test:raises(Code, Words, F))
     || {Code, Words, F} <- [{invalid_argument, "expected integers", fun() -> tessera:one_hot(Z, 3) end},
                             {invalid_argument, "integer", fun() -> tessera:take(Z, Z) end},
                             {unimplemented, "median", fun() -> tessera:median(Z) end},
                             {unimplemented, "clip", fun() -> tessera:clip(Z, 0, 1) end},
                             {unimplemented, "complex", fun() -> tessera_operators:trunc(Z) end}]].

%% The gradient against central differences by both parts.
turns(F, {complex, Re, Im} = Z) ->
    At = fun(A, B) -> tessera:to_number(F(tessera:tensor({complex, A, B}, c128))) end,
    H = 1.0e-5,
    {complex, Dx, Dy} = tessera:to_number((tessera:jit(tessera:grad(F)))(tessera:tensor(Z, c128))),
    tessera_test:near([(At(Re + H, Im) - At(Re - H, Im)) / (2 * H), (At(Re, Im - H) - At(Re, Im + H)) / (2 * H)], [Dx, Dy], 1.0e-7).

%% Every function of a complex number that has a gradient, in all quadrants, against differences along both axes: f is made real by
%% weights that tell its parts apart.
gradients_test_() ->
    Points = [{complex, Re, Im} || Re <- [1.7, 0.4, -0.6, -2.3], Im <- [1.3, 0.2, -0.5, -1.9]],
    Other = {complex, 0.7, -1.2},
    Unary = [exp, expm1, log, log1p, sigmoid, cos, sin, tan, cosh, sinh, tanh, acos, asin, atan, acosh, asinh, atanh, sqrt, rsqrt,
             cbrt, abs, real, imag, conjugate, phase, negate],
    Binary = [add, subtract, multiply, divide, pow, atan2],
    Line = #{axis => 0},
    Functions =
        [{Name, fun(Z) -> tessera:Name(Z) end} || Name <- Unary] ++
        [{{Name, left}, fun(Z) -> tessera:Name(Z, Other) end} || Name <- Binary] ++
        [{{Name, right}, fun(Z) -> tessera:Name(Other, Z) end} || Name <- Binary] ++
        [{{Name, both}, fun(Z) -> tessera:Name(Z, tessera:add(tessera:multiply(tessera:sin(Z), 0.4), 0.3)) end} || Name <- Binary] ++
        [{"z to the power of z", fun(Z) -> tessera:pow(Z, Z) end},
         {"power of a real number", fun(Z) -> tessera:pow(2.0, Z) end},
         {"select", fun(Z) -> tessera:select(tessera:greater(tessera:real(Z), 0), tessera:exp(Z), tessera:sin(Z)) end},
         {"sum", fun tessera:sum/1}, {"mean", fun tessera:mean/1}, {"product", fun(Z) -> tessera:product(tessera:slice(Z, [3], [6])) end},
         {"variance", fun tessera:variance/1}, {"standard_deviation", fun(Z) -> tessera:standard_deviation(Z, #{ddof => 1}) end},
         {"norm", fun tessera:norm/1}, {"norm of order 3", fun(Z) -> tessera:norm(Z, #{order => 3}) end},
         {"logsumexp", fun tessera:logsumexp/1}, {"softmax", fun tessera:softmax/1}, {"log_softmax", fun tessera:log_softmax/1},
         {"power of an integer", fun(Z) -> tessera:pow(Z, -3) end}, {"window_mean", fun(Z) -> tessera:window_mean(Z, {3}) end},
         {"cumulative_sum", fun(Z) -> tessera:cumulative_sum(Z, Line) end},
         {"cumulative_product", fun(Z) -> tessera:cumulative_product(tessera:slice(Z, [3], [6]), Line) end},
         {"cumulative_product in reverse", fun(Z) -> tessera:cumulative_product(tessera:slice(Z, [3], [6]), Line#{reverse => true}) end},
         {"window_sum", fun(Z) -> tessera:window_sum(Z, {3}, #{strides => 2}) end},
         {"window_product", fun(Z) -> tessera:window_product(Z, {3}, #{dilation => 2}) end},
         {"dot", fun(Z) -> tessera:dot(tessera:reshape(Z, {4, 4}), tessera:reshape(tessera:exp(Z), {4, 4})) end},
         {"conv", fun(Z) -> tessera:conv(tessera:reshape(Z, {1, 8, 2}), tessera:reshape(tessera:slice(Z, [2], [12]), {3, 2, 2})) end},
         {"fft", fun tessera:fft/1}, {"ifft", fun tessera:ifft/1},
         {"take", fun(Z) -> tessera:take(Z, tessera:tensor([3, 3, 5])) end}, {"reverse", fun(Z) -> tessera:reverse(tessera:exp(Z)) end},
         {"pad", fun(Z) -> tessera:pad(Z, tessera:sum(Z), [{1, -1, 2}]) end},
         {"indexed_add", fun(Z) -> tessera:indexed_add(Z, tessera:tensor([[1], [1]]), tessera:slice(Z, [0], [2])) end}],
    ?assertEqual(length(lists:usort(Functions)), length(Functions)),
    [{lists:flatten(io_lib:format("~0p", [Name])), ?_test(differs_as(F, tessera:tensor(Points, c128)))} || {Name, F} <- Functions].

differs_as(F, Z) ->
    Size = tessera:size(Z),
    Make = fun(X) -> tessera:complex(tessera:slice(X, [0], [Size]), tessera:slice(X, [Size], [Size])) end,
    Weighed = fun(Y) ->
                      Weights = tessera:sin(tessera:add(tessera:iota(tessera:shape(Y), f64), 1)),
                      tessera:sum(tessera:add(tessera:multiply(Weights, tessera:real(Y)), tessera:multiply(tessera:cos(Weights), tessera:imag(Y))))
              end,
    Real = fun(T) -> Weighed(F(T)) end,
    Parts = tessera:concatenate([tessera:real(Z), tessera:imag(Z)]),
    Gradient = (tessera:grad(Real))(Z),
    ?assertEqual(c128, tessera:type(Gradient)),
    %% df/dx - i df/dy
    tessera_test:near(tessera_test:differences(fun(X) -> Real(Make(X)) end, Parts),
                      tessera:to_list(tessera:concatenate([tessera:real(Gradient), tessera:negate(tessera:imag(Gradient))])), 1.0e-5).

%% Numbers without an imaginary part: x / (x^2 + y^2) by y and -y / (x^2 + y^2) by x, for both parts of the angle; and by y twice.
real_atan2_test_() ->
    Y = tessera:tensor({complex, 1.0, 0.0}, c128),
    X = tessera:tensor({complex, 2.0, 0.0}, c128),
    ByY = fun(Part) -> fun(Z) -> (tessera:grad(fun(T) -> Part(tessera:atan2(T, X)) end))(Z) end end,
    Twice = fun(Z) -> tessera:real((ByY(fun tessera:real/1))(Z)) end,
    [?_test(begin
                {complex, Re1, Im1} = tessera:to_number(F(At)),
                tessera_test:near([Re, Im], [Re1, Im1], 1.0e-12)
            end)
     || {Re, Im, F, At} <- [{0.4, 0.0, ByY(fun tessera:real/1), Y}, {0.0, -0.4, ByY(fun tessera:imag/1), Y},
                            {-0.2, 0.0, tessera:grad(fun(T) -> tessera:real(tessera:atan2(Y, T)) end), X},
                            {0.0, 0.2, tessera:grad(fun(T) -> tessera:imag(tessera:atan2(Y, T)) end), X},
                            {-0.16, 0.0, tessera:grad(Twice), Y}]].

%% Of the real part, by mpmath: both parts have their digits where differences of near numbers lose them, and squares overflow.
gradient_digits_test_() ->
    [{atom_to_list(Name),
      ?_test(begin
                 {complex, Re1, Im1} = tessera:to_number((tessera:grad(fun(Z) -> tessera:real(tessera:Name(Z)) end))(tessera:tensor(At, c128))),
                 [?assert(abs(A - B) =< 1.0e-15 * abs(A)) || {A, B} <- [{Re, Re1}, {Im, Im1}]]
             end)}
     || {Name, At, Re, Im} <- [{tanh, {complex, -30, 0.3}, 2.8908240779173395e-26, 1.9777191581436842e-26},
                               {atan, {complex, 1.0e200, 1.0e200}, 0.0, 0.0},
                               {sigmoid, {complex, 40, 1}, 2.2953956002787691e-18, -3.5748668390130311e-18},
                               {asin, {complex, 1.0e200, 1.0e200}, 5.0e-201, 5.0e-201}, {acos, {complex, 1.0e200, -1.0e200}, -5.0e-201, 5.0e-201},
                               {asinh, {complex, 1.0e200, -1.0e200}, 5.0e-201, 5.0e-201}, {asinh, {complex, -1.0e200, 1.0e200}, 5.0e-201, 5.0e-201}]].

%% On a cut the sign of a zero selects the side of the gradient, as of the value.
gradients_on_cuts_test_() ->
    [?_test(begin
                [On, Beside] = [tessera:to_number((tessera:grad(fun(Z) -> tessera:real(tessera:multiply(tessera:Name(Z), {complex, 1, 0.6})) end))
                                                  (tessera:tensor(At, c128))) || At <- [Point(Zero), Point(Zero + Side)]],
                {complex, Re, Im} = On,
                {complex, Re1, Im1} = Beside,
                tessera_test:near([Re1, Im1], [Re, Im], 1.0e-6)
            end)
     || {Zero, Side} <- [{0.0, 1.0e-9}, {-0.0, -1.0e-9}],
        {Names, Points} <- [{[acos, asin, acosh, atanh, sqrt, log, rsqrt, cbrt, log1p], [fun(Y) -> {complex, X, Y} end || X <- [2.5, -2.5, -0.6]]},
                            {[asinh, atan], [fun(X) -> {complex, X, Y} end || Y <- [2.5, -2.5]]}],
        Name <- Names, Point <- Points].

%% With zeros, where there is no quotient; and the precision of c128.
products_test_() ->
    Of = fun(F, List, Type) -> tessera:to_list((tessera:grad(fun(Z) -> tessera:real(F(Z)) end))(tessera:tensor(List, Type))) end,
    Last = fun(Z) -> tessera:at(tessera:cumulative_product(Z), [-1]) end,
    Zero = {complex, 0, 0},
    Small = {complex, 1.0e-30, 1.0e-30},
    [[?_assertEqual(Expected, Of(F, List, Type)) || F <- [fun tessera:product/1, Last], Type <- ?TYPES]
     || {Expected, List} <- [{[{complex, 3.0, 1.0}, {complex, 1.0, 2.0}], [{complex, 1, 2}, {complex, 3, 1}]},
                             {[{complex, 0.0, 0.0}, {complex, -5.0, 5.0}, {complex, 0.0, 0.0}], [{complex, 1, 2}, Zero, {complex, 1, 3}]},
                             {[{complex, 0.0, 0.0}, {complex, 0.0, 0.0}, {complex, 0.0, 0.0}], [{complex, 1, 2}, Zero, Zero]}]] ++
    [?_assertMatch([_, _, {complex, Re, Im}] when Re == 0 andalso abs(Im - 2) < 1.0e-6, Of(F, [{complex, 1.0e30, 1.0e30}, Small, {complex, 1, 0}], c64))
     || F <- [fun tessera:product/1, Last]].

%% ---- parts at the ends of the range; the signs of zeros

ends_test_() ->
    Root = math:sqrt(1.0e-310),
    Half = math:pi() / 2,
    [{lists:flatten(io_lib:format("~p ~0p", [Name, Args])),
      fun() ->
          Tensors = [tessera:tensor(A, c128) || A <- Args],
          {complex, Re, Im} = tessera:to_number(apply(tessera, Name, Tensors)),
          %% formatted, as -0.0 and 0.0 may be equal
          ?assertEqual([io_lib:format("~.14e", [Part]) || Part <- [WantRe, WantIm]], [io_lib:format("~.14e", [Part]) || Part <- [Re, Im]])
      end}
     || {Name, Args, WantRe, WantIm} <-
            [{atan, [{complex, 1.0e300, 1.0e-310}], Half, 0.0}, {atan, [{complex, -1.0e300, -1.0e-310}], -Half, -0.0},
             {atan, [{complex, 1.0e154, 0.3}], Half, 3.0e-309}, {atanh, [{complex, 1.0e-310, 1.0e300}], 0.0, Half},
             {acos, [{complex, 1.0, -1.0e-310}], Root, Root}, {acos, [{complex, -1.0, 1.0e-310}], math:pi(), -Root},
             {asin, [{complex, 1.0, 1.0e-310}], Half, Root}, {asinh, [{complex, 1.0e-310, -1.0}], Root, -Half},
             {acosh, [{complex, 1.0, -1.0e-310}], Root, -Root}, {acosh, [{complex, -1.0, 1.0e-310}], Root, math:pi()},
             {sinh, [{complex, 0.0, 2.0}], -0.0, math:sin(2.0)}, {sinh, [{complex, -0.0, 2.0}], 0.0, math:sin(2.0)},
             {sin, [{complex, -2.0, 0.0}], math:sin(-2.0), -0.0}, {sin, [{complex, 2.0, -0.0}], math:sin(2.0), 0.0},
             {rsqrt, [{complex, 4.0, 0.0}], 0.5, -0.0}, {rsqrt, [{complex, -4.0, -0.0}], 0.0, 0.5},
             {sigmoid, [{complex, 0.0, -0.0}], 0.5, -0.0}, {sigmoid, [{complex, 0.0, 0.0}], 0.5, 0.0},
             {divide, [{complex, 1.0e308, 1.0e308}, {complex, 1.0e308, 1.0e308}], 1.0, 0.0},
             {divide, [{complex, 1.7e308, 1.7e308}, {complex, 1.4, 1.4}], 1.7e308 / 1.4, 0.0},
             {divide, [{complex, 1.0e-310, 0.0}, {complex, 1.0e-310, 1.0e-310}], 0.5, -0.5}]].

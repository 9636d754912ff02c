%% Ops of several results in Erlang: the test class of c_src/ir/op.def. Its test_exchange returns the lesser and the
%% greater of two integers, and how often the first is the greater one.
-module(tessera_results_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

exchange(A, B) -> list_to_tuple(tessera_trace:results(exchange, test_exchange, [A, B], [])).

lists({Low, High, Count}) -> {tessera:to_list(Low), tessera:to_list(High), tessera:to_list(Count)}.

-define(A, tessera:tensor([5, 1, 7], s32)).
-define(B, tessera:tensor([3, 2, 7], s32)).

eager_test() ->
    [?assertEqual({[3, 1, 7], [5, 2, 7], 1}, lists(exchange(?A, ?B))) || _ <- [first, again]],
    {#tessera{type = s64, shape = {}}} = {element(3, exchange(?A, ?B))}.

%% The short way is for ops of one result, also when the program is known.
short_way_test() ->
    #tessera{ref = A} = TensorA = ?A,
    #tessera{ref = B} = TensorB = ?B,
    _ = exchange(TensorA, TensorB),
    ok = tessera_memory:make_room(), % a NIF may ask for it first
    ?assertEqual(false, tessera_nif:op_like(test_exchange, A, B)).

%% Types merge, and numbers are operands, as of any op.
operands_test() ->
    ?assertEqual({[3, 1, 7], [5, 2, 7], 1}, lists(exchange(tessera:tensor([5, 1, 7], s16), ?B))),
    ?assertEqual({2, 4, 1}, lists(exchange(tessera:tensor(4, s32), 2))).

traced_test() ->
    F = tessera:jit(fun(A, B) ->
                            {Low, High, Count} = exchange(A, B),
                            {tessera:subtract(High, Low), Count, Low}
                    end),
    {Difference, Count, Low} = F(?A, ?B),
    ?assertEqual({[2, 1, 0], 1, [3, 1, 7]}, {tessera:to_list(Difference), tessera:to_list(Count), tessera:to_list(Low)}).

%% In a loop, whose region has the op.
loop_test() ->
    F = tessera:jit(fun(A, B) ->
                            tessera:while({A, B, 0}, fun({_, _, N}) -> tessera:less(N, 3) end,
                                          fun({X, Y, N}) ->
                                                  {Low, High, _} = exchange(X, Y),
                                                  {High, tessera:add(Low, 1), tessera:add(N, 1)}
                                          end)
                    end),
    {X, Y, _} = F(?A, ?B),
    ?assertEqual({[5, 3, 8], [6, 3, 9]}, {tessera:to_list(X), tessera:to_list(Y)}).

%% An error names the function that users called.
error_test() ->
    ?assertError({invalid_argument, <<"exchange(f32[1], f32[1]): expected an integer type">>},
                 exchange(tessera:tensor([1.0]), tessera:tensor([2.0]))).

text_test() ->
    Text = tessera:to_text(fun(A, B) -> exchange(A, B) end, [?A, ?B]),
    ?assertMatch({match, _}, re:run(Text, "%2, %3, %4 = test_exchange %0, %1 : s32\\[3\\], s32\\[3\\], s64\\[\\]")).

%% As the core packs expressions (front/expr_pack.c): one rule, which returns two of the op's results, used twice.
packed_test() ->
    Rule = <<"graph @main(%0: s32[3], %1: s32[3]) -> (s64[], s32[3]) {\n"
             "  %2, %3, %4 = test_exchange %0, %1 : s32[3], s32[3], s64[]\n"
             "  %5 = negate %3 : s32[3]\n  return %4, %5\n}\n">>,
    Words = fun(List) -> << <<W:32/little>> || W <- List >> end,
    Form = <<"s32", 0:40, 1:32/little, 3:64/little>>,
    Param = 1 bsl 31,
    Elem = 1 bsl 30,
    %% rules, parameters, values, results, forms; value 2 is the tuple, 3 and 4 its elements, 5 another one.
    Packed = <<0, "TSXPR3\n", (Words([1, 2, 7, 3, 1]))/binary, Form/binary, (byte_size(Rule)):32/little, Rule/binary,
               (Words([0, 0, Param, Param + 1, 0, 0, 1, Elem, 2, Elem + 1, 2, 0, 4, 0, Elem + 1, 5, 3, 4, 6]))/binary>>,
    Program = tessera_nif:expression_unpack(Packed),
    Executable = tessera_nif:compile(Program, []),
    ok = tessera_memory:make_room(), % a NIF may ask for it first
    [Count, High, Again] = tessera_nif:run(Executable, [?A, ?B], 0, 0),
    ?assertEqual({1, [-5, -2, -7], [-5, -1, -7]},
                 {tessera:to_list(Count), tessera:to_list(High), tessera:to_list(Again)}).

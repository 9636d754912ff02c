%% Programs as text that is cut, damaged, huge or made to hurt; traced values
%% and programs used where they have no business; functions that misbehave
%% while they are traced; extreme sizes and indices; views and donation.
-module(tessera_hostile_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/2, raises/3]).

%% ---- graph text

text() ->
    F = fun(X) ->
        {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 3) end,
                               fun({I, Z}) -> {tessera:add(I, 1), double_when(tessera:greater(I, 1), Z)} end),
        Parts = [tessera:slice(Y, [0, 0], [1, 2]), tessera:dot(Y, Y), tessera:tensor([[1.0, 2.5]]),
                 tessera:pad(tessera:full({1, 1}, 3.5), nan, [{0, 0, 0}, {0, 1, 0}])],
        {tessera:sum(tessera:concatenate(Parts)), tessera:reduce(Y, 1, fun tessera:multiply/2, #{axes => [1]}),
         tessera:argmax(tessera:take(Y, tessera:tensor([0, 5])), #{axis => 0, tie_break => high})}
    end,
    tessera:to_text(F, [tessera:template(f32, {2, 2})]).

double_when(Predicate, X) -> tessera:'cond'(Predicate, fun() -> tessera:multiply(X, 2.0) end, fun() -> X end).

%% Parses, compiles, and says how that went; anything but an error term of ours fails the test.
outcome(Text) ->
    case tessera_nif:parse(Text) of
        {error, #{code := Code, message := Message}} when is_atom(Code), is_binary(Message) -> error;
        Program when is_reference(Program) ->
            case tessera_nif:compile(Program, []) of
                {error, #{code := Code, message := Message}} when is_atom(Code), is_binary(Message) -> error;
                Executable when is_reference(Executable) -> ok
            end
    end.

whole_text_test() ->
    ?assertEqual(ok, outcome(text())),
    [Sum, Products, Largest] = tessera:run_text(text(), [tessera:ones({2, 2})]),
    ?assertEqual({3, {2}, {2}}, {length([Sum, Products, Largest]), tessera:shape(Products), tessera:shape(Largest)}).

%% Blanks at the end may go, nothing else.
cut_text_test_() ->
    {timeout, 60, fun() ->
        Text = string:trim(text(), trailing),
        [?assertEqual({error, N}, {outcome(binary:part(Text, 0, N)), N}) || N <- tessera_test:shared(lists:seq(0, byte_size(Text) - 1))],
        [raises(invalid_argument, fun() -> tessera:run_text(binary:part(Text, 0, N), []) end) || N <- [0, 1, 100]]
    end}.

%% Bytes replaced, removed, or copied from another place. The seed is fixed, so a failure comes again.
damaged_text_test_() ->
    {timeout, 120, fun() ->
        _ = rand:seed(exsss, {1, 2, 3}),
        Text = text(),
        Count = case os:getenv("TESSERA_SANITIZER") of false -> 1500; _ -> 300 end,
        Outcomes = [outcome(damaged(Text, rand:uniform(3))) || _ <- lists:seq(1, Count)],
        ?assert(lists:member(error, Outcomes))
    end}.

%% ---- text of programs on a mesh, whole and partitioned

mesh_texts() ->
    ok = tessera:open_client(hostile, #{device_count => 4}),
    F = tessera:shard_jit(fun(X, W) ->
                                  Y = tessera_mesh:sharding_constraint(tessera:dot(X, W), #{0 => [<<"b">>], 1 => [<<"a">>]}),
                                  {_, Z} = tessera:while({0, Y}, fun({I, _}) -> tessera:less(I, 3) end,
                                                         fun({I, Z}) -> {tessera:add(I, 1), tessera:add(Z, tessera:sum(Z))} end),
                                  {tessera:sort(Z, #{axis => 0}), tessera:sum(Z), tessera:take(Z, tessera:tensor([0, 5]))}
                          end, #{shape => {2, 2}, axes => [a, b]},
                          #{input_shardings => [#{0 => [a], 1 => [b]}, #{0 => [b]}], client => hostile}),
    Whole = tessera:to_text(F, [lists:duplicate(4, [tessera:template(f32, {2, 2}), tessera:template(f32, {2, 4})])]),
    {Part, _, _, _} = tessera_nif:partition(tessera_nif:parse(Whole)),
    [Whole, tessera_nif:graph_text(Part)].

%% The same for a program that may be partitioned.
mesh_outcome(Text) ->
    case tessera_nif:parse(Text) of
        {error, #{code := Code, message := Message}} when is_atom(Code), is_binary(Message) -> error;
        Program ->
            case tessera_nif:partition(Program) of
                {error, #{message := Message}} when is_binary(Message) -> outcome(Text);
                {Part, _, _, Report} when is_binary(Report) -> outcome(tessera_nif:graph_text(Part))
            end
    end.

cut_mesh_text_test_() ->
    {timeout, 120, fun() ->
        [begin
             ?assertEqual(ok, mesh_outcome(Whole)),
             Text = string:trim(Whole, trailing),
             [?assertEqual({error, N}, {mesh_outcome(binary:part(Text, 0, N)), N}) || N <- tessera_test:shared(lists:seq(0, byte_size(Text) - 1))]
         end || Whole <- mesh_texts()]
    end}.

damaged_mesh_text_test_() ->
    {timeout, 300, fun() ->
        _ = rand:seed(exsss, {1, 2, 3}),
        Count = case os:getenv("TESSERA_SANITIZER") of false -> 600; _ -> 150 end,
        Outcomes = [mesh_outcome(damaged(Text, rand:uniform(3))) || Text <- mesh_texts(), _ <- lists:seq(1, Count)],
        ?assert(lists:member(error, Outcomes))
    end}.

damaged(Text, 0) -> Text;
damaged(Text, N) ->
    At = rand:uniform(byte_size(Text)) - 1,
    Length = min(rand:uniform(8), byte_size(Text) - At),
    <<Before:At/binary, Old:Length/binary, After/binary>> = Text,
    New = case rand:uniform(4) of
              1 -> <<>>;
              2 -> <<(rand:uniform(256) - 1)>>;
              3 -> <<Old/binary, Old/binary>>;
              4 -> binary:part(Text, rand:uniform(byte_size(Text) - 8), 8)
          end,
    damaged(<<Before/binary, New/binary, After/binary>>, N - 1).

hostile_text_test_() ->
    Deep = fun(Open, N) -> iolist_to_binary(lists:duplicate(N, Open)) end,
    Texts = [<<>>, <<0>>, <<0:80000>>, <<255, 254, 253>>, <<"func">>, Deep("(", 1000000), Deep("{", 1000000),
             Deep("f32[", 100000), Deep("while {", 100000), Deep("%0 = ", 100000), Deep("1", 1000000),
             Deep("a", 10000000), Deep("\n", 10000000), Deep("\"", 100000), Deep("-", 1000000), Deep("[[[[", 100000)],
    Replaced = [binary:replace(text(), From, To) || {From, To} <-
        [{<<"f32[2,2]">>, <<"f32[2,-2]">>}, {<<"f32[2,2]">>, <<"f32[4611686018427387904,4611686018427387904]">>},
         {<<"f32[2,2]">>, <<"f32[99999999999999999999999999999]">>}, {<<"f32[2,2]">>, <<"c65[2,2]">>},
         {<<"f32[2,2]">>, <<"f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]">>}, {<<"f32[2,2]">>, <<"f32[2,2">>},
         {<<"%0">>, <<"%99999999999">>}, {<<"%1">>, <<"%1000000">>}]],
    [{timeout, 30, ?_assertEqual(error, outcome(Text))} || Text <- Texts ++ Replaced].

%% 20,000 ops in one program: many, but valid.
long_text_test_() ->
    {timeout, 60, fun() ->
        Count = case os:getenv("TESSERA_SANITIZER") of false -> 20000; _ -> 2000 end,
        F = fun(X) -> lists:foldl(fun(_, Y) -> tessera:add(Y, 1) end, X, lists:seq(1, Count)) end,
        Text = tessera:to_text(F, [tessera:template(s32, {})]),
        ?assertEqual([Count], [tessera:to_number(Y) || Y <- tessera:run_text(Text, [tessera:tensor(0)])])
    end}.

text_arguments_test() ->
    Text = tessera:to_text(fun tessera:add/2, [tessera:template(f32, {2}), tessera:template(f32, {2})]),
    A = tessera:ones({2}),
    [raises(invalid_argument, fun() -> tessera:run_text(Text, Args) end)
     || Args <- [[], [A], [A, A, A], [A, tessera:ones({3})], [A, tessera:ones({2}, f64)], [A, foo], [A | A], foo, [A,
     1]]],
    [raises(invalid_argument, fun() -> tessera:run_text(Other, [A, A]) end) || Other <- [foo, "text", 1, <<1:3>>]].

%% ---- traced values and programs outside of their scope

%% A traced value that is used after its function has returned: its program is complete.
leaked() ->
    Unique = make_ref(), % or else the program is in the cache
    F = tessera:jit(fun(X) -> put(leak, {Unique, tessera:add(X, 1)}), X end),
    _ = F(tessera:tensor([1.0, 2.0])),
    {Unique, Value} = erase(leak),
    Value.

leaked_value_test_() ->
    Uses = [fun(L) -> tessera:add(L, 1) end, fun(L) -> tessera:add(1, L) end, fun(L) -> tessera:reshape(L, {2, 1}) end,
            fun(L) -> tessera:dot(L, L) end, fun(L) -> tessera:concatenate([L, L]) end,
            fun(L) -> (tessera:jit(fun(X) -> tessera:add(X, 1) end))(L) end,
            fun(L) -> (tessera:jit(fun() -> tessera:add(L, 1) end))() end,
            fun(L) -> (tessera:jit(fun() -> L end))() end,
            fun(L) -> tessera:while(L, fun(_) -> 0 end, fun(X) -> X end) end],
    [?_test(raises(invalid_argument, fun() -> Use(leaked()) end)) || Use <- Uses] ++
    [?_test(raises(failed_precondition, fun() -> Read(leaked()) end))
     || Read <- [fun tessera:to_list/1, fun tessera:to_binary/1]].

%% A value of a region that is closed, as of the body of a loop.
leaked_from_region_test() ->
    F = fun(X) ->
        Y = tessera:while(X, fun(A) -> tessera:less(A, 3) end, fun(A) -> put(leak, A), tessera:add(A, 1) end),
        tessera:add(Y, erase(leak))
    end,
    raises(invalid_argument, "outside", fun() -> (tessera:jit(F))(0) end),
    ?assertEqual(4, tessera:to_number((tessera:jit(fun(X) -> tessera:add(X, 1) end))(3))).

%% A value of an outer function's program in the program of an inner one's argument.
other_process_test() ->
    F = tessera:jit(fun(X) ->
        {Pid, M} = spawn_monitor(fun() -> exit(tessera:add(X, 1)) end),
        receive {'DOWN', M, process, Pid, {{invalid_argument, _}, _}} -> X end
    end),
    ok = logger:set_primary_config(level, none),
    try ?assertEqual(1, tessera:to_number(F(1))) after logger:set_primary_config(level, notice) end.

%% The interface below the API, as a caller that ignores its rules would use it.
dead_builder_test() ->
    B = tessera_nif:builder_new([]),
    #tessera{} = X = tessera_nif:param(B, f32, {2}),
    [?assertMatch({error, #{code := _}}, Wrong) || Wrong <-
        [tessera_nif:compile(B, []), tessera_nif:builder_new([foo]), tessera_nif:param(B, f32, [2]),
         tessera_nif:param(make_ref(), f32, {2}), tessera_nif:region_finish(B, [X]), tessera_nif:region_leave(B),
         tessera_nif:region_enter(B, 7), tessera_nif:region_enter(B, 0), tessera_nif:control(B, while, 7, 8, [X]),
         tessera_nif:control(B, foo, 0, 0, [X]), tessera_nif:finish(B, foo), tessera_nif:finish(B, [foo]),
         tessera_nif:inline_region(B, 9, [X], []), tessera_nif:inline_region(B, 9, [X], [a | b]), tessera_nif:op(B, foo, [X], []), tessera_nif:op(B, while, [X], []),
         tessera_nif:op(B, parameter, [], []), tessera_nif:op(B, fusion, [X], []), tessera_nif:op(B, literal, [], []),
         tessera_nif:op(B, reduce, [X, 0], {[0], 5}), tessera_nif:op(B, call, [X], []),
         tessera_nif:op(B, add, [X | X], []), tessera_nif:op(B, add, [], []), tessera_nif:op(B, exp, [X, X], []),
         tessera_nif:op(B, exp, [{tessera, [B | 77], f32, {}}], []), tessera_nif:op(B, exp, [{tessera, [B | -1], f32,
         {}}], [])]],
    [] = tessera_nif:finish(B, [tessera_nif:op(B, exp, [X], [])]),
    [?assertMatch({error, #{code := failed_precondition}}, Late) || Late <-
        [tessera_nif:op(B, exp, [X], []), tessera_nif:param(B, f32, {}), tessera_nif:value(B, 1),
         tessera_nif:region_open(B, [], undefined), tessera_nif:finish(B, [X])]],
    ?assert(is_reference(tessera_nif:compile(B, []))),
    ok = tessera_memory:make_room(), % a NIF may ask for it first
    [?assertMatch({error, #{code := invalid_argument}}, Wrong) || Wrong <-
        [tessera_nif:run(foo, [], 0, 0), tessera_nif:run(tessera_nif:compile(B, []), [], 0, 0),
         tessera_nif:run(tessera_nif:compile(B, []), [X], 0, 0), tessera_nif:run(tessera_nif:compile(B, []), [1], -1,
         0),
         tessera_nif:run(tessera_nif:compile(B, []), [1], 0, -1), tessera_nif:run(tessera_nif:compile(B, []), foo, 0,
         0)]].

%% ---- functions that misbehave while they are traced

%% The caller gets the exception that they raise, and can continue.
raising_test_() ->
    [?_test(begin
         ?assertError(Reason, (tessera:jit(F))(tessera:tensor([1.0]))),
         ?assertEqual(2, tessera:to_number(tessera:add(1, 1)))
     end) || {Reason, F} <-
        [{oops, fun(_) -> error(oops) end},
         {oops, fun(X) -> tessera:while(X, fun(_) -> error(oops) end, fun(Y) -> Y end) end},
         {oops, fun(X) -> tessera:while(X, fun(_) -> 0 end, fun(_) -> error(oops) end) end},
         {oops, fun(X) -> tessera:'cond'(tessera:sum(X), fun() -> X end, fun() -> error(oops) end) end},
         {oops, fun(X) -> tessera:reduce(X, 0, fun(_, _) -> error(oops) end) end}]].

throwing_test() ->
    ?assertThrow(ball, (tessera:jit(fun(_) -> throw(ball) end))(1)),
    ?assertExit(gone, (tessera:jit(fun(_) -> exit(gone) end))(1)),
    ?assertEqual(2, tessera:to_number(tessera:add(1, 1))).

results_test() ->
    Pid = self(),
    F = tessera:jit(fun(X) -> {foo, X, [Pid, #{a => 1}], <<"b">>, nan} end),
    {foo, X, [Pid, #{a := One}], <<"b">>, _} = F(5),
    ?assertEqual({5, 1}, {tessera:to_number(X), tessera:to_number(One)}),
    ?assertEqual(foo, (tessera:jit(fun() -> foo end))()),
    ?assertEqual(7, tessera:to_number((tessera:jit(fun() -> 7 end))())),
    ?assertEqual([], (tessera:jit(fun(_) -> [] end))(3)).

nested_test() ->
    Inner = tessera:jit(fun(X) -> tessera:multiply(X, 2) end),
    Outer = tessera:jit(fun(X) -> tessera:add(Inner(X), Inner(1)) end),
    ?assertEqual(8, tessera:to_number(Outer(3))),
    Compiled = tessera:compile(fun(X) -> tessera:negate(X) end, [tessera:template(s32, {})]),
    ?assertEqual(-3, tessera:to_number((tessera:jit(fun(X) -> Compiled(X) end))(3))),
    raises(invalid_argument, fun() -> (tessera:jit(fun(X) -> Compiled(X) end))(tessera:iota({2})) end).

function_misuse_test_() ->
    Many = fun(_, _, _, _, _, _, _, _, _, _, _, _, _) -> 1 end,
    [?_test(raises(invalid_argument, F)) || F <-
        [fun() -> tessera:jit(foo) end, fun() -> tessera:jit(fun() -> 1 end, foo) end, fun() -> tessera:jit(Many) end,
         fun() -> tessera:jit(fun() -> 1 end, #{bogus => 1}) end, fun() -> tessera:jit(fun() -> 1 end,
         #{threads => -1}) end,
         fun() -> tessera:jit(fun() -> 1 end, #{threads => foo}) end, fun() -> tessera:jit(fun() -> 1 end,
         #{donate => foo}) end,
         fun() -> tessera:jit(fun() -> 1 end, #{donate => [0]}) end, fun() -> tessera:jit(fun() -> 1 end,
         #{donate => [1 | 2]}) end,
         fun() -> tessera:jit(fun() -> 1 end, #{fuse => foo}) end, fun() -> tessera:compile(foo, []) end,
         fun() -> tessera:compile(fun(X) -> X end, []) end, fun() -> tessera:compile(fun(X) -> X end, foo) end,
         fun() -> tessera:compile(fun(X) -> X end, [1 | 2]) end, fun() -> tessera:grad(foo) end,
         fun() -> tessera:grad(fun() -> 1 end) end, fun() -> (tessera:grad(fun(_) -> foo end))(1.0) end,
         fun() -> (tessera:grad(fun(X) -> X end))(tessera:iota({3}, f32)) end,
         fun() -> (tessera:grad(fun(X) -> X end))(tessera:tensor(1)) end,
         fun() -> tessera:explain(foo) end, fun() -> tessera:explain(fun(X) -> X end) end,
         fun() -> tessera:explain(fun(X) -> X end, foo) end, fun() -> tessera:to_text(foo, []) end,
         fun() -> tessera:to_text(fun(X) -> X end, []) end, fun() -> tessera:to_text(fun(X) -> X end, [1 | 2]) end,
         fun() -> (tessera:jit(fun(X) -> X end))({tessera, undefined, f32, {2}}) end,
         fun() -> (tessera:jit(fun(X) -> X end))({tessera, make_ref(), f32, {2}}) end,
         fun() -> (tessera:jit(fun(X) -> X end))({tessera, make_ref(), foo, {2}}) end,
         fun() -> (tessera:jit(fun(X) -> X end))({tessera, make_ref(), f32, 5}) end,
         fun() -> (tessera:jit(fun(X) -> tessera:exp(X) end))(foo) end,
         fun() -> (tessera:jit(fun(X) -> tessera:exp(X) end))(<<1, 2>>) end,
         fun() -> (tessera:jit(fun(X) -> tessera:exp(X) end))([1 | 2]) end,
         fun() -> (tessera:jit(fun(X) -> tessera:exp(X) end))({1, 2}) end,
         fun() -> (tessera:jit(fun(X) -> tessera:exp(X) end))(self()) end,
         fun() -> tessera:set_memory_limit(foo) end, fun() -> tessera:set_memory_limit(-1) end,
         fun() -> tessera:template(foo, {2}) end, fun() -> tessera:template(f32, 5) end,
         fun() -> tessera:shape(foo) end, fun() -> tessera:type(<<1>>) end, fun() -> tessera:rank([1]) end,
         fun() -> tessera:size(self()) end]].

%% ---- extreme sizes, indices and numbers

huge_test_() ->
    [?_test(raises(resource_exhausted, "1152921504606846976", F)) || F <-
        [fun() -> tessera:zeros({1 bsl 60}, u8) end, fun() -> tessera:iota({1 bsl 27, 1 bsl 30}, s64) end,
         fun() -> tessera:broadcast(tessera:tensor(1, u8), {1 bsl 20, 1 bsl 40}) end,
         fun() -> (tessera:jit(fun(X) -> tessera:broadcast(X, {1 bsl 60}) end))(tessera:tensor(1, u8)) end,
         %% wanted in passing
         fun() -> (tessera:jit(fun(X) -> tessera:cumulative_sum(tessera:broadcast(X,
         {1 bsl 60})) end))(tessera:tensor(1, u8)) end]] ++
    [?_test(raises(out_of_range, F)) || F <-
        [fun() -> tessera:zeros({1 bsl 60}, f64) end, fun() -> tessera:zeros({1 bsl 62, 4}, u8) end,
         fun() -> (tessera:jit(fun(X) -> tessera:broadcast(X, {1 bsl 62, 1 bsl 62}) end))(1) end]].

%% A zero among large sizes is an empty tensor.
empty_test() ->
    Empty = tessera:zeros({1 bsl 60, 0}),
    ?assertEqual({1 bsl 60, 0}, tessera:shape(tessera:exp(Empty))),
    ?assertEqual(<<>>, tessera:to_binary(Empty)),
    raises(resource_exhausted, "f32[1152921504606846976,0]", fun() -> tessera:to_list(Empty) end),
    ?assert(iolist_size(tessera:format(Empty)) < 100),
    ?assertEqual([[], []], tessera:to_list(tessera:slice(Empty, [5, 0], [2, 0]))),
    ?assertEqual(0.0, tessera:to_number(tessera:sum(Empty))).

%% Indices are clamped, at once and compiled.
clamped_test_() ->
    X = tessera:iota({4}),
    Both = fun(F, Index) -> ?assertEqual(tessera:to_list(F(Index)), tessera:to_list((tessera:jit(F))(Index))),
    tessera:to_list(F(Index)) end,
    [?_test(?assertEqual({Index, Type, [Expected, Expected + 1]},
                         {Index, Type, Both(fun(I) -> tessera:slice(X, [I], [2]) end, tessera:tensor(Index, Type))}))
     || {Index, Type, Expected} <-
            [{-1, s32, 0}, {-128, s8, 0}, {-(1 bsl 63), s64, 0}, {(1 bsl 63) - 1, s64, 2}, {(1 bsl 64) - 1, u64, 2},
            {3, u8, 2},
             {4, s16, 2}, {(1 bsl 32) - 1, u32, 2}, {1, u16, 1}]] ++
    [?_assertEqual([0, 0, 3, 3, 2], Both(fun(I) -> tessera:take(X, I) end, tessera:tensor([-1, -(1 bsl 40), 4,
    1 bsl 40, 2]))),
     ?_assertEqual([3, 0], Both(fun(I) -> tessera:take(X, I) end, tessera:tensor([(1 bsl 64) - 1, 0], u64))),
     ?_assertEqual([0, 3], Both(fun(I) -> tessera:take_along_axis(X, I) end, tessera:tensor([-(1 bsl 63),
     (1 bsl 63) - 1]))),
     ?_assertEqual([0, 1, 9, 9], Both(fun(I) -> tessera:put_slice(X, [I], tessera:tensor([9, 9])) end,
     tessera:tensor(77))),
     ?_assertEqual([9, 9, 2, 3], Both(fun(I) -> tessera:put_slice(X, [I], tessera:tensor([9, 9])) end,
     tessera:tensor(-77)))] ++
    [?_test(raises(invalid_argument, "slice", fun() -> tessera:slice(X, [Start], [2]) end)) || Start <- [-1, 3,
    1 bsl 62, -(1 bsl 62)]].

%% Every type: division by zero, the least number by -1, shifts past the width.
integers_test_() ->
    [{atom_to_list(Type), ?_test(begin
        Least = case Type of
                    _ when Type =:= u8; Type =:= u16; Type =:= u32; Type =:= u64 -> 0;
                    _ -> -(1 bsl (Bits - 1))
                end,
        Ones = case Least of 0 -> (1 bsl Bits) - 1; _ -> -1 end,
        T = fun(N) -> tessera:tensor(N, Type) end,
        [?assertEqual({Name, Expected}, {Name, tessera:to_number(F(T(A), T(B)))})
         || {Name, A, B, Expected} <-
                [{quotient, 7, 0, Ones}, {remainder, 7, 0, 7}, {left_shift, 1, Bits, 0}, {left_shift, 1, 100, 0},
                 {right_shift, 5, Bits, 0}, {right_shift, Ones, 100, Ones * (1 - sign_of(Least))}] ++
                [{N, Least, -1, E} || Least < 0, {N, E} <- [{quotient, Least}, {remainder, 0}, {multiply, Least}]],
            F <- [fun tessera:Name/2, tessera:jit(fun tessera:Name/2)]]
     end)} || {Type, Bits} <- [{s8, 8}, {s16, 16}, {s32, 32}, {s64, 64}, {u8, 8}, {u16, 16}, {u32, 32}, {u64, 64}]].

%% 1 for unsigned types, whose shifts fill with zeros.
sign_of(0) -> 1;
sign_of(_) -> 0.

special_numbers_test() ->
    raises(out_of_range, fun() -> tessera:linspace(-1.0e308, 1.0e308, 3) end),
    ?assertEqual([nan, infinity, neg_infinity, 0.0], tessera:to_list(tessera:tensor([nan, infinity, neg_infinity, 0]))),
    ?assertEqual([0, 2147483647, -2147483648], tessera:to_list(tessera:as_type(tessera:tensor([nan, infinity,
    neg_infinity]), s32))),
    ?assertEqual([0, 255, 0], tessera:to_list(tessera:as_type(tessera:tensor([nan, infinity, neg_infinity]), u8))),
    ?assertEqual(infinity, tessera:to_number(tessera:tensor(1.0e308, f32))),
    ?assertEqual([nan], tessera:to_list(tessera:add(tessera:tensor([infinity]), neg_infinity))).

%% ---- views, donation, deallocation

views_test_() ->
    Size = 1 bsl 18,
    Expected = << <<N:32/native>> || N <- lists:seq(1, Size) >>,
    [{Name, fun() ->
        T = tessera:add(tessera:iota({Size}), 1),
        View = tessera:to_binary(T),
        Part = binary:part(View, Size, Size),
        Use(T),
        %% reuses freed memory
        _ = [tessera:full({Size}, N) || N <- lists:seq(1, 8)],
        ?assert(View =:= Expected),
        ?assert(Part =:= binary:part(Expected, Size, Size))
     end} || {Name, Use} <-
        [{"deallocated", fun tessera:deallocate/1},
         {"donated", tessera:jit(fun(X) -> tessera:negate(X) end, #{donate => [1]})},
         {"viewed again", fun(T) -> tessera:from_binary(tessera:to_binary(T), s32, {Size}) end},
         {"dropped", fun(_) -> garbage_collect() end}]].

%% Donated tensors are gone, and say so.
donated_test() ->
    F = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{donate => [1]}),
    T = tessera:iota({100000}),
    Sum = F(T, 1),
    ?assertEqual(100000, tessera:to_number(tessera:at(Sum, [-1]))),
    [raises(failed_precondition, fun() -> Use(T) end)
     || Use <- [fun tessera:to_list/1, fun tessera:negate/1, fun(X) -> F(X, 1) end, fun(X) -> tessera:reshape(X, {100,
     1000}) end]],
    ?assertEqual(already_deallocated, tessera:deallocate(T)).

%% One tensor cannot be donated and be something else.
donated_twice_test() ->
    T = tessera:iota({1000}),
    F = tessera:jit(fun tessera:subtract/2, #{donate => [1, 2]}),
    raises(failed_precondition, "donated", fun() -> F(T, T) end),
    ?assertEqual(999, tessera:to_number(tessera:at(T, [-1]))).

%% A run that fails takes nothing.
donation_undone_test() ->
    F = tessera:jit(fun(X) -> {tessera:add(X, 1), tessera:broadcast(tessera:at(X, [0]), {1 bsl 60})} end,
    #{donate => [1]}),
    T = tessera:iota({1000}),
    raises(resource_exhausted, fun() -> F(T) end),
    ?assertEqual(999, tessera:to_number(tessera:at(T, [-1]))).

%% ---- the limit

limit_test_() ->
    {timeout, 60, fun() ->
        #{limit := Limit} = tessera:memory(),
        ok = tessera:trim(),
        #{live := Live} = tessera:memory(),
        F = tessera:jit(fun(X) -> {tessera:sum(tessera:cumulative_sum(tessera:broadcast(X, {1 bsl 24}))), X} end),
        try
            ok = tessera:set_memory_limit(Live + (1 bsl 24)),
            raises(resource_exhausted, fun() -> F(1) end),
            raises(resource_exhausted, fun() -> tessera:iota({1 bsl 24}) end),
            raises(resource_exhausted, fun() -> tessera:tensor(binary:copy(<<0>>, 1 bsl 25), u8),
            tessera:iota({1 bsl 23}) end),
            ok = tessera:set_memory_limit(0),
            raises(resource_exhausted, fun() -> tessera:add(1, 2) end),
            raises(resource_exhausted, fun() -> tessera:tensor([1, 2, 3]) end)
        after
            ok = tessera:set_memory_limit(Limit)
        end,
        ?assertEqual(3, tessera:to_number(tessera:add(1, 2))),
        {_, One} = F(1),
        ?assertEqual(1, tessera:to_number(One))
    end}.

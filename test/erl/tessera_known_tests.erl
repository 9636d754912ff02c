%% The short way of a jitted function's call (c_src/nif/run/nif_known.c): it finds a program by the function and the types of the arguments, and
%% whatever it does not know it leaves to the long way.
-module(tessera_known_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

%% The same several times: the first call compiles, the second finds the program.
again(F) ->
    First = F(),
    [?assertEqual(First, F()) || _ <- [1, 2, 3]],
    First.

types_select_test() ->
    ok = tessera:clear_cache(),
    F = tessera:jit(fun(X) -> tessera:add(X, X) end),
    Both = fun(X) -> R = F(X), {tessera:type(R), tessera:shape(R), tessera:to_list(R)} end,
    Tensors = [tessera:tensor(1.5), tessera:tensor([1.5]), tessera:tensor([[1.5]]), tessera:tensor([1.5, 2.5]), tessera:tensor(1.5, f64),
               tessera:tensor(3), tessera:tensor(3, s64), tessera:tensor(3, u64), tessera:tensor([[1.0, 2.0]]), tessera:tensor([[1.0], [2.0]])],
    Numbers = [1.5, 0.25, 3, 16#80000000, -16#80000001, 16#8000000000000000, {complex, 1.0, 2.0}],
    Expected = [{f32, {}, 3.0}, {f32, {1}, [3.0]}, {f32, {1, 1}, [[3.0]]}, {f32, {2}, [3.0, 5.0]}, {f64, {}, 3.0}, {s32, {}, 6}, {s64, {}, 6},
                {u64, {}, 6}, {f32, {1, 2}, [[2.0, 4.0]]}, {f32, {2, 1}, [[2.0], [4.0]]}, {f32, {}, 3.0}, {f32, {}, 0.5}, {s32, {}, 6},
                {s64, {}, 16#100000000}, {s64, {}, -16#100000002}, {u64, {}, 0}, {c64, {}, {complex, 2.0, 4.0}}],
    [?assertEqual(Expected, [Both(X) || X <- Tensors ++ Numbers]) || _ <- [1, 2, 3]].

%% A number has a type of its own, and a tensor of this type has the same results.
numbers_are_no_tensors_test() ->
    F = tessera:jit(fun(X) -> case is_number(X) of true -> wrong; false -> tessera:add(X, 1.0) end end),
    [begin
         ?assertEqual({f32, 3.0}, typed(F(2.0))),
         ?assertEqual({f32, 3.0}, typed(F(tessera:tensor(2.0)))),
         ?assertEqual({f32, 3.0}, typed(F(2))),
         ?assertEqual({f16, 3.0}, typed(F(tessera:tensor(2.0, f16)))),
         ?assertEqual({f64, 3.0}, typed(F(tessera:tensor(2.0, f64))))
     end || _ <- [1, 2, 3]].

typed(#tessera{type = Type} = T) -> {Type, tessera:to_list(T)}.

functions_select_test() ->
    X = tessera:tensor([4.0, 9.0]),
    Fs = [tessera:jit(fun(Y) -> tessera:multiply(Y, N) end) || N <- lists:seq(1, 300)],
    [?assertEqual([[4.0 * N, 9.0 * N] || N <- lists:seq(1, 300)], [tessera:to_list(F(X)) || F <- Fs]) || _ <- [1, 2, 3]].

containers_test() ->
    X = tessera:tensor(2.0),
    Y = tessera:tensor([1.0, 3.0]),
    Values = fun(F) -> fun() -> values(F()) end end,
    Tuple = tessera:jit(fun(A, B) -> {tessera:add(A, B), A} end),
    ?assertEqual({[3.0, 5.0], 2.0}, again(Values(fun() -> Tuple(X, Y) end))),
    List = tessera:jit(fun(A, B) -> [B, tessera:negate(A), B] end),
    ?assertEqual([[1.0, 3.0], -2.0, [1.0, 3.0]], again(Values(fun() -> List(X, Y) end))),
    One = tessera:jit(fun(A) -> {A} end),
    ?assertEqual({2.0}, again(Values(fun() -> One(X) end))),
    Nested = tessera:jit(fun(A, B) -> {A, [B, {tessera:negate(B)}]} end),
    ?assertEqual({2.0, [[1.0, 3.0], {[-1.0, -3.0]}]}, again(Values(fun() -> Nested(X, Y) end))),
    Map = tessera:jit(fun(#{a := A}) -> #{b => tessera:negate(A)} end),
    ?assertEqual(#{b => -2.0}, again(Values(fun() -> Map(#{a => X}) end))),
    Empty = tessera:jit(fun(_) -> {} end),
    ?assertEqual({}, again(Values(fun() -> Empty(X) end))),
    None = tessera:jit(fun() -> tessera:iota({3}, s32) end),
    ?assertEqual([0, 1, 2], again(Values(fun() -> None() end))),
    Static = tessera:jit(fun(A, Which) -> case Which of up -> tessera:add(A, 1.0); down -> tessera:subtract(A, 1.0) end end),
    ?assertEqual([3.0, 1.0], again(fun() -> [tessera:to_list(Static(X, Which)) || Which <- [up, down]] end)).

values(#tessera{} = T) -> tessera:to_list(T);
values(List) when is_list(List) -> [values(T) || T <- List];
values(Map) when is_map(Map) -> maps:map(fun(_, T) -> values(T) end, Map);
values(Tuple) -> list_to_tuple(values(tuple_to_list(Tuple))).

%% More than the short way takes, in number and in rank.
many_arguments_test() ->
    X = tessera:broadcast(1.0, {1, 1, 1, 1, 1, 1, 2}),
    Eight = tessera:jit(fun(A, B, C, D, E, F, G, H) -> total([A, B, C, D, E, F, G, H]) end),
    Nine = tessera:jit(fun(A, B, C, D, E, F, G, H, I) -> total([A, B, C, D, E, F, G, H, I]) end),
    ?assertEqual(16.0, again(fun() -> tessera:to_list(apply(Eight, lists:duplicate(8, X))) end)),
    ?assertEqual(8.0, again(fun() -> tessera:to_list(apply(Eight, lists:duplicate(8, tessera:tensor(1.0)))) end)),
    ?assertEqual(9.0, again(fun() -> tessera:to_list(apply(Nine, lists:duplicate(9, tessera:tensor(1.0)))) end)).

total(Tensors) -> lists:foldl(fun(T, Sum) -> tessera:add(Sum, tessera:sum(T)) end, 0.0, Tensors).

%% The long way tells them, and nothing of the call stays behind.
errors_test() ->
    F = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end),
    X = tessera:tensor([1.0, 2.0]),
    Sum = fun() -> tessera:to_list(F(X, X)) end,
    ?assertEqual([2.0, 4.0], again(Sum)),
    Gone = tessera:tensor([1.0, 2.0]),
    ok = tessera:deallocate(Gone),
    [?assertError({failed_precondition, _}, F(A, B)) || {A, B} <- [{X, Gone}, {Gone, X}, {Gone, Gone}]],
    [?assertError({_, _}, F(X, Wrong)) || Wrong <- [tessera:template(f32, {2}), tessera:tensor([1.0, 2.0, 3.0]), wrong, <<"wrong">>, self()]],
    ?assertEqual([2.0, 4.0], again(Sum)),
    [?assertEqual(false, tessera_nif:run_known(Id, Args, Threads))
     || {Id, Args, Threads} <- [{<<0:128>>, [X], 0}, {<<0>>, [X, X], 0}, {id, [X, X], 0}, {<<0:128>>, X, 0}, {<<0:128>>, [X | X], 0}, {<<0:128>>, [], x},
                                {<<1:1>>, [], 0}, {<<0:128>>, [[X]], 0}]],
    ?assertEqual(ok, tessera_nif:known_add(<<0:128>>, [X], make_ref(), leaf)),
    ?assertEqual(ok, tessera_nif:known_add(<<0:128>>, [X], program, leaf)).

%% A program that takes other arguments is not kept for these.
wrong_program_test() ->
    X = tessera:tensor([1.0, 2.0]),
    Text = tessera:to_text(fun tessera:negate/1, [X]),
    Program = tessera_run:compile(tessera_nif:parse(Text), []),
    Add = fun(Id, Args) -> ok = tessera_nif:known_add(<<Id:128>>, Args, Program, leaf), tessera_nif:run_known(<<Id:128>>, Args, 0) end,
    [?assertEqual(false, Add(1, Args))
     || Args <- [[], [X, X], [1.0], [tessera:tensor(1.0)], [tessera:tensor([1, 2])], [tessera:tensor([[1.0, 2.0]])], [tessera:template(f32, {2})]]],
    ok = tessera_memory:make_room(), % the call may ask for it first
    ?assertEqual([-1.0, -2.0], tessera:to_list(Add(2, [X]))),
    ?assertEqual(false, tessera_nif:run_known(<<3:128>>, [X], 0)),
    ok = tessera:clear_cache(),
    ?assertEqual(false, tessera_nif:run_known(<<2:128>>, [X], 0)).

%% Values that a function holds are arguments as well, and donated arguments are gone afterwards.
hidden_and_donated_test() ->
    Make = fun(W) -> tessera:jit(fun(X) -> tessera:multiply(X, W) end) end,
    X = tessera:tensor([1.0, 2.0]),
    [?assertEqual([1.0 * N, 2.0 * N], tessera:to_list((Make(tessera:tensor(float(N))))(X))) || N <- [1, 2, 3, 1, 2, 3]],
    Donating = tessera:jit(fun(Y) -> tessera:add(Y, 1.0) end, #{donate => [1]}),
    [begin
         Y = tessera:tensor([1.0, 2.0]),
         ?assertEqual([2.0, 3.0], tessera:to_list(Donating(Y))),
         ?assertError({failed_precondition, _}, tessera:to_list(Y))
     end || _ <- [1, 2, 3]].

%% A function that calls another one, and one that is traced, use no program of the inner one.
inner_functions_test() ->
    Inner = tessera:jit(fun(X) -> tessera:multiply(X, 3.0) end),
    X = tessera:tensor(2.0),
    ?assertEqual(6.0, again(fun() -> tessera:to_list(Inner(X)) end)),
    Outer = tessera:jit(fun(Y) -> tessera:add(Inner(Y), 1.0) end),
    ?assertEqual(7.0, again(fun() -> tessera:to_list(Outer(X)) end)),
    ?assertEqual(3.0, again(fun() -> tessera:to_list((tessera:grad(fun(Y) -> Inner(Y) end))(X)) end)).

%% Of a new version of the code the function is another one.
new_code_test() ->
    Load = fun(Factor) ->
                   Forms = [{attribute, 1, module, tessera_known_code}, {attribute, 1, export, [{f, 1}]},
                            {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [],
                             [{call, 1, {remote, 1, {atom, 1, tessera}, {atom, 1, multiply}}, [{var, 1, 'X'}, {float, 1, Factor}]}]}]}],
                   {ok, Module, Code} = compile:forms(Forms),
                   _ = code:purge(Module),
                   {module, Module} = code:load_binary(Module, "known.erl", Code)
           end,
    X = tessera:tensor(2.0),
    _ = Load(3.0),
    F = tessera:jit(fun tessera_known_code:f/1),
    ?assertEqual(6.0, again(fun() -> tessera:to_list(F(X)) end)),
    _ = Load(5.0),
    ?assertEqual(10.0, again(fun() -> tessera:to_list(F(X)) end)),
    _ = code:purge(tessera_known_code),
    _ = code:delete(tessera_known_code),
    _ = code:purge(tessera_known_code).

%% The garbage of a loop of calls is collected as it is made.
memory_test() ->
    X = tessera:broadcast(1.0, {60000}),
    F = tessera:jit(fun(Y) -> tessera:add(Y, 1.0) end),
    Last = lists:foldl(fun(_, Y) -> F(Y) end, X, lists:seq(1, 20)),
    ?assertEqual([21.0], tessera:to_list(tessera:slice(Last, [0], [1]))),
    #{live := Before} = tessera:memory(),
    _ = lists:foldl(fun(_, Y) -> F(Y) end, X, lists:seq(1, 2000)),
    true = erlang:garbage_collect(),
    erlang:yield(),
    #{live := After} = tessera:memory(),
    ?assert(After - Before < 16 bsl 20).

%% Callers on all schedulers, while the programs are forgotten.
callers_test_() -> {timeout, 60, fun callers/0}.

callers() ->
    Fs = [{tessera:jit(fun(X) -> tessera:multiply(X, N) end), N} || N <- lists:seq(1, 100)],
    Call = fun() -> [?assertEqual(2.0 * N, tessera:to_list(F(tessera:tensor(2.0)))) || _ <- lists:seq(1, 30), {F, N} <- Fs] end,
    Pids = [spawn_monitor(Call) || _ <- [1, 2, 3, 4]],
    Clearer = spawn_link(fun Clear() -> ok = tessera:clear_cache(), timer:sleep(1), Clear() end),
    Reasons = [receive {'DOWN', Monitor, process, _, Reason} -> Reason end || {_, Monitor} <- Pids],
    unlink(Clearer),
    exit(Clearer, kill),
    ?assertEqual([normal || _ <- Pids], Reasons).

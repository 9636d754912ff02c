%% Compiled functions: containers, captured tensors, the cache, templates.
-module(tessera_jit_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/2, raises/3]).

compiled() -> maps:get(programs, tessera:memory()).

n(T) -> tessera:to_number(T).

containers_test() ->
    F = tessera:jit(fun({A, [B, #{c := C}]}, tag) -> #{sum => tessera:add(A, B), rest => [C, {ok, A}], none => [], text => <<"x">>} end),
    #{sum := Sum, rest := [C, {ok, A}], none := [], text := <<"x">>} = F({1, [tessera:tensor(2), #{c => 3.5}]}, tag),
    ?assertEqual({3, 3.5, 1}, {n(Sum), n(C), n(A)}).

arities_test_() ->
    [?_assertEqual(N, n(apply(tessera:jit(F), lists:duplicate(N, 1))))
     || {N, F} <- [{1, fun(A) -> A end}, {2, fun(A, B) -> s([A, B]) end}, {3, fun(A, B, C) -> s([A, B, C]) end},
                   {6, fun(A, B, C, D, E, F) -> s([A, B, C, D, E, F]) end},
                   {12, fun(A, B, C, D, E, F, G, H, I, J, K, L) -> s([A, B, C, D, E, F, G, H, I, J, K, L]) end}]].

s(Terms) -> lists:foldl(fun tessera:add/2, 0, Terms).

no_arguments_test() ->
    F = tessera:jit(fun() -> {tessera:iota({3}), 7} end),
    {I, Seven} = F(),
    ?assertEqual({[0, 1, 2], 7}, {tessera:to_list(I), n(Seven)}).

%% Ops that the compiler of a device may unite, where the united op overflows or vanishes, or is rounded otherwise.
ops_apart_test_() ->
    Divide = fun tessera:divide/2, Multiply = fun tessera:multiply/2,
    [{Name,
      fun() ->
              Args = [tessera:tensor(Arg, Type) || Arg <- Numbers],
              [?assertEqual(Expected, tessera:to_list(apply(Run, Args))) || Run <- [F, tessera:jit(F)]]
      end}
     || {Name, Type, F, Numbers, Expected} <-
            [{"x / y / z", f64, fun(X, Y, Z) -> Divide(Divide(X, Y), Z) end, [[1.0e-300], [1.0e-200], [1.0e-200]], [1.0e100]},
             {"x / (y / z)", f64, fun(X, Y, Z) -> Divide(X, Divide(Y, Z)) end, [[1.0e200], [1.0e200], [1.0e200]], [1.0e200]},
             {"x / y of a scalar", f32, Divide, [[3.0e38, 3.0e38], 3.0e38], [1.0, 1.0]},
             {"x / 2^127", f32, fun(X) -> Divide(X, 1.7014118346046923e38) end, [[1.7014118346046923e38]], [1.0]},
             {"x * 1e200 * 1e200", f64, fun(X) -> Multiply(Multiply(X, 1.0e200), 1.0e200) end, [[1.0e-300]], [1.0e100]},
             {"x + 1 - 1", f64, fun(X) -> tessera:subtract(tessera:add(X, 1.0), 1.0) end, [[1.0e-20]], [0.0]},
             {"x * y + z in f16", f16, fun(X, Y, Z) -> tessera:add(Multiply(X, Y), Z) end, [[2049.0], [0.5], [-1024.0]], [0.0]},
             {"f16 beyond its range", f16, fun(X, Y) -> Divide(Multiply(X, X), Y) end, [[1024.0], [1024.0]], [infinity]}]].

too_many_arguments_test() ->
    raises(invalid_argument, "13", fun() -> tessera:jit(fun(_, _, _, _, _, _, _, _, _, _, _, _, _) -> 1 end) end).

traced_once_test() ->
    Counter = counters:new(1, []),
    F = tessera:jit(fun(X) -> counters:add(Counter, 1, 1), tessera:add(X, 1) end),
    [?assertEqual(N + 1, n(F(N))) || N <- lists:seq(1, 10)],
    ?assertEqual(1, counters:get(Counter, 1)),
    [F(tessera:iota({N})) || N <- [2, 3, 2, 3]],
    ?assertEqual(3, counters:get(Counter, 1)),
    _ = F(1.5),
    ?assertEqual(4, counters:get(Counter, 1)).

%% One compile, however many ask at once.
single_flight_test() ->
    Counter = counters:new(1, []),
    F = tessera:jit(fun(X) -> counters:add(Counter, 1, 1), timer:sleep(50), tessera:multiply(X, 3) end),
    Workers = [spawn_monitor(fun() -> 6 = n(F(2)) end) || _ <- lists:seq(1, 100)],
    [receive {'DOWN', M, _, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers],
    ?assertEqual(1, counters:get(Counter, 1)).

%% When the caller that compiles fails or dies, another one compiles.
failing_compile_test() ->
    F = tessera:jit(fun(X) -> timer:sleep(20), exit({oops, tessera:shape(X)}) end),
    Workers = [spawn_monitor(fun() -> F(2) end) || _ <- lists:seq(1, 5)],
    [receive {'DOWN', M, _, _, Reason} -> ?assertEqual({oops, {}}, Reason) end || {_, M} <- Workers].

killed_compile_test() ->
    Self = self(),
    F = tessera:jit(fun(X) -> Self ! {tracing, self()}, receive go -> tessera:add(X, 1) end end),
    {First, M} = spawn_monitor(fun() -> F(1) end),
    receive {tracing, First} -> ok end,
    {Second, M2} = spawn_monitor(fun() -> 2 = n(F(1)) end),
    timer:sleep(20),
    exit(First, kill),
    receive {'DOWN', M, _, _, killed} -> ok end,
    receive {tracing, Second} -> Second ! go end,
    receive {'DOWN', M2, _, _, Reason} -> ?assertEqual(normal, Reason) end.

captured_tensors_test() ->
    Make = fun(W, Scale) -> tessera:jit(fun(X) -> tessera:multiply(tessera:add(X, W), Scale) end) end,
    _ = (Make(tessera:tensor([1, 2]), 10))(1),
    Before = compiled(),
    ?assertEqual([60, 70], tessera:to_list((Make(tessera:tensor([5, 6]), 10))(1))),
    ?assertEqual(Before, compiled()),
    ?assertEqual([12, 14], tessera:to_list((Make(tessera:tensor([5, 6]), 2))(1))),
    ?assertEqual(Before + 1, compiled()).

%% A computation with captured tensors alone also belongs to the program.
captured_only_test() ->
    Make = fun(W) -> tessera:jit(fun(X) -> tessera:add(X, tessera:multiply(W, W)) end) end,
    ?assertEqual([5], tessera:to_list((Make(tessera:tensor([2])))(1))),
    ?assertEqual([10], tessera:to_list((Make(tessera:tensor([3])))(1))).

%% The same tensor twice is not the same program as two tensors.
aliased_captures_test() ->
    Make = fun(A, B) -> tessera:jit(fun(X) -> tessera:add(X, tessera:subtract(A, B)) end) end,
    A = tessera:tensor([5]), B = tessera:tensor([3]),
    ?assertEqual([1], tessera:to_list((Make(A, A))(1))),
    ?assertEqual([3], tessera:to_list((Make(A, B))(1))),
    ?assertEqual([-1], tessera:to_list((Make(B, A))(1))).

nested_captures_test() ->
    Make = fun(Params) ->
                   Layer = fun(#{w := W}, X) -> tessera:multiply(W, X) end,
                   tessera:jit(fun(X) -> lists:foldl(Layer, X, Params) end)
           end,
    P = fun(N) -> #{w => tessera:tensor([N])} end,
    ?assertEqual([6], tessera:to_list((Make([P(2), P(3)]))(1))),
    ?assertEqual([20], tessera:to_list((Make([P(4), P(5)]))(1))).

made_inside_test() ->
    F = tessera:jit(fun(X) -> tessera:add(X, tessera:tensor([10, 20])) end),
    ?assertEqual([11, 22], tessera:to_list(F(tessera:tensor([1, 2])))),
    ?assertEqual([13, 24], tessera:to_list(F(tessera:tensor([3, 4])))).

reading_a_capture_test() ->
    W = tessera:tensor([1]),
    F = tessera:jit(fun(X) -> tessera:add(X, hd(tessera:to_list(W))) end),
    raises(failed_precondition, "environment", fun() -> F(1) end).

reading_an_argument_test() ->
    F = tessera:jit(fun(X) -> tessera:to_number(X) end),
    raises(failed_precondition, "traced", fun() -> F(1) end).

leaked_value_test() ->
    F = tessera:jit(fun(X) -> put(leaked, tessera:add(X, 1)), X end),
    _ = F(1),
    raises(invalid_argument, "outside", fun() -> tessera:add(get(leaked), 1) end),
    raises(invalid_argument, "outside", fun() -> (tessera:jit(fun(X) -> tessera:add(get(leaked), X) end))(1) end),
    erase(leaked).

nested_jit_test() ->
    Inner = tessera:jit(fun(X) -> tessera:multiply(X, 2) end),
    Outer = tessera:jit(fun(X) -> tessera:add(Inner(X), 1) end),
    ?assertEqual(7, n(Outer(3))).

exception_in_function_test() ->
    F = tessera:jit(fun(_) -> throw(up) end),
    ?assertThrow(up, F(1)),
    ?assertEqual(3, n(tessera:add(1, 2))).

donation_test() ->
    F = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{donate => [1]}),
    X = tessera:add(tessera:iota({100000}, f32), 0), Y = tessera:iota({100000}, f32),
    View = tessera:to_binary(X),
    R = F(X, Y),
    ?assertEqual(2.0, lists:nth(2, tessera:to_list(R))),
    raises(failed_precondition, fun() -> tessera:to_list(X) end),
    ?assertMatch(<<0.0:32/float-native, 1.0:32/float-native, _/binary>>, View),
    ?assertEqual(1.0, lists:nth(2, tessera:to_list(Y))),
    raises(failed_precondition, fun() -> F(X, Y) end).

%% The product may not be made in the memory of an argument that is still to be read.
donated_beside_product_test() ->
    F = fun(W, A, B) -> tessera:subtract(W, tessera:dot(A, B)) end,
    Step = tessera:jit(F, #{donate => [1]}),
    A = tessera:iota({3, 3}, f32),
    W = tessera:add(tessera:iota({3, 3}, f32), 10),
    Expected = tessera:to_list(F(W, A, A)),
    ?assertEqual(Expected, tessera:to_list(Step(W, A, A))).

%% More than 64 tensors: all of them are donated.
many_donated_test() ->
    F = tessera:jit(fun(Xs) -> [tessera:negate(X) || X <- Xs] end, #{donate => [1]}),
    Xs = [tessera:tensor([1.0 * I]) || I <- lists:seq(1, 100)],
    ?assertEqual([[-1.0 * I] || I <- lists:seq(1, 100)], [tessera:to_list(Y) || Y <- F(Xs)]),
    [?assertError({failed_precondition, _}, tessera:to_list(X)) || X <- Xs].

donated_twice_test() ->
    F = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{donate => [1, 2]}),
    X = tessera:add(tessera:iota({1000}), 1),
    raises(failed_precondition, "argument 2", fun() -> F(X, X) end),
    ?assertEqual(1, hd(tessera:to_list(X))).

compile_test() ->
    F = tessera:compile(fun(X, {Y}) -> tessera:add(X, Y) end, [tessera:template(f32, {2}), {tessera:template(f32, {})}]),
    ?assertEqual([2.5, 3.5], tessera:to_list(F(tessera:tensor([1.0, 2.0]), {1.5}))),
    ?assertEqual([2.0, 3.0], tessera:to_list(F(tessera:tensor([1.0, 2.0]), {1}))),
    raises(invalid_argument, "f32[3]", fun() -> F(tessera:iota({3}, f32), {1}) end),
    raises(invalid_argument, "compiled for", fun() -> F(tessera:iota({2}, f32), 1) end),
    raises(invalid_argument, "templates", fun() -> tessera:compile(fun(X) -> X end, []) end).

%% The message shows the containers, too: these calls differ in nothing else.
compiled_for_containers_test() ->
    X = tessera:iota({2}),
    F = tessera:compile(fun(A, _) -> A end, [X, #{scale => {1.0, [X]}}]),
    raises(invalid_argument, "compiled for (s32[2], #{scale => {f32[], [s32[2]]}}), called with ([s32[2]], axis)", fun() -> F([X], axis) end).

explain_test() -> tessera_eunit:on_host(fun explain_here/0).

explain_here() ->
    F = tessera:compile(fun(X) -> tessera:sum(tessera:exp(X)) end, [tessera:template(f32, {10})]),
    [?assertNotEqual({Word, nomatch}, {Word, string:find(tessera:explain(F), Word)}) || Word <- ["1 parameters", "kernel", "cost"]],
    ?assertNotEqual(nomatch, string:find(tessera:explain(fun tessera:exp/1, [1.0]), "kernel")),
    ?assertNotEqual(nomatch, string:find(tessera:explain(tessera:jit(fun tessera:exp/1), [1.0]), "kernel")).

text_test() ->
    Text = tessera:to_text(fun(X) -> {tessera:add(X, 1), X} end, [tessera:template(s32, {2})]),
    [A, B] = tessera:run_text(Text, [tessera:tensor([1, 2])]),
    ?assertEqual({[2, 3], [1, 2]}, {tessera:to_list(A), tessera:to_list(B)}).

stablehlo_text_test() ->
    Text = tessera:to_text(fun(X) -> tessera:add(X, 1) end, [tessera:template(s32, {2})], stablehlo),
    [?assertNotEqual({Word, nomatch}, {Word, string:find(Text, Word)})
     || Word <- ["func.func public @main(%0: tensor<2xi32>) -> (tensor<2xi32>)", "stablehlo.add", "func.return"]],
    raises(invalid_argument, "stablehlo", fun() -> tessera:to_text(fun(X) -> X end, [1], other) end).

hostile_text_test_() ->
    Good = tessera:to_text(fun(X) -> tessera:while(X, fun(A) -> tessera:less(A, 5) end, fun(A) -> tessera:add(A, 1) end) end,
                           [tessera:template(s32, {})]),
    Cut = [binary:part(Good, 0, N) || N <- lists:seq(0, byte_size(Good) - 3, 7)],
    Deep = iolist_to_binary(["graph @main(%0: s32[]) -> (s32[]) {\n" | lists:duplicate(100000, "%1 = call %0 { body(%2: s32[]) {\n")]),
    Huge = <<"graph @main(%0: f32[9223372036854775807,9223372036854775807]) -> (s32[]) { return %0 }">>,
    [?_test(try tessera:run_text(Text, [tessera:tensor(1)]) of
                Value -> ?assertEqual(error, {Text, Value})
            catch error:{Code, Message} -> ?assert(is_atom(Code) andalso is_binary(Message))
            end) || Text <- [Deep, Huge, <<0, 255, 0>>, <<"graph">> | Cut]] ++
    [?_assertMatch([_], tessera:run_text(Good, [tessera:tensor(1)])),
     ?_test(raises(invalid_argument, fun() -> tessera:run_text(Good, [tessera:tensor(1.0)]) end)),
     ?_test(raises(invalid_argument, fun() -> tessera:run_text(Good, []) end)),
     ?_test(raises(invalid_argument, fun() -> tessera:run_text(foo, []) end))].

options_test_() ->
    F = fun(X) -> X end,
    [?_test(raises(invalid_argument, fun() -> tessera:jit(F, Options) end))
     || Options <- [#{thread => 1}, #{threads => -1}, #{donate => [0]}, [], #{donate => x}]] ++
    [?_test(raises(invalid_argument, fun() -> tessera:jit(foo) end)),
     ?_assertEqual(1, n((tessera:jit(F, #{threads => 1}))(1)))].

%% The number of programs that are kept is bounded.
bounded_cache_test() ->
    ok = application:stop(tessera),
    ok = application:set_env(tessera, max_programs, 10),
    try
        [?assertEqual(N + 1, n((tessera:jit(fun(X) -> tessera:add(X, N) end))(1))) || N <- lists:seq(1, 30)],
        ?assertEqual(10, compiled())
    after
        ok = application:unset_env(tessera, max_programs),
        ok = application:stop(tessera),
        {ok, _} = application:ensure_all_started(tessera)
    end.

%% clear_cache/0 as documented: programs of every kind are dropped; kernels stay, and so does a program that is held.
clear_cache_test() -> tessera_eunit:on_host(fun clear_cache_here/0).

clear_cache_here() ->
    A = tessera:tensor([[1.0, 2.0], [3.0, 4.0]]),
    F = tessera:jit(fun(X) -> tessera:multiply(tessera:tanh(X), 3.0) end),
    Held = tessera:compile(fun(X) -> tessera:subtract(tessera:exp(X), 5.0) end, [A]),
    Text = <<"graph @main(%0: f32[2,2]) -> (f32[2,2]) {\n  %1 = cosh %0 : f32[2,2]\n  return %1\n}\n">>,
    Ref = A#tessera.ref,
    All = fun() -> [tessera:to_list(T) || T <- [F(A), Held(A), tessera:add(A, A) | tessera:run_text(Text, [A])]] end,
    Before = All(),
    ok = tessera_memory:make_room(), % a NIF may ask for it first
    true = is_reference(tessera_nif:op_like(add, Ref, Ref)),
    #{compiled := Compiled} = kernels(),
    ok = tessera:clear_cache(),
    ?assertEqual(0, compiled()),
    ?assertEqual(false, tessera_nif:op_like(add, Ref, Ref)),
    ?assertEqual(lists:nth(2, Before), tessera:to_list(Held(A))),
    ?assertEqual(0, compiled()),
    ?assertEqual(Before, All()),
    ?assertEqual(2, compiled()),
    ?assertMatch(#{compiled := Compiled}, kernels()).

kernels() -> maps:get(jit, tessera:memory()).

%% ---- starting

%% A wrong setting keeps the application from starting, and the reason names it.
settings_test_() ->
    [{lists:flatten(io_lib:format("~w ~w", [Key, Value])), fun() -> refused(Key, Value) end}
     || {Key, Values} <- [{memory_limit, [foo, -1, 1 bsl 64]}, {disk_cache_bytes, [-1, 1.5]},
                          {max_programs, [infinity, -1]}, {max_key_bytes, ["1"]},
                          {cache_dir, [5, [a], <<255>>]}],
        Value <- Values].

refused(Key, Value) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none), % of stops and failing starts
    ok = application:stop(tessera),
    ok = application:set_env(tessera, Key, Value),
    try
        {error, {{invalid_argument, Message}, _}} = application:start(tessera),
        ?assertMatch({_, _}, binary:match(Message, atom_to_binary(Key))),
        ?assertMatch({_, _}, binary:match(Message, <<"expected ">>))
    after
        ok = logger:set_primary_config(level, Level),
        ok = application:unset_env(tessera, Key),
        {ok, _} = application:ensure_all_started(tessera)
    end.

%% ---- modules that are loaded again

%% Loads a module whose f/1 adds Number, and whose made/0 gives a function that does; earlier versions are purged.
load(Number) ->
    Text = ["-module(tessera_jit_loaded).", "-export([f/1, made/0]).", lists:concat(["f(X) -> tessera:add(X, ", Number, ")."]),
            lists:concat(["made() -> fun(X) -> tessera:add(X, ", Number, ") end."])],
    Forms = [begin
                 {ok, Tokens, _} = erl_scan:string(Line),
                 {ok, Form} = erl_parse:parse_form(Tokens),
                 Form
             end || Line <- Text],
    {ok, Module, Code} = compile:forms(Forms),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, "", Code),
    Module.

%% A named function is looked up at each call: alone, in a gradient, in another function's environment, and on a mesh; even if
%% it ran before.
loaded_again_test() ->
    M = load(1),
    F = fun M:f/1,
    Square = fun(X) -> Y = F(X), tessera:sum(tessera:multiply(Y, Y)) end,
    Shard = tessera:shard_jit(F, #{shape => {1}}, #{input_shardings => [#{}]}),
    Calls = [tessera:jit(F), tessera:jit(fun(X) -> tessera:negate(F(X)) end), tessera:jit(tessera:grad(Square)),
             fun(X) -> hd(Shard([[X]])) end],
    Results = fun() -> [tessera:to_list(Call(tessera:tensor([10.0]))) || Call <- Calls] end,
    ?assertEqual([[11.0], [-11.0], [22.0], [11.0]], Results()),
    ?assertEqual([[11.0], [-11.0], [22.0], [11.0]], Results()),
    M = load(2),
    ?assertEqual([[12.0], [-12.0], [24.0], [12.0]], Results()),
    ?assertEqual([[12.0], [-12.0], [24.0], [12.0]], Results()),
    M = load(1),
    ?assertEqual([[11.0], [-11.0], [22.0], [11.0]], Results()),
    %% a function that was compiled ahead of time stays
    Compiled = tessera:compile(F, [tessera:template(f32, {1})]),
    M = load(3),
    ?assertEqual([11.0], tessera:to_list(Compiled(tessera:tensor([10.0])))),
    _ = code:purge(M),
    true = code:delete(M),
    _ = code:purge(M),
    ?assertError(undef, (hd(Calls))(tessera:tensor([10.0]))).

%% A function without a name is its code, which may be gone.
purged_test() ->
    M = load(1),
    Table = ets:new(?MODULE, [public]),     % a process that refers to purged code is killed
    true = ets:insert(Table, {jit, tessera:jit(M:made())}),
    Call = fun(X) -> tessera:to_list((ets:lookup_element(Table, jit, 2))(tessera:tensor(X))) end,
    ?assertEqual([11.0], Call([10.0])),
    _ = erlang:garbage_collect(),
    M = load(2),
    ?assertEqual([11.0], Call([10.0])),
    _ = erlang:garbage_collect(),
    _ = code:purge(M),
    ?assertEqual([11.0], Call([10.0])),
    {error, {failed_precondition, Text}} = try Call([10.0, 20.0]) catch Class:Reason -> {Class, Reason} end,
    ?assertNotEqual(nomatch, string:find(Text, "of the module tessera_jit_loaded is gone")),
    true = ets:delete(Table).

%% ---- functions that wait for themselves

%% A process that a traced function starts and awaits, and that calls the function, is refused; the function may have a result without it.
waits_for_itself_test_() -> {timeout, 60, fun waits_for_itself/0}.

waits_for_itself() ->
    Table = ets:new(?MODULE, [public]),
    F = fun(X) ->
                Call = fun() -> exit({caught, try (ets:lookup_element(Table, jit, 2))(tessera:tensor([1.0])) catch error:Reason -> Reason end}) end,
                Middle = fun() -> {Inner, M} = spawn_monitor(Call), receive {'DOWN', M, process, Inner, Why} -> exit(Why) end end,
                {Pid, Monitor} = spawn_monitor(Middle),
                {caught, {failed_precondition, Text}} = receive {'DOWN', Monitor, process, Pid, Why} -> Why end,
                true = ets:insert(Table, {told, Text}),
                tessera:add(X, 1)
        end,
    J = tessera:jit(F),
    true = ets:insert(Table, {jit, J}),
    ?assertEqual([2.0], tessera:to_list(J(tessera:tensor([1.0])))),
    [{_, Text}] = ets:lookup(Table, told),
    ?assertNotEqual(nomatch, string:find(Text, "which waits for this process")),
    %% others wait, and get the program
    ?assertEqual([3.0], tessera:to_list(J(tessera:tensor([2.0])))).

%% Two functions are traced at the same time, and each awaits a process that calls the other function. No process waits for one that has started it,
%% and yet none would end. The awaited processes are started by the tracing ones, or by others and are monitored.
wait_for_each_other_test_() -> [{timeout, 60, {atom_to_list(By), fun() -> wait_for_each_other(By) end}} || By <- [starts, monitors]].

wait_for_each_other(By) ->
    Table = ets:new(?MODULE, [public]),
    Self = self(),
    Starter = spawn_link(fun Loop() -> receive {start, From, F} -> From ! {started, spawn(F)}, Loop() end end),
    Start = fun(F) when By =:= starts -> spawn_monitor(F);
               (F) ->
                    Starter ! {start, self(), fun() -> receive go -> F() end end},
                    Pid = receive {started, Started} -> Started end,
                    Monitor = monitor(process, Pid),
                    Pid ! go,
                    {Pid, Monitor}
            end,
    Function = fun(Own, Other) ->
                       fun(X) ->
                               Self ! {traces, Own, self()},
                               receive go -> ok end,
                               {Pid, Monitor} = Start(fun() ->
                                                              Call = fun() -> tessera:to_list((ets:lookup_element(Table, Other, 2))(tessera:tensor([1.0]))) end,
                                                              exit(try {result, Call()} catch error:{failed_precondition, Text} -> {refused, Text} end)
                                                      end),
                               receive {'DOWN', Monitor, process, Pid, Outcome} -> true = ets:insert(Table, {{outcome, Own}, Outcome}) end,
                               tessera:add(X, 1)
                       end
               end,
    true = ets:insert(Table, [{one, tessera:jit(Function(one, two))}, {two, tessera:jit(Function(two, one))}]),
    Callers = [spawn_monitor(fun() -> exit({result, tessera:to_list((ets:lookup_element(Table, Name, 2))(tessera:tensor([1.0])))}) end) || Name <- [one, two]],
    Tracing = [receive {traces, Name, Pid} -> Pid end || Name <- [one, two]],
    [Pid ! go || Pid <- Tracing],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual({result, [2.0]}, Reason) end || {Pid, Monitor} <- Callers],
    Outcomes = [ets:lookup_element(Table, {outcome, Name}, 2) || Name <- [one, two]],
    Refused = [Text || {refused, Text} <- Outcomes],
    ?assertMatch([_ | _], Refused),
    ?assertEqual([], [Other || Other <- Outcomes, Other =/= {result, [2.0]}, element(1, Other) =/= refused]),
    [?assertMatch({_, {match, _}}, {Text, re:run(Text, "is traced by <[0-9.]+>, which waits for a process that calls a function that is traced by <[0-9.]+>, which waits for this process")})
     || Text <- Refused],
    unlink(Starter),
    exit(Starter, kill).

%% A process that was started before calls the function while it is traced. It waits for the program, though the traced function also waits.
waits_for_another_test() ->
    Self = self(),
    F = fun(X) ->
                Self ! {tracing, self()},
                receive go -> tessera:add(X, 1) end
        end,
    J = tessera:jit(F),
    Parent = spawn_link(fun() ->
                                Own = self(),
                                Children = [spawn_link(fun() ->
                                                               receive call -> Own ! {called, tessera:to_list(J(tessera:tensor([1.0])))} end
                                                       end) || _ <- [1, 2, 3]],
                                Self ! {children, Children},
                                [1.0 + 1] = tessera:to_list(J(tessera:tensor([1.0]))),
                                Self ! {all, [receive {called, R} -> R end || _ <- Children]}
                        end),
    Children = receive {children, Pids} -> Pids end,
    receive {tracing, Parent} -> ok end,
    [Child ! call || Child <- Children],
    timer:sleep(100),
    Parent ! go,
    ?assertEqual([[2.0], [2.0], [2.0]], receive {all, Results} -> Results end).

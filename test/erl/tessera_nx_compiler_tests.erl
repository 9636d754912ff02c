%% The defn compiler without Nx: this module makes expressions as maps, as Nx does. Caches, reports, other nodes,
%% callbacks.
-module(tessera_nx_compiler_tests).
-include_lib("eunit/include/eunit.hrl").
-export([meet/1, log/2, twice/2, load_telemetry/0]).

-define(EXPR, 'Elixir.Nx.Defn.Expr').

%% ---- expressions

tensor(Type, Shape, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => Type, shape => Shape,
      names => lists:duplicate(tuple_size(Shape), nil), vectorized_axes => [], 'donatable?' => false}.

node(Op, Args) -> node(Op, {4}, Args).

node(Op, Shape, Args) ->
    tensor({f, 32}, Shape, #{'__struct__' => ?EXPR, id => make_ref(), op => Op, args => Args, context => root}).

parameter(I) -> node(parameter, [I]).

floats(Numbers) ->
    tensor({f, 32}, {length(Numbers)}, #{'__struct__' => 'Elixir.Nx.BinaryBackend',
                                         state => << <<X:32/float-native>> || X <- Numbers >>}).

%% A function that holds a tensor, as a key; and the program that it traces to.
adding(Held) -> fun(X) -> node(add, [X, node(tensor, [Held])]) end.

call(F, Numbers) -> call(F, Numbers, []).

call(F, Numbers, Options) ->
    [Result] = tessera_nx_compiler:jit(F, [parameter(0)], fun([X]) -> F(X) end,
                                          [[fun() -> floats(Numbers) end]], [{hooks, #{}} | Options]),
    numbers(Result).

numbers(#{data := #{buffer := Buffer}}) -> numbers(tessera_nx_buffer:read(Buffer));
numbers(#{data := #{state := Binary}}) -> numbers(Binary);
numbers(Binary) when is_binary(Binary) -> [X || <<X:32/float-native>> <= Binary].

%% ---- many clauses

%% The first clause whose number the sum of the argument is.
clauses(N) ->
    fun(X) ->
        Sum = node(sum, {}, [X, [{axes, [0]}, {keep_axes, false}]]),
        Constant = fun(I) -> node(constant, {}, [float(I)]) end,
        Equal = fun(I) -> (node(equal, {}, [Sum, Constant(I)]))#{type := {u, 8}} end,
        node('cond', [[{Equal(I), node(multiply, [X, Constant(I)])} || I <- lists:seq(0, N - 2)], node(negate, [X])])
    end.

%% A thousand clauses take minutes with a sanitizer: there only make test-all has them.
many_clauses_test_() ->
    Few = os:getenv("TESSERA_SANITIZER") =/= false andalso os:getenv("TESSERA_EVERY_CASE") =:= false,
    Counts = [200] ++ [1000 || not Few],
    [{timeout, 60, ?_assert([Expected, 0, 0, 0] == call(clauses(N), [I, 0, 0, 0]))}
     || N <- Counts, {I, Expected} <- [{0, 0}, {N - 2, (N - 2) * (N - 2)}, {N, -N}]].

%% ---- caches

programs() ->
    _ = tessera_cache:size(),   % what was made is there from now on
    [Key || {{program, Key}, _} <- ets:tab2list(tessera_cache)].

hidden_arguments_test() ->
    ok = tessera:clear_cache(),
    ?assertEqual([2.0, 3.0, 4.0, 5.0], call(adding(floats([1, 1, 1, 1])), [1, 2, 3, 4])),
    Programs = programs(),
    ?assertEqual(1, length(Programs)),
    [?assertEqual([X + I || X <- [1.0, 2.0, 3.0, 4.0]], call(adding(floats([I, I, I, I])), [1, 2, 3, 4]))
     || I <- lists:seq(2, 20)],
    ?assertEqual(Programs, programs()),
    %% the first value is still the first function's
    ?assertEqual([2.0, 3.0, 4.0, 5.0], call(adding(floats([1, 1, 1, 1])), [1, 2, 3, 4])).

%% Equal tensors are one argument; a result has a handle of its own.
held_results_test() ->
    Held = floats([1, 2, 3, 4]),
    F = fun(_) -> node(tensor, [Held]) end,
    [A] = tessera_nx_compiler:jit(F, [], fun(_) -> F(none) end, [[]], []),
    [B] = tessera_nx_compiler:jit(F, [], fun(_) -> F(none) end, [[]], []),
    #{data := #{buffer := Buffer}} = A,
    ok = tessera_nx_buffer:deallocate(Buffer),
    ?assertEqual([1.0, 2.0, 3.0, 4.0], numbers(B)),
    Twice = fun(X) -> node(multiply, [node(add, [X, node(tensor, [Held])]), node(tensor, [Held])]) end,
    ?assertEqual([1.0, 4.0, 9.0, 16.0], call(Twice, [0, 0, 0, 0])).

held_in_control_test() ->
    F = fun(X) ->
                Held = node(tensor, [floats([1, 2, 3, 4])]),
                Flag = node(tensor, {}, [scalar(1)]),
                node('cond', [[{Flag, node(add, [X, Held])}], node(subtract, [X, Held])])
        end,
    ?assertEqual([2.0, 4.0, 6.0, 8.0], call(F, [1, 2, 3, 4])).

scalar(X) -> tensor({f, 32}, {}, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => <<X:32/float-native>>}).

%% Large keys are bounded together: the cache does not keep what many closures hold.
bytes_are_bounded_test() ->
    ok = application:stop(tessera),
    ok = application:set_env(tessera, max_key_bytes, 100000),
    {ok, _} = application:ensure_all_started(tessera),
    try
        Before = tessera_cache:size(),
        [tessera_cache:fetch({big, I, binary:copy(<<I>>, 40000)}, fun() -> I end) || I <- lists:seq(1, 20)],
        ?assert(tessera_cache:size() =< Before + 2),
        ?assertEqual(whole, tessera_cache:fetch({huge, binary:copy(<<0>>, 400000)}, fun() -> whole end)),
        ?assertEqual(1, tessera_cache:size()),
        %% cleared values do not count
        ok = tessera_cache:clear(),
        [tessera_cache:fetch({small, I}, fun() -> I end) || I <- [1, 2, 3]],
        ?assertEqual(3, tessera_cache:size())
    after
        ok = application:unset_env(tessera, max_key_bytes),
        ok = application:stop(tessera),
        {ok, _} = application:ensure_all_started(tessera)
    end.

%% A client of a plugin has a program for each precision; the host has one.
precision_test() ->
    Before = application:get_env(tessera, clients),
    Clients = [{host, [{platform, host}]}, {nx_precise, [{platform, pjrt}, {plugin_path, os:getenv("TESSERA_TEST_PJRT")}]}],
    ok = application:set_env(tessera, clients, Clients ++ case Before of {ok, Others} -> proplists:delete(host, Others); undefined -> [] end),
    F = fun(X) -> node(multiply, [X, node(add, [X, X])]) end,
    Call = fun(Client, Precision, More) ->
                   call(F, [1, 2, 3, 4], [{client, Client} | [{precision, Precision} || Precision =/= none]] ++ More)
           end,
    Known = fun(Client, Precision) -> tessera_nx_compiler:is_cached(fun(More) -> Call(Client, Precision, More) end, []) end,
    try
        [?assertEqual([2.0, 8.0, 18.0, 32.0], Call(Client, none, [])) || Client <- [host, nx_precise]],
        ?assertEqual([true, true, true, true], [Known(host, P) || P <- [none, default, high, highest]]),
        ?assertEqual([true, false, false, false], [Known(nx_precise, P) || P <- [none, default, high, highest]]),
        ?assertEqual([2.0, 8.0, 18.0, 32.0], Call(nx_precise, high, [])),
        ?assertEqual([true, false, true, false], [Known(nx_precise, P) || P <- [none, default, high, highest]])
    after
        ok = case Before of {ok, All} -> application:set_env(tessera, clients, All); undefined -> application:unset_env(tessera, clients) end
    end.

%% ---- arguments in keys

leaf(Type, Shape, Names, Axes) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', type => Type, shape => Shape, names => Names, vectorized_axes => Axes,
      data => make_ref()}.

signatures_differ_test() ->
    T = leaf({f, 32}, {2, 3}, [nil, nil], []),
    Big = maps:from_list([{I, T} || I <- lists:seq(1, 100)]),
    All = [[], [T], [T, T], [{T}], [{T, T}], [{{T}, T}], [{T, {T}}], [{}], [{{}}], [{}, {}],
           [leaf({s, 32}, {2, 3}, [nil, nil], [])], [leaf({f, 64}, {2, 3}, [nil, nil], [])],
           [leaf({f, 32}, {3, 2}, [nil, nil], [])], [leaf({f, 32}, {6}, [nil], [])], [leaf({f, 32}, {}, [], [])],
           [leaf({f, 32}, {2, 3}, [x, nil], [])], [leaf({f, 32}, {2, 3}, [nil, x], [])],
           [leaf({f, 32}, {3}, [nil], [{x, 2}])], [leaf({f, 32}, {3}, [nil], [{y, 2}])],
           [leaf({f, 32}, {}, [], [{x, 2}, {y, 3}])], [leaf({f, 32}, {3}, [nil], [{x, 1 bsl 40}])],
           [T#{'donatable?' => true}], [#{a => T}], [#{b => T}], [#{1 => T}], [#{a => T, b => T}], [#{a => {T}, b => T}],
           [#{}], [#{a => #{}}], [#{a => #{b => T}}], [#{b => #{a => T}}], [Big], [Big#{1 := {T}}], [maps:remove(100, Big)],
           lists:duplicate(1000, T), lists:duplicate(1001, T)],
    Signatures = [tessera_nif:signature(Vars) || Vars <- All],
    [?assertMatch(<<_:128>>, S) || S <- Signatures],
    ?assertEqual(length(All), length(lists:usort(Signatures))),
    %% the contents of a tensor do not count
    Copies = [tessera_nif:signature(binary_to_term(term_to_binary(Vars))) || Vars <- All],
    ?assertEqual(Signatures, Copies),
    ?assertEqual(tessera_nif:signature([T]), tessera_nif:signature([T#{'donatable?' => false, data := other}])).

no_signature_test() ->
    T = leaf({f, 32}, {2}, [nil], []),
    Deep = lists:foldl(fun(_, X) -> {X} end, T, lists:seq(1, 100000)),
    [?assertEqual(undefined, tessera_nif:signature(Vars))
     || Vars <- [x, [T | x], [1], [a], [[T]], [#{"key" => T}], [#{1.0 => T}], [#{a => 1}], [#{'__struct__' => other, a => T}],
                 [maps:remove(names, T)], [T#{type := f32}], [T#{shape := [2]}], [T#{shape := {2.0}}], [T#{names := [[]]}],
                 [T#{names := [nil | nil]}], [T#{vectorized_axes := [x]}], [T#{'donatable?' => {}}], [Deep], Deep]].

%% ---- the locked cache

locked_cache_test() ->
    Key = make_ref(),
    Run = fun(Make) -> tessera_nx_locked:run(Key, Make) end,
    ?assertError(oops, Run(fun() -> error(oops) end)),
    ?assertEqual({extra, value}, Run(fun() -> {extra, value} end)),
    ?assertEqual({nil, value}, Run(fun() -> error(again) end)),
    ?assertEqual(1, tessera_nx_locked:count(Key)),
    ?assertEqual(2, tessera_nx_locked:count(Key)).

locked_values_test() ->
    Key = {make_ref(), doubled(100, x)},
    Run = fun(Made) -> tessera_nx_locked:run(Key, fun() -> {extra, Made} end) end,
    {extra, {_, _}} = Run(doubled(100, y)),        % too large to be kept
    ?assertEqual({extra, value}, Run(value)),
    ?assertEqual({nil, value}, Run(other)),
    ?assertEqual(1, tessera_nx_locked:count(Key)),
    ?assertEqual(2, tessera_nx_locked:count({element(1, Key), doubled(100, x)})).

%% ---- shared terms in functions and their results

%% 2^Depth leaves: to copy, hash or compare it would not end.
doubled(Depth, Leaf) -> lists:foldl(fun(_, X) -> {X, X} end, Leaf, lists:seq(1, Depth)).

deep(Depth) -> lists:foldl(fun(_, X) -> node(add, [X, X]) end, parameter(0), lists:seq(1, Depth)).

entries() ->
    _ = tessera_cache:size(),
    [Key || {Key, _} <- ets:tab2list(tessera_cache), is_tuple(Key), element(1, Key) =:= nx].

shared_expression_test_() ->
    {timeout, 30, fun() ->
        ok = tessera:clear_cache(),
        Expression = deep(10000),
        F = fun(_) -> Expression end,
        ?assertEqual([0.0, 0.0, 0.0, 0.0], call(F, [0, 0, 0, 0])),
        [Key] = entries(),
        ?assert(erts_debug:flat_size(Key) < 100),
        ?assertEqual([0.0, 0.0, 0.0, 0.0], call(F, [0, 0, 0, 0])),
        ?assertEqual([Key], entries()),
        Short = deep(20),
        ?assertEqual([1048576.0, 0.0, 0.0, 0.0], call(fun(_) -> Short end, [1, 0, 0, 0])),
        ?assertEqual(2, length(entries()))
    end}.

%% A program stands for a function that holds equal terms, however these are shared.
shared_terms_test() ->
    ok = tessera:clear_cache(),
    Add = fun(Held) -> fun(X) -> true = is_tuple(Held) orelse is_function(Held), node(add, [X, X]) end end,
    Call = fun(Held) -> call(Add(Held), [1, 2, 3, 4]) end,
    [?assertEqual([2.0, 4.0, 6.0, 8.0], Call(doubled(100, Leaf))) || Leaf <- [x, y, x, y]],
    ?assertEqual(2, length(entries())),
    [?assertEqual([2.0, 4.0, 6.0, 8.0], Call(fun() -> doubled(100, Leaf) end)) || Leaf <- [x, y, x, y]],
    ?assertEqual(4, length(entries())),
    %% the warning's counters
    ok = application:set_env(tessera, check_recompilation, 3),
    try
        Log = logged(fun() -> [Call({doubled(100, z), floats([I])}) || I <- lists:seq(1, 4)] end),
        ?assertMatch([_], [L || L <- Log, string:find(L, "3 times with the same input shapes") =/= nomatch])
    after
        ok = application:unset_env(tessera, check_recompilation)
    end.

%% A plan with callbacks is not kept; waiting callers make their own.
shared_callbacks_test_() ->
    {timeout, 30, fun() ->
        ok = tessera:clear_cache(),
        Self = self(),
        Work = fun() ->
                       Held = doubled(100, x),
                       Tell = fun(T) -> {_, _} = Held, Self ! {told, numbers(T)} end,
                       F = fun(X) -> node(io_call, [node(add, [X, X]), {fn, Tell}, node(add, [X, X]), make_ref()]) end,
                       [?assertEqual([2.0, 4.0, 6.0, 8.0], call(F, [1, 2, 3, 4])) || _ <- [1, 2]]
               end,
        Workers = [spawn_monitor(Work) || _ <- [1, 2, 3]],
        [receive {'DOWN', M, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers],
        ?assertEqual(lists:duplicate(6, [2.0, 4.0, 6.0, 8.0]), [receive {told, T} -> T after 0 -> none end || _ <- lists:seq(1, 6)]),
        ?assertEqual([], entries())
    end}.

%% A compiled function has no need of the function that it was made of, and can be sent without.
compiled_is_sent_test() ->
    Expression = deep(100),
    F = fun(_) -> Expression end,
    Compiled = tessera_nx_compiler:compile(F, [parameter(0)], fun([X]) -> F(X) end, []),
    [Result] = (binary_to_term(term_to_binary(Compiled)))([[fun() -> floats([0, 0, 0, 0]) end]]),
    ?assertEqual([0.0, 0.0, 0.0, 0.0], numbers(Result)).

%% Where a term would be unfolded there is an error, that says so shortly.
shared_on_disk_test() ->
    Path = list_to_binary(["/tmp/tessera_nx_shared_", os:getpid()]),
    Held = doubled(100, x),
    F = fun(X) -> node(io_call, [X, {fn, fun(_) -> Held end}, X, make_ref()]) end,
    #{message := Message} = raised(fun() -> call(F, [1, 2, 3, 4], [{cache, Path}]) end),
    ?assertNotEqual(nomatch, string:find(Message, "take more than 16 MB")),
    ?assertEqual({error, enoent}, file:read_file(Path)).

shared_in_errors_test() ->
    Held = doubled(100, x),
    [begin
         #{message := Message} = raised(F),
         ?assert(byte_size(Message) < 10000)
     end || F <- [fun() -> call(fun(X) -> X end, [1, 2, 3, 4], [{cache, Held}]) end,
                  fun() -> call(fun(X) -> X end, [1, 2, 3, 4], [{precision, Held}]) end,
                  fun() -> call(fun(X) -> X end, [1, 2, 3, 4], [{client, Held}]) end,
                  fun() -> call(fun(X) -> X end, [1, 2, 3, 4], [{device_id, Held}]) end,
                  fun() -> tessera_nx_error:expected("options as a keyword list", Held) end]].

%% A module that was loaded again has another program.
loaded_again_test() ->
    Load = fun(Op) ->
                   Forms = [{attribute, 1, module, tessera_nx_loaded}, {attribute, 1, export, [{f, 1}]},
                            {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [],
                                [{call, 1, {remote, 1, {atom, 1, ?MODULE}, {atom, 1, twice}}, [{atom, 1, Op}, {var, 1, 'X'}]}]}]}],
                   {ok, Module, Code} = compile:forms(Forms),
                   _ = code:purge(Module),
                   {module, Module} = code:load_binary(Module, "", Code),
                   call(fun tessera_nx_loaded:f/1, [1, 2, 3, 4])
           end,
    ?assertEqual([2.0, 4.0, 6.0, 8.0], Load(add)),
    ?assertEqual([1.0, 4.0, 9.0, 16.0], Load(multiply)),
    ?assertEqual([2.0, 4.0, 6.0, 8.0], Load(add)).

twice(Op, X) -> node(Op, [X, X]).

%% A callback is taken from the current version of its module, though the compiled function is unchanged; a callback without code is
%% an error.
callback_loaded_again_test() ->
    Load = fun(Op) ->
                   Send = {op, 1, '!', {var, 1, 'Pid'}, {atom, 1, Op}},
                   Fun = {'fun', 1, {clauses, [{clause, 1, [{var, 1, '_'}], [], [Send]}]}},
                   Forms = [{attribute, 1, module, tessera_nx_loaded}, {attribute, 1, export, [{back, 1}]},
                            {function, 1, back, 1, [{clause, 1, [{var, 1, 'Pid'}], [], [Fun]}]}],
                   {ok, Module, Code} = compile:forms(Forms),
                   _ = code:purge(Module),
                   {module, Module} = code:load_binary(Module, "", Code)
           end,
    Name = whereis_test,
    true = register(Name, self()),
    F = fun(X) -> node(add, [node(io_call, [X, {fn, tessera_nx_loaded:back(whereis(Name))}, X, make_ref()]), X]) end,
    Told = fun() ->
                   ?assertEqual([2.0, 4.0, 6.0, 8.0], call(F, [1, 2, 3, 4])),
                   receive Op when is_atom(Op) -> Op after 0 -> none end
           end,
    Kept = ets:new(kept, [public]),
    try
        _ = Load(first),
        ?assertEqual([first, first], [Told(), Told()]),
        true = ets:insert(Kept, {compiled, tessera_nx_compiler:compile(F, [parameter(0)], fun([X]) -> F(X) end, [])}),
        _ = erlang:garbage_collect(),
        _ = Load(second),
        _ = code:purge(tessera_nx_loaded),
        ?assertEqual([second, second], [Told(), Told()]),
        #{message := Message} = raised(fun() -> (ets:lookup_element(Kept, compiled, 2))([[fun() -> floats([1, 2, 3, 4]) end]]) end),
        ?assertNotEqual(nomatch, string:find(Message, "another version of the module tessera_nx_loaded was loaded"))
    after
        true = ets:delete(Kept),
        true = unregister(Name)
    end.

%% The memory of the tensors that functions hold counts.
held_bytes_are_bounded_test() ->
    ok = application:stop(tessera),
    ok = application:set_env(tessera, max_key_bytes, 1000000),
    {ok, _} = application:ensure_all_started(tessera),
    try
        Large = fun(I) ->
                        Held = floats(lists:duplicate(50000, I)),
                        fun(X) -> node(add, [X, node(slice, [node(tensor, {50000}, [Held]), [0], [4], [1]])]) end
                end,
        [?assertEqual([1.0 + I, 2.0 + I, 3.0 + I, 4.0 + I], call(Large(I), [1, 2, 3, 4])) || I <- lists:seq(1, 20)],
        ?assert(length(entries()) =< 5)
    after
        ok = application:unset_env(tessera, max_key_bytes),
        ok = application:stop(tessera),
        {ok, _} = application:ensure_all_started(tessera)
    end.

%% ---- the log

recompilation_warning_test() ->
    ok = application:set_env(tessera, check_recompilation, 5),
    try
        Log = logged(fun() -> [call(adding(floats([I, 0, 0, 7])), [1, 2, 3, 4]) || I <- lists:seq(1, 8)] end),
        ?assertMatch([_], [L || L <- Log, string:find(L, "5 times with the same input shapes") =/= nomatch]),
        Same = adding(floats([0, 0, 0, 8])),
        ?assertEqual([], logged(fun() -> [call(Same, [1, 2, 3, 4]) || _ <- lists:seq(1, 8)] end))
    after
        ok = application:unset_env(tessera, check_recompilation)
    end.

%% The events that a handler of the logger got while F ran.
logged(F) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => debug}),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, debug),
    try
        F(),
        receive_all()
    after
        ok = logger:set_primary_config(level, Level),
        ok = logger:remove_handler(?MODULE)
    end.

log(#{msg := {Format, Args}}, #{config := Pid}) when is_list(Args) ->
    Text = lists:flatten(io_lib:format(Format, Args)),
    Pid ! {log, Text};
log(_, _) -> ok.

receive_all() ->
    receive {log, Text} -> [Text | receive_all()]
    after 0 -> []
    end.

disk_cache_test() ->
    Path = filename:join(["/tmp", "tessera_nx_" ++ os:getpid() ++ "_" ++
                              integer_to_list(erlang:unique_integer([positive])), "f.cache"]),
    Options = [{cache, list_to_binary(Path)}, {debug, true}],
    F = adding(floats([1, 2, 3, 4])),
    Run = fun(Option) ->
                  [L || L <- logged(fun() -> ?assertEqual([2.0, 3.0, 4.0, 5.0], call(F, [1, 1, 1, 1], Option)) end),
                        string:find(L, "disk cache") =/= nomatch]
          end,
    try
        ?assertMatch(["Tessera disk cache not found at " ++ _], Run(Options)),
        ?assertMatch(["Tessera disk cache found at " ++ _], Run(Options)),
        ok = tessera:clear_cache(),
        ?assertMatch(["Tessera disk cache found at " ++ _], Run(Options)),
        ?assertMatch(["Tessera disk cache does not match configuration." ++ _], Run([{lazy_transfers, never} | Options])),
        ok = file:write_file(Path, <<"TESSERA", 0, "old">>),
        ?assertMatch(["Discarding Tessera disk cache at " ++ _], Run(Options)),
        ok = file:write_file(Path, <<"TESSERA", 1, "not a term">>),
        ?assertMatch(["Discarding Tessera disk cache at " ++ _], Run(Options)),
        ?assertMatch(["Tessera disk cache found at " ++ _], Run(Options))
    after
        _ = file:delete(Path),
        ok = file:del_dir(filename:dirname(Path))
    end.

%% ---- telemetry, with a module in the place of the library

%% Kernels are the host's.
telemetry_test_() -> fun() -> tessera_eunit:on_host(fun tells_telemetry/0) end.

tells_telemetry() ->
    undefined = whereis(tessera_telemetry_test),
    true = register(tessera_telemetry_test, self()),
    {module, telemetry} = load_telemetry(),
    try
        F = fun(X) -> node(tanh, [node(add, [X, X])]) end,
        _ = call(F, [1, 2, 3, 4]),
        {[tessera, compilation], Made, #{key := F}} = told(),
        #{eval_time := E, compile_time := C, total_time := T, kernels_compiled := K, kernels_reused := R} = Made,
        ?assertEqual(T, E + C),
        ?assert(K + R > 0),
        _ = call(F, [1, 2, 3, 4]),
        ?assertEqual(none, told()),
        %% the same program of another function: everything is there
        G = fun(X) -> node(tanh, [node(add, [X, X])]) end,
        _ = call(G, [1, 2, 3, 4]),
        ?assertMatch({_, #{kernels_compiled := 0, kernels_reused := N}, #{key := G}} when N =:= K + R, told()),
        _ = call(F, [1, 2, 3, 4], [{execution_telemetry, true}]),
        {[tessera, execution], #{duration := D}, #{key := F, client := Client, device_id := 0}} = told(),
        ?assertEqual(tessera_nx_client:default_name(), Client),
        ?assert(D > 0)
    after
        true = unregister(tessera_telemetry_test),
        _ = code:delete(telemetry),
        _ = code:purge(telemetry)
    end.

load_telemetry() ->
    Forms = [{attribute, 1, module, telemetry}, {attribute, 1, export, [{execute, 3}]},
             {function, 1, execute, 3,
              [{clause, 1, [{var, 1, 'E'}, {var, 1, 'M'}, {var, 1, 'D'}], [],
                [{op, 1, '!', {atom, 1, tessera_telemetry_test},
                  {tuple, 1, [{var, 1, 'E'}, {var, 1, 'M'}, {var, 1, 'D'}]}},
                 {atom, 1, ok}]}]}],
    {ok, telemetry, Beam} = compile:forms(Forms),
    code:load_binary(telemetry, "telemetry", Beam).

told() ->
    receive {[tessera, Name], _, _} = Event when Name =:= compilation; Name =:= execution -> Event
    after 0 -> none
    end.

%% ---- nodes of older versions of Nx

%% What `attach_token' makes has had two names.
tokens_test_() -> [{atom_to_list(Op), fun() -> tokens(Op) end} || Op <- [hook, io_call]].

tokens(Op) ->
    Self = self(),
    Hook = fun(Name) -> fun(T) -> Self ! {Name, numbers(T)} end end,
    F = fun(X) ->
                Double = node(add, [X, X]),
                Token = node(token, {}, [#{'__struct__' => 'Elixir.Nx.Defn.Token',
                                           hooks => [#{name => unheard, callback => nil, expr => X},
                                                     #{name => double, callback => Hook(double), expr => Double}]}]),
                Passed = node(attach_token, [Token, X]),
                node(Op, [Passed, {token_hook, Double, {fn, Hook(old)}}, Double, make_ref()])
        end,
    ?assertEqual([1.0, 2.0, 3.0, 4.0], call(F, [1, 2, 3, 4])),
    ?assertEqual([[2.0, 4.0, 6.0, 8.0], [2.0, 4.0, 6.0, 8.0]],
                 [receive {Name, Numbers} -> Numbers after 0 -> nothing end || Name <- [double, old]]).

optional_test() ->
    F = fun(X) ->
                Inner = node(multiply, [parameter(0), parameter(1)]),
                node(optional, [node(some_op, [X, node(add, [X, X]), [{option, 1}]]), Inner, fun() -> unused end])
        end,
    ?assertEqual([2.0, 8.0, 18.0, 32.0], call(F, [1, 2, 3, 4])).

%% ---- clients

clients_test_() ->
    {foreach, fun() -> application:get_env(tessera, clients) end,
     fun(Before) ->
             [application:unset_env(tessera, Key) || Key <- [clients, preferred_clients]],
             [application:set_env(tessera, clients, Clients) || {ok, Clients} <- [Before]]
     end,
     [fun() -> tessera_eunit:on_host(Test) end || Test <- [fun preferred_clients/0, fun client_errors/0, fun places/0, fun platforms/0]]}.

%% A configuration that was EXLA's names platforms that are not here.
preferred_clients() ->
    Clients = [{cuda, [{platform, cuda}]}, {rocm, [{platform, rocm}]}, {cpu, [{platform, host}]}, {plain, []}],
    ok = application:set_env(tessera, clients, Clients),
    ?assertEqual(cpu, tessera_nx_client:default_name()),
    ok = application:set_env(tessera, preferred_clients, [cuda, plain, cpu]),
    ?assertEqual(plain, tessera_nx_client:default_name()),
    ?assertMatch(#{platform := host, name := plain}, tessera_nx_client:'fetch!'(plain)),
    ?assertEqual([2.0, 4.0, 6.0, 8.0], call(fun(X) -> node(add, [X, X]) end, [1, 2, 3, 4], [{client, cpu}])).

client_errors() ->
    Error = fun(Exception, Text, F) ->
                    #{'__struct__' := Raised, message := Message} = raised(F),
                    ?assertEqual({Exception, true}, {Raised, string:find(Message, Text) =/= nomatch})
            end,
    ok = application:set_env(tessera, clients, [{cuda, [{platform, cuda}]}, {odd, [{platform, odd}]},
                                                {cpu, [{default_device_id, 1}]}]),
    Call = fun(Options) -> fun() -> call(fun(X) -> X end, [1, 2, 3, 4], Options) end end,
    Error('Elixir.ArgumentError', "unknown Tessera platform: ", Call([{client, odd}])),
    ?assertExit({{#{'__struct__' := 'Elixir.RuntimeError', message := <<"platform ", _/binary>>}, []},
                 {'Elixir.Tessera.Client', 'fetch!', [cuda]}}, (Call([{client, cuda}]))()),
    Error('Elixir.ArgumentError', ":default_device_id must be a number between 0 and 0", Call([{client, cpu}])),
    Error('Elixir.ArgumentError', "could not find Tessera client named ", Call([{client, none}])),
    ok = application:set_env(tessera, preferred_clients, [tpu]),
    Error('Elixir.RuntimeError', "given as :preferred_clients", fun tessera_nx_client:default_name/0),
    ok = application:set_env(tessera, preferred_clients, [cuda]),
    Error('Elixir.RuntimeError', "could not find default client for Tessera", fun tessera_nx_client:default_name/0).

raised(F) ->
    try F() of
        Result -> Result
    catch error:Reason -> Reason
    end.

%% Among operands on several devices, a device with automatic_transfers false wins; a tensor on it is no argument of a function
%% on another device.
places() ->
    ok = application:set_env(tessera, clients, [{host, []}, {other, [{device_count, 2}]}, {fast, [{automatic_transfers, false}]}]),
    [Host, Other, Second, Fast] =
        [at([1, 2, 3, 4], Place) || Place <- [[], [{client, other}], [{client, other}, {device_id, 1}], [{client, fast}]]],
    Out = tensor({f, 32}, {4}, none),
    Sum = fun(A, B) ->
                  #{data := #{buffer := #{client_name := Client, device_id := Device}}} = tessera_nx_eager:binary(add, Out, A, B),
                  {Client, Device}
          end,
    ?assertEqual([{fast, 0}, {fast, 0}], [Sum(Host, Fast), Sum(Fast, Host)]),
    ?assertEqual([{other, 1}, {other, 1}], [Sum(Host, Second), Sum(Second, Other)]),
    ?assertEqual([{other, 0}, {host, 0}], [Sum(Host, Other), Sum(Other, Host)]),
    ?assertEqual({fast, 0}, Sum(floats([1, 2, 3, 4]), Fast)),
    Run = fun(T, Options) ->
                  tessera_nx_compiler:jit({places}, [parameter(0)], fun([X]) -> node(add, [X, X]) end,
                                          [[fun() -> T end]], Options)
          end,
    [?assertMatch([#{data := #{buffer := #{client_name := host}}}], Run(T, [{client, host}])) || T <- [Host, Other, Second]],
    ?assertMatch([#{data := #{buffer := #{client_name := fast}}}], Run(Fast, [{client, fast}])),
    ?assertError(#{message := <<"Tessera computation (defn) is allocated on client host #0 (host) but one of the input "
                                "tensors are allocated on fast #0 (host).", _/binary>>}, Run(Fast, [{client, host}])).

%% Clients of the asynchronous platform of the tests, where it is: tensors and programs are there, and the default of Nx may be.
platforms() ->
    Platforms = tessera_nx_client:get_supported_platforms(),
    ?assertEqual(tessera_client:host_devices(), maps:get(host, Platforms)),
    case is_map_key(async, Platforms) of
        false -> ?assertEqual([host], maps:keys(Platforms));
        true ->
            ?assertEqual(4, maps:get(async, Platforms)),
            ok = application:set_env(tessera, clients, [{cuda, [{platform, cuda}]}, {there, [{platform, async}, {default_device_id, 1}]},
                                                        {moving, [{platform, async}, {automatic_transfers, true}]}, {host, []}]),
            ok = application:set_env(tessera, preferred_clients, [cuda, there, host]),
            other_platform()
    end.

other_platform() ->
    ?assertEqual(there, tessera_nx_client:default_name()),
    ?assertMatch(#{platform := async, device_count := 4, default_device_id := 1, automatic_transfers := false},
                 tessera_nx_client:'fetch!'(there)),
    There = at([1, 2, 3, 4], []),
    ?assertEqual({there, 1}, device(There)),
    Out = tensor({f, 32}, {4}, none),
    Here = at([4, 3, 2, 1], [{client, host}]),
    ?assertEqual({host, 0}, device(tessera_nx_eager:source(constant, Out, [1], [{client, host}]))),
    [begin
         Sum = tessera_nx_eager:binary(add, Out, A, B),
         ?assertEqual({[5.0, 5.0, 5.0, 5.0], {there, 1}}, {numbers(Sum), device(Sum)})
     end || {A, B} <- [{There, Here}, {Here, There}, {There, floats([4, 3, 2, 1])}]],
    transfers(There, Here),
    compiled(There, Here),
    ?assertMatch(#{allocated := N, per_device := #{1 := N}} when N > 0,
                 tessera_nx_client:get_memory_statistics(tessera_nx_client:'fetch!'(there))),
    [?assertError(#{message := <<"Nx.to_pointer/2 is not supported for the ", _/binary>>}, tessera_nx_backend:to_pointer(There, [{mode, Mode}]))
     || Mode <- [local, ipc]].

%% The tensor's client and device: what its struct says, which must be where it is.
device(#{data := #{buffer := #{ref := Ref, client_name := Client, device_id := Device}}}) ->
    ?assertEqual({Client, Device}, tessera_remote:device(Ref)),
    {Client, Device}.

transfers(There, Here) ->
    Backend = 'Elixir.Tessera.Backend',
    Places = [{[{client, host}], {host, 0}}, {[{client, there}, {device_id, 3}], {there, 3}}, {[{client, moving}], {moving, 0}}, {[], {there, 1}}],
    [begin
         Copy = tessera_nx_backend:backend_copy(From, Backend, Options),
         ?assertEqual({Place, numbers(From)}, {device(Copy), numbers(Copy)}),
         ok = tessera_nx_backend:backend_deallocate(Copy),          % the tensor is not
         ?assertEqual(4, length(numbers(From)))
     end || From <- [There, Here], {Options, Place} <- Places],
    Moved = tessera_nx_backend:backend_transfer(tessera_nx_backend:backend_copy(There, Backend, []), Backend, [{client, moving}, {device_id, 2}]),
    ?assertEqual({{moving, 2}, [1.0, 2.0, 3.0, 4.0]}, {device(Moved), numbers(Moved)}),
    ?assertEqual(Moved, tessera_nx_backend:backend_transfer(Moved, Backend, [{client, moving}, {device_id, 2}])).

%% What a function holds and is given may be anywhere, but of a client without automatic transfers.
compiled(There, Here) ->
    Moving = tessera_nx_backend:backend_copy(There, 'Elixir.Tessera.Backend', [{client, moving}]),
    Run = fun(Held, T, Options) ->
                  tessera_nx_compiler:jit({compiled, device(Held)}, [parameter(0)], fun([X]) -> (adding(Held))(X) end, [[fun() -> T end]], Options)
          end,
    [begin
         [Sum] = Run(Held, T, [{client, Client}]),
         ?assertMatch({{Client, _}, [_, _, _, _]}, {device(Sum), numbers(Sum)}),
         ?assertEqual(lists:zipwith(fun(A, B) -> A + B end, numbers(Held), numbers(T)), numbers(Sum))
     end || Held <- [There, Here, Moving], T <- [Here, Moving, floats([1, 1, 1, 1])], Client <- [host, there, moving]],
    ?assertError(#{message := <<"Tessera computation (defn) is allocated on client host #0 (host) but one of the input tensors are allocated "
                                "on there #1 (async).", _/binary>>}, Run(Here, There, [{client, host}])),
    Answer = fun(X, _) -> tessera_nx_eager:binary(add, X, X, There) end,
    [Answered] = tessera_nx_compiler:jit(Answer, [parameter(0)], fun([X]) -> node(runtime_call, [X, Answer, tensor({f, 32}, {4}, none), []]) end,
                                      [[fun() -> There end]], []),
    ?assertEqual({{there, 1}, [2.0, 4.0, 6.0, 8.0]}, {device(Answered), numbers(Answered)}).

at(Numbers, Options) ->
    #{data := #{state := Binary}} = T = floats(Numbers),
    tessera_nx_eager:from_binary(T, Binary, false, Options).

options_test() ->
    Hook = fun(X) -> node(io_call, [X, {named, seen, nil}, X, make_ref()]) end,
    ?assertEqual([1.0, 2.0, 3.0, 4.0], call(Hook, [1, 2, 3, 4], [{hooks, #{seen => nil}}])),
    ?assertEqual([], logged(fun() -> [call(Hook, [1, 2, 3, 4], [{debug, Off}]) || Off <- [false, nil]] end)).

%% A deallocated tensor is reported as such wherever it is used.
deallocated_test() ->
    T = at([1, 2, 3, 4], []),
    ok = tessera_nx_backend:backend_deallocate(T),
    Uses = [fun() -> tessera_nx_eager:binary(add, T, T, T) end, fun() -> tessera_nx_backend:to_binary(T, 4) end,
            fun() ->
                    tessera_nx_compiler:jit({?LINE}, [parameter(0)], fun([X]) -> node(add, [X, X]) end, [[fun() -> T end]], [])
            end],
    [begin
         #{'__struct__' := 'Elixir.RuntimeError', message := Message} = raised(Use),
         ?assertMatch({_, <<" was called on deleted or donated buffer">>}, {Message, string:find(Message, " was")})
     end || Use <- Uses].

%% A function that was stored and read in another VM: this VM has not compiled its program.
stale_test() ->
    Compiled = tessera_nx_compiler:compile({?LINE}, [parameter(0)],
                                              fun([X]) -> node(add, [X, node(tensor, [floats([1, 1, 1, 1])])]) end, []),
    [Expected] = Compiled([[fun() -> floats([1, 2, 3, 4]) end]]),
    {env, Held} = erlang:fun_info(Compiled, env),
    Old = make_ref(),
    [Stale] = [setelement(2, P, aged(element(2, P), Old)) || C <- Held, is_tuple(C), element(1, C) =:= compiled, P <- [element(2, C)]],
    [Value] = tessera_nx_plan:run(Stale, fun(0) -> tessera:tensor([1, 2, 3, 4], f32) end, 0, #{}),
    ?assertEqual(numbers(Expected), tessera:to_list(Value)).

aged(Code, Old) -> setelement(2, Code, Old).

%% ---- callbacks

%% 16 runs at once, each in a callback that waits for all others and then runs Tessera itself. There is one dirty
%% scheduler: so no run may hold it.
callbacks_hold_no_thread_test_() ->
    {timeout, 60, fun() ->
        Command = ["erl +SDcpu 1:1 -noshell -noinput ", tessera_test:shell_paths(), " -eval '", atom_to_list(?MODULE), ":meet(16), halt(0).'"],
        ?assertEqual("16 runs met\n", os:cmd(lists:flatten(Command)))
    end}.

meet(Count) ->
    Host = spawn_link(fun() -> host(Count, []) end),
    Elements = 300000,
    Big = tensor({f, 32}, {Elements}, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => <<0:(32 * Elements)>>}),
    Wait = fun(T) ->
                   Host ! {here, self()},
                   receive go -> ok end,
                   Ours = tessera:add(tessera:from_binary(numbers_binary(T), f32, {Elements}), 1.0),
                   [1.0] = lists:usort(numbers(tessera:to_binary(tessera:exp(tessera:subtract(Ours, 1.0)))))
           end,
    F = fun(X) -> node(add, {Elements}, [node(io_call, {Elements}, [X, {fn, Wait}, X, make_ref()]), node(constant, {Elements}, [1.0])]) end,
    Key = fun() -> key end,
    Parameter = node(parameter, {Elements}, [0]),
    Runs = [spawn_monitor(fun() ->
                                  [R] = tessera_nx_compiler:jit(Key, [Parameter], fun([X]) -> F(X) end,
                                                                   [[fun() -> Big end]], []),
                                  [1.0] = lists:usort(numbers(R))
                          end) || _ <- lists:seq(1, Count)],
    [receive {'DOWN', Monitor, process, _, Reason} -> normal = Reason end || {_, Monitor} <- Runs],
    io:format("~b runs met~n", [Count]).

numbers_binary(#{data := #{state := Binary}}) -> Binary.

host(0, Guests) -> [Guest ! go || Guest <- Guests];
host(Count, Guests) ->
    receive {here, Guest} -> host(Count - 1, [Guest | Guests]) end.

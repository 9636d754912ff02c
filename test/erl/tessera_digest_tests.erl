%% Digests: equal terms have equal digests, others different ones, and a shared term counts once. Terms with much
%% sharing are made in the process that uses them: sending one to another process, or comparing two, would not end.
-module(tessera_digest_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-export([same/1]).

digest(Term) ->
    <<_:128>> = tessera_digest:of_term(Term).

%% The same term without anything shared.
unshared(Term) -> binary_to_term(term_to_binary(Term)).

%% 2^Depth leaves, in Depth places.
dag(Depth, Join) -> dag(Depth, Join, {leaf, make_ref()}).

dag(Depth, Join, Leaf) -> lists:foldl(fun(_, X) -> Join(X) end, Leaf, lists:seq(1, Depth)).

joins() ->
    [fun(X) -> {X, X} end, fun(X) -> [X, X] end, fun(X) -> [X | X] end, fun(X) -> #{a => X, b => X} end,
     fun(X) -> #{X => X} end, fun(X) -> #{"a" => X, {b} => X} end, fun(X) -> [x, X, [X]] end,
     fun(X) -> {X, list_to_tuple(lists:duplicate(20, X))} end,
     fun(X) -> maps:from_list([{I, X} || I <- lists:seq(1, 50)]) end,
     fun(X) -> expression([X, X]) end, fun(X) -> expression([x, X | X]) end,
     fun(X) -> expression(lists:duplicate(20, X)) end, fun(X) -> (expression([x]))#{shape => X, type => {X}} end,
     fun(X) -> fun() -> {X, X} end end, fun(X) -> expression([adder(X), adder(X)]) end,
     fun(X) -> {fun(Y) -> [X | Y] end, fun(Y) -> [Y | X] end} end].

%% Nodes of Nx have this form: four terms that are read as one.
expression(Args) -> expression(Args, list_to_ref("#Ref<0.1.2.3>")).

expression(Args, Id) -> #{shape => {2}, data => #{op => add, args => Args, id => Id, context => root}}.

%% ---- terms with different digests

different_test() ->
    Ref = make_ref(),
    OtherRef = make_ref(),
    Terms =
        [a, b, '', true, [], {}, #{}, <<>>, 0, 1, -1, 1 bsl 59, 1 bsl 60, 1 bsl 62, 1 bsl 63, 1 bsl 64, -(1 bsl 63),
         -(1 bsl 64), 1 bsl 2000, -(1 bsl 2000), 1.0, 0.0, -1.0, 1.0e-300, 1.5, <<0>>, <<0, 0>>, <<1:1>>, <<0:1>>, <<0:9>>,
         <<"a">>, <<"b">>, binary:copy(<<1>>, 64), binary:copy(<<1>>, 65), binary:copy(<<2>>, 65),
         binary:copy(<<1>>, 100000), binary:copy(<<1>>, 100001), <<(binary:copy(<<1>>, 1000))/binary, 1:3>>,
         Ref, make_ref(), self(), hd(processes()), hd(erlang:ports()),
         {a}, [a], #{a => a}, {{a}}, {[a]}, [{a}], [[a]], [a | a], {a, a}, [a, a], {a, b}, {b, a}, [a, b], [b, a], [a | b],
         {0}, {0, 0}, {a, 0}, {0.0}, {[]}, [[]], {{}}, [{}], [#{}], {#{}}, {1 bsl 63}, {1 bsl 70}, {<<0>>}, {Ref},
         {1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, a}, {a, b, c, d}, {a, b, c, d, e},
         lists:seq(1, 7), lists:seq(1, 8), lists:seq(1, 9), lists:seq(1, 16), lists:seq(1, 17), lists:seq(1, 100),
         lists:seq(1, 7) ++ a, lists:seq(1, 8) ++ a, lists:seq(1, 9) ++ a,
         #{a => b}, #{b => a}, #{a => 1, b => 2}, #{a => 2, b => 1}, #{1 => a}, #{1.0 => a}, #{<<1>> => a}, #{{} => a},
         #{[] => a}, #{[] => []}, #{a => a, 1 => 1}, #{#{} => a}, #{a => #{}}, #{a => #{a => a}},
         maps:from_keys(lists:seq(1, 31), a), maps:from_keys(lists:seq(1, 32), a), maps:from_keys(lists:seq(1, 33), a),
         maps:from_keys(lists:seq(2, 34), a), maps:from_keys(lists:seq(1, 33), b), maps:from_keys(lists:seq(1, 1000), a),
         (maps:from_keys(lists:seq(1, 33), a))#{7 := b}, (maps:from_keys(lists:seq(1, 33), a))#{8 := b},
         maps:from_list([{I, I + 1} || I <- lists:seq(1, 40)]), maps:from_list([{I + 1, I} || I <- lists:seq(1, 40)]),
         #{data => #{args => [a]}}, #{data => #{id => Ref}}, #{data => #{args => [a], id => a}}, #{data => #{args => a, id => Ref}},
         #{data => #{args => [a], id => Ref}}, #{data => #{args => [a], id => Ref, b => c}},
         #{data => #{args => [a], id => Ref}, b => c}, #{data => #{args => [], id => Ref}}, #{data => [a]}, #{id => Ref, args => [a]},
         #{args => #{data => [a], id => Ref}}, #{data => #{data => #{args => [a], id => Ref}}}, #{data => {Ref, [a]}},
         #{data => #{args => [a], id => Ref, 1 => b}}, #{data => #{args => [a], id => Ref}, 1 => b}]
        ++ [#{data => (maps:from_keys(lists:seq(1, Size), b))#{args => [a], id => Ref}} || Size <- [29, 30, 31]]
        ++ [expression([a], Id) || Id <- [x, [], Ref, OtherRef, [Ref], self()]]
        ++ [
         fun lists:reverse/1, fun lists:reverse/2, fun lists:sort/1, fun no_such_module:f/0, fun no_such_module:f/1,
         fun() -> 1 end, fun() -> 2 end, fun() -> Ref end, fun() -> {Ref} end, fun(_) -> Ref end, {fun() -> Ref end}]
        ++ [expression(Args) || Args <- [a, {}, {a}, #{}, [], [a], [b], [a, b], [b, a], [a | b], [[a]], [[a] | b], lists:seq(1, 7),
                                         lists:seq(1, 8), lists:seq(1, 9), lists:seq(1, 17), lists:seq(1, 7) ++ a,
                                         lists:seq(1, 8) ++ a, lists:seq(1, 9) ++ a, adder(1), [adder(1)], [adder(2)],
                                         [adder(1) | adder(1)], [expression([a])], expression([a])]]
        ++ [adder(X) || X <- [1, 2, 1.0, {1}, [1], adder(1), adder(2), {adder(1), adder(1)}, fun lists:sort/1]],
    Digests = [digest(T) || T <- Terms],
    ?assertEqual(length(Terms), length(lists:usort(Digests))),
    ?assertEqual(Digests, [digest(T) || T <- Terms]),
    ?assertEqual(Digests, [digest(unshared(T)) || T <- Terms]),
    Functions = [F || F <- Terms, is_function(F)],
    ?assertEqual(length(Functions), length(lists:usort([tessera_digest:of_function(F) || F <- Functions]))).

adder(N) -> fun(X) -> {X, N} end.

%% Where the VM tells the zeros apart they are different terms; to a program they always are.
zeros_test() -> ?assertNotEqual(digest(0.0), digest(-0.0)).

%% Many references that differ in a few bits.
references_test() ->
    Refs = [make_ref() || _ <- lists:seq(1, 100000)],
    ?assertEqual(100000, length(lists:usort([digest(R) || R <- Refs]))).

any_term() -> ?SIZED(Size, any_term(min(Size, 25))).

any_term(0) ->
    oneof([oneof([a, b, ok, [], {}]), integer(), integer(1 bsl 58, 1 bsl 66), float(), binary(), bitstring(),
           oneof([fun lists:sort/1, fun lists:sort/2])]);
any_term(Size) ->
    Part = ?LAZY(any_term(Size div 3)),
    oneof([any_term(0), list(Part), ?LET(L, list(Part), return(list_to_tuple(L))), ?LET({L, T}, {list(Part), Part}, return(L ++ T)),
           ?LET(L, list({Part, Part}), return(maps:from_list(L))), ?LET(L, list({oneof([a, b, c]), Part}), return(maps:from_list(L))),
           ?LET({L, P}, {list(integer()), Part}, return(maps:from_list([{I, P} || I <- L ++ lists:seq(1, 33)]))),
           ?LET({L, T}, {list(Part), oneof([[], Part])}, return(expression(L ++ T))), ?LET(P, Part, return(#{data => P, b => P})),
           ?LET(P, Part, return({P, P})), ?LET(P, Part, return([P, P, {P}])), ?LET(P, Part, return(adder(P)))]).

equal_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(
        ?FORALL({A, B}, {any_term(), any_term()},
                digest(A) =:= digest(unshared(A)) andalso (digest(A) =:= digest(B)) =:= (term_to_binary(A) =:= term_to_binary(B))
                    andalso tessera_digest:of_term({A, B}) =:= tessera_digest:of_term(unshared({A, B}))),
        [quiet, {numtests, 300}, {to_file, user}]))}.

%% Large maps are equal however they came about.
maps_test() ->
    Keys = [{K, K rem 7} || K <- lists:seq(1, 3000)],
    A = maps:from_list([{K, v} || K <- Keys]),
    B = lists:foldl(fun(K, M) -> M#{K => v} end, #{}, lists:reverse(Keys)),
    C = maps:without([x | lists:seq(1, 100)], maps:merge(B, maps:from_keys(lists:seq(1, 100), v))),
    ?assert(A =:= B andalso B =:= C),
    ?assertEqual([digest(A)], lists:usort([digest(A), digest(B), digest(C)])),
    Small = maps:with(lists:sublist(Keys, 20), C),
    ?assertEqual(digest(maps:from_list([{K, v} || K <- lists:sublist(Keys, 20)])), digest(Small)).

%% ---- shared terms

shared_test() ->
    [begin
         Leaf = {leaf, [1, 2, 3]},
         Shallow = dag(3, Join, Leaf),
         ?assertEqual(digest(unshared(Shallow)), digest(Shallow)),
         ?assertEqual(digest(dag(3, Join, Leaf)), digest(Shallow)),
         ?assertNotEqual(digest(dag(4, Join, Leaf)), digest(Shallow)),
         ?assertNotEqual(digest(dag(3, Join, {leaf, [1, 2, 4]})), digest(Shallow))
     end || Join <- joins()].

%% As deep as tables, messages and comparisons would not end.
deep_test_() ->
    [{timeout, 30, fun() ->
                           Ref = make_ref(),
                           [A, B] = [digest(dag(100, Join, Ref)) || _ <- [1, 2]],
                           ?assertEqual(A, B),
                           ?assertNotEqual(A, digest(dag(100, Join)))
                   end} || Join <- joins()].

%% Suffixes of one list; functions whose environments hold the two previous ones.
ladders_test_() ->
    {timeout, 30, fun() ->
        Suffixes = suffixes(lists:seq(1, 20000)),
        ?assertMatch(<<_:128>>, digest(Suffixes)),
        {F, _} = lists:foldl(fun(_, {X, Y}) -> {fun() -> {X, Y} end, X} end, {fun() -> x end, fun() -> y end}, lists:seq(1, 200)),
        ?assertMatch(<<_:128>>, digest(F))
    end}.

suffixes([]) -> [];
suffixes([_ | Tail] = List) -> [List | suffixes(Tail)].

%% ---- improper and large terms

%% More levels than any stack has room for; a sanitizer's frames are larger.
deep() ->
    case os:getenv("TESSERA_SANITIZER") of
        false -> 1000000;
        _ -> 200000
    end.

hostile_test_() ->
    [{timeout, 60, fun() ->
                           Term = Make(),
                           Digest = digest(Term),
                           garbage_collect(),
                           ?assertEqual(Digest, digest(Term)),
                           ?assertEqual(Digest, digest(Make())),
                           ?assertNotEqual(Digest, digest({Term})),
                           ?assertNotEqual(Digest, digest([Term | Term]))
                   end}
     || Make <- [fun() -> lists:seq(1, 1000000) end,
                 fun() -> lists:foldl(fun(_, X) -> {X} end, x, lists:seq(1, deep())) end,
                 fun() -> lists:foldl(fun(_, X) -> [X] end, x, lists:seq(1, deep())) end,
                 fun() -> lists:foldl(fun(_, X) -> #{a => X} end, x, lists:seq(1, deep() div 3)) end,
                 fun() -> lists:foldl(fun(_, X) -> fun() -> X end end, x, lists:seq(1, 20000)) end,
                 fun() -> maps:from_list([{I, {I}} || I <- lists:seq(1, 100000)]) end,
                 fun() -> list_to_tuple(lists:seq(1, 1000000)) end,
                 fun() -> lists:seq(1, 100000) ++ tail end,
                 fun() -> binary:copy(<<7>>, 50000000) end,
                 fun() -> <<(binary:copy(<<7>>, 1000000))/binary, 5:5>> end,
                 fun() -> 1 bsl 1000000 end]].

%% A dirty scheduler reads a long term: the only normal one runs other processes meanwhile.
does_not_block_test_() ->
    {timeout, 60, fun() ->
        Term = list_to_tuple([{I, I} || I <- lists:seq(1, 2000000)]),
        Self = self(),
        {Traced, Monitor} = spawn_monitor(fun() -> receive go -> ok end, exit({digest, digest(make_tuples(Self))}) end),
        1 = erlang:trace(Traced, true, [running]),
        Traced ! go,
        receive {'DOWN', Monitor, process, Traced, Reason} -> ?assertEqual({digest, digest(Term)}, Reason) end,
        Delivered = erlang:trace_delivered(Traced),
        receive {trace_delivered, Traced, Delivered} -> ok end,
        Out = [Where || {trace, Pid, out, Where} <- received(), Pid =:= Traced],
        ?assert(lists:member({tessera_nif, digest, 2}, Out))
    end}.

make_tuples(_) -> list_to_tuple([{I, I} || I <- lists:seq(1, 2000000)]).

received() ->
    receive M -> [M | received()]
    after 0 -> []
    end.

%% ---- functions

same(X) -> X.

version(N) ->
    Forms = [{attribute, 1, module, tessera_digest_version}, {attribute, 1, export, [{f, 0}, {make, 1}]},
             {function, 1, f, 0, [{clause, 1, [], [], [{integer, 1, N}]}]},
             {function, 1, make, 1, [{clause, 1, [{var, 1, 'X'}], [], [{'fun', 1, {clauses, [{clause, 1, [], [], [{tuple, 1,
                 [{integer, 1, N}, {var, 1, 'X'}]}]}]}}]}]}],
    {ok, Module, Code} = compile:forms(Forms),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, "", Code),
    {digest(fun tessera_digest_version:f/0), digest(tessera_digest_version:make(x))}.

%% A module that was loaded anew has new functions.
versions_test() ->
    {F1, G1} = version(1),
    {F2, G2} = version(2),
    ?assertEqual(4, length(lists:usort([F1, G1, F2, G2]))),
    ?assertEqual({F1, G1}, version(1)),
    _ = code:purge(tessera_digest_version),
    true = code:delete(tessera_digest_version),
    _ = code:purge(tessera_digest_version).

%% Tensors count by type, shape and identity.
tensors_test() ->
    A = tessera:iota({3}, f32),
    B = tessera:iota({3}, f32),
    C = tessera:iota({4}, f32),
    Of = fun(X, Y) -> tessera_digest:with_tensors(adder([X, {Y, X}, #{key => X}, adder(Y)])) end,
    {AB, [A, B]} = Of(A, B),
    {BA, [B, A]} = Of(B, A),
    {AA, [A]} = Of(A, A),
    {AC, [A, C]} = Of(A, C),
    {Tuple, []} = Of({tessera, x, f32, {3}}, 1),
    ?assertEqual(AB, BA),
    ?assertEqual(4, length(lists:usort([AB, AA, AC, Tuple]))),
    Shared = fun(T) -> tessera_digest:with_tensors(adder(dag(100, fun(X) -> {X, X} end, {T, tessera:iota({2})}))) end,
    {Digest, [A, _]} = Shared(A),
    {Digest, [B, _]} = Shared(B),
    {Other, [C, _]} = Shared(C),
    ?assertNotEqual(Digest, Other),
    %% in the order of the walk, function by function
    D = tessera:iota({5}),
    ?assertMatch({_, [A, B, C, D]}, tessera_digest:with_tensors(adder({adder({C, D, A}), A, adder(D), B}))).

%% ... in any scheduler.
many_tensors_test_() ->
    {timeout, 30, fun() ->
        Tensors = [tessera:tensor(I) || I <- lists:seq(1, 60000)],
        F = adder({Tensors, adder(Tensors)}),
        {Digest, Tensors} = tessera_digest:with_tensors(F),
        ?assertMatch({Digest, Tensors}, tessera_digest:with_tensors(F))
    end}.

nx(Type, Shape, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => Type, shape => Shape, names => [], vectorized_axes => []}.

forms_test() ->
    Form = fun(X) -> tessera_digest:form(fun() -> {X, [X]} end) end,
    ?assertEqual(Form(nx({f, 32}, {2}, <<1>>)), Form(nx({f, 32}, {2}, <<2>>))),
    ?assertEqual(3, length(lists:usort([Form(nx(T, S, x)) || {T, S} <- [{{f, 32}, {2}}, {{f, 32}, {3}}, {{s, 32}, {2}}]]))),
    ?assertNotEqual(Form(#{'__struct__' => other, type => a, shape => b, data => 1}),
                    Form(#{'__struct__' => other, type => a, shape => b, data => 2})),
    ?assertEqual(Form(dag(100, fun(X) -> {X, X} end, nx({f, 32}, {}, 1))), Form(dag(100, fun(X) -> {X, X} end, nx({f, 32}, {}, 2)))).

%% ---- sizes of copies

weigh_test() ->
    [begin
         Weight = tessera_digest:weigh(Term),
         Flat = 8 * erts_debug:flat_size(Term),
         ?assert(Weight >= Flat div 2 andalso Weight =< 2 * Flat + 64)
     end || Term <- [x, {x}, lists:seq(1, 1000), #{a => {b}}, maps:from_list([{I, [I]} || I <- lists:seq(1, 1000)]),
                     dag(10, fun(X) -> {X, X} end, {x}), dag(10, fun(X) -> expression([X, X]) end, {x}),
                     dag(10, fun(X) -> expression([X | X]) end, {x}), expression(lists:seq(1, 1000)), 1 bsl 1000, 1.5, make_ref(), adder({1, 2, 3}), lists:duplicate(100, <<"text">>)]],
    Binary = binary:copy(<<1>>, 100 * 1024 * 1024),
    ?assert(tessera_digest:weigh({Binary, Binary}) =< 101 * 1024 * 1024),
    [?assertEqual(infinity, tessera_digest:weigh(dag(100, Join))) || Join <- joins(), doubles(Join)].

%% A term that occurs twice in a function counts once.
doubles(Join) -> not is_function(Join(x)).

outline_test() ->
    Short = {a, [1, 2], #{b => "c"}, dag(10, fun(X) -> {X, X} end, x)},
    ?assertEqual(Short, tessera_digest:outline(Short)),
    [begin
         Outline = tessera_digest:outline(dag(100, Join)),
         ?assert(iolist_size(io_lib:format("~p", [Outline])) < 200000)
     end || Join <- joins()].

%% Errors name their argument, and can be logged and sent.
errors_test() ->
    [begin
         Term = dag(100, Join),
         [begin
              {error, {Code, Message}, Trace} = try F(), none catch Class:Reason:T -> {Class, Reason, T} end,
              ?assert(is_atom(Code) andalso byte_size(Message) < 300000),
              ?assert(tessera_digest:is_small(Trace)),
              ?assertEqual(Trace, unshared(Trace))
          end || F <- [fun() -> tessera:jit(Term) end, fun() -> tessera:jit(fun() -> Term end, #{threads => Term}) end,
                       fun() -> tessera:jit(fun() -> Term end, #{Term => 1}) end, fun() -> tessera:run_text(Term, []) end,
                       fun() -> tessera:compile(fun(_) -> Term end, Term) end, fun() -> tessera:reshape(tessera:iota({2}), Term) end,
                       fun() -> tessera:add(1, Term) end, fun() -> tessera:zeros({1}, Term) end]]
     end || Join <- joins(), doubles(Join)].

%% ---- keys of programs

%% Functions by their environment; arguments and results are terms.
programs_test_() ->
    {timeout, 60, fun() ->
        Hold = fun(Held) -> fun(X) -> {true, X} = {Held =/= x, X}, tessera:add(X, 1) end end,
        [begin
             ok = tessera:clear_cache(),
             Ref = make_ref(),
             [?assertEqual(3, tessera:to_number((tessera:jit(Hold(dag(100, Join, Ref))))(2))) || _ <- [1, 2]],
             ?assertEqual(1, tessera_cache:size()),
             Apply = tessera:jit(fun(X, F) -> tessera:multiply(X, F()) end),
             Given = fun(N) ->
                             Held = dag(100, Join, Ref),
                             fun() -> {N, true} = {N, Held =/= x}, N end
                     end,
             [?assertEqual(N * 5, tessera:to_number(Apply(5, Given(N)))) || N <- [2, 3, 2, 3]],
             ?assertEqual(3, tessera_cache:size()),
             Result = tessera:jit(fun(X) -> {tessera:add(X, X), Given(7)} end),
             [begin
                  {Sum, F} = Result(4),
                  ?assertEqual({8, 7}, {tessera:to_number(Sum), F()})
              end || _ <- [1, 2]],
             [?assert(erts_debug:flat_size(Key) < 200) || {Key, _} <- ets:tab2list(tessera_cache)]
         end || Join <- joins()]
    end}.

%% ---- by hand

rounds_are_checked_test() ->
    F = adder(1),
    G = adder(2),
    {more, Unfinished, [F, G], []} = tessera_nif:digest({F, [G, F]}, plain),
    Refused = fun(Codes) -> ?assertMatch({error, #{code := _}}, tessera_nif:digest_more(Unfinished, Codes)) end,
    [Refused(Codes) || Codes <- [[], [one], [one, two, three], not_a_list]],
    {Digest, _, _, []} = tessera_nif:digest_more(Unfinished, [one, two]),
    Refused([one, two]),
    {more, Another, [F, G, F], _} = tessera_nif:digest(unshared({F, [G, F]}), plain),
    ?assertMatch({Digest, _, _, []}, tessera_nif:digest_more(Another, [one, two, one])),
    ?assertMatch({error, _}, tessera_nif:digest(x, other)),
    ?assertMatch({error, _}, tessera_nif:digest_more(make_ref(), [])),
    ?assertMatch({error, _}, tessera_nif:digest_more(x, [])).

%% Every allocation that fails is an error, and nothing leaks.
failing_allocations_test_() ->
    {timeout, 60, fun() ->
        T = tessera:iota({2}),
        X = 7.5,
        F = fun() -> {T, [lists:seq(1, 3000), fun() -> {X, T, fun lists:sort/1} end], maps:from_keys(lists:seq(1, 100), T)} end,
        ok = tessera:clear_cache(),
        {Digest, [T]} = tessera_digest:with_tensors(F),
        ok = tessera:clear_cache(),
        garbage_collect(),
        Before = tessera_test:blocks(),
        Failed = failing(F, Digest, 1, 0),
        ok = tessera:clear_cache(),
        ?assert(Failed > 8),
        tessera_test:until_freed(fun() -> tessera_nif:live_blocks() =< Before end)
    end}.

failing(F, Digest, N, Failed) ->
    tessera_nif:eager_clear(),
    _ = tessera_nif:fail_allocation(N),
    Result = tessera_digest:with_tensors(F),
    Count = tessera_nif:fail_allocation(0),
    case Result of
        {Digest, [_]} when Count =:= 0 -> Failed;
        {Digest, [_]} -> failing(F, Digest, N + 1, Failed);
        {error, #{code := resource_exhausted}} -> failing(F, Digest, N + 1, Failed + 1)
    end.

%% Many at a time.
concurrent_test_() ->
    {timeout, 60, fun() ->
        Make = fun() -> [{I, adder(I), dag(20, fun(X) -> {X, X} end, {I})} || I <- lists:seq(1, 100)] end,
        Expected = digest(Make()),
        Workers = [spawn_monitor(fun() ->
                                         Term = Make(),
                                         [Expected = digest(Term) || _ <- lists:seq(1, 30)]
                                 end) || _ <- lists:seq(1, 30)],
        [receive {'DOWN', M, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers]
    end}.

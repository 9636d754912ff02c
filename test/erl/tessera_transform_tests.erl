%% Functions with Erlang's operators and branches, lifted by tessera_transform: on plain numbers they have their old
%% results, on tensors the same ones, at once and traced.
-module(tessera_transform_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3]).

%% ---- modules from text

%% Calls F with a module of these functions, all lifted.
with(Functions, F) -> with(Functions, "-tessera(all).\n", F).

with(Functions, Attributes, F) ->
    Text = [transform(), Attributes, Functions],
    {ok, Module, _} = loaded(compiled(Text, [return])),
    try F(Module)
    after unload(Module)
    end.

transform() -> "-compile({parse_transform, tessera_transform}).\n".

compiled(Text, Options) ->
    Module = "transformed_" ++ integer_to_list(erlang:unique_integer([positive])),
    All = lists:flatten(["-module(", Module, ").\n-compile([export_all, nowarn_export_all]).\n" | Text]),
    compile:forms(forms(All), [binary | Options]).

loaded({ok, Module, Binary, Warnings}) ->
    {module, Module} = code:load_binary(Module, atom_to_list(Module) ++ ".erl", Binary),
    {ok, Module, Warnings}.

unload(Module) ->
    _ = code:purge(Module),
    true = code:delete(Module),
    code:purge(Module).

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    [{attribute, 1, file, {"source.erl", 1}} | parsed(Tokens, [])].

parsed([], []) -> [];
parsed([{dot, _} = Dot | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | parsed(Tokens, [])];
parsed([Token | Tokens], Form) -> parsed(Tokens, [Token | Form]).

%% ---- results of functions

%% Numbers in, numbers out: plain, at once on tensors, and traced.
three(F, Args) ->
    Tensors = tensors(Args),
    [plain(apply(F, Args)), plain(apply(F, Tensors)), plain(apply(tessera:jit(F), Tensors))].

tensors(Number) when is_number(Number) -> tessera:tensor(Number);
tensors(Terms) when is_list(Terms) -> [tensors(Term) || Term <- Terms];
tensors(Terms) when is_tuple(Terms) -> list_to_tuple(tensors(tuple_to_list(Terms)));
tensors(Map) when is_map(Map) -> maps:map(fun(_, Value) -> tensors(Value) end, Map);
tensors(Other) -> Other.

plain(#tessera{} = Tensor) -> tessera:to_list(Tensor);
plain(Terms) when is_list(Terms) -> [plain(Term) || Term <- Terms];
plain(Terms) when is_tuple(Terms) -> list_to_tuple(plain(tuple_to_list(Terms)));
plain(Map) when is_map(Map) -> maps:map(fun(_, Value) -> plain(Value) end, Map);
plain(true) -> 1;
plain(false) -> 0;
plain(Other) -> Other.

same(Expected, F, Args) -> ?assertEqual([plain(Expected) || _ <- [1, 2, 3]], [rounded(V) || V <- three(F, Args)]).

rounded(X) when is_float(X) -> round(X * 1.0e4) / 1.0e4;
rounded(Terms) when is_list(Terms) -> [rounded(Term) || Term <- Terms];
rounded(Terms) when is_tuple(Terms) -> list_to_tuple(rounded(tuple_to_list(Terms)));
rounded(X) -> X.

%% {Functions, [{Expected, Args}]}: f is called.
functions() ->
    [{"arithmetic", "f(X, Y) -> (X + Y) * 2 - X div Y + X rem Y - -X.", [{26, [7, 3]}]},
     {"division", "f(X, Y) -> X / Y + 0.25.", [{1.75, [3.0, 2]}]},
     {"bits", "f(X, Y) -> {X band Y, X bor Y, X bxor Y, X bsl 1, X bsr 1, bnot X}.", [{{4, 7, 3, 12, 3, -7}, [6, 5]}]},
     {"built-in functions", "f(X, Y) -> {abs(X), max(X, Y), min(X, Y), erlang:max(X, 3)}.", [{{2, 5, -2, 3}, [-2, 5]}]},
     {"math",
      "f(X, Y) -> math:sqrt(X) + math:pow(X, Y) + math:exp(0.0 * X) + math:log2(X) + math:log10(X * 25) + "
      "math:fmod(X, 3).",
      
      [{24.0, [4.0, 2.0]}]},
     {"comparisons", "f(X, Y) -> {X < Y, X =< Y, X > Y, X >= Y, X == Y, X /= Y, X =:= Y, X =/= Y}.",
      [{{1, 1, 0, 0, 0, 1, 0, 1}, [1, 2]}, {{0, 1, 0, 1, 1, 0, 1, 0}, [2, 2]}]},
     {"truths", "f(X, Y) -> A = X > 0, B = Y > 0, {A and B, A or B, A xor B, not A, A andalso B, A orelse B}.",
      [{{0, 1, 1, 0, 0, 1}, [1, -1]}, {{1, 1, 0, 0, 1, 1}, [1, 1]}, {{0, 0, 0, 1, 0, 0}, [0, 0]}]},
     {"if", "f(X) -> if X > 10 -> X - 10; X > 0, X < 5; X == 7 -> X; true -> 0 end.",
      [{2, [12]}, {3, [3]}, {7, [7]}, {0, [6]}, {0, [-1]}]},
     {"case of truths", "f(X) -> case X > 3 of true -> 1; false -> 2 end.", [{1, [4]}, {2, [3]}]},
     {"case of numbers", "f(X) -> case X of 0 -> 10; -1 -> 20; 2 -> 30; _ -> X end.",
      [{10, [0]}, {20, [-1]}, {30, [2]}, {5, [5]}]},
     {"case with guards", "f(X) -> case X * 2 of Y when Y > 8 -> Y; Y when Y > 4, Y =/= 6 -> -Y; Y -> Y + 100 end.",
      [{10, [5]}, {-8, [4]}, {106, [3]}, {102, [1]}]},
     {"containers",
      "f({X, Y}) -> case {X, [Y, #{a => X}]} of {1, _} -> Y; {_, [2, _]} -> X; {A, [B, #{a := 3}]} -> A + B; _ -> 0 "
      "end.",
      
      [{7, [{1, 7}]}, {5, [{5, 2}]}, {12, [{3, 9}]}, {0, [{4, 9}]}]},
     {"the same variable twice", "f(X, Y) -> case {X, Y} of {A, A} -> 1; {_, X} -> 2; _ -> 3 end.",
      [{1, [4, 4]}, {3, [4, 5]}]},
     {"a bound variable", "f(X, Y) -> Z = 3, case X of Z -> 1; Y -> 2; _ -> 3 end.",
      [{1, [3, 9]}, {2, [9, 9]}, {3, [1, 2]}]},
     {"clauses", "f(0, Y) -> Y; f(X, Y) when X > Y -> X - Y; f(X, 5) -> X * 5; f(_, _) -> -1.",
      [{4, [0, 4]}, {2, [6, 4]}, {15, [3, 5]}, {-1, [3, 4]}]},
     {"clauses of a fun", "f(X, Y) -> F = fun(0) -> Y; (Z) when Z < Y -> Z + Y; (_) -> X end, F(X) + F(0).",
      [{14, [0, 7]}, {17, [3, 7]}, {16, [9, 7]}]},
     {"a fun's own variables",
      "f(X, Y) -> F = fun(Y1, 0) -> Y1; (Y, X1) when X1 > 0 -> Y + X1; (_, _) -> 0 end, F(X, Y) * 100 + Y.",
      
      [{100, [1, 0]}, {305, [-2, 5]}, {-1, [3, -1]}]},
     {"shadowing", "f(X) -> Y = 50, F = fun(Y) when Y > 1 -> Y; (_) -> X end, F(X + 1) + Y.", [{53, [2]}, {50, [0]}]},
     {"a fun in a fun", "f(X, Y) -> F = fun(A) -> fun(B) -> if B > A -> B * A; true -> A end end end, (F(X))(Y).",
      [{12, [3, 4]}, {4, [4, 3]}]},
     {"exported", "f(X) -> if X > 0 -> Y = X, Z = 1; true -> Y = -X, Z = 2 end, Y * 10 + Z.", [{31, [3]}, {32, [-3]}]},
     {"exported with the value",
      "f(X) -> V = case X of 1 -> Y = 5, 10; _ when X > 5 -> Y = 6, 20; N -> Y = N, 30 end, {V, Y}.",
      
      [{{10, 5}, [1]}, {{20, 6}, [9]}, {{30, 3}, [3]}]},
     {"exported by patterns", "f(X, Y) -> case {X, Y} of {0, Z} -> ok; {Z, _} -> ok end, Z + 1.",
      [{6, [0, 5]}, {4, [3, 5]}]},
     {"exported from within", "f(X) -> if X > 0 -> if X > 5 -> Y = 1; true -> Y = 2 end; true -> Y = 3 end, Y.",
      [{1, [6]}, {2, [3]}, {3, [0]}]},
     {"one of several", "f(X) -> if X > 0 -> Y = 1, W = 2, W; true -> Y = 3, other end, Y.", [{1, [6]}, {3, [0]}]},
     {"values that are not used", "f(X) -> if X > 0 -> one; true -> {two, X} end, X.", [{6, [6]}, {0, [0]}]},
     {"what both give alike", "f(X) -> {if X > 0 -> ok; true -> ok end, X}.", [{{ok, 6}, [6]}]},
     {"truths that differ", "f(X) -> if X > 0 -> {true, X}; true -> {false, 1} end.", [{{1, 6}, [6]}, {{0, 1}, [0]}]},
     {"a truth and a tensor", "f(X) -> if X > 0 -> X > 5; true -> false end.", [{1, [6]}, {0, [3]}, {0, [0]}]},
     {"containers from branches",
      "f(X) -> if X > 0 -> #{a => [X, 1], b => none}; true -> #{a => [0, X], b => none} end.",
      
      [{#{a => [6, 1], b => none}, [6]}, {#{a => [0, -6], b => none}, [-6]}]},
     {"nested",
      "f(X, Y) -> if X > 0 -> case Y of 0 -> 1; _ -> if Y > X -> 2; true -> 3 end end; Y > 0 -> 4; true -> 5 end.",
      
      [{1, [1, 0]}, {2, [1, 2]}, {3, [2, 1]}, {4, [0, 1]}, {5, [0, 0]}]},
     {"comprehension", "f(X, L) -> [if Y > X -> Y - X; true -> 0 end || Y <- L].", [{[0, 0, 1], [2, [1, 2, 3]]}]},
     {"comprehension with static filters",
      "f(X) -> [X * N || N <- lists:seq(1, 6), N rem 2 == 0, is_integer(N), N =/= 4].",
      
      [{[6, 18], [3]}]},
     {"comprehension of pairs", "f(L) -> [X + Y || {X, Y} <- L, {Z, W} <- [{a, 1}], Z == a, W =:= 1].",
      [{[3, 7], [[{1, 2}, {3, 4}]]}]},
     {"folds",
      "f(L) -> {lists:foldl(fun(X, S) -> X + S end, 0, L), lists:foldl(fun erlang:'*'/2, 1, L), lists:map(fun(X) "
      "when X > 1 -> X; (_) -> 0 end, L)}.",
      
      [{{6, 6, [0, 2, 3]}, [[1, 2, 3]]}]},
     {"try", "f(X) -> try X + 1 of Y when Y > 3 -> Y * 2; Y -> Y catch error:_ -> 0 after ok end.",
      [{10, [4]}, {2, [1]}]},
     {"static dispatch", "f(X, Mode) -> case Mode of double -> X * 2; {times, N} when is_integer(N), N > 1 -> X * N; none -> X end\n"
      " + g(Mode, X).\n"
      "g(none, X) -> X; g(_, _) -> 0.", [{8, [4, double]}, {8, [4, none]}]},
     {"equality with other terms", "f(X) -> [X == none, X =/= [], {X} =:= none, X =:= #{}].", [{[0, 1, 0, 0], [3]}]},
     {"a truth as number", "f(X) -> P = X > 2, {P == true, P =:= false, if P == true -> 1; true -> 2 end}.",
      [{{1, 0, 1}, [3]}, {{0, 1, 2}, [1]}]},
     {"guards that fail", "f(X, L) -> case X of Y when hd(L) > 0 -> Y; _ -> -1 end.",
      [{-1, [3, []]}, {3, [3, [1]]}, {-1, [3, [0]]}]},
     {"alternatives of which one fails", "f(X, L) -> if hd(L) > 0; X > 2 -> 1; true -> 2 end.",
      [{1, [3, []]}, {2, [1, []]}, {1, [1, [5]]}]},
     {"records", "-record(r, {a = 0, b}).\n"
      "f(X, Y) -> R = #r{a = X, b = Y}, case R of #r{a = 0, b = B} -> B; #r{b = B} when B > R#r.a -> B + 1; "
      "_ -> (R#r{b = 1})#r.b end.", [{5, [0, 5]}, {6, [1, 5]}, {1, [5, 5]}]},
     {"a block in an operand", "f(X) -> begin Y = X + 1, Y end * if X > 1 -> 2; true -> 3 end + X.",
      [{7, [1]}, {11, [3]}]},
     {"named funs", "f(X) -> F = fun G(0, S) -> S; G(N, S) -> G(N - 1, S + X) end, F(3, 0).", [{6, [2]}]},
     {"while",
      "f(N) -> {_, S} = tessera:while({0, 0}, fun({I, _}) -> I < N end, fun({I, S}) -> {I + 1, if I rem 2 == 0 -> S "
      "+ I; true -> S end} end), S.",
      
      [{6, [5]}]},
     {"long conjunctions",
      "f(X) -> if X > 0, X < 10, X =/= 5, X rem 2 == 1 andalso not (X == 7 orelse X == 9) -> 1; true -> 0 end.",
      
      [{1, [3]}, {0, [5]}, {0, [7]}, {0, [4]}, {0, [11]}]},
     {"strings and binaries",
      "f(X) -> case {\"abc\" ++ [], <<1, 2>>} of {\"a\" ++ T, <<A, _/binary>>} when A > 0 -> X + length(T); _ -> 0 "
      "end.",
      [{5, [3]}]},
     {"maybe ignored", "f(X, Y) -> Z = (X > Y) , W = case Z of true -> X; false -> Y end, W * 2.",
      [{8, [4, 3]}, {10, [4, 5]}]}].

functions_test_() ->
    [{Title, {timeout, 30, fun() ->
         with([Functions, "\n"], fun(M) ->
             [same(Expected, function(M, length(Args)), Args) || {Expected, Args} <- Calls]
         end)
     end}} || {Title, Functions, Calls} <- functions()].

function(M, Arity) -> fun M:f/Arity.

%% The compiler does not warn of generated code.
no_warnings_test_() ->
    [{Title, fun() ->
         {ok, Module, _, Warnings} = compiled([transform(), "-tessera(all).\n", Functions, "\n"], [return]),
         {ok, _, _, Before} = compiled([Functions, "\n"], [return]),
         ?assert(is_atom(Module)),
         [Now, Then] = [[{W, D} || {_, Ws} <- List, {_, W, D} <- Ws] || List <- [Warnings, Before]],
         ?assertEqual([], Now -- Then)
     end} || {Title, Functions, _} <- functions()].

%% ---- random functions, lifted and not

random_test_() ->
    [{lists:concat(["seed ", Seed]), {timeout, 60, fun() -> random(Seed) end}} || Seed <- lists:seq(1, 40)].

random(Seed) ->
    _ = rand:seed(exsss, Seed),
    Body = body(["X", "Y"], 3),
    Text = ["-tessera([f/2]).\nf(X, Y) -> ", Body, ".\ng(X, Y) -> ", Body, ".\n"],
    Points = [[rand:uniform(21) - 11, rand:uniform(21) - 11] || _ <- lists:seq(1, 6)],
    with(Text, "", fun(M) ->
        Jitted = tessera:jit(fun M:f/2),
        [begin
             Expected = apply(fun M:g/2, Args),
             [?assertEqual({Seed, Args, Expected}, {Seed, Args, plain(apply(F, As))})
              || {F, As} <- [{fun M:f/2, Args}, {fun M:f/2, tensors(Args)}, {Jitted, Args}]]
         end || Args <- Points]
    end).

%% Statements, and a tuple of all that they bind.
body(Variables, Depth) ->
    {Statements, All} = statements(rand:uniform(3), Variables, Depth),
    [Statements, "{", lists:join(", ", All), "}"].

statements(0, Variables, _) -> {"", Variables};
statements(N, Variables, Depth) ->
    {Statement, Bound} = statement(rand:uniform(5), Variables, Depth),
    {Statements, All} = statements(N - 1, Variables ++ Bound, Depth),
    {[Statement, ",\n", Statements], All}.

statement(_, Variables, 0) -> statement(1, Variables, 1);
statement(1, Variables, _) ->
    New = new(),
    {[New, " = ", expression(Variables, 3)], [New]};
statement(2, Variables, Depth) ->
    Exported = [new(), new()],
    Clauses = [[condition(Variables, 2), " -> ", bound(Exported, Variables, Depth - 1)] || _ <- lists:seq(1, rand:uniform(2))],
    {["if ", lists:join(";\n", Clauses ++ [["true -> ", bound(Exported, Variables, Depth - 1)]]), " end"], Exported};
statement(3, Variables, Depth) ->
    [Value, Exported] = [new(), new()],
    Pattern = new(),
    {[Value, " = case ", expression(Variables, 2), " of ", number(), " -> ", bound([Exported], Variables, Depth - 1), ";\n",
      Pattern, " when ", condition([Pattern | Variables], 1), " -> ", bound([Exported], [Pattern | Variables], Depth - 1), ";\n",
      "_ -> ", bound([Exported], Variables, Depth - 1), " end"], [Value, Exported]};
statement(4, Variables, Depth) ->
    [Exported, P, Q] = [new(), new(), new()],
    Then = fun(Names) -> [" -> ", bound([Exported], Names ++ Variables, Depth - 1)] end,
    {["case {", expression(Variables, 2), ", ", expression(Variables, 1), "} of {", number(), ", ", P, "}", Then([P]),
      ";\n{", P, ", ", pick(Variables), "}", Then([P]), ";\n{", P, ", ", P, "}", Then([P]),
      ";\n{", P, ", ", Q, "} when ", condition([P, Q], 1), "; ", condition([Q | Variables], 1), Then([P, Q]),
      ";\n{_, ", P, "}", Then([P]), " end"], [Exported]};
statement(5, Variables, Depth) ->
    [New, P, Q] = [new(), new(), new()],
    {["{_, ", New, "} = (fun(", P, ", ", number(), ") -> {0, ", P, "};\n(", P, ", ", Q, ") when ",
      condition([P, Q | Variables], 1), " -> {1, ", expression([P, Q | Variables], 2), "};\n(", P, ", _) -> ",
      element(1, statements(1, [P | Variables], Depth - 1)), " {2, ", expression([P | Variables], 1), "} end)(",
      expression(Variables, 1), ", ", expression(Variables, 1), ")"], [New]}.

%% Statements that end in some that bind these.
bound(Exported, Variables, Depth) ->
    {Before, All} = statements(rand:uniform(2) - 1, Variables, Depth),
    [Before, lists:join(", ", [[Name, " = ", expression(All, 2)] || Name <- Exported])].

new() -> "V" ++ integer_to_list(erlang:unique_integer([positive])).

%% Small enough for s32.
expression(Variables, 0) -> pick([number() | Variables]);
expression(Variables, Depth) ->
    Part = fun() -> expression(Variables, Depth - 1) end,
    case rand:uniform(9) of
        1 -> ["(", Part(), " + ", Part(), ")"];
        2 -> ["(", Part(), " - ", Part(), ")"];
        3 -> ["((", Part(), " rem 100) * (", Part(), " rem 100))"];
        4 -> ["(", Part(), " div ", integer_to_list(rand:uniform(5)), ")"];
        5 -> ["(", Part(), " rem ", integer_to_list(rand:uniform(5)), ")"];
        6 -> ["(", Part(), " band ", Part(), ")"];
        7 -> ["abs(", Part(), ")"];
        8 -> ["(- ", Part(), ")"];
        9 -> Part()
    end.

condition(Variables, Depth) ->
    case rand:uniform(3) of
        1 -> [test(Variables, Depth), " ", pick([",", ";"]), " ", test(Variables, Depth)];
        _ -> test(Variables, Depth)
    end.

test(Variables, Depth) when Depth =:= 0; Depth =:= 1 ->
    ["(", expression(Variables, 1), " ", pick(["<", ">", "=<", ">=", "==", "/=", "=:=", "=/="]), " ", expression(Variables, 1), ")"];
test(Variables, Depth) ->
    Part = fun() -> test(Variables, Depth - 1) end,
    case rand:uniform(5) of
        1 -> ["(", Part(), " andalso ", Part(), ")"];
        2 -> ["(", Part(), " orelse ", Part(), ")"];
        3 -> ["(", Part(), pick([" and ", " or ", " xor "]), Part(), ")"];
        4 -> ["(not ", Part(), ")"];
        5 -> Part()
    end.

number() -> integer_to_list(rand:uniform(9) - 5).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% ---- which functions are lifted

scope_test_() ->
    F = "f(X) -> X + 1.\n",
    IsLifted = fun(M) -> ?assertEqual([3, 3, 3], three(fun M:f/1, [2])) end,
    Lifted = fun(Attributes, Functions) -> fun() -> with(Functions, Attributes, IsLifted) end end,
    [{"all", Lifted("-tessera(all).\n", F)},
     {"named", Lifted("-tessera([g/2, f/1]).\n", [F, "g(X, Y) -> X + Y.\n"])},
     {"one", Lifted("-tessera(f/1).\n", F)},
     {"several attributes", Lifted("-tessera(g/2).\n-tessera([f/1]).\n", [F, "g(X, Y) -> X + Y.\n"])},
     {"given to jit", Lifted("", [F, "g() -> tessera:jit(fun f/1).\n"])},
     {"given to grad with other arguments", Lifted("", [F, "g(X) -> tessera:reduce(X, 0, fun(A, B) -> A + B end), (tessera:grad(fun f/1))(X).\n"])},
     {"others are not", fun() -> with([F, "g(X) -> X + 1.\n"], "-tessera([g/1]).\n", fun not_lifted/1) end},
     {"nor what is called", fun() -> with(["f(X) -> [X + 1].\n", "g(X) -> f(X).\n"], "-tessera([g/1]).\n", fun calls_other/1) end}].

not_lifted(M) ->
    ?assertEqual([2, 2, 2], three(fun M:g/1, [1])),
    ?assertEqual(2, M:f(1)),
    ?assertError(badarith, M:f(tessera:tensor(1))).

calls_other(M) ->
    ?assertEqual([2], M:g(1)),
    raises(failed_precondition, "Erlang cannot compute", fun() -> (tessera:jit(fun M:g/1))(1) end).

%% Funs that are written as arguments of the API, anywhere in the module; not the functions around them.
funs_given_test() ->
    Functions = "jit() -> tessera:jit(fun(X) when X > 0 -> X * 2; (X) -> -X end).\n"
                "options() -> tessera:jit(fun(X) -> X + 1 end, #{threads => 1}).\n"
                "grad() -> tessera:grad(fun(X) -> if X > 1 -> X * X; true -> X end end).\n"
                "both() -> tessera:value_and_grad(fun(X) -> X * X end).\n"
                "compiled() -> tessera:compile(fun(X) -> X / 2 end, [tessera:template(f32, {})]).\n"
                "text() -> tessera:to_text(fun(X) -> X + 1 end, [1]).\n"
                "explained() -> tessera:explain(fun(X) -> X + 1 end, [1]).\n"
                "loop(N) -> tessera:while(0, fun(I) -> I < N end, fun(I) -> I + 1 end).\n"
                "choice(X) -> tessera:'cond'(tessera:greater(X, 0), fun() -> X + 1 end, fun() -> X - 1 end).\n"
                "fold(X) -> tessera:reduce(X, 0, fun(A, B) -> if A > B -> A; true -> B end end).\n"
                "named() -> tessera:jit(fun F(X) -> (fun(Y) -> Y + 1 end)(X) end).\n"
                "outside(X) -> Y = fun() -> X + 1 end, (tessera:jit(fun(Z) -> Z + 1 end))(Y()).\n",
    with(Functions, "", fun(M) ->
        ?assertEqual([6, 4], [plain((M:jit())(X)) || X <- [3, -4]]),
        ?assertEqual(4, plain((M:options())(3))),
        ?assertEqual([6.0, 1.0], [plain((M:grad())(X)) || X <- [3.0, 0.5]]),
        ?assertEqual({9.0, 6.0}, plain((M:both())(3.0))),
        ?assertEqual(1.5, plain((M:compiled())(3.0))),
        ?assertNotEqual(nomatch, string:find(M:text(), "add")),
        ?assert(is_binary(M:explained())),
        ?assertEqual(5, plain(M:loop(5))),
        ?assertEqual([4, -4], [plain(M:choice(X)) || X <- [3, -3]]),
        ?assertEqual(7, plain(M:fold(tessera:tensor([3, 7, 5])))),
        ?assertEqual(4, plain((M:named())(3))),
        ?assertEqual(5, plain(M:outside(3))),
        ?assertError(badarith, M:outside(tessera:tensor(3)))
    end).

%% Without anything to lift the forms stay as they are.
nothing_to_lift_test() ->
    Forms = forms("-module(nothing).\n-export([f/1]).\n"
                  "f(X) when X > 0 -> [Y || Y <- X, Y > 1]; f(_) -> if true -> fun(Z) -> Z + 1 end end.\n"),
    ?assertEqual(Forms, tessera_transform:parse_transform(Forms, [])).

%% A local function of that name keeps its meaning.
own_functions_test() ->
    Functions = "-compile({no_auto_import, [abs/1, max/2]}).\nabs(X) -> {mine, X}.\nmax(X, Y) -> [X, Y].\n"
                "f(X) -> {abs(X), max(X, 1), erlang:abs(X)}.\n",
    with(Functions, fun(M) ->
        ?assertEqual({{mine, -3}, [-3, 1], 3}, M:f(-3)),
        ?assertEqual({{mine, -3}, [-3, 1], 3}, plain(M:f(tessera:tensor(-3))))
    end).

attributes_test_() ->
    [{Attribute, ?_assertEqual({error, [{"source.erl", [{Line, tessera_transform, What}]}], []},
                               compiled([transform(), "\n", Attribute, "f(X) -> X.\n"], [return]))}
     || {Attribute, Line, What} <- [{"-tessera([g/1]).\n", 5, {undefined, {g, 1}}}, {"-tessera(some).\n", 5, {attribute, some}},
                                    {"-tessera([f]).\n", 5, {attribute, [f]}}]] ++
    [?_assertEqual(true, io_lib:printable_list(lists:flatten(tessera_transform:format_error(What))))
     || What <- [{undefined, {g, 1}}, {attribute, some}]].

%% ---- without tensors nothing changes

%% Errors equal Erlang's.
plain_errors_test_() ->
    [{Functions, fun() -> with(Functions, fun(M) -> fails(M, Functions, Args) end) end}
     || {Functions, Args} <- [{"f(X) when X > 0 -> 1.\n", [0]}, {"f(X) -> case X of 1 -> 2 end.\n", [0]}, {"f(X) -> if X > 0 -> 1 end.\n", [0]},
                              {"f(X) -> try X of 1 -> 2 catch throw:_ -> 3 end.\n", [0]}, {"f(X) -> 1 + X.\n", [foo]},
                              {"f(X) -> X andalso true.\n", [1]}, {"f(X) -> F = fun(1) -> 2 end, F(X).\n", [0]},
                              {"f(X) -> math:sqrt(X).\n", [-1]}, {"f(X) -> abs(X).\n", [foo]}, {"f(X) -> not X.\n", [1]},
                              {"f(X) -> [1 || g(X)].\ng(X) -> X.\n", [foo]}, {"f(X) -> X div 0.\n", [1]}]].

fails(M, Functions, Args) ->
    {ok, Other, _} = loaded(compiled([Functions], [return])),
    try
        {Reason, _} = outcome(fun Other:f/1, Args),
        {Actual, Trace} = outcome(fun M:f/1, Args),
        ?assertEqual(Reason, Actual),
        lists:prefix("f(X) when", Functions) andalso ?assertMatch([{M, f, Args, [{file, "source.erl"} | _]} | _], Trace)
    after unload(Other)
    end.

outcome(F, Args) ->
    try {value, apply(F, Args)}
    catch error:Reason:Trace -> {Reason, Trace}
    end.

%% A loop takes no stack.
tail_calls_test() ->
    Functions = "f(0, S) -> S; f(N, S) when N > 0 -> if N rem 2 == 0 -> f(N - 1, S + N);\n"
                "true -> case N of 1 -> f(0, S); _ -> f(N - 1, S) end end.\n",
    with(Functions, fun(M) ->
        Self = self(),
        Limit = {max_heap_size, #{size => 1000000, kill => true, error_logger => false}},
        {_, Monitor} = spawn_opt(fun() -> Self ! {sum, M:f(300000, 0)} end, [monitor, Limit]),
        receive {'DOWN', Monitor, _, _, Reason} -> ?assertEqual(normal, Reason) end,
        receive {sum, Sum} -> ?assertEqual(22500150000, Sum) end
    end).

%% Only the way that is taken runs, on plain numbers and on tensors that have contents.
one_way_test() ->
    with("f(X, F) -> if X > 0 -> F(yes), 1; true -> F(no), 2 end.\n", fun(M) ->
        Self = self(),
        Tensors = [tessera:tensor(Number) || Number <- [1, -1.5, nan]],
        [M:f(X, fun(Which) -> Self ! {way, Which} end) || X <- [1, 0 | Tensors]],
        Ways = [receive {way, Which} -> Which end || _ <- lists:seq(1, 5)],
        ?assertEqual([yes, no, yes, no, no], Ways),
        ?assertEqual(nothing, receive {way, More} -> More after 0 -> nothing end)
    end).

%% A function that calls itself ends, on tensors that have contents.
recursion_test() ->
    with("f(0) -> 1; f(N) when N > 0 -> N * f(N - 1).\n", fun(M) ->
        ?assertEqual(120, M:f(5)),
        ?assertEqual(120, plain(M:f(tessera:tensor(5)))),
        raises(failed_precondition, "tessera:while/3", fun() -> (tessera:jit(fun M:f/1))(5) end),
        %% and leaves nothing behind
        ?assertEqual([], [Key || {Key, _} <- get(), is_tuple(Key), element(1, Key) =:= '$tessera_nested'])
    end).

%% ---- errors of the transform, with their lines

traced_errors_test_() ->
    [{Title, fun() ->
         with([Functions, "\n"], fun(M) ->
             F = function(M, length(Args)),
             [raises(Code, Word, fun() -> apply(tessera:jit(F), Args) end) || Word <- Words]
         end)
     end} || {Title, Functions, Args, Code, Words} <-
         [{"no last clause", "f(X) ->\n if\n  X > 0 -> 1;\n  X < 0 -> 2\n end.", [1], failed_precondition, ["`if' at source.erl:6", "true -> "]},
          {"no last clause of a case", "f(X) ->\n case X of 0 -> 1; 1 -> 2 end.",
           [1], failed_precondition, ["`case' at source.erl:6", "_ -> "]},
          {"no last clause of a function", "f(0) -> 1;\nf(1) -> 2.",
           [1], failed_precondition, ["clauses of f/1 at source.erl:5"]},
          {"no last clause of a fun", "f(X) ->\n (fun(0) -> 1 end)(X).",
           [1], failed_precondition, ["clauses of fun/1 at source.erl:6"]},
          {"not one value", "f(X) ->\n if X > 0 -> 1; true -> 2 end.", [tessera:iota({3})], invalid_argument,
           ["`if' at source.erl:6", "u8[3]", "tessera:all/1", "tessera:select/3"]},
          {"ways of different forms", "f(X) -> if X > 0 -> {X}; true -> X end.",
           [1], invalid_argument, ["different forms"]},
          {"a filter", "f(X, L) ->\n [Y || Y <- L, Y > X].",
           [1, [2, 3]], failed_precondition, ["filter of a comprehension at source.erl:6"]},
          {"a pattern of a generator", "f(L) ->\n [Y || {Y, 1} <- L].",
           [[{1, 2}]], failed_precondition, ["filter of a comprehension at source.erl:6"]},
          {"an error of an op in a guard", "f(X, Y) -> if X + Y > 0 -> 1; true -> 2 end.",
           [tessera:iota({2}), tessera:iota({3})], invalid_argument, ["add"]},
          {"nested", "f(X) ->\n if X > 0 -> 1; true ->\n  case X of 0 -> 2 end end.",
           [1], failed_precondition, ["`case' at source.erl:7"]}]].

%% `?=' is new in OTP 25 and a part of the language from 27 on: as abstract code.
maybe_test() ->
    Form = fun(Pattern) ->
        [{attribute, 1, file, {"source.erl", 1}}, {attribute, 1, module, transformed_maybe},
         {attribute, 2, export, [{f, 1}]}, {attribute, 3, tessera, all},
         {function, 4, f, 1, [{clause, 4, [{var, 4, 'X'}], [], [
             {'maybe', 5, [{maybe_match, 6, Pattern, {op, 6, '>', {var, 6, 'X'}, {integer, 6, 0}}},
                           {op, 7, '+', {var, 7, 'X'}, {integer, 7, 1}}],
              {'else', 8, [{clause, 8, [{var, 8, '_'}], [], [{op, 8, '-', {var, 8, 'X'}}]}]}}]}]}]
    end,
    F = fun(Pattern) ->
        {ok, M, Binary} = compile:forms(tessera_transform:parse_transform(Form(Pattern), []),
                                        [binary, {feature, maybe_expr, enable}]),
        _ = code:purge(M),
        {module, M} = code:load_binary(M, "transformed_maybe.erl", Binary),
        fun M:f/1
    end,
    Chosen = F({atom, 6, true}),
    ?assertEqual([4, 2], [Chosen(X) || X <- [3, -2]]),
    raises(failed_precondition, "`?=' at source.erl:6", fun() -> (tessera:jit(Chosen))(3) end),
    ?assertEqual([4, 4, 4], three(F({var, 6, 'Y'}), [3])),
    unload(transformed_maybe).

%% The search skips lifted functions, and warns about other functions of the same module.
checked_test() ->
    File = filename:join(tessera_test:temporary("transform"), "transformed_checked.erl"),
    ok = file:write_file(File, ["-module(transformed_checked).\n", transform(), "-tessera([f/1]).\n-export([f/1, g/1]).\n",
                                "f(X) -> if X > 0, X =/= 5 -> 1; X == 2 -> max(X, 3); true -> case X of 7 -> 1; _ -> 0 end end.\n",
                                "g(X) -> if X > 0 -> 1; true -> 0 end.\n"]),
    {ok, M} = compile:file(File, [debug_info, {outdir, filename:dirname(File)}]),
    true = code:add_patha(filename:dirname(File)),
    try
        ?assertEqual([], tessera_check:findings(fun M:f/1, [tessera:tensor(1)])),
        ?assertMatch([{{_, 6}, comparison, "X > 0", greater}], tessera_check:findings(fun M:g/1, [tessera:tensor(1)]))
    after
        unload(M),
        true = code:del_path(filename:dirname(File)),
        ok = file:del_dir_r(filename:dirname(File))
    end.

%% ---- the module in the documentation

documented_test_() ->
    {timeout, 60, fun() ->
        Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
        Pages = [filename:join([Here, "..", "..", "docs", "tracing.md"]), "docs/tracing.md"],
        [Page | _] = [File || File <- Pages, filelib:is_file(File)],
        {ok, Text} = file:read_file(Page),
        {match, [Source]} = re:run(Text, "^```erl\n(.*?)^```$", [multiline, dotall, {capture, all_but_first, list}, unicode]),
        {ok, M, _} = loaded(compile:forms(forms(Source), [binary, return])),
        try
            [same(Expected, fun M:penalty/1, [E]) || {Expected, E} <- [{0.125, 0.5}, {2.5, -3.0}, {0.5, 1.0}]],
            [Xs, Ys] = [[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 30.0]],
            same(rounded((1.5 + 3.5 + 5.5 + 29.5) / 4), fun M:loss/3, [0.0, Xs, Ys]),
            Slope = plain(M:fit(Xs, Ys, 200)),
            ?assert(Slope > 1.9 andalso Slope < 3.0)
        after unload(M)
        end
    end}.

%% The transform, lifted by itself, has the same output for every source, and the compiler accepts its output.
itself_test_() ->
    {timeout, 120, fun() ->
        Lifted = tessera_transform:parse_transform(source("tessera_transform.erl", transformed_itself), []),
        {ok, M, _} = loaded(compile:forms(Lifted, [binary, return])),
        try
            [begin
                 Source = source(File, transformed_source),
                 Made = tessera_transform:parse_transform(Source, []),
                 ?assert(Made =:= M:parse_transform(Source, [])),
                 ?assertMatch({ok, transformed_source, _, []}, compile:forms(Made, [binary, return]))
             end || File <- ["tessera_flow.erl", "tessera_source.erl", "tessera_type.erl", "tessera_tree.erl", "tessera_ops.erl"]]
        after unload(M)
        end
    end}.

%% One of Tessera's sources as a module of that name, all lifted.
source(File, Module) ->
    Sources = filename:join([filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))), "..", "..", "erl"]),
    Includes = [{includes, [filename:join([Sources, "..", "include"])]}],
    [Path] = filelib:wildcard(filename:join([Sources, "*", File])),
    {ok, Forms} = epp:parse_file(Path, Includes),
    lists:flatmap(fun({attribute, A, module, _}) -> [{attribute, A, module, Module}, {attribute, A, tessera, all}];
                     (Form) -> [Form]
                  end, Forms).

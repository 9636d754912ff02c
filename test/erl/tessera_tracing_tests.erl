%% Invalid traced functions: warnings where Erlang itself inspects a tensor, and Tessera's errors instead of Erlang's if these are
%% about a tensor.
-module(tessera_tracing_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3]).
-export([log/2, external/1, positive/1, compiled_findings/2]).

-record(layer, {weights, bias = none, size = 0}).

-define(PLAIN, "-module(tracing_plain).\n-export([f/1]).\nf(X) -> if X > 0 -> X; true -> 0 end.\n").

%% ---- warnings: their texts and lines

%% The search reports that the function inspects a tensor on its own line, in an expression with these words.
-define(FOUND(Words, F, Args), {?LINE, Words, F, Args}).

findings(F, Args) -> tessera_check:findings(F, Args).

%% The findings in the compiled code of a fun of this module, as if it had no debug_info.
compiled_findings(F, Args) ->
    {ok, Beam} = file:read_file(code:which(?MODULE)),
    {ok, {_, Stripped}} = beam_lib:strip(Beam),
    Code = tessera_flow_beam:code(Stripped),
    {beam, Function, Held} = tessera_source:target(tessera_source:fun_id(F), #{beam => Code}),
    tessera_flow_beam:analyse(Code, Function, [tessera_kind:of_term(Arg) || Arg <- Args] ++ Held).

found_test_() ->
    T = tessera:tensor(1.0),
    V = tessera:iota({3}, f32),
    [{Words, fun() -> found(Line, Words, F, Args) end}
     || {Line, Words, F, Args} <- [
        ?FOUND("X > 0", fun(X) -> if X > 0 -> X; true -> 0 end end, [T]),
        ?FOUND("X >= Y", fun(X, Y) -> case X >= Y of true -> X; false -> Y end end, [T, T]),
        ?FOUND("0 < X", fun(X) -> 0 < X end, [T]),
        ?FOUND("X == 0", fun(X) -> case X == 0 of true -> X; false -> 0 end end, [V]),
        ?FOUND("X =:= 1", fun(X) when X =:= 1 -> 0; (X) -> X end, [T]),
        ?FOUND("X /= Y", fun(X, Y) -> X /= Y end, [T, V]),
        ?FOUND("0", fun(X) -> case X of 0 -> 1; _ -> X end end, [T]),
        ?FOUND("-1", fun(X) -> case X of -1 -> 1; _ -> X end end, [T]),
        ?FOUND("infinity", fun(X) -> case X of infinity -> 1; _ -> X end end, [T]),
        ?FOUND("X == nan", fun(X) -> X == nan end, [T]),
        ?FOUND("1.5", fun({A, B}) -> case {A, B} of {1.5, _} -> B; {_, _} -> A end end, [{T, T}]),
        ?FOUND("true", fun(X) -> case tessera:greater(X, 0) of true -> 1; _ -> X end end, [T]),
        ?FOUND("P", fun(X) -> P = tessera:less(X, 0), if P -> 1; true -> X end end, [T]),
        ?FOUND("P == true", fun(X) -> P = tessera:any(X), if P == true -> 1; true -> X end end, [V]),
        ?FOUND("X + 1", fun(X) -> if X + 1 > 2 -> 1; true -> X end end, [T]),
        ?FOUND("abs(X)", fun(X) when abs(X) > 1 -> 1; (X) -> X end, [T]),
        ?FOUND("max(X, 0)", fun(X) -> max(X, 0) end, [T]),
        ?FOUND("min(X, Y)", fun(X, Y) -> erlang:min(X, Y) end, [T, T]),
        ?FOUND("lists:max", fun(X, Y) -> lists:max([X, Y]) end, [T, T]),
        ?FOUND("A > 0", fun(#{a := A}) -> if A > 0 -> A; true -> 0 end end, [#{a => T}]),
        ?FOUND("A > 0", fun(M) -> #{a := A} = M#{b => 1}, if A > 0 -> A; true -> 0 end end, [#{a => T}]),
        ?FOUND("W > 0", fun(#layer{weights = W}) -> if W > 0 -> W; true -> 0 end end, [#layer{weights = T}]),
        ?FOUND("bias > 0", fun(L) -> if L#layer.bias > 0 -> 1; true -> 0 end end, [#layer{bias = T}]),
        ?FOUND("S > 0", fun(X) -> L = #layer{weights = tessera:sum(X)}, S = L#layer.weights, S > 0 end, [V]),
        ?FOUND("Y > 0", fun([X | _]) -> Y = tessera:add(X, 1), if Y > 0 -> Y; true -> 0 end end, [[T, T]]),
        ?FOUND("Y > 0", fun(Xs) -> [if Y > 0 -> Y; true -> 0 end || Y <- Xs] end, [[T, T]]),
        ?FOUND("Y > 0", fun(Xs) -> [Y || Y <- Xs, Y > 0] end, [[T, T]]),
        ?FOUND("Y > 0", fun(Xs) -> lists:map(fun(Y) -> if Y > 0 -> Y; true -> 0 end end, Xs) end, [[T, T]]),
        ?FOUND("S > 1", fun(Xs) -> lists:foldl(fun(X, S) when S > 1 -> X; (X, S) -> tessera:add(X, S) end, hd(Xs), Xs) end,
               [[T, T]]),
        ?FOUND("I < 5", fun(X) -> tessera:while(X, fun(I) -> I < 5 end, fun(I) -> tessera:add(I, 1) end) end, [T]),
        ?FOUND("I > N", fun(N) -> tessera:while({0, N}, fun(_) -> 1 end, fun({I, _}) -> {I > N, N} end) end, [T]),
        ?FOUND("A > B", fun(X) -> tessera:reduce(X, 0, fun(A, B) -> if A > B -> A; true -> B end end) end, [V]),
        ?FOUND("G > 0", fun(X) -> G = (tessera:grad(fun(Y) -> tessera:sum(Y) end))(X), if G > 0 -> G; true -> 0 end end, [V]),
        ?FOUND("Y > 0", fun(X) -> (tessera:jit(fun(Y) -> if Y > 0 -> Y; true -> 0 end end))(X) end, [T]),
        ?FOUND("C > 0", fun(X) -> C = tessera:'cond'(X, fun() -> 1 end, fun() -> X end), C > 0 end, [T]),
        ?FOUND("P > 0", fun(X) -> [P | _] = tessera:split(X, [1, 2]), P > 0 end, [V]),
        ?FOUND("Y > 0", fun(X, Mode) -> case Mode of soft -> Y = X; _ -> Y = tessera:exp(X) end, Y > 0 end, [T, 3]),
        ?FOUND("Y > 0", fun(X) -> F = fun Again(Y) -> if Y > 0 -> Y; true -> Again(Y) end end, F(X) end, [T]),
        ?FOUND("X > 0", fun(X) -> try X > 0 of true -> 1; false -> 2 catch _:_ -> 0 after ok end end, [T]),
        ?FOUND("'>'(X, 0)", fun(X) -> erlang:'>'(X, 0) end, [T])]].

found(Line, Words, F, Args) ->
    Findings = findings(F, Args),
    ?assertMatch([_ | _], Findings),
    [begin
         ?assertMatch({{_, Line}, _, _, _}, Finding),
         ?assertEqual("tessera_tracing_tests.erl", filename:basename(File))
     end || {{File, _}, _, _, _} = Finding <- Findings],
    ?assertEqual([Words], [Words || {_, _, Text, _} <- Findings, string:find(Text, Words) =/= nomatch]),
    Compiled = compiled_findings(F, Args),
    ?assertMatch({_, [_ | _]}, {Line, Compiled}),
    [?assertMatch({{compiled, {_, Begin}, _}, _, _, _} when Begin =< Line, Finding) || Finding <- Compiled].


%% Through functions of the module, on their lines.
positive(X) when X > 0 -> tessera:log(X);
positive(_) -> 0.

helper(X, N) -> positive(tessera:multiply(X, N)).

external(X) -> helper(X, 2).

through_functions_test() ->
    [{{_, Line}, comparison, "X > 0", greater}] = findings(fun ?MODULE:external/1, [1.0]),
    ?assertEqual([{{file(), Line}, comparison, "X > 0", greater}], findings(fun external/1, [1.0])),
    ?assertEqual([{{file(), Line}, comparison, "X > 0", greater}],
                 findings(fun(X) -> external(tessera:exp(X)) end, [1.0])).

file() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(?MODULE), [abstract_code]),
    hd([File || {attribute, _, file, {File, _}} <- Forms]).

%% Which of several funs on one line it is, the compiler knows.
funs_of_one_line_test() ->
    T = tessera:tensor(1),
    [Bad1, Good1, Bad2, Good2] = [fun(X) -> X > 1 end, fun(X) -> tessera:exp(X) end, fun(X) -> X > 3 end, fun(X) -> X end],
    ?assertMatch([{_, comparison, "X > 1", _}], findings(Bad1, [T])),
    ?assertMatch([{_, comparison, "X > 3", _}], findings(Bad2, [T])),
    ?assertEqual([], findings(Good1, [T])),
    ?assertEqual([], findings(Good2, [T])).

%% ---- no warning about terms that are known while tracing

quiet_test_() ->
    T = tessera:tensor(1.0),
    V = tessera:iota({3}, f32),
    [{lists:concat(["line ", Line]), [?_assertEqual([], findings(F, Args)), ?_assertEqual([], compiled_findings(F, Args))]}
     || {Line, F, Args} <- [
        {?LINE, fun(X) -> case tessera:shape(X) of {} -> X; {N} when N > 2 -> X; {3} -> 1 end end, [V]},
        {?LINE, fun(X) -> S = tessera:shape(X), if element(1, S) > 2 -> X; true -> 0 end end, [V]},
        {?LINE, fun(X) -> N = tessera:axis_size(X, 0), if N > 2, N rem 2 == 1 -> lists:seq(1, N); true -> [] end end, [V]},
        {?LINE, fun(X) -> case tessera:rank(X) of 0 -> X; 1 -> tessera:sum(X) end end, [V]},
        {?LINE, fun(X) -> case tessera:type(X) of f32 -> X; _ -> tessera:as_type(X, f32) end end, [V]},
        {?LINE, fun(X) -> case tessera:size(X) == 1 of true -> X; false -> tessera:sum(X) end end, [V]},
        {?LINE, fun(Xs) -> if length(Xs) > 1 -> hd(Xs); true -> 0 end end, [[T, T]]},
        {?LINE, fun(Xs) -> case Xs of [] -> 0; [X] -> X; [X, Y | _] -> tessera:add(X, Y) end end, [[T, T]]},
        {?LINE, fun({A, B}) -> case {A, B} of {X, Y} -> tessera:add(X, Y) end end, [{T, T}]},
        {?LINE, fun(#{a := A} = M) -> case M of #{b := B} -> tessera:add(A, B); _ -> A end end, [#{a => T}]},
        {?LINE, fun(X, Bias) -> case Bias of none -> X; _ -> tessera:add(X, Bias) end end, [T, T]},
        {?LINE, fun(X, Bias) when Bias =:= undefined -> X; (X, Bias) -> tessera:add(X, Bias) end, [T, T]},
        {?LINE, fun(X, Bias) -> if Bias == none; Bias /= [] -> X; true -> tessera:add(X, Bias) end end, [T, T]},
        {?LINE, fun(X, Mask) -> case Mask of false -> X; _ -> tessera:multiply(X, Mask) end end, [T, T]},
        {?LINE, fun(X, Mode) -> case Mode of train -> X; _ when X > 0 -> 0 end end, [T, train]},
        {?LINE, fun(X, {dropout, Rate}) when Rate > 0 -> X; (X, none) -> X end, [T, none]},
        {?LINE, fun(X) when is_number(X), X > 0 -> X; (X) -> tessera:abs(X) end, [T]},
        {?LINE, fun(X) when is_tuple(X); X > 0 -> X end, [T]},
        {?LINE, fun(X) -> case tessera:is_tensor(X) of true -> X; false when X > 0 -> 0 end end, [T]},
        {?LINE, fun(X) when is_record(X, tessera) -> X; (X) when X > 0 -> 1 end, [T]},
        {?LINE, fun(#tessera{} = X) -> X; (X) -> X + 1 end, [T]},
        {?LINE, fun(X) -> case is_list(X) of true -> hd(X) > 0; false -> X end end, [T]},
        {?LINE, fun(X) -> lists:foldl(fun tessera:add/2, 0, [tessera:exp(X) || N <- lists:seq(1, 9), N > 5]) end, [T]},
        {?LINE, fun(X) -> F = fun F(_, 0) -> X; F(Y, N) when N > 0 -> F(tessera:add(Y, 1), N - 1) end, F(X, 5) end, [T]},
        {?LINE, fun(X) -> lists:foldl(fun(I, S) when I > 2 -> tessera:add(S, I); (_, S) -> S end, X, [1, 3]) end, [T]},
        {?LINE, fun(Layers) -> [case B of none -> W; _ -> tessera:add(W, B) end || {W, B} <- Layers] end, [[{T, none}, {T, T}]]},
        {?LINE, fun(L) -> #layer{size = S, weights = W} = L, if S > 0 -> W; true -> 0 end end, [#layer{weights = T}]},
        {?LINE, fun(X) -> case get(undefined_key) of undefined -> X; N when N > 0 -> N end end, [T]},
        {?LINE, fun(X, F) -> Y = F(X), if Y > 0 -> X; true -> 0 end end, [T, fun(_) -> 1 end]},
        {?LINE, fun(X) -> Y = other:function(X), if Y > 0 -> X; true -> 0 end end, [T]},
        {?LINE, fun(X) -> try X of Y -> Y catch error:N when N > 3 -> 0; throw:4 -> 1 end end, [T]},
        {?LINE, fun(X) -> M = maps:map(fun(_, V1) -> V1 end, #{a => X}), case M of #{a := 0} -> 1; Y -> Y end end, [T]},
        {?LINE, fun(X) -> <<N:8, _/binary>> = <<5, 1>>, if N > 2 -> X; true -> 0 end end, [T]},
        {?LINE, fun(X, Y) -> case {X, Y} of {Z, Z} -> Z; _ -> Y end end, [T, T]}]].

%% ---- which functions are warned of, and when

warnings_test_() ->
    {foreach, fun listen/0, fun ignore/1,
     [fun(_) -> {"once", fun logs_once/0} end, fun(_) -> {"switched off", fun switched_off/0} end,
      fun(_) -> {"at the first call", fun logs_at_first_call/0} end, fun(_) -> {"interpreted", fun interpreted/0} end,
      fun(_) -> {"all that take functions", fun everywhere/0} end,
      fun(_) -> {"compiled code", fun compiled_code/0} end,
      fun(_) -> {"no code", fun not_searched/0} end, fun(_) -> {"a new version", fun new_version/0} end]}.

%% This module's handler gets the log; the default one, if there is one, prints nothing.
listen() ->
    {ok, _} = application:ensure_all_started(tessera),
    Level = case logger:get_handler_config(default) of
                {ok, #{level := Set}} ->
                    ok = logger:set_handler_config(default, level, emergency),
                    Set;
                {error, _} -> none
            end,
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    Level.

ignore(Level) ->
    ok = logger:remove_handler(?MODULE),
    ok = case Level of
             none -> ok;
             _ -> logger:set_handler_config(default, level, Level)
         end.

%% Called by logger.
log(#{level := warning, msg := {Format, Args}}, #{config := Pid}) ->
    Pid ! {warning, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(#{level := error, msg := Message}, #{config := Pid}) -> Pid ! {error, Message};
log(_, _) -> ok.

%% The log with this module's name or that word. EUnit runs a test in another process than its set-up.
logged(F) -> logged(F, "tessera_tracing_tests").

logged(F, Word) ->
    ok = logger:update_handler_config(?MODULE, config, self()),
    ok = tessera_check:flush(),
    _ = received(),
    _ = F(),
    ok = tessera_check:flush(),
    [Text || Text <- received(), string:find(Text, Word) =/= nomatch].

received() ->
    receive {warning, Text} -> [Text | received()]
    after 0 -> []
    end.

logs_once() ->
    F = tessera:jit(fun(X) -> if X > 17 -> X; true -> 0 end end),
    [Text] = logged(fun() -> [F(N) || N <- [1, 2, 1.5]] end),
    [?assertNotEqual({Word, nomatch}, {Word, string:find(Text, Word)})
     || Word <- [lists:concat(["tessera_tracing_tests.erl:", ?LINE - 3]), "X > 17", "tessera:greater/2", "docs/tracing.md"]],
    ?assertEqual([], logged(fun() -> (tessera:jit(fun(X) -> tessera:add(X, 1) end))(1) end)).

logs_at_first_call() ->
    F = fun(X) -> if X > 18 -> X; true -> 0 end end,
    ?assertEqual([], logged(fun() -> tessera:jit(F) end)),
    ?assertMatch([_], logged(fun() -> (tessera:jit(F))(1) end)).

switched_off() ->
    ok = application:set_env(tessera, trace_warnings, false),
    try
        ?assertEqual([], logged(fun() -> (tessera:jit(fun(X) -> if X > 19 -> X; true -> 0 end end))(1) end))
    after
        ok = application:unset_env(tessera, trace_warnings)
    end.

%% A setting that makes no sense does not let the application start.
setting_test_() ->
    [{lists:flatten(io_lib:format("~p", [Value])), fun() -> refused(Value) end} || Value <- [yes, 1, undefined]].

refused(Value) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    _ = application:stop(tessera),
    ok = application:set_env(tessera, trace_warnings, Value),
    try
        {error, {{invalid_argument, Message}, _}} = application:start(tessera),
        ?assertNotEqual({Message, nomatch}, {Message, string:find(Message, "trace_warnings")})
    after
        ok = application:unset_env(tessera, trace_warnings),
        {ok, _} = application:ensure_all_started(tessera),
        ok = logger:set_primary_config(level, Level)
    end.

evaluated(Text, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, [Expr]} = erl_parse:parse_exprs(Tokens),
    {value, F, _} = erl_eval:expr(Expr, Bindings),
    F.

%% As the shell's.
interpreted() ->
    F = evaluated("fun(X) -> if X > 20 -> X; true -> 0 end end.", []),
    [Text] = logged(fun() -> (tessera:jit(F))(1) end, "X > 20"),
    ?assertNotEqual(nomatch, string:find(Text, "in an interpreted function")),
    ?assertMatch([{_, comparison, "W > 21", _}],
                 findings(evaluated("fun(X) -> case W > 21 of true -> X; false -> 0 end end.",
                                                  [{'W', tessera:tensor(1)}]), [1])),
    Static = evaluated("fun(X) -> case N > 21 of true -> X; false -> 0 end end.", [{'N', 3}]),
    ?assertEqual([], findings(Static, [1])),
    Named = evaluated("fun F(X) -> X > 22 end.", []),
    ?assertMatch([{_, comparison, "X > 22", _}], findings(Named, [tessera:tensor(1)])).

%% Every way to trace a function starts the search.
everywhere() ->
    X = tessera:tensor([1.0]),
    [?assertMatch([_ | _], logged(F))
     || F <- [fun() -> catch (tessera:grad(fun(Y) -> if Y > 31 -> tessera:sum(Y); true -> 0.0 end end))(X) end,
              fun() -> catch tessera:compile(fun(Y) -> if Y > 32 -> Y; true -> Y end end, [X]) end,
              fun() -> catch tessera:to_text(fun(Y) -> if Y > 33 -> Y; true -> Y end end, [X]) end,
              fun() -> catch tessera:explain(fun(Y) -> if Y > 34 -> Y; true -> Y end end, [X]) end,
              fun() -> catch tessera:while(0, fun(I) -> I < 35 end, fun(I) -> I end) end,
              fun() -> catch tessera:while(0, fun(_) -> 0 end, fun(I) -> if I < 36 -> I; true -> 0 end end) end,
              fun() -> catch tessera:reduce(X, 0.0, fun(A, B) -> if A < 37 -> B; true -> B end end) end,
              fun() ->
                  catch tessera:'cond'(1, fun() -> Y = tessera:exp(X), if Y > 38 -> 1; true -> 1 end end, fun() -> 1 end)
              end]].

%% Without debug_info the compiled code is searched.
compiled_code() ->
    in_module("-module(tracing_compiled).\n-export([f/1]).\nf(X) -> if X > 5 -> X; true -> 0 end.\n", [], fun(M) ->
        [Text] = logged(fun() -> [(tessera:jit(fun M:f/1))(N) || N <- [1, 2]] end, "tracing_compiled"),
        [?assertNotEqual({Word, Text, nomatch}, {Word, Text, string:find(Text, Word)})
         || Word <- ["tracing_compiled.erl, in f/1 from line 3 on: Tensor > 5 compares", "tessera:greater/2", "docs/tracing.md"]]
    end).

%% Where there is no code, that is said once for a module.
not_searched() ->
    ok = tessera_check:forget(),
    Cases = [{"since its file is not what was loaded", fun(_, File) -> ok = file:write_file(File, "no module") end},
             {"since it was not loaded from a file", fun(_, File) -> ok = file:delete(File) end},
             {"since it was not loaded from a file", fun from_memory/2}],
    [in_module(lists:concat(["-module(tracing_away", N, ").\n-export([f/1]).\nf(X) -> if X > 0 -> X; true -> 0 end.\n"]), [debug_info],
               fun(M) -> without_file(M, Words, Away) end)
     || {N, {Words, Away}} <- lists:zip([a, b, c], Cases)],
    ?assertEqual(none, receive {error, Message} -> Message after 0 -> none end).

without_file(M, Words, Away) ->
    ok = Away(M, code:which(M)),
    Text = logged(fun() ->
                          [_ = (tessera:jit(fun M:f/1))(N) || N <- [1, 1.5]],
                          (tessera:jit(fun(X) -> M:f(X) end))(1)
                  end, "tracing_away"),
    ?assertMatch({_, [_]}, {Text, Text}),
    [?assertNotEqual({Word, Text, nomatch}, {Word, Text, string:find(Text, Word)})
     || Word <- [lists:concat(["module ", M, " are not searched"]), Words, "docs/tracing.md"]].

%% Loaded as a module that a program compiles at run time.
from_memory(M, File) ->
    {ok, Beam} = file:read_file(File),
    ok = file:delete(File),
    {module, M} = code:load_binary(M, "nofile", Beam),
    _ = code:purge(M),
    ok.

%% A module that is loaded again is looked at again.
new_version() ->
    Head = "-module(tracing_version).\n-export([f/1]).\n",
    in_module(Head ++ "f(X) -> if X > 41 -> X; true -> 0 end.\n", [debug_info], fun(M) ->
        ?assertMatch([_], logged(fun() -> (tessera:jit(fun M:f/1))(1) end, "X > 41"))
    end),
    in_module(Head ++ "\nf(X) -> if X > 42 -> X; true -> 0 end.\n", [debug_info], fun(M) ->
        [Text] = logged(fun() -> (tessera:jit(fun M:f/1))(1) end, "X > 42"),
        ?assertNotEqual(nomatch, string:find(Text, "tracing_version.erl:4: "))
    end).

%% ---- functions that cannot be searched

in_module(Text, Options, F) ->
    Dir = tessera_test:temporary("tracing"),
    {match, [Name]} = re:run(Text, "-module\\(([a-z_]+)\\)", [{capture, all_but_first, list}]),
    File = filename:join(Dir, Name ++ ".erl"),
    ok = file:write_file(File, Text),
    {ok, Module} = compile:file(File, [{outdir, Dir}, report_errors | Options]),
    true = code:add_patha(Dir),
    {module, Module} = code:load_file(Module),
    try F(Module)
    after
        true = code:delete(Module),
        _ = code:purge(Module),
        true = code:del_path(Dir),
        ok = file:del_dir_r(Dir)
    end.

no_debug_info_test_() ->
    Key = [{debug_info_key, "key"}],
    [{Title, ?_test(in_module(?PLAIN, Options, fun(M) ->
                                                       ?assertMatch([{_, comparison, "Tensor > 0", greater}],
                                                                    findings(fun M:f/1, [tessera:tensor(1)])),
                                                       ?assertEqual([], findings(fun M:f/1, [none])),
                                                       ?assertEqual(1, tessera:to_number((tessera:jit(fun M:f/1))(1)))
                                               end))}
     || {Title, Options} <- [{"no debug_info", []}, {"encrypted", [encrypt_debug_info | Key]}, {"no lines", [no_line_info]},
                             {"older code", [r24]}]] ++
    [{"stripped", ?_test(in_module(?PLAIN, [debug_info], fun stripped/1))},
     {"not in the code path", fun elsewhere/0},
     {"funs", fun compiled_funs/0}].

stripped(M) ->
    File = code:which(M),
    {ok, _} = beam_lib:strip_files([File]),
    {module, M} = code:load_file(M),
    _ = code:purge(M),
    ?assertMatch([{{compiled, {_, 3}, "f/1"}, comparison, "Tensor > 0", greater}], findings(fun M:f/1, [tessera:tensor(1)])).

elsewhere() ->
    in_module(?PLAIN, [], fun(M) ->
        Dir = filename:dirname(code:which(M)),
        true = code:del_path(Dir),
        {module, M} = code:load_abs(filename:join(Dir, atom_to_list(M))),
        _ = code:purge(M),
        ?assertMatch([_], findings(fun M:f/1, [tessera:tensor(1)])),
        true = code:add_patha(Dir)
    end).

%% The search knows each variable in the environment of a compiled fun.
compiled_funs() ->
    Text = ["-module(tracing_funs).\n-export([f/2, g/0, h/0]).\n"
            "f(A, B) -> fun(X) -> if A > 1 -> X; true -> tessera:add(B, X) end end.\n"
            "g() -> fun(X) -> Y = tessera:exp(X), case Y of 3 -> X; _ when Y < 2; Y == 7.5 -> X end end.\n"
            "h() -> fun F(X) -> try tessera:to_number(X) of N when N > 3 -> F(N - 1); _ -> max(X, 1) catch _:_ -> 0 end end.\n"],
    in_module(lists:flatten(Text), [], fun(M) ->
        T = tessera:tensor(1.0),
        ?assertMatch([{{compiled, {_, 3}, "f/2"}, comparison, "Tensor > 1", greater}], findings(M:f(T, 1), [T])),
        ?assertEqual([], findings(M:f(1, T), [T])),
        %% Compilers turn a comparison round where that saves a jump.
        ?assertEqual(["2", "3", "7.5"], lists:sort([lists:last(string:split(Words, " ", all)) || {_, comparison, Words, _} <- findings(M:g(), [T])])),
        ?assertMatch([{_, comparison, "max(Tensor, 1)", max}], findings(M:h(), [T]))
    end).

no_code_test_() ->
    [{"the file is of another version", ?_test(in_module(?PLAIN, [debug_info], fun other_version/1))},
     {"no file", ?_test(in_module(?PLAIN, [debug_info], fun no_file/1))},
     {"a fun of a module that is gone", fun gone/0},
     {"no module", ?_assertEqual([], findings(fun no_such_module:f/1, [1]))}].

other_version(M) ->
    File = code:which(M),
    {ok, Beam} = file:read_file(File),
    {ok, M, Other} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{f, 1}]},
                                    {function, 2, f, 1, [{clause, 2, [{var, 2, '_'}], [], [{atom, 2, ok}]}]}], [debug_info]),
    ?assertMatch([_], findings(fun M:f/1, [tessera:tensor(1)])),
    ok = file:write_file(File, Other),
    ?assertEqual([], findings(fun M:f/1, [tessera:tensor(1)])),
    ok = file:write_file(File, binary:part(Beam, 0, 100)),
    ?assertEqual([], findings(fun M:f/1, [tessera:tensor(1)])).

no_file(M) ->
    File = code:which(M),
    {ok, Beam} = file:read_file(File),
    ok = file:delete(File),
    ?assertEqual([], findings(fun M:f/1, [tessera:tensor(1)])),
    ok = file:write_file(File, Beam).

gone() ->
    Text = "-module(tracing_gone).\n-export([f/0]).\nf() -> fun(X) -> X > 0 end.\n",
    F = in_module(Text, [debug_info], fun(M) -> M:f() end),
    ?assertEqual([], findings(F, [tessera:tensor(1)])).

%% Time and memory are bounded, for any arguments, environment and code.
bounded_test_() ->
    Deep = lists:foldl(fun(_, D) -> {D, D} end, tessera:tensor(1), lists:seq(1, 200)),
    Many = maps:from_list([{N, tessera:tensor(1)} || N <- lists:seq(1, 1000)]),
    [{"shared arguments", {timeout, 20, ?_assertEqual([], findings(fun(X) -> X end, [Deep]))}},
     {"a shared environment",
      {timeout, 20, ?_assertEqual([], findings(evaluated("fun(_) -> D end.", [{'D', Deep}]), [1]))}},
     {"a large argument", ?_assertEqual([], findings(fun(X) -> X end, [Many]))},
     {"improper", ?_assertEqual([], findings(fun([_ | X]) -> X end, [[1 | 2]]))},
     {"a function that calls itself", ?_assertEqual([], findings(fun endless/1, [1]))},
     {"one that does so twice", {timeout, 20, ?_assertEqual([], findings(fun twice/1, [[1]]))}},
     {"a large function", {timeout, 60, fun large_function/0}}].

endless(X) -> endless([X]).

twice(X) -> twice([1 | X]), twice([2 | X]), Y = [twice([N | X]) || N <- X], twice(Y).

large_function() ->
    Lines = [io_lib:format("X~b = tessera:add(X~b, X~b),~n", [N + 1, N, N]) || N <- lists:seq(0, 3000)],
    Text = iolist_to_binary(["-module(tracing_large).\n-export([f/1]).\nf(X0) -> ", Lines,
                             " if X3001 > 0 -> 1; true -> 2 end.\n"]),
    in_module(Text, [debug_info], fun(M) ->
        ?assertMatch([{{_, 3004}, _, _, _}], findings(fun M:f/1, [tessera:tensor(1)]))
    end).

%% Functions are also traced without the application.
stopped_test() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ok = application:stop(tessera),
    try ?assertEqual(ok, tessera_check:request(fun(X) -> X > 0 end, [1]))
    after
        {ok, _} = application:ensure_all_started(tessera),
        ok = logger:set_primary_config(level, Level)
    end.

%% Warnings of requested checks are logged before a stopping node ends.
at_the_end_test_() ->
    {timeout, 60, fun() ->
        Eval = ["{ok, _} = application:ensure_all_started(tessera),"
                "ok = logger:set_handler_config(default, level, emergency),"
                "Format = {logger_formatter, #{template => [msg, \"\\n\"]}},"
                "ok = logger:add_handler(x, logger_std_h, #{formatter => Format}),"
                "_ = (tessera:jit(fun ", atom_to_list(?MODULE), ":external/1))(1.0),"
                "io:format(\"{done}.~n\"), init:stop()."],
        {_, Text} = tessera_test:answer(tessera_test:vm([], Eval, [])),
        ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "X > 0 compares a tensor")})
    end}.

%% ---- errors: Tessera's instead of Erlang's if a traced value causes them

%% {Line, Code, Words, the next frames of the stacktrace, F, Args}: F is called while it is traced.
-define(RAISES(Words, Next, F, Args), {?LINE, failed_precondition, Words, Next, F, Args}).

%% Without the warnings about the same functions.
quietly(Tests) ->
    {setup, fun() -> application:set_env(tessera, trace_warnings, false) end,
     fun(_) -> application:unset_env(tessera, trace_warnings) end, Tests}.

errors_test_() ->
    T = tessera:iota({2}, f32),
    quietly([{lists:concat(["line ", Line]), fun() -> becomes_ours(Line, Code, Words, Next, tessera:jit(F), Args) end}
     || {Line, Code, Words, Next, F, Args} <- [
        ?RAISES([" + 1", "tessera:add/2"], any, fun(X) -> [X + 1] end, [T]),
        ?RAISES(["+ ", "tessera:add/2"], any, fun(X) -> [1 + X] end, [T]),
        ?RAISES(["f32[2] * 2", "tessera:multiply/2"], {erlang, '*'}, fun(X) -> [X * 2] end, [T]),
        ?RAISES([" / ", "tessera:divide/2"], any, fun(X) -> [X / X] end, [T]),
        ?RAISES(["s32[] div 2", "tessera:quotient/2"], {erlang, 'div'}, fun(X) -> [X div 2] end, [5]),
        ?RAISES(["s32[] rem 2", "tessera:remainder/2"], {erlang, 'rem'}, fun(X) -> [X rem 2] end, [5]),
        ?RAISES(["-f32[2]", "tessera:negate/1"], {erlang, '-'}, fun(X) -> [-X] end, [T]),
        ?RAISES(["s32[] bsl 1", "tessera:left_shift/2"], {erlang, 'bsl'}, fun(X) -> [X bsl 1] end, [5]),
        ?RAISES(["not f32[2]", "tessera:logical_not/1"], {erlang, 'not'}, fun(X) -> [not X] end, [T]),
        ?RAISES(["abs(f32[2])", "tessera:abs/1"], {erlang, abs}, fun(X) -> [abs(X)] end, [T]),
        ?RAISES(["round(f32[2])", "tessera:round/1"], {erlang, round}, fun(X) -> [round(X)] end, [T]),
        ?RAISES(["float(f32[2])", "tessera:as_type/2"], {erlang, float}, fun(X) -> [float(X)] end, [T]),
        ?RAISES(["math:sqrt(f32[2])", "tessera:sqrt/1"], {math, sqrt}, fun(X) -> [math:sqrt(X)] end, [T]),
        ?RAISES(["math:pow(f32[2], 2)", "tessera:pow/2"], {math, pow}, fun(X) -> [math:pow(X, 2)] end, [T]),
        ?RAISES(["0 + f32[2] in lists:sum/", "tessera:sum/1"], {erlang, '+'}, fun(X) -> [lists:sum([X, X])] end, [T]),
        ?RAISES(["lists:seq(1, s32[])", "tessera:shape/1", "tessera:while/3"], {lists, seq},
                fun(N) -> [lists:seq(1, N)] end, [5]),
        ?RAISES(["lists:duplicate(s32[], 0)"], {lists, duplicate}, fun(N) -> [lists:duplicate(N, 0)] end, [5]),
        ?RAISES(["element(s32[], {1,2})"], {erlang, element}, fun(N) -> [element(N, {1, 2})] end, [1]),
        ?RAISES(["length(f32[2])"], {erlang, length}, fun(X) -> [length(X)] end, [T]),
        ?RAISES(["`case'", "f32[2]", "tessera:'cond'/3"], here, fun(X) -> case X of 0 -> 1; 1 -> 2 end end, [T]),
        ?RAISES(["`case'", "{s32[],f32[2]}"], here,
                fun(X, Y) -> case {X, Y} of {0, _} -> 1; {1, _} -> 2 end end, [1, T]),
        ?RAISES(["`case'", "u8[]", "tessera:'cond'/3"], here,
                fun(X) -> case tessera:all(X) of true -> 1; false -> 2 end end, [T]),
        ?RAISES(["`if'", "tessera:'cond'/3"], here, fun(X) -> if X < 0 -> 1; X == 0 -> 2 end end, [T]),
        ?RAISES(["no clause", "f32[2]"], any, fun(X) when is_number(X) -> X end, [T]),
        ?RAISES(["no clause", "(s32[])"], any, fun({_, _} = X) -> X end, [1]),
        ?RAISES(["tessera_tracing_tests:number(f32[2])"], {?MODULE, number}, fun(X) -> [number(X)] end, [T]),
        ?RAISES(["`='", "f32[2]"], here, fun(X) -> 1 = X end, [T]),
        ?RAISES(["`='", "{f32[2],f32[2]}"], here, fun(X) -> {_, _, _} = pair(X) end, [T]),
        ?RAISES(["true or false", "tessera:'cond'/3"], here, fun(X) -> [X andalso true] end, [T]),
        ?RAISES(["filter"], any, fun(X) -> [Y || Y <- [1], tessera:any(X)] end, [T]),
        ?RAISES(["generator", "tessera:split/2"], any, fun(X) -> [Y || Y <- X] end, [T]),
        ?RAISES(["map"], any, fun(X) -> X#{a => 1} end, [T]),
        ?RAISES(["function is expected"], here, fun(X) -> X(1) end, [T]),
        ?RAISES(["binary"], here, fun(X) -> <<X:8>> end, [1]),
        ?RAISES(["`try'"], here, fun(X) -> try X of 1 -> 2 catch throw:_ -> 3 end end, [T]),
        {?LINE, invalid_argument, ["1 argument", "called with 2", "(f32[2], 1)"], here,
         fun(X) -> F = fun(A) -> A end, [F(X, 1)] end, [T]},
        ?RAISES(["f32[2] * 2"], {erlang, '*'}, fun(#{a := [X]}) -> lists:map(fun(Y) -> Y * 2 end, [X]) end,
                [#{a => [T]}])]]).

number(N) when is_number(N) -> N.

pair(X) -> {X, X}.

%% An error of Tessera, whose stacktrace continues with the original one and has the line.
becomes_ours(Line, Code, Words, Next, F, Args) ->
    try apply(F, Args) of
        Value -> ?assertEqual({error_at, Line}, {value, Value})
    catch error:{Actual, Message}:Trace ->
        ?assertEqual({Code, Message}, {Actual, Message}),
        [?assertNotEqual({Word, Message, nomatch}, {Word, Message, string:find(Message, Word)}) || Word <- Words],
        {match, [At]} = re:run(Message, "tessera_tracing_tests.erl:([0-9]+)", [{capture, all_but_first, list}]),
        Next =:= {?MODULE, number} orelse ?assertEqual(Line, at_line(Line, [{line, list_to_integer(At)}])),
        [{tessera, jit, _, _} | Original] = Trace,
        goes_on(Next, Line, Original),
        raises(Code, hd(Words), fun() -> apply(F, Args) end)
    end.

goes_on(any, _, _) -> ok;
goes_on(here, Line, [{?MODULE, _, _, Location} | _]) -> ?assertEqual(Line, at_line(Line, Location));
goes_on({Module, Function}, _, [{Module, Function, _, _} | _]) -> ok;
goes_on(Next, _, Original) -> ?assertEqual(Next, Original).

%% A function may have two lines.
at_line(Line, Location) ->
    case proplists:get_value(line, Location) of
        Next when Next =:= Line + 1 -> Line;
        At -> At
    end.

%% The error names the function that traces.
on_behalf_test_() ->
    X = tessera:tensor([1.0]),
    Words = ": Erlang cannot compute",
    quietly([{atom_to_list(Name), fun() -> raises(failed_precondition, atom_to_list(Name) ++ Words, F) end}
     || {Name, F} <- [{jit, fun() -> (tessera:jit(fun(Y) -> [1 + Y] end))(X) end},
                      {jit, fun() -> tessera:compile(fun(Y) -> [1 + Y] end, [X]) end},
                      {jit, fun() -> tessera:to_text(fun(Y) -> [1 + Y] end, [X]) end},
                      {jit, fun() -> tessera:explain(fun(Y) -> [1 + Y] end, [X]) end},
                      {grad, fun() -> (tessera:grad(fun(Y) -> [1 + Y] end))(X) end},
                      {grad, fun() -> (tessera:value_and_grad(fun(Y) -> [1 + Y] end))(X) end},
                      {while, fun() -> tessera:while(0, fun(I) -> [1 + I] end, fun(I) -> I end) end},
                      {while, fun() -> tessera:while(0, fun(_) -> 0 end, fun(I) -> [1 + I] end) end},
                      {reduce, fun() -> tessera:reduce(X, 0, fun(A, B) -> [A * B] end) end},
                      {'cond', fun() ->
                          (tessera:jit(fun(Y) -> tessera:'cond'(1, fun() -> [1 + Y] end, fun() -> 1 end) end))(X)
                      end},
                      {jit, fun() -> (tessera:jit(evaluated("fun(Y) -> 1 + Y end.", [])))(X) end}]] ++
            [fun() ->
                 F = tessera:jit(evaluated("fun({A, _}) -> A end.", [])),
                 raises(failed_precondition, "the call of the fun with (f32[1])", fun() -> F(X) end)
             end]).

%% A tensor of the function's environment has contents, which Erlang does not see either.
captured_test_() -> quietly([fun captured/0, fun comparison_in_loop/0]).

captured() ->
    W = tessera:tensor(1),
    raises(invalid_argument, "s32[] * 2", fun() -> (tessera:jit(fun(X) -> tessera:add(X, 2 * W) end))(1) end),
    raises(invalid_argument, "`case'", fun() -> (tessera:jit(fun(X) -> case W of 1 -> X end end))(1) end).

%% A comparison in a loop gives true or false at once.
comparison_in_loop() ->
    Loop = fun() -> tessera:while(0, fun(I) -> I < 5 end, fun(I) -> tessera:add(I, 1) end) end,
    raises(invalid_argument, "tessera:less/2", Loop).

%% Arithmetic whose operands are missing in errors of OTP 25.
unsaid_operands_test() ->
    raises(failed_precondition, "Erlang cannot compute", fun() -> (tessera:jit(fun(X) -> X + 1 end))(1) end),
    in_module("-module(tracing_unsaid).\n-export([f/1]).\nf(X) -> X + 1.\n", [], fun(M) ->
        raises(failed_precondition, "Erlang cannot compute", fun() -> (tessera:jit(fun M:f/1))(1) end)
    end).

%% Errors that are not about tensors are not changed, nor is their stacktrace.
unchanged_test_() ->
    T = tessera:iota({2}, f32),
    Zero = zero(),
    [{lists:concat(["line ", Line]), fun() -> passes(Class, Reason, Line, tessera:jit(F), [T]) end}
     || {Line, Class, Reason, F} <- [
        {?LINE, error, badarith, fun(_) -> [1 / Zero] end},
        {?LINE, error, badarith, fun(_) -> [2 * get(no_such_key)] end},
        {?LINE, error, badarg, fun(_) -> [abs(get(no_such_key))] end},
        {?LINE, error, badarg, fun(_) -> [list_to_integer(get_keys(no_such_value))] end},
        {?LINE, error, function_clause, fun(_) -> [number(get(no_such_key))] end},
        {?LINE, error, {case_clause, 0}, fun(X) -> case Zero of 1 -> X end end},
        {?LINE, error, if_clause, fun(X) -> if Zero > 1 -> X; Zero < 0 -> 1 end end},
        {?LINE, error, {badmatch, 0}, fun(_) -> 1 = Zero end},
        {?LINE, error, {badmap, 0}, fun(_) -> Zero#{a => 1} end},
        {?LINE, error, {badkey, a}, fun(_) -> map_get(a, #{b => Zero}) end},
        {?LINE, error, {some, reason}, fun(X) -> error({some, reason}, [X]) end},
        {?LINE, error, some_reason, fun(X) -> [X, error(some_reason)] end},
        {?LINE, throw, {case_clause, 1}, fun(_) -> throw({case_clause, 1}) end},
        {?LINE, exit, badarith, fun(_) -> exit(badarith) end}]].

zero() -> 0.

passes(Class, Reason, Line, F, Args) ->
    try apply(F, Args) of
        Value -> ?assertEqual({error_at, Line}, {value, Value})
    catch Class:Actual:Trace ->
        ?assertEqual(Reason, Actual),
        ?assertNotMatch([{tessera, _, _, _} | _], Trace),
        ?assertMatch([Line | _], [At || {?MODULE, Name, _, [{file, _}, {line, At} | _]} <- Trace, Name =/= number])
    end.

%% Nor where a function catches them itself.
caught_inside_test() ->
    F = tessera:jit(fun(X) -> try [1 * X] catch error:badarith -> tessera:add(X, 1) end end),
    ?assertEqual(3, tessera:to_number(F(2))).

%% An error of Tessera in a function of a function is not changed.
nested_test() ->
    raises(invalid_argument, "add", fun() ->
        (tessera:jit(fun(X) -> tessera:while(X, fun(_) -> 0 end, fun(I) -> tessera:add(I, foo) end) end))(1)
    end),
    raises(failed_precondition, "while: Erlang cannot compute", fun() ->
        (tessera:jit(fun(X) -> tessera:while(X, fun(I) -> tessera:less(I, 1) end, fun(I) -> [1 * I] end) end))(1)
    end).

%% ---- lines of Tessera's own errors

%% The message of the error of F ends with that line, and names no other one.
ends_at(Line, F) ->
    {error, {invalid_argument, Message}} = try F() of Value -> {value, Value} catch Class:Reason -> {Class, Reason} end,
    ?assertMatch({match, [[_]]}, re:run(Message, "tessera_tracing_tests\\.erl:[0-9]+", [global])),
    ?assertNotEqual(nomatch, re:run(Message, [", at [^ ]*tessera_tracing_tests\\.erl:", integer_to_list(Line), "$"])).

error_lines_test() ->
    Wide = tessera:ones({2, 4}),
    X = tessera:ones({2, 3}),
    %% in the middle, and at the end, where the function has no frame
    ends_at(?LINE + 1, fun() -> (tessera:jit(fun(A) ->
                                                     B = tessera:add(A, Wide),
                                                     tessera:exp(B) end))(X) end),
    ends_at(?LINE + 1, fun() -> (tessera:jit(fun(A) ->
                                                     tessera:dot(A, Wide) end))(X) end),
    %% in a function inside of another one, and of gradients
    Body = fun({A, I}) ->
                   {tessera:add(A, Wide), tessera:add(I, 1)} end,
    Line = ?LINE - 1,
    ends_at(Line, fun() -> (tessera:jit(fun(A) -> tessera:while({A, 0}, fun({_, I}) -> tessera:less(I, 3) end, Body) end))(X) end),
    ends_at(?LINE, fun() -> (tessera:grad(fun(A) -> tessera:dot(A, Wide) end))(X) end),
    %% functions of several ops
    ends_at(?LINE, fun() -> (tessera:jit(fun(A) -> {tessera:einsum("ii", [A])} end))(X) end),
    ends_at(?LINE, fun() -> (tessera:jit(fun(A) -> {tessera:softmax(A, #{axes => 7})} end))(X) end),
    %% outside of a traced function the message has no line: the stack has the caller's
    {error, {_, Message}} = try tessera:dot(X, Wide) catch Class:Reason -> {Class, Reason} end,
    ?assertEqual(nomatch, string:find(Message, ".erl")).

%% An error in a function of Tessera's own, which the gradient of a `cond' traces, has the line of the caller outside of it.
gradient_line_test() ->
    F = fun(X) ->
                tessera:'cond'(tessera:greater(X, 0),
                               fun() -> tessera:while(X, fun(Y) -> tessera:less(Y, 3) end, fun(Y) -> tessera:add(Y, 1) end) end,
                               fun() -> X end)
        end,
    [begin
         {error, {unimplemented, Message}} = try Call(), value catch Class:Reason -> {Class, Reason} end,
         ?assertEqual({match, [[lists:concat(["tessera_tracing_tests.erl:", Line])]]},
                      re:run(Message, "[a-z_]+\\.erl:[0-9]+", [global, {capture, all, list}]))
     end || {Line, Call} <- [{?LINE, fun() -> {(tessera:grad(F))(1.0)} end},
                             {?LINE, fun() -> (tessera:jit(fun(X) -> {(tessera:grad(F))(X)} end))(1.0) end}]].

%% A path may have any characters: what is in the message does not matter.
path_with_space_test() ->
    Text = "-module(tracing_path).\n-export([f/1]).\n-file(\"my own/user code.erl\", 1).\n"
           "f(X) ->\n    tessera:while(X, fun(_) -> 0 end, fun(Y) ->\n        {tessera:add(Y, foo)} end).\n",
    in_module(Text, [debug_info], fun(M) ->
        {error, {invalid_argument, Message}} = try (tessera:jit(fun(X) -> {M:f(X)} end))(1) catch Class:Reason -> {Class, Reason} end,
        ?assertMatch([_, <<"my own/user code.erl:", _>>], string:split(Message, ", at ", all))
    end).

%% The code of a module without debug_info is looked for once, and the function's name stands for its lines.
no_debug_info_line_test() ->
    Text = "-module(tracing_bare).\n-export([f/1, g/1]).\nf(X) -> tessera:sort(X).\ng(X) -> tessera:cumulative_sum(X).\n",
    in_module(Text, [], fun(M) ->
        Md5 = M:module_info(md5),
        Places = [{{last, {external, M, Md5, Name, 1, []}}, sort} || Name <- [f, g]],
        Counted = [{tessera_source, written, 1}, {tessera_flow_beam, code, 1}],
        [{{module, Module}, 1} = {code:ensure_loaded(Module), erlang:trace_pattern(Function, true, [call_count])} || {Module, _, _} = Function <- Counted],
        Known = tessera_tails:lines(Places, #{tessera => true}),
        ?assertEqual([{call_count, 1}, {call_count, 0}], [erlang:trace_info(Function, call_count) || Function <- Counted]),
        [1 = erlang:trace_pattern(Function, false, [call_count]) || Function <- Counted],
        ?assertEqual([{M, f, 1, undefined, 0}, {M, g, 1, undefined, 0}], [map_get(Place, Known) || Place <- Places]),
        Id = {external, M, Md5, f, 1, []},
        ?assertEqual(none, tessera_source:written(Id)),
        ?assertMatch(#{beam := _}, tessera_source:load(Id))
    end).

%% Ends of an `else' are ends of the function. (Older releases have no syntax for it.)
maybe_ends_test() ->
    Line = fun(Ends) ->
                   Call = fun(At, {Module, Name}) -> {call, At, {remote, At, {atom, At, Module}, {atom, At, Name}}, [{var, At, 'X'}]} end,
                   [Body, Else] = [Call(At, End) || {At, End} <- lists:zip([5, 7], Ends)],
                   Maybe = {'maybe', 4, [{maybe_match, 4, {atom, 4, ok}, Call(4, {another_module, test})}, Body], {'else', 6, [{clause, 7, [{var, 7, '_'}], [], [Else]}]}},
                   line_of_form(tracing_maybe, [{clause, 3, [{var, 3, 'X'}], [], [Maybe]}])
           end,
    ?assertEqual(3, Line([{tessera, exp}, {tessera, exp}])),
    ?assertEqual(7, Line([{tessera, sort}, {tessera, exp}])),
    ?assertEqual(5, Line([{tessera, exp}, {tessera, sort}])),
    ?assertEqual(3, Line([{tessera, exp}, {another_module, ends}])).

%% The line of the last call, one of tessera:exp/1, of a function f/1 with these clauses. The debug_info of its module has the clauses.
line_of_form(Module, Clauses) ->
    Head = [{attribute, 1, module, Module}, {attribute, 2, export, [{f, 1}]}],
    {ok, Module, Compiled} = compile:forms(Head ++ [{function, 3, f, 1, [{clause, 3, [{var, 3, '_'}], [], [{atom, 3, ok}]}]}], []),
    {ok, Module, Chunks} = beam_lib:all_chunks(Compiled),
    Info = {debug_info_v1, erl_abstract_code, {[{attribute, 1, file, {"maybe.erl", 1}} | Head] ++ [{function, 3, f, 1, Clauses}], []}},
    {ok, Beam} = beam_lib:build_module(lists:keystore("Dbgi", 1, Chunks, {"Dbgi", term_to_binary(Info)})),
    Dir = tessera_test:temporary("tracing"),
    File = filename:join(Dir, atom_to_list(Module)),
    ok = file:write_file(File ++ ".beam", Beam),
    {module, Module} = code:load_abs(File),
    try
        Place = {{last, {external, Module, Module:module_info(md5), f, 1, []}}, exp},
        #{Place := {Module, f, 1, "maybe.erl", Line}} = tessera_tails:lines([Place], #{tessera => true}),
        Line
    after
        true = code:delete(Module),
        _ = code:purge(Module),
        ok = file:del_dir_r(Dir)
    end.

%% The table of docs/gradients.md: each row is evaluated. test/nx/gradients_test.exs has the column of Nx.
-module(tessera_gradients_tests).
-include_lib("eunit/include/eunit.hrl").

rows_test_() ->
    Rows = rows(),
    [?_assert(length(Rows) > 35) |
     [{Function ++ " at " ++ At, ?_test(tessera_test:near(value(Expected), gradient(Function, value(At)), 1.0e-12))}
      || {Function, At, Expected} <- Rows]].

rows() ->
    {ok, Text} = file:read_file(filename:join([root(), "docs", "gradients.md"])),
    {match, Rows} = re:run(Text, "^\\| `([^`]*)` \\| `([^`]*)` \\| `([^`]*)` \\|", [global, multiline, {capture, all_but_first, list}]),
    [list_to_tuple(Row) || Row <- Rows].

root() ->
    Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    hd([Dir || Dir <- [filename:join([Here, "..", ".."]), "."], filelib:is_file(filename:join(Dir, "README.md"))]).

value(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

gradient(Function, At) ->
    {ok, Tokens, _} = erl_scan:string("fun(X) -> " ++ Function ++ " end."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, F, _} = erl_eval:exprs(Exprs, erl_eval:new_bindings()),
    tessera:to_list((tessera:grad(weighed(F)))(tessera:tensor(At, f64))).

%% The first result once, the second one twice, and so on.
weighed(F) ->
    fun(X) ->
            Results = tessera:flatten(F(X)),
            tessera:sum(tessera:multiply(Results, tessera:add(tessera:iota(tessera:shape(Results), f64), 1)))
    end.

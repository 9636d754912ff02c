%% The examples in the documentation are run: in comments of erl/*.erl, and in
%% README.md and docs/*.md between ```erlang and ```, every
%%
%%   1> Expression.
%%   Value
%%
%% between ``` and ''' is evaluated with the bindings of the earlier ones, and its value, or its output, must equal the
%% text. Elixir's examples are run with Nx, by test/nx/docs_test.exs.
-module(tessera_doc_tests).
-include_lib("eunit/include/eunit.hrl").
-export([capture/1]).

examples_test_() ->
    {ok, _} = application:ensure_all_started(tessera),
    Blocks = lists:flatmap(fun blocks/1, [tessera, tessera_random, tessera_mesh, tessera_io, tessera_stablehlo, tessera_events, tessera_metrics, tessera_profile, tessera_plot]),
    ?assert(length(Blocks) > 50),
    Pages = lists:flatmap(fun page/1, pages()),
    ?assert(length(Pages) > 0),
    {Lapack, Others} = lists:partition(fun needs_lapack/1, Blocks ++ Pages),
    ?assert(length(Lapack) > 0),
    [{timeout, 60, {Title, fun() -> tessera_eunit:on_host(fun() -> run(Examples, erl_eval:new_bindings()) end) end}}
     || {Title, Examples} <- Others ++ tessera_test:with_lapack("the examples of eig and schur", Lapack)].

needs_lapack({_, Examples}) -> lists:any(fun({Expression, _}) -> re:run(Expression, "tessera:(eig|schur)\\(") =/= nomatch end, Examples).

pages() ->
    Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    [Root | _] = [Dir || Dir <- [filename:join([Here, "..", ".."]), "."], filelib:is_file(filename:join(Dir, "README.md"))],
    [filename:join(Root, "README.md") | filelib:wildcard(filename:join([Root, "docs", "*.md"]))].

%% The same for a page.
page(File) ->
    {ok, Text} = file:read_file(File),
    case re:run(Text, "^```erlang\n(.*?)^```$", [global, multiline, dotall, {capture, all_but_first, list}, unicode]) of
        {match, Sessions} -> [{filename:basename(File), examples(string:split(Session, "\n", all))} || [Session] <- Sessions];
        nomatch -> []
    end.

%% {"tessera.erl:12", [{Expression, Expected}]} for each block.
blocks(Module) ->
    File = proplists:get_value(source, Module:module_info(compile)),
    {ok, Text} = file:read_file(File),
    Lines = lists:zip(lists:seq(1, length(binary:split(Text, <<"\n">>, [global]))),
                      [unicode:characters_to_list(L) || L <- binary:split(Text, <<"\n">>, [global])]),
    find(filename:basename(File), Lines, []).

find(File, [{N, "%% ```" ++ _} | Lines], Blocks) ->
    {Block, [_ | Rest]} = lists:splitwith(fun({_, Line}) -> not lists:prefix("%% '''", Line) end, Lines),
    Title = lists:flatten(io_lib:format("~s:~b", [File, N])),
    find(File, Rest, [{Title, examples([strip(Line) || {_, Line} <- Block])} | Blocks]);
find(File, [_ | Lines], Blocks) -> find(File, Lines, Blocks);
find(_, [], Blocks) -> lists:reverse(Blocks).

strip("%% " ++ Line) -> Line;
strip("%%" ++ Line) -> Line.

%% A prompt may have further lines with the same number; the next lines are the value.
examples([]) -> [];
examples([Line | Lines]) ->
    {Prompt, First} = prompt(Line),
    {More, Rest} = lists:splitwith(fun(L) -> lists:prefix(Prompt, L) end, Lines),
    {Expected, Later} = lists:splitwith(fun(L) -> prompt(L) =:= none end, Rest),
    Expression = lists:append([First | [[$\n | element(2, prompt(L))] || L <- More]]),
    [{Expression, string:trim(lists:append(lists:join("\n", Expected)))} | examples(Later)].

prompt(Line) ->
    case re:run(Line, "^([0-9]+>) (.*)$", [unicode, {capture, all_but_first, list}]) of
        {match, [Prompt, Expression]} -> {Prompt, Expression};
        nomatch -> none
    end.

run([], _) -> ok;
run([{Expression, Expected} | Examples], Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Expression),
    {ok, Forms} = erl_parse:parse_exprs(Tokens),
    {Printed, {value, Value, Bindings1}} = capture(fun() -> erl_eval:exprs(Forms, Bindings) end),
    case {Expected, Printed} of
        {"", _} -> ok;
        {_, ""} -> ?assertEqual({Expression, term(Expected)}, {Expression, Value});
        _ -> ?assertEqual({Expression, Expected}, {Expression, string:trim(Printed)})
    end,
    run(Examples, Bindings1).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% What F prints, and its value.
capture(F) ->
    Leader = group_leader(),
    Catcher = spawn_link(fun() -> catcher([]) end),
    group_leader(Catcher, self()),
    Value = try F() after group_leader(Leader, self()) end,
    Catcher ! {done, self()},
    receive {printed, Text} -> {Text, Value} end.

catcher(Printed) ->
    receive
        {io_request, From, As, {put_chars, unicode, Module, Function, Args}} ->
            From ! {io_reply, As, ok},
            catcher([unicode:characters_to_list(apply(Module, Function, Args)) | Printed]);
        {io_request, From, As, {put_chars, unicode, Text}} ->
            From ! {io_reply, As, ok},
            catcher([unicode:characters_to_list(Text) | Printed]);
        {io_request, From, As, getopts} ->
            From ! {io_reply, As, [{encoding, unicode}]},
            catcher(Printed);
        %% The shell asks before each further page.
        {io_request, From, As, {get_line, unicode, _}} ->
            From ! {io_reply, As, "y\n"},
            catcher(Printed);
        {io_request, From, As, _} ->
            From ! {io_reply, As, {error, enotsup}},
            catcher(Printed);
        {done, From} -> From ! {printed, lists:append(lists:reverse(Printed))}
    end.

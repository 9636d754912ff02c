#!/usr/bin/env escript
%%! -pa ebin
%% Runs the programs of StableHLO's repository that check themselves: DIR/stablehlo/testdata and DIR/stablehlo/tests/interpret. Each text is
%% changed so that @main returns what it checks; then Tessera compiles and runs it. Prints how many pass, how many differ by more than the
%% check allows but by less than 1e-3 or two steps of a type of 16 bits ("near"), which are refused and why, and which are wrong. The exit
%% status is 1 if any is wrong. More arguments are words that names of files contain.
-mode(compile).
main([Dir | Words]) ->
    Files = [File || Sub <- ["stablehlo/testdata", "stablehlo/tests/interpret"],
                     File <- lists:sort(filelib:wildcard(filename:join([Dir, Sub, "*.mlir"]))),
                     Words =:= [] orelse lists:any(fun(Word) -> string:find(File, Word) =/= nomatch end, Words)],
    Files =/= [] orelse (io:format("no programs in ~ts~n", [Dir]) =:= ok andalso halt(2)),
    {ok, _} = application:ensure_all_started(tessera),
    Results = lists:append([program_results(File) || File <- Files]),
    table(Results),
    halt(case [1 || {_, {wrong, _}} <- Results] of [] -> 0; _ -> 1 end);
main([]) ->
    io:format("usage: judge.escript DIR [WORD...]~n"), halt(2).

%% A file has several programs, or one.
program_results(File) ->
    {ok, Text} = file:read_file(File),
    Parts = [Part || Part <- re:split(Text, "\n// -----[^\n]*\n"), re:run(Part, "check\\.(expect_|eq)") =/= nomatch],
    [{io_lib:format("~ts:~b", [filename:basename(File), Index]), result(Part)} || {Index, Part} <- lists:zip(lists:seq(1, length(Parts)), Parts)].

result(Part) ->
    try changed(Part) of
        {Text, Checks} -> run(Text, Checks)
    catch throw:Reason -> {refused, Reason}
    end.

%% ---- the text

changed(Part) ->
    {WithConstants, Checks} = checks(Part),
    Checks =/= [] orelse throw("a check that this program does not know"),
    Values = lists:append([[A, B] || {_, A, B, _, _} <- Checks]),
    Types = lists:append([[T, U] || {_, _, _, T, U} <- Checks]),
    {At, _} = hd(lists:last([M || M <- matches(WithConstants, "func\\.func"), hd(M) < {byte_size(before_check(WithConstants)), 0}])),
    <<Front:At/binary, Function/binary>> = WithConstants,
    Header = re:replace(Function, "^func\\.func (public |private )?@[\\w\"$.-]+\\((.*?)\\)( ->.*?)?( attributes \\{[^\n]*?\\})? \\{ *\n",
                        ["func.func @main(\\2) -> (", lists:join(", ", Types), ") {\n"], [dotall]),
    Returned = re:replace(Header, "\n *(func\\.)?return[^\n]*", ["\n return ", lists:join(", ", Values), " : ", lists:join(", ", Types)]),
    {iolist_to_binary([Front, re:replace(Returned, "//MARK\n", "", [global])]), Checks}.

before_check(Text) -> hd(binary:split(Text, <<"//MARK">>)).

matches(Text, Pattern) ->
    case re:run(Text, Pattern, [global]) of {match, List} -> List; nomatch -> [] end.

%% Takes the checks out of the text. Constants to compare with become values.
checks(Text) ->
    Call = "stablehlo\\.custom_call @check\\.(expect_\\w+|eq)\\((%[\\w#]+), *(%[\\w#]+)\\) *(?:\\{[^\n]*?\\})? *: *\\((tensor<[^\n]*?>), (tensor<[^\n]*>)\\) -> \\(\\)",
    Constant = "check\\.(expect_eq|expect_almost_eq|expect_close)_const (%[\\w#]+),\\s*(dense<.*?>)(?:, [a-z_]+ = [^:\n]*)* : (tensor<[^\n]*>)",
    Two = "check\\.(expect_eq|expect_almost_eq|expect_close) (%[\\w#]+),\\s*(%[\\w#]+)(?:, [a-z_]+ = [^:\n]*)* : (tensor<[^\n]*?>)(?:, (tensor<[^\n]*>))? *(?=\n)",
    taken(Text, [{call, Call}, {constant, Constant}, {two, Two}], 0, []).

taken(Text, [], _, Checks) -> {Text, lists:reverse(Checks)};
taken(Text, [{Form, Pattern} | Rest], Index, Checks) ->
    case re:run(Text, Pattern, [dotall, {capture, all, index}]) of
        nomatch -> taken(Text, Rest, Index, Checks);
        {match, [{At, Length} | Groups]} ->
            <<Front:At/binary, _:Length/binary, Back/binary>> = Text,
            Found = [binary:part(Text, G) || G <- Groups],
            {Check, Instead} = check(Form, Found, Index),
            taken(iolist_to_binary([Front, Instead, "//MARK\n", Back]), [{Form, Pattern} | Rest], Index + 1, [Check | Checks])
    end.

check(call, [Name, A, B, T, U], _) -> {{Name, A, B, T, U}, ""};
check(constant, [Name, A, Dense, T], Index) ->
    B = ["%check", integer_to_list(Index)],
    {{Name, A, iolist_to_binary(B), T, T}, [B, " = stablehlo.constant ", Dense, " : ", T, "\n"]};
check(two, [Name, A, B, T], _) -> {{Name, A, B, T, T}, ""};
check(two, [Name, A, B, T, U], _) -> {{Name, A, B, T, U}, ""}.

%% ---- the run

run(Text, Checks) ->
    try (tessera_stablehlo:function(Text))([]) of
        Results -> worst(pairs(Results, Checks))
    catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {refused, reason(Message)};
          Class:Reason -> {wrong, io_lib:format("~p ~0p", [Class, Reason])}
    end.

pairs([A, B | Results], [Check | Checks]) -> [compared(A, B, Check) | pairs(Results, Checks)];
pairs([], []) -> [].

worst(Classes) -> hd([C || C <- Classes, is_tuple(C)] ++ [near || near <- Classes] ++ [passed]).

%% Without places, so that equal reasons are counted together.
reason(Message) -> re:replace(Message, "^stablehlo: (line \\d+, column \\d+|byte \\d+): ", "", [{return, list}]).

compared(A, B, {Name, _, _, Type, _}) ->
    Short = re:run(Type, "bf16|f16|f8") =/= nomatch,
    Numbers = lists:zip(flat(tessera:to_list(A)), flat(tessera:to_list(B))),
    Exact = Name =:= <<"expect_eq">> orelse Name =:= <<"eq">>,
    case lists:max([0.0 | [difference(X, Y) || {X, Y} <- Numbers]]) of
        D when D == 0.0 -> passed;
        D when not Exact, D < 1.0e-4 -> passed;
        D when D < 1.0e-3; Short, D < 2.0e-2 -> near;
        D -> {wrong, io_lib:format("differs by ~.3g", [min(D, 1.0e300)])}
    end.

flat(List) when is_list(List) -> lists:flatmap(fun flat/1, List);
flat({complex, X, Y}) -> [X, Y];
flat(X) -> [X].

difference(X, X) -> 0.0;
difference(X, Y) when is_number(X), is_number(Y) -> abs(X - Y) / (1.0 + min(abs(X), abs(Y)));
difference(_, _) -> 1.0e300.

%% ---- the table

table(Results) ->
    Count = fun(Class) -> length([1 || {_, R} <- Results, class(R) =:= Class]) end,
    io:format("~b programs: ~b passed, ~b near, ~b refused, ~b wrong~n", [length(Results) | [Count(C) || C <- [passed, near, refused, wrong]]]),
    Reasons = lists:foldl(fun({Name, {refused, Why}}, Map) -> maps:update_with(iolist_to_binary(Why), fun(L) -> [Name | L] end, [Name], Map);
                             (_, Map) -> Map
                          end, #{}, Results),
    [io:format("refused ~4b: ~ts (~ts)~n", [length(Names), string:slice(Why, 0, 110), lists:last(Names)])
     || {Why, Names} <- lists:sort(fun({_, A}, {_, B}) -> length(A) >= length(B) end, maps:to_list(Reasons))],
    [io:format("near: ~ts~n", [Name]) || {Name, near} <- Results],
    [io:format("wrong: ~ts: ~ts~n", [Name, Why]) || {Name, {wrong, Why}} <- Results].

class({Class, _}) -> Class;
class(Class) -> Class.

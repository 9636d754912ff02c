#!/usr/bin/env escript
%%! -pa ebin
%% Runs the programs of StableHLO's repository that check themselves: DIR/stablehlo/testdata, its quantized/, DIR/stablehlo/tests/interpret and
%% its chlo/. Each text is changed so that @main returns what it checks; then Tessera compiles and runs it. Prints how many pass StableHLO's own
%% checks, how many differ by more, but by less than 1e-3 or a few steps of a type of 16 bits ("near"), which are refused and why, and which
%% are wrong. The exit status is 1 if any is wrong. More arguments are words that names of files contain.
-mode(compile).
main([Dir | Words]) ->
    Files = [File || Sub <- ["stablehlo/testdata", "stablehlo/testdata/quantized", "stablehlo/tests/interpret", "stablehlo/tests/interpret/chlo"],
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
    Parts = [Part || Part <- re:split(Text, "\n(?:// *)?// -----[^\n]*\n"), re:run(Part, "check\\.(expect_|eq)") =/= nomatch],
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
    Eq = "%\\w+ = stablehlo\\.custom_call @check\\.eq\\((%[\\w#]+), *(%[\\w#]+)\\) *: *\\((tensor<[^\n]*?>), (tensor<[^\n]*>)\\) -> tensor<i1>",
    Options = "((?:, [a-z_]+ = [^:\n]*)*)",
    Constant = ["check\\.(expect_eq|expect_almost_eq|expect_close)_const (%[\\w#]+),\\s*(dense<.*?>)", Options,
                " : (tensor<[^\n{]*>)( \\{[^\n]*\\})?"],
    Generic = "\"check\\.(expect_eq|expect_almost_eq|expect_close)_const\"\\((%[\\w#]+)\\) <\\{value = (dense<.*?>) : (tensor<[^\n]*?>)\\}>[^\n]*",
    Two = ["check\\.(expect_eq|expect_almost_eq|expect_close) (%[\\w#]+),\\s*(%[\\w#]+)", Options,
           " : (tensor<[^\n]*?>)(?:, (tensor<[^\n]*>))? *(?=\n)"],
    taken(Text, [{call, Call}, {eq, Eq}, {constant, Constant}, {generic, Generic}, {two, Two}], 0, []).

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

check(call, [Name, A, B, T, U], _) -> {{call_rule(Name), A, B, T, U}, ""};
check(eq, [A, B, T, U], _) -> {{{almost, 1.0e-4}, A, B, T, U}, ""};
check(generic, [Name, A, Dense, T], Index) -> check(constant, [Name, A, Dense, "", T], Index);
check(constant, [Name, A, Dense, Options, T, More], Index) -> check(constant, [Name, A, Dense, [Options, More], T], Index);
check(constant, [Name, A, Dense, Options, T], Index) ->
    B = ["%check", integer_to_list(Index)],
    {{rule(Name, Options), A, iolist_to_binary(B), T, T}, [B, " = stablehlo.constant ", Dense, " : ", T, "\n"]};
check(two, [Name, A, B, Options, T], _) -> {{rule(Name, Options), A, B, T, T}, ""};
check(two, [Name, A, B, Options, T, U], _) -> {{rule(Name, Options), A, B, T, U}, ""}.

call_rule(<<"expect_close">>) -> {close, 3};
call_rule(<<"expect_almost_eq">>) -> {almost, 1.0e-3};
call_rule(_) -> equal.

rule(Name, Options) ->
    Number = case re:run(Options, "(?:tolerance|max_ulp_difference) = ([-0-9.e+]+)", [{capture, [1], list}]) of
                 {match, [Digits]} -> number(Digits);
                 nomatch -> none
             end,
    case Name of
        <<"expect_close">> -> {close, if Number =:= none -> 1; true -> Number end};
        <<"expect_almost_eq">> -> {almost, if Number =:= none -> 1.0e-4; true -> Number end};
        _ -> equal
    end.

number(Digits) ->
    try list_to_float(Digits) catch error:badarg -> list_to_integer(Digits) end.

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

%% What StableHLO's own interpreter allows: `close` counts the floats between two numbers (3 in a custom call), `almost` is a distance (1e-4,
%% 1e-3 in a custom call, or what the check says).
compared(A, B, {Rule, _, _, Type, _}) ->
    Numbers = lists:zip(flat(tessera:to_list(A)), flat(tessera:to_list(B))),
    Form = form(Type),
    case [Pair || {X, Y} = Pair <- Numbers, not allowed(Rule, Form, X, Y)] of
        [] -> passed;
        Others ->
            Near = fun({X, Y}) -> is_near(Form, X, Y) end,
            case Rule =/= equal andalso lists:all(Near, Others) of
                true -> near;
                false -> {wrong, io_lib:format("~b numbers differ, as ~0p", [length(Others), hd(Others)])}
            end
    end.

form(Type) -> hd([F || {Name, F} <- [{"bf16", bf16}, {"f16", 16}, {"f32", 32}, {"f64", 64}, {"", other}], string:find(Type, Name) =/= nomatch]).

%% NaNs are alike, and so are equal numbers, but `close` tells the zeros apart where it can.
allowed(_, _, X, X) -> true;
allowed(_, _, X, Y) when is_atom(X); is_atom(Y) -> false;
allowed(equal, _, X, Y) -> X == Y;
allowed({almost, Tolerance}, _, X, Y) -> X == Y orelse abs(X - Y) =< Tolerance;
allowed({close, Most}, Form, X, Y) -> X == Y orelse steps(Form, X, Y) =< Most.

%% Not what the check asks for, but no wrong number either: 1e-3 of the number, or two steps more of a short type.
is_near(_, X, Y) when is_atom(X); is_atom(Y) -> false;
is_near(Form, X, Y) when Form =:= 16; Form =:= bf16 -> abs(X - Y) / (1.0 + min(abs(X), abs(Y))) < 2.0e-2;
is_near(_, X, Y) -> abs(X - Y) / (1.0 + min(abs(X), abs(Y))) < 1.0e-3.

%% The number of floats from one to the other.
steps(Form, X, Y) -> abs(place(Form, X) - place(Form, Y)).

place(bf16, X) -> place(32, X) bsr 16;
place(Bits, X) when is_integer(Bits) ->
    case <<X:Bits/float>> of
        <<0:1, Place:(Bits - 1)>> -> Place;
        <<1:1, Place:(Bits - 1)>> -> -Place
    end.

flat(List) when is_list(List) -> lists:flatmap(fun flat/1, List);
flat({complex, X, Y}) -> [X, Y];
flat(X) -> [X].

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

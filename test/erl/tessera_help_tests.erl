%% What h/1,2,3 and ht/1,2 of the shell print for the public modules.
-module(tessera_help_tests).
-include_lib("eunit/include/eunit.hrl").

-define(PUBLIC, [tessera, tessera_random, tessera_transform, tessera_metrics]).

module_test_() ->
    [{atom_to_list(Module), fun() -> ?assertMatch([_, _ | _], paragraphs(help([Module]))) end} || Module <- ?PUBLIC].

%% Each entry is complete for a reader of the shell: a spec and below it a text that needs no other entry.
function_test_() ->
    [{lists:flatten(io_lib:format("~s:~s/~b", [Module, Name, Arity])), fun() -> check_entry([Module, Name, Arity]) end}
     || Module <- ?PUBLIC, {Name, Arity} <- Module:module_info(exports), Name =/= module_info].

check_entry(Function) ->
    case paragraphs(help(Function)) of
        ["-spec " ++ _, Text | _] ->
            ?assertEqual(nomatch, re:run(Text, "^There is no documentation", [unicode])),
            ?assertEqual(nomatch, re:run(Text, "^(The same|As |Likewise|Options?\\b|Type as|With |Without |Along |Over |Integers only)", [unicode]));
        Other -> ?assertEqual({Function, "a spec and a text"}, {Function, Other})
    end.

%% Its other exports are a server's callbacks.
cluster_test_() ->
    [?_assertMatch([_, _ | _], paragraphs(help([tessera_cluster]))) |
     [fun() -> check_entry([tessera_profile, Name, 1]) end || Name <- [table, chrome_trace, flame_graph]] ++
     [fun() -> check_entry([tessera_cluster | Function]) end || Function <- [[start_link, 1], [stop, 1], [info, 1], [put, 2], [map, 2]]]].

%% h/2 prints all arities, h/3 one.
arity_test() ->
    ?assertMatch({match, [_, _]}, re:run(help([tessera, full]), "-spec full\\(", [global])),
    ?assertMatch({match, [_]}, re:run(help([tessera, full, 2]), "-spec full\\(", [global])).

type_test() ->
    Types = help_type([tessera]),
    [?assertMatch({match, _}, re:run(Types, "-type " ++ atom_to_list(Type) ++ "\\(\\)"))
     || Type <- [type, shape, tensor, operand, reduce_options]],
    [?assertEqual({Type, nomatch}, {Type, re:run(help_type([tessera, Type]), "There is no documentation")})
     || Type <- [type, shape, tensor, operand, reduce_options]].

help(Arguments) -> printed(h, Arguments).

help_type(Arguments) -> printed(ht, Arguments).

printed(Function, Arguments) ->
    {Printed, ok} = tessera_doc_tests:capture(fun() -> apply(c, Function, Arguments) end),
    %% without bold and underlined
    re:replace(Printed, "\\e\\[[0-9;]*m", "", [global, unicode, {return, list}]).

%% Of a text, with lines joined.
paragraphs(Text) ->
    [lists:append(lists:join(" ", string:lexemes(Paragraph, "\n ")))
     || Paragraph <- re:split(Text, "\n *\n", [unicode, {return, list}]), string:trim(Paragraph) =/= ""].

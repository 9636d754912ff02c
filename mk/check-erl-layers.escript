#!/usr/bin/env escript
%% Checks the layers of erl/ (docs/architecture.md): a module refers to modules of its own folder and of those before it in
%% the Makefile's list, and no more than four modules refer to each other, all in one folder. Reads the beams in ebin/: calls, funs,
%% functions that are named for apply, spawn and the like, types, and behaviours.
%% usage: mk/check-erl-layers.escript [all], with `all' prints the references between folders, too.
-mode(compile).

-define(MAX_CYCLE, 4).

main(Args) ->
    Layers = layers(),
    Folders = maps:from_list([{module(File), folder(File)} || File <- filelib:wildcard("erl/*/*.erl")]),
    Beams = filelib:wildcard("ebin/*.beam"),
    Beams =/= [] orelse fail("there is nothing in ebin/: make builds it"),
    Missing = maps:keys(Folders) -- [module(Beam) || Beam <- Beams],
    Missing =:= [] orelse fail(io_lib:format("no beam of ~0p: make builds them", [Missing])),
    Unknown = [Folder || Folder <- lists:usort(maps:values(Folders)), not lists:member(Folder, Layers)],
    Unknown =:= [] orelse fail(io_lib:format("no such layer: ~0p", [Unknown])),
    Own = maps:merge(maps:from_list([{module(Beam), "nx"} || Beam <- Beams, is_elixir(Beam)]), Folders),
    References = lists:usort(lists:append([references(Beam, Own) || Beam <- Beams, is_map_key(module(Beam), Own)])),
    Upward = [io_lib:format("~s (~s) may not refer to ~s (~s): ~s~n", [From, folder_of(From, Own), To, folder_of(To, Own), What])
              || {From, To, What} <- References, order(From, Own, Layers) < order(To, Own, Layers)],
    Cycles = [cycle(Cycle) || Cycle <- components(References), is_wrong(Cycle, Own)],
    Args =:= ["all"] andalso between(References, Own),
    io:put_chars([Upward, Cycles]),
    halt(min(1, length(Upward) + length(Cycles))).

layers() ->
    {ok, Makefile} = file:read_file("Makefile"),
    {match, [Layers]} = re:run(Makefile, "^ERL_LAYERS := (.*)$", [multiline, {capture, all_but_first, list}]),
    string:lexemes(Layers, " ").

fail(Text) ->
    io:format("layers: ~ts~n", [Text]),
    halt(1).

module(File) -> list_to_atom(filename:rootname(filename:basename(File))).
folder(File) -> filename:basename(filename:dirname(File)).
folder_of(Module, Own) -> map_get(Module, Own).
order(Module, Own, Layers) -> length(lists:takewhile(fun(Layer) -> Layer =/= folder_of(Module, Own) end, Layers)).
%% Elixir's modules come from files of other names.
is_elixir(Beam) -> lists:prefix("Elixir.Tessera", filename:basename(Beam)).

components(References) ->
    Graph = digraph:new(),
    _ = [digraph:add_vertex(Graph, Module) || {From, To, _} <- References, Module <- [From, To]],
    _ = [digraph:add_edge(Graph, From, To) || {From, To, _} <- References],
    [lists:sort(Component) || Component <- digraph_utils:strong_components(Graph), length(Component) > 1].

is_wrong(Cycle, Own) -> length(Cycle) > ?MAX_CYCLE orelse length(lists:usort([folder_of(M, Own) || M <- Cycle])) > 1.

cycle(Cycle) -> io_lib:format("~b modules refer to each other, at most ~b of one folder may: ~0p~n", [length(Cycle), ?MAX_CYCLE, Cycle]).

between(References, Own) ->
    Counts = lists:foldl(fun(Pair, Sums) -> maps:update_with(Pair, fun(N) -> N + 1 end, 1, Sums) end, #{},
                         [{folder_of(From, Own), folder_of(To, Own)} || {From, To, _} <- References]),
    [io:format("~s -> ~s: ~b~n", [From, To, Count]) || {{From, To}, Count} <- lists:sort(maps:to_list(Counts))].

%% ---- what a module refers to

references(Beam, Own) ->
    From = module(Beam),
    [{From, To, What} || {To, What} <- of_beam(Beam), To =/= From, is_map_key(To, Own)].

%% Elixir's modules have no abstract code in Erlang's form, but by Elixir's own library: of them the imports are read.
of_beam(Beam) ->
    Wanted = [imports | [abstract_code || not is_elixir(Beam)]],
    {ok, {_, Chunks}} = beam_lib:chunks(Beam, Wanted, [allow_missing_chunks]),
    Imports = [{M, function(F, A)} || {M, F, A} <- proplists:get_value(imports, Chunks)],
    case proplists:get_value(abstract_code, Chunks) of
        {raw_abstract_v1, Forms} -> Imports ++ lists:flatmap(fun of_form/1, Forms);
        _ -> Imports
    end.

function(Name, Arity) -> io_lib:format("~p/~p", [Name, Arity]).

of_form({attribute, _, behaviour, Module}) -> [{Module, "behaviour"}];
of_form({attribute, _, Kind, Type}) when Kind =:= spec; Kind =:= type; Kind =:= opaque; Kind =:= callback -> of_type(Type);
of_form({function, _, _, _, Clauses}) -> of_code(Clauses);
of_form(_) -> [].

of_type({remote_type, _, [{atom, _, Module}, {atom, _, Name}, Args]}) -> [{Module, io_lib:format("the type ~p", [Name])} | of_type(Args)];
of_type(Type) -> of_parts(fun of_type/1, Type).

%% Functions with a module, a function and a list of arguments at the end of theirs, or before that.
of_code({'fun', _, {function, {atom, _, Module}, {atom, _, Name}, {integer, _, Arity}}}) -> [{Module, function(Name, Arity)}];
of_code({call, _, {remote, _, {atom, _, application}, _}, Args}) -> of_code(Args); % names applications, as modules are named
of_code({call, _, {remote, _, {atom, _, Module}, Name}, Args}) ->
    [{Module, called(Name, Args)} || true] ++ of_applied(Args) ++ of_code(Name) ++ of_code(Args);
of_code({call, _, {atom, _, Name}, Args} = Call) ->
    of_applied(Args) ++ [{Module, "fun"} || {atom, _, Module} <- [hd(Args) || is_applying(Name), length(Args) > 1]]
        ++ of_parts(fun of_code/1, setelement(3, Call, []));
of_code({tuple, _, [_, _, _] = Parts} = Tuple) -> of_applied(Parts) ++ of_parts(fun of_code/1, Tuple);
of_code(Code) -> of_parts(fun of_code/1, Code).

is_applying(Name) -> lists:member(Name, [apply, spawn, spawn_link, spawn_monitor, spawn_opt]).

called({atom, _, Name}, Args) -> function(Name, length(Args));
called(_, _) -> "a function".

%% {Module, Function, [Arg, ...]}, as arguments one after the other, or in a tuple, as in a supervisor's child.
of_applied([{atom, _, Module}, {atom, _, Name}, {Kind, _, _} | _]) when Kind =:= cons -> [{Module, function(Name, n)}];
of_applied([{atom, _, Module}, {atom, _, Name}, {Kind, _, _, _} | _]) when Kind =:= cons -> [{Module, function(Name, n)}];
of_applied([{atom, _, Module}, {atom, _, Name}, {nil, _} | _]) -> [{Module, function(Name, 0)}];
of_applied([_ | Rest]) -> of_applied(Rest);
of_applied(_) -> [].

of_parts(Of, Tuple) when is_tuple(Tuple) -> of_parts(Of, tuple_to_list(Tuple));
of_parts(Of, [Head | Tail]) -> Of(Head) ++ of_parts(Of, Tail);
of_parts(_, _) -> [].

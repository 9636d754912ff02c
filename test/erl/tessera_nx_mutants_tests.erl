%% Expressions that no Nx makes: recorded programs with some of their terms changed, and such as are deep, wide or
%% huge. Each is read to a program with equal text and bytes, is left to other code, or is an error; and the memory
%% comes back. TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the expressions.
-module(tessera_nx_mutants_tests).
-include_lib("eunit/include/eunit.hrl").

%% ---- the outcomes of an expression

%% Raised is Erlang's error for a term without a clause.
outcome(Roots, Hooks) ->
    try read(tessera_nx_plain:read(Roots, Hooks, undefined))
    catch
        error:#{'__exception__' := true, message := Message} when is_binary(Message) -> error;
        error:Reason:Trace ->
            [Module | _] = [M || {M, _, _, _} <- Trace, lists:prefix("tessera", atom_to_list(M))],
            ?assertNot(lists:member({Module, Reason}, [{?MODULE, Reason}, {tessera_nif, Reason}])),
            raised
    end.

%% The same program as it is made, packed, and with types and shapes that are inferred anew.
read(undefined) -> other;
read({Expression, Sources}) when is_list(Sources) ->
    Text = tessera_nif:graph_text(tessera_nx_plain:program(Expression)),
    {Packed, <<_:128>>} = tessera_nx_plain:describe(Expression),
    ?assertEqual({unpacked, Text}, {unpacked, text(tessera_nif:expression_unpack(Packed))}),
    ?assertEqual({parsed, Text}, {parsed, text(tessera_nif:parse(Text))}),
    program.

text({error, _} = Error) -> Error;
text(Program) -> tessera_nif:graph_text(Program).

%% The kinds of outcomes, and that nothing of the expressions is left in memory when they are gone.
outcomes(Make, Numbers) ->
    Work = fun() -> exit({kinds, [outcome_of(Make, N) || N <- Numbers]}) end,
    _ = done(Work), % which makes what stays for good
    ok = tessera:clear_cache(),
    Before = tessera_test:blocks(),
    Kinds = done(Work),
    ok = tessera:clear_cache(),
    tessera_test:until_freed(fun() -> tessera_nif:live_blocks() =< Before end),
    lists:usort(Kinds).

outcome_of(Make, N) ->
    {Roots, Hooks} = Make(N),
    try outcome(Roots, Hooks)
    catch Class:Reason:Trace -> erlang:raise(Class, {number, N, Reason}, Trace)
    end.

done(Work) ->
    {Pid, M} = spawn_monitor(Work),
    receive
        {'DOWN', M, process, Pid, {kinds, Kinds}} -> Kinds;
        {'DOWN', M, process, Pid, Reason} -> error(Reason)
    end.

%% ---- mutants

mutants_test_() ->
    Seed = from_environment("TESSERA_RANDOM_SEED", 1),
    Count = from_environment("TESSERA_RANDOM_COUNT", 3000),
    {timeout, 120, {lists:concat(["seed ", Seed]), fun() -> mutants(Seed, Count) end}}.

mutants(Seed, Count) ->
    Groups = tessera_nx_replay_tests:programs(),
    Make = fun(N) ->
                   _ = rand:seed(exsss, {Seed, N, 0}),
                   mutant(Groups)
           end,
    ?assertEqual([error, other, program, raised], outcomes(Make, lists:seq(1, Count))).

from_environment(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

%% One of the recorded programs with up to three nodes changed; these may be nodes of other programs.
mutant(Groups) ->
    {_, Programs} = any(Groups),
    {_, Nodes, _, _, _, _, _} = Program = any(Programs),
    Numbers = [element(1, any(Nodes)) || _ <- lists:seq(1, rand:uniform(3))],
    Change = fun(N, Node, Table) ->
                     case lists:member(N, Numbers) of
                         true -> changed(Node, [Node | maps:values(Table)]);
                         false -> Node
                     end
             end,
    try tessera_nx_replay_tests:expression(Program, Change) of
        {Roots, _, _, Hooks} -> {one_in(20, fun() -> twisted(Roots, Roots) end, Roots), Hooks}
    catch error:_ -> mutant(Groups)   % a result is no tensor
    end.

changed(#{data := Data} = Node, Nodes) ->
    case rand:uniform(12) of
        1 -> Node#{type := twisted(maps:get(type, Node), Nodes)};
        2 -> Node#{shape := twisted(maps:get(shape, Node), Nodes)};
        3 -> Node#{vectorized_axes := twisted(maps:get(vectorized_axes, Node), Nodes)};
        4 -> Node#{data := Data#{op := twisted(maps:get(op, Data), Nodes)}};
        5 -> Node#{data := Data#{id := maps:get(id, maps:get(data, any(Nodes), #{}), odd())}};
        6 -> maps:remove(any(maps:keys(Node)), Node);
        7 -> Node#{data := maps:remove(any(maps:keys(Data)), Data)};
        8 -> any(Nodes);
        9 -> odd();
        _ -> Node#{data := Data#{args := twisted(maps:get(args, Data), Nodes)}}
    end;
changed(_, Nodes) -> any(Nodes).

%% The term with one item changed, removed or repeated.
twisted(List, Nodes) when length(List) > 0 ->
    {Before, [Item | After]} = lists:split(rand:uniform(length(List)) - 1, List),
    case rand:uniform(10) of
        1 -> Before ++ After;
        2 -> Before ++ [Item, Item | After];
        3 -> Before ++ Item;
        4 -> Before ++ [[Item] | After];
        5 -> Before ++ [odd() | After];
        6 -> odd();
        _ -> Before ++ [twisted(Item, Nodes) | After]
    end;
twisted(Tuple, Nodes) when is_tuple(Tuple) ->
    try list_to_tuple(twisted(tuple_to_list(Tuple), Nodes)) catch error:badarg -> odd() end;
twisted(Node, Nodes) when is_map(Node) -> one_in(3, fun() -> odd() end, any(Nodes));
twisted(N, _) when is_integer(N) -> any([N - 1, N + 1, -N, N bsl 31, N bsl 62, N bsl 63, N bsl 64, N * 1.0, odd()]);
twisted(X, _) when is_float(X) -> any([-X, round(X), odd()]);
twisted(Atom, Nodes) when is_atom(Atom) ->
    any([odd() | [Op || #{data := #{op := Op}} <- Nodes] ++ [Op || {Op, _} <- [{nil, 0}, {false, 0}, {elem, 0}]]]);
twisted(_, Nodes) -> any([odd() | Nodes]).

odd() ->
    any([[], {}, #{}, nil, x, -1, 0, 1, 1 bsl 40, 1 bsl 200, -(1 bsl 63), 0.0, -0.0, 1.0e308, nan, infinity, <<>>,
         <<1:3>>, <<0:64>>, "text", make_ref(), self(), fun any/1, [x | y], {x, y}, {tuple, 2}, {tuple, 0}, {tuple, 1 bsl 31},
         {tuple, 1 bsl 32}, {f, 32}, {f, 33}, {s, 64}, {c, 64}, {0}, {-1}, {1 bsl 40, 1 bsl 40}, {1 bsl 62},
         erlang:make_tuple(16, 1), erlang:make_tuple(17, 1), erlang:make_tuple(1000, 2), nested(7), nested(8),
         nested(9), nested(1000), #{data => x}, #{'__struct__' => 'Elixir.Nx.Tensor'}, [{x, 2}], [{x, -1}], [{x, 1 bsl 62}]]).

nested(Depth) -> lists:foldl(fun(_, Inner) -> [Inner] end, [], lists:seq(1, Depth)).

any(List) -> lists:nth(rand:uniform(length(List)), List).

one_in(N, F, Else) ->
    case rand:uniform(N) of
        1 -> F();
        _ -> Else
    end.


%% ---- deep, wide and huge

-define(MANY, 100000).

large_test_() ->
    X = parameter(0, {2}),
    [{timeout, 60, {Title, fun() -> ?assertEqual([Kind], outcomes(fun(_) -> {Roots(), []} end, [1])) end}}
     || {Title, Kind, Roots} <-
            [{"lists in lists", other, fun() -> [node(concatenate, {2}, [nested(?MANY), 0])] end},
             {"tuples in tuples", other, fun() -> [node(while, {2}, [repeat(fun(In) -> {In} end, X), X, X, X])] end},
             {"tuples of a tuple", other, fun() -> [node(exp, {2}, [repeat(fun(In) -> {In, In} end, 20, X)])] end},
             {"metadata of metadata", program, fun() -> [repeat(fun(In) -> node(metadata, {2}, [In, #{}]) end, X)] end},
             {"steps in a row", program, fun() -> [repeat(fun(In) -> node(add, {2}, [In, In]) end, X)] end},
             {"elements of elements", other, fun() -> [repeat(fun(In) -> node(elem, {2}, [In, 0]) end, X)] end},
             {"blocks in blocks", program, fun() -> [repeat(fun block/1, 2000, X)] end},
             {"a block of blocks", program, fun() -> [block(X, repeat(fun(In) -> block(X, In) end, 2000, X))] end},
             {"many operands", error, fun() -> [node(add, {2}, lists:duplicate(?MANY, X))] end},
             {"many parts", program, fun() -> [node(concatenate, {2 * ?MANY}, [lists:duplicate(?MANY, X), 0])] end},
             {"many results", program, fun() -> lists:duplicate(?MANY, X) end},
             {"many rules", program, fun() -> [node(constant, {}, [N / 7]) || N <- lists:seq(1, ?MANY div 10)] end},
             {"many forms", program, fun() -> [parameter(N, {N}) || N <- lists:seq(1, ?MANY)] end},
             {"a long list", error, fun() -> [node(transpose, {2}, [X, lists:seq(1, 10 * ?MANY)])] end},
             {"long names", error, fun() -> [node(exp, {2}, [X, lists:duplicate(100, binary:copy(<<0>>, ?MANY))])] end},
             {"bytes beyond 64 bits", error, fun() -> [parameter(0, {1 bsl 62, 1 bsl 62})] end},
             {"elements of no bytes", program, fun() -> [node(exp, {0, 1 bsl 40}, [parameter(0, {0, 1 bsl 40})])] end},
             {"more bytes than there are", program, fun() -> [node(exp, {1 bsl 50}, [parameter(0, {1 bsl 50})])] end},
             {"one id", program, fun() -> [repeat(fun(In) -> like(X, node(exp, {2}, [In])) end, 1000, X)] end}]].

repeat(F, X) -> repeat(F, ?MANY, X).

repeat(_, 0, X) -> X;
repeat(F, N, X) -> repeat(F, N - 1, F(X)).

block(X) -> block(X, node(exp, {2}, [parameter(0, {2})])).

block(X, Default) -> node(block, {2}, [#{'__struct__' => mine}, [X], Default, none]).

%% With the id of the other node.
like(#{data := #{id := Id}}, #{data := Data} = Node) -> Node#{data := Data#{id := Id}}.

parameter(Position, Shape) -> node(parameter, Shape, [Position]).

node(Op, Shape, Args) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', type => {f, 32}, shape => Shape, names => [], vectorized_axes => [],
      data => #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => Args, context => root}}.

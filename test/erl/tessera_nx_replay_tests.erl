%% Programs that test/nx/record.exs recorded with Nx, run through the plug without Nx: expression graphs are ordinary
%% maps.
-module(tessera_nx_replay_tests).
-include_lib("eunit/include/eunit.hrl").
-export([programs/0, expression/1, expression/2]).

-define(GROUPS, ["unary", "binary", "shape", "reductions", "control", "vectorized", "training", "callbacks",
                 "types", "edges", "order", "linalg", "nests"]).

replay_test_() ->
    [{timeout, 120, {Group, fun() -> replay_group(Group) end}} || Group <- ?GROUPS].

fixtures() ->
    Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    [Dir | _] = [D || D <- [filename:join([Here, "..", "nx", "fixtures"]), "test/nx/fixtures"], filelib:is_dir(D)],
    Dir.

%% Every program that does not call Elixir has a module whose parameters are the inputs that it uses, in their order.
mlir_test_() -> {timeout, 120, fun() -> [check_mlir(P) || {_, Programs} <- programs(), P <- Programs] end}.

check_mlir({Name, _, _, _, _, _, Calls} = Program) ->
    {Roots, Vars, _, _} = expression(Program),
    Options = [{hooks, maps:from_list([{Hook, fun(_) -> ok end} || {Hook, _} <- Calls])}],
    try tessera_nx_compiler:to_mlir(Vars, fun(_) -> list_to_tuple(Roots) end, Options) of
        #{mlir_module := Text, used_inputs := Used, output_container := Outputs} ->
            [Signature | _] = string:split(Text, " -> "),
            Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
            ?assertEqual({Name, [form(lists:nth(I + 1, Leaves)) || I <- Used]}, {Name, parameters(Signature)}),
            ?assertEqual({Name, lists:usort(Used)}, {Name, Used}),
            ?assertEqual({Name, length(Roots)}, {Name, tuple_size(Outputs)})
    catch error:#{message := Message} ->
            ?assertMatch({Name, <<"a function that calls Elixir", _/binary>>}, {Name, Message})
    end.

%% A leaf as MLIR writes its type: 2x3xf32.
form(Leaf) ->
    {Type, Shape} = tessera_nx_tensor:form(Leaf),
    iolist_to_binary([[[integer_to_list(D), $x] || D <- tuple_to_list(Shape)], mlir_type(atom_to_list(Type))]).

mlir_type("u" ++ Bits) -> ["ui", Bits];
mlir_type("s" ++ Bits) -> ["i", Bits];
mlir_type(Float) -> Float.

%% The parameters of the module, in its order.
parameters(Signature) ->
    [iolist_to_binary(hd(string:split(Part, ">"))) || Part <- tl(string:split(Signature, "tensor<", all))].

%% For other runners of the same programs.
programs() -> [{Group, consult(Group)} || Group <- ?GROUPS].

consult(Group) ->
    {ok, Programs} = file:consult(filename:join(fixtures(), Group ++ ".terms")),
    Programs.

%% A program's results as nodes, its variables, the bytes of its arguments' leaves, and the names of its hooks.
expression(Program) -> expression(Program, fun(_, Node, _) -> Node end).

%% The same with Change(Number, Node, Table of the earlier nodes) instead of each node.
expression({_, Nodes, Vars, Result, Inputs, _, Calls}, Change) ->
    Table = build(Nodes, Change),
    Bytes = [Binary || {tensor, _, _, Binary} <- Inputs],
    {tessera_nx_tensor:flatten(term(Result, Table)), term(Vars, Table), Bytes, lists:usort([Hook || {Hook, _} <- Calls])}.

replay_group(Group) ->
    Programs = consult(Group),
    ?assert(length(Programs) > 0),
    Failures = lists:append([failure(Program) || Program <- Programs]),
    ?assertEqual([], Failures).

failure(Program) ->
    try replay(Program) of
        [] -> [];
        Differences -> [{element(1, Program), Differences}]
    catch Class:Reason:Trace -> [{element(1, Program), Class, Reason, lists:sublist(Trace, 6)}]
    end.

%% What differs from the recording: nothing.
replay({Name, Nodes, Vars, Result, Inputs, Expected, Calls}) ->
    Table = build(Nodes),
    Self = self(),
    Hooks = maps:from_list([{Hook, fun(Value) -> Self ! {hook, Hook, leaves(Value)} end} || {Hook, _} <- Calls]),
    Fun = fun(_) -> term(Result, Table) end,
    [Output] = tessera_nx_compiler:jit({?MODULE, Name}, term(Vars, Table), Fun,
                                          [[fun() -> term(Input, Table) end || Input <- Inputs]], [{hooks, Hooks}]),
    compare(Expected, leaves(Output)) ++
        compare_calls([{Hook, Values} || {Hook, Values} <- Calls], received()).

received() ->
    receive {hook, Hook, Values} -> [{Hook, Values} | received()]
    after 0 -> []
    end.

compare_calls(Expected, Got) when length(Expected) =:= length(Got) ->
    lists:append([case HookE =:= HookG of
                      true -> compare(E, G);
                      false -> [{called, HookG, instead_of, HookE}]
                  end || {{HookE, E}, {HookG, G}} <- lists:zip(Expected, Got)]);
compare_calls(Expected, Got) -> [{calls, length(Got), expected, length(Expected)}].

%% ---- terms of Nx

%% Nodes come in the order of their making, so that each uses those before it.
build(Nodes) -> build(Nodes, fun(_, Node, _) -> Node end).

build(Nodes, Change) ->
    Contexts = maps:from_list([{C, {element(1, C), make_ref()}} || {_, _, _, _, _, _, C, _} <- Nodes, is_tuple(C)]),
    lists:foldl(fun(Node, Table) -> add_node(Node, Contexts, Table, Change) end, #{}, Nodes).

add_node({N, Op, Type, Shape, Names, Axes, Context, Args}, Contexts, Table, Change) ->
    Data = #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => term(Args, Table),
             context => maps:get(Context, Contexts, Context)},
    Table#{N => Change(N, tensor(Type, Shape, Names, Axes, Data), Table)}.

tensor(Type, Shape, Names, Axes, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => Type, shape => Shape, names => Names,
      vectorized_axes => Axes, 'donatable?' => false}.

term({node, N}, Table) -> maps:get(N, Table);
term({tensor, Type, Shape, Binary}, _) ->
    tensor(Type, Shape, lists:duplicate(tuple_size(Shape), nil), [],
           #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => Binary});
term({template, Type, Shape, Names, Axes}, _) ->
    tensor(Type, Shape, Names, Axes, #{'__struct__' => 'Elixir.Nx.TemplateBackend'});
term({callback, Name}, _) -> fun(Argument, Options) -> callback(Name, Argument, Options) end;
term(List, Table) when is_list(List) -> [term(Item, Table) || Item <- List];
term(Tuple, Table) when is_tuple(Tuple) -> list_to_tuple(term(tuple_to_list(Tuple), Table));
term(Map, Table) when is_map(Map) -> maps:map(fun(_, Value) -> term(Value, Table) end, Map);
term(Other, _) -> Other.

%% What runtime_calls call, by the names of Recorder.Callbacks.
callback(scaled, #{type := {f, 32}, data := #{state := Binary} = Data} = T, [{by, Factor}]) ->
    T#{data := Data#{state := << <<(X * Factor):32/float-native>> || <<X:32/float-native>> <= Binary >>}};
callback(swapped, {A, B}, []) -> {B, A}.

%% ---- results

leaves(#{'__struct__' := 'Elixir.Nx.Tensor', data := Data, type := Type, shape := Shape, vectorized_axes := Axes}) ->
    [{tensor, Type, list_to_tuple([D || {_, D} <- Axes] ++ tuple_to_list(Shape)), bytes(Data)}];
leaves(Tuple) when is_tuple(Tuple) -> lists:append([leaves(T) || T <- tuple_to_list(Tuple)]);
leaves(Map) when is_map(Map) -> lists:append([leaves(T) || {_, T} <- lists:sort(maps:to_list(Map))]).

bytes(#{'__struct__' := 'Elixir.Nx.BinaryBackend', state := Binary}) -> Binary;
bytes(#{'__struct__' := 'Elixir.Tessera.Backend', buffer := Buffer}) -> tessera_nx_buffer:read(Buffer).

compare(Expected, Got) when length(Expected) =:= length(Got) ->
    lists:append([compare_one(E, G) || {E, G} <- lists:zip(Expected, Got)]);
compare(Expected, Got) -> [{results, length(Got), expected, length(Expected)}].

compare_one({tensor, Type, Shape, Binary}, {tensor, Type, Shape, Other}) ->
    case lists:zip(numbers(Type, Binary), numbers(Type, Other)) of
        Pairs -> [{Type, expected, E, got, G} || {E, G} <- Pairs, not near(Type, E, G)]
    end;
compare_one({tensor, Type, Shape, _}, {tensor, Other, OtherShape, _}) ->
    [{expected, Type, Shape, got, Other, OtherShape}].

numbers(Type, Binary) -> lists:flatten([tessera:to_list(tessera:from_binary(Binary, core(Type), {elements(Type, Binary)}))]).

core({Kind, Bits}) -> list_to_atom(atom_to_list(Kind) ++ integer_to_list(Bits)).

elements({_, Bits}, Binary) -> bit_size(Binary) div Bits.

near(_, Same, Same) -> true;
near({Kind, Bits}, E, G) when is_number(E), is_number(G), Kind =:= f orelse Kind =:= bf ->
    abs(E - G) =< tolerance({Kind, Bits}) * max(1.0, abs(E));
near(_, E, G) when is_number(E), is_number(G) -> E == G;
near(_, _, _) -> false.

tolerance({f, 64}) -> 1.0e-13;
tolerance({f, 32}) -> 1.0e-5;
tolerance({f, 16}) -> 2.0e-3;
tolerance({bf, 16}) -> 1.6e-2.

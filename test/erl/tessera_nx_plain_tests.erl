%% Expressions that the core reads: the same programs as by lowering node by node, and one rule for equal nodes.
-module(tessera_nx_plain_tests).
-include_lib("eunit/include/eunit.hrl").

%% The finished program of plain nodes, and its sources. Packed and unpacked it is the same.
program(Roots) -> program(Roots, []).

program(Roots, Handled) ->
    case tessera_nx_plain:read(Roots, Handled, undefined) of
        undefined -> undefined;
        {Expression, Sources} ->
            Program = tessera_nx_plain:program(Expression),
            {Packed, _} = tessera_nx_plain:describe(Expression),
            ?assertEqual(tessera_nif:graph_text(Program), tessera_nif:graph_text(tessera_nif:expression_unpack(Packed))),
            {Program, Sources}
    end.

%% ---- both ways

recorded_test_() -> {timeout, 120, fun recorded/0}.

recorded() ->
    Kinds = [compare(P) || {_, Programs} <- tessera_nx_replay_tests:programs(), P <- Programs],
    ?assert(length([same || same <- Kinds]) > 1700),
    ?assert(length([scoped || scoped <- Kinds]) > 50).

compare({Name, _, _, _, _, _, _} = Program) ->
    {Roots, Vars, _, Hooks} = tessera_nx_replay_tests:expression(Program),
    Forms = [tessera_nx_tensor:form(T) || T <- tessera_nx_tensor:flatten(list_to_tuple(Vars))],
    case program(Roots, Hooks) of
        undefined -> scoped;
        {Made, Sources} ->
            %% The function's tensor is an argument in one path, and a literal in the other.
            case lists:all(fun is_integer/1, Sources) of
                true ->
                    {Text, Used} = tessera_nx_plan:text(Roots, Forms, Hooks),
                    same(Name, {Used, Text}, {Sources, tessera_nif:graph_text(Made)});
                false -> holds
            end
    end.

%% What loops take may be met in another order.
same(Name, {Used, A}, {Used, B}) ->
    ?assertEqual({Name, A}, {Name, B}),
    same;
same(Name, {Used, A}, {Sources, B}) ->
    ?assertEqual({Name, lists:sort(Used), ops(A)}, {Name, lists:sort(Sources), ops(B)}),
    other_order.

ops(Text) ->
    {match, Ops} = re:run(Text, " = ([a-z_0-9]+)", [global, {capture, all_but_first, binary}]),
    lists:sort(Ops).

%% ---- rules

layers_have_rules_once_test() ->
    X = parameter(0, {4, 8}),
    Layer = fun(I, H) ->
                    Dot = node(dot, {4, 8}, [H, [1], [], parameter(2 * I + 1, {8, 8}), [0], []]),
                    node(tanh, {4, 8}, [node(add, {4, 8}, [Dot, parameter(2 * I + 2, {8})])])
            end,
    Out = lists:foldl(Layer, X, lists:seq(0, 99)),
    ok = tessera:clear_cache(),
    {_, Sources, Rules} = tessera_nif:expression_read([Out], tessera_nx_expr:scoped()),
    ?assertEqual(lists:seq(0, 200), Sources),
    ?assertEqual([dot, add, tanh], [Op || {#{data := #{op := Op}}, _} <- Rules]),
    ?assertEqual([[{f32, {4, 8}}, {f32, {8, 8}}], [{f32, {4, 8}}, {f32, {8}}], [{f32, {4, 8}}]],
                 [Forms || {_, Forms} <- Rules]).

%% The parts of a rule's key, beside its op.
rules_differ_test() ->
    X = parameter(0, {4, 8}),
    Sum = fun(Axes) -> node(sum, {4}, [X, [{axes, Axes}, {keep_axes, false}]]) end,
    Constant = fun(N) -> node(constant, {}, [N]) end,
    ?assertEqual(1, rules([Sum([1]), Sum([1])])),
    ?assertEqual(2, rules([Sum([1]), Sum([0])])),
    ?assertEqual(2, rules([Sum([1]), node(sum, {4, 1}, [X, [{axes, [1]}, {keep_axes, false}]])])),
    ?assertEqual(1, packed_rules([Constant(1.5), Constant(1.5)])),
    ?assertEqual(2, packed_rules([Constant(1.5), Constant(2.5)])),
    ?assertEqual(2, packed_rules([Constant(1), Constant(1.0)])),
    ?assertEqual(2, packed_rules([Constant(0.0), Constant(-0.0)])),
    ?assertEqual(2, packed_rules([Constant(1 bsl 80), Constant(1 bsl 81)])),
    %% [a, [b]] and [[a], b]
    ?assertEqual(2, rules([node(concatenate, {8, 8}, [X, [X]]), node(concatenate, {8, 8}, [[X], X])])).

%% That Erlang is asked for, when nothing is known.
rules(Roots) ->
    ok = tessera:clear_cache(),
    {_, _, Rules} = tessera_nif:expression_read(Roots, []),
    length(Rules).

packed_rules(Roots) ->
    {Expression, _} = tessera_nx_plain:read(Roots, [], undefined),
    {<<_:8/binary, Count:32/little, _/binary>>, _} = tessera_nx_plain:describe(Expression),
    Count.

%% A rule is kept for other expressions: by its arguments and forms, with any numbers of nodes.
kept_test() ->
    ok = tessera:clear_cache(),
    Sum = fun(Shape, Axes) ->
                  node(sum, {4}, [parameter(0, Shape), [{axes, Axes}, {keep_axes, false}]])
          end,
    Asked = fun(Roots) ->
                    {Read, _, Steps} = tessera_nif:expression_read(Roots, []),
                    {Program, _} = program(Roots),
                    {asked(Read, Steps), tessera_nif:graph_text(Program)}
            end,
    Negate = fun(Node) -> node(negate, {4}, [Node]) end,
    {[sum, negate], Text} = Asked([Negate(Sum({4, 8}, [1]))]),
    ?assertEqual({none, Text}, Asked([Negate(Sum({4, 8}, [1]))])),
    ?assertMatch({[sum], _}, Asked([Negate(Sum({8, 4}, [0]))])),
    ?assertMatch({[sum], _}, Asked([Negate(Sum({4, 9}, [1]))])),
    {none, Other} = Asked([Negate(Sum({4, 9}, [1]))]),
    ?assertNotEqual(Text, Other),
    ok = tessera:clear_cache(),
    ?assertEqual({[sum, negate], Text}, Asked([Negate(Sum({4, 8}, [1]))])).

%% The content of a kept rule counts: its program shares nothing with others.
kept_is_bounded_test_() ->
    {timeout, 60, fun() ->
        ok = tessera:clear_cache(),
        Before = tessera_test:blocks(), % such as kernels of other tests
        Blocks = [begin tessera_nx_plain:describe(long_loop(N)), garbage_collect(), tessera_test:blocks() - Before end
                  || N <- lists:seq(1, 800)],
        ?assert(2 * lists:last(Blocks) < lists:max(Blocks)),
        ok = tessera:clear_cache()
    end}.

%% 400 ops that no other program has, beside a step that is kept.
long_loop(N) ->
    Step = fun(X) -> lists:foldl(fun(_, Y) -> node(tanh, {2}, [Y]) end, X, lists:seq(1, 400)) end,
    Loop = loop(parameter(0, {2}), parameter(1, {}), Step),
    {Expression, _} = tessera_nx_plain:read([node(elem, {2}, [Loop, 0]), node(negate, {N}, [parameter(2, {N})])], [], undefined),
    Expression.

%% The core makes constants itself, unless they wrap or are complex: like Erlang.
constants_test() ->
    Constant = fun(Type, Number) -> (node(constant, {}, [Number]))#{type := Type} end,
    Numbers = [{{f, 32}, 0.1}, {{f, 32}, 3}, {{f, 32}, nan}, {{f, 32}, neg_infinity}, {{f, 64}, 0.1}, {{bf, 16}, 0.1},
               {{s, 32}, -7}, {{u, 8}, 255}, {{u, 8}, 256}, {{u, 8}, -1}, {{s, 8}, 200}, {{s, 64}, -1 bsl 63},
               {{u, 64}, 1 bsl 64 - 1}, {{s, 32}, 1 bsl 40}, {{f, 32}, 1 bsl 80}],
    [begin
         Roots = [Constant(Type, Number), node(constant, {2, 3}, [1.5])],
         {Program, []} = program(Roots),
         {Text, []} = tessera_nx_plan:text(Roots, [], []),
         ?assertEqual({Number, Text}, {Number, tessera_nif:graph_text(Program)})
     end || {Type, Number} <- Numbers].

%% A node is read once, however many use it: without that, this takes forever.
shared_test() ->
    Out = lists:foldl(fun(_, X) -> node(add, {2}, [X, X]) end, parameter(0, {2}), lists:seq(1, 100)),
    {Program, [0]} = program([Out]),
    ?assertEqual(100, length(binary:matches(tessera_nif:graph_text(Program), <<" add ">>))).

%% A chain as long as this needs no stack of the thread's.
deep_test_() ->
    {timeout, 60, fun() ->
        Out = lists:foldl(fun(_, X) -> node(negate, {2}, [X]) end, parameter(0, {2}), lists:seq(1, 300000)),
        {Program, [0]} = program([Out]),
        ?assertMatch({_, _}, tessera_nif:describe(Program))
    end}.

%% Nodes with one id are one node, also where they are not the same term.
ids_test() ->
    #{data := #{id := Id}} = A = node(exp, {2}, [parameter(0, {2})]),
    #{data := Data} = B = node(exp, {2}, [parameter(0, {2})]),
    {Program, [0]} = program([A, B#{data := Data#{id := Id}}]),
    ?assertEqual(1, length(binary:matches(tessera_nif:graph_text(Program), <<" exp ">>))).

%% ---- sources

sources_test() ->
    Held = fun(Bytes) -> node(tensor, {2}, [tensor({2}, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => Bytes})]) end,
    Same = <<1.0:32/float-native, 2.0:32/float-native>>,
    Other = <<3.0:32/float-native, 4.0:32/float-native>>,
    Sum = lists:foldl(fun(X, Y) -> node(add, {2}, [Y, X]) end, parameter(5, {2}), [Held(Same), Held(Other), Held(Same)]),
    {Program, Sources} = program([Sum]),
    ?assertMatch([5, #{data := #{state := Same}}, #{data := #{state := Other}}], Sources),
    ?assertMatch({0, _}, binary:match(tessera_nif:graph_text(Program), <<"graph @main(%0: f32[2], %1: f32[2], %2: f32[2])">>)).

parameter_as_result_test() ->
    {Program, [3]} = program([parameter(3, {2})]),
    ?assertEqual(<<"graph @main(%0: f32[2]) -> (f32[2]) {\n  return %0\n}\n">>, tessera_nif:graph_text(Program)).

metadata_test() ->
    X = parameter(1, {2}),
    {Program, [1]} = program([node(exp, {2}, [node(metadata, {2}, [X, #{inspect => X}])])]),
    ?assertMatch({_, _}, binary:match(tessera_nif:graph_text(Program), <<"exp %0">>)).

%% ---- expressions that the core does not read, and errors

other_test() ->
    X = parameter(0, {2}),
    #{data := Data} = Exp = node(exp, {2}, [X]),
    [?assertEqual({Case, undefined}, {Case, program(Case)})
     || Case <- [[node(while, {2}, [#{x => X}, X, X, X])], [node(while, {2}, [[X], X, X, X])], [node(while, {2}, [])],
                 [node(block, {2}, [])], [node(block, {2}, [x])], [node(optional, {2}, [x])],
                 [node(elem, {2}, [X, 0])], [node(elem, {2}, [X])], [node(elem, {2}, [X, x])], [1], [x], [#{}], [#{data => 1}],
                 [Exp#{data := Data#{args := none}}], [Exp#{data := Data#{args := [X | X]}}], [X | X],
                 [node(block, {2}, [mine, [X | X]])], [Exp#{data := Data#{op := 'cond'}}],
                 [Exp#{type := {c, 32}}], [Exp#{type := f32}], [Exp#{shape := [2]}], [Exp#{shape := {-1}}],
                 [Exp#{vectorized_axes := [x]}], [Exp#{vectorized_axes := x}], [Exp#{shape := erlang:make_tuple(65, 1)}],
                 [Exp#{data := Data#{'__struct__' := other}}], [Exp#{data := Data#{args := [{X}]}}],
                 [Exp#{data := Data#{args := [[X | X]]}}], [Exp#{data := Data#{args := [#{}]}}],
                 [node(parameter, {2}, [])]]].

%% As when they are lowered node by node.
same_errors_test_() ->
    X = parameter(0, {2}),
    Y = parameter(1, {3}),
    [?_test(begin
                Error = error_of(fun() -> program([Node]) end),
                ?assertMatch({_, _}, binary:match(Error, Named)),
                ?assertEqual(error_of(fun() -> tessera_nx_plan:text([Node], [{f32, {2}}, {f32, {3}}], []) end), Error)
            end)
     || {Named, Node} <- [{<<"no_such_op">>, node(no_such_op, {2}, [X, [{length, 2}, {axis, 0}]])}, {<<"add">>, node(add, {2}, [X, Y])},
                          {<<"Nx expected">>, node(exp, {3}, [X])}]].

error_of(F) ->
    try F() of
        _ -> none
    catch error:#{message := Message} -> Message
    end.

hostile_test() ->
    X = parameter(0, {2}),
    ok = tessera:clear_cache(),
    {Expression, [0], [_]} = tessera_nif:expression_read([node(exp, {2}, [X])], []),
    Rules = tessera_nif:builder_new([]),
    {Region, [Param]} = tessera_nif:region_open(Rules, [{f32, {2}}], undefined),
    ok = tessera_nif:region_finish(Rules, [Param]),
    {Longer, _} = tessera_nif:region_open(Rules, [{f32, {3}}, {f32, {2}}], undefined),
    ok = tessera_nif:region_finish(Rules, []),
    {Other, _} = tessera_nif:region_open(Rules, [{f32, {3}}], undefined),
    One = tessera_nif:op(Rules, constant, [], {f32, {2}, 1.0}),
    ok = tessera_nif:region_finish(Rules, [One]),
    Both = [fun tessera_nif:expression_program/3, fun tessera_nif:expression_pack/3],
    [?assertMatch({error, #{code := failed_precondition}}, Make(Expression, Rules, [Region])) || Make <- Both],
    [] = tessera_nif:finish(Rules, []),
    ?assert(is_reference(tessera_nif:expression_program(Expression, Rules, [Region]))),
    ?assertMatch({_, <<_:128>>}, tessera_nif:expression_pack(Expression, Rules, [Region])),
    [?assertMatch({error, #{code := _}}, Make(E, B, Regions))
     || Make <- Both,
        {E, B, Regions} <- [{Rules, Rules, [Region]}, {Expression, Expression, [Region]}, {Expression, Rules, []},
                            {Expression, Rules, [Longer]}, {Expression, Rules, [Other]}, {Expression, Rules, [0]},
                            {Expression, Rules, [99]}, {Expression, Rules, x}, {Expression, undefined, [Region]},
                            {Expression, undefined, []}]],
    %% without an error it was kept, and no region is asked for
    {Known, [0], {_, _}} = tessera_nif:expression_read([node(exp, {2}, [X])], []),
    ?assert(is_reference(tessera_nif:expression_program(Known, undefined, []))),
    ?assertMatch({error, #{code := _}}, tessera_nif:expression_program(Known, Known, [])),
    ok = tessera:clear_cache().      % of a rule that is none

asked(_, Steps) when is_list(Steps) -> [Op || {#{data := #{op := Op}}, _} <- Steps];
asked(Read, Packed) ->
    ?assertEqual(Packed, tessera_nif:expression_pack(Read, undefined, [])),
    none.

%% One position with two forms.
two_forms_test() ->
    [begin
         Sum = node(add, {2}, [parameter(At, {2}), parameter(At, {1})]),
         ?assertMatch({_, _}, binary:match(error_of(fun() -> program([Sum]) end), <<"f32[2] and f32[1]">>))
     end || At <- [0, 70000]].

%% What tells a parameter is its position, however large, and not its node.
positions_test() ->
    Sum = fun(A, B) -> node(add, {2}, [node(exp, {2}, [A]), B]) end,
    Texts = [begin
                 P = parameter(Position, {2}),
                 {Once, [Position]} = program([Sum(P, P)]),
                 {Twice, [Position]} = program([Sum(P, parameter(Position, {2}))]),
                 ?assertEqual(tessera_nif:graph_text(Once), tessera_nif:graph_text(Twice)),
                 tessera_nif:graph_text(Once)
             end || Position <- [0, 1, 65535, 65536, 1 bsl 31, 1 bsl 70]],
    ?assertMatch([_], lists:usort(Texts)).

%% ---- loops and blocks

%% {X + X, N + 1} while N < 3.
loop(X, N) -> loop(X, N, fun(A) -> node(add, {2}, [A, A]) end).

loop(X, N, Step) ->
    {A, B} = Params = {parameter(0, {2}), parameter(1, {})},
    Less = (node(less, {}, [B, node(constant, {}, [3.0])]))#{type := {u, 8}},
    Next = {Step(A), node(add, {}, [B, node(constant, {}, [1.0])])},
    (node(while, {}, [{X, N}, Params, Less, Next]))#{type := {tuple, 2}}.

%% A loop in a chain of steps, and one whose operands are a loop's results; each is lowered once, however often it is used.
loops_test() ->
    Before = node(exp, {2}, [parameter(0, {2})]),
    First = loop(Before, parameter(1, {})),
    Second = loop(node(elem, {2}, [First, 0]), node(constant, {}, [0.0])),
    Sum = node(add, {2}, [node(elem, {2}, [Second, 0]), node(multiply, {2}, [node(elem, {2}, [First, 0]), Before])]),
    same_text([Sum, node(elem, {}, [First, 1])], 2).

same_text(Roots, Loops) ->
    {Program, [0, 1]} = program(Roots),
    {Text, _} = tessera_nx_plan:text(Roots, [{f32, {2}}, {f32, {}}], []),
    ?assertEqual(Text, tessera_nif:graph_text(Program)),
    ?assertEqual(Loops, length(binary:matches(Text, <<" = while ">>))).

%% In a loop, and as the last one's operand before there is a rule for either.
loops_in_loops_test() ->
    N = parameter(1, {}),
    Inner = fun(A) -> node(elem, {2}, [loop(A, node(constant, {}, [0.0])), 0]) end,
    same_text([node(elem, {2}, [loop(parameter(0, {2}), N, Inner), 0])], 2),
    Direct = loop(node(elem, {2}, [loop(parameter(0, {2}), N), 0]), node(elem, {}, [loop(parameter(0, {2}), N), 1])),
    same_text([node(elem, {2}, [Direct, 0])], 3).

%% A block that is an op of the core, and a block with its default.
blocks_test() ->
    X = parameter(0, {2}),
    Take = #{'__struct__' => 'Elixir.Nx.Block.CumulativeSum', axis => 0, reverse => false},
    Default = node(negate, {2}, [node(exp, {2}, [parameter(0, {2})])]),
    Block = fun(Struct, A) -> node(block, {2}, [Struct, [A], Default, fun() -> ok end]) end,
    Optional = node(optional, {2}, [node(other, {2}, [Block(Take, Block(#{'__struct__' => mine}, X))]), Default, none]),
    {Program, [0]} = program([Optional]),
    {Text, _} = tessera_nx_plan:text([Optional], [{f32, {2}}], []),
    ?assertEqual(Text, tessera_nif:graph_text(Program)),
    ?assertMatch({_, _}, binary:match(Text, <<"cumulative_sum">>)).

%% Nodes that a loop may not have inside, and uses of its tuple that are not allowed.
not_plain_test() ->
    X = parameter(0, {2}),
    N = parameter(1, {}),
    Loop = loop(X, N),
    Held = tensor({2}, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => <<0:64>>}),
    Inside = fun(Node) -> [node(elem, {2}, [loop(X, N, fun(A) -> node(add, {2}, [A, Node(A)]) end), 0])] end,
    [?assertEqual(undefined, program(Roots))
     || Roots <- [[Loop], [node(exp, {2}, [Loop])], [node(elem, {2}, [Loop, 2])], [node(elem, {2}, [Loop, -1])],
                  Inside(fun(_) -> node(tensor, {2}, [Held]) end),
                  Inside(fun(A) -> node(io_call, {2}, [A, {fn, fun(_) -> ok end}, A]) end)]],
    Named = Inside(fun(A) -> node(io_call, {2}, [A, {named, seen, nil}, A]) end),
    ?assertMatch({_, _}, program(Named, [])),
    ?assertEqual(undefined, program(Named, [seen])),
    %% an element of another form than the loop makes
    ?assertMatch(<<"compile: a rule makes", _/binary>>, error_of(fun() -> program([node(elem, {3}, [Loop, 0])]) end)).

%% ---- packed

%% The same program has the same name, and another one another.
names_test() ->
    Sum = fun(Op, Held) -> node(Op, {2}, [parameter(3, {2}), node(tensor, {2}, [Held])]) end,
    Held = fun(Bytes) -> tensor({2}, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => Bytes}) end,
    Name = fun(Roots) -> {E, _} = tessera_nx_plain:read(Roots, [], undefined), tessera_nx_plain:describe(E) end,
    Add = Sum(add, Held(<<0:64>>)),
    ?assertEqual(Name([Add]), Name([Sum(add, Held(<<1:64>>))])),
    Others = [Name([Sum(multiply, Held(<<0:64>>))]), Name([Add, Add]), Name([node(negate, {2}, [Add])]),
              Name([node(add, {2}, [node(tensor, {2}, [Held(<<0:64>>)]), parameter(3, {2})]), Add])],
    ?assertEqual(5, length(lists:usort([Name([Add]) | Others]))).

%% Any bytes are a program or an error.
damaged_test_() -> {timeout, 60, fun damaged/0}.

damaged() ->
    X = parameter(0, {2, 3}),
    Y = node(tanh, {2, 3}, [node(add, {2, 3}, [X, parameter(1, {3})])]),
    Sum = node(sum, {2}, [Y, [{axes, [1]}, {keep_axes, false}]]),
    {Expression, _} = tessera_nx_plain:read([Y, node(elem, {2}, [loop(Sum, parameter(2, {})), 0])], [], undefined),
    {Packed, _} = tessera_nx_plain:describe(Expression),
    Size = byte_size(Packed),
    [?assertMatch({error, #{code := invalid_argument}}, tessera_nif:expression_unpack(binary:part(Packed, 0, N)))
     || N <- lists:seq(0, Size - 1)],
    ?assertMatch({error, _}, tessera_nif:expression_unpack(<<Packed/binary, 0>>)),
    ?assertMatch({error, _}, tessera_nif:expression_unpack(x)),
    Seen = [unpacked(changed(Packed, At, Byte)) || At <- lists:seq(0, Size - 1), Byte <- [0, 1, 127, 128, 255, $}, $1]],
    ?assert(lists:member(error, Seen)),
    ?assert(lists:member(program, Seen)).

%% A rule is written once, but made for each value that uses it.
bombs_are_refused_test() ->
    ?assert(is_reference(tessera_nif:expression_unpack(negations(10, 10)))),
    ?assertMatch({error, #{code := resource_exhausted, message := <<"a packed program has more than 4194304 ops">>}},
                 tessera_nif:expression_unpack(negations(2100, 2100))).

%% `Values` values, one after the other, each of `Ops` negations.
negations(Values, Ops) ->
    Line = fun(I) -> io_lib:format("  %~b = negate %~b : f32[2]~n", [I, I - 1]) end,
    Rule = [<<"graph @main(%0: f32[2]) -> (f32[2]) {\n">>, [Line(I) || I <- lists:seq(1, Ops)],
            io_lib:format("  return %~b~n}~n", [Ops])],
    iolist_to_binary([<<0, "TSXPR3\n">>, words([1, 1, Values + 1, 1]),
                      words([1]), <<"f32", 0:40>>, words([1, 2, 0]), text(Rule), words([0, 1 bsl 31]),
                      [words([0, Use]) || Use <- lists:seq(0, Values - 1)], words([Values])]).

words(Numbers) -> << <<N:32/little>> || N <- Numbers >>.

text(Text) -> [words([iolist_size(Text)]), Text].

changed(Binary, At, Byte) ->
    <<Before:At/binary, _, After/binary>> = Binary,
    <<Before/binary, Byte, After/binary>>.

unpacked(Packed) ->
    case tessera_nif:expression_unpack(Packed) of
        {error, #{code := _, message := _}} -> error;
        Program ->
            {_, _} = tessera_nif:describe(Program),
            program
    end.

%% ---- nodes

parameter(Position, Shape) ->
    #{data := Data} = Node = node(parameter, Shape, [Position]),
    Node#{data := Data#{context := root}}.

node(Op, Shape, Args) ->
    tensor(Shape, #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => Args, context => nil}).

tensor(Shape, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => {f, 32}, shape => Shape, names => [],
      vectorized_axes => []}.

%% A tensor of the environment that is read while memory is scarce, when the core asks the caller to collect garbage.
held_while_memory_is_scarce_test() ->
    Binary = <<0:(8 bsl 20)/unit:8>>,
    Read = fun() -> tessera_nx_plan:unpack_source({held, {f32, {2 bsl 20}, Binary}}) end,
    Sources = [Read() || _ <- lists:seq(1, 20)],
    ?assertEqual([2 bsl 20], lists:usort([tessera:size(T) || {held, T} <- Sources])).

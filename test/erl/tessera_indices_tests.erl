%% gather, indexed_add and indexed_put: against the same by lists, at once and compiled; and their gradients.
-module(tessera_indices_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, check_gradient/2]).

t(List) -> tessera:tensor(List).
t(List, Type) -> tessera:tensor(List, Type).

same(Expected, F, Args) ->
    ?assertEqual(Expected, tessera:to_list(apply(F, Args))),
    ?assertEqual(Expected, tessera:to_list(apply(tessera:jit(F), Args))).

values_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{[5, 0], fun(T) -> tessera:gather(T, t([[1, 2], [0, 0]])) end},
             {5, fun(T) -> tessera:gather(T, t([1, 9])) end},
             {[[3, 4, 5], [0, 1, 2]], fun(T) -> tessera:gather(T, t([[1], [-7]])) end},
             {[[2, 5], [0, 3]], fun(T) -> tessera:gather(T, t([[2], [0]]), #{axes => [1]}) end},
             {[[[1, 4]]], fun(T) -> tessera:gather(T, t([[[1]]], u8), #{axes => [-1]}) end},
             {[], fun(T) -> tessera:gather(T, tessera:zeros({0, 2}, s32)) end},
             {[[10, 1, 2], [3, 4, 25]], fun(T) -> tessera:indexed_add(T, t([[0, 0], [1, 2], [2, 0]]), t([10, 20, 30])) end},
             {[[0, 1, 5], [3, 4, 12]],
              fun(T) -> tessera:indexed_add(T, t([[2], [2]]), t([[1, 3], [2, 4]]), #{axes => [1]}) end},
             {[[0, 1, 9], [3, 4, 8]],
              fun(T) -> tessera:indexed_put(T, t([[2], [-1], [2]]), t([[1, 3], [2, 4], [9, 8]]), #{axes => [1]}) end},
             {[[7, 8, 9], [3, 4, 5]], fun(T) -> tessera:indexed_put(T, t([[0]]), t([[7, 8, 9]])) end},
             {[[7, 8, 9], [3, 4, 5]], fun(T) -> tessera:indexed_put(T, t([0]), t([7, 8, 9])) end},
             {[[0, 1, 2], [3, 4, 5]], fun(T) -> tessera:indexed_add(T, tessera:zeros({0, 1}, s32), tessera:zeros({0, 3}, s32)) end},
             {[[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], fun(T) -> tessera:indexed_add(T, t([[0, 0]]), t([0.5])) end},
             {[0, 30, 2, 20], fun(_) -> tessera:indexed_put(tessera:iota({4}), t([[1], [3], [1]]), t([10, 20, 30])) end},
             %% The target is known when the program is compiled.
             {[1, -1, 3, -1],
              fun(_) -> tessera:indexed_put(tessera:full({4}, -1, s32), t([[0], [0], [9], [2]]), t([0, 1, 2, 3])) end},
             {[5, 5, 6, 5],
              fun(_) -> tessera:indexed_add(tessera:full({4}, 5, s32), t([[2], [2]]), tessera:iota({2}, s32)) end}]].

misuse_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"): expected indices of an integer type", fun() -> tessera:gather(X, t([[0.5]])) end},
             {"): expected as many axes, in increasing order, as the indices' last axis has numbers, 3, got [0,1,2]",
              fun() -> tessera:gather(X, t([[0, 0, 0]])) end},
             {"got [1,0]", fun() -> tessera:gather(X, t([[0, 0]]), #{axes => [1, 0]}) end},
             {"gather(s32[2,3], s32[1,1]): no axis 2", fun() -> tessera:gather(X, t([[0]]), #{axes => [2]}) end},
             {"): unknown options [axe]", fun() -> tessera:gather(X, t([[0]]), #{axe => 1}) end},
             {"vectors in their last axis", fun() -> tessera:gather(X, 1) end},
             {"): expected updates of shape {1,3}", fun() -> tessera:indexed_add(X, t([[0]]), t([[1, 2]])) end},
             {"): expected updates of shape {2}", fun() -> tessera:indexed_put(X, t([[0, 0], [1, 1]]), t([1])) end}]].

%% Indices at the ends of their types are read at the nearest element, and dropped by updates; so are they in gradients.
ends_of_types_test_() ->
    X = t([[1.0, 2.0], [3.0, 4.0]], f64),
    [{lists:flatten(io_lib:format("~b in ~s", [Index, Type])),
      fun() ->
              I = fun(List) -> t(List, Type) end,
              End = case Index < 0 of true -> 0; false -> 1 end,
              [Corner, Row] = [case End of 0 -> First; 1 -> Last end || {First, Last} <- [{1.0, 4.0}, {[1.0, 2.0], [3.0, 4.0]}]],
              OneAt = fun(Row0, Column) ->
                              [[case {R, C} of {Row0, Column} -> 1.0; _ -> 0.0 end || C <- [0, 1]] || R <- [0, 1]]
                      end,
              Rows = [[case R of End -> 1.0; _ -> 0.0 end || _ <- [0, 1]] || R <- [0, 1]],
              Ones = [[1.0, 1.0], [1.0, 1.0]],
              Zeros = [[0.0, 0.0], [0.0, 0.0]],
              [read(Expected, Gradient, F, X)
               || {Expected, Gradient, F} <-
                      [{Corner, OneAt(End, End), fun(T) -> tessera:gather(T, I([Index, Index])) end},
                       {Row, Rows, fun(T) -> tessera:gather(T, I([Index])) end},
                       {[Row], Rows, fun(T) -> tessera:take(T, I([Index])) end},
                       {[hd(Row), 2.0], [[hd(hd(Rows)), 1.0], [1.0 - hd(hd(Rows)), 0.0]],
                        fun(T) -> tessera:reshape(tessera:take_along_axis(T, I([[Index, 0]]), #{axis => 0}), {2}) end},
                       {Corner, OneAt(End, End), fun(T) -> tessera:at(T, [I(Index), I(Index)]) end},
                       {[Row], Rows, fun(T) -> tessera:slice(T, [I(Index), 0], [1, 2]) end},
                       {lists:sublist([[1.0, 2.0], [3.0, 4.0]], End) ++ [[7.0, 7.0]] ++ lists:nthtail(End + 1, [[1.0, 2.0], [3.0, 4.0]]),
                        [[1.0 - E || E <- R] || R <- Rows], fun(T) -> tessera:put_slice(T, [I(Index), 0], t([[7.0, 7.0]], f64)) end},
                       {case End of 0 -> [[1.0, 2.0], [0.0, 0.0]]; 1 -> [[0.0, 0.0], [3.0, 4.0]] end, Rows,
                        fun(T) -> tessera:put_slice(tessera:zeros({2, 2}, f64), [I(Index), 0], tessera:slice(T, [End, 0], [1, 2])) end},
                       {[[1.0, 2.0], [3.0, 4.0]], Ones, fun(T) -> tessera:indexed_add(T, I([[Index]]), t([[7.0, 7.0]], f64)) end},
                       {[[1.0, 2.0], [3.0, 4.0]], Ones, fun(T) -> tessera:indexed_put(T, I([[Index, Index]]), t([7.0], f64)) end},
                       {Zeros, Zeros, fun(T) -> tessera:indexed_add(tessera:zeros({2, 2}, f64), I([[Index, 0], [1, Index]]), row(T)) end},
                       {Zeros, Zeros, fun(T) -> tessera:indexed_put(tessera:zeros({2, 2}, f64), I([[Index], [Index]]), T) end}]]
      end}
     || {Type, Indices} <- [{s64, [-(1 bsl 63), -(1 bsl 63) + 1, (1 bsl 63) - 1]}, {u64, [(1 bsl 63) - 1, 1 bsl 63, (1 bsl 64) - 1]},
                            {s8, [-128, 127]}, {u8, [255]}], Index <- Indices].

row(T) -> tessera:at(T, [0]).

read(Expected, Gradient, F, X) ->
    same(Expected, F, [X]),
    Sum = tessera:grad(fun(T) -> tessera:sum(F(T)) end),
    same(Gradient, Sum, [X]).

%% Axes that the type of the indices cannot count.
narrow_indices_test() ->
    X = tessera:iota({300, 300}),
    same(255 * 300 + 7, fun(T) -> tessera:gather(T, t([255, 7], u8)) end, [X]),
    same(127 * 300, fun(T) -> tessera:gather(T, t([127, -128], s8)) end, [X]).

%% Against central differences: rows that are read or written twice, moved into range, or dropped.
gradients_test_() ->
    X = t([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], f64),
    [{Name, ?_test(check_gradient(F, X))}
     || {Name, F} <-
            [{"gather", fun(T) -> tessera:gather(T, t([[1, 2], [0, 0], [1, 2], [9, -3]])) end},
             {"gather rows", fun(T) -> tessera:gather(T, t([[1], [1], [-1]])) end},
             {"take twice", fun(T) -> tessera:take(T, t([[1, 1], [0, 7]]), #{axis => 1}) end},
             {"take rows", fun(T) -> tessera:take(T, t([1, 1, 0], u8)) end},
             {"take_along_axis twice",
              fun(T) -> tessera:take_along_axis(T, t([[1, 1, 5], [2, 0, -1]]), #{axis => 1}) end},
             {"added to", fun(T) -> tessera:indexed_add(T, t([[0, 0], [5, 5]]), t([2.0, 3.0], f64)) end},
             {"added", fun(T) ->
                 tessera:indexed_add(tessera:zeros({4, 2}, f64), t([[3], [0], [3]]), tessera:transpose(T))
             end},
             {"dropped", fun(T) -> tessera:indexed_add(tessera:zeros({4}, f64), t([[9], [1]]), tessera:at(tessera:transpose(T), [1])) end},
             {"put upon", fun(T) -> tessera:indexed_put(tessera:sin(T), t([[0, 1], [1, 1]]), t([2.0, 3.0], f64)) end},
             {"put", fun(T) ->
                 tessera:indexed_put(tessera:ones({4, 2}, f64), t([[3], [0], [3]]), tessera:transpose(T))
             end},
             {"put and dropped", fun(T) -> tessera:indexed_put(tessera:ones({1, 3}, f64), t([[0], [1]]), T) end}]].

%% Linear algebra of complex matrices: values, eager and compiled; functions of factorizations; errors; gradients
%% against differences in the real and imaginary parts; many processes, and callers that are killed.
-module(tessera_linalg_complex_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/3, check_gradient/2]).

-define(TYPES, [c64, c128]).

z(Shape, Type) ->
    [Re, Im] = [tessera:sin(tessera:multiply(tessera:add(tessera:iota(Shape, f64), 1), Seed)) || Seed <- [12.9898, 78.233]],
    tessera:as_type(tessera:complex(Re, Im), Type).

close(Expected, Actual) ->
    Tolerance = case tessera:type(Actual) of
                    c64 -> 2.0e-4;
                    f32 -> 2.0e-4;
                    _ -> 1.0e-10
                end,
    ?assertEqual(tessera:shape(Expected), tessera:shape(Actual)),
    near(parts(Expected), parts(Actual), Tolerance).

parts(T) -> lists:append([tessera:to_list(tessera:flatten(F(T))) || F <- [fun tessera:real/1, fun tessera:imag/1]]).

product(A, B) ->
    Rank = tessera:rank(A),
    Batch = lists:seq(0, Rank - 3),
    tessera:dot(A, [Rank - 1], Batch, B, [Rank - 2], Batch).

transposed(A) ->
    Rank = tessera:rank(A),
    tessera:transpose(A, lists:seq(0, Rank - 3) ++ [Rank - 1, Rank - 2]).

adjoint(A) -> tessera:conjugate(transposed(A)).

definite(A) ->
    Shape = tessera:shape(A),
    N = element(tuple_size(Shape), Shape),
    tessera:add(product(A, adjoint(A)), tessera:eye(N, tessera:type(A))).

as_row(T) ->
    {Batch, [N]} = lists:split(tessera:rank(T) - 1, tuple_to_list(tessera:shape(T))),
    tessera:reshape(T, list_to_tuple(Batch ++ [1, N])).

%% ---- values, of each way to call

cases(Type) ->
    [{lists:flatten(io_lib:format("~s ~0p", [Type, Shape])), z(Shape, Type)} || Shape <- [{1, 1}, {5, 5}, {3, 16, 16}, {2, 3, 4, 4}, {60, 60}]].

products_test_() ->
    [{Name, fun() -> products(F, A) end}
     || Type <- ?TYPES, {Name, A} <- cases(Type), F <- [fun(G, Args) -> apply(G, Args) end, fun(G, Args) -> apply(tessera:jit(G), Args) end]].

products(Run, A) ->
    Definite = definite(A),
    L = Run(fun tessera:cholesky/1, [Definite]),
    ?assertEqual(tessera:type(A), tessera:type(L)),
    close(Definite, product(L, adjoint(L))),
    {P, L1, U1} = Run(fun tessera:lu/1, [A]),
    close(A, product(P, product(L1, U1))),
    close(A, product(Definite, Run(fun tessera:solve/2, [Definite, A]))),
    N = element(tessera:rank(A), tessera:shape(A)),
    One = tessera:broadcast(tessera:eye(N, tessera:type(A)), tessera:shape(A)),
    close(One, product(Definite, Run(fun tessera:inverse/1, [Definite]))),
    {Values, Vectors} = Run(fun tessera:eigh/1, [Definite]),
    ?assertEqual(tessera:type(A), tessera:type(Values)),
    close(Definite, product(tessera:multiply(Vectors, as_row(Values)), adjoint(Vectors))),
    [begin
         Options = #{full => Full},
         {Q, R} = Run(fun(T) -> tessera:qr(T, Options) end, [A]),
         close(A, product(Q, R)),
         {U, S, Vt} = Run(fun(T) -> tessera:svd(T, Options) end, [A]),
         ?assertEqual(tessera_type:part(tessera:type(A)), tessera:type(S)),
         close(A, product(tessera:multiply(U, as_row(S)), Vt))
     end || Full <- [true, false]].

triangular_test_() ->
    A = tessera:add(z({4, 4}, c128), tessera:multiply(tessera:eye(4, c128), 5)),
    B = z({4, 3}, c128),
    Part = fun(Keep) ->
                   [Row, Column] = [tessera:iota({4, 4}, s64, Axis) || Axis <- [0, 1]],
                   tessera:select(tessera:Keep(Row, Column), A, tessera:full({}, 0, c128))
           end,
    [?_test(begin
                Triangle = case Lower of true -> Part(greater_equal); false -> Part(less_equal) end,
                Applied = case Transpose of
                              false -> Triangle;
                              true -> transposed(Triangle);
                              conjugate -> adjoint(Triangle)
                          end,
                Right = case Left of true -> B; false -> transposed(B) end,
                X = tessera:triangular_solve(A, Right, #{lower => Lower, left_side => Left, transpose => Transpose}),
                close(Right, case Left of true -> product(Applied, X); false -> product(X, Applied) end)
            end) || Lower <- [true, false], Left <- [true, false], Transpose <- [false, true, conjugate]].

made_of_others_test_() ->
    I = {complex, 0, 1},
    Turn = tessera:tensor([[0, I], [I, 0]], c128),
    [[?_test(begin
                 P = tessera:pinv(A),
                 close(A, product(product(A, P), A)),
                 close(P, product(product(P, A), P)),
                 close(product(A, P), adjoint(product(A, P))),
                 close(product(P, A), adjoint(product(P, A))),
                 B = z({element(1, tessera:shape(A)), 2}, Type),
                 close(product(P, B), tessera:lstsq(A, B))
             end) || Type <- ?TYPES, A <- [z({5, 3}, Type), z({3, 5}, Type), product(z({4, 2}, Type), z({2, 4}, Type))]],
     ?_test(close(product(tessera:pinv(z({5, 3}, f64)), z({5, 2}, c128)), tessera:lstsq(tessera:real(z({5, 3}, c128)), z({5, 2}, c128)))),
     ?_assert({complex, 1.0, 0.0} == tessera:to_number(tessera:determinant(Turn))), % of either sign
     ?_assertEqual([[{complex, 0.0, 0.0}, {complex, 0.0, -1.0}], [{complex, 0.0, -1.0}, {complex, 0.0, 0.0}]],
                   zeros_of_one_sign(tessera:matrix_power(Turn, 3))),
     ?_test(close(tessera:inverse(z({3, 3}, c128)), tessera:matrix_power(z({3, 3}, c128), -1))),
     ?_test(close(tessera:eye(2, c128), tessera:matrix_power(Turn, 0))),
     ?_assertEqual(2, tessera:to_number(tessera:matrix_rank(product(z({5, 2}, c64), z({2, 4}, c64))))),
     ?_test(near([math:sqrt(2.0)], [tessera:to_number(tessera:norm(Turn))], 1.0e-12)),
     ?_test(near([1.0], [tessera:to_number(tessera:norm(Turn, #{order => spectral}))], 1.0e-12)),
     ?_test(near([2.0], [tessera:to_number(tessera:norm(Turn, #{order => nuclear}))], 1.0e-12)),
     %% det(P L U) by its factors
     ?_test(begin
                A = z({6, 6}, c128),
                {P, _, U} = tessera:lu(A),
                Diagonal = tessera:multiply(tessera:sum(tessera:multiply(U, tessera:eye(6, c128)), #{axes => [1]}), 1),
                close(tessera:determinant(A), tessera:multiply(tessera:determinant(P), tessera:product(Diagonal)))
            end)].

zeros_of_one_sign(T) -> [[{complex, Re + 0.0, Im + 0.0} || {complex, Re, Im} <- Row] || Row <- tessera:to_list(T)].

%% n = 0, NaN, singular matrices, and one that is not positive definite.
edges_test_() ->
    Empty = tessera:zeros({0, 0}, c64),
    Bad = tessera:tensor([[{complex, nan, 0}, 0], [0, 1]], c64),
    IsNan = fun(T) -> tessera:to_number(tessera:all(tessera:is_nan(T))) end,
    [?_assertEqual({0, 0}, tessera:shape(tessera:cholesky(Empty))),
     ?_assertEqual({complex, 1.0, 0.0}, tessera:to_number(tessera:determinant(Empty))),
     ?_assertEqual({0}, tessera:shape(element(1, tessera:eigh(Empty)))),
     ?_assertEqual({0, 2}, tessera:shape(tessera:solve(Empty, tessera:zeros({0, 2}, c64)))),
     [?_assertEqual(1, IsNan(T)) || F <- [fun tessera:qr/1, fun tessera:eigh/1, fun tessera:svd/1], T <- tuple_to_list(F(Bad))],
     ?_test(begin
                X = tessera:solve(tessera:zeros({2, 2}, c64), tessera:ones({2}, c64)),
                ?assertEqual([1, 1], tessera:to_list(tessera:logical_or(tessera:is_nan(X), tessera:is_infinity(X))))
            end),
     ?_assertEqual([{complex, nan, nan}, {complex, 0.0, 0.0}, {complex, nan, nan}, {complex, nan, nan}],
                   tessera:to_list(tessera:flatten(tessera:cholesky(tessera:tensor([[1, 0], [{complex, 0, 2}, 1]], c64)))))].

misuse_test_() ->
    A = tessera:eye(2, c64),
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <- [{"cholesky(c64[2,3]): expected square matrices", fun() -> tessera:cholesky(tessera:zeros({2, 3}, c64)) end},
                       {"transpose is adjoint, expected true or false", fun() -> tessera:triangular_solve(A, A, #{transpose => adjoint}) end}]].

%% ---- gradients: of functions of 18 real numbers, the parts of a matrix

matrix(X) ->
    [Re, Im] = [tessera:reshape(tessera:slice(X, [From], [9]), {3, 3}) || From <- [0, 9]],
    tessera:complex(Re, Im).

point() -> tessera:tensor([1.3, -0.7, 0.4, 0.9, 1.2, -0.4, 0.3, 0.2, 1.7, 0.5, 0.1, -0.6, 0.8, -0.3, 0.7, 0.2, 0.9, -0.5], f64).

%% A real function of complex numbers.
both(Z) -> tessera:add(tessera:real(Z), tessera:multiply(tessera:imag(Z), 0.7)).

%% A function that does not depend on the phases of columns: a sum of their products with weights.
projected(V) ->
    Weights = tessera:tensor([1.0, -0.5, 2.0], f64),
    both(product(tessera:multiply(V, tessera:as_type(Weights, c128)), adjoint(V))).

%% Of rank 2.
low(A) ->
    [Left, Right] = [tessera:slice(A, Start, Lengths) || {Start, Lengths} <- [{[0, 0], [3, 2]}, {[1, 0], [2, 3]}]],
    product(Left, tessera:exp(Right)).

%% The cofactors of a singular matrix, and gradients that do not depend on single vectors if all values are equal.
singular_test_() ->
    I = {complex, 0, 1},
    One = tessera:eye(2, c128),
    G = fun(F) -> tessera:grad(fun(A) -> both(tessera:sum(F(A))) end) end,
    Scale = {complex, 1, -0.7}, % of the gradient of both
    [?_test(close(tessera:multiply(tessera:tensor([[4, {complex, 0, -2}], [-2, I]], c128), Scale),
                  (G(fun tessera:determinant/1))(tessera:tensor([[I, 2], [{complex, 0, 2}, 4]], c128)))),
     ?_test(close(tessera:multiply(One, {complex, 1, 0}), (G(fun(A) -> element(2, tessera:svd(A)) end))(One))),
     ?_test(close(One, (G(fun(A) -> tessera:real(element(1, tessera:eigh(A))) end))(One))),
     ?_test(close(tessera:multiply(tessera:full({2, 2}, -1, c128), Scale), (G(fun tessera:pinv/1))(One)))].

gradients_test_() ->
    B = z({3, 2}, c128),
    Hermitian = fun(A) -> tessera:add(A, adjoint(A)) end,
    Triangular = fun(O) -> fun(A) -> both(tessera:triangular_solve(A, B, O)) end end,
    [{lists:flatten(io_lib:format("~0p", [Name])), ?_test(check_gradient(fun(X) -> F(matrix(X)) end, point()))}
     || {Name, F} <-
            [{cholesky, fun(A) -> both(tessera:cholesky(definite(A))) end},
             {solve, fun(A) -> both(tessera:solve(A, B)) end},
             {right_side, fun(A) -> both(tessera:solve(definite(z({3, 3}, c128)), A)) end},
             {inverse, fun(A) -> both(tessera:inverse(A)) end},
             {determinant, fun(A) -> both(tessera:determinant(A)) end},
             {lu, fun(A) -> {_, L, U} = tessera:lu(A), both(tessera:add(tessera:multiply(L, 2), U)) end},
             {q, fun(A) -> projected(element(1, tessera:qr(A))) end},
             {r, fun(A) -> tessera:abs(element(2, tessera:qr(tessera:add(A, tessera:eye(3, c128))))) end},
             {qr, fun(A) -> {Q, R} = tessera:qr(A), both(product(Q, product(tessera:multiply(tessera:eye(3, c128), 2), R))) end},
             {values, fun(A) -> tessera:real(element(1, tessera:eigh(Hermitian(A)))) end},
             {vectors, fun(A) -> projected(element(2, tessera:eigh(Hermitian(A)))) end},
             {singular_values, fun(A) -> element(2, tessera:svd(A)) end},
             {u, fun(A) -> projected(element(1, tessera:svd(A))) end},
             {v, fun(A) -> projected(adjoint(element(3, tessera:svd(A)))) end},
             {svd, fun(A) ->
                           {U, S, Vt} = tessera:svd(A),
                           both(product(tessera:multiply(U, as_row(tessera:sin(S))), Vt))
                   end},
             {tall, fun(A) ->
                            {U, S, Vt} = tessera:svd(tessera:slice(A, [0, 0], [3, 2])),
                            both(product(tessera:multiply(U, as_row(tessera:sin(S))), Vt))
                    end},
             {pinv, fun(A) -> both(tessera:pinv(tessera:slice(A, [0, 0], [3, 2]))) end},
             {pinv_wide, fun(A) -> both(tessera:pinv(tessera:slice(A, [0, 0], [2, 3]))) end},
             {pinv_low, fun(A) -> both(tessera:pinv(low(A))) end},
             {lstsq, fun(A) -> both(tessera:lstsq(tessera:slice(A, [0, 0], [3, 2]), tessera:multiply(tessera:slice(A, [0, 1], [3, 2]), B))) end},
             {lstsq_low, fun(A) -> both(tessera:lstsq(low(A), B)) end},
             {lstsq_real, fun(A) -> both(tessera:lstsq(tessera:real(tessera:slice(A, [0, 0], [3, 2])), B)) end},
             {determinant_low, fun(A) -> tessera:add(both(tessera:determinant(low(A))), 1) end},
             {q_wide, fun(A) -> projected(element(1, tessera:qr(tessera:concatenate([A, tessera:sin(A)], 1)))) end},
             {r_wide, fun(A) -> tessera:abs(element(2, tessera:qr(tessera:slice(A, [0, 0], [2, 3])))) end},
             {values_of_full, fun(A) -> element(2, tessera:svd(tessera:slice(A, [0, 0], [2, 3]), #{full => true})) end},
             {u_of_full, fun(A) ->
                                 U = element(1, tessera:svd(tessera:slice(A, [0, 0], [2, 3]), #{full => true})),
                                 both(product(tessera:multiply(U, tessera:tensor([1.0, -0.5], c128)), adjoint(U)))
                         end},
             {power, fun(A) -> both(tessera:matrix_power(A, 3)) end},
             {norm, fun tessera:norm/1},
             {nuclear, fun(A) -> tessera:norm(A, #{order => nuclear}) end}] ++
            [{O, Triangular(O)} || Lower <- [true, false], Transpose <- [false, true, conjugate], Unit <- [true, false],
                                   O <- [#{lower => Lower, transpose => Transpose, unit_diagonal => Unit}]]].

%% ---- processes

%% Many callers at once get the bits of one alone.
many_processes_test_() ->
    {timeout, 60, fun() ->
        All = fun() -> [tessera:to_binary(T) || N <- [4, 30], T <- tuple_to_list(tessera:svd(z({N, N}, c64)))] end,
        Expected = All(),
        Pids = [spawn_monitor(fun() -> exit(All()) end) || _ <- lists:seq(1, 1000)],
        [receive {'DOWN', Ref, process, Pid, Result} -> ?assertEqual(Expected, Result) end || {Pid, Ref} <- Pids]
    end}.

%% A caller that is killed inside of a long op: its run ends, its memory is freed, and other runs continue.
killed_callers_test_() ->
    Large = z({600, 600}, c128),
    [{timeout, 60, {atom_to_list(Name), fun() -> killed(F, Large) end}}
     || {Name, F} <- [{cholesky, fun(A) -> tessera:cholesky(definite(A)) end}, {lu, fun tessera:lu/1}, {qr, fun tessera:qr/1},
                      {eigh, fun tessera:eigh/1}, {svd, fun tessera:svd/1}, {solve, fun(A) -> tessera:solve(A, A) end},
                      {triangular_solve, fun(A) -> tessera:triangular_solve(A, A) end}]].

killed(F, Large) ->
    Small = z({5, 5}, c64),
    Expected = tessera:to_binary(element(1, tessera:qr(Small))),
    Before = maps:get(live, tessera:memory()),
    [begin
         {Pid, Ref} = spawn_monitor(fun() -> F(Large) end),
         timer:sleep(Delay),
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> ok end,
         ?assertEqual(Expected, tessera:to_binary(element(1, tessera:qr(Small))))
     end || Delay <- [0, 10, 40]],
    tessera_test:until_freed(fun() -> maps:get(live, tessera:memory()) =< Before + 1000 end).

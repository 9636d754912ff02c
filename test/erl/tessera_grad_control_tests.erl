%% Gradients through control flow. The gradient of a cond must be the gradient of the branch that is taken.
-module(tessera_grad_control_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [near/2, near/3, differences/2]).

-define(PROGRAMS, 60).

%% ---- results that are complex, some or all of them

mixed_results_test() ->
    F = fun(V) ->
                {A, B} = tessera:'cond'(tessera:greater(tessera:sum(V), 0),
                                        fun() -> C = tessera:complex(V, V), {V, tessera:multiply(C, C)} end,
                                        fun() -> {V, tessera:complex(V, V)} end),
                tessera:add(tessera:sum(A), tessera:sum(tessera:imag(B)))
        end,
    ?assertEqual([5.0, 13.0], tessera:to_list((tessera:grad(F))(tessera:tensor([1.0, 3.0])))),
    ?assertEqual([2.0, 2.0], tessera:to_list((tessera:grad(F))(tessera:tensor([-1.0, -3.0])))).

complex_results_test() ->
    F = fun(V) ->
                B = tessera:'cond'(tessera:greater(tessera:sum(V), 0),
                                   fun() -> C = tessera:complex(V, V), tessera:multiply(C, C) end,
                                   fun() -> tessera:complex(V, V) end),
                tessera:sum(tessera:imag(B))
        end,
    ?assertEqual([4.0, 12.0], tessera:to_list((tessera:grad(F))(tessera:tensor([1.0, 3.0])))),
    ?assertEqual([1.0, 1.0], tessera:to_list((tessera:grad(F))(tessera:tensor([-1.0, -3.0])))).

%% Only the complex result has a gradient.
only_complex_is_used_test() ->
    F = fun(Z) ->
                {_, W, _} = tessera:'cond'(tessera:greater(tessera:real(tessera:sum(Z)), 0),
                                           fun() -> {1, tessera:multiply(Z, Z), tessera:real(Z)} end,
                                           fun() -> {2, Z, tessera:imag(Z)} end),
                tessera:sum(tessera:real(W))
        end,
    ?assertEqual([{complex, 2.0, 4.0}, {complex, 6.0, 0.0}],
                 tessera:to_list((tessera:grad(F))(tessera:tensor([{complex, 1.0, 2.0}, 3.0], c64)))).

mixed_second_order_test() ->
    F = fun(V) ->
                {_, B} = tessera:'cond'(tessera:greater(tessera:sum(V), 0),
                                        fun() -> C = tessera:complex(V, V), {V, tessera:multiply(C, tessera:multiply(C, C))} end,
                                        fun() -> {V, tessera:complex(V, V)} end),
                tessera:sum(tessera:imag(B))
        end,
    %% The imaginary part of (x + ix)^3 is 2 x^3.
    Second = tessera:grad(fun(V) -> tessera:sum((tessera:grad(F))(V)) end),
    near([12.0, 36.0], tessera:to_list(Second(tessera:tensor([1.0, 3.0], f64)))).

%% relu has a rule of its own, also in a branch and in the gradient of a gradient: at 0 its gradient is 0, while max has a half.
relu_in_branch_test() ->
    F = fun(V) ->
                tessera:sum(tessera:'cond'(tessera:greater(tessera:sum(V), 0), fun() -> tessera:multiply(tessera:relu(V), V) end,
                                           fun() -> tessera:relu(tessera:negate(V)) end))
        end,
    X = tessera:tensor([0.0, -1.0, 2.0], f64),
    Twice = tessera:grad(fun(V) -> tessera:sum((tessera:grad(F))(V)) end),
    ?assertEqual([0.0, 0.0, 4.0], tessera:to_list((tessera:grad(F))(X))),
    ?assertEqual([0.0, 0.0, 2.0], tessera:to_list(Twice(X))),
    ?assert([0.0, -1.0, 0.0] == tessera:to_list((tessera:grad(F))(tessera:tensor([0.0, -3.0, 2.0], f64)))).

%% ---- random programs with nested conds. Their results are floats, complex numbers and integers in any order.

%% Two judges: the same program without conds, and central differences.
random_test_() ->
    {timeout, 120, ?_test([check(Seed) || Seed <- lists:seq(1, ?PROGRAMS)])}.

check(Seed) ->
    _ = rand:seed(exsss, {Seed, 17, 4}),
    Program = steps(3, 8, 2),
    Truths = [rand:uniform(2) =:= 1 || _ <- lists:seq(1, 4)],
    Given = tessera:tensor([case T of true -> 1; false -> 0 end || T <- Truths], u8),
    Point = tessera:tensor([rand:uniform() * 2 - 1 || _ <- lists:seq(1, 6)], f64),
    Through = fun(P) ->
                      fun(X) ->
                              loss(Program, X, fun(I, A, B) -> tessera:'cond'(tessera:at(P, [I]), A, B) end)
                      end
              end,
    Inlined = fun(X) ->
                      loss(Program, X, fun(I, A, B) -> case lists:nth(I + 1, Truths) of true -> A(); false -> B() end end)
              end,
    Gradient = tessera:to_list((tessera:jit(fun(P, X) -> (tessera:grad(Through(P)))(X) end))(Given, Point)),
    near([Seed | tessera:to_list((tessera:grad(Inlined))(Point))], [Seed | Gradient], 1.0e-9),
    case Seed rem 4 of
        0 -> near([Seed | differences(Inlined, Point)], [Seed | Gradient], 1.0e-4);
        _ -> ok
    end.

%% `Count` steps of a program with `Values` values. A step is {Op, Operands} or {'cond', Predicate, Branch, Branch}. A branch is
%% {Steps, Results}. Operands and results are numbers of values. The last value has number 1.
steps(0, _, _) -> [];
steps(Count, Values, Depth) ->
    {Step, Made} = case Depth > 0 andalso rand:uniform(2) of
                       1 -> choice(Values, Depth, rand:uniform(4));
                       _ -> {plain(Values), 1}
                   end,
    [Step | steps(Count - 1, Values + Made, Depth)].

plain(Values) ->
    {I, J} = {rand:uniform(Values), rand:uniform(Values)},
    pick([{sin, [I]}, {multiply, [I, J]}, {add, [I, J]}, {complex, [I, J]}, {real, [I]}, {imag, [I]}, {to_f64, [I]}, {to_c128, [I]},
          {floor, [I]}]).

choice(Values, Depth, Count) -> {{'cond', rand:uniform(4) - 1, branch(Values, Depth, Count), branch(Values, Depth, Count)}, Count}.

%% A step of a branch makes at least one value.
branch(Values, Depth, Count) ->
    Length = rand:uniform(3),
    {steps(Length, Values, Depth - 1), [rand:uniform(Values + Length) || _ <- lists:seq(1, Count)]}.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

loss(Steps, X, Cond) ->
    Values = run(Steps, start(X), Cond),
    lists:foldl(fun tessera:add/2, tessera:full({}, 0, f64),
                [tessera:add(weighed(real(V), I), weighed(imag(V), I + 0.5)) || {I, V} <- lists:enumerate(Values), inexact(V)]).

weighed(V, Weight) -> tessera:multiply(tessera:sum(tessera:as_type(V, f64)), math:sin(float(Weight))).

%% Eight values of the argument's six elements.
start(X) ->
    Part = fun(I) -> tessera:slice(X, [I], [2]) end,
    [tessera:complex(Part(I), Part(J)) || {I, J} <- [{0, 2}, {4, 0}, {1, 3}, {2, 4}]] ++ [Part(I) || I <- [0, 2, 4, 3]].

run([], Values, _) -> Values;
run([{'cond', Predicate, A, B} | Steps], Values, Cond) ->
    [BranchA, BranchB] = [fun() -> results(Branch, Values, Cond) end || Branch <- [A, B]],
    run(Steps, Cond(Predicate, BranchA, BranchB) ++ Values, Cond);
run([{Op, Operands} | Steps], Values, Cond) ->
    run(Steps, [apply_op(Op, [lists:nth(I, Values) || I <- Operands]) | Values], Cond).

%% The place of a result decides its type: an integer, a float, or a complex number.
results({Steps, Results}, Values, Cond) ->
    Made = run(Steps, Values, Cond),
    [as(Place rem 3, lists:nth(I, Made)) || {Place, I} <- lists:enumerate(Results)].

as(0, V) -> tessera:as_type(tessera:floor(real(V)), s32);
as(1, V) -> to_complex(V);
as(2, V) -> tessera:as_type(real(V), f64).

apply_op(sin, [V]) -> tessera:sin(V);
apply_op(multiply, [A, B]) -> tessera:sin(tessera:multiply(A, B));
apply_op(add, [A, B]) -> tessera:add(A, B);
apply_op(complex, [A, B]) -> tessera:complex(real(A), imag(B));
apply_op(real, [A]) -> real(A);
apply_op(imag, [A]) -> imag(A);
apply_op(to_f64, [A]) -> tessera:as_type(A, f64);
apply_op(to_c128, [A]) -> to_complex(A);
apply_op(floor, [A]) -> tessera:as_type(tessera:floor(real(A)), s32).

to_complex(V) -> tessera:as_type(V, c128).
real(V) -> tessera:real(V).
imag(V) -> tessera:imag(V).
inexact(#tessera{type = Type}) -> lists:member(Type, [f32, f64, c64, c128]).

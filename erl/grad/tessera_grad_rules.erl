%% @private How the operands of each op share in the gradient of its result.
%% Operands of elementwise ops have equal shapes and types here: tracing has added converts and broadcasts.
-module(tessera_grad_rules).
-include("tessera.hrl").
-export([shares/6]).

%% Derivatives of these ops are formulas of several ops. For types of fewer bits than f32 they are computed in f32 and rounded once: parts
%% of a formula may leave the range of a narrow type where the derivative does not.
-define(IS_NARROW(Type), (Type =:= f8 orelse Type =:= f8_e4m3fn orelse Type =:= f16 orelse Type =:= bf16)).
-define(HAS_FORMULA(Name),
        (Name =:= expm1 orelse Name =:= log1p orelse Name =:= sigmoid orelse Name =:= cos orelse Name =:= sin orelse Name =:= tan orelse
         Name =:= cosh orelse Name =:= sinh orelse Name =:= tanh orelse Name =:= acos orelse Name =:= asin orelse Name =:= atan orelse
         Name =:= atan2 orelse Name =:= acosh orelse Name =:= asinh orelse Name =:= atanh orelse Name =:= sqrt orelse Name =:= rsqrt orelse
         Name =:= cbrt orelse Name =:= erf orelse Name =:= erfc orelse Name =:= erf_inv)).

-type share() :: fun(() -> tessera_type:tensor() | none) | none.

%% A function for each operand that makes its gradient. `Gradients' are the results' gradients; `none' for a result that is not
%% used.
-spec shares(atom(), [tessera_type:tensor()], [tessera_type:tensor()], term(), [tessera_type:tensor() | none], [boolean()]) ->
          [share()].
shares('cond', [_ | Captured] = Operands, Results, [True, False], Gradients, [_ | Needed]) ->
    cond_shares(Operands, Captured, Results, True, False, Gradients, Needed);
shares(while, Operands, _, _, _, Needed) -> refuse(while, Operands, Needed);
shares(top_k, [_], _, _, [none, _], _) -> [none];
shares(top_k, [X], [_, Indices], _, [C, _], _) -> [fun() -> tessera_indices:untake_along(C, X, Indices, rank(X) - 1) end];
shares(lu, [_], _, _, [_, none, none], _) -> [none];
shares(lu, [_], Results, _, [_, L, U], _) -> [fun() -> tessera_linalg:lu_share(Results, L, U) end];
shares(qr, [A], [_, #tessera{shape = Shape}] = Results, _, [CQ, CR], _)
  when element(tuple_size(Shape) - 1, Shape) =< element(tuple_size(Shape), Shape) ->
    [fun() -> tessera_linalg:qr_share(A, Results, CQ, CR) end];
shares(eigh, [_], Results, _, [CValues, CVectors], _) -> [fun() -> tessera_linalg:eigh_share(Results, CValues, CVectors) end];
shares(svd, [A], Results, _, Gradients, _) ->
    case tessera_linalg:has_svd_share(Results, Gradients) of
        true -> [fun() -> tessera_linalg:svd_share(Results, Gradients) end];
        false -> unsupported(svd, [A])
    end;
shares(Name, Operands, [#tessera{type = Type} = R], Attrs, [C], Needed) when ?IS_NARROW(Type), ?HAS_FORMULA(Name) ->
    [fun() ->
             Wide = shares(Name, [wider(T) || T <- Operands], [wider(R)], Attrs, [wider(C)], Needed),
             tessera_ops:as_type((lists:nth(I, Wide))(), Type)
     end || I <- lists:seq(1, length(Operands))];
shares(Name, [X], [R], Attrs, [C], _) -> [one(Name, X, R, C, Attrs)];
shares(Name, Operands, [R], Attrs, [C], Needed) ->
    case many(Name, Operands, R, C, Attrs) of
        unknown -> refuse(Name, Operands, Needed);
        Shares -> Shares
    end;
shares(Name, Operands, _, _, _, Needed) -> refuse(Name, Operands, Needed).

wider(X) -> tessera_ops:as_type(X, f32).

refuse(Name, Operands, Needed) ->
    case lists:member(true, Needed) of
        true -> unsupported(Name, Operands);
        false -> [none || _ <- Operands]
    end.

-spec unsupported(atom(), [tessera_type:tensor()]) -> no_return().
unsupported(Name, Operands) ->
    tessera_error:raise(grad, Operands, unimplemented, "grad: the gradient through ~s is not supported~s",
                        [Name, instead(Name)]).

%% The replacement that the error message suggests.
instead(while) ->
    "; a loop whose length is known when the function is traced can be written with lists:foldl/3, which repeats its "
    "ops, and tessera:stop_grad/1 of what a loop gives makes it a constant";
instead(reduce) -> "; sum/2, product/2, reduce_max/2 and reduce_min/2 have gradients";
instead(qr) -> " with full => true where there are more rows than columns; without that option it is";
instead(svd) -> " for vectors that only full => true gives; singular values, and vectors without that option, have gradients";
instead(_) -> "".

%% ---- arithmetic, short

neg(A) -> tessera_elementwise:negate(A).
add(A, B) -> tessera_elementwise:add(A, B).
sub(A, B) -> tessera_elementwise:subtract(A, B).
mul(A, B) -> tessera_elementwise:multiply(A, B).
dv(A, B) -> tessera_elementwise:divide(A, B).
square(A) -> tessera_elementwise:multiply(A, A).

zeros_like(#tessera{type = Type, shape = Shape}) -> tessera_array:full(Shape, 0, Type).

rank(#tessera{shape = Shape}) -> tuple_size(Shape).

dims(#tessera{shape = Shape}) -> tuple_to_list(Shape).

%% ---- one operand: X, result R, gradient C of R

one(sharding_constraint, _, _, C, Attrs) -> fun() -> tessera_constraint:cut_like(C, Attrs) end;
one(exp, _, R, C, _) -> fun() -> mul(C, R) end;
one(expm1, X, _, C, _) -> fun() -> mul(C, tessera_elementwise:exp(X)) end;
one(log, X, _, C, _) -> fun() -> dv(C, X) end;
one(log1p, X, _, C, _) -> fun() -> dv(C, add(X, 1)) end;
one(sigmoid, X, _, C, _) -> fun() -> mul(C, slope(X)) end;
one(cos, X, _, C, _) -> fun() -> neg(mul(C, tessera_elementwise:sin(X))) end;
one(sin, X, _, C, _) -> fun() -> mul(C, tessera_elementwise:cos(X)) end;
one(tan, _, R, C, _) -> fun() -> mul(C, add(square(R), 1)) end;
one(cosh, X, _, C, _) -> fun() -> mul(C, tessera_elementwise:sinh(X)) end;
one(sinh, X, _, C, _) -> fun() -> mul(C, tessera_elementwise:cosh(X)) end;
one(tanh, X, _, C, _) -> fun() -> mul(C, mul(4, slope(mul(2, X)))) end;
one(acos, X, _, C, _) -> fun() -> neg(mul(C, arc(X))) end;
one(asin, X, _, C, _) -> fun() -> mul(C, arc(X)) end;
%% Where a real X^2 overflows, 1 / X^2 is below the normal numbers. A complex one may become NaN.
one(atan, #tessera{type = Type} = X, _, C, _) when Type =:= c64; Type =:= c128 -> fun() -> by_square_sum(C, one_of(X), X) end;
one(atan, X, _, C, _) -> fun() -> dv(C, add(square(X), 1)) end;
one(acosh, X, _, C, _) -> fun() -> mul(C, mul(tessera_elementwise:rsqrt(sub(X, 1)), tessera_elementwise:rsqrt(sub(X, -1)))) end;
one(asinh, X, _, C, _) ->
    fun() ->
            Size = larger_size(X, one_of(X)),
            mul(C, over_size(tessera_elementwise:rsqrt(sub(square(over_size(X, Size)), neg(square(dv(1, Size))))), Size))
    end;
one(atanh, X, _, C, _) -> fun() -> dv(C, mul(one_minus(X), sub(X, -1))) end;
one(sqrt, _, R, C, _) -> fun() -> dv(mul(C, 0.5), R) end;
one(rsqrt, X, R, C, _) -> fun() -> dv(mul(mul(C, -0.5), R), X) end;
one(cbrt, _, R, C, _) -> fun() -> dv(C, mul(3, square(R))) end;
one(erf, X, _, C, _) -> fun() -> mul(C, bell(X)) end;
one(erfc, X, _, C, _) -> fun() -> neg(mul(C, bell(X))) end;
one(erf_inv, _, R, C, _) -> fun() -> dv(C, bell(R)) end;
one(abs, #tessera{type = Type} = X, R, C, _) when Type =:= c64; Type =:= c128 ->
    fun() -> mul(C, dv(tessera_complex:conjugate(X), tessera_elementwise:select(tessera_elementwise:equal(R, 0), 1, R))) end;
%% What changes the size of X has no share; the rest is turned with it.
one(sign, #tessera{type = Type} = X, R, C, _) when Type =:= c64; Type =:= c128 ->
    fun() ->
            Along = mul(tessera_complex:real(mul(C, R)), tessera_complex:conjugate(R)),
            Size = tessera_elementwise:abs(X),
            IsZero = tessera_elementwise:equal(X, 0),
            tessera_elementwise:select(IsZero, tessera_array:full({}, 0, Type), dv(tessera_elementwise:subtract(C, Along), tessera_elementwise:select(IsZero, 1, Size)))
    end;
one(relu, X, _, C, _) -> fun() -> tessera_elementwise:select(tessera_elementwise:greater(X, 0), C, 0) end;
one(real, _, _, C, _) -> fun() -> tessera_complex:complex(C, 0) end;
one(imag, _, _, C, _) -> fun() -> tessera_complex:complex(0, neg(C)) end;
one(abs, X, _, C, _) -> fun() -> mul(C, tessera_elementwise:sign(X)) end;
one(negate, _, _, C, _) -> fun() -> neg(C) end;
one(convert, #tessera{type = Type}, _, C, _) -> fun() -> tessera_ops:as_type(C, Type) end;
one(reshape, #tessera{shape = Shape}, _, C, _) -> fun() -> tessera_ops:reshape(C, Shape) end;
one(broadcast, X, R, C, {_, Axes}) -> fun() -> unbroadcast(C, R, X, Axes) end;
one(transpose, _, _, C, Axes) -> fun() -> tessera_ops:transpose(C, inverse(Axes)) end;
one(reverse, _, _, C, Axes) -> fun() -> tessera_ops:reverse(C, Axes) end;
one(slice, X, R, C, Attrs) -> fun() -> unslice(C, X, R, Attrs) end;
one(reduce_sum, X, _, C, Axes) -> fun() -> spread(C, X, Axes) end;
one(reduce_product, X, _, C, Axes) -> fun() -> unproduct(C, X, Axes) end;
one(reduce_max, X, R, C, Axes) -> fun() -> share_among_equals(C, X, R, Axes) end;
one(reduce_min, X, R, C, Axes) -> fun() -> share_among_equals(C, X, R, Axes) end;
one(cumulative_sum, _, _, C, {Axis, Reverse}) ->
    fun() -> tessera_ops:cumulative_sum(C, #{axis => Axis, reverse => not Reverse}) end;
one(cumulative_product, X, _, C, {Axis, Reverse}) -> fun() -> uncumulate(C, X, Axis, Reverse) end;
one(Name, X, R, C, {Axis, Reverse}) when Name =:= cumulative_max; Name =:= cumulative_min ->
    fun() -> to_winners(C, X, R, Axis, Reverse) end;
one(sort, X, _, C, {Axis, Descending}) ->
    fun() -> tessera_indices:untake_along(C, X, tessera_order:argsort(X, #{axis => Axis, descending => Descending, type => s64}), Axis) end;
one(determinant, X, R, C, _) -> fun() -> tessera_linalg:determinant_share(X, R, C) end;
one(cofactors, X, _, C, _) -> fun() -> tessera_linalg:cofactors_share(X, C) end;
one(window_sum, X, _, C, Window) -> fun() -> tessera_windows:sum_share(C, X, Window) end;
one(window_product, X, _, C, Window) ->
    fun() -> tessera_windows:product_share(C, X, Window, fun(G, Elements) -> unproduct(G, Elements, [0]) end) end;
one(window_max, X, _, C, Window) -> fun() -> tessera_windows:choice_share(window_scatter_max, C, X, Window) end;
one(window_min, X, _, C, Window) -> fun() -> tessera_windows:choice_share(window_scatter_min, C, X, Window) end;
one(Op, X, _, C, Attrs) when Op =:= fft; Op =:= ifft; Op =:= rfft; Op =:= irfft ->
    fun() -> tessera_fft:share(Op, X, Attrs, C) end;
one(cholesky, _, R, C, _) -> fun() -> tessera_linalg:cholesky_share(R, C) end;
one(Flat, _, _, _, _) when Flat =:= sign; Flat =:= ceil; Flat =:= floor; Flat =:= round -> none;
one(Name, X, _, _, _) -> fun() -> unsupported(Name, [X]) end.

%% For a complex number with the sign of its imaginary part, also of a zero: the sign selects the side of a cut. For the same reason a
%% 1 is added by subtracting -1.
one_minus(#tessera{type = Type} = X) when Type =:= c64; Type =:= c128 -> neg(sub(X, 1));
one_minus(X) -> sub(1, X).

%% The derivative of asin. The difference 1 - X^2 would lose digits near 1. One root for real numbers; for complex ones the roots of both
%% factors, whose product overflows where they do not.
arc(#tessera{type = Type} = X) when Type =:= c64; Type =:= c128 ->
    mul(tessera_elementwise:rsqrt(one_minus(X)), tessera_elementwise:rsqrt(sub(X, -1)));
arc(X) -> tessera_elementwise:rsqrt(mul(one_minus(X), add(X, 1))).

%% The derivative of sigmoid, e^X / (1 + e^X)^2. It is the same for X and -X, and does not overflow for the one whose real part is
%% negative. The difference 1 - sigmoid(X) would lose digits.
slope(X) ->
    IsPositive = tessera_elementwise:greater(tessera_complex:real(X), 0),
    E = tessera_elementwise:exp(tessera_elementwise:select(IsPositive, neg(X), X)),
    dv(E, square(add(E, 1))).

%% The larger size of two values, or 1 where that is infinite. Squares of values over this size do not overflow, and those that vanish
%% do not count. It is a constant: results do not depend on it.
larger_size(X, Y) ->
    Largest = tessera_trace:stop_grad(tessera_elementwise:max(tessera_elementwise:abs(X), tessera_elementwise:abs(Y))),
    tessera_elementwise:select(tessera_elementwise:is_infinity(Largest), 1, Largest).

one_of(#tessera{type = Type}) -> tessera_array:full({}, 1, Type).

%% The parts of a complex number one by one, which keeps the signs of zeros.
over_size(#tessera{type = Type} = X, Size) when Type =:= c64; Type =:= c128 ->
    tessera_complex:complex(dv(tessera_complex:real(X), Size), dv(tessera_complex:imag(X), Size));
over_size(X, Size) -> dv(X, Size).

%% The derivative of erf.
bell(X) -> mul(tessera_elementwise:exp(neg(square(X))), 2 / math:sqrt(math:pi())).

inverse(Axes) -> [Index || {_, Index} <- lists:sort(lists:zip(Axes, tessera_type:dims(length(Axes))))].

%% Sums over the repeated elements.
unbroadcast(C, R, #tessera{shape = Shape} = X, Axes) ->
    New = tessera_type:dims(rank(R)) -- Axes,
    Stretched = [Axis || {Axis, 1} <- lists:zip(Axes, dims(X)), element(Axis + 1, R#tessera.shape) =/= 1],
    Summed = case New ++ Stretched of
                 [] -> C;
                 Repeated -> tessera_ops:as_type(tessera_ops:sum(C, #{axes => Repeated}), C#tessera.type)
             end,
    tessera_ops:reshape(Summed, Shape).

%% Moves the elements back to their positions in the operand, with zeros between.
unslice(C, X, R, {Starts, _, Strides}) ->
    Config = [{Start, Dim - Start - covered(Count, Stride), Stride - 1}
              || {Start, Stride, Dim, Count} <- zip4(Starts, Strides, dims(X), dims(R))],
    tessera_ops:pad(C, 0, Config).

covered(0, _) -> 0;
covered(Count, Stride) -> (Count - 1) * Stride + 1.

zip4([A | As], [B | Bs], [C | Cs], [D | Ds]) -> [{A, B, C, D} | zip4(As, Bs, Cs, Ds)];
zip4([], [], [], []) -> [].

%% Broadcasts a reduction's result to the elements that were reduced.
spread(C, #tessera{shape = Shape} = X, Axes) -> tessera_ops:broadcast(C, Shape, tessera_type:dims(rank(X)) -- Axes).

share_among_equals(C, X, R, Axes) ->
    #tessera{type = Type} = X,
    Equal = tessera_elementwise:equal(X, spread(R, X, Axes)),
    Count = tessera_ops:sum(tessera_ops:as_type(Equal, wide(Type)), #{axes => Axes}),
    %% Others are selected to have none: 0 times an infinite gradient would be NaN. Nothing equals a NaN, whose gradient is NaN everywhere.
    None = tessera_elementwise:select(tessera_elementwise:equal(Count, 0), tessera_array:full({}, nan, Type), tessera_array:full({}, 0, Type)),
    tessera_elementwise:select(Equal, spread(tessera_ops:as_type(dv(C, Count), Type), X, Axes), spread(None, X, Axes)).

%% The gradient of a product by an element is the product of the other elements, computed in a type of a larger range.
%% There is no division, so zeros and products that underflow are no special cases.
wide(f64) -> f64;
wide(f32) -> f64;
wide(c64) -> c128;
wide(c128) -> c128;
wide(_) -> f32.

%% The product of the other elements: of the earlier ones times the later ones.
unproduct(C, #tessera{type = Type, shape = Shape} = X, Axes) ->
    Kept = tessera_type:dims(rank(X)) -- Axes,
    Front = tessera_ops:transpose(tessera_ops:as_type(X, wide(Type)), Kept ++ Axes),
    Line = list_to_tuple([element(Axis + 1, Shape) || Axis <- Kept] ++
                         [lists:foldl(fun(Axis, N) -> N * element(Axis + 1, Shape) end, 1, Axes)]),
    Elements = tessera_ops:reshape(Front, Line),
    Last = length(Kept),
    Others = mul(products_before(Elements, Last), reversed(fun(T) -> products_before(T, Last) end, Elements, Last)),
    Back = tessera_ops:transpose(tessera_ops:reshape(Others, Front#tessera.shape), inverse(Kept ++ Axes)),
    tessera_ops:as_type(mul(tessera_ops:as_type(spread(C, X, Axes), wide(Type)), Back), Type).

%% Of y(j) = x(0) ... x(j), with c(j) the gradient of y(j): x(i) has the gradient x(0) ... x(i-1) s(i), where
%% s(i) = c(i) + x(i+1) c(i+1) + x(i+1) x(i+2) c(i+2) + ... = c(i) + x(i+1) s(i+1).
uncumulate(C, #tessera{type = Type} = X, Axis, Reverse) ->
    Gradient = fun([Cs, Xs]) ->
                       Next = shift(Xs, Axis, -1),
                       mul(products_before(Xs, Axis), recurrence(Cs, Next, Axis))
               end,
    Wide = [tessera_ops:as_type(T, wide(Type)) || T <- [C, X]],
    Result = case Reverse of
                 false -> Gradient(Wide);
                 true -> tessera_ops:reverse(Gradient([tessera_ops:reverse(T, Axis) || T <- Wide]), Axis)
             end,
    tessera_ops:as_type(Result, Type).

reversed(F, X, Axis) -> tessera_ops:reverse(F(tessera_ops:reverse(X, Axis)), Axis).

%% For each element the product of the elements before it along an axis.
products_before(X, Axis) -> tessera_ops:cumulative_product(shift(X, Axis, 1), #{axis => Axis}).

%% Shifts the elements along an axis; missing ones are ones.
shift(#tessera{shape = Shape} = X, Axis, By) ->
    case element(Axis + 1, Shape) of
        0 -> X;
        _ -> tessera_ops:pad(X, 1, [case I of Axis -> {By, -By, 0}; _ -> {0, 0, 0} end || I <- tessera_type:dims(rank(X))])
    end.

%% To the element that each result is, the first of equal ones: a new winner begins where the result changes. Among NaNs it is also the
%% first.
to_winners(C, X, R, Axis, Reverse) ->
    {By, Edge, Last} = case Reverse of
                           false -> {1, 0, fun tessera_ops:cumulative_max/2};
                           true -> {-1, element(Axis + 1, X#tessera.shape) - 1, fun tessera_ops:cumulative_min/2}
                       end,
    Before = shift(R, Axis, By),
    Index = tessera_array:iota(X#tessera.shape, s64, Axis),
    Same = tessera_elementwise:logical_or(tessera_elementwise:equal(R, Before), tessera_elementwise:logical_and(tessera_elementwise:is_nan(R), tessera_elementwise:is_nan(Before))),
    Begins = tessera_elementwise:logical_or(tessera_elementwise:equal(Index, Edge), tessera_elementwise:logical_not(Same)),
    %% The scan keeps the index of the last winner, since Edge is before all others.
    Winners = Last(tessera_elementwise:select(Begins, Index, Edge), #{axis => Axis, reverse => Reverse}),
    tessera_indices:untake_along(C, X, Winners, Axis).

%% s(i) = b(i) + a(i) s(i+1) along an axis, by halves. Pairs of elements form a recurrence half as long. It gives the
%% sums at even places, and the sums at odd places follow from them.
recurrence(B, A, Axis) ->
    case element(Axis + 1, B#tessera.shape) of
        Size when Size < 2 -> B;
        Size ->
            Half = Size div 2,
            [EvenB, EvenA] = [every_second(T, Axis, 0) || T <- [B, A]],
            [OddB, OddA] = [every_second(T, Axis, 1) || T <- [B, A]],
            [FirstB, FirstA] = [part(T, Axis, 0, Half) || T <- [EvenB, EvenA]],
            Even = recurrence(append(add(FirstB, mul(FirstA, OddB)), rest(EvenB, Axis, Half), Axis),
                              append(mul(FirstA, OddA), rest(EvenA, Axis, Half), Axis), Axis),
            Next = rest(Even, Axis, 1),
            Count = element(Axis + 1, Next#tessera.shape),
            Odd = append(add(part(OddB, Axis, 0, Count), mul(part(OddA, Axis, 0, Count), Next)),
                         rest(OddB, Axis, Count), Axis),
            append(interleave(part(Even, Axis, 0, Half), Odd, Axis), rest(Even, Axis, Half), Axis)
    end.

every_second(#tessera{shape = Shape} = X, Axis, First) ->
    At = fun(This, Other) -> [case I of Axis -> This; _ -> Other end || I <- tessera_type:dims(rank(X))] end,
    Lengths = setelement(Axis + 1, Shape, element(Axis + 1, Shape) - First),
    tessera_ops:slice(X, At(First, 0), tuple_to_list(Lengths), At(2, 1)).

part(#tessera{shape = Shape} = X, Axis, From, Count) ->
    case element(Axis + 1, Shape) of
        Count -> X;
        _ ->
            Starts = [case I of Axis -> From; _ -> 0 end || I <- tessera_type:dims(rank(X))],
            tessera_ops:slice(X, Starts, tuple_to_list(setelement(Axis + 1, Shape, Count)))
    end.

rest(#tessera{shape = Shape} = X, Axis, From) -> part(X, Axis, From, element(Axis + 1, Shape) - From).

append(A, #tessera{shape = Shape} = B, Axis) ->
    case element(Axis + 1, Shape) of
        0 -> A;
        _ -> tessera_ops:concatenate([A, B], Axis)
    end.

interleave(A, B, Axis) ->
    #tessera{shape = Shape} = A,
    Pairs = tessera_ops:stack([A, B], Axis + 1),
    tessera_ops:reshape(Pairs, setelement(Axis + 1, Shape, 2 * element(Axis + 1, Shape))).

%% ---- several operands

many(add, _, _, C, _) -> [fun() -> C end, fun() -> C end];
many(complex, _, _, C, _) -> [fun() -> tessera_complex:real(C) end, fun() -> neg(tessera_complex:imag(C)) end];
many(subtract, _, _, C, _) -> [fun() -> C end, fun() -> neg(C) end];
many(multiply, [X, Y], _, C, _) -> [fun() -> mul(C, Y) end, fun() -> mul(C, X) end];
many(divide, [_, Y], R, C, _) -> [fun() -> dv(C, Y) end, fun() -> neg(dv(mul(C, R), Y)) end];
many(remainder, [X, Y], R, C, _) -> [fun() -> C end, fun() -> neg(mul(C, dv(sub(X, R), Y))) end];
many(pow, [X, Y], R, C, _) -> [fun() -> pow_base(C, X, Y) end, fun() -> pow_exponent(C, X, R) end];
many(atan2, [Y, X], _, C, _) -> [fun() -> by_square_sum(C, X, Y) end, fun() -> neg(by_square_sum(C, Y, X)) end];
many(Name, [X, Y], R, C, _) when Name =:= max; Name =:= min -> [winner(X, Y, R, C), winner(Y, X, R, C)];
many(select, [P, _, _], _, C, _) -> [none | either(P, C)];
many(clamp, [X, Low, High], _, C, _) ->
    %% A lower limit above the upper one has no effect.
    [fun() -> tessera_elementwise:select(tessera_elementwise:logical_and(tessera_elementwise:greater_equal(X, Low), tessera_elementwise:less_equal(X, High)), C, 0) end,
     fun() -> tessera_elementwise:select(tessera_elementwise:logical_and(tessera_elementwise:less(X, Low), tessera_elementwise:less_equal(Low, High)), C, 0) end,
     fun() -> tessera_elementwise:select(tessera_elementwise:logical_or(tessera_elementwise:greater(X, High), tessera_elementwise:greater(Low, High)), C, 0) end];
many(pad, [X, _], R, C, Attrs) -> pad_shares(C, X, R, Attrs);
many(concatenate, Operands, _, C, Axis) -> concatenate_shares(C, Operands, Axis);
many(dynamic_slice, [X | Starts], _, C, _) ->
    [fun() -> tessera_ops:put_slice(zeros_like(X), Starts, C) end | [none || _ <- Starts]];
many(put_slice, [_, Update | Starts], _, C, _) ->
    [fun() -> tessera_ops:put_slice(C, Starts, zeros_like(Update)) end,
     fun() -> dynamic_slice(C, Starts, Update) end | [none || _ <- Starts]];
many(take, [X, Indices], _, C, Axis) -> [fun() -> tessera_indices:untake(C, X, Indices, Axis) end, none];
many(take_along_axis, [X, Indices], _, C, Axis) ->
    [fun() -> tessera_indices:untake_along(C, X, Indices, Axis) end, none];
many(indexed_add, [_, Indices, Updates], _, C, Axes) -> tessera_indices:indexed_add_shares(C, Indices, Updates, Axes);
many(indexed_put, [_, Indices, Updates], _, C, Axes) -> tessera_indices:indexed_put_shares(C, Indices, Updates, Axes);
many(solve, [A, _], R, C, _) -> tessera_linalg:solve_shares(A, R, C);
many(pinv, [A, _, _, _], R, C, _) -> [fun() -> tessera_linalg:pinv_share(A, R, C) end, none, none, none];
many(lstsq, [_, _ | Factors] = Operands, R, C, _) -> tessera_linalg:lstsq_shares(Operands, R, C) ++ [none || _ <- Factors];
many(Scatter, [X, Source, _], _, C, Window) when Scatter =:= window_scatter_max; Scatter =:= window_scatter_min ->
    tessera_windows:scatter_shares(Scatter, C, X, Source, Window);
many(conv, [X, K], _, C, Attrs) ->
    [fun() -> tessera_conv:input_share(C, X, K, Attrs) end, fun() -> tessera_conv:kernel_share(C, X, K, Attrs) end];
many(triangular_solve, [A, _], R, C, Attrs) -> tessera_linalg:triangular_shares(A, R, C, Attrs);
many(dot_general, [A, B], _, C, Attrs) -> dot_shares(C, A, B, Attrs);
many(quantized_dot, [X, Words, Scales | Others], _, C, Attrs) ->
    tessera_quantize:shares(C, X, Words, Scales, Others, Attrs);
many(Name, [_, _], _, _, _) when Name =:= quotient -> [none, none];
many(_, _, _, _, _) -> unknown.

%% The first where the predicate holds, else the second.
either(P, C) -> [fun() -> tessera_elementwise:select(P, C, 0) end, fun() -> tessera_elementwise:select(P, 0, C) end].

%% The share of X in the gradient of the larger or smaller of X and Y: half of it if they are equal. A NaN has none.
winner(X, Y, R, C) ->
    fun() -> mul(tessera_elementwise:select(tessera_elementwise:equal(X, R), C, 0), tessera_elementwise:select(tessera_elementwise:equal(X, Y), 0.5, 1.0)) end.

%% C X / (X^2 + Y^2)
by_square_sum(C, X, Y) ->
    Size = larger_size(X, Y),
    [A, B] = [over_size(T, Size) || T <- [X, Y]],
    over_size(dv(mul(C, A), add(square(A), square(B))), Size).

%% 0 where the exponent is 0, for any base. The product with the exponent gives that, and depends on the exponent, where base and
%% 1 / base are finite.
pow_base(C, X, Y) ->
    IsZero = tessera_elementwise:equal(Y, 0),
    IsRegular = tessera_elementwise:logical_and(tessera_floats:is_finite(X), tessera_floats:is_finite(dv(1, X))),
    Base = tessera_elementwise:select(IsZero, tessera_elementwise:select(IsRegular, X, 1), X),
    Product = mul(Y, tessera_ops:pow(Base, sub(Y, 1))),
    %% Of an exponent that is known not to be 0 only the product is left.
    mul(C, tessera_elementwise:select(IsZero, tessera_elementwise:select(IsRegular, Product, 0), Product)).

pow_exponent(C, #tessera{type = Type} = X, R) when Type =:= c64; Type =:= c128 ->
    Zero = tessera_elementwise:equal(X, 0),
    mul(C, tessera_elementwise:select(Zero, 0, mul(R, tessera_elementwise:log(tessera_elementwise:select(Zero, 1, X)))));
pow_exponent(C, X, R) ->
    %% a power of 0 has none either: the logarithm of an infinite base would make it NaN
    Counts = tessera_elementwise:logical_and(tessera_elementwise:greater(X, 0), tessera_elementwise:not_equal(R, 0)),
    mul(C, tessera_elementwise:select(Counts, mul(R, tessera_elementwise:log(tessera_elementwise:select(Counts, X, 1))), 0)).

dynamic_slice(C, Starts, #tessera{shape = Shape}) -> tessera_trace:op(grad, dynamic_slice, [C | Starts], Shape).

%% Elements that negative padding removed have the gradient 0.
pad_shares(C, X, R, {Lows, Highs, Interiors}) ->
    Inner = fun() ->
                    Whole = tessera_ops:pad(C, 0, [{-Low, -High, 0} || {Low, High} <- lists:zip(Lows, Highs)]),
                    Lengths = dims(Whole),
                    tessera_ops:slice(Whole, [0 || _ <- Lengths], Lengths, [I + 1 || I <- Interiors])
            end,
    #tessera{type = Type} = R,
    %% Not the difference of two sums: the elements of X may be far larger, or have infinite gradients.
    Outside = fun() -> tessera_ops:pad(tessera_array:full(X#tessera.shape, 0, u8), tessera_array:full({}, 1, u8), lists:zip3(Lows, Highs, Interiors)) end,
    [fun() -> tessera_ops:reshape(Inner(), X#tessera.shape) end,
     fun() -> tessera_ops:as_type(tessera_ops:sum(tessera_elementwise:select(Outside(), C, tessera_array:full({}, 0, Type))), Type) end].

concatenate_shares(C, Operands, Axis) ->
    Sizes = [element(Axis + 1, Shape) || #tessera{shape = Shape} <- Operands],
    {Starts, _} = lists:mapfoldl(fun(Size, From) -> {From, From + Size} end, 0, Sizes),
    [fun() ->
             tessera_ops:slice(C, [case I of Axis -> Start; _ -> 0 end || I <- tessera_type:dims(rank(Operand))], dims(Operand))
     end || {Operand, Start} <- lists:zip(Operands, Starts)].

%% Each factor's gradient is the gradient times the other, over the other's free axes.
dot_shares(C, A, B, {ContractA, BatchA, ContractB, BatchB}) ->
    Batch = length(BatchA),
    FreeA = tessera_type:dims(rank(A)) -- (ContractA ++ BatchA),
    FreeB = tessera_type:dims(rank(B)) -- (ContractB ++ BatchB),
    [InC, InCAfter] = [lists:seq(Batch, Batch + length(FreeA) - 1),
                       lists:seq(Batch + length(FreeA), Batch + length(FreeA) + length(FreeB) - 1)],
    BatchC = tessera_type:dims(Batch),
    [fun() ->
             Product = tessera_ops:dot(C, InCAfter, BatchC, B, FreeB, BatchB),
             arrange(Product, BatchA ++ FreeA ++ partners(ContractB, ContractA))
     end,
     fun() ->
             Product = tessera_ops:dot(C, InC, BatchC, A, FreeA, BatchA),
             arrange(Product, BatchB ++ FreeB ++ partners(ContractA, ContractB))
     end].

%% The contracted axes, in the order of the other operand's.
partners(Others, Own) -> [Axis || {_, Axis} <- lists:sort(lists:zip(Others, Own))].

%% Axis I of the product becomes axis number I of the list.
arrange(Product, Axes) ->
    case lists:sort(Axes) of
        Axes -> Product;
        _ -> tessera_ops:transpose(Product, inverse(Axes))
    end.

%% ---- cond: another cond, whose branches recompute the forward branches and differentiate them

cond_shares([Predicate | _], Captured, Results, True, False, Gradients, Needed) ->
    Sets = case tessera_varying:is_local() of
               true -> tessera_varying:varying(Results);
               false -> [0 || _ <- Results]
           end,
    Cotangents = [{Set, case G of none -> zeros_like(R); _ -> G end}
                  || {G, R, Set} <- lists:zip3(Gradients, Results, Sets), tessera_type:is_inexact_type(R#tessera.type)],
    Branch = fun(Region) -> fun() -> branch(Region, Captured, Cotangents, Needed, lists:foldl(fun erlang:'bor'/2, 0, Sets)) end end,
    case lists:member(true, Needed) of
        false -> [none | [none || _ <- Captured]];
        true ->
            Made = tessera_control:'cond'(Predicate, Branch(True), Branch(False)),
            [none | spread_out(Made, Needed)]
    end.

%% Set: the axes over which the op's results vary. Sums over mesh axes are made outside.
branch(Region, Captured, Cotangents, Needed, Set) ->
    Own = [tessera_varying:marked(tessera_trace:op(grad, reshape, [V], V#tessera.shape), Set) || V <- Captured],
    Copies = tessera_trace:inline(Region, Own),
    Inexact = [R || #tessera{type = Type} = R <- Copies, tessera_type:is_inexact_type(Type)],
    %% Seen from inside the branch; a result may be an argument itself.
    Results = [tessera_trace:op(grad, reshape, [R], R#tessera.shape) || R <- Inexact],
    Shares = tessera_grad:pullback(Own, Results, [{Varies, tessera_trace:value(grad, C)} || {Varies, C} <- Cotangents]),
    [Share || {Share, true} <- lists:zip(Shares, Needed)].

spread_out([Share | Shares], [true | Needed]) -> [fun() -> Share end | spread_out(Shares, Needed)];
spread_out(Shares, [false | Needed]) -> [none | spread_out(Shares, Needed)];
spread_out([], []) -> [].

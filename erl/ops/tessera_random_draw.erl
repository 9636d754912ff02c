%% @private Distributions: samples from a key, parameters of the result's type, and a form {Type, Shape}. Gradients pass
%% from a sample to the parameters of its distribution, the random bits being fixed (D. P. Kingma, M. Welling,
%% "Auto-encoding variational Bayes", 2013), except where a sample is found by rejection.
-module(tessera_random_draw).
-include("tessera.hrl").
-export([uniform/3, normal/3, multivariate_normal/3, randint/4, randint_between/3, before/2, gumbel/3, bernoulli/3,
         exponential/3, laplace/3, logistic/3, cauchy/3, log_normal/3, pareto/3, weibull/3, rayleigh/3, geometric/3, truncated_normal/3, gamma/3, beta/3, dirichlet/3, chi_square/3,
         student_t/3, poisson/3, binomial/3, wide/1]).

-import(tessera_elementwise, [add/2, subtract/2, multiply/2, divide/2, negate/1, log/1, log1p/1, exp/1, sqrt/1, select/3, less/2,
                              greater/2, less_equal/2, greater_equal/2, logical_and/2, logical_or/2, logical_not/1]).
-import(tessera_ops, [as_type/2]).

-define(SQRT_2, 1.4142135623730951).
-define(PI, 3.141592653589793).
-define(LOG_SQRT_2_PI, 0.9189385332046728).

%% Types whose uniform numbers are few: 4 of f8, 8 of f8_e4m3fn, 128 of bf16, 1024 of f16.
-define(IS_F8(Type), (Type =:= f8 orelse Type =:= f8_e4m3fn)).
-define(IS_NARROW(Type), (?IS_F8(Type) orelse Type =:= bf16 orelse Type =:= f16)).

-type tensor() :: tessera_type:tensor().
-type form() :: {tessera_type:type(), tessera_type:shape()}.

%% ---- by one uniform number

%% The samples of f32, rounded.
rounded(F, Key, Params, {Type, Shape}) -> as_type(F(Key, [as_type(P, f32) || P <- Params], {f32, Shape}), Type).

%% From Min up to, but not including, Max: where a sum rounds to Max or beyond, it is the largest number below. If the
%% difference of the bounds is infinite, their halves are used, and twice the result. Of bounds that are not finite NaN.
-spec uniform(tensor(), [tensor()], form()) -> tensor().
uniform(Key, [Min, Max] = Bounds, {Type, _} = Form) when ?IS_F8(Type) ->
    below(rounded(fun uniform/3, Key, Bounds, Form), Min, Max);
uniform(Key, [Min, Max], {Type, _} = Form) ->
    IsWide = tessera_elementwise:is_infinity(subtract(Max, Min)),
    [Half, Twice] = [select(IsWide, tessera_array:full({}, N, Type), tessera_array:full({}, 1, Type)) || N <- [0.5, 2]],
    Low = multiply(Min, Half),
    Scaled = between(Key, Low, multiply(Max, Half), Form),
    below(multiply(Scaled, Twice), Min, Max).

%% Nx's formula, for bounds without a sum that rounds to Max.
between(Key, Min, Max, {Type, Shape}) ->
    Scaled = multiply(tessera_random_bits:unit(Key, Type, Shape), subtract(Max, Min)),
    tessera_elementwise:max(add(Scaled, Min), Min).

%% The gradient is Max's where a sample is the number below Max.
below(Samples, Min, #tessera{type = Type} = Max) ->
    Gap = tessera_trace:stop_grad(subtract(number_below(Max, Type), Max)),
    tessera_elementwise:max(tessera_elementwise:min(Samples, add(Max, Gap)), Min).

number_below(Max, Type) ->
    {Bits, Width} = case tessera_type:bytes(Type) of
                        1 -> {s8, 8};
                        2 -> {s16, 16};
                        4 -> {s32, 32};
                        8 -> {s64, 64}
                    end,
    Given = tessera_elementwise:bitcast(tessera_trace:stop_grad(Max), Bits),
    Integer = fun(N) -> tessera_array:full({}, N, Bits) end,
    Next = select(greater(Max, 0), subtract(Given, Integer(1)),
                  select(less(Max, 0), add(Given, Integer(1)), Integer(1 - (1 bsl (Width - 1))))),
    IsFinite = logical_not(logical_or(tessera_elementwise:is_infinity(Max), tessera_elementwise:is_nan(Max))),
    select(IsFinite, tessera_elementwise:bitcast(Next, Type), tessera_array:full({}, nan, Type)).

%% In (0, 1]: a logarithm of it is finite.
above_zero(Key, {Type, Shape}) -> subtract(1, tessera_random_bits:unit(Key, Type, Shape)).

-spec normal(tensor(), [tensor()], form()) -> tensor().
normal(Key, Params, {Type, _} = Form) when ?IS_F8(Type) -> rounded(fun normal/3, Key, Params, Form);
normal(Key, [Mean, Deviation], Form) -> add(multiply(Deviation, standard_normal(Key, Form)), Mean).

standard_normal(Key, {Type, _} = Form) ->
    Uniform = between(Key, tessera_array:full({}, above_minus_one(Type), Type), tessera_array:full({}, 1, Type), Form),
    multiply(sqrt(tessera_array:full({}, 2, Type)), tessera_elementwise:erf_inv(finite(Uniform, Type))).

%% The number next to -1 inside of (-1, 1); for bf16 Nx's number, which rounds to -1.
above_minus_one(f64) -> -1.0 + math:pow(2, -53);
above_minus_one(f32) -> -1.0 + math:pow(2, -24);
above_minus_one(_) -> -1.0 + math:pow(2, -11).

%% Nx has an infinity once in 128 numbers of bf16; a normal distribution has none.
finite(Uniform, bf16) -> tessera_elementwise:max(Uniform, -0.99609375);
finite(Uniform, _) -> Uniform.

%% Along the last axis of the shape; the covariance follows from a Cholesky factor times normal numbers.
-spec multivariate_normal(tensor(), [tensor()], form()) -> tensor().
multivariate_normal(Key, Params, {Type, _} = Form) when ?IS_F8(Type) -> rounded(fun multivariate_normal/3, Key, Params, Form);
multivariate_normal(Key, [Mean, Covariance], {_, Shape} = Form) ->
    Size = tessera_array:size(Mean),
    Rows = tessera_type:elements(Shape) div max(1, Size),
    Standard = tessera_ops:reshape(standard_normal(Key, Form), {Rows, Size}),
    tessera_ops:reshape(add(Mean, tessera_ops:dot(Standard, [1], tessera_linalg:cholesky(Covariance), [1])), Shape).

-spec gumbel(tensor(), [tensor()], form()) -> tensor().
gumbel(Key, [], {Type, _} = Form) when ?IS_F8(Type) -> rounded(fun gumbel/3, Key, [], Form);
gumbel(Key, [], {Type, _} = Form) ->
    Least = tessera_array:full({}, least_normal(Type), Type),
    negate(log(negate(log(between(Key, Least, tessera_array:full({}, 1, Type), Form))))).

least_normal(f64) -> 2.2250738585072014e-308;
least_normal(f16) -> 6.103515625e-5;
least_normal(_) -> 1.1754943508222875e-38.

-spec bernoulli(tensor(), [tensor()], form()) -> tensor().
bernoulli(Key, [P], {Type, Shape}) when ?IS_NARROW(Type) -> bernoulli(Key, [as_type(P, f32)], {f32, Shape});
bernoulli(Key, [P], {Type, Shape}) -> less(tessera_random_bits:unit(Key, Type, Shape), P).

-spec exponential(tensor(), [tensor()], form()) -> tensor().
exponential(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun exponential/3, Key, Params, Form);
exponential(Key, [Scale], Form) -> multiply(standard_exponential(Key, Form), Scale).

standard_exponential(Key, {Type, Shape}) -> negate(log1p(negate(tessera_random_bits:unit(Key, Type, Shape)))).

%% An exponential number with a random sign, by one uniform number of (-1, 1).
-spec laplace(tensor(), [tensor()], form()) -> tensor().
laplace(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun laplace/3, Key, Params, Form);
laplace(Key, [Mean, Scale], {Type, _} = Form) ->
    Both = between(Key, tessera_array:full({}, above_minus_one(Type), Type), tessera_array:full({}, 1, Type), Form),
    Standard = negate(multiply(tessera_elementwise:sign(Both), log1p(negate(tessera_elementwise:abs(Both))))),
    add(multiply(Standard, Scale), Mean).

-spec logistic(tensor(), [tensor()], form()) -> tensor().
logistic(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun logistic/3, Key, Params, Form);
logistic(Key, [Mean, Scale], {Type, _} = Form) ->
    Uniform = between(Key, tessera_array:full({}, least_normal(Type), Type), tessera_array:full({}, 1, Type), Form),
    add(multiply(subtract(log(Uniform), log1p(negate(Uniform))), Scale), Mean).

%% The middle of the range is 0, so that tan has its accuracy where the density is largest.
-spec cauchy(tensor(), [tensor()], form()) -> tensor().
cauchy(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun cauchy/3, Key, Params, Form);
cauchy(Key, [Mean, Scale], {Type, Shape}) ->
    Angle = multiply(subtract(tessera_random_bits:unit(Key, Type, Shape), 0.5), ?PI),
    add(multiply(tessera_elementwise:tan(Angle), Scale), Mean).

-spec log_normal(tensor(), [tensor()], form()) -> tensor().
log_normal(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun log_normal/3, Key, Params, Form);
log_normal(Key, Params, Form) -> exp(normal(Key, Params, Form)).

-spec pareto(tensor(), [tensor()], form()) -> tensor().
pareto(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun pareto/3, Key, Params, Form);
pareto(Key, [Exponent], Form) -> exp(divide(standard_exponential(Key, Form), Exponent)).

-spec weibull(tensor(), [tensor()], form()) -> tensor().
weibull(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun weibull/3, Key, Params, Form);
weibull(Key, [Exponent, Scale], Form) ->
    multiply(tessera_ops:pow(standard_exponential(Key, Form), divide(1, Exponent)), Scale).

-spec rayleigh(tensor(), [tensor()], form()) -> tensor().
rayleigh(Key, Params, {Type, _} = Form) when ?IS_NARROW(Type) -> rounded(fun rayleigh/3, Key, Params, Form);
rayleigh(Key, [Scale], Form) -> multiply(sqrt(multiply(standard_exponential(Key, Form), 2)), Scale).

%% Trials up to the first success, from 1 on: floats.
-spec geometric(tensor(), [tensor()], form()) -> tensor().
geometric(Key, [P], Form) ->
    Trials = tessera_elementwise:ceil(divide(log(above_zero(Key, Form)), log1p(negate(P)))),
    valid(logical_and(greater(P, 0), less_equal(P, 1)), tessera_elementwise:max(Trials, 1)).

valid(Test, Samples) -> select(Test, Samples, nan).

%% The inverse of the distribution, in f64: exact to seven deviations from the mean.
-spec truncated_normal(tensor(), [tensor()], form()) -> tensor().
truncated_normal(Key, [Lower, Upper], {Type, Shape}) ->
    [Low, High] = [tessera_elementwise:erf(divide(as_type(Bound, f64), ?SQRT_2)) || Bound <- [Lower, Upper]],
    Between = between(Key, Low, High, {f64, Shape}),
    Inner = 1 - math:pow(2, -53),
    Samples = multiply(tessera_elementwise:erf_inv(tessera_elementwise:clip(Between, -Inner, Inner)), ?SQRT_2),
    valid(less(Lower, Upper), tessera_elementwise:min(tessera_elementwise:max(as_type(Samples, Type), Lower), Upper)).

%% ---- integers

%% Integers from Min on, as many as Span says, of that type; a span of 0 stands for 2^64. A product of two random
%% numbers modulo the span is less uneven than one; Nx and JAX do the same.
-spec randint(tensor(), [tensor()], form(), non_neg_integer() | tensor()) -> tensor().
randint(Key, [Min], {Type, Shape}, 0) -> add(as_type(tessera_random_bits:bits(Key, 64, Shape), Type), Min);
randint(Key, [Min], {Type, Shape}, Span0) ->
    Width = 8 * tessera_type:bytes(Type),
    Both = tessera_random_bits:bits(Key, Width, list_to_tuple([2 | tuple_to_list(Shape)])),
    Wide = computed_in(Width, Span0),
    [High, Low] = [as_type(tessera_shapes:at(Both, [I]), Wide) || I <- [0, 1]],
    Span = case Span0 of
               #tessera{} -> Span0;
               _ -> tessera_array:full({}, Span0, Wide)
           end,
    Rem = fun(X) -> tessera_elementwise:remainder(X, Span) end,
    Half = Rem(tessera_array:full({}, 1 bsl (Width div 2), Wide)),
    Offset = Rem(add(multiply(Rem(High), Rem(multiply(Half, Half))), Rem(Low))),
    add(as_type(Offset, Type), Min).

%% The type of the remainders. Of 32 bits where the product of two of them and a third one have a sum below 2^32.
computed_in(Width, Span) when is_integer(Span), Span =< 16#10000, Width =< 32 -> u32;
computed_in(_, _) -> u64.

%% From Min to Last, of tensors; Min where that is no range. The span has 64 bits, since the bounds' own type may not
%% hold it. The span of the whole range of 64 bits is 0; a remainder by 0 is the number itself.
-spec randint_between(tensor(), [tensor()], form()) -> tensor().
randint_between(Key, [Min0, Last0], {Type, _} = Form) ->
    [Min, Last] = Bounds = [nearest(Bound, Type) || Bound <- [Min0, Last0]],
    [From, To] = [as_type(Bound, u64) || Bound <- Bounds],
    randint(Key, [as_type(Min, Type)], Form, select(less(Last, Min), 1, add(subtract(To, From), 1))).

%% The predecessors of a tensor's integers, in 64 bits. Integers up to the type's smallest number have that number.
-spec before(tensor(), tessera_type:type()) -> tensor().
before(Past, Type) ->
    Nearest = nearest(Past, Type),
    {Least, Largest} = tessera_type:range(Type),
    Before = subtract(Nearest, as_type(greater(Nearest, Least), wide_integer(Type))),
    select(is_above(Past, Largest), Largest, Before).

%% The nearest integers of a type, in 64 bits.
nearest(#tessera{type = Given} = Integers, Type) ->
    {Least, Largest} = tessera_type:range(Type),
    Wide = wide_integer(Type),
    {Lowest, Highest} = tessera_type:range(wide_integer(Given)),
    Clipped = tessera_elementwise:clip(as_type(Integers, wide_integer(Given)), max(Least, Lowest), min(Largest, Highest)),
    as_type(Clipped, Wide).

is_above(#tessera{type = Given} = Integers, Largest) ->
    {_, Highest} = tessera_type:range(wide_integer(Given)),
    greater(as_type(Integers, wide_integer(Given)), min(Largest, Highest)).

wide_integer(Type) ->
    case tessera_type:kind(Type) of
        {s, _} -> s64;
        {u, _} -> u64
    end.

%% ---- by rejection: all elements are tried until each has a sample

%% Try(Key) makes candidates and the mask of the accepted ones.
-spec rejection(tensor(), form(), fun((tensor()) -> {tensor(), tensor()})) -> tensor().
rejection(Key, {Type, Shape}, Try) ->
    {_, Samples, _} = tessera_control:while(
        {Key, tessera_array:full(Shape, 0, Type), tessera_array:full(Shape, 0, u8)},
        fun({_, _, Done}) -> logical_not(tessera_ops:all(Done)) end,
        fun({K, Old, Done}) ->
                [Next, Own] = tessera_random_bits:split(K, 2),
                {Candidates, Accepted} = Try(Own),
                {Next, select(Done, Old, Candidates), logical_or(Done, Accepted)}
        end),
    tessera_trace:stop_grad(Samples).

%% The type of the search for samples.
-spec wide(tessera_type:type()) -> f32 | f64.
wide(f64) -> f64;
wide(_) -> f32.

%% G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000. For exponents below 1, a sample
%% for the exponent plus one, times a power of a uniform number; its logarithm stays finite where the sample is too
%% small for a float. Returns both factors, the second as a logarithm.
gamma_parts(Key, Alpha0, {Type, Shape}) ->
    Alpha = tessera_ops:broadcast_to(tessera_trace:stop_grad(Alpha0), Shape),
    Form = {Type, Shape},
    [Search, Power] = tessera_random_bits:split(Key, 2),
    Good = logical_and(greater(Alpha, 0), less(Alpha, infinity)),
    A = select(Good, select(less(Alpha, 1), add(Alpha, 1), Alpha), 1),
    D = subtract(A, 1 / 3),
    C = divide(1, sqrt(multiply(D, 9))),
    Samples = rejection(Search, Form, fun(K) -> try_gamma(K, D, C, Form) end),
    Boost = select(less(Alpha, 1), divide(log(above_zero(Power, Form)), Alpha), 0),
    Base = select(tessera_elementwise:equal(Alpha, infinity), infinity, valid(Good, Samples)),
    {Base, tessera_trace:stop_grad(Boost)}.

try_gamma(Key, D, C, Form) ->
    [ForNormal, ForUniform] = tessera_random_bits:split(Key, 2),
    X = standard_normal(ForNormal, Form),
    W = multiply(C, X),
    %% (1 + w)^3 - 1, as of large exponents few numbers beside 1 are possible. The sum with 1 would cancel where (1 + w)^3 is small.
    Above = multiply(W, add(3, multiply(W, add(3, W)))),
    Positive = greater(W, -1),
    Growth = select(Positive, Above, 0),
    Small = less(W, -0.5),
    Root = add(1, W),
    Cube = multiply(Root, multiply(Root, Root)),
    Log = select(Small, multiply(3, log(select(Positive, Root, 1))), log1p(Growth)),
    Bound = add(multiply(0.5, multiply(X, X)), multiply(D, subtract(Log, Growth))),
    {select(Small, multiply(D, Cube), add(D, multiply(D, Growth))), logical_and(Positive, less(log(above_zero(ForUniform, Form)), Bound))}.

-spec gamma(tensor(), [tensor()], form()) -> tensor().
gamma(Key, [Exponent, Scale], {Type, Shape}) ->
    {Base, Boost} = gamma_parts(Key, as_type(Exponent, wide(Type)), {wide(Type), Shape}),
    multiply(as_type(multiply(Base, exp(Boost)), Type), Scale).

wide_parts(Key, Exponent, {Type, Shape}) -> gamma_parts(Key, as_type(Exponent, wide(Type)), {wide(Type), Shape}).

%% The share of the first of two gamma numbers; by logarithms, since both may be too small for a float. The logarithm is that of a
%% quotient: the difference of two logarithms has lost the digits of shares of large exponents.
-spec beta(tensor(), [tensor()], form()) -> tensor().
beta(Key, [A, B], {Type, _} = Form) ->
    [ForA, ForB] = tessera_random_bits:split(Key, 2),
    {BaseA, BoostA} = wide_parts(ForA, A, Form),
    {BaseB, BoostB} = wide_parts(ForB, B, Form),
    as_type(tessera_elementwise:sigmoid(add(log(divide(BaseA, BaseB)), subtract(BoostA, BoostB))), Type).

%% Shares of gamma numbers along the last axis.
-spec dirichlet(tensor(), [tensor()], form()) -> tensor().
dirichlet(Key, [Exponents], {Type, _} = Form) ->
    {Base, Boost} = wide_parts(Key, Exponents, Form),
    Largest = tessera_ops:reduce_max(Base, #{axes => [-1], keep_axes => true}),
    as_type(tessera_ops:softmax(add(log(divide(Base, Largest)), Boost), #{axes => [-1]}), Type).

-spec chi_square(tensor(), [tensor()], form()) -> tensor().
chi_square(Key, [Freedom], {Type, _} = Form) ->
    gamma(Key, [multiply(Freedom, 0.5), tessera_array:full({}, 2, Type)], Form).

-spec student_t(tensor(), [tensor()], form()) -> tensor().
student_t(Key, [Freedom], {Type, Shape}) ->
    [ForNormal, ForGamma] = tessera_random_bits:split(Key, 2),
    Form = {wide(Type), Shape},
    Wide = as_type(Freedom, wide(Type)),
    Half = multiply(Wide, 0.5),
    Sum = divide(gamma(ForGamma, [Half, tessera_array:full({}, 1, wide(Type))], Form), Half),
    Mean = select(tessera_elementwise:equal(Wide, infinity), 1, Sum), %% then it is the normal distribution
    as_type(divide(standard_normal(ForNormal, Form), sqrt(Mean)), Type).

%% ---- counts, in f64: a logarithm of a probability is a difference of large numbers

%% By inversion for small rates, by transformed rejection else: W. Hörmann, "The transformed rejection method for
%% generating Poisson random variables", 1993 (PTRS). Both are made for all, each with a harmless rate where the
%% other is wanted.
-spec poisson(tensor(), [tensor()], form()) -> tensor().
poisson(Key, [Rate0], {f64, Shape} = Form) ->
    Rate = tessera_ops:broadcast_to(tessera_trace:stop_grad(Rate0), Shape),
    [ForSmall, ForLarge] = tessera_random_bits:split(Key, 2),
    Small = less(Rate, 10),
    Low = select(logical_and(Small, greater_equal(Rate, 0)), Rate, 0),
    Few = inversion(ForSmall, exp(negate(Low)), fun(K, P) -> divide(multiply(P, Low), K) end, Form),
    High = select(logical_and(greater_equal(Rate, 10), less(Rate, infinity)), Rate, 10),
    Many = rejection(ForLarge, Form, fun(K) -> try_poisson(K, High, Form) end),
    select(greater_equal(Rate, 0), select(tessera_elementwise:equal(Rate, infinity), infinity, select(Small, Few, Many)), nan).

%% The first count whose distribution exceeds a uniform number; Next computes the probability of a count from the
%% probability of the count before. For the means that use it, the probability beyond 1000 is below the precision of
%% f64.
inversion(Key, First, Next, {Type, Shape}) ->
    Uniform = tessera_random_bits:unit(Key, Type, Shape),
    {_, _, _, Counts} = tessera_control:while(
        {tessera_array:full({}, 0, Type), tessera_ops:broadcast_to(First, Shape), tessera_ops:broadcast_to(First, Shape), tessera_array:full(Shape, 0, Type)},
        fun({K, _, Sum, _}) -> logical_and(less(K, 1000), tessera_ops:any(greater_equal(Uniform, Sum))) end,
        fun({K, P, Sum, Counts}) ->
                P1 = Next(add(K, 1), P),
                {add(K, 1), P1, add(Sum, P1), add(Counts, as_type(greater_equal(Uniform, Sum), Type))}
        end),
    tessera_trace:stop_grad(Counts).

try_poisson(Key, Rate, Form) ->
    {U, V, Us} = transformed(Key, Form),
    B = add(0.931, multiply(2.53, sqrt(Rate))),
    A = add(-0.059, multiply(0.02483, B)),
    InverseAlpha = add(1.1239, divide(1.1328, subtract(B, 3.4))),
    K = candidate(U, Us, A, B, add(Rate, 0.43)),
    Quick = logical_and(greater_equal(Us, 0.07), less_equal(V, subtract(0.9277, divide(3.6224, subtract(B, 2))))),
    Possible = greater_equal(K, 0),
    Count = select(Possible, K, 0),
    Next = add(Count, 1),
    Inner = subtract(subtract(multiply(0.5, log(Next)), log(Rate)), add(?LOG_SQRT_2_PI, stirling(Count))),
    Bound = subtract(Inner, deviance(Next, Rate, subtract(Next, Rate))),
    {K, logical_or(Quick, logical_and(Possible, less_equal(log(ratio(V, InverseAlpha, Us, A, B)), Bound)))}.

%% A number of (-1/2, 1/2), one of (0, 1], and the distance of the first from the nearest end.
transformed(Key, Form) ->
    [One, Other] = tessera_random_bits:split(Key, 2),
    U = subtract(0.5, above_zero(One, Form)),
    {U, above_zero(Other, Form), tessera_elementwise:max(subtract(0.5, tessera_elementwise:abs(U)), 1.0e-300)}.

candidate(U, Us, A, B, Centre) -> tessera_elementwise:floor(add(multiply(add(divide(multiply(2, A), Us), B), U), Centre)).

ratio(V, InverseAlpha, Us, A, B) -> divide(multiply(V, InverseAlpha), add(divide(A, multiply(Us, Us)), B)).

%% By inversion for small means, else by transformed rejection: W. Hörmann, "The generation of binomial random
%% variates", 1993 (BTRS). Of p and 1 - p the smaller one is used.
-spec binomial(tensor(), [tensor()], form()) -> tensor().
binomial(Key, [N0, P0], {f64, Shape} = Form) ->
    [N, P] = [tessera_ops:broadcast_to(tessera_trace:stop_grad(X), Shape) || X <- [N0, P0]],
    Good = logical_and(logical_and(greater_equal(N, 0), less(N, infinity)),
                       logical_and(greater_equal(P, 0), less_equal(P, 1))),
    Least = tessera_elementwise:min(P, subtract(1, P)),
    Small = less(multiply(N, Least), 10),
    [ForSmall, ForLarge] = tessera_random_bits:split(Key, 2),
    Few = few_of(ForSmall, select(logical_and(Good, Small), N, 0), select(logical_and(Good, Small), Least, 0), Form),
    Large = logical_and(Good, logical_not(Small)),
    [Trials, Chance] = [select(Large, X, Harmless) || {X, Harmless} <- [{N, 40}, {Least, 0.5}]],
    Many = rejection(ForLarge, Form, fun(K) -> try_binomial(K, Trials, Chance, Form) end),
    Count = select(Small, Few, Many),
    valid(Good, select(greater(P, 0.5), subtract(N, Count), Count)).

few_of(Key, N, P, Form) ->
    Odds = divide(P, subtract(1, P)),
    Next = fun(K, Last) ->
                   multiply(Last, divide(multiply(tessera_elementwise:max(add(subtract(N, K), 1), 0), Odds), K))
           end,
    inversion(Key, exp(multiply(N, log1p(negate(P)))), Next, Form).

try_binomial(Key, N, P, Form) ->
    {U, V, Us} = transformed(Key, Form),
    Spread = sqrt(multiply(multiply(N, P), subtract(1, P))),
    B = add(1.15, multiply(2.53, Spread)),
    A = add(add(-0.0873, multiply(0.0248, B)), multiply(0.01, P)),
    K = candidate(U, Us, A, B, add(multiply(N, P), 0.5)),
    Quick = logical_and(greater_equal(Us, 0.07), less_equal(V, subtract(0.92, divide(4.2, B)))),
    Possible = logical_and(greater_equal(K, 0), less_equal(K, N)),
    Count = select(Possible, K, 0),
    Mode = tessera_elementwise:floor(multiply(add(N, 1), P)),
    Alpha = multiply(add(2.83, divide(5.1, B)), Spread),
    Bound = subtract(log_binomial(N, P, Count), log_binomial(N, P, Mode)),
    {K, logical_and(Possible, logical_or(Quick, less_equal(log(ratio(V, Alpha, Us, A, B)), Bound)))}.

%% The logarithm of the probability of k, up to a constant. With Stirling's formula for each factorial, x = k + 1 and
%% y = n - k + 1 all large terms are in the deviances of x and y from (n + 2) p and (n + 2) (1 - p).
log_binomial(N, P, K) ->
    [X, Y] = [add(Part, 1) || Part <- [K, subtract(N, K)]],
    All = add(N, 2),
    Mean = multiply(All, P),
    Off = subtract(X, Mean),
    Deviances = add(deviance(X, Mean, Off), deviance(Y, multiply(All, subtract(1, P)), negate(Off))),
    Corrections = add(stirling(K), stirling(subtract(N, K))),
    subtract(subtract(multiply(0.5, add(log(X), log(Y))), Deviances), Corrections).

%% x log(x / mean) - off, where off is x - mean: near the mean by a series of v = off / (x + mean), since the terms cancel (C. Loader,
%% "Fast and accurate computation of binomial probabilities", 2000).
deviance(X, Mean, Off) ->
    V = divide(Off, add(X, Mean)),
    Square = multiply(V, V),
    Series = lists:foldl(fun(I, Sum) -> multiply(Square, add(1 / I, Sum)) end, multiply(Square, 1 / 15), [13, 11, 9, 7, 5, 3]),
    Near = multiply(V, add(Off, multiply(multiply(2, X), Series))),
    select(less(tessera_elementwise:abs(V), 0.1), Near, subtract(multiply(X, log(divide(X, Mean))), Off)).

%% What Stirling's formula (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2 lacks of log k!, for whole numbers: its series, from 7 on, where
%% the first terms are exact to 1e-11.
stirling(K) ->
    Low = less(K, 7),
    X = add(select(Low, 7, K), 1),
    Square = multiply(X, X),
    Series = divide(add(1 / 12, divide(add(-1 / 360, divide(add(1 / 1260, divide(-1 / 1680, Square)), Square)), Square)), X),
    select(Low, small_stirling(K), Series).

small_stirling(K) ->
    {_, _, Sum} = lists:foldl(
        fun(I, {Product, Last, Sum}) ->
                Exact = math:log(Product * I) - ((I + 0.5) * math:log(I + 1) - (I + 1) + ?LOG_SQRT_2_PI),
                {Product * I, Exact, add(Sum, multiply(as_type(greater_equal(K, I), f64), Exact - Last))}
        end, {1, 1 - ?LOG_SQRT_2_PI, tessera_array:full(tessera_array:shape(K), 1 - ?LOG_SQRT_2_PI, f64)}, lists:seq(1, 6)),
    Sum.

%% @doc Random numbers.
%%
%% Nothing is hidden: a *key* holds the state, every function takes one and returns its sample with the next key. The
%% same key gives the same numbers, on every machine and on any number of threads, at once and inside of jitted
%% functions.
%% ```
%% 1> Key = tessera_random:key(42).
%% 2> {Rolls, Key1} = tessera_random:randint(Key, 1, 7, #{shape => {2, 5}}).
%% 3> tessera:to_list(Rolls).
%% [[4,2,1,1,1],[4,6,1,2,2]]
%% 4> {Noise, _Key2} = tessera_random:normal(Key1, {1000}).
%% 5> tessera:shape(Noise).
%% {1000}
%% '''
%% Use a key once. Where independent streams are needed, as for processes, layers or the steps of a loop, make keys
%% of a key by {@link split/2} or {@link fold_in/2}.
%%
%% == Options ==
%%
%% <ul>
%% <li>`shape': the shape of the sample, or a number for one axis. Parameters broadcast to it. Default: the common
%% shape of the parameters.</li>
%% <li>`type': the type of the sample. Default: the common type of the parameters, where the distribution is
%% continuous as a float type, f32 for plain numbers; s32 for counts, and for indices as {@link tessera} says.</li>
%% </ul>
%% A shape alone stands for a map with a shape: `normal(Key, {3, 4})'.
%%
%% == Gradients ==
%%
%% The gradient of a sample by the parameters of its distribution is the one for fixed random bits (the
%% reparametrization trick). Counts, choices and permutations have no gradient. Samples of {@link gamma/3}, and of
%% distributions made from it, have none by the exponents; by its scale they have.
%%
%% == Nx ==
%%
%% Keys equal the keys of `Nx.Random'. So do random bits, {@link uniform/4}, {@link randint/4}, {@link normal/4}, {@link
%% gumbel/2}, {@link choice/3} and {@link shuffle/2}: they are computed by the same ops. Where `Nx.Random' gives an infinity for
%% a normal number of type bf16, chooses an element whose probability is 0, or gives a uniform number that is its upper bound or
%% infinite, this module does not. It chooses by f32 where probabilities have a narrower type, of which `Nx.Random' makes too few
%% uniform numbers: 128 for bf16.
%%
%% == Types ==
%%
%% A number is made of one uniform number of its type: of 52 random bits for f64, 23 for f32, 10 for f16 and 7 for bf16. For
%% this reason {@link uniform/4}, {@link normal/4}, {@link multivariate_normal/4} and {@link gumbel/2} of type bf16 have, as in
%% `Nx.Random', only 128 different samples each. These are not symmetric: the mean of normal numbers is -0.024, their smallest
%% one -2.9, their greatest one 2.4. For better ones make f32 and convert them by `tessera:as_type/2'. All other distributions,
%% and samples of type f8 and f8_e4m3fn, are made of f32 and rounded.
%%
%% The generator is Threefry-2x32 (Salmon and others, 2011). It is not for cryptography.
-module(tessera_random).
-include("tessera.hrl").
-import(tessera_random_arguments, [as_options/1, shape/4, float_type/4, bad_type/4, integers/3, vectors/3, below/4, check/5, floats/5, floats_split/5,
                                   counts/7, multivariate/2, integers_between/2, can_choose/4, weights/3]).

%% keys
-export([key/0, key/1, split/1, split/2, fold_in/2, bits/2]).
%% floats
-export([uniform/1, uniform/2, uniform/3, uniform/4, uniform_split/2, uniform_split/4, normal/1, normal/2, normal/3,
         normal/4, normal_split/2, normal_split/4, truncated_normal/3, truncated_normal/4, log_normal/3,
         log_normal/4, exponential/2, exponential/3, laplace/3, laplace/4, logistic/3, logistic/4, cauchy/3,
         cauchy/4, gumbel/1, gumbel/2, gumbel_split/2, pareto/2, pareto/3, weibull/3, weibull/4, rayleigh/2,
         rayleigh/3, gamma/3, gamma/4, beta/3, beta/4, chi_square/2, chi_square/3, student_t/2, student_t/3]).
-export([dirichlet/2, dirichlet/3, multivariate_normal/3, multivariate_normal/4, multivariate_normal_split/4]).
%% counts, truths and choices
-export([randint/3, randint/4, randint_split/4, bernoulli/2, bernoulli/3, poisson/2, poisson/3,
         binomial/3, binomial/4, geometric/2, geometric/3, categorical/2, categorical/3, permutation/2, permutation/3, shuffle/2, shuffle/3, choice/2, choice/3]).
-export_type([key/0, options/0, categorical_options/0, shuffle_options/0, choice_options/0, sample/0]).

-type key() :: tessera:tensor().
%% A key: u32[2].
-type options() :: #{shape => tessera:shape() | non_neg_integer(), type => tessera:type()} | tessera:shape() | non_neg_integer().
%% Options by name, such as `#{shape => {3}, type => f64}', or a shape.
-type categorical_options() :: #{axis => tessera:axis(), axes => tessera:axis(), shape => tessera:shape() | non_neg_integer()} |
                               tessera:shape() | non_neg_integer().
%% Of {@link categorical/3}.
-type shuffle_options() :: #{axis => tessera:axis(), axes => tessera:axis(), independent => boolean()}.
%% Of {@link shuffle/3} and {@link permutation/3}.
-type choice_options() :: #{axis => all | tessera:axis(), axes => all | tessera:axis(), samples => non_neg_integer(), replace => boolean(),
                            probabilities => none | [number()] | tessera:tensor()}.
%% Of {@link choice/3}.
-type sample() :: {tessera:tensor(), key()}.
%% A sample, and the key for the next one.

%% ---- keys

%% @doc A key that is different each time, from the operating system's entropy. Raises while a function is traced,
%% because the key would be a constant of the program then.
-spec key() -> key().
key() ->
    tessera_trace:is_tracing() andalso
        tessera_error:raise(key, [], failed_precondition,
                            "key: a key of entropy would be a constant of the traced function; make it outside and pass it", []),
    key(rand:uniform(1 bsl 64) - 1).

%% @doc The key of a seed: an integer of 64 bits, or a tensor of rank 0 of type s64 or u64. The result is u32[2], the
%% seed's high and low half.
%% ```
%% 1> tessera:to_list(tessera_random:key(12)).
%% [0,12]
%% '''
-spec key(integer() | tessera:tensor()) -> key().
key(Seed) -> tessera_random_bits:key(Seed).

%% @doc Two new keys, in a list. The numbers that they give have nothing to do with each other or with the given
%% key's.
%% ```
%% 1> [A, B] = tessera_random:split(tessera_random:key(1701)).
%% 2> {tessera:to_list(A), tessera:to_list(B)}.
%% {[56197195,1801093307],[961309823,1704866707]}
%% '''
-spec split(key()) -> [key()].
split(Key) -> split(Key, 2).

%% @doc A list of that many new keys. The numbers that they give have nothing to do with each other or with the given
%% key's.
-spec split(key(), pos_integer()) -> [key()].
split(Key, Count) ->
    Args = [Key, Count],
    _ = tessera_random_bits:check_key(split, Args, Key),
    is_integer(Count) andalso Count > 0 orelse
        tessera_error:raise(split, Args, invalid_argument, "split: expected a number of keys, got ~ts", [tessera_error:show(Count)]),
    tessera_random_bits:at_once(fun([K]) -> tessera_random_bits:split(K, Count) end, [Key]).

%% @doc A new key of a key and a number, such as a step of a loop or the number of a process. Of a tensor of integers
%% the result has a key for each: its shape and 2.
%% ```
%% 1> tessera:to_list(tessera_random:fold_in(tessera_random:key(42), 99)).
%% [2015327502,1351855566]
%% '''
-spec fold_in(key(), integer() | tessera:tensor()) -> tessera:tensor().
fold_in(Key, Number) ->
    Args = [Key, Number],
    _ = tessera_random_bits:check_key(fold_in, Args, Key),
    tessera_random_bits:at_once(fun([K, N]) -> tessera_random_bits:fold_in(K, N) end, [Key, integers(fold_in, Args, Number)]).

%% @doc Integers of random bits: each bit is 0 or 1 with the same probability. Their type is u32, or the unsigned type
%% of the options. Returns them with the next key.
%% ```
%% 1> {Bits, _} = tessera_random:bits(tessera_random:key(1), #{shape => {3}, type => u8}).
%% 2> {tessera:type(Bits), tessera:shape(Bits)}.
%% {u8,{3}}
%% '''
-spec bits(key(), options()) -> sample().
bits(Key, Options) ->
    Args = [Key, Options],
    #{shape := Shape0, type := Type} = tessera_ops:options(bits, Args, as_options(Options), #{shape => {}, type => u32}),
    lists:member(Type, [u8, u16, u32, u64]) orelse bad_type(bits, Args, Type, "an unsigned integer type"),
    Shape = shape(bits, Args, [], Shape0),
    Width = 8 * tessera_type:bytes(Type),
    tessera_random_bits:draw(tessera_random_bits:check_key(bits, Args, Key), [],
                             fun(K, []) -> tessera_random_bits:bits(K, Width, Shape) end).

%% ---- floats

%% @doc Floats of equal probability in [0, 1), with the next key.
-spec uniform(key()) -> sample().
uniform(Key) -> uniform(Key, {}).

%% @doc Floats of equal probability in [0, 1), with the next key. The second argument has the options, or is the
%% sample's shape.
-spec uniform(key(), options()) -> sample().
uniform(Key, Options) -> uniform(Key, 0.0, 1.0, Options).

%% @doc Floats of equal probability in [Min, Max). Their shape is the common one of the parameters. Returns the
%% sample with the next key.
-spec uniform(key(), tessera:operand(), tessera:operand()) -> sample().
uniform(Key, Min, Max) -> uniform(Key, Min, Max, #{}).

%% @doc Floats of equal probability in [Min, Max). The last argument has the options `shape' and `type', or is the
%% sample's shape. Returns the sample with the next key. Where the range is empty samples are Min, where a bound of a
%% tensor is not finite NaN.
%% ```
%% 1> {X, _} = tessera_random:uniform(tessera_random:key(1701), 0, 1, #{shape => {2}, type => f16}).
%% 2> tessera:type(X).
%% f16
%% '''
-spec uniform(key(), tessera:operand(), tessera:operand(), options()) -> sample().
uniform(Key, Min, Max, Options) ->
    Args = [Key, Min, Max, Options],
    floats(uniform, Args, [Min, Max], Options, fun tessera_random_draw:uniform/3).

%% @doc The sample of {@link uniform/2} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec uniform_split(key(), options()) -> tessera:tensor().
uniform_split(Key, Options) -> uniform_split(Key, 0.0, 1.0, Options).

%% @doc The sample of {@link uniform/4} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec uniform_split(key(), tessera:operand(), tessera:operand(), options()) -> tessera:tensor().
uniform_split(Key, Min, Max, Options) ->
    Args = [Key, Min, Max, Options],
    floats_split(uniform_split, Args, [Min, Max], Options, fun tessera_random_draw:uniform/3).

%% @doc Normal numbers of mean 0 and standard deviation 1, with the next key.
-spec normal(key()) -> sample().
normal(Key) -> normal(Key, {}).

%% @doc Normal numbers of mean 0 and standard deviation 1, with the next key. The second argument has the options, or
%% is the sample's shape.
-spec normal(key(), options()) -> sample().
normal(Key, Options) -> normal(Key, 0.0, 1.0, Options).

%% @doc Normal numbers with that mean and standard deviation. Their shape is the common one of the parameters.
%% Returns the sample with the next key.
-spec normal(key(), tessera:operand(), tessera:operand()) -> sample().
normal(Key, Mean, Deviation) -> normal(Key, Mean, Deviation, #{}).

%% @doc Normal numbers with that mean and standard deviation. The last argument has the options `shape' and `type',
%% or is the sample's shape. Returns the sample with the next key.
%% ```
%% 1> {X, _} = tessera_random:normal(tessera_random:key(1), 10, 2, {100000}).
%% 2> abs(tessera:to_number(tessera:mean(X)) - 10) < 0.05.
%% true
%% '''
-spec normal(key(), tessera:operand(), tessera:operand(), options()) -> sample().
normal(Key, Mean, Deviation, Options) ->
    Args = [Key, Mean, Deviation, Options],
    ok = check(normal, Args, "standard deviation", Deviation, not_negative),
    floats(normal, Args, [Mean, Deviation], Options, fun tessera_random_draw:normal/3).

%% @doc The sample of {@link normal/2} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec normal_split(key(), options()) -> tessera:tensor().
normal_split(Key, Options) -> normal_split(Key, 0.0, 1.0, Options).

%% @doc The sample of {@link normal/4} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec normal_split(key(), tessera:operand(), tessera:operand(), options()) -> tessera:tensor().
normal_split(Key, Mean, Deviation, Options) ->
    Args = [Key, Mean, Deviation, Options],
    ok = check(normal_split, Args, "standard deviation", Deviation, not_negative),
    floats_split(normal_split, Args, [Mean, Deviation], Options, fun tessera_random_draw:normal/3).

%% @doc Normal numbers of mean 0 and deviation 1 that are in [Lower, Upper], which may be infinite. Their shape is
%% the common one of the parameters. Returns the sample with the next key.
-spec truncated_normal(key(), tessera:operand(), tessera:operand()) -> sample().
truncated_normal(Key, Lower, Upper) -> truncated_normal(Key, Lower, Upper, #{}).

%% @doc Normal numbers of mean 0 and deviation 1 that are in [Lower, Upper], which may be infinite. The last argument
%% has the options `shape' and `type', or is the sample's shape. Returns the sample with the next key. Bounds that
%% both lie more than seven deviations on one side are too far for its accuracy.
-spec truncated_normal(key(), tessera:operand(), tessera:operand(), options()) -> sample().
truncated_normal(Key, Lower, Upper, Options) ->
    Args = [Key, Lower, Upper, Options],
    floats(truncated_normal, Args, [Lower, Upper], Options, fun tessera_random_draw:truncated_normal/3).

%% @doc Numbers whose logarithms are normal with that mean and standard deviation. Their shape is the common one of
%% the parameters. Returns the sample with the next key.
-spec log_normal(key(), tessera:operand(), tessera:operand()) -> sample().
log_normal(Key, Mean, Deviation) -> log_normal(Key, Mean, Deviation, #{}).

%% @doc Numbers whose logarithms are normal with that mean and standard deviation. The last argument has the options
%% `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec log_normal(key(), tessera:operand(), tessera:operand(), options()) -> sample().
log_normal(Key, Mean, Deviation, Options) ->
    Args = [Key, Mean, Deviation, Options],
    ok = check(log_normal, Args, "standard deviation", Deviation, not_negative),
    floats(log_normal, Args, [Mean, Deviation], Options, fun tessera_random_draw:log_normal/3).

%% @doc Exponential numbers with that mean. Their shape is the common one of the parameters. Returns the sample with
%% the next key.
-spec exponential(key(), tessera:operand()) -> sample().
exponential(Key, Scale) -> exponential(Key, Scale, #{}).

%% @doc Exponential numbers with that mean. The last argument has the options `shape' and `type', or is the sample's
%% shape. Returns the sample with the next key.
-spec exponential(key(), tessera:operand(), options()) -> sample().
exponential(Key, Scale, Options) ->
    Args = [Key, Scale, Options],
    ok = check(exponential, Args, "mean", Scale, not_negative),
    floats(exponential, Args, [Scale], Options, fun tessera_random_draw:exponential/3).

%% @doc Numbers of the Laplace distribution: the distance from the mean is exponential, with that scale. Their shape
%% is the common one of the parameters. Returns the sample with the next key.
-spec laplace(key(), tessera:operand(), tessera:operand()) -> sample().
laplace(Key, Mean, Scale) -> laplace(Key, Mean, Scale, #{}).

%% @doc Numbers of the Laplace distribution: the distance from the mean is exponential, with that scale. The last
%% argument has the options `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec laplace(key(), tessera:operand(), tessera:operand(), options()) -> sample().
laplace(Key, Mean, Scale, Options) ->
    Args = [Key, Mean, Scale, Options],
    ok = check(laplace, Args, "scale", Scale, not_negative),
    floats(laplace, Args, [Mean, Scale], Options, fun tessera_random_draw:laplace/3).

%% @doc Numbers of the logistic distribution with that mean and scale. Their shape is the common one of the
%% parameters. Returns the sample with the next key.
-spec logistic(key(), tessera:operand(), tessera:operand()) -> sample().
logistic(Key, Mean, Scale) -> logistic(Key, Mean, Scale, #{}).

%% @doc Numbers of the logistic distribution with that mean and scale. The last argument has the options `shape' and
%% `type', or is the sample's shape. Returns the sample with the next key.
-spec logistic(key(), tessera:operand(), tessera:operand(), options()) -> sample().
logistic(Key, Mean, Scale, Options) ->
    Args = [Key, Mean, Scale, Options],
    ok = check(logistic, Args, "scale", Scale, not_negative),
    floats(logistic, Args, [Mean, Scale], Options, fun tessera_random_draw:logistic/3).

%% @doc Numbers of the Cauchy distribution with that median and scale. Their shape is the common one of the
%% parameters. Returns the sample with the next key.
-spec cauchy(key(), tessera:operand(), tessera:operand()) -> sample().
cauchy(Key, Middle, Scale) -> cauchy(Key, Middle, Scale, #{}).

%% @doc Numbers of the Cauchy distribution with that median and scale. The last argument has the options `shape' and
%% `type', or is the sample's shape. Returns the sample with the next key.
-spec cauchy(key(), tessera:operand(), tessera:operand(), options()) -> sample().
cauchy(Key, Middle, Scale, Options) ->
    Args = [Key, Middle, Scale, Options],
    ok = check(cauchy, Args, "scale", Scale, not_negative),
    floats(cauchy, Args, [Middle, Scale], Options, fun tessera_random_draw:cauchy/3).

%% @doc Numbers of the standard Gumbel distribution. Returns one number with the next key.
-spec gumbel(key()) -> sample().
gumbel(Key) -> gumbel(Key, #{}).

%% @doc Numbers of the standard Gumbel distribution. The last argument has the options `shape' and `type', or is the
%% sample's shape. Returns the sample with the next key.
-spec gumbel(key(), options()) -> sample().
gumbel(Key, Options) ->
    Args = [Key, Options],
    floats(gumbel, Args, [], Options, fun tessera_random_draw:gumbel/3).

%% @doc The sample of {@link gumbel/2} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec gumbel_split(key(), options()) -> tessera:tensor().
gumbel_split(Key, Options) ->
    Args = [Key, Options],
    floats_split(gumbel_split, Args, [], Options, fun tessera_random_draw:gumbel/3).

%% @doc Numbers from 1 on of the Pareto distribution: the probability to exceed x is a power of x with minus that
%% exponent. Their shape is the common one of the parameters. Returns the sample with the next key.
-spec pareto(key(), tessera:operand()) -> sample().
pareto(Key, Exponent) -> pareto(Key, Exponent, #{}).

%% @doc Numbers from 1 on of the Pareto distribution: the probability to exceed x is a power of x with minus that
%% exponent. The last argument has the options `shape' and `type', or is the sample's shape. Returns the sample with
%% the next key.
-spec pareto(key(), tessera:operand(), options()) -> sample().
pareto(Key, Exponent, Options) ->
    Args = [Key, Exponent, Options],
    ok = check(pareto, Args, "exponent", Exponent, positive),
    floats(pareto, Args, [Exponent], Options, fun tessera_random_draw:pareto/3).

%% @doc Numbers of the Weibull distribution with that exponent (its shape) and scale. Their shape is the common one
%% of the parameters. Returns the sample with the next key.
-spec weibull(key(), tessera:operand(), tessera:operand()) -> sample().
weibull(Key, Exponent, Scale) -> weibull(Key, Exponent, Scale, #{}).

%% @doc Numbers of the Weibull distribution with that exponent (its shape) and scale. The last argument has the
%% options `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec weibull(key(), tessera:operand(), tessera:operand(), options()) -> sample().
weibull(Key, Exponent, Scale, Options) ->
    Args = [Key, Exponent, Scale, Options],
    ok = check(weibull, Args, "exponent", Exponent, positive),
    ok = check(weibull, Args, "scale", Scale, not_negative),
    floats(weibull, Args, [Exponent, Scale], Options, fun tessera_random_draw:weibull/3).

%% @doc Lengths of vectors of two normal numbers with that deviation: the Rayleigh distribution. Their shape is the
%% common one of the parameters. Returns the sample with the next key.
-spec rayleigh(key(), tessera:operand()) -> sample().
rayleigh(Key, Scale) -> rayleigh(Key, Scale, #{}).

%% @doc Lengths of vectors of two normal numbers with that deviation: the Rayleigh distribution. The last argument
%% has the options `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec rayleigh(key(), tessera:operand(), options()) -> sample().
rayleigh(Key, Scale, Options) ->
    Args = [Key, Scale, Options],
    ok = check(rayleigh, Args, "scale", Scale, not_negative),
    floats(rayleigh, Args, [Scale], Options, fun tessera_random_draw:rayleigh/3).

%% @doc Numbers of the gamma distribution with that exponent (its shape, alpha) and scale. Their shape is the common
%% one of the parameters. Returns the sample with the next key.
-spec gamma(key(), tessera:operand(), tessera:operand()) -> sample().
gamma(Key, Exponent, Scale) -> gamma(Key, Exponent, Scale, #{}).

%% @doc Numbers of the gamma distribution with that exponent (its shape, alpha) and scale. The last argument has the
%% options `shape' and `type', or is the sample's shape. Returns the sample with the next key. An exponent that is
%% not above 0 gives NaN in a tensor. There is no gradient by the exponent.
-spec gamma(key(), tessera:operand(), tessera:operand(), options()) -> sample().
gamma(Key, Exponent, Scale, Options) ->
    Args = [Key, Exponent, Scale, Options],
    ok = check(gamma, Args, "exponent", Exponent, positive),
    ok = check(gamma, Args, "scale", Scale, not_negative),
    floats(gamma, Args, [Exponent, Scale], Options, fun tessera_random_draw:gamma/3).

%% @doc Numbers in [0, 1] of the beta distribution. Their shape is the common one of the parameters. Returns the
%% sample with the next key.
-spec beta(key(), tessera:operand(), tessera:operand()) -> sample().
beta(Key, A, B) -> beta(Key, A, B, #{}).

%% @doc Numbers in [0, 1] of the beta distribution. The last argument has the options `shape' and `type', or is the
%% sample's shape. Returns the sample with the next key. There is no gradient by the parameters.
-spec beta(key(), tessera:operand(), tessera:operand(), options()) -> sample().
beta(Key, A, B, Options) ->
    Args = [Key, A, B, Options],
    ok = check(beta, Args, "first parameter", A, positive),
    ok = check(beta, Args, "second parameter", B, positive),
    floats(beta, Args, [A, B], Options, fun tessera_random_draw:beta/3).

%% @doc Sums of the squares of that many normal numbers: the chi-square distribution. Their shape is the common one
%% of the parameters. Returns the sample with the next key.
-spec chi_square(key(), tessera:operand()) -> sample().
chi_square(Key, Freedom) -> chi_square(Key, Freedom, #{}).

%% @doc Sums of the squares of that many normal numbers: the chi-square distribution. The last argument has the
%% options `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec chi_square(key(), tessera:operand(), options()) -> sample().
chi_square(Key, Freedom, Options) ->
    Args = [Key, Freedom, Options],
    ok = check(chi_square, Args, "number of degrees of freedom", Freedom, positive),
    floats(chi_square, Args, [Freedom], Options, fun tessera_random_draw:chi_square/3).

%% @doc Numbers of Student's t distribution with that many degrees of freedom. Their shape is the common one of the
%% parameters. Returns the sample with the next key.
-spec student_t(key(), tessera:operand()) -> sample().
student_t(Key, Freedom) -> student_t(Key, Freedom, #{}).

%% @doc Numbers of Student's t distribution with that many degrees of freedom. The last argument has the options
%% `shape' and `type', or is the sample's shape. Returns the sample with the next key.
-spec student_t(key(), tessera:operand(), options()) -> sample().
student_t(Key, Freedom, Options) ->
    Args = [Key, Freedom, Options],
    ok = check(student_t, Args, "number of degrees of freedom", Freedom, positive),
    floats(student_t, Args, [Freedom], Options, fun tessera_random_draw:student_t/3).

%% @doc Vectors of shares that sum to 1 in the last axis, of the Dirichlet distribution with those exponents: a tensor
%% with one for each share in its last axis. Returns them with the next key. There is no gradient by the exponents.
-spec dirichlet(key(), tessera:tensor()) -> sample().
dirichlet(Key, Exponents) -> dirichlet(Key, Exponents, #{}).

%% @doc Vectors of shares that sum to 1 in the last axis, of the Dirichlet distribution with those exponents: a tensor
%% with one for each share in its last axis. The option `shape' has the axes before the last one. Returns them with the
%% next key.
%% ```
%% 1> {X, _} = tessera_random:dirichlet(tessera_random:key(1), tessera:tensor([1.0, 2.0, 3.0]), {5}).
%% 2> tessera:shape(X).
%% {5,3}
%% '''
-spec dirichlet(key(), tessera:tensor(), options()) -> sample().
dirichlet(Key, Exponents, Options) ->
    Args = [Key, Exponents, Options],
    #tessera{shape = Dims} = Tensor = vectors(dirichlet, Args, Exponents),
    floats(dirichlet, Args, [Tensor], below(dirichlet, Args, Options, tuple_to_list(Dims)), fun tessera_random_draw:dirichlet/3).

%% @doc A vector of the normal distribution with that mean, a vector, and that covariance, a symmetric and positive
%% definite matrix. Returns it with the next key.
-spec multivariate_normal(key(), tessera:tensor(), tessera:tensor()) -> sample().
multivariate_normal(Key, Mean, Covariance) -> multivariate_normal(Key, Mean, Covariance, #{}).

%% @doc Vectors of the normal distribution with that mean (a vector) and that covariance (a symmetric and positive
%% definite matrix): its Cholesky factor is taken. The option `shape' has the axes before the last one, the mean's.
%% Returns them with the next key.
%% ```
%% 1> {X, _} = tessera_random:multivariate_normal(tessera_random:key(12), tessera:tensor([0.0, 1.0]), tessera:eye(2), {3, 2}).
%% 2> tessera:shape(X).
%% {3,2,2}
%% '''
-spec multivariate_normal(key(), tessera:tensor(), tessera:tensor(), options()) -> sample().
multivariate_normal(Key, Mean, Covariance, Options) ->
    {Params, F} = multivariate(multivariate_normal, [Key, Mean, Covariance, Options]),
    tessera_random_bits:draw(Key, Params, F).

%% @doc The sample of {@link multivariate_normal/4} for a key that {@link split/2} has made for it alone: the key is
%% used as it is, and there is no next one.
-spec multivariate_normal_split(key(), tessera:tensor(), tessera:tensor(), options()) -> tessera:tensor().
multivariate_normal_split(Key, Mean, Covariance, Options) ->
    {Params, F} = multivariate(multivariate_normal_split, [Key, Mean, Covariance, Options]),
    tessera_random_bits:at_once(fun([K | Ps]) -> F(K, Ps) end, [Key | Params]).

%% ---- counts, truths and choices

%% @doc Integers of equal probability from Min up to, but not including, Max. Their shape is the common one of the
%% bounds, and their type the bounds' common one. Returns them with the next key.
%% ```
%% 1> {X, _} = tessera_random:randint(tessera_random:key(1701), 1, 100).
%% 2> tessera:to_number(X).
%% 91
%% '''
-spec randint(key(), integer() | tessera:tensor(), integer() | tessera:tensor()) -> sample().
randint(Key, Min, Max) -> randint(Key, Min, Max, #{}).

%% @doc Integers of equal probability from Min up to, but not including, Max. The last argument has the options
%% `shape' and `type', an integer type, or is the sample's shape. Numbers that are no range, or that the type does not hold,
%% are refused. Bounds of a tensor that the type does not hold are its nearest numbers, as in JAX, and where a range of tensors
%% is empty the result is Min. Returns them with the next key. In a range of N integers some are less probable than others:
%% by N / 2^16 of their probability for types of up to 8 bits, N / 2^32 for types of 16, and N / 2^64 for types of 32 and 64,
%% as in `Nx.Random' and JAX. The whole range of a type is even.
%% ```
%% 1> {X, _} = tessera_random:randint(tessera_random:key(1701), 1, 100, #{shape => {3, 2}, type => u32}).
%% 2> tessera:to_list(X).
%% [[9,20],[19,6],[71,15]]
%% '''
-spec randint(key(), integer() | tessera:tensor(), integer() | tessera:tensor(), options()) -> sample().
randint(Key, Min, Max, Options) ->
    {Params, F} = integers_between(randint, [Key, Min, Max, Options]),
    tessera_random_bits:draw(Key, Params, F).

%% @doc The sample of {@link randint/4} for a key that {@link split/2} has made for it alone: the key is used as it
%% is, and there is no next one.
-spec randint_split(key(), integer() | tessera:tensor(), integer() | tessera:tensor(), options()) -> tessera:tensor().
randint_split(Key, Min, Max, Options) ->
    {Params, F} = integers_between(randint_split, [Key, Min, Max, Options]),
    tessera_random_bits:at_once(fun([K | Ps]) -> F(K, Ps) end, [Key | Params]).

%% @doc Truths, 1 with that probability and else 0, of type u8. Returns them with the next key.
-spec bernoulli(key(), tessera:operand()) -> sample().
bernoulli(Key, Probability) -> bernoulli(Key, Probability, #{}).

%% @doc Truths, 1 with that probability and else 0, of type u8 or the type in the options. The last argument has the
%% options `shape' and `type', or is the sample's shape. Returns them with the next key.
%% ```
%% 1> {Coins, _} = tessera_random:bernoulli(tessera_random:key(3), 0.5, {1000}).
%% 2> Heads = tessera:to_number(tessera:sum(tessera:as_type(Coins, s32))), Heads > 450 andalso Heads < 550.
%% true
%% '''
-spec bernoulli(key(), tessera:operand(), options()) -> sample().
bernoulli(Key, Probability, Options) ->
    Args = [Key, Probability, Options],
    ok = check(bernoulli, Args, "probability", Probability, probability),
    Float = float_type(bernoulli, Args, [Probability], default),
    counts(bernoulli, Args, [Probability], Options, u8, Float, fun tessera_random_draw:bernoulli/3).

%% @doc Counts of events with that expected number: the Poisson distribution. Their type is s32, their shape the common
%% one of the parameters. Returns them with the next key.
-spec poisson(key(), tessera:operand()) -> sample().
poisson(Key, Rate) -> poisson(Key, Rate, #{}).

%% @doc Counts of events with that expected number: the Poisson distribution. The last argument has the options `shape'
%% and `type', a signed integer type (default: s32) or a float type, or is the sample's shape. Where a tensor of
%% parameters has values that the distribution does not have, integers are -1 and floats NaN. Returns them with the next
%% key.
-spec poisson(key(), tessera:operand(), options()) -> sample().
poisson(Key, Rate, Options) ->
    Args = [Key, Rate, Options],
    ok = check(poisson, Args, "rate", Rate, not_negative),
    counts(poisson, Args, [Rate], Options, s32, f64, fun tessera_random_draw:poisson/3).

%% @doc Counts of successes among that many trials, each of that probability. Their type is s32, their shape the
%% common one of the parameters. Returns them with the next key.
-spec binomial(key(), tessera:operand(), tessera:operand()) -> sample().
binomial(Key, Trials, Probability) -> binomial(Key, Trials, Probability, #{}).

%% @doc Counts of successes among that many trials, each of that probability. The last argument has the options
%% `shape' and `type', a signed integer type (default: s32) or a float type, or is the sample's shape. Where a tensor
%% of parameters has values that the distribution does not have, integers are -1 and floats NaN. Returns them with
%% the next key.
-spec binomial(key(), tessera:operand(), tessera:operand(), options()) -> sample().
binomial(Key, Trials, Probability, Options) ->
    Args = [Key, Trials, Probability, Options],
    ok = check(binomial, Args, "number of trials", Trials, not_negative),
    ok = check(binomial, Args, "probability", Probability, probability),
    counts(binomial, Args, [Trials, Probability], Options, s32, f64, fun tessera_random_draw:binomial/3).

%% @doc Counts of trials up to the first success, from 1 on, each of that probability. Their type is s32, their shape
%% the common one of the parameters. Returns them with the next key.
-spec geometric(key(), tessera:operand()) -> sample().
geometric(Key, Probability) -> geometric(Key, Probability, #{}).

%% @doc Counts of trials up to the first success, from 1 on, each of that probability. The last argument has the
%% options `shape' and `type', a signed integer type (default: s32) or a float type, or is the sample's shape. Where
%% a tensor of parameters has values that the distribution does not have, integers are -1 and floats NaN. Returns
%% them with the next key.
-spec geometric(key(), tessera:operand(), options()) -> sample().
geometric(Key, Probability, Options) ->
    Args = [Key, Probability, Options],
    ok = check(geometric, Args, "probability", Probability, probability),
    counts(geometric, Args, [Probability], Options, s32, f64, fun tessera_random_draw:geometric/3).

%% @doc An index of the last axis for each vector of logits (logarithms of probabilities, up to a constant): s32.
%% Returns them with the next key.
-spec categorical(key(), tessera:tensor()) -> sample().
categorical(Key, Logits) -> categorical(Key, Logits, #{}).

%% @doc An index of an axis for each vector of logits (logarithms of probabilities, up to a constant): s32. The option
%% `axis' names the axis (default: -1), and `shape' has further axes before the axes of the logits. Returns them with
%% the next key.
%% ```
%% 1> {X, _} = tessera_random:categorical(tessera_random:key(1), tessera:tensor([neg_infinity, 0.0, neg_infinity]), {4}).
%% 2> tessera:to_list(X).
%% [1,1,1,1]
%% '''
-spec categorical(key(), tessera:tensor(), categorical_options()) -> sample().
categorical(Key, Logits, Options) ->
    Args = [Key, Logits, Options],
    _ = tessera_random_bits:check_key(categorical, Args, Key),
    #{axis := Axis, shape := Shape0} =
        tessera_ops:options(categorical, Args, as_options(Options), #{axis => -1, shape => {}}),
    #tessera{shape = Shape} = Tensor = vectors(categorical, Args, Logits),
    Own = tessera_ops:axis_option(categorical, Args, Axis, tuple_size(Shape)),
    element(Own + 1, Shape) > 0 orelse
        tessera_error:raise(categorical, Args, invalid_argument, "categorical: axis ~b is empty, expected at least one element", [Own]),
    Lead = tuple_to_list(shape(categorical, Args, [], Shape0)),
    %% numbers of 16 bits would often be equal, and the first of them be taken
    Type = tessera_random_draw:wide(float_type(categorical, Args, [Tensor], default)),
    Form = {Type, list_to_tuple(Lead ++ tuple_to_list(Shape))},
    tessera_random_bits:draw(Key, [Tensor], fun(K, [T]) ->
        Noise = tessera_random_draw:gumbel(K, [], Form),
        tessera:argmax(tessera:add(tessera:as_type(T, Type), Noise), #{axis => length(Lead) + Own})
    end).

%% @doc The numbers from 0 to N - 1 in random order, s32, or the slices of a tensor along its first axis. Returns
%% them with the next key.
%% ```
%% 1> {X, _} = tessera_random:permutation(tessera_random:key(5), 100).
%% 2> tessera:to_list(tessera:sort(X)) =:= lists:seq(0, 99).
%% true
%% '''
-spec permutation(key(), non_neg_integer() | tessera:tensor()) -> sample().
permutation(Key, N) -> permutation(Key, N, #{}).

%% @doc The numbers from 0 to N - 1 in random order, s32, or the slices of a tensor along an axis. Options: `axis'
%% (default: 0) and `independent', as {@link shuffle/3} has them. Returns them with the next key.
-spec permutation(key(), non_neg_integer() | tessera:tensor(), shuffle_options()) -> sample().
permutation(Key, N, Options) when is_integer(N), N >= 0 -> shuffled(permutation, [Key, N, Options], tessera:iota({N}));
permutation(Key, Tensor, Options) -> shuffled(permutation, [Key, Tensor, Options], Tensor).

%% @doc The slices of a tensor along its first axis, in random order. Returns them with the next key.
-spec shuffle(key(), tessera:tensor()) -> sample().
shuffle(Key, Tensor) -> shuffle(Key, Tensor, #{}).

%% @doc The slices of a tensor along an axis, in random order. Options: `axis' (default: 0); `independent', whether
%% each line along the axis gets an order of its own (default: false). Returns them with the next key.
%% ```
%% 1> {X, _} = tessera_random:shuffle(tessera_random:key(42), tessera:iota({3, 4}, s32, 0)).
%% 2> tessera:to_list(X).
%% [[2,2,2,2],[0,0,0,0],[1,1,1,1]]
%% '''
-spec shuffle(key(), tessera:tensor(), shuffle_options()) -> sample().
shuffle(Key, Tensor, Options) -> shuffled(shuffle, [Key, Tensor, Options], Tensor).

shuffled(Name, [Key, _, Options] = Args, Given) ->
    _ = tessera_random_bits:check_key(Name, Args, Key),
    #tessera{shape = Shape} = Tensor = vectors(Name, Args, Given),
    #{axis := Axis0, independent := Independent} =
        tessera_ops:options(Name, Args, Options, #{axis => 0, independent => false}),
    Axis = tessera_ops:axis_option(Name, Args, Axis0, tuple_size(Shape)),
    tessera_random_bits:at_once(fun([K, T]) -> tessera_random_order:shuffle(K, T, Axis, Independent) end, [Key, Tensor]).

%% @doc An element of a tensor or of the numbers from 0 to N - 1, as a tensor of one axis of size 1. Returns it with
%% the next key.
-spec choice(key(), non_neg_integer() | tessera:tensor()) -> sample().
choice(Key, Tensor) -> choice(Key, Tensor, #{}).

%% @doc Elements of a tensor, or slices along an axis of it; or some of the numbers from 0 to N - 1. The option
%% `samples' says how many (default: 1), `axis' whose slices (default: `all', elements), and `replace' whether one
%% may be chosen several times (default: true). The option `probabilities' is a vector of the axis' size, or a list,
%% and need not sum to 1; by default all are equal. Returns them with the next key.
%% ```
%% 1> {X, _} = tessera_random:choice(tessera_random:key(1), tessera:iota({4, 3}), #{samples => 4, axis => 0, replace => false}).
%% 2> tessera:to_list(X).
%% [[3,4,5],[9,10,11],[6,7,8],[0,1,2]]
%% 3> {Y, _} = tessera_random:choice(tessera_random:key(2), 6, #{samples => 6, probabilities => [0.01, 0.1, 0.19, 0.6, 0.05, 0.05]}).
%% 4> tessera:to_list(Y).
%% [3,3,3,0,3,3]
%% '''
-spec choice(key(), non_neg_integer() | tessera:tensor(), choice_options()) -> sample().
choice(Key, Given, Options) ->
    Args = [Key, Given, Options],
    _ = tessera_random_bits:check_key(choice, Args, Key),
    #{samples := Samples, axis := Axis0, replace := Replace, probabilities := Weights} =
        tessera_ops:options(choice, Args, Options, #{samples => 1, axis => all, replace => true, probabilities => none}),
    All = case is_integer(Given) andalso Given >= 0 of
              true -> tessera:iota({Given});
              false -> vectors(choice, Args, Given)
          end,
    {Tensor, Axis} = case Axis0 of
                         all -> {tessera:flatten(All), 0};
                         _ -> {All, tessera_ops:axis_option(choice, Args, Axis0, tessera:rank(All))}
                     end,
    Size = tessera:axis_size(Tensor, Axis),
    can_choose(Args, Samples, Size, Replace),
    tessera_random_bits:at_once(
        fun([K, T | P]) -> tessera_random_order:choice(K, T, P, {Axis, Samples, Replace}) end,
        [Key, Tensor | weights(Args, Weights, Size)]).

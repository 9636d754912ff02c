%% @private Arguments of the functions of tessera_random: options, parameters and their checks, the type and shape of a sample.
-module(tessera_random_arguments).
-include("tessera.hrl").
%% options and parameters
-export([as_options/1, shape/4, float_type/4, bad_type/4, integers/3, vectors/3, below/4, check/5]).
%% samples
-export([floats/5, floats_split/5, counts/7, multivariate/2, integers_between/2, can_choose/4, weights/3]).

-type sample() :: {tessera:tensor(), tessera:tensor()}.
-type range() :: not_negative | positive | probability.
-type form() :: {tessera:type(), tessera:shape()}.
-type draw() :: fun((tessera:tensor(), [tessera:tensor()], form()) -> tessera:tensor()).
%% A distribution: the key, the parameters in the type of the form, the form of the sample.
-type sampler(Sample) :: fun((tessera:tensor(), [tessera:tensor()]) -> Sample).

%% ---- options

show(Term) -> tessera_error:show(Term).

listed(List) when is_list(List) -> tessera:tensor(List);
listed(Other) -> Other.

%% A shape, or a number for one axis, stands for options.
-spec as_options(term()) -> term().
as_options(Options) when is_map(Options) -> Options;
as_options(Shape) when is_tuple(Shape), not is_record(Shape, tessera); is_integer(Shape) -> #{shape => Shape};
as_options(Other) -> Other.

options(Name, Args, Options) -> tessera_ops:options(Name, Args, as_options(Options), #{shape => default, type => default}).

%% ---- types and shapes

merged(Params) ->
    {Tensors, Numbers} = lists:partition(fun(P) -> is_record(P, tessera) end, Params),
    tessera_type:merge_all([Type || #tessera{type = Type} <- Tensors], Numbers).

-spec float_type(atom(), [term()], [term()], term()) -> tessera:type().
float_type(Name, Args, Params, default) ->
    Operands = [tessera_operand:operand(Name, P) || P <- Params],
    float_type(Name, Args, Params, case Operands of
                                       [] -> f32;
                                       _ -> tessera_type:to_float(merged(Operands))
                                   end);
float_type(Name, Args, _, Type) ->
    tessera_type:is_type(Type) andalso tessera_type:is_float_type(Type) orelse bad_type(Name, Args, Type, "a float type"),
    Type.

-spec bad_type(atom(), [term()], term(), string()) -> no_return().
bad_type(Name, Args, Type, Expected) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected ~s, got ~ts", [Name, Expected, show(Type)]).

%% The given shape, or the parameters' common one, which must broadcast to it.
-spec shape(atom(), [term()], [term()], term()) -> tessera:shape().
shape(Name, Args, Params, Given) ->
    Common = lists:foldl(fun(P, Shape) -> joined(Name, Args, tessera_operand:shape_of(P), Shape) end, {}, Params),
    case Given of
        default -> Common;
        _ ->
            Shape = tessera_type:shape(Name, Args, case is_integer(Given) of true -> {Given}; false -> Given end),
            joined(Name, Args, Common, Shape) =:= Shape orelse
                tessera_error:raise(Name, Args, invalid_argument, "~s: parameters of shape ~0p do not broadcast to ~0p",
                                    [Name, Common, Shape]),
            Shape
    end.

joined(Name, Args, A, B) ->
    case tessera_type:broadcast(A, B) of
        error ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: shapes ~0p and ~0p do not broadcast", [Name, A, B]);
        Shape -> Shape
    end.

%% ---- parameters

%% Numbers are checked; the contents of a tensor may not be known yet.
-spec check(atom(), [term()], string(), term(), range()) -> ok.
check(Name, Args, What, Number, Range) when is_number(Number); Number =:= nan; Number =:= infinity; Number =:= neg_infinity ->
    is_within(Range, Number) orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: the ~s is ~0p, expected ~s", [Name, What, Number, expected(Range)]),
    ok;
check(_, _, _, _, _) -> ok.

is_within(not_negative, Number) -> Number =:= infinity orelse is_number(Number) andalso Number >= 0;
is_within(positive, Number) -> Number =:= infinity orelse is_number(Number) andalso Number > 0;
is_within(probability, Number) -> is_number(Number) andalso Number >= 0 andalso Number =< 1.

expected(not_negative) -> "0 or more";
expected(positive) -> "a number above 0";
expected(probability) -> "a number from 0 to 1".

%% A number that fits in 64 bits becomes s64 or u64.
-spec integers(atom(), [term()], term()) -> tessera:tensor().
integers(_, _, Number) when is_integer(Number), Number >= -(1 bsl 63), Number < 1 bsl 64 ->
    tessera:full({}, Number, case Number < 1 bsl 63 of true -> s64; false -> u64 end);
integers(Name, Args, #tessera{type = Type} = Tensor) ->
    tessera_type:is_float_type(Type) andalso
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected integers, got ~s", [Name, Type]),
    tessera_operand:tensor(Name, Tensor);
integers(Name, Args, Other) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected integers of at most 64 bits, got ~ts", [Name, show(Other)]).

%% A tensor, or a list, of rank 1 or more.
-spec vectors(atom(), [term()], term()) -> tessera:tensor().
vectors(Name, Args, Given) ->
    case tessera_operand:tensor(Name, listed(Given)) of
        #tessera{shape = Shape} = Tensor when tuple_size(Shape) > 0 -> Tensor;
        _ -> tessera_error:raise(Name, Args, invalid_argument, "~s: expected a tensor of rank 1 or more", [Name])
    end.

%% The options with a shape that includes the last axis.
-spec below(atom(), [term()], term(), [non_neg_integer()]) -> term().
below(Name, Args, Options, Dims) ->
    case as_options(Options) of
        #{shape := Shape} = Given ->
            Given#{shape := list_to_tuple(tuple_to_list(shape(Name, Args, [], Shape)) ++ [lists:last(Dims)])};
        Given -> Given
    end.

%% ---- samples

%% Samples of a float type; the parameters are converted to it.
-spec floats(atom(), [term()], [term()], term(), draw()) -> sample().
floats(Name, [Key | _] = Args, Params, Options, F) ->
    {Tensors, Draw} = float_draw(Name, Args, Params, Options, F),
    tessera_random_bits:draw(Key, Tensors, Draw).

-spec floats_split(atom(), [term()], [term()], term(), draw()) -> tessera:tensor().
floats_split(Name, [Key | _] = Args, Params, Options, F) ->
    {Tensors, Draw} = float_draw(Name, Args, Params, Options, F),
    tessera_random_bits:at_once(fun([K | Ts]) -> Draw(K, Ts) end, [Key | Tensors]).

float_draw(Name, [Key | _] = Args, Params, Options, F) ->
    _ = tessera_random_bits:check_key(Name, Args, Key),
    {Type, _} = Form = form(Name, Args, Params, Options),
    {[as_tensor(Name, P, Type) || P <- Params], fun(K, Ts) -> F(K, Ts, Form) end}.

form(Name, Args, Params, Options) ->
    #{shape := Shape, type := Type} = options(Name, Args, Options),
    {float_type(Name, Args, Params, Type), shape(Name, Args, Params, Shape)}.

%% Counts and truths: they are made in the type Float and then converted.
-spec counts(atom(), [term()], [term()], term(), tessera:type(), tessera:type(), draw()) -> sample().
counts(Name, [Key | _] = Args, Params, Options, Default, Float, F) ->
    _ = tessera_random_bits:check_key(Name, Args, Key),
    #{shape := Shape0, type := Type0} = options(Name, Args, Options),
    Type = case Type0 of
               default -> Default;
               _ -> Type0
           end,
    lists:member(Type, [s8, s16, s32, s64, f8, f8_e4m3fn, f16, bf16, f32, f64]) orelse
        Default =:= u8 andalso tessera_type:is_type(Type) orelse
        bad_type(Name, Args, Type, "a signed integer type of 8 bits or more, or a float type"),
    Form = {Float, shape(Name, Args, Params, Shape0)},
    tessera_random_bits:draw(Key, [as_tensor(Name, P, Float) || P <- Params], fun(K, Ts) -> counted(F(K, Ts, Form), Type) end).

%% An integer type has no NaN.
counted(#tessera{type = Type} = Counts, Type) -> Counts;
counted(#tessera{type = u8} = Truths, Type) -> tessera:as_type(Truths, Type);
counted(Counts, Type) ->
    case tessera_type:is_float_type(Type) of
        true -> tessera:as_type(Counts, Type);
        false -> tessera:as_type(tessera:select(tessera:is_nan(Counts), -1, Counts), Type)
    end.

%% A number is converted without an intermediate type.
as_tensor(_, #tessera{} = Tensor, Type) -> tessera:as_type(Tensor, Type);
as_tensor(Name, Given, Type) -> tessera:full({}, tessera_operand:operand(Name, Given), Type).

%% Mean and covariance, and their sampler.
-spec multivariate(atom(), [term()]) -> {[tessera:tensor()], sampler(tessera:tensor())}.
multivariate(Name, [Key, Mean0, Covariance0, Options] = Args) ->
    _ = tessera_random_bits:check_key(Name, Args, Key),
    [Mean, Covariance] = [tessera_operand:tensor(Name, listed(Given)) || Given <- [Mean0, Covariance0]],
    Size = case {tessera:shape(Mean), tessera:shape(Covariance)} of
               {{N}, {N, N}} -> N;
               {Vector, Matrix} ->
                   tessera_error:raise(Name, Args, invalid_argument,
                                       "~s: expected a mean of shape {N} and a covariance of shape {N, N}, got ~0p and ~0p",
                                       [Name, Vector, Matrix])
           end,
    #{shape := Lead, type := Type0} = options(Name, Args, Options),
    Type = float_type(Name, Args, [Mean, Covariance], Type0),
    Shape = list_to_tuple([Axis || Lead =/= default, Axis <- tuple_to_list(shape(Name, Args, [], Lead))] ++ [Size]),
    {[tessera:as_type(P, Type) || P <- [Mean, Covariance]],
     fun(K, Ps) -> tessera_random_draw:multivariate_normal(K, Ps, {Type, Shape}) end}.

%% The bounds of a range, or its first number, and their sampler.
-spec integers_between(atom(), [term()]) -> {[tessera:tensor()], sampler(tessera:tensor())}.
integers_between(Name, [Key, Min, Max, Options] = Args) ->
    _ = tessera_random_bits:check_key(Name, Args, Key),
    _ = [integers(Name, Args, Bound) || Bound <- [Min | [Max || Max =/= 1 bsl 64]]],
    #{type := Type0, shape := Shape0} = options(Name, Args, Options),
    Type = case Type0 of
               default -> merged([Min, last(Max)]);
               _ -> Type0
           end,
    tessera_type:is_type(Type) andalso not tessera_type:is_float_type(Type) orelse
        bad_type(Name, Args, Type, "an integer type"),
    Form = {Type, shape(Name, Args, [Min, Max], Shape0)},
    case is_integer(Min) andalso is_integer(Max) of
        true ->
            in_range(Name, Args, Type, Min, Max),
            Span = (Max - Min) band 16#FFFFFFFFFFFFFFFF,
            {[tessera:full({}, Min, Type)],
             fun(K, [From]) -> tessera_random_draw:randint(K, [From], Form, Span) end};
        false ->
            _ = [holds(Name, Args, Type, Bound) || Bound <- [Min, last(Max)], is_integer(Bound)],
            Last = case is_integer(Max) of
                       true -> fun(To) -> To end;
                       false -> fun(To) -> tessera_random_draw:before(To, Type) end
                   end,
            {[as_integers(Bound, Type) || Bound <- [Min, last(Max)]],
             fun(K, [From, To]) -> tessera_random_draw:randint_between(K, [From, Last(To)], Form) end}
    end.

as_integers(#tessera{} = Tensor, _) -> Tensor;
as_integers(Number, Type) -> tessera:full({}, Number, Type).

last(Max) when is_integer(Max) -> Max - 1;
last(Max) -> Max.

in_range(Name, Args, Type, Min, Max) ->
    Min < Max orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: no integer is from ~b up to, but not including, ~b",
                            [Name, Min, Max]),
    tessera_type:fits(Type, Min) andalso tessera_type:fits(Type, Max - 1) orelse
        tessera_error:raise(Name, Args, out_of_range, "~s: the integers from ~b to ~b do not fit in ~s",
                            [Name, Min, Max - 1, Type]).

holds(Name, Args, Type, Number) ->
    tessera_type:fits(Type, Number) orelse
        tessera_error:raise(Name, Args, out_of_range, "~s: the integer ~b does not fit in ~s", [Name, Number, Type]).

%% ---- choices

%% Whether there are enough elements; raises if not.
-spec can_choose([term()], term(), non_neg_integer(), boolean()) -> true.
can_choose(Args, Samples, Size, Replace) ->
    is_integer(Samples) andalso Samples >= 0 andalso (Size > 0 orelse Samples =:= 0) orelse
        tessera_error:raise(choice, Args, invalid_argument, "choice: cannot choose ~ts of ~b elements", [show(Samples), Size]),
    Replace orelse Samples =< Size orelse
        tessera_error:raise(choice, Args, invalid_argument, "choice: cannot choose ~b of ~b elements without replacement",
                            [Samples, Size]).

-spec weights([term()], none | term(), non_neg_integer()) -> [tessera:tensor()].
weights(_, none, _) -> [];
weights(Args, Given, Size) ->
    case tessera_operand:tensor(choice, listed(Given)) of
        #tessera{shape = {Size}} = P ->
            %% Uniform numbers of 16 bits are too few: most elements of many would never be chosen.
            [tessera:as_type(P, tessera_random_draw:wide(float_type(choice, Args, [P], default)))];
        #tessera{shape = Shape} ->
            tessera_error:raise(choice, Args, invalid_argument, "choice: expected ~b probabilities, got shape ~0p",
                                [Size, Shape])
    end.

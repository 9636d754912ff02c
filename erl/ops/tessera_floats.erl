%% @private Elementwise functions of several ops of the core: logarithms of other bases, distances, and what compares floats. The API in
%% tessera.erl documents them.
-module(tessera_floats).
-include("tessera.hrl").
-export([log2/1, log10/1, hypot/2, is_finite/1, is_close/3, all_close/3, nan_to_num/2]).

-type operand() :: tessera_type:operand().
-type tensor() :: tessera_type:tensor().

-define(LN_2, 0.6931471805599453).
-define(LN_10, 2.302585092994046).
%% 2^500, 2^-500, 2^-600, 2^600
-define(HUGE, 3.273390607896142e150).
-define(TINY, 3.054936363499605e-151).
-define(SHRINK, 2.409919865102884e-181).
-define(GROW, 4.149515568880993e180).

%% An operand in a type, which has all digits of a plain number.
in(Type, Name, #tessera{} = Tensor) -> tessera_ops:as_type(Name, Tensor, Type);
in(Type, _, Number) -> tessera_array:full({}, Number, Type).

%% ---- logarithms

%% Computed in f64, where a product with 1 / ln 2 may miss an integer by its last bit: then the integer is the result if it is one.
-spec log2(operand()) -> tensor().
log2(X) ->
    based(log2, X, ?LN_2,
          fun(Whole) ->
                  %% The bits of 2^Whole: an exponent alone.
                  Biased = tessera_ops:as_type(log2, tessera_elementwise:add(tessera_elementwise:clip(Whole, -1022, 1023), 1023), s64),
                  tessera_elementwise:bitcast(tessera_elementwise:left_shift(Biased, 52), f64)
          end).

-spec log10(operand()) -> tensor().
log10(X) ->
    based(log10, X, ?LN_10,
          fun(Whole) ->
                  Powers = tessera_array:tensor([math:pow(10, N) || N <- lists:seq(0, 22)], f64),
                  tessera_ops:take(Powers, tessera_ops:as_type(log10, tessera_elementwise:clip(Whole, 0, 22), s64))
          end).

based(Name, X, Base, Power) ->
    Type = tessera_operand:type_of(tessera_operand:contents(Name, X)),
    case tessera_type:is_complex_type(Type) of
        true ->
            %% A quotient of complex numbers would multiply an infinite part by the imaginary part of Base, 0.
            Log = tessera_elementwise:log(X),
            [Re, Im] = [tessera_elementwise:divide(Part, Base) || Part <- [tessera_complex:real(Log), tessera_complex:imag(Log)]],
            tessera_complex:complex(Re, Im);
        false ->
            Wide = in(f64, Name, X),
            Log = tessera_elementwise:divide(tessera_elementwise:log(Wide), Base),
            Whole = tessera_elementwise:round(tessera_trace:stop_grad(Log)),
            IsPower = tessera_elementwise:equal(Power(Whole), Wide),
            %% The result has the gradient of the logarithm, also where it is the whole number.
            Correction = tessera_trace:stop_grad(tessera_elementwise:subtract(Whole, Log)),
            Exact = tessera_elementwise:add(Log, tessera_elementwise:select(IsPower, Correction, 0.0)),
            tessera_ops:as_type(Name, Exact, tessera_type:to_float(Type))
    end.

%% ---- distances

%% The square root of the sum of the squares. The squares do not overflow: f32 and narrower types are squared in f64, and f64 is scaled
%% before. An infinite operand gives infinity, also beside NaN.
-spec hypot(operand(), operand()) -> tensor().
hypot(A, B) ->
    #{type := Type, args := [X, Y]} = common(hypot, A, B),
    Sizes = [tessera_elementwise:abs(in(f64, hypot, Z)) || Z <- [X, Y]],
    [IsX, IsY] = [tessera_elementwise:is_infinity(Size) || Size <- Sizes],
    IsInfinite = tessera_elementwise:logical_or(IsX, IsY),
    %% Selected before the squares: the gradient of an infinite one is NaN, also times 0.
    [WideX, WideY] = [tessera_elementwise:select(IsInfinite, 1, Size) || Size <- Sizes],
    Length = case Type of
                 f64 -> scaled(WideX, WideY);
                 _ -> tessera_elementwise:sqrt(tessera_elementwise:add(tessera_elementwise:multiply(WideX, WideX), tessera_elementwise:multiply(WideY, WideY)))
             end,
    tessera_ops:as_type(hypot, tessera_elementwise:select(IsInfinite, infinity, Length), Type).

%% Scaled by a power of two, which is exact, where squares would overflow or vanish.
scaled(X, Y) ->
    Large = tessera_trace:stop_grad(tessera_elementwise:max(X, Y)),
    IsSmall = tessera_elementwise:less(Large, ?TINY),
    [Shrink, Grow, One] = [tessera_array:full({}, N, f64) || N <- [?SHRINK, ?GROW, 1.0]],
    Scale = tessera_elementwise:select(tessera_elementwise:greater(Large, ?HUGE), Shrink, tessera_elementwise:select(IsSmall, Grow, One)),
    [A, B] = [tessera_elementwise:multiply(Z, Scale) || Z <- [X, Y]],
    Sum = tessera_elementwise:add(tessera_elementwise:multiply(A, A), tessera_elementwise:multiply(B, B)),
    tessera_elementwise:divide(tessera_elementwise:sqrt(Sum), Scale).

%% Two real operands, and the float type of both.
common(Name, A, B) ->
    Operands = [tessera_operand:contents(Name, Operand) || Operand <- [A, B]],
    Types = [Type || #tessera{type = Type} <- Operands],
    Numbers = [N || N <- Operands, not is_record(N, tessera)],
    Type = tessera_type:to_float(tessera_type:merge_all(Types, Numbers)),
    tessera_type:is_complex_type(Type) andalso
        tessera_error:raise(Name, [A, B], invalid_argument, "~s: expected real numbers, got ~s", [Name, Type]),
    #{type => Type, args => Operands}.

%% ---- comparisons

%% Neither infinite nor NaN; every integer is finite.
-spec is_finite(operand()) -> tensor().
is_finite(Operand) ->
    X = tessera_operand:tensor(is_finite, Operand),
    case tessera_type:is_inexact_type(tessera_operand:type_of(X)) of
        true -> tessera_elementwise:logical_not(tessera_elementwise:logical_or(tessera_elementwise:is_nan(X), tessera_elementwise:is_infinity(X)));
        false -> tessera_array:full(tessera_operand:shape_of(is_finite, X), 1, u8)
    end.

%% |A - B| =< atol + rtol |B|; infinities are close to themselves only.
-spec is_close(operand(), operand(), tessera_options:close_options()) -> tensor().
is_close(A, B, Options) -> close(is_close, A, B, Options).

close(Name, A, B, Options) ->
    Args = [A, B, Options],
    #{rtol := Relative, atol := Absolute, equal_nan := EqualNan} =
        tessera_ops:options(Name, Args, Options, #{rtol => 1.0e-5, atol => 1.0e-8, equal_nan => false}),
    [is_number(Tolerance) orelse tessera_error:raise(Name, Args, invalid_argument, "~s: ~s is ~ts, expected a number", [Name, Key, tessera_error:show(Tolerance)])
     || {Key, Tolerance} <- [{rtol, Relative}, {atol, Absolute}]],
    [X, Y] = [wide(Name, Operand) || Operand <- [A, B]],
    Limit = tessera_elementwise:add(tessera_elementwise:multiply(tessera_elementwise:abs(Y), float(Relative)), float(Absolute)),
    Near = tessera_elementwise:less_equal(tessera_elementwise:abs(tessera_elementwise:subtract(X, Y)), Limit),
    Close = tessera_elementwise:logical_or(tessera_elementwise:logical_and(Near, is_finite(Y)), tessera_elementwise:equal(X, Y)),
    case EqualNan of
        true -> tessera_elementwise:logical_or(Close, tessera_elementwise:logical_and(tessera_elementwise:is_nan(X), tessera_elementwise:is_nan(Y)));
        false -> Close
    end.

%% Differences of integers would wrap, and those of narrow floats would be rounded.
wide(Name, Operand) ->
    case tessera_type:is_complex_type(tessera_operand:type_of(tessera_operand:contents(Name, Operand))) of
        true -> in(c128, Name, Operand);
        false -> in(f64, Name, Operand)
    end.

-spec all_close(operand(), operand(), tessera_options:close_options()) -> tensor().
all_close(A, B, Options) -> tessera_ops:all(close(all_close, A, B, Options)).

%% Infinities become the ends of the type's range unless numbers are given for them.
-spec nan_to_num(operand(), tessera_options:nan_to_num_options()) -> tensor().
nan_to_num(X, Options) ->
    Args = [X, Options],
    #{nan := Nan, infinity := High, neg_infinity := Low} =
        tessera_ops:options(nan_to_num, Args, Options, #{nan => 0, infinity => largest, neg_infinity => smallest}),
    #tessera{type = Type} = Tensor = tessera_operand:tensor(nan_to_num, X),
    case tessera_type:is_complex_type(Type) of
        true ->
            tessera_complex:complex(nan_to_num(tessera_complex:real(Tensor), Options), nan_to_num(tessera_complex:imag(Tensor), Options));
        false ->
            case tessera_type:is_float_type(Type) of
                true -> replaced(Tensor, [Nan, limit(High, Type, 1), limit(Low, Type, -1)]);
                false -> Tensor
            end
    end.

limit(largest, Type, Sign) -> Sign * largest(Type);
limit(smallest, Type, Sign) -> Sign * largest(Type);
limit(Number, _, _) -> Number.

%% The largest finite number of a type.
largest(f64) -> 1.7976931348623157e308;
largest(f32) -> 3.4028234663852886e38;
largest(bf16) -> 3.3895313892515355e38;
largest(f16) -> 65504.0;
largest(f8) -> 57344.0;
largest(f8_e4m3fn) -> 448.0.

replaced(#tessera{type = Type} = X, Numbers) ->
    [Nan, High, Low] = [tessera_array:full({}, N, Type) || N <- Numbers],
    Positive = tessera_elementwise:greater(X, 0),
    Infinite = tessera_elementwise:select(tessera_elementwise:is_infinity(X), tessera_elementwise:select(Positive, High, Low), X),
    tessera_elementwise:select(tessera_elementwise:is_nan(X), Nan, Infinite).

%% @private Keys and random bits: Threefry-2x32 with 20 rounds (J. K. Salmon et al., "Parallel random numbers: as
%% easy as 1, 2, 3", 2011), counted as JAX and Nx.Random count it, so that keys and bits are equal to theirs.
-module(tessera_random_bits).
-include("tessera.hrl").
-export([key/1, check_key/3, split/2, fold_in/2, bits/3, unit/3, draw/3, at_once/2]).

-define(U32, 16#FFFFFFFF).
-define(PARITY, 16#1BD11BDA).
-define(ROTATIONS, {[13, 15, 26, 6], [17, 29, 16, 24]}).

%% ---- keys

%% u32[2]: the high and the low half of a seed of 64 bits.
-spec key(integer() | tessera:tensor()) -> tessera:tensor().
key(Seed) when is_integer(Seed), Seed >= -(1 bsl 63), Seed < 1 bsl 64 ->
    tessera:tensor([(Seed bsr 32) band ?U32, Seed band ?U32], u32);
key(#tessera{type = Type, shape = {}} = Seed) when Type =:= u64; Type =:= s64 ->
    at_once(fun([S]) -> {High, Low} = halves(S), tessera:stack([High, Low]) end, [Seed]);
key(Other) ->
    tessera_error:raise(key, [Other], invalid_argument,
                        "key: expected an integer of 64 bits, or a tensor u64[] or s64[], got ~ts", [tessera_error:show(Other)]).

halves(Number) ->
    Bits = tessera:as_type(Number, u64),
    {tessera:as_type(tessera:right_shift(Bits, 32), u32), tessera:as_type(tessera:bitwise_and(Bits, ?U32), u32)}.

-spec check_key(atom(), [term()], term()) -> tessera:tensor().
check_key(_, _, #tessera{type = u32, shape = {2}, ref = Ref} = Key) when Ref =/= undefined -> Key;
check_key(Name, Args, Other) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a key, u32[2], as of tessera_random:key/1, got ~ts",
                        [Name, tessera_error:show(Other)]).

%% As many keys, in a list.
-spec split(tessera:tensor(), pos_integer()) -> [tessera:tensor()].
split(Key, Count) ->
    Keys = tessera:reshape(threefry(Key, 2 * Count), {Count, 2}),
    [tessera:at(Keys, [I]) || I <- lists:seq(0, Count - 1)].

%% The key for each number: u32 of the numbers' shape and 2.
-spec fold_in(tessera:tensor(), tessera:tensor()) -> tessera:tensor().
fold_in(Key, Numbers) ->
    {High, Low} = halves(Numbers),
    {A, B} = rounds(Key, High, Low),
    tessera:stack([A, B], -1).

%% ---- bits

%% Unsigned integers of 8, 16, 32 or 64 random bits.
-spec bits(tessera:tensor(), 8 | 16 | 32 | 64, tessera:shape()) -> tessera:tensor().
bits(Key, 64, Shape) ->
    Count = tessera_type:elements(Shape),
    Low = tessera:iota({Count}, u32),
    {A, B} = rounds(Key, Low, tessera:add(Low, tessera:full({}, Count, u32))),
    High = tessera:left_shift(tessera:as_type(A, u64), 32),
    tessera:reshape(tessera:bitwise_or(High, tessera:as_type(B, u64)), Shape);
bits(Key, 32, Shape) -> tessera:reshape(threefry(Key, tessera_type:elements(Shape)), Shape);
bits(Key, 16, Shape) -> tessera:as_type(bits(Key, 32, Shape), u16);
bits(Key, 8, Shape) -> tessera:as_type(bits(Key, 32, Shape), u8).

%% The counters from 0 on make pairs: one of each half. The last of an odd number is paired with 0.
threefry(_, 0) -> tessera:zeros({0}, u32);
threefry(Key, Count) ->
    Half = (Count + 1) div 2,
    First = tessera:iota({Half}, u32),
    Above = tessera:add(First, Half),
    Second = case Count rem 2 of
                 0 -> Above;
                 1 -> tessera:select(tessera:equal(First, Half - 1), tessera:full({}, 0, u32), Above)
             end,
    {A, B} = rounds(Key, First, Second),
    Both = tessera:concatenate([A, B]),
    case Count rem 2 of
        0 -> Both;
        1 -> tessera:slice(Both, [0], [Count])
    end.

%% Five times four rounds; after each four the next two of the three words of the key are added.
rounds(Key, X, Y) ->
    [A, B] = [tessera:at(Key, [I]) || I <- [0, 1]],
    C = tessera:bitwise_xor(tessera:bitwise_xor(A, B), ?PARITY),
    {Even, Odd} = ?ROTATIONS,
    Groups = [{1, Even, B, C}, {2, Odd, C, A}, {3, Even, A, B}, {4, Odd, B, C}, {5, Even, C, A}],
    lists:foldl(fun group/2, {tessera:add(X, A), tessera:add(Y, B)}, Groups).

group({I, Rotations, First, Second}, Pair) ->
    {X, Y} = lists:foldl(fun round/2, Pair, Rotations),
    {tessera:add(X, First), tessera:add(Y, tessera:add(Second, I))}.

round(Bits, {X, Y}) ->
    Sum = tessera:add(X, Y),
    {Sum, tessera:bitwise_xor(rotate(Y, Bits), Sum)}.

rotate(X, Bits) -> tessera:bitwise_or(tessera:left_shift(X, Bits), tessera:right_shift(X, 32 - Bits)).

%% Floats in [0, 1), at equal distances: the high bits of the random ones are the mantissa of a number in [1, 2).
-spec unit(tessera:tensor(), tessera:type(), tessera:shape()) -> tessera:tensor().
unit(Key, Type, Shape) ->
    {Width, Mantissa, One} = float_bits(Type),
    Bits = tessera:bitwise_or(tessera:right_shift(bits(Key, Width, Shape), Width - Mantissa), One),
    tessera:subtract(tessera:bitcast(Bits, Type), 1).

%% The bits of a type, those of its mantissa, and the number 1 as bits.
float_bits(f64) -> {64, 52, 16#3FF0000000000000};
float_bits(f32) -> {32, 23, 16#3F800000};
float_bits(f16) -> {16, 10, 16#3C00};
float_bits(bf16) -> {16, 7, 16#3F80}.

%% ---- running

%% The result of F for one half of the split key and the tensors, with the next key.
-spec draw(tessera:tensor(), [tessera:tensor()], fun((tessera:tensor(), [tessera:tensor()]) -> Made)) ->
          {Made, tessera:tensor()}.
draw(Key, Tensors, F) ->
    at_once(fun([K | Ts]) -> [Next, Own] = split(K, 2), {F(Own, Ts), Next} end, [Key | Tensors]).

%% As one program, also outside of a jitted function: threefry alone has 100 ops.
-spec at_once(fun(([tessera:tensor()]) -> Made), [tessera:tensor()]) -> Made.
at_once(F, Tensors) ->
    case tessera_trace:is_tracing() of
        true -> F(Tensors);
        false -> (tessera_jit:jit(F, #{}))(Tensors)
    end.

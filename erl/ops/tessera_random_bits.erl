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
-spec key(integer() | tessera_type:tensor()) -> tessera_type:tensor().
key(Seed) when is_integer(Seed), Seed >= -(1 bsl 63), Seed < 1 bsl 64 ->
    tessera_array:tensor([(Seed bsr 32) band ?U32, Seed band ?U32], u32);
key(#tessera{type = Type, shape = {}} = Seed) when Type =:= u64; Type =:= s64 ->
    at_once(fun([S]) -> {High, Low} = halves(S), tessera_ops:stack([High, Low]) end, [Seed]);
key(Other) ->
    tessera_error:raise(key, [Other], invalid_argument,
                        "key: expected an integer of 64 bits, or a tensor u64[] or s64[], got ~ts", [tessera_error:show(Other)]).

halves(Number) ->
    Bits = tessera_ops:as_type(Number, u64),
    {tessera_ops:as_type(tessera_elementwise:right_shift(Bits, 32), u32), tessera_ops:as_type(tessera_elementwise:bitwise_and(Bits, ?U32), u32)}.

-spec check_key(atom(), [term()], term()) -> tessera_type:tensor().
check_key(_, _, #tessera{type = u32, shape = {2}, ref = Ref} = Key) when Ref =/= undefined -> Key;
check_key(Name, Args, Other) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: expected a key, u32[2], as of tessera_random:key/1, got ~ts",
                        [Name, tessera_error:show(Other)]).

%% As many keys, in a list.
-spec split(tessera_type:tensor(), pos_integer()) -> [tessera_type:tensor()].
split(Key, Count) ->
    Keys = tessera_ops:reshape(threefry(Key, 2 * Count), {Count, 2}),
    [tessera_shapes:at(Keys, [I]) || I <- lists:seq(0, Count - 1)].

%% The key for each number: u32 of the numbers' shape and 2.
-spec fold_in(tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
fold_in(Key, Numbers) ->
    {High, Low} = halves(Numbers),
    {A, B} = rounds(Key, High, Low),
    tessera_ops:stack([A, B], -1).

%% ---- bits

%% Unsigned integers of 8, 16, 32 or 64 random bits.
-spec bits(tessera_type:tensor(), 8 | 16 | 32 | 64, tessera_type:shape()) -> tessera_type:tensor().
bits(Key, 64, Shape) ->
    Count = tessera_type:elements(Shape),
    Low = tessera_array:iota({Count}, u32),
    {A, B} = rounds(Key, Low, tessera_elementwise:add(Low, tessera_array:full({}, Count, u32))),
    High = tessera_elementwise:left_shift(tessera_ops:as_type(A, u64), 32),
    tessera_ops:reshape(tessera_elementwise:bitwise_or(High, tessera_ops:as_type(B, u64)), Shape);
bits(Key, 32, Shape) -> tessera_ops:reshape(threefry(Key, tessera_type:elements(Shape)), Shape);
bits(Key, 16, Shape) -> tessera_ops:as_type(bits(Key, 32, Shape), u16);
bits(Key, 8, Shape) -> tessera_ops:as_type(bits(Key, 32, Shape), u8).

%% The counters from 0 on make pairs: one of each half. The last of an odd number is paired with 0.
threefry(_, 0) -> tessera_array:zeros({0}, u32);
threefry(Key, Count) ->
    Half = (Count + 1) div 2,
    First = tessera_array:iota({Half}, u32),
    Above = tessera_elementwise:add(First, Half),
    Second = case Count rem 2 of
                 0 -> Above;
                 1 -> tessera_elementwise:select(tessera_elementwise:equal(First, Half - 1), tessera_array:full({}, 0, u32), Above)
             end,
    {A, B} = rounds(Key, First, Second),
    Both = tessera_ops:concatenate([A, B]),
    case Count rem 2 of
        0 -> Both;
        1 -> tessera_ops:slice(Both, [0], [Count])
    end.

%% Five times four rounds; after each four the next two of the three words of the key are added.
rounds(Key, X, Y) ->
    [A, B] = [tessera_shapes:at(Key, [I]) || I <- [0, 1]],
    C = tessera_elementwise:bitwise_xor(tessera_elementwise:bitwise_xor(A, B), ?PARITY),
    {Even, Odd} = ?ROTATIONS,
    Groups = [{1, Even, B, C}, {2, Odd, C, A}, {3, Even, A, B}, {4, Odd, B, C}, {5, Even, C, A}],
    lists:foldl(fun group/2, {tessera_elementwise:add(X, A), tessera_elementwise:add(Y, B)}, Groups).

group({I, Rotations, First, Second}, Pair) ->
    {X, Y} = lists:foldl(fun round/2, Pair, Rotations),
    {tessera_elementwise:add(X, First), tessera_elementwise:add(Y, tessera_elementwise:add(Second, I))}.

round(Bits, {X, Y}) ->
    Sum = tessera_elementwise:add(X, Y),
    {Sum, tessera_elementwise:bitwise_xor(rotate(Y, Bits), Sum)}.

rotate(X, Bits) -> tessera_elementwise:bitwise_or(tessera_elementwise:left_shift(X, Bits), tessera_elementwise:right_shift(X, 32 - Bits)).

%% Floats in [0, 1), at equal distances: the high bits of the random ones are the mantissa of a number in [1, 2).
-spec unit(tessera_type:tensor(), tessera_type:type(), tessera_type:shape()) -> tessera_type:tensor().
unit(Key, Type, Shape) ->
    {Width, Mantissa, One} = float_bits(Type),
    Bits = tessera_elementwise:bitwise_or(tessera_elementwise:right_shift(bits(Key, Width, Shape), Width - Mantissa), One),
    tessera_elementwise:subtract(tessera_elementwise:bitcast(Bits, Type), 1).

%% The bits of a type, the bits of its mantissa, and the number 1 as bits.
float_bits(f64) -> {64, 52, 16#3FF0000000000000};
float_bits(f32) -> {32, 23, 16#3F800000};
float_bits(f16) -> {16, 10, 16#3C00};
float_bits(bf16) -> {16, 7, 16#3F80}.

%% ---- running

%% The result of F for one half of the split key and the tensors, with the next key.
-spec draw(tessera_type:tensor(), [tessera_type:tensor()], fun((tessera_type:tensor(), [tessera_type:tensor()]) -> Made)) ->
          {Made, tessera_type:tensor()}.
draw(Key, Tensors, F) ->
    at_once(fun([K | Ts]) -> [Next, Own] = split(K, 2), {F(Own, Ts), Next} end, [Key | Tensors]).

%% As one program, also outside of a jitted function: threefry alone has 100 ops.
-spec at_once(fun(([tessera_type:tensor()]) -> Made), [tessera_type:tensor()]) -> Made.
at_once(F, Tensors) ->
    case tessera_trace:is_tracing() of
        true -> F(Tensors);
        false -> (tessera_jit:jit(F, #{}))(Tensors)
    end.

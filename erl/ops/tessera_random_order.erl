%% @private Random orders and choices, by the same ops as Nx.Random has.
-module(tessera_random_order).
-include("tessera.hrl").
-export([shuffle/4, choice/4]).

-type sample() :: {tessera_type:tensor(), tessera_type:tensor()}.

%% Sorts the axis by random numbers, several times, so that equal keys are improbable, as JAX does.
-spec shuffle(tessera_type:tensor(), tessera_type:tensor(), non_neg_integer(), boolean()) -> sample().
shuffle(Key, Tensor, Axis, true) -> sort_rounds(rounds(tessera_array:size(Tensor)), Key, Tensor, Axis);
shuffle(Key, #tessera{shape = Shape} = Tensor, Axis, false) ->
    Size = element(Axis + 1, Shape),
    {Order, Next} = sort_rounds(rounds(Size), Key, tessera_array:iota({Size}), 0),
    {along(Tensor, Order, Axis), Next}.

along(#tessera{shape = Shape} = Tensor, Order, Axis) ->
    case tessera_array:size(Tensor) of
        0 -> tessera_array:zeros(setelement(Axis + 1, Shape, tessera_array:size(Order)), Tensor#tessera.type);
        _ -> tessera_ops:take(Tensor, Order, #{axis => Axis})
    end.

%% ceil(3 log(n) / log(2^32 - 1)), each step in f32.
rounds(Size) when Size < 2 -> 0;
rounds(Size) -> ceil(f32(f32(3 * f32(math:log(Size))) / f32(math:log(16#FFFFFFFF)))).

f32(X) ->
    <<Rounded:32/float>> = <<X:32/float>>,
    Rounded.

sort_rounds(0, Key, Tensor, _) -> {Tensor, Key};
sort_rounds(N, Key, #tessera{shape = Shape} = Tensor, Axis) ->
    [Next, Own] = tessera_random_bits:split(Key, 2),
    Order = tessera_order:argsort(tessera_random_bits:bits(Own, 32, Shape), #{axis => Axis}),
    sort_rounds(N - 1, Next, tessera_ops:take_along_axis(Tensor, Order, #{axis => Axis}), Axis).

-spec choice(tessera_type:tensor(), tessera_type:tensor(), [tessera_type:tensor()], {non_neg_integer(), non_neg_integer(), boolean()}) ->
          sample().
choice(Key, #tessera{shape = Shape} = Tensor, [], {Axis, Samples, true}) ->
    {Indices, Next} = drawn(Key, fun(K) ->
        case element(Axis + 1, Shape) of
            0 -> tessera_array:zeros({0}, u32);
            Size -> tessera_random_draw:randint(K, [tessera_array:full({}, 0, u32)], {u32, {Samples}}, Size)
        end
    end),
    {along(Tensor, Indices, Axis), Next};
choice(Key, #tessera{shape = Shape} = Tensor, [], {Axis, Samples, false}) ->
    {Shuffled, Next} = shuffle(Key, Tensor, Axis, false),
    Lengths = tuple_to_list(setelement(Axis + 1, Shape, Samples)),
    {tessera_ops:slice(Shuffled, [0 || _ <- Lengths], Lengths), Next};
choice(Key, Tensor, [#tessera{type = Type} = P], {Axis, Samples, true}) ->
    {Uniform, Next} = drawn(Key, fun(K) -> tessera_random_bits:unit(K, Type, {Samples}) end),
    {along(Tensor, indices(P, Uniform), Axis), Next};
choice(Key, Tensor, [#tessera{type = Type, shape = Shape} = P], {Axis, Samples, false}) ->
    {Gumbel, Next} = drawn(Key, fun(K) -> tessera_random_draw:gumbel(K, [], {Type, Shape}) end),
    Order = tessera_order:argsort(tessera_elementwise:subtract(tessera_elementwise:negate(Gumbel), tessera_elementwise:log(P)), #{}),
    {along(Tensor, tessera_ops:slice(Order, [0], [Samples]), Axis), Next}.

drawn(Key, F) ->
    [Next, Own] = tessera_random_bits:split(Key, 2),
    {F(Own), Next}.

%% The first index whose cumulated probability exceeds a share of the sum in (0, sum]; for the sum itself the last
%% index that has a probability.
indices(#tessera{shape = {0}}, _) -> tessera_array:zeros({0}, s32);
indices(#tessera{shape = {Size}} = P, Uniform) ->
    Sums = tessera_ops:cumulative_sum(P),
    Total = tessera_shapes:at(Sums, [Size - 1]),
    Shares = tessera_elementwise:multiply(Total, tessera_elementwise:subtract(1, Uniform)),
    Found = search(Sums, Shares, Size),
    Last = tessera_ops:argmax(tessera_elementwise:greater_equal(Sums, Total)),
    tessera_elementwise:select(tessera_elementwise:less(Found, Size), Found, Last).

%% How many of the increasing sums are at most each share: by bisection, a bit of the answer in each step.
search(Sums, Shares, Size) ->
    lists:foldl(fun(Step, Count) ->
                        Next = tessera_elementwise:add(Count, Step),
                        Place = tessera_elementwise:min(tessera_elementwise:subtract(Next, 1), Size - 1),
                        Fits = tessera_elementwise:less_equal(Next, Size),
                        Below = tessera_elementwise:less_equal(tessera_ops:take(Sums, Place), Shares),
                        tessera_elementwise:select(tessera_elementwise:logical_and(Fits, Below), Next, Count)
                end, tessera_array:full(tessera_array:shape(Shares), 0, s32), steps(Size, 1, [])).

steps(Size, Step, Steps) when Step > Size -> Steps;
steps(Size, Step, Steps) -> steps(Size, 2 * Step, [Step | Steps]).

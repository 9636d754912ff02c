%% Workloads that are drawn: a seed and a number give one, the same on every machine.
%%
%% A size is log-uniform. Half of the sizes are round (powers of 2 and of 10), the other half are awkward: primes, powers of 2 plus or
%% minus 1, or any number. An operand is a whole tensor, or a view of a larger one: a part of it, every second element, or
%% its transposition. A view is a part of the program, and the peers take the same view.
%%
%% `text' is the program in Python, of x0, x1, ... and an adapter P (random_peers.py). `xla' is a text of its own for jax where
%% an op has no StableHLO. `rule' says how near the results of the peers are (random_peers.py explains it).
-module(tessera_random_workloads).
-export([draw/3, elements/1, data/3]).
-export_type([workload/0, input/0]).

-type kind() :: signed | positive | full | small | special | {below, pos_integer()} | definite | triangular.
-type input() :: {tessera:type(), tuple(), kind()}.
-type workload() :: #{family := atom(), name := string(), inputs := [input()], function := function(), text := string(),
                      rule := {exact | near | mixed | absent, number()}, flops := number(), xla => string()}.

-define(FLOATS, [f32, f32, f32, f64, bf16, f16]).
-define(INTEGERS, [s32, s8, u8, s64, s16]).

%% Workload Index of Seed, with at most Elements elements in a tensor.
-spec draw(non_neg_integer(), non_neg_integer(), pos_integer()) -> workload().
draw(Seed, Index, Elements) ->
    %% By hashes, since neighbours as seeds begin with nearly equal numbers.
    _ = rand:seed(exsss, list_to_tuple([erlang:phash2({Seed, Index, Part}) || Part <- [1, 2, 3]])),
    {Family, Draw} = pick(families()),
    Workload = Draw(Elements),
    maps:merge(#{flops => 0}, Workload#{family => Family}).

families() ->
    [{elementwise, fun unary/1}, {elementwise, fun binary/1}, {elementwise, fun binary/1}, {chain, fun chain/1},
     {conversion, fun conversion/1}, {reduction, fun reduction/1}, {reduction, fun reduction/1}, {argmax, fun arg_reduction/1},
     {normalisation, fun normalisation/1}, {product, fun product/1}, {product, fun product/1}, {product, fun batched/1},
     {product, fun narrow_product/1}, {vector_product, fun vector_product/1}, {convolution, fun convolution/1}, {window, fun window/1}, {scan, fun scan/1},
     {sort, fun sort/1}, {sort, fun top_k/1}, {gather, fun gather/1}, {scatter, fun scatter/1}, {transposition, fun transposition/1},
     {movement, fun movement/1}, {movement, fun joining/1}, {linear_algebra, fun linear_algebra/1}, {transform, fun transform/1},
     {complex, fun complex/1}, {random, fun random/1}, {program, fun network/1}, {program, fun attention/1}, {program, fun loop/1}].

%% ---- chance ----

pick(List) -> lists:nth(rand:uniform(length(List)), List).

chance(P) -> rand:uniform() < P.

between(Low, High) -> Low + rand:uniform(High - Low + 1) - 1.

%% A size from 1 to Most.
extent(Most) when Most =< 1 -> 1;
extent(Most) ->
    Log = rand:uniform() * math:log2(Most),
    Any = max(1, min(Most, round(math:pow(2, Log)))),
    Two = 1 bsl round(Log),
    Sizes = case chance(0.5) of
                true -> [Two, Two, round_decimal(Any)];
                false -> [Any, prime(Any), Two - 1, Two + 1]
            end,
    max(1, min(Most, pick(Sizes))).

round_decimal(N) ->
    Unit = round(math:pow(10, trunc(math:log10(N)))),
    max(1, N div Unit * Unit).

prime(N) when N =< 2 -> 2;
prime(N) ->
    case lists:all(fun(D) -> N rem D =/= 0 end, lists:seq(2, trunc(math:sqrt(N)))) of
        true -> N;
        false -> prime(N - 1)
    end.

%% A shape of this rank, of at most Elements elements, whose size is log-uniform.
shape(Rank, Elements) -> list_to_tuple(shuffled(sizes(Rank, Elements))).

sizes(0, _) -> [];
sizes(1, Elements) -> [extent(Elements)];
sizes(Rank, Elements) ->
    Size = extent(max(1, round(math:pow(Elements, 1.5 / Rank)))),
    [Size | sizes(Rank - 1, max(1, Elements div Size))].

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

-spec elements(tuple()) -> non_neg_integer().
elements(Shape) -> lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)).

%% ---- operands ----

%% {input, function of its tensor to the operand, how the operand is written}.
operand(At, Type, Shape, Kind) ->
    Name = "x" ++ integer_to_list(At),
    case tuple_size(Shape) > 0 andalso Kind =/= definite andalso Kind =/= triangular andalso chance(0.4) of
        false -> whole(Name, Type, Shape, Kind);
        true -> (pick([fun part/4, fun every_second/4, fun transposed/4]))(Name, Type, Shape, Kind)
    end.

whole(Name, Type, Shape, Kind) -> {{Type, Shape, Kind}, fun(X) -> X end, Name}.

part(Name, Type, Shape, Kind) ->
    Axis = rand:uniform(tuple_size(Shape)),
    {Before, After} = {pick([1, 3, 8]), pick([0, 1, 5])},
    Length = element(Axis, Shape),
    Starts = [case A of Axis -> Before; _ -> 0 end || A <- lists:seq(1, tuple_size(Shape))],
    {{Type, setelement(Axis, Shape, Before + Length + After), Kind}, fun(X) -> tessera:slice(X, Starts, tuple_to_list(Shape)) end,
     format("~s[~s~b:~b]", [Name, lists:append(lists:duplicate(Axis - 1, ":,")), Before, Before + Length])}.

every_second(Name, Type, Shape, Kind) ->
    Rank = tuple_size(Shape),
    Axis = rand:uniform(Rank),
    Long = setelement(Axis, Shape, 2 * element(Axis, Shape)),
    Strides = [case A of Axis -> 2; _ -> 1 end || A <- lists:seq(1, Rank)],
    Zeros = lists:duplicate(Rank, 0),
    {{Type, Long, Kind}, fun(X) -> tessera:slice(X, Zeros, tuple_to_list(Long), Strides) end,
     format("~s[~s::2]", [Name, lists:append(lists:duplicate(Axis - 1, ":,"))])}.

transposed(Name, Type, Shape, Kind) ->
    Order = shuffled(lists:seq(0, tuple_size(Shape) - 1)),
    %% The operand's axis I is the input's axis Order[I].
    Sizes = maps:from_list(lists:zip(Order, tuple_to_list(Shape))),
    Input = list_to_tuple([maps:get(A, Sizes) || A <- lists:seq(0, tuple_size(Shape) - 1)]),
    {{Type, Input, Kind}, fun(X) -> tessera:transpose(X, Order) end, format("P.permute(~s,~s)", [Name, tuple(Order)])}.

%% A workload of a function of operands; Text takes as many ~s.
of_operands(Name, Operands, Function, Text, Rule) ->
    {Inputs, Views, Names} = lists:unzip3(Operands),
    Types = lists:join(" ", [format("~s~s", [Type, tuple(Shape)]) || {Type, Shape, _} <- Inputs]),
    Apply = fun(Tensors) -> apply(Function, [View(X) || {View, X} <- lists:zip(Views, Tensors)]) end,
    Written = format(Text, Names),
    #{name => lists:append([Name, " ", lists:append(Types), " ", Written]), inputs => Inputs, function => with_arity(Apply, length(Inputs)),
      text => Written, rule => Rule}.

with_arity(F, 1) -> fun(A) -> F([A]) end;
with_arity(F, 2) -> fun(A, B) -> F([A, B]) end;
with_arity(F, 3) -> fun(A, B, C) -> F([A, B, C]) end;
with_arity(F, 4) -> fun(A, B, C, D) -> F([A, B, C, D]) end;
with_arity(F, 5) -> fun(A, B, C, D, E) -> F([A, B, C, D, E]) end.

format(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

tuple(List) when is_list(List) -> format("(~s)", [[format("~b,", [I]) || I <- List]]);
tuple(Tuple) -> tuple(tuple_to_list(Tuple)).

is_float_type(Type) -> lists:member(Type, ?FLOATS).

name(Atom) -> atom_to_list(Atom).

%% ---- elementwise ----

unary(Elements) ->
    {Op, Kind} = pick([{exp, signed}, {expm1, signed}, {log, positive}, {log1p, positive}, {sigmoid, signed}, {cos, signed}, {sin, signed},
                       {tan, signed}, {tanh, signed}, {sinh, signed}, {asin, signed}, {atan, signed}, {sqrt, positive}, {rsqrt, positive},
                       {erf, signed}, {erfc, signed}, {abs, special}, {negate, special}, {floor, signed}, {round, signed}, {sign, signed},
                       {exp, special}, {tanh, special}, {log, special}, {sigmoid, special}, {sqrt, special}]),
    X = operand(0, pick(?FLOATS), shape(between(1, 4), Elements), Kind),
    Rule = case lists:member(Op, [abs, negate, floor, round, sign]) of true -> {exact, 0}; false -> {near, 40} end,
    of_operands(name(Op), [X], fun tessera:Op/1, "P." ++ name(Op) ++ "(~s)", Rule).

%% With an operand that is spread along some axes.
binary(Elements) ->
    Type = pick(?FLOATS ++ ?INTEGERS),
    Shape = shape(between(1, 4), Elements),
    Small = case chance(0.4) of
                true -> list_to_tuple([case chance(0.5) of true -> 1; false -> S end || S <- tuple_to_list(Shape)]);
                false -> Shape
            end,
    {Op, Written, Kind} = case is_float_type(Type) of
                              true -> pick([{add, "~s+~s", special}, {subtract, "~s-~s", signed}, {multiply, "~s*~s", special}, {divide, "~s/~s", signed},
                                            {max, "P.maximum(~s,~s)", special}, {min, "P.minimum(~s,~s)", special}, {pow, "~s**~s", positive},
                                            {atan2, "P.atan2(~s,~s)", signed}]);
                              false -> pick([{add, "~s+~s", full}, {subtract, "~s-~s", full}, {multiply, "~s*~s", full},
                                             {max, "P.maximum(~s,~s)", full}, {min, "P.minimum(~s,~s)", full}, {bitwise_and, "~s&~s", full}])
                          end,
    Rule = case lists:member(Op, [pow, atan2]) of true -> {near, 40}; false -> {near, 1} end,
    Operands = [operand(0, Type, Shape, Kind), operand(1, Type, Small, Kind)],
    of_operands(name(Op), Operands, fun tessera:Op/2, Written, Rule).

chain(Elements) ->
    Type = pick(?FLOATS),
    Shape = shape(between(1, 3), Elements),
    Row = list_to_tuple([element(tuple_size(Shape), Shape)]),
    {Name, F, Text} = pick(chains()),
    of_operands(Name, [operand(0, Type, Shape, signed), operand(1, Type, Row, positive)], F, Text, {near, 100}).

chains() ->
    [{"gelu", fun(X, B) ->
                      Y = tessera:add(X, B),
                      tessera:multiply(tessera:multiply(Y, 0.5), tessera:add(tessera:erf(tessera:multiply(Y, 0.70703125)), 1.0))
              end, "(lambda y: y*0.5*(P.erf(y*0.70703125)+1.0))(~s+~s)"},
     {"swish", fun(X, B) -> tessera:multiply(tessera:multiply(X, tessera:sigmoid(X)), B) end, "(lambda x,b: x*P.sigmoid(x)*b)(~s,~s)"},
     {"polynomial", fun(X, B) ->
                            tessera:add(tessera:multiply(tessera:add(tessera:multiply(X, 0.5), B), X), 1.0)
                    end, "(lambda x,b: (x*0.5+b)*x+1.0)(~s,~s)"},
     {"select", fun(X, B) -> tessera:select(tessera:less(X, B), tessera:exp(X), tessera:multiply(X, B)) end,
      "(lambda x,b: P.where(x<b,P.exp(x),x*b))(~s,~s)"},
     {"softplus", fun(X, B) -> tessera:log(tessera:add(tessera:exp(tessera:multiply(X, B)), 1.0)) end, "P.log(P.exp(~s*~s)+1.0)"}].

conversion(Elements) ->
    {From, To} = pick([{f32, bf16}, {bf16, f32}, {f32, f16}, {f16, f32}, {f64, f32}, {f32, f64}, {s32, f32}, {u8, f32}, {s8, f32}, {s64, f64},
                       {s32, s8}, {s8, s32}, {u8, s32}, {s64, s32}, {s32, f64}, {s64, f32}]),
    Kind = case is_float_type(From) of true -> special; false -> full end,
    of_operands("to " ++ name(To), [operand(0, From, shape(between(1, 3), Elements), Kind)],
                fun(X) -> tessera:as_type(X, To) end, "P.cast(~s,'" ++ name(To) ++ "')", {exact, 0}).

%% ---- reductions ----

reduction(Elements) ->
    Rank = between(1, 4),
    Type = pick(?FLOATS ++ ?INTEGERS),
    Axes = lists:sort(lists:sublist(shuffled(lists:seq(0, Rank - 1)), between(1, Rank))),
    {Op, Written, Kind, Rule} =
        case is_float_type(Type) of
            true -> pick([{sum, "sum", signed, {mixed, 64}}, {sum, "sum", positive, {mixed, 64}}, {mean, "mean", positive, {mixed, 64}},
                          {reduce_max, "max", special, {exact, 0}}, {reduce_min, "min", signed, {exact, 0}}]);
            false -> pick([{sum, "sum", full, {exact, 0}}, {reduce_max, "max", full, {exact, 0}}, {reduce_min, "min", full, {exact, 0}}])
        end,
    of_operands(name(Op), [operand(0, Type, shape(Rank, Elements), Kind)], fun(X) -> tessera:as_type(tessera:Op(X, #{axes => Axes}), Type) end,
                "P." ++ Written ++ "(~s," ++ tuple(Axes) ++ ")", Rule).

arg_reduction(Elements) ->
    Rank = between(1, 3),
    Axis = between(0, Rank - 1),
    {Op, Type} = {pick([argmax, argmin]), pick([f32, f64, s32, u8, bf16])},
    Kind = case is_float_type(Type) of true -> pick([special, signed]); false -> full end,
    of_operands(name(Op), [operand(0, Type, shape(Rank, Elements), Kind)], fun(X) -> tessera:Op(X, #{axis => Axis}) end,
                "P." ++ name(Op) ++ format("(~~s,~b)", [Axis]), {exact, 0}).

normalisation(Elements) ->
    Rank = between(1, 3),
    Axis = between(0, Rank - 1),
    X = operand(0, pick(?FLOATS), shape(Rank, Elements), signed),
    Along = #{axes => [Axis], keep_axes => true},
    {Name, F, Text} =
        pick([{"softmax", fun(Y) -> tessera:softmax(Y, #{axis => Axis}) end, format("P.softmax(~~s,~b)", [Axis])},
              {"logsumexp", fun(Y) -> tessera:logsumexp(Y, #{axes => [Axis]}) end, format("P.logsumexp(~~s,~b)", [Axis])},
              {"norm", fun(Y) ->
                               D = tessera:subtract(Y, tessera:mean(Y, Along)),
                               tessera:divide(D, tessera:sqrt(tessera:add(tessera:mean(tessera:multiply(D, D), Along), 0.0078125)))
                       end, format("P.normalised(~~s,~b)", [Axis])},
              {"variance", fun(Y) -> tessera:variance(Y, #{axes => [Axis]}) end, format("P.variance(~~s,~b)", [Axis])}]),
    of_operands(Name, [X], F, Text, {mixed, 64}).

%% ---- products ----

product(Elements) ->
    Type = pick([f32, f32, f32, f64, f64, c64]),
    Most = round(math:pow(Elements, 0.5)),
    {M, N, K} = {extent(Most), extent(Most), extent(Most)},
    matrices(format("product ~bx~bx~b", [M, K, N]), Type, {{M, K}, {K, N}}, signed).

narrow_product(Elements) ->
    Type = pick([bf16, bf16, f16, s8, u8]),
    Most = round(math:pow(Elements, 0.45)),
    {M, N, K} = {extent(Most), extent(Most), extent(Most)},
    Kind = case is_float_type(Type) of true -> signed; false -> full end,
    matrices(format("product ~bx~bx~b", [M, K, N]), Type, {{M, K}, {K, N}}, Kind).

batched(Elements) ->
    Type = pick([f32, f32, f64, bf16]),
    Batch = extent(round(math:pow(Elements, 0.3))),
    Most = round(math:sqrt(Elements / Batch / 4)),
    {M, N, K} = {extent(Most), extent(Most), extent(Most)},
    matrices(format("batch ~b of ~bx~bx~b", [Batch, M, K, N]), Type, {{Batch, M, K}, {Batch, K, N}}, signed).

vector_product(Elements) ->
    Type = pick([f32, f32, f64, bf16, c64]),
    case rand:uniform(3) of
        1 ->
            N = extent(Elements),
            matrices("dot", Type, {{N}, {N}}, pick([signed, positive]));
        2 ->
            {M, K} = shape(2, Elements),
            matrices("matrix by vector", Type, {{M, K}, {K}}, signed);
        3 ->
            {K, N} = shape(2, Elements),
            matrices("vector by matrix", Type, {{K}, {K, N}}, signed)
    end.

matrices(Name, Type, {Left, Right}, Kind) ->
    A = operand(0, Type, Left, Kind),
    B = operand(1, Type, Right, Kind),
    {F, Batch} = case tuple_size(Left) of
            3 -> {fun(X, Y) -> tessera:dot(X, [2], [0], Y, [1], [0]) end, 1};
            _ -> {fun tessera:dot/2, 1}
        end,
    K = element(tuple_size(Left), Left),
    Each = case Type of c64 -> 8; _ -> 2 end,
    Rule = case is_float_type(Type) orelse Type =:= c64 of true -> {mixed, 8 + 2 * math:sqrt(K)}; false -> {exact, 0} end,
    W = of_operands(Name, [A, B], F, "P.matmul(~s,~s)", Rule),
    Columns = case tuple_size(Right) of 1 -> 1; R -> element(R, Right) end,
    W#{flops => Each * Batch * elements(Left) * Columns}.

%% ---- convolutions and windows ----

convolution(Elements) ->
    Dims = pick([1, 2, 2, 2, 3]),
    {In, Out} = {extent(256), extent(256)},
    Images = extent(max(1, min(32, Elements div (In * 64)))),
    Most = max(1, round(math:pow(Elements / (In * Images) / 4, 1 / Dims))),
    Space = [extent(min(512, Most)) || _ <- lists:seq(1, Dims)],
    Kernel = [min(S, pick([1, 1, 2, 3, 3, 5, 7])) || S <- Space],
    Stride = pick([1, 1, 1, 2, 3]),
    Pads = [{pick([0, K div 2]), pick([0, K div 2])} || K <- Kernel],
    Grouped = chance(0.2),
    {Groups, Inner, Features} = case Grouped of true -> {In, 1, In}; false -> {1, In, Out} end,
    Type = pick([f32, f32, f32, f32, f64, bf16]),
    X = operand(0, Type, list_to_tuple([Images] ++ Space ++ [In]), signed),
    W = operand(1, Type, list_to_tuple(Kernel ++ [Inner, Features]), signed),
    F = fun(A, B) -> tessera:conv(A, B, #{strides => Stride, padding => Pads, feature_groups => Groups}) end,
    Text = format("P.conv(~~s,~~s,~b,~s,~b)", [Stride, pairs(Pads), Groups]),
    Points = lists:foldl(fun erlang:'*'/2, Images, [max(0, (S + Low + High - K) div Stride + 1) || {S, K, {Low, High}} <- lists:zip3(Space, Kernel, Pads)]),
    Taps = Inner * lists:foldl(fun erlang:'*'/2, 1, Kernel),
    Workload = of_operands("conv", [X, W], F, Text, {mixed, 8 + 2 * math:sqrt(Taps)}),
    Workload#{flops => 2 * Points * Taps * Features}.

pairs(Pads) -> format("[~s]", [[format("(~b,~b),", [A, B]) || {A, B} <- Pads]]).

%% Pooling of images, channels last.
window(Elements) ->
    Dims = pick([1, 2, 2]),
    Channels = extent(128),
    Images = extent(16),
    Most = max(1, round(math:pow(max(1, Elements / (Channels * Images)), 1 / Dims))),
    Space = [extent(Most) || _ <- lists:seq(1, Dims)],
    Sizes = [min(S, pick([2, 2, 3, 3, 5])) || S <- Space],
    Stride = pick([1, 2, 2, 3]),
    Type = pick([f32, f32, f32, f64, bf16]),
    {Op, Rule} = pick([{window_max, {exact, 0}}, {window_mean, {mixed, 16}}, {window_sum, {mixed, 16}}]),
    Window = list_to_tuple([1] ++ Sizes ++ [1]),
    Options = #{strides => list_to_tuple([1] ++ [Stride || _ <- Sizes] ++ [1])},
    of_operands(name(Op), [operand(0, Type, list_to_tuple([Images] ++ Space ++ [Channels]), signed)],
                fun(X) -> tessera:Op(X, Window, Options) end, format("P.~s(~~s,~s,~b)", [Op, tuple(Sizes), Stride]), Rule).

%% ---- scans, order ----

scan(Elements) ->
    Rank = between(1, 3),
    Axis = between(0, Rank - 1),
    Type = pick([f32, f32, f64, s32, s64, bf16]),
    Shape = shape(Rank, Elements),
    {Op, Rule} = case is_float_type(Type) of
                     true -> pick([{cumulative_sum, {mixed, 8 + element(Axis + 1, Shape) / 8}}, {cumulative_max, {exact, 0}}]);
                     false -> pick([{cumulative_sum, {exact, 0}}, {cumulative_max, {exact, 0}}])
                 end,
    Kind = case is_float_type(Type) of true -> signed; false -> small end,
    of_operands(name(Op), [operand(0, Type, Shape, Kind)], fun(X) -> tessera:Op(X, #{axis => Axis}) end,
                "P." ++ name(Op) ++ format("(~~s,~b)", [Axis]), Rule).

sort(Elements) ->
    Rank = between(1, 3),
    Axis = between(0, Rank - 1),
    Type = pick([f32, f32, f64, s32, s64, u8, s8, bf16, f16]),
    Op = pick([sort, sort, argsort]),
    Kind = case is_float_type(Type) of true -> pick([signed, special]); false -> full end,
    of_operands(name(Op), [operand(0, Type, shape(Rank, Elements), Kind)], fun(X) -> tessera:Op(X, #{axis => Axis}) end,
                "P." ++ name(Op) ++ format("(~~s,~b)", [Axis]), {exact, 0}).

top_k(Elements) ->
    Type = pick([f32, f32, f64, s32]),
    Shape = shape(between(1, 2), Elements),
    K = extent(element(tuple_size(Shape), Shape)),
    Kind = case is_float_type(Type) of true -> signed; false -> full end,
    of_operands("top_k", [operand(0, Type, Shape, Kind)], fun(X) -> element(1, tessera:top_k(X, K)) end, format("P.top_k(~~s,~b)", [K]), {exact, 0}).

%% ---- gather and scatter ----

gather(Elements) ->
    Type = pick(?FLOATS ++ ?INTEGERS),
    Kind = case is_float_type(Type) of true -> signed; false -> full end,
    Rank = between(1, 3),
    Shape = shape(Rank, Elements),
    Axis = between(0, Rank - 1),
    Length = element(Axis + 1, Shape),
    Count = extent(max(1, Elements div max(1, elements(Shape) div Length))),
    Index = operand(1, pick([s32, s64]), {Count}, {below, Length}),
    of_operands("take", [operand(0, Type, Shape, Kind), Index], fun(X, I) -> tessera:take(X, I, #{axis => Axis}) end,
                format("P.take(~~s,~~s,~b)", [Axis]), {exact, 0}).

scatter(Elements) ->
    Type = pick([f32, f32, f64, s32, bf16]),
    Kind = case is_float_type(Type) of true -> positive; false -> full end,
    {Rows, Width} = {extent(Elements), extent(256)},
    Table = {max(1, Rows div Width), Width},
    Count = extent(max(1, Elements div Width)),
    F = fun(X, I, U) -> tessera:indexed_add(X, tessera:reshape(I, {Count, 1}), U) end,
    Rule = case is_float_type(Type) of true -> {mixed, 16 + Count / element(1, Table)}; false -> {exact, 0} end,
    of_operands("indexed_add", [operand(0, Type, Table, Kind), operand(1, s32, {Count}, {below, element(1, Table)}), operand(2, Type, {Count, Width}, Kind)],
                F, "P.index_add(~s,~s,~s)", Rule).

%% ---- movement ----

transposition(Elements) ->
    Type = pick(?FLOATS ++ ?INTEGERS ++ [c64]),
    Rank = between(2, 4),
    Order = shuffled(lists:seq(0, Rank - 1)),
    of_operands("transpose", [operand(0, Type, shape(Rank, Elements), signed_or_full(Type))], fun(X) -> tessera:transpose(X, Order) end,
                "P.copy(P.permute(~s," ++ tuple(Order) ++ "))", {exact, 0}).

signed_or_full(Type) -> case is_float_type(Type) orelse Type =:= c64 of true -> signed; false -> full end.

movement(Elements) ->
    Type = pick(?FLOATS ++ ?INTEGERS),
    Rank = between(1, 4),
    Shape = shape(Rank, Elements),
    Axis = between(0, Rank - 1),
    Length = element(Axis + 1, Shape),
    Only = fun(Value, Other) -> [case A of Axis -> Value; _ -> Other end || A <- lists:seq(0, Rank - 1)] end,
    {Low, High, Inner} = {between(0, 3), between(0, 3), pick([0, 0, 1])},
    Start = between(0, max(0, Length div 2 - 1)),
    Part = extent(Length - Start),
    Colons = lists:append(lists:duplicate(Axis, ":,")),
    {Name, F, Text} =
        pick([{"reverse", fun(X) -> tessera:reverse(X, [Axis]) end, format("P.reverse(~~s,~b)", [Axis])},
              {"pad", fun(X) -> tessera:pad(X, 0, Only({Low, High, Inner}, {0, 0, 0})) end, format("P.pad(~~s,~b,~b,~b,~b)", [Axis, Low, High, Inner])},
              {"slice", fun(X) -> tessera:slice(X, Only(Start, 0), tuple_to_list(setelement(Axis + 1, Shape, Part))) end,
               format("P.copy((~~s)[~s~b:~b])", [Colons, Start, Start + Part])},
              {"roll", fun(X) -> tessera:roll(X, Start + 1, #{axis => Axis}) end, format("P.roll(~~s,~b,~b)", [Start + 1, Axis])},
              {"reshape", fun(X) -> tessera:reshape(tessera:transpose(X), {elements(Shape)}) end, "P.copy(P.reversed_axes(~s)).reshape(-1)"}]),
    of_operands(Name, [operand(0, Type, Shape, signed_or_full(Type))], F, Text, {exact, 0}).

joining(Elements) ->
    Type = pick(?FLOATS ++ ?INTEGERS),
    Rank = between(1, 3),
    Shape = shape(Rank, max(1, Elements div 2)),
    Axis = between(0, Rank - 1),
    Other = setelement(Axis + 1, Shape, extent(element(Axis + 1, Shape))),
    Kind = signed_or_full(Type),
    of_operands("concatenate", [operand(0, Type, Shape, Kind), operand(1, Type, Other, Kind)], fun(A, B) -> tessera:concatenate([A, B], Axis) end,
                format("P.concatenate((~~s,~~s),~b)", [Axis]), {exact, 0}).

%% ---- linear algebra, transforms, complex numbers ----

linear_algebra(Elements) ->
    Type = pick([f32, f32, f64]),
    N = extent(300),
    Batch = extent(max(1, min(10000, Elements div 16 div (N * N)))),
    {Square, Columns} = {{Batch, N, N}, extent(N)},
    Full = whole("x0", Type, Square, signed),
    Definite = whole("x0", Type, Square, definite),
    Right = operand(1, Type, {Batch, N, Columns}, signed),
    Rule = {mixed, 100 + 20 * N},
    {Name, Operands, F, Text} =
        pick([{"cholesky", [Definite], fun tessera:cholesky/1, "P.cholesky(~s)"},
              {"triangular_solve", [whole("x0", Type, Square, triangular), Right], fun tessera:triangular_solve/2, "P.triangular_solve(~s,~s)"},
              {"solve", [Definite, Right], fun tessera:solve/2, "P.solve(~s,~s)"},
              {"qr", [whole("x0", Type, {Batch, N + extent(N), N}, signed)], fun(X) -> tessera:abs(element(2, tessera:qr(X))) end, "P.triangle(~s)"},
              {"eigh", [Definite], fun(X) -> tessera:sort(element(1, tessera:eigh(X)), #{axis => -1}) end, "P.eigenvalues(~s)"},
              {"svd", [Full], fun(X) -> element(2, tessera:svd(X)) end, "P.singular_values(~s)"},
              {"inverse", [Definite], fun tessera:inverse/1, "P.inverse(~s)"}]),
    W = of_operands(format("~s of ~b", [Name, Batch]), Operands, F, Text, Rule),
    W#{xla => maps:get(text, W)}.

transform(Elements) ->
    Shape = shape(between(1, 2), Elements div 2),
    N = element(tuple_size(Shape), Shape),
    {Op, Type} = pick([{fft, c64}, {fft, c64}, {ifft, c64}, {rfft, f32}, {fft, c128}, {rfft, f64}]),
    W = of_operands(name(Op), [operand(0, Type, Shape, signed)], fun tessera:Op/1, "P." ++ name(Op) ++ "(~s)", {mixed, 64}),
    W#{flops => 5 * elements(Shape) * math:log2(max(2, N))}.

complex(Elements) ->
    Shape = shape(between(1, 3), Elements div 2),
    Type = pick([c64, c64, c128]),
    {Name, F, Text, Rule} =
        pick([{"multiply", fun tessera:multiply/2, "~s*~s", {mixed, 4}}, {"divide", fun tessera:divide/2, "~s/~s", {mixed, 200}},
              {"add", fun tessera:add/2, "~s+~s", {near, 1}}, {"exp", fun(A, B) -> tessera:multiply(tessera:exp(A), B) end, "P.exp(~s)*~s", {mixed, 16}},
              {"magnitude", fun(A, B) -> tessera:add(tessera:abs(A), tessera:real(B)) end, "P.abs(~s)+P.real(~s)", {mixed, 8}}]),
    of_operands("complex " ++ Name, [operand(0, Type, Shape, signed), operand(1, Type, Shape, signed)], F, Text, Rule).

%% ---- random numbers ----

%% Drawn from a key of the program, and added to an operand. The peers' generators give other numbers, so results are not compared;
%% XLA runs the same generator.
random(Elements) ->
    Shape = shape(between(1, 3), Elements),
    Seed = rand:uniform(1 bsl 30),
    Options = fun(Type) -> #{shape => Shape, type => Type} end,
    Real = pick([f32, f32, f64]),
    {Name, Type, Draw} =
        pick([{"uniform", Real, fun(Key) -> tessera_random:uniform_split(Key, 0.0, 1.0, Options(Real)) end},
              {"normal", Real, fun(Key) -> tessera_random:normal_split(Key, 0.0, 1.0, Options(Real)) end},
              {"randint", s32, fun(Key) -> tessera_random:randint_split(Key, 0, 1000, Options(s32)) end}]),
    Kind = case Type of s32 -> full; _ -> positive end,
    of_operands(Name ++ " " ++ tuple(Shape), [whole("x0", Type, {1}, Kind)], fun(X) -> tessera:add(Draw(tessera_random:key(Seed)), X) end,
                format("P.~s(~s,'~s')+~~s", [Name, tuple(Shape), Type]), {absent, 0}).

%% ---- small programs ----

network(_) ->
    Type = pick([f32, f32, f32, bf16]),
    {Rows, In, Hidden, Out} = {extent(300), extent(1000), extent(1000), extent(200)},
    F = fun(X, W, B, V) -> tessera:dot(tessera:relu(tessera:add(tessera:dot(X, W), B)), V) end,
    Operands = [whole("x" ++ integer_to_list(At), Type, Shape, signed)
                || {At, Shape} <- [{0, {Rows, In}}, {1, {In, Hidden}}, {2, {Hidden}}, {3, {Hidden, Out}}]],
    W = of_operands("network", Operands, F, "P.matmul(P.relu(P.matmul(~s,~s)+~s),~s)", {mixed, 16 + 2 * math:sqrt(In + Hidden)}),
    W#{flops => 2 * Rows * Hidden * (In + Out)}.

attention(Elements) ->
    Type = pick([f32, f32, bf16]),
    {Heads, Width} = {extent(32), extent(128)},
    Length = extent(min(2048, max(1, round(math:sqrt(Elements / Heads))))),
    Shape = {Heads, Length, Width},
    F = fun(Q, K, V) ->
                Scores = tessera:dot(Q, [2], [0], tessera:transpose(K, [0, 2, 1]), [1], [0]),
                tessera:dot(tessera:softmax(tessera:multiply(Scores, 0.125), #{axis => 2}), [2], [0], V, [1], [0])
        end,
    W = of_operands("attention", [operand(At, Type, Shape, signed) || At <- [0, 1, 2]], F,
                    "(lambda q,k,v: P.matmul(P.softmax(P.matmul(q,P.permute(k,(0,2,1)))*0.125,2),v))(~s,~s,~s)", {mixed, 64}),
    W#{flops => 4 * Heads * Length * Length * Width}.

%% A loop over a small tensor.
loop(_) ->
    {Size, Times} = {extent(4096), extent(10000)},
    Type = pick([f32, f32, f64]),
    F = fun(X) ->
                Step = fun({I, Y}) -> {tessera:add(I, 1), tessera:add(tessera:multiply(tessera:tanh(Y), 0.5), 0.25)} end,
                element(2, tessera:while({0, X}, fun({I, _}) -> tessera:less(I, Times) end, Step))
        end,
    of_operands(format("loop ~b times", [Times]), [whole("x0", Type, {Size}, signed)], F, format("P.loop(~~s,~b)", [Times]), {near, 200}).

%% ---- inputs ----

%% A tensor of this kind; its elements are the workload's chance, too.
-spec data(input(), non_neg_integer(), non_neg_integer()) -> tessera:tensor().
data({Type, Shape, Kind}, Seed, At) -> (tessera:jit(fun() -> values(Kind, Type, Shape, Seed * 7 + At) end))().

values(Kind, Type, Shape, Seed) when Type =:= c64; Type =:= c128 ->
    Part = case Type of c64 -> f32; c128 -> f64 end,
    tessera:complex(values(Kind, Part, Shape, Seed), values(Kind, Part, Shape, Seed + 1000003));
values(signed, Type, Shape, Seed) -> tessera:as_type(unit(Shape, Seed), Type);
values(positive, Type, Shape, Seed) -> tessera:as_type(tessera:add(tessera:abs(unit(Shape, Seed)), 0.125), Type);
values(special, Type, Shape, Seed) -> special(values(signed, Type, Shape, Seed), bits(Shape, Seed + 5));
values(full, Type, Shape, Seed) ->
    Wide = tessera:bitwise_xor(tessera:left_shift(tessera:as_type(bits(Shape, Seed), u64), 31), tessera:as_type(bits(Shape, Seed + 1), u64)),
    tessera:as_type(Wide, Type);
values(small, Type, Shape, Seed) -> tessera:subtract(values({below, 21}, Type, Shape, Seed), 10);
values({below, Bound}, Type, Shape, Seed) ->
    Wide = tessera:multiply(tessera:as_type(bits(Shape, Seed), u64), Bound),
    tessera:as_type(tessera:right_shift(Wide, 32), Type);
values(definite, Type, Shape, Seed) ->
    X = unit(Shape, Seed),
    N = element(3, Shape),
    Product = tessera:dot(X, [2], [0], X, [2], [0]),
    tessera:as_type(tessera:add(Product, tessera:multiply(tessera:eye(N), float(N))), Type);
values(triangular, Type, Shape, Seed) ->
    N = element(3, Shape),
    Inner = tessera:multiply(tessera:tril(unit(Shape, Seed)), 1.0 / N),
    tessera:as_type(tessera:add(Inner, tessera:as_type(tessera:eye(N), f64)), Type).

%% One in sixteen is NaN, an infinity, a zero of either sign or a number that others are equal to.
special(X, Bits) ->
    Which = tessera:bitwise_and(Bits, 127),
    lists:foldl(fun({At, Value}, Y) -> tessera:select(tessera:equal(Which, At), Value, Y) end, X,
                [{0, nan}, {1, infinity}, {2, neg_infinity}, {3, 0.0}, {4, -0.0}, {5, 0.5}, {6, 0.5}, {7, -0.5}]).

unit(Shape, Seed) -> tessera:subtract(tessera:divide(tessera:as_type(bits(Shape, Seed), f64), 2147483648.0), 1.0).

bits(Shape, Seed) -> tessera:reshape(tessera_workloads:hash32(elements(Shape), Seed band 16#FFFFFFF), Shape).

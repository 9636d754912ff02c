%% Programs on a device of a PJRT plugin, timed from the call to the end of the run; peer_accelerator.py times JAX on the same plugin. Each figure
%% is the median of runs one after another, in microseconds, and stands beside the first call, which compiles. "small" and
%% "small_isolated" are a 4x4 sum on a plugin in this VM and in a process of its own: the least and the median of means of 50 runs.
%%
%% Products of f32 have the precision `highest`, as JAX's here, and those whose name ends in _fast have JAX's default.
%%
%%   make bench-accelerator PJRT_PLUGIN=FILE [ONLY=scalar,sum_64m]
%%
%% Without a device accelerator_programs.py compares what XLA makes of the same programs.
-module(tessera_accelerator).
-export([main/0, write/1]).
-import(tessera_timing, [microseconds/1, median/1]).

-define(CLIENT, accelerator).
-define(ROUNDS, 30).

-spec main() -> ok.
main() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(?CLIENT, #{platform => pjrt}),
    io:format("devices: ~p~n", [tessera:devices(?CLIENT)]),
    Only = string:lexemes(os:getenv("ONLY", ""), ","),
    [measure(Workload) || {Name, _, _} = Workload <- workloads(), is_wanted(Name, Only)],
    ok = tessera:open_client(accelerator_isolated, #{platform => pjrt, isolated => true}),
    [measure_small(Name, Client) || {Name, Client} <- [{"small", ?CLIENT}, {"small_isolated", accelerator_isolated}], is_wanted(Name, Only)],
    ok.

%% The graph of each program, as NAME.graph in a folder.
-spec write([string()]) -> ok.
write([Folder]) ->
    {ok, _} = application:ensure_all_started(tessera),
    lists:foreach(fun({Name, F, Args}) ->
                          Text = tessera:to_text(F, [tessera:template(Type, Shape) || {Type, Shape} <- Args]),
                          ok = file:write_file(filename:join(Folder, Name ++ ".graph"), Text)
                  end, workloads()).

is_wanted(Name, Only) -> Only =:= [] orelse lists:member(Name, Only).

measure_small(Name, Client) ->
    Add = tessera:jit(fun tessera:add/2, #{device => {Client, 0}}),
    X = tessera:to_device(tessera:iota({4, 4}, #{type => f32}), {Client, 0}),
    _ = Add(X, X),
    Means = [microseconds(fun() -> repeat(50, Add, X) end) / 50 || _ <- lists:seq(1, 400)],
    io:format("~-28s ~12.1f us, least ~.1f us~n", [Name, median(Means), lists:min(Means)]).

repeat(0, _, _) -> ok;
repeat(N, F, X) ->
    _ = F(X, X),
    repeat(N - 1, F, X).

%% An error is printed in the place of the time: a plugin need not have every op.
measure({Name, F, Shapes}) ->
    Args = [made(Shape) || Shape <- Shapes],
    Program = tessera:jit(F, #{device => {?CLIENT, 0}, precision => precision(Name)}),
    try
        First = microseconds(fun() -> apply(Program, Args) end),
        Times = [microseconds(fun() -> apply(Program, Args) end) || _ <- lists:seq(1, ?ROUNDS)],
        io:format("~-28s ~12.1f us, first call ~10.1f ms~n", [Name, median(Times), First / 1000])
    catch error:{Code, Text} -> io:format("~-28s ~p: ~ts~n", [Name, Code, Text])
    end.

precision(Name) ->
    case lists:suffix("_fast", Name) of
        true -> default;
        false -> highest
    end.

%% Numbers from 0 to 1, made on the host from the index, as peer_accelerator.py makes them.
made({Type, Shape}) ->
    Index = tessera:remainder(tessera:iota(Shape, s64), 1009),
    tessera:to_device(tessera:as_type(tessera:divide(Index, 1009.0), Type), {?CLIENT, 0}).

workloads() ->
    Attention = fun(Q, K, V) ->
                        Scores = tessera:softmax(tessera:multiply(tessera:einsum("bhqd,bhkd->bhqk", [Q, K]), 0.125)),
                        tessera:einsum("bhqk,bhkd->bhqd", [Scores, V])
                end,
    Mlp = fun(X, W1, W2) -> tessera:dot(tessera:relu(tessera:dot(X, W1)), W2) end,
    Conv = fun(X, K) -> tessera:conv(X, K, #{padding => same}) end,
    Images = {32, 56, 56, 64},
    Kernel = {3, 3, 64, 64},
    Loss = fun(W1, W2, X) -> tessera:sum(tessera:dot(tessera:relu(tessera:dot(X, W1)), W2)) end,
    [{"scalar", fun(X) -> tessera:add(X, 1) end, [{f32, {}}]},
     {"chain_16m", fun(X) -> tessera:multiply(tessera:tanh(tessera:add(tessera:multiply(X, 2), 1)), X) end, [{f32, {16777216}}]},
     {"sum_64m", fun(X) -> tessera:sum(X) end, [{f32, {67108864}}]},
     {"softmax_8192", fun(X) -> tessera:softmax(X) end, [{f32, {8192, 8192}}]},
     {"matmul_4096_f32", fun tessera:dot/2, [{f32, {4096, 4096}}, {f32, {4096, 4096}}]},
     {"matmul_4096_f32_fast", fun tessera:dot/2, [{f32, {4096, 4096}}, {f32, {4096, 4096}}]},
     {"matmul_4096_bf16", fun tessera:dot/2, [{bf16, {4096, 4096}}, {bf16, {4096, 4096}}]},
     {"attention_8x16x1024x64_bf16", Attention, lists:duplicate(3, {bf16, {8, 16, 1024, 64}})},
     {"mlp_1024_4096_bf16", Mlp, [{bf16, {1024, 4096}}, {bf16, {4096, 4096}}, {bf16, {4096, 4096}}]},
     {"mlp_gradient_1024_bf16", fun(W1, W2, X) -> (tessera:grad(fun({A, B}) -> Loss(A, B, X) end))({W1, W2}) end,
      [{bf16, {4096, 4096}}, {bf16, {4096, 4096}}, {bf16, {1024, 4096}}]},
     {"conv_32x56x56x64", Conv, [{f32, Images}, {f32, Kernel}]},
     {"conv_32x56x56x64_fast", Conv, [{f32, Images}, {f32, Kernel}]},
     {"conv_32x56x56x64_bf16", Conv, [{bf16, Images}, {bf16, Kernel}]},
     {"sort_4m", fun tessera:sort/1, [{f32, {4194304}}]},
     {"argsort_4m", fun tessera:argsort/1, [{f32, {4194304}}]},
     {"fft_1024x4096", fun tessera:fft/1, [{c64, {1024, 4096}}]},
     {"cumulative_sum_16m", fun tessera:cumulative_sum/1, [{f32, {16777216}}]},
     {"while_1000", fun(X) -> element(1, tessera:while({X, 0}, fun({_, I}) -> tessera:less(I, 1000) end,
                                                       fun({Y, I}) -> {tessera:sin(Y), tessera:add(I, 1)} end)) end, [{f32, {1024}}]}].

%% Work outside of runs also ends with its caller: lists, copies, compiles; and so do the routines of a run: factorizations, solutions,
%% transforms, sorts, convolutions, scatters, windows, scans. The CPU time until its end is compared with the whole: other programs add
%% nothing to either.
-module(tessera_cancel_tests).
-include_lib("eunit/include/eunit.hrl").

%% The preparation of a process, and its work.
works() ->
    Factors = [{"eigh", 700, f32, fun tessera:eigh/1}, {"svd", 500, f32, fun tessera:svd/1}, {"qr", 1200, f32, fun tessera:qr/1},
               {"lu", 2000, f32, fun tessera:lu/1}, {"cholesky", 2500, f32, fun tessera:cholesky/1},
               {"svd of c64", 250, c64, fun tessera:svd/1}],
    [{"to_list", fun() -> tessera:full({20000000}, 1, u8) end, fun tessera:to_list/1},
     {"to_list of lists", fun() -> tessera:full({5000000, 2}, 1, u8) end, fun tessera:to_list/1},
     {"from_list", fun() -> lists:duplicate(8000000, 1.0) end, fun tessera:tensor/1},
     {"from_list of lists", fun() -> lists:duplicate(3000000, [1, 2]) end, fun(L) -> tessera:tensor(L, f32) end}]
        ++ [{Name, fun() -> matrix(N, Type) end, Work} || {Name, N, Type, Work} <- Factors ++ solvers()]
        ++ [{Name, fun() -> waves(Shape, Type) end, Work} || {Name, Shape, Type, Work} <- lines() ++ windows()]
        ++ [{"plan of a transform", fun() -> ok = tessera:clear_cache(), waves({2000003}, c64) end, fun tessera:fft/1},
            {"convolution", fun() -> {waves({8, 56, 56, 64}, f32), waves({3, 3, 64, 256}, f32)} end,
             fun({X, Kernel}) -> tessera:conv(X, Kernel) end},
            {"convolution of a long line", fun() -> {waves({1, 500000, 1}, f32), waves({2001, 1, 1}, f32)} end,
             fun({X, Kernel}) -> tessera:conv(X, Kernel) end},
            {"scatter", fun scattered/0, fun({X, At, Updates}) -> tessera:indexed_add(X, At, Updates) end}].

solvers() ->
    [{"solve", 1800, f32, fun(A) -> tessera:solve(A, A) end}, {"solve of c64", 500, c64, fun(A) -> tessera:solve(A, A) end},
     {"inverse", 1500, f64, fun tessera:inverse/1}, {"determinant", 3000, f32, fun tessera:determinant/1},
     {"triangular_solve", 2500, f32, fun(A) -> tessera:triangular_solve(A, A) end}].

%% Each has one line; only the tasks of the routine cut it.
lines() ->
    [{"sort", {30000000}, f32, fun tessera:sort/1}, {"argsort", {20000000}, f64, fun tessera:argsort/1},
     {"fft", {1 bsl 23}, c64, fun tessera:fft/1}, {"rfft", {1 bsl 23}, f64, fun tessera:rfft/1},
     {"cumulative_sum", {60000000}, f32, fun tessera:cumulative_sum/1},
     {"cumulative_product of c64", {6000000}, c64, fun tessera:cumulative_product/1}].

%% One window each for all elements of an axis; windows of one line.
windows() ->
    [{"window_sum", {1000, 3000}, f32, fun(X) -> tessera:window_sum(X, {51, 51}) end},
     {"window_max of columns", {2000, 100000}, f16, fun(X) -> tessera:window_max(X, {2000, 1}) end},
     {"window_scatter_max", {500000}, f32,
      fun(X) -> tessera:window_scatter_max(X, tessera:ones({499001}), 0.0, {1000}, #{strides => 1}) end}].

scattered() ->
    At = tessera:remainder(tessera:multiply(tessera:iota({20000000, 1}, s32), 7919), 999983),
    {tessera:zeros({1000000}), tessera:abs(At), tessera:ones({20000000})}.

waves(Shape, Type) -> tessera:as_type(tessera:multiply(tessera:sin(tessera:iota(Shape, f32)), 1000), Type).

%% A symmetric matrix with a heavy diagonal, valid for all factorizations.
matrix(N, Type) ->
    Some = tessera:sin(tessera:iota({N, N}, f32)),
    tessera:as_type(tessera:add(tessera:add(Some, tessera:transpose(Some)), tessera:multiply(tessera:eye(N), 4.0 * N)), Type).

%% CPU milliseconds of this VM until all of a process's tensors are freed. The process is killed `KillAfter` ms after it
%% began; or ends by itself.
time({_, Prepare, Work}, KillAfter) ->
    Parent = self(),
    Held = held(),
    Pid = spawn(fun() ->
        Prepared = Prepare(),
        Mark = tessera:ones({1000}),
        Parent ! {began, self(), cpu_ms()},
        Work(Prepared),
        tessera:shape(Mark)
    end),
    Began = receive {began, Pid, Time} -> Time end,
    Ended = case KillAfter of
        never -> Began;
        _ ->
            timer:sleep(KillAfter),
            exit(Pid, kill),
            cpu_ms()
    end,
    gone(Held),
    cpu_ms() - Ended.

cpu_ms() -> element(1, erlang:statistics(runtime)).

%% A process that is killed in a NIF is no process any more. Its heap is freed when the NIF has ended, and with it the
%% tensors in it.
gone(Held) -> held() =< Held orelse begin timer:sleep(1), gone(Held) end.

held() -> maps:get(held, tessera:memory()).

%% One of some attempts is enough: the kill may come too early or too late.
ends_soon(Work) ->
    Whole = time(Work, never),
    ends_soon(Work, Whole, 40).

ends_soon(_, _, 0) -> false;
ends_soon(Work, Whole, Attempts) ->
    Rest = time(Work, 5),
    Rest < Whole div 3 orelse ends_soon(Work, Whole, Attempts - 1).

ends_soon_test_() ->
    {ok, _} = application:ensure_all_started(tessera),
    [{element(1, Work), {timeout, 120, fun() -> ?assert(ends_soon(Work)) end}} || Work <- tessera_test:shared(works())].

%% A run of a caller that was killed has written to the argument that was donated to it, which another process holds.
donated_test_() ->
    {timeout, 60, fun() ->
        {ok, _} = application:ensure_all_started(tessera),
        X = tessera:iota({8}, #{type => f64}),
        Loop = tessera:jit(fun(Y) -> tessera:while({0, Y}, fun({I, _}) -> tessera:less(I, 2000000000) end,
                                                   fun({I, V}) -> {tessera:add(I, 1), tessera:add(tessera:reverse(V), 1)} end) end, #{donate => [1]}),
        Pid = spawn(fun() -> Loop(X) end),
        Reads = fun() -> try tessera:to_list(X) catch error:{failed_precondition, _} -> donated end end,
        tessera_test:until(fun() -> Reads() =:= donated end),
        timer:sleep(100),
        exit(Pid, kill),
        [begin timer:sleep(10), ?assertEqual(donated, Reads()) end || _ <- lists:seq(1, 50)]
    end}.

%% The kernels that LLVM had not begun are never made. Each sum is of another chain of ops.
compile_test_() ->
    {setup,
     fun() -> {ok, _} = application:ensure_all_started(tessera), ok = tessera_nif:jit_configure(<<>>, 0) end,
     fun(_) -> ok = tessera_nif:jit_configure(undefined, 0) end,
     {timeout, 60, fun() ->
        Kernels = 100,
        Chain = fun(X, I) -> lists:foldl(fun(Bit, Y) -> link((I bsr Bit) band 1, Y, X) end, X, lists:seq(0, 6)) end,
        Program = fun(Xs) -> [tessera:sum(Chain(X, I)) || {I, X} <- lists:enumerate(Xs)] end,
        Held = held(),
        Before = compiled(),
        Pid = spawn(fun() ->
            Xs = [tessera:iota({50 + I}, s16) || I <- lists:seq(1, Kernels)],
            F = tessera:compile(Program, [Xs]),
            F(Xs)
        end),
        wait_for_kernel(Pid, Before),
        exit(Pid, kill),
        gone(Held),
        Made = compiled() - Before,
        timer:sleep(50),
        ?assertEqual(Made, compiled() - Before),
        ?assert(Made < Kernels)
     end}}.

link(0, Y, X) -> tessera:add(Y, X);
link(1, Y, X) -> tessera:bitwise_xor(Y, X).

compiled() -> maps:get(compiled, tessera_nif:jit_stats()).

wait_for_kernel(Pid, Before) ->
    ?assert(is_process_alive(Pid)),
    compiled() > Before orelse begin timer:sleep(1), wait_for_kernel(Pid, Before) end.

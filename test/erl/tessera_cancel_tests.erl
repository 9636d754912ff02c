%% Work outside of runs ends with its caller, too: lists, copies, compiles and factorizations. The time until its end is compared with the time of
%% the whole.
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
        ++ [{Name, fun() -> matrix(N, Type) end, Work} || {Name, N, Type, Work} <- Factors].

%% A symmetric matrix with a heavy diagonal, which all factorizations take.
matrix(N, Type) ->
    Some = tessera:sin(tessera:iota({N, N}, f32)),
    tessera:as_type(tessera:add(tessera:add(Some, tessera:transpose(Some)), tessera:multiply(tessera:eye(N), 4.0 * N)), Type).

%% Microseconds until nothing is left of a process, which is killed so many ms after it began; or its own time.
time({_, Prepare, Work}, KillAfter) ->
    Parent = self(),
    Held = held(),
    Pid = spawn(fun() ->
        Prepared = Prepare(),
        Mark = tessera:ones({1000}),
        Parent ! {began, self(), erlang:monotonic_time(microsecond)},
        Work(Prepared),
        tessera:shape(Mark)
    end),
    Began = receive {began, Pid, Time} -> Time end,
    Ended = case KillAfter of
        never -> Began;
        _ ->
            timer:sleep(KillAfter),
            exit(Pid, kill),
            erlang:monotonic_time(microsecond)
    end,
    gone(Held),
    erlang:monotonic_time(microsecond) - Ended.

%% A process that is killed in a NIF is no process any more. Its heap is freed when the NIF has ended, and with it the
%% tensors in it.
gone(Held) -> held() =< Held orelse begin timer:sleep(1), gone(Held) end.

held() -> maps:get(held, tessera:memory()).

%% One of some attempts is enough: a busy machine may delay any of them, and the kill may come too early or too late.
ends_soon(Work) ->
    Whole = time(Work, never),
    ends_soon(Work, Whole, 10).

ends_soon(_, _, 0) -> false;
ends_soon(Work, Whole, Attempts) ->
    Rest = time(Work, 5),
    Rest < Whole div 3 orelse ends_soon(Work, Whole, Attempts - 1).

ends_soon_test_() ->
    {ok, _} = application:ensure_all_started(tessera),
    [{element(1, Work), {timeout, 120, fun() -> ?assert(ends_soon(Work)) end}} || Work <- works()].

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

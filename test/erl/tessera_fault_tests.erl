%% Every fault ends in a clear error, and the VM lives on and leaks nothing.
-module(tessera_fault_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/2, raises/3, until/1, until_freed/1]).

n(T) -> tessera:to_number(T).

%% ---- running

endless() -> tessera:jit(fun(X) -> tessera:while(X, fun(_) -> 1 end, fun(A) -> tessera:add(A, 1) end) end).

endless_large() ->
    tessera:jit(fun(X) ->
        tessera:while(X, fun(A) -> tessera:greater_equal(tessera:sum(A), 0) end, fun(A) -> tessera:multiply(A, 1.0) end)
    end).

%% The CPU time in ms that the VM uses from the killing of the caller until it rests: other work on the machine slows
%% that down without making it more.
spent_after_kill(F, X) ->
    Before = cpu(),
    Pid = spawn(fun() -> F(X) end),
    Busy =
        try
            until(fun() -> cpu() - Before > 200 end),
            cpu_ms(400)
        after
            ?assert(is_process_alive(Pid)),
            exit(Pid, kill)
        end,
    Killed = cpu(),
    until(fun() -> cpu_ms(400) =< Busy div 4 end),
    cpu() - Killed.

cpu_ms(Ms) ->
    Before = cpu(),
    timer:sleep(Ms),
    cpu() - Before.

%% Clock ticks of 10 ms, user and system.
cpu() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, After] = binary:split(Text, <<") ">>),
    Fields = binary:split(After, <<" ">>, [global]),
    10 * (binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields))).

killed_scalar_loop_test_() ->
    {timeout, 30, fun() -> ?assert(spent_after_kill(endless(), 0) < 250) end}.

killed_large_loop_test_() ->
    {timeout, 30, fun() -> ?assert(spent_after_kill(endless_large(), tessera:ones({100000})) < 250) end}.

%% A fold is a loop in one function: each of its many rounds takes a while.
killed_fold_test_() ->
    {timeout, 30, fun() ->
        Tangents = fun(Y) -> lists:foldl(fun(_, Z) -> tessera:tan(Z) end, Y, lists:seq(1, 10)) end,
        F = tessera:jit(fun(X) -> tessera:reduce(X, 0.0, fun(A, B) ->
            tessera:'cond'(tessera:greater(A, B), fun() -> Tangents(A) end, fun() -> tessera:multiply(Tangents(B), 0.5) end)
        end) end),
        X = tessera:ones({1 bsl 26}),
        ?assertNotEqual(nomatch, string:find(tessera:explain(F, [X]), "runs on a dirty CPU scheduler")),
        ?assert(spent_after_kill(F, X) < 250)
    end}.

%% The packing of few-bit elements also ends with its caller: less than half of the whole work is done after that.
killed_packing_test_() ->
    {timeout, 60, fun() ->
        X = tessera:full({1 bsl 27}, 1, s4),
        Pack = fun() -> spawn_monitor(fun() -> exit(bit_size(tessera:to_binary(X))) end) end,
        Start = cpu(),
        {First, Ref} = Pack(),
        receive {'DOWN', Ref, process, First, Bits} -> ?assertEqual(4 bsl 27, Bits) end,
        Whole = cpu() - Start,
        Before = cpu(),
        {Pid, _} = Pack(),
        until(fun() -> cpu() - Before > 30 end),
        exit(Pid, kill),
        Killed = cpu(),
        until(fun() -> cpu_ms(400) =< 20 end),
        ?assert(cpu() - Killed < Whole div 2)
    end}.

killed_scan_test_() ->
    {timeout, 30, fun() ->
        F = tessera:jit(fun(X) -> tessera:while(X, fun(_) -> 1 end, fun tessera:cumulative_max/1) end),
        ?assert(spent_after_kill(F, tessera:ones({1 bsl 26})) < 250)
    end}.

%% Many callers die in the middle of their runs; their memory comes back.
dead_callers_test_() ->
    {timeout, 60, fun() ->
        F = endless_large(),
        Held = maps:get(held, tessera:memory()),
        Pids = [spawn(fun() -> F(tessera:ones({100000})) end) || _ <- lists:seq(1, 4)],
        timer:sleep(500),
        [exit(P, kill) || P <- Pids], % two of them wait for a dirty scheduler
        until_freed(fun() -> maps:get(held, tessera:memory()) =< Held + 1000 end),
        ?assertEqual(3, n(tessera:add(1, 2)))
    end}.

thousand_callers_test_() ->
    {timeout, 120, fun() ->
        F = tessera:jit(fun(X, Y) -> tessera:sum(tessera:dot(tessera:add(X, Y), X)) end),
        X = tessera:iota({16, 16}, f32),
        Expected = n(F(X, 1)),
        Work = fun() ->
            [Expected = n(F(X, 1)) || _ <- lists:seq(1, 20)],
            [1.0, 2.0] = tessera:to_list(tessera:add(tessera:tensor([0.0, 1.0]), 1))
        end,
        Workers = [spawn_monitor(Work) || _ <- lists:seq(1, 1000)],
        [receive {'DOWN', M, _, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers]
    end}.

%% Linear algebra, transforms and sorting of a thousand processes at once: each has the bits that one caller has alone.
thousand_callers_of_routines_test_() ->
    {timeout, 300, fun() ->
        Works = list_to_tuple([{Name, N, Work, bits(Work(N))} || {Name, Ns, Work} <- routine_works(), N <- Ns]),
        Work = fun(I) ->
            {Name, N, Do, Expected} = element(1 + I rem tuple_size(Works), Works),
            ?assertEqual({Name, N, Expected}, {Name, N, bits(Do(N))})
        end,
        Workers = [spawn_monitor(fun() -> [Work(I + J) || J <- [0, 7, 14]] end) || I <- lists:seq(1, 1000)],
        [receive {'DOWN', M, _, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers],
        ?assertEqual(3, n(tessera:add(1, 2)))
    end}.

%% The last size of each is computed by several threads.
routine_works() ->
    [{solve, [3, 40, 150], fun(N) -> tessera:solve(square(N, f32), square(N, f32)) end},
     {inverse, [5, 64], fun(N) -> tessera:inverse(square(N, f64)) end},
     {determinant, [4, 90], fun(N) -> tessera:determinant(square(N, f32)) end},
     {triangular_solve, [7, 130], fun(N) -> tessera:triangular_solve(square(N, f32), square(N, f32)) end},
     {cholesky, [6, 100], fun(N) -> tessera:cholesky(square(N, f32)) end},
     {lu, [9, 120], fun(N) -> tessera:lu(square(N, f32)) end},
     {qr, [2, 33, 100], fun(N) -> tessera:qr(square(N, f32)) end},
     {eigh, [3, 17, 60], fun(N) -> tessera:eigh(square(N, f32)) end},
     {svd, [1, 12, 50], fun(N) -> tessera:svd(square(N, f64)) end},
     {complex_solve, [3, 40], fun(N) -> tessera:solve(square(N, c64), square(N, c64)) end},
     {fft, [8, 97, 4096, 30000], fun(N) -> tessera:fft(tessera:sin(tessera:iota({3, N}, f32))) end},
     {rfft, [30, 1000], fun(N) -> tessera:rfft(tessera:sin(tessera:iota({N}, f64))) end},
     {sort, [10, 1000, 100000], fun(N) -> tessera:sort(tessera:sin(tessera:iota({N}, f32))) end},
     {argsort, [17, 3000], fun(N) -> tessera:argsort(tessera:remainder(tessera:multiply(tessera:iota({N}, s32), 7919), 1000)) end}].

%% Symmetric and positive definite.
square(N, Type) ->
    Some = tessera:sin(tessera:iota({N, N}, f32)),
    tessera:as_type(tessera:add(tessera:add(Some, tessera:transpose(Some)), tessera:multiply(tessera:eye(N), 4.0 * N)), Type).

bits(Tensors) when element(1, Tensors) =/= tessera -> [bits(T) || T <- tuple_to_list(Tensors)];
bits(Tensor) -> binary:copy(tessera:to_binary(Tensor)).

%% Ops on a tensor that another process deallocates meanwhile: done, or refused.
deallocated_meanwhile_test_() ->
    {timeout, 60, fun() ->
        [begin
             T = tessera:add(tessera:iota({1000}), 0),
             Workers = [spawn_monitor(fun() ->
                 try 1000 = length(tessera:to_list(tessera:add(T, 1))) catch error:{failed_precondition, _} -> ok end
             end) || _ <- lists:seq(1, 4)],
             _ = tessera:deallocate(T),
             [receive {'DOWN', M, _, _, Reason} -> ?assert(Reason =:= normal orelse element(1, Reason) =:= 1000) end || {_, M} <- Workers]
         end || _ <- lists:seq(1, 200)]
    end}.

%% ---- allocations that fail

%% A made error is the only alternative to the right result; afterwards all works, and nothing has leaked.
%% One of three allocations fails in turn, and in each run others: a program makes hundreds.
%% Of so many allocations one fails, beginning with one at random; the C tests let each fail.
-define(EACH, 7).

failing_allocations(F, Expected) ->
    Before = blocks_after(F),
    Failed = failing_allocations(F, Expected, rand:uniform(?EACH), 0),
    until(fun() -> blocks_after(F) =< Before end),
    Failed.

blocks_after(F) ->
    {Pid, M} = spawn_monitor(F),
    receive {'DOWN', M, process, Pid, normal} -> ok end,
    ok = tessera:clear_cache(),
    [garbage_collect(P) || P <- processes()],
    timer:sleep(5),
    tessera_test:blocks().

failing_allocations(F, Expected, N, Failed) when N < 5000 ->
    _ = tessera_nif:fail_allocation(N),
    Result = try {ok, F()} catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, Code} end,
    case {tessera_nif:fail_allocation(0), Result} of
        {0, {ok, Expected}} -> Failed;
        {_, {ok, Expected}} -> failing_allocations(F, Expected, N + ?EACH, Failed);
        {_, {error, resource_exhausted}} -> failing_allocations(F, Expected, N + ?EACH, Failed + 1);
        {_, Other} -> error({allocation, N, Other})
    end.

failing_allocations_test_() ->
    Program = fun() ->
        ok = tessera:clear_cache(),
        F = tessera:jit(fun(X) ->
            {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 2) end,
                                   fun({I, Y}) -> {tessera:add(I, 1), tessera:add(Y, X)} end),
            tessera:sum(tessera:concatenate([Y, tessera:tensor([1.0, 2.0])]))
        end),
        n(F(tessera:tensor([1.0, 2.0])))
    end,
    [{timeout, 120, fun() ->
        12.0 = Program(),
        ?assert(failing_allocations(Program, 12.0) > 20)
      end},
     {timeout, 60, fun() ->
        Eager = fun() ->
            ok = tessera:clear_cache(),
            tessera:to_list(tessera:reverse(tessera:concatenate([tessera:tensor([1, 2]), tessera:iota({2}), tessera:tensor([3]),
                                                                 tessera:tensor([4]), tessera:tensor([5])])))
        end,
        [5, 4, 3, 1, 0, 2, 1] = Eager(),
        ?assert(failing_allocations(Eager, [5, 4, 3, 1, 0, 2, 1]) > 5)
      end},
     {timeout, 60, fun() ->
        _ = tessera:load_plugin(filename:join([filename:dirname(code:which(?MODULE)), "..", "plugin", "example.so"])),
        Custom = fun() ->
            ok = tessera:clear_cache(),
            Scale = fun(X) -> tessera:custom_call(scale, [X], X, #{factor => 2}) end,
            X = tessera:tensor([1.0, 2.0]),
            {tessera:to_list(Scale(X)), tessera:to_list((tessera:jit(fun(Y) -> tessera:add(Scale(Y), 1) end))(X))}
        end,
        {[2.0, 4.0], [3.0, 5.0]} = Custom(),
        ?assert(failing_allocations(Custom, {[2.0, 4.0], [3.0, 5.0]}) > 20)
      end}].

%% ---- LLVM gives up

%% With a kernel that is in no cache: a chain of ops at random.
refused_module_test() ->
    Names = [tanh, erf, cosh, sin, cos, atan, asinh, sigmoid, negate, abs],
    Chain = [lists:nth(rand:uniform(length(Names)), Names) || _ <- lists:seq(1, 20)],
    F = tessera:jit(fun(X) -> lists:foldl(fun(Name, Y) -> tessera:Name(Y) end, X, Chain) end),
    ok = tessera_nif:inject_fatal(1),
    try raises(internal, "fatal error of LLVM", fun() -> F(0.25) end) after ok = tessera_nif:inject_fatal(0) end,
    ?assert(is_float(n(F(0.25)))).

%% ---- the library itself

%% The module is loaded again, as a code upgrade does: tensors and programs stay.
upgrade_test() ->
    T = tessera:tensor([1, 2, 3]),
    F = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    [2, 3, 4] = tessera:to_list(F(T)),
    Compiled = maps:get(compiled, tessera_nif:jit_stats()),
    {module, tessera_nif} = code:load_file(tessera_nif),
    ?assertEqual([2, 3, 4], tessera:to_list(F(T))),
    _ = code:purge(tessera_nif),
    ?assertEqual([2, 3, 4], tessera:to_list(F(T))),
    ?assertEqual([1, 2, 3], tessera:to_list(T)),
    ?assertEqual(Compiled, maps:get(compiled, tessera_nif:jit_stats())).

purged_and_loaded_test() ->
    Add = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    Compiled = tessera:compile(fun tessera:negate/1, [tessera:template(s32, {})]),
    Text = tessera:to_text(fun tessera:negate/1, [tessera:template(s32, {})]),
    T = tessera:tensor([1, 2, 3]),
    {2, -1, [_]} = {n(Add(1)), n(Compiled(1)), tessera:run_text(Text, [T0 = tessera:tensor(1)])},
    View = tessera:to_binary(tessera:iota({100})),
    true = code:delete(tessera_nif),
    _ = code:purge(tessera_nif),
    false = code:is_loaded(tessera_nif),
    ?assertEqual({2, -1}, {n(Add(1)), n(Compiled(1))}),
    [Minus] = tessera:run_text(Text, [tessera:tensor(1)]),
    ?assertEqual(-1, n(Minus)),
    ?assertEqual([2, 3, 4], tessera:to_list(tessera:add(tessera:tensor([1, 2, 3]), 1))),
    %% Tensors of the former life of the library are whole, or refused.
    ?assertEqual(lists:seq(0, 99), [N || <<N:32/native>> <= View]),
    [raises(invalid_argument, fun() -> tessera:add(Old, 1) end) || Old <- [T, T0]],
    true = garbage_collect().

%% A module of another version than the library.
other_version() ->
    Source = proplists:get_value(source, tessera_nif:module_info(compile)),
    {ok, tessera_nif, Code} = compile:file(Source, [binary, {d, 'ABI', 999}]),
    code:load_binary(tessera_nif, code:which(tessera_nif), Code).

other_version_test() ->
    T = tessera:tensor([1, 2]),
    ok = logger:set_primary_config(level, none),
    Result = try other_version() after logger:set_primary_config(level, notice) end,
    ?assertEqual({error, on_load_failure}, Result),
    ?assertEqual([2, 3], tessera:to_list(tessera:add(T, 1))).

%% A second copy of the library is not loaded while one runs.
other_copy_test_() ->
    {ok, Library} = file:read_file(tessera_library:path() ++ ".so"),
    {timeout, 60, with_copy("copy", Library, fun(Ebin) ->
        Eval = lists:flatten(io_lib:format(
            "T = tessera:tensor([1, 2]), true = code:add_patha(~p), logger:set_primary_config(level, none), "
            "Refused = code:load_file(tessera_nif), "
            "io:format(\"~~0p.~~n\", [{Refused, tessera:to_list(tessera:add(T, 1))}]), halt(0).", [Ebin])),
        ?assertMatch({{{error, on_load_failure}, [2, 3]}, _}, answer(filename:dirname(code:which(tessera)), Eval))
    end)}.

%% The answer of another VM.
answer(Ebin, Eval) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    tessera_test:answer(open_port({spawn_executable, Erl}, [{args, ["-noinput", "-pa", Ebin, "-eval", Eval]}, exit_status, binary,
                                                            stderr_to_stdout])).

%% Messages of the dynamic loader and the runtime system, and Tessera's explanation.
explained_test_() ->
    [?_assertNotEqual({nomatch, Text}, {string:find(tessera_library:explain(tessera_library:path(), Text), Word), Text})
     || {Text, Word} <-
            [{"Library load-call unsuccessful (1).", "build both together"},
             {"Library upgrade-call unsuccessful (1).", "until the node is restarted"},
             {"Library upgrade-call unsuccessful (3).", "until the node is restarted"},
             {"Library version (9.17) not compatible (with this 2.16).", erlang:system_info(otp_release)},
             {"Failed to load NIF library: 'libLLVM.so.19.1: cannot open shared object file: No such file or directory'", "libllvm19"},
             {"Failed to load NIF library: 'libLLVM.so.19.1: cannot open shared object file: No such file or directory'", "libLLVM.so.19.1"},
             {"/lib/libc.so.6: version `GLIBC_9.99' not found (required by x)", "newer system"},
             {"Failed to load NIF library x: 'x.so: failed to map segment from shared object'", "noexec"},
             {"another", "tessera_nif.so: another"}]].

%% Without a usable library every call says so, and the application does not start.
no_library_test_() ->
    [{timeout, 60, with_copy("no_library", Library, fun(Ebin) -> says_why(Ebin, Words) end)}
     || {Library, Words} <- [{none, "is not there. `make`"}, {<<"no library">>, "is damaged"}]].

%% A test with a folder that has our modules, and that for a library.
with_copy(Name, Library, Test) ->
    {setup, fun() -> copied(Name, Library) end, fun(Ebin) -> ok = file:del_dir_r(filename:dirname(filename:dirname(Ebin))) end,
     fun(Ebin) -> ?_test(Test(Ebin)) end}.

copied(Name, Library) ->
    Dir = filename:join(tessera_test:temporary(Name), "tessera"),
    Ebin = filename:join(Dir, "ebin"),
    So = filename:join([Dir, "priv", "tessera_nif.so"]),
    [ok = filelib:ensure_dir(F) || F <- [filename:join(Ebin, "x"), So]],
    [{ok, _} = file:copy(F, filename:join(Ebin, filename:basename(F)))
     || F <- filelib:wildcard(filename:join(filename:dirname(code:which(tessera)), "*"))],
    [ok = file:write_file(So, Library) || Library =/= none],
    Ebin.

%% An archive as escripts are.
in_archive_test_() ->
    {timeout, 60, with_copy("archive", none, fun(Ebin) ->
        Archive = filename:join(filename:dirname(Ebin), "tessera.ez"),
        {ok, _} = zip:create(Archive, ["ebin"], [{cwd, filename:dirname(Ebin)}]),
        says_why(filename:join(Archive, "ebin"), "is an escript or archive"),
        %% The archive's folder has a folder for it.
        {ok, _} = file:copy(tessera_library:path() ++ ".so", filename:join([filename:dirname(Ebin), "priv", "tessera_nif.so"])),
        ?assertMatch({{sum, 3}, _}, answer(filename:join(Archive, "ebin"), "io:format(\"~0p.~n\", [{sum, tessera:to_number(tessera:add(1, 2))}]), halt(0)."))
    end)}.

says_why(Ebin, Words) ->
    Eval = "Why = try tessera:add(1, 2) catch error:E -> E end, "
           "{error, {tessera, {Started, _}}} = application:ensure_all_started(tessera), "
           "io:format(\"~0p.~n\", [{Why, Started}]), halt(0).",
    {{Why, Started}, _} = answer(Ebin, Eval),
    [begin
         {unavailable, Text} = Reason,
         ?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text})
     end || Reason <- [Why, Started]].

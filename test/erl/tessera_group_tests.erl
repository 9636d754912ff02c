%% Runs of all partitions of a program together: tessera_nif:run_group/4.
-module(tessera_group_tests).
-device(host). % the functions of the native library for the host
-include_lib("eunit/include/eunit.hrl").

-define(CLIENT, tessera_group_tests).

compile(Text) ->
    ok = tessera_nif:client_open(?CLIENT, 8, undefined, undefined, undefined, []),
    tessera_nif:compile(tessera_nif:parse(iolist_to_binary(Text)), [{client, ?CLIENT}]).

run(Program, Arguments) -> run(Program, Arguments, 0).

run(Program, Arguments, Donated) ->
    Results = tessera_nif:run_group(Program, Arguments, 0, Donated),
    is_list(Results) orelse error(Results),
    [[tessera:to_list(T) || T <- Of] || Of <- Results].

refused(Part, Call) ->
    {error, #{message := Message}} = Call(),
    ?assertNotEqual({nomatch, Message}, {string:find(Message, Part), Message}).

vectors(Count) -> [[tessera:tensor([10.0 * P, 10.0 * P + 1])] || P <- lists:seq(0, Count - 1)].

sum(Mesh) ->
    ["graph @t mesh ", Mesh, " (%0: f32[2]) -> (f32[2]) {\n"
     "  %1 = all_reduce_sum %0 {axes = [0]} : f32[2]\n  return %1\n}\n"].

%% Each partition adds its coordinate.
places() ->
    "graph @t mesh [2,2] partitioned coordinates (%0: f32[], %1: s32[2]) -> (f32[], s32[2]) {\n"
    "  %2 = convert %1 : f32[2]\n  %3 = reduce_sum %2 {axes = [0]} : f32[]\n"
    "  %4 = add %0, %3 : f32[]\n  return %4, %1\n}\n".

%% Halves until the sum over the partitions is less than 1.
halve() ->
    "graph @t mesh [2] (%0: f32[]) -> (f32[]) {\n  %1 = while %0 {\n"
    "    condition(%2: f32[]) {\n      %3 = all_reduce_sum %2 {axes = [0]} : f32[]\n      %4 = constant 1 : f32[]\n"
    "      %5 = greater_equal %3, %4 : u8[]\n      return %5\n    }\n"
    "    body(%6: f32[]) {\n      %7 = constant 0.5 : f32[]\n      %8 = multiply %6, %7 : f32[]\n      return %8\n    }\n"
    "  } : f32[]\n  return %1\n}\n".

a_sum_test() ->
    Program = compile(sum("[4]")),
    ?assertEqual([[[60.0, 64.0]] || _ <- "1234"], run(Program, vectors(4))),
    ?assertEqual([[[60.0, 64.0]] || _ <- "1234"], run(Program, vectors(4), 1)).

results_are_on_their_devices_test() ->
    Results = tessera_nif:run_group(compile(sum("[4]")), vectors(4), 0, 0),
    ?assertEqual([{?CLIENT, P} || P <- [0, 1, 2, 3]], [tessera:device(T) || [T] <- Results]).

coordinates_test() ->
    ?assertEqual([[10.0, [0, 0]], [11.0, [0, 1]], [11.0, [1, 0]], [12.0, [1, 1]]],
                 run(compile(places()), [[10.0], [10.0], [10.0], [10]])).

loops_test() ->
    ?assertEqual([[0.25], [0.5]], run(compile(halve()), [[2.0], [4.0]])).

donated_tensors_are_gone_test() ->
    Arguments = vectors(2),
    _ = run(compile(sum("[2]")), Arguments, 1),
    [?assertError({failed_precondition, _}, tessera:to_list(T)) || [T] <- Arguments].

%% A set of arguments has no limit.
many_donated_tensors_test() ->
    Arguments = [[tessera:tensor([1.0 * I, 2.0]) || I <- lists:seq(1, 70)] || _ <- "12"],
    Names = fun(From) -> lists:join(", ", [[$%, integer_to_list(From + I)] || I <- lists:seq(0, 69)]) end,
    Types = lists:join(", ", ["f32[2]" || _ <- lists:seq(1, 70)]),
    Params = lists:join(", ", [[$%, integer_to_list(I), ": f32[2]"] || I <- lists:seq(0, 69)]),
    Program = compile(["graph @t mesh [2] (", Params, ") -> (", Types, ") {\n  ", Names(70), " = all_reduce_sum ",
                       Names(0), " {axes = [0]} : ", Types, "\n  return ", Names(70), "\n}\n"]),
    Results = run(Program, Arguments, (1 bsl 69) bor (1 bsl 3)),
    ?assertEqual([[[2.0 * I, 4.0] || I <- lists:seq(1, 70)] || _ <- "12"], Results),
    [?assertError({failed_precondition, _}, tessera:to_list(lists:nth(I, Of))) || Of <- Arguments, I <- [4, 70]],
    [?assertEqual([1.0 * I, 2.0], tessera:to_list(lists:nth(I, Of))) || Of <- Arguments, I <- [1, 3, 5, 65, 69]],
    refused("a set of arguments", fun() -> tessera_nif:run_group(Program, Arguments, 0, -1 bsl 70) end),
    refused("a set of arguments", fun() -> tessera_nif:run_group(Program, Arguments, 0, [1]) end).

refused_test() ->
    Program = compile(sum("[4]")),
    Run = fun(P, Arguments) -> fun() -> tessera_nif:run_group(P, Arguments, 0, 0) end end,
    refused("the program has 4 partitions, got 3 lists of arguments", Run(Program, vectors(3))),
    refused("a list of arguments for each partition", Run(Program, none)),
    refused("partition 2: argument 1: the program takes 1 arguments, got 0",
            Run(Program, [[T] || [T] <- vectors(2)] ++ [[], []])),
    refused("partition 3: the program takes 1 arguments, got more",
            Run(Program, vectors(3) ++ [[tessera:tensor([1.0, 2.0]), 1]])),
    refused("partition 1: argument 1 is f32[1]",
            Run(Program, [[tessera:tensor([1.0 || _ <- lists:seq(1, N)])] || N <- [2, 1, 2, 2]])),
    refused("the program has 16 partitions, client tessera_group_tests has 8 devices",
            Run(compile(sum("[16]")), vectors(16))),
    refused("all_reduce_sum: the program has 4 partitions, which only run together",
            fun() ->
                    ok = tessera_memory:make_room(), % the NIF may ask for it first
                    tessera_nif:run(Program, hd(vectors(1)), 0, 0)
            end).

%% ---- faults

%% Ends only when its caller is killed; with a collective in each iteration.
endless() ->
    "graph @t mesh [4] (%0: f32[64]) -> (f32[64]) {\n  %1 = while %0 {\n    condition(%2: f32[64]) {\n"
    "      %3 = constant 1 : u8[]\n      return %3\n    }\n    body(%4: f32[64]) {\n"
    "      %5 = all_reduce_max %4 {axes = [0]} : f32[64]\n      return %5\n    }\n  } : f32[64]\n  return %1\n}\n".

%% Killed before, in and between collectives: everything that the group has is freed.
killed_callers_test() ->
    Program = compile(endless()),
    Arguments = [[tessera:tensor([1.0 * P || _ <- lists:seq(1, 64)])] || P <- [1, 2, 3, 4]],
    Before = live(),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> tessera_nif:run_group(Program, Arguments, Threads, 0) end),
         timer:sleep(Milliseconds),
         exit(Pid, kill),
         receive {'DOWN', Monitor, process, Pid, killed} -> ok end
     end || Milliseconds <- [0, 1, 5, 30, 60], Threads <- [0, 1]],
    tessera_test:until_freed(fun() -> live() =< Before end).

live() -> #{live := Live} = tessera_nif:memory(), Live.

%% 10^5 results are made and freed.
many_results_test_() ->
    {timeout, 300, fun many_results/0}.

many_results() ->
    Program = compile(sum("[4]")),
    Arguments = vectors(4),
    Run = fun() -> [_, _, _, _] = tessera_nif:run_group(Program, Arguments, 0, 0), ok end,
    ok = Run(),
    erlang:garbage_collect(),
    Before = live(),
    times(25000, Run),
    tessera_test:until_freed(fun() -> live() =< Before end).

times(0, _) -> ok;
times(N, Run) -> ok = Run(), times(N - 1, Run).

several_callers_test() ->
    Program = compile(sum("[8]")),
    Expected = [[[280.0, 288.0]] || _ <- "12345678"],
    Self = self(),
    Callers = [spawn_link(fun() ->
                                  Arguments = vectors(8),
                                  times(200, fun() -> Expected = run(Program, Arguments), ok end),
                                  Self ! {self(), done}
                          end) || _ <- "1234"],
    [receive {Pid, done} -> ok end || Pid <- Callers].

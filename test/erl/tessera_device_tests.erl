%% Devices that work by themselves, on the asynchronous platform of the tests (test/c/async_device.c): make test-erl DEVICE=async.
%% The library that users have is without it, and says so.
-module(tessera_device_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3]).

all_test_() ->
    {setup, fun() -> {ok, _} = application:ensure_all_started(tessera) end,
     fun(_) ->
             case tessera_nif:default_client() of
                 host -> [fun absent/0];
                 async -> [fun computes/0, fun enumerates/0, fun is_not_read/0, fun moves/0, fun waits_without_schedulers/0,
                           fun processes_are_killed/0, fun killed_while_it_compiles/0, fun messages_stay/0,
                           {timeout, 30, fun fails/0}, fun closes/0, fun answers/0, fun has_a_limit/0, fun taken_once/0,
                           fun computes_while_memory_is_scarce/0]
             end
     end}.

absent() ->
    raises(invalid_argument, "the name of a platform that this library has, got async",
           fun() -> tessera:open_client(none, #{platform => async}) end),
    [{0, <<"CPU">>, 0}] = tessera_nif:platform_devices(host),
    ?assertEqual(#{host => tessera_client:host_devices()}, tessera:platforms()).

device(Tensor) -> tessera:device(Tensor).

computes() ->
    A = tessera:tensor([1.0, 2.0, 3.0]),
    ?assertEqual({async, 0}, device(A)),
    Sum = tessera:add(A, 1),
    ?assertEqual({async, 0}, device(Sum)),
    ?assertEqual([2.0, 3.0, 4.0], tessera:to_list(Sum)),
    F = tessera:jit(fun(X) -> {tessera:sum(X), tessera:multiply(X, X)} end),
    {Total, Squares} = F(Sum),
    ?assertEqual({9.0, [4.0, 9.0, 16.0]}, {tessera:to_number(Total), tessera:to_list(Squares)}),
    ?assertEqual({async, 0}, device(Squares)).

%% A client without a number of devices has all of them.
enumerates() ->
    ?assertMatch([{0, <<"test">>, 0}, _, _, _], tessera_nif:platform_devices(async)),
    ?assertMatch(#{host := _, async := 4, async_failing := 4}, tessera:platforms()),
    ok = tessera:open_client(all, #{platform => async}),
    ?assertEqual([{all, I} || I <- [0, 1, 2, 3]], tessera:devices(all)).

is_not_read() ->
    #tessera{ref = Ref} = tessera:tensor([1, 2]),
    ?assertMatch({error, #{code := elsewhere}}, tessera_nif:to_list(Ref)),
    ?assertMatch({error, #{code := elsewhere}}, tessera_nif:address(Ref)),
    ?assert(tessera_nif:is_elsewhere(Ref)).

%% Between devices of the client, and of other clients; a program of the host reads copies.
moves() ->
    ok = tessera:open_client(second, #{platform => async}),
    A = tessera:tensor([1, 2, 3]),
    There = [tessera:to_device(A, Device) || Device <- [{async, 1}, {host, 0}, {second, 0}, {async, 0}]],
    ?assertEqual([{async, 1}, {host, 0}, {second, 0}, {async, 0}], [device(T) || T <- There]),
    ?assertEqual(lists:duplicate(4, [1, 2, 3]), [tessera:to_list(T) || T <- There]),
    Host = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{device => {host, 0}}),
    Sum = Host(A, lists:nth(2, There)),
    ?assertEqual({host, 0}, device(Sum)),
    ?assertEqual([2, 4, 6], tessera:to_list(Sum)).

endless() -> tessera:jit(fun(X) -> tessera:while(X, fun(Y) -> tessera:less(tessera:multiply(Y, 0), 1) end, fun(Y) -> tessera:add(Y, 1) end) end).

%% More endless runs than there are schedulers of any kind, while this process computes.
waits_without_schedulers() ->
    Count = 2 * (erlang:system_info(schedulers) + erlang:system_info(dirty_cpu_schedulers)) + 4,
    F = endless(),
    X = tessera:tensor(1),
    Runs = [spawn_monitor(fun() -> F(X) end) || _ <- lists:seq(1, Count)],
    Waits = fun({Pid, _}) -> process_info(Pid, current_function) =:= {current_function, {tessera_run, awaited, 1}} end,
    tessera_test:until(fun() -> lists:all(Waits, Runs) end),
    computes(),
    [exit(Pid, kill) || {Pid, _} <- Runs],
    [receive {'DOWN', Monitor, process, _, killed} -> ok end || {_, Monitor} <- Runs],
    computes().

%% What processes leave behind that are killed at any moment: nothing.
processes_are_killed() ->
    F = tessera:jit(fun(X) -> tessera:sum(tessera:multiply(X, X)) end),
    X = tessera:iota({1000}, f32),
    _ = F(X),
    Before = settled(fun() -> held() end),
    tessera_test:kills(200, fun Work(I) -> _ = tessera:to_list(tessera:add(F(X), tessera:tensor([1.0]))), Work(I) end),
    tessera_test:until(fun() -> garbage_collect(), held() =< Before end),
    ?assertEqual(4000, byte_size(tessera:to_binary(X))).

held() -> maps:get(live, tessera_nif:memory(async)).

%% A value that stays the same for a moment.
settled(Value) ->
    garbage_collect(),
    Now = Value(),
    timer:sleep(50),
    case Value() of
        Now -> Now;
        _ -> settled(Value)
    end.

killed_while_it_compiles() ->
    Compile = fun(I) -> tessera:jit(fun(X) -> lists:foldl(fun(_, Y) -> tessera:sin(tessera:add(Y, I / 7)) end, X, lists:seq(1, 50)) end) end,
    tessera_test:kills(40, fun(I) -> (Compile(I))(1.0) end),
    computes().

%% A process that waits receives only its own message.
messages_stay() ->
    self() ! {ready, make_ref()},
    self() ! other,
    computes(),
    receive {ready, _} -> ok after 0 -> error(lost) end,
    receive other -> ok after 0 -> error(lost) end,
    receive Unexpected -> error(Unexpected) after 0 -> ok end.

%% Every tenth operation of the client `failing' is an error; all others are right.
fails() ->
    ok = tessera_client:ensure(failing, 0),
    tessera_test:some_fail(failing, 200, "the device failed at").

closes() -> tessera_test:closes(shut, fun() -> tessera:open_client(shut, #{platform => async, device_count => 2}) end).

%% A callback is answered by tensors of any device; a process that dies instead leaves nothing.
answers() ->
    Text = <<"graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = callback %0 {index = 0} {\n    types() {\n"
             "      %9 = constant 0.0 : f32[3]\n      return %9\n    }\n  } : f32[3]\n  return %1\n}\n">>,
    Program = tessera_run:compile(tessera_nif:parse(Text), []),
    X = tessera:tensor([1.0, 2.0, 3.0]),
    Ask = fun() -> tessera_run:run(Program, [X], 0, 0) end,
    [begin
         {callback, Run, 0, [Bytes]} = Ask(),
         ?assertEqual(tessera:to_binary(X), Bytes),
         [Result] = tessera_remote:answer(Run, [Answer]),
         ?assertEqual([4.0, 5.0, 6.0], tessera:to_list(Result))
     end || Answer <- [tessera:tensor([4.0, 5.0, 6.0]), tessera:to_device(tessera:tensor([4.0, 5.0, 6.0]), {host, 0})]],
    answered_by_the_process(Text, X),
    {callback, Given, 0, _} = Ask(),
    ok = tessera_nif:run_abandon(Given),
    {Pid, Monitor} = spawn_monitor(Ask),
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    computes().

%% A run of the host does not wait in the native library for an answer that is on a device: the process brings it.
answered_by_the_process(Text, X) ->
    Program = tessera_run:compile(tessera_nif:parse(Text), [{client, host}]),
    {callback, Run, 0, _} = tessera_run:run(Program, [tessera:to_device(X, {host, 0})], 0, 0),
    Answer = tessera:tensor([4.0, 5.0, 6.0]),
    ?assertMatch({error, #{code := elsewhere}}, tessera_nif:run_answer(Run, [Answer])),
    [Result] = tessera_remote:answer(Run, [Answer]),
    ?assertEqual([4.0, 5.0, 6.0], tessera:to_list(Result)),
    {callback, Other, 0, _} = tessera_run:run(Program, [tessera:to_device(X, {host, 0})], 0, 0),
    Gone = tessera:to_device(Answer, {async, 1}),
    ok = tessera:deallocate(Gone),
    ?assertMatch({error, #{code := failed_precondition}}, tessera_remote:answer(Other, [Gone])).

has_a_limit() ->
    ok = tessera:open_client(small, #{platform => async, memory_limit => 10000}),
    raises(resource_exhausted, "limit is 10000 bytes", fun() -> tessera:to_device(tessera:zeros({10000}), {small, 0}) end),
    ?assertEqual([0.0], tessera:to_list(tessera:to_device(tessera:zeros({1}), {small, 0}))),
    raises(unimplemented, "is set when it is opened", fun() -> tessera:set_memory_limit(small, 5) end).

%% The program of an eager op is not its result, also where the caller should collect garbage.
computes_while_memory_is_scarce() ->
    X = tessera:tensor([1.0]),
    _ = tessera:add(X, 1),
    Large = binary:copy(<<1>>, 8 bsl 20),
    [begin
         Made = tessera_run:awaited(tessera_nif:from_binary(Large, u8, {8 bsl 20}, true, {async, 0})),
         ?assertEqual([2.0], tessera:to_list(tessera:add(X, 1))),
         Made
     end || _ <- lists:seq(1, 4)].

%% The device may be faster than the call.
waiting() ->
    case tessera_nif:from_list([1, 2], s32) of
        {waiting, Job} -> Job;
        #tessera{} -> waiting()
    end.

taken_once() ->
    Job = waiting(),
    receive {ready, Job} -> ok end,
    #tessera{} = tessera_nif:run_resume(Job),
    ?assertMatch({error, #{code := failed_precondition}}, tessera_nif:run_resume(Job)).

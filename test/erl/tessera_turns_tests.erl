%% The processes that wait for tensor memory, and their order.
-module(tessera_turns_tests).
-include_lib("eunit/include/eunit.hrl").

%% ---- the order

%% A process that enters, and sends the answers that it got; it leaves when it is told to.
waiter(Since) ->
    Self = self(),
    Pid = spawn_link(fun() ->
                             Self ! {self(), entering},
                             Self ! {self(), tessera_turns:enter(Since)},
                             loop(Self)
                     end),
    receive {Pid, entering} -> ok end,
    Pid.

loop(Parent) ->
    receive
        {leave, Got} ->
            tessera_turns:leave(Got),
            loop(Parent);
        stop -> ok;
        F ->
            Parent ! {self(), F()},
            loop(Parent)
    end.

ask(Pid, F) ->
    Pid ! F,
    receive {Pid, Answer} -> Answer end.

answer(Pid) -> receive {Pid, Answer} -> Answer end.

%% A process that keeps the turn until it is told otherwise: a try ends a turn, so it is between two tries.
holder() ->
    Pid = waiter(now_ms()),
    turn = answer(Pid),
    held = ask(Pid, fun hold/0),
    Pid.

hold() ->
    turn = tessera_turns:enter(now_ms()),
    _ = tessera_turns:failed(),
    case state() of
        {_, {Pid, _, _}} when Pid =:= self() -> held;
        _ -> hold()
    end.

%% Who waits, and the turn.
state() ->
    {state, Queue, Turn, _, _, _} = sys:get_state(tessera_turns),
    {[element(2, Waiter) || Waiter <- Queue], Turn}.

%% Entering takes effect when the server has the message.
waits(Pid) ->
    {Queue, _} = state(),
    lists:member(Pid, Queue) orelse
        begin
            erlang:yield(),
            waits(Pid)
        end.

now_ms() -> erlang:monotonic_time(millisecond).

op() -> tessera_nif:from_list([1, 2], s32).

is_refused({error, #{code := resource_exhausted, message := Message}}) -> string:find(Message, "others have waited longer") =/= nomatch;
is_refused(_) -> false.

%% A turn that failed makes the next ones wait for no one for a while.
rested() ->
    ok = supervisor:terminate_child(tessera_sup, tessera_turns),
    {ok, _} = supervisor:restart_child(tessera_sup, tessera_turns).

order_test_() ->
    {setup, fun() -> {ok, _} = application:ensure_all_started(tessera), rested() end,
     [fun longest_first/0, fun others_are_refused/0, fun gone/0, fun late/0, fun without_server/0]}.

longest_first() ->
    A = holder(),
    Now = now_ms(),
    [B, C, D] = Waiters = [waiter(Now + Later) || Later <- [3000, 1000, 2000]],
    [waits(Pid) || Pid <- Waiters],
    ?assertMatch({[C, D, B], {A, _, _}}, state()),
    held = ask(A, fun hold/0),
    A ! {leave, true},
    turn = answer(C),
    [Pid ! {leave, true} || Pid <- Waiters],
    ?assertEqual([turn, turn], [answer(D), answer(B)]),
    [Pid ! stop || Pid <- [A | Waiters]].

%% The process that has the turn makes tensors; others are refused until it ends, and not after a turn that ended without memory.
others_are_refused() ->
    rested(),
    A = holder(),
    Traced = fun() -> tessera_nif:run((tessera_nif:compile(tessera_nif:parse(text()), [])), [1], 0, 0) end,
    ?assert(is_refused(op())),
    ?assert(is_refused(tessera_nif:from_binary(<<1:32>>, s32, {1}, true))),
    ?assert(is_refused(tessera_nif:op(undefined, negate, [1], undefined))),
    ?assert(is_refused(Traced())),
    ?assertMatch({tessera, _, s32, {2}}, ask(A, fun op/0)),
    %% a call of the API waits for its turn
    Self = self(),
    Other = spawn_link(fun() -> Self ! {self(), tessera:to_list(tessera:tensor([1, 2]))} end),
    waits(Other),
    A ! {leave, true},
    ?assertEqual([1, 2], answer(Other)),
    _ = sys:get_state(tessera_turns),      % it knows that the turn has ended
    ?assertMatch({tessera, _, s32, {2}}, op()),
    B = holder(),
    timer:sleep(250),
    ?assert(is_refused(op())),
    B ! {leave, false},
    C = waiter(now_ms()),
    turn = answer(C),
    ?assertMatch({tessera, _, s32, {2}}, op()),
    [Pid ! stop || Pid <- [A, B, C]].

text() -> <<"graph @main(%0: s32[]) -> (s32[]) {\n  %1 = negate %0 : s32[]\n  return %1\n}\n">>.

%% A process that dies has no turn, and does not wait.
gone() ->
    rested(),
    A = holder(),
    B = waiter(now_ms()),
    C = waiter(now_ms() + 10),
    [waits(Pid) || Pid <- [B, C]],
    [begin
         unlink(Pid),
         exit(Pid, kill)
     end || Pid <- [B, A]],
    turn = answer(C),
    C ! {leave, true},
    C ! stop.

%% Who has waited for 5 seconds tries, also while another process has the turn.
late() ->
    rested(),
    A = holder(),
    B = waiter(now_ms() - 5000),
    ?assertEqual(last, answer(B)),
    ?assertMatch({tessera, _, s32, {2}}, ask(B, fun op/0)),
    B ! {leave, true},
    [Pid ! stop || Pid <- [A, B]].

%% Without the server no process is refused, and none waits.
without_server() ->
    rested(),
    A = holder(),
    ok = supervisor:terminate_child(tessera_sup, tessera_turns),
    ?assertMatch({tessera, _, s32, {2}}, op()),
    ?assertEqual(turn, tessera_turns:enter(0)),
    {ok, _} = supervisor:restart_child(tessera_sup, tessera_turns),
    A ! stop.

%% ---- under a limit

%% Fifty processes allocate and free memory again and again. There is enough for five: none gets much more than others.
fair_test_() -> {timeout, 120, fun fair/0}.

fair() ->
    {ok, _} = application:ensure_all_started(tessera),
    rested(),
    #{live := Live, limit := Limit} = tessera_nif:memory(),
    ok = tessera_nif:set_limit(Live + 5 * 1100000),
    Self = self(),
    try
        Workers = [spawn_link(fun() -> worker(Self, 0, 0) end) || _ <- lists:seq(1, 50)],
        Counts = until_all(maps:from_keys(Workers, {0, 0}), 6),
        [Worker ! stop || Worker <- Workers],
        Got = [Count || {Count, _} <- maps:values(Counts)],
        ?assert(lists:max(Got) =< 3 * lists:min(Got), Got),
        ?assert(lists:max([Failed || {_, Failed} <- maps:values(Counts)]) < 10, Counts)
    after
        ok = tessera_nif:set_limit(Limit)
    end.

until_all(Counts, Least) ->
    case lists:all(fun({Got, _}) -> Got >= Least end, maps:values(Counts)) of
        true -> Counts;
        false -> receive {count, Pid, Got, Failed} -> until_all(Counts#{Pid := {Got, Failed}}, Least) end
    end.

worker(Parent, Got, Failed) ->
    Parent ! {count, self(), Got, Failed},
    receive stop -> ok
    after 0 ->
        try tessera:zeros({1000000}, u8) of
            T ->
                timer:sleep(2),
                _ = tessera:deallocate(T),
                worker(Parent, Got + 1, Failed)
        catch error:{resource_exhausted, _} -> worker(Parent, Got, Failed + 1)
        end
    end.

%% One of several callers makes a value, even if others end.
-module(tessera_cache_tests).
-include_lib("eunit/include/eunit.hrl").

cache_test_() ->
    {setup, fun() -> {ok, _} = application:ensure_all_started(tessera) end,
     [fun made_once/0, fun own_value_is_found/0, fun failures_are_not_kept/0, fun next_one_tries/0, fun maker_dies/0,
      fun dead_makers_leave_nothing/0, fun clear_while_made/0,
      fun order_is_that_of_values/0, {timeout, 60, fun many/0}, {timeout, 60, fun stops_and_starts/0},
      fun settings_that_make_no_sense/0]}.

key() -> {?MODULE, make_ref()}.

made_once() ->
    Key = key(),
    Self = self(),
    Make = fun() -> Self ! made, timer:sleep(50), value end,
    Pids = [spawn_link(fun() -> Self ! {got, tessera_cache:fetch(Key, Make)} end) || _ <- lists:seq(1, 20)],
    [?assertEqual(value, receive {got, Value} -> Value end) || _ <- Pids],
    ?assertEqual(1, count(made)).

count(Message) ->
    receive Message -> 1 + count(Message)
    after 0 -> 0
    end.

own_value_is_found() ->
    [begin
         Key = key(),
         ?assertEqual(I, tessera_cache:fetch(Key, fun() -> I end)),
         ?assertEqual(I, tessera_cache:fetch(Key, fun() -> error(twice) end))
     end || I <- lists:seq(1, 200)].

failures_are_not_kept() ->
    Key = key(),
    ?assertError(first, tessera_cache:fetch(Key, fun() -> error(first) end)),
    ?assertThrow(second, tessera_cache:fetch(Key, fun() -> throw(second) end)),
    ?assertEqual(third, tessera_cache:fetch(Key, fun() -> third end)).

%% A caller that fails gets its own error; the first that succeeds makes the value for the others.
next_one_tries() ->
    Key = key(),
    Self = self(),
    Left = counters:new(1, []),
    counters:put(Left, 1, 3),
    Make = fun() ->
                   timer:sleep(20),
                   case counters:get(Left, 1) of
                       0 -> Self ! made, value;
                       _ -> counters:sub(Left, 1, 1), error(failed)
                   end
           end,
    [spawn_link(fun() -> Self ! {got, try tessera_cache:fetch(Key, Make) catch error:failed -> failed end} end)
     || _ <- lists:seq(1, 10)],
    Got = [receive {got, Value} -> Value end || _ <- lists:seq(1, 10)],
    ?assertEqual({3, 7, 1}, {length([failed || failed <- Got]), length([value || value <- Got]), count(made)}).

maker_dies() ->
    Key = key(),
    Self = self(),
    Maker = spawn(fun() -> tessera_cache:fetch(Key, fun() -> Self ! making, timer:sleep(infinity) end) end),
    receive making -> ok end,
    Waiters = [spawn_link(fun() -> Self ! {got, tessera_cache:fetch(Key, fun() -> Self ! made, value end)} end)
               || _ <- lists:seq(1, 5)],
    timer:sleep(20),
    exit(Maker, kill),
    [?assertEqual(value, receive {got, Value} -> Value end) || _ <- Waiters],
    ?assertEqual(1, count(made)).

%% No caller asks for the values that they were making.
dead_makers_leave_nothing() ->
    Makers = [spawn_monitor(fun() -> tessera_cache:fetch(key(), fun() -> exit(self(), kill), timer:sleep(infinity) end) end)
              || _ <- lists:seq(1, 200)],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || {_, Monitor} <- Makers],
    _ = tessera_cache:fetch(key(), fun() -> value end),
    _ = tessera_cache:size(),
    ?assert(ets:info(tessera_cache_claims, size) < 64).

%% A value that is made while the cache is cleared may be in it afterwards or not; a later call gets it in either case.
clear_while_made() ->
    Self = self(),
    Key = key(),
    spawn_link(fun() ->
                       [value = tessera_cache:fetch({Key, I}, fun() -> value end) || I <- lists:seq(1, 2000)],
                       Self ! done
               end),
    clear_until_done(),
    ok = tessera_cache:clear(),
    ?assertEqual(0, tessera_cache:size()),
    ?assertEqual(again, tessera_cache:fetch({Key, 1}, fun() -> again end)).

clear_until_done() ->
    ok = tessera_cache:clear(),
    receive done -> ok
    after 0 -> clear_until_done()
    end.

%% A value that many callers ask for at once has one entry in the order of eviction.
order_is_that_of_values() ->
    ok = tessera_cache:clear(),
    Key = key(),
    Pids = [spawn_monitor(fun() -> [tessera_cache:fetch({Key, I}, fun() -> I end) || I <- lists:seq(1, 300)] end)
            || _ <- lists:seq(1, 8)],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || {_, Monitor} <- Pids],
    ?assertEqual(300, tessera_cache:size()),
    ?assertEqual([{Key, I} || I <- lists:seq(1, 300)],
                 lists:sort([K || {_, K, _} <- ets:tab2list(tessera_cache_order)])).

%% Makers that succeed, fail and die, and the callers that wait for them: each caller gets an answer.
many() ->
    Self = self(),
    Keys = [key() || _ <- lists:seq(1, 20)],
    Make = fun() ->
                   case rand:uniform(8) of
                       1 -> error(failed);
                       2 -> exit(self(), kill);
                       3 -> timer:sleep(1), value;
                       _ -> value
                   end
           end,
    Pids = [spawn_monitor(fun() ->
                                  Got = try tessera_cache:fetch(lists:nth(rand:uniform(20), Keys), Make)
                                        catch error:failed -> failed
                                        end,
                                  Self ! {got, Got}
                          end) || _ <- lists:seq(1, 2000)],
    [receive {'DOWN', Monitor, process, Pid, _} -> ok end || {Pid, Monitor} <- Pids],
    Values = got(),
    ?assertEqual([], [V || V <- Values, V =/= value, V =/= failed]),
    [?assertEqual(value, tessera_cache:fetch(Key, fun() -> value end)) || Key <- Keys],
    _ = tessera_cache:size(),
    ?assertEqual([], [Claim || {Key, _, _} = Claim <- ets:tab2list(tessera_cache_claims), lists:member(Key, Keys)]).

got() ->
    receive {got, Value} -> [Value | got()]
    after 0 -> []
    end.

%% Calls while the application stops and starts have the same results as otherwise.
stops_and_starts() ->
    Self = self(),
    quietly(fun() ->
        Calls = [fun() -> is_map(tessera:memory()) end, fun() -> ok =:= tessera:clear_cache() end, fun new_program/0],
        Pids = [spawn_link(fun() -> Self ! {outcomes, repeat(Call, #{})} end) || Call <- Calls],
        [begin
             ok = application:stop(tessera),
             timer:sleep(rand:uniform(3)),
             {ok, _} = application:ensure_all_started(tessera),
             timer:sleep(rand:uniform(3))
         end || _ <- lists:seq(1, 100)],
        [Pid ! stop || Pid <- Pids],
        [?assertEqual([true], receive {outcomes, Outcomes} -> maps:keys(Outcomes) end) || _ <- Pids]
    end).

new_program() ->
    N = rand:uniform(1 bsl 30),
    N + 1 =:= tessera:to_number((tessera:jit(fun(X) -> tessera:add(X, N) end))(1)).

repeat(Call, Outcomes) ->
    receive stop -> Outcomes
    after 0 ->
        Outcome = try Call() catch Class:Reason -> {Class, Reason} end,
        repeat(Call, Outcomes#{Outcome => true})
    end.

%% A function that needs the application says why it does not start.
settings_that_make_no_sense() ->
    quietly(fun() ->
        ok = application:stop(tessera),
        ok = application:set_env(tessera, max_programs, many),
        try
            tessera_test:raises(unavailable, "max_programs", fun() -> (tessera:jit(fun(X) -> X end))(1) end),
            ?assertMatch(#{programs := 0}, tessera:memory()),
            ?assertEqual(ok, tessera:clear_cache())
        after
            ok = application:unset_env(tessera, max_programs),
            {ok, _} = application:ensure_all_started(tessera)
        end
    end).

%% Without the reports of stops and failing starts.
quietly(F) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try F() after ok = logger:set_primary_config(level, Level) end.

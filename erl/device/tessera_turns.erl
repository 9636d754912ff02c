%% @private Whose turn it is where tensor memory is short. The process that has waited longest tries first. Meanwhile the native
%% library refuses calls of others that make tensors (c_src/nif/nif_turns.c): otherwise a process that frees memory and asks again at
%% once would always overtake the waiting ones.
%%
%% Everything is bounded. A process waits for its turn for 5 seconds, then it tries anyway. A try that takes longer than a moment has its
%% memory, and the next one begins. If a turn ends without memory, calls are not refused for four times as long as they were. So a
%% process that asks for too much costs others a fifth of the time at most.
-module(tessera_turns).
-behaviour(gen_server).
-export([start_link/0, enter/1, failed/0, leave/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(MOST_MS, 5000).
-define(TRY_MS, 5).
-define(HOPE_MS, 1000).
-define(REST, 4).

-record(waiter, {pid :: pid(), since :: integer(), from :: gen_server:from(), monitor :: reference(), timer :: reference()}).
-record(state, {queue = [] :: [#waiter{}],                  % by `since'
                turn = none :: none | {pid(), reference(), integer()},   % who tries, its monitor, and since when
                timer = none :: none | reference(),         % of a try
                got = none :: none | integer(),             % when a try was last known to succeed
                rest :: integer()}).                        % until when others are not refused

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Waits for the caller's turn to try; Since is when it first wanted memory, in milliseconds. `last': it waited as long as one
%% may. After a try come failed/0, or leave/1. Without a server all may try.
-spec enter(Since :: integer()) -> turn | last.
enter(Since) ->
    try gen_server:call(?MODULE, {enter, Since}, infinity)
    catch exit:_ -> turn
    end.

%% The caller's try was in vain. `again': it does not count, since it was the turn of another process, or others have got memory in
%% the last second and will free it.
-spec failed() -> counts | again.
failed() ->
    try gen_server:call(?MODULE, failed, infinity)
    catch exit:_ -> counts
    end.

-spec leave(Got :: boolean()) -> ok.
leave(Got) -> gen_server:cast(?MODULE, {leave, self(), Got}).

init([]) ->
    _ = process_flag(trap_exit, true),
    ok = tessera_nif:let_in(all),
    {ok, #state{rest = now_ms()}}.      % these may be negative

terminate(_, _) -> tessera_nif:let_in(all).

handle_call({enter, _}, {Pid, _}, #state{turn = {Pid, _, _}} = S) ->
    {reply, turn, trying(S)};
handle_call({enter, Since}, {Pid, _} = From, #state{queue = Queue} = S) ->
    Waiter = #waiter{pid = Pid, since = Since, from = From, monitor = monitor(process, Pid),
                     timer = erlang:start_timer(max(0, Since + ?MOST_MS - now_ms()), self(), {late, Pid})},
    {noreply, next(S#state{queue = lists:keymerge(#waiter.since, Queue, [Waiter])})};
handle_call(failed, {Pid, _}, #state{turn = {Pid, _, _}} = S) -> {reply, counts(S), gate(cancelled(S))};
handle_call(failed, _, #state{turn = none} = S) -> {reply, counts, S};
handle_call(failed, _, S) -> {reply, again, S};
handle_call(_, _, S) -> {reply, ok, S}.

counts(#state{got = Got}) ->
    case Got =/= none andalso now_ms() - Got < ?HOPE_MS of
        true -> again;
        false -> counts
    end.

handle_cast({leave, Pid, true}, #state{turn = {Pid, _, _}} = S) -> {noreply, next(ended(true, S#state{got = now_ms()}))};
handle_cast({leave, Pid, false}, #state{turn = {Pid, _, _}} = S) -> {noreply, next(ended(false, S))};
handle_cast(_, S) -> {noreply, S}.

handle_info({timeout, Timer, tried}, #state{timer = Timer} = S) -> {noreply, next(ended(true, S#state{timer = none}))};
handle_info({timeout, _, {late, Pid}}, #state{queue = Queue} = S) ->
    case lists:keytake(Pid, #waiter.pid, Queue) of
        {value, Waiter, Rest} -> {noreply, begun(Waiter, last, ended(true, S#state{queue = Rest}))};
        false -> {noreply, S}
    end;
handle_info({'DOWN', Monitor, process, Pid, _}, #state{turn = {Pid, Monitor, _}} = S) -> {noreply, next(ended(true, S))};
handle_info({'DOWN', Monitor, process, _, _}, #state{queue = Queue} = S) ->
    {noreply, S#state{queue = lists:keydelete(Monitor, #waiter.monitor, Queue)}};
handle_info(_, S) -> {noreply, S}.

next(#state{turn = none, queue = [Waiter | Queue]} = S) -> begun(Waiter, turn, S#state{queue = Queue});
next(S) -> gate(S).

begun(#waiter{pid = Pid, from = From, monitor = Monitor, timer = Timer}, Answer, S) ->
    _ = erlang:cancel_timer(Timer),
    Begun = trying(S#state{turn = {Pid, Monitor, now_ms()}}),
    gen_server:reply(From, Answer),
    Begun.

%% The turn ends, whichever process has it.
ended(_, #state{turn = none} = S) -> cancelled(S);
ended(Got, #state{turn = {_, Monitor, Since}} = S) ->
    true = demonitor(Monitor, [flush]),
    rested(Got, Since, now_ms(), cancelled(S#state{turn = none})).

rested(false, Since, Now, #state{rest = Rest} = S) when Since >= Rest -> S#state{rest = Now + ?REST * (Now - Since)};
rested(_, _, _, S) -> S.

trying(S) ->
    Tried = gate(cancelled(S)),
    Tried#state{timer = erlang:start_timer(?TRY_MS, self(), tried)}.

cancelled(#state{timer = none} = S) -> S;
cancelled(#state{timer = Timer} = S) ->
    _ = erlang:cancel_timer(Timer),
    S#state{timer = none}.

%% Refuses others while a process tries; the library forgets it after a second without a word.
gate(#state{turn = {Pid, _, Since}, rest = Rest} = S) when Since >= Rest ->
    ok = tessera_nif:let_in(Pid),
    S;
gate(S) ->
    ok = tessera_nif:let_in(all),
    S.

now_ms() -> erlang:monotonic_time(millisecond).

%% @private Locks by key, which waiting processes get in turn. Name and contract
%% are EXLA's, whose users protect a device or a file with them. Runs of Tessera
%% take none. A lock ends with the process that holds it.
-module(tessera_nx_lock).
-behaviour(gen_server).
-include("tessera_nx.hrl").
-export([start_link/0, lock/1, unlock/1, transfer/3, on_unlock/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type on_unlock() :: fun(() -> unlock | {transfer, pid()}).

%% The holder, by a monitor; the callback for the end of the lock; and the waiters, in order.
-record(lock, {holder  :: pid(),
               monitor :: reference(),
               ending  :: on_unlock(),
               waiting = queue:new() :: queue:queue(gen_server:from())}).

-record(state, {locks = #{} :: #{tessera_digest:digest() => #lock{}},
                keys = #{}  :: #{reference() => tessera_digest:digest()}}).      % by monitor

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?LOCK}, ?MODULE, [], []).

%% Waits until the key is free. If the caller already holds it, the lock is nested and ends with the outer one.
-spec lock(term()) -> reference() | nested_lock.
lock(Key) -> call({lock, tessera_nx_error:check(lock, tessera_digest:of_term(Key))}).

%% Passes the lock to the next waiter.
-spec unlock(reference() | nested_lock) -> ok.
unlock(nested_lock) -> ok;
unlock(Ref) when is_reference(Ref) -> call({unlock, Ref}).

%% Transfers the lock to another process after calling Prepare. Returns the reference: the new holder unlocks with it.
-spec transfer(reference(), fun(() -> term()), pid()) -> reference().
transfer(Ref, Prepare, Pid) when is_reference(Ref), is_function(Prepare, 0), is_pid(Pid) ->
    held(Ref, call({transfer, Ref, Prepare, Pid})).

%% Calls Prepare now, and Ending when the lock ends: its result is either the end of the lock or a transfer
%% to another process.
-spec on_unlock(reference(), fun(() -> term()), on_unlock()) -> reference().
on_unlock(Ref, Prepare, Ending) when is_reference(Ref), is_function(Prepare, 0), is_function(Ending, 0) ->
    held(Ref, call({on_unlock, Ref, Prepare, Ending})).

call(Request) -> gen_server:call(?LOCK, Request, infinity).

held(_, New) when is_reference(New) -> New;
held(Ref, not_held) -> tessera_nx_error:argument("there is no lock ~ts", [tessera_nx_error:inspect(Ref)]);
held(_, {raised, Class, Reason, Trace}) -> erlang:raise(Class, Reason, Trace).

%% ---- the server

init([]) ->
    ok = tessera_nx_locked:new(),
    {ok, #state{}}.

handle_call({lock, Key}, {Pid, _} = From, #state{locks = Locks} = State) ->
    case Locks of
        #{Key := #lock{holder = Pid}} -> {reply, nested_lock, State};
        #{Key := #lock{waiting = Waiting} = Lock} ->
            {noreply, State#state{locks = Locks#{Key := Lock#lock{waiting = queue:in(From, Waiting)}}}};
        _ ->
            {Ref, State1} = give(Key, Pid, queue:new(), State),
            {reply, Ref, State1}
    end;
handle_call({unlock, Ref}, _From, State) -> {reply, ok, ended(Ref, State)};
handle_call({transfer, Ref, Prepare, Pid}, _From, State) ->
    prepared(Ref, Prepare, State, fun(Key, #lock{ending = Ending} = Lock) ->
                                          {New, State1} = give(Key, Pid, Lock#lock.waiting, forget(Ref, State)),
                                          {reply, New, with_ending(Key, Ending, State1)}
                                  end);
handle_call({on_unlock, Ref, Prepare, Ending}, _From, State) ->
    prepared(Ref, Prepare, State, fun(Key, _) -> {reply, Ref, with_ending(Key, Ending, State)} end).

handle_cast(_, State) -> {noreply, State}.

handle_info({'DOWN', Ref, process, _, _}, State) -> {noreply, ended(Ref, State)};
handle_info(_, State) -> {noreply, State}.

%% An exception in Prepare is raised in the caller; the lock does not change.
prepared(Ref, Prepare, #state{locks = Locks, keys = Keys} = State, Then) ->
    case Keys of
        #{Ref := Key} ->
            try Prepare() of
                _ -> Then(Key, maps:get(Key, Locks))
            catch Class:Reason:Trace -> {reply, {raised, Class, Reason, Trace}, State}
            end;
        _ -> {reply, not_held, State}
    end.

give(Key, Pid, Waiting, #state{locks = Locks, keys = Keys} = State) ->
    Ref = monitor(process, Pid),
    Lock = #lock{holder = Pid, monitor = Ref, ending = fun() -> unlock end, waiting = Waiting},
    {Ref, State#state{locks = Locks#{Key => Lock}, keys = Keys#{Ref => Key}}}.

with_ending(Key, Ending, #state{locks = Locks} = State) ->
    #{Key := Lock} = Locks,
    State#state{locks = Locks#{Key := Lock#lock{ending = Ending}}}.

forget(Ref, #state{keys = Keys} = State) ->
    demonitor(Ref, [flush]),
    State#state{keys = maps:remove(Ref, Keys)}.

%% A lock was released or its holder died. A lock that is not found was transferred meanwhile.
ended(Ref, #state{locks = Locks, keys = Keys} = State) ->
    case Keys of
        #{Ref := Key} ->
            #{Key := #lock{ending = Ending, waiting = Waiting}} = Locks,
            pass_on(Key, called(Ending), Waiting, forget(Ref, State));
        _ -> State
    end.

called(Ending) ->
    try Ending()
    catch Class:Reason:Trace ->
        logger:error("Unlocking with ~ts failed. ~ts", [tessera_nx_error:inspect(Ending),
                                                        erl_error:format_exception(Class, Reason, Trace)]),
        unlock
    end.

pass_on(Key, {transfer, Pid}, Waiting, State) when is_pid(Pid) ->
    {_, State1} = give(Key, Pid, Waiting, State),
    State1;
pass_on(Key, _, Waiting, #state{locks = Locks} = State) ->
    case queue:out(Waiting) of
        {{value, {Pid, _} = From}, Rest} ->
            {Ref, State1} = give(Key, Pid, Rest, State),
            gen_server:reply(From, Ref),
            State1;
        {empty, _} -> State#state{locks = maps:remove(Key, Locks)}
    end.

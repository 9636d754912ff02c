%% @private The queue of a job: the process that sends runs to all of its ranks. So all ranks get the same runs in the same order, also when a caller
%% is killed meanwhile. Frees of values are sent by the same process: a run that was called while a value was there arrives at the rank before
%% the value's free.
-module(tessera_cluster_queue).
-behaviour(gen_server).
-export([start_link/1, run/3, free/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% How many unfinished runs a calling process may have. Its next call waits until one has finished.
-define(WINDOW, 16).
%% The most values that are freed by one message.
-define(BATCH, 256).

-record(state, {links    :: tuple(),
                requests = #{} :: #{tessera_cluster_link:request() => reference()},   % the key in `runs' of each
                runs = #{}     :: #{reference() => run()},
                lanes = #{}    :: #{pid() => {Runs :: pos_integer(), Waiting :: [gen_server:from()]}}}).

-type run() :: {Caller :: pid(), [tessera_cluster_link:request()], Left :: non_neg_integer(), Unneeded :: non_neg_integer()}.

%% Called by the job, with the links of all ranks. The process ends with the job.
-spec start_link(tuple()) -> {ok, pid()}.
start_link(Links) -> gen_server:start_link(?MODULE, Links, []).

%% Sends the requests, one to each rank in order, that run the program; `dropped' when the ranks do not have it any more. Returns when they were
%% sent. They are cancelled when all of their results were freed on every rank. An error means that the cluster was lost.
-spec run(pid(), tessera_cluster_programs:sent(), [{tessera_cluster_wire:head(), tessera_cluster_blocks:body()}]) -> ok | dropped | {error, map()}.
run(Queue, Program, Requests) ->
    try gen_server:call(Queue, {run, Program, Requests}, infinity)
    catch exit:{Reason, _} -> {error, tessera_cluster_error:lost(Reason)}
    end.

%% Frees values of ranks. The destructor of a proxy sends the same message.
-spec free(pid(), [{Rank :: non_neg_integer(), Id :: pos_integer()}]) -> ok.
free(Queue, Values) ->
    _ = [Queue ! {freed, Rank, Id} || {Rank, Id} <- Values],
    ok.

init(Links) ->
    ok = tessera_cluster_process:label(?MODULE),
    {ok, #state{links = Links}}.

handle_call({run, Program, Requests}, From, State) ->
    case tessera_cluster_programs:is_current(Program) of
        true -> run_of(From, Requests, State);
        false -> {reply, dropped, State}
    end;
handle_call(_, _, State) -> {reply, error, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info({freed, Rank, Id}, State) -> {noreply, freed(?BATCH, #{Rank => [Id]}, State)};
handle_info({Request, unneeded}, State) -> {noreply, unneeded(Request, State)};
handle_info({'DOWN', _, process, _, Reason}, State) -> {stop, {shutdown, {lost, tessera_cluster_error:lost(Reason)}}, State};
handle_info({Request, _, _, _, _}, State) ->
    true = demonitor(Request, [flush]),
    {noreply, replied(Request, State)};
handle_info(_, State) -> {noreply, State}.

%% ---- values

%% Takes the other frees that are in the mailbox, too: one message to each rank for all of them.
freed(0, Ids, State) -> forget(Ids, State);
freed(Left, Ids, State) ->
    receive {freed, Rank, Id} -> freed(Left - 1, maps:update_with(Rank, fun(Others) -> [Id | Others] end, [Id], Ids), State)
    after 0 -> forget(Ids, State)
    end.

forget(Ids, #state{links = Links} = State) ->
    _ = [tessera_cluster_link:forget(element(Rank + 1, Links), Own) || {Rank, Own} <- maps:to_list(Ids)],
    State.

%% ---- runs

run_of({Caller, _} = From, Requests, State) ->
    {Free, Next} = in_lane(From, begun(Caller, Requests, State)),
    _ = [gen_server:reply(From, ok) || Free],
    case lists:any(fun({_, Body}) -> tessera_cluster_blocks:has_blocks(Body) end, Requests) of
        true -> {noreply, Next, hibernate};   % keeps no binaries of the requests as garbage
        false -> {noreply, Next}
    end.

begun(Caller, Requests, #state{links = Links, requests = Known, runs = Runs} = State) ->
    Sent = [tessera_cluster_link:send_request(Link, Head#{lane => erlang:phash2(Caller)}, Body)
            || {Link, {Head, Body}} <- lists:zip(tuple_to_list(Links), Requests)],
    Run = make_ref(),
    State#state{requests = maps:merge(Known, maps:from_list([{Request, Run} || Request <- Sent])),
                runs = Runs#{Run => {Caller, Sent, length(Sent), 0}}}.

%% Whether the caller may continue at once. Its requests were sent in either case, because frees of the values that they use may be the next messages.
in_lane({Caller, _} = From, #state{lanes = Lanes} = State) ->
    case Lanes of
        #{Caller := {Count, Waiting}} when Count >= ?WINDOW ->
            {false, State#state{lanes = Lanes#{Caller := {Count + 1, Waiting ++ [From]}}}};
        #{Caller := {Count, Waiting}} -> {true, State#state{lanes = Lanes#{Caller := {Count + 1, Waiting}}}};
        #{} -> {true, State#state{lanes = Lanes#{Caller => {1, []}}}}
    end.

replied(Request, State) ->
    with_run(Request, State, fun(Run, {Caller, Sent, Left, Unneeded}, #state{runs = Runs, requests = Requests} = Now) ->
        Fewer = Now#state{requests = maps:remove(Request, Requests)},
        case Left of
            1 -> ended(Run, Caller, Fewer);
            _ -> Fewer#state{runs = Runs#{Run := {Caller, Sent, Left - 1, Unneeded}}}
        end
    end).

%% Each rank reports once that all of the run's results were freed there.
unneeded(Request, #state{links = Links} = State) ->
    with_run(Request, State, fun(Run, {Caller, Sent, Left, Unneeded}, #state{runs = Runs, requests = Requests} = Now) ->
        case Unneeded + 1 =:= tuple_size(Links) of
            true ->
                _ = [tessera_cluster_link:cancel(Link, Each) || {Link, Each} <- lists:zip(tuple_to_list(Links), Sent)],
                ended(Run, Caller, Now#state{requests = maps:without(Sent, Requests)});
            false -> Now#state{runs = Runs#{Run := {Caller, Sent, Left, Unneeded + 1}}}
        end
    end).

with_run(Request, #state{requests = Requests, runs = Runs} = State, Change) ->
    case Requests of
        #{Request := Run} -> Change(Run, maps:get(Run, Runs), State);
        #{} -> State
    end.

ended(Run, Caller, #state{runs = Runs, lanes = Lanes} = State) ->
    Left = case maps:get(Caller, Lanes) of
               {1, []} -> maps:remove(Caller, Lanes);
               {Count, []} -> Lanes#{Caller := {Count - 1, []}};
               {Count, [First | Waiting]} ->
                   gen_server:reply(First, ok),
                   Lanes#{Caller := {Count - 1, Waiting}}
           end,
    State#state{runs = maps:remove(Run, Runs), lanes = Left}.

%% @private Stacks of processes: the nearest frame of the user's code, and the depth of stacks while someone needs more than Erlang's 8 frames. The VM has one
%% depth for all processes. A process of the application owns it, and monitors its users: the depth is restored after a kill as well.
-module(tessera_stack).
-behaviour(gen_server).
-export([nearest/2]).
-export([start_link/0, deepen/0, restore/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([line/0]).

-type line() :: {module(), atom(), arity(), string() | undefined, non_neg_integer()}.

-define(DEPTH, 64).             % the most that Erlang has
%% A persistent term: an atomic with 1 more than the depth before the first user, or 0. The term remains when this process ends.
-define(BEFORE, {?MODULE, before}).

%% The nearest frame of a module that is not hidden. If only hidden frames are above a traced function of the user, the function has no frame: it has ended
%% with a call, or it is a function of Tessera. Then the result is its callers.
-spec nearest(erlang:stacktrace(), fun((module()) -> boolean())) -> {frame, line()} | {traced, erlang:stacktrace()} | none.
nearest([{tessera_trace, call, _, _} | Callers], _) -> {traced, Callers};
nearest([{Module, Name, Arity, Location} | Callers], IsHidden) ->
    case IsHidden(Module) of
        true -> nearest(Callers, IsHidden);
        false -> {frame, {Module, Name, Arity, proplists:get_value(file, Location), proplists:get_value(line, Location, 0)}}
    end;
nearest([], _) -> none.

%% ---- the depth

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Stacks are deep until restore/1, or the end of the calling process. While the node stops they are not.
-spec deepen() -> reference() | none.
deepen() ->
    try
        _ = whereis(?MODULE) =:= undefined andalso application:ensure_all_started(tessera),
        gen_server:call(?MODULE, deepen, infinity)
    catch exit:_ -> none
    end.

-spec restore(reference() | none) -> ok.
restore(none) -> ok;
restore(User) ->
    try gen_server:call(?MODULE, {restore, User}, infinity)
    catch exit:_ -> ok
    end.

%% The state is the monitors of the users. An earlier process that was killed has restored nothing.
init([]) ->
    _ = process_flag(trap_exit, true),
    _ = persistent_term:get(?BEFORE, none) =:= none andalso persistent_term:put(?BEFORE, atomics:new(1, [{signed, false}])),
    ok = make_shallow(),
    {ok, #{}}.

terminate(_, _) -> make_shallow().

handle_call(deepen, {Pid, _}, Users) ->
    ok = case map_size(Users) of
             0 -> make_deep();
             _ -> ok
         end,
    User = monitor(process, Pid),
    {reply, User, Users#{User => Pid}};
handle_call({restore, User}, _, Users) ->
    true = demonitor(User, [flush]),
    {reply, ok, without(User, Users)};
handle_call(_, _, Users) -> {reply, ok, Users}.

handle_cast(_, Users) -> {noreply, Users}.

handle_info({'DOWN', User, process, _, _}, Users) -> {noreply, without(User, Users)};
handle_info(_, Users) -> {noreply, Users}.

without(User, Users) when is_map_key(User, Users) ->
    Others = maps:remove(User, Users),
    ok = case map_size(Others) of
             0 -> make_shallow();
             _ -> ok
         end,
    Others;
without(_, Users) -> Users.

make_deep() ->
    Depth = erlang:system_flag(backtrace_depth, ?DEPTH),
    atomics:put(persistent_term:get(?BEFORE), 1, Depth + 1).

%% A depth that was set by others in the meantime stays.
make_shallow() ->
    case atomics:exchange(persistent_term:get(?BEFORE), 1, 0) of
        0 -> ok;
        Kept ->
            Depth = erlang:system_flag(backtrace_depth, Kept - 1),
            _ = Depth =/= ?DEPTH andalso erlang:system_flag(backtrace_depth, Depth),
            ok
    end.

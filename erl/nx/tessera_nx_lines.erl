%% @private Which line of a function of Nx each node of its expression comes from, for profiles. Nx makes a new reference for each node by one function.
%% While the expression is traced, the VM's trace of calls reports the stack of each call of this function, and the reference.
-module(tessera_nx_lines).
-export([is_possible/0, watch/2, watch/3]).

-define(MAKER, {'Elixir.Nx.Defn.Expr', id, 0}).
-define(MATCH, [{'_', [], [{return_trace}, {message, {current_stacktrace}}]}]).
-define(MOST_NODES, 1000000).
%% After so many nodes the process waits until their reports have been read.
-define(UNREAD_NODES, 4096).

-type places() :: #{reference() => tessera_tails:place()}.

%% The result of F, which calls the user's function Key, and the places of the nodes that it makes.
-spec watch(term(), fun(() -> Result)) -> {Result, places()}.
watch(Key, F) -> watch(Key, F, ?MOST_NODES).

%% The same for at most so many nodes, the first ones.
-spec watch(term(), fun(() -> Result), pos_integer()) -> {Result, places()}.
watch(Key, F, Most) ->
    Self = self(),
    What = {maps:from_keys(tessera_tails:modules(), true), last_of(Key)},
    {Collector, Monitor} = spawn_monitor(fun() -> collector(Self, What, Most) end),
    try traced(F, Collector, Monitor)
    after
        true = exit(Collector, kill),
        true = demonitor(Monitor, [flush])
    end.

%% Other tools do not see this trace. It ends as well when both processes have ended. This function's frame is below the frames of the user's function: what
%% follows the `try' keeps it on the stack.
traced(F, Collector, Monitor) ->
    Session = (module()):session_create(?MODULE, Collector, []),
    try
        ok = start(Session, Collector),
        Result = F(),
        {Result, places(Session, Collector, Monitor)}
    after
        true = (module()):session_destroy(Session)
    end.

%% ---- the trace of calls

start(Session, Collector) ->
    Collector ! {session, Session},
    _ = (module()):process(Session, self(), true, [call]),
    _ = (module()):function(Session, ?MAKER, ?MATCH, [local]),
    ok.

%% OTP 27 has sessions of traces, which leave the traces of others alone.
-spec is_possible() -> boolean().
is_possible() -> code:ensure_loaded(module()) =:= {module, module()} andalso erlang:function_exported(module(), session_create, 3).

%% Of OTP 27: no tool should look for it where the OTP is older.
module() -> list_to_atom("trace").

%% ---- its reports

%% The places of all nodes, when all reports have come.
places(Session, Collector, Monitor) ->
    Delivered = (module()):delivered(Session, self()),
    receive {trace_delivered, _, Delivered} -> ok end,
    Collector ! {places, self()},
    receive
        {?MODULE, Places} -> Places;
        {'DOWN', Monitor, process, _, _} -> #{}
    end.

%% `nodes' counts those without a place, too.
-record(collector, {owner :: pid(), session :: term(), what :: term(), most :: pos_integer(), nodes = 0 :: non_neg_integer(),
                    place = none :: tessera_tails:place() | none, places = #{} :: places()}).

collector(Owner, What, Most) ->
    _ = monitor(process, Owner),
    receive
        {session, Session} -> collect(#collector{owner = Owner, session = Session, what = What, most = Most});
        {'DOWN', _, process, Owner, _} -> ok
    end.

collect(#collector{owner = Owner, what = What} = State) ->
    receive
        {trace, _, call, _, Stack} -> collect(State#collector{place = place(Stack, What)});
        {trace, _, return_from, _, Id} -> collect(bounded(with(Id, State)));
        {places, Owner} ->
            Owner ! {?MODULE, State#collector.places},
            ok;
        resume ->
            _ = if_alive(fun() -> erlang:resume_process(Owner) end),
            collect(State);
        {'DOWN', _, process, Owner, _} -> ok
    end.

with(Id, #collector{nodes = Nodes, most = Most, place = Place, places = Places} = State) when Place =/= none, Nodes < Most ->
    State#collector{nodes = Nodes + 1, place = none, places = Places#{Id => Place}};
with(_, #collector{nodes = Nodes} = State) -> State#collector{nodes = Nodes + 1, place = none}.

%% Ends the trace after the last node that is noted. Before, the process waits now and then: it may make nodes faster than their reports are read, and each
%% report has a stack.
bounded(#collector{nodes = Most, most = Most, session = Session, owner = Owner} = State) ->
    _ = if_alive(fun() -> (module()):process(Session, Owner, false, [call]) end),
    State;
bounded(#collector{nodes = Nodes, owner = Owner} = State) when Nodes rem ?UNREAD_NODES =:= 0 ->
    _ = if_alive(fun() -> erlang:suspend_process(Owner, [asynchronous]) andalso (self() ! resume) end),
    State;
bounded(State) -> State.

%% The process may have ended, or its session.
if_alive(F) ->
    try F()
    catch error:badarg -> false
    end.

%% The nearest frame of the user's code, with the function of Nx that it has called; or the user's function, if it has ended with that call.
place(Stack, {Hidden, Last}) ->
    {Inner, Rest} = lists:splitwith(fun({Module, Name, _, _}) -> is_map_key(Module, Hidden) andalso {Module, Name} =/= {?MODULE, traced} end, Stack),
    Called = case [Name || {'Elixir.Nx', Name, _, _} <- Inner] of
                 [] -> nx;
                 Names -> lists:last(Names)
             end,
    case {Rest, Last} of
        {[{?MODULE, traced, _, _} | _], none} -> none;
        {[{?MODULE, traced, _, _} | _], _} -> {Last, Called};
        {[_ | _], _} -> {tessera_stack:nearest(Rest, fun(_) -> false end), Called};
        {[], _} -> none
    end.

%% A function of defn calls another function with its code.
last_of(F) when is_function(F) ->
    case tessera_tails:without_environment(tessera_source:fun_id(F)) of
        none -> none;
        {external, Module, Version, Name, Arity, []} -> {last, {external, Module, Version, of_defn(Module, Name, Arity), Arity, []}};
        FunId -> {last, FunId}
    end;
last_of(_) -> none.

of_defn(Module, Name, Arity) ->
    try binary_to_existing_atom(<<"__defn:", (atom_to_binary(Name))/binary, "__">>) of
        Inner -> case erlang:function_exported(Module, Inner, Arity) of
                     true -> Inner;
                     false -> Name
                 end
    catch error:badarg -> Name
    end.

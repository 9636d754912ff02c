%% @private A process that accepts connections of ranks on a listening socket, of the driver or of a leader. A connection is a stranger's until it has
%% shown the ticket (tessera_cluster_wire), which a rank sends at once. There are places for strangers, some more than ranks that may come at the same
%% time: when all are taken, the stranger that came first makes room for the next. So a peer that says nothing takes no place from a rank.
-module(tessera_cluster_door).
-export([start_link/4, known/1]).

%% Places for strangers in addition to one for each rank.
-define(STRANGERS, 64).
%% Milliseconds that this process waits for a connection before it looks for messages.
-define(ANSWER, 200).

-record(state, {owner   :: pid(),
                listen  :: tessera_cluster_socket:socket(),
                serve   :: fun((tessera_cluster_socket:socket()) -> pid()),
                evicted :: fun((pid()) -> term()),
                places  :: pos_integer(),
                strangers = queue:new() :: queue:queue(pid())}).

%% For `Ranks' ranks. Serve makes the process of a connection, which gets the socket and then the message `begin'. It calls known/1 when it has seen
%% the ticket. Evicted is called with a process that has to end because it has not; if it has meanwhile, it continues.
-spec start_link(tessera_cluster_socket:socket(), pos_integer(), fun((tessera_cluster_socket:socket()) -> pid()), fun((pid()) -> term())) -> pid().
start_link(Listen, Ranks, Serve, Evicted) ->
    State = #state{owner = self(), listen = Listen, serve = Serve, evicted = Evicted, places = Ranks + ?STRANGERS},
    tessera_cluster_process:start_link(?MODULE, fun() -> accept(State) end).

%% Called by the process of a connection.
-spec known(pid()) -> ok.
known(Door) ->
    Door ! {known, self()},
    ok.

%% Messages of `sys' are answered between two connections.
accept(#state{owner = Owner, listen = Listen} = State) ->
    receive
        {system, From, Request} -> tessera_cluster_process:system({From, Request}, Owner, State, {fun accept/1, fun printed/1});
        {'EXIT', Owner, Reason} -> exit(Reason)   % from sys: this process traps no exits
    after 0 -> accepted(tessera_cluster_socket:accept(Listen, ?ANSWER), State)
    end.

%% The function that makes the process of a connection has the key.
printed(#state{places = Places, strangers = Strangers}) -> #{places => Places, strangers => queue:to_list(Strangers)}.

accepted(Result, #state{serve = Serve, places = Places, strangers = Strangers} = State) ->
    case Result of
        {ok, Socket} ->
            Process = Serve(Socket),
            _ = monitor(process, Process),
            _ = tessera_cluster_socket:give(Socket, Process),
            Process ! 'begin',
            accept(evict(Places, news(State#state{strangers = queue:in(Process, Strangers)})));
        {error, timeout} -> accept(news(State));
        {error, closed} -> ok;
        {error, _} ->   % out of descriptors, or a peer that left
            timer:sleep(20),
            accept(evict(max(1, Places div 2), news(State)))
    end.

%% Processes that have ended or shown their ticket are no strangers any more.
news(#state{strangers = Strangers} = State) ->
    receive
        {known, Process} -> news(State#state{strangers = queue:delete(Process, Strangers)});
        {'DOWN', _, process, Process, _} -> news(State#state{strangers = queue:delete(Process, Strangers)})
    after 0 -> State
    end.

evict(Most, #state{strangers = Strangers, evicted = Evicted} = State) ->
    case queue:len(Strangers) > Most of
        true ->
            {{value, First}, Rest} = queue:out(Strangers),
            _ = Evicted(First),
            evict(Most, State#state{strangers = Rest});
        false -> State
    end.

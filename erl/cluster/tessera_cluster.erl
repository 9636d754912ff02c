%% @doc Clusters: one program over the ranks of an MPI job, from a normal node. docs/cluster.md tells how they are used, docs/distribution.md
%% how they work.
-module(tessera_cluster).
-behaviour(gen_server).
-include("tessera.hrl").
-export([start_link/1, join/1, leave/1, stop/1, info/1, child_spec/1, noop/1, noop/2, clear_cache/1, map/2, map/3, put/2, save/2, save/4, load/2, load/3]).
-export([map_as/4, call/2]).
-export([start_process/2, init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).
-export_type([cluster/0, options/0, join_options/0]).

-type cluster() :: tessera_cluster_state:cluster().
%% The process of a cluster, or its name.
%% `ranks' is required. `hosts': names, or names with slots; `devices' and `threads' of each rank; `mpirun': its name or path, or
%% `none' for ranks of this host without MPI; `mca' and `env' for mpirun; `memory_limit' in bytes for each rank; `deadline' in
%% milliseconds until a silent rank is lost; `listen': this host's address for the ranks' connections; `start_timeout' in
%% milliseconds; `restarts': the number of restarts, and the seconds for this number; `name': the cluster is registered with it;
%% `directory': the place of the file with the key; all hosts must see it; `max_message' in bytes; `tree': with more ranks than the
%% first number, ranks are connected through leaders; each leader has as many ranks as the second number, itself included; `tls': the
%% connections between this node and the ranks are encrypted, the default with `hosts'.
-type options() :: #{ranks := pos_integer(), hosts => [string() | {string(), pos_integer()}], devices => pos_integer(),
                     threads => pos_integer(), mpirun => string() | none, mca => [{string(), string()}],
                     env => [{string(), string()}], memory_limit => pos_integer(), deadline => pos_integer(),
                     listen => inet:ip_address(), start_timeout => pos_integer(),
                     restarts => {non_neg_integer(), pos_integer()}, name => atom(), directory => string(),
                     max_message => pos_integer(), tree => {pos_integer(), pos_integer()}, tls => boolean()} | [{atom(), term()}].

%% Of a node that joins: its `devices' and `threads'; `memory_limit' in bytes; `deadline' in milliseconds until a silent rank is lost;
%% `start_timeout' for all ranks to join, `call_timeout' for all to make the same call; `name': the cluster is registered with it.
-type join_options() :: #{devices => pos_integer(), threads => pos_integer(), memory_limit => pos_integer(), deadline => pos_integer(),
                          start_timeout => pos_integer(), call_timeout => pos_integer() | infinity, name => atom()} | [{atom(), term()}].

%% Milliseconds for a rank's reply to info/1.
-define(INFO, 5000).
%% Milliseconds for a stopped cluster to end all its processes.
-define(STOP, 10000).

%% Milliseconds until the start after a failed one; it doubles with each, up to the longest.
-define(PAUSE, 500).
-define(LONGEST_PAUSE, 16000).

%% Jobs whose errors are kept.
-define(ENDED, 16).

-record(state, {options   :: map(),
                parent    :: pid(),
                first = true :: boolean(),                        % the caller of start_link/1 waits for the first start
                job = none :: none | pid(),
                launchers = #{} :: #{reference() => pid()},       % those that have not ended
                connections = none :: none | tessera_cluster_state:connections(),
                infos = [] :: [map()],
                waiting = [] :: [gen_server:from()],
                failed = none :: none | map(),                    % the error of the last job
                ended = [] :: [{pid(), map()}],                   % the queues of the last jobs, and their errors
                asking = [] :: [{pid(), gen_server:from()}],      % callers of why/3
                restarts = [] :: [integer()],                     % when, in seconds
                pause = ?PAUSE :: pos_integer(),                  % after the next start, if it fails
                pausing = none :: none | reference(),
                span = none :: tessera_events:span()}).           % of a start

%% @doc Starts the ranks and waits until all are ready. The cluster is linked to the caller. When a rank is lost, all are started again.
-spec start_link(options()) -> {ok, pid()} | {error, {atom(), binary()}}.
start_link(Options) ->
    case tessera_cluster_options:check(Options) of
        {ok, Checked} ->
            ok = tessera_platform:register([tessera_cluster_member, tessera_cluster_driver]),
            proc_lib:start_link(?MODULE, start_process, [self(), Checked]);
        Error -> Error
    end.

%% @doc Makes this node one rank of a cluster without a driver: `mpirun' or `srun' has started it, and the other ranks also call this function. It
%% returns when all have. The cluster is a client of {@link tessera:shard_jit/3} and {@link tessera:shard_map/5}. Their functions then take and return
%% lists for the partitions of this rank only: rank R of N has the partitions from R P / N on, of P. All ranks must make the same calls in the same
%% order. Otherwise all get `failed_precondition', or `unavailable' when one has not called within `call_timeout'. An error of one rank is raised on
%% all. A node can join once. Started by itself, a node is the only rank of its cluster.
-spec join(join_options()) -> {ok, pid()} | {error, {atom(), binary()}}.
join(Options) -> tessera_cluster_join:join(Options).

%% @doc Leaves a cluster that was joined: waits until all ranks do, and finalizes MPI. Other ranks that call a program instead get
%% `unavailable', as this one does when the cluster has ended by an error.
-spec leave(cluster()) -> ok | {error, {atom(), binary()}}.
leave(Cluster) ->
    case left(Cluster, tessera_cluster_joined:find(Cluster)) of
        ok -> ok;
        {error, #{code := Code, message := Message}} -> {error, {Code, Message}}
    end.

left(_, #{server := Server}) -> tessera_cluster_joined:leave(Server);
left(Cluster, none) ->
    Pid = tessera_cluster_state:process_of(Cluster),
    case is_pid(Pid) andalso node(Pid) =:= node() andalso is_process_alive(Pid) of
        true ->
            {error, tessera_cluster_error:new(failed_precondition, "leave: this node has not joined the cluster ~0tp, it may be its driver: "
                                              "tessera_cluster:stop/1 ends it", [Cluster])};
        false -> {error, tessera_cluster_error:new(failed_precondition, "leave: this node is in no cluster ~ts", [tessera_error:show(Cluster)])}
    end.

%% @doc Ends the ranks, then the cluster. Returns when no process of it is left. A cluster that was joined is left, as by {@link leave/1}.
-spec stop(cluster()) -> ok.
stop(Cluster) ->
    try gen_server:stop(tessera_cluster_state:process(Cluster), normal, infinity)
    catch
        exit:noproc -> tessera_cluster_error:raise(tessera_cluster_state:gone(Cluster));
        exit:_ -> ok   % it has ended by itself meanwhile
    end.

%% @doc For supervisors.
-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) ->
    %% start_link/1 reports the fault of invalid options
    Name = case tessera_type:is_proper(Options) of
               true -> proplists:get_value(name, Options);
               false when is_map(Options) -> maps:get(name, Options, undefined);
               false -> undefined
           end,
    #{id => {?MODULE, Name}, start => {?MODULE, start_link, [Options]}, shutdown => ?STOP + 5000}.

%% @doc The state of the cluster: whether it is up and its connections are encrypted, its ranks, its number of restarts, and its last error. Of each
%% rank: rank, host, pid, its parent in the tree, devices, threads, CPUs, versions, bytes of memory of its VM and its tensors, bytes that its socket
%% sent and received, bytes that MPI sent to other ranks and received from them, milliseconds since the last sign of life. For a cluster that was
%% joined: its state, this node's `rank', the ranks (rank, host, pid, devices, threads, CPUs, instruction set), the version of MPI, bytes that MPI
%% has moved between this rank and others, and the last error.
-spec info(cluster()) -> #{state := up | starting, tls := boolean(), ranks := [map()], restarts := non_neg_integer(), last_error := none | {atom(), binary()}}
                       | #{state := up | down | left, rank := non_neg_integer(), ranks := [map()], mpi := none | binary(),
                           mpi_sent_bytes := non_neg_integer(), mpi_received_bytes := non_neg_integer(),
                           last_error := none | {atom(), binary()}}.
info(Cluster) ->
    case tessera_cluster_state:ask(Cluster, info) of
        #{links := _} = Info -> info_of_ranks(Info);
        Joined -> Joined
    end.

info_of_ranks(#{links := Links, infos := Infos} = Info) ->
    Ranks = [maps:merge(Static, now(Link)) || {Static, Link} <- lists:zip(Infos, tuple_to_list(Links))],
    maps:without([links, infos], Info#{ranks => Ranks}).

now(Link) ->
    Memory = case one(Link, memory, ?INFO) of
                 {ok, #{memory := _, mpi_sent_bytes := _, mpi_received_bytes := _} = Bytes} -> Bytes;
                 _ -> #{}
             end,
    try maps:merge(Memory, tessera_cluster_link:statistics(Link))
    catch exit:_ -> Memory
    end.

%% @doc A call of all ranks that does nothing, for measurements. Of a cluster that was joined: returns when all ranks have called it.
-spec noop(cluster()) -> ok.
noop(Cluster) -> noop(Cluster, 1).

%% @doc The same, Count times, one after the other.
-spec noop(cluster(), pos_integer()) -> ok.
noop(Cluster, Count) ->
    Once = case tessera_cluster_joined:find(Cluster) of
               none -> fun() -> call(Cluster, noop) end;
               Joined -> fun() -> tessera_cluster_spmd:noop(Joined) end
           end,
    lists:foreach(fun(_) -> Once() end, lists:seq(1, Count)).

%% @doc Drops the compiled programs that the ranks keep, and clears the caches of their VMs, as {@link tessera:clear_cache/0} does.
%% Programs that runs on their way use live until those have ended. A program that is called again is sent and compiled again; its
%% kernels are found in memory or on disk. Raises the first error of a rank. Of a cluster that was joined: clears the caches of this node,
%% and no other rank takes part.
-spec clear_cache(cluster()) -> ok.
clear_cache(Cluster) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> clear_ranks(Cluster);
        _ -> tessera:clear_cache()
    end.

clear_ranks(Cluster) ->
    #{table := Table} = tessera_cluster_state:connections(Cluster),
    ok = tessera_cluster_programs:clear(Table),
    _ = call(Cluster, clear_cache),
    ok.

%% @doc Calls F with the number of the rank, on all ranks at once: the results, in the order of ranks. So each rank can read its own part
%% of a file. The module of F must be in the code path of this node. Results are terms whose atoms this node knows; tensors in them stay
%% on their ranks, like tensors of runs. Raises the first error, with the rank and its host.
%%
%% Of a cluster that was joined: all ranks call it with the same function. Each calls F with its own number, and gets a list with its own
%% result, when F has returned on all.
-spec map(cluster(), fun((Rank :: non_neg_integer()) -> Result)) -> [Result].
map(Cluster, F) when is_function(F, 1) -> map_as(Cluster, F, F, none).

%% @doc The same with an argument for each rank. Tensors in an argument that are on that rank are not moved; others are copied to it. Of a
%% cluster that was joined: a list with the argument of this rank.
-spec map(cluster(), fun((Rank :: non_neg_integer(), Arg) -> Result), [Arg]) -> [Result].
map(Cluster, F, Args) when is_function(F, 2), is_list(Args) -> map_as(Cluster, F, F, Args).

%% @private The same for a function Call that calls F; F is the function that ranks must know, and that errors name.
-spec map_as(cluster(), function(), function(), none | [term()]) -> [term()].
map_as(Cluster, F, Call, Args) ->
    case tessera_cluster_joined:find(Cluster) of
        none ->
            ok = check_module(erlang:fun_info(F, module)),
            #{links := Links} = Connections = tessera_cluster_state:connections(Cluster),
            Args =:= none orelse length(Args) =:= tuple_size(Links) orelse
                refuse_argument("map: got ~b arguments, and the cluster has ~b ranks", [length(Args), tuple_size(Links)]),
            mapped(tessera_cluster_values:apply_all(Connections, Call, Args));
        Joined -> tessera_cluster_spmd:map(Joined, F, Args)
    end.

mapped({ok, Results}) -> Results;
mapped({error, Error}) -> tessera_cluster_error:raise(Error).

%% Ranks load it from where this node would: a module of a script or of a shell is in memory only.
check_module({module, Module}) ->
    case code:which(Module) =:= preloaded orelse code:get_object_code(Module) =/= error of
        true -> ok;
        false -> tessera_cluster_error:raise(
                   tessera_cluster_error:new(failed_precondition, "map: no file has the module ~tp of the function, from which ranks "
                                             "could load it: compile it to a file in the code path", [Module]))
    end.

%% @doc Puts tensors on the ranks, where they stay as long as they are referred to. The argument is a list with a container of tensors and
%% numbers for each partition of a mesh, as the argument lists of {@link tessera:shard_jit/3}. A tensor that several partitions of a rank
%% share is sent once, and a tensor that is already on the rank is not moved. In a cluster that was joined: a container for each partition
%% of this rank; its tensors are then on the rank's devices; no other rank takes part.
-spec put(cluster(), [Container]) -> [Container].
put(Cluster, Parts) ->
    tessera_type:is_proper(Parts) orelse refuse_argument("put: expected a list with a container for each partition, got ~ts", [tessera_error:show(Parts)]),
    case tessera_cluster_joined:find(Cluster) of
        none -> put_on_ranks(Cluster, Parts);
        Joined -> tessera_cluster_spmd:put(Joined, Parts)
    end.

put_on_ranks(Cluster, Parts) ->
    tessera_cluster_run:room(Cluster, length(Parts)) =:= ok orelse refuse_count(Cluster, length(Parts)),
    Flat = [tessera_tree:flatten(Part) || Part <- Parts],
    case tessera_cluster_run:put(Cluster, [Leaves || {_, Leaves} <- Flat]) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Lists -> [tessera_tree:unflatten(Signature, List) || {{Signature, _}, List} <- lists:zip(Flat, Lists)]
    end.

%% @doc Saves a container of tensors and numbers for each partition of a mesh, as runs return them. Each rank writes its tensors to the file
%% `Path.N.R', of save N and rank R; then the index, a file at Path, is written, and replaces an earlier one with its files. All hosts must
%% see the folder. An error leaves an earlier save as it was. Raises `resource_exhausted' where the disk is full.
%%
%% On a node that has joined a cluster: all ranks call it, with the same path and a container for each partition of their own, and rank 0
%% writes the index. It returns when the index is written. The files are the same.
-spec save(file:name_all(), [term()]) -> ok.
save(Path, Parts) -> save_in(cluster_of(Parts), Path, Parts, none).

%% @doc The same with the mesh, and the shardings of the container's tensors, as {@link tessera_mesh:results/2} returns them: parts that
%% are equal are saved once, and {@link load/3} can cut the tensors for another mesh.
-spec save(file:name_all(), [term()], tessera_mesh:mesh(), term()) -> ok.
save(Path, Parts, Mesh, Shardings) -> save_in(cluster_of(Parts), Path, Parts, {Mesh, Shardings}).

save_in(#{server := _} = Joined, Path, Parts, Layout) ->
    checkpoint(save, Path, fun() -> tessera_cluster_spmd:save(Joined, Path, Parts, Layout) end);
save_in(Cluster, Path, Parts, Layout) -> checkpoint(save, Path, fun() -> tessera_cluster_save:save(Cluster, Path, Parts, Layout) end).

checkpoint(Operation, Path, Work) -> tessera_events:span(checkpoint, #{operation => Operation, path => Path}, Work, fun(_) -> {#{}, #{}} end).

%% @doc Loads a save, as a list with a container for each partition, on the ranks of a cluster. It may have another number of ranks than the
%% saving cluster. Raises `data_loss' where a file is damaged. Of a cluster that was joined: all ranks call it, and each gets the containers
%% of its own partitions, on its devices.
-spec load(cluster(), file:name_all()) -> [term()].
load(Cluster, Path) -> load_in(Cluster, Path, none).

%% @doc The same in a mesh of other sizes, if it was saved with its mesh and shardings. Each rank reads only its parts.
-spec load(cluster(), file:name_all(), tessera_mesh:mesh()) -> [term()].
load(Cluster, Path, Mesh) -> load_in(Cluster, Path, Mesh).

load_in(Cluster, Path, Mesh) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> checkpoint(load, Path, fun() -> tessera_cluster_save:load(Cluster, Path, Mesh) end);
        Joined -> checkpoint(load, Path, fun() -> tessera_cluster_spmd:load(Joined, Path, Mesh) end)
    end.

%% The cluster of the first tensor that is on a rank; else the cluster that this node has joined.
cluster_of(Parts) ->
    {_, Found} = tessera_cluster_terms:fold(fun(#tessera{ref = Ref} = Tensor, none) -> {Tensor, tessera_cluster_proxy:cluster(Ref)};
                                               (Tensor, Found) -> {Tensor, Found}
                                            end, none, Parts),
    case Found =:= none andalso tessera_cluster_joined:joined() of
        false -> Found;
        none -> refuse_argument("save: no tensor is on a rank of a cluster", []);
        Joined -> Joined
    end.

-spec refuse_count(cluster(), non_neg_integer()) -> no_return().
refuse_count(Cluster, Count) ->
    #{ranks := Ranks, devices := Devices} = tessera_cluster_state:options(Cluster),
    refuse_argument("put: got ~b lists, and the cluster has ~b ranks of ~b devices: each rank has as many, at most one for each device",
                    [Count, Ranks, Devices]).

-spec refuse_argument(io:format(), [term()]) -> no_return().
refuse_argument(Format, Values) -> tessera_cluster_error:raise(tessera_cluster_error:new(invalid_argument, Format, Values)).

%% @private Asks all ranks; the results in their order. Raises the first error.
-spec call(cluster(), term()) -> [term()].
call(Cluster, Request) ->
    case tessera_cluster_calls:all(tessera_cluster_state:connections(Cluster), Request) of
        {ok, Results} -> Results;
        {error, Error} -> tessera_cluster_error:raise(Error)
    end.

one(Link, Request, Timeout) -> tessera_cluster_calls:one(Link, Request, Timeout).

%% ---- the process: it starts jobs, one after the other

%% @private
-spec start_process(pid(), map()) -> no_return().
start_process(Parent, #{name := Name} = Options) ->
    process_flag(trap_exit, true),
    ok = tessera_cluster_process:label({?MODULE, Name}),
    case tessera_cluster_names:take(Name) of
        ok -> gen_server:enter_loop(?MODULE, [], start_job(#state{options = Options, parent = Parent}));
        {error, Error} ->
            refuse(Error, #state{options = Options#{name := undefined}, parent = Parent}),
            exit(normal)
    end.

%% A first start that fails is the result of start_link/1, and no exit signal. The name is free when the caller has the result.
refuse(#{code := Code, message := Message}, #state{options = #{name := Name}, parent = Parent}) ->
    ok = tessera_cluster_names:release(Name),
    true = unlink(Parent),
    proc_lib:init_ack(Parent, {error, {Code, Message}}).

%% The result of start_link/1.
started(#state{first = true, options = #{name := Name}, parent = Parent} = State) ->
    ok = tessera_cluster_names:up(Name),
    proc_lib:init_ack(Parent, {ok, self()}),
    State#state{first = false};
started(State) -> State.

%% A new job has no programs.
with_table(#{links := Links, queue := Queue} = Made) -> Made#{table => tessera_cluster_programs:new(Queue, tuple_size(Links))}.

start_job(#state{options = #{name := Name, ranks := Ranks} = Options} = State) ->
    Span = tessera_events:started(cluster_start, #{cluster => self(), name => Name, ranks => Ranks}),
    {ok, Job} = tessera_cluster_job:start_link(self(), Options),
    State#state{job = Job, connections = none, infos = [], span = Span}.

launched(Launcher, #state{launchers = Launchers} = State) ->
    State#state{launchers = Launchers#{monitor(process, Launcher) => Launcher}}.

init(State) -> {ok, State}.

handle_call(connections, From, #state{connections = Connections, waiting = Waiting} = State) ->
    case is_connected(Connections) of
        true -> {reply, {ok, Connections}, State};
        false -> {noreply, State#state{waiting = [From | Waiting]}}
    end;
handle_call({why, Queue}, From, State) -> why_ended(Queue, From, State);
handle_call(options, _, #state{options = Options} = State) -> {reply, Options, State};
handle_call(info, _, State) -> {reply, info_of(State), State};
handle_call(_, _, State) -> {reply, error, State}.

handle_cast(_, State) -> {noreply, State}.

%% When a link has ended, so has its job; this process may hear of it later than the link's callers.
is_connected(none) -> false;
is_connected(#{links := Links}) -> lists:all(fun erlang:is_process_alive/1, tuple_to_list(Links)).

handle_info({up, Job, Made, Infos}, #state{job = Job, waiting = Waiting} = State) ->
    Connections = with_table(Made),
    _ = [gen_server:reply(From, {ok, Connections}) || From <- Waiting],
    ok = tessera_events:ended(State#state.span, #{}, #{}),
    {noreply, (started(State))#state{connections = Connections, infos = Infos, waiting = [], pause = ?PAUSE, span = none}};
handle_info(give_up, #state{first = true, job = none, failed = Error} = State) ->
    refuse(Error, State),
    {stop, normal, State#state{first = false}};
handle_info({timeout, Timer, start}, #state{pausing = Timer} = State) -> again(State#state{pausing = none});
handle_info({launcher, Job, Launcher}, #state{job = Job} = State) -> {noreply, launched(Launcher, State)};
handle_info({'EXIT', Job, Reason}, #state{job = Job} = State) ->
    Error = tessera_cluster_error:lost(Reason),
    ok = tessera_events:failed(State#state.span, error, Error),
    job_ended(Error, State#state{span = none});
handle_info({'EXIT', Parent, Reason}, #state{parent = Parent} = State) -> {stop, Reason, State};
handle_info({'DOWN', Monitor, process, _, _}, #state{launchers = Launchers} = State) when is_map_key(Monitor, Launchers) ->
    again(State#state{launchers = maps:remove(Monitor, Launchers)});
handle_info(_, State) -> {noreply, State}.

%% @private The printed state is without the user's variables.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(#{state := #state{options = Options} = State} = Status) -> Status#{state := State#state{options = tessera_cluster_options:printed(Options)}};
format_status(Status) -> Status.

terminate(_, #state{first = First} = State) ->
    end_job(State),
    _ = [refuse(tessera_cluster_error:new(unavailable, "the cluster was stopped before all ranks were ready", []), State) || First],
    ok.

end_job(#state{job = none} = State) -> wait_for_launchers(State);
end_job(#state{job = Job, waiting = Waiting} = State) ->
    _ = [gen_server:reply(From, {error, tessera_cluster_error:lost(stopped)}) || From <- Waiting],
    ok = tessera_cluster_job:stop(Job),
    receive {'EXIT', Job, _} -> ok
    after ?STOP -> exit(Job, kill)
    end,
    wait_for_launchers(State).

%% Processes of the system end before the cluster does, or is started again.
wait_for_launchers(#state{launchers = Launchers}) -> wait(maps:keys(Launchers)).

wait([]) -> ok;
wait([Monitor | Rest]) ->
    receive {'DOWN', Monitor, process, _, _} -> wait(Rest)
    after ?STOP -> wait(Rest)
    end.

info_of(#state{connections = none} = State) -> info_of(starting, {}, [], State);
info_of(#state{connections = #{links := Links}, infos = Infos} = State) -> info_of(up, Links, Infos, State).

info_of(Name, Links, Infos, #state{options = #{tls := Tls}, failed = Failed, restarts = Restarts}) ->
    Last = case Failed of
               none -> none;
               #{code := Code, message := Message} -> {Code, Message}
           end,
    #{state => Name, tls => Tls, links => Links, infos => Infos, restarts => length(Restarts), last_error => Last}.

%% The caller has seen the end of a job, but this process has not yet.
why_ended(Queue, From, #state{connections = #{queue := Queue}, asking = Asking} = State) ->
    {noreply, State#state{asking = [{Queue, From} | Asking]}};
why_ended(Queue, _, #state{ended = Ended} = State) ->
    {reply, case lists:keyfind(Queue, 1, Ended) of {_, Error} -> Error; false -> unknown end, State}.

note_end(_, #state{connections = none} = State) -> State;
note_end(Error, #state{connections = #{table := Table, queue := Queue}, ended = Ended, asking = Asking} = State) ->
    true = ets:delete(Table),
    _ = [gen_server:reply(From, Error) || {_, From} <- Asking],
    State#state{ended = lists:sublist([{Queue, Error} | Ended], ?ENDED), asking = []}.

%% Callers that wait for connections also get the error of a failed start.
job_ended(Error, #state{first = true, waiting = Waiting} = State) ->
    _ = [gen_server:reply(From, {error, Error}) || From <- Waiting],
    _ = erlang:send_after(?STOP, self(), give_up),
    again(State#state{job = none, failed = Error, waiting = []});
job_ended(#{message := Message} = Error, #state{options = #{restarts := {Most, Seconds}}, restarts = Restarts} = State) ->
    logger:error("tessera_cluster: ~ts", [Message]),
    Noted = note_end(Error, State),
    Now = erlang:monotonic_time(second),
    Recent = [Now | [Time || Time <- Restarts, Time > Now - Seconds]],
    Down = Noted#state{job = none, connections = none, infos = [], failed = Error},
    case length(Recent) > Most of
        true ->
            _ = [gen_server:reply(From, {error, Error}) || From <- State#state.waiting],
            {stop, {shutdown, {lost, Error}}, Down#state{waiting = []}};
        false ->
            ok = tessera_events:execute([tessera, cluster_restart], #{restarts => length(Recent)},
                                        #{cluster => self(), name => maps:get(name, State#state.options), error => Error}),
            again(pause(State#state.connections, Down#state{restarts = Recent}))
    end.

%% What keeps ranks from starting, such as a network that is down, often outlives several starts: without pauses they would use up
%% all restarts at once.
pause(none, #state{pause = Pause} = State) ->
    State#state{pause = min(2 * Pause, ?LONGEST_PAUSE), pausing = erlang:start_timer(Pause, self(), start)};
pause(_, State) -> State.

%% When all processes of the last start have ended.
again(#state{job = none, first = true, launchers = Launchers} = State) when Launchers =:= #{} -> handle_info(give_up, State);
again(#state{job = none, launchers = Launchers, pausing = none} = State) when Launchers =:= #{} -> {noreply, start_job(State)};
again(State) -> {noreply, State}.

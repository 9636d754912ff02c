%% @private A job: one start of a cluster's ranks. It owns the key file, the listening socket, the launcher (mpirun's process), a link
%% for each rank, and the queue. It tells its manager, the process of the cluster, when all ranks are ready, and ends with an error when one is lost.
-module(tessera_cluster_job).
-behaviour(gen_server).
-export([start_link/2, stop/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

%% Connections that may wait to be accepted, in addition to one for each rank.
-define(BACKLOG, 64).
%% Milliseconds that ranks have to end by themselves when the cluster is stopped.
-define(LEAVE, 2000).
%% Milliseconds that the job waits, when a process of the launcher has ended, for a link to name the lost rank; and in a start, when a rank has ended,
%% for its output.
-define(NAMED, 1000).
%% Milliseconds that a start waits, when a connection has ended, for the launcher to name the rank that ended first, or mpirun's
%% error.
-define(CAUSE, 5000).
%% Milliseconds for the links' last messages when mpirun has ended.
-define(SAID, 200).
%% The least time from the join of all ranks until the first one is ready, as a multiple of the time to join: they start MPI together, and all of them
%% share the CPUs of their hosts.
-define(LONGER, 4).
%% The longest time until the launcher has said that it launched or why not, as a multiple of the allowed time.
-define(LAUNCH, 4).
%% Ranks that an error lists.
-define(LISTED, 8).
%% This plus the signal is the status of a process that a signal has ended.
-define(SIGNAL, 128).

-record(state, {manager  :: pid(),
                options  :: map(),
                credentials = none :: none | tessera_cluster_tls:credentials(),
                mark      :: tessera_cluster_leftovers:mark(),
                folder    :: file:filename_all(),         % of the key
                progress  :: reference(),                 % the timer that runs while the start makes none,
                allowed   :: pos_integer(),               % its milliseconds
                began     :: integer(),                   % when the job did, in milliseconds
                symptom = none :: none | map(),           % the first error of a start that may come of another one
                causing = none :: none | reference(),     % the timer until its cause is named
                gone = []  :: [pid()],                    % links whose connections have ended in the start
                first = none :: none | {non_neg_integer(), binary(), non_neg_integer()},   % the first rank that ended in it, its host and status
                failed = none :: none | {non_neg_integer(), map()},   % the first rank that could not start, and its error
                killed = none :: none | map(),            % why the start ended, where a signal has ended mpirun
                listen = none :: none | tessera_cluster_socket:socket(),
                acceptor = none :: none | pid(),
                launcher = none :: none | pid(),
                queue = none :: none | pid(),
                ranks = #{} :: #{non_neg_integer() => {pid(), map()}},
                infos = #{} :: #{non_neg_integer() => map()},
                tree      :: tessera_cluster_tree:tree(),
                listening = #{} :: #{non_neg_integer() => {inet:ip_address(), inet:port_number()}},   % leaders
                strangers = 0 :: non_neg_integer(),
                stopping = false :: boolean()}).

%% Starts the ranks. Sends {launcher, Job, Pid} to the manager when they were started, and {up, Job, Connections, Infos} when all are ready.
%% Ends with {shutdown, stopped}, or with {shutdown, {lost, Error}}.
-spec start_link(pid(), map()) -> {ok, pid()}.
start_link(Manager, Options) -> gen_server:start_link(?MODULE, {Manager, Options}, []).

%% Asks the ranks to end; the job ends after them.
-spec stop(pid()) -> ok.
stop(Job) -> gen_server:cast(Job, stop).

%% The launcher is started first: it removes the job's traces after every kind of end.
init({Manager, #{start_timeout := Timeout, ranks := Ranks, tree := Tree} = Options}) ->
    process_flag(trap_exit, true),
    ok = tessera_cluster_process:label(?MODULE),
    Mark = tessera_cluster_leftovers:mark(),
    Folder = tessera_cluster_leftovers:folder(directory(Options), Mark),
    Launcher = tessera_cluster_launcher:start_link(self(), Mark, [Folder, own_folder(Mark), shared_folder(Mark)]),
    Manager ! {launcher, self(), Launcher},
    {ok, #state{manager = Manager, options = Options, mark = Mark, folder = Folder, launcher = Launcher,
                progress = erlang:start_timer(Timeout, self(), start_over), allowed = Timeout, began = erlang:monotonic_time(millisecond), tree = tessera_cluster_tree:new(Ranks, Tree)}, {continue, start}}.

%% For the files of mpirun on this host, and for memory that its ranks share.
own_folder(Mark) -> tessera_cluster_leftovers:mpi_folder(os:getenv("TMPDIR", "/tmp"), Mark).

shared_folder(Mark) -> tessera_cluster_leftovers:folder(tessera_cluster_leftovers:shared_memory(), Mark).

handle_continue(start, #state{options = Options} = State) ->
    ok = tessera_cluster_leftovers:sweep([directory(Options), os:getenv("TMPDIR", "/tmp"), tessera_cluster_leftovers:shared_memory()]),
    Steps = [fun load_modules/1, fun check_tls/1, fun make_key/1, fun make_folders/1, fun listen/1, fun launch/1],
    case lists:foldl(fun(Step, {ok, Now}) -> Step(Now); (_, Error) -> Error end, {ok, State}, Steps) of
        {ok, Started} -> {noreply, Started};
        {error, Error, Reached} -> {stop, {shutdown, {lost, Error}}, Reached}
    end.

handle_call(_, _, State) -> {reply, error, State}.

handle_cast(stop, State) -> leave(State);
handle_cast(_, State) -> {noreply, State}.

handle_info({hello, Link, Hello}, State) -> joined(Link, Hello, State);
handle_info({ready, Link, Rank, Info}, State) -> ready(Link, Rank, Info, State);
handle_info({listening, _, Rank, Where}, State) -> {noreply, listening(Rank, Where, State)};
handle_info({lost_below, _, Rank, Text}, #state{ranks = Ranks, queue = Queue, stopping = false} = State) when is_map_key(Rank, Ranks) ->
    #{Rank := {_, #{host := Host}}} = Ranks,
    Error = new("rank ~b on ~ts: ~ts", [Rank, Host, Text]),
    ok = tell_lost(Rank, Error, State),
    case Queue of
        none -> {noreply, symptom(Error, ?CAUSE, State)};
        _ -> {stop, {shutdown, {lost, Error}}, State}
    end;
handle_info({stranger, _, Peer, Why}, #state{strangers = Count} = State) ->
    %% Others must not be able to fill the log.
    _ = [logger:warning("tessera_cluster: refused a connection from ~0p: ~ts", [Peer, Why]) || Count < 100],
    {noreply, State#state{strangers = Count + 1}};
handle_info({gone, Link}, #state{queue = none, gone = Gone} = State) -> {noreply, State#state{gone = [Link | Gone]}};
handle_info({lost, Link, Rank, Error}, #state{ranks = Ranks, gone = Gone} = State) ->
    case {State#state.stopping, Ranks, lists:member(Link, Gone)} of
        {true, _, _} -> {noreply, State};
        {false, #{Rank := {Link, _}}, Left} ->
            ok = tell_lost(Rank, Error, State),
            case Left of
                true -> {noreply, symptom(Error, ?CAUSE, State)};
                false -> rank_failed(Rank, Error, State)
            end;
        {false, _, _} -> {noreply, State}
    end;
handle_info({launched, Launcher}, #state{launcher = Launcher} = State) -> {noreply, progress(State)};
handle_info({not_launched, Launcher, Error}, #state{launcher = Launcher, stopping = false} = State) -> {stop, {shutdown, {lost, Error}}, State};
handle_info({rank_ended, Launcher, Rank, _, _}, #state{launcher = Launcher, queue = none, stopping = false, failed = {Rank, Error}, killed = none} = State) ->
    {stop, {shutdown, {lost, Error}}, State};   % mpirun has told it, so mpirun was not killed before
handle_info({rank_ended, Launcher, Rank, Host, Status}, #state{launcher = Launcher, queue = none, stopping = false} = State) ->
    {noreply, first_ended({Rank, Host, Status}, State)};
handle_info({ended, Launcher, Source, Status, Printed}, #state{launcher = Launcher, stopping = false} = State) ->
    {noreply, launcher_ended(Source, Status, Printed, State)};
handle_info({timeout, Timer, cause}, #state{causing = Timer, stopping = false} = State) -> {stop, {shutdown, {lost, cause(State)}}, State};
handle_info({give_up, Error}, #state{stopping = false} = State) -> {stop, {shutdown, {lost, Error}}, State};
handle_info({'EXIT', Launcher, normal}, #state{launcher = Launcher} = State) -> {stop, {shutdown, stopped}, State};
handle_info({'EXIT', Launcher, Reason}, #state{launcher = Launcher, mark = Mark, folder = Folder} = State) ->
    %% it was killed, and its work is left
    ok = tessera_cluster_leftovers:kill(Mark),
    ok = tessera_cluster_leftovers:remove([Folder, own_folder(Mark), shared_folder(Mark)]),
    {stop, {shutdown, {lost, new("~0p, which starts the ranks, ended: ~0tP", [Launcher, Reason, 20])}}, State};
handle_info({'EXIT', Queue, Reason}, #state{queue = Queue, stopping = false} = State) when is_pid(Queue) -> queue_ended(Reason, State);
handle_info({'EXIT', Acceptor, Reason}, #state{acceptor = Acceptor, stopping = false} = State) when Reason =/= normal ->
    {stop, {shutdown, {lost, new("the process that accepts connections ended: ~0tP", [Reason, 20])}}, State};
handle_info({'EXIT', Manager, _}, #state{manager = Manager, stopping = false} = State) -> leave(State);
handle_info({'DOWN', _, process, Link, Reason}, #state{stopping = false} = State) -> link_down(Link, Reason, State);
handle_info({timeout, Timer, start_over}, #state{progress = Timer, queue = none, causing = none, stopping = false} = State) ->
    {stop, {shutdown, {lost, late(State)}}, State};
handle_info(_, State) -> {noreply, State}.

%% Ranks that were there end by themselves when their connections are closed. A start is ended at once.
terminate(_, #state{launcher = Launcher, queue = Queue} = State) ->
    _ = close(State),
    tessera_cluster_launcher:finish(Launcher, case Queue of none -> now; _ -> 0 end).

%% The printed state is without the key and without the user's environment.
format_status(#{state := #state{options = Options} = State} = Status) ->
    Status#{state := State#state{credentials = none, options = tessera_cluster_options:printed(Options)}};
format_status(Status) -> Status.

new(Format, Values) -> tessera_cluster_error:new(unavailable, Format, Values).

%% ---- the start

%% Replies are decoded without making atoms. Loading the ranks' modules makes the atoms that replies contain.
load_modules(State) ->
    _ = [code:ensure_loaded(Module) || Module <- [tessera_rank, tessera_rank_work]],
    {ok, State}.

check_tls(#state{options = #{tls := false}} = State) -> {ok, State};
check_tls(State) ->
    case tessera_cluster_tls:available() of
        ok -> {ok, State};
        {error, Needed} ->
            {error, new("encrypted connections need ~ts; set the option tls to false where the network is trusted", [Needed]), State}
    end.

%% Only the user may read the folder, before the key is written into it.
make_key(#state{options = #{tls := Tls}, folder = Folder} = State) ->
    {Credentials, Files} = tessera_cluster_tls:new(key_file(Folder), Tls),
    Steps = [fun() -> make_directory(filename:dirname(Folder)) end | folder_steps(Folder)] ++ lists:append([write_steps(File, Contents) || {File, Contents} <- Files]),
    case all(Steps) of
        ok -> {ok, State#state{credentials = Credentials}};
        {error, Reason} -> {error, new("no file for the key in ~ts: ~ts", [Folder, file:format_error(Reason)]), State}
    end.

%% A new one is the user's alone: by default it is also the folder of the disk cache, which uses no folder that others may enter.
make_directory(Directory) ->
    case filelib:is_dir(Directory) of
        true -> ok;
        false -> all([fun() -> filelib:ensure_dir(Directory) end | folder_steps(Directory)])
    end.

all(Steps) -> lists:foldl(fun(Step, ok) -> Step(); (_, Error) -> Error end, ok, Steps).

folder_steps(Folder) -> [fun() -> file:make_dir(Folder) end, fun() -> file:change_mode(Folder, 8#700) end].

make_folders(#state{options = #{mpirun := none}} = State) -> {ok, State};
make_folders(#state{mark = Mark} = State) ->
    Own = own_folder(Mark),
    _ = all(folder_steps(shared_folder(Mark))),   % without it Open MPI chooses another place
    case all(folder_steps(Own)) of
        ok -> {ok, State};
        {error, Reason} -> {error, new("no folder for mpirun's files: ~ts (TMPDIR): ~ts", [Own, file:format_error(Reason)]), State}
    end.

write_steps(File, Contents) ->
    [fun() -> file:write_file(File, <<>>, [exclusive]) end, fun() -> file:change_mode(File, 8#600) end,
     fun() -> file:write_file(File, Contents) end].

key_file(Folder) -> filename:join(Folder, "key").

%% Ranks on other hosts read the key file, too: then it is in a folder that hosts usually share, below the home directory.
directory(#{directory := undefined, hosts := []}) -> os:getenv("TMPDIR", "/tmp");
directory(#{directory := undefined}) -> filename:basedir(user_cache, "tessera");
directory(#{directory := Given}) -> Given.

listen(#state{options = #{listen := Address, ranks := Ranks} = Options, credentials = Credentials} = State) ->
    case tessera_cluster_socket:listen(Address, Ranks + ?BACKLOG) of
        {ok, Listen} ->
            Job = self(),
            Connection = #{credentials => Credentials, config => maps:with([deadline, max_message], Options)},
            Serve = fun(Socket) -> {ok, Link} = tessera_cluster_link:start(Job, Connection#{socket => Socket, door => self()}), Link end,
            {ok, State#state{listen = Listen, acceptor = tessera_cluster_door:start_link(Listen, Ranks, Serve, fun tessera_cluster_link:evict/1)}};
        {error, Reason} -> {error, new("no socket on ~s: ~ts", [inet:ntoa(Address), inet:format_error(Reason)]), State}
    end.

launch(#state{options = #{listen := Address} = Options, listen = Listen, folder = Folder, mark = Mark, launcher = Launcher} = State) ->
    Shared = shared_folder(Mark),
    Place = #{address => Address, port => tessera_cluster_socket:port(Listen), key_file => key_file(Folder), mark => Mark, own => own_folder(Mark),
              shared => case filelib:is_dir(Shared) of true -> Shared; false -> none end},
    ok = tessera_cluster_launcher:launch(Launcher, Options, Place),
    {ok, launching(State)}.

%% ---- ranks

%% The process has proved that it knows the key. So a wrong rank, size or version is an error of the start, not of a stranger.
joined(Link, #{rank := Rank, host := Host} = Hello, #state{ranks = Ranks} = State) ->
    _ = monitor(process, Link),
    case refusal(Hello, State) of
        none -> {noreply, admit(Rank, progress(State#state{ranks = Ranks#{Rank => {Link, Hello}}}))};
        Why -> {stop, {shutdown, {lost, new("a process on ~ts says that it is rank ~p: ~ts", [Host, Rank, Why])}}, State}
    end.

%% Configures the rank, if it is connected to the driver or its leader listens already; else listening/3 does later.
admit(Rank, #state{tree = Tree, listening = Listening, ranks = Ranks} = State) ->
    #{Rank := {Link, _}} = Ranks,
    case tessera_cluster_tree:parent(Rank, Tree) of
        driver -> ok = tessera_cluster_link:accepted(Link, config(Rank, State), none);
        Parent when is_map_key(Parent, Listening) ->
            {Address, Port} = maps:get(Parent, Listening),
            Where = #{parent => {Parent, Address, Port}},
            ok = tessera_cluster_link:accepted(Link, maps:merge(config(Rank, State), Where), root(Parent, State));
        _ -> ok
    end,
    State.

%% The link of the topmost leader above a rank: this leader is connected to the driver.
root(Rank, #state{tree = Tree, ranks = Ranks} = State) ->
    case tessera_cluster_tree:parent(Rank, Tree) of
        driver -> element(1, maps:get(Rank, Ranks));
        Parent -> root(Parent, State)
    end.

listening(Rank, Where, #state{tree = Tree, ranks = Ranks, listening = Listening} = State) ->
    Below = [Child || Child <- tessera_cluster_tree:children(Rank, Tree), is_map_key(Child, Ranks)],
    lists:foldl(fun admit/2, progress(State#state{listening = Listening#{Rank => Where}}), Below).

config(Rank, #state{options = #{ranks := Count, tree := Tree} = Options}) ->
    (maps:with([deadline, max_message, devices, threads, memory_limit], Options))#{tree => {Count, Tree}, rank => Rank}.

refusal(#{rank := Rank}, #state{options = #{ranks := Count}}) when Rank < 0; Rank >= Count ->
    io_lib:format("the cluster has ~b", [Count]);
refusal(#{rank := Rank} = Hello, #state{options = #{ranks := Count}, ranks = Ranks}) ->
    case {Ranks, Hello} of
        {#{Rank := {_, #{host := Other}}}, _} -> io_lib:format("a process on ~ts is that rank", [Other]);
        {_, #{size := Count, version := Version, cpu := _, build := _}} ->
            case tessera_rank:version() of
                Version -> other_cpu(Hello, maps:values(Ranks));
                Own -> io_lib:format("its version is ~0p, and this node's is ~0p", [Version, Own])
            end;
        {_, #{size := Size}} -> io_lib:format("it belongs to ~0p ranks and not to ~b: is its library of MPI that of mpirun?", [Size, Count]);
        _ -> "its greeting is incomplete"
    end.

%% The architecture must be the same. Instruction sets may differ: over MPI the ranks agree on the least.
other_cpu(#{cpu := Cpu} = Hello, Joined) ->
    case [{Host, Other} || {_, #{host := Host, cpu := Other}} <- Joined, Other =/= Cpu] of
        [] -> other_build(Hello, Joined);
        [{Host, Other} | _] ->
            io_lib:format("its CPU is ~ts, and that of a rank on ~ts is ~ts: programs would not give the same on both", [Cpu, Host, Other])
    end.

%% The build of the C library must be the same: another build may read, compile and compute differently. This node's library has another build
%% in any case where this node has another architecture.
other_build(#{cpu := Cpu, build := Build} = Hello, Joined) ->
    Own = [{"this node's", tessera_nif:rank_build()} || element(1, tessera_nif:rank_isa()) =:= Cpu],
    case [Pair || {_, Other} = Pair <- Own ++ [{["that of a rank on ", Host], Other} || {_, #{host := Host, build := Other}} <- Joined], Other =/= Build] of
        [] -> other_mpi(Hello, Joined);
        [{Whose, Other} | _] -> io_lib:format("the build of its C library is ~ts, and ~ts is ~ts: build Tessera once for all hosts", [Build, Whose, Other])
    end.

%% All ranks start MPI, or none: started ones would wait for the others.
other_mpi(#{mpi := Has, host := Host}, Joined) ->
    case [Other || {_, #{host := Other, mpi := Its}} <- Joined, Its =/= Has] of
        [] -> none;
        [Other | _] ->
            {With, Without} = case Has of true -> {Host, Other}; false -> {Other, Host} end,
            io_lib:format("~ts on ~ts has no library for MPI (priv/tessera_mpi.so), and a rank on ~ts has it: build Tessera once for all hosts",
                          [case Has of true -> "a rank"; false -> "its Tessera" end, Without, With])
    end;
other_mpi(_, _) -> none.

ready(Link, Rank, Info, #state{ranks = Ranks, infos = Infos, options = #{ranks := Count}} = State) ->
    case Ranks of
        #{Rank := {Link, _}} when map_size(Infos) + 1 =:= Count -> {noreply, all_ready(State#state{infos = Infos#{Rank => Info}})};
        #{Rank := {Link, _}} -> {noreply, progress(State#state{infos = Infos#{Rank => Info}})}
    end.

%% Closes the listening socket and removes the key file: no other process can join from now on.
all_ready(#state{manager = Manager, ranks = Ranks, infos = Infos, options = #{ranks := Count, max_message := Limit}} = State) ->
    Links = [element(1, maps:get(Rank, Ranks)) || Rank <- lists:seq(0, Count - 1)],
    Hellos = [(maps:merge(element(2, maps:get(Rank, Ranks)), maps:get(Rank, Infos)))#{parent => tessera_cluster_tree:parent(Rank, State#state.tree)}
              || Rank <- lists:seq(0, Count - 1)],
    {ok, Queue} = tessera_cluster_queue:start_link(list_to_tuple(Links)),
    Places = [place(Link, Queue, Hello, State) || {Link, Hello} <- lists:zip(Links, Hellos)],
    Closed = close(State),
    Manager ! {up, self(), #{links => list_to_tuple(Links), queue => Queue, places => list_to_tuple(Places), compilers => compilers(Links, Hellos),
                                 limit => Limit}, Hellos},
    Closed#state{queue = Queue}.

%% The links of the first rank of each host, which compiles programs first: the others find the code in the host's disk cache.
compilers(Links, Hellos) ->
    maps:values(maps:from_list(lists:reverse([{Host, Link} || {Link, #{host := Host}} <- lists:zip(Links, Hellos)]))).

place(Link, Queue, #{rank := Rank, host := Host}, #state{manager = Manager, options = #{name := Name} = Options}) ->
    Place = tessera_cluster_proxy:place({Manager, Name, Queue, Link, Host}, Rank, Queue, Options),
    ok = tessera_cluster_link:placed(Link, Place),
    Place.

close(#state{listen = none} = State) -> State;
close(#state{listen = Listen, folder = Folder} = State) ->
    _ = tessera_cluster_socket:close(Listen),
    ok = tessera_cluster_tls:remove(key_file(Folder)),
    _ = file:del_dir(Folder),
    State#state{listen = none}.

%% ---- the end

leave(#state{ranks = Ranks, launcher = Launcher} = State) ->
    _ = [tessera_cluster_link:leave(Link) || {Link, _} <- maps:values(Ranks)],
    ok = tessera_cluster_launcher:finish(Launcher, case State#state.queue of none -> now; _ -> ?LEAVE end),
    {noreply, State#state{stopping = true}}.

link_down(Link, Reason, #state{ranks = Ranks} = State) ->
    case {[Rank || {Rank, {Joined, _}} <- maps:to_list(Ranks), Joined =:= Link], Reason} of
        {[], _} -> {noreply, State};
        _ when State#state.symptom =/= none -> {noreply, State};
        {_, {shutdown, {lost, _}}} -> {stop, Reason, State};
        {[Rank | _], _} -> {stop, {shutdown, {lost, new("the connection to rank ~b ended: ~0tP", [Rank, Reason, 20])}}, State}
    end.

queue_ended({shutdown, {lost, _}} = Reason, State) -> {stop, Reason, State};
queue_ended(Reason, State) -> {stop, {shutdown, {lost, new("the process that sends runs ended: ~0tP", [Reason, 20])}}, State}.

%% ---- why a start has failed

%% Something was heard of the start: its time begins anew.
progress(#state{allowed = Before} = State) ->
    Allowed = allowed(State, Before),
    timed(Allowed, State#state{allowed = Allowed}).

%% The launcher ends its own programs in less than the allowed time, and names the one that hung. On a loaded host its message may come late:
%% the start waits longer for it.
launching(#state{allowed = Allowed} = State) -> timed(?LAUNCH * Allowed, State).

timed(Milliseconds, #state{progress = Timer} = State) ->
    _ = erlang:cancel_timer(Timer),
    State#state{progress = erlang:start_timer(Milliseconds, self(), start_over)}.

%% The last rank has joined, or one is ready.
allowed(#state{ranks = Ranks, infos = Infos, began = Began, options = #{ranks := Count}}, Before) when map_size(Ranks) =:= Count, map_size(Infos) =:= 0 ->
    max(Before, ?LONGER * (erlang:monotonic_time(millisecond) - Began));
allowed(_, Before) -> Before.

%% A connection or a rank has ended. mpirun ends the others then, so the first message need not name the cause. The error is reported when the cause
%% is known, or after `Milliseconds'.
symptom(Error, Milliseconds, #state{symptom = none} = State) -> named_within(Milliseconds, State#state{symptom = Error});
symptom(_, _, State) -> State.

named_within(Milliseconds, #state{causing = Timer} = State) ->
    case Timer =:= none orelse erlang:read_timer(Timer) of
        Left when is_integer(Left), Left =< Milliseconds -> State;
        false -> State;   % it has run out
        _ ->
            _ = [erlang:cancel_timer(Timer) || Timer =/= none],
            State#state{causing = erlang:start_timer(Milliseconds, self(), cause)}
    end.

first_ended({Rank, Host, Status} = First, #state{first = none} = State) ->
    Error = new("rank ~b on ~ts ended with status ~b", [Rank, Host, Status]),
    named_within(?NAMED, symptom(Error, ?NAMED, State#state{first = First}));
first_ended(_, State) -> State.

tell_lost(Rank, Error, #state{manager = Manager, ranks = Ranks}) ->
    #{Rank := {_, #{host := Host}}} = Ranks,
    tessera_events:execute([tessera, rank_lost], #{count => 1}, #{cluster => Manager, rank => Rank, host => Host, error => Error}).

%% If mpirun was killed in a start, MPI also fails on a rank, and the message about mpirun comes a little later.
rank_failed(Rank, Error, #state{queue = none, options = #{mpirun := Mpirun}, failed = none} = State) when Mpirun =/= none ->
    {noreply, named_within(?NAMED, symptom(Error, ?NAMED, State#state{failed = {Rank, Error}}))};
rank_failed(_, _, #state{failed = {_, _}} = State) -> {noreply, State};
rank_failed(_, Error, State) -> {stop, {shutdown, {lost, Error}}, State}.

%% When all ranks have joined, a link names the lost one; its message may come a little later.
launcher_ended(Source, Status, Printed, #state{queue = none} = State) ->
    case Source =:= launcher andalso State#state.first =:= none andalso State#state.killed =:= none andalso by_signal(Status, Printed) of
        true -> named_within(?SAID, State#state{killed = ended(launcher, Status, Printed, State)});
        false -> start_ended(Source, Status, Printed, State)
    end;
launcher_ended(Source, Status, Printed, State) ->
    _ = erlang:send_after(?NAMED, self(), {give_up, ended(Source, Status, Printed, State)}),
    State.

%% mpirun also has a status above ?SIGNAL for a rank that a signal has ended, and for daemons that it lost, and prints a
%% message then.
by_signal(Status, Printed) -> Status > ?SIGNAL andalso not tessera_cluster_output:has_message(Printed).

start_ended(Source, Status, Printed, State) ->
    Known = case Source of
                launcher -> State;
                Rank -> first_ended({Rank, own_host(), Status}, State)
            end,
    case Known#state.first of
        none when Known#state.failed =/= none -> named_within(?SAID, Known);
        none -> named_within(?SAID, Known#state{symptom = with_symptom(ended(Source, Status, Printed, State), Printed, State)});
        _ -> named_within(?SAID, Known)
    end.

%% A launcher that has printed nothing does not say why.
with_symptom(Error, Printed, #state{symptom = #{} = Seen}) ->
    case iolist_size(tessera_cluster_output:of_launcher(Printed)) of
        0 -> both(Error, Seen);
        _ -> Error
    end;
with_symptom(Error, _, _) -> Error.

both(#{message := First} = Error, #{message := Second}) -> Error#{message := <<First/binary, "; ", Second/binary>>}.

own_host() ->
    {ok, Host} = inet:gethostname(),
    list_to_binary(Host).

ended(launcher, Status, Printed, #state{options = #{mpirun := Mpirun}} = State) ->
    How = case by_signal(Status, Printed) of
              true -> io_lib:format("was ended by signal ~b", [Status - ?SIGNAL]);
              false -> io_lib:format("ended with status ~b", [Status])
          end,
    new("~ts ~ts~s~ts~ts", [Mpirun, How, phase(State), tessera_cluster_output:of_launcher(Printed), no_rank_from(State)]);
ended(Rank, Status, Printed, State) ->
    new("rank ~b on ~ts ended with status ~b~s~ts", [Rank, own_host(), Status, phase(State), tessera_cluster_output:of_rank(Rank, Printed)]).

%% The killed mpirun, with a rank's message; else the error of a rank that could not start; else the rank that ended first; else mpirun's error; else
%% the connection that ended first.
cause(#state{killed = #{} = Killed, failed = {_, Error}}) -> both(Killed, Error);
cause(#state{killed = #{} = Killed, symptom = #{} = Error}) -> both(Killed, Error);
cause(#state{killed = #{} = Killed}) -> Killed;
cause(#state{failed = {_, Error}}) -> Error;
cause(#state{first = {Rank, Host, Status}, launcher = Launcher} = State) ->
    Printed = tessera_cluster_launcher:printed(Launcher),
    new("rank ~b on ~ts ended with status ~b~s~ts", [Rank, Host, Status, phase(State), tessera_cluster_output:of_rank(Rank, Printed)]);
cause(#state{symptom = Error}) -> Error.

phase(#state{queue = none}) -> " before all ranks were ready";
phase(_) -> "".

late(#state{ranks = Ranks, infos = Infos, strangers = Strangers, launcher = Launcher, allowed = Timeout, options = #{ranks := Count}} = State) ->
    new("~b of ~b ranks were ready, and nothing came of the others for ~b ms; ~b had joined~ts; ~b connections were refused~ts",
        [map_size(Infos), Count, Timeout, map_size(Ranks), missing(State), Strangers,
         tessera_cluster_output:of_launcher(tessera_cluster_launcher:printed(Launcher))]).

%% The late ranks, and the hosts whose ranks have all not joined.
missing(#state{ranks = Ranks, infos = Infos, options = #{ranks := Count}} = State) ->
    {What, There} = case map_size(Ranks) of
                        Count -> {"not ready: ", Infos};
                        _ -> {"missing: ", Ranks}
                    end,
    Late = [Rank || Rank <- lists:seq(0, Count - 1), not is_map_key(Rank, There)],
    Listed = [io_lib:format("rank ~b", [Rank]) || Rank <- lists:sublist(Late, ?LISTED)] ++ ["..." || length(Late) > ?LISTED],
    ["; ", What, lists:join(", ", Listed), no_rank_from(State)].

no_rank_from(#state{queue = none, ranks = Ranks, options = #{hosts := Hosts}}) ->
    case silent_hosts(Hosts, [Host || {_, #{host := Host}} <- maps:values(Ranks)]) of
        [] -> "";
        Silent -> ["; no rank has joined from ", lists:join(", ", Silent)]
    end;
no_rank_from(_) -> "".

%% A host may have another name for itself than here: then the missing hosts are not known.
silent_hosts(Given, Joined) ->
    Names = [{short(case Host of {Name, _} -> Name; Name -> Name end), case Host of {Name, _} -> Name; Name -> Name end} || Host <- Given],
    There = lists:usort([short(Host) || Host <- Joined]),
    case There -- [Short || {Short, _} <- Names] of
        [] -> [Name || {Short, Name} <- Names, not lists:member(Short, There)];
        _ -> []
    end.

short(Name) -> hd(string:split(string:lowercase(unicode:characters_to_list(Name)), ".")).

%% @private The launcher: the process that owns the job's processes and folders on this host, outside of this VM. These are the system processes that
%% it started (mpirun, or the ranks themselves), their own child processes, and the folders of the start. It starts before the first of them, and ends
%% after the last, for every kind of end of the job.
-module(tessera_cluster_launcher).
-export([start_link/3, launch/3, printed/1, finish/2, output/2]).

%% Milliseconds from the end of the patience of finish/2 to SIGTERM, from SIGTERM to SIGKILL, and from there until what cannot be ended is left alone.
-define(GRACE, 1500).
-define(TERM, 2000).
-define(KILL, 2000).
%% Parts of the output of a short program that are kept.
-define(CHUNKS, 16).
%% Milliseconds for the answer to printed/1.
-define(ANSWER, 2000).

%% Folders are removed at the end.
-spec start_link(pid(), tessera_cluster_leftovers:mark(), [file:filename_all()]) -> pid().
start_link(Job, Mark, Folders) ->
    Start = fun() ->
                    process_flag(trap_exit, true),
                    loop(#{job => Job, mark => Mark, folders => Folders, ports => #{}, printed => tessera_cluster_output:new(), log => tessera_cluster_log:start(),
                           continued => #{}, timer => none,
                           at => infinity, over => false})
            end,
    tessera_cluster_process:start_link(?MODULE, Start).

%% Starts the ranks. The job gets {launched, Launcher}, or {not_launched, Launcher, Error}. Whenever one of the processes has ended, it gets {ended, Launcher, Source, Status, Output};
%% and {rank_ended, Launcher, Rank, Host, Status} for each rank that ended with an error. When the job has called finish/2 or has ended, and all
%% processes have ended, so does the launcher.
-spec launch(pid(), map(), tessera_cluster_command:place()) -> ok.
launch(Launcher, Options, Place) ->
    Launcher ! {launch, Options, Place},
    ok.

%% The output of the processes.
-spec printed(pid()) -> tessera_cluster_output:output().
printed(Launcher) ->
    Monitor = monitor(process, Launcher),
    Launcher ! {printed, self(), Monitor},
    receive
        {Monitor, Output} -> true = demonitor(Monitor, [flush]), Output;
        {'DOWN', Monitor, process, _, _} -> tessera_cluster_output:new()
    after ?ANSWER ->
            true = demonitor(Monitor, [flush]),
            tessera_cluster_output:new()
    end.

%% Ends the processes: they have Patience milliseconds, and a grace, to end by themselves; or are ended now.
-spec finish(pid(), non_neg_integer() | now) -> ok.
finish(Launcher, Patience) ->
    Launcher ! {finish, Patience},
    ok.

loop(#{ports := Ports, over := true} = State) when Ports =:= #{} -> clean(State);
loop(#{job := Job, ports := Ports} = State) ->
    receive
        {launch, Options, Place} -> loop(launched(Options, Place, State));
        {Port, {data, {End, Line}}} when is_map_key(Port, Ports) -> loop(said(Port, maps:get(Port, Ports), {End, Line}, State));
        {Port, {exit_status, Status}} when is_map_key(Port, Ports) -> loop(ended(Port, Status, State));
        {printed, From, Ref} ->
            From ! {Ref, maps:get(printed, State)},
            loop(State);
        {'EXIT', Job, _} -> loop(armed(0, State));
        {finish, Patience} -> loop(armed(Patience, State));
        {timeout, Timer, Signal} when Timer =:= map_get(timer, State) -> loop(signalled(Signal, State));
        {system, From, Request} -> tessera_cluster_process:system({From, Request}, Job, State, {fun loop/1, fun(Whole) -> Whole end});
        _ -> loop(State)
    end.

%% A later request to stop does not prolong the time that the first one has set.
armed(now, State) -> armed_at(erlang:monotonic_time(millisecond), State);
armed(Patience, State) -> armed_at(erlang:monotonic_time(millisecond) + Patience + ?GRACE, State).

armed_at(At, #{at := Before} = State) when At >= Before -> State;
armed_at(At, State) -> timed(term, State#{over := true, at := At}).

timed(Signal, #{at := At, timer := Timer} = State) ->
    _ = [erlang:cancel_timer(Timer) || Timer =/= none],
    State#{timer := erlang:start_timer(At, self(), Signal, [{abs, true}])}.

later(Milliseconds, Signal, #{at := At} = State) -> timed(Signal, State#{at := At + Milliseconds}).

%% mpirun ends its own processes; other processes are found by the mark.
signalled(term, #{ports := Ports} = State) ->
    ok = tessera_cluster_leftovers:signal("TERM", [Pid || {_, Pid} <- maps:values(Ports), Pid =/= none]),
    later(?TERM, kill, State);
signalled(kill, #{ports := Ports, mark := Mark} = State) ->
    ok = tessera_cluster_leftovers:signal("KILL", lists:usort([Pid || {_, Pid} <- maps:values(Ports), Pid =/= none] ++ tessera_cluster_leftovers:processes(Mark))),
    later(?KILL, close, State);
signalled(close, #{ports := Ports} = State) ->
    _ = [catch port_close(Port) || Port <- maps:keys(Ports)],   % others have their output open
    State#{ports := #{}}.

%% A child of a process that has ended may still run, such as ssh without mpirun.
clean(#{mark := Mark, folders := Folders}) ->
    ok = tessera_cluster_leftovers:kill(Mark),
    tessera_cluster_leftovers:remove(Folders).

%% ---- the processes

launched(_, _, #{over := true} = State) -> State;
launched(Options, Place, #{job := Job} = State) ->
    case tessera_cluster_command:commands(Options, Place) of
        {ok, Commands} -> opened(Commands, State);
        stopped -> State;
        {error, Error} ->
            Job ! {not_launched, self(), Error},
            State
    end.

opened([], #{job := Job} = State) ->
    Job ! {launched, self()},
    State;
opened([{Source, Path, _, _} = Command | Rest], #{job := Job, ports := Ports} = State) ->
    try open(Command, [{line, 1000}]) of
        {Port, Pid} -> opened(Rest, State#{ports := Ports#{Port => {Source, Pid}}})
    catch error:Reason ->   % not with the environment, which is the user's
            Job ! {not_launched, self(), tessera_cluster_error:new(unavailable, "~ts does not start: ~0tp", [Path, Reason])},
            State
    end.

open({_, Path, Args, Env}, Options) ->
    Arguments = [unicode:characters_to_binary(Arg) || Arg <- Args],
    Port = open_port({spawn_executable, Path}, [{args, Arguments}, {env, Env}, exit_status, stderr_to_stdout, binary, hide | Options]),
    {Port, os_pid(Port)}.

os_pid(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} -> integer_to_list(Pid);
        undefined -> none
    end.

%% A line of mpirun may come from a rank. The rest of an overlong line has no tag.
said(Port, {launcher, _}, {End, Line}, #{continued := Continued} = State) ->
    Parts = tessera_cluster_output:parse(maps:get(Port, Continued, launcher), Line),
    {Last, _} = lists:last(Parts),
    lists:foldl(fun({Source, Text}, Now) -> noted(Source, Text, Now) end,
                State#{continued := case End of eol -> maps:remove(Port, Continued); noeol -> Continued#{Port => Last} end}, Parts);
said(_, {Rank, _}, {_, Line}, State) -> noted(Rank, Line, State).

noted(Source, Line, State) ->
    case Source =:= launcher andalso tessera_cluster_output:is_harmless(Line) of
        true -> State;
        false -> kept(Source, Line, State)
    end.

kept(Source, Line, #{job := Job, printed := Printed, log := Log} = State) ->
    _ = case tessera_cluster_output:ended_rank(Line) of
            {Host, Status} when is_integer(Source) -> Job ! {rank_ended, self(), Source, Host, Status};
            _ when is_integer(Source) -> tessera_cluster_log:line(Log, Source, without_rank(Source, Line));
            _ -> tessera_cluster_log:line(Log, "mpirun", Line)
        end,
    State#{printed := tessera_cluster_output:add(Source, Line, Printed)}.

%% What Tessera prints on a rank has its number already.
without_rank(Rank, Line) ->
    Own = <<"rank ", (integer_to_binary(Rank))/binary, ": ">>,
    case string:prefix(Line, Own) of
        nomatch -> Line;
        Rest -> Rest
    end.

ended(Port, Status, #{job := Job, ports := Ports, printed := Printed} = State) ->
    {{Source, _}, Rest} = maps:take(Port, Ports),
    Job ! {ended, self(), Source, Status, Printed},
    State#{ports := Rest}.

%% ---- short programs

%% Runs a program to its end, in a launcher, and returns its output. Ends it, and its child processes, after `Timeout' milliseconds, or when the
%% launcher has to end.
-spec output(tessera_cluster_command:command(), pos_integer()) -> {ok, binary()} | {error, iodata()} | stopped.
output({_, Path, _, Env} = Command, Timeout) ->
    try open(Command, []) of
        {Port, Pid} ->
            Timer = erlang:start_timer(Timeout, self(), output),
            Result = read(Port, Timer, []),
            _ = erlang:cancel_timer(Timer),
            _ = [ended_early(Port, Pid, Env) || not is_tuple(Result) orelse element(1, Result) =:= error],
            case Result of
                {error, Said} -> {error, io_lib:format("did not end in ~b ms~ts", [Timeout, [": " || Said =/= <<>>] ++ [Said]])};
                _ -> Result
            end
    catch error:Reason -> {error, io_lib:format("does not start (~ts): ~0tp", [Path, Reason])}
    end.

%% The messages that end the launcher are for its loop.
read(Port, Timer, Said) ->
    receive
        {Port, {data, Bytes}} when length(Said) < ?CHUNKS -> read(Port, Timer, [Bytes | Said]);
        {Port, {data, _}} -> read(Port, Timer, Said);
        {Port, {exit_status, _}} -> {ok, iolist_to_binary(lists:reverse(Said))};
        {timeout, Timer, output} -> {error, iolist_to_binary(lists:reverse(Said))};
        {finish, _} = Message -> self() ! Message, stopped;
        {'EXIT', Other, _} = Message when is_pid(Other) -> self() ! Message, stopped
    end.

ended_early(Port, Pid, Env) ->
    {Variable, _} = tessera_cluster_leftovers:variable(""),
    Marked = [Own || {Name, Mark} <- Env, Name =:= Variable, Own <- tessera_cluster_leftovers:processes(Mark)],
    ok = tessera_cluster_leftovers:signal("KILL", lists:usort([Pid || Pid =/= none] ++ Marked)),
    _ = catch port_close(Port),
    receive {Port, {exit_status, _}} -> ok after 0 -> ok end.

%% @private The launcher: a process that owns the operating system's processes that a job started, mpirun or the ranks themselves. When the job
%% ends, it ends them by signals to their pids, and ends itself after the last of them.
-module(tessera_cluster_launcher).
-export([start_link/2, output/3, finish/2]).

%% Milliseconds from the end of the patience of finish/2 to SIGTERM, and from SIGTERM to SIGKILL.
-define(GRACE, 1500).
-define(TERM, 3000).
%% How many of the last lines of output an error shows.
-define(LINES, 20).

%% Starts the commands. Whenever one of the processes has ended, {ended, Launcher, Status, Lines} is sent to the job. The launcher exits when all
%% have ended.
-spec start_link(pid(), [tessera_cluster_command:command()]) -> pid().
start_link(Job, Commands) ->
    spawn_link(fun() ->
                       process_flag(trap_exit, true),
                       Ports = maps:from_list([opened(Command) || Command <- Commands]),
                       loop(#{job => Job, ports => Ports, lines => [], timer => none})
               end).

%% Ends the processes: they have Patience milliseconds, and a grace, to end by themselves; then they are killed.
-spec finish(pid(), non_neg_integer()) -> ok.
finish(Launcher, Patience) ->
    Launcher ! {finish, Patience},
    ok.

opened({Path, Args, Env}) ->
    Arguments = [unicode:characters_to_binary(Arg) || Arg <- Args],
    Port = open_port({spawn_executable, Path},
                     [{args, Arguments}, {env, Env}, {line, 1000}, exit_status, stderr_to_stdout, binary, hide]),
    {Port, os_pid(Port)}.

os_pid(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} -> Pid;
        undefined -> none
    end.

loop(#{ports := Ports}) when Ports =:= #{} -> ok;
loop(#{job := Job, ports := Ports, lines := Lines} = State) ->
    receive
        {Port, {data, {_, Line}}} when is_map_key(Port, Ports) ->
            logger:info("tessera_cluster: ~ts", [Line]),
            loop(State#{lines := lists:sublist([Line | Lines], ?LINES)});
        {Port, {exit_status, Status}} when is_map_key(Port, Ports) ->
            Job ! {ended, self(), Status, lists:reverse(Lines)},
            loop(State#{ports := maps:remove(Port, Ports)});
        {'EXIT', Job, _} -> loop(armed(0, State));
        {finish, Patience} -> loop(armed(Patience, State));
        term ->
            signal("TERM", Ports),
            _ = erlang:send_after(?TERM, self(), kill),
            loop(State);
        kill ->
            signal("KILL", Ports),
            loop(State);
        _ -> loop(State)
    end.

%% A later request to stop does not prolong the time that the first one has set.
armed(Patience, #{timer := none} = State) -> State#{timer := erlang:send_after(Patience + ?GRACE, self(), term)};
armed(_, State) -> State.

signal(Name, Ports) ->
    case [integer_to_list(Pid) || Pid <- maps:values(Ports), is_integer(Pid)] of
        [] -> ok;
        Pids ->
            _ = output("/bin/sh", ["-c", ["kill -", Name, " ", lists:join(" ", Pids), " 2>&1 || true"]], []),
            ok
    end.

%% Runs a program, and returns what it prints. After 5 seconds without output it is left alone.
-spec output(file:filename_all(), [unicode:chardata()], [{string(), string() | false}]) -> unicode:chardata().
output(Path, Args, Env) ->
    Arguments = [unicode:characters_to_binary(Arg) || Arg <- Args],
    Port = open_port({spawn_executable, Path}, [{args, Arguments}, {env, Env}, exit_status, stderr_to_stdout, binary, hide]),
    printed(Port, []).

printed(Port, Chunks) ->
    receive
        {Port, {data, Chunk}} -> printed(Port, [Chunk | Chunks]);
        {Port, {exit_status, _}} -> iolist_to_binary(lists:reverse(Chunks))
    after 5000 ->
            true = port_close(Port),
            <<"nothing in 5 s">>
    end.

%% @private Processes of the system and folders that a start of ranks has made on a host, outside of this VM. All have the start's *mark*: processes in their
%% environment, folders in their names. So the launcher finds and ends all of the processes, even if the parent of a process was killed, and removes the folders. A
%% mark contains the process that has made the mark, and a folder may contain files with other processes: the next start removes folders whose processes have
%% ended on this host.
-module(tessera_cluster_leftovers).
-include_lib("kernel/include/file.hrl").
-export([mark/0, variable/1, folder/2, mpi_folder/2, shared_memory/0, processes/1, signal/2, kill/1, remove/1, sweep/1, enter/1, unname/1, name/1, left/1]).
-export_type([mark/0]).

-type mark() :: string().

-define(VARIABLE, "TESSERA_JOB").
-define(PREFIX, "tessera-").
-define(SHARED_MEMORY, "/dev/shm").
%% Milliseconds for processes that were killed to be gone, and between two looks.
-define(GONE, 5000).
-define(LOOK, 20).

%% A new mark of this process. It has no part that anyone could guess.
-spec mark() -> mark().
mark() -> lists:flatten(lists:join(".", [binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(8))) | owner()])).

%% A process of the system: a number for the host and its processes' numbers, the process's number, and when it began.
owner() ->
    {ok, Host} = inet:gethostname(),
    Namespace = case file:read_link("/proc/self/ns/pid") of {ok, Link} -> Link; {error, _} -> "" end,
    Pid = os:getpid(),
    [integer_to_list(erlang:phash2({Host, Namespace}, 1 bsl 32), 16), Pid, began(Pid)].

%% In ticks of the system's clock since it began; 0 for a process that is not there.
began(Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/stat") of
        {ok, Text} -> binary_to_list(lists:nth(20, binary:split(lists:last(binary:split(Text, <<") ">>, [global])), <<" ">>, [global])));
        {error, _} -> "0"
    end.

%% The variable of the environment that the processes of a start have.
-spec variable(mark()) -> {string(), string()}.
variable(Mark) -> {?VARIABLE, Mark}.

%% The folder of a start in another one.
-spec folder(file:filename_all(), mark()) -> file:filename_all().
folder(Folder, Mark) -> filename:join(Folder, ?PREFIX ++ Mark).

%% The folder of a start for the files of mpirun.
-spec mpi_folder(file:filename_all(), mark()) -> file:filename_all().
mpi_folder(Folder, Mark) -> filename:join(Folder, ?PREFIX ++ Mark ++ ".mpi").

-spec shared_memory() -> file:filename_all().
shared_memory() -> ?SHARED_MEMORY.

%% ---- processes

%% The processes of this host with the mark, without this VM.
-spec processes(mark()) -> [string()].
processes(Mark) ->
    Variable = list_to_binary([?VARIABLE, "=", Mark, 0]),
    Own = os:getpid(),
    {ok, Names} = file:list_dir("/proc"),
    [Pid || [First | _] = Pid <- Names, First >= $1, First =< $9, Pid =/= Own, has(Pid, Variable)].

has(Pid, Variable) ->
    case file:read_file("/proc/" ++ Pid ++ "/environ") of
        {ok, Environment} ->
            case binary:match(Environment, Variable) of
                {0, _} -> true;
                {At, _} -> binary:at(Environment, At - 1) =:= 0;
                nomatch -> false
            end;
        {error, _} -> false   % it has ended, or is another user's
    end.

-spec signal(string(), [string()]) -> ok.
signal(_, []) -> ok;
signal(Name, Pids) ->
    _ = os:cmd(lists:flatten(["kill -", Name, " ", lists:join(" ", Pids), " 2>/dev/null"])),
    ok.

%% Kills all processes with the mark, and processes that these start meanwhile. Waits until all of them have ended: the end of a large process takes
%% some time. Gives up after a while: the kernel may keep a process that waits for a disk.
-spec kill(mark()) -> ok.
kill(Mark) -> kill(Mark, erlang:monotonic_time(millisecond) + ?GONE).

kill(Mark, Until) ->
    case processes(Mark) of
        [] -> ok;
        Left ->
            ok = signal("KILL", Left),
            case erlang:monotonic_time(millisecond) < Until of
                true ->
                    timer:sleep(?LOOK),
                    kill(Mark, Until);
                false -> ok
            end
    end.

%% ---- folders

-spec remove([file:filename_all()]) -> ok.
remove(Folders) ->
    _ = [file:del_dir_r(Folder) || Folder <- Folders],
    ok.

%% Removes the folders that starts of this user have left in these folders, and ends their processes.
-spec sweep([file:filename_all()]) -> ok.
sweep(Folders) ->
    Left = [{Mark, filename:join(Folder, Name)} || Folder <- lists:usort(Folders), {ok, Names} <- [file:list_dir(Folder)],
                                                   ?PREFIX ++ Rest = Name <- Names, Mark <- mark_in(Rest), is_left(filename:join(Folder, Name), Mark)],
    _ = [kill(Mark) || Mark <- lists:usort([Mark || {Mark, _} <- Left])],
    remove([Folder || {_, Folder} <- Left]).

%% Other programs may also have such names.
mark_in(Name) ->
    case string:lexemes(Name, ".") of
        [Random, Where, Pid, Began | Rest] when Rest =:= []; Rest =:= ["mpi"] ->
            [lists:flatten(lists:join(".", [Random, Where, Pid, Began])) || is_number_text(Pid), is_number_text(Began)];
        _ -> []
    end.

%% All of its owners that were processes of this host have ended, and it had such owners.
is_left(Folder, Mark) ->
    [_ | Owner] = string:lexemes(Mark, "."),
    is_own(Folder) andalso have_ended([Owner | entered(Folder)], hd(owner())).

have_ended(Owners, Here) ->
    case [Owner || [Where, _, _] = Owner <- Owners, Where =:= Here] of
        [] -> false;
        Own -> not lists:any(fun([_, Pid, Began]) -> began(Pid) =:= Began end, Own)
    end.

is_number_text(Text) -> Text =/= "" andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Text).

is_own(Folder) ->
    case {file:read_link_info(Folder), file:read_file_info("/proc/self")} of
        {{ok, #file_info{type = directory, uid = User}}, {ok, #file_info{uid = User}}} -> true;
        _ -> false
    end.

%% ---- ranks: the ranks of a host share a folder of memory

-define(OWNER, "owner.").

entered(Folder) ->
    case file:list_dir(Folder) of
        {ok, Names} -> [Owner || ?OWNER ++ Rest <- Names, [_, Pid, _] = Owner <- [string:lexemes(Rest, ".")], is_number_text(Pid)];
        {error, _} -> []
    end.

own_file(Folder) -> filename:join(Folder, ?OWNER ++ lists:flatten(lists:join(".", owner()))).

%% The calling VM uses the folder of shared memory of this mark. It makes a missing folder, as on other hosts than the launcher's.
-spec enter(mark()) -> ok | {error, iodata()}.
enter(Mark) ->
    ok = sweep([?SHARED_MEMORY]),
    Folder = folder(?SHARED_MEMORY, Mark),
    _ = file:make_dir(Folder),
    _ = file:change_mode(Folder, 8#700),
    case is_own(Folder) andalso file:write_file(own_file(Folder), <<>>) of
        ok -> ok;
        false -> {error, io_lib:format("~ts is not a folder of this user", [Folder])};
        {error, Reason} -> {error, io_lib:format("no file in ~ts: ~ts", [Folder, file:format_error(Reason)])}
    end.

%% Removes the folder with all names in the folder, when all ranks have opened the shared memory. The kernel frees the memory with the last rank, even where
%% all processes of the host are killed at once.
-spec unname(mark()) -> ok.
unname(Mark) ->
    Folder = folder(?SHARED_MEMORY, Mark),
    _ = [file:delete(filename:join(Folder, Name)) || {ok, Names} <- [file:list_dir(Folder)], Name <- Names],
    _ = file:del_dir(Folder),   % others do the same
    ok.

%% Makes empty files with the names of the shared memory that the calling VM has mapped. Open MPI removes the file of its own memory in MPI_Finalize, and
%% prints an error if there is no such file.
-spec name(mark()) -> ok.
name(Mark) ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    Folder = folder(?SHARED_MEMORY, Mark),
    case re:run(Maps, [Folder, "/([^/\\s]+)"], [global, {capture, all_but_first, list}]) of
        {match, Names} ->
            _ = enter(Mark),
            lists:foreach(fun([Name]) -> file:write_file(filename:join(Folder, Name), <<>>, [append]) end, lists:usort(Names));
        nomatch -> ok
    end.

%% The calling VM leaves the folder; the last one removes it.
-spec left(mark()) -> ok.
left(Mark) ->
    Folder = folder(?SHARED_MEMORY, Mark),
    _ = file:delete(own_file(Folder)),
    case have_ended(entered(Folder), hd(owner())) orelse entered(Folder) =:= [] of
        true -> remove([Folder]);
        false -> ok
    end.

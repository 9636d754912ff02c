%% @private The commands that start ranks: one of mpirun, for Open MPI 4.1 and 5, or one for each rank. Other users of a host can read command lines, so
%% a command has only the path of the key file.
-module(tessera_cluster_command).
-include_lib("kernel/include/file.hrl").
-export([commands/2]).
-export_type([command/0, place/0]).

%% The rank, unless mpirun starts all ranks; the program, its arguments, and its environment.
-type command() :: {tessera_cluster_output:source(), file:filename_all(), [unicode:chardata()], [{string(), string() | false}]}.

%% Where ranks connect to, and where their key is; the mark of their start, and its folders for mpirun and for memory that ranks share.
-type place() :: #{address := inet:ip_address(), port := inet:port_number(), key_file := file:filename_all(),
                   mark := tessera_cluster_leftovers:mark(), own := file:filename_all(), shared := file:filename_all() | none}.

%% The path of mpirun and Open MPI's major version, which differ in names of parameters.
version(#{mpirun := Name, start_timeout := Timeout}, Place) ->
    case os:find_executable(text(Name)) of
        false ->
            {error, new("there is no ~ts here: install Open MPI 4.1 or 5.0 (Debian's package openmpi-bin), or set the option mpirun", [Name])};
        Path ->
            %% the start itself is given up later
            case tessera_cluster_launcher:output({launcher, Path, ["--version"], environment(#{env => []}, Place)}, Timeout - Timeout div 4) of
                {ok, Output} -> known(Path, Output);
                {error, What} -> {error, new("~ts --version ~ts", [Path, What])};
                stopped -> stopped
            end
    end.

known(Path, Output) ->
    case re:run(Output, "\\(Open MPI\\) ([0-9]+)\\.([0-9]+)", [{capture, all_but_first, list}]) of
        {match, ["4", "1"]} -> {ok, {Path, 4}};
        {match, ["5", _]} -> {ok, {Path, 5}};
        _ -> {error, new("~ts is not Open MPI 4.1 or 5.0: it says ~ts", [Path, hd(string:split(Output, "\n"))])}
    end.

new(Format, Values) -> tessera_cluster_error:new(failed_precondition, Format, Values).

%% The commands that start the ranks of a cluster, from checked options.
-spec commands(map(), place()) -> {ok, [command()]} | {error, map()} | stopped.
commands(#{mpirun := none, ranks := Ranks} = Options, Place) ->
    [Erl | Args] = rank(Options, Place),
    {ok, [{Rank, Erl, Args, [{"TESSERA_RANK", integer_to_list(Rank)}, {"TESSERA_RANKS", integer_to_list(Ranks)}
                             | environment(Options, Place)]} || Rank <- lists:seq(0, Ranks - 1)]};
commands(Options, Place) ->
    case version(Options, Place) of
        {ok, {Path, Major}} ->
            Rank = ["/bin/sh", "-c", tessera_cluster_output:report_end(), "sh" | rank(Options, Place)],
            {ok, [{launcher, Path, mpirun(Major, Options, Place) ++ Rank, root() ++ quiet() ++ files(Major, Place) ++ environment(Options, Place)}]};
        Other -> Other
    end.

mpirun(Major, #{ranks := Ranks, hosts := Hosts, mca := Mca, env := Env}, #{mark := Mark} = Place) ->
    {Variable, _} = tessera_cluster_leftovers:variable(Mark),
    ["-np", integer_to_list(Ranks), "--bind-to", "none", "--oversubscribe"] ++ tagged(Major)
        ++ mca([{"mpi_yield_when_idle", "0"}, {"pml", "ob1"}, {"btl", ["self,", shared_memory(Major), between(Hosts)]} | memory(Major, Place)] ++ Mca)
        ++ hosts(Hosts)
        ++ lists:append([["-x", Name] || Name <- [Variable | [text(Name) || {Name, _} <- Env]]]).

%% Lines of ranks have a tag with the rank.
tagged(4) -> ["--tag-output"];
tagged(5) -> ["--output", "tag"].

%% Files of memory that ranks share are in one folder, which can be removed when all were killed.
memory(_, #{shared := none}) -> [];
memory(Major, #{shared := Folder}) -> [{["btl_", shared_memory(Major), "_backing_directory"], Folder}, {"osc_sm_backing_directory", Folder}].

%% So are other files of mpirun.
files(4, #{own := Folder}) -> [{"OMPI_MCA_orte_local_tmpdir_base", text(Folder)}];
files(5, #{own := Folder}) -> [{"PRTE_MCA_prte_local_tmpdir_base", text(Folder)}].

shared_memory(4) -> "vader";
shared_memory(5) -> "sm".

%% Open MPI's transport over TCP listens on all addresses, so it is left out where all ranks are on one host.
between([]) -> "";
between(_) -> ",tcp".

%% Later pairs replace earlier ones of the same name: the user's come after the defaults.
mca(Pairs) ->
    Last = maps:from_list([{text(Name), text(Value)} || {Name, Value} <- Pairs]),
    lists:append([["--mca", Name, Value] || {Name, Value} <- maps:to_list(Last)]).

hosts([]) -> [];
hosts(Hosts) -> ["--host", lists:join(",", [host(Host) || Host <- Hosts])].

host({Name, Slots}) -> [text(Name), $:, integer_to_list(Slots)];
host(Name) -> text(Name).

%% A small VM: no distribution, and as many schedulers as threads compute. Its schedulers do not busy-wait. Where ranks share CPUs,
%% busy-waiting takes time from computing ranks, and many calls of sched_yield() keep Linux 6.18 from running other processes for
%% seconds.
rank(#{threads := Threads, start_timeout := Timeout}, #{address := Address, port := Port, key_file := KeyFile}) ->
    Schedulers = integer_to_list(Threads) ++ ":" ++ integer_to_list(Threads),
    [erl(), "+S", Schedulers, "+SDcpu", Schedulers, "+SDio", "2", "+A", "1", "+sbwt", "none", "+sbwtdcpu", "none",
     "+sbwtdio", "none", "-noshell", "-noinput", "-boot", "no_dot_erlang"]
        ++ lists:append([["-pa", Path] || Path <- paths()])
        ++ ["-run", "tessera_rank", "main", inet:ntoa(Address), integer_to_list(Port), text(KeyFile), integer_to_list(Timeout)].

erl() ->
    Own = filename:join([code:root_dir(), "bin", "erl"]),
    case filelib:is_regular(Own) of
        true -> Own;
        false -> filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin", "erl"])
    end.

%% The folders of code of this node, without OTP's own. The current folder of a rank may be another one.
paths() ->
    Otp = code:lib_dir(),
    [filename:absname(Path) || Path <- lists:reverse(code:get_path()), Path =/= ".", not lists:prefix(Otp, Path)].

%% Ranks do not inherit the flags of this node's VM, and get the variables of the option env.
environment(#{env := Env}, #{mark := Mark}) ->
    [tessera_cluster_leftovers:variable(Mark) | [{Name, false} || Name <- ["ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS"]]] ++ [{text(Name), text(Value)} || {Name, Value} <- Env].

%% Open MPI does not start as root without these variables. The owner of /proc/self is the user of this process.
root() ->
    case file:read_file_info("/proc/self") of
        {ok, #file_info{uid = 0}} -> [{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}];
        _ -> []
    end.

%% Without /sys, as in some containers, hwloc says on each start that it is not there: an error that quotes mpirun would begin with it.
quiet() -> [{"HWLOC_HIDE_ERRORS", "2"} || os:getenv("HWLOC_HIDE_ERRORS") =:= false].

text(Chars) -> unicode:characters_to_list(Chars).

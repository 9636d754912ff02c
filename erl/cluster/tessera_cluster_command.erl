%% @private The commands that start ranks: one of mpirun, for Open MPI 4.1 and 5, or one for each rank. Other users of a host can read command lines, so
%% a command has only the path of the key file.
-module(tessera_cluster_command).
-export([version/1, commands/2]).
-export_type([command/0]).

-type command() :: {file:filename_all(), [unicode:chardata()], [{string(), string() | false}]}.

%% The path of mpirun and Open MPI's major version, which differ in names of parameters.
-spec version(file:name_all()) -> {ok, {file:filename_all(), 4 | 5}} | {error, map()}.
version(Name) ->
    case os:find_executable(text(Name)) of
        false ->
            {error, new("there is no ~ts here: install Open MPI 4.1 or 5.0 (Debian's package openmpi-bin), or set the option mpirun", [Name])};
        Path -> known(Path, tessera_cluster_launcher:output(Path, ["--version"], environment(#{env => []})))
    end.

known(Path, Output) ->
    case re:run(Output, "\\(Open MPI\\) ([0-9]+)\\.([0-9]+)", [{capture, all_but_first, list}]) of
        {match, ["4", "1"]} -> {ok, {Path, 4}};
        {match, ["5", _]} -> {ok, {Path, 5}};
        _ -> {error, new("~ts is not Open MPI 4.1 or 5.0: it says ~ts", [Path, hd(string:split(Output, "\n"))])}
    end.

new(Format, Values) -> tessera_cluster_error:new(failed_precondition, Format, Values).

%% The commands that start the ranks of a cluster with these checked options. Ranks connect to the address and port and read the key file.
-spec commands(map(), {inet:ip_address(), inet:port_number(), file:filename_all()}) -> {ok, [command()]} | {error, map()}.
commands(#{mpirun := none, ranks := Ranks} = Options, Where) ->
    [Erl | Args] = rank(Options, Where),
    {ok, [{Erl, Args, [{"TESSERA_RANK", integer_to_list(Rank)}, {"TESSERA_RANKS", integer_to_list(Ranks)}
                       | environment(Options)]} || Rank <- lists:seq(0, Ranks - 1)]};
commands(#{mpirun := Mpirun} = Options, Where) ->
    case version(Mpirun) of
        {ok, {Path, Major}} -> {ok, [{Path, mpirun(Major, Options) ++ rank(Options, Where), root() ++ environment(Options)}]};
        {error, _} = Error -> Error
    end.

mpirun(Major, #{ranks := Ranks, hosts := Hosts, mca := Mca, env := Env}) ->
    ["-np", integer_to_list(Ranks), "--bind-to", "none", "--oversubscribe"]
        ++ mca([{"mpi_yield_when_idle", "0"}, {"pml", "ob1"}, {"btl", ["self,", shared_memory(Major), between(Hosts)]} | Mca])
        ++ hosts(Hosts)
        ++ lists:append([["-x", text(Name)] || {Name, _} <- Env]).

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

%% A small VM: no distribution, and as many schedulers as threads compute. Its schedulers do not busy-wait: where ranks share CPUs that
%% takes time from those that compute, and many calls of sched_yield() keep Linux 6.18 from running other processes for seconds.
rank(#{threads := Threads, start_timeout := Timeout}, {Address, Port, KeyFile}) ->
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
environment(#{env := Env}) ->
    [{Name, false} || Name <- ["ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS"]] ++ [{text(Name), text(Value)} || {Name, Value} <- Env].

%% Open MPI does not start as root without these variables. The owner of /proc/self is the user of this process.
root() ->
    case file:read_file_info("/proc/self") of
        {ok, Info} when element(11, Info) =:= 0 -> [{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}];
        _ -> []
    end.

text(Chars) -> unicode:characters_to_list(Chars).

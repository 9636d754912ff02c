%% @private How a VM joins a cluster as one of its ranks (tessera_cluster_joined): its options, the start of MPI, and the ranks' facts
%% about each other.
-module(tessera_cluster_join).
-include("tessera.hrl").
-export([join/1]).

-define(DEFAULTS, #{devices => 1, threads => undefined, memory_limit => undefined, deadline => 10000, start_timeout => 60000,
                    call_timeout => 600000, name => undefined}).
%% Variables of launchers of MPI, with the number of ranks where they have it: mpirun of Open MPI; srun; others by PMIx or PMI.
-define(LAUNCHERS, ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "PMIX_RANK"]).
%% Bytes of a rank's facts about itself.
-define(RECORD, 384).

-spec join(map() | [{atom(), term()}]) -> {ok, pid()} | {error, {atom(), binary()}}.
join(Options) ->
    case checked(Options) of
        {ok, Checked} ->
            ok = tessera_platform:register([tessera_cluster_member, tessera_cluster_driver]),
            case {tessera_cluster_joined:is_joined(), tessera_cluster_names:check(maps:get(name, Checked))} of
                {false, ok} -> installed(Checked);
                {false, Taken} -> plain(Taken);
                {true, _} -> plain(joined_before())
            end;
        Error -> plain(Error)
    end.

installed(Checked) ->
    case tessera_cluster_options:check_crypto() of
        ok -> once(Checked);
        Error -> Error
    end.

plain({error, #{code := Code, message := Text}}) -> {error, {Code, Text}};
plain(Result) -> Result.

%% ---- options

checked(Options) when is_list(Options) ->
    try maps:from_list(Options) of
        Map -> checked(Map)
    catch error:badarg -> invalid("expected a map or a list of pairs, got ~0tP", [Options, 20])
    end;
checked(Options) when is_map(Options) ->
    All = maps:merge(?DEFAULTS, Options),
    case [{Name, Value, expected(Name)} || {Name, Value} <- lists:sort(maps:to_list(All)), not is_right(expected(Name), Value)] of
        [] -> {ok, All};
        [{Name, _, unknown} | _] -> invalid("unknown option ~0tp, the options are ~0tp", [Name, lists:sort(maps:keys(?DEFAULTS))]);
        [{Name, Value, {What, _}} | _] -> invalid("the option ~s: expected ~s, got ~0tP", [Name, What, Value, 20])
    end;
checked(Other) -> invalid("expected a map or a list of pairs, got ~0tP", [Other, 20]).

invalid(Format, Values) -> {error, tessera_cluster_error:new(invalid_argument, "tessera_cluster: " ++ Format, Values)}.

is_right(unknown, _) -> false;
is_right({_, Is}, Value) -> Is(Value).

expected(Name) when Name =:= devices; Name =:= threads; Name =:= memory_limit; Name =:= deadline; Name =:= start_timeout; Name =:= name ->
    tessera_cluster_options:expected(Name);
expected(call_timeout) -> {"milliseconds from 100 on, or infinity", fun(N) -> N =:= infinity orelse is_integer(N) andalso N >= 100 andalso N =< 1 bsl 40 end};
expected(_) -> unknown.

%% ---- the start

%% MPI can be started once in a process. The lock is the server's name in the supervisor.
once(Options) ->
    case application:ensure_all_started(tessera) of
        {ok, _} -> opened(Options);
        {error, Reason} -> plain(failed("the application does not start: ~0tP", [Reason, 20]))
    end.

failed(Format, Values) -> {error, tessera_cluster_error:new(failed_precondition, Format, Values)}.

opened(#{devices := Devices, memory_limit := Limit} = Options) ->
    case start_mpi(launcher(), Options) of
        {ok, Mpi} ->
            case tessera_client:open(host, #{device_count => Devices}) of
                ok ->
                    _ = [tessera:set_memory_limit(Limit) || Limit =/= undefined],
                    started(maps:merge(Options, Mpi));
                Error -> plain(Error)
            end;
        Error -> plain(Error)
    end.

%% The variable of a launcher that is set, with its value.
launcher() ->
    case [{Name, Value} || Name <- ?LAUNCHERS, Value <- [os:getenv(Name)], Value =/= false] of
        [First | _] -> First;
        [] -> none
    end.

%% Without a launcher this VM is the only rank, and MPI is not needed.
start_mpi(none, _) -> {ok, #{rank => 0, ranks => 1, mpi => none}};
start_mpi(Launcher, Options) ->
    Path = filename:join(filename:dirname(tessera_library:path()), "tessera_mpi.so"),
    case filelib:is_regular(Path) of
        true -> wait_for_mpi(Launcher, Path, Options);
        false -> failed("this process was started as a rank of MPI (~s=~s), but ~ts is not there: Tessera was built without Open MPI "
                        "(./setup --mpi && make)", [element(1, Launcher), element(2, Launcher), Path])
    end.

%% All ranks start MPI together.
wait_for_mpi(Launcher, Path, #{deadline := Deadline, start_timeout := Timeout}) ->
    {Opener, Monitor} = spawn_monitor(fun() -> exit({opened, tessera_nif:rank_open(unicode:characters_to_binary(Path), Deadline,
                                                                                  tessera_rank:version_number())}) end),
    receive
        {'DOWN', Monitor, process, Opener, {opened, {error, Error}}} -> {error, Error};
        {'DOWN', Monitor, process, Opener, {opened, {Rank, Ranks, Version}}} ->
            launched(Launcher, #{rank => Rank, ranks => Ranks, mpi => Version});
        {'DOWN', Monitor, process, Opener, Reason} -> failed("MPI does not start: ~0tP", [Reason, 20])
    after min(Timeout, 16#FFFFFFFF) ->
            {error, tessera_cluster_error:new(unavailable, "not all ranks have joined within ~b ms", [Timeout])}
    end.

%% A launcher that MPI does not understand leaves each process alone, as the only rank of a job of its own.
launched({Name, Value}, #{ranks := 1, mpi := Version}) when Name =/= "PMIX_RANK", Value =/= "1" ->
    failed("~s is ~s, but to ~ts this is the only process: start it by the mpirun of that library, or by srun --mpi=pmix", [Name, Value, Version]);
launched(_, Mpi) -> {ok, Mpi}.

started(#{name := Name} = Options) ->
    Spec = #{id => tessera_cluster_joined, start => {tessera_cluster_joined, start_link, [Options]}, restart => temporary, shutdown => infinity},
    case supervisor:start_child(tessera_sup, Spec) of
        {ok, Server} -> introduced(Server, Options);
        {error, {already_started, _}} when Name =/= undefined -> plain(failed("the name ~0tp is taken", [Name]));
        {error, _} -> plain(joined_before())
    end.

joined_before() -> failed("this node has joined a cluster before", []).

%% ---- the ranks' facts about each other

introduced(Server, #{ranks := 1} = Options) -> known(Server, [own(Options)], Options);
introduced(Server, #{ranks := Ranks} = Options) ->
    ok = tessera_cluster_joined:introduce(Server, [], 1),
    Mesh = #{shape => {Ranks}},
    Gather = tessera:shard_map(fun(X) -> tessera_mesh:all_gather(X, 0, 0) end, Mesh, [#{0 => [0]}], #{}, #{client => Server}),
    try Gather([[tessera:from_binary(packed(own(Options)), u8, {1, ?RECORD})]]) of
        [All] ->
            Bytes = tessera:to_binary(All),
            known(Server, [unpacked(binary:part(Bytes, Rank * ?RECORD, ?RECORD)) || Rank <- lists:seq(0, Ranks - 1)], Options)
    catch error:{Code, Text} when is_atom(Code), is_binary(Text) ->
            _ = supervisor:terminate_child(tessera_sup, tessera_cluster_joined),
            {error, {Code, Text}}
    end.

own(#{rank := Rank, devices := Devices, threads := Threads, mpi := Mpi}) ->
    {ok, Host} = inet:gethostname(),
    {_, Isa} = tessera_nif:rank_isa(),
    #{rank => Rank, host => unicode:characters_to_binary(Host), os_pid => list_to_binary(os:getpid()), devices => Devices, threads => Threads,
      cpus => tessera_nif:cpu_count(), allowed => allowed(), isa => Isa, mpi => Mpi}.

%% Which CPUs this process may use. Ranks of a host that may use the same ones share them.
allowed() ->
    case file:read_file("/proc/self/status") of
        {ok, Text} ->
            case re:run(Text, "^Cpus_allowed:\\s*(\\S+)", [multiline, {capture, all_but_first, binary}]) of
                {match, [Mask]} -> erlang:phash2(Mask);
                nomatch -> 0
            end;
        {error, _} -> 0
    end.

%% Hosts with long names have their first bytes.
packed(#{host := Host, mpi := Mpi} = Own) ->
    Packed = term_to_binary(Own#{host := binary:part(Host, 0, min(64, byte_size(Host))), mpi := version(Mpi)}),
    <<(byte_size(Packed)):16, Packed/binary, 0:((?RECORD - 2 - byte_size(Packed)) * 8)>>.

version(none) -> none;
version(Version) -> binary:part(Version, 0, min(64, byte_size(Version))).

unpacked(<<Size:16, Packed:Size/binary, _/binary>>) -> binary_to_term(Packed, [safe]).

%% Threads by default: the CPUs, shared with the ranks that use the same ones.
known(Server, All, #{rank := Own}) ->
    Infos = [case Info of
                 #{threads := undefined} -> Info#{threads := max(1, Cpus div length([ok || #{host := H, allowed := A} <- All, H =:= Host, A =:= Allowed]))};
                 _ -> Info
             end || #{host := Host, allowed := Allowed, cpus := Cpus} = Info <- All],
    #{threads := Threads} = lists:nth(Own + 1, Infos),
    ok = tessera_client:open(host, #{threads => Threads}),
    ok = tessera_cluster_joined:introduce(Server, [maps:remove(allowed, Info) || Info <- Infos], lists:min([D || #{devices := D} <- Infos])),
    {ok, Server}.

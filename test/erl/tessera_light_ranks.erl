%% Many ranks in one VM, for tests of the tree of sockets: processes that run the code of ranks, with all of its connections, but compute
%% nothing, have no values and end as processes.
-module(tessera_light_ranks).
-export([main/1]).
-export([configure/1, handle/3, finish/0]).

%% Started with -run: the first rank of this VM, the number of its ranks, and of all ranks; then a rank's own arguments.
main([First, Count, Ranks, Address, Port, KeyFile, Timeout]) ->
    ok = tessera_rank_values:new(),
    {ok, Ip} = inet:parse_address(Address),
    Options = #{address => Ip, port => list_to_integer(Port), key_file => KeyFile, ranks => list_to_integer(Ranks),
                timeout => list_to_integer(Timeout), work => ?MODULE, leave => fun(Status) -> exit({left, Status}) end},
    Begin = list_to_integer(First),
    Own = [spawn_monitor(fun() -> tessera_rank:run(Options#{rank => Rank}) end)
           || Rank <- lists:seq(Begin, Begin + list_to_integer(Count) - 1)],
    [receive {'DOWN', Monitor, process, Rank, _} -> ok end || {Rank, Monitor} <- Own],
    erlang:halt(0).

configure(#{devices := Devices, threads := Threads}) -> {ok, #{devices => Devices, threads => Threads, cpus => 1, mpi => none}}.

handle(noop, _, _) -> {[], {ok, ok}};
handle(memory, _, _) -> {[], {ok, #{memory => #{vm => 0, live => 0, peak => 0}, mpi_sent_bytes => 0, mpi_received_bytes => 0}}};
handle({size, Bytes}, _, _) -> {[], {ok, byte_size(tessera_cluster_blocks:binary(Bytes))}};
handle({make, Bytes}, _, _) -> {[], {ok, binary:copy(<<1>>, Bytes)}}.

finish() -> ok.

-module('Elixir.Tessera.Cluster').
-include("tessera_nx_doc.hrl").
?MODULEDOC("Clusters: one program over several processes of one or many hosts, which Open MPI starts, from a normal node.\n"
     "\n"
     "    # config/config.exs\n"
     "    config :tessera, clusters: [ranks: [ranks: 4, threads: 2]]\n"
     "\n"
     "    # in the application's supervisor\n"
     "    children = [{Tessera.Cluster, name: :ranks}]\n"
     "\n"
     "    Tessera.shard_jit(&Nx.add(&1, &1), mesh, client: :ranks, input_shardings: [%{0 => [0]}])\n"
     "\n"
     "A cluster is a client of `Tessera.shard_jit/3` and `Tessera.Mesh.shard/4`, by its name or its pid, and of nothing else. Rank `r` of\n"
     "`R` has the partitions from `r * P / R` to `(r + 1) * P / R - 1` of a mesh of `P`. Results stay on their ranks, where the next call\n"
     "uses them; other functions fetch them. `put/2`, `map/2` and `load/2` make such tensors, too, and `save/2` writes them to files.\n"
     "\n"
     "Options are `:ranks`, `:hosts`, `:devices`, `:threads`, `:mpirun`, `:mca`, `:env`, `:memory_limit` (bytes), `:deadline` and\n"
     "`:start_timeout` (milliseconds), `:listen`, `:tls`, `:restarts`, `:name`, `:directory` and the others of docs/cluster.md, which says what\n"
     "they mean. Texts are strings or charlists; the names in `:mca` and `:env` may be atoms: `mca: [pml: \"ucx\"]`. What\n"
     "`config :tessera, clusters: ...` has for a `:name` are its defaults.").
-export(['__info__'/1, child_spec/1, start_link/1, join/1, leave/1, stop/1, info/1, map/2, map/3, put/2, save/2, save/4, load/2, load/3,
         clear_cache/1, noop/1, noop/2]).

?INTERNAL.
-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).

?DOC("For supervisors: `{Tessera.Cluster, options}`. The id has the cluster's name, so a supervisor may have several.").
-spec child_spec(map() | [{atom(), term()}]) -> supervisor:child_spec().
child_spec(Options) ->
    Name = case options(Options) of
               #{name := Given} -> Given;
               _ -> nil
           end,
    (tessera_cluster:child_spec(#{ranks => 1}))#{id := {?MODULE, Name}, start := {?MODULE, start_link, [Options]}}.

?DOC("Starts the ranks and waits until all are ready. The cluster is linked to the caller. An error is `{:error, {code, message}}`.\n"
     "\n"
     "    {:ok, cluster} = Tessera.Cluster.start_link(ranks: 4, name: :ranks)").
-spec start_link(map() | [{atom(), term()}]) -> {ok, pid()} | {error, {atom(), binary()}}.
start_link(Options) -> tessera_cluster:start_link(options(Options)).

?DOC("Makes this node one rank of a cluster without a driver: `mpirun` or `srun` has started it, and the other ranks call this, too.\n"
     "`Tessera.shard_jit/3` with this client then takes and returns lists for the partitions of this rank only. All ranks make the same calls\n"
     "in the same order. Options are `:devices`, `:threads`, `:memory_limit` (bytes), `:deadline`, `:start_timeout` and `:call_timeout`\n"
     "(milliseconds) and `:name`. An error is `{:error, {code, message}}`.\n"
     "\n"
     "    {:ok, cluster} = Tessera.Cluster.join(threads: 4)").
-spec join(map() | [{atom(), term()}]) -> {ok, pid()} | {error, {atom(), binary()}}.
join(Options) -> tessera_cluster:join(options(Options)).

?DOC("Leaves a cluster that was joined: waits until all ranks do, and finalizes MPI.").
-spec leave(tessera_cluster:cluster()) -> ok | {error, {atom(), binary()}}.
leave(Cluster) -> tessera_cluster:leave(Cluster).

?DOC("Ends the ranks, then the cluster. Returns when no process of it is left.").
-spec stop(tessera_cluster:cluster()) -> ok.
stop(Cluster) -> tessera_cluster:stop(Cluster).

?DOC("What the cluster is and does: `:state` (`:up` or `:starting`), `:tls`, `:ranks`, `:restarts`, `:last_error`. Each of the ranks is a map with\n"
     "its `:rank`, `:host`, `:os_pid`, `:devices`, `:threads`, `:cpus`, versions, `:memory` in bytes, bytes moved, and milliseconds since the\n"
     "last sign of life. Of a cluster that was joined: `:state`, `:rank`, `:ranks`, `:mpi`, `:last_error`.").
-spec info(tessera_cluster:cluster()) -> map().
info(Cluster) -> tessera_cluster:info(Cluster).

?DOC("Calls the function with the number of the rank on all ranks at once; the results in the order of ranks. So each rank can read\n"
     "its own part of a file. Tensors in a result stay on their rank. The module in which the function is written must be compiled to a\n"
     "file. Raises the first error, with rank and host.\n"
     "\n"
     "    Tessera.Cluster.map(:ranks, fn rank -> rank * 2 end)\n"
     "\n"
     "Of a cluster that was joined all ranks call it with the same function, which is called here with the own rank. It returns a list with\n"
     "this one result, when the function has returned on all ranks.").
-spec map(tessera_cluster:cluster(), fun((non_neg_integer()) -> Result)) -> [Result].
map(Cluster, Fun) when is_function(Fun, 1) -> core(fun() -> tessera_nx_cluster:map(Cluster, Fun, none) end);
map(_, Other) -> tessera_nx_error:expected("a function of one argument", Other).

?DOC("The same with an argument for each rank. Tensors in an argument that are on its rank are not moved; others are copied to it. Of a\n"
     "cluster that was joined: a list with the argument of this rank.\n"
     "\n"
     "    Tessera.Cluster.map(:ranks, fn _rank, {path, offset} -> read(path, offset) end, [{\"a\", 0}, {\"a\", 1000}])").
-spec map(tessera_cluster:cluster(), fun((non_neg_integer(), Arg) -> Result), [Arg]) -> [Result].
map(Cluster, Fun, Args) when is_function(Fun, 2), is_list(Args) -> core(fun() -> tessera_nx_cluster:map(Cluster, Fun, Args) end);
map(_, Fun, Other) when is_function(Fun, 2) -> tessera_nx_error:expected("a list with an argument for each rank", Other);
map(_, Other, _) -> tessera_nx_error:expected("a function of two arguments", Other).

?DOC("Puts tensors on the ranks, where they stay as long as they are referred to: a list with a container for each partition of a mesh.\n"
     "Containers are tensors and numbers in lists, tuples, maps and structs. A tensor that is there already is not moved.\n"
     "\n"
     "    [{w, b} | _] = Tessera.Cluster.put(:ranks, List.duplicate({w, b}, 4))\n"
     "\n"
     "Of a cluster that was joined: a container for each partition of this rank, whose tensors are then on its devices.").
-spec put(tessera_cluster:cluster(), [term()]) -> [term()].
put(Cluster, Parts) -> core(fun() -> tessera_nx_cluster:put(Cluster, Parts) end).

?DOC("Saves a container for each partition of a mesh, as runs return them. Each rank writes what it has to the file `PATH.N.R`, of save `N` and\n"
     "rank `R`; then the index, a file at the path, is written, and replaces an earlier one with its files. All hosts must see the folder.\n"
     "An error leaves an earlier save as it was. `tessera_cluster:load/2` of Erlang loads it, too.\n"
     "\n"
     "    :ok = Tessera.Cluster.save(\"/shared/model\", parts)\n"
     "\n"
     "On a node that has joined a cluster all ranks call it, with the same path and a container for each partition of their own.").
-spec save(file:name_all(), [term()]) -> ok.
save(Path, Parts) -> core(fun() -> tessera_nx_cluster:save(Path, Parts, none) end).

?DOC("The same with the mesh, an `Nx.Mesh`, and the shardings of the container's tensors: one for all of them, or a container of the same\n"
     "form. Parts that are equal are saved once, and `load/3` can cut the tensors for another mesh.\n"
     "\n"
     "    :ok = Tessera.Cluster.save(\"/shared/model\", parts, mesh, {%{0 => [0]}, %{}})").
-spec save(file:name_all(), [term()], map(), term()) -> ok.
save(Path, Parts, Mesh, Shardings) -> core(fun() -> tessera_nx_cluster:save(Path, Parts, {Mesh, Shardings}) end).

?DOC("What was saved: a list with a container for each partition, on the ranks of a cluster. It may have another number of ranks than the one\n"
     "that saved. A damaged file raises an error that names it. The modules of structs in it, and those that have the names of tensors and the\n"
     "keys of maps, must be loaded: it makes no atom.\n"
     "\n"
     "    parts = Tessera.Cluster.load(:ranks, \"/shared/model\")\n"
     "\n"
     "Of a cluster that was joined: all ranks call it, and each gets the containers of its own partitions.").
-spec load(tessera_cluster:cluster(), file:name_all()) -> [term()].
load(Cluster, Path) -> core(fun() -> tessera_nx_cluster:load(Cluster, Path, none) end).

?DOC("The same in a mesh of other sizes, if it was saved with its mesh and shardings. Each rank reads what it needs.").
-spec load(tessera_cluster:cluster(), file:name_all(), map()) -> [term()].
load(Cluster, Path, Mesh) -> core(fun() -> tessera_nx_cluster:load(Cluster, Path, Mesh) end).

?DOC("Drops the compiled programs that the ranks keep, and clears the caches of their VMs. A program that is called again is sent and compiled\n"
     "again. Of a cluster that was joined: clears the caches of this node.").
-spec clear_cache(tessera_cluster:cluster()) -> ok.
clear_cache(Cluster) -> core(fun() -> tessera_cluster:clear_cache(Cluster) end).

?DOC("A call of all ranks that does nothing, for measurements. Of a cluster that was joined: returns when all ranks have called it.").
-spec noop(tessera_cluster:cluster()) -> ok.
noop(Cluster) -> core(fun() -> tessera_cluster:noop(Cluster) end).

?DOC("The same, so many times, one after the other.").
-spec noop(tessera_cluster:cluster(), pos_integer()) -> ok.
noop(Cluster, Count) -> core(fun() -> tessera_cluster:noop(Cluster, Count) end).

%% The core's errors as exceptions.
core(F) -> tessera_nx_shard:core(F).

%% ---- options

%% The given options, which replace those that are configured for the name. start_link/1 refuses a term that is no list of pairs.
options(Given) ->
    try {plain(Given), application:get_env(tessera, clusters, [])} of
        {#{name := Name} = Own, Configured} -> maps:merge(plain(proplists:get_value(Name, Configured, [])), Own);
        {Own, _} -> Own
    catch error:_ -> Given
    end.

plain(Options) when is_map(Options) -> plain(maps:to_list(Options));
plain(Options) -> maps:from_list([{Name, value(Name, Value)} || {Name, Value} <- proper(Options), Value =/= nil]).

proper(Options) ->
    true = lists:all(fun(Pair) -> is_tuple(Pair) andalso tuple_size(Pair) =:= 2 end, Options),
    Options.

value(Name, Pairs) when (Name =:= mca orelse Name =:= env), is_map(Pairs) -> value(Name, maps:to_list(Pairs));
value(Name, Pairs) when (Name =:= mca orelse Name =:= env), is_list(Pairs) -> [pair(Pair) || Pair <- Pairs];
value(_, Value) -> Value.

pair({Name, Value}) when is_atom(Name) -> {atom_to_binary(Name), Value};
pair(Pair) -> Pair.

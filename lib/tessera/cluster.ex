defmodule Tessera.Cluster do
  @moduledoc """
  Clusters: one program over several processes of one or many hosts, which Open MPI starts, from a normal node.

      # config/config.exs
      config :tessera, clusters: [ranks: [ranks: 4, threads: 2]]

      # in the application's supervisor
      children = [{Tessera.Cluster, name: :ranks}]

      Tessera.shard_jit(&Nx.add(&1, &1), mesh, client: :ranks, input_shardings: [%{0 => [0]}])

  A cluster is a client of `Tessera.shard_jit/3` and `Tessera.Mesh.shard/4`, by its name or its pid, and of nothing else. Rank `r`
  of `R` has the partitions from `r * P / R` to `(r + 1) * P / R - 1` of a mesh of `P`. Results stay on their ranks, where the next
  call uses them; other functions fetch them. `put/2`, `map/2` and `load/2` make such tensors, too, and `save/2` writes them to
  files.

  Options are `:ranks`, `:hosts`, `:devices`, `:threads`, `:mpirun`, `:mca`, `:env`, `:memory_limit` (bytes), `:deadline` and
  `:start_timeout` (milliseconds), `:listen`, `:tls`, `:restarts`, `:name`, `:directory` and the others of docs/cluster.md, which
  says what they mean. Texts are strings or charlists; the names in `:mca` and `:env` may be atoms: `mca: [pml: "ucx"]`. What
  `config :tessera, clusters: ...` has for a `:name` are its defaults.
  """

  @typedoc "A name, or the pid that `start_link/1` or `join/1` returns."
  @type cluster :: atom | pid
  @type options :: keyword | %{atom => term}
  @typedoc "Tensors and numbers in lists, tuples, maps and structs."
  @type container :: term
  @type path :: Path.t()

  @doc """
  For supervisors: `{Tessera.Cluster, options}`. The id has the cluster's name, so a supervisor may have several.

      iex> Tessera.Cluster.child_spec(name: :ranks).id
      {Tessera.Cluster, :ranks}
  """
  @spec child_spec(options) :: Supervisor.child_spec()
  def child_spec(options), do: :tessera_nx_cluster.child_spec(options)

  @doc """
  Starts the ranks and waits until all are ready. The cluster is linked to the caller. An error is `{:error, {code, message}}`.

      {:ok, cluster} = Tessera.Cluster.start_link(ranks: 4, name: :ranks)
  """
  @spec start_link(options) :: {:ok, pid} | {:error, {atom, String.t()}}
  def start_link(options), do: :tessera_nx_cluster.start_link(options)

  @doc """
  Makes this node one rank of a cluster without a driver: `mpirun` or `srun` has started it, and the other ranks call this, too.
  `Tessera.shard_jit/3` with this client then takes and returns lists for the partitions of this rank only. All ranks make the same
  calls in the same order. Options are `:devices`, `:threads`, `:memory_limit` (bytes), `:deadline`, `:start_timeout` and
  `:call_timeout` (milliseconds) and `:name`. An error is `{:error, {code, message}}`.

      {:ok, cluster} = Tessera.Cluster.join(threads: 4)
  """
  @spec join(options) :: {:ok, pid} | {:error, {atom, String.t()}}
  def join(options), do: :tessera_nx_cluster.join(options)

  @doc "Leaves a cluster that was joined: waits until all ranks do, and finalizes MPI."
  @spec leave(cluster) :: :ok | {:error, {atom, String.t()}}
  def leave(cluster), do: :tessera_cluster.leave(cluster)

  @doc "Ends the ranks, then the cluster. Returns when no process of it is left."
  @spec stop(cluster) :: :ok
  def stop(cluster), do: :tessera_cluster.stop(cluster)

  @doc """
  What the cluster is and does: `:state` (`:up` or `:starting`), `:tls`, `:ranks`, `:restarts`, `:last_error`. Each of the ranks is a
  map with its `:rank`, `:host`, `:os_pid`, `:devices`, `:threads`, `:cpus`, versions, `:memory` in bytes, bytes moved, and
  milliseconds since the last sign of life. Of a cluster that was joined: `:state`, `:rank`, `:ranks`, `:mpi`, `:last_error`.
  """
  @spec info(cluster) :: map
  def info(cluster), do: :tessera_cluster.info(cluster)

  @doc """
  Calls the function with the number of the rank on all ranks at once; the results in the order of ranks. So each rank can read its
  own part of a file. Tensors in a result stay on their rank. The module in which the function is written must be compiled to a
  file. Raises the first error, with rank and host.

      Tessera.Cluster.map(:ranks, fn rank -> rank * 2 end)

  Of a cluster that was joined all ranks call it with the same function, which is called here with the own rank. It returns a list
  with this one result, when the function has returned on all ranks.
  """
  @spec map(cluster, (non_neg_integer -> result)) :: [result] when result: term
  def map(cluster, fun), do: :tessera_nx_cluster.map(cluster, fun)

  @doc """
  As `map/2`, with an argument for each rank. Tensors in an argument that are on its rank are not moved; others are copied to it. Of
  a cluster that was joined: a list with the argument of this rank.

      Tessera.Cluster.map(:ranks, fn _rank, {path, offset} -> read(path, offset) end, [{"a", 0}, {"a", 1000}])
  """
  @spec map(cluster, (non_neg_integer, argument -> result), [argument]) :: [result] when argument: term, result: term
  def map(cluster, fun, arguments), do: :tessera_nx_cluster.map(cluster, fun, arguments)

  @doc """
  Puts tensors on the ranks, where they stay as long as they are referred to: a list with a container for each partition of a mesh.
  Containers are tensors and numbers in lists, tuples, maps and structs. A tensor that is there already is not moved.

      [{w, b} | _] = Tessera.Cluster.put(:ranks, List.duplicate({w, b}, 4))

  Of a cluster that was joined: a container for each partition of this rank, whose tensors are then on its devices.
  """
  @spec put(cluster, [container]) :: [container]
  def put(cluster, parts), do: :tessera_nx_cluster.put(cluster, parts)

  @doc """
  Saves a container for each partition of a mesh, as runs return them. Each rank writes what it has to the file `PATH.N.R`, of save
  `N` and rank `R`; then the index, a file at the path, is written, and replaces an earlier one with its files. All hosts must see the
  folder. An error leaves an earlier save as it was. `tessera_cluster:load/2` of Erlang loads it, too.

      :ok = Tessera.Cluster.save("/shared/model", parts)

  On a node that has joined a cluster all ranks call it, with the same path and a container for each partition of their own.
  """
  @spec save(path, [container]) :: :ok
  def save(path, parts), do: :tessera_nx_cluster.save(path, parts)

  @doc """
  As `save/2`, with the mesh, an `Nx.Mesh`, and the shardings of the container's tensors: one for all of them, or a container of the
  same form. Parts that are equal are saved once, and `load/3` can cut the tensors for another mesh.

      :ok = Tessera.Cluster.save("/shared/model", parts, mesh, {%{0 => [0]}, %{}})
  """
  @spec save(path, [container], Tessera.Mesh.mesh(), Tessera.Mesh.sharding() | container) :: :ok
  def save(path, parts, mesh, shardings), do: :tessera_nx_cluster.save(path, parts, mesh, shardings)

  @doc """
  What was saved: a list with a container for each partition, on the ranks of a cluster. It may have another number of ranks than the
  one that saved. A damaged file raises an error that names it. The modules of structs in it, and those that have the names of
  tensors and the keys of maps, must be loaded: it makes no atom.

      parts = Tessera.Cluster.load(:ranks, "/shared/model")

  Of a cluster that was joined: all ranks call it, and each gets the containers of its own partitions.
  """
  @spec load(cluster, path) :: [container]
  def load(cluster, path), do: :tessera_nx_cluster.load(cluster, path)

  @doc "As `load/2`, in a mesh of other sizes, if it was saved with its mesh and shardings. Each rank reads what it needs."
  @spec load(cluster, path, Tessera.Mesh.mesh()) :: [container]
  def load(cluster, path, mesh), do: :tessera_nx_cluster.load(cluster, path, mesh)

  @doc """
  Drops the compiled programs that the ranks keep, and clears the caches of their VMs. A program that is called again is sent and
  compiled again. Of a cluster that was joined: clears the caches of this node.
  """
  @spec clear_cache(cluster) :: :ok
  def clear_cache(cluster), do: :tessera_nx_cluster.clear_cache(cluster)

  @doc """
  Calls of all ranks that do nothing, one after the other, for measurements. Of a cluster that was joined: returns when all ranks
  have called it.
  """
  @spec noop(cluster, pos_integer) :: :ok
  def noop(cluster, count \\ 1), do: :tessera_nx_cluster.noop(cluster, count)
end

# One rank of two that mpirun starts: run.sh. The argument is the path of a file that both save.
alias Tessera.{Client, Cluster, DeviceBuffer, Typespec}

[path] = System.argv()
other_path = path <> "_other"
{:ok, _} = Application.ensure_all_started(:tessera)
{:error, {:invalid_argument, _}} = Cluster.join(ranks: 2)
{:ok, cluster} = Cluster.join(threads: 1, devices: 2, name: :joined, deadline: 20_000, call_timeout: 60_000)
%{state: :up, rank: rank, ranks: [%{rank: 0}, %{rank: 1}], mpi: "Open MPI" <> _} = Cluster.info(:joined)
own = fn first, second -> if rank == 0, do: first, else: second end

# All of a line at once, as the ranks share the output.
check = fn name, true -> IO.write("  rank #{rank}: #{name}\n"); name, other -> raise "rank #{rank}: #{name}: #{inspect(other)}" end
raised = fn fun -> try do fun.() rescue e -> e end end

client = Client.fetch!(:host)
buffer = fn number -> DeviceBuffer.place_on_device(<<number::32-native>>, Typespec.tensor({:s, 32}, {1}), client, 0) end
number = fn %DeviceBuffer{} = buffer -> <<n::32-native>> = DeviceBuffer.read(buffer); n end

# A program of Erlang's, as Nx is not there: the sum of the numbers of the ranks.
sum = fn ->
  sums = :tessera.shard_map(&:tessera.all_reduce(&1, :sum, 0), %{shape: {2}}, [%{0 => [0]}], %{0 => [0]}, %{client: :joined})
  [sum] = sums.([[:tessera.tensor([rank + 1])]])
  :tessera.to_list(sum)
end

check.("a program", sum.() == [3])
check.("a cluster is no client of tensors", raised.(fn -> Client.fetch!(:joined) end).message =~ ":joined is a cluster")
check.("noop", Cluster.noop(:joined) == :ok and Cluster.noop(cluster, 2) == :ok)
check.("map", Cluster.map(cluster, &(10 * &1)) == [10 * rank])
check.("map with an argument", Cluster.map(cluster, &{&1, &2}, [:own]) == [{rank, :own}])
check.("an error on a rank", raised.(fn -> Cluster.map(cluster, fn r -> r == 1 && raise ArgumentError, "not here" end) end)
  |> then(&own.(&1.message =~ ~r/^rank 1 on .*: not here$/, &1 == %ArgumentError{message: "not here"})))
check.("other calls", raised.(own.(fn -> Cluster.noop(:joined) end, fn -> Cluster.map(:joined, fn r -> r end) end)).message =~ "ranks 0 and 1 are at different places")

parts = Cluster.put(:joined, for(i <- 0..1, do: %{x: buffer.(2 * rank + i), n: 7, z: %{__struct__: Complex, re: 1.0, im: 2.0}}))
values = fn parts -> for %{x: x, n: 7, z: %{__struct__: Complex, re: 1.0, im: 2.0}} <- parts, do: {number.(x), x.client_name, x.device_id} end
there = for i <- 0..1, do: {2 * rank + i, :host, i}
check.("put", values.(parts) == there)
check.("too many parts", raised.(fn -> Cluster.put(:joined, [1, 2, 3]) end).message =~ "got 3 lists, and this rank has 2 devices")
check.("save", Cluster.save(path, parts) == :ok)
check.("load", values.(Cluster.load(:joined, path)) == there)
check.("other paths", raised.(fn -> Cluster.save(own.(path, other_path), parts) end).message =~ "ranks 0 and 1 differ: the paths are")

mesh = %{__struct__: Nx.Mesh, name: "mesh", shape: {4}}
all = [0, 1, 2, 3]
check.("save with a mesh", Cluster.save(path, for(%{x: x} <- parts, do: {x}), mesh, {%{0 => [0]}}) == :ok)
whole = for {x} <- Cluster.load(:joined, path, %{mesh | shape: {2}}), <<n::32-native <- DeviceBuffer.read(x)>>, do: n
check.("load in another mesh", whole == Enum.slice(all, 2 * rank, 2))
check.("no such file", raised.(fn -> Cluster.load(:joined, path <> "_not") end).message =~ "_not: no such file")

check.("clear_cache", Cluster.clear_cache(:joined) == :ok and sum.() == [3])
check.("joined twice", match?({:error, {:failed_precondition, _}}, Cluster.join([])))
check.("leave", Cluster.leave(:joined) == :ok)
check.("left", Cluster.info(:joined).state == :left and raised.(fn -> Cluster.noop(:joined) end).message == "this rank has left the cluster")

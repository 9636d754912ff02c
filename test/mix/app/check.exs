# What a release would do with the application: run in dev and prod by run.sh.
import User.Describe
alias Tessera.{Backend, Client, DeviceBuffer, Typespec}

check = fn name, true -> IO.puts("  #{name}"); name, other -> raise "#{name}: #{inspect(other)}" end

check.("application started", :tessera in Enum.map(Application.started_applications(), &elem(&1, 0)))
client = Client.fetch!(Client.default_name())
check.("config.exs", match?(%Client{name: :other, device_count: 2, default_device_id: 1}, client))

tensor = User.place([1, 2, 3], client)
check.("struct patterns", User.where(tensor) == {:other, 1} and User.where(User.empty()) == nil)
check.("struct updates", User.where(User.move(tensor, 0)) == {:other, 0})
check.("update with an unknown key", match?(%KeyError{}, try do Map.replace!(tensor, :none, 1) rescue e -> e end))
check.("struct!", match?(%KeyError{}, try do struct!(Backend, none: 1) rescue e -> e end))
check.("read", DeviceBuffer.read(tensor.buffer) == <<1::32-native, 2::32-native, 3::32-native>>)
check.("Inspect", inspect(%Typespec{type: {:s, 32}, shape: {3}}) =~ ~r/^%Tessera.Typespec\{(type: \{:s, 32\}, shape: \{3\}|shape: \{3\}, type: \{:s, 32\})\}$/)
check.("Inspect of a tensor", inspect(tensor) =~ "%Tessera.Backend{buffer: %Tessera.DeviceBuffer{")

check.("memory statistics", match?(%{allocated: 12, peak: 12, per_device: %{1 => 12}}, Client.get_memory_statistics(client)))
check.("deallocate", DeviceBuffer.deallocate(tensor.buffer) == :ok and DeviceBuffer.deallocate(tensor.buffer) == :already_deallocated)
check.("errors", match?(%RuntimeError{message: "read was called on deleted" <> _}, try do DeviceBuffer.read(tensor.buffer) rescue e -> e end))
check.("defimpl", describe(tensor) == "tensor in Tessera.DeviceBuffer" and describe(client) == "Tessera.Client" and describe(1) == "something")
check.("consolidation", Protocol.consolidated?(User.Describe) and Protocol.consolidated?(Inspect))
check.("consolidation of Tessera's protocol", Protocol.consolidated?(Tessera.CustomCall) and Tessera.CustomCall.__protocol__(:impls) == {:consolidated, [User.Scale]})
check.("a protocol's implementation", Tessera.CustomCall.impl_for(%User.Scale{}) == Tessera.CustomCall.User.Scale and
  Tessera.CustomCall.impl_for(client) == nil and
  match?({:ok, %Tessera.CustomCall.Spec{attributes: [{"factor", 3}]}}, Tessera.CustomCall.call(%User.Scale{factor: 3}, nil, [], client)))
check.("no implementation", match?(%Protocol.UndefinedError{}, try do Tessera.CustomCall.call(client, nil, [], client) rescue e -> e end))
# What Erlang makes has the fields of the structs.
for made <- [tensor, tensor.buffer, tensor.buffer.typespec, client] do
  check.("fields of #{inspect(made.__struct__)}", Enum.sort(Map.keys(made)) == Enum.sort(Map.keys(made.__struct__.__struct__())))
end
check.("the process of locks has the name that it has in EXLA", is_pid(Process.whereis(Tessera.Defn.Lock)))
check.("the application's modules", for(module <- [Tessera, Tessera.CustomCall, Tessera.Mesh, :tessera], module not in Application.spec(:tessera, :modules), do: module) == [])

# A cluster of ranks without MPI, in a supervisor, with what config.exs says of it.
alias Tessera.Cluster
raised = fn fun -> try do fun.() rescue e -> e end end
check.("child_spec", match?(%{id: {Cluster, :ranks}, start: {Cluster, :start_link, [[name: :ranks]]}}, Cluster.child_spec(name: :ranks)))
{:ok, supervisor} = Supervisor.start_link([{Cluster, name: :ranks, devices: 2}], strategy: :one_for_one)
%{state: :up, ranks: ranks} = Cluster.info(:ranks)
check.("cluster", match?([%{rank: 0, devices: 2, threads: 1}, %{rank: 1, devices: 2, threads: 1}], ranks))
check.("a function on ranks", Cluster.map(:ranks, &User.twice/1) == [0, 2])
check.("environment of ranks", Cluster.map(:ranks, &User.setting/1) == ["7", "7"])
check.("an error on a rank", match?(%RuntimeError{message: "rank 1 on " <> _}, raised.(fn -> Cluster.map(:ranks, &User.fail/1) end)))
{:module, script, _, _} = defmodule(User.Script, do: def(run(rank), do: rank))
check.("a function that ranks cannot load", match?(%RuntimeError{message: "no file has the module 'Elixir.User.Script'" <> _},
  raised.(fn -> Cluster.map(:ranks, &script.run/1) end)))
check.("a cluster is no client of tensors", raised.(fn -> Client.fetch!(:ranks) end).message =~ ":ranks is a cluster")
mesh = %{__struct__: Nx.Mesh, name: "mesh", shape: {3}}
check.("a mesh that is too large", raised.(fn ->
  Tessera.__shard_jit__(:key, mesh, [], fn [] -> 1 end, [[], [], []], client: :ranks, input_shardings: [])
end).message =~ "the mesh has 3 partitions, and the cluster has 2 ranks of 2 devices")
check.("wrong options", for options <- [[name: :ranks, ranks: 0], [rank: 1], [:ranks], :ranks] do
  {:error, {:invalid_argument, "tessera_cluster: " <> _}} = Cluster.start_link(options)
end != [])

# Tensors on ranks, and in files.
parts = for p <- 0..3, do: {User.tensor([p, 10], client, [:rows]), %{n: p, list: [User.tensor([-p], client).data.buffer], name: "part"}}
read = fn parts -> for {x, %{n: n, list: [y], name: "part"}} <- parts, do: {User.numbers(x), x.names, n, User.numbers(y)} end
expected = for p <- 0..3, do: {[p, 10], [:rows], p, [-p]}
placed = Cluster.put(:ranks, parts)
check.("put", read.(placed) == expected)
check.("where it is", for({x, _} <- placed, do: User.where(x.data)) == for(p <- 0..3, do: {:ranks, p}))
check.("a wrong number of parts", raised.(fn -> Cluster.put(:ranks, tl(parts)) end).message =~ "got 3 lists, and the cluster has 2 ranks of 2 devices")
check.("no list of parts", match?(%ArgumentError{}, raised.(fn -> Cluster.put(:ranks, :nonsense) end)))
made = Cluster.map(:ranks, &User.own/1)
check.("tensors of a function", for(%{rank: rank, tensor: t} <- made, do: {rank, User.numbers(t), t.names, User.where(t.data)}) ==
  [{0, [0, 1], [:rows], {:ranks, 0}}, {1, [1, 2], [:rows], {:ranks, 1}}])
check.("arguments of a function", Cluster.map(:ranks, &User.sum/2, Enum.zip(made, [10, 20])) == [11, 24])
check.("too few arguments", raised.(fn -> Cluster.map(:ranks, &User.sum/2, [1]) end).message =~ "got 1 arguments, and the cluster has 2 ranks")
check.("a function of one argument", for(wrong <- [&User.sum/2, :nonsense], do: match?(%ArgumentError{}, raised.(fn -> Cluster.map(:ranks, wrong) end))) == [true, true])
check.("a function of two arguments", match?(%ArgumentError{}, raised.(fn -> Cluster.map(:ranks, &User.twice/1, [1, 2]) end)) and
  match?(%ArgumentError{}, raised.(fn -> Cluster.map(:ranks, &User.sum/2, :nonsense) end)))
folder = Path.join(System.tmp_dir!(), "tessera mix #{System.pid()}")
File.mkdir!(folder)
path = Path.join(folder, "model")
check.("save", Cluster.save(path, placed) == :ok and length(File.ls!(folder)) == 3)
check.("load", read.(Cluster.load(:ranks, path)) == expected)
check.("load from Erlang", match?([{{Nx.Tensor, _, [:rows], []}, %{n: 0}} | _], :tessera_cluster.load(:ranks, path)))
mesh4 = %{__struct__: Nx.Mesh, name: "mesh", shape: {4}}
mesh2 = %{__struct__: Nx.Mesh, name: "mesh", shape: {2}}
buffers = for {_, %{list: [y]}} <- placed, do: {y, 7}
check.("save with a mesh", Cluster.save(path, buffers, mesh4, {%{0 => [0]}, %{}}) == :ok)
check.("load in another mesh", for({y, 7} <- Cluster.load(:ranks, path, mesh2), do: User.numbers(y)) == [[0, -1], [-2, -3]])
check.("one sharding for all", Cluster.save(path, for({y, _} <- buffers, do: [y]), mesh4, %{0 => [0]}) == :ok)
check.("wrong shardings", for wrong <- [{%{0 => [0]}}, [%{}, %{}], %{a: %{0 => [0]}}, :nonsense] do
  %ArgumentError{} = raised.(fn -> Cluster.save(path, buffers, mesh4, wrong) end)
end != [])
check.("no tensor to save", raised.(fn -> Cluster.save(path, [1, 2]) end).message == "no tensor is on a rank of a cluster")
check.("no such file", match?(%RuntimeError{}, raised.(fn -> Cluster.load(:ranks, path <> "_not") end)))
check.("no path", match?(%ArgumentError{}, raised.(fn -> Cluster.load(:ranks, {1}) end)))
File.rm_rf!(folder)
check.("clear_cache", Cluster.clear_cache(:ranks) == :ok)
check.("noop", Cluster.noop(:ranks) == :ok and Cluster.noop(:ranks, 2) == :ok)
:ok = Supervisor.stop(supervisor)
check.("a cluster that has ended", match?(%RuntimeError{}, raised.(fn -> Cluster.noop(:ranks) end)))
check.("no rank is left", not Enum.any?(ranks, &File.exists?("/proc/#{&1.os_pid}")))

{:docs_v1, _, :erlang, "application/erlang+html", %{"en" => _}, _, entries} = Code.fetch_docs(:tessera)
check.("h :tessera", Enum.any?(entries, &match?({{:function, :add, 2}, _, _, %{"en" => _}, _}, &1)))

# Each module is documented, and each function that is not hidden, as the callbacks are.
for module <- [Tessera, Backend, Client, Cluster, DeviceBuffer, Tessera.Mesh, Typespec, Tessera.CustomCall, Tessera.CustomCall.Spec] ++
      [Tessera.Defn.Lock, Tessera.Defn.LockedCache] do
  {:docs_v1, _, :elixir, "text/markdown", %{"en" => _}, _, entries} = Code.fetch_docs(module)
  check.("h #{inspect(module)}", for({{:function, name, arity}, _, _, :none, _} <- entries, name != :__struct__, do: {name, arity}) == [])
end

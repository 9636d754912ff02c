# What runs on the peers; they get it as they get no files of ours.
{:module, _, beam, _} =
  defmodule Tessera.NodesTest.Peer do
    import Nx.Defn

    # A peer whose test is gone ends by itself.
    def start do
      {:ok, _} = :timer.apply_after(900_000, :erlang, :halt, [1])
      for application <- [:elixir, :logger, :nx, :tessera], do: {:ok, _} = Application.ensure_all_started(application)
      Logger.configure(level: :error)
      Nx.global_default_backend(Tessera.Backend)
      System.pid()
    end

    # A tensor needs a process of its node that keeps it.
    def make(list) do
      tensor = Nx.tensor(list)
      spawn(fn -> receive do: (:never -> tensor) end)
      tensor
    end

    defn(affine(x, y), do: x * 2 + y)
    defn(held(x), do: x * Nx.tensor([1.0, 2.0, 3.0]))

    def compiled do
      template = Nx.template({3}, :f32)
      {Tessera.compile(&affine/2, [template, template]), Nx.Defn.compile(&held/1, [template], compiler: Tessera)}
    end

    def run(fun, args), do: fun |> apply(args) |> Nx.to_flat_list()
    def programs, do: :tessera.memory().programs
    def jit(x), do: run(Nx.Defn.jit(&affine/2, compiler: Tessera), [x, x])
    def eager(x), do: [Nx.add(x, 1), Nx.sum(x), Nx.concatenate([x, Nx.tensor([0.0])])] |> Enum.map(&Nx.to_flat_list/1)
    def evaluated(x), do: run(Nx.Defn.jit(&affine/2, compiler: Nx.Defn.Evaluator), [x, x])
    def batched(x), do: x |> Nx.to_batched(1) |> Enum.map(&Nx.to_flat_list/1)
    def serialized(x), do: x |> Nx.serialize() |> Nx.deserialize() |> Nx.to_flat_list()

    def moved(how, x) do
      here = apply(Nx, how, [x, Tessera.Backend])
      {node(here.data.buffer.ref) == node(), Nx.to_flat_list(here)}
    end

    def raised(fun, args) do
      apply(fun, args)
      nil
    rescue
      error -> {error.__struct__, Exception.message(error)}
    end

    def serve do
      serving =
        Nx.Serving.new(&predict/1, compiler: Tessera)
        |> Nx.Serving.distributed_postprocessing(&Nx.backend_transfer/1)

      children = [{Nx.Serving, name: __MODULE__, serving: serving, batch_size: 4, batch_timeout: 5}]
      {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
      Process.unlink(supervisor)
      :ok
    end

    defp predict(options) do
      fun = Nx.Defn.jit(&affine(&1, 1.0), options)
      fn batch -> fun.(batch) end
    end

    def ask(x) do
      {:ok, __MODULE__ |> Nx.Serving.batched_run(Nx.Batch.stack([Nx.tensor([x])])) |> Nx.to_flat_list()}
    catch
      :exit, reason -> {:exit, reason}
    end

    # Callers beside each other; what each got.
    def ask_all(numbers) do
      numbers
      |> Task.async_stream(&ask/1, max_concurrency: 8, timeout: 200_000)
      |> Enum.map(fn {:ok, answer} -> answer end)
    end

    # How many nodes this one sees serving.
    def servers, do: Nx.Serving.PG |> :pg.get_members(__MODULE__) |> length()
  end

defmodule Tessera.NodesTest do
  # Nodes on the loopback device, by test/erl/tessera_peers.erl: they talk to us over their standard input, and end with it.
  use ExUnit.Case, async: false
  alias Tessera.NodesTest.Peer

  @moduletag timeout: 900_000
  @compile {:no_warn_undefined, :tessera_peers}
  @beam beam

  setup_all do
    folder = Path.join(System.tmp_dir!(), "tessera_peers_#{System.pid()}")
    File.mkdir_p!(folder)

    for module <- [:tessera_peers, :tessera_test] do
      source = Path.expand("../erl/#{module}.erl", __DIR__)
      {:ok, ^module} = :compile.file(to_charlist(source), outdir: to_charlist(folder))
    end

    true = Code.append_path(folder)

    on_exit(fn ->
      Code.delete_path(folder)
      File.rm_rf!(folder)
    end)
  end

  # Calls `fun` with so many nodes that know each other.
  defp with_peers(count, fun) do
    :tessera_peers.with(count, fn peers ->
      paths = for path <- :code.get_path(), do: path |> to_string() |> Path.expand() |> to_charlist()

      peers =
        for peer <- peers do
          :ok = :tessera_peers.call(peer, :code, :add_pathsz, [paths])
          {:module, Peer} = :tessera_peers.call(peer, :code, :load_binary, [Peer, ~c"Peer", @beam])
          %{peer: peer, node: :tessera_peers.node_of(peer), os_pid: :tessera_peers.call(peer, Peer, :start, [])}
        end

      for a <- peers, b <- peers, a != b, do: true = :tessera_peers.call(a.peer, :net_kernel, :connect_node, [b.node])
      fun.(peers)
    end)
  end

  defp on(%{peer: peer}, name, args \\ []), do: :tessera_peers.call(peer, Peer, name, args)

  # As a machine goes that loses its power.
  defp kill(%{os_pid: os_pid}), do: {_, 0} = System.cmd("kill", ["-9", os_pid])

  defp until(condition, tries \\ 2400) do
    cond do
      condition.() -> :ok
      tries == 0 -> flunk("it did not come to be in time")
      true -> Process.sleep(50) && until(condition, tries - 1)
    end
  end

  test "tensors of another node are read from there, and can be taken from there" do
    with_peers(2, fn [a, b] ->
      x = on(a, :make, [[1.0, 2.0, 3.0]])
      assert on(b, :run, [&Nx.backend_copy/1, [x]]) == [1.0, 2.0, 3.0]
      assert on(b, :jit, [x]) == [3.0, 6.0, 9.0]
      assert on(b, :evaluated, [x]) == [3.0, 6.0, 9.0]
      assert on(b, :eager, [x]) == [[2.0, 3.0, 4.0], [6.0], [1.0, 2.0, 3.0, 0.0]]
      assert on(b, :batched, [x]) == [[1.0], [2.0], [3.0]]
      assert on(b, :serialized, [x]) == [1.0, 2.0, 3.0]
      assert on(b, :moved, [:backend_copy, x]) == {true, [1.0, 2.0, 3.0]}
      assert :tessera_peers.call(b.peer, Kernel, :inspect, [x]) =~ "[1.0, 2.0, 3.0]"
      assert on(a, :run, [&Function.identity/1, [x]]) == [1.0, 2.0, 3.0]

      assert on(b, :moved, [:backend_transfer, x]) == {true, [1.0, 2.0, 3.0]}

      for node <- [a, b],
          do:
            assert({RuntimeError, gone} = on(node, :raised, [&Nx.to_binary/1, [x]])) &&
              assert(gone =~ "deleted or donated")

      y = on(a, :make, [[4.0]])
      kill(a)
      for fun <- [&Nx.to_binary/1, &Nx.sum/1, &Peer.jit/1], do: assert({RuntimeError, _} = on(b, :raised, [fun, [y]]))
      assert {RuntimeError, lost} = on(b, :raised, [&Nx.to_binary/1, [y]])
      assert lost =~ to_string(a.node)
    end)
  end

  test "functions that were compiled on another node are compiled once" do
    with_peers(2, fn [a, b] ->
      {affine, held} = on(a, :compiled)
      x = on(b, :make, [[1.0, 1.0, 2.0]])
      assert on(b, :run, [affine, [x, x]]) == [3.0, 3.0, 6.0]
      assert on(b, :run, [held, [x]]) == [1.0, 2.0, 6.0]
      programs = on(b, :programs)
      for _ <- 1..5, do: assert(on(b, :run, [affine, [x, x]]) == [3.0, 3.0, 6.0])
      assert on(b, :programs) == programs
      assert on(a, :run, [affine, [x, x]]) == [3.0, 3.0, 6.0]

      # what it holds is on the node that made it
      kill(a)
      assert on(b, :run, [affine, [x, x]]) == [3.0, 3.0, 6.0]
      assert {RuntimeError, _} = on(b, :raised, [held, [x]])
    end)
  end

  test "a distributed serving outlives one of its nodes" do
    with_peers(3, fn [a, b, client] ->
      for server <- [a, b], do: on(server, :serve)
      until(fn -> on(client, :servers) == 2 end)
      numbers = Enum.map(1..40, &(&1 * 1.0))
      expected = Enum.map(numbers, &{:ok, [2 * &1 + 1.0]})
      assert on(client, :ask_all, [numbers]) == expected

      # Callers that wait for the lost node are told; no answer is wrong and no caller waits for ever.
      many = Enum.map(1..2000, &(&1 * 1.0))
      task = Task.async(fn -> on(client, :ask_all, [many]) end)
      Process.sleep(100)
      kill(a)

      for {number, answer} <- Enum.zip(many, Task.await(task, 300_000)) do
        case answer do
          {:ok, [result]} -> assert result == 2 * number + 1.0
          {:exit, {reason, {Nx.Serving, _, _}}} -> assert reason in [:noconnection, :noproc]
        end
      end

      until(fn -> on(client, :servers) == 1 end)
      assert on(client, :ask_all, [numbers]) == expected
    end)
  end
end

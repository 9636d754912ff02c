# Runs EXLA's and Torchx's suites, with the module renamed, and Nx's own, through a shim, on Tessera, and compares with the lists in
# suites/:
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin test/nx/suites.exs NX_REPOSITORY [SUITE...]
#
# NX_REPOSITORY is a checkout of Nx's repository at the version that ERL_LIBS has. RECORD=1 writes its suites/missing.*.txt anew.
#
# DEVICE=async with -pa build/async/normal/tessera/ebin, after `make async-app`, runs them on the asynchronous device of the tests. Where
# a test names the client :host, it is the client :async there, but for suites of host memory.
#
# DEVICE=pjrt runs them on the plugin that TESSERA_PJRT_PLUGIN names, in the same way, and compares with exclusions.pjrt.txt. The
# plugin has to take the option cpu_device_count, as XLA's for CPUs does.
Code.require_file("suites/shim.exs", __DIR__)
Code.require_file("suites/judge.exs", __DIR__)
Code.require_file("dialect.exs", __DIR__)

defmodule Tessera.Suites do
  @moduledoc false
  alias Tessera.Suites.{Judge, Shim, ShimCompiler}

  # name, how it is run, file. In :exla and :torchx the file is renamed; EXLA's use the compiler, Torchx's the backend. In :eager
  # the shim is the backend, under Nx's own evaluator; in :compiled it is the compiler, beside the binary backend.
  @suites [
    {"exla.expr", :exla, "exla/test/exla/defn/expr_test.exs"},
    {"exla.vectorize", :exla, "exla/test/exla/defn/vectorize_test.exs"},
    {"exla.backend", :exla, "exla/test/exla/backend_test.exs"},
    {"exla.api", :exla, "exla/test/exla/defn/api_test.exs"},
    {"exla.runtime_call", :exla, "exla/test/exla/defn/runtime_call_test.exs"},
    {"exla.donation", :exla, "exla/test/exla/defn/donation_test.exs"},
    {"exla.locked_cache", :exla, "exla/test/exla/defn/locked_cache_test.exs"},
    {"exla.lock", :exla, "exla/test/exla/defn/lock_test.exs"},
    {"exla.recompilation_warning", :exla, "exla/test/exla/defn/recompilation_warning_test.exs"},
    {"exla.serving", :exla, "exla/test/exla/serving_test.exs"},
    {"exla.random", :exla, "exla/test/exla/random_test.exs"},
    {"exla.memory_tracking", :exla, "exla/test/exla/memory_tracking_test.exs"},
    {"exla.device_buffer", :exla, "exla/test/exla/device_buffer_test.exs"},
    {"exla.client", :exla, "exla/test/exla/client_test.exs"},
    {"exla.sharding", :exla, "exla/test/exla/defn/sharding_test.exs"},
    {"exla.linalg", :exla, "exla/test/exla/nx_linalg_doctest_test.exs"},
    {"exla.custom_call", :exla, "exla/test/exla/mlir/custom_call_test.exs"},
    {"exla.device_memory_sharing", :exla, "exla/test/exla/device_memory_sharing_test.exs"},
    {"nx.nx", :eager, "nx/test/nx_test.exs"},
    {"nx.doctest", :eager, "nx/test/nx/doctest_test.exs"},
    {"nx.non_finite", :eager, "nx/test/nx/non_finite_test.exs"},
    {"nx.complex", :eager, "nx/test/nx/complex_test.exs"},
    {"nx.lin_alg", :eager, "nx/test/nx/lin_alg_test.exs"},
    {"nx.vectorize", :eager, "nx/test/nx/vectorize_test.exs"},
    {"nx.vectorize.compiled", :compiled, "nx/test/nx/vectorize_test.exs"},
    {"nx.grad", :compiled, "nx/test/nx/defn/grad_test.exs"},
    {"nx.evaluator", :compiled, "nx/test/nx/defn/evaluator_test.exs"},
    {"nx.random", :compiled, "nx/test/nx/random_test.exs"},
    {"nx.serving", :compiled, "nx/test/nx/serving_test.exs"},
    {"nx.donation", :compiled, "nx/test/nx/defn/donation_test.exs"},
    {"nx.kernel", :compiled, "nx/test/nx/defn/kernel_test.exs"},
    {"nx.graph", :compiled, "nx/test/nx/defn/graph_test.exs"},
    {"nx.defn", :compiled, "nx/test/nx/defn_test.exs"},
    {"nx.runtime_call", :compiled, "nx/test/nx/defn/runtime_call_evaluator_test.exs"},
    {"nx.batch", :compiled, "nx/test/nx/batch_test.exs"},
    {"nx.container", :compiled, "nx/test/nx/container_test.exs"},
    {"nx.lazy_container", :compiled, "nx/test/nx/lazy_container_test.exs"},
    {"nx.constants", :eager, "nx/test/nx/constants_test.exs"},
    {"nx.testing", :eager, "nx/test/nx/testing_test.exs"},
    {"nx.heatmap", :eager, "nx/test/nx/heatmap_test.exs"},
    {"nx.documentation", :eager, "nx/test/nx/backend_documentation_test.exs"},
    {"torchx.nx", :torchx, "torchx/test/torchx/nx_test.exs"},
    {"torchx.linalg", :torchx, "torchx/test/torchx/nx_linalg_test.exs"},
    {"torchx.linalg.doctest", :torchx, "torchx/test/torchx/nx_linalg_doctest_test.exs"},
    {"torchx.complex", :torchx, "torchx/test/torchx/complex_test.exs"},
    {"torchx.block", :torchx, "torchx/test/torchx/nx_block_test.exs"},
    {"torchx.random", :torchx, "torchx/test/torchx/random_test.exs"},
    {"torchx.defn", :torchx, "torchx/test/torchx/defn_test.exs"}
  ]

  # Accelerators, and long tests that EXLA's and Nx's own helpers leave out, too.
  @tags [:platform, :integration, :cuda_required]

  # These share host memory between processes of the machine, so they keep the client :host.
  @of_host ["exla.device_memory_sharing"]

  # Run up to three times. The first asks what a process held as soon as it is told of its end, and the runtime system tells
  # before it frees. The second stops a serving once one of two processes is served, and takes it that the other one's
  # request is there, too.
  @racy ["exla.memory_tracking", "nx.serving"]

  def main([]), do: raise("give the path of a checkout of Nx's repository")

  def main([repository | names]) do
    known = Enum.map(@suites, &elem(&1, 0))
    unknown = names -- known
    unknown == [] or raise "no suite #{inspect(unknown)}; there are #{Enum.join(known, ", ")}"
    start()
    chosen = if names == [], do: @suites, else: Enum.filter(@suites, &(elem(&1, 0) in names))
    repository = Path.expand(repository)
    {there, absent} = Enum.split_with(chosen, fn {_, _, file} -> File.exists?(Path.join(repository, file)) end)
    for {name, _, file} <- absent, do: IO.puts("#{name} is left out: this Nx has no #{file}")
    there != [] or raise "#{repository} has none of the suites: is it a checkout of Nx's repository?"
    results = Enum.map(there, &{elem(&1, 0), run(repository, &1)})
    exclusions = if device() == :pjrt, do: "exclusions.pjrt.txt", else: "exclusions.txt"
    Judge.verdict(results, Path.join(__DIR__, "suites"), exclusions, Tessera.Dialect.release(), System.get_env("RECORD") == "1")
  end

  defp start do
    prepare()
    ExUnit.start(autorun: false, exclude: @tags ++ start_peers(), assert_receive_timeout: 1000, formatters: [Judge])
  end

  @doc "What every node needs."
  def prepare do
    device = device()
    client = [platform: device, automatic_transfers: true] ++ devices(device)
    no_transfers = Keyword.put(client, :automatic_transfers, false)
    host = if device == :host, do: [], else: [host: [platform: :host]]
    clients = [{device, client}, other_host: client, no_automatic_transfers_host: no_transfers, cuda: [platform: :cuda]] ++ host
    default = if device == :host, do: [], else: [default_client: device]
    Application.put_all_env(tessera: [add_backend_on_inspect: false, clients: clients, is_mac_arm: false] ++ default)
    {:ok, _} = Application.ensure_all_started([:nx, :tessera])
    Code.put_compiler_option(:ignore_module_conflict, true)
  end

  @doc "The platform, and its client's name."
  def device, do: Map.fetch!(%{nil => :host, "async" => :async, "pjrt" => :pjrt}, System.get_env("DEVICE"))

  # The host's client gets more devices where a suite needs them.
  defp devices(:host), do: [device_count: 2]
  defp devices(:async), do: [device_count: 4]
  defp devices(:pjrt), do: [plugin_options: [cpu_device_count: 4]]

  # The nodes that Nx's serving tests know by name; gives the tags of tests that cannot run.
  defp start_peers do
    System.cmd("epmd", ["-daemon"])

    case Node.start(:"primary@127.0.0.1", :longnames) do
      {:ok, _} ->
        peers =
          for {name, args} <- [{:"secondary@127.0.0.1", []}, {:"tertiary@127.0.0.1", [~c"-hidden"]}] do
            {:ok, _, node} = :peer.start_link(%{name: name, args: args})
            true = :erpc.call(node, :code, :set_path, [:code.get_path()])
            {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [:elixir])
            for file <- [__ENV__.file], do: :erpc.call(node, Code, :require_file, [file])
            node
          end

        Application.put_env(:tessera, :test_peer_nodes, peers)

        []

      {:error, _} ->
        IO.puts("no distribution here: tests over the network are left out")
        [:distributed]
    end
  end

  defp run(repository, {name, mode, file}) do
    [project | _] = Path.split(file)
    helpers = if mode == :exla, do: "test/support/{container,exla_case,exla_helpers}.ex", else: "test/support/*.ex"
    File.cd!(Path.join(repository, project))
    helpers = helpers |> Path.wildcard() |> Enum.map(&Path.expand/1)
    place = if name in @of_host, do: :host, else: device()
    for node <- [node() | Node.list(:connected)], do: :erpc.call(node, __MODULE__, :enter, [mode, helpers, place])
    if name == "exla.sharding" and device() == :host, do: set_devices(4)
    again(if(name in @racy, do: 3, else: 1), fn ->
      load(Path.relative_to(file, project), mode, place)
      Judge.during(name, &ExUnit.run/0)
    end)
  end

  # Meshes of up to so many devices.
  defp set_devices(count) do
    clients = Application.get_env(:tessera, :clients)
    Application.put_env(:tessera, :clients, put_in(clients, [:host, :device_count], count))
  end

  defp again(times, fun) do
    results = fun.()
    if times > 1 and Enum.any?(results, &match?({_, :failed, _}, &1)), do: again(times - 1, fun), else: results
  end

  @doc "Makes a node ready for suites of this mode, on the client of that name."
  def enter(mode, helpers, place) do
    Logger.configure(level: if(mode == :exla, do: :debug, else: :error))
    Nx.global_default_backend(Map.get(%{eager: Shim, torchx: Tessera.Backend}, mode, Nx.BinaryBackend))
    Nx.Defn.global_default_options(if mode == :exla, do: [compiler: Tessera], else: [])
    ShimCompiler.replace_evaluator(mode == :compiled)
    Enum.each(helpers, &load(&1, mode, place))
  end

  # What the compiler has to say of their files is theirs.
  defp load(file, mode, place) do
    source = File.read!(file)
    Code.with_diagnostics(fn -> Code.compile_string(source |> rename(mode) |> placed(place), file) end)
  end

  defp rename(source, :exla), do: source |> String.replace("EXLA", "Tessera") |> String.replace(~r/\bexla\b/, "tessera")
  defp rename(source, :torchx), do: source |> String.replace("Torchx", "Tessera") |> String.replace(~r/\btorchx\b/, "tessera")
  defp rename(source, _), do: source

  defp placed(source, :host), do: source
  defp placed(source, device), do: String.replace(source, ~r/(?<=[ \[{(]):host\b|(?<=Backend<)host(?=:)|(?<=%{)host(?=:)/, &if(&1 == ":host", do: ":#{device}", else: "#{device}"))
end

# On the other nodes nothing runs by itself.
if Node.alive?(), do: Tessera.Suites.prepare(), else: Tessera.Suites.main(System.argv())

defmodule Tessera.ProfileTest do
  # The VM has one depth of stacks for all processes.
  use ExUnit.Case, async: false

  if not :tessera_nx_lines.is_possible() do
    IO.puts("Lines of defn in profiles need OTP 27: their tests are left out")
    @moduletag :skip
  end

  # Only the host tells the steps of a run, whatever the default client is.
  @on_host [compiler: Tessera, client: :host]
  @file_name "profile_layers.ex"
  @source Path.join([__DIR__, "fixtures", @file_name])

  # The code is on disk, as that of a project is, with the abstract code in it.
  setup_all do
    folder = Path.join(System.tmp_dir!(), "tessera_profile_#{System.unique_integer([:positive])}_#{System.pid()}")
    File.mkdir_p!(folder)
    {:ok, [module], _} = Kernel.ParallelCompiler.compile_to_path([@source], folder)
    Code.prepend_path(folder)

    on_exit(fn ->
      Code.delete_path(folder)
      File.rm_rf!(folder)
    end)

    {:ok, layers: module}
  end

  defp steps(fun, args), do: steps(fn -> apply(Nx.Defn.jit(fun, @on_host), args) end)

  defp steps(call) do
    {_, profile} = Tessera.profile(call, [], speed: false)
    for %{steps: steps} <- profile.programs, step <- steps, do: step
  end

  # The text of each line of the steps with that op.
  defp code(op, steps) do
    lines = for %{ops: ops, launch: -1, lines: lines} <- steps, op in String.split(ops, ", "), {_, _, _, file, line} <- lines, file != :undefined, do: {Path.basename(file), line}
    source = @source |> File.read!() |> String.split("\n")
    for {@file_name, line} <- Enum.uniq(lines), do: source |> Enum.at(line - 1) |> String.trim()
  end

  defp x, do: Nx.iota({64, 32}, type: :f32)
  defp w, do: Nx.iota({32, 16}, type: :f32)
  defp numbers, do: Nx.iota({5000}, type: :f32)

  test "steps have the lines of defn, also if the program ran before", %{layers: module} do
    for _ <- 1..2 do
      steps = steps(&module.model/2, [x(), w()])
      assert code("tanh", steps) == ["y = Nx.dot(x, w)", "Nx.tanh(y)"]
      assert code("sort", steps) == ["Nx.sort(y, axis: 0)"]
    end
  end

  test "a function that Nx.Defn.compile has compiled", %{layers: module} do
    model = Nx.Defn.compile(&module.model/2, [x(), w()], @on_host)
    factor = Nx.tensor(3.0)
    local = Nx.Defn.compile(fn x, w -> module.layer(Nx.multiply(x, factor), w) end, [x(), w()], @on_host)

    for _ <- 1..2 do
      assert code("tanh", steps(fn -> model.(x(), w()) end)) == ["y = Nx.dot(x, w)", "Nx.tanh(y)"]
      assert "y = Nx.dot(x, w)" in code("tanh", steps(fn -> local.(x(), w()) end))
    end
  end

  # A process that holds code of an old version ends when that version is purged.
  test "a compiled function does not hold the version of its module" do
    define = fn n -> Code.compile_string("defmodule Tessera.ProfileTest.Versions do\n def f, do: fn x -> Nx.add(x, #{n}) end\nend") end
    Code.put_compiler_option(:ignore_module_conflict, true)
    [{module, _}] = define.(1)
    compiled = Nx.Defn.compile(module.f(), [1], @on_host)
    define.(2)
    :erlang.garbage_collect()
    assert :code.soft_purge(module)
    assert {result, %{runs: 1}} = Tessera.profile(compiled, [5], speed: false)
    assert Nx.to_number(result) == 6
  after
    Code.put_compiler_option(:ignore_module_conflict, false)
  end

  @tag :mesh
  test "a function over a mesh", %{layers: module} do
    options = [client: :host_shards, input_shardings: [%{0 => [0]}, %{}]]
    sharded = Tessera.shard_jit(&module.model/2, %Nx.Mesh{name: "mesh", shape: {2}}, options)
    parts = for part <- Nx.to_batched(x(), 32), do: [part, w()]

    for _ <- 1..2 do
      steps = steps(fn -> sharded.(parts) end)
      assert "Nx.tanh(y)" in code("tanh", steps)
      assert code("sort", steps) == ["Nx.sort(y, axis: 0)"]
    end
  end

  test "loops and branches", %{layers: module} do
    steps = steps(&module.loop/1, [numbers()])
    assert code("cumulative_sum", steps) == ["{i + 1, Nx.cumulative_sum(x)}"]
    assert code("while", steps) == ["while {i = 0, x}, i < 3 do"]
    steps = steps(&module.choice/2, [Nx.tensor(1), numbers()])
    assert code("sort", steps) == ["z = Nx.sort(x)"]
    assert code("cumulative_sum", steps) == ["z = Nx.cumulative_sum(x)"]
  end

  test "a gradient has the line of its call", %{layers: module} do
    steps = steps(&module.gradient/2, [x(), w()])
    assert "g = grad(w, fn w -> Nx.sum(layer(x, w)) end)" in code("dot_general", steps)
    assert code("sort", steps) == ["Nx.sort(g)"]
  end

  test "functions of Elixir's own modules between", %{layers: module} do
    steps = steps(&module.many/1, [numbers()])
    assert Enum.uniq(code("sort", steps)) == ["y = Nx.sort(x)"]
  end
end

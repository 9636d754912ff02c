defmodule Tessera.MLIRModuleTest do
  # Modules of StableHLO as functions: Tessera.from_mlir_module/2.
  use ExUnit.Case, async: true
  import Nx.Defn, only: [defn: 2]

  @folder Path.expand("../stablehlo", __DIR__)

  @two """
  func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
    %0 = stablehlo.multiply %a, %b : tensor<2xf32>
    %1 = stablehlo.compare LT, %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    return %0, %1 : tensor<2xf32>, tensor<2xi1>
  }
  """

  @sine """
  func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.sine %a : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  """

  defp flat(tensors) when is_tuple(tensors), do: tensors |> Tuple.to_list() |> Enum.map(&Nx.to_flat_list/1)
  defp flat(tensor), do: Nx.to_flat_list(tensor)

  defn twice(x, opts) do
    x = opts[:fun].(Nx.multiply(x, 2))
    Nx.add(x, opts[:fun].(x))
  end

  test "is called eagerly, with tensors of any backend" do
    fun = Tessera.from_mlir_module(@two)

    for backend <- [Nx.BinaryBackend, Tessera.Backend] do
      a = Nx.tensor([1.0, 4.0], backend: backend)
      b = Nx.tensor([2.0, 3.0], backend: backend)
      assert flat(fun.({a, b})) == [[2.0, 12.0], [1, 0]]
      assert flat(fun.(%{x: a, y: b})) == [[2.0, 12.0], [1, 0]]
      assert flat(fun.([a, b])) == [[2.0, 12.0], [1, 0]]
    end
  end

  test "is a part of the program in defn, and is called by other compilers" do
    fun = Tessera.from_mlir_module(@sine)
    x = Nx.tensor([0.0, 0.5, -1.0])
    once = Nx.sin(Nx.multiply(x, 2))
    expected = Nx.add(once, Nx.sin(once))

    for compiler <- [Tessera, Nx.Defn.Evaluator] do
      got = Nx.Defn.jit_apply(&twice(&1, fun: fun), [x], compiler: compiler)
      assert Nx.to_number(Nx.all_close(got, expected, atol: 1.0e-6)) == 1
    end

    text = Tessera.to_mlir_module(&twice(&1, fun: fun), [x]).mlir_module
    assert length(String.split(text, "stablehlo.sine")) == 3
  end

  test "of symbolic sizes is compiled for each shape" do
    module = """
    func.func @main(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %0 = stablehlo.add %a, %a : tensor<?x2xf32>
      return %0 : tensor<?x2xf32>
    }
    """

    fun = Tessera.from_mlir_module(module)
    assert flat(fun.(Nx.tensor([[1.0, 2.0]]))) == [2.0, 4.0]
    assert flat(Tessera.jit(fun).(Nx.tensor([[1.0, 2.0], [3.0, 4.0]]))) == [2.0, 4.0, 6.0, 8.0]
  end

  test "is read from bytecode, with types of its own" do
    x = Nx.tensor([[4.0, 1.0, 0.0, 0.0], [1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.5], [0.0, 0.0, 0.5, 1.0]])
    [from_text, from_code] = for file <- ["chol.mlir", "chol.vhlo"], do: flat(Tessera.from_mlir_module(File.read!(Path.join(@folder, file))).(x))
    assert from_text == from_code
    assert length(from_text) == 16
  end

  describe "by the names of Python" do
    # What JAX wrote of containers: test/stablehlo/names.py.
    defp named(name), do: File.read!(Path.join([@folder, "names", name]))

    defp lists(%Nx.Tensor{shape: {}} = tensor), do: Nx.to_number(tensor)
    defp lists(%Nx.Tensor{} = tensor), do: Nx.to_list(tensor)
    defp lists(map) when is_map(map), do: Map.new(map, fn {key, value} -> {key, lists(value)} end)
    defp lists(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> Enum.map(&lists/1) |> List.to_tuple()

    defp given(x) do
      weights = %{"layer" => %{kernel: Nx.add(x, 1), bias: Nx.add(x, 3)}, "it's" => {Nx.add(x, 10)}, "odd" => %{"('t', 1)" => x}}
      %{weights: weights, pair: %{first: x, second: x}, more: {x, {x, x}}, scale: x}
    end

    defn wrapped(x, opts), do: x |> Nx.multiply(2) |> opts[:call].()

    test "takes maps and keyword lists, eagerly and in defn, and returns containers" do
      x = Nx.tensor([1.0, 2.0])

      expected = fn x ->
        out = x |> Nx.multiply(x) |> Nx.add(Nx.add(x, 1)) |> Nx.add(Nx.add(x, 10))
        aux = {Nx.subtract(x, 1), {Nx.multiply(Nx.add(x, 3), 2)}}
        lists(%{"out" => out, "aux" => aux, "ke\\y é" => Nx.add(x, 5), "pair" => %{"first" => x, "second" => x}})
      end

      for form <- [".mlir", ".vhlo"] do
        fun = Tessera.from_mlir_module(named("containers" <> form), names: true)
        assert lists(fun.(given(x))) == expected.(x)
        assert lists(fun.(Map.to_list(given(x)))) == expected.(x)

        for compiler <- [Tessera, Nx.Defn.Evaluator] do
          assert lists(Nx.Defn.jit_apply(fun, [given(x)], compiler: compiler)) == expected.(x)
          got = Nx.Defn.jit_apply(&wrapped(&1, call: fn x -> fun.(given(x)) end), [x], compiler: compiler)
          assert lists(got) == expected.(Nx.multiply(x, 2))
        end
      end
    end

    test "takes any size, and one result is itself" do
      fun = Tessera.from_mlir_module(named("network.exported"), names: true)
      weights = %{"w" => Nx.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "b" => Nx.tensor([1.0, 1.0, 1.0])}
      assert lists(fun.(weights: weights, x: Nx.tensor([[1.0, 1.0]]))) == [[6.0, 8.0, 10.0]]
      assert lists(fun.(weights: weights, x: Nx.tensor([[1.0, 0.0], [0.0, 2.0]]))) == [[2.0, 3.0, 4.0], [9.0, 11.0, 13.0]]
      several = "func.func @main(%x: tensor<f32> loc(\"x\")) -> (tensor<f32>, tensor<f32>) {\n  return %x, %x : tensor<f32>, tensor<f32>\n}"
      assert lists(Tessera.from_mlir_module(several, names: true).(x: 2.0)) == {2.0, 2.0}
      assert Tessera.from_mlir_module(several, names: false).(2.0) |> lists() == {2.0, 2.0}
    end

    test "says which names there are, and which is missing" do
      assert Tessera.mlir_module_signature(named("network.vhlo")) == %{
               inputs: [
                 %{name: "weights['b']", path: ["weights", "b"], type: {:f, 32}, shape: {3}},
                 %{name: "weights['w']", path: ["weights", "w"], type: {:f, 32}, shape: {2, 3}},
                 %{name: "x", path: ["x"], type: {:f, 32}, shape: {nil, 2}}
               ],
               outputs: [%{name: "result", path: [], type: {:f, 32}, shape: {nil, 3}}]
             }

      assert %{inputs: [%{name: nil, path: []}]} = Tessera.mlir_module_signature(@sine)
      assert_raise ArgumentError, ~r/expected a binary, got: 1/, fn -> Tessera.mlir_module_signature(1) end

      # as mlir_module_shardings does
      for about <- [&Tessera.mlir_module_signature/1, &Tessera.mlir_module_shardings/1] do
        assert_raise RuntimeError, ~r/^line 1, /, fn -> about.("no module") end
      end

      assert_raise ErlangError, ~r/no name for argument 0/, fn -> Tessera.from_mlir_module(@sine, names: true) end
      fun = Tessera.from_mlir_module(named("network.vhlo"), names: true)
      assert_raise ErlangError, ~r/the argument weights\['b'\] is missing/, fn -> fun.(x: Nx.tensor([[1.0, 1.0]])) end
      assert_raise ArgumentError, ~r/no options without a :mesh but :names/, fn -> Tessera.from_mlir_module(@sine, names: 1) end
      assert_raise ArgumentError, ~r/no options without a :mesh but :names/, fn -> Tessera.from_mlir_module(@sine, client: :host) end
    end
  end

  test "serves batches" do
    serving = Nx.Serving.jit(Tessera.from_mlir_module(@sine), compiler: Tessera)
    assert flat(Nx.Serving.run(serving, Nx.Batch.concatenate([Nx.tensor([0.0, 0.0, 0.0])]))) == [0.0, 0.0, 0.0]
  end

  test "takes 253 tensors" do
    names = for i <- 1..253, do: "%a#{i}"
    sums = for i <- 2..253, do: "  %s#{i} = stablehlo.add #{if i == 2, do: "%a1", else: "%s#{i - 1}"}, %a#{i} : tensor<f32>\n"

    module = """
    func.func @main(#{Enum.map_join(names, ", ", &"#{&1}: tensor<f32>")}) -> tensor<f32> {
    #{sums}  return %s253 : tensor<f32>
    }
    """

    fun = Tessera.from_mlir_module(module)
    assert Nx.to_number(fun.(List.duplicate(Nx.tensor(1.0), 253))) == 253.0
    assert_raise ArgumentError, ~r/1 to 253 tensors as arguments, got: 254/, fn -> fun.(List.duplicate(Nx.tensor(1.0), 254)) end
  end

  test "says what is wrong" do
    fun = Tessera.from_mlir_module(@two)
    x = Nx.tensor([1.0, 2.0])
    assert_raise ArgumentError, ~r/expected a binary, got: 1/, fn -> Tessera.from_mlir_module(1) end
    assert_raise ErlangError, ~r/line 1/, fn -> Tessera.from_mlir_module("no module") end
    assert_raise ErlangError, ~r/argument/, fn -> fun.(x) end
    assert_raise ErlangError, ~r/f32\[2\]/, fn -> fun.({x, Nx.tensor([1, 2])}) end
    assert_raise ArgumentError, ~r/no vectorized axes/, fn -> fun.({x, Nx.vectorize(Nx.tensor([x, x] |> Enum.map(&Nx.to_list/1)), :rows)}) end
  end

  describe "on a mesh" do
    @describetag :mesh

    # What JAX wrote, with its arguments and results: test/stablehlo/mesh.py.
    defp ours(name, form) do
      module = File.read!(Path.join([@folder, "mesh", name <> form]))
      archive = Tessera.IO.load(Path.join([@folder, "mesh", name <> ".npz"]))
      of = fn prefix -> for {key, tensor} <- Enum.sort(archive), String.starts_with?(key, prefix), do: tensor end
      {module, of.("in"), of.("out")}
    end

    defp by_partition(parts), do: Enum.zip_with(parts, & &1)

    test "computes what XLA computes, of parts and of whole tensors" do
      for {name, form} <- [{"ring", ".vhlo"}, {"collectives", ".mlir"}, {"constrained", ".vhlo"}] do
        {module, arguments, expected} = ours(name, form)
        %{mesh: mesh, input_shardings: inputs, output_shardings: outputs} = Tessera.mlir_module_shardings(module)
        assert {%{__struct__: Nx.Mesh}, {4, 2}} = {mesh, mesh.shape}
        fun = Tessera.from_mlir_module(module, mesh: mesh, client: :shards)
        lists = by_partition(for {argument, cut} <- Enum.zip(arguments, inputs), do: Tessera.Mesh.shard(argument, mesh, cut, client: :shards))
        results = fun.(lists)
        assert fun.(Enum.map(lists, &[List.to_tuple(&1)])) |> inspect() == inspect(results)
        results = by_partition(for result <- results, do: if(is_tuple(result), do: Tuple.to_list(result), else: [result]))

        for {parts, cut, tensor} <- Enum.zip([results, outputs, expected]) do
          assert Enum.map(parts, & &1.data.buffer.device_id) == Enum.to_list(0..7)
          whole = Tessera.Mesh.gather(parts, mesh, cut)
          assert {whole.shape, whole.type} == {tensor.shape, tensor.type}
          assert Nx.to_number(Nx.all_close(whole, tensor, atol: 1.0e-5)) == 1
        end
      end
    end

    test "takes a map of each partition by the names of Python" do
      cut = ~S({sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>)

      module = """
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<4xf32> #{cut}} loc("a['b']")) -> (tensor<4xf32> #{cut}, jax.result_info = "result['c']"}) {
        %0 = stablehlo.negate %a : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
      """

      %{mesh: mesh, input_shardings: [cut]} = Tessera.mlir_module_shardings(module)
      parts = Tessera.Mesh.shard(Nx.tensor([1.0, 2.0, 3.0, 4.0]), mesh, cut, client: :shards)
      fun = Tessera.from_mlir_module(module, mesh: mesh, client: :shards, names: true)
      assert [%{"c" => first}, %{"c" => second}] = fun.(for part <- parts, do: [%{a: %{b: part}}])
      assert [Nx.to_list(first), Nx.to_list(second)] == [[-1.0, -2.0], [-3.0, -4.0]]
      wrong = fn text, call -> assert_raise(ArgumentError, text, call) end
      wrong.(~r/the argument a\['b'\] is missing/, fn -> fun.([[%{}], [%{}]]) end)
      wrong.(~r/a list of argument lists, got: 1/, fn -> fun.([1, 2]) end)
      wrong.(~r/true or false as :names, got: 1/, fn -> Tessera.from_mlir_module(module, mesh: mesh, client: :shards, names: 1) end)
    end

    test "says what is wrong" do
      {module, [a, b], _} = ours("ring", ".vhlo")
      mesh = fn shape -> struct!(Nx.Mesh, name: "mesh", shape: shape) end
      fun = Tessera.from_mlir_module(module, mesh: mesh.({4, 2}), client: :shards)
      wrong = fn text, call -> assert_raise(ArgumentError, text, call) end
      wrong.(~r/for 8 partitions, and the mesh has 4/, fn -> Tessera.from_mlir_module(module, mesh: mesh.({4}), client: :shards) end)
      wrong.(~r/client :shards has 8 device/, fn -> Tessera.from_mlir_module(module, mesh: mesh.({16}), client: :shards) end)
      wrong.(~r/expected a mesh, got: 2/, fn -> Tessera.from_mlir_module(module, mesh: 2) end)
      wrong.(~r/no option :input_shardings/, fn -> Tessera.from_mlir_module(module, mesh: mesh.({4, 2}), input_shardings: [%{}, %{}]) end)
      wrong.(~r/no options without a :mesh/, fn -> Tessera.from_mlir_module(module, client: :shards) end)
      wrong.(~r/options as a keyword list/, fn -> Tessera.from_mlir_module(module, %{}) end)
      wrong.(~r/options as a keyword list/, fn -> Tessera.from_mlir_module(module, [{:mesh, mesh.({4, 2})}, 1]) end)
      wrong.(~r/options as a keyword list/, fn -> Tessera.from_mlir_module(module, [{:mesh, mesh.({4, 2})} | 1]) end)
      wrong.(~r/threads is nil/, fn -> Tessera.from_mlir_module(module, mesh: mesh.({4, 2}), client: :shards, threads: nil) end)
      # the default client
      wrong.(~r/client #{inspect(Tessera.Client.default_name())} has/, fn -> Tessera.from_mlir_module(module, mesh: mesh.({4, 2}), client: nil) end)
      wrong.(~r/a binary, got: 1/, fn -> Tessera.mlir_module_shardings(1) end)
      assert_raise RuntimeError, ~r/line 1/, fn -> Tessera.mlir_module_shardings("no module") end
      wrong.(~r/a list of argument lists, got: :none/, fn -> fun.(:none) end)
      wrong.(~r/expected 8 argument lists/, fn -> fun.([[a, b]]) end)
      wrong.(~r/argument/, fn -> fun.(List.duplicate([a], 8)) end)
      wrong.(~r/no vectorized axes/, fn -> fun.(List.duplicate([Nx.vectorize(a, :rows), b], 8)) end)
    end
  end
end

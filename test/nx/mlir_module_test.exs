defmodule Tessera.MLIRModuleTest do
  # Modules of StableHLO as functions: Tessera.from_mlir_module/1.
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
end

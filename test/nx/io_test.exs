defmodule Tessera.IOTest do
  # Files of Nx's tensors: Tessera.IO.
  use ExUnit.Case, async: true

  setup do
    folder = Path.join(System.tmp_dir!(), "tessera_io_test_#{System.pid()}_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    {:ok, folder: folder}
  end

  defp same?(a, b), do: Nx.type(a) == Nx.type(b) and Nx.shape(a) == Nx.shape(b) and Nx.to_binary(a) == Nx.to_binary(b)

  test "a container comes back as it was", %{folder: folder} do
    path = Path.join(folder, "model.safetensors")
    kernel = Nx.iota({2, 3}, type: :bf16, names: [:x, :y], backend: Tessera.Backend)
    bias = Nx.tensor([1, -2], type: :s8, backend: Nx.BinaryBackend)
    assert Tessera.IO.save(path, %{"dense" => %{"kernel" => kernel, "bias" => bias}, step: 3, list: [{bias, "text"}, nil]}) == :ok

    assert %{"dense" => %{"kernel" => kernel2, "bias" => bias2}, step: 3, list: [{bias3, "text"}, nil]} = Tessera.IO.load(path)
    assert same?(kernel, kernel2) and same?(bias, bias2) and same?(bias, bias3)
    assert %Tessera.Backend{} = kernel2.data
    assert Nx.names(kernel2) == [nil, nil]
    assert Nx.to_flat_list(Nx.add(kernel2, 1)) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    assert %{format: :safetensors, tensors: %{"dense.kernel" => {{:bf, 16}, {2, 3}}}} = Tessera.IO.info(path)
    assert %{"dense.bias" => one} = found = Tessera.IO.load(path, names: ["dense.bias"], map: false)
    assert map_size(found) == 1 and same?(one, bias)
  end

  test "arrays of NumPy, and columns of text", %{folder: folder} do
    array = Path.join(folder, "x.npy")
    x = Nx.tensor([[1.5, 2.5]], type: :f64)
    :ok = Tessera.IO.save(array, x)
    assert same?(Tessera.IO.load(array), x)

    archive = Path.join(folder, "x.npz")
    :ok = Tessera.IO.save(archive, %{"a" => x, "b" => Nx.tensor(3)})
    assert %{"a" => a, "b" => b} = Tessera.IO.load(archive)
    assert same?(a, x) and same?(b, Nx.tensor(3))

    csv = Path.join(folder, "x.csv")
    File.write!(csv, "a,b\n1,2\n3,4\n")
    assert {["a", "b"], whole} = Tessera.IO.read_csv(csv, type: {:f, 32})
    assert same?(whole, Nx.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert {["b"], one} = Tessera.IO.read_csv(csv, columns: ["b"], type: :s16)
    assert same?(one, Nx.tensor([[2], [4]], type: :s16))
  end

  test "says what is wrong", %{folder: folder} do
    path = Path.join(folder, "x.safetensors")
    assert_raise ErlangError, ~r/No such file/, fn -> Tessera.IO.load(path) end
    assert_raise ArgumentError, ~r/expected a path, got: :x/, fn -> Tessera.IO.load(:x) end
    assert_raise ArgumentError, ~r/expected a keyword list, got: 1/, fn -> Tessera.IO.load(path, 1) end
    assert_raise ArgumentError, ~r/no structs, got: 1\.\.2/, fn -> Tessera.IO.save(path, %{a: 1..2}) end
    assert_raise ArgumentError, ~r/no vectorized axes/, fn -> Tessera.IO.save(path, Nx.vectorize(Nx.tensor([[1]]), :rows)) end
    File.write!(path, "broken")
    assert_raise ErlangError, fn -> Tessera.IO.load(path) end
  end
end

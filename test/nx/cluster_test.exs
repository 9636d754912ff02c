# Tessera.Cluster: containers of tensors on ranks, which are started without MPI, and in files.
defmodule Tessera.ClusterTest do
  use ExUnit.Case, async: true
  alias Tessera.Cluster

  defmodule Layer do
    @derive {Nx.Container, containers: [:w, :b], keep: [:name]}
    defstruct [:b, :w, :name]
  end

  setup do
    {:ok, cluster} = Cluster.start_link(ranks: 2, devices: 2, threads: 1, mpirun: :none)
    folder = Path.join(System.tmp_dir!(), "tessera-#{System.unique_integer([:positive])}")
    File.mkdir!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    %{cluster: cluster, path: Path.join(folder, "model")}
  end

  defp mesh(shape), do: struct!(Nx.Mesh, name: "mesh", shape: shape)

  defp same(left, right) do
    assert {left.shape, left.type, left.names, left.vectorized_axes} == {right.shape, right.type, right.names, right.vectorized_axes}
    assert Nx.to_binary(left) == Nx.to_binary(right)
  end

  test "puts, saves and loads tensors with names and vectorized axes", %{cluster: cluster, path: path} do
    parts =
      for p <- 0..3 do
        tensor = Nx.iota({2, 3}, type: :bf16, names: [:rows, nil]) |> Nx.add(p)
        vectorized = Nx.iota({2, 2, 3}) |> Nx.add(p) |> Nx.vectorize(batch: 2)
        %Layer{w: {tensor, vectorized, [Nx.tensor(p, type: :u8)]}, b: p, name: "layer"}
      end

    placed = Cluster.put(cluster, parts)
    :ok = Cluster.save(path, placed)

    for others <- [placed, Cluster.load(cluster, path)], {part, other} <- Enum.zip(parts, others) do
      {a, b, [c]} = part.w
      {x, y, [z]} = other.w
      assert {other.__struct__, other.b, other.name} == {Layer, part.b, "layer"}
      for {left, right} <- [{a, x}, {b, y}, {c, z}], do: same(left, right)
      assert %Tessera.Backend{buffer: %{client_name: ^cluster}} = x.data
    end
  end

  test "saves numbers of Complex, and tensors of other backends", %{cluster: cluster, path: path} do
    parts = for p <- 0..1, do: {Complex.new(1.5, -2), Nx.tensor([Complex.new(p, 1)], backend: Nx.BinaryBackend)}
    :ok = Cluster.save(path, Cluster.put(cluster, parts))
    for {{n, t}, {m, u}} <- Enum.zip(parts, Cluster.load(cluster, path)), do: assert(n == m and same(t, u))
  end

  @tag :mesh
  test "cuts what was saved for another mesh", %{cluster: cluster, path: path} do
    whole = Nx.iota({4, 4}, names: [:rows, :columns])
    plain = Nx.iota({4}, type: :f32)
    shardings = %{w: %{:rows => [0], -1 => [1]}, b: {%{0 => [1]}, %{}}}

    cut = fn shape ->
      ws = Tessera.Mesh.shard(whole, mesh(shape), shardings.w, client: cluster)
      bs = Tessera.Mesh.shard(plain, mesh(shape), %{0 => [1]}, client: cluster)
      for {w, b} <- Enum.zip(ws, bs), do: %{w: w, b: {b, 7}}
    end

    :ok = Cluster.save(path, cut.({2, 2}), mesh({2, 2}), shardings)

    for shape <- [{2, 2}, {4, 1}, {1, 4}, {2, 1}] do
      for {part, loaded} <- Enum.zip(cut.(shape), Cluster.load(cluster, path, mesh(shape))) do
        same(part.w, loaded.w)
        same(elem(part.b, 0), elem(loaded.b, 0))
        assert elem(loaded.b, 1) == 7
      end
    end

    assert_raise ArgumentError, ~r/expected a sharding such as %{0 => \[0\]}, or a container/, fn ->
      Cluster.save(path, cut.({2, 2}), mesh({2, 2}), %{w: %{}})
    end

    assert_raise ArgumentError, ~r/axis 7 is not valid for mesh with 2 axes/, fn ->
      Cluster.save(path, cut.({2, 2}), mesh({2, 2}), %{w: %{0 => [7]}, b: {%{}, %{}}})
    end
  end

  @tag :mesh
  test "a struct of shardings cuts a struct", %{cluster: cluster, path: path} do
    parts = for p <- 0..3, do: %Layer{w: Nx.tensor([p, p + 1]), b: Nx.tensor([p]), name: "layer"}
    shardings = %Layer{w: %{0 => [0]}, b: %{0 => [0]}, name: nil}
    :ok = Cluster.save(path, Cluster.put(cluster, parts), mesh({4}), shardings)
    assert [%Layer{w: w, name: "layer"}, _] = Cluster.load(cluster, path, mesh({2}))
    assert Nx.to_flat_list(w) == [0, 1, 1, 2]
  end
end

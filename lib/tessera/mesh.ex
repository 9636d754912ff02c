defmodule Tessera.Mesh do
  @moduledoc """
  Tensors in parts on the devices of a mesh.

  A mesh is an `Nx.Mesh`: a grid of devices, whose points are the partitions, numbered from 0 in row-major order. Device `i`
  of a client holds partition `i`. A sharding is a map from dims to lists of mesh axes, as in `Tessera.shard_jit/3`.

      iex> mesh = %Nx.Mesh{name: "mesh", shape: {2}}
      iex> parts = Tessera.Mesh.shard(Nx.iota({4, 2}), mesh, %{0 => [0]}, client: :shards)
      iex> for part <- parts, do: Nx.to_flat_list(part)
      [[0, 1, 2, 3], [4, 5, 6, 7]]
      iex> parts |> Tessera.Mesh.gather(mesh, %{0 => [0]}) |> Nx.shape()
      {4, 2}

  The client of this example, and of those below, is configured with two devices or more:
  `config :tessera, clients: [host: [], shards: [device_count: 8]]`.
  """

  @typedoc "An `Nx.Mesh`."
  @type mesh :: Nx.Mesh.t()
  @typedoc "The dims that are cut, each with the mesh axes that cut it."
  @type sharding :: %{(non_neg_integer | atom) => [non_neg_integer]}

  @doc """
  The parts of a tensor, by partition, on the devices of the option `:client`, or on the ranks of that cluster. Without the
  option they are on the devices of the default client. Every cut must divide its dim.

      iex> mesh = %Nx.Mesh{name: "mesh", shape: {2}}
      iex> [first, _] = Tessera.Mesh.shard(Nx.tensor([1, 2, 3, 4]), mesh, %{0 => [0]}, client: :shards)
      iex> Nx.to_flat_list(first)
      [1, 2]
  """
  @spec shard(Nx.Tensor.t() | number, mesh, sharding, keyword) :: [Nx.Tensor.t()]
  def shard(tensor, mesh, sharding, options \\ []), do: :tessera_nx_mesh.shard(tensor, mesh, sharding, options)

  @doc """
  The tensor of these parts, one of each partition, on the device of the first. Of replicas the first counts.

      iex> mesh = %Nx.Mesh{name: "mesh", shape: {2}}
      iex> [Nx.tensor([1]), Nx.tensor([2])] |> Tessera.Mesh.gather(mesh, %{0 => [0]}) |> Nx.to_flat_list()
      [1, 2]
  """
  @spec gather([Nx.Tensor.t()], mesh, sharding) :: Nx.Tensor.t()
  def gather(parts, mesh, sharding), do: :tessera_nx_mesh.gather(parts, mesh, sharding)

  @doc """
  A picture of a sharding, as text: which devices hold which part of a tensor, or of one of that shape.

      IO.puts(Tessera.Mesh.draw({4, 6}, mesh, %{0 => [0]}))
  """
  @spec draw(Nx.Tensor.t() | tuple, mesh, sharding) :: String.t()
  def draw(tensor_or_shape, mesh, sharding), do: :tessera_nx_mesh.draw(tensor_or_shape, mesh, sharding)
end

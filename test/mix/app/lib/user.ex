defmodule User do
  alias Tessera.{Backend, Client, DeviceBuffer, Typespec}

  @empty %Backend{}

  def empty, do: @empty

  def place(numbers, %Client{name: name, default_device_id: device} = client) do
    binary = for n <- numbers, into: <<>>, do: <<n::32-native>>
    buffer = DeviceBuffer.place_on_device(binary, Typespec.tensor({:s, 32}, {length(numbers)}), client, device)
    ^name = buffer.client_name
    %Backend{buffer: buffer}
  end

  def where(%Backend{buffer: %DeviceBuffer{client_name: client, device_id: device}}), do: {client, device}
  def where(%Backend{buffer: nil}), do: nil

  def move(%Backend{buffer: %DeviceBuffer{} = buffer} = backend, device) do
    %{backend | buffer: %DeviceBuffer{buffer | device_id: device}}
  end

  # A tensor as Nx has it, which is not there.
  def tensor(numbers, client, names \\ [nil]) do
    %{__struct__: Nx.Tensor, data: place(numbers, client), type: {:s, 32}, shape: {length(numbers)}, names: names, vectorized_axes: []}
  end

  def numbers(%{__struct__: Nx.Tensor, data: %Backend{buffer: buffer}}), do: numbers(buffer)
  def numbers(%DeviceBuffer{} = buffer), do: for(<<n::32-signed-native <- DeviceBuffer.read(buffer)>>, do: n)

  # What a rank of a cluster does.
  def own(rank), do: %{rank: rank, tensor: tensor([rank, rank + 1], Client.fetch!(:host), [:rows])}
  def sum(rank, {%{tensor: tensor}, more}), do: Enum.sum(numbers(tensor)) + rank + more
  def twice(rank), do: 2 * rank
  def setting(_rank), do: System.get_env("user_value")
  def fail(1), do: raise(ArgumentError, "not here")
  def fail(rank), do: rank
end

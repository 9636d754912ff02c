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

  # What a rank of a cluster does.
  def twice(rank), do: 2 * rank
  def setting(_rank), do: System.get_env("user_value")
  def fail(1), do: raise(ArgumentError, "not here")
  def fail(rank), do: rank
end

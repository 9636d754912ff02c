defmodule Tessera.DeviceBuffer do
  @moduledoc """
  The memory of a tensor. The field `ref` is its handle, `client_name` and `device_id` name its device, `typespec` holds its
  type and shape.

      iex> typespec = Tessera.Typespec.tensor({:u, 8}, {3})
      iex> buffer = Tessera.DeviceBuffer.place_on_device(<<1, 2, 3>>, typespec, Tessera.Client.fetch!(:host), 0)
      iex> Tessera.DeviceBuffer.read(buffer)
      <<1, 2, 3>>
      iex> {Tessera.DeviceBuffer.deallocate(buffer), Tessera.DeviceBuffer.deallocate(buffer)}
      {:ok, :already_deallocated}
      iex> Tessera.DeviceBuffer.deleted?(buffer)
      true
  """
  alias Tessera.{Client, Typespec}

  defstruct [:ref, :client_name, :device_id, :typespec]

  @typedoc "The client is a name, or the pid of a cluster."
  @type t :: %__MODULE__{
          ref: reference,
          client_name: atom | pid,
          device_id: non_neg_integer,
          typespec: Typespec.t()
        }

  @doc "The buffer of a tensor's handle, on this client and device."
  @spec from_ref(reference, Client.t(), non_neg_integer, Typespec.t()) :: t
  def from_ref(ref, client, device_id, typespec), do: :tessera_nx_buffer.from_ref(ref, client, device_id, typespec)

  @doc """
  A buffer with the bytes of a binary. A large binary is not copied: the buffer refers to it. Elements of fewer than 8 bits are
  packed in a bitstring, as in `Nx.to_binary/1`.
  """
  @spec place_on_device(bitstring, Typespec.t(), Client.t(), non_neg_integer) :: t
  def place_on_device(binary, typespec, client, device_id),
    do: :tessera_nx_buffer.place_on_device(binary, typespec, client, device_id)

  @doc "A copy of the buffer on this client and device."
  @spec copy_to_device(t, Client.t(), non_neg_integer) :: t
  def copy_to_device(buffer, client, device_id), do: :tessera_nx_buffer.copy_to_device(buffer, client, device_id)

  @doc """
  The first bytes of the buffer as a binary: at most so many, or all when the number is negative. Elements are packed as in
  `Nx.to_binary/1`.
  """
  @spec read(t, integer) :: bitstring
  def read(buffer, size \\ -1), do: :tessera_nx_buffer.read(buffer, size)

  @doc "The first elements of the buffer as a binary: at most so many, or all when the number is negative."
  @spec read_elements(t, integer) :: bitstring
  def read_elements(buffer, count), do: :tessera_nx_buffer.read_elements(buffer, count)

  @doc "Frees the buffer's memory."
  @spec deallocate(t) :: :ok | :already_deallocated
  def deallocate(buffer), do: :tessera_nx_buffer.deallocate(buffer)

  @doc "Whether the buffer was deallocated or donated."
  @spec deleted?(t) :: boolean
  def deleted?(buffer), do: :tessera_nx_buffer.deleted?(buffer)
end

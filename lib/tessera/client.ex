defmodule Tessera.Client do
  @moduledoc """
  Names for the devices that tensors are on.

      config :tessera,
        clients: [host: [platform: :host], other: [platform: :host, device_count: 2]],
        default_client: :other

  Without it there is one, `:host`. `:platform` is one of `get_supported_platforms/0`, `:host` by default. Without
  `:default_client` the first client of `:preferred_clients`, or of all, whose platform has a device is the default.

  A client of the host with `:memory_limit` (bytes) has memory of its own; the others share that of `:host`. All clients of the
  host share one pool of threads, of which a client's `:threads` may use a part. `:device_count` is the number of devices; without
  it `config :tessera, host_devices: 4` or the environment variable `TESSERA_HOST_DEVICES` says how many all clients of the host
  have. A client of another platform has all devices of that platform.

  A client of `platform: :cuda`, `:rocm` or `:tpu` is a plugin of PJRT, which is found where Python's packages are, or given as
  `:plugin_path`. `docs/accelerators.md` says what to install. `platform: :pjrt_plugin` with `:plugin_path` and `:device_type` is
  any other one. These clients have the options `:memory_fraction`, `:preallocate`, `:isolated` and `:timeout`, among others:

      config :tessera,
        clients: [
          cuda: [platform: :cuda, memory_fraction: 0.5],
          host: [platform: :host]
        ],
        preferred_clients: [:cuda, :host]

  Here `:cuda` is the default client where there is a GPU with the plugin, and elsewhere `:host`.

  With `automatic_transfers: false` a client's tensors are no arguments of functions that run on another client or device, unless
  they are transferred. That is the default of clients of other platforms than the host.
  """
  defstruct [:ref, :platform, :name, :device_count, :default_device_id, :automatic_transfers]

  @type t :: %__MODULE__{
          ref: atom,
          platform: atom,
          name: atom,
          device_count: pos_integer,
          default_device_id: non_neg_integer,
          automatic_transfers: boolean
        }

  @doc "The name of the client that tensors are allocated on when no `:client` is given."
  @spec default_name() :: atom
  def default_name, do: :tessera_nx_client.default_name()

  @doc """
  The client of that name; raises when the configuration has none.

      iex> Tessera.Client.fetch!(:host).platform
      :host
  """
  @spec fetch!(atom) :: t
  def fetch!(name), do: :tessera_nx_client.fetch!(name)

  @doc """
  The supported platforms with their numbers of devices.

      iex> Tessera.Client.get_supported_platforms().host
      1
  """
  @spec get_supported_platforms() :: %{atom => non_neg_integer}
  def get_supported_platforms, do: :tessera_nx_client.get_supported_platforms()

  @doc """
  The bytes of the client's tensors: `:allocated` now, the most there have been (`:peak`), and both for each device: `:per_device`
  and `:peak_per_device`.

  A tensor counts with its own size until it is deallocated, donated or garbage collected. The workspace of running functions does
  not count.

      iex> Tessera.Client.fetch!(:host) |> Tessera.Client.get_memory_statistics() |> Map.keys() |> Enum.sort()
      [:allocated, :peak, :peak_per_device, :per_device]
  """
  @spec get_memory_statistics(t) :: %{
          allocated: integer,
          peak: integer,
          per_device: %{non_neg_integer => integer},
          peak_per_device: %{non_neg_integer => integer}
        }
  def get_memory_statistics(client), do: :tessera_nx_client.get_memory_statistics(client)

  @doc """
  Sets the peaks of memory statistics, the client's and its devices', to what is allocated now.

      iex> Tessera.Client.reset_peak_memory(Tessera.Client.fetch!(:host))
      :ok
  """
  @spec reset_peak_memory(t) :: :ok
  def reset_peak_memory(client), do: :tessera_nx_client.reset_peak_memory(client)
end

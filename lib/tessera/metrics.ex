defmodule Tessera.Metrics do
  @moduledoc """
  Definitions of metrics for the library `telemetry_metrics`, and figures of memory for `telemetry_poller`.

  The page docs/events.md has the table of events, and an example with Phoenix LiveDashboard.
  """

  @durations [
    {[:run, :stop], "Time of runs of programs"},
    {[:compile, :stop], "Time of compilations"},
    {[:transfer, :stop], "Time of transfers of tensors"},
    {[:memory_pressure, :stop], "Time of calls that waited at the limit of tensor memory"},
    {[:checkpoint, :stop], "Time of saves and loads of clusters"},
    {[:cluster_start, :stop], "Time of starts of clusters"}
  ]

  @counts [
    {[:run, :exception, :duration], "Runs that failed"},
    {[:compile, :exception, :duration], "Compilations that failed"},
    {[:memory_pressure, :exception, :duration], "Calls that got no tensor memory"},
    {[:rank_lost, :count], "Ranks lost"},
    {[:cluster_restart, :restarts], "Restarts of clusters"}
  ]

  @sums [
    {[:compile, :stop, :kernels_compiled], "Kernels compiled"},
    {[:transfer, :stop, :bytes], "Bytes moved"},
    {[:eviction, :count], "Programs and kernels that left a full cache"},
    {[:disk_cache, :hits], "Kernels and programs read from disk"},
    {[:disk_cache, :misses], "Kernels and programs that were not on disk"}
  ]

  @memory [
    live: "Tensor memory in use",
    held: "Bytes of the tensors that processes hold",
    pooled: "Freed tensor memory that is kept for reuse",
    programs: "Compiled programs in the cache"
  ]

  @doc """
  Definitions for `Telemetry.Metrics`: summaries of times, counters, sums, and the last values of memory.

  Raises an `ArgumentError` where the library `telemetry_metrics` is not loaded.
  """
  @spec definitions() :: [struct]
  def definitions do
    unless Code.ensure_loaded?(Telemetry.Metrics) do
      raise ArgumentError, "Tessera.Metrics.definitions/0 needs the library telemetry_metrics"
    end

    for {kind, name, options} <- table(), do: apply(Telemetry.Metrics, kind, [name, options])
  end

  @doc """
  The same as data: `{kind, name, options}`, for other reporters. `kind` is the name of a function of `Telemetry.Metrics`.

      iex> {:summary, [:tessera, :run, :stop, :duration], options} = hd(Tessera.Metrics.table())
      iex> options[:unit]
      {:native, :millisecond}
  """
  @spec table() :: [{:summary | :counter | :sum | :last_value, [atom], keyword}]
  def table do
    for(
      {event, text} <- @durations,
      do: {:summary, name(event ++ [:duration]), unit: {:native, :millisecond}, description: text}
    ) ++
      for({event, text} <- @counts, do: {:counter, name(event), description: text}) ++
      for({event, text} <- @sums, do: {:sum, name(event), description: text}) ++
      for {key, text} <- @memory, do: {:last_value, name([:memory, key]), description: text}
  end

  @doc """
  Emits the event `[:tessera, :memory]` with the figures of `:tessera.memory/0` that are numbers. For `telemetry_poller`.
  """
  @spec measure() :: :ok
  def measure do
    :tessera_events.execute(name([:memory]), Map.filter(:tessera.memory(), fn {_, value} -> is_integer(value) end), %{})
  end

  defp name(event), do: [:tessera | event]
end

defmodule Tessera.MetricsTest do
  # Where the library telemetry_metrics is not loaded, a module stands in its place.
  use ExUnit.Case, async: false

  doctest Tessera.Metrics

  @events (for [_, span, name] <- Regex.scan(~r/^\| (span )?`\[tessera, ([a-z_]+)\]`/m, File.read!(Path.join(__DIR__, "../../docs/events.md"))) do
             {String.to_atom(name), span != ""}
           end)

  defp stand_in do
    functions =
      for kind <- [:summary, :counter, :sum, :last_value] do
        quote do
          def unquote(kind)(name, options), do: {unquote(kind), name, options}
        end
      end

    Module.create(Telemetry.Metrics, functions, Macro.Env.location(__ENV__))
  end

  test "each definition is of an event of the table, with one of its measurements" do
    for {kind, [:tessera, event | rest], options} <- Tessera.Metrics.table() do
      assert is_binary(options[:description])
      assert kind in [:summary, :counter, :sum, :last_value]

      case {event, rest} do
        {:memory, [key]} -> assert is_integer(Map.fetch!(:tessera.memory(), key))
        {event, [_key]} -> assert {event, false} in @events
        {event, [part, _key]} when part in [:stop, :exception] -> assert {event, true} in @events
      end
    end
  end

  test "definitions need the library" do
    unless Code.ensure_loaded?(Telemetry.Metrics) do
      assert_raise ArgumentError, ~r/telemetry_metrics/, fn -> Tessera.Metrics.definitions() end
      stand_in()
    end

    assert length(Tessera.Metrics.definitions()) == length(Tessera.Metrics.table())
  end

  test "measure emits the figures of memory" do
    parent = self()
    :ok = :tessera_events.attach(__MODULE__, [:tessera, :memory], fn event, measured, _ -> send(parent, {event, measured}) end)
    Tessera.Metrics.measure()
    :ok = :tessera_events.detach(__MODULE__)
    assert_received {[:tessera, :memory], %{live: live, programs: _}} when is_integer(live)
  end
end

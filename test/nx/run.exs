# Runs the tests in this folder against a given Nx:
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin test/nx/run.exs [FILE...]
{:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)
Application.put_env(:tessera, :add_backend_on_inspect, false)
Application.put_env(:tessera, :clients, host: [platform: :host], other: [platform: :host], shards: [platform: :host, device_count: 8])
Code.require_file("dialect.exs", __DIR__)
excluded = Tessera.Dialect.excluded()
# What a test logs is shown where it fails.
ExUnit.start(exclude: excluded, capture_log: true)
if excluded != [], do: IO.puts("This Nx, #{Application.spec(:nx, :vsn)}, has no #{Enum.join(excluded, ", no ")}: those tests are left out")

files = if System.argv() == [], do: Path.wildcard(Path.join(__DIR__, "*_test.exs")), else: System.argv()
Enum.each(files, &Code.require_file/1)

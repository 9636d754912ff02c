# Runs the tests in this folder against a given Nx:
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin test/nx/run.exs [FILE...]
{:ok, _} = Application.ensure_all_started(:nx)
Application.put_env(:tessera, :add_backend_on_inspect, false)
# DEVICE=async with -pa build/async/normal/tessera/ebin, after `make async-app`: on the asynchronous device of the tests.
device = if System.get_env("DEVICE") == "async", do: :async, else: :host
others = if device == :host, do: [], else: [{device, platform: device, automatic_transfers: true}]
clients = [host: [platform: :host], other: [platform: :host], shards: [platform: device, device_count: 8], host_shards: [platform: :host, device_count: 8]]
Application.put_env(:tessera, :clients, others ++ clients)
if device != :host, do: Application.put_env(:tessera, :default_client, device)
{:ok, _} = Application.ensure_all_started(:tessera)
Code.require_file("dialect.exs", __DIR__)
dialect = Tessera.Dialect.excluded()
excluded = dialect ++ if(Map.has_key?(Tessera.Client.get_supported_platforms(), :async), do: [], else: [:device])
if :device in excluded, do: IO.puts("The library has no asynchronous device (make async-app): tests of devices are left out")
# What a test logs is shown where it fails. The limits are for a busy machine.
ExUnit.start(exclude: excluded, capture_log: true, timeout: 600_000, assert_receive_timeout: 60_000)
if dialect != [], do: IO.puts("This Nx, #{Application.spec(:nx, :vsn)}, has no #{Enum.join(dialect, ", no ")}: those tests are left out")

files = if System.argv() == [], do: Path.wildcard(Path.join(__DIR__, "*_test.exs")), else: System.argv()
Enum.each(files, &Code.require_file/1)

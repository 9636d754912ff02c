# Many processes ask one model; Nx.Serving puts their requests together into batches, on two partitions.
#
#   elixir examples/serving.exs
#
# or, with Nx and Tessera built already: ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin examples/serving.exs
unless Code.ensure_loaded?(Nx) do
  Mix.install([{:nx, "~> 0.11"}, {:tessera, path: Path.expand("..", __DIR__)}])
end

{:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)
Nx.global_default_backend(Tessera.Backend)

defmodule Scorer do
  import Nx.Defn

  @batch 16
  def batch_size, do: @batch

  defn score(x, w), do: Nx.tanh(Nx.dot(x, w))

  # Compiled once, for batches of one size; the parameters are an argument.
  def serving(w) do
    Nx.Serving.new(
      fn options ->
        compiled = Nx.Defn.compile(&score/2, [Nx.template({@batch, 64}, :f32), w], options)

        fn batch ->
          batch = Nx.Batch.pad(batch, @batch - batch.size)
          compiled.(Nx.Defn.jit_apply(&Function.identity/1, [batch], options), w)
        end
      end,
      compiler: Tessera
    )
  end
end

{w, key} = Nx.Random.normal(Nx.Random.key(1), shape: {64, 8})
{xs, _} = Nx.Random.normal(key, shape: {200, 64})

{:ok, _} =
  Supervisor.start_link(
    [{Nx.Serving, serving: Scorer.serving(w), name: Scorer, batch_size: Scorer.batch_size(), batch_timeout: 5, partitions: true}],
    strategy: :one_for_one
  )

start = System.monotonic_time(:millisecond)

answers =
  0..199
  |> Task.async_stream(fn i -> Nx.Serving.batched_run(Scorer, Nx.Batch.stack([xs[i]])) end, max_concurrency: 64)
  |> Enum.map(fn {:ok, answer} -> answer end)

time = System.monotonic_time(:millisecond) - start
worst = Nx.concatenate(answers) |> Nx.subtract(Scorer.score(xs, w)) |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number()
IO.puts("200 requests of 64 callers in #{time} ms; largest difference from one batch: #{worst}")
if worst > 1.0e-6, do: raise("the answers differ")

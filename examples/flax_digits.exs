# Serves a network that was trained in flax by Nx.Serving. Its program is a file of StableHLO, for a batch of any size, and its weights are
# a file of safetensors: flax_digits.py made both. No Python is needed here.
#
#   elixir examples/flax_digits.exs
#
# or, with Nx and Tessera built already: ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin examples/flax_digits.exs
unless Code.ensure_loaded?(Nx) do
  Mix.install([{:nx, "~> 0.11"}, {:tessera, path: Path.expand("..", __DIR__)}])
end

{:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)
Nx.global_default_backend(Tessera.Backend)

defmodule Digits do
  import Nx.Defn

  @data Path.join(__DIR__, "data")
  @batch 16
  def batch_size, do: @batch

  # The arguments of the program are the weights, in the order of their names, and the digits.
  def network, do: Tessera.from_mlir_module(File.read!(Path.join(@data, "flax_digits.vhlo")))

  def weights do
    Path.join(@data, "flax_digits.safetensors")
    |> Tessera.IO.load()
    |> Enum.sort()
    |> Enum.map(&elem(&1, 1))
    |> List.to_tuple()
  end

  def answers, do: Tessera.IO.load(Path.join(@data, "flax_digits_answers.safetensors"))

  # The network is a part of the program: the largest probability and its digit come out of one call.
  defn guess(weights, x, opts) do
    probabilities = opts[:network].({weights, x})
    {Nx.argmax(probabilities, axis: 1), Nx.reduce_max(probabilities, axes: [1])}
  end

  def serving do
    {network, weights} = {network(), weights()}

    Nx.Serving.new(
      fn options ->
        compiled =
          Nx.Defn.compile(&guess(&1, &2, network: network), [weights, Nx.template({@batch, 64}, :f32)], options)

        fn batch ->
          batch = Nx.Batch.pad(batch, @batch - batch.size)
          compiled.(weights, Nx.Defn.jit_apply(&Function.identity/1, [batch], options))
        end
      end,
      compiler: Tessera
    )
  end

  # Those that the network has not seen.
  def unseen do
    for line <-
          Path.join(@data, "digits.csv.gz")
          |> File.read!()
          |> :zlib.gunzip()
          |> String.split("\n", trim: true)
          |> Enum.drop(1500) do
      line |> String.trim() |> String.split(",") |> Enum.map(&String.to_integer/1) |> Enum.split(64)
    end
  end
end

%{"digits" => known, "answers" => expected} = Digits.answers()

worst =
  Digits.network().({Digits.weights(), known}) |> Nx.subtract(expected) |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number()

IO.puts("the largest difference from XLA's answers: #{worst}")
if worst > 1.0e-5, do: raise("other answers")

{:ok, _} =
  Supervisor.start_link(
    [{Nx.Serving, serving: Digits.serving(), name: Digits, batch_size: Digits.batch_size(), batch_timeout: 5}],
    strategy: :one_for_one
  )

right =
  Digits.unseen()
  |> Task.async_stream(
    fn {pixels, [label]} ->
      {guessed, _} = Nx.Serving.batched_run(Digits, Nx.Batch.stack([Nx.tensor(pixels, type: :f32)]))
      Nx.to_flat_list(guessed) == [label]
    end,
    max_concurrency: 64
  )
  |> Enum.count(fn {:ok, right} -> right end)

IO.puts("#{right} of 297 digits that it has not seen are right")
if right < 270, do: raise("too few")

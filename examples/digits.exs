# Trains a multilayer perceptron on handwritten digits with Nx, compiled by Tessera.
#
#   elixir examples/digits.exs
#
# or, with Nx and Tessera built already: ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin examples/digits.exs
unless Code.ensure_loaded?(Nx) do
  Mix.install([{:nx, "~> 0.11"}, {:tessera, path: Path.expand("..", __DIR__)}])
end

{:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)
Nx.global_default_backend(Tessera.Backend)
Nx.Defn.global_default_options(compiler: Tessera)

defmodule Digits do
  import Nx.Defn

  @batch 64

  def main do
    {train, test} = load()
    {params, key} = init(Nx.Random.key(7))
    velocity = for {w, b} <- Tuple.to_list(params), do: {zeros(w), zeros(b)}
    state = {params, List.to_tuple(velocity)}
    IO.puts("#{length(train)} digits to learn from, #{length(test)} to be tested on")
    {{params, _}, _} = Enum.reduce(1..40, {state, key}, &epoch(&1, &2, train, test))
    accuracy = accuracy(params, test)
    IO.puts("test accuracy #{Float.round(accuracy * 100, 2)} %")
    if accuracy < 0.95, do: raise("the network has not learned")
  end

  defp epoch(n, {state, key}, train, test) do
    start = System.monotonic_time(:millisecond)

    {state, loss} =
      train
      |> Enum.shuffle()
      |> Enum.chunk_every(@batch, @batch, :discard)
      |> Enum.reduce({state, 0.0}, fn rows, {state, _} ->
        {x, y} = tensors(rows)
        step(state, x, y)
      end)

    if rem(n, 10) == 0 do
      time = System.monotonic_time(:millisecond) - start
      loss = Float.round(Nx.to_number(loss), 4)
      IO.puts("epoch #{n}: loss #{loss}, accuracy #{Float.round(accuracy(elem(state, 0), test), 4)}, #{time} ms")
    end

    {state, key}
  end

  # Gradient descent with momentum.
  defn step({params, velocity}, x, y) do
    {loss, grads} = value_and_grad(params, &loss(&1, x, y))
    {{w1, b1}, {w2, b2}} = params
    {{vw1, vb1}, {vw2, vb2}} = velocity
    {{gw1, gb1}, {gw2, gb2}} = grads
    velocity = {{push(vw1, gw1), push(vb1, gb1)}, {push(vw2, gw2), push(vb2, gb2)}}
    {{dw1, db1}, {dw2, db2}} = velocity
    {{{{w1 + dw1, b1 + db1}, {w2 + dw2, b2 + db2}}, velocity}, loss}
  end

  defnp push(velocity, grad), do: 0.9 * velocity - 0.05 * grad

  defn logits({{w1, b1}, {w2, b2}}, x) do
    hidden = Nx.max(Nx.dot(x, w1) + b1, 0)
    Nx.dot(hidden, w2) + b2
  end

  defn loss(params, x, y) do
    z = logits(params, x)
    log_p = z - Nx.logsumexp(z, axes: [1], keep_axes: true)
    -Nx.mean(Nx.sum(Nx.equal(Nx.new_axis(y, 1), Nx.iota({1, 10})) * log_p, axes: [1]))
  end

  defn hits(params, x, y), do: Nx.mean(Nx.argmax(logits(params, x), axis: 1) == y)

  defp accuracy(params, rows) do
    {x, y} = tensors(rows)
    Nx.to_number(hits(params, x, y))
  end

  defp init(key) do
    {w1, key} = Nx.Random.normal(key, 0.0, :math.sqrt(2 / 64), shape: {64, 128})
    {w2, key} = Nx.Random.normal(key, 0.0, :math.sqrt(2 / 128), shape: {128, 10})
    {{{w1, Nx.broadcast(0.0, {128})}, {w2, Nx.broadcast(0.0, {10})}}, key}
  end

  defp zeros(tensor), do: Nx.broadcast(0.0, tensor)

  defp tensors(rows) do
    {pixels, labels} = Enum.unzip(rows)
    {Nx.tensor(pixels, type: :f32) |> Nx.divide(16), Nx.tensor(labels)}
  end

  # Every fifth line is kept for the test.
  defp load do
    rows =
      for line <- Path.join(__DIR__, "data/digits.csv.gz") |> File.read!() |> :zlib.gunzip() |> String.split("\n", trim: true) do
        {pixels, [label]} = line |> String.split(",") |> Enum.map(&String.to_integer/1) |> Enum.split(64)
        {pixels, label}
      end

    {test, train} = rows |> Enum.with_index() |> Enum.split_with(fn {_, i} -> rem(i, 5) == 0 end)
    {Enum.map(train, &elem(&1, 0)), Enum.map(test, &elem(&1, 0))}
  end
end

Digits.main()

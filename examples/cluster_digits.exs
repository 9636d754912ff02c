# Data-parallel training of handwritten digits with Nx on four ranks of a cluster, which mpirun starts.
#
#   ./setup --mpi && make && elixir examples/cluster_digits.exs
#
# or, with Nx and Tessera built already: ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin examples/cluster_digits.exs
unless Code.ensure_loaded?(Nx) do
  Mix.install([{:nx, "~> 0.11"}, {:tessera, path: Path.expand("..", __DIR__)}])
end

{:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)
Nx.global_default_backend(Tessera.Backend)

defmodule ClusterDigits do
  import Nx.Defn

  @batch 64
  @epochs 20
  @ranks 4

  # The batch is cut by rows; the parameters are whole on each rank.
  @shardings [%{}, %{0 => [0]}, %{0 => [0]}]

  def main do
    {train, test} = load()

    case Tessera.Cluster.start_link(ranks: @ranks, name: :ranks) do
      {:ok, cluster} ->
        for rank <- Tessera.Cluster.info(:ranks).ranks do
          IO.puts("rank #{rank.rank}: process #{rank.os_pid} on #{rank.host}, #{rank.threads} of #{rank.cpus} CPUs, #{rank.mpi}")
        end

        params = train(train, tensors(test))
        accuracy = accuracy(params, tensors(test))
        Tessera.Cluster.stop(cluster)
        IO.puts("\ntest accuracy #{Float.round(accuracy * 100, 2)} %")
        if accuracy < 0.92, do: raise("the network has not learned")

      {:error, {_, why}} ->
        IO.puts(why)
        System.halt(1)
    end
  end

  defp train(train, test) do
    mesh = %Nx.Mesh{name: "data", shape: {@ranks}}
    step = Tessera.shard_jit(&step/3, mesh, client: :ranks, input_shardings: @shardings, output_shardings: %{})
    params = List.duplicate(init(), @ranks)
    params = Enum.reduce(1..@epochs, params, &epoch(&1, &2, step, mesh, train, test))
    hd(params)
  end

  # What each rank has is an item of a list. Parameters and losses stay on the ranks until they are read.
  defp epoch(n, params, step, mesh, train, test) do
    start = System.monotonic_time(:microsecond)
    batches = train |> Enum.shuffle() |> Enum.chunk_every(@batch, @batch, :discard)

    {params, loss} =
      Enum.reduce(batches, {params, nil}, fn rows, {params, _} ->
        {x, y} = tensors(rows)
        xs = Tessera.Mesh.shard(x, mesh, %{0 => [0]}, client: :ranks)
        ys = Tessera.Mesh.shard(y, mesh, %{0 => [0]}, client: :ranks)
        {params, [loss | _]} = [params, xs, ys] |> Enum.zip_with(& &1) |> step.() |> Enum.unzip()
        {params, loss}
      end)

    time = Float.round((System.monotonic_time(:microsecond) - start) / 1000 / length(batches), 1)
    accuracy = Float.round(accuracy(hd(params), test) * 100, 2)
    loss = Float.round(Nx.to_number(loss), 4)
    progress("epoch #{n}/#{@epochs}  loss #{loss}  test accuracy #{accuracy} %  #{time} ms a step")
    params
  end

  # One line that changes on a terminal, and lines in a file.
  defp progress(text) do
    case File.read_link("/proc/self/fd/1") do
      {:ok, "/dev/" <> device} when device != "null" -> IO.write("\r#{text}  ")
      _ -> IO.puts(text)
    end
  end

  # Written as for one process: the batch is all of the batch.
  defn step(params, x, y) do
    {loss, {{gw1, gb1}, {gw2, gb2}}} = value_and_grad(params, &loss(&1, x, y))
    {{w1, b1}, {w2, b2}} = params
    {{{w1 - 0.3 * gw1, b1 - 0.3 * gb1}, {w2 - 0.3 * gw2, b2 - 0.3 * gb2}}, loss}
  end

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

  defp accuracy(params, {x, y}), do: Tessera.jit(&hits/3).(params, x, y) |> Nx.to_number()

  defp init do
    {w1, key} = Nx.Random.normal(Nx.Random.key(7), 0.0, :math.sqrt(2 / 64), shape: {64, 128})
    {w2, _} = Nx.Random.normal(key, 0.0, :math.sqrt(2 / 128), shape: {128, 10})
    {{w1, Nx.broadcast(0.0, {128})}, {w2, Nx.broadcast(0.0, {10})}}
  end

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

ClusterDigits.main()

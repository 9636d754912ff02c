# The first call of a deep network through defn: where its time is spent.
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir -pa ebin bench/nx_first.exs [LAYERS [RUNS]]
#
# Each run is another function with another constant, so that from the second run on kernels are known, and no more.
# The first run has LLVM's part: there is no disk cache.
{:ok, _} = Application.ensure_all_started(:nx)
Application.load(:tessera)
Application.put_env(:tessera, :cache_dir, :none)
{:ok, _} = Application.ensure_all_started(:tessera)

[layers, runs] =
  case Enum.map(System.argv(), &String.to_integer/1) do
    [] -> [50, 15]
    [l] -> [l, 15]
    [l, r | _] -> [l, r]
  end

defmodule Network do
  def forward(x, layers) do
    Enum.reduce(layers, x, fn {w, b}, h -> Nx.tanh(Nx.add(Nx.dot(h, w), b)) end)
  end

  def told(_event, measurements, _meta, pid), do: send(pid, {:told, measurements})
end

:telemetry.attach("first", [:tessera, :compilation], &Network.told/4, self())
key = Nx.Random.key(1)
{w, _} = Nx.Random.normal(key, shape: {64, 64}, type: :f32)
{b, _} = Nx.Random.normal(key, shape: {64}, type: :f32)
x = Nx.iota({32, 64}, type: :f32)
given = List.to_tuple(List.duplicate({w, b}, layers))

once = fn i ->
  # each function closes over another constant
  fun = fn x, given -> Nx.add(Network.forward(x, Tuple.to_list(given)), i * 1.0e-6) end
  :erlang.garbage_collect()
  {total, _} = :timer.tc(fn -> Tessera.jit(fun).(x, given) end)

  receive do
    {:told, m} -> Map.put(m, :call, total)
  after
    0 -> raise "nothing was compiled"
  end
end

report = fn name, m ->
  IO.puts("#{name}: call #{m.call} us, Nx's tracing #{m.eval_time}, ours with LLVM #{m.compile_time}, kernels compiled " <> "#{m.kernels_compiled}, reused #{m.kernels_reused}")
end

report.("first   ", once.(1))
rest = for i <- 2..(runs + 1), do: once.(i)
median = fn key -> rest |> Enum.map(& &1[key]) |> Enum.sort() |> Enum.at(div(runs, 2)) end
report.("then, median of #{runs}", Map.new(Map.keys(hd(rest)), &{&1, median.(&1)}))

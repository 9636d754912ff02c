# What a call costs beneath Nx, and whose time that is. Where Nx and Tessera are
# on the path:
#
#     elixir -pa .../nx/ebin -pa ... -pa ebin bench/nx.exs
#     mix run bench/nx.exs
#
# Times are medians of nine rounds of 5000 calls, in microseconds.

defmodule Tessera.Bench.NoCompiler do
  # Does all that Nx asks of a compiler but computing: evaluates the arguments, gives the first.
  def __jit__(_key, _vars, _fun, [args], _options), do: [args |> Enum.map(& &1.()) |> hd()]
end

defmodule Tessera.Bench.NoBackend do
  defstruct [:state]
  def add(out, left, _right), do: %{out | data: left.data}
end

defmodule Tessera.Bench do
  @calls 5000

  def run do
    {:ok, _} = Application.ensure_all_started(:nx)
    {:ok, _} = Application.ensure_all_started(:tessera)
    calls()
    adds()
    callers()
    keys()
  end

  # A jitted scalar add, from the inside out.
  defp calls do
    [a, b] = for n <- [1.0, 2.0], do: Nx.tensor(n, backend: Tessera.Backend)
    nothing = Nx.Defn.jit(&Nx.add/2, compiler: Tessera.Bench.NoCompiler)
    ours = Nx.Defn.jit(&Nx.add/2, compiler: Tessera)
    compiled = Tessera.compile(&Nx.add/2, [a, b])
    core = :tessera.jit(fn x, y -> :tessera.add(x, y) end)
    [x, y] = for n <- [1.0, 2.0], do: :tessera.tensor(n)

    show("the core's own jitted scalar add (NIF and result)", each(fn -> core.(x, y) end), "us")
    show("jitted scalar add, a compiler that does nothing: Nx's part", each(fn -> nothing.(a, b) end), "us")
    show("jitted scalar add", each(fn -> ours.(a, b) end), "us")
    show("scalar add compiled ahead of time", each(fn -> compiled.(a, b) end), "us")
  end

  defp adds do
    x = Nx.iota({1000}, type: :f32, backend: Tessera.Backend)
    nothing = %{x | data: %Tessera.Bench.NoBackend{}}
    show("eager add of 1000 f32, a backend that does nothing: Nx's part", each(fn -> Nx.add(nothing, nothing) end), "us")
    show("eager add of 1000 f32", each(fn -> Nx.add(x, x) end), "us")
  end

  defp callers do
    f = Nx.Defn.jit(fn x, w -> Nx.tanh(Nx.dot(x, w)) end, compiler: Tessera)
    x = Nx.broadcast(Nx.tensor(1.0, backend: Tessera.Backend), {64, 64})
    for count <- [1, 2, 8], do: show("#{count} callers of a small program", rate(fn -> f.(x, x) end, count), "calls/s")
  end

  # Functions that hold an expression whose nodes are each used twice. Minima: what else runs on the machine adds to each.
  defp keys do
    for depth <- [10, 1000, 10_000] do
      double = fn x -> Enum.reduce(1..depth, x, fn _, y -> Nx.add(y, y) end) end
      expression = Nx.Defn.debug_expr(double).(Nx.template({}, :f32))
      fun = fn _ -> expression end
      x = Nx.tensor(0.0, backend: Tessera.Backend)
      Tessera.jit_apply(fun, [x])
      show("key of a function that holds #{depth} nodes", least(fn -> :tessera_digest.of_function(fun) end), "us")
      show("a call of it", least(fn -> Tessera.jit_apply(fun, [x]) end), "us")
    end
  end

  defp least(call), do: Enum.min(for _ <- 1..1000, do: elem(:timer.tc(call), 0))

  defp rate(call, count) do
    calls = div(20_000, count)

    rounds =
      for _ <- 1..3 do
        {time, _} =
          :timer.tc(fn ->
            1..count |> Enum.map(fn _ -> Task.async(fn -> repeat(call, calls) end) end) |> Task.await_many(60_000)
          end)

        calls * count * 1.0e6 / time
      end

    Enum.max(rounds)
  end

  # In a process of its own, so that what lives elsewhere is not collected again and again.
  defp each(call) do
    measure = fn ->
      repeat(call, @calls)
      rounds = for _ <- 1..9, do: elem(:timer.tc(fn -> repeat(call, @calls) end), 0) / @calls
      Enum.at(Enum.sort(rounds), 4)
    end

    measure |> Task.async() |> Task.await(60_000)
  end

  defp repeat(_call, 0), do: :ok

  defp repeat(call, n) do
    call.()
    repeat(call, n - 1)
  end

  defp show(name, value, unit) do
    IO.puts(String.pad_trailing(name, 64) <> :erlang.float_to_binary(value * 1.0, decimals: 2) <> " " <> unit)
  end
end

Tessera.Bench.run()

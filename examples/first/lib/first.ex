defmodule First do
  @moduledoc "Fits a line to points."
  import Nx.Defn

  defn loss({a, b}, x, y), do: Nx.mean((a * x + b - y) ** 2)

  defn step({a, b} = line, x, y) do
    {da, db} = grad(line, &loss(&1, x, y))
    {a - 0.1 * da, b - 0.1 * db}
  end

  def main do
    x = Nx.linspace(-1, 1, n: 100)
    y = Nx.add(Nx.multiply(x, 3), 1)
    {a, b} = Enum.reduce(1..200, {Nx.tensor(0.0), Nx.tensor(0.0)}, fn _, line -> step(line, x, y) end)
    IO.puts("y = #{round_off(a)} x + #{round_off(b)}, on #{backend(a)}")
  end

  defp round_off(t), do: t |> Nx.to_number() |> Float.round(3)
  defp backend(%Nx.Tensor{data: %module{}}), do: inspect(module)
end

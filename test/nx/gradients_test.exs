defmodule Tessera.GradientsTest do
  # The column of Nx in the table of docs/gradients.md: what Nx.Defn.grad gives where there is no derivative. Tessera compiles it; Nx's own
  # evaluator with its own backend must agree, unless Erlang's arithmetic raises there. (test/erl/tessera_gradients_tests.erl has the column of Tessera.)
  use ExUnit.Case, async: true

  @page Path.expand("../../docs/gradients.md", __DIR__)

  # The functions of the table with Nx's ops; nil where Nx has none.
  defp functions do
    %{
      "tessera:abs(X)" => &Nx.abs/1,
      "tessera:abs(tessera:complex(X, 0.0))" => &Nx.abs(Nx.complex(&1, 0.0)),
      "tessera:sign(X)" => &Nx.sign/1,
      "tessera:floor(X)" => &Nx.floor/1,
      "tessera:relu(X)" => nil,
      "tessera:max(X, 1.0)" => &Nx.max(&1, 1.0),
      "tessera:min(1.0, X)" => &Nx.min(1.0, &1),
      "tessera:clip(X, 0.0, 1.0)" => &Nx.clip(&1, 0.0, 1.0),
      "tessera:clip(0.5, X, 1.0)" => &Nx.clip(Nx.tensor(0.5, type: :f64), &1, 1.0),
      "tessera:clip(X, 1.0, 1.0)" => &Nx.clip(&1, 1.0, 1.0),
      "tessera:clip(0.5, 1.0, X)" => &Nx.clip(Nx.tensor(0.5, type: :f64), 1.0, &1),
      "tessera:reduce_max(X)" => &Nx.reduce_max/1,
      "tessera:cumulative_max(X)" => &Nx.cumulative_max/1,
      "tessera:cumulative_min(X)" => &Nx.cumulative_min/1,
      "tessera:window_max(X, 2)" => &Nx.window_max(&1, {2}),
      "tessera:sort(X)" => &Nx.sort/1,
      "tessera:sort(X, \#{descending => true})" => &Nx.sort(&1, direction: :desc),
      "element(1, tessera:top_k(X, 2))" => &elem(Nx.top_k(&1, k: 2), 0),
      "tessera:median(X)" => &Nx.median/1,
      "tessera:quantile(X, 0.25)" => nil,
      "tessera:mode(X)" => &Nx.mode/1,
      "tessera:norm(X)" => &Nx.LinAlg.norm/1,
      "tessera:norm(X, \#{order => 1})" => &Nx.LinAlg.norm(&1, ord: 1),
      "tessera:norm(X, \#{order => infinity})" => &Nx.LinAlg.norm(&1, ord: :inf),
      "tessera:standard_deviation(X)" => &Nx.standard_deviation/1,
      "tessera:remainder(X, 2.0)" => &Nx.remainder(&1, 2.0),
      "tessera:sqrt(X)" => &Nx.sqrt/1,
      "tessera:select(tessera:greater(X, 0), tessera:sqrt(X), 0.0)" =>
        &Nx.select(Nx.greater(&1, 0), Nx.sqrt(&1), 0.0),
      "tessera:pow(X, 0.0)" => &Nx.pow(&1, 0.0),
      "tessera:pow(0.0, X)" => &Nx.pow(0.0, &1),
      "tessera:pow(-2.0, X)" => &Nx.pow(-2.0, &1),
      "tessera:product(X)" => &Nx.product/1,
      "tessera:cumulative_product(X)" => &Nx.cumulative_product/1,
      "tessera:logsumexp(X)" => &Nx.logsumexp/1,
      "tessera:atan2(X, 0.0)" => &Nx.atan2(&1, 0.0),
      "tessera:determinant(X)" => &Nx.LinAlg.determinant/1
    }
  end

  for line <- File.stream!(@page), String.starts_with?(line, "| `") do
    [function, at, _tessera, _jax, nx] = Regex.scan(~r/`([^`]*)`|–/u, line) |> Enum.map(&List.last/1)
    @row {function, at, nx}

    test "#{function} at #{at}" do
      {function, at, expected} = @row

      case Map.fetch!(functions(), function) do
        nil ->
          assert expected == "–"

        f ->
          assert close?(term(expected), gradient(f, term(at), Tessera.Backend, Tessera))

          try do
            gradient(f, term(at), Nx.BinaryBackend, Nx.Defn.Evaluator)
          rescue
            ArithmeticError -> :ok
          else
            own -> assert close?(term(expected), own)
          end
      end
    end
  end

  # The first result once, the second one twice, and so on.
  defp gradient(f, at, backend, compiler) do
    before = Nx.default_backend(backend)

    try do
      weighed = fn x ->
        results = Nx.flatten(f.(x))
        Nx.sum(Nx.multiply(results, Nx.add(Nx.iota(Nx.shape(results)), 1)))
      end

      x = Nx.tensor(at, type: :f64)
      Nx.Defn.jit(&Nx.Defn.grad(&1, weighed), compiler: compiler).(x) |> list()
    after
      Nx.default_backend(before)
    end
  end

  defp list(tensor), do: if(Nx.rank(tensor) == 0, do: Nx.to_number(tensor), else: Nx.to_list(tensor))

  # As Elixir has it, what the table has in Erlang.
  defp term(text) do
    {value, _} = text |> String.replace(~r/\b(nan|infinity|neg_infinity)\b/, ":\\1") |> Code.eval_string()
    value
  end

  defp close?(a, b) when is_list(a) and is_list(b), do: length(a) == length(b) and Enum.zip(a, b) |> Enum.all?(fn {x, y} -> close?(x, y) end)
  defp close?(a, b) when is_number(a) and is_number(b), do: abs(a - b) < 1.0e-12
  defp close?(%Complex{} = a, b), do: close?(Complex.real(a), b) and close?(Complex.imag(a), 0.0)
  defp close?(a, %Complex{} = b), do: close?(b, a)
  defp close?(a, b), do: a == b
end

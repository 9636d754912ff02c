# Gradients through Nx's factorizations: as under Nx's evaluator, and without the loops of Nx's own algorithms.
defmodule Tessera.FactorsTest do
  use ExUnit.Case, async: true

  # A well conditioned matrix, and a positive definite one.
  defp matrix(shape, type) do
    {columns, size} = {elem(shape, tuple_size(shape) - 1), Tuple.product(shape)}
    t = Nx.iota({size}, type: type) |> Nx.multiply(1.7) |> Nx.sin() |> Nx.reshape(shape)
    Nx.add(t, Nx.multiply(3, Nx.eye({elem(shape, tuple_size(shape) - 2), columns}, type: type)))
  end

  defp definite(shape, type) do
    a = matrix(shape, type)
    batch = Enum.to_list(0..(tuple_size(shape) - 3)//1)
    Nx.dot(a, [-1], batch, a, [-1], batch)
  end

  @programs [
    cholesky: {:definite, [{3, 3}, {2, 4, 4}, {2, 3, 2, 2}, {1, 1}]},
    qr: {:matrix, [{3, 3}, {5, 3}, {2, 4, 4}, {2, 4, 2}, {2, 4}]},
    complete_qr: {:matrix, [{4, 4}]},
    lu: {:matrix, [{3, 3}, {2, 4, 4}]},
    eigenvalues: {:definite, [{2, 2}, {3, 3}, {4, 4}, {2, 5, 5}]},
    eigenvectors: {:definite, [{3, 3}, {2, 4, 4}]},
    determinant: {:matrix, [{4, 4}, {2, 5, 5}]},
    invert: {:definite, [{3, 3}, {2, 4, 4}]},
    solve: {:definite, [{4, 4}]}
  ]

  defp program(:cholesky), do: &Nx.LinAlg.cholesky/1
  defp program(:qr), do: &Nx.LinAlg.qr/1
  defp program(:complete_qr), do: &Nx.LinAlg.qr(&1, mode: :complete)
  defp program(:lu), do: &Nx.LinAlg.lu/1
  defp program(:eigenvalues), do: &elem(Nx.LinAlg.eigh(&1), 0)
  # Squares, which do not depend on the signs.
  defp program(:eigenvectors), do: &Nx.pow(elem(Nx.LinAlg.eigh(&1), 1), 2)
  defp program(:determinant), do: &Nx.LinAlg.determinant/1
  defp program(:invert), do: &Nx.LinAlg.invert/1
  defp program(:solve), do: &Nx.LinAlg.solve(&1, Nx.iota({4}, type: :f64))

  defp sum(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> Enum.map(&sum/1) |> Enum.reduce(&Nx.add/2)
  defp sum(t), do: Nx.sum(Nx.multiply(t, Nx.add(1, Nx.cos(Nx.iota(Nx.shape(t), type: :f64)))))

  for {name, {kind, shapes}} <- @programs, shape <- shapes do
    @tag name: name, kind: kind, shape: shape
    test "#{name} of #{inspect(shape)}", %{name: name, kind: kind, shape: shape} do
      fun = program(name)
      a = if kind == :matrix, do: matrix(shape, :f64), else: definite(shape, :f64)
      gradient = fn a -> Nx.Defn.value_and_grad(a, &sum(fun.(&1))) end
      {value, grad} = Tessera.jit_apply(gradient, [a])
      {expected, expected_grad} = Nx.Defn.jit_apply(gradient, [a], compiler: Nx.Defn.Evaluator)
      # Nx's own eigenvalues have few digits.
      tolerance = if name in [:eigenvalues, :eigenvectors], do: 1.0e-3, else: 1.0e-7
      close(value, expected, tolerance)
      close(grad, expected_grad, tolerance)

      # A wide matrix has Nx's loop.
      wide = name == :qr and shape == {2, 4}
      assert text(gradient, a) =~ "while" == wide
    end
  end

  defp close(a, b, tolerance) do
    assert Nx.to_number(Nx.all_close(Nx.backend_copy(a, Nx.BinaryBackend), b, rtol: tolerance, atol: tolerance)) == 1, inspect({a, b})
  end

  # The program, which is compiled as it is.
  defp text(fun, a) do
    roots = Nx.Defn.Composite.flatten_list([Nx.Defn.debug_expr(fun).(a)])
    {text, [0]} = :tessera_nx_plan.text(roots, [{:f64, Nx.shape(a)}], [])
    text
  end

  test "StableHLO has the loops, as it has no factorizations" do
    gradient = fn a -> Nx.Defn.grad(a, &Nx.sum(Nx.LinAlg.qr(&1) |> elem(1))) end
    assert Tessera.to_mlir_module(gradient, [matrix({3, 3}, :f32)]).mlir_module =~ "stablehlo.while"
  end

  test "f32, integers and vectorized matrices" do
    gradient = fn a -> Nx.Defn.grad(a, &Nx.sum(Nx.LinAlg.cholesky(&1))) end

    for a <- [definite({3, 3}, :f32), Nx.tensor([[4, 2], [2, 5]]), Nx.vectorize(definite({2, 3, 3}, :f32), :x)] do
      grad = Tessera.jit_apply(gradient, [a])
      expected = Nx.Defn.jit_apply(gradient, [a], compiler: Nx.Defn.Evaluator)
      assert Nx.all_close(Nx.devectorize(Nx.backend_copy(grad, Nx.BinaryBackend)), Nx.devectorize(expected), rtol: 1.0e-3) |> Nx.to_number() == 1
    end
  end
end

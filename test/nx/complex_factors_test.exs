# Linear algebra of complex matrices: native, and as under Nx's evaluator.
defmodule Tessera.ComplexFactorsTest do
  use ExUnit.Case, async: true

  defp matrix(shape) do
    part = fn seed -> Nx.iota({Tuple.product(shape)}, type: :f64) |> Nx.add(1) |> Nx.multiply(seed) |> Nx.sin() |> Nx.reshape(shape) end
    Nx.complex(part.(12.9898), part.(78.233))
  end

  # Hermitian and positive definite.
  defp definite(n), do: Nx.add(Nx.dot(matrix({n, n}), Nx.LinAlg.adjoint(matrix({n, n}))), Nx.multiply(3, Nx.eye(n)))

  defp same(fun, args, tolerance \\ 1.0e-8) do
    [got, expected] =
      for compiler <- [Tessera, Nx.Defn.Evaluator], do: List.wrap(results(Nx.Defn.jit_apply(fun, args, compiler: compiler)))

    for {a, b} <- Enum.zip(got, expected) do
      assert Nx.type(a) == Nx.type(b)
      assert Nx.to_number(Nx.all_close(Nx.backend_copy(a, Nx.BinaryBackend), b, rtol: tolerance, atol: tolerance)) == 1, inspect({a, b})
    end
  end

  defp results(t) when is_tuple(t), do: Tuple.to_list(t)
  defp results(t), do: t

  test "factors are Nx's" do
    same(&Nx.LinAlg.cholesky/1, [definite(4)])
    same(&Nx.LinAlg.lu/1, [matrix({4, 4})])
    for shape <- [{1, 1}, {4, 4}, {5, 3}, {3, 5}], do: same(&Nx.LinAlg.qr/1, [matrix(shape)])
    same(&Nx.LinAlg.qr(&1, mode: :complete), [matrix({5, 3})])
    same(&Nx.LinAlg.determinant/1, [matrix({4, 4})])
  end

  test "systems" do
    same(&Nx.LinAlg.solve/2, [matrix({4, 4}), matrix({4, 2})])
    same(&Nx.LinAlg.invert/1, [matrix({4, 4})])

    for transform <- [:none, :transpose, :conjugate], lower <- [true, false], left <- [true, false] do
      a = Nx.add(matrix({3, 3}), Nx.multiply(4, Nx.eye(3)))
      a = if lower, do: Nx.tril(a), else: Nx.triu(a)
      options = [transform_a: transform, lower: lower, left_side: left]
      same(&Nx.LinAlg.triangular_solve(&1, &2, options), [a, matrix({3, 3})])
    end
  end

  # Vectors have phases that Nx's have not: the element of largest size is real and positive.
  test "eigenvectors" do
    a = definite(5)
    {values, vectors} = Tessera.jit_apply(&Nx.LinAlg.eigh/1, [a])
    assert {Nx.type(values), Nx.type(vectors)} == {{:c, 128}, {:c, 128}}
    [values, vectors] = for t <- [values, vectors], do: Nx.backend_copy(t, Nx.BinaryBackend)
    again = vectors |> Nx.multiply(values) |> Nx.dot(Nx.LinAlg.adjoint(vectors))
    assert Nx.to_number(Nx.all_close(again, a, rtol: 1.0e-12, atol: 1.0e-12)) == 1
    largest = vectors |> Nx.abs() |> Nx.argmax(axis: 0) |> Nx.new_axis(0)
    assert Nx.take_along_axis(vectors, largest, axis: 0) |> Nx.phase() |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number() < 1.0e-12
  end

  # Without the loops of Nx's own algorithms.
  @tag :factor_gradients
  test "gradients" do
    programs = [
      &Nx.LinAlg.cholesky/1,
      &Nx.LinAlg.determinant/1,
      &Nx.LinAlg.invert/1,
      &elem(Nx.LinAlg.lu(&1), 1),
      &elem(Nx.LinAlg.lu(&1), 2),
      &elem(Nx.LinAlg.qr(&1), 0),
      &elem(Nx.LinAlg.qr(&1), 1)
    ]

    for fun <- programs do
      gradient = &Nx.Defn.grad(&1, fn a -> Nx.sum(Nx.real(fun.(a))) end)
      same(gradient, [definite(4)])
      refute text(gradient, definite(4)) =~ "while"
    end
  end

  @tag :factor_gradients
  test "gradients of wide matrices" do
    for part <- [0, 1] do
      gradient = &Nx.Defn.grad(&1, fn a -> Nx.sum(Nx.real(elem(Nx.LinAlg.qr(a), part))) end)
      same(gradient, [matrix({3, 5})])
      refute text(gradient, matrix({3, 5})) =~ "while"
    end
  end

  # Nx's own have few digits. Its gradient of eigenvectors depends on their phases, so it has nothing to be compared with.
  test "gradients of eigenvalues" do
    for n <- [2, 3, 4, 5] do
      gradient = &Nx.Defn.grad(&1, fn a -> Nx.sum(Nx.multiply(Nx.iota({n}), Nx.real(elem(Nx.LinAlg.eigh(a), 0)))) end)
      same(gradient, [definite(n)], 1.0e-3)
      refute text(gradient, definite(n)) =~ "while"
    end

    vectors = &Nx.Defn.grad(&1, fn a -> Nx.sum(Nx.abs(elem(Nx.LinAlg.eigh(a), 1))) end)
    refute text(vectors, definite(4)) =~ "while"
  end

  # The program, which is compiled as it is.
  defp text(fun, a) do
    roots = Nx.Defn.Composite.flatten_list([Nx.Defn.debug_expr(fun).(a)])
    {text, [0]} = :tessera_nx_plan.text(roots, [{:c128, Nx.shape(a)}], [])
    text
  end
end

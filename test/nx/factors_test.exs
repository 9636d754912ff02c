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
    qr: {:matrix, [{3, 3}, {5, 3}, {2, 4, 4}, {2, 4, 2}, {2, 4}, {3, 4}, {1, 5}, {2, 2, 5}]},
    complete_qr: {:matrix, [{4, 4}, {5, 3}, {2, 4}]},
    precise_qr: {:matrix, [{4, 4}, {2, 4}]},
    lu: {:matrix, [{3, 3}, {2, 4, 4}]},
    eigenvalues: {:definite, [{2, 2}, {3, 3}, {4, 4}, {2, 5, 5}]},
    eigenvectors: {:definite, [{3, 3}, {2, 4, 4}]},
    precise_eigenvalues: {:definite, [{4, 4}]},
    singular_values: {:matrix, [{3, 3}, {5, 3}, {3, 5}, {4, 1}, {1, 4}, {2, 4, 3}, {2, 3, 4}, {2, 3, 3}]},
    singular_vectors: {:matrix, [{3, 3}, {4, 3}, {3, 4}, {2, 4, 3}, {2, 3, 4}]},
    null_space: {:matrix, [{5, 3}]},
    thin_singular_vectors: {:matrix, [{3, 3}, {5, 3}, {3, 5}, {2, 4, 3}]},
    few_rounds: {:matrix, [{4, 3}]},
    determinant: {:matrix, [{4, 4}, {2, 5, 5}]},
    invert: {:definite, [{3, 3}, {2, 4, 4}]},
    solve: {:definite, [{4, 4}]}
  ]

  @new_gradients [:qr, :complete_qr, :precise_qr, :singular_values, :singular_vectors, :null_space, :thin_singular_vectors, :few_rounds]

  defp program(:cholesky), do: &Nx.LinAlg.cholesky/1
  defp program(:qr), do: &Nx.LinAlg.qr/1
  defp program(:complete_qr), do: &Nx.LinAlg.qr(&1, mode: :complete)
  defp program(:lu), do: &Nx.LinAlg.lu/1
  defp program(:eigenvalues), do: &elem(Nx.LinAlg.eigh(&1), 0)
  defp program(:eigenvectors), do: &squares(elem(Nx.LinAlg.eigh(&1), 1))
  defp program(:precise_qr), do: &Nx.LinAlg.qr(&1, eps: 1.0e-12)
  defp program(:precise_eigenvalues), do: &elem(Nx.LinAlg.eigh(&1, eps: 1.0e-9, max_iter: 500), 0)
  defp program(:singular_values), do: &elem(Nx.LinAlg.svd(&1), 1)
  defp program(:singular_vectors), do: &squares(Nx.LinAlg.svd(&1))
  # A projection, which does not depend on the basis.
  defp program(:null_space) do
    fn a ->
      null = elem(Nx.LinAlg.svd(a), 0)[[.., 3..4]]
      Nx.dot(null, Nx.transpose(null))
    end
  end

  defp program(:thin_singular_vectors), do: &squares(Nx.LinAlg.svd(&1, full_matrices?: false))
  defp program(:few_rounds), do: &elem(Nx.LinAlg.svd(&1, max_iter: 40), 1)
  defp program(:determinant), do: &Nx.LinAlg.determinant/1
  defp program(:invert), do: &Nx.LinAlg.invert/1
  defp program(:solve), do: &Nx.LinAlg.solve(&1, Nx.iota({4}, type: :f64))

  # They do not depend on the signs.
  defp squares({u, _, vt}), do: {squares(u), squares(vt)}
  defp squares(t), do: Nx.pow(t, 2)

  defp sum(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> Enum.map(&sum/1) |> Enum.reduce(&Nx.add/2)
  defp sum(t), do: Nx.sum(Nx.multiply(t, Nx.add(1, Nx.cos(Nx.iota(Nx.shape(t), type: :f64)))))

  for {name, {kind, shapes}} <- @programs, shape <- shapes do
    @tag name: name, kind: kind, shape: shape
    if name in @new_gradients, do: @tag(:factor_gradients)
    test "#{name} of #{inspect(shape)}", %{name: name, kind: kind, shape: shape} do
      fun = program(name)
      a = if kind == :matrix, do: matrix(shape, :f64), else: definite(shape, :f64)
      gradient = fn a -> Nx.Defn.value_and_grad(a, &sum(fun.(&1))) end
      {value, grad} = Tessera.jit_apply(gradient, [a])
      {expected, expected_grad} = Nx.Defn.jit_apply(gradient, [a], compiler: Nx.Defn.Evaluator)
      # Nx's own eigenvalues have few digits.
      exact = [:cholesky, :qr, :complete_qr, :precise_qr, :lu, :determinant, :invert, :solve]
      tolerance = if name in exact, do: 1.0e-7, else: 1.0e-3
      close(value, expected, tolerance)
      close(grad, expected_grad, tolerance)
      refute text(gradient, a) =~ "while"
    end
  end

  # With their signs, which a gradient has to take as they are: against differences.
  for shape <- [{3, 3}, {4, 3}, {3, 4}, {2, 5}, {5, 2}, {1, 3}], full <- [true, false], part <- [0, 2] do
    @tag shape: shape, full: full, part: part
    @tag :factor_gradients
    test "part #{part} of singular vectors of #{inspect(shape)}, full: #{full}", %{shape: shape, full: full, part: part} do
      {m, n} = shape
      k = min(m, n)

      fun = fn a ->
        vectors = elem(Nx.LinAlg.svd(a, full_matrices?: full), part)
        # The other vectors may be any basis of the rest.
        sum(if part == 0, do: vectors[[.., 0..(k - 1)]], else: vectors[0..(k - 1)])
      end

      for seed <- [0.3, 1.1, 2.9, 4.7, 5.2] do
        elements = for i <- 1..(m * n), do: :math.sin(12.9898 * seed * i * i)
        grad = Tessera.jit_apply(fn a -> Nx.Defn.grad(a, fun) end, [Nx.tensor(elements, type: :f64) |> Nx.reshape(shape)])
        close(grad, Nx.tensor(differences(fun, elements, shape), type: :f64) |> Nx.reshape(shape), 1.0e-4)
      end
    end
  end

  defp differences(fun, elements, shape) do
    value = fn elements ->
      Tessera.jit_apply(fun, [Nx.tensor(elements, type: :f64) |> Nx.reshape(shape)]) |> Nx.to_number()
    end

    for i <- 0..(length(elements) - 1) do
      [more, less] = for h <- [1.0e-6, -1.0e-6], do: value.(List.update_at(elements, i, &(&1 + h)))
      (more - less) / 2.0e-6
    end
  end

  defp close(a, b, tolerance) do
    assert Nx.to_number(Nx.all_close(Nx.backend_copy(a, Nx.BinaryBackend), b, rtol: tolerance, atol: tolerance)) == 1, inspect({a, b})
  end

  # The program, which is compiled as it is.
  defp text(fun, a) do
    roots = Nx.Defn.Composite.flatten_list([Nx.Defn.debug_expr(fun).(a)])
    a = Nx.devectorize(a)
    {text, [0]} = :tessera_nx_plan.text(roots, [{:tessera_nx_tensor.core_type(Nx.type(a)), Nx.shape(a)}], [])
    text
  end

  # Nx differentiates its own algorithm, whose conds use one another.
  @tag :factor_gradients
  test "gradients of gradients" do
    for fun <- [&Nx.LinAlg.determinant/1, &Nx.sum(elem(Nx.LinAlg.lu(&1), 2)), &Nx.sum(Nx.LinAlg.solve(&1, Nx.iota({4}, type: :f64)))] do
      second = fn a -> Nx.Defn.grad(a, fn a -> Nx.sum(Nx.multiply(Nx.Defn.grad(a, fun), Nx.iota({4, 4}))) end) end
      a = matrix({4, 4}, :f64)
      close(Tessera.jit_apply(second, [a]), Nx.Defn.jit_apply(second, [a], compiler: Nx.Defn.Evaluator), 1.0e-6)
      assert length(Regex.scan(~r/while/, text(second, a))) < 40
    end
  end

  # Of rank 2, in 4 dimensions.
  test "values that are rounding errors are 0" do
    a = Nx.tensor([[1.0, 2.0, 0.5, 3.0], [0.25, 1.0, 2.0, 0.1]])

    for type <- [:f32, :f64], a = Nx.as_type(a, type), gram = Nx.dot(a, [0], a, [0]) do
      {values, _} = Tessera.jit_apply(&Nx.LinAlg.eigh/1, [gram])
      assert [x, y, +0.0, +0.0] = Nx.to_flat_list(values)
      assert x > y and y > 0
      {_, values, _} = Tessera.jit_apply(&Nx.LinAlg.svd(&1, full_matrices?: false), [Nx.concatenate([a, a])])
      assert [_, _, +0.0, +0.0] = Nx.to_flat_list(values)
    end

    # Small ones that are none stay.
    {values, _} = Tessera.jit_apply(&Nx.LinAlg.eigh/1, [Nx.tensor([[3.0e-20, 0.0], [0.0, -1.0e-20]])])
    assert_in_delta Nx.to_number(values[1]), -1.0e-20, 1.0e-25
  end

  @tag :factor_gradients
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
      refute text(gradient, a) =~ "while"
    end

    for type <- [:f16, :bf16, :f32, :s32, :u8], fun <- [&Nx.LinAlg.svd/1, &Nx.LinAlg.qr/1, &Nx.LinAlg.eigh/1, &Nx.LinAlg.lu/1] do
      gradient = fn a -> Nx.Defn.grad(a, &sum(fun.(&1))) end
      refute text(gradient, definite({3, 3}, type)) =~ "while"
    end
  end
end

defmodule Tessera.UsesTest do
  # Programs of the kind that users write, compiled and under Nx's evaluator on Tessera.Backend, against Nx.BinaryBackend.
  use ExUnit.Case, async: true
  import Nx.Defn

  defmodule Linear do
    @derive {Nx.Container, containers: [:kernel, :bias], keep: [:name]}
    defstruct [:kernel, :bias, :name]
  end

  # Of its two tensors only the first is ever asked for.
  defmodule Lazy do
    defstruct [:read, :unread]

    defimpl Nx.LazyContainer do
      def traverse(%{read: read, unread: unread}, acc, fun) do
        {a, acc} = fun.(Nx.to_template(read), fn -> read end, acc)
        {b, acc} = fun.(Nx.to_template(unread), fn -> raise "it was read" end, acc)
        {%{read: a, unread: b}, acc}
      end
    end
  end

  # ---- layers

  defn(dense(x, %Linear{} = layer), do: %{layer | kernel: Nx.dot(x, layer.kernel) + layer.bias, bias: layer.bias})
  defn(gelu(x), do: x * 0.5 * (1 + Nx.erf(x / Nx.sqrt(2))))

  defn softmax(x, opts \\ []) do
    opts = keyword!(opts, axis: -1)
    e = Nx.exp(x - stop_grad(Nx.reduce_max(x, axes: [opts[:axis]], keep_axes: true)))
    e / Nx.sum(e, axes: [opts[:axis]], keep_axes: true)
  end

  defn layer_norm(x, gamma, beta) do
    mean = Nx.mean(x, axes: [-1], keep_axes: true)
    (x - mean) * Nx.rsqrt(Nx.variance(x, axes: [-1], keep_axes: true) + 1.0e-5) * gamma + beta
  end

  defn attention(x, p) do
    {b, t, d} = Nx.shape(x)
    [q, k, v] = heads(x, p)
    seen = Nx.broadcast(Nx.iota({t, t}, axis: 1) <= Nx.iota({t, t}, axis: 0), {b, 4, t, t})
    scores = Nx.select(seen, Nx.dot(q, [3], [0, 1], k, [3], [0, 1]) / 2, -1.0e9)
    o = Nx.dot(softmax(scores), [3], [0, 1], v, [2], [0, 1])
    o |> Nx.transpose(axes: [0, 2, 1, 3]) |> Nx.reshape({b, t, d}) |> Nx.dot(p.o)
  end

  deftransformp heads(x, p) do
    {b, t, d} = Nx.shape(x)
    for w <- [p.q, p.k, p.v], do: Nx.dot(x, w) |> Nx.reshape({b, t, 4, div(d, 4)}) |> Nx.transpose(axes: [0, 2, 1, 3])
  end

  defn(attention_grad(x, p), do: grad(p, &Nx.sum(attention(x, &1))))
  defn(embedding(ids, table), do: Nx.take(table, ids, axis: 0))

  defn dropout(x, key, opts \\ []) do
    {u, key} = Nx.Random.uniform(key, shape: Nx.shape(x))
    {Nx.select(u < opts[:rate], 0, x / (1 - opts[:rate])), key}
  end

  defn lstm(x, h, wi, wh) do
    {h, _, _, _, _} =
      while {h, c = h * 0, x, wi, wh}, i <- 0..(Nx.axis_size(x, 1) - 1) do
        g = Nx.dot(Nx.take(x, i, axis: 1), wi) + Nx.dot(h, wh)
        c = Nx.sigmoid(g[[.., 0..3]]) * c + Nx.sigmoid(g[[.., 4..7]]) * Nx.tanh(g[[.., 8..11]])
        {Nx.sigmoid(g[[.., 12..15]]) * Nx.tanh(c), c, x, wi, wh}
      end

    h
  end

  # ---- statistics

  defn kmeans(x, c, opts \\ []) do
    opts = keyword!(opts, iterations: 20, tolerance: 1.0e-4)

    {c, _, i, _} =
      while {c, shift = Nx.Constants.infinity(:f32), i = 0, x}, i < opts[:iterations] and shift > opts[:tolerance] do
        mine = Nx.as_type(Nx.new_axis(nearest(x, c), 1) == Nx.iota({1, Nx.axis_size(c, 0)}), :f32)
        new = Nx.dot(Nx.transpose(mine), x) / Nx.max(Nx.new_axis(Nx.sum(mine, axes: [0]), 1), 1)
        {new, Nx.sum((new - c) ** 2), i + 1, x}
      end

    {c, nearest(x, c), i}
  end

  defnp nearest(x, c), do: Nx.argmin(Nx.sum((Nx.new_axis(x, 1) - Nx.new_axis(c, 0)) ** 2, axes: [-1]), axis: 1)

  defn principal(x, v) do
    x = x - Nx.mean(x, axes: [0])
    {v, _} = while({v, x}, _ <- 1..40, do: {normed(Nx.dot(Nx.dot(v, Nx.transpose(x)), x)), x})
    v
  end

  defnp normed(v), do: v / Nx.LinAlg.norm(v)

  defn regression(x, y, w) do
    {w, _, _} = while({w, x, y}, _ <- 1..50, do: {w - 0.05 * grad(w, &Nx.mean((Nx.dot(x, &1) - y) ** 2)), x, y})
    w
  end

  defn logistic({w, b}, x, y, opts \\ [rate: 0.1]) do
    {loss, {gw, gb}} =
      value_and_grad({w, b}, fn {w, b} ->
        z = Nx.dot(x, w) + b
        Nx.mean(Nx.max(z, 0) - z * y + Nx.log1p(Nx.exp(-Nx.abs(z))))
      end)

    {loss, {w - opts[:rate] * gw, b - opts[:rate] * gb}}
  end

  defn random(key) do
    {a, key} = Nx.Random.normal(key, 1.0, 2.0, shape: {2, 2})
    {b, key} = Nx.Random.randint(key, -5, 100, shape: {5}, type: :s64)
    {a, b, Nx.Random.split(key, parts: 3), Nx.Random.fold_in(key, 7)}
  end

  # ---- the language

  defn(lazy(given, y), do: given.read + y)
  defn(newton(x), do: while(x, Nx.abs(x * x - 2) > 1.0e-5, do: x - (x * x - 2) / (2 * x)))
  deftransform(series(x, opts \\ []), do: Enum.reduce(1..Keyword.fetch!(opts, :terms), x, &Nx.add(Nx.multiply(&2, x), &1)))
  defn(clipped(x), do: grad(x, fn x -> Nx.sum(custom_grad(Nx.exp(x), [x], fn g -> [Nx.clip(g * Nx.exp(x), -1, 1)] end)) end))
  defn(stopped(x), do: grad(x, fn x -> Nx.sum(x * stop_grad(x)) end))
  defn(twice(x), do: grad(x, fn x -> Nx.sum(grad(x, fn x -> Nx.sum(Nx.sin(x) ** 3) end)) end))
  defn(parts(x), do: {x[0], x[[.., 1]], x[[0..1, -1]], x[[1..2//1, 0..-1//2]]})

  defn chosen(x) do
    cond do
      Nx.all(x > 3) -> Nx.sum(x)
      Nx.any(x < 0) -> Nx.product(x)
      true -> Nx.sum(x) / 2
    end
  end

  defp t(shape, step \\ 0.37), do: Nx.iota(shape, type: :f64) |> Nx.multiply(step) |> Nx.sin() |> Nx.as_type(:f32)

  defp weights, do: Map.new([q: 0.1, k: 0.2, v: 0.3, o: 0.15], fn {name, step} -> {name, t({16, 16}, step)} end)

  defp programs do
    [
      dense: {&dense/2, [t({4, 16}), %Linear{kernel: t({16, 8}), bias: t({8}), name: :first}]},
      gelu: {&gelu/1, [t({4, 16})]},
      softmax: {&softmax(&1, axis: 0), [t({4, 16})]},
      softmax_rows: {&softmax/1, [Nx.vectorize(t({4, 16}), :rows)]},
      layer_norm: {&layer_norm/3, [t({4, 16}), t({16}), t({16}, 0.2)]},
      attention: {&attention/2, [t({2, 6, 16}), weights()]},
      attention_grad: {&attention_grad/2, [t({2, 6, 16}), weights()]},
      embedding: {&embedding/2, [Nx.tensor([[0, 2], [5, 1]]), t({6, 4})]},
      dropout: {&dropout(&1, &2, rate: 0.3), [t({4, 16}), Nx.Random.key(3)]},
      lstm: {&lstm/4, [t({2, 5, 3}), t({2, 4}), t({3, 16}, 0.1), t({4, 16}, 0.3)]},
      kmeans: {&kmeans/2, [t({60, 3}, 1.7), t({3, 3}, 0.9)]},
      kmeans_options: {&kmeans(&1, &2, iterations: 3, tolerance: 0.0), [t({60, 3}, 1.7), t({3, 3}, 0.9)]},
      principal: {&principal/2, [t({40, 4}, 1.7), t({4})]},
      regression: {&regression/3, [t({30, 4}, 1.7), t({30}), t({4})]},
      regressions: {&regression/3, [t({30, 4}, 1.7), t({30}), Nx.vectorize(t({3, 4}), :starts)]},
      logistic: {&logistic/3, [{t({4}), t({})}, t({30, 4}, 1.7), Nx.greater(t({30}), 0)]},
      random: {&random/1, [Nx.Random.key(42)]},
      lazy: {&lazy/2, [%Lazy{read: t({3}), unread: t({2})}, 1.0]},
      newton: {&newton/1, [Nx.vectorize(Nx.tensor([1.0, 2.0, 30.0]), :starts)]},
      series: {&series(&1, terms: 4), [t({3})]},
      clipped: {&clipped/1, [t({3}, 3)]},
      stopped: {&stopped/1, [t({3}, 3)]},
      twice: {&twice/1, [Nx.vectorize(t({4, 3}), :rows)]},
      parts: {&parts/1, [t({3, 4})]},
      chosen: {&chosen/1, [Nx.vectorize(Nx.tensor([[4, 5], [-1, 2], [1, 2]]), :rows)]}
    ]
  end

  defp leaves(container), do: Nx.Defn.Composite.flatten_list([container]) |> Enum.map(&Nx.backend_copy(&1, Nx.BinaryBackend))

  defp assert_same(name, container, expected) do
    for {got, want} <- Enum.zip_reduce([leaves(container), leaves(expected)], [], fn [a, b], all -> [{a, b} | all] end) do
      form = &{&1.type, &1.shape, &1.names, &1.vectorized_axes}
      assert form.(got) == form.(want), "#{name}: #{inspect(got)} for #{inspect(want)}"
      close = Nx.all_close(Nx.devectorize(got), Nx.devectorize(want), atol: 1.0e-4, rtol: 1.0e-4)
      assert Nx.to_number(close) == 1, "#{name}: #{inspect(got)} for #{inspect(want)}"
    end
  end

  defp on_tessera(%Lazy{} = lazy), do: lazy
  defp on_tessera(arg), do: Nx.Defn.Composite.traverse(Nx.Defn.Composite.traverse(arg, &Nx.to_tensor/1), &Nx.backend_copy(&1, Tessera.Backend))

  test "compiled, and op by op on the backend" do
    for {name, {fun, args}} <- programs() do
      Nx.default_backend(Nx.BinaryBackend)
      expected = Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator)
      assert_same(name, Nx.Defn.jit_apply(fun, args, compiler: Tessera), expected)
      Nx.default_backend(Tessera.Backend)
      evaluated = Nx.Defn.jit_apply(fun, Enum.map(args, &on_tessera/1), compiler: Nx.Defn.Evaluator)
      Nx.default_backend(Nx.BinaryBackend)
      assert_same("#{name} on the backend", evaluated, expected)
    end
  end
end

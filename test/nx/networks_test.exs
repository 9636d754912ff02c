# Convolutional networks as Axon writes them, with channels last: forward and a step of training. At full size a compiled network
# is compared with the same ops run one by one; at a small size with Nx.BinaryBackend.
defmodule Tessera.NetworksTest do
  use ExUnit.Case, async: true
  import Nx.Defn
  @moduletag timeout: 900_000

  deftransformp convolved(x, kernel, opts) do
    last = [input_permutation: [0, 3, 1, 2], kernel_permutation: [3, 2, 0, 1], output_permutation: [0, 3, 1, 2]]
    Nx.conv(x, kernel, opts ++ last)
  end

  defnp conv(x, %{kernel: kernel, bias: bias}, opts \\ []), do: convolved(x, kernel, opts) + bias

  defnp dense(x, %{kernel: kernel, bias: bias}), do: Nx.dot(x, kernel) + bias

  defnp pool(x), do: Nx.window_mean(x, {1, 2, 2, 1}, strides: [1, 2, 2, 1])

  defn lenet(params, x) do
    x = x |> conv(params.conv1, padding: :same) |> Nx.tanh() |> pool() |> conv(params.conv2) |> Nx.max(0) |> most()
    x = x |> Nx.flatten(axes: [1, 2, 3]) |> dense(params.dense1) |> Nx.sigmoid() |> dense(params.dense2)
    Nx.exp(x - Nx.reduce_max(x, axes: [1], keep_axes: true)) |> normalize()
  end

  defnp most(x), do: Nx.window_max(x, {1, 2, 2, 1}, strides: [1, 2, 2, 1])
  defnp normalize(x), do: x / Nx.sum(x, axes: [1], keep_axes: true)

  # Two convolutions with batch normalization, and the shortcut.
  defn block(params, x) do
    y = x |> conv(params.conv1, padding: :same) |> batch_norm(params.norm1) |> Nx.max(0)
    y = y |> conv(params.conv2, padding: :same) |> batch_norm(params.norm2)
    Nx.max(x + y, 0)
  end

  defnp batch_norm(x, %{scale: scale, offset: offset}) do
    mean = Nx.mean(x, axes: [0, 1, 2], keep_axes: true)
    variance = Nx.variance(x, axes: [0, 1, 2], keep_axes: true)
    scale * (x - mean) * Nx.rsqrt(variance + 1.0e-5) + offset
  end

  defn cross_entropy(params, x, labels), do: -Nx.mean(Nx.sum(labels * Nx.log(lenet(params, x) + 1.0e-7), axes: [1]))
  defn distance(params, x, target), do: Nx.mean((block(params, x) - target) ** 2)

  defn lenet_step(params, x, labels), do: updated(params, value_and_grad(params, &cross_entropy(&1, x, labels)))
  defn block_step(params, x, target), do: updated(params, value_and_grad(params, &distance(&1, x, target)))

  deftransformp updated(params, {loss, grads}) do
    {grads, []} = {Nx.Defn.Composite.flatten_list([grads]), []}
    {params, []} = Nx.Defn.Composite.traverse(params, grads, fn p, [g | rest] -> {Nx.subtract(p, Nx.multiply(0.1, g)), rest} end)
    {loss, params}
  end

  # Numbers that look random, of the size that training begins with.
  defp numbers(shape, seed, scale) do
    Nx.iota(shape, type: :f32) |> Nx.multiply(0.7315) |> Nx.add(seed) |> Nx.sin() |> Nx.multiply(scale)
  end

  defp layer(shape, seed) do
    fan = shape |> Tuple.delete_at(tuple_size(shape) - 1) |> Tuple.product()
    %{kernel: numbers(shape, seed, 1 / :math.sqrt(fan)), bias: numbers({elem(shape, tuple_size(shape) - 1)}, seed + 1, 0.1)}
  end

  defp lenet_inputs(batch, size) do
    inner = div(div(size, 2) - 4, 2)

    params = %{
      conv1: layer({5, 5, 1, 6}, 1),
      conv2: layer({5, 5, 6, 16}, 3),
      dense1: layer({inner * inner * 16, 84}, 5),
      dense2: layer({84, 10}, 7)
    }

    labels = Nx.equal(Nx.iota({1, 10}), Nx.reshape(Nx.remainder(Nx.iota({batch}), 10), {batch, 1}))
    [params, numbers({batch, size, size, 1}, 9, 1.0), labels]
  end

  defp block_inputs(batch, size, channels) do
    norm = fn seed -> %{scale: Nx.add(1, numbers({channels}, seed, 0.2)), offset: numbers({channels}, seed, 0.1)} end
    conv = layer({3, 3, channels, channels}, 1)
    params = %{conv1: conv, norm1: norm.(2), conv2: layer({3, 3, channels, channels}, 4), norm2: norm.(5)}
    [params, numbers({batch, size, size, channels}, 6, 1.0), numbers({batch, size, size, channels}, 8, 1.0)]
  end

  defp leaves(container), do: Nx.Defn.Composite.flatten_list([container])

  defp on_tessera(fun, args), do: Nx.with_default_backend(Tessera.Backend, fn -> Tessera.jit_apply(fun, args) end)

  defp one_by_one(fun, args) do
    args = Enum.map(args, &Nx.backend_copy(&1, Tessera.Backend))
    Nx.with_default_backend(Tessera.Backend, fn -> Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator) end)
  end

  defp on_binaries(fun, args), do: Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator)

  for {name, forward, step, full, small} <- [
        {"LeNet", :lenet, :lenet_step, {:lenet_inputs, [128, 28]}, {:lenet_inputs, [2, 12]}},
        {"a ResNet block", :block, :block_step, {:block_inputs, [8, 56, 64]}, {:block_inputs, [2, 5, 4]}}
      ] do
    @forward forward
    @step step
    @full full
    @small small
    test "#{name}: compiled as one by one" do
      {inputs, sizes} = @full
      [params, x, _] = args = inputs(inputs, sizes)
      same(on_tessera(forward(@forward), [params, x]), one_by_one(forward(@forward), [params, x]))
      same(on_tessera(step(@step), args), one_by_one(step(@step), args))
    end

    test "#{name}: as on Nx.BinaryBackend" do
      {inputs, sizes} = @small
      [params, x, _] = args = inputs(inputs, sizes)
      close(on_tessera(forward(@forward), [params, x]), on_binaries(forward(@forward), [params, x]))
      close(on_tessera(step(@step), args), on_binaries(step(@step), args))
    end
  end

  defp inputs(:lenet_inputs, [batch, size]), do: lenet_inputs(batch, size)
  defp inputs(:block_inputs, [batch, size, channels]), do: block_inputs(batch, size, channels)
  defp forward(:lenet), do: &lenet/2
  defp forward(:block), do: &block/2
  defp step(:lenet_step), do: &lenet_step/3
  defp step(:block_step), do: &block_step/3

  defp same(a, b) do
    for {x, y} <- Enum.zip(leaves(a), leaves(b)), do: assert(Nx.to_binary(x) == Nx.to_binary(y))
  end

  defp close(a, b) do
    for {x, y} <- Enum.zip(leaves(a), leaves(b)) do
      assert Nx.to_number(Nx.all_close(Nx.backend_copy(x, Nx.BinaryBackend), y, rtol: 1.0e-4, atol: 1.0e-5)) == 1
    end
  end

  test "training lessens the loss" do
    [params, x, labels] = lenet_inputs(16, 28)
    step = Tessera.jit(&lenet_step/3)

    {losses, _} =
      Enum.map_reduce(1..20, params, fn _, params ->
        {loss, params} = step.(params, x, labels)
        {Nx.to_number(loss), params}
      end)

    assert List.last(losses) < 0.98 * hd(losses)
  end
end

# Records what Nx.Random gives, on Nx.BinaryBackend, for test/erl/tessera_random_tests.erl, as terms that Erlang reads
# without Nx.
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir test/nx/record_random.exs
#
# Each term is {Function, Seed, Arguments, Options, Sample, NextKey}: the call of tessera_random that is the same, with tensors
# as {tensor, Type, Shape, Binary}.

Application.ensure_all_started(:nx)

defmodule RandomRecorder do
  def tensor(%Nx.Tensor{} = t), do: {:tensor, type(t.type), t.shape, Nx.to_binary(t)}
  def tensor(other), do: other

  def type({kind, bits}), do: :"#{kind}#{bits}"

  def case(name, seed, args, opts, {sample, key}) do
    {name, seed, Enum.map(args, &tensor/1), Map.new(opts, &option/1), tensor(sample), tensor(key)}
  end

  defp option({:type, {kind, bits}}), do: {:type, type({kind, bits})}
  defp option(other), do: other

  def call(name, seed, args, opts) do
    key = Nx.Random.key(seed)
    RandomRecorder.case(name, seed, args, opts, apply(Nx.Random, name, [key | args] ++ [opts]))
  end
end

shapes = [{}, {1}, {2}, {5}, {2, 3}, {3, 1, 7}]
seeds = [0, 1, 42, 1701, 999_999_999_999, 0xFFFFFFFFFFFFFFFF]

keys =
  for seed <- seeds do
    key = Nx.Random.key(seed)
    RandomRecorder.case(:key, seed, [], %{}, {key, key})
  end

splits =
  for seed <- seeds, parts <- [1, 2, 3, 8] do
    key = Nx.Random.key(seed)
    RandomRecorder.case(:split, seed, [parts], %{}, {Nx.Random.split(key, parts: parts), key})
  end

folds =
  for seed <- seeds, data <- [0, 99, 1234, Nx.u64(0xFFFFFFFF), Nx.tensor([[1, 2, 3], [4, 5, 6]]), Nx.tensor([-1, 7], type: :s64)] do
    key = Nx.Random.key(seed)
    RandomRecorder.case(:fold_in, seed, [data], %{}, {Nx.Random.fold_in(key, data), key})
  end

floats = [{:f, 16}, {:bf, 16}, {:f, 32}, {:f, 64}]

uniforms =
  for {shape, i} <- Enum.with_index(shapes), type <- floats, {min, max} <- [{0.0, 1.0}, {-3.5, 2.25}],
      # Nx.BinaryBackend truncates sums of bf16, other backends round
      type != {:bf, 16} or min == 0.0 do
    RandomRecorder.call(:uniform, Enum.at(seeds, i), [min, max], shape: shape, type: type)
  end

of_tensors =
  for seed <- seeds do
    RandomRecorder.call(:uniform, seed, [Nx.tensor([[0.0], [-1.0]]), Nx.tensor([1.0, 2.0, 8.0])], shape: {2, 3})
  end

normals =
  for {shape, i} <- Enum.with_index(shapes), type <- [{:f, 16}, {:f, 32}, {:f, 64}], {mean, deviation} <- [{0.0, 1.0}, {10.0, 0.5}] do
    RandomRecorder.call(:normal, Enum.at(seeds, i), [mean, deviation], shape: shape, type: type)
  end

integers =
  for {shape, i} <- Enum.with_index(shapes),
      {type, min, max} <- [
        {{:s, 32}, 1, 100},
        {{:u, 32}, 0, 3},
        {{:s, 8}, -5, 5},
        {{:u, 8}, 0, 200},
        {{:u, 16}, 3, 40_000},
        {{:s, 16}, -300, 300},
        {{:s, 64}, -7, 1_000_003},
        {{:u, 64}, 0, 17}
      ] do
    RandomRecorder.call(:randint, Enum.at(seeds, i), [min, max], shape: shape, type: type)
  end

ranges =
  for seed <- seeds do
    RandomRecorder.call(:randint, seed, [Nx.tensor([[0], [10]]), Nx.tensor([13, 50, 1000])], shape: {2, 3}, type: {:s, 32})
  end

gumbels = for {shape, i} <- Enum.with_index(shapes), type <- [{:f, 32}, {:f, 64}], do: RandomRecorder.call(:gumbel, Enum.at(seeds, i), [], shape: shape, type: type)

shuffles =
  for seed <- seeds,
      {shape, axis} <- [{{1}, 0}, {{2}, 0}, {{10}, 0}, {{3, 4}, 0}, {{3, 4}, 1}, {{2, 3, 5}, 1}, {{1700}, 0}],
      independent <- [false, true] do
    RandomRecorder.call(:shuffle, seed, [Nx.iota(shape)], axis: axis, independent: independent)
  end

choices =
  for seed <- seeds, replace <- [true, false], {axis, samples} <- [{nil, 5}, {0, 3}, {1, 4}] do
    opts = if axis, do: [axis: axis], else: []
    RandomRecorder.call(:choice, seed, [Nx.iota({3, 4})], opts ++ [samples: samples, replace: replace])
  end

weighted =
  for seed <- seeds, replace <- [true, false], samples <- [1, 4] do
    p = Nx.tensor([0.1, 0.2, 0.3, 0.4])
    opts = [axis: 1, samples: samples, replace: replace]
    {sample, key} = Nx.Random.choice(Nx.Random.key(seed), Nx.iota({3, 4}), p, opts)
    RandomRecorder.case(:choice, seed, [Nx.iota({3, 4})], opts ++ [probabilities: RandomRecorder.tensor(p)], {sample, key})
  end

vectors =
  for {shape, i} <- Enum.with_index([{}, {3}, {2, 3}]) do
    mean = Nx.tensor([1.0, -2.0, 0.5])
    covariance = Nx.tensor([[2.0, 0.5, 0.25], [0.5, 1.0, 0.125], [0.25, 0.125, 3.0]])
    RandomRecorder.call(:multivariate_normal, Enum.at(seeds, i), [mean, covariance], shape: shape)
  end

cases =
  keys ++ splits ++ folds ++ uniforms ++ of_tensors ++ normals ++ integers ++ ranges ++ gumbels ++ shuffles ++ choices ++ weighted ++ vectors

File.write!(Path.join([__DIR__, "fixtures", "random.samples"]), Enum.map(cases, &:io_lib.format(~c"~w.~n", [&1])))
IO.puts("#{length(cases)} samples")

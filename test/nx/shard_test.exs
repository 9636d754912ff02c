# Tessera.shard_jit and Tessera.Mesh: what EXLA's sharding_test has no test for.
defmodule Tessera.ShardTest do
  use ExUnit.Case, async: true
  @moduletag :mesh

  @options [client: :shards]

  defp mesh(shape), do: struct!(Nx.Mesh, name: "mesh", shape: shape)
  defp options(more), do: Keyword.merge(@options, more)

  # Runs fun on whole tensors, cut as the shardings say, and joins its one result.
  defp run(fun, shape, tensors, shardings, output) do
    parts = for {t, s} <- Enum.zip(tensors, shardings), do: Tessera.Mesh.shard(t, mesh(shape), s, @options)
    sharded = Tessera.shard_jit(fun, mesh(shape), options(input_shardings: shardings, output_shardings: output))
    Tessera.Mesh.gather(sharded.(Enum.zip_with(parts, & &1)), mesh(shape), output)
  end

  defp same(fun, shape, tensors, shardings, output) do
    result = run(fun, shape, tensors, shardings, output)
    expected = Tessera.jit_apply(fun, tensors)
    assert Nx.to_binary(result) == Nx.to_binary(expected)
    assert {result.shape, result.type, result.names} == {expected.shape, expected.type, expected.names}
    assert result.vectorized_axes == expected.vectorized_axes
  end

  test "computes what one device computes" do
    x = Nx.iota({8, 12}, type: :f32, names: [:rows, :columns])
    w = Nx.iota({12, 4}, type: :f32)
    same(&Nx.dot/2, {2, 2}, [x, w], [%{0 => [0]}, %{1 => [1]}], %{0 => [0], 1 => [1]})
    same(&Nx.dot/2, {4}, [x, w], [%{columns: [0]}, %{0 => [0]}], %{})
    same(&Nx.sum(&1, axes: [:rows]), {2, 2}, [x], [%{rows: [0, 1]}], %{-1 => [1]})
    same(&Nx.transpose/1, {2, 1, 2}, [x], [%{-1 => [2], 0 => [0]}], %{0 => [2]})
    same(&Nx.multiply(&1, Nx.tensor([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])), {2}, [x], [%{1 => [0]}], %{1 => [0]})
  end

  test "takes containers, with one sharding, a list of them, or a container" do
    fun = fn %{a: a, b: {b, c}} -> %{sum: Nx.add(a, b), rest: {c}} end
    part = fn n -> %{a: Nx.tensor([n, n]), b: {Nx.tensor([1, 2]), Nx.tensor([n])}} end

    for {shardings, c} <- [
          {%{0 => [0]}, [[1], [2]]},
          {[%{0 => [0]}, %{0 => [0]}, %{}], [[1], [2]]},
          {%{a: %{0 => [0]}, b: {%{0 => [0]}, %{}}}, [[1], [2]]}
        ] do
      sharded = Tessera.shard_jit(fun, mesh({2}), options(input_shardings: [shardings]))
      results = sharded.([[part.(1)], [part.(2)]])
      assert Enum.map(results, &Nx.to_flat_list(&1.sum)) == [[2, 3], [3, 4]]
      assert Enum.map(results, &Nx.to_flat_list(elem(&1.rest, 0))) == c
    end

    wrong = Tessera.shard_jit(fun, mesh({2}), options(input_shardings: [{%{}}]))
    assert_raise ArgumentError, ~r/a container of the same form, got: {%{}}/, fn -> wrong.([[part.(1)], [part.(2)]]) end
  end

  defmodule Pair do
    @derive {Nx.Container, containers: [:left, :right], keep: [:name]}
    defstruct [:left, :right, :name]
  end

  test "takes structs that are containers, with one sharding, a list of them, or a struct of them" do
    fun = fn %Pair{left: a, right: {b, c}} = pair -> %{pair | left: Nx.add(a, b), right: {c}} end
    part = fn n -> %Pair{left: Nx.tensor([n, n]), right: {Nx.tensor([1, 2]), Nx.tensor([n])}, name: :kept} end
    apart = %Pair{left: %{0 => [0]}, right: {%{0 => [0]}, %{}}}

    for shardings <- [%{0 => [0]}, [%{0 => [0]}, %{0 => [0]}, %{}], apart], outputs <- [nil, %{apart | right: {%{}}}] do
      sharded = Tessera.shard_jit(fun, mesh({2}), options(input_shardings: [shardings], output_shardings: outputs))
      assert [%Pair{name: :kept} | _] = results = sharded.([[part.(1)], [part.(2)]])
      assert Enum.map(results, &Nx.to_flat_list(&1.left)) == [[2, 3], [3, 4]]
      assert outputs == nil or Enum.all?(results, &(Nx.size(elem(&1.right, 0)) in [1, 2]))
    end

    other = %{left: %{}, right: {%{}, %{}}}
    wrong = Tessera.shard_jit(fun, mesh({2}), options(input_shardings: [other]))
    assert_raise ArgumentError, ~r/a container of the same form/, fn -> wrong.([[part.(1)], [part.(2)]]) end
  end

  test "cuts vectorized axes and dims behind them" do
    t = Nx.iota({4, 6, 2}, type: :f32) |> Nx.vectorize([:batch])
    same(&Nx.sum(&1, axes: [0]), {2, 2}, [t], [%{0 => [1], batch: [0]}], %{batch: [0]})
    same(&Nx.add(&1, 1), {2}, [t], [%{-1 => [0]}], %{0 => [0]})
  end

  test "passes leaves on that no op uses, and does not ask for others" do
    sharded = Tessera.shard_jit(fn x, _y -> {x, Nx.tensor([7])} end, mesh({2}), options(input_shardings: [%{0 => [0]}, %{}]))
    assert [{a, c}, {b, _}] = sharded.([[Nx.tensor([1]), 0], [Nx.tensor([2]), 0]])
    assert [Nx.to_flat_list(a), Nx.to_flat_list(b), Nx.to_flat_list(c)] == [[1], [2], [7]]
    assert Enum.map([a, b], & &1.data.buffer.device_id) == [0, 1]
  end

  @tag :donation
  test "donates" do
    sharded = Tessera.shard_jit(fn x, y -> Nx.add(x, y) end, mesh({2}), options(input_shardings: [%{0 => [0]}, %{}]))
    x = for n <- [1, 2], do: Nx.tensor([n, n], backend: {Tessera.Backend, client: :shards, device_id: n - 1})
    assert [a, b] = sharded.(for t <- x, do: [Nx.donatable(t), Nx.tensor(1)])
    assert [Nx.to_flat_list(a), Nx.to_flat_list(b)] == [[2, 2], [3, 3]]
    for t <- x, do: assert_raise(RuntimeError, ~r/deleted or donated buffer/, fn -> Nx.to_binary(t) end)
  end

  test "compiles once for a mesh, shardings and outputs" do
    counter = :counters.new(1, [])

    fun = fn x ->
      :counters.add(counter, 1, 1)
      Nx.add(x, 1)
    end

    call = fn mesh, sharding, output ->
      Tessera.shard_jit(fun, mesh, options(input_shardings: [sharding], output_shardings: output)).([[Nx.iota({4})], [Nx.iota({4})]])
      :counters.get(counter, 1)
    end

    assert [1, 1, 2, 3, 4] ==
             [call.(mesh({2}), %{0 => [0]}, nil), call.(mesh({2}), %{0 => [0]}, nil), call.(mesh({2}), %{}, nil),
              call.(mesh({1, 2}), %{0 => [1]}, nil), call.(mesh({2}), %{0 => [0]}, %{})]
  end

  def told(event, measurements, metadata, pid), do: send(pid, {event, measurements, metadata})

  test "telemetry tells of compilations and runs" do
    for event <- [:compilation, :execution],
        do: :telemetry.attach({__MODULE__, event}, [:tessera, event], &__MODULE__.told/4, self())

    fun = fn x -> Nx.add(Nx.sin(x), 3) end
    args = [[Nx.iota({4})], [Nx.iota({4})]]
    call = fn more -> Tessera.shard_jit(fun, mesh({2}), options([input_shardings: [%{0 => [0]}]] ++ more)).(args) end
    call.([])
    assert_received {[:tessera, :compilation], %{eval_time: e, compile_time: c, total_time: t, kernels_compiled: k, kernels_reused: r}, %{key: ^fun}}
    assert t == e + c and k + r > 0
    refute_received {[:tessera, :execution], _, %{key: ^fun}}
    call.(execution_telemetry: true)
    refute_received {[:tessera, :compilation], _, %{key: ^fun}}
    assert_received {[:tessera, :execution], %{duration: d}, %{key: ^fun, client: :shards, device_id: 0, partitions: 2}}
    assert d > 0
    for event <- [:compilation, :execution], do: :telemetry.detach({__MODULE__, event})
  end

  @tag :tmp_dir
  test "keeps a program in a file", %{tmp_dir: dir} do
    path = Path.join(dir, "program")
    traced = :counters.new(1, [])
    held = Nx.tensor([1.0, 2.0])

    fun = fn x ->
      :counters.add(traced, 1, 1)
      {Nx.sum(Nx.multiply(x, held)), Nx.sort(x, axis: 0)}
    end

    call = fn more ->
      sharded = Tessera.shard_jit(fun, mesh({2}), options([input_shardings: [%{0 => [0]}], cache: path] ++ more))
      results = sharded.(for n <- [1, 2], do: [Nx.broadcast(Nx.tensor(n, type: :f32), {2, 2})])
      {Enum.map(results, fn {a, b} -> {Nx.to_number(a), Nx.to_flat_list(b)} end), :counters.get(traced, 1)}
    end

    sorted = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert {[{18.0, ^sorted}, {18.0, ^sorted}] = expected, 1} = call.([])
    assert File.exists?(path)
    assert {^expected, 1} = call.([])
    :tessera.clear_cache()
    assert {^expected, 1} = call.([])
    # of other shardings of the results
    assert {[{18.0, _}, _], 2} = call.(output_shardings: {%{}, %{}})
    File.write!(path, "TESSERA" <> <<1>> <> "no term")
    assert {_, 3} = call.(output_shardings: {%{}, %{}})
    assert {_, 3} = call.(output_shardings: {%{}, %{}})
  end

  test "refuses wrong meshes, arguments, shardings and callbacks" do
    add = fn options -> Tessera.shard_jit(&Nx.add/2, mesh({2}), options(options)) end
    good = add.(input_shardings: [%{0 => [0]}, %{}])
    one = [Nx.tensor([1]), Nx.tensor([2])]
    assert_raise RuntimeError, "Got 1 argument lists, expected 2 (num_replicas=1, num_partitions=2)", fn -> good.([one]) end

    assert_raise ArgumentError, ~r/argument 1 of partition 1 is s32\[2\], in partition 0 it is s32\[1\]/, fn ->
      good.([one, [Nx.tensor([1]), Nx.tensor([2, 3])]])
    end

    assert_raise ArgumentError, ~r/argument 0 of partition 1 is f32\[1\]/, fn -> good.([one, [Nx.tensor([1.0]), Nx.tensor([2])]]) end

    for {text, shardings} <- [
          {~r/input_shardings are required/, nil},
          {~r/expected 2 input sharding configuration\(s\), got 1/, [%{}]},
          {~r/expected input sharding to be a map, got: 1/, [1, %{}]},
          {~r/axis 1 is not valid for mesh with 1 axes/, [%{0 => [1]}, %{}]},
          {~r/tensor dimension -?\d \(index 0\) was specified multiple times/, [%{-1 => [0], 0 => []}, %{}]},
          {~r/given axis \(1\) invalid for shape with rank 1/, [%{1 => [0]}, %{}]}
        ] do
      assert_raise ArgumentError, text, fn -> add.(input_shardings: shardings).([one, one]) end
    end

    for {text, shape} <- [{~r/sizes of at least 1/, {0}}, {~r/has 9 partitions, client :shards has 8 device/, {9}}, {~r/a tuple of 1 to 8/, {}}] do
      assert_raise ArgumentError, text, fn ->
        Tessera.shard_jit(&Nx.add/2, mesh(shape), options(input_shardings: [%{}, %{}])).([one, one])
      end
    end

    calls = Tessera.shard_jit(fn x -> Nx.runtime_call(x, x, [], fn t, _ -> t end) end, mesh({1}), options(input_shardings: [%{}]))
    assert_raise ArgumentError, ~r/outfeed is not supported for sharded execution yet/, fn -> calls.([[1]]) end
    assert_raise ArgumentError, ~r/an Nx.Mesh/, fn -> Tessera.shard_jit(&Nx.add/2, %{shape: {2}}, []) end
  end

  test "lists the devices for servings, and the mesh in StableHLO" do
    assert [[device_id: 0, client: :shards] | _] = list = Tessera.__partitions_options__(client: :shards) |> Enum.map(&Enum.sort(&1, :desc))
    assert length(list) == 8
    args = List.duplicate([Nx.iota({4, 2})], 2)
    %{mlir_module: text} = Tessera.to_mlir_module(&Nx.sin/1, args, mesh: mesh({2}), input_shardings: [%{0 => [0]}], client: :shards)
    assert text =~ ~s(sdy.mesh @mesh = <["axis_0"=2]>)
    assert text =~ "tensor<8x2xi32> {sdy.sharding"
  end

  # The programs of EXLA's tests that compare its own module's text, which begins with its callback process.
  test "prints programs with their mesh and shardings, and runs them" do
    check = fn name, shape, fun, args, shardings, expected ->
      mesh = struct!(Nx.Mesh, name: name, shape: shape)
      %{mlir_module: text} = Tessera.to_mlir_module(fun, args, mesh: mesh, input_shardings: shardings, client: :shards)
      for part <- expected, do: assert(text =~ part)
      results = Tessera.shard_jit(fun, mesh, options(input_shardings: shardings)).(args)
      assert Enum.map(results, & &1.data.buffer.device_id) == Enum.to_list(0..(length(args) - 1))
      Enum.map(results, &Nx.to_flat_list/1)
    end

    column = fn numbers -> Nx.tensor(Enum.map(numbers, &[&1])) end
    xs = for numbers <- [0..3, 10..13, 4..7, 14..17], do: column.(numbers)
    ys = for numbers <- [100..103, 100..103, 104..107, 104..107], do: column.(numbers)
    square = ~s(sdy.mesh @mesh = <["axis_0"=2, "axis_1"=2]>)
    both = ~s(tensor<8x2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}, {"axis_1"}]>})
    rows = ~s(tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}, {}]>})

    assert check.("mesh", {2, 2}, &Nx.add/2, Enum.zip_with(xs, ys, &[&1, &2]), [%{0 => [0], 1 => [1]}, %{0 => [0]}], [square, both, rows]) ==
             [[100, 102, 104, 106], [110, 112, 114, 116], [108, 110, 112, 114], [118, 120, 122, 124]]

    assert check.("mesh", {2, 2}, &Nx.add(&1, 1), Enum.map(xs, &[&1]), [%{-2 => [0], -1 => [1]}], [square, both]) ==
             for(x <- xs, do: Nx.to_flat_list(Nx.add(x, 1)))

    assert check.("mesh", {2, 2}, &Nx.add(Nx.multiply(&1, &2), &3), Enum.zip_with(xs, ys, &[&1, &2, &2]),
             [%{0 => [0], 1 => [1]}, %{0 => [0]}, %{0 => [0]}], [square, both, rows]) ==
             Enum.zip_with(xs, ys, &Nx.to_flat_list(Nx.add(Nx.multiply(&1, &2), &2)))

    cube = for i <- 0..3, do: [Nx.add(Nx.iota({2, 2, 2}), 8 * i)]

    assert check.("3d_mesh", {2, 1, 2}, &Nx.multiply(&1, 2), cube, [%{0 => [0], 1 => [1], 2 => [2]}],
             [~s(sdy.mesh @"3d_mesh" = <["axis_0"=2, "axis_1"=1, "axis_2"=2]>), ~s(@"3d_mesh", [{"axis_0"}, {"axis_1"}, {"axis_2"}])]) ==
             for(i <- 0..3, do: for(n <- 0..7, do: 2 * (8 * i + n)))

    assert check.("mesh", {2, 2}, &Nx.transpose/1, for(i <- 0..3, do: [Nx.iota({4, 4})[i..i]]), [%{0 => [0, 1], 1 => []}],
             [square, ~s([{"axis_0", "axis_1"}, {}])]) == for(i <- 0..3, do: Enum.to_list((4 * i)..(4 * i + 3)))

    for {type, text} <- [
          {{:s, 8}, "i8"}, {{:s, 16}, "i16"}, {{:s, 32}, "i32"}, {{:s, 64}, "i64"}, {{:u, 8}, "ui8"}, {{:u, 16}, "ui16"},
          {{:u, 32}, "ui32"}, {{:u, 64}, "ui64"}, {{:f, 8}, "f8E5M2"}, {{:f8_e4m3fn, 8}, "f8E4M3FN"}, {{:f, 16}, "f16"},
          {{:f, 32}, "f32"}, {{:f, 64}, "f64"}, {{:bf, 16}, "bf16"}, {{:c, 64}, "complex<f32>"}, {{:c, 128}, "complex<f64>"}
        ] do
      args = for n <- 1..4, do: [Nx.reshape(Nx.tensor(n, type: type), {1})]
      expected = for n <- 1..4, do: Nx.to_flat_list(Nx.tensor([2 * n], type: type))
      cut = ~s(tensor<2x#{text}> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}]>})
      assert check.("mesh", {2, 2}, &Nx.add(&1, &1), args, [%{0 => [0]}], [square, cut]) == expected
    end
  end

  test "cuts, joins and draws" do
    t = Nx.iota({4, 6}, names: [:a, nil])
    parts = Tessera.Mesh.shard(t, mesh({2, 2}), %{a: [1]}, @options)
    assert Enum.map(parts, &{Nx.shape(&1), Nx.names(&1), &1.data.buffer.device_id}) == for(i <- 0..3, do: {{2, 6}, [:a, nil], i})
    assert Nx.to_binary(Tessera.Mesh.gather(parts, mesh({2, 2}), %{0 => [1]})) == Nx.to_binary(t)
    assert Tessera.Mesh.draw({4}, mesh({2}), %{0 => [0]}) =~ "|    0 |    1 |"
    assert_raise ArgumentError, ~r/cannot be cut into 2 equal parts/, fn -> Tessera.Mesh.shard(Nx.iota({3}), mesh({2}), %{0 => [0]}, @options) end
    assert_raise ArgumentError, ~r/expected a list of 4 parts/, fn -> Tessera.Mesh.gather(tl(parts), mesh({2, 2}), %{}) end
  end
end

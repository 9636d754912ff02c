# Records programs for test/erl/tessera_nx_replay_tests.erl: the expression graph that Nx traces, the inputs, and what
# Nx's own evaluator makes of them on Nx.BinaryBackend, as terms that Erlang reads without Nx.
#
#     ERL_LIBS=<folder of nx, complex, telemetry> elixir --erl "+S 1" test/nx/record.exs [GROUP...]
#
# Each program is a term {Name, Nodes, Vars, Result, Inputs, Expected, Hooks}. Nodes is a list of
# {N, Op, Type, Shape, Names, VectorizedAxes, Context, Args} in the order of their making; in arguments and in the
# containers Vars and Result a node is {node, N}, a literal {tensor, Type, Shape, Binary}, what a callback's result is like
# {template, Type, Shape, Names, VectorizedAxes}, and a callback {callback, Name}.

defmodule Recorder do
  defmodule Compiler do
    def __jit__(_key, vars, fun, [args], _opts) do
      throw({:traced, vars, fun.(vars), Enum.map(args, & &1.())})
    end
  end

  alias Nx.Defn.{Composite, Expr}

  def program(name, fun, args, hooks \\ []) do
    {vars, result, inputs} =
      try do
        Nx.Defn.jit_apply(fun, args, compiler: Compiler)
      catch
        {:traced, vars, result, inputs} -> {vars, result, inputs}
      end

    parent = self()
    handlers = Map.new(hooks, fn hook -> {hook, &send(parent, {hook, &1})} end)
    expected = Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator, hooks: handlers)
    table = number(collect([vars, result], %{}))

    {name, Enum.map(table.nodes, &node_term(&1, table)), ref(vars, table), ref(result, table),
     Enum.map(inputs, &literal/1), Enum.map(Composite.flatten_list([expected]), &literal/1), program_order(received(hooks), hooks)}
  end

  # Sorts calls of hooks by the program's order, as in `hooks`: the evaluator calls independent hooks in another order.
  defp program_order(received, hooks) do
    if length(Enum.uniq_by(received, &elem(&1, 0))) == length(received),
      do: Enum.sort_by(received, fn {hook, _} -> Enum.find_index(hooks, &(&1 == hook)) end),
      else: received
  end

  defp received([]), do: []

  defp received(hooks) do
    receive do
      {hook, value} -> [{hook, Enum.map(Composite.flatten_list([value]), &literal/1)} | received(hooks)]
    after
      0 -> []
    end
  end

  # All nodes that a term holds, by id.
  defp collect(%Nx.Tensor{data: %Expr{id: id, args: args}} = node, seen) do
    if is_map_key(seen, id), do: seen, else: collect(args, Map.put(seen, id, node))
  end

  defp collect(list, seen) when is_list(list), do: Enum.reduce(list, seen, &collect/2)
  defp collect(tuple, seen) when is_tuple(tuple), do: collect(Tuple.to_list(tuple), seen)
  defp collect(%_{}, seen), do: seen
  defp collect(map, seen) when is_map(map), do: collect(Map.values(map), seen)
  defp collect(_, seen), do: seen

  # Ids are references, which grow on one scheduler; constants have ids of their own.
  defp number(seen) do
    nodes = seen |> Enum.sort_by(fn {id, _} -> {is_reference(id), id} end) |> Enum.map(&elem(&1, 1))
    contexts = nodes |> Enum.map(& &1.data.context) |> Enum.uniq() |> Enum.filter(&is_tuple/1)
    %{nodes: nodes, ids: Map.new(Enum.with_index(nodes), fn {n, i} -> {n.data.id, i} end), contexts: contexts}
  end

  defp node_term(%{data: %Expr{id: id, op: op, args: args, context: context}} = t, table) do
    context = if is_tuple(context), do: {elem(context, 0), Enum.find_index(table.contexts, &(&1 == context))}, else: context
    {table.ids[id], op, t.type, t.shape, t.names, t.vectorized_axes, context, arguments(op, args, table)}
  end

  defp arguments(:fun, [params, body, _mfa], table), do: [ref(params, table), ref(body, table), nil]
  defp arguments(:block, [struct, args, default, _fun], table), do: [ref(struct, table), ref(args, table), ref(default, table), nil]
  defp arguments(:io_call, [value, spec, _template, _ref], table), do: [ref(value, table), spec, ref(value, table), nil]

  defp arguments(:runtime_call, [value, fun, template, options], table),
    do: [ref(value, table), {:callback, Function.info(fun)[:name]}, ref(template, table), options]

  defp arguments(_op, args, table), do: ref(args, table)

  defp ref(%Nx.Tensor{data: %Expr{id: id}}, table), do: {:node, Map.fetch!(table.ids, id)}
  defp ref(%Nx.Tensor{data: %Nx.TemplateBackend{}} = t, _table), do: {:template, t.type, t.shape, t.names, t.vectorized_axes}
  defp ref(%Nx.Tensor{} = tensor, _table), do: literal(tensor)
  defp ref(list, table) when is_list(list), do: Enum.map(list, &ref(&1, table))
  defp ref(tuple, table) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> ref(table) |> List.to_tuple()
  defp ref(%struct{} = value, table), do: value |> Map.from_struct() |> ref(table) |> Map.put(:__struct__, struct)
  defp ref(map, table) when is_map(map), do: Map.new(map, fn {k, v} -> {k, ref(v, table)} end)
  defp ref(fun, _table) when is_function(fun), do: nil
  defp ref(other, _table), do: other

  defp literal(tensor) do
    tensor = tensor |> Nx.to_tensor() |> Nx.devectorize()
    binary = Nx.to_binary(tensor)
    if bit_size(binary) != Nx.bit_size(tensor), do: raise("Nx's result is not of its own type, #{inspect(tensor.type)}")
    {:tensor, tensor.type, tensor.shape, binary}
  end

  def write(file, programs) do
    text = Enum.map(programs, &:io_lib.format(~c"~w.~n", [&1]))
    File.write!(Path.join([__DIR__, "fixtures", file]), text)
    IO.puts("#{file}: #{length(programs)} programs")
  end
end

# What runtime_calls call. The tests have the same functions on binaries, by these names.
defmodule Recorder.Callbacks do
  def scaled(t, by: factor), do: Nx.multiply(t, factor)
  def swapped({a, b}, []), do: {b, a}
end

defmodule Recorder.Programs do
  import Nx.Defn
  import Recorder, only: [program: 3, program: 4]

  @floats [:f32, :f64, :bf16, :f16]
  @integers [:s8, :s16, :s32, :s64, :u8, :u16, :u32, :u64]

  def tensor(shape, type, from \\ -2.75, step \\ 0.5) do
    Nx.iota(shape, type: :f64) |> Nx.multiply(step) |> Nx.add(from) |> Nx.as_type(type)
  end

  # Nx.BinaryBackend's erf_inv is not exact enough for f64.
  def unary do
    near = [:acos, :asin, :atanh, :erf_inv]
    positive = [:log, :sqrt, :rsqrt, :acosh, :log1p]
    any = [:exp, :expm1, :sigmoid, :cos, :sin, :tan, :cosh, :sinh, :tanh, :atan, :asinh, :cbrt, :erf, :erfc]
    any = any ++ [:abs, :negate, :sign, :ceil, :floor, :round, :is_nan, :is_infinity]

    for {ops, from, step} <- [{near, -0.9, 0.3}, {positive, 1.25, 0.75}, {any, -2.75, 0.5}],
        op <- ops, type <- @floats, {op, type} != {:erf_inv, :f64}, shape <- [{7}, {}] do
      program("#{op} #{type} #{inspect(shape)}", &apply(Nx, op, [&1]), [tensor(shape, type, from, step)])
    end ++
      for op <- [:abs, :negate, :sign, :bitwise_not, :count_leading_zeros, :population_count, :exp, :logical_not],
          type <- @integers do
        program("#{op} #{type}", &apply(Nx, op, [&1]), [tensor({5}, type, 0, 1)])
      end
  end

  def binary do
    arithmetic = [:add, :subtract, :multiply, :min, :max, :divide, :atan2, :pow, :remainder]
    compare = [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal, :logical_and, :logical_or, :logical_xor]
    bits = [:bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift, :quotient]

    for op <- arithmetic ++ compare, {a, b} <- [f32: :f32, f64: :f32, bf16: :f16, s32: :f32, s32: :s32, u8: :s16] do
      x = tensor({2, 3}, a, 1, 1)
      program("#{op} #{a} #{b}", &apply(Nx, op, [&1, &2]), [x, tensor({3}, b, 1, 0.5) |> Nx.max(1)])
    end ++
      for op <- bits, {a, b} <- [s32: :s32, u8: :u8, s64: :s8, u16: :u32] do
        program("#{op} #{a} #{b}", &apply(Nx, op, [&1, &2]), [tensor({2, 1}, a, 5, 9), tensor({1, 3}, b, 1, 1)])
      end
  end

  def shape do
    x = Nx.iota({2, 3, 4}, type: :s32)
    f = tensor({3, 4}, :f32)
    i = Nx.tensor([[1, 0], [2, 3], [9, 9]])

    [
      program("reshape", &Nx.reshape(&1, {4, 6}), [x]),
      program("squeeze", &Nx.squeeze(Nx.new_axis(&1, 1)), [x]),
      program("broadcast", &Nx.broadcast(&1, {2, 4, 3}, axes: [2]), [Nx.tensor([1, 2, 3])]),
      program("transpose", &Nx.transpose(&1, axes: [2, 0, 1]), [x]),
      program("reverse", &Nx.reverse(&1, axes: [0, 2]), [x]),
      program("pad", &Nx.pad(&1, 7, [{1, -1, 0}, {0, 2, 1}, {-1, 0, 0}]), [x]),
      program("concatenate", &Nx.concatenate([&1, &2, &1], axis: 1), [x, Nx.as_type(x, :f32)]),
      program("stack", &Nx.stack([&1, &2], axis: 1), [f, Nx.add(f, 1)]),
      program("slice", &Nx.slice(&1, [0, 1, 0], [2, 2, 3], strides: [1, 1, 2]), [x]),
      program("slice dynamic", &Nx.slice(&1, [0, &2, 5], [2, 2, 3]), [x, Nx.tensor(9)]),
      program("put_slice", &Nx.put_slice(&1, [&2, 1], &3), [f, Nx.tensor(1), Nx.tensor([[9.0, 8.0]])]),
      program("take", &Nx.take(&1, &2, axis: 1), [x, Nx.tensor([2, 0])]),
      program("take_along_axis", &Nx.take_along_axis(&1, &2, axis: 0), [f, Nx.tensor([[2, 0, 1, 1]])]),
      program("gather", &Nx.gather(&1, &2), [f, Nx.slice(i, [0, 0], [2, 2])]),
      program("gather axes", &Nx.gather(&1, &2, axes: [0, 2]), [x, Nx.tensor([[0, 3], [1, 1]])]),
      program("gather one axis", &Nx.gather(&1, &2, axes: [1]), [x, Nx.tensor([[2], [0]])]),
      program("select", &Nx.select(Nx.greater(&1, 0), &1, &2), [f, Nx.tensor(0)]),
      program("clip", &Nx.clip(&1, -1, 1), [f]),
      program("eye", fn -> Nx.eye({2, 3, 3}, type: :f32) end, []),
      program("iota", fn -> {Nx.iota({2, 3}), Nx.iota({2, 3}, axis: 1, type: :f16)} end, []),
      program("bitcast", &Nx.bitcast(&1, :s32), [f]),
      program("tri", &{Nx.tril(&1), Nx.triu(&1, k: 1)}, [x])
    ] ++
      for from <- @floats ++ @integers, to <- @floats ++ @integers do
        program("as_type #{from} #{to}", &Nx.as_type(&1, to), [tensor({4}, from, 0, 1.5)])
      end
  end

  def reductions do
    for op <- [:sum, :product, :reduce_max, :reduce_min, :all, :any, :mean], type <- [:f32, :f64, :s32, :u8, :s64],
        opts <- [[], [axes: [0]], [axes: [1], keep_axes: true]] do
      program("#{op} #{type} #{inspect(opts)}", &apply(Nx, op, [&1, opts]), [tensor({3, 4}, type, 0, 1)])
    end ++
      for op <- [:argmax, :argmin], opts <- [[], [axis: 1], [axis: 0, tie_break: :high, keep_axis: true]] do
        program("#{op} #{inspect(opts)}", &apply(Nx, op, [&1, opts]), [Nx.tensor([[1, 3, 3], [0, 0, 2]])])
      end ++
      for op <- [:cumulative_sum, :cumulative_product, :cumulative_max, :cumulative_min], reverse <- [true, false] do
        program("#{op} #{reverse}", &apply(Nx, op, [&1, [axis: 1, reverse: reverse]]), [tensor({2, 4}, :f32)])
      end ++
      [
        program("reduce", &Nx.reduce(&1, 1, [axes: [1]], fn x, acc -> Nx.subtract(x, acc) end), [Nx.iota({2, 3})]),
        program("dot", &Nx.dot(&1, &2), [tensor({2, 3}, :f32), tensor({3, 4}, :f64)]),
        program("dot integers", &Nx.dot(&1, &2), [Nx.iota({2, 3}), Nx.iota({3}, type: :u8)]),
        program("dot batched", &Nx.dot(&1, [2], [0], &2, [1], [0]), [tensor({2, 3, 4}, :f32), tensor({2, 4, 2}, :f32)]),
        program("softmax", &Nx.divide(Nx.exp(&1), Nx.sum(Nx.exp(&1), axes: [-1], keep_axes: true)), [tensor({2, 5}, :f32)]),
        program("variance", &Nx.variance(&1, axes: [0]), [tensor({4, 2}, :f32)]),
        program("all_close", &Nx.all_close(&1, &2), [tensor({3}, :f32), tensor({3}, :f32)])
      ]
  end

  defn branches(a, b) do
    shared = Nx.exp(a)

    cond do
      Nx.sum(a) > 10 -> {shared + b, b}
      Nx.sum(b) > 3 -> {shared - b, Nx.sin(b)}
      true -> {a, if(Nx.any(b), do: shared, else: b * 2)}
    end
  end

  defn power(x, n) do
    {result, _, _} =
      while {acc = Nx.tensor(1.0), x, n}, n > 0 do
        acc = if Nx.remainder(n, 2) == 1, do: acc * x, else: acc
        {acc, x * x, Nx.quotient(n, 2)}
      end

    result
  end

  defn nested(x) do
    while x, i <- 0..2, do: x + inner(x, i)
  end

  defn inner(x, i) do
    {_, _, _, s} = while {k = 0, i, x, s = Nx.sum(x) * 0}, k < i, do: {k + 1, i, x, s + Nx.sum(x)}
    s
  end

  def control do
    [
      program("cond first", &branches/2, [tensor({3}, :f32, 5, 1), tensor({3}, :f32)]),
      program("cond second", &branches/2, [tensor({3}, :f32, 0, 0), tensor({3}, :f32, 2, 1)]),
      program("cond last", &branches/2, [tensor({3}, :f32, 0, 0), tensor({3}, :f32, 0, 0)]),
      program("while", &power/2, [Nx.tensor(1.5), Nx.tensor(11)]),
      program("while nested", &nested/1, [tensor({3}, :f32, 1, 1)]),
      program("unused argument", fn a, _b -> Nx.add(a, 1) end, [Nx.tensor([1, 2]), Nx.tensor(3)]),
      program("maps", fn %{a: a, b: {b, c}} -> %{sum: Nx.add(a, b), same: {c, c}} end,
        [%{a: Nx.tensor(1), b: {Nx.tensor([2.0]), Nx.tensor(3)}}]),
      program("literal", &Nx.add(&1, Nx.tensor([1, 2, 3])), [Nx.tensor([[1], [2]])]),
      program("constants", &{Nx.add(&1, :infinity), Nx.multiply(&1, -0.0), 3}, [Nx.tensor([1.0, -1.0])])
    ]
  end

  def vectorized do
    x = Nx.iota({2, 3}, type: :f32) |> Nx.vectorize(:x)
    y = Nx.iota({4}, type: :f32) |> Nx.vectorize(:y)

    [
      program("vectorized add", &Nx.add/2, [x, y]),
      program("vectorized sum", &Nx.sum/1, [x]),
      program("vectorized dot", &Nx.dot(&1, &2), [x, Nx.tensor([1.0, 2.0, 3.0])]),
      program("vectorized cond", &branches/2, [x, Nx.tensor([1.0, 1.0, 1.0])]),
      program("vectorized norm", &Nx.LinAlg.norm/1, [x])
    ]
  end

  def loss({w1, b1, w2, b2}, x, y) do
    h = Nx.max(Nx.add(Nx.dot(x, w1), b1), 0)
    z = Nx.add(Nx.dot(h, w2), b2)
    z = Nx.subtract(z, Nx.reduce_max(z, axes: [1], keep_axes: true))
    log = Nx.subtract(z, Nx.log(Nx.sum(Nx.exp(z), axes: [1], keep_axes: true)))
    Nx.negate(Nx.mean(Nx.sum(Nx.multiply(log, y), axes: [1])))
  end

  def step(params, x, y) do
    {loss, grads} = value_and_grad(params, &loss(&1, x, y))
    updated = Enum.zip_with(Tuple.to_list(params), Tuple.to_list(grads), &Nx.subtract(&1, Nx.multiply(&2, 0.1)))
    {loss, List.to_tuple(updated)}
  end

  def training do
    params = {tensor({4, 8}, :f32, -0.4, 0.03), tensor({8}, :f32, 0, 0.01), tensor({8, 3}, :f32, -0.3, 0.02), tensor({3}, :f32, 0, 0)}
    x = Nx.sin(tensor({6, 4}, :f32, 0, 1))
    y = Nx.equal(Nx.new_axis(Nx.remainder(Nx.iota({6}), 3), 1), Nx.iota({1, 3})) |> Nx.as_type(:f32)

    [
      program("training step", &step/3, [params, x, y]),
      program("grad of tanh", fn t -> grad(t, &Nx.sum(Nx.tanh(&1))) end, [tensor({5}, :f32)]),
      program("random", fn k -> Nx.Random.uniform(k, shape: {3}) end, [Nx.Random.key(7)]),
      program("random normal", fn k -> Nx.Random.normal(k, shape: {4}) end, [Nx.Random.key(3)])
    ]
  end

  defn calls(a, b) do
    x = io_call(a + b, :first)
    y = io_call({a * b, x}, :second)
    {p, q} = y
    z = io_call(p - q, :third)
    z + x
  end

  defn calls_in_loop(n) do
    while n, n > 0 do
      if Nx.remainder(n, 2) == 0, do: io_call(n - 1, :even), else: io_call(n - 1, :odd)
    end
  end

  defn independent(a, b) do
    x = io_call(a, :first)
    y = io_call(b, :second)
    z = io_call(a * b, :third)
    x + z + y
  end

  def callbacks do
    [
      program("callbacks", &calls/2, [Nx.tensor([1, 2]), Nx.tensor(3)], [:first, :second, :third]),
      program("callbacks in order", &independent/2, [Nx.tensor(2), Nx.tensor(3)], [:first, :second, :third]),
      program("callbacks in a loop", &calls_in_loop/1, [Nx.tensor(4)], [:even, :odd]),
      program("callbacks not asked for", &calls/2, [Nx.tensor([1, 2]), Nx.tensor(3)])
    ]
  end

  # What the groups above have with few types, with the others: one program for each op and type.
  def types do
    numbers = @floats ++ @integers
    arithmetic = [:add, :subtract, :multiply, :min, :max, :divide, :atan2, :pow, :remainder]
    compare = [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal, :logical_and, :logical_or, :logical_xor]

    for op <- arithmetic ++ compare, type <- numbers do
      program("#{op} #{type}", &apply(Nx, op, [&1, &2]), [tensor({2, 1, 3}, type, 1, 1), tensor({2, 1}, type, 1, 2)])
    end ++
      for op <- [:quotient, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift], type <- @integers do
        program("#{op} #{type}", &apply(Nx, op, [&1, &2]), [tensor({5}, type, 3, 7), tensor({5}, type, 1, 1)])
      end ++
      for op <- [:tanh, :sqrt, :sigmoid, :floor, :is_nan, :is_infinity, :real, :imag, :conjugate], type <- @integers,
          not (op == :conjugate) do
        program("#{op} #{type}", &apply(Nx, op, [&1]), [tensor({3}, type, 0, 1)])
      end ++
      for op <- [:sum, :product, :reduce_max, :reduce_min, :all, :any, :mean, :argmax, :argmin], type <- numbers do
        program("#{op} #{type} whole", &apply(Nx, op, [&1]), [tensor({2, 3}, type, 1, 1)])
      end ++
      for op <- [:cumulative_sum, :cumulative_product, :cumulative_max, :cumulative_min], type <- numbers do
        program("#{op} #{type}", &apply(Nx, op, [&1]), [tensor({4}, type, 1, 1)])
      end ++
      for {name, fun, shapes} <- movements(), type <- numbers do
        program("#{name} #{type}", fun, Enum.map(shapes, &tensor(&1, type, 1, 1)))
      end ++
      for name <- [:min, :max, :min_finite, :max_finite], type <- numbers do
        program("constant #{name} #{type}", fn -> apply(Nx.Constants, name, [type]) end, [])
      end
  end

  defp movements do
    [
      {"transpose", &Nx.transpose/1, [{2, 3}]},
      {"reverse", &Nx.reverse/1, [{2, 3}]},
      {"pad", &Nx.pad(&1, &2, [{1, 0, 0}, {-1, 2, 1}]), [{2, 3}, {}]},
      {"concatenate", &Nx.concatenate([&1, &2]), [{2, 3}, {1, 3}]},
      {"stack", &Nx.stack([&1, &2], axis: -1), [{2, 3}, {2, 3}]},
      {"slice", &Nx.slice(&1, [1, 0], [1, 3], strides: [1, 2]), [{2, 3}]},
      {"put_slice", &Nx.put_slice(&1, [0, 1], &2), [{2, 3}, {2, 2}]},
      {"gather", &Nx.gather(&1, Nx.tensor([[1, 2], [0, 0]])), [{2, 3}]},
      {"take", &Nx.take(&1, Nx.tensor([[2, 0], [1, 1]]), axis: 1), [{2, 3}]},
      {"take_along_axis", &Nx.take_along_axis(&1, Nx.tensor([[1], [0]]), axis: 1), [{2, 3}]},
      {"select", &Nx.select(Nx.greater(&1, 3), &1, &2), [{2, 3}, {3}]},
      {"clip", &Nx.clip(&1, 2, 4), [{2, 3}]},
      {"broadcast", &Nx.broadcast(&1, {2, 4, 3}, axes: [0, 2]), [{2, 3}]},
      {"dot", &Nx.dot/2, [{2, 3}, {3, 2}]},
      {"dot vector", &Nx.dot/2, [{3}, {3}]},
      {"outer", &Nx.outer/2, [{2}, {3}]},
      {"reduce", &Nx.reduce(&1, 1, [axes: [1]], fn x, acc -> Nx.add(Nx.multiply(x, 2), acc) end), [{2, 3}]},
      {"eye", fn a -> Nx.multiply(Nx.eye(3, type: a.type), a) end, [{3}]},
      {"iota", fn a -> Nx.add(Nx.iota({2, 3}, axis: 1, type: a.type), a) end, [{}]},
      {"logical_not", &Nx.logical_not/1, [{3}]},
      {"all_close", &Nx.all_close(&1, &2), [{3}, {3}]}
    ]
  end

  # Many equal numbers, infinities and NaN.
  def order do
    x = Nx.remainder(Nx.multiply(Nx.iota({3, 4, 5}), 7), 11)
    special = Nx.tensor([:nan, 1.0, :infinity, -0.0, :neg_infinity, 0.0, :nan, 1.0])
    numbers = @floats ++ @integers

    for axis <- [0, 1, 2], direction <- [:asc, :desc], op <- [:sort, :argsort], type <- [:f32, :s64, :u8] do
      options = [axis: axis, direction: direction, stable: true]
      program("#{op} #{type} #{inspect(options)}", &apply(Nx, op, [&1, options]), [Nx.as_type(x, type)])
    end ++
      for op <- [:sort, :median, :mode], type <- numbers do
        program("#{op} #{type}", &apply(Nx, op, [&1]), [Nx.as_type(Nx.flatten(x), type)])
      end ++
      for type <- [:u8, :s64, :u32, :f32, :bf16] do
        program("argsort as #{type}", &Nx.argsort(&1, axis: 2, stable: true, type: type), [x])
      end ++
      for direction <- [:asc, :desc], op <- [:sort, :argsort] do
        options = [direction: direction, stable: true]
        program("#{op} #{direction} of what is not finite", &apply(Nx, op, [&1, options]), [special])
      end ++
      [
        program("top_k", &Nx.top_k(&1, k: 3), [x]),
        program("top_k of what is not finite", &Nx.top_k(&1, k: 4), [special]),
        program("median of an axis", &Nx.median(&1, axis: 1, keep_axis: true), [x]),
        program("mode of an axis", &Nx.mode(&1, axis: 0), [x]),
        program("shuffle", &Nx.Random.shuffle(&1, &2, axis: 1), [Nx.Random.key(5), x]),
        program("vectorized sort", &Nx.sort(&1, axis: 1), [Nx.vectorize(x, :x)]),
        program("grad of sort", fn t -> grad(t, &Nx.sum(Nx.multiply(Nx.sort(&1, axis: 1), Nx.iota({3, 4, 5})))) end, [Nx.as_type(x, :f32)]),
        program("grad of median", fn t -> grad(t, &Nx.sum(Nx.median(&1, axis: 2))) end, [Nx.as_type(Nx.iota({3, 4, 5}), :f32)])
      ]
  end

  # Ranks from 0 to 6 and axes of size 1, for an op of each kind.
  def edges do
    shapes = [{}, {1}, {1, 1}, {1, 3}, {3, 1}, {2, 1, 3}, {1, 1, 1, 2}, {2, 1, 2, 1, 2}, {1, 2, 1, 2, 1, 2}]

    for shape <- shapes, {name, fun} <- edge_ops() do
      program("#{name} #{inspect(shape)}", fun, [tensor(shape, :f32, 1, 1)])
    end ++
      for a <- shapes, b <- [{}, {1}, {2}, {1, 1, 1, 1}] do
        program("broadcast #{inspect(a)} #{inspect(b)}", &Nx.multiply/2, [tensor(broadcastable(a, b), :f32), tensor(b, :s32, 1, 1)])
      end ++
      for {name, numbers} <- [nan: [:nan, 1.0, :nan], infinity: [:infinity, :neg_infinity, 0.0], zeros: [-0.0, 0.0, -0.0]],
          op <- [:sum, :product, :reduce_max, :reduce_min, :any, :all, :is_nan, :is_infinity, :negate, :abs, :logical_not] do
        program("#{op} of #{name}", &apply(Nx, op, [&1]), [Nx.tensor(numbers)])
      end
  end

  def linalg do
    a = Nx.tensor([[4.0, 9.0, 9.0], [1.0, 5.0, 9.0], [-2.0, 1.5, 3.0]])
    b = tensor({3, 2}, :f32)
    batch = Nx.stack([a, Nx.multiply(a, 2)])

    for left <- [true, false], lower <- [true, false], transform <- [:none, :transpose] do
      opts = [left_side: left, lower: lower, transform_a: transform]
      right = if left, do: b, else: Nx.transpose(b)
      program("triangular_solve #{inspect(opts)}", &Nx.LinAlg.triangular_solve(&1, &2, opts), [triangle(a, lower), right])
    end ++
      [
        program("triangular_solve vector", &Nx.LinAlg.triangular_solve/2, [triangle(a, true), Nx.tensor([1, 2, 3])]),
        program("triangular_solve vector, right", &Nx.LinAlg.triangular_solve(&1, &2, left_side: false), [
          triangle(a, true),
          Nx.tensor([1, 2, 3])
        ]),
        program("triangular_solve batch", &Nx.LinAlg.triangular_solve/2, [triangle(batch, true), tensor({2, 3, 2}, :f64)]),
        program("triangular_solve vectors", &Nx.LinAlg.triangular_solve/2, [triangle(batch, true), tensor({2, 3}, :f16)]),
        program("triangular_solve integers", &Nx.LinAlg.triangular_solve/2, [Nx.tensor([[1, 0], [2, 1]]), Nx.tensor([3, 4])]),
        program("triangular_solve grad", &Nx.Defn.grad({&1, &2}, fn {a, b} -> Nx.sum(Nx.LinAlg.triangular_solve(a, b)) end), [
          triangle(a, true),
          b
        ])
      ] ++
      # Without f64: Nx adds 1.0e-10 to divisors.
      for type <- [:f32, :s32] do
        program("cholesky #{type}", &Nx.LinAlg.cholesky/1, [Nx.tensor([[4, 2, 2], [2, 5, 3], [2, 3, 6]], type: type)])
      end ++
      [
        program("cholesky batch", &Nx.LinAlg.cholesky/1, [Nx.tensor([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 0.5], [0.5, 1.0]]])]),
        program("cholesky grad", &Nx.Defn.grad(&1, fn a -> Nx.sum(Nx.LinAlg.cholesky(a)) end), [
          Nx.tensor([[4.0, 2.0], [2.0, 5.0]])
        ])
      ]
  end

  defp triangle(a, true), do: Nx.tril(a)
  defp triangle(a, false), do: Nx.triu(a)

  # The last axis of a, where it is not 1, would have to be b's.
  defp broadcastable(a, b) do
    last = if b == {}, do: 1, else: elem(b, tuple_size(b) - 1)
    if tuple_size(a) > 0 and last > 1, do: put_elem(a, tuple_size(a) - 1, 1), else: a
  end

  defp edge_ops do
    [
      {"exp", &Nx.exp/1},
      {"flatten", &Nx.flatten/1},
      {"transpose", &Nx.transpose/1},
      {"reverse", &Nx.reverse/1},
      {"squeeze", &Nx.squeeze/1},
      {"new_axis", &Nx.new_axis(&1, -1)},
      {"sum", &Nx.sum/1},
      {"reduce_max kept", &Nx.reduce_max(&1, axes: Enum.to_list(0..(Nx.rank(&1) - 1)//1), keep_axes: true)},
      {"argmax", &Nx.argmax/1},
      {"self product", &Nx.dot(Nx.flatten(&1), Nx.flatten(&1))},
      {"stacked", &Nx.stack([&1, &1])},
      {"whole slice", &Nx.slice(&1, List.duplicate(0, Nx.rank(&1)), Tuple.to_list(Nx.shape(&1)))},
      {"broadcast", &Nx.broadcast(&1, Tuple.insert_at(Nx.shape(&1), 0, 2))}
    ]
  end
end

{:ok, _} = Application.ensure_all_started(:nx)
File.mkdir_p!(Path.join(__DIR__, "fixtures"))

Code.require_file("record/nests.exs", __DIR__)

groups = [:unary, :binary, :shape, :reductions, :control, :vectorized, :training, :callbacks, :types, :edges, :order, :linalg]
groups = [{:nests, &Recorder.Nests.programs/0} | Enum.map(groups, &{&1, Function.capture(Recorder.Programs, &1, 0)})]
asked = if System.argv() == [], do: Keyword.keys(groups), else: Enum.map(System.argv(), &String.to_existing_atom/1)
Enum.each(asked, &Recorder.write("#{&1}.terms", groups[&1].()))

defmodule Tessera.CompilerTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureLog
  import Nx.Defn
  import Tessera.Dialect, only: [observe: 2]

  setup do
    Nx.Defn.default_options(compiler: Tessera)
    :ok
  end

  defn branch(a, b) do
    if Nx.sum(a) > 3, do: {Nx.exp(a), b}, else: {a, observe(b, :other_branch)}
  end

  defn count(n), do: while({i = 0, n}, i < n, do: {i + 1, n})

  defn pass(x), do: observe(x, :passed)

  defn with_hook(a, b), do: observe(a + b, :sum) * 2

  if Tessera.Dialect.has_blocks?() do
    defn with_runtime_call(a), do: Nx.runtime_call(a, a, [add: 5], &__MODULE__.add_callback/2)
  else
    defn with_runtime_call(a), do: Nx.runtime_call(a, a, &__MODULE__.add_five/1)
    def add_five(t), do: add_callback(t, add: 5)
  end

  def add_callback(t, opts), do: Nx.add(Tessera.jit(&Nx.add(&1, &2)).(t, opts[:add]), 0)

  test "results are tensors of Tessera.Backend with names and vectorized axes" do
    t = Nx.tensor([[1, 2], [3, 4]], names: [:x, :y])
    result = Tessera.jit(&Nx.add(&1, 1)).(t)
    assert %Nx.Tensor{data: %Tessera.Backend{buffer: %Tessera.DeviceBuffer{client_name: client}}} = result
    assert client == Tessera.Client.default_name()
    assert result.names == [:x, :y]
    assert Nx.to_flat_list(result) == [2, 3, 4, 5]

    v = Tessera.jit(&Nx.multiply(&1, 2)).(Nx.vectorize(Nx.iota({2, 3}), :v))
    assert v.vectorized_axes == [v: 2]
    assert v.shape == {3}
  end

  test "only used arguments are read" do
    assert_raise RuntimeError, "read", fn -> Tessera.__jit__(&Nx.add(&1, 1), [param(0)], fn [x] -> Nx.add(x, 1) end, [[fn -> raise "read" end]], hooks: %{}) end
    assert [t] = Tessera.__jit__(fn _x -> 1 end, [param(0)], fn [_] -> Nx.Defn.Expr.tensor(Nx.tensor([1, 2])) end, [[fn -> raise "read" end]], hooks: %{})
    assert Nx.to_flat_list(t) == [1, 2]
  end

  defp param(i), do: Nx.Defn.Expr.parameter(Nx.template({2}, :s32), :root, i)

  defn step(a, x, i), do: if(Nx.sum(a) > i, do: x + i, else: x * 2)

  # Each cond uses the one before in both branches.
  test "a chain of conds is lowered once" do
    chain = fn a -> Enum.reduce(1..30, a, &step(a, &2, &1)) end
    assert Nx.to_flat_list(Tessera.jit_apply(chain, [Nx.tensor([0.5, 0.0])])) == [2.0 ** 29, 0.0]
    assert Nx.to_flat_list(Tessera.jit_apply(chain, [Nx.tensor([2.5, 0.0])])) == [5.5 * 2 ** 28, 3.0 * 2 ** 28]

    [root] = Nx.Defn.Composite.flatten_list([Nx.Defn.debug_expr(chain).(Nx.template({2}, :f32))])
    {text, [0]} = :tessera_nx_plan.text([root], [{:f32, {2}}], [])
    assert length(Regex.scan(~r/\bcond\b/, text)) == 30
  end

  test "compile takes templates" do
    fun = Tessera.compile(&Nx.dot/2, [Nx.template({2, 3}, :f32), Nx.template({3}, :f32)])
    assert Nx.to_flat_list(fun.(Nx.iota({2, 3}, type: :f32), Nx.tensor([1.0, 1.0, 1.0]))) == [3.0, 12.0]
  end

  test "to_mlir_module gives text, used inputs and templates" do
    fun = fn x, _, y -> {Nx.add(Nx.sin(x), Nx.cos(y)), x} end
    answer = Tessera.to_mlir_module(fun, [Nx.tensor([1.0]), 2.0, 3.0])
    assert answer.mlir_module =~ "func.func public @main"
    assert answer.mlir_module =~ "stablehlo.add"
    assert answer.used_inputs == [0, 2]
    assert {%Nx.Tensor{shape: {1}}, %Nx.Tensor{shape: {1}}} = answer.output_container
    assert_raise ArgumentError, ~r/no StableHLO/, fn -> Tessera.to_mlir_module(&pass/1, [1], hooks: %{passed: & &1}) end
  end

  test "to_mlir_module has its parameters in the order of the inputs" do
    fun = fn a, {b, c}, %{x: d, y: e} -> {Nx.multiply(e, d), Nx.as_type(c, :f32), Nx.sum(Nx.as_type(a, :s32)), d, Nx.size(b)} end
    args = [Nx.template({1}, :u8), {Nx.template({2}, :f32), Nx.template({3}, :f64)}, %{y: Nx.template({5}, :bf16), x: Nx.template({}, :s16)}]
    answer = Tessera.to_mlir_module(fun, args)
    assert answer.used_inputs == [0, 2, 3, 4]
    assert [_, main] = Regex.run(~r/@main\((.*?)\) ->/, answer.mlir_module)
    assert Regex.scan(~r/tensor<([^>]*)>/, main, capture: :all_but_first) == [["1xui8"], ["3xf64"], ["i16"], ["5xbf16"]]
  end

  test "cached? tells what was compiled, hooks and containers included" do
    fun = fn %{a: a} -> Nx.cos(a) end
    refute Tessera.cached?(fun, [%{a: Nx.tensor(1.0)}])
    Tessera.jit(fun).(%{a: Nx.tensor(1.0)})
    assert Tessera.cached?(fun, [%{a: Nx.tensor(2.0)}])
    refute Tessera.cached?(fun, [%{a: Nx.tensor([2.0])}])
    refute Tessera.cached?(fun, [%{a: Nx.tensor(2.0)}], hooks: %{x: & &1})
  end

  test "one of several callers compiles" do
    parent = self()

    fun = fn x ->
      send(parent, :traced)
      Nx.sinh(x)
    end

    1..8 |> Enum.map(fn _ -> Task.async(fn -> Tessera.jit(fun).(Nx.tensor([1.0])) end) end) |> Task.await_many(60_000)
    assert_received :traced
    refute_received :traced
  end

  test "callbacks: hooks, in a branch, of a run" do
    me = self()
    hooks = %{sum: &send(me, {:sum, Nx.to_number(&1)}), other_branch: &send(me, {:other, Nx.to_number(&1)})}
    assert Nx.to_number(Tessera.jit(&with_hook/2, hooks: hooks).(1, 2)) == 6
    assert_received {:sum, 3}
    Tessera.jit(&branch/2, hooks: hooks).(Nx.tensor([1.0]), 7)
    assert_received {:other, 7}
    Tessera.jit(&branch/2, hooks: hooks).(Nx.tensor([5.0]), 7)
    refute_received {:other, 7}
    assert Nx.to_number(Tessera.jit(&with_hook/2).(1, 2)) == 6
  end

  test "a callback may use Tessera, and its error is the run's" do
    assert Nx.to_flat_list(with_runtime_call(Nx.tensor([1, 2]))) == [6, 7]
    assert_raise RuntimeError, "no", fn -> Tessera.jit(&with_hook/2, hooks: %{sum: fn _ -> raise "no" end}).(1, 2) end
  end

  @tag :donation
  test "donation takes the buffer" do
    x = Nx.tensor([1, 2, 3], backend: Tessera.Backend)
    assert Nx.to_flat_list(Tessera.jit(&Nx.add(&1, 1)).(donatable(x))) == [2, 3, 4]
    assert_raise RuntimeError, ~r/called on deleted or donated buffer/, fn -> Nx.to_binary(x) end

    y = Nx.tensor([1, 2, 3], backend: Tessera.Backend)
    result = Tessera.jit(&pass/1, hooks: %{passed: & &1}).(donatable(y))
    assert Nx.to_flat_list(result) == [1, 2, 3]
    assert_raise RuntimeError, fn -> Nx.to_binary(y) end

    assert_raise ArgumentError, ~r/no output with matching shape \{3\} and type \{:s, 32\}/, fn ->
      Tessera.jit(&Nx.sum/1).(donatable(Nx.tensor([1, 2, 3])))
    end
  end

  # Not there in every version of Nx, so not known when this is compiled.
  defp donatable(tensor), do: apply(Nx, :donatable, [tensor])

  test "cube roots and angles of complex numbers" do
    %Complex{re: re, im: im} = Nx.to_number(Tessera.jit(&Nx.cbrt/1).(Nx.tensor(Complex.new(-8, 0), type: :c128)))
    assert_in_delta re, 1, 1.0e-12
    assert_in_delta im, :math.sqrt(3), 1.0e-12
    assert Nx.to_number(Tessera.jit(&Nx.atan2/2).(Complex.new(7, 0), 2.0)) == Complex.new(Nx.to_number(Nx.atan2(7, 2.0)), 0.0)
  end

  test "signs of complex numbers" do
    z = Nx.tensor([Complex.new(3, -4), Complex.new(0, 0), Complex.new(-1.0e300, 0)], type: :c128)
    expected = [Complex.new(0.6, -0.8), Complex.new(0.0, 0.0), Complex.new(-1.0, 0.0)]
    assert Nx.to_flat_list(Tessera.jit(&Nx.sign/1).(z)) == expected
    assert Nx.to_flat_list(Nx.sign(Nx.backend_copy(z, Tessera.Backend))) == expected
  end

  test "singular values of the reduced decomposition that are rounding errors are zero" do
    for {type, rank} <- [f32: 2, f64: 2], do: assert singular(type) |> Enum.count(&(&1 > 0)) == rank
  end

  defp singular(type) do
    a = Nx.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]], type: type)
    {_, s, _} = Tessera.jit(&Nx.LinAlg.svd(&1, full_matrices?: false)).(a)
    Nx.to_flat_list(s)
  end

  test "the full decomposition keeps small singular values" do
    {_, s, _} = Tessera.jit(&Nx.LinAlg.svd/1).(Nx.tensor([[1, 0], [0, 1.0e-7]]))
    assert Nx.to_flat_list(s) == Nx.to_flat_list(Nx.tensor([1, 1.0e-7]))
  end

  @narrow [:bf16, :f16, {:f, 8}, {:f8_e4m3fn, 8}]

  test "singular values of narrow types" do
    for type <- @narrow, n <- [4, 128] ++ if(type in [:bf16, :f16], do: [1024], else: []) do
      a = Nx.tensor([1, 0.125, 0.015625, 0], type: type) |> Nx.tile([div(n, 4)]) |> Nx.make_diagonal()
      inverse = Nx.tensor([1, 8, 64, 0], type: type) |> Nx.tile([div(n, 4)])
      ones = Nx.broadcast(Nx.tensor(1, type: type), {n})
      assert_equal(Tessera.jit(&Nx.LinAlg.matrix_rank/1).(a), Nx.tensor(div(3 * n, 4)))
      assert_equal(Tessera.jit(&Nx.LinAlg.matrix_rank/1).(Nx.eye(n, type: type)), Nx.tensor(n))
      assert_equal(Tessera.jit(&Nx.LinAlg.pinv/1).(a), Nx.make_diagonal(inverse))
      assert_equal(Tessera.jit(&Nx.LinAlg.least_squares/2).(a, ones), inverse)

      for full <- [true, false] do
        {_, s, _} = Tessera.jit(&Nx.LinAlg.svd(&1, full_matrices?: full)).(a)
        assert_equal(s, Nx.sort(Nx.take_diagonal(a), direction: :desc))
      end
    end
  end

  defp assert_equal(a, b) do
    assert Nx.type(a) == Nx.type(b) or Nx.shape(a) == {}
    assert Nx.to_flat_list(a) == Nx.to_flat_list(b)
  end

  test "indices that only u64 holds are those of the last element" do
    t = Nx.tensor([[1, 2], [3, 4]])
    i = Nx.tensor([[0xFFFFFFFFFFFFFFFF, 0x8000000000000000]], type: :u64)
    assert_equal(Tessera.jit(&Nx.gather/2).(t, i), Nx.tensor([4]))
    assert_equal(Tessera.jit(&Nx.take/2).(t, i), Nx.tensor([[[3, 4], [3, 4]]]))
  end

  test "options" do
    for option <- [precision: :bad, lazy_transfers: :maybe, client: :unknown] do
      assert_raise ArgumentError, fn -> Tessera.jit(&Nx.tan/1, [option]).(1.0) end
    end

    log = capture_log(fn -> Tessera.jit(&Nx.tan/1, debug: true, garbage_collect: 1).(1.0) end)
    assert log =~ ~r/Tessera defn evaluation .* cache (hit|miss) in \d+\.\dms/
  end

  test "telemetry tells of a compilation" do
    :telemetry.attach("t", [:tessera, :compilation], &__MODULE__.told/4, self())
    fun = fn x -> Nx.atan(x) end
    Tessera.jit(fun).(1.0)
    assert_received {%{eval_time: a, compile_time: b, total_time: c}, %{key: ^fun}} when c == a + b
    :telemetry.detach("t")
  end

  def told(_event, times, meta, pid), do: send(pid, {times, meta})

  test "while" do
    assert {i, _} = count(1000)
    assert Nx.to_number(i) == 1000
  end

  # 2^depth paths from the result to the argument: to copy, to hash or to compare it would not end.
  defp doubled(depth), do: Nx.Defn.debug_expr(fn x -> Enum.reduce(1..depth, x, fn _, a -> Nx.add(a, a) end) end).(Nx.template({}, :f32))

  defmodule Shared do
    @derive {Nx.Container, containers: [:t], keep: [:meta]}
    defstruct [:t, :meta]
  end

  test "a function may hold an expression that is shared inside" do
    for depth <- [24, 60, 10_000] do
      expr = doubled(depth)
      fun = fn _ -> expr end
      x = Nx.tensor(if(depth == 24, do: 1.0, else: 0.0))
      refute Tessera.cached?(fun, [{x}])
      for _ <- 1..2, do: assert(Nx.to_number(Tessera.jit_apply(fun, [{x}])) == Nx.to_number(x) * 2 ** 24)
      assert Tessera.cached?(fun, [{x}])
      assert Nx.to_number(Tessera.compile(fun, [{x}]).({x})) == Nx.to_number(x) * 2 ** 24
    end
  end

  if Code.ensure_loaded?(Nx.Defn.Graph) do
    defp block(x, w), do: Nx.add(x, Nx.tanh(Nx.add(Nx.dot(x, w), x)))

    test "Nx.Defn.Graph runs what it split" do
      {x, w} = {Nx.iota({4, 4}, type: :f32), Nx.divide(Nx.eye(4), 8)}
      net = fn x, w -> Enum.reduce(1..48, x, fn _, x -> block(x, w) end) end
      stages = Nx.Defn.Graph.split(Nx.Defn.debug_expr(net).(x, w), 0, fn _, n -> {if(rem(n, 60) == 59, do: :before, else: :none), n + 1} end)
      assert length(stages) > 2
      expected = Tessera.jit(net).(x, w)
      for _ <- 1..3, do: assert(Nx.to_binary(Nx.Defn.Graph.run(stages, [x, w], compiler: Tessera)) == Nx.to_binary(expected))
    end
  end

  test "containers may hold terms that are shared inside" do
    meta = fn leaf -> Enum.reduce(1..100, leaf, fn _, x -> {x, x} end) end
    keep = fn %Shared{t: t} = s -> %{s | t: Nx.add(t, 1)} end

    for leaf <- [:a, :b, :a] do
      assert %Shared{t: t, meta: {_, _}} = Tessera.jit(keep).(%Shared{t: Nx.tensor([1, 2]), meta: meta.(leaf)})
      assert Nx.to_flat_list(t) == [2, 3]
    end

    total = fn %Shared{t: t} -> Nx.sum(t) end
    refute Tessera.cached?(total, [%Shared{t: Nx.tensor([1]), meta: meta.(:a)}])
    Tessera.jit(total).(%Shared{t: Nx.tensor([1]), meta: meta.(:a)})
    assert Tessera.cached?(total, [%Shared{t: Nx.tensor([2]), meta: meta.(:a)}])
    refute Tessera.cached?(total, [%Shared{t: Nx.tensor([2]), meta: meta.(:b)}])
  end

  test "what is said of shared expressions is short" do
    expr = doubled(1000)
    error = assert_raise(ArgumentError, fn -> Nx.Defn.default_options(compiler: Tessera) && Tessera.jit(&Nx.sin/1).(expr) end)
    assert error.message =~ "cannot pass a tensor expression as argument to defn"
    assert byte_size(error.message) < 10_000
    log = capture_log(fn -> Tessera.jit(fn _ -> expr end, debug: true).(0.0) end)
    assert log =~ "cache miss"
    assert byte_size(log) < 10_000
  end

  test "a function of a module that is loaded again is another one" do
    define = fn n ->
      Code.with_diagnostics(fn ->
        Code.eval_string("""
        defmodule Tessera.CompilerTest.Again do
          import Nx.Defn
          defn by_defn(x), do: x + #{n}
          def plain(x), do: Nx.add(x, #{n})
        end
        """)
      end)
    end

    for n <- [1, 2, 1] do
      define.(n)

      for name <- [:by_defn, :plain] do
        assert Nx.to_number(Tessera.jit(Function.capture(__MODULE__.Again, name, 1)).(10)) == 10 + n
      end
    end
  end
end

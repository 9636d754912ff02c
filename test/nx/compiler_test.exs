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
    assert %Nx.Tensor{data: %Tessera.Backend{buffer: %Tessera.DeviceBuffer{client_name: :host}}} = result
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

  test "compile takes templates" do
    fun = Tessera.compile(&Nx.dot/2, [Nx.template({2, 3}, :f32), Nx.template({3}, :f32)])
    assert Nx.to_flat_list(fun.(Nx.iota({2, 3}, type: :f32), Nx.tensor([1.0, 1.0, 1.0]))) == [3.0, 12.0]
  end

  test "to_mlir_module gives text, used inputs and templates" do
    fun = fn x, _, y -> {Nx.add(Nx.sin(x), Nx.cos(y)), x} end
    answer = Tessera.to_mlir_module(fun, [Nx.tensor([1.0]), 2.0, 3.0])
    assert answer.mlir_module =~ "func.func public @main"
    assert answer.mlir_module =~ "stablehlo.add"
    assert answer.used_inputs == MapSet.new([0, 2])
    assert {%Nx.Tensor{shape: {1}}, %Nx.Tensor{shape: {1}}} = answer.output_container
    assert_raise ArgumentError, ~r/no StableHLO/, fn -> Tessera.to_mlir_module(&pass/1, [1], hooks: %{passed: & &1}) end
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

    1..8 |> Enum.map(fn _ -> Task.async(fn -> Tessera.jit(fun).(Nx.tensor([1.0])) end) end) |> Task.await_many()
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

  test "ops and types that are not there are named" do
    assert_raise ArgumentError, "Tessera does not have the op :conv yet", fn ->
      Tessera.jit(&Nx.conv/2).(Nx.iota({1, 1, 3, 3}, type: :f32), Nx.iota({1, 1, 2, 2}, type: :f32))
    end

    assert_raise ArgumentError, "Tessera does not have the type c64 yet", fn -> Tessera.jit(&Nx.sin/1).(Complex.new(1, 2)) end
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
end

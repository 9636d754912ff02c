defmodule Tessera.CustomCallTest do
  # Blocks that are calls of a plugin: test/plugin/example.c, which `make plugins` builds.
  use ExUnit.Case, async: true
  import Nx.Defn, only: [defn: 2, deftransformp: 2]

  @plugin Path.expand("../../build/plugin/example.so", __DIR__)

  defmodule Scale do
    defstruct [:factor, :spec]
  end

  defmodule Extremes do
    defstruct []
  end

  defmodule Unknown do
    defstruct []
  end

  defimpl Tessera.CustomCall, for: Scale do
    alias Tessera.CustomCall.Spec

    def call(%{spec: nil, factor: factor}, %{type: {:f, _}}, [_], %{platform: platform}) when platform in [:host, :async],
      do: {:ok, %Spec{call_target_name: "scale", attributes: [{"factor", "#{factor} : f64"}], operand_element_types: [{:f, 32}]}}

    def call(%{spec: nil}, _, _, _), do: :skip
    def call(%{spec: spec}, _, _, _), do: spec
  end

  defimpl Tessera.CustomCall, for: Extremes do
    def call(_, {%{shape: {}}, %{shape: {}}}, [%{type: {:s, 32}}], _), do: {:ok, %Tessera.CustomCall.Spec{call_target_name: "extremes"}}
    def call(_, _, _, _), do: :skip
  end

  defmodule Where do
    defstruct []
  end

  defimpl Tessera.CustomCall, for: Where do
    # The factor says which client the implementation sees.
    def call(_, _, [_], %{name: name, ref: name, device_count: count}) do
      factor = case name do
        name when name in [:host, :async] -> 2
        :other -> 3
        :shards -> count
      end

      {:ok, %Tessera.CustomCall.Spec{call_target_name: "scale", attributes: [{"factor", factor}]}}
    end
  end

  setup_all do
    assert "scale" in :tessera.load_plugin(@plugin)
    :ok
  end

  # The default adds 1000, so that a result says which of both ran.
  defp scale(t, block, type \\ {:f, 32}) do
    Nx.block(block, [t], Nx.template(Nx.shape(t), type), fn _, x -> Nx.as_type(Nx.add(x, 1000), type) end)
  end

  defp extremes(t) do
    s = Nx.template({}, :s32)
    Nx.block(%Extremes{}, [t], {s, s}, fn _, x -> {Nx.as_type(Nx.reduce_min(x), :s32), Nx.as_type(Nx.reduce_max(x), :s32)} end)
  end

  defp jit(fun, args), do: Nx.Defn.jit_apply(fun, args, compiler: Tessera)

  test "a block is a call, also among other operations and in a loop" do
    t = Nx.tensor([1.0, 2.0], backend: Tessera.Backend)
    assert Nx.to_list(jit(&scale(&1, %Scale{factor: 2.5}), [t])) == [2.5, 5.0]
    assert Nx.to_list(jit(fn x -> Nx.add(scale(Nx.multiply(x, 2), %Scale{factor: 3}), 1) end, [t])) == [7.0, 13.0]
    assert Nx.to_list(jit(fn x -> scale(scale(x, %Scale{factor: 3}), %Scale{factor: 5}) end, [t])) == [15.0, 30.0]
    assert Nx.to_list(jit(fn x, p -> Nx.select(p, scale(x, %Scale{factor: 3}), x) end, [t, Nx.tensor(1)])) == [3.0, 6.0]
  end

  test "inputs are converted" do
    t = Nx.tensor([1, 2], backend: Tessera.Backend)
    assert Nx.to_list(jit(&scale(&1, %Scale{factor: 2}), [t])) == [2.0, 4.0]
  end

  test ":skip runs the default" do
    t = Nx.tensor([1, 2], backend: Tessera.Backend)
    assert Nx.to_list(jit(&scale(&1, %Scale{factor: 2}, {:s, 32}), [t])) == [1001, 1002]
    assert Nx.to_list(jit(&scale(&1, %Unknown{}), [t])) == [1001.0, 1002.0]
  end

  test "several results" do
    {least, greatest} = jit(&extremes/1, [Nx.tensor([3, -7, 12], type: :s32)])
    assert {Nx.to_number(least), Nx.to_number(greatest)} == {-7, 12}
    {least, greatest} = jit(&extremes/1, [Nx.tensor([3, 12], type: :u8)])
    assert {Nx.to_number(least), Nx.to_number(greatest)} == {3, 12}
  end

  test "the backend calls it, too" do
    t = Nx.tensor([1.0, 2.0], backend: Tessera.Backend)
    assert Nx.to_list(scale(t, %Scale{factor: 2})) == [2.0, 4.0]
  end

  deftransformp where(x), do: scale(x, %Where{})

  # A function with a cond is lowered scope by scope, one without by rules.
  defn scoped(x) do
    if Nx.sum(x) > 0, do: where(x), else: x
  end

  test "an implementation sees the client for which the program is compiled" do
    t = Nx.tensor([1.0, 2.0], backend: Tessera.Backend)

    for _ <- 1..2, {client, expected} <- [host: [2.0, 4.0], other: [3.0, 6.0], shards: [8.0, 16.0]] ++ if(Tessera.Client.default_name() == :async, do: [async: [2.0, 4.0]], else: []) do
      for fun <- [&scale(&1, %Where{}), &scoped/1] do
        assert Nx.to_list(Nx.Defn.jit_apply(fun, [t], compiler: Tessera, client: client)) == expected
      end

      there = Nx.backend_copy(t, {Tessera.Backend, client: client})
      assert Nx.to_list(scale(there, %Where{})) == expected
    end
  end

  @tag :mesh
  test "on a mesh, too" do
    sharded = Tessera.shard_jit(&scale(&1, %Where{}), struct!(Nx.Mesh, name: "mesh", shape: {2}), client: :shards, input_shardings: [%{}])
    t = Nx.tensor([1.0, 2.0])
    assert Enum.map(sharded.([[t], [t]]), &Nx.to_list/1) == [[8.0, 16.0], [8.0, 16.0]]
  end

  test "attributes as MLIR writes them" do
    text = fn value ->
      t = Nx.tensor([1.0], backend: Tessera.Backend)
      spec = {:ok, %Tessera.CustomCall.Spec{call_target_name: "scale", attributes: [{"factor", value}]}}
      Nx.to_list(jit(&scale(&1, %Scale{spec: spec}), [t]))
    end

    assert text.("42 : i64") == [42.0]
    assert text.("-7") == [-7.0]
    assert text.("1.5e1 : f64") == [15.0]
    assert text.(2.5) == [2.5]
    for bad <- ["\"fast\"", "array<i64: 1, 2>", "[1]", "true"], do: assert_raise(ArgumentError, ~r/scale of plugin example: expected a number/, fn -> text.(bad) end)
  end

  test "what is no spec raises" do
    t = Nx.tensor([1.0])
    spec = fn fields -> {:ok, struct!(Tessera.CustomCall.Spec, [call_target_name: "scale"] ++ fields)} end

    for {answer, message} <- [
          {:ok, ~r/call\/4 must return :skip or {:ok, %Tessera.CustomCall.Spec{}}, got: :ok/},
          {spec.(attributes: :none), ~r/attributes must be a list of {name, value} pairs, got: :none/},
          {spec.(operand_element_types: []), ~r/list of length 1 \(one per block input\), got length 0/},
          {spec.(operand_element_types: :all), ~r/must be :default or a list of Nx types, got: :all/}
        ] do
      assert_raise ArgumentError, message, fn -> jit(&scale(&1, %Scale{spec: answer}), [t]) end
    end

    missing = spec.(call_target_name: "missing")
    assert_raise RuntimeError, ~r/no loaded plugin has the target missing/, fn -> jit(&scale(&1, %Scale{spec: missing}), [t]) end
  end
end

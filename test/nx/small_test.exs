# Types of fewer than 8 bits and floats of 8 bits: eager, compiled, as arguments of other backends, in callbacks, by pointers.
defmodule Tessera.SmallTest do
  use ExUnit.Case, async: true

  @types [{:s, 2}, {:s, 4}, {:u, 2}, {:u, 4}, {:f, 8}, {:f8_e4m3fn, 8}]

  defp ours(list, type), do: Nx.tensor(list, type: type, backend: Tessera.Backend)
  defp binary(list, type), do: Nx.tensor(list, type: type, backend: Nx.BinaryBackend)

  defp value({:s, 2}, 2), do: -2
  defp value({kind, _}, v) when kind in [:s, :u], do: v
  defp value(_, v), do: v * 1.0

  defp values(type, list), do: Enum.map(list, &value(type, &1))

  for type <- @types do
    @type_ type

    test "#{inspect(type)} in binaries" do
      type = @type_
      x = ours([1, 0, 1], type)
      assert Nx.to_binary(x) == Nx.to_binary(binary([1, 0, 1], type))
      assert Nx.to_flat_list(x) == values(type, [1, 0, 1])
      assert Nx.to_binary(Nx.backend_copy(x, Nx.BinaryBackend)) == Nx.to_binary(x)
      assert inspect(x) =~ "1"
    end

    test "#{inspect(type)} eagerly and compiled" do
      type = @type_
      x = ours([1, 0, 1], type)
      f = fn v -> Nx.multiply(Nx.add(v, v), v) end
      assert Nx.type(Nx.add(x, x)) == type
      assert Nx.to_flat_list(f.(x)) == values(type, [2, 0, 2])

      for argument <- [x, binary([1, 0, 1], type)] do
        assert Nx.to_flat_list(Nx.Defn.jit(f, compiler: Tessera).(argument)) == values(type, [2, 0, 2])
      end

      plus = fn v -> Nx.add(v, Nx.tensor([1, 1, 0], type: type)) end
      assert Nx.to_flat_list(Nx.Defn.jit(plus, compiler: Tessera).(x)) == values(type, [2, 1, 1])
      assert Nx.to_flat_list(Nx.sort(x)) == values(type, [0, 1, 1])
      assert Nx.to_number(Nx.dot(x, x)) == value(type, 2)
      assert Enum.map(Nx.to_batched(x, 1), &Nx.to_flat_list/1) == Enum.map([1, 0, 1], &values(type, [&1]))
    end

    test "#{inspect(type)} by pointers and in callbacks" do
      type = @type_
      x = ours([1, 0, 1], type)
      here = Nx.backend_copy(x, {Tessera.Backend, client: :host})
      y = Nx.from_pointer({Tessera.Backend, client: :host}, Nx.to_pointer(here, mode: :local), type, {3})
      assert Nx.to_binary(y) == Nx.to_binary(x)
      # Named after the last use of its memory, which a garbage collection would free before otherwise.
      assert Nx.to_binary(here) == Nx.to_binary(x)
      pid = self()
      hooked = fn v -> Nx.Defn.Kernel.hook(v, &send(pid, {:seen, Nx.to_binary(&1)})) end
      Nx.Defn.jit(hooked, compiler: Tessera).(x)
      assert_receive {:seen, seen}
      assert seen == Nx.to_binary(x)
    end
  end

  test "f8_e4m3fn has no infinity, f8 has" do
    x = Nx.tensor([464.0, 465.0], backend: Tessera.Backend)
    assert Nx.to_flat_list(Nx.as_type(x, {:f8_e4m3fn, 8})) == [448.0, :nan]
    assert Nx.to_flat_list(Nx.as_type(Nx.multiply(x, 1000), {:f, 8})) == [:infinity, :infinity]
  end
end

defmodule Tessera.BackendTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureLog

  setup do
    Nx.default_backend(Tessera.Backend)
    :ok
  end

  test "has every callback of Nx.Backend" do
    Code.ensure_loaded!(Tessera.Backend)
    required = Nx.Backend.behaviour_info(:callbacks) -- Nx.Backend.behaviour_info(:optional_callbacks)
    missing = for {f, a} <- required, not function_exported?(Tessera.Backend, f, a), do: {f, a}
    assert missing == []
  end

  test "creation, mixed operands, reading" do
    t = Nx.iota({2, 3})
    assert %Tessera.Backend{} = t.data
    binary = Nx.tensor([10, 20, 30], backend: Nx.BinaryBackend)
    assert Nx.to_flat_list(Nx.add(t, binary)) == [10, 21, 32, 13, 24, 35]
    assert Nx.to_flat_list(Nx.add(binary, t)) == [10, 21, 32, 13, 24, 35]
    assert inspect(t) == "#Nx.Tensor<\n  s32[2][3]\n  [\n    [0, 1, 2],\n    [3, 4, 5]\n  ]\n>"
    assert Nx.to_flat_list(Nx.tensor([:nan, :infinity, 1.5])) == [:nan, :infinity, 1.5]
  end

  test "transfer, copy, deallocate" do
    t = Nx.tensor([1, 2, 3])
    assert Nx.backend_transfer(t, Tessera.Backend) == t
    copy = Nx.backend_copy(t, Tessera.Backend)
    assert copy.data != t.data
    assert %Nx.BinaryBackend{} = Nx.backend_transfer(t, Nx.BinaryBackend).data
    assert Nx.backend_deallocate(t) == :already_deallocated
    assert inspect(t) =~ "Deallocated"
    view = Nx.to_binary(copy)
    assert Nx.backend_deallocate(copy) == :ok
    assert view == <<1::32-native, 2::32-native, 3::32-native>>
    other = Nx.tensor([1], backend: {Tessera.Backend, client: :other})
    assert Nx.backend_transfer(other, {Tessera.Backend, client: :host}).data.buffer.client_name == :host
  end

  test "concatenate, stack, to_batched stay here" do
    t = Nx.iota({5, 2})
    assert %Tessera.Backend{} = Nx.concatenate([t, t], axis: 1).data
    assert Nx.shape(Nx.stack([t, t])) == {2, 5, 2}
    batches = t |> Nx.to_batched(2) |> Enum.map(&Nx.to_flat_list/1)
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    assert t |> Nx.to_batched(2, leftover: :discard) |> Enum.count() == 2
  end

  test "functions and blocks are compiled" do
    assert Nx.to_number(Nx.reduce(Nx.tensor([1, 2, 3]), 1, fn x, acc -> Nx.multiply(x, acc) end)) == 6
    assert Nx.to_flat_list(Nx.cumulative_sum(Nx.tensor([1, 2, 3]))) == [1, 3, 6]
    assert Nx.to_number(Nx.LinAlg.norm(Nx.tensor([3.0, 4.0]))) == 5.0
  end

  test "under Nx's evaluator the function of reduce is the evaluator's, which cannot be traced" do
    evaluated = Nx.Defn.jit(fn x -> Nx.reduce(x, 0, [axes: [1]], fn a, b -> Nx.add(Nx.multiply(a, 2), b) end) end, compiler: Nx.Defn.Evaluator)
    assert %Tessera.Backend{} = evaluated.(Nx.iota({2, 3})).data
    assert Nx.to_flat_list(evaluated.(Nx.iota({2, 3}))) == [6, 24]
  end

  test "unknown options" do
    assert_raise ArgumentError, fn -> Nx.default_backend({Tessera.Backend, bad: 1}) end
    assert_raise ArgumentError, ~r/could not find Tessera client named :nope/, fn -> Nx.tensor([1], backend: {Tessera.Backend, client: :nope}) end
  end

  test "memory is counted" do
    client = Tessera.Client.fetch!(Tessera.Client.default_name())
    t = Nx.iota({1000}, type: :u8)
    assert %{allocated: allocated, peak: peak, per_device: %{0 => allocated}} = Tessera.Client.get_memory_statistics(client)
    assert allocated >= 1000 and peak >= allocated
    assert Nx.size(t) == 1000
  end

  # Of host memory, whatever the default client is.
  test "pointers" do
    host = {Tessera.Backend, client: :host}
    t = Nx.tensor([[1, 2], [3, 4]], type: :s64, backend: host)
    assert %Nx.Pointer{kind: :local, address: address, data_size: 32} = here = Nx.to_pointer(t)
    seen = Nx.from_pointer(host, here, {:s, 64}, {2, 2}, names: [:x, :y])
    assert seen.names == [:x, :y]
    assert Nx.to_flat_list(Nx.add(seen, 1)) == [2, 3, 4, 5]
    assert Nx.to_flat_list(Tessera.jit(&Nx.sum(&1, axes: [:x])).(seen)) == [4, 6]

    assert %Nx.Pointer{kind: :ipc, handle: handle, data_size: 32} = named = Nx.to_pointer(t, mode: :ipc)
    assert Nx.to_binary(Nx.from_pointer(host, named, {:s, 64}, {4})) == Nx.to_binary(t)
    assert Nx.to_pointer(t, mode: :ipc).handle == handle

    for {message, fun} <- [
          {"invalid pointer data_size for shape, expected: 24, got: 32", fn -> Nx.from_pointer(host, here, {:s, 64}, {3}) end},
          {~r/no multiple of the 8 bytes/, fn -> Nx.from_pointer(host, %{here | address: address + 1}, {:s, 64}, {4}) end},
          {~r/there are no 32 bytes of memory/, fn -> Nx.from_pointer(host, %{here | address: 0}, {:s, 64}, {4}) end},
          {"expected one of :local, :ipc, got: :other", fn -> Nx.to_pointer(t, mode: :other) end},
          {~r/:permissions must be an integer/, fn -> Nx.to_pointer(t, mode: :ipc, permissions: -1) end},
          {~r/unknown keys/, fn -> Nx.to_pointer(t, unknown: 1) end},
          {~r/unknown keys/, fn -> Nx.from_pointer({Tessera.Backend, client: :host, unknown: 1}, here, {:s, 64}, {4}) end}
        ] do
      assert_raise ArgumentError, message, fun
    end

    log =
      capture_log(fn ->
        assert_raise RuntimeError, "unable to get pointer for IPC handle", fn ->
          Nx.from_pointer(host, %{named | handle: "none"}, {:s, 64}, {4})
        end
      end)

    assert log =~ "cannot open shared memory none"

    Nx.backend_deallocate(t)
    assert_raise RuntimeError, ~r/deleted or donated/, fn -> Nx.to_pointer(t) end
  end

  # Sums that stop growing where the type has no digits left: cut, rounded once and rounded each time they stop elsewhere.
  for type <- [:bf16, :f16, :f32, :f64, :s8, :u16] do
    test "a fold of #{type} has the same bits from Nx's evaluator, the backend and the compiler" do
      x = Nx.tensor(for(i <- 1..600, do: rem(i * 7, 15)), type: unquote(type), backend: Tessera.Backend)
      add = fn x -> Nx.reduce(x, 0, fn a, b -> Nx.add(a, b) end) end
      grow = fn x -> Nx.reduce(Nx.reshape(x, {3, 10, 20}), 1, [axes: [2, 0]], fn a, b -> Nx.subtract(Nx.multiply(b, 2), a) end) end
      keep = fn x -> Nx.reduce(Nx.reshape(x, {2, 300}), 3, [axes: [-1], keep_axes: true], fn a, b -> Nx.max(Nx.add(a, 1), b) end) end
      none = fn x -> Nx.reduce(Nx.reshape(x, {600, 1}), 5, [axes: [1]], fn a, b -> Nx.add(a, b) end) end

      for fold <- [add, grow, keep, none] do
        compiled = Tessera.jit(fold).(x)
        evaluated = Nx.Defn.jit(fold, compiler: Nx.Defn.Evaluator).(x)
        assert %Nx.Tensor{data: %Tessera.Backend{}} = evaluated
        assert Nx.to_binary(fold.(x)) == Nx.to_binary(compiled)
        assert {Nx.to_binary(evaluated), Nx.shape(evaluated), Nx.type(evaluated)} == {Nx.to_binary(compiled), Nx.shape(compiled), Nx.type(compiled)}
      end
    end
  end

  test "a fold rounds each step to its type" do
    x = Nx.broadcast(Nx.tensor(9, type: :bf16, backend: Tessera.Backend), {3000})
    add = fn x -> Nx.reduce(x, 0, fn a, b -> Nx.add(a, b) end) end
    assert Nx.to_number(Nx.Defn.jit(add, compiler: Nx.Defn.Evaluator).(x)) == 4096.0
    assert Nx.to_number(Tessera.jit(add).(x)) == 4096.0
  end
end

defmodule Tessera.BackendProgramsTest do
  # Counts the programs of the whole system, so it is alone.
  use ExUnit.Case, async: false

  test "what changes from call to call makes no programs" do
    Nx.default_backend(Tessera.Backend)
    t = Nx.iota({100, 3}, type: :f32)
    each = fn i -> {Nx.add(t, i), Nx.clip(t, 0, i / 2), t[i], Nx.slice(t, [i, 1], [2, 2]), Nx.put_slice(t, [i, 0], t[[0..0, 0..1]])} end
    each.(1)
    programs = :tessera.memory().programs
    for i <- 2..99, do: each.(i)
    assert t |> Nx.to_batched(1) |> Enum.map(&Nx.to_number(&1[0][0])) == Enum.map(0..99, &(&1 * 3.0))
    assert :tessera.memory().programs <= programs + 1
  end
end

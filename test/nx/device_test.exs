# Clients of another platform than the host: the asynchronous device of the tests, in the library that `make async-app` makes. Tests with
# the tag :device are left out where the library lacks it.
defmodule Tessera.Nx.DeviceTest do
  use ExUnit.Case, async: false
  require Tessera.Dialect
  alias Tessera.{Backend, Client}

  @moduletag :device

  setup do
    before = Application.get_env(:tessera, :clients)
    more = [cuda: [platform: :cuda], there: [platform: :async], moving: [platform: :async, automatic_transfers: true]]
    Application.put_env(:tessera, :clients, before ++ more)

    on_exit(fn ->
      Application.put_env(:tessera, :clients, before)
      Application.delete_env(:tessera, :preferred_clients)
    end)
  end

  defp on(numbers, client, device \\ 0), do: Nx.tensor(numbers, backend: {Backend, client: client, device_id: device})
  defp place(%{data: %Backend{buffer: buffer}}), do: {buffer.client_name, buffer.device_id}
  defp jit(fun, options), do: Nx.Defn.jit(fun, [compiler: Tessera] ++ options)

  test "platforms and clients" do
    assert %{host: _, async: 4} = Client.get_supported_platforms()
    assert %Client{platform: :async, device_count: 4, automatic_transfers: false} = Client.fetch!(:there)
    assert %Client{automatic_transfers: true} = Client.fetch!(:host)
    assert catch_exit(Client.fetch!(:cuda))
  end

  test "the first preferred client that is there" do
    Application.put_env(:tessera, :preferred_clients, [:cuda, :there, :host])
    default = Application.fetch_env(:tessera, :default_client)
    Application.delete_env(:tessera, :default_client)

    try do
      assert Client.default_name() == :there
      assert place(Nx.tensor([1, 2], backend: Backend)) == {:there, 0}
      assert place(jit(&Nx.add(&1, 1), []).(Nx.tensor([1, 2]))) == {:there, 0}
    after
      with {:ok, name} <- default, do: Application.put_env(:tessera, :default_client, name)
    end
  end

  test "operations run where their operands are" do
    a = on([[1, 2], [3, 4]], :there, 2)
    sum = Nx.add(a, Nx.tensor([10, 20], backend: Nx.BinaryBackend))
    assert {place(sum), Nx.to_list(sum)} == {{:there, 2}, [[11, 22], [13, 24]]}
    assert place(Nx.sum(Nx.dot(sum, on([1, 1], :host)))) == {:there, 2}
    assert Nx.to_number(Nx.reduce(a, 0, &Nx.add/2)) == 10
    assert place(Nx.iota({3}, backend: {Backend, client: :host})) == {:host, 0}
    assert [first, _] = a |> Nx.to_batched(1) |> Enum.to_list()
    assert {place(first), Nx.to_list(first)} == {{:there, 2}, [[1, 2]]}
    {q, r} = Nx.LinAlg.qr(Nx.as_type(a, :f32))
    assert place(q) == {:there, 2}
    assert Nx.to_number(Nx.all_close(Nx.dot(q, r), a, atol: 1.0e-4)) == 1
  end

  test "transfers and copies" do
    a = on([1, 2, 3], :there)
    for {client, device} <- [host: 0, there: 3, moving: 1] do
      copy = Nx.backend_copy(a, {Backend, client: client, device_id: device})
      assert {place(copy), Nx.to_list(copy)} == {{client, device}, [1, 2, 3]}
    end

    assert Nx.backend_transfer(a, {Backend, client: :there}) == a
    moved = Nx.backend_transfer(a, {Backend, client: :host})
    assert {place(moved), Nx.to_list(moved)} == {{:host, 0}, [1, 2, 3]}
    assert_raise RuntimeError, ~r/called on deleted or donated buffer/, fn -> Nx.to_list(a) end
    assert Nx.to_list(Nx.backend_transfer(moved, Nx.BinaryBackend)) == [1, 2, 3]
  end

  test "compiled functions, with control flow, callbacks and tensors that they hold" do
    held = Nx.tensor([1, 1], backend: Nx.BinaryBackend)
    me = self()
    double = fn t, _ -> Nx.multiply(t, 2) end
    called = jit(fn x -> Nx.runtime_call(Nx.template({2}, :s32), Nx.add(x, held), [], double) end, client: :there)
    assert {place(called.(on([1, 2], :moving))), Nx.to_list(called.(Nx.tensor([1, 2])))} == {{:there, 0}, [4, 6]}
    choice = jit(fn x -> Nx.select(Nx.greater(x, 1), Nx.negate(x), held) end, client: :there, device_id: 1)
    assert {place(choice.(Nx.tensor([1, 2]))), Nx.to_list(choice.(Nx.tensor([1, 2])))} == {{:there, 1}, [1, -2]}
    hooks = %{seen: &send(me, {:seen, Nx.to_list(&1)})}
    hooked = jit(fn x -> Tessera.Dialect.observe(x, :seen) end, client: :there, hooks: hooks)
    assert Nx.to_list(hooked.(Nx.tensor([5, 6]))) == [5, 6]
    assert_receive {:seen, [5, 6]}
  end

  test "a tensor of a client without automatic transfers is no argument elsewhere" do
    there = on([1, 2], :there)
    assert_raise ArgumentError, ~r/is allocated on client :?host #0 \(:?host\) but .* allocated on :?there #0 \(:?async\)/, fn ->
      jit(&Nx.add(&1, 1), client: :host).(there)
    end

    assert Nx.to_list(jit(&Nx.add(&1, 1), client: :host).(on([1, 2], :moving))) == [2, 3]
  end

  test "pointers are of the host" do
    assert_raise ArgumentError, "Nx.to_pointer/2 is not supported for the :there client yet.", fn -> Nx.to_pointer(on([1], :there)) end
    pointer = Nx.to_pointer(on([1], :host))

    assert_raise ArgumentError, "Nx.from_pointer/5 is not supported for the :there client yet.", fn ->
      Nx.from_pointer({Backend, client: :there}, pointer, {:s, 32}, {1})
    end
  end

  test "what is printed names the client" do
    Application.put_env(:tessera, :add_backend_on_inspect, true)

    try do
      assert inspect(on([1, 2], :there, 1)) =~ "Tessera.Backend<there:1, "
    after
      Application.put_env(:tessera, :add_backend_on_inspect, false)
    end
  end
end

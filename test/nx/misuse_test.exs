defmodule Tessera.MisuseTest do
  # Errors speak of the caller's function and arguments, wherever they are found.
  use ExUnit.Case, async: true
  alias Tessera.{Client, DeviceBuffer, Typespec}

  setup_all do
    client = Client.fetch!(:host)
    spec = Typespec.tensor({:f, 32}, {2})
    buffer = DeviceBuffer.place_on_device(<<1.0::float-32-native, 2.0::float-32-native>>, spec, client, 0)
    tensor = %{Nx.template({2}, :f32) | data: %Tessera.Backend{buffer: buffer}}
    %{client: client, spec: spec, buffer: buffer, tensor: tensor}
  end

  defp refused(cases) do
    for {message, fun} <- cases do
      error = assert_raise ArgumentError, fun
      assert error.message =~ message
    end
  end

  test "clients" do
    refused([
      {"could not find Tessera client named :nope, the clients", fn -> Client.fetch!(:nope) end},
      {~s(could not find Tessera client named "host"), fn -> Client.fetch!("host") end},
      {"could not find Tessera client named nil", fn -> Client.fetch!(nil) end},
      {"expected a Tessera.Client, as fetch!/1 gives it, got: :host", fn -> Client.get_memory_statistics(:host) end},
      {"expected a Tessera.Client, as fetch!/1 gives it, got: :host", fn -> Client.reset_peak_memory(:host) end}
    ])
  end

  test "making a buffer", %{client: client, spec: spec} do
    bytes = <<0::64>>
    place = &DeviceBuffer.place_on_device/4

    refused([
      {"expected a Tessera.Client, as fetch!/1 gives it, got: :host", fn -> place.(bytes, spec, :host, 0) end},
      {"expected a Tessera.Client, as fetch!/1 gives it, got: nil", fn -> place.(bytes, spec, nil, 0) end},
      {"device_id 9 of client :host is not there, it has 1 device. :device_count in the client's configuration, or host_devices in that of :tessera, says how many it has", fn -> place.(bytes, spec, client, 9) end},
      {"device_id :a of client :host is not there", fn -> place.(bytes, spec, client, :a) end},
      {"device_id -1 of client :host is not there", fn -> place.(bytes, spec, client, -1) end},
      {"f32[2] takes 8 bytes, got a binary of 4", fn -> place.(<<0::32>>, spec, client, 0) end},
      {"expected a binary, got [1]", fn -> place.([1], spec, client, 0) end},
      {"expected a binary, got <<1:7>>", fn -> place.(<<1::7>>, spec, client, 0) end},
      {"Tessera does not have the type c65 yet", fn -> place.(bytes, Typespec.to_type(spec, {:c, 65}), client, 0) end},
      {"expected a type such as {:f, 32}, got: :f32", fn -> place.(bytes, Typespec.to_type(spec, :f32), client, 0) end},
      {"expected a shape of sizes of at least 0, got {-2}", fn -> place.(bytes, Typespec.to_shape(spec, {-2}), client, 0) end},
      {"expected a shape such as {2, 3}, got [2]", fn -> place.(bytes, Typespec.to_shape(spec, [2]), client, 0) end},
      {"expected a Tessera.Typespec, got: {{:f, 32}, {2}}", fn -> place.(bytes, {{:f, 32}, {2}}, client, 0) end},
      {"expected a handle, got: :a", fn -> DeviceBuffer.from_ref(:a, client, 0, spec) end},
      {"expected a Tessera.Client", fn -> DeviceBuffer.from_ref(make_ref(), :host, 0, spec) end}
    ])
  end

  test "using a buffer", %{client: client, buffer: buffer, tensor: tensor} do
    copy = &DeviceBuffer.copy_to_device/3

    refused([
      {"expected a Tessera.Client, as fetch!/1 gives it, got: :host", fn -> copy.(buffer, :host, 0) end},
      {"device_id 3 of client :host is not there", fn -> copy.(buffer, client, 3) end},
      {"expected a Tessera.DeviceBuffer, got: #Nx.Tensor<", fn -> copy.(tensor, client, 0) end},
      {"expected a Tessera.DeviceBuffer, got: nil", fn -> DeviceBuffer.read(nil) end},
      {"expected a Tessera.DeviceBuffer, got: nil", fn -> DeviceBuffer.deallocate(nil) end},
      {"expected a Tessera.DeviceBuffer, got: nil", fn -> DeviceBuffer.deleted?(nil) end},
      {"expected a number of bytes, got: :a", fn -> DeviceBuffer.read(buffer, :a) end}
    ])

    assert DeviceBuffer.read(copy.(buffer, client, 0)) == DeviceBuffer.read(buffer)
    assert DeviceBuffer.read(buffer, 1_000_000) == DeviceBuffer.read(buffer)
  end

  # As after a restart, or of a struct that was put together by hand.
  test "handles of nothing", %{buffer: buffer, tensor: tensor} do
    for ref <- [make_ref(), nil] do
      lost = %{buffer | ref: ref}
      text = ~r/unable to get buffer. It may belong to another node/
      assert_raise RuntimeError, text, fn -> DeviceBuffer.read(lost) end
      assert_raise RuntimeError, text, fn -> DeviceBuffer.deallocate(lost) end
      assert_raise RuntimeError, text, fn -> DeviceBuffer.deleted?(lost) end
    end

    lost = %{tensor | data: %Tessera.Backend{buffer: %{buffer | ref: make_ref()}}}
    empty = %{tensor | data: %Tessera.Backend{}}

    refused([
      {"add, operand 1: expected a tensor or a number, got f32[2], which is not of this node", fn -> Nx.add(lost, 1) end},
      {"argument 1: expected a tensor or a number, got f32[2], which is not", fn -> Tessera.jit(&Nx.sin/1).(lost) end},
      {"expected a Tessera.DeviceBuffer, got: nil", fn -> Nx.sum(empty) end},
      {"expected a Tessera.DeviceBuffer, got: nil", fn -> Tessera.jit(&Nx.sin/1).(empty) end},
      {"argument 1 is f32[2], the program was compiled for f32[3]", fn -> Tessera.jit(&Nx.sin/1).(%{tensor | shape: {3}}) end},
      {"argument 1 is f32[2], the program was compiled for s32[2]", fn -> Tessera.jit(&Nx.add(&1, 1)).(%{tensor | type: {:s, 32}}) end},
      {"f32[2] takes 8 bytes, got a binary of 2", fn -> Nx.add(tensor, %{tensor | data: %Nx.BinaryBackend{state: <<0, 0>>}}) end}
    ])
  end

  test "tensors that are gone", %{tensor: tensor, client: client} do
    gone = Nx.add(tensor, 1)
    assert Nx.backend_deallocate(gone) == :ok
    assert DeviceBuffer.deleted?(gone.data.buffer)
    assert DeviceBuffer.deallocate(gone.data.buffer) == :already_deallocated

    for fun <- [
          fn -> Nx.add(gone, 1) end,
          fn -> Nx.add(tensor, gone) end,
          fn -> Nx.sum(gone) end,
          fn -> Nx.dot(gone, tensor) end,
          fn -> gone[0] end,
          fn -> Nx.concatenate([tensor, gone]) end,
          fn -> Nx.cumulative_sum(gone) end,
          fn -> Nx.reduce(gone, 0, &Nx.add/2) end,
          fn -> gone |> Nx.to_batched(1) |> Enum.to_list() end,
          fn -> Nx.to_list(gone) end,
          fn -> Nx.serialize(gone) end,
          fn -> Nx.backend_copy(gone) end,
          fn -> Nx.backend_transfer(gone, Nx.BinaryBackend) end,
          fn -> DeviceBuffer.copy_to_device(gone.data.buffer, client, 0) end,
          fn -> Tessera.jit(&Nx.sin/1).(gone) end
        ] do
      assert_raise RuntimeError, ~r/ was called on deleted or donated buffer/, fun
    end

    assert inspect(gone) =~ "Deallocated"
  end

  test "places of tensors", %{tensor: tensor} do
    refused([
      {"could not find Tessera client named :nope", fn -> Nx.tensor([1], backend: {Tessera.Backend, client: :nope}) end},
      {"could not find Tessera client named :nope", fn -> Nx.backend_copy(tensor, {Tessera.Backend, client: :nope}) end},
      {"device_id 9 of client #{inspect(Client.default_name())} is not there", fn -> Nx.backend_copy(tensor, {Tessera.Backend, device_id: 9}) end},
      {"unknown keys [:clent]", fn -> Nx.default_backend({Tessera.Backend, clent: :host}) end}
    ])
  end

  test "options of functions", %{tensor: tensor} do
    jit = fn options -> Tessera.jit(&Nx.sin/1, options).(tensor) end

    refused([
      {"expected options as a keyword list, got: %{}", fn -> jit.(%{}) end},
      {"expected options as a keyword list, got: :a", fn -> jit.(:a) end},
      {"expected options as a keyword list, got: [1]", fn -> jit.([1]) end},
      {"expected options as a keyword list, got: [{:cache, true} | 1]", fn -> jit.([{:cache, true} | 1]) end},
      {"expected options as a keyword list, got: [{:cache, true} | 1]", fn -> Tessera.cached?(&Nx.sin/1, [tensor], [{:cache, true} | 1]) end},
      {"expected options as a keyword list, got: [{:mesh, nil}, 1]", fn -> Tessera.to_mlir_module(&Nx.sin/1, [tensor], [{:mesh, nil}, 1]) end},
      {"expected :cache to be true, false or a path, got: :maybe", fn -> jit.(cache: :maybe) end},
      {"expected the hook :a to be a function of arity 1, got: 1", fn -> jit.(hooks: %{a: 1}) end},
      {"expected the hook :a to be a function of arity 1, got: &Nx.add/2", fn -> jit.(hooks: %{a: &Nx.add/2}) end},
      {":hooks option must be a map", fn -> jit.(hooks: [a: 1]) end},
      {~s(could not find Tessera client named "host"), fn -> jit.(client: "host") end},
      {"device_id :a of client #{inspect(Client.default_name())} is not there", fn -> jit.(device_id: :a) end},
      {"precision configuration to be one of :default, :high, or :highest, got: :low", fn -> jit.(precision: :low) end},
      {":lazy_transfers must be either :always or :never, got: 1", fn -> jit.(lazy_transfers: 1) end},
      {"expected a list of arguments, got: #Nx.Tensor<", fn -> Tessera.cached?(&Nx.sin/1, tensor) end}
    ])

    assert_raise RuntimeError, ~s(could not write the Tessera disk cache "/proc/none/x": no such file or directory), fn ->
      jit.(cache: "/proc/none/x")
    end
  end
end

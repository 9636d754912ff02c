# What a release would do with the application: run in dev and prod by run.sh.
import User.Describe
alias Tessera.{Backend, Client, DeviceBuffer, Typespec}

check = fn name, true -> IO.puts("  #{name}"); name, other -> raise "#{name}: #{inspect(other)}" end

check.("application started", :tessera in Enum.map(Application.started_applications(), &elem(&1, 0)))
client = Client.fetch!(Client.default_name())
check.("config.exs", match?(%Client{name: :other, device_count: 2, default_device_id: 1}, client))

tensor = User.place([1, 2, 3], client)
check.("struct patterns", User.where(tensor) == {:other, 1} and User.where(User.empty()) == nil)
check.("struct updates", User.where(User.move(tensor, 0)) == {:other, 0})
check.("update with an unknown key", match?(%KeyError{}, try do Map.replace!(tensor, :none, 1) rescue e -> e end))
check.("struct!", match?(%KeyError{}, try do struct!(Backend, none: 1) rescue e -> e end))
check.("read", DeviceBuffer.read(tensor.buffer) == <<1::32-native, 2::32-native, 3::32-native>>)
check.("Inspect", inspect(%Typespec{type: {:s, 32}, shape: {3}}) =~ ~r/^%Tessera.Typespec\{(type: \{:s, 32\}, shape: \{3\}|shape: \{3\}, type: \{:s, 32\})\}$/)
check.("Inspect of a tensor", inspect(tensor) =~ "%Tessera.Backend{buffer: %Tessera.DeviceBuffer{")

check.("memory statistics", match?(%{allocated: 12, peak: 12, per_device: %{1 => 12}}, Client.get_memory_statistics(client)))
check.("deallocate", DeviceBuffer.deallocate(tensor.buffer) == :ok and DeviceBuffer.deallocate(tensor.buffer) == :already_deallocated)
check.("errors", match?(%RuntimeError{message: "read was called on deleted" <> _}, try do DeviceBuffer.read(tensor.buffer) rescue e -> e end))
check.("defimpl", describe(tensor) == "tensor in Tessera.DeviceBuffer" and describe(client) == "Tessera.Client" and describe(1) == "something")
check.("consolidation", Protocol.consolidated?(User.Describe) and Protocol.consolidated?(Inspect))

{:docs_v1, _, :erlang, "application/erlang+html", %{"en" => _}, _, entries} = Code.fetch_docs(:tessera)
check.("h :tessera", Enum.any?(entries, &match?({{:function, :add, 2}, _, _, %{"en" => _}, _}, &1)))

if System.otp_release() >= "27" do
  for module <- [Tessera, Backend, Client, DeviceBuffer, Typespec] do
    {:docs_v1, _, :erlang, _, %{"en" => text}, _, functions} = Code.fetch_docs(module)
    documented = for {{:function, _, _}, _, _, %{"en" => _}, _} <- functions, do: 1
    check.("h #{inspect(module)}", text != "" and (module == Backend or documented != []))
  end
end

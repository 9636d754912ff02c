# Nx's tests compare tensors by `==`, which holds for data that is a binary, not for a reference. These two run everything
# on Tessera and keep or give binaries.

defmodule Tessera.Suites.Shim do
  # A backend: a binary, which goes to Tessera.Backend for each op and comes back.
  @moduledoc false
  @behaviour Nx.Backend
  alias Nx.Tensor, as: T
  defstruct [:state]

  @impl true
  def init(options), do: options
  @impl true
  def from_binary(out, binary, _), do: keep(out, binary)
  @impl true
  def backend_copy(tensor, Nx.Tensor, options), do: backend_copy(tensor, Nx.BinaryBackend, options)
  def backend_copy(tensor, module, options), do: module.from_binary(tensor, tensor.data.state, options)
  @impl true
  def backend_transfer(tensor, module, options), do: backend_copy(tensor, module, options)
  @impl true
  def backend_deallocate(_), do: :ok
  @impl true
  def to_binary(tensor, limit), do: Nx.BinaryBackend.to_binary(given(tensor), limit)
  @impl true
  def inspect(tensor, options), do: Nx.BinaryBackend.inspect(given(tensor), options)
  @impl true
  def to_pointer(tensor, options), do: Nx.BinaryBackend.to_pointer(given(tensor), options)
  @impl true
  def from_pointer(a, b, c, d, e), do: Nx.BinaryBackend.from_pointer(a, b, c, d, e)
  @impl true
  def to_batched(out, tensor, options), do: Stream.map(Tessera.Backend.to_batched(out, given(tensor), options), &kept/1)
  @impl true
  def block(struct, out, args, fun), do: kept(Tessera.Backend.block(struct, out, given(args), fun))

  own = Module.definitions_in(__MODULE__, :def)

  for {name, arity} <- Nx.Backend.behaviour_info(:callbacks) -- own do
    args = Macro.generate_arguments(arity, __MODULE__)
    @impl true
    def unquote(name)(unquote_splicing(args)),
      do: kept(apply(Tessera.Backend, unquote(name), given([unquote_splicing(args)])))
  end

  defp given(%T{data: %__MODULE__{state: state}} = t), do: %{t | data: %Nx.BinaryBackend{state: state}}
  defp given(list) when is_list(list), do: Enum.map(list, &given/1)
  defp given(other), do: other

  defp kept(%T{data: %Nx.BinaryBackend{state: state}} = t), do: keep(t, state)
  defp kept(%T{data: %Tessera.Backend{}} = t), do: keep(t, :binary.copy(Tessera.Backend.to_binary(t, Nx.size(t))))
  defp kept(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> Enum.map(&kept/1) |> List.to_tuple()
  defp kept(other), do: other

  defp keep(t, binary), do: %{t | data: %__MODULE__{state: binary}}
end

defmodule Tessera.Suites.ShimCompiler do
  # A compiler: Tessera, with results on the binary backend. It takes the place of Nx's evaluator, as tests that look at the
  # options of a call expect no compiler among them.
  @moduledoc false
  @behaviour Nx.Defn.Compiler

  @impl true
  def __jit__(key, vars, fun, args, options), do: kept(Tessera.__jit__(key, vars, fun, args, options))

  @impl true
  def __compile__(key, vars, fun, options) do
    compiled = Tessera.__compile__(key, vars, fun, options)
    fn args -> kept(compiled.(args)) end
  end

  @impl true
  def __partitions_options__(options), do: Tessera.__partitions_options__(options)
  @impl true
  def __to_backend__(_), do: {Nx.BinaryBackend, []}

  defp kept(containers),
    do: Enum.map(containers, &Nx.Defn.Composite.traverse(&1, fn t -> Nx.backend_copy(t, Nx.BinaryBackend) end))

  def replace_evaluator(true) do
    delegates =
      for {name, arity} <-
            Nx.Defn.Compiler.behaviour_info(:callbacks) -- Nx.Defn.Compiler.behaviour_info(:optional_callbacks) do
        args = Macro.generate_arguments(arity, __MODULE__)
        quote(do: defdelegate(unquote(name)(unquote_splicing(args)), to: unquote(__MODULE__)))
      end

    Module.create(Nx.Defn.Evaluator, [quote(do: @behaviour(Nx.Defn.Compiler)) | delegates], Macro.Env.location(__ENV__))
  end

  def replace_evaluator(false) do
    :code.purge(Nx.Defn.Evaluator)
    {:module, _} = :code.load_file(Nx.Defn.Evaluator)
  end
end

defmodule Tessera.NIF do
  # What one of EXLA's tests asks of its library: to write where a pointer points.
  @moduledoc false
  def write_to_pointer(address, binary, offset) do
    {:ok, memory} = :file.open("/proc/self/mem", [:raw, :read, :write, :binary])
    :ok = :file.pwrite(memory, address + offset, binary)
    :ok = :file.close(memory)
  end
end

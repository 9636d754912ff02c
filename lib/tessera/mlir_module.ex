defmodule Tessera.MLIRModule do
  @moduledoc """
  A block of Nx (`Nx.block/4`) that is a module of StableHLO. `Tessera.from_mlir_module/1` makes functions of such blocks.

  Tessera's compiler puts the module's ops into the program. Other compilers call Tessera by `Nx.runtime_call/4`.
  """

  # Nx need not be there while this is compiled: lib/tessera/backend.ex says more.
  @compile {:no_warn_undefined, [Nx, Nx.Defn, Nx.Defn.Composite]}

  @most_arguments 253

  defstruct [:program]

  @typedoc "The program is what `:tessera_stablehlo.program/1` reads. It belongs to this node."
  @type t :: %__MODULE__{program: term}

  @doc false
  def function(module) do
    block = %__MODULE__{program: :tessera_stablehlo.program(module)}
    &call(block, &1)
  end

  @doc false
  def named_function(module) do
    names = :tessera_stablehlo.names(module)
    fun = function(module)
    &named(names, fun.(:tessera_stablehlo.arguments(names, &1)))
  end

  defp named(names, results) when is_tuple(results), do: :tessera_nx_stablehlo.named(names, Tuple.to_list(results))
  defp named(names, result), do: :tessera_nx_stablehlo.named(names, [result])

  defp call(block, arguments) do
    tensors = arguments |> List.wrap() |> Nx.Defn.Composite.flatten_list() |> Enum.map(&plain/1)
    count = length(tensors)

    unless count in 1..@most_arguments do
      raise ArgumentError, "a module of StableHLO needs 1 to #{@most_arguments} tensors as arguments, got: #{count}"
    end

    output = output(:tessera_stablehlo.result_types(block.program, Enum.map(tensors, &:tessera_nx_tensor.form/1)))
    Nx.block(block, tensors, output, default(count, output))
  end

  defp plain(%{vectorized_axes: [_ | _] = axes}) do
    raise ArgumentError, "a module of StableHLO has no vectorized axes, got a tensor with #{inspect(axes)}"
  end

  defp plain(tensor), do: Nx.to_tensor(tensor)

  defp output([type]), do: template(type)
  defp output(types), do: types |> Enum.map(&template/1) |> List.to_tuple()

  defp template({type, shape}), do: Nx.template(shape, :tessera_type.kind(type))

  # For other compilers and backends, which call this compiler.
  defp run(block, tensors, output) do
    Nx.runtime_call(output, List.to_tuple(tensors), [], fn inputs, _ ->
      compiled = &Nx.block(block, Tuple.to_list(&1), output, default(tuple_size(&1), output))
      result = Nx.Defn.jit_apply(compiled, [inputs], compiler: Tessera, on_conflict: :force)
      Nx.backend_transfer(result, Nx.BinaryBackend)
    end)
  end

  for count <- 1..@most_arguments do
    tensors = Macro.generate_arguments(count, __MODULE__)

    defp default(unquote(count), output),
      do: fn block, unquote_splicing(tensors) -> run(block, unquote(tensors), output) end
  end
end

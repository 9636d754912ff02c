# What differs between the versions of Nx that the tests run with: io_call and donation come after 0.13, runtime_call
# has had options since 0.12. What a version has not is excluded by its tag, and ExUnit says so.
defmodule Tessera.Dialect do
  def has_io_call?, do: macro_or_function?(Nx.Defn.Kernel, :io_call, 2)
  def has_donation?, do: function_exported?(Nx, :donatable, 1)
  def has_mesh?, do: Enum.all?([Nx.Mesh, Nx.Defn], &Code.ensure_loaded?/1) and function_exported?(Nx.Defn, :shard_jit, 3)
  def has_blocks?, do: function_exported?(Nx, :block, 4)

  @doc "The release that this Nx is, as in \"0.13\", or \"head\" where it is newer."
  def release do
    Code.ensure_loaded!(Nx)

    if has_donation?(),
      do: "head",
      else: :nx |> Application.spec(:vsn) |> to_string() |> String.replace(~r/^(\d+\.\d+).*/, "\\1")
  end

  # Of QR and SVD, also of wide matrices, and second ones: Nx 0.13 raises there, under its evaluator, too.
  def has_factor_gradients?, do: has_donation?()

  def excluded do
    Enum.each([Nx, Nx.Defn.Kernel], &Code.ensure_loaded!/1)
    has = [donation: has_donation?(), blocks: has_blocks?(), mesh: has_mesh?(), factor_gradients: has_factor_gradients?()]
    for {tag, false} <- has, do: tag
  end

  # Passes the value on and calls the hook of that name, if there is one.
  if Code.ensure_loaded!(Nx.Defn.Kernel) &&
       (function_exported?(Nx.Defn.Kernel, :io_call, 2) or macro_exported?(Nx.Defn.Kernel, :io_call, 2)) do
    defmacro observe(value, name), do: quote(do: Nx.Defn.Kernel.io_call(unquote(value), unquote(name)))
  else
    defmacro observe(value, name), do: quote(do: Nx.Defn.Kernel.hook(unquote(value), unquote(name)))
  end

  defp macro_or_function?(module, name, arity) do
    function_exported?(module, name, arity) or macro_exported?(module, name, arity)
  end
end

defprotocol Tessera.CustomCall do
  @moduledoc """
  The protocol by which a block of Nx becomes a native call of a plugin (include/tessera_plugin.h, docs/plugins.md).

  While a function is compiled, `call/4` is asked for each `Nx.block/4` whose struct has an implementation:

      defimpl Tessera.CustomCall, for: MyApp.Scale do
        def call(%{factor: factor}, %{type: {:f, 32}}, [_input], %{platform: :host}),
          do: {:ok, %Tessera.CustomCall.Spec{call_target_name: "scale", attributes: [{"factor", "\#{factor}"}]}}

        def call(_, _, _, _), do: :skip
      end

  An implementation for a struct of Nx itself, such as `Nx.Block.LinAlg.QR`, comes before Tessera's own native code. The plugin
  is loaded by `:tessera.load_plugin(path)`.
  """

  @doc """
  The call that replaces a block, or `:skip`, after which the block's default runs. The arguments are the block's struct, the
  template of the output, a list with the templates of the inputs, and the client.
  """
  @spec call(t, Nx.Tensor.t() | tuple, [Nx.Tensor.t()], Tessera.Client.t()) ::
          {:ok, Tessera.CustomCall.Spec.t()} | :skip
  def call(struct, out, args, client)
end

defmodule Tessera.CustomCall.Spec do
  @moduledoc """
  What `Tessera.CustomCall.call/4` answers: the field `call_target_name` is the name of a plugin's target, `attributes` a list of
  names with values, and `operand_element_types` a list of the types to which inputs are converted first, or `:default`. A value
  is an integer, a float, a boolean or a list of integers, or a text of MLIR for one of these, such as `"42 : i64"`, `"[1, 2]"`, or
  a string between quotation marks.

      iex> %Tessera.CustomCall.Spec{call_target_name: "scale"}.operand_element_types
      :default
  """
  defstruct [:call_target_name, attributes: [], operand_element_types: :default]

  @type t :: %__MODULE__{
          call_target_name: String.t(),
          attributes: [{String.t() | atom, String.t() | number | boolean | [integer]}],
          operand_element_types: :default | [Tessera.Typespec.type()]
        }
end

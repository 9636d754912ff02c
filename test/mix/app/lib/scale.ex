defmodule User.Scale do
  defstruct factor: 1

  defimpl Tessera.CustomCall do
    def call(%{factor: factor}, _out, _inputs, _client),
      do: {:ok, %Tessera.CustomCall.Spec{call_target_name: "scale", attributes: [{"factor", factor}]}}
  end
end

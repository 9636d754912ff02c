defmodule Tessera.Typespec do
  @moduledoc "The type and shape of a `Tessera.DeviceBuffer`."
  defstruct [:type, :shape]

  @typedoc "A type of Nx, such as `{:f, 32}`."
  @type type :: {atom, non_neg_integer}
  @type t :: %__MODULE__{type: type, shape: tuple}

  @doc """
  The type and shape of a tensor.

      iex> Tessera.Typespec.tensor({:f, 32}, {2, 3})
      %Tessera.Typespec{type: {:f, 32}, shape: {2, 3}}
  """
  @spec tensor(type, tuple) :: t
  def tensor(type, shape), do: %__MODULE__{type: type, shape: shape}

  @doc """
  The typespec with another type.

      iex> Tessera.Typespec.tensor({:f, 32}, {3}) |> Tessera.Typespec.to_type({:s, 8})
      %Tessera.Typespec{type: {:s, 8}, shape: {3}}
  """
  @spec to_type(t, type) :: t
  def to_type(%__MODULE__{} = typespec, type), do: %{typespec | type: type}

  @doc """
  The typespec with another shape.

      iex> Tessera.Typespec.tensor({:f, 32}, {3}) |> Tessera.Typespec.to_shape({1, 3})
      %Tessera.Typespec{type: {:f, 32}, shape: {1, 3}}
  """
  @spec to_shape(t, tuple) :: t
  def to_shape(%__MODULE__{} = typespec, shape), do: %{typespec | shape: shape}
end

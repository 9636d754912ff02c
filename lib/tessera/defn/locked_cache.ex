defmodule Tessera.Defn.LockedCache do
  @moduledoc """
  A cache in which one caller makes a value while the others wait. Name and contract are EXLA's. Values are kept with the
  compiled programs, and are bounded with them.

      iex> Tessera.Defn.LockedCache.run({:squares, 3}, fn -> {:made, 9} end)
      {:made, 9}
      iex> Tessera.Defn.LockedCache.run({:squares, 3}, fn -> {:made, 9} end)
      {nil, 9}
  """

  @doc "`{extra, value}` as the function returns it where the key has no value, else `{nil, value}`."
  @spec run(term, (() -> {extra, value})) :: {extra | nil, value} when extra: term, value: term
  def run(key, fun), do: :tessera_nx_locked.run(key, fun)

  @doc "How often this was called with the key."
  @spec count(term) :: pos_integer
  def count(key), do: :tessera_nx_locked.count(key)
end

# The examples in the documentation of lib/ that need no Nx. test/nx/doctests_test.exs has the others.
#
#     elixir -pa ebin test/mix/doctests.exs
{:ok, _} = Application.ensure_all_started(:tessera)
ExUnit.start()

defmodule Tessera.DoctestsWithoutNx do
  use ExUnit.Case, async: false
  doctest Tessera.Client
  doctest Tessera.Cluster
  doctest Tessera.CustomCall.Spec
  doctest Tessera.Defn.Lock
  doctest Tessera.Defn.LockedCache
  doctest Tessera.DeviceBuffer
  doctest Tessera.Typespec
end

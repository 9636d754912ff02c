defmodule Tessera.DoctestsTest do
  # The examples in the documentation of lib/. The client `shards`, which some of them name, is run.exs's.
  use ExUnit.Case, async: false
  doctest Tessera
  doctest Tessera.Backend
  doctest Tessera.Client
  doctest Tessera.Cluster
  doctest Tessera.CustomCall.Spec
  doctest Tessera.Defn.Lock
  doctest Tessera.Defn.LockedCache
  doctest Tessera.DeviceBuffer
  doctest Tessera.IO
  doctest Tessera.Mesh
  doctest Tessera.Typespec
end

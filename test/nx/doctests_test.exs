defmodule Tessera.DoctestsTest do
  # The examples in the documentation of lib/. The client `shards`, which some of them name, is run.exs's.
  use ExUnit.Case, async: false
  doctest Tessera
  doctest Tessera.Backend
  # The example shows the platforms of a library without the asynchronous device.
  more = if Map.has_key?(Tessera.Client.get_supported_platforms(), :async), do: [get_supported_platforms: 0], else: []
  if more != [], do: IO.puts("The library has the asynchronous device: the example of get_supported_platforms/0 is left out")
  doctest Tessera.Client, except: more
  doctest Tessera.Cluster
  doctest Tessera.CustomCall.Spec
  doctest Tessera.Defn.Lock
  doctest Tessera.Defn.LockedCache
  doctest Tessera.DeviceBuffer
  doctest Tessera.IO
  doctest Tessera.Mesh
  doctest Tessera.Typespec
end

defmodule Tessera.Profile do
  @moduledoc """
  Where the time of a call went: what `Tessera.profile/2` returns. The page docs/profile.md explains the fields, which are those of
  `t:tessera_profile.profile/0`. The functions of `:tessera_profile` take it.

  A notebook of Livebook shows it as a flame graph and as a table.
  """

  @type t :: %__MODULE__{}

  defstruct [
    :wall_ns,
    :run_ns,
    :trace_ns,
    :compile_ns,
    :outside_ns,
    :runs,
    :programs,
    :events,
    :speed,
    :events_left_out,
    :uncounted,
    :clusters
  ]

  @doc false
  def table(profile), do: :tessera_profile.table(profile)

  defimpl Inspect do
    # The whole has a term for each step that ran.
    def inspect(profile, _opts) do
      [first | _] = profile |> Tessera.Profile.table() |> String.split("\n", parts: 2)
      "#Tessera.Profile<#{first}>"
    end
  end
end

# The implementation of Kino's protocol. `defimpl` asks for the protocol when this is compiled, and Kino is no dependency: it may be compiled later, or not
# at all. So the module is written as `defimpl` would write it. The protocol finds it by its name, and its consolidation by the attribute.
defmodule Kino.Render.Tessera.Profile do
  @moduledoc false
  Module.register_attribute(__MODULE__, :__impl__, persist: true)
  @__impl__ [protocol: Kino.Render, for: Tessera.Profile]

  def __impl__(:for), do: Tessera.Profile
  def __impl__(:target), do: __MODULE__
  def __impl__(:protocol), do: Kino.Render

  def to_livebook(profile), do: profile |> Tessera.Kino.views() |> then(&apply(Kino.Render, :to_livebook, [&1]))
end

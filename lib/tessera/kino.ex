defmodule Tessera.Kino do
  @moduledoc """
  Pictures in Livebook, by the library `kino` where it is loaded. Without it the functions print text.

      Tessera.Kino.plot(:tessera_plot.line([1, 3, 2]))

  `kino` is no dependency of Tessera: the notebook's setup cell installs it.
  """

  @doc "A plot of `tessera_plot`, as an image."
  @spec plot(:tessera_plot.plot()) :: term
  def plot(plot) do
    if kino?(), do: image(:tessera_plot.png(plot), "image/png"), else: IO.puts(:tessera_plot.text(plot))
  end

  @doc """
  A tensor, of Nx or of Erlang's functions: numbers in a row as a line, a matrix as an image in grey, and a matrix with three colours as an image.
  """
  @spec tensor(struct | :tessera.tensor()) :: term
  def tensor(tensor) do
    tensor = erlang(tensor)
    plot(if tuple_size(:tessera.shape(tensor)) <= 1, do: :tessera_plot.line(tensor), else: :tessera_plot.image(tensor))
  end

  @doc """
  A profile of `Tessera.profile/2`, as a flame graph; a table without `kino`. A profile that is the value of a cell is shown with both.
  """
  @spec profile(Tessera.Profile.t() | :tessera_profile.profile()) :: term
  def profile(profile) do
    if kino?(),
      do: image(:tessera_profile.flame_graph(profile), "image/svg+xml"),
      else: IO.puts(:tessera_profile.table(profile))
  end

  @doc false
  # The views of a profile, as tabs.
  def views(profile) do
    table = apply(Kino.Text, :new, [:tessera_profile.table(profile), [terminal: true]])
    apply(Kino.Layout, :tabs, [["Flame graph": profile(profile), Table: table]])
  end

  defp kino?, do: Code.ensure_loaded?(Kino.Image)

  defp image(bytes, type), do: apply(Kino.Image, :new, [bytes, type])

  defp erlang(%{__struct__: Nx.Tensor} = tensor), do: :tessera_nx_tensor.value(tensor)
  defp erlang(tensor), do: tensor
end

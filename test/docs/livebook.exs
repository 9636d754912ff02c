# Runs notebooks of Livebook without it: the cells in their order, each with the bindings of the cells before. A setup cell (Mix.install) is left out: its
# libraries are here. A cell's value is compared with the output that the notebook has. Modules with Kino's names stand in for Kino, and look at the
# bytes of the images. A profile is shown by Kino's protocol, whose consolidation has to find the implementation, too.
#
#   elixir -pa ebin test/docs/livebook.exs FILE...        with ERL_LIBS, for notebooks that use Nx
# As Mix.install does.
if Code.ensure_loaded?(Nx), do: {:ok, _} = Application.ensure_all_started(:nx)
{:ok, _} = Application.ensure_all_started(:tessera)

unless Code.ensure_loaded?(Kino.Image) do
  defmodule Kino.Image do
    defstruct [:bytes, :type]

    def new(<<137, "PNG", _::binary>> = bytes, "image/png"), do: %__MODULE__{bytes: bytes, type: :png}
    def new("<svg" <> _ = bytes, "image/svg+xml"), do: %__MODULE__{bytes: bytes, type: :svg}
  end

  defmodule Kino.Text do
    defstruct [:text]
    def new(text, terminal: true), do: %__MODULE__{text: text}
  end

  defmodule Kino.Layout do
    defstruct [:tabs]
    def tabs(tabs), do: %__MODULE__{tabs: tabs}
  end

  # As Kino has it: a term without an implementation is inspected.
  defprotocol Kino.Render do
    @fallback_to_any true
    def to_livebook(value)
  end

  defimpl Kino.Render, for: Any do
    def to_livebook(value), do: {:inspected, inspect(value)}
  end

  defimpl Kino.Render, for: Kino.Layout do
    def to_livebook(layout), do: {:tabs, layout.tabs}
  end
end

{_, profile} = Tessera.profile(&:tessera.sin/1, [1.0], speed: false)

{:tabs, ["Flame graph": %{__struct__: Kino.Image, type: :svg}, Table: %{__struct__: Kino.Text, text: table}]} = Kino.Render.to_livebook(profile)
true = table =~ "in 1 runs of 1 programs"
true = Regex.match?(~r/^#Tessera\.Profile<.* in 1 runs of 1 programs.*>$/, inspect(profile))
true = Tessera.Profile in Protocol.extract_impls(Kino.Render, [Tessera.Profile |> :code.which() |> to_string() |> Path.dirname()])

defmodule Notebook do
  # [{line, code, output or nil}]
  def cells(text) do
    ~r/^```elixir\n(.*?)^```$(?:\n\n<!-- livebook:\{"output":true\} -->\n\n```\n(.*?)^```$)?/ms
    |> Regex.scan(text, return: :index)
    |> Enum.map(fn [_, {start, _} = code | output] ->
      line = text |> binary_part(0, start) |> String.split("\n") |> length()
      {line, part(text, code), with([place] <- output, do: text |> part(place) |> String.trim(), else: (_ -> nil))}
    end)
  end

  defp part(text, {start, length}), do: binary_part(text, start, length)

  def run(file) do
    cells = file |> File.read!() |> cells()
    {[{_, "Mix.install(" <> _, nil}], cells} = Enum.split(cells, 1)
    env = Code.env_for_eval(file: Path.expand(file))

    Enum.reduce(cells, {[], env}, fn {line, code, output}, {bindings, env} ->
      quoted = Code.string_to_quoted!(code, file: Path.expand(file), line: line)
      {value, bindings, env} = Code.eval_quoted_with_env(quoted, bindings, env)
      if output != nil and output != inspect(value, pretty: true), do: raise("#{file}:#{line}: #{inspect(value)} is not #{output}")
      if output == nil and not match?(%{__struct__: Kino.Image}, value), do: raise("#{file}:#{line} shows nothing: #{inspect(value)}")
      {bindings, env}
    end)

    IO.puts("  ran: #{file}, #{length(cells)} cells")
  end
end

Enum.each(System.argv(), &Notebook.run/1)

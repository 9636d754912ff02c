defmodule Mix.Tasks.Compile.TesseraNative do
  @moduledoc false
  # The C part, and what of the Erlang sources is generated: fetched, or by make (docs/packages.md).
  use Mix.Task.Compiler

  @impl true
  def run(_arguments) do
    if :os.type() == {:unix, :linux}, do: native(["build", "-j#{System.schedulers_online()}", "native"])
    # links priv/, which a fresh checkout does not have before
    Mix.Project.build_structure()
    {:ok, []}
  end

  def native(arguments) do
    case System.cmd("sh", ["mk/native.sh" | arguments], into: IO.stream(:stdio, :line), stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, status} -> Mix.raise("tessera: mk/native.sh #{Enum.join(arguments, " ")} ends with #{status}")
    end
  end
end

defmodule Mix.Tasks.Compile.TesseraDocs do
  @moduledoc false
  # What h prints for the modules that are written in Erlang.
  use Mix.Task.Compiler

  @impl true
  def run(_arguments) do
    if :os.type() == {:unix, :linux},
      do: Mix.Tasks.Compile.TesseraNative.native(["docs", Mix.Project.compile_path()])

    {:ok, []}
  end
end

defmodule Tessera.MixProject do
  use Mix.Project

  {:ok, [{:application, :tessera, properties}]} = __DIR__ |> Path.join("erl/tessera.app.src") |> :file.consult()
  @properties properties
  @source @properties[:links] |> List.keyfind(~c"Source", 0) |> elem(1) |> to_string()

  def project do
    [
      app: :tessera,
      version: to_string(@properties[:vsn]),
      description: to_string(@properties[:description]),
      source_url: @source,
      package: package(),
      elixir: "~> 1.14",
      compilers: [:tessera_native] ++ Mix.compilers() ++ [:tessera_docs],
      erlc_paths: ["erl"],
      erlc_include_path: "include",
      # Nx is a dependency of those who use Tessera under it, and may be there or not while this is compiled.
      deps: []
    ]
  end

  # For Hex; the application's file has it for rebar3, too.
  defp package do
    [
      licenses: Enum.map(@properties[:licenses], &to_string/1),
      links: Map.new(@properties[:links], fn {name, url} -> {to_string(name), to_string(url)} end),
      build_tools: Enum.map(@properties[:build_tools], &to_string/1),
      files: for(file <- @properties[:files], path = to_string(file), File.exists?(path), do: path),
      exclude_patterns: Enum.map(@properties[:exclude_patterns], &Regex.compile!(to_string(&1)))
    ]
  end

  # As make has it.
  def application do
    optional = for application <- @properties[:optional_applications], do: {application, :optional}
    [extra_applications: optional] ++ Keyword.take(@properties, [:mod, :registered, :env])
  end
end

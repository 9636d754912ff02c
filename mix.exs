defmodule Mix.Tasks.Compile.TesseraNative do
  @moduledoc false
  # The C part, and what of the Erlang sources is generated, by make.
  use Mix.Task.Compiler

  @impl true
  def run(_arguments) do
    if :os.type() == {:unix, :linux}, do: make(["-j#{System.schedulers_online()}", "native"])
    # links priv/, which a fresh checkout does not have before
    Mix.Project.build_structure()
    {:ok, []}
  end

  def make(arguments) do
    case System.cmd("make", arguments, into: IO.stream(:stdio, :line), stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, status} -> Mix.raise("tessera: make #{Enum.join(arguments, " ")} ends with #{status}")
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
      do: Mix.Tasks.Compile.TesseraNative.make(["shell-docs", "EBIN=#{Mix.Project.compile_path()}"])

    {:ok, []}
  end
end

defmodule Tessera.MixProject do
  use Mix.Project

  {:ok, [{:application, :tessera, properties}]} = __DIR__ |> Path.join("erl/tessera.app.src") |> :file.consult()
  @properties properties

  def project do
    [
      app: :tessera,
      version: to_string(@properties[:vsn]),
      description: to_string(@properties[:description]),
      elixir: "~> 1.14",
      compilers: [:tessera_native] ++ Mix.compilers() ++ [:tessera_docs],
      erlc_paths: ["erl"],
      erlc_include_path: "include",
      # Nx is a dependency of those who use Tessera under it, and may be there or not while this is compiled.
      deps: []
    ]
  end

  # As make has it.
  def application do
    optional = for application <- @properties[:optional_applications], do: {application, :optional}
    [extra_applications: optional] ++ Keyword.take(@properties, [:mod, :registered, :env])
  end
end

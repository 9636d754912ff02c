defmodule User.MixProject do
  use Mix.Project

  def project do
    [app: :user, version: "0.1.0", elixir: "~> 1.14", deps: deps(), consolidate_protocols: true]
  end

  def application, do: [extra_applications: [:logger]]

  # :mix, as Mix chooses by itself, or :make.
  defp deps do
    manager = String.to_atom(System.get_env("TESSERA_MANAGER", "mix"))
    [{:tessera, path: System.fetch_env!("TESSERA_PATH"), manager: manager}]
  end
end

defmodule First.MixProject do
  use Mix.Project

  def project do
    [app: :first, version: "0.1.0", elixir: "~> 1.17", start_permanent: Mix.env() == :prod, deps: deps()]
  end

  def application, do: [extra_applications: [:logger]]

  defp deps do
    [
      {:nx, "~> 0.11"},
      # elsewhere: git: "URL of the repository"
      {:tessera, path: "../.."}
    ]
  end
end

defmodule Tessera.BehaviourTest do
  # lib/ is compiled with Nx or without. With it the compiler knows Nx's behaviours: what it would warn of is an error here, for
  # example a callback that Tessera does not define.
  use ExUnit.Case, async: false

  @root Path.expand("../..", __DIR__)

  test "lib/ compiles without warnings where Nx is" do
    folder = Path.join(System.tmp_dir!(), "tessera-behaviour-#{System.pid()}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    files = Path.wildcard(Path.join(@root, "lib/**/*.ex"))
    paths = for path <- :code.get_path(), File.dir?(path), do: ["-pa", Path.expand(to_string(path))]
    # Without the modules that are in ebin/ now, which would be defined twice.
    erlang = Path.join(folder, "erlang")
    File.mkdir_p!(erlang)
    for beam <- Path.wildcard(Path.join(ebin(), "tessera*.beam")), do: File.cp!(beam, Path.join(erlang, Path.basename(beam)))
    others = for ["-pa", path] <- paths, path != ebin(), do: ["-pa", path]
    arguments = List.flatten([others, "-pa", erlang, "--warnings-as-errors", "-o", folder, files])
    {output, status} = System.cmd(System.find_executable("elixirc"), arguments, stderr_to_stdout: true)
    # On a busy machine the compiler says of a file that it takes more than 10 s.
    said = output |> String.split("\n", trim: true) |> Enum.reject(&String.starts_with?(&1, "Compiling "))
    assert {said, status} == {[], 0}

    for {module, behaviour} <- [{Tessera.Backend, Nx.Backend}, {Tessera, Nx.Defn.Compiler}] do
      {:ok, {_, [attributes: attributes]}} =
        folder |> Path.join("#{module}.beam") |> String.to_charlist() |> :beam_lib.chunks([:attributes])

      assert behaviour in List.wrap(attributes[:behaviour]), "#{inspect(module)} does not declare #{inspect(behaviour)}"
    end
  end

  test "what was compiled without Nx has its callbacks, too" do
    for {module, behaviour} <- [{Tessera.Backend, Nx.Backend}, {Tessera, Nx.Defn.Compiler}] do
      assert behaviour.behaviour_info(:callbacks) -- (behaviour.behaviour_info(:optional_callbacks) ++ module.__info__(:functions)) == []
    end
  end

  defp ebin, do: :tessera |> :code.which() |> Path.dirname() |> Path.expand()
end

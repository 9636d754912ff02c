defmodule Tessera.DocsTest do
  # Runs the Elixir of README.md and docs/*.md unchanged, a page at a time; each block has the bindings of the blocks
  # before it; examples/*.exs are run by an Elixir of their own. (What is written in Erlang is run by
  # test/erl/tessera_doc_tests.erl.)
  #
  # After `iex>` comes what the shell prints, or an exception's `** (Module) message`; numbers of references and times may
  # differ, and "…" stands for any text. A block that begins with the name of a file is that file of examples/first/.
  use ExUnit.Case, async: false

  @root Path.expand("../..", __DIR__)
  @pages ["README.md" | Path.wildcard(Path.join(@root, "docs/*.md")) |> Enum.map(&Path.relative_to(&1, @root))]
  @examples Path.wildcard(Path.join(@root, "examples/*.exs"))

  setup do
    before = Application.get_all_env(:tessera)
    backend = Nx.default_backend()
    for {name, _} <- before, do: Application.delete_env(:tessera, name)
    # The pages are about the host.
    client = :tessera_nif.default_client()
    :ok = :tessera_nif.default_client(:host)

    on_exit(fn ->
      :ok = :tessera_nif.default_client(client)
      for {name, _} <- Application.get_all_env(:tessera), do: Application.delete_env(:tessera, name)
      Application.put_all_env(tessera: before)
      Nx.global_default_backend(backend)
      Nx.Defn.global_default_options([])
    end)
  end

  for page <- @pages do
    @page page
    @tag timeout: 600_000
    # It shows the Nx that comes after 0.13.
    if page == "docs/elixir.md", do: @tag(:donation)

    test page do
      # As the page says.
      if @page == "docs/distribution.md", do: Application.put_env(:tessera, :host_devices, 4)
      @root |> Path.join(@page) |> blocks() |> Enum.reduce({[], environment()}, &run/2)
    end
  end

  test "there are blocks", do: assert(Enum.sum(Enum.map(@pages, &length(blocks(Path.join(@root, &1))))) > 10)

  for example <- @examples do
    @example example
    @tag timeout: 900_000
    test Path.relative_to(example, @root) do
      paths = for path <- :code.get_path(), File.dir?(path), do: ["-pa", Path.expand(to_string(path))]
      elixir = System.find_executable("elixir")

      {output, status} =
        System.cmd(elixir, List.flatten(paths) ++ [@example], stderr_to_stdout: true, cd: System.tmp_dir!())

      assert status == 0, output
    end
  end

  test "the first project runs" do
    {output, status} = in_first_project(["mix", "run", "-e", "First.main()"])
    assert status == 0 and output =~ "y = 3.0 x + 1.0, on Tessera.Backend\n", output
  end

  @tag timeout: 600_000
  test "the tutorial for Elixir, with the local Nx" do
    libs = :code.lib_dir(:nx) |> to_string() |> Path.dirname() |> Path.expand()
    page = Path.join(@root, "docs/tutorial-elixir.md")
    tutorial = Path.join(@root, "test/docs/tutorial.escript")
    {output, status} = System.cmd(tutorial, [page], stderr_to_stdout: true, env: [{"NX_LIBS", libs}])
    assert status == 0, output
  end

  for notebook <- Path.wildcard(Path.join(@root, "livebooks/*.livemd")) do
    @notebook notebook
    @tag timeout: 600_000
    test Path.relative_to(notebook, @root) do
      paths = for path <- :code.get_path(), File.dir?(path), do: ["-pa", Path.expand(to_string(path))]
      script = Path.join(@root, "test/docs/livebook.exs")
      {output, status} = System.cmd(System.find_executable("elixir"), List.flatten(paths) ++ [script, @notebook], stderr_to_stdout: true)
      assert status == 0, output
    end
  end

  test "notebooks show tensors of all backends, and vectorized tensors, by their elements" do
    shown = fn tensor -> ExUnit.CaptureIO.with_io(fn -> Tessera.Kino.tensor(tensor) end) end
    tensor = Nx.tensor([[1, 2, 3], [3, 1, 2]], backend: Nx.BinaryBackend)
    expected = shown.(:tessera.tensor([[1, 2, 3], [3, 1, 2]]))
    assert expected != shown.(:tessera.tensor([[1, 2, 3], [3, 1, 3]]))

    for same <- [tensor, Nx.backend_copy(tensor, Tessera.Backend), Nx.vectorize(tensor, :rows)],
        do: assert(shown.(same) == expected)
  end

  test "values that differ from those of Nx.BinaryBackend" do
    rows =
      Regex.scan(~r/^\| `(Nx.*)` \| `(.*)` \| (?:`(.*)`|raises) \|$/m, File.read!(Path.join(@root, "docs/elixir.md")))

    assert length(rows) > 15

    for [_, expression, ours | theirs] <- rows do
      assert {expression, ours} == {expression, value(expression, Tessera.Backend)}
      assert {expression, List.first(theirs, "raises")} == {expression, value(expression, Nx.BinaryBackend)}
    end
  end

  defp value(expression, backend) do
    Nx.default_backend(backend)
    {tensor, _} = Code.eval_string(expression)
    tensor |> Nx.to_flat_list() |> inspect()
  rescue
    _ -> "raises"
  end

  # The output of a command in a copy of examples/first. The copy uses the Nx of these tests, not that of Hex.
  defp in_first_project([program | arguments]) do
    folder = Path.join(System.tmp_dir!(), "tessera-first-#{System.pid()}-#{System.unique_integer([:positive])}")
    File.cp_r!(Path.join(@root, "examples/first"), folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    for name <- ["_build", "deps", "mix.lock"], do: File.rm_rf!(Path.join(folder, name))
    file = Path.join(folder, "mix.exs")
    File.write!(file, file |> File.read!() |> with_local_nx())
    environment = [{"HOME", folder}, {"MIX_HOME", folder}, {"MIX_INSTALL_DIR", folder}, {"ERL_LIBS", nil}, {"MIX_ENV", nil}]
    System.cmd(program, arguments, cd: folder, env: environment, stderr_to_stdout: true)
  end

  defp with_local_nx(text) do
    nx = for app <- [:nx, :complex, :telemetry], do: ~s({:#{app}, path: "#{:code.lib_dir(app)}", compile: "true"})

    text
    |> String.replace(~r/{:nx, "[^"]*"}/, Enum.join(nx, ", "))
    |> String.replace(~s(path: "../.."), ~s(path: "#{@root}"))
  end

  # {"docs/elixir.md:12", text} for each.
  defp blocks(file) do
    text = File.read!(file)

    for [{start, length}] <- Regex.scan(~r/^```elixir\n\K.*?(?=^```$)/ms, text, return: :index) do
      line = text |> binary_part(0, start) |> String.split("\n") |> length()
      {"#{Path.relative_to(file, @root)}:#{line}", binary_part(text, start, length)}
    end
  end

  defp environment, do: Code.env_for_eval(file: "docs")

  # A file of the first project, after its name.
  defp run({where, "# " <> text}, state) do
    [name, contents] = String.split(text, "\n", parts: 2)
    assert contents == File.read!(Path.join([@root, "examples/first", name])), where
    if name == "config/config.exs", do: Application.put_all_env(Config.Reader.eval!(where, contents))
    state
  end

  defp run({where, "Mix.install(" <> _ = text}, state) do
    {output, status} = in_first_project(["elixir", "-e", with_local_nx(text)])
    assert status == 0 and output =~ "[2, 3]", "#{where}: #{output}"
    state
  end

  defp run({where, text}, state) do
    case sessions(text) do
      [] -> text |> evaluate(state, where) |> elem(1)
      sessions -> Enum.reduce(sessions, state, &session(&1, &2, where))
    end
  end

  # [{expression, what is printed}]
  defp sessions(text) do
    text
    |> String.split("\n")
    |> Enum.reduce([], fn
      "iex> " <> code, done -> [{code, ""} | done]
      "...> " <> code, [{before, ""} | done] -> [{before <> "\n" <> code, ""} | done]
      line, [{code, printed} | done] -> [{code, printed <> line <> "\n"} | done]
      _, [] -> []
    end)
    |> Enum.reverse()
    |> Enum.map(fn {code, printed} -> {code, String.trim(printed)} end)
  end

  defp session({code, "** (" <> _ = expected}, state, where) do
    raised =
      try do
        evaluate(code, state, where)
        "nothing"
      rescue
        error -> Exception.format_banner(:error, error)
      end

    compare(expected, raised, code, where)
    state
  end

  defp session({code, expected}, state, where) do
    {value, state} = evaluate(code, state, where)
    if expected != "", do: compare(expected, inspect(value, pretty: true, width: 80), code, where)
    state
  end

  defp evaluate(code, {bindings, env}, where) do
    quoted = Code.string_to_quoted!(code, file: where)
    {value, bindings, env} = Code.eval_quoted_with_env(quoted, bindings, env)
    {value, {bindings, env}}
  end

  defp compare(expected, got, code, where) do
    pattern = expected |> varying() |> Regex.escape() |> String.replace("…", ".*")
    assert Regex.match?(~r/\A#{pattern}\z/su, varying(got)), "#{where}: #{code}\nprints\n#{got}\nnot\n#{expected}"
  end

  defp varying(text), do: Regex.replace(~r/\d+\.\d+\.\d+\.\d+|#Reference<[^>]*>/, text, "REFERENCE")
end

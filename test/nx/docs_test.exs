defmodule Tessera.DocsTest do
  # What README.md and docs/*.md show in Elixir is run as it stands there, a page at a time and each with the bindings of
  # what came before; examples/*.exs are run by an Elixir of their own. (What is written in Erlang is run by
  # test/erl/tessera_doc_tests.erl.)
  #
  # After `iex>` comes what the shell prints, or an exception's `** (Module) message`; numbers of references and times may
  # differ, and "…" stands for any text. A block that begins with the name of a file is a part of that file.
  use ExUnit.Case, async: false

  @root Path.expand("../..", __DIR__)
  @pages ["README.md" | Path.wildcard(Path.join(@root, "docs/*.md")) |> Enum.map(&Path.relative_to(&1, @root))]
  @examples Path.wildcard(Path.join(@root, "examples/*.exs"))

  setup do
    before = Application.get_all_env(:tessera)
    backend = Nx.default_backend()
    for {name, _} <- before, do: Application.delete_env(:tessera, name)

    on_exit(fn ->
      for {name, _} <- Application.get_all_env(:tessera), do: Application.delete_env(:tessera, name)
      Application.put_all_env(tessera: before)
      Nx.global_default_backend(backend)
      Nx.Defn.global_default_options([])
    end)
  end

  for page <- @pages do
    @page page
    @tag timeout: 120_000
    # It shows the Nx that comes after 0.13.
    if page == "docs/elixir.md", do: @tag(:donation)

    test page do
      @root |> Path.join(@page) |> blocks() |> Enum.reduce({[], environment()}, &run/2)
    end
  end

  test "there are blocks", do: assert(Enum.sum(Enum.map(@pages, &length(blocks(Path.join(@root, &1))))) > 10)

  for example <- @examples do
    @example example
    @tag timeout: 180_000
    test Path.relative_to(example, @root) do
      paths = for path <- :code.get_path(), File.dir?(path), do: ["-pa", Path.expand(to_string(path))]
      elixir = System.find_executable("elixir")

      {output, status} =
        System.cmd(elixir, List.flatten(paths) ++ [@example], stderr_to_stdout: true, cd: System.tmp_dir!())

      assert status == 0, output
    end
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

  defp run({where, "# mix.exs" <> _ = text}, state) do
    {{:tessera, options}, _} = Code.eval_string(text)
    assert Keyword.has_key?(options, :path) or Keyword.has_key?(options, :git), where
    state
  end

  defp run({where, "# config/" <> _ = text}, state) do
    config = Config.Reader.eval!(where, "import Config\n" <> text)
    assert Keyword.keys(config) -- [:nx, :tessera] == [], where
    Application.put_all_env(config)
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

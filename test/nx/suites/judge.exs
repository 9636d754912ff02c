defmodule Tessera.Suites.Judge do
  # An ExUnit formatter that keeps what became of each test, and the comparison with the lists beside this file.
  #
  # exclusions.txt         suite | test | why it does not pass. Such a test is run and must fail: one that passes is off the
  #                        list. suite@0.13 is for that release only.
  # exclusions.pjrt.txt    the same with a plugin as the device.
  # missing.RELEASE.txt    suite | test | the op or type that Tessera does not have, written by RECORD=1.
  #
  # A doctest is named by its function, as numbers change with each version; "(3)" after the name stands for three of them.
  @moduledoc false
  use GenServer

  def init(_), do: {:ok, nil}

  def handle_cast({:test_finished, test}, state) do
    :ets.insert(__MODULE__, {test.module, test.name, outcome(test.state), detail(test)})
    {:noreply, state}
  end

  def handle_cast(_, state), do: {:noreply, state}

  @doc "Runs `fun` and gives `[{test, outcome, detail}]`."
  def during(suite, fun) do
    IO.puts("== #{suite}")
    :ets.new(__MODULE__, [:named_table, :public, :bag])
    fun.()
    results = for {_module, name, outcome, detail} <- :ets.tab2list(__MODULE__), do: {plain(name), outcome, detail}
    :ets.delete(__MODULE__)
    results
  end

  defp plain(name),
    do: name |> Atom.to_string() |> String.replace(~r/^(test|doctest) /, "") |> String.replace(~r/ \(\d+\)$/, "")

  defp outcome(nil), do: :passed
  defp outcome({kind, _}) when kind in [:excluded, :skipped], do: :left_out
  defp outcome({:invalid, _}), do: :failed

  defp outcome({:failed, failures}) do
    texts =
      Enum.map(failures, fn {kind, reason, stack} -> Exception.format_banner(kind, reason, stack) <> inspect(reason) end)

    case Regex.run(~r/ArgumentError.{0,400}?Tessera does not have the ((?:op|type) \S+) yet/s, Enum.join(texts)) do
      [_, what] -> {:missing, what}
      nil -> :failed
    end
  end

  defp detail(%{state: {:failed, failures}} = test),
    do: ExUnit.Formatter.format_test_failure(test, failures, 0, 100, fn _, text -> text end)

  defp detail(%{state: state}), do: inspect(state)

  @doc "Compares with these exclusions and the list of this release of Nx, prints what is not on them, and ends with status 0 or 1."
  def verdict(results, folder, exclusions, release, record?) do
    excluded = folder |> Path.join(exclusions) |> read() |> of_release(release)
    list = Path.join(folder, "missing.#{release}.txt")
    missing = if File.exists?(list), do: read(list), else: %{}
    suites = Enum.map(results, &elem(&1, 0))
    print(results)

    wrong =
      failures(results, excluded) ++
        stale(results, excluded, release) ++ if(record?, do: [], else: differing(results, missing))

    if record?, do: write(list, suites, results, missing)
    Enum.each(wrong, &IO.puts/1)
    IO.puts(if wrong == [], do: "as listed", else: "#{length(wrong)} not as listed")
    System.halt(if wrong == [], do: 0, else: 1)
  end

  defp of_release(excluded, release) do
    for {{suite, name}, entries} <- excluded,
        [suite | only] = String.split(suite, "@"),
        only in [[], [release]],
        into: %{} do
      {{suite, name}, entries}
    end
  end

  defp print(results) do
    IO.puts(Enum.map(["suite", "tests", "passed", "missing", "failed", "left out"], &String.pad_trailing(&1, 27)))

    for {suite, tests} <- results do
      counts = Enum.frequencies_by(tests, fn {_, outcome, _} -> if is_tuple(outcome), do: :missing, else: outcome end)
      numbers = [length(tests) | Enum.map([:passed, :missing, :failed, :left_out], &Map.get(counts, &1, 0))]
      IO.puts(Enum.map([suite | numbers], &String.pad_trailing(to_string(&1), 27)))
    end
  end

  # Of doctests with one name as many may fail as the list says.
  defp failures(results, excluded) do
    for {suite, tests} <- results,
        {name, failed} <- Enum.group_by(tests, &elem(&1, 0)) |> Enum.map(fn {name, all} -> {name, failed(all)} end),
        length(failed) > allowed(excluded, suite, name),
        {_, _, detail} <- failed do
      "FAILED #{suite} | #{name}\n#{detail}"
    end
  end

  # A release may not have all tests of the head.
  defp stale(results, excluded, release) do
    for {suite, tests} <- results,
        {^suite, name} <- Map.keys(excluded),
        same = Enum.filter(tests, &(elem(&1, 0) == name)),
        same != [] or release == "head",
        length(failed(same)) < allowed(excluded, suite, name) do
      "PASSES or is gone, though excluded: #{suite} | #{name}"
    end
  end

  defp failed(tests), do: Enum.filter(tests, &(elem(&1, 1) == :failed))

  defp allowed(excluded, suite, name) do
    excluded |> Map.get({suite, name}, []) |> Enum.map(fn {count, _reason} -> count end) |> Enum.sum()
  end

  defp differing(results, missing) do
    for {suite, tests} <- results, line <- diff(listed(missing, &(&1 == suite)), found(suite, tests)), do: line
  end

  # Lines as in missing.txt, without counts.
  defp listed(missing, wanted?) do
    for {{suite, name}, entries} <- missing,
        wanted?.(suite),
        {count, what} <- entries,
        _ <- 1..count,
        do: {suite, name, what}
  end

  defp found(suite, tests), do: for({name, {:missing, what}, _} <- tests, do: {suite, name, what})

  defp diff(list, found) do
    Enum.map(found -- list, &"MISSING anew: #{line(&1)}") ++ Enum.map(list -- found, &"no longer MISSING: #{line(&1)}")
  end

  defp line({suite, name, what}), do: "#{suite} | #{name} | #{what}"

  # %{{suite, test} => [{count, third column}]}
  defp read(file) do
    for line <- file |> File.read!() |> String.split("\n", trim: true),
        not String.starts_with?(line, "#"),
        reduce: %{} do
      lines ->
        [_, suite, name, count, last] = Regex.run(~r/^(\S+) \| (.+?)(?: \((\d+)\))? \| (.+?)$/, line)
        entry = {if(count == "", do: 1, else: String.to_integer(count)), last}
        Map.update(lines, {suite, name}, [entry], &(&1 ++ [entry]))
    end
  end

  defp write(file, suites, results, missing) do
    others = listed(missing, &(&1 not in suites))
    all = others ++ Enum.flat_map(results, fn {suite, tests} -> found(suite, tests) end)

    lines =
      for {{suite, name, what}, count} <- all |> Enum.frequencies() |> Enum.sort() do
        line({suite, if(count == 1, do: name, else: "#{name} (#{count})"), what})
      end

    File.write!(
      file,
      Enum.map(["# suite | test | what Tessera does not have; written by RECORD=1" | lines], &[&1, "\n"])
    )
  end
end

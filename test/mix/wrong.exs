# Compiles programs that use Tessera's modules wrongly. Elixir must report what it reports where the same mistake is made with a
# module of its own: a twin that it has compiled, with the same functions and fields.
#
#     elixir -pa ebin test/mix/wrong.exs FOLDER
defmodule Wrong do
  @modules [
    Tessera, Tessera.Backend, Tessera.Client, Tessera.Cluster, Tessera.CustomCall, Tessera.CustomCall.Spec, Tessera.Defn.Lock,
    Tessera.Defn.LockedCache, Tessera.DeviceBuffer, Tessera.Mesh, Tessera.Typespec
  ]

  @keys [:module, :functions, :macros, :struct, :deprecated, :attributes, :compile, :md5, :exports_md5]

  # In place of MODULE, FUNCTION and FIELD stand the module, one of its functions misspelt, and a field that it does not have.
  @bodies [
    "def f(), do: MODULE.FUNCTION(1)",
    "def f(), do: &MODULE.FUNCTION/1",
    "def f(), do: apply(MODULE, :FUNCTION, [1])",
    "def f(), do: %MODULE{}",
    "def f(), do: %MODULE{FIELD: 1}",
    "def f(x) do\n%MODULE{FIELD: y} = x\ny\nend",
    "def f() do\nx = %MODULE{}\nx.FIELD\nend",
    "def f(x), do: %MODULE{x | FIELD: 1}",
    "import MODULE, only: [FUNCTION: 1]\ndef f(), do: 1",
    "import MODULE, only: :macros\ndef f(), do: FUNCTION(1)",
    "import MODULE\ndef f(), do: FUNCTION(1)",
    "require MODULE\ndef f(), do: MODULE.FUNCTION()",
    "use MODULE",
    "@before_compile MODULE",
    "@behaviour MODULE",
    "@derive MODULE\ndefstruct a: 1",
    "defdelegate FUNCTION(x), to: MODULE",
    "def f(x) when MODULE.FUNCTION(x), do: x",
    "defimpl MODULE, for: Integer do\ndef FUNCTION(x), do: x\nend"
  ]

  def check(dir) do
    Code.put_compiler_option(:ignore_module_conflict, true)
    Process.flag(:trap_exit, true)
    for module <- @modules, do: check_module(module, dir)
  end

  defp check_module(module, dir) do
    {:module, ^module} = Code.ensure_loaded(module)
    twin = Module.concat([String.replace(inspect(module), "Tessera", "Twinned")]) # as long, for the columns in reports
    make_twin(module, twin, function_exported?(module, :__protocol__, 1))
    for key <- @keys, do: same_kind(module, key, kind(module.__info__(key)), kind(twin.__info__(key)))
    same_kind(module, :unknown, raised(module), raised(twin))
    fields(module, twin)
    for body <- @bodies, do: same_report(body, module, twin, dir)
    IO.puts("  #{inspect(module)}: #{length(@bodies)} wrong programs are reported as they are with a module of Elixir")
  end

  # The same functions and struct, as Elixir compiles them.
  defp make_twin(module, twin, true) do
    Code.compile_string("defprotocol #{inspect(twin)} do\n#{Enum.map_join(module.__protocol__(:functions), "\n", &head("def", &1, ""))}\nend")
  end

  defp make_twin(module, twin, false) do
    functions = for {name, _} = function <- module.__info__(:functions), name != :__struct__, do: head("def", function, ", do: nil")
    struct = if function_exported?(module, :__struct__, 0), do: "defstruct #{inspect(Enum.sort(Map.from_struct(module.__struct__())))}"
    Code.compile_string("defmodule #{inspect(twin)} do\n#{struct}\n#{Enum.join(functions, "\n")}\nend")
  end

  defp head(how, {name, arity}, body) do
    "#{how} #{name}(#{Enum.map_join(Enum.drop(0..arity, 1), ", ", &"_#{&1}")})#{body}"
  end

  defp kind(nil), do: nil
  defp kind([{name, value} | _]) when is_atom(name), do: {:pairs, is_integer(value)}
  defp kind([%{field: field} | _]) when is_atom(field), do: :fields
  defp kind(list) when is_list(list), do: :list
  defp kind(<<_::128>>), do: :md5
  defp kind(atom) when is_atom(atom), do: :atom

  defp same_kind(_, _, kind, kind), do: true
  defp same_kind(module, key, ours, theirs), do: fail("#{inspect(module)}.__info__(#{inspect(key)})", ours, theirs)

  defp raised(module) do
    apply(module, :__info__, [:unknown])
  rescue
    error -> error.__struct__
  end

  # __struct__/1 at run time, and what struct/2 and struct!/2 do with it.
  defp fields(module, twin) do
    if function_exported?(module, :__struct__, 0) do
      for attempt <- [& &1.__struct__(none: 1), &struct(&1, none: 1), &struct!(&1, none: 1), &Map.keys(&1.__struct__())] do
        [ours, theirs] = for m <- [module, twin], do: renamed(inspect(attempted(attempt, m)), m)
        ours == theirs or fail("a struct of #{inspect(module)}", ours, theirs)
      end
    end
  end

  defp attempted(attempt, module) do
    attempt.(module)
  rescue
    error -> Exception.message(error)
  end

  defp same_report(body, module, twin, dir) do
    [ours, theirs] = for m <- [module, twin], do: renamed(report(body, m, misspelt(module), dir), m)
    ours == theirs or fail(renamed(String.replace(body, "MODULE", inspect(module)), module), ours, theirs)
  end

  # A name near the name of a function: Elixir says which it is near to.
  defp misspelt(module) do
    names = for {name, _} <- module.__info__(:functions), text = to_string(name), text =~ ~r/^[a-z_]{3,}$/, not (text =~ "__"), do: text
    hd(Enum.sort(names) ++ ["nothing"]) <> "q"
  end

  # What Elixir prints, and how it ends.
  defp report(body, module, function, dir) do
    text = body |> String.replace("MODULE", inspect(module)) |> String.replace("FUNCTION", function) |> String.replace("FIELD", "none")
    file = Path.join(dir, "program.ex")
    File.write!(file, "defmodule Program do\n#{text}\nend\n")
    {:ok, io} = StringIO.open("")
    why = with_errors_to(io, fn -> compiled(file, io) end)
    {:ok, {_, printed}} = StringIO.close(io)
    inspect(why) <> printed
  end

  defp with_errors_to(io, fun) do
    error = Process.whereis(:standard_error)
    Process.unregister(:standard_error)
    Process.register(io, :standard_error)

    try do
      fun.()
    after
      Process.unregister(:standard_error)
      Process.register(error, :standard_error)
    end
  end

  # In a process of its own, which a failure of the compiler itself ends.
  defp compiled(file, io) do
    {pid, monitor} =
      spawn_monitor(fn ->
        Process.group_leader(self(), io)
        exit({:result, elem(Kernel.ParallelCompiler.compile([file]), 0)})
      end)

    receive do
      {:DOWN, ^monitor, :process, ^pid, why} -> why
    end
  end

  defp renamed(text, module), do: text |> String.replace(inspect(module), "MODULE") |> String.replace(~r/#PID<[0-9.]*>/, "#PID<>")

  defp fail(what, ours, theirs) do
    IO.puts("wrong.exs: #{what}\n-- with Tessera's module:\n#{text(ours)}\n-- with a module of Elixir:\n#{text(theirs)}")
    System.halt(1)
  end

  defp text(text) when is_binary(text), do: text
  defp text(term), do: inspect(term)
end

Wrong.check(hd(System.argv()))

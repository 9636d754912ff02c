defmodule Tessera.ServingTest do
  # Nx.Serving with many callers, some of which fail: no caller waits for ever, the others get their own results, and at the
  # end all memory is free.
  use ExUnit.Case, async: false
  import Nx.Defn
  import Tessera.Dialect, only: [observe: 2]

  @moduletag timeout: 600_000
  # Milliseconds for a result that comes within one second on an idle machine.
  @within 120_000
  @moduletag :capture_log

  setup_all do
    clients = Application.fetch_env!(:tessera, :clients)
    backend = Nx.default_backend(Nx.BinaryBackend)
    Application.put_env(:tessera, :clients, clients ++ [three: [platform: :host, device_count: 3]])
    Nx.global_default_backend(Tessera.Backend)

    on_exit(fn ->
      Application.put_env(:tessera, :clients, clients)
      Nx.global_default_backend(backend)
    end)
  end

  setup context do
    held = live()
    on_exit(fn -> eventually(fn -> live() <= held end, "#{context.test}: #{live()} bytes are held, #{held} were before") end)
  end

  # Programs keep small constants. Tensors go with their processes, which the runtime system sweeps when it comes to it.
  defp live do
    :ok = :tessera.clear_cache()
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    :tessera.memory().live
  end

  defp eventually(condition, message, tries \\ 3000) do
    cond do
      condition.() -> :ok
      tries == 0 -> flunk(message)
      true -> Process.sleep(20) && eventually(condition, message, tries - 1)
    end
  end

  # ---- servings

  defn(predict(x), do: Nx.sum(Nx.tanh(x) * 2.0, axes: [-1]))

  defn slow(x) do
    {y, _} =
      while {x, i = 0}, i < 3000 do
        {Nx.cos(x), i + 1}
      end

    Nx.sum(y, axes: [-1])
  end

  # Three values of a row are told of, one after the other.
  defn told(x) do
    {x, _} =
      while {x, i = 0}, i < 3 do
        {observe(x + 1, :step), i + 1}
      end

    x
  end

  defn calling(x), do: Nx.reduce(x, 0, [axes: [-1]], fn a, b -> observe(a, :check) + b end)
  defn checked(x), do: Nx.sum(observe(x, :check), axes: [-1])

  defp start(options) do
    {fun, options} = Keyword.pop(options, :fun, &predict/1)
    {make, options} = Keyword.pop(options, :make, &Nx.Defn.jit(fun, &1))
    {defn_options, options} = Keyword.pop(options, :defn_options, compiler: Tessera)
    {change, options} = Keyword.pop(options, :change, & &1)
    serving = Nx.Serving.new(make, defn_options) |> Nx.Serving.client_preprocessing(&prepare/1) |> change.()
    options = Keyword.merge([batch_size: 8, batch_timeout: 5], options)
    start_supervised!({Nx.Serving, [serving: serving] ++ options}, id: options[:name])
  end

  # Uses Tessera, eagerly and compiled, in the process of the caller.
  defp prepare(:unknown), do: raise(ArgumentError, "what is asked is unknown")

  defp prepare(number) do
    row = Nx.multiply(Nx.iota({1, 256}, type: :f32), number / 256)
    row = Nx.Defn.jit_apply(&Nx.subtract(&1, Nx.mean(&1)), [row], compiler: Tessera)
    {Nx.Batch.concatenate([row]), :ok}
  end

  defp expected(number, fun \\ &predict/1) do
    Nx.with_default_backend(Nx.BinaryBackend, fn ->
      row = Nx.multiply(Nx.iota({1, 256}, type: :f32), number / 256)
      row |> Nx.subtract(Nx.mean(row)) |> Nx.Defn.jit(fun, compiler: Nx.Defn.Evaluator).() |> Nx.to_flat_list()
    end)
  end

  defp ask(name, number), do: name |> Nx.Serving.batched_run(number) |> Nx.backend_transfer(Nx.BinaryBackend)

  defp asked(name, number), do: Task.Supervisor.async_nolink(tasks(), fn -> ask(name, number) end)

  defp tasks do
    Process.get(:tasks) || start_supervised!(Task.Supervisor) |> tap(&Process.put(:tasks, &1))
  end

  # Whether each got its own result.
  defp calls(name, numbers) do
    tasks = for number <- numbers, do: {number, Task.async(fn -> ask(name, number) end)}
    for {number, task} <- tasks, do: close?(Nx.to_flat_list(Task.await(task, @within)), number)
  end

  defp close?([sum], number), do: abs(sum - hd(expected(number))) < 1.0e-2

  # ---- tests

  test "many callers, each with its own result" do
    start(name: Many)
    for _ <- 1..3, do: assert(calls(Many, 1..60) == List.duplicate(true, 60))
  end

  test "a batch of another size needs no other kernel, and a padded one no other program" do
    assert Enum.sum(kernels_compiled(&Nx.Defn.jit(fn x -> predict(x) end, &1))) == 0

    padded = fn options ->
      fn batch -> Nx.Defn.jit_apply(fn x -> Nx.negate(predict(x)) end, [Nx.Batch.pad(batch, 16 - batch.size)], options) end
    end

    assert kernels_compiled(&padded.(&1)) == []
  end

  # For each program that is compiled after the first batches.
  defp kernels_compiled(make) do
    start(name: Sized, make: make, batch_size: 16)
    ask(Sized, 1)
    for task <- Enum.map(1..16, &asked(Sized, &1)), do: Task.await(task, @within)
    :ok = :telemetry.attach(__MODULE__, [:tessera, :compilation], &__MODULE__.compiled/4, self())
    for count <- [1, 5, 20], task <- Enum.map(1..count, &asked(Sized, &1)), do: Task.await(task, @within)
    :telemetry.detach(__MODULE__)
    :ok = stop_supervised(Sized)
    Stream.repeatedly(fn -> receive do: ({:kernels, kernels} -> kernels), after: (0 -> nil) end) |> Enum.take_while(& &1)
  end

  def compiled(_event, times, _about, pid), do: send(pid, {:kernels, times.kernels_compiled})

  test "callers that are killed while they wait" do
    start(name: Killed, fun: &slow/1, batch_size: 4)

    for round <- 1..5 do
      {gone, staying} = Enum.split(Enum.map(1..16, &asked(Killed, &1)), 8)
      Process.sleep(round * 3)
      Enum.each(gone, &Process.exit(&1.pid, :kill))
      for task <- staying, do: assert({:ok, %Nx.Tensor{shape: {1}}} = Task.yield(task, @within))
    end

    assert %Nx.Tensor{} = ask(Killed, 1)
  end

  test "callers that do not wait any longer" do
    start(name: Impatient, fun: &slow/1, batch_size: 2, batch_timeout: 50)
    for task <- Enum.map(1..12, &asked(Impatient, &1)), do: Task.shutdown(task, 1)
    assert %Nx.Tensor{} = ask(Impatient, 1)
  end

  test "preprocessing that fails is its caller's matter" do
    start(name: Prepared)
    tasks = for number <- [1, :unknown, 2, :unknown, 3], do: {number, asked(Prepared, number)}

    for {number, task} <- tasks do
      case {number, Task.yield(task, @within)} do
        {:unknown, result} -> assert {:exit, {%ArgumentError{message: "what is asked is unknown"}, _}} = result
        {number, {:ok, result}} -> assert close?(Nx.to_flat_list(result), number)
      end
    end
  end

  test "a batch that fails takes its callers with it, and no others" do
    check = fn x -> if Nx.to_number(Nx.reduce_max(x)) > 1000, do: raise("too much"), else: Nx.sum(x) end
    start(name: Failing, fun: &checked/1, defn_options: [compiler: Tessera, hooks: %{check: check}], batch_size: 2, batch_timeout: 1)

    for _ <- 1..5 do
      assert {:exit, {{%RuntimeError{message: "too much"}, _}, _}} = Task.yield(asked(Failing, 1.0e6), @within)
      assert {:ok, %Nx.Tensor{}} = Task.yield(asked(Failing, 1), @within)
    end

    # Those that share a batch with it share its end.
    ended = for(number <- [1.0e6 | List.duplicate(1, 9)], do: asked(Failing, number)) |> Task.yield_many(@within)
    assert Enum.count(ended, &match?({_, {:exit, _}}, &1)) in 1..2
    assert Enum.count(ended, &match?({_, {:ok, _}}, &1)) in 8..9
  end

  test "a program that cannot be compiled" do
    start(name: Uncompiled, fun: &calling/1, defn_options: [compiler: Tessera, hooks: %{check: & &1}])
    assert {:exit, {{%ArgumentError{message: message}, _}, _}} = Task.yield(asked(Uncompiled, 1), @within)
    assert message == "Tessera cannot call back from the function of a reduction"
  end

  test "partitions are the devices of the client, and all work" do
    me = self()
    places = &Nx.Serving.client_postprocessing(&1, fn {t, _}, _ -> send(me, t.data.buffer) && t end)
    start(name: Parted, partitions: true, defn_options: [compiler: Tessera, client: :three], batch_size: 2, change: places)
    assert calls(Parted, 1..60) == List.duplicate(true, 60)
    places = for _ <- 1..60, do: receive(do: (%{client_name: client, device_id: device} -> {client, device}))
    assert Enum.sort(Enum.uniq(places)) == [three: 0, three: 1, three: 2]
  end

  test "hooks are streamed to those who asked" do
    start(name: Streamed, fun: &told/1, change: &Nx.Serving.streaming(&1, hooks: [:step]), batch_size: 4)

    streams =
      for number <- 1..12 do
        Task.async(fn ->
          events = Streamed |> Nx.Serving.batched_run(number) |> Enum.to_list()
          {for({:step, t} <- events, do: Nx.to_number(t[0][255])), for({:batch, t, _} <- events, do: Nx.to_number(t[0][255]))}
        end)
      end

    for {number, task} <- Enum.zip(1..12, streams) do
      {steps, results} = Task.await(task, @within)
      last = 127.5 * number / 256
      assert Enum.zip_with(steps, 1..3, &(abs(&1 - last - &2) < 1.0e-3)) == [true, true, true]
      assert Enum.map(results, &(abs(&1 - last - 3) < 1.0e-3)) == [true]
    end
  end

  test "a stream that is left" do
    start(name: Left, fun: &told/1, change: &Nx.Serving.streaming(&1, hooks: [:step]), batch_size: 4)
    assert [{:step, %Nx.Tensor{}}] = Left |> Nx.Serving.batched_run(1) |> Enum.take(1)
    assert [_, _, _, {:batch, _, _}] = Left |> Nx.Serving.batched_run(1) |> Enum.to_list()
  end

  test "a serving that is killed is there again" do
    start(name: Restarted, fun: &slow/1, batch_size: 4)

    for _ <- 1..3 do
      old = Process.whereis(Restarted)
      tasks = Enum.map(1..8, &asked(Restarted, &1))
      Process.sleep(5)
      Process.exit(old, :kill)
      for {_, ended} <- Task.yield_many(tasks, @within), do: assert(match?({:ok, %Nx.Tensor{}}, ended) or match?({:exit, _}, ended))
      eventually(fn -> Process.whereis(Restarted) not in [nil, old] end, "the serving is not there again")
      assert %Nx.Tensor{} = ask(Restarted, 1)
    end
  end

  test "a serving that is stopped ends what it has begun" do
    start(name: Stopped, fun: &slow/1, batch_size: 4)
    tasks = Enum.map(1..4, &asked(Stopped, &1))
    Process.sleep(20)
    :ok = stop_supervised(Stopped)
    for {_, ended} <- Task.yield_many(tasks, @within), do: assert(ended)
    assert {:exit, {:noproc, _}} = Task.yield(asked(Stopped, 1), @within)
  end

  test "each batch key has its own batches" do
    keyed = fn serving ->
      serving
      |> Nx.Serving.process_options(batch_keys: [:even, :odd])
      |> Nx.Serving.client_preprocessing(fn number ->
        {batch, info} = prepare(number)
        {Nx.Batch.key(batch, if(rem(number, 2) == 0, do: :even, else: :odd)), info}
      end)
    end

    make = fn
      :even, options -> Nx.Defn.jit(&predict/1, options)
      :odd, options -> Nx.Defn.jit(&Nx.negate(predict(&1)), options)
    end

    start(name: Keyed, make: make, change: keyed)

    for {number, task} <- Enum.map(1..20, &{&1, Task.async(fn -> ask(Keyed, &1) end)}) do
      [sum] = Nx.to_flat_list(Task.await(task, @within))
      assert close?([if(rem(number, 2) == 0, do: sum, else: -sum)], number)
    end
  end
end

# Loops and branches in each other. Nx has no tensors without elements, so what is empty here is a container.
defmodule Recorder.Nests do
  import Nx.Defn
  import Recorder, only: [program: 3, program: 4]
  alias Recorder.Callbacks

  def programs do
    Enum.concat([loops(), branches(), states(), types(), gradients(), vectorized(), callbacks()])
  end

  defp x, do: Nx.tensor([[0.5, 0.75, 1.0], [1.25, 1.5, 1.75]])
  defp negative, do: Nx.negate(x())
  defp rows, do: Nx.vectorize(Nx.tensor([[-1.0, -0.25, 0.5], [1.25, 2.0, 2.75]]), :rows)
  defp columns, do: Nx.vectorize(Nx.tensor([1.0, 2.0]), :columns)

  # ---- loops in loops

  defn triangle(n) do
    {_, _, sum} =
      while {i = 0, n, sum = 0}, i < n do
        {_, _, inner} = while({j = 0, i, inner = 0}, j <= i, do: {j + 1, i, inner + i * j})
        {i + 1, n, sum + inner}
      end

    sum
  end

  defn three_deep(t) do
    {_, t} =
      while {i = 0, t}, i < 2 do
        {_, _, t} =
          while {j = 0, i, t}, j <= i do
            {_, t} = while({k = 3, t}, k > 0, do: {k - 1, t + Nx.sin(t)})
            {j + 1, i, t * 0.5}
          end

        {i + 1, t}
      end

    t
  end

  # The inner loop's trips depend on values that the outer one changes.
  defn collatz(n) do
    {_, longest, _} =
      while {i = 1, longest = 0, n}, i <= n do
        {_, steps} =
          while {m = i, steps = 0}, m > 1 do
            {if(Nx.remainder(m, 2) == 0, do: Nx.quotient(m, 2), else: 3 * m + 1), steps + 1}
          end

        {i + 1, Nx.max(longest, steps), n}
      end

    longest
  end

  # No loop within reads what the outer one carries; one result does not change.
  defn apart(t) do
    while {t, same = t, i = 0}, i < 3 do
      {_, c} = while({k = 0, c = 1.0}, k < 5, do: {k + 1, c * 1.5})
      {t + c, same, i + 1}
    end
  end

  defn(of_rows(t), do: while({t, s = Nx.sum(t) * 0}, row <- t, do: {t, s + Nx.reduce_max(row)}))

  defn unrolled(t) do
    while t, i <- 0..3, unroll: 2 do
      t * i + 1
    end
  end

  defn(backwards(t), do: while(t, i <- 5..-4//-3, do: t * 2 + i))

  # The state's parts change places at each turn.
  defn turning(t) do
    {a, b, c, _} = while({a = t, b = t * 2, c = t * 3, i = 0}, i < 4, do: {b, c, a, i + 1})
    {a, b, c}
  end

  defn fibonacci(n) do
    {_, _, a, _} = while({i = 0, n, a = Nx.s64(0), b = Nx.s64(1)}, i < n, do: {i + 1, n, b, a + b})
    a
  end

  # The condition asks a tensor that the function holds, and one that it makes.
  defn until_limits(t) do
    {t, _} =
      while {t, i = 0}, Nx.all(t < Nx.tensor([20.0, 30.0, 40.0])) and Nx.sum(Nx.iota({4})) > i do
        {t * Nx.tensor([1.5, 2.0, 2.5]), i + 1}
      end

    t
  end

  defn loop_in_condition(t) do
    {t, _} = while({t, i = 0}, norm(t) < 50 and i < 10, do: {t + t, i + 1})
    t
  end

  defn norm(t) do
    {s, _, _} = while({s = 0.0, t, i = 0}, i < 2, do: {s + Nx.sum(t[i] * t[i]), t, i + 1})
    s
  end

  # What is written at an index that is counted, and read there.
  defn table(n) do
    {_, _, table} =
      while {i = 2, n, table = Nx.put_slice(Nx.iota({10}), [0], Nx.tensor([0, 1]))}, i < n do
        {i + 1, n, Nx.put_slice(table, [i], Nx.reshape(table[i - 1] + table[i - 2], {1}))}
      end

    table
  end

  defn sorted(t) do
    {t, _} =
      while {t, i = 0}, i < 5 do
        {t, _, _} =
          while {t, j = 0, i}, j < 4 - i do
            {a, b} = {t[j], t[j + 1]}
            t = if a > b, do: Nx.put_slice(t, [j], Nx.stack([b, a])), else: t
            {t, j + 1, i}
          end

        {t, i + 1}
      end

    t
  end

  # Newton's method: the condition reads a computed value, and the number of iterations has a bound.
  defn roots(t) do
    {r, _, _, _} =
      while {r = t, t, delta = Nx.Constants.infinity(:f32), i = 0}, delta > 1.0e-4 and i < 20 do
        next = (r + t / r) / 2
        {next, t, Nx.reduce_max(Nx.abs(next - r)), i + 1}
      end

    r
  end

  defp loops do
    programs = [
      triangle: {&triangle/1, [Nx.tensor(5)]},
      three_deep: {&three_deep/1, [x()]},
      collatz: {&collatz/1, [Nx.tensor(12)]},
      apart: {&apart/1, [x()]},
      of_rows: {&of_rows/1, [x()]},
      unrolled: {&unrolled/1, [x()]},
      backwards: {&backwards/1, [x()]},
      turning: {&turning/1, [x()]},
      fibonacci: {&fibonacci/1, [Nx.tensor(60)]},
      until_limits: {&until_limits/1, [Nx.tensor([1.0, 1.0, 1.0])]},
      loop_in_condition: {&loop_in_condition/1, [x()]},
      table: {&table/1, [Nx.tensor(9)]},
      sorted: {&sorted/1, [Nx.tensor([3.0, -1.0, 8.5, 0.0, 2.0])]},
      roots: {&roots/1, [Nx.tensor([2.0, 9.0, 0.25])]},
      mandelbrot: {&mandelbrot/1, [Nx.tensor([-2.0, 0.25, 0.3])]}
    ]

    none = [
      triangle: {&triangle/1, [Nx.tensor(0)]},
      collatz: {&collatz/1, [Nx.tensor(0)]},
      fibonacci: {&fibonacci/1, [Nx.tensor(-3)]},
      until_limits: {&until_limits/1, [Nx.tensor([100.0, 1.0, 1.0])]},
      loop_in_condition: {&loop_in_condition/1, [Nx.multiply(x(), 100)]},
      table: {&table/1, [Nx.tensor(2)]}
    ]

    for({name, {fun, args}} <- programs, do: program("#{name}", fun, args)) ++
      for({name, {fun, args}} <- none, do: program("#{name}, no turn", fun, args))
  end

  defn mandelbrot(t) do
    {_, _, count, _, _} =
      while {re = t * 0, im = t * 0, count = Nx.as_type(t * 0, :s32), t, i = 0},
            i < 30 and Nx.any(re * re + im * im < 4) do
        inside = re * re + im * im < 4
        next = Nx.select(inside, re * re - im * im + t, re)
        {next, Nx.select(inside, 2 * re * im + 0.1, im), count + inside, t, i + 1}
      end

    count
  end

  # ---- branches: values that they share with each other and with their surroundings

  defn tower(a) do
    {i, t, _} =
      while {i = 0, t = a, y = Nx.sum(a)}, i < 3 do
        {p, q} = if Nx.remainder(i, 2) == 0, do: {t * y, y + 1}, else: {t - 1, y}
        {i + 1, p, q}
      end

    {i, t}
  end

  defn cond_loop_cond(a, b) do
    s = Nx.exp(a) + b

    cond do
      Nx.any(a > 2) ->
        if Nx.sum(s) > 5, do: s, else: s * 2

      Nx.all(b) ->
        {t, _} = while({t = s, i = 0}, i < 4, do: {if(Nx.sum(t) > 20, do: t - 3, else: t * 2), i + 1})
        t

      true ->
        {t, _} = while({t = s, s}, Nx.sum(t) < 100, do: {t + s, s})
        t
    end
  end

  # Values of three levels are used at the deepest, by one branch, by both, and after.
  defn levels(a, b) do
    u = Nx.sin(a)

    {p, q} =
      if Nx.sum(b) > 0 do
        v = Nx.cos(a) + u

        if Nx.sum(u) > 0 do
          w = v * u
          if Nx.sum(w) > 0.5, do: {w + a, v - b}, else: {w - u, v}
        else
          {v, u}
        end
      else
        {u, if(Nx.all(a), do: a * u, else: b + 0.0 * a)}
      end

    {p + u, q}
  end

  # Each branch has a loop that begins with values from outside of the branch.
  defn loops_in_branches(a, n) do
    start = Nx.tanh(a)

    {t, _, _} =
      if Nx.mean(a) > 0 do
        while({t = start, i = 0, n}, i < n, do: {t * 2 + Nx.sum(t), i + 1, n})
      else
        while({t = start - 1, i = n, n}, i > 0, do: {t / 2, i - 1, n})
      end

    t + start
  end

  defn many_clauses(n) do
    cond do
      n == 0 -> 10
      n == 1 -> 20
      n > 5 and n < 8 -> n * 2
      Nx.remainder(n, 2) == 0 -> Nx.quotient(n, 2)
      true -> -n
    end
  end

  # The same predicate decides twice, and what one branch gives is the predicate of another.
  defn chained(a) do
    p = Nx.sum(a) > 0
    {b, again} = if p, do: {a + 1, Nx.sum(a) > 5}, else: {a - 1, p}
    c = if p, do: b * 2, else: b
    if again, do: c - a, else: {c, a} |> elem(1)
  end

  defn(in_operands(a),
    do: if(Nx.sum(a) > 0, do: a, else: -a) + if(Nx.sum(a) > 3, do: Nx.sum(a), else: Nx.product(a)) * a
  )

  defn(truths(p), do: {if(p, do: 1, else: 2), if(Nx.as_type(p, :f32) * 0.5, do: 10, else: 20)})

  defn containers(a, b) do
    r = if Nx.sum(a) > 0, do: {a, %{x: {b, a + b}, y: 1}}, else: {a * 2, %{x: {b - 1, a}, y: 2}}
    {q, %{x: {w, e}, y: y}} = r
    %{sum: q + w * e, parts: {r, y}}
  end

  defp branches do
    zeros = Nx.tensor([0.0, 1.0])

    for {name, fun} <- [tower: &tower/1, chained: &chained/1, in_operands: &in_operands/1],
        {of, t} <- [rows: x(), negative: negative()] do
      program("#{name} of #{of}", fun, [t])
    end ++
      for {name, a, b} <- [
            {"first", [1.0, 3.0], zeros},
            {"second", [1.0, 1.0], Nx.tensor([2.0, 1.0])},
            {"last", [1.0, 1.0], zeros}
          ] do
        program("cond_loop_cond #{name}", &cond_loop_cond/2, [Nx.tensor(a), b])
      end ++
      for a <- [[0.5, 1.0], [-0.5, -1.0], [0.1, 0.1], [0.0, 2.0]], b <- [1.0, -1.0] do
        program("levels #{inspect(a)} #{b}", &levels/2, [Nx.tensor(a), Nx.tensor(b)])
      end ++
      for {name, t} <- [rows: x(), negative: negative()], n <- [0, 3] do
        program("loops_in_branches #{name} #{n}", &loops_in_branches/2, [t, Nx.tensor(n)])
      end ++
      for(n <- [0, 1, 6, 4, 9], do: program("many_clauses #{n}", &many_clauses/1, [Nx.tensor(n)])) ++
      for(
        type <- [:u8, :s64, :f32, :bf16],
        p <- [0, 1, 3],
        do: program("truths #{p} #{type}", &truths/1, [Nx.tensor(p, type: type)])
      ) ++
      [
        program("truth of nan", &truths/1, [Nx.tensor(:nan)]),
        program("containers", &containers/2, [x(), Nx.tensor(2)]),
        program("containers, else", &containers/2, [negative(), Nx.tensor(2)])
      ]
  end

  # ---- what loops carry

  defn in_maps(a) do
    {state, _} =
      while {state = %{at: {a, %{sum: Nx.sum(a), count: 0}}, limit: 30.0}, go = Nx.u8(1)}, go do
        %{at: {t, %{sum: sum, count: count}}, limit: limit} = state
        t = t * 1.5
        sum = sum + Nx.sum(t)
        {%{state | at: {t, %{sum: sum, count: count + 1}}}, sum < limit}
      end

    state
  end

  defn nothing(a) do
    r = if Nx.sum(a) > 0, do: {}, else: {}
    {r, a + 1}
  end

  # Names come and go with the state.
  defn named(a) do
    {t, _} = while({t = a, i = 0}, i < 2, do: {Nx.add(t, Nx.sum(t, axes: [:y], keep_axes: true)), i + 1})
    if Nx.sum(t) > 0, do: t, else: Nx.negate(t)
  end

  defn many(t) do
    while {a = t, b = t + 1, c = t * 2, d = Nx.sum(t), e = Nx.s64(7), f = Nx.greater(t, 1), g = 0}, g < 3 do
      {b, c + d, a, d / 2, e + 1, Nx.logical_not(f), g + 1}
    end
  end

  defp states do
    [
      program("maps of tuples of maps", &in_maps/1, [x()]),
      program("nothing", &nothing/1, [x()]),
      program("names", &named/1, [Nx.rename(x(), [:x, :y])]),
      program("seven of several types", &many/1, [x()])
    ]
  end

  # ---- counters and states of each type

  defn count_to(limit, step) do
    {i, _, _, turns} =
      while({i = limit - limit, limit, step, turns = 0}, i < limit, do: {i + step, limit, step, turns + 1})

    {i, turns}
  end

  defn halved(t) do
    {t, _} =
      while {t, i = Nx.u8(250)}, i != 3 do
        t = if Nx.bitwise_and(i, 1), do: Nx.quotient(t, 2), else: t - 1
        {t, i + 1}
      end

    t
  end

  defn(grown(t), do: while({t, i = 0}, i < 5 and Nx.reduce_max(t) < 1000, do: {t * t + 1, i + 1}))

  defp types do
    integers = [:u8, :s8, :u16, :s16, :u32, :s32, :u64, :s64]
    floats = [:bf16, :f16, :f32, :f64]

    for(
      t <- integers ++ floats,
      do: program("count_to #{t}", &count_to/2, [Nx.tensor(21, type: t), Nx.tensor(2, type: t)])
    ) ++
      for(t <- integers, do: program("halved #{t}", &halved/1, [Nx.tensor([100, 7, 55], type: t)])) ++
      for(t <- floats ++ [:s64, :u32], do: program("grown #{t}", &grown/1, [Nx.tensor([0, 1, 2], type: t)])) ++
      for(t <- floats, do: program("three_deep #{t}", &three_deep/1, [Nx.as_type(x(), t)])) ++
      for(t <- [:u32, :s64, :bf16, :f64], do: program("tower #{t}", &tower/1, [Nx.tensor([1, 2, 1], type: t)]))
  end

  # ---- gradients, as Nx makes them

  defn squared(t) do
    {t, _} = while({t, i = 0}, i < 3, do: {t * t, i + 1})
    t
  end

  defn grad_of_cond(t) do
    grad(t, fn t ->
      cond do
        Nx.sum(t) > 5 -> Nx.sum(t ** 3)
        Nx.sum(t) > 0 -> Nx.sum(Nx.sin(t))
        true -> Nx.sum(t)
      end
    end)
  end

  defn(grad_of_while(t), do: value_and_grad(t, &Nx.sum(squared(&1))))

  defn grad_of_nest(t) do
    value_and_grad(t, fn t ->
      {t, _} = while({t, i = 0}, i < 3, do: {if(Nx.sum(t) > 3, do: t * 0.5, else: Nx.exp(t)), i + 1})
      Nx.sum(t * t)
    end)
  end

  defn grad_of_two_loops(a, b) do
    grad({a, b}, fn {a, b} ->
      {s, _, _} =
        while {s = a, b, i = 0}, i < 2 do
          {s, _, _} = while({s, b, j = 0}, j < 2, do: {s * b, b, j + 1})
          {s + b, b, i + 1}
        end

      if Nx.sum(s) > 0, do: Nx.sum(s), else: Nx.sum(s * b)
    end)
  end

  defn grad_of_levels(a, b) do
    value_and_grad({a, b}, fn {a, b} ->
      {p, q} = levels(a, b)
      Nx.sum(p * q)
    end)
  end

  # The gradient's loop is itself in a loop: a few steps of descent.
  defn descended(t) do
    {t, _} = while({t, i = 0}, i < 5, do: {t - 0.1 * grad(t, &Nx.sum(squared(&1) - &1)), i + 1})
    t
  end

  defn(grad_of_grad(t), do: grad(t, fn t -> Nx.sum(grad(t, &Nx.sum(squared(&1)))) end))

  defn grad_stopped(t) do
    grad(t, fn t ->
      {s, _} = while({s = t, i = 0}, i < 2, do: {s * stop_grad(s), i + 1})
      if Nx.sum(stop_grad(t)) > 0, do: Nx.sum(s), else: Nx.sum(s) * 2
    end)
  end

  defp gradients do
    small = Nx.tensor([0.5, 0.75, -0.25])

    # Of a while with f64 Nx makes a gradient that is f32 by its type and f64 by its bytes.
    for {name, fun} <- [
          cond: &grad_of_cond/1,
          while: &grad_of_while/1,
          nest: &grad_of_nest/1,
          descent: &descended/1,
          grad: &grad_of_grad/1,
          stopped: &grad_stopped/1
        ],
        {of, t} <- [small: small, negative: Nx.negate(small)] do
      program("gradient of #{name}, #{of}", fun, [t])
    end ++
      [program("gradient of cond, f64", &grad_of_cond/1, [Nx.as_type(small, :f64)])] ++
      for {a, b} <- [{[0.5, 1.0], [2.0, 3.0]}, {[-0.5, -1.0], [0.5, 0.25]}] do
        program("gradient of two loops #{inspect(a)}", &grad_of_two_loops/2, [Nx.tensor(a), Nx.tensor(b)])
      end ++
      for a <- [[0.5, 1.0], [-0.5, -1.0], [0.1, 0.1]], b <- [1.0, -1.0] do
        program("gradient of levels #{inspect(a)} #{b}", &grad_of_levels/2, [Nx.tensor(a), Nx.tensor(b)])
      end
  end

  # ---- vectorized

  defn vectorized_count(t, limit) do
    {t, _, _, turns} =
      while({t, limit, i = 0, turns = 0}, Nx.sum(t) < limit and i < 10, do: {t * 2 + 0.5, limit, i + 1, turns + 1})

    {t, turns}
  end

  defp vectorized do
    for {name, fun} <- [
          tower: &tower/1,
          three_deep: &three_deep/1,
          chained: &chained/1,
          squared: &squared/1,
          in_operands: &in_operands/1,
          apart: &apart/1,
          turning: &turning/1,
          grad_of_cond: &grad_of_cond/1,
          grad_of_while: &grad_of_while/1,
          grad_of_nest: &grad_of_nest/1,
          grown: &grown/1
        ] do
      program("vectorized #{name}", fun, [rows()])
    end ++
      for {name, fun} <- [containers: &containers/2, levels: &levels/2, vectorized_count: &vectorized_count/2],
          {of, b} <- [scalar: Nx.tensor(2.0), columns: columns(), rows: Nx.vectorize(Nx.tensor([1.0, 4.0]), :rows)] do
        program("vectorized #{name} with #{of}", fun, [rows(), b])
      end ++
      [
        program("vectorized predicate", &truths/1, [Nx.vectorize(Nx.tensor([0, 1, 2]), :v)]),
        program("vectorized loop in a branch", &loops_in_branches/2, [rows(), Nx.tensor(2)]),
        program("vectorized turns", &triangle/1, [Nx.vectorize(Nx.tensor([0, 3, 5]), :v)]),
        program("vectorized twice", &tower/1, [Nx.vectorize(x(), [:a, :b])])
      ]
  end

  # ---- hooks and calls

  defn observed(a) do
    b = if Nx.sum(a) > 0, do: io_call(a * 2, :positive), else: io_call(a, :negative)
    c = while(b, Nx.reduce_max(b) < 50 and Nx.sum(b) > 0, do: io_call(b * 3, :tripled))
    io_call({c, Nx.sum(c)}, :last)
  end

  defn observed_deep(n) do
    {_, n, s} =
      while {i = 0, n, s = 0}, i < n do
        {_, i, s} =
          while {j = 0, i, s}, j < i do
            s = if Nx.remainder(i + j, 2) == 0, do: io_call(s + i, :even), else: s + io_call(j, :odd) * 2
            {j + 1, i, s}
          end

        {i + 1, n, io_call(s, :row)}
      end

    {n, s}
  end

  # A condition that is observed, too.
  defn observed_condition(n) do
    {i, _} = while({i = 0, n}, io_call(i < n, :asked), do: {io_call(i + 1, :counted), n})
    i
  end

  defn called_in_branch(a) do
    u = Nx.sin(a)

    if Nx.sum(a) > 0 do
      Nx.runtime_call(u, u + a, [by: 3], &Callbacks.scaled/2)
    else
      {p, q} = Nx.runtime_call({u, a}, {a, u}, [], &Callbacks.swapped/2)
      if Nx.sum(p) > Nx.sum(q), do: p, else: Nx.runtime_call(q, q - u, [by: 2], &Callbacks.scaled/2)
    end
  end

  defn called_in_loop(a) do
    {a, _} =
      while {a, i = 0}, i < 3 do
        a = if i == 1, do: Nx.runtime_call(a, a * 2, [by: 5], &Callbacks.scaled/2), else: a + 1
        {io_call(a, :turn), i + 1}
      end

    a
  end

  defn grad_with_hook(t) do
    grad(t, fn t ->
      {t, _} = while({t, i = 0}, i < 2, do: {if(Nx.sum(t) > 1, do: t * t, else: t * 3), i + 1})
      io_call(Nx.sum(t), :loss)
    end)
  end

  defp callbacks do
    for {name, t} <- [positive: x(), negative: negative()] do
      program("observed #{name}", &observed/1, [t], [:positive, :negative, :tripled, :last])
    end ++
      for n <- [0, 1, 4] do
        program("observed_deep #{n}", &observed_deep/1, [Nx.tensor(n)], [:even, :odd, :row])
      end ++
      for(
        n <- [0, 3],
        do: program("observed_condition #{n}", &observed_condition/1, [Nx.tensor(n)], [:asked, :counted])
      ) ++
      [
        program("some observed", &observed_deep/1, [Nx.tensor(4)], [:odd]),
        program("none observed", &observed_deep/1, [Nx.tensor(4)]),
        program("called in a branch", &called_in_branch/1, [x()]),
        program("called in another branch", &called_in_branch/1, [negative()]),
        program("called in a nested branch", &called_in_branch/1, [Nx.tensor([-3.0, -2.5])]),
        program("called in a loop", &called_in_loop/1, [x()], [:turn]),
        program("gradient with a hook", &grad_with_hook/1, [Nx.tensor([0.5, 0.25])], [:loss])
      ]
  end
end

defmodule Tessera.Backend do
  @moduledoc """
  Tensors of Nx in the memory of Tessera: a `Nx.Backend`.

      iex> t = Nx.tensor([1, 2, 3], backend: {Tessera.Backend, client: :host})
      iex> Nx.to_flat_list(Nx.add(t, 1))
      [2, 3, 4]

  Each operation runs at once, with the kernels that compiled functions use. The options are `:client` and `:device_id`.
  `Nx.global_default_backend(Tessera.Backend)` makes it the backend of all tensors.
  """
  import Kernel, except: [inspect: 2]

  defstruct [:buffer]

  @type t :: %__MODULE__{buffer: Tessera.DeviceBuffer.t()}

  # Nx need not be there while this is compiled: then nothing is declared, and the same functions are defined. Where it is, the compiler
  # warns of its callbacks that are not defined here, and of functions with another number of arguments.
  @callbacks if Code.ensure_loaded?(Nx.Backend), do: Nx.Backend.behaviour_info(:callbacks), else: []
  if @callbacks != [], do: @behaviour(Nx.Backend)

  # Where operands and result have the same type and shape, `unary` and `binary` take a shorter path.
  @unary [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :cosh, :sinh, :tanh, :acos, :asin, :atan] ++
           [:acosh, :asinh, :atanh, :sqrt, :rsqrt, :cbrt, :erf, :erfc, :erf_inv, :abs, :bitwise_not, :ceil, :floor] ++
           [:negate, :round, :sign, :count_leading_zeros, :population_count]
  @binary [:add, :subtract, :multiply, :pow, :remainder, :divide, :atan2, :min, :max, :quotient, :bitwise_and] ++
            [:bitwise_or, :bitwise_xor, :left_shift, :right_shift]
  # The number of arguments after the template of the result.
  @ops [
    {1, [:conjugate, :real, :imag, :is_nan, :is_infinity, :as_type, :bitcast, :reshape]},
    {2, [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal, :logical_and, :logical_or, :logical_xor]},
    {2, [:squeeze, :transpose, :reverse, :all, :any, :sum, :product, :reduce_max, :reduce_min, :argmax, :argmin]},
    {2, [:concatenate, :stack, :sort, :argsort, :fft, :ifft]},
    {3, [:broadcast, :pad, :clip, :select, :put_slice, :gather, :conv, :window_sum, :window_product, :window_max]},
    {3, [:window_min, :triangular_solve]},
    {4, [:slice, :indexed_add, :indexed_put]},
    {5, [:window_scatter_max, :window_scatter_min]},
    {6, [:dot]}
  ]
  # Functions of the user, transfers, pointers and printing.
  @others [reduce: 5, window_reduce: 6, block: 4, init: 1, to_binary: 2, inspect: 2, to_pointer: 2] ++
            [backend_copy: 3, backend_transfer: 3, backend_deallocate: 1]

  for op <- @unary do
    @doc false
    if {op, 2} in @callbacks, do: @impl(true)
    def unquote(op)(out, a), do: :tessera_nx_eager.unary(unquote(op), out, a)
  end

  for op <- @binary do
    @doc false
    if {op, 3} in @callbacks, do: @impl(true)
    def unquote(op)(out, a, b), do: :tessera_nx_eager.binary(unquote(op), out, a, b)
  end

  for {count, ops} <- @ops, op <- ops, arguments = Macro.generate_arguments(count, __MODULE__) do
    @doc false
    if {op, count + 1} in @callbacks, do: @impl(true)
    def unquote(op)(out, unquote_splicing(arguments)), do: :tessera_nx_eager.op(unquote(op), out, unquote(arguments))
  end

  for {name, arity} <- @others, arguments = Macro.generate_arguments(arity, __MODULE__) do
    @doc false
    if {name, arity} in @callbacks, do: @impl(true)
    def unquote(name)(unquote_splicing(arguments)), do: :tessera_nx_backend.unquote(name)(unquote_splicing(arguments))
  end

  @doc false
  if {:constant, 3} in @callbacks, do: @impl(true)
  def constant(out, number, options), do: :tessera_nx_eager.source(:constant, out, [number], options)

  @doc false
  if {:eye, 2} in @callbacks, do: @impl(true)
  def eye(out, options), do: :tessera_nx_eager.source(:eye, out, [], options)

  @doc false
  if {:iota, 3} in @callbacks, do: @impl(true)
  def iota(out, axis, options), do: :tessera_nx_eager.source(:iota, out, [axis], options)

  @doc false
  if {:from_binary, 3} in @callbacks, do: @impl(true)
  def from_binary(out, binary, options), do: :tessera_nx_eager.from_binary(out, binary, false, options)

  @doc false
  if {:from_pointer, 5} in @callbacks, do: @impl(true)

  def from_pointer(pointer, type, shape, place, options),
    do: :tessera_nx_pointer.tensor(pointer, type, shape, place, options)

  @doc false
  if {:to_batched, 3} in @callbacks, do: @impl(true)
  def to_batched(out, tensor, options), do: :tessera_nx_eager.to_batched(out, tensor, options)
end

defmodule Tessera do
  @moduledoc """
  Compiles the functions of `Nx.Defn`: a `Nx.Defn.Compiler`.

      Nx.Defn.global_default_options(compiler: Tessera)

  Options of the functions here, in addition to those of `Nx.Defn`:

    * `:cache` - `false` traces and compiles at each call; a path keeps the program in this file
    * `:client`, `:device_id` - where results are allocated, see `Tessera.Client`
    * `:debug` - logs what was compiled or found in the cache, with times
    * `:execution_telemetry` - `true` emits an event for each run
    * `:hooks` - a map of functions for named `Nx.io_call`s
    * `:precision` - `:default`, `:high` or `:highest`: how exact products and convolutions are on a client of a plugin,
      instead of the client's own option. The host always computes in full precision
    * `:lazy_transfers` - checked, without effect
  """

  # Nx need not be there while this is compiled: lib/tessera/backend.ex says more.
  @compile {:no_warn_undefined, Nx.Defn}
  @callbacks if Code.ensure_loaded?(Nx.Defn.Compiler), do: Nx.Defn.Compiler.behaviour_info(:callbacks), else: []
  if @callbacks != [], do: @behaviour(Nx.Defn.Compiler)

  @typedoc "The module's documentation lists them."
  @type options :: keyword

  @doc """
  A function that compiles `fun` at its first call with arguments of these types and shapes.

      iex> Tessera.jit(&Nx.add(&1, 1)).(2) |> Nx.to_number()
      3
      iex> Tessera.jit(&Nx.add(&1, 1), cache: false).(2) |> Nx.to_number()
      3
  """
  @spec jit(function, options) :: function
  def jit(fun, options \\ []), do: Nx.Defn.jit(fun, with_compiler(options))

  @doc """
  Compiles `fun` for these arguments and calls it with them.

      iex> Tessera.jit_apply(&Nx.add/2, [1, 2]) |> Nx.to_number()
      3
  """
  @spec jit_apply(function, [Nx.Container.t()], options) :: Nx.Container.t()
  def jit_apply(fun, arguments, options \\ []), do: Nx.Defn.jit_apply(fun, arguments, with_compiler(options))

  @doc """
  Compiles `fun` now, for arguments of the templates' types and shapes. The compiled function accepts no others.

      iex> negate = Tessera.compile(&Nx.negate/1, [Nx.template({3}, :s32)])
      iex> negate.(Nx.tensor([1, 2, 3])) |> Nx.to_flat_list()
      [-1, -2, -3]
  """
  @spec compile(function, [Nx.Container.t()], options) :: function
  def compile(fun, templates, options \\ []), do: Nx.Defn.compile(fun, templates, with_compiler(options))

  @doc """
  A function that runs compiled on all devices of a mesh, an `Nx.Mesh`. `fun` is written for whole tensors. The returned function takes
  one list of argument lists, one for each partition of the mesh in row-major order, with that partition's parts; it returns the list of
  the partitions' results. Partition `i` runs on device `i` of the client, and its results are there. The client may be a cluster
  (`Tessera.Cluster`).

      iex> mesh = %Nx.Mesh{name: "mesh", shape: {2}}
      iex> fun = Tessera.shard_jit(&Nx.add(&1, &1), mesh, client: :shards, input_shardings: [%{0 => [0]}])
      iex> for part <- fun.([[Nx.tensor([1, 2])], [Nx.tensor([3, 4])]]), do: Nx.to_flat_list(part)
      [[2, 4], [6, 8]]

  Options, in addition to the module's:

    * `:input_shardings` - a list with one sharding for each argument: a map from dims (numbers, negative ones, names, names of
      vectorized axes) to lists of mesh axes (numbers); a dim that is not in the map is not cut. A container has one sharding for all its
      tensors, a list with one for each, or a container of its form. Without the option no argument is cut
    * `:output_shardings` - the same for the result; otherwise it follows from the program

  Donated arguments, containers and vectorized tensors work as in `jit/2`; functions that call Elixir (`io_call`, hooks, `runtime_call`)
  are refused. `Tessera.Mesh` cuts tensors into parts and joins them.
  """
  @spec shard_jit(function, Tessera.Mesh.mesh(), options) :: function
  def shard_jit(fun, mesh, options \\ [])
  def shard_jit(fun, %{__struct__: Nx.Mesh} = mesh, options), do: Nx.Defn.shard_jit(fun, mesh, with_compiler(options))
  def shard_jit(_fun, other, _options), do: :tessera_nx_error.expected("an Nx.Mesh", other)

  @doc """
  Calls `fun` with these arguments, and measures how long each step takes. Returns its result, and a `Tessera.Profile`. `:tessera_profile.table/1` prints the
  profile; `:tessera_profile.chrome_trace/1` and `:tessera_profile.flame_graph/1` write it for a viewer. It has the runs of compiled
  functions and the operations of the backend that the calling process makes. With OTP 27 or later each step names the lines of your `defn` that made
  its operations (docs/profile.md). The options are those of `:tessera.profile/3`, as keywords or a map.

      iex> fun = Tessera.jit(&Nx.sum(Nx.exp(&1)))
      iex> {sum, profile} = Tessera.profile(fun, [Nx.tensor([0.0, 0.0])])
      iex> {Nx.to_number(sum), profile.runs}
      {2.0, 1}
      iex> :tessera_profile.table(profile) =~ "in 1 runs of 1 programs"
      true
  """
  @spec profile(function, [term], keyword | map) :: {term, Tessera.Profile.t()}
  def profile(fun, arguments \\ [], options \\ []) do
    {result, profile} = :tessera.profile(fun, arguments, options(options))
    {result, struct(Tessera.Profile, profile)}
  end

  # Erlang's function refuses terms that are not maps.
  defp options(options), do: if(Keyword.keyword?(options), do: Map.new(options), else: options)

  @doc """
  Whether a compiled program is in the cache for `fun`, arguments of these types and shapes, and these options. A program depends on the
  names of its `:hooks` and on its `:client`; other options do not matter here.

      iex> Tessera.jit_apply(&Nx.add/2, [1, 2])
      iex> Tessera.cached?(&Nx.add/2, [3, 4])
      true
  """
  @spec cached?(function, [Nx.Container.t()], options) :: boolean
  def cached?(fun, arguments, options \\ [])

  def cached?(fun, arguments, options) when is_list(arguments),
    do: :tessera_nx_compiler.is_cached(&apply(jit(fun, &1), arguments), checked(options))

  def cached?(_fun, other, _options), do: :tessera_nx_error.expected("a list of arguments", other)

  @doc """
  The function as a StableHLO module, for other compilers: `%{mlir_module: text, used_inputs: inputs, output_container: templates}`. The
  arguments of `@main` are the leaves of the function's arguments that it uses, in their order: `used_inputs` is the list of their
  positions, from 0.

      iex> Tessera.to_mlir_module(&Nx.add/2, [Nx.template({2}, :f32), 1.0]).used_inputs
      [0, 1]

  `within_defn_compiler: true` says that the arguments are a `defn` compiler's own: the variables, and the function of them. With `:mesh`
  and `:input_shardings`, as in `shard_jit/3`, the arguments are a list of argument lists, and the module has the mesh and the shardings
  as attributes of the dialect `sdy`.
  """
  @spec to_mlir_module(function, [term], options) :: %{
          mlir_module: String.t(),
          used_inputs: [non_neg_integer],
          output_container: Nx.Container.t()
        }
  def to_mlir_module(fun, arguments, options \\ []) do
    case Keyword.pop(checked(options), :within_defn_compiler) do
      {true, rest} -> :tessera_nx_compiler.to_mlir(arguments, fun, rest)
      {_, rest} -> :tessera_nx_compiler.ask_mlir(asked(fun, arguments, rest[:mesh]), rest)
    end
  end

  @doc """
  The function that a module of StableHLO is: text or bytecode, such as `jax.export` and `to_mlir_module/3` write. Its argument is a
  tensor, or a container of tensors whose leaves are the arguments of `@main` in order. The result is a tensor, or a tuple where
  `@main` has several results. It is called eagerly, inside of `defn`, and in `Nx.Serving`, and belongs to this node.

      iex> text = Tessera.to_mlir_module(&Nx.multiply/2, [Nx.template({2}, :f32), Nx.template({2}, :f32)]).mlir_module
      iex> fun = Tessera.from_mlir_module(text)
      iex> fun.({Nx.tensor([1.0, 2.0]), Nx.tensor([3.0, 4.0])}) |> Nx.to_flat_list()
      [3.0, 8.0]

  A module whose sizes are symbols is compiled for each shape that it is called with. Tessera's compiler makes the module a part of the
  program around it. Another compiler calls Tessera at run time. `Nx.Defn.grad/2` does not differentiate it; Erlang's
  `tessera_stablehlo:function/1` with `tessera:grad/1` does.

  With `names: true` the function's argument is a map or a keyword list of the arguments by their names in Python, and its result is the
  container that the Python function returned: maps with strings as keys, and tuples. Maps may have strings or atoms as keys.
  `mlir_module_signature/1` lists the names; what the module lacks is ignored.

      iex> text = ~S'''
      ...> func.func @main(%a: tensor<2xf32> loc("weights['w']"), %b: tensor<2xf32> loc("x"))
      ...>     -> (tensor<2xf32> {jax.result_info = "result['y']"}) {
      ...>   %0 = stablehlo.multiply %a, %b : tensor<2xf32>
      ...>   return %0 : tensor<2xf32>
      ...> }
      ...> '''
      iex> fun = Tessera.from_mlir_module(text, names: true)
      iex> fun.(x: Nx.tensor([1.0, 2.0]), weights: %{"w" => Nx.tensor([3.0, 4.0])})["y"] |> Nx.to_flat_list()
      [3.0, 8.0]

  With the option `:mesh`, an `Nx.Mesh`, the function runs on all devices of the mesh, as those of `shard_jit/3` do: it takes one list of
  argument lists, one for each partition, and returns the list of the partitions' results. The module says how its arguments are cut
  (`mlir_module_shardings/1`), such as JAX's exports of `shard_map`, and for how many partitions it is written. Other options, with a mesh
  only: `:client`, a client or a cluster (`Tessera.Cluster`), and `:threads`, of each partition. With `names: true` an argument list has one map. `Nx.Defn` does not compile such a function.

      iex> mesh = %Nx.Mesh{name: "mesh", shape: {2}}
      iex> parts = List.duplicate([Nx.template({2}, :f32)], 2)
      iex> text = Tessera.to_mlir_module(&Nx.multiply(&1, 2), parts, mesh: mesh, input_shardings: [%{0 => [0]}]).mlir_module
      iex> %{mesh: mesh, input_shardings: [cut]} = Tessera.mlir_module_shardings(text)
      iex> fun = Tessera.from_mlir_module(text, mesh: mesh, client: :shards)
      iex> [first, _] = fun.(for part <- Tessera.Mesh.shard(Nx.tensor([1.0, 2.0, 3.0, 4.0]), mesh, cut, client: :shards), do: [part])
      iex> Nx.to_flat_list(first)
      [2.0, 4.0, 6.0, 8.0]
  """
  @spec from_mlir_module(binary, keyword) :: (term -> term)
  def from_mlir_module(module, options \\ [])

  def from_mlir_module(module, options) when is_binary(module) do
    case Keyword.fetch(checked(options), :mesh) do
      {:ok, mesh} -> :tessera_nx_stablehlo.shard_jit(module, mesh, options)
      :error -> without_mesh(module, options)
    end
  end

  def from_mlir_module(other, _options), do: :tessera_nx_error.expected("a binary", other)

  defp without_mesh(module, []), do: Tessera.MLIRModule.function(module)
  defp without_mesh(module, names: false), do: Tessera.MLIRModule.function(module)
  defp without_mesh(module, names: true), do: Tessera.MLIRModule.named_function(module)
  defp without_mesh(_, options), do: :tessera_nx_error.expected("no options without a :mesh but :names", options)

  @doc """
  The arguments and results of a module's `@main`, in their order: `%{inputs: leaves, outputs: leaves}`. A leaf is
  `%{name: name, path: path, type: type, shape: shape}`, with its name in Python, and the name as a path. A size that is a symbol is `nil`. The
  name of what the module does not name is `nil`, and its path `[]`, as that of the only result.

      iex> text = ~S'''
      ...> func.func @main(%a: tensor<?x2xf32> loc("weights['w'][0]")) -> (tensor<?x2xf32> {jax.result_info = "result"}) {
      ...>   return %a : tensor<?x2xf32>
      ...> }
      ...> '''
      iex> Tessera.mlir_module_signature(text).inputs
      [%{name: "weights['w'][0]", path: ["weights", "w", 0], type: {:f, 32}, shape: {nil, 2}}]
  """
  @spec mlir_module_signature(binary) :: %{inputs: [mlir_leaf], outputs: [mlir_leaf]}
  def mlir_module_signature(module) when is_binary(module), do: :tessera_nx_stablehlo.signature(module)
  def mlir_module_signature(other), do: :tessera_nx_error.expected("a binary", other)

  @typedoc "An argument or a result of a module of StableHLO."
  @type mlir_leaf :: %{
          name: String.t() | nil,
          path: [String.t() | non_neg_integer],
          type: Nx.Type.t(),
          shape: tuple
        }

  @doc """
  For which mesh a module of StableHLO is written, and how the arguments and results of its `@main` are cut:
  `%{mesh: mesh, input_shardings: shardings, output_shardings: shardings}`, as `Tessera.Mesh` takes them. A module for one partition has the
  mesh of shape `{1}`. The sharding of a result that the module leaves open is `%{}`: it is replicated.

      iex> parts = List.duplicate([Nx.template({2}, :f32)], 2)
      iex> options = [mesh: %Nx.Mesh{name: "mesh", shape: {2}}, input_shardings: [%{0 => [0]}]]
      iex> Tessera.mlir_module_shardings(Tessera.to_mlir_module(&Nx.negate/1, parts, options).mlir_module).input_shardings
      [%{0 => [0]}]
  """
  @spec mlir_module_shardings(binary) :: %{
          mesh: Tessera.Mesh.mesh(),
          input_shardings: [Tessera.Mesh.sharding()],
          output_shardings: [Tessera.Mesh.sharding()]
        }
  def mlir_module_shardings(module) when is_binary(module), do: :tessera_nx_stablehlo.shardings(module)
  def mlir_module_shardings(other), do: :tessera_nx_error.expected("a binary", other)

  # With a mesh the arguments are lists, one for each partition.
  defp asked(fun, arguments, nil), do: &compile(fun, arguments, &1)
  defp asked(fun, arguments, mesh), do: &shard_jit(fun, mesh, &1).(arguments)

  defp with_compiler(options), do: List.keystore(checked(options), :compiler, 0, {:compiler, __MODULE__})

  defp checked(options),
    do:
      if(Keyword.keyword?(options), do: options, else: :tessera_nx_error.expected("options as a keyword list", options))

  @doc false
  if {:__jit__, 5} in @callbacks, do: @impl(true)
  def __jit__(key, vars, fun, arguments, options), do: :tessera_nx_compiler.jit(key, vars, fun, arguments, options)

  @doc false
  if {:__compile__, 4} in @callbacks, do: @impl(true)
  def __compile__(key, vars, fun, options), do: :tessera_nx_compiler.compile(key, vars, fun, options)

  @doc false
  if {:__partitions_options__, 1} in @callbacks, do: @impl(true)
  def __partitions_options__(options), do: :tessera_nx_compiler.partitions_options(options)

  @doc false
  if {:__to_backend__, 1} in @callbacks, do: @impl(true)
  def __to_backend__(options), do: :tessera_nx_compiler.to_backend(options)

  @doc false
  if {:__shard_jit__, 6} in @callbacks, do: @impl(true)

  def __shard_jit__(key, mesh, vars, fun, arguments, options),
    do: :tessera_nx_compiler.shard_jit(key, mesh, vars, fun, arguments, options)
end

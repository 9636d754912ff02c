defmodule Tessera.IO do
  @moduledoc """
  Files of tensors: safetensors, NumPy's `.npy` and `.npz`, GGUF (to be loaded only) and CSV. docs/files.md describes the formats.

      iex> path = Path.join(System.tmp_dir!(), "tessera_io_\#{System.pid()}.safetensors")
      iex> Tessera.IO.save(path, %{"dense" => %{"kernel" => Nx.tensor([[1.0, 2.0]])}, "rate" => 0.5})
      :ok
      iex> %{"dense" => %{"kernel" => kernel}, "rate" => 0.5} = Tessera.IO.load(path)
      iex> File.rm!(path)
      iex> Nx.to_flat_list(kernel)
      [1.0, 2.0]

  A container is tensors in maps, tuples and lists, with numbers, atoms and strings beside them. A struct is refused: save a map of its
  fields, as `state.data` of an `Axon.ModelState`. Names of axes are not saved.

  Loaded tensors have the backend `Tessera.Backend`. A file is mapped: it is open at once, and a tensor takes memory when it is used. So a
  file must not be changed while its tensors are in use.
  """

  @type path :: Path.t()

  @doc """
  The contents of a file. A file of another program is a map of tensors by name; a file of `save/3` is the same container again.

  Options:

    * `:names` - a list of names: only these tensors, as a map
    * `:map` - `false` reads a copy
    * `:atoms` - `:new` allows the file to make new atoms, which are never freed; otherwise they are an error
    * `:format` - `:safetensors`, `:npy`, `:npz` or `:gguf`, where neither contents nor name tell it
  """
  @spec load(path, keyword) :: term
  def load(path, options \\ []), do: :tessera_nx_io.load(path, options)

  @doc """
  Saves a container. The ending of the path chooses the format: `.safetensors`, `.npy` or `.npz`.

  Options:

    * `:format` - the same, for other endings
    * `:metadata` - a map of texts, for safetensors
  """
  @spec save(path, term, keyword) :: :ok
  def save(path, container, options \\ []), do: :tessera_nx_io.save(path, container, options)

  @doc "The format, the types and shapes of the tensors by name, and the metadata of a file. No tensor is read."
  @spec info(path) :: %{
          format: atom,
          tensors: %{String.t() => {Nx.Type.t(), tuple}},
          metadata: %{String.t() => term}
        }
  def info(path), do: :tessera_nx_io.info(path)

  @doc """
  The names of the columns of a CSV file, and its numbers as a matrix. The options are those of `tessera_io:read_csv/2`; a type is one of Nx's.
  """
  @spec read_csv(path, keyword) :: {[String.t()], Nx.Tensor.t()}
  def read_csv(path, options \\ []), do: :tessera_nx_io.read_csv(path, options)
end

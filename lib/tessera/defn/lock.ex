defmodule Tessera.Defn.Lock do
  @moduledoc """
  Locks by key, which waiting processes get in turn. Name and contract are EXLA's, whose users protect a device or a file with
  them. Runs of Tessera take none. A lock ends with the process that holds it.

      iex> ref = Tessera.Defn.Lock.lock(:file)
      iex> Tessera.Defn.Lock.lock(:file)
      :nested_lock
      iex> Tessera.Defn.Lock.unlock(ref)
      :ok
  """

  @doc "Waits until the key is free. If the caller already holds it, the lock is nested and ends with the outer one."
  @spec lock(term) :: reference | :nested_lock
  def lock(key), do: :tessera_nx_lock.lock(key)

  @doc "Passes the lock to the next waiter."
  @spec unlock(reference | :nested_lock) :: :ok
  def unlock(ref), do: :tessera_nx_lock.unlock(ref)

  @doc "Transfers the lock to another process after calling `prepare`. Returns the reference by which the new holder ends it."
  @spec transfer(reference, (() -> term), pid) :: reference
  def transfer(ref, prepare, pid), do: :tessera_nx_lock.transfer(ref, prepare, pid)

  @doc """
  Calls `prepare` now, and `ending` when the lock ends: its result is either the end of the lock or a transfer to another
  process.
  """
  @spec on_unlock(reference, (() -> term), (() -> :unlock | {:transfer, pid})) :: reference
  def on_unlock(ref, prepare, ending), do: :tessera_nx_lock.on_unlock(ref, prepare, ending)
end

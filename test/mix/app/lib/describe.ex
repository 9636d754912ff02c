defprotocol User.Describe do
  @fallback_to_any true
  def describe(value)
end

defimpl User.Describe, for: Tessera.Backend do
  def describe(%Tessera.Backend{buffer: buffer}), do: "tensor in " <> User.Describe.describe(buffer)
end

defimpl User.Describe, for: [Tessera.DeviceBuffer, Tessera.Client] do
  def describe(%@for{}), do: inspect(@for)
end

defimpl User.Describe, for: Any do
  def describe(_), do: "something"
end

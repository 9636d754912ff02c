# What Erlang knows of element types, from the table of the core: awk -f mk/types.awk c_src/tensor/dtype.def.
# Types that graphs do not take are left out.
/^#ifdef TS_TEST_ROWS/ { skip = 1 }
/^#endif/ { skip = 0 }
skip || !/^TS_DTYPE\(/ { next }
{
  gsub(/^TS_DTYPE\(|\).*|[ "]/, "")
  split($0, row, ",")
  if (row[8] == "NONE") next
  name = row[2]
  letters = name
  sub(/[0-9]+$/, "", letters)
  nx = "{" letters ", " row[3] "}"
  if (letters ~ /[0-9]/) nx = "{" name ", " row[3] "}" # f8_e4m3fn is a kind of its own
  names = names (names == "" ? "" : ", ") name
  kind = kind "kind(" name ") -> " nx ";\n"
  class = class "class(" name ") -> " tolower(row[5]) ";\n"
  bytes = bytes (bytes == "" ? "" : ";\n") "bytes(" name ") -> " row[4] / 8
  of_nx = of_nx "of_nx(" nx ") -> " name ";\n"
}
END {
  print "%% Made by mk/types.awk from c_src/tensor/dtype.def. For tessera_type.erl only."
  print "%% All types, in the order of the table.\n-spec all() -> [type()].\nall() -> [" names "].\n"
  print "%% Nx's kind and the bits of a value; undefined for what is no type."
  print "-spec kind(term()) -> {atom(), pos_integer()} | undefined.\n" kind "kind(_) -> undefined.\n"
  print "-spec class(term()) -> signed | unsigned | float | complex | undefined.\n" class "class(_) -> undefined.\n"
  print "%% Bytes of an element.\n-spec bytes(type()) -> pos_integer().\n" bytes ".\n"
  print "%% The type of an Nx type.\n-spec of_nx(term()) -> type() | undefined.\n" of_nx "of_nx(_) -> undefined."
}

// fails
graph @main() -> (f32[2]) {
  %0 = literal "0000803f" : f32[2]
  return %0
}

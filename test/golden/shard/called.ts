// passes: report
// A call is partitioned as if its region were here.
graph @t mesh [2] (%x: f32[4,4] sharded [[0],[]]) -> (f32[4,4]) {
  %1 = call %x {
    body(%2: f32[4,4]) {
      %3 = tanh %2 : f32[4,4]
      return %3
    }
  } : f32[4,4]
  %4 = negate %1 : f32[4,4]
  return %4
}

#!/bin/sh
# All that wants a machine with an NVIDIA GPU: cuda.sh BUILD PYTHON. The plugin is found as for a client of the platform cuda
# (docs/accelerators.md). Each step runs whatever became of the others; the last lines say which failed.
build=$1 python=$2
plugin=$(${ERL:-erl} -noshell -pa ebin -eval '
  case tessera_plugins:options(#{platform => cuda}) of
      {ok, #{plugin_path := Path}} -> io:put_chars(Path), halt(0);
      {error, _, Text} -> io:format(standard_error, "test-cuda: ~ts~n", [Text]), halt(1)
  end.') || exit 1
echo "test-cuda: $plugin"
export TESSERA_PJRT_PLUGIN="$plugin"
failed=
step() {
  name=$1
  shift
  echo "== $name"
  "$@" || failed="$failed, $name"
}
step "programs of test-xla" "${MAKE:-make}" test-pjrt "PJRT_PLUGIN=$plugin" "PEERS=$python"
step "the contract of platforms" "$build/test_platform"
for module in tessera_tensor_tests tessera_control_tests tessera_grad_tests; do
  step "$module" "${MAKE:-make}" test-erl DEVICE=pjrt "PJRT_PLUGIN=$plugin" T=$module
done
step "timings" "${MAKE:-make}" bench-accelerator "PJRT_PLUGIN=$plugin"
if "$python" -c 'import jax; jax.devices("gpu")' 2>/dev/null; then
  step "timings of JAX" "$python" bench/peer_accelerator.py
else
  echo "test-cuda: $python has no jax with a GPU, so there are no timings of JAX beside ours"
fi
[ -z "$failed" ] && echo "test-cuda: passed" && exit 0
echo "test-cuda: failed: ${failed#, }" >&2
exit 1

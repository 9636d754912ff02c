#!/bin/sh
# Tessera in a Mix application, built by its own mix.exs and by make; then without Mix, also on two ranks that join. Needs
# Elixir, no Nx, no network. Mix builds the application in dev and in prod; of two machines that share the tests the one
# with TESSERA_HALF=0 takes dev, the other one prod.
# usage: test/mix/run.sh
cd "$(dirname "$0")/../.." || exit 2
# Where everything must be there, what is not is a failure.
left_out() {
  echo "mix: left out, $1"
  [ -z "${TESSERA_CI:-}" ] || exit 1
}
command -v mix >/dev/null || { left_out "no Elixir here; ./setup installs Debian's"; exit 0; }

unset MAKEFLAGS MFLAGS MAKELEVEL # what these start is not part of the make that runs this
passed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export HOME="$work" HEX_OFFLINE=1 TESSERA_PATH="$work/tessera" MIX_ARCHIVES="$work/archives"

fail() {
  echo "mix: $1"
  [ ! -f "$work/log" ] || cat "$work/log"
  echo "mix: $passed passed, 1 failed"
  exit 1
}

# $1: what builds Tessera, $2: environment
check() {
  export TESSERA_MANAGER="$1" MIX_ENV="$2"
  rm -rf "$TESSERA_PATH" "$work/app"
  test/copy_tree.sh "$TESSERA_PATH" && cp -r test/mix/app "$work/app" || fail "the tree cannot be copied"
  (cd "$work/app" && mix deps.compile && mix compile --warnings-as-errors) >"$work/log" 2>&1 ||
    fail "the application does not build with $1 in $2"
  ! grep -in 'warning' "$work/log" >"$work/warnings" || fail "building with $1 in $2 warns"
  (cd "$work/app" && mix run check.exs) >"$work/log" 2>&1 || fail "the application fails with $1 in $2"
  checks=$(grep -c '^  ' "$work/log")
  [ "$checks" -gt 0 ] || fail "the application checks nothing"
  passed=$((passed + checks))
  echo "mix: an application built with $1 in $2: $checks checks"
}

[ "${TESSERA_HALF:-}" = 1 ] || check mix dev
[ "${TESSERA_HALF:-}" = 0 ] || check mix prod
# make's ebin/ must not hide a change of the sources
echo 'changed() -> true.' >>"$TESSERA_PATH/erl/nx/tessera_nx_lock.erl"
sed -i '0,/-export(\[/s//&changed\/0, /' "$TESSERA_PATH/erl/nx/tessera_nx_lock.erl"
sed -i 's/^end$/  def changed, do: :tessera_nx_lock.changed()\nend/' "$TESSERA_PATH/lib/tessera/typespec.ex"
(cd "$work/app" && mix run -e 'true = apply(Tessera.Typespec, :changed, [])') >"$work/log" 2>&1 ||
  fail "a change of the sources is not seen"
passed=$((passed + 1))
echo "mix: a change of the sources is seen"
check make dev

cat >"$work/plain.exs" <<'END'
{:ok, _} = Application.ensure_all_started(:tessera)
%Tessera.Client{name: :host} = client = Tessera.Client.fetch!(:host)
buffer = Tessera.DeviceBuffer.place_on_device(<<7>>, Tessera.Typespec.tensor({:u, 8}, {1}), client, 0)
<<7>> = Tessera.DeviceBuffer.read(%Tessera.DeviceBuffer{buffer | device_id: 0})
IO.puts("ran")
END
elixir -pa ebin "$work/plain.exs" >"$work/log" 2>&1 && [ "$(cat "$work/log")" = ran ] || fail "elixir -pa ebin fails"
passed=$((passed + 1))
echo "mix: elixir -pa ebin runs"

elixir -pa ebin test/mix/doctests.exs >"$work/log" 2>&1 || fail "the documentation's examples fail"
checks=$(sed -n 's/^\([0-9]*\) doctests, 0 failures$/\1/p' "$work/log")
[ "${checks:-0}" -gt 0 ] || fail "the documentation has no examples"
passed=$((passed + checks))
echo "mix: $checks examples of the documentation"

# Without Elixir the rest is built, and make says what is not.
test/copy_tree.sh "$work/erlang" --exclude=./build --exclude=./ebin || fail "the tree cannot be copied"
make -C "$work/erlang" ELIXIRC=no-elixirc erl no-elixir >"$work/log" 2>&1 || fail "make fails without Elixir"
grep -q 'no Elixir here' "$work/log" || fail "make does not say that there is no Elixir"
(cd "$work/erlang" && ! ls ebin/Elixir.* 2>/dev/null && ! grep "'Elixir.Tessera'," ebin/tessera.app && ! grep "Elixir.Tessera.Mesh" ebin/tessera.app && [ -f ebin/tessera_nx_lock.beam ]) >"$work/log" 2>&1 ||
  fail "make without Elixir builds something else"
passed=$((passed + 1))
echo "mix: make builds the rest without Elixir"

# Ranks that join, without a driver; both print what they have checked.
join() {
  shared=vader
  case $(mpirun --version) in *"Open MPI) 5"*) shared=sm ;; esac
  # mpirun refuses root without these.
  [ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  timeout -k 10 900 mpirun -np 2 --oversubscribe --bind-to none --mca pml ob1 --mca btl "self,$shared" elixir -pa ebin test/mix/join.exs "$work/joined" \
    >"$work/log" 2>&1 || fail "ranks that join fail"
  # lines of two ranks may be joined in the log
  of_rank() { grep -o "  rank $1: " "$work/log" | wc -l; }
  checks=$(of_rank '[01]')
  [ "$checks" -gt 0 ] && [ "$(of_rank 0)" -eq "$(of_rank 1)" ] || fail "a rank checks nothing"
  passed=$((passed + checks))
  echo "mix: 2 ranks join: $checks checks"
}
if command -v mpirun >/dev/null && [ -f priv/tessera_mpi.so ]; then
  join
else
  left_out "ranks that join: no Open MPI here (./setup --mpi && make)"
fi
echo "mix: $passed passed, 0 failed"

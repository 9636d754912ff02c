#!/bin/sh
# What Mix and rebar3 leave to others (mix.exs, rebar.config). Needs neither make nor a compiler where the library is precompiled.
#
#   mk/native.sh build GOAL...   the native library and the generated sources: fetched, or by make GOAL...
#   mk/native.sh docs EBIN...    what h prints of the modules in these folders
#   mk/native.sh clean           what C's build has left
set -eu
cd "$(dirname "$0")/.."

types=erl/term/tessera_types.hrl
write_types() {
  awk -f mk/types.awk c_src/tensor/dtype.def >$types.tmp
  if cmp -s $types.tmp $types; then rm $types.tmp; else mv $types.tmp $types; fi
}

make_goals() {
  command -v make >/dev/null ||
    { echo "tessera: the native library is compiled here, and there is no make: $PWD/setup installs what that needs" >&2; exit 1; }
  exec make "$@"
}

verb=${1:-}
[ -n "$verb" ] && shift
case $verb in
build)
  status=0
  escript mk/native.escript fetch || status=$?
  case $status in
  0) write_types ;;
  3) make_goals "$@" ;;
  *) exit "$status" ;;
  esac
  ;;
docs)
  # shellcheck disable=SC2046
  escript mk/shell-docs.escript $(sed -n 's/^PUBLIC_SRC := *//p' mk/sources.mk) "$@"
  ;;
clean) rm -rf build priv/tessera_nif.so priv/tessera_mpi.so priv/tessera_plugin priv/tessera_nif.fetched priv/LICENSES ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

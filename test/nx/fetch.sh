#!/bin/sh
# Gets a release of Nx from Hex, or the head of its repository, and puts what test/nx/run.exs wants into a folder, compiled:
# nx, complex, telemetry. Needs Elixir and a network.
# usage: test/nx/fetch.sh 0.13|head FOLDER
set -eu
[ $# = 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
case $1 in
head) requirement='github: "elixir-nx/nx", sparse: "nx"' ;;
*) requirement="\"~> $1.0\"" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cat >"$work/mix.exs" <<END
defmodule Fetch.MixProject do
  use Mix.Project
  def project, do: [app: :fetch, version: "1.0.0", deps: [{:nx, $requirement}]]
end
END
cd "$work"
export MIX_ENV=prod
mix local.hex --force
mix deps.get
mix deps.compile
cp -rL _build/prod/lib/nx _build/prod/lib/complex _build/prod/lib/telemetry "$folder"

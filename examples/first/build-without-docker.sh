#!/bin/bash
# Carries out the Dockerfile's steps where there is no Docker: each stage in a root of its own, made by debootstrap.
#
#   examples/first/build-without-docker.sh FOLDER
#
# FOLDER gets the roots (about 3 GB) and keeps the one of FROM for the next time. Needs root and the package debootstrap.
# It knows the instructions that this Dockerfile uses: FROM, RUN, COPY, WORKDIR, ENV and CMD.
#
# NX_LIBS=folder of the compiled applications nx, complex and telemetry: takes these in place of Hex's, where Hex cannot be
# reached.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "build-without-docker: debootstrap is missing" >&2; exit 1; }
dockerfile=examples/first/Dockerfile
mkdir -p "$1"
work=$(cd "$1" && pwd)
root='' workdir=/ environment=()

unmount() {
  for at in "$work"/*/proc; do ! mountpoint -q "$at" || umount "$at"; done
}
trap unmount EXIT

# from debian:13 [AS stage]: a copy of a fresh root.
from() {
  [ "$1" = debian:13 ] || { echo "build-without-docker: the image $1 is not Debian 13" >&2; exit 1; }
  if [ ! -e "$work/debian-13.done" ]; then
    rm -rf "$work/debian-13"
    debootstrap --variant=minbase trixie "$work/debian-13" >"$work/debootstrap.log"
    touch "$work/debian-13.done"
  fi
  unmount
  root=$work/${3:-image} workdir=/ environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive)
  rm -rf "$root"
  cp -a --reflink=auto "$work/debian-13" "$root"
  cp /etc/resolv.conf "$root/etc/"
  mount -t proc proc "$root/proc"
}

run() {
  if [ -n "${NX_LIBS:-}" ] && [[ $1 = *"mix local.hex"* ]]; then
    echo "  left out: NX_LIBS stands in for Hex"
    return
  fi
  mkdir -p "$root$workdir"
  chroot "$root" /usr/bin/env -i "${environment[@]}" /bin/sh -c "cd $workdir && $1" </dev/null
}

copy() {
  case $1 in
  --from=*) mkdir -p "$root$3" && cp -a "$work/${1#--from=}$2/." "$root$3" ;;
  *) mkdir -p "$root$2" && git ls-files -z "$1" | tar -c --null -T - | tar -x -C "$root$2" && take_nx ;;
  esac
}

# Puts the compiled applications into the root and names them in mix.exs.
take_nx() {
  [ -n "${NX_LIBS:-}" ] || return 0
  cp -rL "$NX_LIBS" "$root/nx-libs"
  sed -i 's|{:nx, "[^"]*"}|{:nx, path: "/nx-libs/nx", compile: "true"}, {:complex, path: "/nx-libs/complex", compile: "true"}, \
{:telemetry, path: "/nx-libs/telemetry", compile: "true"}|' "$root/tessera/examples/first/mix.exs"
}

instruction() {
  echo "== $1 $2"
  local words
  read -ra words <<<"$2"
  case $1 in
  FROM) from "${words[@]}" ;;
  RUN) run "$2" ;;
  COPY) copy "${words[@]}" ;;
  WORKDIR) workdir=$2 ;;
  ENV) environment+=("${words[@]}") ;;
  CMD) command=$2 ;;
  *) echo "build-without-docker: unknown instruction $1" >&2; exit 1 ;;
  esac
}

while read -r name rest; do
  instruction "$name" "$rest"
done < <(sed -e '/^#/d' -e '/^$/d' "$dockerfile" | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ta' -e '}')

echo "== docker run"
run "$command"

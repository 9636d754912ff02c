#!/bin/bash
# What a newcomer does, on a fresh minimal Debian: clones HEAD of this repository, into a folder whose name has a space;
# ./setup && make run, and ./setup --mpi --lapack && make test, as root, without a home that can be written.
#
#   mk/debian-test.sh RELEASE [COMMAND...]    of bookworm, trixie; in place of these commands, others
#   BUSY=1              with a busy process beside it
#   TESSERA_C_ISA=avx2  the C tests and the golden files take this instruction set
#   TESSERA_HALF=1      of tests of many combinations, and of random programs, one half (test/c/testing.h)
#   TESSERA_WAITS=2     and of that half not the last third
#   TESSERA_RANDOM_SEED=7  the first seed of random programs
#   CC="ccache cc"      with ccache, which is installed before: tests build what the first command has built again
#   CFLAGS="-O2 -g0"    flags of C in place of the usual ones
#
# The minimal root, the packages and what ccache has are kept in $TESSERA_CI_CACHE (~/.cache/tessera-ci); what is installed
# and built is not. Exits with 77 where the machine allows no such root (mk/debian-root.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2; }
release=$1
shift
[ $# -gt 0 ] || set -- "./setup && make run" "./setup --mpi --lapack && make test"

MOST_PACKAGES=170

# Those who are not root may become it.
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || { echo "debian-test: needs root" >&2; exit 77; }
  exec sudo -n --preserve-env=TESSERA_CI,TESSERA_CI_CACHE,TESSERA_C_ISA,TESSERA_HALF,TESSERA_WAITS,TESSERA_RANDOM_SEED,CC,CFLAGS,BUSY,HOME mk/debian-test.sh "$release" "$@"
fi

cache=$(mk/debian-root.sh cache)
mkdir -p "$cache" && [ -w "$cache" ] || cache=$(mktemp -d)
kept=$cache/$release work= busy= ccache=
case ${CC:-} in ccache*) ccache=ccache ;; esac

cleanup() {
  [ -z "$busy" ] || kill "$busy" 2>/dev/null || true
  [ -z "$work" ] || rm -rf --one-file-system "$work"
}
trap cleanup EXIT

inside() { mk/debian-root.sh run "$@"; }

packages() { inside "$1" dpkg-query -W -f '${Installed-Size}\n' | awk '{ n++; kb += $1 } END { print n, int(kb / 1024) }'; }

# The packages of setup come from the mirror once. Old ones go.
fetch() {
  inside "$kept" apt-get update -qq
  # shellcheck disable=SC2046
  inside "$kept" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --download-only --no-install-recommends \
    $(./setup --list) $ccache >/dev/null
  inside "$kept" apt-get autoclean -qq >/dev/null
}

exec 9>"$cache/$release.lock"
flock 9
# A run that was killed leaves its copy, in which nothing is mounted any more.
find "$cache" -mindepth 1 -maxdepth 1 -name 'run-*' -mmin +300 -exec rm -rf --one-file-system {} +
echo "debian-test: $release in $kept"
mk/debian-root.sh make "$release" "$kept"
fetch
work=$(mktemp -d "$cache/run-XXXXXX")
cp -a --reflink=auto "$kept" "$work/root"
[ ! -d "$kept-ccache" ] || [ -z "$ccache" ] || cp -a --reflink=auto "$kept-ccache" "$work/root/var/cache/ccache"
flock -u 9

root=$work/root
folder="/srv/a folder/tessera"
mkdir -p "$root/srv/a folder"
git -c safe.directory='*' clone -q --no-hardlinks . "$root$folder"

if [ -n "${BUSY:-}" ]; then
  (while :; do :; done) &
  busy=$!
fi

if [ -n "$ccache" ]; then
  inside "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $ccache >/dev/null
fi

read -r count_before mb_before < <(packages "$root")
count_after= mb_after=
for command in "$@"; do
  echo "debian-test: $release: $command"
  inside "$root" /usr/bin/env HOME=/proc/none ${TESSERA_CI:+TESSERA_CI="$TESSERA_CI"} ${MAKEFLAGS:+MAKEFLAGS="$MAKEFLAGS"} \
    ${TESSERA_C_ISA:+TESSERA_C_ISA="$TESSERA_C_ISA"} ${TESSERA_HALF:+TESSERA_HALF="$TESSERA_HALF"} \
    ${TESSERA_WAITS:+TESSERA_WAITS="$TESSERA_WAITS"} ${TESSERA_RANDOM_SEED:+TESSERA_RANDOM_SEED="$TESSERA_RANDOM_SEED"} \
    ${CFLAGS:+CFLAGS="$CFLAGS"} ${ccache:+CC="ccache cc" CCACHE_DIR=/var/cache/ccache CCACHE_MAXSIZE=500M CCACHE_NOHASHDIR=1} \
    sh -c 'cd "$1" && eval "$2"' sh "$folder" "$command"
  # of the first command: later ones may install what is optional
  [ -n "$count_after" ] || read -r count_after mb_after < <(packages "$root")
done
count=$((count_after - count_before))
echo "debian-test: $release: setup added $count packages, $((mb_after - mb_before)) MB to a minimal system with git"
[ $count -le $MOST_PACKAGES ] || { echo "debian-test: more than $MOST_PACKAGES packages"; exit 1; }
if [ -d "$root/var/cache/ccache" ]; then
  flock 9
  rm -rf "$kept-ccache" && mv "$root/var/cache/ccache" "$kept-ccache"
fi

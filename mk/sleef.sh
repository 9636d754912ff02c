#!/bin/sh
# Makes a static library of the vector functions of SLEEF that Tessera calls: Debian has SLEEF as a shared library only.
#
#   CC=... HOST_CC=... mk/sleef.sh OUT.a TARGET [SOURCE]
#
# TARGET is x86_64 or aarch64; CC may be a cross compiler, HOST_CC makes programs for this machine. SOURCE is a folder with
# SLEEF's sources (3.5 or 3.6, as Debian 12 and 13 have); without one they are taken from Debian's source package.
# The functions are the ones with fixed results: "finz" with fused multiply-add, "cinz" without.
set -eu
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1 target=$2 source=${3:-}
cc=${CC:-cc} host_cc=${HOST_CC:-cc}
work=$out.work
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

die() { echo "sleef: $1" >&2; exit 1; }

# By apt with a list of sources of its own, so that the machine's lists stay as they are.
from_debian() {
  command -v apt-get >/dev/null || die "no apt-get here: name a folder with SLEEF's sources (make precompiled SLEEF_SOURCE=FOLDER)"
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt=$(realpath "$work")/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main" >"$apt/list"
  cat >"$apt/conf" <<END
Dir::Etc::sourcelist "$apt/list";
Dir::Etc::sourceparts "/none";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
END
  { APT_CONFIG=$apt/conf apt-get update -qq && cd "$apt" && APT_CONFIG=$apt/conf apt-get source -qq --download-only sleef; } >"$apt/log" 2>&1 ||
    { cat "$apt/log" >&2; die "Debian's sources of SLEEF cannot be had: name a folder with them (make precompiled SLEEF_SOURCE=FOLDER)"; }
  mkdir "$apt/sleef"
  tar -x -f "$apt"/sleef_*.orig.tar.* -C "$apt/sleef" --strip-components=1
}

if [ -z "$source" ]; then
  (from_debian) || exit 1
  source=$work/apt/sleef
fi
[ -f "$source/src/libm/sleefsimdsp.c" ] || die "$source has no sources of SLEEF (src/libm/sleefsimdsp.c)"

$host_cc -I"$source/src/libm" -o "$work/mkrename" "$source/src/libm/mkrename.c"

# As SLEEF's own build compiles them: no contraction of its own, and no reordering.
flags="-std=gnu99 -O3 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing
  -fno-asynchronous-unwind-tables -ffunction-sections -w"

# functions ISA PREFIX DOUBLES FLOATS OPTIONS: those of an instruction set
functions() {
  name=$(echo "$1" | tr '[:upper:]' '[:lower:]')
  "$work/mkrename" "$2" "$3" "$4" "$name" >"$work/rename$name.h"
  for part in sp dp; do
    # Functions whose results are fixed anyway are in the second object, under both names.
    for fixed in -DDETERMINISTIC=1 -UDETERMINISTIC; do
      # shellcheck disable=SC2086
      $cc $flags $5 -I"$work" -I"$source/src/libm" -I"$source/src/common" -I"$source/src/arch" -DDORENAME=1 -DENABLE_BUILTIN_MATH=1 \
        $fixed -DENABLE_"$1"=1 -c -o "$work/$name$part${fixed%%DET*}.o" "$source/src/libm/sleefsimd$part.c"
    done
  done
}

case $target in
x86_64)
  functions SSE4 cinz_ 2 4 -msse4.1
  functions AVX2 finz_ 4 8 "-mavx2 -mfma"
  functions AVX512F finz_ 8 16 -mavx512f
  ;;
aarch64) functions ADVSIMD finz_ 2 4 "" ;;
*) die "there is no target $target" ;;
esac
# shellcheck disable=SC2086
$cc $flags -I"$source/src/common" -c -o "$work/tables.o" "$source/src/libm/rempitab.c"
rm -f "$out"
ar rcs "$out" "$work"/*.o

#!/bin/sh
# Builds Tessera for aarch64 on an x86-64 Debian 12 or 13 and tests it under qemu's user emulation. Needs
# no root and installs nothing: Debian's packages are unpacked below build/aarch64-root.
#
#   test/aarch64/run.sh             the C tests, then the Erlang session
#   test/aarch64/run.sh c [NAME..]  the C tests, or those
#   test/aarch64/run.sh erl [EXPR]  a short session in Erlang, or that expression
#   test/aarch64/run.sh precompiled [SLEEF_SOURCE=FOLDER]  the precompiled library (docs/packages.md), and that session with it
set -eu
cd "$(dirname "$0")/../.."
case $PWD in
*" "*) echo "aarch64: the cross compiler's options cannot hold the space in $PWD: use another folder" >&2; exit 2 ;;
esac
here=$PWD/build/aarch64-root
root=$here/target  # what would be / on the other machine
tools=$here/tools  # this machine's cross compiler and qemu
libraries="libc6-dev libstdc++-12-dev llvm-19-dev libsleef-dev libxxhash-dev check erlang-base erlang-dev libzstd-dev zlib1g-dev"
programs="gcc-aarch64-linux-gnu qemu-user-static"

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# unpack ARCH DIR PACKAGE...: with all that they depend on
unpack() {
  arch=$1 to=$2; shift 2
  [ -e "$to.done" ] && return
  apt=$here/apt-$arch
  mkdir -p "$to" "$apt/etc/apt/preferences.d" "$apt/etc/apt/apt.conf.d" "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : > "$apt/status"
  echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$apt/etc/apt/sources.list"
  cat > "$apt/conf" <<EOF
Dir::Etc "$apt/etc/apt";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
EOF
  APT_CONFIG=$apt/conf apt-get update -qq
  APT_CONFIG=$apt/conf apt-get install -qq -y --download-only "$@" >/dev/null
  # Where / is not merged into /usr, a package's /lib would take the place of the link.
  for dir in bin lib sbin; do mkdir -p "$to/usr/$dir"; ln -sfn usr/$dir "$to/$dir"; done
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar xf - -C "$to" --keep-directory-symlink; done
  rm -rf "$apt/cache"
  find "$to" -type l -lname '/*' | while read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$to$(readlink "$link")")" "$link"
  done
  touch "$to.done"
}

unpack arm64 "$root" $libraries
unpack amd64 "$tools" $programs
qemu="$tools/usr/bin/qemu-aarch64-static -L $root"

build() {
  LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu make -s BUILD=aarch64 RUNNER="env -u LD_LIBRARY_PATH $qemu" \
    CC="$tools/usr/bin/aarch64-linux-gnu-gcc --sysroot=$root -B$tools/usr/bin/aarch64-linux-gnu-" \
    LLVM_CFLAGS="-isystem $root/usr/include/llvm-c-19 -isystem $root/usr/lib/llvm-19/include" \
    LLVM_LIBS="-L$root/usr/lib/llvm-19/lib -lLLVM-19" ERL_CFLAGS="-isystem $root/usr/lib/erlang/usr/include" \
    STRUCT_CFLAGS= CHECK_CFLAGS= CHECK_LIBS="-lcheck_pic -lsubunit -lrt -lm" "$@"
}

# Emulation is about twenty times slower than the machine, and keeps no limit on the address space: test_jit's
# no_thread_can_start fails there, and test_jit_link, as seccomp is not emulated.
test_c() {
  export CK_TIMEOUT_MULTIPLIER=10 CK_DEFAULT_TIMEOUT=600
  if [ $# -gt 0 ]; then build test-c T="$*"; else build test-c; fi
}

session='
  A = tessera:tensor([[1, 2], [3, 4]], f32),
  F = tessera:jit(fun(X) -> tessera:sum(tessera:tanh(tessera:dot(X, tessera:transpose(X)))) end),
  4.0 = math:ceil(tessera:to_number(F(A))),
  [[2.0, 4.0], [6.0, 8.0]] = tessera:to_list((tessera:grad(fun(X) -> tessera:sum(tessera:multiply(X, X)) end))(A)),
  100000 = tessera:to_number((tessera:jit(fun(N) -> tessera:while(0, fun(I) -> tessera:less(I, N) end,
                                                                  fun(I) -> tessera:add(I, 1) end) end))(100000)),
  try tessera:dot(A, tessera:tensor([1, 2, 3])) of _ -> halt(1)
  catch error:{invalid_argument, Text} -> io:format("~ts~n", [Text]) end,
  io:format("~s: ~p~n", [erlang:system_info(system_architecture), maps:get(jit, tessera:memory())])'

# The VM is started without its shell scripts: what it runs itself, the emulator does not. Erlang code is this machine's.
# Code that is written at one address and run at another is more than the emulator follows: with perf it is mapped once.
test_erl() {
  build nif
  make -s erl
  rm -rf build/aarch64/app/ebin && cp -r ebin build/aarch64/app/ebin
  session_in build/aarch64/app "$@"
}

# Without MPI: the library for it would want that machine's.
test_precompiled() {
  build precompiled MPI= HOST_CC=cc STRIP="$tools/usr/bin/aarch64-linux-gnu-strip" LLVM_LIBDIR="$root/usr/lib/llvm-19/lib" \
    STATIC_PREFIX="-B$root/usr/lib/gcc/aarch64-linux-gnu/12/" "$@"
  rm -rf build/aarch64/precompiled && mkdir -p build/aarch64/precompiled
  tar xzf build/precompiled/tessera-[0-9]*-aarch64-linux-gnu.tar.gz -C build/aarch64/precompiled --strip-components=1
  session_in build/aarch64/precompiled
}

session_in() {
  application=$1
  shift
  otp=$root/usr/lib/erlang
  bin=$(ls -d "$otp"/erts-*/bin)
  if [ ! -e "$bin/erl_child_setup.target" ]; then
    mv "$bin/erl_child_setup" "$bin/erl_child_setup.target"
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$qemu" "$bin/erl_child_setup.target" > "$bin/erl_child_setup"
    chmod +x "$bin/erl_child_setup"
  fi
  BINDIR=$bin ROOTDIR=$otp EMU=beam PROGNAME=erl TESSERA_CACHE_DIR='' $qemu "$bin/beam.smp" -S 2:2 -JPperf true -- \
    -root "$otp" -bindir "$bin" -progname erl -- -home "$HOME" -- -boot "$otp/bin/start_clean" \
    -noshell -noinput -pa "$application/ebin" -eval "${1:-$session}, halt(0)."
}

case ${1:-all} in
all) test_c; test_erl ;;
c) shift; test_c "$@" ;;
erl) shift; test_erl "$@" ;;
precompiled) shift; test_precompiled "$@" ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

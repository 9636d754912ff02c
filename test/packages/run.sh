#!/bin/bash
# The package and the precompiled library, seen from a project that has nothing else: the files of the package, the symbols
# and dependencies of the library, fetching it, and projects of Mix and rebar3 that build without make and a compiler.
# `make test-packages` makes build/precompiled/ before. Talks to a loopback port only.
#
#   test/packages/run.sh          all but these
#   test/packages/run.sh all      with a project of Mix
#   test/packages/run.sh root     in a Debian that has erlang-base and nothing else; needs root and debootstrap
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
here=$PWD made=$PWD/build/precompiled passed=0 cache=$(mk/debian-root.sh cache)
PATH=$PATH:$PWD/.tools
unset MAKEFLAGS MFLAGS MAKELEVEL TESSERA_BUILD TESSERA_PRECOMPILED_URL TARGET_ARCH TARGET_OS TARGET_ABI
work=$(mktemp -d) || exit 2
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null
  rm -rf --one-file-system "$work"
}
trap finish EXIT
export HOME=$work/home HEX_OFFLINE=1 MIX_ARCHIVES=$work/archives ELIXIR_MAKE_CACHE_DIR=$work/cache TESSERA_CACHE_DIR=
mkdir -p "$HOME"

fail() {
  echo "packages: $1"
  [ ! -f "$work/log" ] || cat "$work/log"
  echo "packages: $passed passed, 1 failed"
  exit 1
}
pass() { passed=$((passed + 1)); echo "packages: $1"; }
# Where everything must be there, what is not is a failure.
left_out() {
  echo "packages: left out, $1"
  [ -z "${TESSERA_CI:-}" ] || exit 1
}

artefact=$(cd "$made" && ls tessera-nif-*-"$(uname -m)"-linux-gnu-*.tar.gz) || exit 2
version=$(sed -n 's/.*{vsn, *"\([^"]*\)"}.*/\1/p' erl/tessera.app.src)
target=${artefact#tessera-nif-*-} target=${target%-"$version".tar.gz}
application=$made/tessera-$version-$target.tar.gz

# ---- in a root with erlang-base only

# The clock begins with unpacking. No program of the root but Erlang's is used, and no cache of kernels is there.
in_root() {
  tar xzf "$made/$artefact" -C "$work" ./tessera_nif.so || exit 2
  ! readelf -d "$work/tessera_nif.so" | grep -q libsleef || { left_out "a root: made with SLEEF=shared (SLEEF_SOURCE=FOLDER)"; return; }
  local release root status=0
  for release in bookworm trixie; do
    root=$cache/$release-erlang
    if [ ! -d "$root" ]; then
      mk/debian-root.sh make "$release" "$root.part" || status=$?
      [ $status != 77 ] || { left_out "no roots on this machine"; return; }
      mk/debian-root.sh run "$root.part" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends erlang-base && apt-get clean' >"$work/log" 2>&1 || fail "no erlang-base in $root"
      mv "$root.part" "$root"
    fi
    rm -rf "$root/srv/tessera" && mkdir -p "$root/srv/tessera" && cp "$application" "$root/srv/tessera/"
    mk/debian-root.sh run "$root" sh -euc '! command -v cc && ! command -v make && ! ls /usr/lib/*/libLLVM* /usr/lib/*/libsleef* 2>/dev/null
      cd /srv/tessera && began=$(date +%s%N) && tar xzf tessera-*.tar.gz
      ERL_LIBS=/srv/tessera erl -noshell -eval "
        F = tessera:jit(fun(X, W) -> tessera:tanh(tessera:asin(tessera:multiply(tessera:dot(X, W), 0.01))) end),
        A = tessera:tensor([[1, 2], [3, 4]], f32),
        [[B | _] | _] = tessera:to_list(F(A, A)), true = abs(B - math:tanh(math:asin(0.07))) < 1.0e-6,
        io:format(\"OTP ~s: ~p, \", [erlang:system_info(otp_release), B]), halt()."
      echo "$((($(date +%s%N) - began) / 1000000)) ms from unpacking, $(du -sm . | cut -f 1) MB with the archive"' >"$work/log" 2>&1 ||
      fail "the application does not run on $release with erlang-base only"
    pass "$release with erlang-base only: $(cat "$work/log")"
  done
}

if [ "${1:-}" = root ]; then
  in_root
  echo "packages: $passed passed, 0 failed"
  exit
fi

# ---- what the library shows, needs and weighs

mkdir "$work/priv" && tar xzf "$made/$artefact" -C "$work/priv" || exit 2
library=$work/priv/tessera_nif.so
nm -D --defined-only "$library" | awk '{ print $3 }' >"$work/log"
[ "$(cat "$work/log")" = nif_init ] || fail "the library shows more, or less, than nif_init"
pass "the library shows nif_init only"

needed() { readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|ld-linux-.*)\.so\.[0-9]+$'; }
without_sleef=
case $(needed | tr '\n' ' ') in
"") pass "the library needs glibc only" ;;
"libsleef.so.3 ") without_sleef=-DWITHOUT_SLEEF; pass "the library needs glibc and, as it was made with SLEEF=shared, libsleef" ;;
*) needed >"$work/log"; fail "the library needs others" ;;
esac

# Debian 12's are 2.36 and 2.16.
newest=$(objdump -T "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
{ echo GLIBC_2.36; echo "$newest"; } | sort -cV 2>/dev/null && [ "$newest" != GLIBC_2.36 ] && echo "packages: made for a newer glibc than Debian 12's: $newest"

megabytes=$(du -sm "$work/priv" | cut -f 1) packed=$(du -m "$made/$artefact" | cut -f 1)
[ "$megabytes" -le 60 ] && [ "$packed" -le 20 ] || fail "the library has $megabytes MB, packed $packed MB; 60 and 20 are the limits"
[ "$(tar xzOf "$application" | wc -c)" -le 60000000 ] && [ "$(du -m "$application" | cut -f 1)" -le 20 ] || fail "the application is larger"
pass "$megabytes MB, packed $packed MB"

# ---- beside another library with an LLVM of its own

mkdir "$work/application" && tar xzf "$application" -C "$work/application" --strip-components=1
includes=$(erl -noshell -eval 'io:put_chars(code:root_dir() ++ "/usr/include"), halt().')
{ ${CC:-cc} -std=c11 -O1 -Wall -Wextra -fPIC -shared $without_sleef -I"$includes" -o "$work/foreign.so" test/packages/foreign.c -ldl &&
  erlc -o "$work" test/packages/foreign.erl; } >"$work/log" 2>&1 || fail "foreign.c does not compile"
beside_foreign() { erl -noshell -pa "$1" "$work" -eval "foreign:run(\"$work/foreign\"), halt()." >"$work/log" 2>&1; }
beside_foreign "$work/application/ebin" && [ "$(cat "$work/log")" = ran ] || fail "another library's LLVM is taken for the own one"
pass "another LLVM in the same VM stays apart"
# The test sees such a thing: a library with a shared LLVM takes the other one's functions.
if readelf -d priv/tessera_nif.so | grep -q libLLVM; then
  ! beside_foreign ebin && grep -q 'called in the wrong library' "$work/log" || fail "the test does not see another library's LLVM"
  pass "the test sees a library that takes another one's LLVM"
fi

# ---- the bits of the library that is compiled here: Debian's LLVM and SLEEF are linked to both, in two ways

erlc -o "$work" test/packages/bits.erl >"$work/log" 2>&1 || fail "bits.erl does not compile"
isas=
case $target in x86_64-*) isas=sse4 ;; esac
for isa in $isas ""; do
  digests=
  for ebin in ebin "$work/application/ebin"; do
    digest=$(env ${isa:+TESSERA_ISA=$isa} erl -noshell -pa "$ebin" "$work" -eval 'bits:main(), halt().' 2>"$work/log") || fail "functions fail in $ebin"
    digests="$digests $digest"
  done
  read -r here_digest made_digest <<<"$digests"
  [ -n "$here_digest" ] && [ "$here_digest" = "$made_digest" ] || fail "other bits than those of the library that is compiled here${isa:+, with $isa}: $digests"
done
pass "the library gives the bits of the one that is compiled here"

# ---- the VM ends while the library compiles: LLVM's objects are still there

ends_early() {
  erl -noshell -pa "$work/application/ebin" -eval '
    [spawn(fun() -> (tessera:jit(fun(X) -> tessera:add(tessera:exp(tessera:multiply(X, N)), tessera:log(X)) end))(tessera:ones({4}, f32)) end)
     || N <- lists:seq(1, 8)],
    timer:sleep('"$1"'), halt().' >"$work/log" 2>&1
}
for ms in 0 20 40 60 80 120; do ends_early $ms && [ ! -s "$work/log" ] || fail "the VM does not end well $ms ms after the start of compilations"; done
pass "a VM that ends while kernels are compiled ends well"

# ---- what the package holds

mk/package.escript files 2>"$work/log" | sort >"$work/files" || fail "no list of files"
! grep -E '\.(so|o|a|beam)$|^(build|ebin|priv|test|_build)/' "$work/files" >"$work/log" || fail "the package has what is built"
# What the compiler has read, and what make wants to make it of.
cat build/normal/c_src/*/*.d build/normal/c_src/*/*/*.d 2>/dev/null | tr -s ' \\\n:' '\n' | grep -E '^(c_src|include)/' | sort -u >"$work/read"
[ "$(wc -l <"$work/read")" -gt 300 ] || fail "build/normal does not tell what the compiler has read"
comm -23 "$work/read" "$work/files" >"$work/log"
[ ! -s "$work/log" ] || fail "the package lacks what the compiler reads"
pass "the package holds the $(wc -l <"$work/read") files that the compiler reads, of $(wc -l <"$work/files")"

# A copy of the sources, made to a package by its own script.
mkdir "$work/stage" && tar -c -T "$work/files" | tar -x -C "$work/stage" && cp "$made/checksum.exs" "$work/stage/"
(cd "$work/stage" && make -n native >"$work/log" 2>&1) || fail "make in the package lacks something"
rm -rf "$work/stage/build"
(cd "$work/stage" && mk/package.escript build "$work") >"$work/log" 2>&1 || fail "the package cannot be made"
mk/package.escript unpack "$work/tessera-$version.tar" "$work/package" >"$work/log" 2>&1 || fail "Hex's code does not read the package"
cp -a "$work/package" "$work/fresh"
cmp -s "$made/checksum.exs" "$work/package/checksum.exs" || fail "the package has no checksum.exs"
pass "Hex's code makes and reads the package"

# ---- how the library is fetched

cd "$work/package" || exit 2
# fetches STATUS WORDS [SETTING...]: the status, and words of what is printed
fetches() {
  local status=0 expected=$1 words=$2
  shift 2
  env "$@" escript mk/native.escript fetch >"$work/log" 2>&1 || status=$?
  [ $status = "$expected" ] || fail "fetching with $* ends with $status, not with $expected"
  grep -qF -- "$words" "$work/log" || [ -z "$words" ] || fail "fetching with $* does not say: $words"
  rm "$work/log"
}
is_there() { cmp -s priv/tessera_nif.so "$library"; }

mkdir "$work/a folder" && cp "$made/$artefact" "$work/a folder/"
fetches 0 "" TESSERA_PRECOMPILED_URL="$work/a folder" && is_there || fail "nothing was fetched from a folder"
fetches 0 "" TESSERA_PRECOMPILED_URL=/nowhere # it is there, and nothing is asked
fetches 3 "" TESSERA_BUILD=1
[ ! -e priv/tessera_nif.so ] || fail "make would take the fetched library for its own"
fetches 0 "" TESSERA_PRECOMPILED_URL="file://${work// /%20}/a%20folder/@{artefact_filename}" && is_there || fail "nothing was fetched by file:"
rm -r priv
fetches 1 "/nowhere/$artefact is not there" TESSERA_PRECOMPILED_URL=/nowhere
fetches 1 "TESSERA_BUILD=1 compiles it here" TESSERA_PRECOMPILED_URL=/nowhere
fetches 1 "there is no ftp:" TESSERA_PRECOMPILED_URL=ftp://nowhere
fetches 3 "no precompiled library for riscv64-linux-gnu" TARGET_ARCH=riscv64
printf 'damaged' >>"$work/a folder/$artefact"
fetches 1 "it was not unpacked" TESSERA_PRECOMPILED_URL="$work/a folder"
[ ! -e priv ] || fail "a damaged archive was unpacked"
# A library for NIFs of a newer OTP does not fit this one. Of several that fit, the newest is taken.
newer=$(erl -noshell -eval '[A, B] = string:lexemes(erlang:system_info(nif_version), "."),
  io:format("~s.~b", [A, list_to_integer(B) + 1]), halt().')
sed -i "s/nif-[0-9.]*-/nif-$newer-/" checksum.exs
fetches 3 "no precompiled library for $target and version" TESSERA_PRECOMPILED_URL="$made"
mv checksum.exs "$work/other.exs"
fetches 3 "" TESSERA_PRECOMPILED_URL="$made"
cp "$made/checksum.exs" .
pass "a folder, damaged and missing files, other machines: fetched, or said why not"

mkfifo "$work/stdin"
escript "$here/test/packages/server.escript" "$made" "$work/port" <"$work/stdin" &
server=$!
exec 8>"$work/stdin" # closed at the end
until [ -s "$work/port" ]; do kill -0 $server 2>/dev/null || fail "the server ends"; sleep 0.1; done
url=http://127.0.0.1:$(cat "$work/port")
# by_http NAME [SETTING...]
by_http() {
  local name=$1
  shift
  rm -rf priv "$work/cache"
  fetches 1 "" TESSERA_PRECOMPILED_URL="$url/@{artefact_filename}.not" "$@"
  fetches 0 "downloading $url" TESSERA_PRECOMPILED_URL="$url" "$@"
  is_there || fail "$name has fetched something else"
  rm -r priv
  fetches 0 "" TESSERA_PRECOMPILED_URL="$url" PATH=/nowhere:"$PATH" "$@"
  pass "fetched by $name, and then from the cache"
}
downloaders=
for program in curl wget; do ! command -v $program >/dev/null || downloaders="$downloaders $program"; done
for program in $downloaders ""; do
  [ -n "$program" ] || erl -noshell -eval 'halt(case code:lib_dir(inets) of {error, _} -> 1; _ -> 0 end).' || continue
  rm -rf "$work/bin" && mkdir "$work/bin"
  for tool in env sh escript erl dirname basename sha256sum $program; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v $tool)" >"$work/bin/$tool" && chmod +x "$work/bin/$tool"
  done
  by_http "${program:-Erlang}" PATH="$work/bin"
done
exec 8>&-
cd "$here" || exit 2

# ---- projects that have the package and nothing else: make and compilers end the test

mkdir "$work/none"
for tool in make gmake cc gcc cc1 c99 clang ld llvm-config-19; do
  printf '#!/bin/sh\necho "$0 $*" >>"%s"\nexit 99\n' "$work/called" >"$work/none/$tool" && chmod +x "$work/none/$tool"
done
without() { env PATH="$work/none:$PATH" CC=cc TESSERA_PRECOMPILED_URL="$made" "$@"; }

beside_rebar3() {
  mkdir -p "$work/by_rebar3/src" "$work/by_rebar3/_checkouts"
  cp -a "$work/fresh" "$work/by_rebar3/_checkouts/tessera"
  echo '{deps, [tessera]}.' >"$work/by_rebar3/rebar.config"
  echo '{application, user, [{description, "uses tessera"}, {vsn, "1"}, {applications, [kernel, stdlib, tessera]}]}.' >"$work/by_rebar3/src/user.app.src"
  cd "$work/by_rebar3" && without rebar3 compile >"$work/log" 2>&1 || fail "a project of rebar3 does not compile"
  cd "$here" || exit 2
  without erl -noshell -pa "$work"/by_rebar3/_build/default/*/*/ebin -eval \
    '[1.0] = tessera:to_list((tessera:jit(fun tessera:cos/1))(tessera:tensor([0.0]))),
     {ok, {docs_v1, _, erlang, _, #{<<"en">> := _}, _, _}} = code:get_doc(tessera), io:format("ran"), halt().' >"$work/log" 2>&1
  [ "$(cat "$work/log")" = ran ] || fail "a project of rebar3 does not run"
  [ ! -e "$work/called" ] || { cp "$work/called" "$work/log"; fail "a project of rebar3 calls what is not there"; }
  pass "a project of rebar3 with the package only"
}

beside_mix() {
  mkdir -p "$work/by_mix/lib"
  cat >"$work/by_mix/mix.exs" <<END
defmodule User.MixProject do
  use Mix.Project
  def project, do: [app: :user, version: "0.1.0", deps: [{:tessera, path: "$work/fresh"}]]
end
END
  echo 'defmodule User do
  def run do
    [1.0] = :tessera.to_list(:tessera.jit(&:tessera.cos/1).(:tessera.tensor([0.0])))
    %Tessera.Client{name: :host} = Tessera.Client.fetch!(:host)
    IO.write("ran")
  end
end' >"$work/by_mix/lib/user.ex"
  cd "$work/by_mix" && without env LC_ALL=C.UTF-8 mix compile >"$work/log" 2>&1 || fail "a project of Mix does not compile"
  without env LC_ALL=C.UTF-8 mix run -e 'User.run()' >"$work/log" 2>&1 && grep -q ran "$work/log" || fail "a project of Mix does not run"
  cd "$here" || exit 2
  [ ! -e "$work/called" ] || { cp "$work/called" "$work/log"; fail "a project of Mix calls what is not there"; }
  pass "a project of Mix with the package only"
}

if command -v rebar3 >/dev/null; then beside_rebar3; else left_out "no rebar3 here"; fi
if [ "${1:-}" != all ]; then
  echo "packages: left out, a project of Mix (make test-all)"
elif command -v mix >/dev/null; then
  beside_mix
else
  left_out "no Elixir here"
fi
echo "packages: $passed passed, 0 failed"

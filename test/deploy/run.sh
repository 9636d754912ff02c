#!/bin/bash
# What deploy/ has, by its parts: no Docker and no systemd are needed. The service on this machine, with limits of control groups.
#
#   test/deploy/run.sh          the service; the unit of systemd where systemd-analyze is
#   test/deploy/run.sh root     also the Dockerfile's stages "node" and "cluster": their steps in a Debian 13, then what containers
#                               would start, as their user; needs root, debootstrap and build/precompiled/ (make precompiled)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
here=$PWD passed=0 service= cache=$(mk/debian-root.sh cache)
work=$(mktemp -d) || exit 2
finish() {
  [ -z "$service" ] || kill -KILL "$service" 2>/dev/null
  rm -rf --one-file-system "$work"
}
trap finish EXIT
unset ERL_LIBS TESSERA_CODE TESSERA_START TESSERA_ADDRESS
export HOME=$work

fail() {
  echo "deploy: $1"
  for log in "$work/log" "$work/service.log"; do [ ! -f "$log" ] || cat "$log"; done
  echo "deploy: $passed passed, 1 failed"
  exit 1
}
pass() { passed=$((passed + 1)); echo "deploy: $1"; }
left_out() { echo "deploy: left out, $1"; }

# A port that nothing has now, below those that Linux gives to sockets without a number.
TESSERA_PORT=$(erl -noshell -eval 'Free = fun Free() -> P = 20000 + rand:uniform(12000), case gen_tcp:listen(P, [{ip, {127, 0, 0, 1}}]) of {ok, _} -> P; _ -> Free() end end,
  io:format("~b", [Free()]), halt().')
export TESSERA_PORT

# begins COMMAND...: until the service is healthy, or has ended
begins() {
  "$@" >"$work/service.log" 2>&1 &
  service=$!
  until deploy/health >"$work/log" 2>&1; do
    kill -0 $service 2>/dev/null || { service=; fail "the service ends at its start"; }
    sleep 0.1
  done
  [ "$(cat "$work/log")" = ok ] || fail "the service is healthy, but does not say ok"
}
# Docker and systemd send SIGTERM; what exec has put in the place of a shell gets it.
ends() {
  local status=0
  kill -TERM "$service"
  wait "$service" || status=$?
  service=
  [ $status = 0 ] || fail "the service ends with $status at SIGTERM"
  ! deploy/health >"$work/log" 2>&1 || fail "what has ended is healthy"
}
get() {
  exec 3<>"/dev/tcp/127.0.0.1/$TESSERA_PORT" && printf '%s\r\n\r\n' "$1" >&3 && cat <&3
  exec 3<&-
}
metric() { get "GET /metrics HTTP/1.0" | sed -n "s/^tessera_$1 //p"; }

# ---- the service on this machine

mkdir -p "$work/opt" "$work/code" "$work/deploy"
ln -s "$here" "$work/opt/tessera"
cp deploy/node "$work/deploy/" && erlc -o "$work/deploy" deploy/service.erl >"$work/log" 2>&1 || fail "service.erl does not compile"
cat >"$work/code/mine.erl" <<'END'
-module(mine).
-export([start/0]).
start() -> io:format("mine: ~p~n", [tessera:to_list(tessera:add(tessera:tensor([1, 2]), 1))]).
END
erlc -o "$work/code" "$work/code/mine.erl" || exit 2
here_env=(env ERL_LIBS="$work/opt" TESSERA_CACHE_DIR="$work/cache" TESSERA_CODE="$work/code")

begins "${here_env[@]}" TESSERA_START=mine "$work/deploy/node"
grep -qx 'mine: \[2,3\]' "$work/service.log" || fail "the module of the user was not started"
[ "$(metric kernels)" -ge 1 ] || fail "the metrics have no kernel"
get "GET /else HTTP/1.0" | head -n 1 | grep -q 404 || fail "another path is not 404"
get "POST /health HTTP/1.0" | head -n 1 | grep -q 405 || fail "another method is not 405"
printf 'nonsense\r\n\r\n' | timeout 10 cat >"/dev/tcp/127.0.0.1/$TESSERA_PORT"
deploy/health >"$work/log" 2>&1 || fail "nonsense ends the service"
ends
pass "the service is healthy, has metrics, and ends at SIGTERM"
[ -n "$(find "$work/cache" -type f)" ] || fail "the folder of the cache is empty"
begins "${here_env[@]}" "$work/deploy/node"
[ "$(metric kernels_loaded_total)" -ge 1 ] && [ "$(metric kernels_compiled_total)" = 0 ] || { get "GET /metrics HTTP/1.0" >"$work/log"; fail "kernels are compiled again"; }
ends
pass "the next start finds its kernels"

status=0
env -u TESSERA_PORT "${here_env[@]}" TESSERA_PORT=none "$work/deploy/node" >"$work/service.log" 2>&1 || status=$?
[ $status = 1 ] && grep -q '^service: ' "$work/service.log" || fail "a wrong port does not end the service with a reason"
TESSERA_START=absent status=0
"${here_env[@]}" TESSERA_START=absent "$work/deploy/node" >"$work/service.log" 2>&1 || status=$?
[ $status = 1 ] && grep -q absent "$work/service.log" || fail "a missing module does not end the service with a reason"
pass "a service that cannot start says why"

# ---- limits of control groups, of both versions: files as the system would show them, seen by the service alone

limits=(memory.max 536870912 memory/memory.limit_in_bytes 536870912 cpu.max "100000 100000" cpu/cpu.cfs_quota_us 100000 cpu/cpu.cfs_period_us 100000)
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
  for ((i = 0; i < ${#limits[@]}; i += 2)); do
    mkdir -p "$(dirname "$work/groups/${limits[i]}")" && echo "${limits[i + 1]}" >"$work/groups/${limits[i]}"
  done
  mkdir -p "$work/groups/cpu,cpuacct" && cp "$work/groups/cpu/"* "$work/groups/cpu,cpuacct/"
  begins "${here_env[@]}" unshare --mount --propagation private sh -c 'mount --bind "$1" /sys/fs/cgroup && shift && exec "$@"' sh "$work/groups" "$work/deploy/node"
  grep -q 'with 1 CPUs and 409 MB of tensors' "$work/service.log" || fail "limits of 1 CPU and 512 MB are not read"
  [ $(($(metric memory_limit_bytes) >> 20)) = 409 ] || fail "the limit is not 80 % of 512 MB"
  ends
  pass "the limits of the control group are the service's"
else
  left_out "limits of control groups: no mounts are allowed here"
fi

# ---- the unit of systemd, whose paths are those of an installed one

unit() { sed -n "s/^$1=//p" deploy/tessera.service; }
[ "$(unit ExecStart)" = /opt/tessera/deploy/node ] && [ -x deploy/node ] || fail "the unit starts something else"
if command -v systemd-analyze >/dev/null; then
  sed "s|^ExecStart=.*|ExecStart=$work/deploy/node|" deploy/tessera.service >"$work/tessera.service"
  systemd-analyze verify "$work/tessera.service" >"$work/log" 2>&1 && [ ! -s "$work/log" ] || fail "systemd refuses the unit"
  pass "systemd takes the unit"
else
  left_out "systemd's own check of the unit: no systemd-analyze here"
fi
# MemoryDenyWriteExecute, where the kernel has it (6.3).
cat >"$work/restricted.c" <<'END'
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
  return count < 2 || prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) ? 77 : execvp(words[1], words + 1);
}
END
${CC:-cc} -o "$work/restricted" "$work/restricted.c" >"$work/log" 2>&1 || fail "restricted.c does not compile"
restricted=("$work/restricted") words=" and its restriction of memory"
[ "$(unit MemoryDenyWriteExecute)" = yes ] || fail "the unit allows memory that can be written and executed"
"${restricted[@]}" true || { restricted=() words=; left_out "the unit's restriction of memory: this kernel has none"; }
read -ra unit_env < <(unit Environment)
begins env -i PATH="$PATH" "${unit_env[@]/\/opt/$work/opt}" TESSERA_CACHE_DIR="$work/unit" HOME="$work/unit" TESSERA_PORT="$TESSERA_PORT" \
  "${restricted[@]}" "$work/deploy/node"
[ "$(metric kernels_compiled_total)" -ge 1 ] || fail "nothing was compiled"
ends
pass "the service runs with the unit's environment$words"

[ "${1:-}" = root ] || { echo "deploy: $passed passed, 0 failed"; exit; }

# ---- the Dockerfile's stages

root=$work/root user='' volumes=() environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin) health='' command=''
application=$(ls build/precompiled/tessera-[0-9]*-"$(uname -m)"-linux-gnu.tar.gz) || exit 2
inside() { mk/debian-root.sh run "$root" env -u HOME "${environment[@]}" "$@"; }

instruction() {
  case $1 in
  FROM)
    case $2 in
    "debian:13 AS node") mk/debian-root.sh make trixie "$cache/trixie" && cp -a --reflink=auto "$cache/trixie" "$root" || exit 2 ;;
    "node AS cluster") ;; # the same root
    *) fail "the stage begins with $2" ;;
    esac
    ;;
  RUN) inside env DEBIAN_FRONTEND=noninteractive sh -c "$2" >"$work/log" 2>&1 || fail "fails: RUN $2" ;;
  COPY)
    case $2 in
    "--from=build /tessera /opt/tessera") mkdir -p "$root/opt/tessera" && tar xzf "$application" -C "$root/opt/tessera" --strip-components=1 ;;
    "deploy "* | "examples "*) mkdir -p "$root${2#* }" && git ls-files -z --cached --others --exclude-standard "${2%% *}" | tar -c --null -T - | tar -x -C "$root${2#* }" --strip-components=1 ;;
    *) fail "unknown: COPY $2" ;;
    esac
    ;;
  ENV) read -ra words <<<"$2" && environment+=("${words[@]}") ;;
  USER) user=$2 ;;
  VOLUME) volumes+=("$2") ;;
  EXPOSE) [ "$2" = 9464 ] || fail "another port than the service's is exposed" ;;
  HEALTHCHECK) health=${2#*CMD } ;;
  CMD) command=$2 ;;
  *) fail "unknown: $1 $2" ;;
  esac
}
# stage NAME: its instructions, each on a line
stage() {
  while read -r name rest; do instruction "$name" "$rest"; done < <(
    sed -e '/^#/d' -e '/^$/d' deploy/Dockerfile | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ta' -e '}' |
      awk -v name="$1" '$1 == "FROM" { inside = $4 == name } inside')
}
stage node
pass "the steps of the image: $(inside dpkg-query -W -f '${Installed-Size}\n' | awk '{ kb += $1 } END { print int(kb / 1024) }') MB of packages, $(du -sm "$root/opt" | cut -f 1) MB of Tessera"

[ "${user%%:*}" -gt 0 ] || fail "the image runs as root"
# Each program takes the place of the one before it, so that signals reach the last.
as_user=(mk/debian-root.sh run "$root" env -u HOME "${environment[@]}" TESSERA_PORT="$TESSERA_PORT"
  setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs sh -c)
begins "${as_user[@]}" "$command"
"${as_user[@]}" "$health" >"$work/log" 2>&1 && grep -qx ok "$work/log" || fail "the image's health check fails"
begun_by=$(stat -c %u "/proc/$service")
[ "$begun_by" = "${user%%:*}" ] || fail "the service runs as $begun_by"
[ -n "$(find "$root${volumes[0]}" -type f)" ] || fail "the volume is empty"
grep -q 'cannot\|not used' "$work/service.log" && fail "the service warns"
ends
pass "what the image starts is healthy, as the user $user, and keeps its kernels in ${volumes[0]}"

stage cluster
[ "${user%%:*}" -gt 0 ] || fail "the hosts of the cluster run as root"
test/deploy/cluster.sh "$root" "$user" "$command" "$health" "${environment[@]}" >"$work/log" 2>&1 || fail "the cluster of two fails"
accuracy=$(sed -n 's/^test accuracy //p' "$work/log" | tail -n 1)
if [ -n "$accuracy" ]; then pass "a cluster of two hosts has learnt digits: $accuracy"; else left_out "a cluster: $(tail -n 1 "$work/log")"; fi
echo "deploy: $passed passed, 0 failed"

#!/bin/bash
# What compose.yml starts, on two hosts that are namespaces: a worker, then the driver, whose output is printed. Both see one root,
# so they share the home; /tmp and the shared memory are each one's own.
#   test/deploy/cluster.sh ROOT USER:GROUP WORKER-COMMAND WORKER-HEALTH NAME=VALUE...
cd "$(dirname "$0")/../.." || exit 2
root=$1 user=$2 worker=$3 health=$4
shift 4
environment=("$@")
what="deploy"
. test/mpi/namespaces.sh

# The last one of that key.
compose() { sed -n "s/^ *$1: *//p" deploy/compose.yml | tail -n 1 | tr -d '"'; }
hosts=$(compose HOSTS) driver=$(sed -n 's/.*command: \["\(.*\)"\]$/\1/p' deploy/compose.yml)
[ "$hosts" = driver,worker ] && [ -n "$driver" ] || { echo "compose.yml has other hosts"; exit 1; }
printf '127.0.0.1 localhost\n10.213.1.1 driver\n10.213.1.2 worker\n' >"$root/etc/hosts"
rm -rf "$root/home/tessera/.ssh"
cat >"$folder/start" <<'END'
#!/bin/sh
# HOSTNAME USER:GROUP COMMAND
hostname "$1"
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
cd /
exec setpriv --reuid "${2%:*}" --regid "${2#*:}" --clear-groups --no-new-privs sh -c "$3"
END
install -m 755 "$folder/start" "$root/srv/start"

# on NAMESPACE HOSTNAME COMMAND: the agent reads its words once more
on() {
  local words=("$PWD/mk/debian-root.sh" run "$root" env -u HOME "${environment[@]}" HOSTS="$hosts" RANKS="$(compose RANKS)" /srv/start "$2" "$user" "$3")
  "$folder/agent" "$1" "${words[@]@Q}"
}
on "$b" worker "$worker" >"$folder/worker.log" 2>&1 &
status=0
on "$a" driver "$driver" || status=$?
[ $status = 0 ] && { on "$b" worker "$health" || { status=1; echo "the worker is not healthy"; }; }
[ $status = 0 ] || { echo "the worker:"; cat "$folder/worker.log"; }
exit $status

# Two hosts for hosts.sh and slurm.sh: network namespaces with names of their own. Both scripts set `what`, the name of
# their tests, and then read this file. Two cables join the hosts: 10.213.1.1 and 10.213.1.2 on `control`,
# 10.213.2.1 and 10.213.2.2 on `data`. Needs root, and a system that allows namespaces; else says why the tests do
# nothing, which is a failure where nothing may be left out (TESSERA_CI). Sets
#
#   a, b      the names of the hosts
#   folder    a folder that both see. Its program `agent HOST COMMAND...` runs a command on a host. Each host has a folder
#             `own` in it for itself, and on the second one `disk` is a small disk
#
# All that runs in the namespaces is killed at the end, and nothing is left.
left_out() {
  echo "$what: left out: $1"
  [ -z "${TESSERA_CI:-}" ] || { echo "$what: 0 passed, 1 failed"; exit 1; }
  exit 0
}

command -v mpirun >/dev/null || left_out "no Open MPI here (./setup --mpi)"
command -v ip >/dev/null || left_out "no program ip here: Debian's package iproute2 (./setup --mpi)"
[ "$(id -u)" = 0 ] || left_out "needs root"
a=tsa$$ b=tsb$$ folder=$(mktemp -d) made=
export TMPDIR="$folder" # daemons of MPI that are killed leave folders

# Only what runs in the namespaces, by pid.
end_all() {
  for host in $a $b; do
    for pid in $(ip netns pids $host 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
    ip netns del $host 2>/dev/null
  done
  [ -z "$made" ] || rm -f /etc/hosts
  rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 1' INT TERM

for host in $a $b; do
  ip netns add $host 2>"$folder/why" || left_out "no network namespaces here: $(tail -n 1 "$folder/why")"
  ip -n $host link set lo up || exit 1
done
unshare --uts true 2>/dev/null || left_out "no names of hosts of their own here"
for cable in control data; do
  [ $cable = control ] && net=10.213.1 || net=10.213.2
  ip -n $a link add $cable type veth peer name $cable netns $b 2>"$folder/why" || left_out "no veth here: $(tail -n 1 "$folder/why")"
  ip -n $a addr add $net.1/24 dev $cable && ip -n $b addr add $net.2/24 dev $cable &&
    ip -n $a link set $cable up && ip -n $b link set $cable up || exit 1
done

# A minimal Debian has no file to put the names of the hosts over.
[ -e /etc/hosts ] || { made=yes && : >/etc/hosts; } || exit 1
mkdir "$folder/disk" "$folder/own" "$folder/own-b" || exit 1
printf '127.0.0.1 localhost\n10.213.1.1 %s\n10.213.1.2 %s\n' $a $b >"$folder/names"
cat >"$folder/agent" <<END
#!/bin/sh
host=\$1
shift
disk=:
[ \$host = $a ] || disk='mount -t tmpfs -o size=1m tmpfs "$folder/disk" && mount --bind "$folder/own-b" "$folder/own"'
names='mount --bind "$folder/names" /etc/hosts'
exec ip netns exec "\$host" unshare --uts sh -c "hostname \"\\\$1\" && \$disk && \$names && shift && eval \"\\\$*\"" sh "\$host" "\$@"
END
chmod 700 "$folder/agent"

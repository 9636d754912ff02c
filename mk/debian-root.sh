#!/bin/sh
# A Debian of another release in a folder, to build and test in. Needs root and the package debootstrap.
#
#   mk/debian-root.sh make RELEASE DIR    a minimal one, with git: a minute, 300 MB
#   mk/debian-root.sh run DIR CMD...      runs CMD in it, in /, and as root
#   mk/debian-root.sh cache               prints the folder where the checks keep what is slow to make
#
# Exits with 77 where this machine allows neither.
set -eu

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
impossible() { echo "debian-root: $1" >&2; exit 77; }

if [ "${1:-}" = cache ]; then
  echo "${TESSERA_CI_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tessera-ci}"
  exit
fi

# What is mounted is seen by CMD alone, and is gone when it ends.
[ "$(id -u)" = 0 ] || impossible "needs root"
unshare --mount true 2>/dev/null || impossible "no mounts are allowed here"

# Where apt needs a proxy, or a certificate for it, so does apt in there.
copy_apt_settings() {
  apt-config dump 2>/dev/null | grep -iE '^Acquire::https?::([^ ]*::)?(Proxy|CAInfo)' >"$1/etc/apt/apt.conf.d/80outside" || true
  sed -n 's/^[^ ]*::CAInfo "\(.*\)";/\1/ip' "$1/etc/apt/apt.conf.d/80outside" | while read -r file; do
    mkdir -p "$1$(dirname "$file")" && cp "$file" "$1$file"
  done
}

# debootstrap itself asks the environment.
apt_proxy() { apt-config shell proxy Acquire::http::Proxy 2>/dev/null || true; }

make_root() {
  release=$1 dir=$2
  command -v debootstrap >/dev/null || { echo "debian-root: no debootstrap here; ./setup --dev installs it" >&2; exit 1; }
  rm -rf "$dir.new"
  mkdir -p "$(dirname "$dir")"
  proxy=
  eval "$(apt_proxy)"
  [ -z "$proxy" ] || export http_proxy="${http_proxy:-$proxy}"
  unshare --mount debootstrap --variant=minbase --include=git "$release" "$dir.new" >"$dir.log" 2>&1 ||
    { tail -n 20 "$dir.log" >&2; echo "debian-root: debootstrap failed; is there a network?" >&2; exit 1; }
  # It is made anew when it is lost: no write of dpkg has to reach the disk.
  echo force-unsafe-io >"$dir.new/etc/dpkg/dpkg.cfg.d/unsafe-io"
  echo 'Acquire::Retries "3";' >"$dir.new/etc/apt/apt.conf.d/80retries"
  copy_apt_settings "$dir.new"
  mv "$dir.new" "$dir"
  rm -f "$dir.log"
}

case ${1:-} in
make)
  [ $# = 3 ] || usage
  [ -d "$3" ] || make_root "$2" "$3"
  ;;
run)
  [ $# -gt 2 ] || usage
  dir=$(realpath "$2")
  shift 2
  # DIR is a mount of its own, so that what runs there may mount as well.
  exec unshare --mount --propagation private sh -euc '
    dir=$1; shift
    mount --bind "$dir" "$dir"
    mount --rbind /proc "$dir/proc"
    mount --rbind /sys "$dir/sys"
    mount --rbind /dev "$dir/dev"
    cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
    exec chroot "$dir" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} "$@"
  ' sh "$dir" "$@"
  ;;
*) usage ;;
esac

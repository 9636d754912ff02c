#!/bin/sh
# Copies this tree with the results of make to the folder DIR, because building leaves files. It leaves out history, caches, and what sanitizers
# and tests make. Other tests may write below build/ meanwhile.
# usage: test/copy_tree.sh DIR [--exclude=PATTERN...]
cd "$(dirname "$0")/.." || exit 2
target=$1
shift
mkdir -p "$target" && status=$(mktemp) || exit 2
trap 'rm -f "$status"' EXIT
# The first tar exits with 1 if a file changed while it was read, and with 2 if it failed.
{
  tar -c --exclude=./.git --exclude=./_build --exclude=./build/test-cache --exclude='./build/*san' --exclude='./build/rows*' --exclude=./build/tmp \
    --exclude=./build/async --exclude='./build/normal/test_*' --exclude='./build/test-erl/passed-*' --exclude='./build/test-erl/begun-*' "$@" .
  echo $? >"$status"
} | tar -x -C "$target" && [ "$(cat "$status")" -le 1 ]

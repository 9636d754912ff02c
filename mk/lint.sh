#!/bin/sh
# Checks the formatting of the C sources and runs clang-tidy over those given
# (all when none are). What cannot be checked here is skipped with a note.
# FORMAT=fix rewrites the files. TIDY=no leaves out clang-tidy. ANALYZE=yes lets clang-tidy analyze paths, too, which takes most of its time.
cd "$(dirname "$0")/.." || exit 1
failed=0
export LINT_CFLAGS
# Where everything must be there, what is not is a failure.
skipped() {
  echo "lint: $1"
  [ -z "${TESSERA_CI:-}" ] || failed=1
}
files=$(find c_src test/c test/fuzz test/plugin include -name '*.[ch]' 2>/dev/null | sort)

# Releases of clang-format differ in details. The sources have the form of this one, Debian 12's.
format_release=14
format=
for candidate in clang-format-$format_release clang-format; do
  case $("$candidate" --version 2>/dev/null) in
    *"version $format_release."*) format=$candidate; break ;;
  esac
done
if [ -z "$format" ]; then
  echo "lint: no clang-format $format_release here, formatting is not checked"
elif [ "${FORMAT:-}" = fix ]; then
  # shellcheck disable=SC2086
  "$format" -i $files
else
  # shellcheck disable=SC2086
  "$format" --dry-run -Werror $files || failed=1
fi
[ "${FORMAT:-}" = fix ] && exit $failed

export LINT_CHECKS='-clang-analyzer-*'
[ -z "${ANALYZE:-}" ] || LINT_CHECKS=
# As many files at a time as there are CPUs.
if [ "${TIDY:-}" = no ]; then
  :
elif command -v clang-tidy >/dev/null; then
  # shellcheck disable=SC2086
  printf '%s\n' ${*:-$(find c_src -name '*.c' | sort)} | xargs -P "${JOBS:-$(nproc)}" -n 1 sh -c '
    output=$(nice clang-tidy --quiet --checks="$LINT_CHECKS" "$1" -- -std=c11 -D_GNU_SOURCE -Ic_src -Iinclude $LINT_CFLAGS 2>/dev/null) ||
      { printf "%s\n" "$output"; exit 1; }' sh || failed=1
else
  skipped "no clang-tidy here, it is skipped"
fi
exit $failed

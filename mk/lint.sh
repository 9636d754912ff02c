#!/bin/sh
# Checks the formatting of the C sources and runs clang-tidy over those given
# (all when none are). Tools that are not there are skipped with a note.
# FORMAT=fix rewrites the files.
cd "$(dirname "$0")/.." || exit 1
failed=0
files=$(find c_src test/c test/fuzz include -name '*.[ch]' 2>/dev/null | sort)

if command -v clang-format >/dev/null; then
  if [ "${FORMAT:-}" = fix ]; then
    # shellcheck disable=SC2086
    clang-format -i $files
  else
    # shellcheck disable=SC2086
    clang-format --dry-run -Werror $files || failed=1
  fi
else
  echo "lint: no clang-format here, formatting is not checked"
fi
[ "${FORMAT:-}" = fix ] && exit 0

if command -v clang-tidy >/dev/null; then
  for file in ${*:-$(find c_src -name '*.c' | sort)}; do
    # shellcheck disable=SC2086
    output=$(clang-tidy --quiet "$file" -- -std=c11 -D_GNU_SOURCE -Ic_src -Iinclude ${LINT_CFLAGS:-} 2>/dev/null) ||
      { printf '%s\n' "$output"; failed=1; }
  done
else
  echo "lint: no clang-tidy here, it is skipped"
fi
exit $failed

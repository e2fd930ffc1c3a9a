#!/usr/bin/env bash
# Every C++ file is formatted as .clang-format says.
set -euo pipefail

root="$(dirname "$(readlink -f WORKSPACE)")"
cd "$root"
mapfile -t files < <(find . \( -name .git -o -name 'bazel-*' -o -path ./build -o -path ./data \) \
  -prune -o -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print |
  sort)
if (( ${#files[@]} == 0 )); then
  echo "no C++ file found under $root" >&2
  exit 1
fi
clang-format --dry-run --Werror "${files[@]}"

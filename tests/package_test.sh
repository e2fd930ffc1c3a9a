#!/usr/bin/env bash
# What the installer and the Debian package hold: a binary that runs, manual pages, completion,
# every document and every shipped job; and the libraries that the package depends on are the
# binary's.
set -euo pipefail

failed=0
fail() {
  echo "package_test: $*" >&2
  failed=1
}

source_root="$(dirname "$(readlink -f WORKSPACE)")"
planc/install "$TEST_TMPDIR/prefix" >/dev/null
dpkg-deb --extract planc/planc.deb "$TEST_TMPDIR/deb"
version="$(planc/planc version | sed -n 's/^planc  *//p')"

# holds ROOT ZSH_FOLDER MAN_SUFFIX
holds() {
  local root="$1" file
  [[ "$("$root/bin/planc" version)" == "$(planc/planc version)" ]] || fail "$root: planc version"
  for file in "share/man/man1/planc.1$3" "share/man/man1/planc-run.1$3" "share/zsh/$2/_planc" \
    share/bash-completion/completions/planc share/fish/vendor_completions.d/planc.fish; do
    [[ -s "$root/$file" ]] || fail "$root has no $file"
  done
  for file in "$source_root"/README.md "$source_root"/docs/*.md "$source_root"/jobs/*.yaml; do
    file="${file#"$source_root"/}"
    cmp -s "$source_root/$file" "$root/share/doc/planc/$file" ||
      fail "$root/share/doc/planc lacks $file: is it listed in its BUILD file?"
  done
}
holds "$TEST_TMPDIR/prefix" site-functions ''
holds "$TEST_TMPDIR/deb/usr" vendor-completions .gz

[[ "$(dpkg-deb --field planc/planc.deb Version)" == "$version" ]] || fail "version of the package"
depends="$(dpkg-deb --field planc/planc.deb Depends)"
for library in libc6 libstdc++6 libdnnl libprotobuf libyaml-cpp; do
  [[ "$depends" == *"$library"* ]] || fail "the package does not depend on $library: $depends"
done
exit "$failed"

#!/usr/bin/env bash
# The tarball on "another machine": package_test.sh BUILD_DIR
#
# Packs a build, unpacks it to a path with spaces and letters beyond ASCII, and uses it with an empty
# environment: nothing may be found outside the tree but the C library and NVIDIA's libraries.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d /tmp/param-package.XXXXXX)
# Short: sockets lie in it.
state=$(mktemp -d /tmp/param-pkg.XXXXXX)
up=no

fail() {
  echo "package_test: $*" >&2
  exit 1
}
finish() {
  local code=$?
  trap - EXIT
  [ $up = no ] || clean "$tree/bin/paramctl" down --state "$state" || true
  rm -rf "$work" "$state"
  exit "$code"
}
trap finish EXIT

archive=$("$root/deploy/package" --build-dir "$build" --output "$work")
bytes=$(stat -c %s "$archive")
[ "$bytes" -lt $((64 * 1024 * 1024)) ] || fail "$bytes bytes are more than 64 MiB"

place="$work/a path with spaces/größe 測試"
mkdir -p "$place"
tar -C "$place" -xzf "$archive"
tree=$(echo "$place"/param-*)
rm "$archive"

clean() {
  env -i HOME="$work" PATH=/usr/bin:/bin "$@"
}

# What each object resolves, and to where.
own='^(linux-vdso|/lib64/ld-linux|ld-linux|lib(c|m|mvec|pthread|dl|rt|resolv|util|nsl|anl)\.so)'
cuda='^lib(cublas|cublasLt|cudart|nccl)\.so'
while read -r object; do
  while read -r line; do
    name=${line%% *}
    path=${line#* => }
    path=${path% (0x*}
    [[ ! $name =~ $own && ! $name =~ $cuda ]] || continue
    [[ $line == *" => "* ]] || continue
    [ "$path" != "not found" ] || fail "$object: $name is not found"
    [[ $path == "$place"* ]] || fail "$object: $name comes from $path, outside the tree"
  done < <(clean ldd "$object")
done < <(find "$tree" -type f \( -perm -u+x -o -name '*.so*' \) ! -path '*/deploy/*')

clean "$tree/bin/paramctl" version || fail "version: exit code $?"
up=yes
clean "$tree/bin/paramctl" up --nodes 2 --state "$state" >&2 || fail "up: exit code $?"
clean PARAM_STATE="$state" "$tree/bin/paramctl" submit gemm --set smoke --nodes 2 -o json >"$work/result.json" ||
  fail "submit: exit code $?: $(tail -c 2000 "$work/result.json")"
python3 - "$work/result.json" <<'PYTHON' || fail "the result is not as it should be"
import json
import sys

result = json.load(open(sys.argv[1]))
assert result["job"]["state"] == "SUCCEEDED", result["job"]
assert any(case["status"] == "PASSED" for case in result["cases"]), result["cases"]
PYTHON
clean "$tree/bin/paramctl" down --state "$state" >&2 || fail "down: exit code $?"
up=no
# Processes of the tree that outlived `down`, zombies aside.
left=$(grep -l "^State:[[:space:]]*[^Z]" /proc/[0-9]*/status 2>/dev/null | while read -r status; do
  target=$(readlink "$(dirname "$status")/exe" 2>/dev/null) || continue
  [[ $target != "$place"* ]] || echo "$target"
done)
[ -z "$left" ] || fail "still running: $left"
echo "package_test: $((bytes / 1048576)) MiB, runs from '$tree'"

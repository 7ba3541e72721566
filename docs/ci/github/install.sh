#!/usr/bin/env bash
# Downloads the archive of a release, checks its sum, and puts its programs on the PATH of the next steps.
set -euo pipefail
work=$RUNNER_TEMP/reckon
rm -rf "$work"
mkdir -p "$work/release"
echo 0 > "$work/code"
if ! [[ $RECKON_SHA256 =~ ^[0-9a-f]{64}$ ]]; then
  echo "::error::sha256 is not 64 hexadecimal digits: copy the archive's line of SHA256SUMS"
  exit 3
fi
# The token goes in by standard input: a command line is for everybody to read.
headers=""
if [ -n "${RECKON_TOKEN:-}" ]; then
  headers="header = \"Authorization: Bearer $RECKON_TOKEN\""$'\n''header = "Accept: application/octet-stream"'
fi
if ! printf '%s\n' "$headers" |
    curl --config - --fail --silent --show-error --location --retry 3 --output "$work/reckon.tar.xz" -- "$RECKON_URL"; then
  echo "::error::no release at $RECKON_URL: url is the archive's address; a private one needs download-token"
  exit 3
fi
if ! echo "$RECKON_SHA256  $work/reckon.tar.xz" | sha256sum --check --status; then
  echo "::error::the archive's sum is $(sha256sum < "$work/reckon.tar.xz" | cut -c1-64), not sha256: it is not run"
  exit 3
fi
tar -xJf "$work/reckon.tar.xz" -C "$work/release"
program=$(find "$work/release" -path '*/bin/reckon' | head -n 1)
if [ -z "$program" ]; then
  echo "::error::the archive has no bin/reckon"
  exit 3
fi
dirname "$program" >> "$GITHUB_PATH"
"$program" --version

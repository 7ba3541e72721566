#!/usr/bin/env bash
# reckon check: JUnit, SARIF, annotations beside the lines, and the page of the summary. Its exit code is kept for the end.
set -euo pipefail
work=$RUNNER_TEMP/reckon
mapfile -t scenarios < <(grep -v '^[[:space:]]*$' <<< "$RECKON_SCENARIOS" || true)
mapfile -t options < <(grep -v '^[[:space:]]*$' <<< "$RECKON_OPTIONS" || true)
if [ ${#scenarios[@]} -eq 0 ]; then
  exit 0
fi
code=0
reckon check "${scenarios[@]}" "${options[@]}" --annotations github --junit reckon.xml --sarif reckon.sarif \
  --summary "$work/check.md" || code=$?
if [ "$code" -gt "$(cat "$work/code")" ]; then
  echo "$code" > "$work/code"
fi

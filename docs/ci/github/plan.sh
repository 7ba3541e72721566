#!/usr/bin/env bash
# reckon plan against the lock of the branch that the pull request goes to; without one, against the lock in the tree.
set -euo pipefail
work=$RUNNER_TEMP/reckon
mapfile -t plans < <(grep -v '^[[:space:]]*$' <<< "$RECKON_PLANS" || true)
mapfile -t options < <(grep -v '^[[:space:]]*$' <<< "$RECKON_OPTIONS" || true)
base=$(jq -r '.pull_request.base.sha // empty' "$GITHUB_EVENT_PATH")
if [ -n "$base" ] && ! git cat-file -e "$base^{commit}" 2> /dev/null; then
  git fetch --quiet --depth 1 origin "$base" || base=""
fi
for plan in "${plans[@]}"; do
  lock=${plan%.*}.lock.json
  before=${plan%.*}.before.lock.json  # beside the scenario: paths in it go by its place
  if [ -n "$base" ] && git show "$base:./$lock" > "$before" 2> /dev/null; then
    :
  elif [ -f "$lock" ]; then
    cp "$lock" "$before"
  else
    rm -f "$before"
    echo "### $plan"$'\n\n'"No lock yet: \`reckon plan $plan --lock\` writes \`$lock\`; commit it."$'\n' >> "$work/plan.md"
    echo "::notice::$lock is missing: reckon plan $plan --lock writes it"
    continue
  fi
  code=0
  reckon plan "$plan" "${options[@]}" --baseline "$before" --tolerance "$RECKON_TOLERANCE" --diff "$work/diff.md" || code=$?
  rm -f "$before"
  if [ -f "$work/diff.md" ]; then
    cat "$work/diff.md" >> "$work/plan.md"
    rm "$work/diff.md"
  else
    echo "### $plan"$'\n\n'"reckon plan ended with exit code $code: the log says why."$'\n' >> "$work/plan.md"
  fi
  if [ "$code" -gt "$(cat "$work/code")" ]; then
    echo "$code" > "$work/code"
  fi
done

#!/usr/bin/env bash
# The page in the job's summary, and in one comment on the pull request: found by its first line, changed where it is there.
# A token that may not write (a pull request from a fork) leaves the summary.
set -euo pipefail
work=$RUNNER_TEMP/reckon
marker="<!-- reckon: $RECKON_ID -->"
{
  echo "$marker"
  for part in plan check; do
    if [ -f "$work/$part.md" ]; then
      cat "$work/$part.md"
      echo
    fi
  done
} > "$work/page.md"
if [ "$(wc -l < "$work/page.md")" -le 1 ]; then
  echo "Nothing was checked or planned." >> "$work/page.md"
fi
cat "$work/page.md" >> "$GITHUB_STEP_SUMMARY"
number=$(jq -r '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
if [ -z "$number" ] || [ "$RECKON_COMMENT" != true ]; then
  exit 0
fi
if [ -z "$RECKON_TOKEN" ]; then
  echo "::notice::no token: the result is in the job's summary only"
  exit 0
fi
api=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues

# call METHOD URL [FILE]: the answer's status; its body is in $work/answer.json.
call() {
  printf 'header = "Authorization: Bearer %s"\nheader = "Accept: application/vnd.github+json"\n' "$RECKON_TOKEN" |
    curl --config - --silent --show-error --retry 2 --request "$1" ${3:+--data-binary "@$3"} \
      --output "$work/answer.json" --write-out '%{http_code}' -- "$2" || echo 000
}

# A comment has at most 65,536 characters.
jq -n --rawfile page "$work/page.md" '
  {body: (if ($page | length) > 60000 then $page[0:60000] + "\n\nThe rest is in the job'\''s summary.\n" else $page end)}' \
  > "$work/body.json"
found=""
page=1
while [ -z "$found" ]; do
  status=$(call GET "$api/$number/comments?per_page=100&page=$page")
  if [ "$status" != 200 ]; then
    break
  fi
  found=$(jq -r --arg marker "$marker" 'map(select(.body | startswith($marker))) | first | .id // empty' "$work/answer.json")
  if [ "$(jq length "$work/answer.json")" -lt 100 ]; then
    break
  fi
  page=$((page + 1))
done
if [ "$status" = 200 ]; then
  if [ -n "$found" ]; then
    status=$(call PATCH "$api/comments/$found" "$work/body.json")
  else
    status=$(call POST "$api/$number/comments" "$work/body.json")
  fi
fi
case $status in
  200 | 201) ;;
  401 | 403 | 404)
    echo "::notice::the token may not comment here (HTTP $status), as in a pull request from a fork: the result is in the job's" \
      "summary only. Elsewhere give the job permissions: {pull-requests: write}" ;;
  *) echo "::warning::the comment could not be written (HTTP $status): the result is in the job's summary only" ;;
esac

#!/usr/bin/env bash
# Takes the figures of docs/figures.md again: runs each command that stands
# there behind a "$ ", which draws its picture, and puts in what it printed. It
# takes some two minutes, on a host that has nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."
new=$(mktemp)
trap 'rm -f "$new"' EXIT
while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line == '$ '* ]]; then
    echo "${line#'$ '}" >&2
    bash -c "${line#'$ '}" </dev/null
    while IFS= read -r line && [[ $line != '```' ]]; do :; done
    printf '%s\n' '```'
  fi
done <docs/figures.md >"$new"
cat "$new" >docs/figures.md

#!/usr/bin/env bash
# Bash completes planc's command line: the script is loaded and called as bash calls it. And man
# reads the manual pages without a warning.
set -euo pipefail

planc="$PWD/planc/planc"
source <("$planc" completion bash)
work="$TEST_TMPDIR/work"
mkdir -p "$work/jobs"
touch "$work/jobs/a.yaml" "$work/jobs/b.plan" "$work/jobs/c.txt"
cd "$work"

failed=0

# complete_to "LINE" WANTED...: the line's words, split as bash splits them, complete to these.
complete_to() {
  local line="$1"
  shift
  local -a COMP_WORDS=("$planc") COMPREPLY=()
  local rest="${line#planc }" word
  while [[ "$rest" =~ ^([=:]+|[^\ =:]+|\ +)(.*)$ ]]; do
    word="${BASH_REMATCH[1]}"
    rest="${BASH_REMATCH[2]}"
    [[ "$word" == \ * ]] || COMP_WORDS+=("$word")
  done
  [[ "$line" != *' ' ]] || COMP_WORDS+=('')
  local COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
  _planc
  local found wanted
  found="$(printf '%s\n' "${COMPREPLY[@]}" | sort)"
  wanted="$(printf '%s\n' "$@" | sort)"
  if [[ "$found" != "$wanted" ]]; then
    printf '`%s` completes to\n%s\ninstead of\n%s\n' "$line" "$found" "$wanted"
    failed=1
  fi
}

complete_to 'planc ch' check checkpoint
complete_to 'planc check --f' '--format='
complete_to 'planc check --format=' text json sarif github
complete_to 'planc check --format=j' json
complete_to 'planc check --format j' json
complete_to 'planc plan --show=mesh,me' mesh,mesh mesh,memory
complete_to 'planc checkpoint ' ls verify export import
complete_to 'planc check a.yaml --set precision.com' 'precision.compute='
complete_to 'planc check a.yaml --set precision.compute=' fp32 bf16
complete_to 'planc check a.yaml --set=precision.compute=b' bf16
complete_to 'planc check jobs/' jobs/a.yaml
complete_to 'planc plan jobs/' jobs/a.yaml jobs/b.plan
complete_to 'planc plan --output=jobs/c' jobs/c.txt
complete_to 'planc run jobs/a.yaml --base=jo' jobs
[[ "$(complete -p planc)" == 'complete -F _planc planc' ]] || failed=1

"$planc" help --man=.
pages=(planc*.1)
if (( ${#pages[@]} < 10 )); then
  echo "only ${#pages[@]} manual pages"
  failed=1
fi
if command -v man >/dev/null; then
  for page in "${pages[@]}"; do
    said="$(MANROFFSEQ= MANWIDTH=80 man --warnings --local-file "$page" 2>&1 >/dev/null ||
      echo failed)"
    if [[ -n "$said" ]]; then
      echo "$page: $said"
      failed=1
    fi
  done
fi
exit "$failed"

#!/usr/bin/env bash
# The demo: an agent answers a question about an ontology with strategies from its memory; then the memory itself, written and
# found again in English and Korean. Nothing is downloaded, no server runs, and the file goes away at the end. Run it with
# `make demo`.
set -euo pipefail

folder=$(mktemp -d "${TMPDIR:-/tmp}/rlm-demo.XXXXXX")
trap 'rm -rf "$folder"' EXIT
db="$folder/memory.db"
export PYTHONUTF8=1

if [[ -t 1 ]]; then bold=$'\033[1m' blue=$'\033[36m' plain=$'\033[0m'; else bold= blue= plain=; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }

# Print a command as one would type it, then run it on the throw-away store.
run() {
  local shown="" word
  for word in "$@"; do
    case $word in *[\ \?\;\"]*) shown+=" \"$word\"" ;; *) shown+=" $word" ;; esac
  done
  printf '%s$%s%s\n' "$blue" "$shown" "$plain"
  "$@" --db "$db"
}

say "An agent answers a question about the ontology PROV, offline, with strategies that come with rlm"
run rlm-agent run --ontology prov --query "Find all subclasses of Activity" -n agent

say "What it used: the strategy from its memory, and the code that it wrote by it"
printf '%s$ rlm-agent show LOG%s\n' "$blue" "$plain"
rlm-agent show "$folder"/logs/*.jsonl | sed -n '/^step 2/,$p'

say "The same in Korean: how many subclasses does Activity have?"
run rlm-agent run --ontology prov --query "Activity의 하위 클래스는 몇 개인가요?" -n agent

say "Six things worth remembering, in two languages, each with its tags"
run rlm memory write "Mina moved to Busan in May and works from a shared office by the harbour." --id home --tag mina --tag home
run rlm memory write "The deploy script must run the database migrations before it restarts the workers." --id deploy --tag ops
run rlm memory write "Mina is allergic to peanuts; order the noodles without them." --id nuts --tag mina --tag food
run rlm memory write "민아는 커피보다 녹차를 좋아하고, 아침마다 한 잔씩 마신다." --id tea --tag 민아 --tag 음료
run rlm memory write "다음 팀 회의는 금요일 오후 세 시에 부산 사무실에서 열린다." --id meeting --tag 회의 --tag 부산
run rlm memory write "서버 배포는 데이터베이스를 백업한 다음에 시작한다." --id backup --tag 배포

say "Found in other forms of the words: restart, migrating"
run rlm memory search "when do we restart a worker after migrating?" -k 2

say "Found in Korean, with other particles and endings"
run rlm memory search "민아가 좋아하는 차는?" -k 2

say "Only among the memories with a tag"
run rlm memory search "what should Mina not eat?" --tag food

say "Why was it found? Every part of the score"
run rlm memory explain "부산 회의는 언제야?" meeting

say "Corrected, and what it said before is still known"
run rlm memory update meeting --text "다음 팀 회의는 목요일 오전 열 시로 옮겼다. 장소는 그대로 부산 사무실이다."
run rlm memory history meeting

if python -c "import sys; from rlm.search.embedding.e5 import e5_problem; sys.exit(bool(e5_problem()))"; then
  say "Found by what it means, from Korean to English, without a word in common"
  run rlm memory search "국수에서 무엇을 빼야 해?" -k 1
fi

say "What the store holds"
run rlm memory stats

printf '\n%s\n' "One SQLite file of $(du -h "$db" | cut -f1): no server, no network. README.md goes on from here."

#!/usr/bin/env bash
# The demo: an agent's memory in one file, written and found again in English and Korean. Nothing is downloaded, no
# server runs, and the file goes away at the end. Run it with `make demo`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
db="$folder/memory.db"
export LC_ALL="${LC_ALL:-C.UTF-8}"

# The command as a reader would type it, then what it answers; the file's path is left out of what is shown.
say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() {
  local words=() word
  for word in "$@"; do [[ $word =~ ^[A-Za-z0-9_./=@:-]+$ ]] && words+=("$word") || words+=("\"$word\""); done
  printf '\033[36m$ %s\033[0m\n' "${words[*]}"
  "$@" --db "$db"
}

say "A few things worth remembering, each with its tags"
run rlm memory write "Mina moved to Busan in May and works from a shared office by the harbour." --tag mina --tag home
run rlm memory write "The deploy script must run the database migration before it restarts the workers." --tag ops
run rlm memory write "Mina is allergic to peanuts; order the noodles without them." --tag mina --tag food
run rlm memory write "민아는 커피보다 녹차를 좋아하고, 아침마다 한 잔씩 마신다." --tag 민아 --tag 음료
run rlm memory write "다음 팀 회의는 금요일 오후 세 시에 부산 사무실에서 열린다." --tag 회의 --tag 부산
run rlm memory write "서버 배포는 데이터베이스를 백업한 다음에 시작한다." --tag 배포

say "Found by meaning words in other forms: 'restarting worker migrations'"
run rlm memory search "restarting worker migrations" --k 2

say "Found in Korean, with other particles and endings: '민아가 좋아하는 녹차'"
run rlm memory search "민아가 좋아하는 녹차" --k 2

say "Only among what has a tag"
run rlm memory search "Mina" --tag food

say "Why was it found? Each part of the score"
run rlm memory search "부산 회의" --k 2

say "What the store holds"
run rlm memory stats

printf '\n%s\n' "One SQLite file, $(du -h "$db" | cut -f1), no server, no model, no network. Next: README.md, or 'make lab' for the book."

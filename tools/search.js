// The site's search, in place of fuzzy matching: BM25 over titles, headings, text and the words of links that lead there (`also`),
// guides before chapters before the reference. Links in Korean let a Korean question find a guide in English.
// The pages' own script makes `new Fuse(index, …)` and asks `search(question, {limit})`; this class answers both.
(() => {
  const FIELDS = [["title", 3], ["section", 4], ["also", 4], ["text", 1]];
  const KINDS = [[/#(where-to-go-on|더-읽을-것)$/, 0.3], [/^docs\/(readme|tour)\.ko/, 1], [/^(index\.html|docs\/(?!design))/, 2], [/^00_start\//, 1.6],
                 [/^reference\//, 1.3], [/^docs\//, 1.2], [/^95_bench\//, 0.7], [/^api\//, 0.7], [/^project\//, 0.6]];
  const STOP = new Set(("a an and are as at be by can do does for from get has have how i if in is it its me my of on or so that the " +
                        "their them then there this to was we what when where which who why will with you your 그 것 나 내 너무 때 무엇 방법 법 수 어떻게 어디 왜 이 하는").split(" "));
  const ALIKE = {gdpr: "erase", crash: "kill", remove: "delete", forget: "delete", wipe: "erase", price: "cost", speed: "fast",
                 install: "pip", performance: "speed", vector: "embedding", acl: "token", auth: "token", tenant: "namespace",
                 outage: "cut", internet: "telemetry", send: "sent", docker: "containers", 지우: "delete", 삭제: "delete", 복원: "restore",
                 설치: "install", 랭그래프: "langgraph", 토큰: "token", 임베딩: "embedding", 모델: "model", 충돌: "conflicts", 클로드: "claude",
                 카카오톡: "kakaotalk", 사용자: "user", 연결: "connecting", 느리: "slow", 느려: "slow", 도커: "containers", 지표: "metrics",
                 암호: "token", 옮기: "moving", 가져오: "import", 내보내: "export", 업데이트: "upgrade", 포스트그레스: "postgresql"};
  const ENDING = /(에서|에게|으로|까지|부터|처럼|하고|하기|하면|하는|하려면|려면|으면|는지|었나|았나|을까|되면|기를|[가게과기나는다도로를려만면서에와은을의이])$/;
  const stem = (w) => w.length < 5 || !/^[a-z]+$/.test(w) ? w
    : w.replace(/(ies)$/, "y").replace(/(ing|ed|es|s)$/, "").replace(/(.)\1$/, "$1").replace(/e$/, "");
  const stems = (w) => {  // a Korean word, and what is left of it without one particle or ending, and without two
    const found = [w];
    while (/^[가-힣]{3,}$/.test(w) && found.length < 3 && w.replace(ENDING, "").length > 1 && ENDING.test(w)) found.push(w = w.replace(ENDING, ""));
    return found;
  };
  const words = (text) => {
    const found = [];
    for (const w of text.match(/[\p{L}\p{N}_]+/gu) || []) {
      found.push(stem(w.toLowerCase()));
      const parts = w.split(/_+|(?<=[a-z])(?=[A-Z])/).filter(Boolean);
      if (parts.length > 1) found.push(...parts.map((p) => stem(p.toLowerCase())));
    }
    return found;
  };
  const near = (a, b) => {  // whether one edit makes one word of the other
    if (Math.abs(a.length - b.length) > 1) return false;
    let i = 0, j = 0, edits = 0;
    while (i < a.length && j < b.length) {
      if (a[i] === b[j]) { i++; j++; continue; }
      if (++edits > 1) return false;
      if (a.length >= b.length) i++;
      if (a.length <= b.length) j++;
    }
    return edits + (a.length - i) + (b.length - j) <= 1;
  };
  window.Fuse = class {
    constructor(index) {
      this.index = index;
      this.postings = new Map();
      this.lengths = index.map((entry, at) => {
        let length = 0;
        for (const [field, weight] of FIELDS) {
          for (const w of words(entry[field] || "")) {
            if (!this.postings.has(w)) this.postings.set(w, new Map());
            const of = this.postings.get(w);
            of.set(at, (of.get(at) || 0) + weight);
            length++;
          }
        }
        return length;
      });
      this.mean = this.lengths.reduce((a, b) => a + b, 0) / Math.max(1, index.length);
      this.kinds = index.map((entry) => (KINDS.find(([pattern]) => pattern.test(entry.href)) || [0, 1])[1]);
    }
    terms(word, last) {  // the words of the index that a word of the question means, and how well
      const found = new Map();
      const add = (w, worth) => found.set(w, Math.max(worth, found.get(w) || 0));
      for (const s of stems(word)) {
        if (this.postings.has(s)) add(s, 1);
        if (last || /[^\x00-\x7f]/.test(s)) {
          for (const w of this.postings.keys()) if (w !== s && s.length > 1 && w.startsWith(s)) add(w, last && s === word ? 0.5 : 0.7);
        }
        if (ALIKE[s] && this.postings.has(stem(ALIKE[s]))) add(stem(ALIKE[s]), 0.7);
      }
      if (!found.size && word.length > 4) for (const w of this.postings.keys()) if (near(w, word)) found.set(w, 0.5);
      return found;
    }
    search(question, {limit = 20} = {}) {
      const asked = [];
      for (const w of (question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [])) {
        const last = asked.length - 1;  // *back up* is *backup*, where a page has that
        if (last >= 0 && asked[last].length > 1 && w.length > 1 && this.postings.has(stem(asked[last] + w))) asked[last] += w;
        else asked.push(w);
      }
      const telling = asked.some((w) => !STOP.has(w)) ? asked.filter((w) => !STOP.has(w)) : asked;
      const scores = new Map(), met = new Map();
      telling.forEach((word, n) => {
        const best = new Map();
        for (const [term, worth] of this.terms(stem(word), n === telling.length - 1)) {
          const of = this.postings.get(term), idf = Math.log(1 + (this.index.length - of.size + 0.5) / (of.size + 0.5));
          for (const [at, count] of of) {
            const score = worth * idf * count * 2.2 / (count + 1.2 * (0.4 + 0.6 * this.lengths[at] / this.mean));
            best.set(at, Math.max(best.get(at) || 0, score));
          }
        }
        for (const [at, score] of best) {
          scores.set(at, (scores.get(at) || 0) + score);
          met.set(at, (met.get(at) || 0) + 1);
        }
      });
      const named = question.trim().toLowerCase();
      const worth = (at) => {  // a name as it is written goes first, then a heading that has the words, those that say little too
        const section = (this.index[at].section || "").toLowerCase(), heading = new Set(words(section));
        if (section === named || section === `class ${named}` || section.endsWith(`.${named}`)) return 4;
        return telling.every((w) => heading.has(stem(w))) ? 1 + 2 * asked.filter((w) => heading.has(stem(w))).length / asked.length : 1;
      };
      return [...scores].map(([at, score]) => ({item: this.index[at], refIndex: at,
                                                score: score * this.kinds[at] * worth(at) * (met.get(at) / telling.length) ** 2}))
        .sort((a, b) => b.score - a.score || a.refIndex - b.refIndex).slice(0, limit);
    }
  };
})();

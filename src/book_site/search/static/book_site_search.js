// The search: sections, claims and names, with excerpts. It loads what it looks into when it is opened.
(() => {
  const own = document.currentScript.src;
  const root = new URL("../", own);
  const GREEK = {
    α: "alpha", β: "beta", γ: "gamma", δ: "delta", ε: "epsilon", ϵ: "epsilon", θ: "theta", λ: "lambda",
    μ: "mu", σ: "sigma", Σ: "sum", φ: "phi", Φ: "phi", τ: "tau", "√": " sqrt ", "∞": "infinity",
  };
  const FEW = new Set("a an and are as at be by do does for how in is it of on or that the there to what when where which why with".split(" "));
  const SHOWN = 12;
  let known;
  let asked;

  const words = (text) => text
    .replace(/[α-ωϵΣΦ√∞]/g, (sign) => GREEK[sign] ?? sign)
    .toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f’']/g, "")
    .match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? [];
  const stem = (word) => (
    word.length > 4 ? word.replace(/(?:izations?|isations?|izing|ized|izes?|ations?|ings?|ers?|ed|es|s|e|y|ies)$/, "") : word.replace(/s$/, "")
  );
  const parts = (text) => words(text).flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word])).map(stem);
  const counted = (list) => list.reduce((counts, word) => counts.set(word, (counts.get(word) ?? 0) + 1), new Map());

  const prepare = ({ pages, entries, synonyms, lists }) => {
    const frequency = new Map();
    const found = entries.map(([page, kind, anchor, title, text]) => {
      const body = parts(text);
      const entry = {
        page: pages[page][0], name: pages[page][1], kind, anchor, title, text, length: body.length,
        // A name says no more of itself where its page has it again.
        inTitle: counted(parts(title)), inName: counted(kind === "name" ? [] : parts(pages[page][1])), inText: counted(body),
      };
      new Set([...entry.inTitle.keys(), ...entry.inText.keys()]).forEach((word) => {
        frequency.set(word, (frequency.get(word) ?? 0) + 1);
      });
      return entry;
    });
    const mean = found.reduce((sum, entry) => sum + entry.length, 0) / found.length;
    const groups = synonyms.map((group) => group.map((phrase) => parts(phrase)));
    return { found, frequency, mean, groups, lists };
  };

  // Each term of a question is a list of phrases that mean the same, the reader's own first.
  const terms = (question) => {
    let left = words(question).filter((word) => !FEW.has(word) || words(question).length === 1).map(stem);
    const said = [];
    const has = (phrase, at) => phrase.every((word, i) => left[at + i] === word);
    while (left.length) {
      const fitting = known.groups
        .flatMap((group) => group.map((phrase) => ({ phrase, group })))
        .filter(({ phrase }) => has(phrase, 0))
        .sort((a, b) => b.phrase.length - a.phrase.length)[0];
      const own = fitting ? fitting.phrase : [left[0]];
      const others = known.groups.filter((group) => group.some((phrase) => phrase.join(" ") === own.join(" "))).flat();
      said.push([own, ...others.filter((phrase) => phrase.join(" ") !== own.join(" "))]);
      left = left.slice(own.length);
    }
    return said;
  };

  const rarity = (word) => Math.log(1 + known.found.length / (1 + (known.frequency.get(word) ?? 0)));
  const fieldScore = (counts, word) => {
    const exact = counts.get(word) ?? 0;
    if (exact || word.length < 3) return exact;
    let longer = 0;
    counts.forEach((count, other) => { if (other.startsWith(word)) longer += count; });
    return longer * 0.4;
  };
  const phraseScore = (entry, phrase) => {
    let sum = 0;
    for (const word of phrase) {
      const title = Math.min(fieldScore(entry.inTitle, word), 1);
      const name = Math.min(fieldScore(entry.inName, word), 1);
      const text = fieldScore(entry.inText, word);
      const often = text / (text + 1.2 * (0.4 + 0.6 * entry.length / known.mean));
      const score = 3.2 * title + 1.3 * name + 1.6 * often;
      if (!title && !name && !text) return 0;
      sum += score * rarity(word);
    }
    return sum;
  };

  const search = (question) => {
    const asks = terms(question);
    if (!asks.length) return [];
    const id = question.trim().match(/^(?:claim\s+)?([a-z]\d+)$/i)?.[1].toUpperCase();
    return known.found
      .map((entry) => {
        const scores = asks.map((phrases) => Math.max(...phrases.map((phrase, i) => (i ? 0.85 : 1) * phraseScore(entry, phrase))));
        const hit = scores.filter(Boolean).length / asks.length;
        let score = scores.reduce((sum, each) => sum + each, 0) * hit ** 3;
        // A class or function is asked for without its package.
        const title = parts(entry.kind === "name" ? entry.title.replace(/^\w+\.(?=\w+$)/, "") : entry.title).join(" ");
        if (title && asks.some((phrases) => phrases.some((phrase) => phrase.join(" ") === title)) && hit === 1) score *= 1.5;
        if (entry.kind === "page") score *= 1.25;
        if (entry.kind === "claim") score *= 0.75;
        // A field of a class is seldom what is asked for.
        if (entry.kind === "name" && entry.title.split(".").length > 2) score *= 0.7;
        if (known.lists.some((folder) => entry.page.startsWith(folder))) score *= 0.7;
        if (id && entry.kind === "claim" && entry.title === `Claim ${id}`) score += 1000;
        return { entry, score };
      })
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, SHOWN)
      .map(({ entry }) => entry);
  };

  // Where the most words of the question stand together.
  const excerpt = (text, question) => {
    const asked = new Set(words(question).map(stem));
    const list = text.split(" ");
    const hits = list.map((word) => parts(word).some((part) => asked.has(part)));
    let best = 0;
    let most = -1;
    for (let start = 0; start < Math.max(1, list.length - 10); start += 4) {
      const number = hits.slice(start, start + 28).filter(Boolean).length;
      if (number > most) [best, most] = [start, number];
    }
    const end = Math.min(list.length, best + 28);
    return { before: best > 0, words: list.slice(best, end).map((word, i) => [word, hits[best + i]]), after: end < list.length };
  };

  const address = (entry) => new URL(entry.page + (entry.anchor ? `#${entry.anchor}` : ""), root).href;

  const shown = (entry, question) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = address(entry);
    const title = document.createElement("strong");
    title.textContent = entry.title;
    const place = document.createElement("span");
    place.textContent = entry.kind === "page" || entry.title.endsWith(entry.name) ? "" : ` ${entry.name}`;
    const says = document.createElement("p");
    const { before, words: list, after } = excerpt(entry.text, question);
    if (before) says.append("… ");
    list.forEach(([word, isHit]) => {
      if (isHit) says.append(Object.assign(document.createElement("mark"), { textContent: word }), " ");
      else says.append(`${word} `);
    });
    if (after) says.append("…");
    link.append(title, place, says);
    item.append(link);
    return item;
  };

  const load = () => {
    asked ??= new Promise((resolve, reject) => {
      window.verifiedBookSearch = (data) => { known = prepare(data); resolve(); };
      const script = document.createElement("script");
      script.src = new URL("book_site_search_data.js", own).href;
      script.onerror = reject;
      document.head.append(script);
    });
    return asked;
  };

  const attach = (form) => {
    const field = form.querySelector("input[type=search]");
    const list = Object.assign(document.createElement("ol"), { className: "book-search" });
    const status = Object.assign(document.createElement("p"), { className: "book-search-status" });
    status.setAttribute("role", "status");
    form.after(status, list);
    const show = async () => {
      const question = field.value;
      await load();
      if (question !== field.value) return;
      const found = search(question);
      list.replaceChildren(...found.map((entry) => shown(entry, question)));
      const nothing = question.trim() ? "Nothing is found." : "";
      status.textContent = found.length ? `${found.length} ${found.length === 1 ? "place" : "places"}` : nothing;
    };
    field.addEventListener("focus", load);
    field.addEventListener("input", show);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await show();
      list.querySelector("a")?.click();
    });
    list.addEventListener("click", (event) => { if (event.target.closest("a")) form.closest("dialog")?.close(); });
    return { field, show };
  };

  document.querySelectorAll("#pst-search-dialog form.bd-search").forEach(attach);
  // The page of the search shows the same.
  const page = document.querySelector(".bd-search-container form.bd-search");
  if (page) {
    const { field, show } = attach(page);
    field.value = new URL(location.href).searchParams.get("q") ?? "";
    if (field.value) show();
  }
  // For tests, and for pages that want to search by themselves.
  window.bookSearch = async (question) => {
    await load();
    return search(question).map((entry) => ({ kind: entry.kind, title: entry.title, address: address(entry) }));
  };
})();

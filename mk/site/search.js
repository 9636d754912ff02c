// Finds sections and functions: every word of the query has to be in the title or in the text. Titles count most.
const query = document.getElementById("query");
const found = document.getElementById("found");
const article = document.querySelector("article");

function score(words, [title, page, , text]) {
  const name = title.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const short = name.split(":").pop().replace(/\/\d+$/, "");
    if (short === word || name === word) sum += 100;
    else if (short.startsWith(word)) sum += 40;
    else if (name.includes(word)) sum += 20;
    else if (page.toLowerCase().includes(word)) sum += 8;
    else if (text.includes(word)) sum += 1 + Math.min(5, text.split(word).length - 1);
    else return 0;
  }
  return sum;
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter((word) => word);
  const hits = words.length
    ? pages.map((page) => [score(words, page), page]).filter(([sum]) => sum).sort(([a], [b]) => b - a).slice(0, 40)
    : [];
  found.hidden = !words.length;
  article.hidden = !!words.length;
  found.replaceChildren(...(hits.length ? hits : [[0, ["Nothing is found", "", "#", ""]]]).map(([, page]) => row(words, page)));
}

function row(words, [title, page, address, text]) {
  const link = document.createElement("a");
  link.href = address;
  link.addEventListener("click", () => { query.value = ""; search(); });
  link.append(Object.assign(document.createElement("b"), { textContent: title }));
  if (page) link.append(Object.assign(document.createElement("i"), { textContent: page }));
  const at = Math.max(0, text.indexOf(words[0]) - 60);
  link.append(Object.assign(document.createElement("span"), { textContent: text.slice(at, at + 160) }));
  return link;
}

query.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== query) { event.preventDefault(); query.focus(); }
  if (event.key === "Escape") { query.value = ""; search(); }
});
const asked = new URLSearchParams(location.search).get("q");
if (asked) { query.value = asked; search(); }

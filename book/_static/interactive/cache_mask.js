// Which keys the new words of a step may see, when earlier keys come from a cache.
(function () {
  "use strict";

  // Row i is the i-th new word; with keys counted from the last one, it stands at i + past.
  VerifiedBook.interactive.causalMask = function (seq, past, fromLast) {
    var rows = [];
    for (var i = 0; i < seq; i += 1) {
      rows.push([]);
      for (var j = 0; j < past + seq; j += 1) rows[i].push(j <= i + (fromLast ? past : 0));
    }
    return rows;
  };

  VerifiedBook.figure("cache_mask", function (figure) {
    var element = VerifiedBook.element;
    var past = figure.slider("words in the cache", { from: 0, to: 5, value: figure.data.past });
    var seq = figure.slider("new words", { from: 1, to: 4, value: figure.data.seq });
    var fromLast = figure.toggle("count from the last key", true);
    var words = figure.data.words;
    var grid = figure.add(element("div", { "class": "live-rounds", role: "img" }));
    figure.draws(function () {
      var mask = VerifiedBook.interactive.causalMask(seq(), past(), fromLast());
      var last = mask[seq() - 1].filter(Boolean).length;
      grid.textContent = "";
      function named(word) { return element("span", { "class": "live-name" }, word || ""); }
      grid.appendChild(element("div", {}, [""].concat(words.slice(0, past() + seq())).map(named)));
      mask.forEach(function (row, i) {
        grid.appendChild(element("div", {}, [named(words[past() + i])].concat(row.map(function (yes) {
          return element("span", { "class": yes ? "live-computed" : "live-kept" });
        }))));
      });
      var says = "The newest word sees " + last + " of " + (past() + seq()) + " words.";
      grid.setAttribute("aria-label", says);
      figure.says(says);
    });
  });
})();

// The tokens of a word, after as many merges as the reader sets.
(function () {
  "use strict";

  // What the merges joined last: the one token that the row before does not have.
  VerifiedBook.interactive.joinedLast = function (rows, round) {
    if (round === 0) return -1;
    var before = rows[round - 1];
    return rows[round].findIndex(function (token, i) { return token !== before[i]; });
  };

  VerifiedBook.figure("merges", function (figure) {
    var element = VerifiedBook.element;
    var rows = figure.data.rows;
    var round = figure.slider("merges", { from: 0, to: rows.length - 1, value: 3 });
    var line = figure.add(element("p", { "class": "live-tokens" }));
    figure.draws(function () {
      var tokens = rows[round()];
      var last = VerifiedBook.interactive.joinedLast(rows, round());
      line.textContent = "";
      tokens.forEach(function (token, i) {
        line.appendChild(element(i === last ? "strong" : "span", {}, token));
        line.appendChild(document.createTextNode(i + 1 < tokens.length ? " | " : ""));
      });
      figure.says(last < 0
        ? tokens.length + " tokens: a byte each."
        : tokens.length + " tokens. The last merge made " + tokens[last] + ".");
    });
  });
})();

// Where each head of a small model looks from the last word, and which verb comes when heads are out.
VerifiedBook.figure("heads_out", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var element = VerifiedBook.element;
  var sentences = figure.data.sentences;
  var verbs = figure.data.verbs;
  var chosen = figure.choice("sentence", sentences.map(function (each) { return each.words.join(" "); }));
  var kept = sentences[0].products.map(function (_, h) { return figure.toggle("head " + (h + 1), true); });
  var heads = sentences[0].words.map(function () { return element("th", { scope: "col" }); });
  var cells = kept.map(function () {
    return heads.map(function () { return element("td", { "class": "live-shade" }); });
  });
  figure.add(element("table", { "class": "live-map" }, [
    element("caption", {}, "Where the last word looks, in each head."),
    element("thead", {}, element("tr", {}, [element("th", { scope: "col" }, "head")].concat(heads))),
    element("tbody", {}, cells.map(function (row, h) {
      return element("tr", {}, [element("th", { scope: "row" }, String(h + 1))].concat(row));
    })),
  ]));
  var bars = figure.bars("Which verb comes next", ["verb", "probability"], verbs, 0, 1);
  figure.draws(function () {
    var sentence = sentences[chosen()];
    var place = 0;
    heads.forEach(function (head, j) { head.textContent = sentence.words[j]; });
    cells.forEach(function (row, h) {
      var weights = live.softmax(live.scores(sentence.products[h], figure.data.width, 1));
      row.forEach(function (cell, j) { VerifiedBook.shade(cell, weights[j], kept[h]()); });
      if (kept[h]()) place += Math.pow(2, h); // the shares of what is left stand there
    });
    var shares = sentence.shares[place];
    bars(shares);
    var best = shares.indexOf(Math.max.apply(null, shares));
    figure.says("The model writes “" + verbs[best] + "”; “" + sentence.right + "” is "
      + (verbs[best] === sentence.right ? "right." : "what it should write."));
  });
});

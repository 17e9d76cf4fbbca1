// A mask that the reader draws, and the weights that it leaves to each word.
VerifiedBook.figure("masks", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var element = VerifiedBook.element;
  var words = figure.data.words;
  var mask = figure.data.mask.map(function (row) { return row.slice(); });

  function fill(allowed) {
    return function () {
      mask = words.map(function (_, i) {
        return words.map(function (_, j) { return allowed(i, j); });
      });
    };
  }
  figure.button("no later word", fill(function (i, j) { return j <= i; }));
  figure.button("the first three", fill(function (i, j) { return j < 3; }));
  figure.button("every word", fill(function () { return true; }));
  figure.button("the opposite", function () {
    mask = mask.map(function (row) { return row.map(function (yes) { return !yes; }); });
  });
  var cells = words.map(function (word, i) {
    return words.map(function (other, j) {
      var button = element("button", { type: "button", "class": "live-cell" });
      button.addEventListener("click", function () {
        mask[i][j] = !mask[i][j];
        figure.redraw();
      });
      return button;
    });
  });
  var top = [element("th", { scope: "col" }, "this word")].concat(words.map(function (word) {
    return element("th", { scope: "col" }, word);
  }));
  var rows = words.map(function (word, i) {
    var row = [element("th", { scope: "row" }, word)];
    return element("tr", {}, row.concat(cells[i].map(function (cell) {
      return element("td", { "class": "live-shade" }, cell);
    })));
  });
  figure.add(element("table", { "class": "live-map" }, [
    element("caption", {}, "A row is the word that looks. Press a cell to allow it or to forbid it."),
    element("thead", {}, element("tr", {}, top)),
    element("tbody", {}, rows),
  ]));
  figure.draws(function () {
    var blind = [];
    var ahead = 0;
    words.forEach(function (word, i) {
      var scores = live.scores(figure.data.products[i], figure.data.width, 1);
      var weights = live.softmax(scores, mask[i]);
      weights.forEach(function (weight, j) {
        VerifiedBook.shade(cells[i][j], weight, mask[i][j]);
        cells[i][j].setAttribute("aria-pressed", mask[i][j]);
        cells[i][j].setAttribute("aria-label", word + ", word " + (i + 1) + ", may look at "
          + words[j] + ", word " + (j + 1) + ": weight " + VerifiedBook.written(weight, 2));
        if (mask[i][j] && j > i) ahead += 1;
      });
      if (mask[i].indexOf(true) < 0) blind.push(word);
    });
    figure.says((ahead ? "Allowed cells that look ahead: " + ahead + "." : "No word looks ahead.")
      + (blind.length ? " Without any allowed word, and so with weights of 0: " + blind.join(", ") + "." : ""));
  });
});

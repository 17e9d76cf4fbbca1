// Where a word of the running sentence looks, in each head of the trained model.
VerifiedBook.figure("attention_heads", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var element = VerifiedBook.element;
  var words = figure.data.words;
  var heads = figure.data.heads;
  var masked = figure.toggle("no looking ahead", true);
  var scaled = figure.toggle("divide by √d_k", true);
  var chosen = words.length - 1;

  function choose(i) {
    return function () {
      if (chosen === i) return;
      chosen = i;
      figure.redraw();
    };
  }
  var buttons = words.map(function (word, i) {
    var button = element("button", { type: "button", "class": "live-word" }, word);
    ["click", "focus", "mouseenter"].forEach(function (event) {
      button.addEventListener(event, choose(i));
    });
    return button;
  });
  var cells = heads.map(function () {
    return words.map(function () { return element("td", { "class": "live-shade" }); });
  });
  var top = [element("th", { scope: "col" }, "head")].concat(
    buttons.map(function (button) { return element("th", { scope: "col" }, button); }));
  var rows = heads.map(function (head, h) {
    return element("tr", {}, [element("th", { scope: "row" }, head.name)].concat(cells[h]));
  });
  figure.add(element("table", { "class": "live-map" }, [
    element("caption", {}, "Point at a word, or move to it with the Tab key."),
    element("thead", {}, element("tr", {}, top)),
    element("tbody", {}, rows),
  ]));
  figure.draws(function () {
    var strongest = heads.map(function (head, h) {
      var mask = words.map(function (_, j) { return !masked() || j <= chosen; });
      var scores = live.scores(head.products[chosen], scaled() ? figure.data.width : 1, 1);
      var weights = live.softmax(scores, mask);
      weights.forEach(function (weight, j) { VerifiedBook.shade(cells[h][j], weight, mask[j]); });
      var first = weights.indexOf(Math.max.apply(null, weights));
      return words[first] + " (" + VerifiedBook.written(weights[first], 2) + ")";
    });
    buttons.forEach(function (button, i) { button.setAttribute("aria-pressed", i === chosen); });
    figure.says("“" + words[chosen] + "”, word " + (chosen + 1)
      + ", looks most at: " + strongest.join(", ") + ".");
  });
});

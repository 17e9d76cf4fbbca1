// Which English words a German word reads, in each head of a trained translator.
(function () {
  "use strict";

  // The mean of the heads' weights.
  VerifiedBook.interactive.meanOfHeads = function (heads) {
    return heads[0].map(function (_, j) {
      return heads.reduce(function (sum, row) { return sum + row[j]; }, 0) / heads.length;
    });
  };

  VerifiedBook.figure("alignment", function (figure) {
    var data = figure.data;
    var heads = data.weights.map(function (_, i) { return "head " + (i + 1); });
    var word = figure.slider("German word", {
      from: 0, to: data.target.length - 1, value: data.start,
      says: function (i) { return data.target[i]; },
    });
    var head = figure.choice("weights of", ["both heads, their mean"].concat(heads), 0);
    var bars = figure.bars("What the decoder reads to say the German word",
      ["English word", "weight"], data.source, 0, 1);
    figure.draws(function () {
      var rows = data.weights.map(function (each) { return each[word()]; });
      var weights = head() ? rows[head() - 1] : VerifiedBook.interactive.meanOfHeads(rows);
      var best = weights.indexOf(Math.max.apply(null, weights));
      bars(weights);
      figure.says("To say “" + data.target[word()] + "” it reads “" + data.source[best]
        + "” most: " + VerifiedBook.written(weights[best], 2) + ".");
    });
  });
})();

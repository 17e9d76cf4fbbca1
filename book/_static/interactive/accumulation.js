// Two micro-batches of a step: how much each scored token counts in the gradient.
(function () {
  "use strict";

  // The loss of a micro-batch is the mean over its tokens. By tokens it is weighted by its share of
  // all tokens, n / N; else it is divided by the number of micro-batches.
  VerifiedBook.interactive.tokenWeights = function (counts, byTokens) {
    var all = counts.reduce(function (sum, n) { return sum + n; }, 0);
    return counts.map(function (n) {
      return (byTokens ? n / all : 1 / counts.length) / n;
    });
  };

  VerifiedBook.figure("accumulation", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var second = figure.slider("tokens in the second micro-batch", {
      from: 1, to: data.most, value: data.second,
    });
    var byTokens = figure.toggle("weigh by tokens", false);
    var names = ["first", "second", "whole batch"];
    var bars = figure.bars("What one token counts", ["micro-batch", "weight"], names, 0, 0.5);
    figure.draws(function () {
      var counts = [data.first, second()];
      var weights = VerifiedBook.interactive.tokenWeights(counts, byTokens());
      bars(weights.concat([1 / (counts[0] + counts[1])]));
      figure.says("A token of the second micro-batch counts "
        + written(weights[1] / weights[0], 1) + " times as much as a token of the first.");
    });
  });
})();

// The next token under a temperature, top-k and top-p, from the logits that a model gave.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // p_i = [i in A] exp(z_i / tau) / sum over j in A of exp(z_j / tau): A is what top-k and then
  // top-p leave; null for either leaves all.
  live.nextTokenDistribution = function (logits, temperature, topK, topP) {
    var highest = Math.max.apply(null, logits);
    if (temperature === 0) {
      var first = logits.indexOf(highest);
      return logits.map(function (_, i) { return i === first ? 1 : 0; });
    }
    var scores = logits.map(function (logit) { return (logit - highest) / temperature; });
    var order = scores.map(function (_, i) { return i; });
    order.sort(function (i, j) { return scores[j] - scores[i] || i - j; });
    var kept = scores.map(function () { return true; });
    if (topK !== null) {
      var kth = scores[order[Math.min(topK, order.length) - 1]];
      kept = scores.map(function (score) { return score >= kth; });
    }
    if (topP !== null) {
      var p = live.softmax(scores, kept);
      var fromHereOn = 0;
      for (var place = order.length - 1; place > 0; place -= 1) {
        fromHereOn += p[order[place]];
        if (fromHereOn <= 1 - topP) kept[order[place]] = false;
      }
    }
    return live.softmax(scores, kept);
  };

  VerifiedBook.figure("sampling", function (figure) {
    var written = VerifiedBook.written;
    var logits = figure.data.logits;
    var shown = figure.data.best;
    var off = logits.length;
    var temperature = figure.slider("temperature", {
      from: 0, to: 30, value: 10,
      means: function (tenths) { return tenths / 10; },
      says: function (tau) { return written(tau, 1); },
    });
    // Fine where few tokens are left, coarse where many are.
    var sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50, 100, 200, off];
    var topK = figure.slider("top-k", {
      from: 0, to: sizes.length - 1, value: sizes.length - 1,
      means: function (i) { return sizes[i]; },
      says: function (k) { return k === off ? "all " + off : String(k); },
    });
    var topP = figure.slider("top-p", {
      from: 1, to: 100, value: 100,
      means: function (percent) { return percent / 100; },
      says: function (p) { return written(p, 2); },
    });
    var names = figure.data.names.concat("all others");
    var bars = figure.bars("The next token after “" + figure.data.prompt + "”",
      ["token", "probability"], names, 0, 1);
    figure.draws(function () {
      var p = live.nextTokenDistribution(logits, temperature(), topK(), topP());
      var best = shown.map(function (i) { return p[i]; });
      var left = p.filter(function (share) { return share > 0; }).length;
      // Rounding would leave a rest of 1e-16 where nothing is left.
      var others = live.sum(p.filter(function (_, i) { return shown.indexOf(i) < 0; }));
      bars(best.concat(others));
      figure.says("In the draw: " + (left === off ? "all " : left + " of ") + off + " tokens. The likeliest has " + written(best[0], 2) + " of the probability.");
    });
  });
})();

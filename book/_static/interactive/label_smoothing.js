// What label smoothing asks of each token, in three readings of one number.
(function () {
  "use strict";

  // The target distribution: the right token keeps 1 - epsilon, and epsilon is shared by all tokens,
  // by the others, or by the others but padding.
  VerifiedBook.interactive.smoothedTarget = function (tokens, right, padding, epsilon, reading) {
    var sharing = tokens - reading;
    var target = [];
    for (var token = 0; token < tokens; token += 1) {
      var shares = !(reading > 0 && token === right) && !(reading > 1 && token === padding);
      target.push((shares ? epsilon / sharing : 0) + (token === right ? 1 - epsilon : 0));
    }
    return target;
  };

  VerifiedBook.figure("label_smoothing", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var reading = figure.choice("epsilon is shared by", data.readings, 0);
    var epsilon = figure.slider("epsilon", {
      from: 0, to: 20, value: 2,
      means: function (twentieths) { return twentieths / 20; },
      says: function (e) { return written(e, 2); },
    });
    var bars = figure.bars("What the loss asks for", ["token", "share"], data.tokens, 0, 1);
    figure.draws(function () {
      var target = VerifiedBook.interactive.smoothedTarget(
        data.tokens.length, data.right, data.padding, epsilon(), reading());
      var entropy = target.reduce(function (sum, q) { return sum - (q > 0 ? q * Math.log(q) : 0); }, 0);
      bars(target);
      figure.says("The right token keeps " + written(target[data.right], 3)
        + ". The lowest loss there can be is " + written(entropy, 2) + ".");
    });
  });
})();

// A query of any width and its 64 keys: what the division by the root and a temperature do.
VerifiedBook.figure("attention_scale", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var written = VerifiedBook.written;
  var widths = figure.data.widths;
  var keys = figure.data.products[0].length;
  var width = figure.slider("width d_k of the vectors", {
    from: 0, to: widths.length - 1, value: 2, says: function (i) { return String(widths[i]); },
  });
  var divided = figure.toggle("divide by √d_k", true);
  var temperature = figure.slider("temperature", {
    from: -10, to: 10, value: 0,
    means: function (tenths) { return Math.pow(10, tenths / 10); },
    says: function (tau) { return written(tau, 2); },
  });
  var columns = figure.columns(keys, "Weights from 0 to 1, the largest first");
  figure.draws(function () {
    var products = figure.data.products[width()];
    var scores = live.scores(products, divided() ? widths[width()] : 1, temperature());
    var weights = live.softmax(scores).sort(function (a, b) { return b - a; });
    var attended = Math.exp(live.entropy(weights));
    var says = "The query attends to about " + written(attended, attended < 10 ? 1 : 0) + " of "
      + keys + " keys; the largest weight is " + written(weights[0], 2) + ".";
    columns(weights, 1, "The weights of the keys, the largest first. " + says);
    figure.says(says);
  });
});

// A query of any width and its 64 keys: their weights with the division by the root, and without.
VerifiedBook.figure("attention_scale", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var written = VerifiedBook.written;
  var widths = figure.data.widths;
  var keys = figure.data.products[0].length;
  var width = figure.slider("width d_k of the vectors", {
    from: 0, to: widths.length - 1, value: 2, says: function (i) { return String(widths[i]); },
  });
  var temperature = figure.slider("temperature", {
    from: -10, to: 10, value: 0,
    means: function (tenths) { return Math.pow(10, tenths / 10); },
    says: function (tau) { return written(tau, 2); },
  });
  var divided = figure.columns(keys, "Divided by √d_k: weights from 0 to 1, the largest first");
  var whole = figure.columns(keys, "Not divided: weights from 0 to 1, the largest first");
  figure.draws(function () {
    var products = figure.data.products[width()];
    function chart(columns, divisor, name) {
      var weights = live.softmax(live.scores(products, divisor, temperature()))
        .sort(function (a, b) { return b - a; });
      var attended = Math.exp(live.entropy(weights));
      var says = name + ", the query attends to about " + written(attended, attended < 10 ? 1 : 0)
        + " of " + keys + " keys; the largest weight is " + written(weights[0], 2) + ".";
      columns(weights, 1, "The weights of the keys, the largest first. " + says);
      return says;
    }
    figure.says(chart(divided, widths[width()], "Divided") + " "
      + chart(whole, 1, "Not divided"));
  });
});

// One number, and what activations make of it.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // No activation, ReLU, GELU in the tanh form, SiLU.
  live.bends = function (x) {
    var u = Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x);
    return [x, Math.max(0, x), 0.5 * x * (1 + Math.tanh(u)), x / (1 + Math.exp(-x))];
  };

  VerifiedBook.figure("activations", function (figure) {
    var written = VerifiedBook.written;
    var x = figure.slider("input", {
      from: -40, to: 40, value: 10 * figure.data.x,
      means: function (tenths) { return tenths / 10; },
      says: function (value) { return written(value, 1); },
    });
    var bars = figure.bars("What comes out", ["activation", "output"],
      ["none", "ReLU", "GELU", "SiLU"], -4, 4);
    figure.draws(function () {
      var y = live.bends(x());
      bars(y);
      figure.says("At " + written(x(), 1) + ", ReLU gives " + written(y[1], 2) + " and GELU "
        + written(y[2], 2) + ".");
    });
  });
})();

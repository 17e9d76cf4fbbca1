// What a position vector has in common with all others: their dot products.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // sin(omega_i pos), cos(omega_i pos), with omega_i = 10000^(-2 i / d).
  live.position = function (pos, width) {
    var vector = [];
    for (var i = 0; 2 * i < width; i += 1) {
      var omega = Math.pow(10000, -2 * i / width);
      vector.push(Math.sin(omega * pos), Math.cos(omega * pos));
    }
    return vector.slice(0, width);
  };

  live.dot = function (a, b) {
    return a.reduce(function (sum, each, i) { return sum + each * b[i]; }, 0);
  };

  VerifiedBook.figure("positions", function (figure) {
    var written = VerifiedBook.written;
    var seq = figure.data.seq;
    var widths = figure.data.widths;
    var here = figure.slider("position", { from: 0, to: seq - 1, value: figure.data.position });
    var offset = figure.slider("offset", {
      from: -30, to: 30, value: 10, says: function (steps) { return written(steps, 0); },
    });
    var width = figure.slider("width d", {
      from: 0, to: widths.length - 1, value: widths.indexOf(figure.data.width),
      means: function (i) { return widths[i]; },
    });
    var columns = figure.columns(seq, "Dot product with each of the positions 0 to " + (seq - 1));
    figure.draws(function () {
      var own = live.position(here(), width());
      var products = [];
      for (var pos = 0; pos < seq; pos += 1) {
        products.push(live.dot(own, live.position(pos, width())));
      }
      var there = here() + offset();
      var product = live.dot(own, live.position(there, width()));
      var says = "Positions " + written(here(), 0) + " and " + written(there, 0) + ": dot product "
        + written(product, 2) + ", of at most " + written(width() / 2, 0) + ".";
      columns(products, width() / 2, "Dot products of a position with all. " + says,
        -width() / 40, [here(), there]);
      figure.says(says);
    });
  });
})();

// Dropout at a rate that the reader sets.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // y_i = x_i / (1 - p) where the draw is p or more, and else 0.
  live.dropout = function (x, p, draws) {
    var scale = p < 1 ? 1 / (1 - p) : 0;
    return x.map(function (each, i) { return draws[i] >= p ? each * scale : 0; });
  };

  VerifiedBook.figure("dropout", function (figure) {
    var written = VerifiedBook.written;
    var x = figure.data.x;
    var drawn = [figure.data.draws];
    var p = figure.slider("p", {
      from: 0, to: 99, value: 25,
      means: function (percent) { return percent / 100; },
      says: function (rate) { return written(rate, 2); },
    });
    function draw() { return x.map(function () { return Math.random(); }); }
    figure.button("draw again", function () { drawn = [draw()]; });
    figure.button("draw a thousand times", function () {
      drawn = [];
      while (drawn.length < 1000) drawn.push(draw());
    });
    var names = x.map(function (each) { return written(each, 0); });
    var bars = figure.bars("What dropout makes of six features", ["feature", "output"], names, -12, 12);
    figure.draws(function () {
      var total = x.map(function () { return 0; });
      var kept = 0;
      drawn.forEach(function (draws) {
        live.dropout(x, p(), draws).forEach(function (y, i) {
          total[i] += y;
          kept += draws[i] >= p() ? 1 : 0;
        });
      });
      bars(total.map(function (sum) { return sum / drawn.length; }));
      figure.says(drawn.length === 1
        ? "Kept: " + kept + " of " + x.length + " features, each times " + written(1 / (1 - p()), 2) + "."
        : "The mean of a thousand draws: near each feature, and the less so the larger p.");
    });
  });
})();

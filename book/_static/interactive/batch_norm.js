// Four samples of a batch: what batch normalization makes of them, as one of them moves.
(function () {
  "use strict";

  // y = (x - mean) / sqrt(variance + 1e-5), of the batch's own mean and variance.
  VerifiedBook.interactive.batchNorm = function (values) {
    var n = values.length;
    var mean = values.reduce(function (sum, x) { return sum + x; }, 0) / n;
    var variance = values.reduce(function (sum, x) {
      return sum + (x - mean) * (x - mean);
    }, 0) / n;
    return values.map(function (x) { return (x - mean) / Math.sqrt(variance + 1e-5); });
  };

  VerifiedBook.figure("batch_norm", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var last = figure.slider("the fourth sample", { from: -20, to: 60, value: 6 });
    var training = figure.toggle("in training", true);
    var names = ["first", "second", "third", "fourth"];
    var bars = figure.bars("What the layer makes of the batch", ["sample", "output"], names, -4, 4);
    figure.draws(function () {
      var values = data.kept.concat([last()]);
      var made = training() ? VerifiedBook.interactive.batchNorm(values)
        : values.map(function (x) { return (x - data.mean) / data.deviation; });
      bars(made);
      figure.says("The first sample is " + written(values[0], 0) + ", and comes out as "
        + written(made[0], 2) + ".");
    });
  });
})();

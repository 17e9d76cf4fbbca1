// The weights of a regression under a penalty whose strength the reader sets.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // S(x) = sign(x) max(|x| - threshold, 0), of each element.
  live.softThreshold = function (x, threshold) {
    return x.map(function (each) {
      return each - Math.min(Math.max(each, -threshold), threshold);
    });
  };

  live.times = function (matrix, w) {
    return matrix.map(function (row) {
      return row.reduce(function (sum, each, i) { return sum + each * w[i]; }, 0);
    });
  };

  // w <- S(w - rate (G w - c)), many times: the least squares with the L1 penalty. G is the matrix
  // of the clues' dot products with each other, c the vector of those with the targets.
  live.lasso = function (gram, products, strength, rate, steps) {
    var w = products.map(function () { return 0; });
    function towards(slope, i) { return w[i] - rate * (slope - products[i]); }
    for (var step = 0; step < steps; step += 1) {
      w = live.softThreshold(live.times(gram, w).map(towards), rate * strength);
    }
    return w;
  };

  // (G + strength I) w = c, solved by elimination: the least squares with the L2 penalty.
  live.ridge = function (gram, products, strength) {
    var rows = gram.map(function (row, i) {
      return row.map(function (each, j) {
        return each + (i === j ? strength : 0);
      }).concat(products[i]);
    });
    rows.forEach(function (row, i) { // positive definite: no row need be exchanged
      rows.slice(i + 1).forEach(function (below) {
        var factor = below[i] / row[i];
        for (var j = i; j < below.length; j += 1) below[j] -= factor * row[j];
      });
    });
    var w = [];
    for (var i = rows.length - 1; i >= 0; i -= 1) {
      var known = 0;
      for (var j = i + 1; j < rows.length; j += 1) known += rows[i][j] * w[j];
      w[i] = (rows[i][rows.length] - known) / rows[i][i];
    }
    return w;
  };

  VerifiedBook.figure("penalties", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var strength = figure.slider("λ", {
      from: -20, to: 20, value: 0,
      means: function (twentieths) { return Math.pow(10, twentieths / 20); },
      says: function (lambda) { return written(lambda, 2); },
    });
    var kind = figure.choice("penalty", ["L1", "L2"]);
    var bars = figure.bars("The weight of each clue", ["clue", "weight"], data.names, -2, 6);
    figure.draws(function () {
      var isL1 = kind() === 0;
      var w = isL1
        ? live.lasso(data.gram, data.products, strength(), data.rate, 400)
        : live.ridge(data.gram, data.products, strength());
      var zeros = w.filter(function (weight) { return weight === 0; }).length;
      bars(w);
      figure.says((isL1 ? "L1" : "L2") + ": " + zeros + " of " + w.length + " weights are exactly zero.");
    });
  });
})();

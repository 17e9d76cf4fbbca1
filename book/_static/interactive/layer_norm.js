// Layer normalization of tokens that the reader edits, as it is defined and with three changes.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  live.mean = function (x) {
    return x.reduce(function (sum, each) { return sum + each; }, 0) / x.length;
  };

  // x - mean, and once more, for what rounding left of the mean.
  live.centered = function (x) {
    function less(y, mu) { return y.map(function (each) { return each - mu; }); }
    var once = less(x, live.mean(x));
    return less(once, live.mean(once));
  };

  // The sum of the squares of what is centered, divided by d; or, unbiased, by d - 1.
  live.variance = function (x, unbiased) {
    var squares = live.centered(x).map(function (each) { return each * each; });
    return live.mean(squares) * (unbiased ? x.length / (x.length - 1) : 1);
  };

  // y = (x - mean) / sqrt(variance + eps); or, outside, (x - mean) / (sqrt(variance) + eps).
  live.normalize = function (x, eps, unbiased, outside) {
    var variance = live.variance(x, unbiased);
    var divisor = outside ? Math.sqrt(variance) + eps : Math.sqrt(variance + eps);
    return live.centered(x).map(function (each) { return each / divisor; });
  };

  live.transpose = function (rows) {
    return rows[0].map(function (_, i) { return rows.map(function (row) { return row[i]; }); });
  };

  // Each token over its features; or, over the batch, each feature over the tokens.
  live.layerNorm = function (tokens, eps, wrong) {
    var over = wrong.batch ? live.transpose(tokens) : tokens;
    var y = over.map(function (x) {
      return live.normalize(x, eps, wrong.unbiased, wrong.outside);
    });
    return wrong.batch ? live.transpose(y) : y;
  };

  VerifiedBook.figure("layer_norm", function (figure) {
    var written = VerifiedBook.written;
    var element = VerifiedBook.element;
    var words = figure.data.words;
    var tokens = figure.data.tokens.map(function (token) { return token.slice(); });
    var eps = figure.slider("ε", {
      from: -12, to: 0, value: -5,
      means: function (power) { return Math.pow(10, power); },
      says: function (value) { return value.toExponential(0).replace("-", "−"); },
    });
    var unbiased = figure.toggle("divide the squares by d − 1", false);
    var outside = figure.toggle("ε outside the root", false);
    var batch = figure.toggle("over the words, not the features", false);
    var fields = tokens[0].map(function (value, i) {
      var field = element("input", {
        type: "number", step: "any", value: value,
        "aria-label": "feature " + (i + 1) + " of " + words[0],
      });
      field.addEventListener("input", function () {
        if (isFinite(field.valueAsNumber)) {
          tokens[0][i] = field.valueAsNumber;
          figure.redraw();
        }
      });
      return field;
    });
    function edit(change) {
      return function () {
        tokens[0] = tokens[0].map(change);
        fields.forEach(function (field, i) { field.value = Number(tokens[0][i].toPrecision(6)); });
      };
    }
    figure.button("a thousandth of it", edit(function (x) { return x / 1000; }));
    figure.button("all equal", edit(function (x, i, token) { return token[0]; }));
    figure.button("begin again", edit(function (x, i) { return figure.data.tokens[0][i]; }));
    var bars = figure.bars("“" + words[0] + "”, of the words “" + words.join(" ") + "”",
      ["feature", "normalized"], fields, -2.5, 2.5);
    figure.draws(function () {
      var wrong = { unbiased: unbiased(), outside: outside(), batch: batch() };
      var y = live.layerNorm(tokens, eps(), wrong)[0];
      var right = live.layerNorm(tokens, eps(), {})[0];
      var off = Math.max.apply(null, y.map(function (each, i) { return Math.abs(each - right[i]); }));
      bars(y);
      figure.says("Before: mean " + short(live.mean(tokens[0])) + ", deviation "
        + short(Math.sqrt(live.variance(tokens[0]))) + ". After: mean " + short(live.mean(y))
        + ", deviation " + short(Math.sqrt(live.variance(y))) + ". Largest difference from layer "
        + "normalization: " + short(off) + ".");
    });
    function short(number) {
      if (Math.abs(number) < 1e-12) return "0";
      return String(Number(number.toPrecision(3))).replace("-", "−");
    }
  });
})();

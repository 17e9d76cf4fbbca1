// Where the norm stands: a token after some sub-layers, of which each multiplies what it reads.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  function normed(x) {
    var mean = x.reduce(function (sum, each) { return sum + each; }, 0) / x.length;
    var variance = x.reduce(function (sum, each) { return sum + Math.pow(each - mean, 2); }, 0) / x.length;
    return x.map(function (each) { return (each - mean) / Math.sqrt(variance + 1e-5); });
  }

  function sum(x, y) { return x.map(function (each, i) { return each + y[i]; }); }

  var orders = [
    ["post-norm: LN(x + f(x))", function (x, f) { return normed(sum(x, f(x))); }],
    ["pre-norm: x + f(LN(x))", function (x, f) { return sum(x, f(normed(x))); }],
    ["OLMo 2: x + LN(f(x))", function (x, f) { return sum(x, normed(f(x))); }],
    ["Gemma 2: x + LN(f(LN(x)))", function (x, f) { return sum(x, normed(f(normed(x)))); }],
  ];

  // The token after so many sub-layers f(u) = factor u, in one of the orders.
  live.placed = function (x, order, factor, times) {
    function f(u) { return u.map(function (each) { return factor * each; }); }
    for (var i = 0; i < times; i += 1) x = orders[order][1](x, f);
    return x;
  };

  VerifiedBook.figure("norm_placement", function (figure) {
    var written = VerifiedBook.written;
    var x = figure.data.x;
    var order = figure.choice("order", orders.map(function (each) { return each[0]; }));
    var factor = figure.slider("f multiplies by", {
      from: 1, to: 30, value: 20,
      means: function (tenths) { return tenths / 10; },
      says: function (number) { return written(number, 1); },
    });
    var times = figure.slider("sub-layers", { from: 1, to: 6, value: 1 });
    var heads = ["feature", "value"];
    var features = x.map(function (each, i) { return String(i + 1); });
    var before = figure.bars("The token", heads, features, -1, 1);
    var after = figure.bars("What becomes of the token", heads, features, -1, 1);
    function mean(x) { return x.reduce(function (sum, each) { return sum + each; }, 0) / x.length; }
    function size(x) {
      var middle = mean(x);
      return Math.sqrt(mean(x.map(function (each) { return Math.pow(each - middle, 2); })));
    }
    // Both tables have one scale, which grows with what it must hold.
    function draw(bars, x, widest) {
      bars(x.map(function (each) { return each / widest; }),
        x.map(function (each) { return written(each, 2); }));
    }
    figure.draws(function () {
      var y = live.placed(x, order(), factor(), times());
      var widest = Math.max.apply(null, x.concat(y).map(Math.abs)) > 5 ? 30 : 5;
      draw(before, x, widest);
      draw(after, y, widest);
      figure.says("Standard deviation: " + written(size(x), 2) + ", then " + written(size(y), 2)
        + ". Mean: " + written(mean(x), 2) + ", then " + written(mean(y), 2)
        + ". The widest bars would be −" + widest + " and " + widest + ".");
    });
  });
})();

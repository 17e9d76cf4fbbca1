// The error at each rung of the model, with the right activation and with the wrong one.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // The first rung at which the error is more than so many times that of the right model.
  live.firstRungAbove = function (errors, noise, times) {
    for (var rung = 0; rung < errors.length; rung += 1) {
      if (errors[rung] > times * noise[rung] && errors[rung] > 0) return rung;
    }
    return -1;
  };

  VerifiedBook.figure("ladder", function (figure) {
    var data = figure.data;
    var precisions = Object.keys(data.right);
    var precision = figure.choice("precision", precisions);
    var exact = figure.toggle("exact GELU, the wrong one", false);
    var columns = figure.columns(data.names.length,
      "Relative error at each rung, from 1e−18 to 1 on a logarithmic scale");
    function short(error) { return error.toExponential(0).replace("-", "−"); }
    figure.draws(function () {
      var kind = precisions[precision()];
      var errors = (exact() ? data.wrong : data.right)[kind];
      var first = live.firstRungAbove(errors, data.right[kind], 10);
      var says = "The error of the logits is " + short(errors[errors.length - 1]) + ". "
        + (first < 0 ? "No rung leaves the noise."
          : "It leaves the noise at rung " + (first + 1) + ", " + data.names[first] + ".");
      var heights = errors.map(function (error) {
        return error > 0 ? 18 + Math.log(error) / Math.LN10 : 0;
      });
      columns(heights, 18, says, 0, first < 0 ? [] : [first]);
      figure.says(says);
    });
  });
})();

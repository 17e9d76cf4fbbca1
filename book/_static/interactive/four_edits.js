// The error at each rung of a Llama with a mistake in one of the four edits.
VerifiedBook.figure("four_edits", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var data = figure.data;
  var edits = Object.keys(data.errors);
  var edit = figure.choice("mistake", edits);
  var columns = figure.columns(data.names.length,
    "Relative error at each rung, from 1e−18 to 1 on a logarithmic scale");
  figure.add(VerifiedBook.element("div", {
    "aria-hidden": "true", style: "display: flex; gap: 1px; font-size: .8rem; margin-top: .3rem",
  }, data.labels.map(function (label) {
    return VerifiedBook.element("span", {
      style: "display: flex; flex: 1 1 0; justify-content: center; min-width: 0",
    }, VerifiedBook.element("span", {
      style: "line-height: 1; white-space: nowrap; writing-mode: vertical-rl",
    }, label));
  })));
  figure.draws(function () {
    var errors = data.errors[edits[edit()]];
    var first = live.firstRungAbove(errors, data.errors[edits[0]], 1000);
    var says = first < 0 ? "No rung leaves the noise."
      : "The error leaves the noise at rung " + (first + 1) + ", " + data.labels[first] + " (" + data.names[first] + ").";
    var heights = errors.map(function (error) {
      return error > 0 ? 18 + Math.log(error) / Math.LN10 : 0;
    });
    columns(heights, 18, says, 0, first < 0 ? [] : [first]);
    figure.says(says);
  });
});

// How different the words of a text stay on their way up, with residual connections and without.
(function () {
  "use strict";
  VerifiedBook.figure("residuals", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var depth = figure.slider("blocks", { from: 0, to: data.kept.length - 1, value: 8 });
    var bars = figure.bars("Share of the stream in which words differ",
      ["stack", "share"], ["with residual connections", "without"], 0, 1);
    figure.draws(function () {
      var l = depth();
      bars([data.kept[l], data.plain[l]], [written(data.kept[l], 3), written(data.plain[l], 3)]);
      figure.says("After " + l + (l === 1 ? " block: " : " blocks: ") + written(data.kept[l], 3) + " with, "
        + written(data.plain[l], 3) + " without.");
    });
  });
})();

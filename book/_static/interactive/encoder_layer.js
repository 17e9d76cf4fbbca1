// The steps of an encoder layer, one after another.
(function () {
  "use strict";
  VerifiedBook.figure("encoder_layer", function (figure) {
    var data = figure.data;
    var last = data.names.length - 1;
    var word = figure.choice("word", data.words);
    var step = figure.slider("step", {
      from: 0, to: last, value: 0,
      says: function (number) { return data.names[number]; },
    });
    var bars = figure.bars("Three features of a word", ["feature", "value"], ["1", "2", "3"], -2, 3);
    figure.draws(function () {
      bars(data.stages[step()][word()]);
      figure.says("Step " + step() + " of " + last + ": " + data.tells[step()]);
    });
  });
})();

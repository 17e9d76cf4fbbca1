// What a model answers while the product of an adapter's two matrices is turned up.
(function () {
  "use strict";
  VerifiedBook.figure("adapter", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var last = data.plural.length - 1;
    var strength = figure.slider("strength of the adapter", {
      from: 0, to: last, value: last, says: function (i) { return written(i / last, 2); },
    });
    var bars = figure.bars("How likely “are” is, beside “is”",
      ["text", "share"], data.texts, 0, 1);
    figure.draws(function () {
      var shares = data.plural[strength()];
      bars(shares);
      var wrong = data.texts.filter(function (text, i) {
        return (shares[i] > 0.5) !== data.right[i];
      });
      figure.says(wrong.length
        ? "Wrong after: " + wrong.join("; ") + "."
        : "All four verbs are right.");
    });
  });
})();

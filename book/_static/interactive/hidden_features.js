// Which hidden features of a trained layer open in a sentence that the reader makes, and what they write.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // What each feature adds to a score: how open it is, times what its row says.
  live.written = function (opened, says) {
    return opened.map(function (each, i) { return each * says[i]; });
  };

  VerifiedBook.figure("hidden_features", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var first = figure.choice("first noun", data.nouns, 0);
    var joint = figure.choice("between", data.joints, 0);
    var second = figure.choice("second noun", data.nouns, data.nouns.length - 1);
    var names = data.features.map(function (i) { return "feature " + i; });
    var open = figure.bars("How open each hidden feature is", ["feature", "open"], names, -1, 4);
    var adds = figure.bars("What it adds to the lead of “are” over “is”", ["feature", "adds"],
      names.concat("the others"), -10, 10);
    figure.draws(function () {
      var at = (first() * data.joints.length + joint()) * data.nouns.length + second();
      var lead = data.lead[at];
      open(data.opened[at]);
      var six = live.written(data.opened[at], data.says[at]);
      adds(six.concat(six.reduce(function (left, each) { return left - each; }, lead)));
      figure.says("the " + data.nouns[first()] + " " + data.joints[joint()] + " the "
        + data.nouns[second()] + " here: the model says “" + (lead > 0 ? "are" : "is")
        + "”, by " + written(Math.abs(lead), 1) + ".");
    });
  });
})();

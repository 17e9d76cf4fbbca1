// How many keys a decoder layer computes while it writes.
(function () {
  "use strict";

  // For each word: the keys of the target and of the source that are computed before it comes.
  VerifiedBook.interactive.decoderKeys = function (source, words, cached) {
    var steps = [];
    for (var n = 1; n <= words; n += 1) {
      steps.push(cached ? [1, n === 1 ? source : 0] : [n, source]);
    }
    return steps;
  };

  VerifiedBook.figure("decoder_cache", function (figure) {
    var live = VerifiedBook.interactive;
    var source = figure.slider("words of the source", { from: 1, to: 40, value: figure.data.source });
    var words = figure.slider("words written", { from: 1, to: 40, value: figure.data.words });
    var grows = figure.toggle("keep the keys", false);
    var columns = figure.columns(40, "Keys computed for each new word");
    figure.draws(function () {
      var steps = live.decoderKeys(source(), words(), grows());
      var each = steps.map(function (step) { return step[0] + step[1]; });
      var total = each.reduce(function (sum, keys) { return sum + keys; }, 0);
      var own = steps.reduce(function (sum, step) { return sum + step[0]; }, 0);
      while (each.length < 40) each.push(0);
      var says = total + " keys in all: " + own + " of the target, " + (total - own)
        + " of the source. The box is " + (source() + words()) + " keys high.";
      columns(each, source() + words(), "Keys computed for each new word. " + says);
      figure.says(says);
    });
  });
})();

// A table of next words, and what a beam search makes of it.
(function () {
  "use strict";

  // What a log-probability is divided by, of the number of words n.
  VerifiedBook.interactive.lengthPenalty = function (n, alpha, ofThePaper) {
    return Math.pow(ofThePaper ? (5 + n) / 6 : n, alpha);
  };

  // The finished sentences, the best first, and after how many steps the search stopped. Row i of the table has the probabilities of the words
  // behind word i; word 0 is the start, and word 1 ends a sentence.
  VerifiedBook.interactive.beamSearch = function (table, beams, most, divisor, exhaustive) {
    var running = [{ words: [], score: 0 }];
    var finished = [];
    for (var n = 1; n <= most; n += 1) {
      var longer = [];
      running.forEach(function (beam) {
        var last = beam.words.length ? beam.words[beam.words.length - 1] : 0;
        table[last].forEach(function (p, word) {
          if (p > 0) longer.push({ words: beam.words.concat([word]), score: beam.score + Math.log(p) });
        });
      });
      longer.sort(function (a, b) { return b.score - a.score; });
      running = [];
      longer.slice(0, 2 * beams).forEach(function (each, place) {
        if (n < most && each.words[n - 1] !== 1) running.push(each);
        else if (place < beams) {
          finished.push({ words: each.words, score: each.score, value: each.score / divisor(n) });
        }
      });
      finished.sort(function (a, b) { return b.value - a.value; });
      finished = finished.slice(0, beams);
      finished.steps = n;
      running = running.slice(0, beams);
      var reachable = exhaustive ? Math.max(divisor(n), divisor(most)) : divisor(n);
      var worst = finished.length < beams ? -Infinity : finished[beams - 1].value;
      if (!running.length || running[0].score / reachable <= worst) break;
    }
    return finished;
  };

  VerifiedBook.figure("beam_search", function (figure) {
    var live = VerifiedBook.interactive;
    var written = VerifiedBook.written;
    var tables = figure.data.tables;
    var chosen = figure.choice("table", tables.map(function (each) { return each.name; }), 0);
    var beams = figure.slider("beams", { from: 1, to: 4, value: 3 });
    var alpha = figure.slider("exponent of the length penalty", {
      from: 0, to: 20, value: 6,
      means: function (tenths) { return tenths / 10; },
      says: function (a) { return written(a, 1); },
    });
    var ofThePaper = figure.toggle("the paper's form, ((5 + n)/6) to the exponent", false);
    var exhaustive = figure.toggle("wait until no beam can win", true);
    var bars = figure.bars("Finished sentences: log-probability, divided by the length penalty",
      ["sentence", "quotient"], ["–", "–", "–", "–"], -2.5, 0);
    figure.draws(function () {
      var table = tables[chosen()];
      function divisor(n) { return live.lengthPenalty(n, alpha(), ofThePaper()); }
      function text(each) {
        return each.words.map(function (word) { return table.words[word]; }).join(" ");
      }
      var found = live.beamSearch(table.rows, beams(), figure.data.most, divisor, exhaustive());
      var values = [0, 1, 2, 3].map(function (i) { return found[i] ? found[i].value : 0; });
      bars(values, values.map(function (value, i) { return found[i] ? written(value, 2) : "–"; }),
        values.map(function (_, i) { return found[i] ? text(found[i]) : "–"; }));
      var best = found[0];
      figure.says("The search returns “" + text(best) + "”: " + written(best.score, 2) + " / "
        + written(divisor(best.words.length), 2) + " = " + written(best.value, 2)
        + ". It stopped after " + found.steps + " words, with the divisor of "
        + (exhaustive() ? "the longest length." : "the present length."));
    });
  });
})();

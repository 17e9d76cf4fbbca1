// What a small GPT makes of a sentence that the reader chooses, stop by stop.
VerifiedBook.figure("forward", function (figure) {
  "use strict";
  var live = VerifiedBook.interactive;
  var data = figure.data;
  var choices = data.choices.map(function (words, i) {
    return figure.choice(data.labels[i], words);
  });
  var names = ["", "", "", "", "", ""];
  var looks = figure.bars("How much the last word takes of each word", ["word", "weight"], names, 0, 1);
  var leans = figure.bars("Score of “is” minus score of “are”", ["after", "difference"], data.stops, -12, 12);
  figure.draws(function () {
    var sentence = data.sentences[choices.reduce(function (place, choice, i) {
      return place * data.choices[i].length + choice();
    }, 0)];
    looks(live.softmax(sentence.scores), null, sentence.words);
    leans(sentence.leans);
    var says = sentence.leans.map(function (lean, i) {
      return "after " + data.stops[i] + " “" + (lean > 0 ? "is" : "are") + "”";
    });
    figure.says("“" + sentence.words.join(" ") + "”: " + says.join(", ") + ". Right is “" + sentence.right + "”.");
  });
});

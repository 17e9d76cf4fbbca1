// What a small model answers to a question about facts, with some of its heads taken out.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // The number of a choice of heads: the sum of 2^h over the heads h that stay.
  live.numberOf = function (stays) {
    return stays.reduce(function (sum, each, h) { return sum + (each ? Math.pow(2, h) : 0); }, 0);
  };

  VerifiedBook.figure("lookup", function (figure) {
    var data = figure.data;
    var heads = data.blocks.reduce(function (all, name) {
      for (var h = 1; h <= data.heads; h++) all.push(figure.toggle(name + ", head " + h, true));
      return all;
    }, []);
    var bars = figure.bars("What comes after “" + data.question + "”", ["color", "probability"],
      data.colors, 0, 1);
    figure.draws(function () {
      var stays = heads.map(function (head) { return head(); });
      var shares = data.shares[live.numberOf(stays)];
      bars(shares);
      var best = shares.indexOf(Math.max.apply(null, shares));
      var left = stays.filter(Boolean).length;
      figure.says(left + " of " + stays.length + " heads stay. Of the colors, “" + data.colors[best]
        + "” is the likeliest: " + (data.colors[best] === data.right ? "right." : "wrong."));
    });
  });
})();

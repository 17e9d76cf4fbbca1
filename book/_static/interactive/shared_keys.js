// What a cache of keys and values holds, by how many heads of keys there are.
(function () {
  "use strict";

  // Bytes of a token: keys and values of each block and each head of keys, two bytes a number.
  VerifiedBook.interactive.cacheBytes = function (layers, kvHeads, features) {
    return 2 * layers * kvHeads * features * 2;
  };

  VerifiedBook.figure("shared_keys", function (figure) {
    var written = VerifiedBook.written;
    var data = figure.data;
    var sharing = figure.slider("query heads that read one head of keys", {
      from: 0, to: 5, value: 2,
      means: function (power) { return Math.pow(2, power); },
    });
    var words = figure.slider("words in the cache", {
      from: 0, to: 17, value: 13,
      means: function (power) { return Math.pow(2, power); },
    });
    var names = ["a head of keys for each", "shared"];
    var bars = figure.bars("GiB of the cache", ["keys", "GiB"], names, 0, 64);
    figure.draws(function () {
      var bytes = [data.heads, data.heads / sharing()].map(function (kvHeads) {
        return VerifiedBook.interactive.cacheBytes(data.layers, kvHeads, data.features) * words();
      });
      bars(bytes.map(function (each) { return each / Math.pow(2, 30); }));
      figure.says(data.heads / sharing() + " heads of keys keep " +
        written(bytes[1] / words() / 1024, 0) + " KiB for each word.");
    });
  });
})();

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
    function power(exponent) { return Math.pow(2, exponent); }
    var readers = figure.slider("query heads that read one head of keys", {
      from: 0, to: 5, value: 2, means: power,
    });
    var context = figure.slider("tokens in each text", { from: 0, to: 17, value: 13, means: power });
    var texts = figure.slider("texts at a time", { from: 0, to: 6, value: 4, means: power });
    var names = ["weights", "cache, own keys", "cache, shared keys"];
    var high = 2 * data.memory;
    var bars = figure.bars("In memory, from 0 to " + high + " GB. Gray: the weights. Dashed: "
      + data.memory + " GB.", ["kept", "GB"], names, 0, high);
    // Each cache is drawn behind the weights of its model, and each row has the line.
    var below = names.map(function (name, i) {
      var room = figure.stage.querySelectorAll(".live-room")[i];
      var weights = VerifiedBook.element("span", { "class": "live-bar" });
      weights.style.left = 0;
      room.insertBefore(weights, room.firstChild);
      [weights].concat(i ? [] : [room.lastChild]).forEach(function (bar) {
        bar.style.background = "var(--figure-5)";
      });
      room.appendChild(VerifiedBook.element("span", {
        style: "border-left: 2px dashed currentColor; bottom: 0; left: 50%; position: absolute; top: 0",
      }));
      return { weights: weights, cache: room.querySelectorAll(".live-bar")[1] };
    });
    figure.draws(function () {
      var tokens = context() * texts();
      var kvHeads = data.heads / readers();
      var gb = [data.heads, kvHeads].map(function (heads) {
        return VerifiedBook.interactive.cacheBytes(data.layers, heads, data.features) * tokens / 1e9;
      });
      var weights = data.weights[kvHeads];  // maps to fewer keys are smaller
      var room = data.memory - weights - gb[1];
      bars([weights].concat(gb));
      [0, data.weights[data.heads], weights].forEach(function (kept, i) {
        var from = 100 * kept / high;
        below[i].weights.style.width = from + "%";
        below[i].cache.style.left = from + "%";
        if (i) below[i].cache.style.width = Math.min(100 * gb[i - 1] / high, 100 - from) + "%";
      });
      figure.says((kvHeads === 1 ? "One head" : kvHeads + " heads") + " of keys in each block: the shared cache "
        + (room < 0 ? "does not fit beside the weights in " : "fits beside the weights in ")
        + written(data.memory, 0) + " GB.");
    });
  });
})();

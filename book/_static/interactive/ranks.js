// What each rank holds and sends in a step, by the way that ranks share a model.
(function () {
  "use strict";

  // Of blocks of 12 d² weights each, in float32, without embeddings. Bytes of each way, in this order:
  // ddp, ZeRO 1, ZeRO 2, FSDP, tensor, pipeline, context, experts (one for each rank). A step has a
  // sequence for each rank, and a rank computes one at a time: `waiting` are its activations.
  VerifiedBook.interactive.ways = function (ranks, blocks, width, tokens) {
    var weights = 4 * blocks * 12 * width * width;
    var stream = 4 * tokens * width; // a vector for each token
    var round = (ranks - 1) / ranks; // the share that one round of a ring sends
    var summed = 2 * round * weights;
    var sequence = 16 * blocks * stream / ranks; // 4 d numbers of a token by the norms, 12 d between
    return {
      held: [
        4 * weights, 2 * weights + 2 * weights / ranks, weights + 3 * weights / ranks,
        4 * weights / ranks, 4 * weights / ranks, 4 * weights / ranks, 4 * weights, 4 * weights,
      ],
      waiting: [
        sequence, sequence, sequence, sequence, (4 + 12 / ranks) / 16 * sequence, sequence,
        sequence / ranks, sequence,
      ],
      sent: [
        summed, summed, summed, 3 * round * weights, 2 * round * 4 * blocks * stream, 2 * stream,
        summed + 3 * round * blocks * 2 * stream, summed / 3 + 4 * round * blocks * stream / ranks,
      ],
    };
  };

  VerifiedBook.figure("ranks", function (figure) {
    var written = VerifiedBook.written;
    var power = function (exponent) { return Math.pow(2, exponent); };
    var ranks = figure.slider("ranks", { from: 1, to: 10, value: 3, means: power });
    var width = figure.slider("width d of the model", { from: 10, to: 14, value: 12, means: power });
    var tokens = figure.slider("tokens of a sequence", { from: 9, to: 19, value: 12, means: power });
    var names = ["ddp", "ZeRO 1", "ZeRO 2", "FSDP", "tensor", "pipeline", "context", "experts"];
    var held = figure.bars("Held by a rank: blue for weights, gradients, moments, orange for activations",
      ["way", "GB"], names, 0, 1);
    var second = Array.prototype.map.call(figure.stage.querySelectorAll(".live-room"), function (room) {
      var bar = VerifiedBook.element("span", { "class": "live-bar" });
      bar.style.background = "var(--figure-1)";
      room.appendChild(bar);
      return bar;
    });
    var sent = figure.bars("Sent by a rank in a step", ["way", "GB"], names, 0, 1);
    function draw(bars, values) {
      var most = Math.max.apply(null, values);
      bars(
        values.map(function (value) { return value / most; }),
        values.map(function (value) { return value ? written(value / 1e9, 2) : "–"; })
      );
      return most;
    }
    figure.draws(function () {
      var blocks = width() / 128; // as many heads: no more ranks can share them
      var bytes = VerifiedBook.interactive.ways(ranks(), blocks, width(), ranks() * tokens());
      function possible(value, i) { return (i === 4 || i === 5) && ranks() > blocks ? 0 : value; }
      var state = bytes.held.map(possible);
      var waiting = bytes.waiting.map(possible);
      var most = draw(held, state.map(function (value, i) { return value + waiting[i]; }));
      second.forEach(function (bar, i) {
        bar.style.left = 100 * state[i] / most + "%";
        bar.style.width = 100 * waiting[i] / most + "%";
        bar.style.display = waiting[i] ? "" : "none";
      });
      draw(sent, bytes.sent.map(possible));
      figure.says(written(blocks * 12 * width() * width() / 1e9, 2) + " billion weights in " + blocks
        + " blocks. FSDP holds " + written(bytes.held[3] / 1e9, 1) + " GB for its part on each of " + ranks()
        + " ranks, and " + written(bytes.waiting[3] / 1e9, 1) + " GB of activations.");
    });
  });
})();

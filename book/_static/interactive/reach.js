// Which tokens reach the last one through layers with a window, and by how many paths.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // For each number of tokens back, from 0: the paths from there to the last token. In each layer a
  // path stays or goes up to width - 1 tokens on.
  live.paths = function (width, layers) {
    var counts = [1];
    for (var layer = 0; layer < layers; layer += 1) {
      var longer = [];
      for (var back = 0; back < counts.length + width - 1; back += 1) {
        var sum = 0;
        for (var step = 0; step < width; step += 1) sum += counts[back - step] || 0;
        longer.push(sum);
      }
      counts = longer;
    }
    return counts;
  };

  VerifiedBook.figure("reach", function (figure) {
    var element = VerifiedBook.element;
    var tokens = figure.data.tokens;
    var layers = figure.slider("layers", { from: 1, to: 5, value: figure.data.layers });
    var width = figure.slider("tokens in a window", { from: 1, to: 6, value: figure.data.window });
    var grid = figure.add(element("div", { "class": "live-rounds", role: "img" }));
    figure.draws(function () {
      grid.textContent = "";
      for (var above = 0; above <= layers(); above += 1) {
        var paths = live.paths(width(), above);
        var most = Math.max.apply(null, paths);
        var row = [element("span", { "class": "live-name" }, layers() - above)];
        for (var place = 0; place < tokens; place += 1) {
          var count = paths[tokens - 1 - place] || 0;
          row.push(element("span", {
            "class": count ? "live-computed" : "live-kept",
            style: count ? "opacity: " + (0.25 + 0.75 * count / most).toFixed(2) : null,
          }));
        }
        grid.appendChild(element("div", {}, row));
      }
      var all = live.paths(width(), layers());
      var says = "The last output reaches " + (all.length - 1) + " tokens back. Of "
        + Math.pow(width(), layers()) + " paths, 1 comes from the farthest token.";
      grid.setAttribute("aria-label", says);
      figure.says(says);
    });
  });
})();

// How many positions go through the model in each round of writing, with a cache and without.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // Round r reads all T + r tokens; with a cache the first reads T, and each other one.
  live.positionsComputed = function (prompt, rounds, cached) {
    var counts = [];
    for (var r = 0; r < rounds; r += 1) counts.push(cached && r > 0 ? 1 : prompt + r);
    return counts;
  };

  VerifiedBook.figure("cache", function (figure) {
    var element = VerifiedBook.element;
    var most = figure.data.most;
    var prompt = figure.slider("prompt", { from: 1, to: most, value: figure.data.prompt });
    var rounds = figure.slider("new tokens", { from: 1, to: most, value: figure.data.rounds });
    var cached = figure.toggle("with a cache", true);
    var grid = figure.add(element("div", { "class": "live-rounds", role: "img" }));
    function total(withCache) {
      return live.positionsComputed(prompt(), rounds(), withCache).reduce(function (sum, count) {
        return sum + count;
      }, 0);
    }
    figure.draws(function () {
      var says = "Positions computed: " + total(true) + " with a cache, " + total(false)
        + " without one.";
      grid.textContent = "";
      live.positionsComputed(prompt(), rounds(), cached()).forEach(function (count, r) {
        var row = element("div");
        for (var place = 0; place < 2 * most - 1; place += 1) {
          var there = prompt() + r;
          row.appendChild(element("span", {
            "class": place >= there ? "" : place >= there - count ? "live-computed" : "live-kept",
          }));
        }
        grid.appendChild(row);
      });
      grid.setAttribute("aria-label", (cached() ? "With a cache. " : "Without a cache. ") + says);
      figure.says(says);
    });
  });
})();

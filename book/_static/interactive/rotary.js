// Clocks of several speeds. Each has two hands, the query and the key, turned by their positions.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // The pair (a, b) turned by the position times theta.
  live.turned = function (pair, position, theta) {
    var cos = Math.cos(position * theta);
    var sin = Math.sin(position * theta);
    return [pair[0] * cos - pair[1] * sin, pair[1] * cos + pair[0] * sin];
  };

  // The score of a query at m and a key at n, of one pair of features each.
  live.rotaryScore = function (query, key, m, n, theta) {
    var q = live.turned(query, m, theta);
    var k = live.turned(key, n, theta);
    return q[0] * k[0] + q[1] * k[1];
  };

  function drawn(name, attributes) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    return made;
  }

  // A clock whose thin, dashed hands stay where its two hands are at position 0.
  function clock(starts) {
    var face = drawn("svg", { viewBox: "-1.3 -1.3 2.6 2.6", style: "display: block; width: 100%" });
    face.appendChild(drawn("circle", {
      r: 1.2, fill: "none", stroke: "currentColor", "stroke-width": 0.02,
    }));
    var hands = starts.map(function (start, i) {
      var color = "var(--figure-" + i + ")";
      face.appendChild(drawn("line", {
        x1: 0, y1: 0, x2: start[0], y2: -start[1], stroke: color, "stroke-width": 0.03,
        "stroke-dasharray": "0.1 0.07",
      }));
      return face.appendChild(drawn("line", { x1: 0, y1: 0, stroke: color, "stroke-width": 0.08 }));
    });
    return { face: face, hands: hands };
  }

  VerifiedBook.figure("rotary", function (figure) {
    var written = VerifiedBook.written;
    var element = VerifiedBook.element;
    var data = figure.data;
    var m = figure.slider("position of the query", { from: 0, to: 100, value: data.m });
    var n = figure.slider("position of the key", { from: 0, to: 100, value: data.n });
    figure.button("both one word on", function () {
      m.set((m() + 1) % 101);
      n.set((n() + 1) % 101);
    });
    var clocks = data.speeds.map(function () { return clock([data.query, data.key]); });
    var scores = data.speeds.map(function () { return element("td", { "class": "live-number" }); });
    var turns = data.speeds.map(function (theta) {
      return element("th", { scope: "col" }, written(2 * Math.PI / theta, 0));
    });
    figure.add(element("table", { "class": "live-map" }, [
      element("caption", {}, "The hands of one head, from the fastest to the slowest"),
      element("thead", {}, element("tr", {}, [
        element("th", { scope: "col" }, "words a turn"),
      ].concat(turns))),
      element("tbody", {}, [
        element("tr", { "aria-hidden": "true" }, [element("td")].concat(clocks.map(function (each) {
          return element("td", {}, each.face);
        }))),
        element("tr", {}, [element("th", { scope: "row" }, "score")].concat(scores)),
      ]),
    ]));
    figure.draws(function () {
      var sum = 0;
      clocks.forEach(function (each, i) {
        [[data.query, m()], [data.key, n()]].forEach(function (hand, j) {
          var to = live.turned(hand[0], hand[1], data.speeds[i]);
          each.hands[j].setAttribute("x2", to[0]);
          each.hands[j].setAttribute("y2", -to[1]);
        });
        var score = live.rotaryScore(data.query, data.key, m(), n(), data.speeds[i]);
        scores[i].textContent = written(score, 2);
        sum += score;
      });
      figure.says("The query (blue) stands at " + m() + ", the key (orange) at " + n()
        + ". Their distance is " + written(m() - n(), 0) + ", and the scores add up to "
        + written(sum, 2) + ". Dashed: the hands at position 0.");
    });
  });
})();

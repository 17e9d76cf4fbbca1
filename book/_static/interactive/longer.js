// Clocks with the angles that training has shown, and a hand at the angle of any distance.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // Whether a hand stands where no distance of training, 0 to length - 1, has brought it: beyond the
  // last angle that it met, and before the whole turn. Both speeds are in radians a token.
  live.unmetAngle = function (distance, speed, trained, length) {
    var met = (length - 1) * trained;
    return distance * speed % (2 * Math.PI) > met + 1e-6;
  };

  function drawn(name, attributes) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    return made;
  }

  // A clock whose colored part are the angles from 0 on that training has shown.
  function clock(met) {
    var face = drawn("svg", { viewBox: "-1.3 -1.3 2.6 2.6", style: "display: block; width: 100%" });
    face.appendChild(drawn("circle", {
      r: 1.2, stroke: "currentColor", "stroke-width": 0.02,
      fill: met < 2 * Math.PI ? "none" : "var(--figure-0)", "fill-opacity": 0.3,
    }));
    if (met < 2 * Math.PI) {
      face.appendChild(drawn("path", {
        d: "M 0 0 L 1.2 0 A 1.2 1.2 0 " + (met > Math.PI ? 1 : 0) + " 0 "
          + 1.2 * Math.cos(met) + " " + -1.2 * Math.sin(met) + " Z",
        fill: "var(--figure-0)", "fill-opacity": 0.3,
      }));
    }
    var hand = drawn("line", { x1: 0, y1: 0, stroke: "var(--figure-1)", "stroke-width": 0.1 });
    face.appendChild(hand);
    return { face: face, hand: hand };
  }

  VerifiedBook.figure("longer", function (figure) {
    var written = VerifiedBook.written;
    var element = VerifiedBook.element;
    var data = figure.data;
    var trained = data.speeds[0];
    var distance = figure.slider("distance", {
      from: 0, to: data.factor * data.length - 1, value: data.distance,
    });
    var scaling = figure.choice("scaling", data.names);
    var clocks = trained.map(function (speed) { return clock((data.length - 1) * speed); });
    var heads = trained.map(function () { return element("th", { scope: "col" }); });
    var words = trained.map(function () { return element("td"); });
    figure.add(element("table", { "class": "live-map" }, [
      element("caption", {}, "The hands of one head, from the fastest to the slowest"),
      element("thead", {}, element("tr", {}, [
        element("th", { scope: "col" }, "tokens a turn"),
      ].concat(heads))),
      element("tbody", {}, [
        element("tr", { "aria-hidden": "true" }, [element("td")].concat(clocks.map(function (each) {
          return element("td", {}, each.face);
        }))),
        element("tr", {}, [element("th", { scope: "row" }, "in training")].concat(words)),
      ]),
    ]));
    figure.draws(function () {
      var speeds = data.speeds[scaling()];
      var unmet = 0;
      speeds.forEach(function (speed, i) {
        var angle = distance() * speed;
        clocks[i].hand.setAttribute("x2", Math.cos(angle));
        clocks[i].hand.setAttribute("y2", -Math.sin(angle));
        heads[i].textContent = written(2 * Math.PI / speed, 0);
        var isNew = live.unmetAngle(distance(), speed, trained[i], data.length);
        words[i].textContent = isNew ? "new" : "met";
        unmet += isNew ? 1 : 0;
      });
      figure.says("At a distance of " + distance() + ", " + unmet + " of " + speeds.length
        + " hands stand at an angle that training did not show. Colored: the angles of distances up to "
        + (data.length - 1) + ".");
    });
  });
})();

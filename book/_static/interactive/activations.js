// One number, what activations make of it, and how steep they are there.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // No activation, ReLU, GELU in the tanh form, SiLU.
  live.bends = function (x) {
    var u = Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x);
    return [x, Math.max(0, x), 0.5 * x * (1 + Math.tanh(u)), x / (1 + Math.exp(-x))];
  };

  // Their derivatives.
  live.slopes = function (x) {
    var root = Math.sqrt(2 / Math.PI);
    var tanh = Math.tanh(root * (x + 0.044715 * x * x * x));
    var steep = root * (1 + 3 * 0.044715 * x * x);
    var gate = 1 / (1 + Math.exp(-x));
    return [
      1, x > 0 ? 1 : 0,
      0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * steep,
      gate + x * gate * (1 - gate),
    ];
  };

  function drawn(name, attributes, text) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text) made.textContent = text;
    return made;
  }

  VerifiedBook.figure("activations", function (figure) {
    var written = VerifiedBook.written;
    var x = figure.slider("input", {
      from: -40, to: 40, value: 10 * figure.data.x,
      means: function (tenths) { return tenths / 10; },
      says: function (value) { return written(value, 1); },
    });
    // The curves, with y upwards, and below them the slopes, of which a unit is twice as high. The
    // place in `looks` is the place in what `bends` and `slopes` return.
    var plot = drawn("svg", {
      viewBox: "-4.3 -4.3 8.6 8.7", width: "430", height: "435", "aria-hidden": "true",
      style: "display: block; height: auto; margin: 0 auto; max-width: 100%",
    });
    var base = 3.5;
    function steepness(slope) { return base - 2 * slope; }
    function line(x1, y1, x2, y2) {
      var made = drawn("line", {
        x1: x1, y1: y1, x2: x2, y2: y2, stroke: "currentColor", "stroke-width": 0.015,
      });
      plot.appendChild(made);
      return made;
    }
    function label(text, attributes) {
      attributes["font-size"] = 0.3;
      plot.appendChild(drawn("text", attributes, text));
    }
    line(-4, 0, 4, 0);
    line(0, -4, 0, 0.4);
    [-4, -2, 2, 4].forEach(function (tick) {
      line(tick, 0, tick, 0.08);
      label(written(tick, 0), { x: tick, y: 0.68, "text-anchor": "middle", fill: "currentColor" });
    });
    [2, 4].forEach(function (tick) {
      line(-0.08, -tick, 0, -tick);
      label(written(tick, 0), { x: -0.2, y: 0.1 - tick, "text-anchor": "end", fill: "currentColor" });
    });
    line(-4, base, 4, base);
    line(0, base - 2.4, 0, base + 0.4);
    [0.5, 1].forEach(function (tick) {
      line(-0.08, steepness(tick), 0, steepness(tick));
      label(written(tick, 1), { x: -0.2, y: 0.1 + steepness(tick), "text-anchor": "end", fill: "currentColor" });
    });
    label("output", { x: 0.15, y: -3.95, fill: "currentColor" });
    label("slope", { x: 0.15, y: base - 2.3, fill: "currentColor" });
    [0, base].forEach(function (height) {
      label("input", { x: 3, y: height + 0.68, "text-anchor": "middle", fill: "currentColor" });
    });
    [-4, -2, 2, 4].forEach(function (tick) {
      line(tick, base, tick, base + 0.08);
      label(written(tick, 0), { x: tick, y: base + 0.68, "text-anchor": "middle", fill: "currentColor" });
    });
    var at = line(0, -4, 0, base + 0.4);
    at.setAttribute("stroke-dasharray", "0.08 0.08");
    var looks = [
      null,
      { name: "ReLU", color: "var(--figure-5)", dashes: "0.2 0.1" },
      { name: "GELU", color: "var(--figure-2)", dashes: "none" },
      { name: "SiLU", color: "var(--figure-1)", dashes: "0.06 0.06" },
    ];
    var points = looks.map(function (look, i) {
      if (!look) return null;
      var path = [];
      for (var tenths = -40; tenths <= 40; tenths += 1) {
        path.push(tenths / 10 + "," + -live.bends(tenths / 10)[i]);
      }
      plot.appendChild(drawn("polyline", {
        points: path.join(" "), fill: "none", stroke: look.color, "stroke-width": 0.06,
        "stroke-dasharray": look.dashes,
      }));
      plot.appendChild(drawn("line", {
        x1: -3.9, x2: -3.2, y1: -4.2 + 0.45 * i, y2: -4.2 + 0.45 * i, stroke: look.color,
        "stroke-width": 0.06, "stroke-dasharray": look.dashes,
      }));
      label(look.name, { x: -3, y: -4.1 + 0.45 * i, fill: "currentColor" });
      plot.appendChild(drawn("polyline", {
        points: path.map(function (_, n) {
          var at = (n - 40) / 10;
          return [at - 1e-9, at + 1e-9].map(function (side) { // a jump is upright
            return at + "," + steepness(live.slopes(side)[i]);
          }).join(" ");
        }).join(" "),
        fill: "none", stroke: look.color, "stroke-width": 0.06, "stroke-dasharray": look.dashes,
      }));
      return [0, 1].map(function () {
        return plot.appendChild(drawn("circle", { r: 0.11, fill: look.color }));
      });
    });
    figure.add(plot);
    var bars = figure.bars("What comes out", ["activation", "output"],
      ["none", "ReLU", "GELU", "SiLU"], -4, 4);
    var steep = figure.bars("How steep it is there", ["activation", "slope"],
      ["none", "ReLU", "GELU", "SiLU"], -1.2, 1.2);
    figure.draws(function () {
      var y = live.bends(x());
      var slopes = live.slopes(x());
      bars(y);
      steep(slopes);
      at.setAttribute("x1", x());
      at.setAttribute("x2", x());
      points.forEach(function (point, i) {
        if (!point) return;
        point.forEach(function (each) { each.setAttribute("cx", x()); });
        point[0].setAttribute("cy", -y[i]);
        point[1].setAttribute("cy", steepness(slopes[i]));
      });
      figure.says("At " + written(x(), 1) + ", ReLU gives " + written(y[1], 2) + " and GELU "
        + written(y[2], 2) + ". Their slopes are " + written(slopes[1], 2) + " and "
        + written(slopes[2], 2) + ".");
    });
  });
})();

// A gate and what it lets through, with four activations of the gate.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // The gate as it is, through ReLU, through GELU in the tanh form, through SiLU; times `up`.
  live.gated = function (gate, up) {
    var u = Math.sqrt(2 / Math.PI) * (gate + 0.044715 * gate * gate * gate);
    return [
      gate, Math.max(0, gate), 0.5 * gate * (1 + Math.tanh(u)), gate / (1 + Math.exp(-gate)),
    ].map(function (open) { return open * up; });
  };

  function drawn(name, attributes, text) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text) made.textContent = text;
    return made;
  }

  VerifiedBook.figure("gates", function (figure) {
    var written = VerifiedBook.written;
    function tenths(label, value) {
      return figure.slider(label, {
        from: -30, to: 30, value: 10 * value,
        means: function (tenths) { return tenths / 10; },
        says: function (number) { return written(number, 1); },
      });
    }
    var gate = tenths("gate", figure.data.gate);
    var up = tenths("what may pass", figure.data.up);
    // The curves, with y upwards: an output is drawn at a third of its size.
    var plot = drawn("svg", {
      viewBox: "-5.5 -3.3 11 6.6", width: "430", height: "200", "aria-hidden": "true",
      style: "display: block; margin: 0 auto; max-width: 100%",
    });
    function line(x1, y1, x2, y2) {
      return plot.appendChild(drawn("line", {
        x1: x1, y1: y1, x2: x2, y2: y2, stroke: "currentColor", "stroke-width": 0.015,
      }));
    }
    function label(text, x, y, anchor) {
      plot.appendChild(drawn("text", {
        x: x, y: y, "text-anchor": anchor, "font-size": 0.42, fill: "currentColor",
      }, text));
    }
    line(-3, 0, 3, 0);
    line(0, -3, 0, 3);
    label("gate", 3.1, 0.1, "start");
    label("what passes", 0.2, -2.9, "start");
    [-3, 3].forEach(function (tick) {
      line(tick, 0, tick, 0.08);
      label(written(tick, 0), tick, 0.55, "middle");
      line(-0.08, -tick, 0, -tick);
      label(written(3 * tick, 0), -0.2, 0.1 - tick, "end");
    });
    var at = line(0, -3, 0, 3);
    at.setAttribute("stroke-dasharray", "0.08 0.08");
    var looks = [
      { name: "nothing", dashes: "0.06 0.06" }, { name: "ReLU", dashes: "0.2 0.1" },
      { name: "GELU", dashes: "none" }, { name: "SiLU", dashes: "none" },
    ];
    looks.forEach(function (look, i) {
      var color = "var(--figure-" + i + ")";
      var style = {
        fill: "none", stroke: color, "stroke-width": 0.06, "stroke-dasharray": look.dashes,
      };
      look.curve = plot.appendChild(drawn("polyline", style));
      plot.appendChild(drawn("polyline", style)).setAttribute(
        "points", "-5.3," + (-2.9 + 0.6 * i) + " -4.5," + (-2.9 + 0.6 * i)
      );
      label(look.name, -4.3, -2.75 + 0.6 * i, "start");
      look.point = plot.appendChild(drawn("circle", { r: 0.11, fill: color }));
    });
    figure.add(plot);
    var bars = figure.bars("What passes", ["gate goes through", "output"],
      ["nothing: bilinear", "ReLU: ReGLU", "GELU: GEGLU", "SiLU: SwiGLU"], -9, 9);
    figure.draws(function () {
      var y = live.gated(gate(), up());
      bars(y);
      var curves = looks.map(function () { return []; });
      for (var tenth = -30; tenth <= 30; tenth += 1) {
        live.gated(tenth / 10, up()).forEach(function (height, i) {
          curves[i].push(tenth / 10 + "," + -height / 3);
        });
      }
      looks.forEach(function (look, i) {
        look.curve.setAttribute("points", curves[i].join(" "));
        look.point.setAttribute("cx", gate());
        look.point.setAttribute("cy", -y[i] / 3);
      });
      at.setAttribute("x1", gate());
      at.setAttribute("x2", gate());
      figure.says("A gate of " + written(gate(), 1) + " in SwiGLU makes " + written(y[3], 2)
        + " of " + written(up(), 1) + ".");
    });
  });
})();

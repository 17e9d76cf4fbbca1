// The error at each rung of the model, with the right activation and with the wrong one.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // The first rung at which the error is more than so many times that of the right model.
  live.firstRungAbove = function (errors, noise, times) {
    for (var rung = 0; rung < errors.length; rung += 1) {
      if (errors[rung] > times * noise[rung] && errors[rung] > 0) return rung;
    }
    return -1;
  };

  function drawn(name, attributes, text) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text) made.textContent = text;
    return made;
  }

  VerifiedBook.figure("ladder", function (figure) {
    var data = figure.data;
    var precisions = Object.keys(data.right);
    var precision = figure.choice("precision", precisions);
    var exact = figure.toggle("wrong GELU", false);
    var plot = drawn("svg", {
      viewBox: "0 0 430 262", role: "img", fill: "currentColor", "font-size": 15,
      style: "display: block; max-width: 32rem; width: 100%",
    });
    function across(rung) { return 54 + 370 * (rung + 0.5) / data.names.length; }
    // From 1 at the top to 1e-18 at the bottom; no error at all is not drawn.
    function down(error) { return 26 - 190 / 18 * Math.log(error) / Math.LN10; }
    function label(text, x, y, anchor) {
      return plot.appendChild(drawn("text", { x: x, y: y, "text-anchor": anchor }, text));
    }
    function line(x1, y1, x2, y2) {
      plot.appendChild(drawn("line", {
        x1: x1, y1: y1, x2: x2, y2: y2, stroke: "currentColor", "stroke-opacity": 0.2,
      }));
    }
    label("relative error", 0, 13, "start");
    [["1", 0], ["10⁻⁴", -4], ["10⁻⁸", -8], ["10⁻¹²", -12], ["10⁻¹⁶", -16]].forEach(function (tick) {
      var y = down(Math.pow(10, tick[1]));
      line(54, y, 424, y);
      label(tick[0], 48, y + 5, "end");
    });
    line(54, 216, 424, 216);
    for (var block = 0; 10 * block + 11 < data.names.length; block += 1) {
      label(String(block + 1), across(10 * block + 5.5), 233, "middle");
    }
    label("embeddings", 54, 253, "start");
    label("block", 239, 253, "middle");
    label("logits", 424, 253, "end");
    function curve(color) {
      return plot.appendChild(drawn("path", { fill: "none", stroke: color, "stroke-width": 2.5 }));
    }
    var right = curve("var(--figure-0)");
    var wrong = curve("var(--figure-1)");
    var mark = plot.appendChild(drawn("circle", { cx: 60, cy: 26, r: 6, fill: "var(--figure-1)" }));
    var names = [["right GELU", "var(--figure-0)"], ["wrong GELU", "var(--figure-1)"]].map(function (each) {
      var name = label(each[0], 424, 0, "end");
      name.setAttribute("fill", each[1]);
      name.setAttribute("style", "paint-order: stroke; stroke: var(--pst-color-background, white); stroke-width: 4px");
      return name;
    });
    function path(errors) {
      var parts = [];
      errors.forEach(function (error, rung) {
        if (error > 0) parts.push((parts.length ? "L" : "M") + across(rung) + " " + down(error));
      });
      return parts.join("");
    }
    figure.add(plot);
    function short(error) { return error.toExponential(0).replace("-", "−"); }
    figure.draws(function () {
      var kind = precisions[precision()];
      var errors = (exact() ? data.wrong : data.right)[kind];
      var first = live.firstRungAbove(errors, data.right[kind], 10);
      var says = "The error of the logits is " + short(errors[errors.length - 1]) + ". "
        + (first < 0 ? "No rung is above the rounding."
          : "It rises above the rounding at rung " + (first + 1) + ", " + data.names[first] + ".");
      right.setAttribute("d", path(data.right[kind]));
      wrong.setAttribute("d", exact() ? path(errors) : "");
      [data.right, data.wrong].forEach(function (each, i) {
        names[i].setAttribute("y", down(each[kind][each[kind].length - 1]) - 12);
      });
      names[1].style.visibility = exact() ? "" : "hidden";
      mark.style.visibility = first < 0 ? "hidden" : "";
      if (first >= 0) {
        mark.setAttribute("cx", across(first));
        mark.setAttribute("cy", down(errors[first]));
      }
      plot.setAttribute("aria-label", says);
      figure.says(says);
    });
  });
})();

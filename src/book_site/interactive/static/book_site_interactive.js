// Figures that a reader moves. A figure's own script says what it computes and how it is drawn; here
// are the frame around it and its controls. Where drawing fails the still picture stays.
(function () {
  "use strict";
  var count = 0;

  function element(name, attributes, parts) {
    var made = document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) {
      var value = attributes[key];
      if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
    });
    [].concat(parts === undefined ? [] : parts).forEach(function (part) {
      made.appendChild(typeof part === "object" ? part : document.createTextNode(part));
    });
    return made;
  }

  function Figure(place, data) {
    count += 1;
    this.place = place;
    this.name = "live-" + count;
    this.data = data;
    this.controls = element("div", { "class": "live-controls" });
    this.stage = element("div", { "class": "live-stage" });
    this.status = element("p", { "class": "live-says", role: "status" });
    this.redraw = function () {};
    this.made = 0;
  }

  // A control with its label; what it returns tells its value.
  Figure.prototype.control = function (label, control, shown) {
    var figure = this;
    var parts = [element("label", { "for": control.id }, label), control].concat(shown || []);
    this.controls.appendChild(element("div", { "class": "live-control" }, parts));
    control.addEventListener("input", function () { figure.redraw(); });
    return control;
  };

  Figure.prototype.id = function () {
    this.made += 1;
    return this.name + "-" + this.made;
  };

  // A slider; `says` makes the words for a value of it, and `value` the number that it stands for.
  Figure.prototype.slider = function (label, options) {
    var says = options.says || String;
    var means = options.means || Number;
    var shown = element("span", { "aria-hidden": "true" });
    var control = element("input", {
      type: "range", id: this.id(), min: options.from, max: options.to, step: options.step || 1,
      value: options.value,
    });
    function tell() {
      shown.textContent = says(means(Number(control.value)));
      control.setAttribute("aria-valuetext", shown.textContent);
    }
    control.addEventListener("input", tell);
    tell();
    this.control(label, control, shown);
    var read = function () { return means(Number(control.value)); };
    read.set = function (value) { control.value = value; tell(); };
    return read;
  };

  Figure.prototype.toggle = function (label, checked) {
    var control = element("input", { type: "checkbox", id: this.id(), checked: Boolean(checked) });
    this.control(label, control).parentNode.classList.add("live-toggle");
    var read = function () { return control.checked; };
    read.set = function (value) { control.checked = value; };
    return read;
  };

  // A list to choose from: its value is the place in the list.
  Figure.prototype.choice = function (label, words, chosen) {
    var options = words.map(function (word, i) {
      return element("option", { value: i, selected: i === (chosen || 0) }, word);
    });
    var control = this.control(label, element("select", { id: this.id() }, options));
    return function () { return Number(control.value); };
  };

  // A line to write in: its value is the text.
  Figure.prototype.text = function (label, value) {
    var control = this.control(label, element("input", {
      type: "text", id: this.id(), value: value, autocomplete: "off", spellcheck: "false",
    }));
    var read = function () { return control.value; };
    read.set = function (text) { control.value = text; };
    return read;
  };

  Figure.prototype.button = function (label, act) {
    var figure = this;
    var button = element("button", { type: "button", "class": "live-button" }, label);
    button.addEventListener("click", function () { act(); figure.redraw(); });
    this.controls.appendChild(button);
    return button;
  };

  Figure.prototype.add = function (made) {
    this.stage.appendChild(made);
    return made;
  };

  // What has changed, in words: for screen readers, which are told, and for all others.
  Figure.prototype.says = function (text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  };

  // Horizontal bars, each with its name and its number. The numbers go from `low` to `high`.
  Figure.prototype.bars = function (title, heads, names, low, high) {
    var bars = names.map(function (name) {
      var bar = element("span", { "class": "live-bar" });
      var number = element("td", { "class": "live-number" });
      var cell = element("td", { "class": "live-room", "aria-hidden": "true" }, bar);
      var head = element("th", { scope: "row" }, name);
      return { row: element("tr", {}, [head, cell, number]), head: head, bar: bar, number: number };
    });
    var empty = element("td", { "aria-hidden": "true" });
    var top = element("tr", {}, [
      element("th", { scope: "col" }, heads[0]), empty, element("th", { scope: "col" }, heads[1]),
    ]);
    this.add(element("table", { "class": "live-bars" }, [
      element("caption", {}, title),
      element("thead", {}, top),
      element("tbody", {}, bars.map(function (bar) { return bar.row; })),
    ]));
    return function (values, words, names) {
      values.forEach(function (value, i) {
        var inside = Math.min(Math.max(value, low), high);
        var zero = Math.min(Math.max(0, low), high);
        var from = (Math.min(inside, zero) - low) / (high - low);
        var to = (Math.max(inside, zero) - low) / (high - low);
        bars[i].bar.style.left = 100 * from + "%";
        bars[i].bar.style.width = 100 * (to - from) + "%";
        bars[i].number.textContent = words ? words[i] : VerifiedBook.written(value, 2);
        bars[i].row.classList.toggle("live-none", value === 0);
        if (names) bars[i].head.textContent = names[i];
      });
    };
  };

  // Many upright bars without names; a text says what they show.
  Figure.prototype.columns = function (number, title) {
    var bars = [];
    this.add(element("p", { "class": "live-title" }, title));
    for (var i = 0; i < number; i += 1) bars.push(element("span", { "class": "live-column" }));
    var frame = this.add(element("div", { "class": "live-columns", role: "img" }, bars));
    return function (values, high, text, low, chosen) {
      var bottom = low || 0;
      frame.setAttribute("aria-label", text);
      frame.style.setProperty("--zero", -bottom / (high - bottom));
      values.forEach(function (value, i) {
        var inside = Math.min(Math.max(value, bottom), high);
        bars[i].style.height = 100 * Math.abs(inside) / (high - bottom) + "%";
        bars[i].style.bottom = 100 * (Math.min(inside, 0) - bottom) / (high - bottom) + "%";
        bars[i].classList.toggle("live-chosen", Boolean(chosen) && chosen.indexOf(i) >= 0);
      });
    };
  };

  // Draws now, and after every change of a control.
  Figure.prototype.draws = function (draw) {
    this.redraw = draw;
    draw();
  };

  var VerifiedBook = window.VerifiedBook = window.VerifiedBook || {};
  VerifiedBook.interactive = {}; // what the figures compute: pure functions of numbers
  VerifiedBook.element = element;

  // A number with so many decimals, and the sign that print has.
  VerifiedBook.written = function (number, decimals) {
    if (!isFinite(number)) return isNaN(number) ? "NaN" : number > 0 ? "∞" : "−∞";
    var text = number.toFixed(decimals);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  };

  // A cell of a map: the larger its weight, the stronger its color; empty where none is allowed.
  VerifiedBook.shade = function (cell, weight, allowed) {
    cell.style.setProperty("--weight", weight);
    cell.textContent = allowed ? VerifiedBook.written(weight, 2) : "–";
    cell.classList.toggle("live-none", !allowed);
  };

  function begin(place, make, data) {
    var figure = new Figure(place, data);
    make(figure);
    var parts = [figure.controls, figure.stage, figure.status];
    place.appendChild(element("div", { "class": "live-moving" }, parts));
    place.classList.add("live-on");
  }

  // Data that are too large for the page come from a file of their own, when a reader asks: a script,
  // which pages that are opened as files may load, too.
  function offer(place, source, size, act) {
    var button = element("button", { type: "button", "class": "live-button" }, "Start it here (" + size + ")");
    var said = element("span", { role: "status" });
    button.addEventListener("click", function () {
      var script = element("script", { src: source });
      button.disabled = true;
      script.onload = function () {
        offered.remove();
        act(VerifiedBook.arrived);
        place.querySelector(".live-moving :is(input, select, button)").focus();
      };
      script.onerror = function () {
        button.disabled = false;
        said.textContent = " " + source.split("/").pop() + " could not be loaded. Try again.";
      };
      document.head.appendChild(script);
    });
    var offered = element("p", { "class": "live-offer" }, [button, said]);
    place.appendChild(offered);
  }

  // Puts a figure in the place of each still picture that has its name.
  VerifiedBook.figure = function (name, make) {
    var places = document.querySelectorAll('.live-figure[data-live="' + name + '"]');
    Array.prototype.forEach.call(places, function (place) {
      var script = place.querySelector("script");
      var source = script.getAttribute("data-source");
      if (!source) begin(place, make, JSON.parse(script.textContent));
      else offer(place, source, script.getAttribute("data-size"), function (data) { begin(place, make, data); });
    });
  };
})();

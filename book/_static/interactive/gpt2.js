// The GPT-2 that the page has trained: its tokens, where its heads look, and what comes next.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  // float32 numbers, least significant byte first, written in base64, as arrays of their shapes.
  live.unpacked = function (packed, shapes) {
    var text = atob(packed);
    var bytes = new Uint8Array(text.length);
    for (var i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    var view = new DataView(bytes.buffer);
    var next = 0;
    var weights = {};
    shapes.forEach(function (named) {
      var shape = named[1];
      var size = shape.reduce(function (product, length) { return product * length; }, 1);
      var numbers = new Float64Array(size);
      for (var j = 0; j < size; j += 1) numbers[j] = view.getFloat32(4 * (next + j), true);
      next += size;
      weights[named[0]] = { numbers: numbers, columns: shape[shape.length - 1] };
    });
    return weights;
  };

  function row(matrix, i) {
    return Array.prototype.slice.call(matrix.numbers, i * matrix.columns, (i + 1) * matrix.columns);
  }

  function added(x, y) {
    return x.map(function (number, i) { return number + y[i]; });
  }

  function dot(x, y) {
    return live.sum(x.map(function (number, i) { return number * y[i]; }));
  }

  // y = x W + b
  function conv1d(x, weight, bias) {
    return Array.prototype.map.call(bias.numbers, function (start, j) {
      var sum = start;
      for (var i = 0; i < x.length; i += 1) sum += x[i] * weight.numbers[i * weight.columns + j];
      return sum;
    });
  }

  function norm(x, gain, bias, eps) {
    var mean = live.sum(x) / x.length;
    var centered = x.map(function (number) { return number - mean; });
    var deviation = Math.sqrt(dot(centered, centered) / x.length + eps);
    return centered.map(function (number, i) {
      return number / deviation * gain.numbers[i] + bias.numbers[i];
    });
  }

  live.gelu = function (x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  };

  // The logits at each position, and the weights of each head of each block:
  // x = wte[ids] + wpe; x += Attention(LayerNorm(x)); x += MLP(LayerNorm(x)); LayerNorm(x) wte^T
  live.gpt2 = function (weights, sizes, ids) {
    var heads = [];
    var x = ids.map(function (id, s) {
      return added(row(weights["wte.weight"], id), row(weights["wpe.weight"], s));
    });
    function inBlock(block) {
      function part(name) { return weights["h." + block + "." + name]; }
      function layer(name, input) { return conv1d(input, part(name + ".weight"), part(name + ".bias")); }
      function normed(name, input) {
        return norm(input, part(name + ".weight"), part(name + ".bias"), sizes.eps);
      }
      var packed = x.map(function (input) { return layer("attn.c_attn", normed("ln_1", input)); });
      var width = sizes.width / sizes.heads;
      function cut(s, which, head) {
        var from = which * sizes.width + head * width;
        return packed[s].slice(from, from + width);
      }
      var attended = x.map(function () { return []; });
      for (var head = 0; head < sizes.heads; head += 1) {
        var keys = ids.map(function (_, s) { return cut(s, 1, head); });
        var values = ids.map(function (_, s) { return cut(s, 2, head); });
        var rows = ids.map(function (_, s) {
          var query = cut(s, 0, head);
          var products = keys.slice(0, s + 1).map(function (key) { return dot(query, key); });
          return live.softmax(live.scores(products, width, 1));
        });
        heads.push({ name: "block " + (block + 1) + ", head " + (head + 1), weights: rows });
        rows.forEach(function (row, s) {
          for (var i = 0; i < width; i += 1) {
            attended[s].push(live.sum(row.map(function (a, j) { return a * values[j][i]; })));
          }
        });
      }
      x = x.map(function (input, s) {
        var middle = added(input, layer("attn.c_proj", attended[s]));
        var inner = layer("mlp.c_fc", normed("ln_2", middle)).map(live.gelu);
        return added(middle, layer("mlp.c_proj", inner));
      });
    }
    for (var block = 0; block < sizes.blocks; block += 1) inBlock(block);
    var logits = x.map(function (input) {
      var last = norm(input, weights["ln_f.weight"], weights["ln_f.bias"], sizes.eps);
      var scores = [];
      for (var id = 0; id < sizes.vocabulary; id += 1) scores.push(dot(last, row(weights["wte.weight"], id)));
      return scores;
    });
    return { logits: logits, heads: heads };
  };

  VerifiedBook.figure("gpt2", function (figure) {
    var element = VerifiedBook.element;
    var data = figure.data;
    var weights = live.unpacked(data.weights, data.shapes);
    var sizes = data.sizes;
    var shown = 6;
    var ids = [];
    var chosen = 0;
    var computed;

    // Without merges each word is a token, and words that the model has not met are left out.
    function encode(text) {
      if (data.merges) return live.encode(text, data.vocabulary, data.merges);
      return text.split(/\s+/).map(function (word) {
        return data.vocabulary.indexOf(word);
      }).filter(function (id) { return id >= 0; });
    }

    function decode(ids) {
      if (data.merges) return live.decode(ids, data.vocabulary);
      return ids.map(function (id) { return data.vocabulary[id]; }).join(" ");
    }

    // A token as it is shown; one that is a part of a character by its bytes.
    function shownAs(token) {
      var text = decode([token]);
      if (text.indexOf("\ufffd") >= 0) {
        return live.bytes(data.vocabulary[token]).map(function (byte) {
          return (byte < 16 ? "0" : "") + byte.toString(16).toUpperCase();
        }).join(" ");
      }
      return text.replace(/ /g, "␣").replace(/\n/g, "⏎");
    }

    function quoted(token) {
      return "“" + shownAs(token) + "”";
    }

    function run(to) {
      ids = to.slice(0, sizes.positions);
      chosen = ids.length - 1;
      computed = ids.length ? live.gpt2(weights, sizes, ids) : null;
    }

    // The likeliest tokens after the chosen one, each with its probability.
    function likeliest() {
      var p = live.softmax(computed.logits[chosen]);
      var order = p.map(function (_, i) { return i; });
      order.sort(function (i, j) { return p[j] - p[i] || i - j; });
      return order.slice(0, shown).map(function (id) { return { id: id, p: p[id] }; });
    }

    var text = figure.text("text", data.prompt);
    var names = [];
    for (var b = 1; b <= sizes.blocks; b += 1) {
      for (var h = 1; h <= sizes.heads; h += 1) names.push("block " + b + ", head " + h);
    }
    var head = figure.choice("shaded: where the token looks in", names);
    figure.button("write the next token", function () {
      if (!ids.length || ids.length === sizes.positions) return;
      chosen = ids.length - 1;
      run(ids.concat(likeliest()[0].id));
      text.set(decode(ids));
      written = text();
    });
    figure.button("start again", function () { text.set(data.prompt); });

    var tokens = figure.add(element("div", { "class": "live-tokens", role: "group", "aria-label": "tokens" }));
    var none = new Array(shown + 1).join(" ").split("");
    var bars = figure.bars("The next token", ["token", "probability"], none, 0, 1);
    var written = null;


    function choose(i) {
      return function () {
        if (chosen === i) return;
        chosen = i;
        figure.redraw();
      };
    }

    // The buttons stay where they are as long as the tokens do: one of them may have the focus.
    function renew() {
      while (tokens.children.length > ids.length) tokens.removeChild(tokens.lastChild);
      while (tokens.children.length < ids.length) {
        var button = element("button", { type: "button", "class": "live-word live-token" });
        ["click", "focus", "mouseenter"].forEach(function (event) {
          button.addEventListener(event, choose(tokens.children.length));
        });
        tokens.appendChild(button);
      }
    }

    figure.draws(function () {
      var problem = "";
      if (text() !== written) {
        written = text();
        try {
          run(encode(written));
        } catch (error) {
          run([]);
          problem = "Half of a surrogate pair is no character. ";
        }
      }
      renew();
      if (!ids.length) {
        bars(none.map(Number), null, none);
        figure.says(problem + "No tokens: type a text.");
        return;
      }
      var row = computed.heads[head()].weights[chosen];
      ids.forEach(function (id, i) {
        var button = tokens.children[i];
        var weight = i <= chosen ? row[i] : 0;
        button.style.setProperty("--weight", weight);
        button.textContent = shownAs(id);
        button.setAttribute("aria-pressed", i === chosen);
        button.setAttribute("aria-label", quoted(id) + ", weight " + VerifiedBook.written(weight, 2));
        button.classList.toggle("live-none", i > chosen);
      });
      var next = likeliest();
      bars(next.map(function (each) { return each.p; }), null,
        next.map(function (each) { return shownAs(each.id); }));
      var most = row.indexOf(Math.max.apply(null, row));
      var full = ids.length === sizes.positions ? " No more fit into the model." : "";
      figure.says("Token " + (chosen + 1) + " of " + ids.length + ": " + quoted(ids[chosen]) + "." + full
        + " From there this head looks most at " + quoted(ids[most]) + " (" + VerifiedBook.written(row[most], 2)
        + "). The model expects " + quoted(next[0].id) + " (" + VerifiedBook.written(next[0].p, 2) + ").");
    });
  });
})();

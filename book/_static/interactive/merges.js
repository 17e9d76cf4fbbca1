// The tokens of a text that the reader writes, with as many lines of the list of merges as are set.
VerifiedBook.figure("merges", function (figure) {
  "use strict";
  var element = VerifiedBook.element;
  var live = VerifiedBook.interactive;
  var merges = figure.data.merges.map(function (pair) { return pair.split(" "); });
  var sizes = figure.data.sizes;
  var text = figure.text("text", figure.data.text);
  var lines = figure.slider("lines of the list", {
    from: 0, to: sizes.length - 1, value: sizes.indexOf(figure.data.start),
    means: function (i) { return sizes[i]; },
    says: function (size) { return size.toLocaleString("en"); },
  });
  var row = figure.add(element("p", { "class": "live-tokens" }));
  figure.draws(function () {
    // Half of a surrogate pair, which a reader may leave behind, is no text.
    var written = text().replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/g, "");
    var tokens = live.tokens(written, merges.slice(0, lines()));
    var bytes = tokens.join("").length;
    row.textContent = "";
    tokens.forEach(function (token) {
      row.appendChild(element("span", {
        style: "border: 1px solid var(--figure-0); border-radius: .2rem; overflow-wrap: anywhere; padding: 0 .25rem",
      }, token));
    });
    figure.says(bytes + (bytes === 1 ? " byte, " : " bytes, ") + tokens.length
      + (tokens.length === 1 ? " token." : " tokens."));
  });
});

// Text to tokens and back, as the chapter on the tokenizer defines it.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;
  // White space of Unicode, which is not what \s stands for here.
  var piece = new RegExp("'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+"
    + "| ?[^\\p{White_Space}\\p{L}\\p{N}]+|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+", "gu");

  function visible(byte) {
    return byte > 0x20 && byte < 0x7f || byte > 0xa0 && byte !== 0xad;
  }

  var characters = [];
  var hidden = 0;
  for (var byte = 0; byte < 256; byte += 1) {
    characters.push(String.fromCharCode(visible(byte) ? byte : 256 + hidden));
    hidden += visible(byte) ? 0 : 1;
  }

  // A text's tokens, spelled: the pair of the lowest rank is joined, of equal ones the leftmost,
  // until no pair has a rank. Half of a surrogate pair is an error.
  live.tokens = function (text, merges) {
    var ranks = {};
    merges.forEach(function (pair, rank) { ranks[pair[0] + " " + pair[1]] = rank; });
    var found = [];
    (text.match(piece) || []).forEach(function (part) {
      var tokens = unescape(encodeURIComponent(part)).split("").map(function (character) {
        return characters[character.charCodeAt(0)];
      });
      for (;;) {
        var best = -1;
        var lowest = Infinity;
        for (var i = 0; i + 1 < tokens.length; i += 1) {
          var rank = ranks[tokens[i] + " " + tokens[i + 1]];
          if (rank < lowest) {
            lowest = rank;
            best = i;
          }
        }
        if (best < 0) break;
        tokens.splice(best, 2, tokens[best] + tokens[best + 1]);
      }
      found = found.concat(tokens);
    });
    return found;
  };

  // The numbers of a text's tokens.
  live.encode = function (text, vocabulary, merges) {
    var numbers = {};
    vocabulary.forEach(function (token, i) { numbers[token] = i; });
    return live.tokens(text, merges).map(function (token) { return numbers[token]; });
  };

  live.bytes = function (spelled) {
    return spelled.split("").map(function (character) { return characters.indexOf(character); });
  };

  // The text of tokens; bytes that are no UTF-8 become U+FFFD.
  live.decode = function (ids, vocabulary) {
    var bytes = live.bytes(ids.map(function (id) { return vocabulary[id]; }).join(""));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));
  };
})();

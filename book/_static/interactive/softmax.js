// Softmax and the weights of attention: the equations of the chapters on attention.
(function () {
  "use strict";
  var live = VerifiedBook.interactive;

  live.sum = function (numbers) {
    return numbers.reduce(function (sum, number) { return sum + number; }, 0);
  };

  // a_j = m_j exp(s_j) / sum over l of m_l exp(s_l), and 0 where no key is allowed. The highest
  // score is taken off before, which changes nothing and lets no exponential overflow.
  live.softmax = function (scores, mask) {
    var allowed = scores.map(function (score, j) { return !mask || mask[j] ? score : -Infinity; });
    var highest = Math.max.apply(null, allowed);
    if (highest === -Infinity) return scores.map(function () { return 0; });
    var powers = allowed.map(function (score) { return Math.exp(score - highest); });
    var sum = live.sum(powers);
    return powers.map(function (power) { return power / sum; });
  };

  // s_j = q . k_j / (sqrt(d_k) tau): one row of the scores, from the dot products of a query.
  live.scores = function (products, width, temperature) {
    return products.map(function (product) { return product / (Math.sqrt(width) * temperature); });
  };

  // The entropy of the weights, - sum of a_j ln a_j.
  live.entropy = function (weights) {
    return -live.sum(weights.map(function (a) { return a > 0 ? a * Math.log(a) : 0; }));
  };
})();

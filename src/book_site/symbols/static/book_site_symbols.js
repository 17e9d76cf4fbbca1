// A symbol of an equation, its variable in the source and both in the table are marked together:
// while one of them is pointed at or has the focus, or since one was clicked.
(function () {
  "use strict";
  var pinned = [];

  function each(found, act) {
    Array.prototype.forEach.call(found, act);
  }

  // The numbers of an element: a variable may be that of several symbols.
  function numbers(element) {
    return (element && element.className.match(/\bsymbol-\d+\b/g)) || [];
  }

  function around(event) {
    var target = event.target;
    return numbers(target && target.closest ? target.closest(".symbol") : null);
  }

  function isOf(element, wanted) {
    return numbers(element).some(function (one) { return wanted.indexOf(one) >= 0; });
  }

  function mark(wanted) {
    each(document.querySelectorAll(".symbol"), function (element) {
      element.classList.toggle("symbol-marked", isOf(element, wanted));
    });
  }

  function pin(wanted) {
    pinned = wanted;
    each(document.querySelectorAll("button.symbol"), function (button) {
      button.setAttribute("aria-pressed", String(isOf(button, wanted)));
    });
    mark(pinned);
  }

  function show(event) {
    var pointed = around(event);
    mark(pointed.length ? pointed : pinned);
  }

  // The names of variables in the table are what a keyboard reaches.
  each(document.querySelectorAll(".symbols-table td:nth-child(2) .symbol"), function (name) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = name.className;
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", name.textContent + ": mark it in the equation and the code");
    while (name.firstChild) button.appendChild(name.firstChild);
    name.parentNode.replaceChild(button, name);
  });

  document.addEventListener("mouseover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", function () { mark(pinned); });
  document.addEventListener("click", function (event) {
    var clicked = around(event);
    if (clicked.length) pin(clicked.join() === pinned.join() ? [] : clicked);
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && pinned.length) pin([]);
  });
})();

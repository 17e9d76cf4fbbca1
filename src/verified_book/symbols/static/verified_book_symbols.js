// A symbol of an equation, its variable in the source and both in the table are marked together:
// while one of them is pointed at or has the focus, or since one was clicked.
(function () {
  "use strict";
  var pinned = null;

  function each(found, act) {
    Array.prototype.forEach.call(found, act);
  }

  function number(element) {
    var found = element && /(?:^| )symbol-(\d+)/.exec(element.className);
    return found ? found[1] : null;
  }

  function around(event) {
    var target = event.target;
    return number(target && target.closest ? target.closest(".symbol") : null);
  }

  function mark(wanted) {
    each(document.querySelectorAll(".symbol"), function (element) {
      element.classList.toggle("symbol-marked", wanted !== null && number(element) === wanted);
    });
  }

  function pin(wanted) {
    pinned = wanted;
    each(document.querySelectorAll("button.symbol"), function (button) {
      button.setAttribute("aria-pressed", String(wanted !== null && number(button) === wanted));
    });
    mark(pinned);
  }

  function show(event) {
    var pointed = around(event);
    mark(pointed === null ? pinned : pointed);
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
    if (clicked !== null) pin(clicked === pinned ? null : clicked);
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && pinned !== null) pin(null);
  });
})();

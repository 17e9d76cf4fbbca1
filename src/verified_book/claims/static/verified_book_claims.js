// Folded proofs: a link to a claim opens its proof, one switch opens all, and so does printing.
(() => {
  const folds = () => document.querySelectorAll("details.claim-proof");
  const openAll = (open) => folds().forEach((fold) => { fold.open = open; });

  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) {
      if (node.matches("details")) node.open = true;
    }
    if (target.matches(".claim")) {
      target.parentElement.querySelectorAll(":scope > details.claim-proof").forEach((fold) => { fold.open = true; });
    }
    target.scrollIntoView();
  };

  const addSwitch = () => {
    if (!folds().length) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "claim-switch btn btn-sm";
    const name = (open) => {
      button.textContent = open ? "Close proofs" : "Open proofs";
      button.setAttribute("aria-pressed", String(open));
    };
    let open = false;
    name(open);
    button.addEventListener("click", () => { open = !open; openAll(open); name(open); });
    const header = document.querySelector(".article-header-buttons");
    const title = document.querySelector("h1");
    if (header) header.prepend(button);
    else if (title) title.after(button);
  };

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...folds()].filter((fold) => !fold.open);
    openAll(true);
  });
  addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));
  addEventListener("hashchange", openTarget);
  // A second click on the link to a claim changes no address.
  addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href*='#claim-']");
    if (link && link.hash === location.hash && link.pathname === location.pathname) openTarget();
  });
  addSwitch();
  openTarget();
})();

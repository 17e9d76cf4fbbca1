// The popup of a chip shows while a pointer is on either, while the chip has the focus, and by a tap.
(() => {
  const popupOf = (chip) => document.getElementById(chip.getAttribute("aria-describedby")).closest("claim-popup");
  const isOpen = (popup) => popup.matches(":popover-open");
  let closing;

  const show = (chip) => {
    const popup = popupOf(chip);
    clearTimeout(closing);
    if (!isOpen(popup)) popup.showPopover();
    const [box, edge] = [chip.getBoundingClientRect(), document.documentElement];
    const left = Math.max(8, Math.min(box.left, edge.clientWidth - popup.offsetWidth - 8));
    const fits = box.bottom + popup.offsetHeight < edge.clientHeight || box.top < popup.offsetHeight;
    popup.style.left = `${left + scrollX}px`;
    popup.style.top = `${(fits ? box.bottom : box.top - popup.offsetHeight) + scrollY}px`;
  };
  const hide = (popup) => { if (isOpen(popup)) popup.hidePopover(); };

  // A browser closes by Escape only what a click or a key has opened.
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelectorAll("claim-popup:popover-open").forEach(hide);
  });

  document.querySelectorAll("a.claim-chip").forEach((chip) => {
    const popup = popupOf(chip);
    if (!popup.showPopover) return; // an old browser: the chip is a link
    let tapped = false;
    let wasOpen = false;
    const leave = (event) => {
      if (event.pointerType === "touch") return;
      closing = setTimeout(() => hide(popup), 200); // the way from the chip to the popup
    };
    chip.addEventListener("focus", () => show(chip));
    chip.addEventListener("blur", () => { if (!popup.matches(":hover")) hide(popup); });
    chip.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") show(chip); });
    chip.addEventListener("pointerleave", leave);
    popup.addEventListener("pointerenter", () => clearTimeout(closing));
    popup.addEventListener("pointerleave", leave);
    chip.addEventListener("pointerdown", (event) => {
      tapped = event.pointerType === "touch";
      wasOpen = isOpen(popup);
    });
    chip.addEventListener("click", (event) => {
      if (!tapped) return; // a click, or the key Enter, leads to the proof
      event.preventDefault(); // a tap shows the popup, in which a link leads there
      tapped = false;
      if (wasOpen) hide(popup); else show(chip);
    });
  });
})();

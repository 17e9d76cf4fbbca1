// A formula that is copied is copied as TeX, whole.
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0).cloneRange();
  const around = (node) => (node.nodeType === 1 ? node : node.parentElement).closest(".katex");
  const first = around(range.startContainer);
  const last = around(range.endContainer);
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const copied = range.cloneContents();
  const formulas = [...copied.querySelectorAll(".katex")];
  if (!formulas.length) return;
  formulas.forEach((formula) => {
    const tex = formula.querySelector("annotation").textContent;
    const mark = formula.closest(".katex-display") ? "$$" : "$";
    formula.replaceWith(`${mark}${tex}${mark}`);
  });
  event.clipboardData.setData("text/plain", copied.textContent);
  event.preventDefault();
});

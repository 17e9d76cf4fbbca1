// The filter of an index of claims. It needs no server, and its state stands in the address.
document.querySelectorAll("div.claims-listing").forEach((listing) => {
  const form = listing.querySelector("form.claims-filter");
  const selects = [...form.querySelectorAll("select")];
  const notes = [...listing.querySelectorAll("div.claims-note")];
  const names = [...selects.map((select) => select.name), "text"];
  // Words are read before maths is typeset, so that one finds what its source says.
  const rows = [...listing.querySelectorAll("tr[data-verdict]")].map((row) => (
    { row, values: row.dataset, text: row.textContent.toLowerCase().replace(/\s+/g, " ") }
  ));

  // The rows that agree with all of the form, or with all but one of its choices.
  const agreeing = (without) => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value && select !== without);
    return rows.filter(({ values, text }) => (
      chosen.every((select) => values[select.name] === select.value)
      && words.every((word) => text.includes(word))
    ));
  };
  const inClaims = (number) => `${number} ${number === 1 ? "claim" : "claims"}`;
  const counted = (number, total) => (
    number === total ? inClaims(total) : `${number} of ${inClaims(total)}`
  );

  const show = () => {
    const found = new Set(agreeing().map(({ row }) => row));
    rows.forEach(({ row }) => { row.hidden = !found.has(row); });
    notes.forEach((note) => {
      const all = [...note.querySelectorAll("tr[data-verdict]")];
      const left = all.filter((row) => !row.hidden).length;
      const count = note.querySelector(".claims-count");
      if (count) count.textContent = counted(left, all.length);
      note.hidden = left === 0;
    });
    selects.forEach((select) => {
      const others = agreeing(select);
      [...select.options].forEach((option) => {
        const fits = ({ values }) => !option.value || values[select.name] === option.value;
        option.textContent = `${option.dataset.words} (${others.filter(fits).length})`;
      });
    });
    const said = counted(found.size, rows.length);
    if (form.querySelector("output").textContent !== said) form.querySelector("output").textContent = said;
  };

  const write = () => {
    const address = new URL(location.href);
    names.forEach((name) => {
      const value = form.elements[name].value.trim();
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    });
    history.replaceState(history.state, "", address);
  };

  const read = () => {
    const given = new URL(location.href).searchParams;
    names.forEach((name) => {
      const field = form.elements[name];
      field.value = given.get(name) ?? "";
      if (field.matches("select") && field.selectedIndex < 0) field.value = ""; // no such option
    });
    show();
  };

  form.addEventListener("input", () => { show(); write(); });
  form.addEventListener("reset", () => setTimeout(() => { show(); write(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("popstate", read);
  form.hidden = false;
  read();
});

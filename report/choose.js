// Sorts the tables by a column, and chooses which strategies are shown on all of the page.
"use strict";
(() => {
  const words = new Intl.Collator("en", { numeric: true });
  const text = cell => cell.textContent.trim();

  // Cells are compared by their data-value, or by their text in a column without any. What is unknown comes last both
  // ways, and rows that compare equal keep the order of the ranking.
  function order(rows, column, down) {
    const numeric = rows.some(row => row.cells[column]?.dataset.value);
    const value = row => {
      const cell = row.cells[column];
      if (!cell || cell.colSpan > 1) return undefined;
      return !numeric ? text(cell) : cell.dataset.value ? +cell.dataset.value : undefined;
    };
    return rows.map(row => ({ row, value: value(row) })).sort((a, b) => {
      if (a.value === undefined || b.value === undefined) return (a.value === undefined) - (b.value === undefined);
      return (down ? -1 : 1) * (numeric ? a.value - b.value : words.compare(a.value, b.value));
    }).map(({ row }) => row);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0], ranked = [...body.rows], heads = [...table.tHead.rows[0].cells];
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    for (const [column, head] of heads.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      const end = [...head.childNodes].findIndex(node => node.nodeName === "BR");
      const name = [...head.childNodes].slice(0, end < 0 ? undefined : end);
      const word = head.querySelector("a.term");
      button.textContent = name.map(node => node.textContent).join("");
      if (word) {
        button.dataset.tip = word.dataset.tip;
        button.setAttribute("aria-describedby", "tip");
      }
      name.forEach(node => node.remove());
      head.prepend(button);
      head.setAttribute("aria-sort", "none");
      head.addEventListener("click", () => {
        const sort = next[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", other === head ? sort : "none");
        body.append(...(sort === "none" ? ranked : order(ranked, column, sort === "descending")));
      });
    }
  }

  const form = document.querySelector("form.filter");
  if (!form) return;
  const all = [...document.querySelectorAll(".verdicts tr[data-strategy]")].map(row => ({
    id: row.dataset.strategy, engine: row.dataset.engine, meetsAll: "meetsAll" in row.dataset,
  }));
  const engines = [...form.querySelectorAll("[name=engine]")];
  function choose() {
    const part = form.elements.name.value.trim().toLowerCase();
    const off = new Set(engines.filter(box => !box.checked).map(box => box.value));
    const hidden = new Set(all.filter(({ id, engine, meetsAll }) => !id.toLowerCase().includes(part)
      || off.has(engine) || form.elements.all?.checked && !meetsAll).map(({ id }) => id));
    for (const node of document.querySelectorAll("[data-strategy]")) node.hidden = hidden.has(node.dataset.strategy);
    form.querySelector("output").textContent = `${all.length - hidden.size} of ${all.length} shown, here and below`;
    document.dispatchEvent(new CustomEvent("strategies", { detail: hidden }));
  }
  form.addEventListener("input", choose);
  form.addEventListener("submit", e => e.preventDefault());
  form.addEventListener("reset", () => setTimeout(choose));
  form.hidden = all.length < 2;
})();

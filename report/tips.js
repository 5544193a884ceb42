// Shows what a word, a verdict or a rounded number means while it is pointed at or has the focus. On a touch screen the
// first tap shows it, and the second one follows the link.
"use strict";
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);

  for (const node of document.querySelectorAll("main [title], header [title]")) {
    node.dataset.tip = node.title;
    node.removeAttribute("title");
    if (node.tagName === "A") node.setAttribute("aria-describedby", tip.id);
  }

  const lines = parts => parts.map(([name, content]) => {
    const line = document.createElement(name);
    line.textContent = content;
    return line;
  });
  let shown = null, timer, touched = null;
  const show = node => {
    clearTimeout(timer);
    shown = node;
    const { about, tip: meaning } = node.dataset;
    tip.replaceChildren(...lines(about ? [["b", about], ["span", node.textContent.replace(/^[✓✕⊘–?]/, "")],
      ["i", meaning], ["i", "Follow for the details."]] : [["span", meaning]]));
    tip.hidden = false;
    const at = node.getBoundingClientRect(), box = tip.getBoundingClientRect();
    const below = at.bottom + 4 + box.height < innerHeight || at.top < box.height + 4;
    const right = document.documentElement.clientWidth - box.width - 12;
    tip.style.left = Math.max(12, Math.min(at.left, right)) + scrollX + "px";
    tip.style.top = (below ? at.bottom + 4 : at.top - 4 - box.height) + scrollY + "px";
  };
  const hide = () => { clearTimeout(timer); shown = null; tip.hidden = true; };
  const leave = () => { clearTimeout(timer); timer = setTimeout(hide, 120); }; // time to move onto the tip itself

  const wanted = e => e.target.closest?.("[data-tip]");
  document.addEventListener("mouseover", e => {
    if (tip.contains(e.target)) clearTimeout(timer);
    else if (wanted(e) && wanted(e) !== shown) show(wanted(e));
    else if (wanted(e)) clearTimeout(timer);
    else if (shown) leave();
  });
  document.addEventListener("focusin", e => { if (wanted(e)) show(wanted(e)); });
  document.addEventListener("focusout", e => { if (wanted(e)) hide(); });
  document.addEventListener("pointerdown", e => {
    const node = wanted(e);
    touched = e.pointerType === "touch" && node?.tagName === "A" && node !== shown ? node : null;
  });
  document.addEventListener("click", e => {
    const node = wanted(e);
    if (node && node === touched) { e.preventDefault(); show(node); } else if (node?.tagName === "A") hide();
    touched = null;
  });
  addEventListener("keydown", e => { if (e.key === "Escape") hide(); });
})();

// Tables of many rows: sorted by a click on a head, narrowed by a word.
(() => {
  "use strict";
  const number = cell => {
    const value = parseFloat(cell.textContent.replaceAll(",", ""));
    return Number.isNaN(value) ? -Infinity : value;
  };
  const sort = (table, head, column) => {
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : head.classList.contains("n");
    const key = head.classList.contains("n") ? number : cell => cell.textContent;
    const body = table.tBodies[0], rows = [...body.rows].map(row => [key(row.cells[column]), row]);
    rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("section table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 8) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent) return;
      const button = document.createElement("button");
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
    const label = document.createElement("label"), field = document.createElement("input");
    field.type = "search";
    label.append("only rows with ", field);
    table.parentElement.before(label);
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  // The keyboard scrolls what is wider than the page.
  for (const wide of document.querySelectorAll(".wide")) wide.tabIndex = 0;
  // A link to a row or a kernel opens what it is folded into.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();
})();

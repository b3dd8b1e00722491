// The keyboard on a map: arrow keys move, Space picks, Enter confirms what is picked.

/** The arrow that a key leads to, or null. Left and right stay in the row; up and down lead to the
 * nearest arrow in the next row that has one. At the edge of the map nothing moves. */
export function neighbour(arrows, size, current, key) {
  const reading = arrows.map((_, i) => i).sort((a, b) => arrows[a].cell - arrows[b].cell);
  const row = (i) => Math.floor(arrows[i].cell / size);
  const column = (i) => arrows[i].cell % size;
  const inRow = reading.filter((i) => row(i) === row(current));
  const at = inRow.indexOf(current);
  if (key === "ArrowRight") return inRow[at + 1] ?? current;
  if (key === "ArrowLeft") return inRow[at - 1] ?? current;
  if (key === "Home") return reading[0];
  if (key === "End") return reading[reading.length - 1];
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const rows = [...new Set(reading.map(row))];
  const next = rows[rows.indexOf(row(current)) + (key === "ArrowDown" ? 1 : -1)];
  const off = (i) => Math.abs(column(i) - column(current));
  const nearest = reading.filter((i) => row(i) === next).sort((a, b) => off(a) - off(b));
  return nearest[0] ?? current;
}

/** Listen to the keys of a list of arrows. */
export function listKeys(list, { arrows, size, focus, choose, chosen, confirm }) {
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || arrows().length === 0) return;
    const current = Number(event.target.closest("[data-index]")?.dataset.index);
    if (!Number.isInteger(current)) return;
    const target = neighbour(arrows(), size, current, event.key);
    if (target !== null) {
      event.preventDefault();
      focus(target);
    } else if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      if (event.repeat) return;
      if (event.key === "Enter" && chosen() === current) confirm();
      else choose(current, "keyboard");
    }
  });
}

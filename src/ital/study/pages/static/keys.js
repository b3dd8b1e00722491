// The keyboard on a map: arrow keys move, Space picks, Enter confirms what is picked.

/** The arrow that a key leads to, or null. Left and right go through all arrows in reading order; up and down lead to
 * the nearest arrow in the next row that has one. */
export function neighbour(arrows, size, current, key) {
  const reading = arrows.map((_, i) => i).sort((a, b) => arrows[a].cell - arrows[b].cell);
  const at = reading.indexOf(current);
  const turn = (by) => reading[(at + by + reading.length) % reading.length];
  if (key === "ArrowRight") return turn(1);
  if (key === "ArrowLeft") return turn(-1);
  if (key === "Home") return reading[0];
  if (key === "End") return reading[reading.length - 1];
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const row = (i) => Math.floor(arrows[i].cell / size);
  const column = (i) => arrows[i].cell % size;
  const rows = [...new Set(reading.map(row))];
  const next = rows[(rows.indexOf(row(current)) + (key === "ArrowDown" ? 1 : -1) + rows.length) % rows.length];
  const off = (i) => Math.abs(column(i) - column(current));
  return reading.filter((i) => row(i) === next).reduce((best, i) => (off(i) < off(best) ? i : best));
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

// Saving what a page shows: tables as CSV, charts as SVG or PNG.
export function csvOf(header: readonly string[], rows: Iterable<readonly (string | number)[]>): string {
  const cell = (value: string | number) => {
    const text = String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [header.map(cell).join(",")];
  for (const row of rows) lines.push(row.map(cell).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

export function save(name: string, data: BlobPart, type: string) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// `svg` with the page's computed colours and fonts written into it, so that it looks the same elsewhere.
export function standaloneSvg(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  const properties = ["fill", "stroke", "stroke-width", "font-family", "font-size", "opacity", "text-anchor"];
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const property of properties) to[index]?.setAttribute(property, style.getPropertyValue(property));
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}

export function saveCanvas(name: string, canvas: HTMLCanvasElement) {
  canvas.toBlob((blob) => {
    if (blob) save(name, blob, "image/png");
  });
}

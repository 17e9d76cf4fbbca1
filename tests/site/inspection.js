// What the tests ask of a page. Loaded into every page before its own scripts.
window.inspection = {
  // Fonts change the layout; colors fade into those of another theme.
  async settled() {
    await document.fonts.ready;
    let moving;
    do {
      for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
      moving = document.getAnimations();
      moving.forEach((animation) => animation.finish());
    } while (moving.length);
  },

  // From now on colors and sidebars are at once what they fade or slide into.
  still() {
    const style = document.createElement("style");
    style.textContent = "*, ::before, ::after { transition: none !important; animation: none !important }";
    document.head.append(style);
  },

  maths() {
    const places = [...document.querySelectorAll(".math, .amsmath")];
    const spoken = (e) => e.querySelector(".katex-mathml > math annotation")?.textContent.trim();
    const wrong = ".katex-error, [style*='#cc0000'], mjx-container";
    return {
      count: places.length,
      raw: places.filter((e) => !e.querySelector(".katex")).map((e) => e.textContent),
      silent: places.filter((e) => !spoken(e)).map((e) => e.textContent),
      wrong: [...document.querySelectorAll(wrong)].map((e) => e.textContent),
      stops: [...document.querySelectorAll(".katex, .katex [tabindex]")]
        .filter((e) => e.tabIndex >= 0).map((e) => e.textContent),
    };
  },

  // Directives, roles and maths that were not understood stay behind as text.
  markup() {
    const skipped = "pre, code, script, style, .katex, svg, textarea";
    const pattern = /\{[\w:-]+\}`|`{2,}|\$\$|\\\(|^:{3,}|^\.\. \w+::|:[\w:]+:`|\]\(|\|\s*-{3,}/m;
    return inspection
      .texts(document.querySelector("main"))
      .filter((node) => !node.parentElement.closest(skipped))
      .map((node) => node.textContent.trim())
      .filter((text) => pattern.test(text));
  },

  unnamedImages() {
    const isFileName = (text) => /\.(svg|png|jpe?g|gif)$/i.test(text);
    const images = [...document.querySelectorAll("img")].filter((image) => {
      const alt = image.getAttribute("alt")?.trim();
      return !alt || isFileName(alt);
    });
    const drawings = [...document.querySelectorAll("main svg")].filter((svg) => {
      if (svg.closest("[aria-hidden=true], button, a, [role=img]:not(svg)")) return false;
      // An image hides what is inside it, so a drawing with links is a group.
      const role = svg.querySelector("a") ? "group" : "img";
      return svg.getAttribute("role") !== role || !svg.getAttribute("aria-label")?.trim();
    });
    return [...images, ...drawings].map((element) => element.outerHTML.slice(0, 200));
  },

  // The outermost elements that make the page itself scroll sideways.
  tooWide() {
    const root = document.documentElement;
    if (root.scrollWidth <= innerWidth) return [];
    const wide = [...document.body.querySelectorAll("*")].filter(
      (element) => element.getBoundingClientRect().right > innerWidth + 1,
    );
    return [`${root.scrollWidth} > ${innerWidth}`, ...wide.map(inspection.name).slice(-3)];
  },

  // What stands open: its cells, its height, the lines that are printed, and the words of prose.
  open() {
    const shown = (each) => each.checkVisibility({ contentVisibilityAuto: true });
    const all = (selector) => [...document.querySelectorAll(`article ${selector}`)].filter(shown);
    const lines = (each) => each.textContent.trimEnd().split("\n");
    const printed = all(".cell_output pre").flatMap(lines);
    const prose = all("p, article li").filter((each) => !each.closest("table, figure, pre, .cell"));
    const said = (each) => {
      const copy = each.cloneNode(true);
      copy.querySelectorAll(".katex").forEach((formula) => formula.replaceWith("x"));
      copy.querySelectorAll("p, ul, ol, .cell").forEach((inner) => inner.remove());
      return copy.textContent.match(/\S+/g) ?? [];
    };
    return {
      cells: all(".cell_input pre").length,
      height: document.documentElement.scrollHeight,
      printed: printed.length + all(".cell_output tr").length,
      verdicts: printed.filter((line) => /^(equal|different|holds|exact)\b.*:/.test(line)).length,
      words: prose.flatMap(said).length,
    };
  },

  // Words of figures that have fewer pixels than these, in folded boxes as well.
  small(least) {
    document.querySelectorAll("article details").forEach((each) => { each.open = true; });
    document.querySelectorAll(".toggle-hidden").forEach((each) => each.classList.remove("toggle-hidden"));
    const figures = [...document.querySelectorAll("article svg, article .live-moving")];
    const words = new Set(figures.flatMap((figure) => inspection.texts(figure)));
    return [...words].flatMap((node) => {
      const element = node.parentElement;
      if (!element.checkVisibility() || element.closest("style, title")) return [];
      const turned = element.getScreenCTM?.();
      const scale = turned ? Math.hypot(turned.a, turned.b) : 1;
      const pixels = parseFloat(getComputedStyle(element).fontSize) * scale;
      return pixels < least ? [`${pixels.toFixed(1)}: ${node.textContent.trim()}`] : [];
    });
  },

  // Of each symbol that is marked in equations, in sources and in its row of the table how often it
  // stands there; and what the focus of one button after another marks, at how many places, and
  // what is marked afterwards.
  symbols() {
    const places = {};
    for (const e of document.querySelectorAll(".symbol")) {
      const place = e.closest(".symbols-table") ? "table" : e.closest("pre") ? "source" : "equation";
      for (const number of inspection.numbers([e])) {
        places[number] ??= { equation: 0, source: 0, table: 0 };
        places[number][place] += 1;
      }
    }
    const focused = [...document.querySelectorAll("button.symbol")].map((button) => {
      button.focus();
      const found = [inspection.marked(), document.querySelectorAll(".symbol-marked").length];
      button.blur();
      return [...found, inspection.marked()];
    });
    return { places, focused };
  },

  // The symbols of which all places are marked.
  marked() {
    const all = [...document.querySelectorAll(".symbol")];
    const unmarked = inspection.numbers(all.filter((e) => !e.classList.contains("symbol-marked")));
    return [...inspection.numbers(all)].filter((number) => !unmarked.has(number));
  },

  numbers(symbols) {
    const found = symbols.flatMap((e) => [...e.className.matchAll(/symbol-(\d+)/g)]);
    return new Set(found.map(([, number]) => number));
  },

  // Text whose contrast with its background is below that of WCAG 2.1, level AA.
  faint() {
    const found = new Map();
    inspection.known = new Map(); // what is behind an element
    for (const node of inspection.texts(document.body)) {
      const element = node.parentElement;
      if (element.closest("form")) continue; // the theme's hints beside a field
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const box = element.getBoundingClientRect();
      if (box.width <= 1 || box.height <= 1) continue;
      const style = getComputedStyle(element);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      const color = element.closest("svg") ? style.fill : style.color;
      const ratio = inspection.contrast(inspection.rgba(color), inspection.background(element));
      if (ratio < (large ? 3 : 4.5)) {
        const key = `${ratio.toFixed(2)} ${color} ${inspection.name(element)}`;
        found.set(key, `${key}: ${node.textContent.trim().slice(0, 40)}`);
      }
    }
    return [...found.values()];
  },

  texts(root) {
    const found = [];
    const walker = document.createTreeWalker(root ?? document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.textContent.trim()) found.push(walker.currentNode);
    }
    return found;
  },

  name(element) {
    const classes = [...element.classList].map((name) => `.${name}`).join("");
    return `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}${classes}`;
  },

  background(element) {
    return inspection.shapesBehind(element).reduce(inspection.over, inspection.behind(element));
  },

  behind(element) {
    if (!element) return [255, 255, 255, 1];
    if (!inspection.known.has(element)) {
      const own = inspection.rgba(getComputedStyle(element).backgroundColor);
      const below = () => inspection.behind(element.parentElement);
      inspection.known.set(element, own[3] === 1 ? own : inspection.over(below(), own));
    }
    return inspection.known.get(element);
  },

  // Within a drawing the background is what was drawn before.
  shapesBehind(element) {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const shapes = [...(element.closest("svg")?.querySelectorAll("rect, circle, ellipse, path, polygon") ?? [])];
    return shapes
      .filter((shape) => {
        const box = shape.getBoundingClientRect();
        const isBefore = shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
        const isNear = box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
        return isBefore && isNear && shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse()));
      })
      .map((shape) => {
        const { fill, fillOpacity, opacity } = getComputedStyle(shape);
        const [r, g, b, alpha] = inspection.rgba(fill === "none" ? "transparent" : fill);
        return [r, g, b, alpha * fillOpacity * opacity];
      });
  },

  over(below, [r, g, b, alpha]) {
    const mix = (top, bottom) => top * alpha + bottom * (1 - alpha);
    return [mix(r, below[0]), mix(g, below[1]), mix(b, below[2]), 1];
  },

  // A canvas knows every notation of a color.
  rgba(color) {
    inspection.colors ??= new Map();
    if (!inspection.colors.has(color)) {
      inspection.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      inspection.canvas.clearRect(0, 0, 1, 1);
      inspection.canvas.fillStyle = color;
      inspection.canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, alpha] = inspection.canvas.getImageData(0, 0, 1, 1).data;
      inspection.colors.set(color, [r, g, b, alpha / 255]);
    }
    return inspection.colors.get(color);
  },

  contrast(text, background) {
    const [light, dark] = [inspection.over(background, text), background]
      .map(([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((value) => {
          const share = value / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
      })
      .sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  },
};

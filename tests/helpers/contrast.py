"""How well words stand out from what is behind them."""

# Contrast as the WCAG has it, of an element's text against the first background behind it.
CONTRAST = """(selector) => [...document.querySelectorAll(selector)]
  .filter((e) => e.offsetParent && e.textContent.trim())
  .map((e) => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => {
        const [r, g, b] = rgb.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let behind = e;
    const solid = (e) => { const c = parts(getComputedStyle(e).backgroundColor); return c.length === 3 || c[3] === 1; };
    while (behind.parentElement && !solid(behind)) behind = behind.parentElement;
    const pair = [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor].map((c) => light(parts(c)));
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
})"""

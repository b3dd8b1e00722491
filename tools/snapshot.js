// The current page as text, for tools/interface.py: its body and the style rules that apply to it.
async () => {
  const { innerWidth, innerHeight } = window;

  /** The style rules that apply here, without those for other screen sizes or for missing elements. */
  function applying(rules) {
    return [...rules].flatMap((rule) => {
      if (rule instanceof CSSMediaRule) return matchMedia(rule.conditionText).matches ? applying(rule.cssRules) : [];
      if (!(rule instanceof CSSStyleRule)) return [];
      const plain = rule.selectorText.replace(/::?[\w-]+(\((?:[^()]|\([^()]*\))*\))?/g, "").replace(/^\s*(,|$)/, "*$1");
      try {
        return document.querySelector(plain) ? [rule.cssText] : [];
      } catch {
        return [rule.cssText];
      }
    });
  }

  const css = [...document.styleSheets].flatMap((sheet) => applying(sheet.cssRules)).join("\n");
  const map = document.querySelector(".panel .map").getBoundingClientRect().width;
  const body = document.body.cloneNode(true);
  body.querySelectorAll("script, dialog, .sr-only, .skip, [hidden]").forEach((element) => element.remove());
  body.querySelector(".teach").style.setProperty("--map", `${map}px`); // depends on the window
  body.style.cssText = `width: ${innerWidth}px; height: ${innerHeight}px; background: var(--ground)`;
  for (const image of body.querySelectorAll("img")) {
    image.src = `data:image/svg+xml,${encodeURIComponent(await (await fetch(image.src)).text())}`;
  }
  body.querySelectorAll(".bottom strong").forEach((code) => (code.textContent = "ABCD-EFGH-JKLM")); // random
  return { css, body: new XMLSerializer().serializeToString(body) };
};

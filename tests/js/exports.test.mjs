// What a module exports, another module or a test imports.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "node:test";

const ROOT = join(import.meta.dirname, "../..");
/** Called by web/page, and by the one script of a saved text; another entry exports `mount` alone. */
const ENTRIES = { "look/main.mjs": ["start", "mount"], "look/saved/main.mjs": ["start"] };

test("every export has an importer", () => {
  const files = ["web/js", "tests/js"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => join(ROOT, folder, name)),
  );
  const scripts = files.filter((path) => /\.(mjs|d\.ts)$/.test(path));
  const sources = new Map(scripts.map((path) => [path, readFileSync(path, "utf8")]));
  const imported = new Set();
  for (const [path, source] of sources) {
    const clauses = [
      ...source.matchAll(/\bimport \{([^}]*)\} from "([^"]+)"/g), // @import in comments too
      ...source.matchAll(/\bconst \{([^}]*)\} = await import\("([^"]+)"\)/g),
      ...[...source.matchAll(/\bimport\("([^"]+)"\)\.(\w+)/g)].map(([all, from, name]) => [all, name, from]),
    ];
    for (const [, names, from] of clauses) {
      const [, rest] = /\.\.\.(\w+)/.exec(names) ?? []; // an object with all others
      const uses = rest ? source.matchAll(new RegExp(`\\b${rest}\\.(\\w+)`, "g")) : [];
      const others = [...uses].map(([, name]) => name);
      for (const name of [...names.split(","), ...others])
        imported.add(`${resolve(path, "..", from)} ${name.trim().split(" ")[0]}`);
    }
  }
  const unused = [...sources].flatMap(([path, source]) => {
    const file = path.slice(join(ROOT, "web/js/").length);
    const called = file.endsWith("main.mjs") ? (ENTRIES[file] ?? ["mount"]) : [];
    const exported = [...source.matchAll(/^export (?:async )?(?:const|function\*?|class|let) (\w+)/gm)];
    return exported
      .map(([, name]) => name)
      .filter((name) => !called.includes(name) && !imported.has(`${path} ${name}`))
      .map((name) => `${file}: ${name}`);
  });
  assert.deepEqual(unused, [], "exported, but imported by no module and no test");
});

// node bundle.mjs DIRECTORY OUT: the scripts of DIRECTORY/node_modules that a report needs, in one file, with the
// licences of all that is in it. No bundler: each package ships one minified script that defines one global name.
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [directory, out] = process.argv.slice(2);
const modules = join(directory, "node_modules");
const scripts = ["vega/build/vega.min.js", "vega-lite/build/vega-lite.min.js", "vega-embed/build/vega-embed.min.js"];

// What only the command lines of these packages use is not in the scripts.
const unused = new Set(["yargs", "commander", "@types"]);

/** Packages that the scripts are made of: the closure of dependencies. */
function packages(names, found = new Map()) {
  for (const name of names) {
    const file = join(modules, name, "package.json");
    if (found.has(name) || unused.has(name.split("/")[0]) || !existsSync(file)) continue;
    const description = JSON.parse(readFileSync(file, "utf8"));
    found.set(name, description);
    packages(Object.keys(description.dependencies ?? {}), found);
  }
  return found;
}

function licence(name) {
  const file = readdirSync(join(modules, name)).find((f) => /^licen[cs]e/i.test(f));
  const path = file && join(modules, name, file);
  return path && statSync(path).isFile() ? readFileSync(path, "utf8").trim() : "";
}

const byText = new Map();
for (const [name, { version, license }] of [...packages(["vega", "vega-lite", "vega-embed"])].sort()) {
  const text = licence(name) || `(no licence file; package.json says ${license})`;
  byText.set(text, [...(byText.get(text) ?? []), `${name} ${version} (${license})`]);
}
const notices = [...byText].map(([text, names]) => `${names.join(", ")}:\n\n${text}`).join("\n\n----\n\n");
// A map would be looked for beside the page; "</script" would end the element that the scripts stand in.
const code = scripts.map((s) =>
  readFileSync(join(modules, s), "utf8").replace(/^\/\/# sourceMappingURL=.*$/m, "").replace(/<\/(script)/gi, "<\\/$1"));
const comment = (text) => text.replaceAll("*/", "* /").replace(/<(\/?script|!--)/gi, "< $1");
writeFileSync(out, `/*\n${comment(notices)}\n*/\n${code.join("\n")}\n`);

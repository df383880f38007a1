// Composes the Lua scripts as docs/wire-format.md says, for EVALSHA and EVAL.
//
// node scripts.mjs FOLDER    prints name, SHA-1, KEYS and ARGV of each script of the folder

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Text, SHA-1, the parts that are KEYS, the names of ARGV; folder: with the .lua files. */
export function composeScript(folder, name) {
  const own = readFileSync(join(folder, `${name}.lua`), "utf8");
  const { flags, keys = [], args = [], uses = [], seldom = [] } = headerOf(own);
  const read = (part) => readFileSync(join(folder, "fragments", `${part}.lua`), "utf8");
  const [fragments, later] = [uses.map(read), seldom.map(read)];
  const needed = [...fragments, ...later].flatMap((each) => headerOf(each).keys ?? []);
  const parts = [...new Set([...keys, ...needed])];
  const named = args.includes("...") ? args.slice(0, args.indexOf("...")) : args;
  const text = [
    flags ? `#!lua flags=${flags.join(",")}` : "#!lua",
    `local K = {${numbered(parts, "KEYS").join(", ")}}`,
    `local A = {${[...numbered(named, "ARGV"), `rest=${named.length + 1}`].join(", ")}}`,
    ...(later.length ? ["local S = {}"] : []),
    ...fragments,
    ...madeWhenAskedFor(later),
    own,
  ].join("\n");
  const sha = createHash("sha1").update(text).digest("hex");
  return { text, sha, keys: parts, args: named };
}

/** S.name is function `name` of one of the fragments. */
function madeWhenAskedFor(fragments) {
  if (!fragments.length) return [];
  const names = fragments.flatMap((each) =>
    [...each.matchAll(/^local function (\w+)\(/gm)].map((found) => found[1]),
  );
  return [
    "setmetatable(S, {__index = function(_, name)",
    ...fragments,
    `${names.map((name) => `S.${name}`).join(", ")} = ${names.join(", ")}`,
    "return rawget(S, name)",
    "end})",
  ];
}

const numbered = (names, table) => names.map((name, i) => `${name}=${table}[${i + 1}]`);

function headerOf(text) {
  const found = {};
  for (const [, name, words] of text.matchAll(/^-- (flags|keys|args|uses|seldom): *(.*)$/gm)) {
    found[name] = words.split(/\s+/).filter(Boolean);
  }
  return found;
}

if (process.argv[1] === import.meta.filename) {
  const folder = process.argv[2];
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith(".lua")) continue;
    const name = file.slice(0, -4);
    const { sha, keys, args } = composeScript(folder, name);
    console.log([name, sha, keys.join(","), args.join(",")].join(" "));
  }
}

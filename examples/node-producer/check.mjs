// node check.mjs FOLDER    runs the test vectors of docs/wire-format; 1 if one fails

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { readJson } from "./json.mjs";
import { fingerprint, queueKey, readEnvelope, readUnique, uniqueSpec } from "./tidework.mjs";

const folder = process.argv[2];
if (folder === undefined) {
  console.error("usage: node check.mjs FOLDER");
  process.exit(2);
}

const read = (each, { new_id, now }) => readEnvelope(bytesOf(each), new_id, now);
run("envelopes.json", "valid", (each, document) => differs(read(each, document), each.job));
run("envelopes.json", "newer", (each, document) => differs(read(each, document), each.job));
run("envelopes.json", "invalid", (each, document) => {
  const { kind, field } = refusal(() => read(each, document));
  return differs({ kind, field }, { kind: each.kind, field: each.field });
});
run("keys.json", "keys", ({ namespace, queue, part, key }) =>
  differs(queueKey(namespace, queue, part), key),
);
run("keys.json", "no_names", (each) =>
  differs(refusal(() => queueKey("shop", each, "jobs")).name, "RangeError"),
);
run("unique.json", "unique", (each) => differs(uniqueSpec(readUnique(each.unique)), each.spec));
run("fingerprints.json", "fingerprints", (each) =>
  differs(fingerprint(each.error), each.fingerprint),
);

/** test: says what is wrong, or null */
function run(file, list, test) {
  const document = readJson(readFileSync(join(folder, file)), 200);
  for (const given of document[list]) {
    const each = given.fill === undefined ? given : filled(given);
    let found;
    try {
      found = test(each, document);
    } catch (error) {
      found = `${error.name}: ${error.message}`;
    }
    if (found !== null) {
      process.exitCode = 1;
      console.error(`${file}: ${list}: ${each.name ?? each.key ?? each}: ${found}`);
    }
  }
  console.log(`${file}: ${document[list].length} ${list}`);
}

function refusal(act) {
  try {
    act();
  } catch (error) {
    return error;
  }
  return { name: "nothing", kind: "accepted", field: "" };
}

function filled(each) {
  const plain = (_, found) => (typeof found === "bigint" ? Number(found) : found);
  const text = JSON.stringify(each, plain);
  return readJson(Buffer.from(text.replaceAll("%", "x".repeat(Number(each.fill)))));
}

function bytesOf(each) {
  return each.hex === undefined ? Buffer.from(each.document) : Buffer.from(each.hex, "hex");
}

function differs(found, wanted) {
  const [a, b] = [found, wanted].map((value) => text(value));
  return a === b ? null : `it is ${a.slice(0, 300)}, not ${b.slice(0, 300)}`;
}

// 5 and 5.0 are one number in a job; the order of keys says nothing.
function text(value) {
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(text)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${text(value[key])}`)}}`;
}

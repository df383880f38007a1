// What a producer in another language has to know: docs/wire-format.md in code.

import { createHash } from "node:crypto";

import { readJson } from "./json.mjs";

const VERSION = 1n;
const LONGEST_PARAMS = 262144;
const YEAR_10000 = 253402300800;
const YEAR = 31536000;
const LETTER = String.raw`[\p{L}\p{N}_]`;
const EDGE = `(?:(?<!${LETTER})(?=${LETTER})|(?<=${LETTER})(?!${LETTER}))`;
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const JOB_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;
const TASK = /^[A-Za-z_][A-Za-z0-9_.:/-]{0,199}$/;
// Numbers, hex and quoted texts; letters of any alphabet count where a word begins and ends.
const VARYING = new RegExp(
  String.raw`'[^']*'|"[^"]*"|${EDGE}(?:0x)?[0-9a-f]*\p{Nd}[0-9a-f-]*(?:[.]\p{Nd}+)?${EDGE}`,
  "giu",
);
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

/** A document that is refused. kind: json, document or field; field: its name, or "". */
export class EnvelopeError extends Error {
  constructor(kind, field, reason) {
    super(field ? `${field}: ${reason}` : reason);
    Object.assign(this, { kind, field });
  }
}

function check(holds, field, reason) {
  if (!holds) throw new EnvelopeError("field", field, reason);
}

/** The job that bytes are; id and time of one that has none: newId, now. Throws EnvelopeError. */
export function readEnvelope(bytes, newId, now) {
  let document;
  try {
    document = readJson(bytes);
  } catch (error) {
    throw new EnvelopeError("json", "", error.message);
  }
  if (!isObject(document)) throw new EnvelopeError("document", "", "has to be a JSON object");
  const { v = VERSION, id, task, params, priority, ...rest } = underOurNames(document);
  const { created_at, available_at, max_attempts, timeout, unique, trace, ...extra } = rest;
  check(typeof v === "bigint" && v >= 1n, "v", "is no version");
  const job = {
    id: id ?? newId,
    task,
    priority: whole(priority, "priority", 0, 9) ?? 5,
    created_at: number(created_at, "created_at", 0, YEAR_10000) ?? now,
    available_at: number(available_at, "available_at", 0, YEAR_10000),
  };
  check(matches(JOB_ID, job.id), "id", "1 to 128 of A-Z a-z 0-9 _ . : - after a letter or digit");
  check(matches(TASK, task), "task", "1 to 200 of A-Z a-z 0-9 _ . : / - after a letter or _");
  if (v > VERSION) return job; // a newer worker reads the rest
  check(params == null || isObject(params) || isEmpty(params), "params", "has to be an object");
  check(sizeOf(params ?? {}) <= LONGEST_PARAMS, "params", `more than ${LONGEST_PARAMS} bytes`);
  const isTrace = trace == null || isEmpty(trace) || isObject(trace);
  check(isTrace && Object.values(trace ?? {}).every(isText), "trace", "has to be texts by name");
  return {
    ...job,
    params: isEmpty(params) ? {} : (params ?? {}),
    max_attempts: whole(max_attempts, "max_attempts", 1, 1000),
    timeout: number(timeout, "timeout", 0.001, YEAR),
    unique: readUnique(unique),
    trace: isEmpty(trace) ? null : (trace ?? null),
    extra,
  };
}

// The envelope of the tutorials: task_type in place of task.
function underOurNames(document) {
  if (document.task != null || document.task_type === undefined) return document;
  const found = { ...document };
  for (const [alias, name] of Object.entries(ALIASES)) {
    if (found[alias] === undefined) continue;
    const same = found[name] == null || inText(found[name]) === inText(found[alias]);
    check(same, name, `says one thing, and ${alias}, which means the same, another`);
    found[name] = found[alias];
    delete found[alias];
  }
  return found;
}

/** A unique key and its rules, all of them; null without one. Throws EnvelopeError. */
export function readUnique(found) {
  if (found == null) return null;
  if (isText(found)) found = { key: found };
  check(isObject(found), "unique", "has to be a key or an object with one");
  for (const name of Object.keys(found)) {
    check(["key", "until", "ttl", "on_conflict"].includes(name), `unique.${name}`, "is not known");
  }
  const { key } = found;
  check(isText(key) && !UNPRINTABLE.test(key), "unique.key", "has to be printable text");
  check(key !== "" && [...key].length <= 200, "unique.key", "has to have 1 to 200 characters");
  const ttl = found.ttl ?? null;
  check(ttl === null || isNumber(ttl), "unique.ttl", "is no number of seconds");
  const until = choice(found, "until", ["end", "start", "ttl"]);
  const on_conflict = choice(found, "on_conflict", ["skip", "replace", "error"]);
  check((ttl !== null) === (until === "ttl"), "unique.ttl", "is given with until=ttl, only then");
  check(ttl === null || (ttl > 0 && ttl <= YEAR), "unique.ttl", "is out of bounds");
  return { key, until, ttl: ttl === null ? null : Number(ttl), on_conflict };
}

/** How scripts are told of a unique key. */
export function uniqueSpec(unique) {
  if (unique === null) return "";
  const ms = unique.ttl === null ? "" : Math.max(1, Math.round(unique.ttl * 1000));
  return `${unique.until[0]}${unique.on_conflict[0]}${ms}:${unique.key}`;
}

/** The key of one part of a queue. Throws RangeError for names that are no DNS labels. */
export function queueKey(namespace, queue, part) {
  for (const name of [namespace, queue]) {
    if (!matches(LABEL, name)) throw new RangeError(`${name} is no DNS label`);
  }
  return `tw1:{${namespace}/${queue}}:${part}`;
}

/** What equal errors have in common. */
export function fingerprint({ type, message, trace, cause }) {
  const kind = [...type.replace(/[^A-Za-z0-9_.]/gu, "_")].slice(0, 64).join("") || "Error";
  if (cause === "lost" || cause === "unique") return kind;
  const frames = [...shorten(trace).matchAll(/File "(?:[^"]*\/)?([^"/]+)", line \d+, in (\S+)/gu)];
  const place = frames.length
    ? `[${frames.map(([, file, name]) => `[${quote(file)}, ${quote(name)}]`).join(", ")}]`
    : quote(shorten(message).replace(VARYING, "#"));
  const hash = createHash("sha256").update(`[${quote(cause)}, ${place}]`).digest("hex");
  return `${kind}-${hash.slice(0, 8)}`;
}

function shorten(text) {
  const letters = [...text];
  if (letters.length <= 16384) return text;
  const gone = `\n[... ${letters.length - 16384} characters left out ...]\n`;
  return letters.slice(0, 8192).join("") + gone + letters.slice(-8192).join("");
}

function quote(text) {
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, escape);
}

const ALIASES = { task_id: "id", task_type: "task", payload: "params", max_attempt: "max_attempts" };
const isEmpty = (found) => Array.isArray(found) && found.length === 0;
const inText = (found) =>
  JSON.stringify(found, (_, value) => (typeof value === "bigint" ? String(value) : value));
const isText = (found) => typeof found === "string";
const isNumber = (found) => typeof found === "number" || typeof found === "bigint";
const isObject = (found) => typeof found === "object" && found !== null && !Array.isArray(found);
const matches = (pattern, found) => isText(found) && pattern.test(found);

function number(found, field, low, high) {
  if (found == null) return null;
  check(isNumber(found) && found >= low && found <= high, field, `a number, ${low} to ${high}`);
  return Number(found);
}

function whole(found, field, low, high) {
  check(found == null || typeof found === "bigint", field, "has to be a whole number");
  return number(found, field, low, high);
}

function choice(found, name, known) {
  const chosen = found[name] ?? known[0];
  check(known.includes(chosen), `unique.${name}`, `is none of ${known.join(", ")}`);
  return chosen;
}

// About what a worker counts, which writes numbers in its own way: keep away from the limit.
function sizeOf(params) {
  const plain = (_, found) => (typeof found === "bigint" ? String(found) : found);
  return Buffer.byteLength(JSON.stringify(params, plain));
}

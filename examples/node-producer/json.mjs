// JSON as docs/wire-format.md wants it: what every reader understands alike, or nothing.
//
// JSON.parse takes the last of two equal keys, rounds large numbers, and reads 5.0 as 5. Here whole
// numbers become BigInt, all others Number.

const DEEPEST = 100;
const MOST_DIGITS = 4300;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;

/** Parse bytes, arrays and objects at most so deep. Throws SyntaxError. */
export function readJson(bytes, deepest = DEEPEST) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new SyntaxError("not valid UTF-8");
  }
  const reader = new Reader(text, deepest);
  const found = reader.value(0);
  if (reader.at < text.length) reader.fail();
  return found;
}

class Reader {
  constructor(text, deepest) {
    this.text = text;
    this.deepest = deepest;
    this.at = 0;
  }

  fail(reason = "not valid JSON") {
    throw new SyntaxError(`${reason} at character ${this.at}`);
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return undefined;
    this.at = pattern.lastIndex;
    return found[0];
  }

  takes(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    this.take(SPACE);
    return true;
  }

  value(depth) {
    this.take(SPACE);
    const first = this.text[this.at];
    if (depth >= this.deepest && "[{".includes(first)) this.fail("nested too deeply");
    const found =
      first === "{" ? this.object(depth) : first === "[" ? this.array(depth) : this.scalar(first);
    this.take(SPACE);
    return found;
  }

  scalar(first) {
    if (first === '"') return this.string();
    const word = this.take(WORD);
    if (word !== undefined) return JSON.parse(word);
    const digits = this.take(NUMBER);
    if (digits === undefined) this.fail();
    if (/^-?\d+$/.test(digits)) {
      if (digits.replace("-", "").length > MOST_DIGITS) this.fail("too many digits");
      return BigInt(digits);
    }
    const found = Number(digits);
    if (!Number.isFinite(found)) this.fail("more than a 64-bit float holds");
    return found;
  }

  string() {
    const token = this.take(STRING);
    if (token === undefined) this.fail();
    const found = JSON.parse(token);
    if (!found.isWellFormed()) this.fail("half of a surrogate pair");
    return found;
  }

  array(depth) {
    const found = [];
    this.takes("[");
    if (this.takes("]")) return found;
    do found.push(this.value(depth + 1));
    while (this.takes(","));
    if (!this.takes("]")) this.fail();
    return found;
  }

  object(depth) {
    const found = Object.create(null);
    this.takes("{");
    if (this.takes("}")) return found;
    do {
      const key = this.string();
      if (key in found) this.fail("a key comes twice");
      this.take(SPACE);
      if (!this.takes(":")) this.fail();
      found[key] = this.value(depth + 1);
    } while (this.takes(","));
    if (!this.takes("}")) this.fail();
    return found;
  }
}

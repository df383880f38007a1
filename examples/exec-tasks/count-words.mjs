// A task in Node: reads its job from standard input, ends with an exit code and a line of JSON.

import { text } from "node:stream/consumers";

const { params } = JSON.parse(await text(process.stdin));

if (typeof params.text !== "string") {
  console.error("params.text has to be text");
  process.exit(65); // EX_DATAERR: a dead letter at once
}

const words = params.text.match(/\p{L}+/gu) ?? [];
console.log(`${words.length} words`); // logged; the last line is the result
console.log(JSON.stringify({ words: words.length }));

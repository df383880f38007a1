// node enqueue.mjs URL NAMESPACE/QUEUE TASK [PARAMS]    puts a job into the inbox, prints its id
//
// Needs no more than the right to LPUSH into the inbox (docs/redis-access.md, role inbox).

import { randomUUID } from "node:crypto";

import { openRedis } from "./redis.mjs";
import { queueKey, readEnvelope } from "./tidework.mjs";

const [url, place, task, params = "{}"] = process.argv.slice(2);
if (task === undefined) {
  console.error("usage: node enqueue.mjs URL NAMESPACE/QUEUE TASK [PARAMS]");
  process.exit(2);
}

try {
  const id = randomUUID(); // our own, so that the same document twice is one job
  const document = { v: 1, id, task, created_at: Date.now() / 1000, params: JSON.parse(params) };
  const bytes = Buffer.from(JSON.stringify(document));
  readEnvelope(bytes, id, 0); // refused here rather than by the worker
  const inbox = queueKey(...place.split("/"), "inbox");
  const redis = await openRedis(url);
  try {
    await redis.send("LPUSH", inbox, bytes);
  } finally {
    redis.close();
  }
  console.log(id);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

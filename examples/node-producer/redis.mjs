// The few lines of Redis' protocol (RESP2) that a producer needs.

import { connect } from "node:net";

/** A connection to redis://[USER:PASSWORD@]HOST[:PORT][/DB]; one command at a time. */
export async function openRedis(url) {
  const { hostname, port, username, password, pathname } = new URL(url);
  const redis = new Redis(connect(Number(port || 6379), hostname));
  try {
    const login = [username, password].filter(Boolean).map(decodeURIComponent);
    if (login.length) await redis.send("AUTH", ...login);
    const database = pathname.slice(1);
    if (database && database !== "0") await redis.send("SELECT", database);
  } catch (error) {
    redis.close();
    throw error;
  }
  return redis;
}

class Redis {
  #socket;
  #received = Buffer.alloc(0);
  #waiting = null;

  constructor(socket) {
    this.#socket = socket;
    socket.on("data", (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      const found = read(this.#received, 0);
      if (found === null) return;
      this.#received = this.#received.subarray(found.end);
      const { resolve, reject } = this.#waiting;
      if (found.value instanceof Error) reject(found.value);
      else resolve(found.value);
    });
    socket.on("error", (error) => this.#waiting?.reject(error));
    socket.on("close", () => this.#waiting?.reject(new Error("Redis has closed the connection")));
  }

  /** The reply to one command: text, number, null or an array. Throws what the server refuses. */
  send(...words) {
    const parts = words.map((word) => (Buffer.isBuffer(word) ? word : Buffer.from(String(word))));
    const framed = parts.flatMap((part) => [`$${part.length}\r\n`, part, "\r\n"]);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      const whole = [`*${parts.length}\r\n`, ...framed].map((piece) => Buffer.from(piece));
      this.#socket.write(Buffer.concat(whole));
    });
  }

  close() {
    this.#waiting = null;
    this.#socket.end();
  }
}

function read(bytes, start) {
  const line = bytes.indexOf("\r\n", start);
  if (line < 0) return null;
  const head = bytes.toString("utf8", start + 1, line);
  const next = line + 2;
  switch (String.fromCharCode(bytes[start])) {
    case "+":
      return { value: head, end: next };
    case "-":
      return { value: new Error(head), end: next };
    case ":":
      return { value: Number(head), end: next };
    case "$": {
      const end = next + Number(head);
      if (head === "-1") return { value: null, end: next };
      if (bytes.length < end + 2) return null;
      return { value: bytes.toString("utf8", next, end), end: end + 2 };
    }
    default: {
      const value = [];
      let end = next;
      for (let left = Number(head); left > 0; left -= 1) {
        const found = read(bytes, end);
        if (found === null) return null;
        value.push(found.value);
        end = found.end;
      }
      return { value, end };
    }
  }
}

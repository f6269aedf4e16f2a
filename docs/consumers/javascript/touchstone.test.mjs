// node --test: the conformance vectors, one test each, and what no vector can hold. Not in the package.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { follow } from "./follow.mjs";
import { FORMAT, Refused, decide, digestOf, load, read } from "./touchstone.mjs";
import { unmet } from "./vectors.mjs";

const folder = process.env.TOUCHSTONE_VECTORS ?? fileURLToPath(new URL("../../../calibrate/thresholds/vectors", import.meta.url));
const vectors = Object.fromEntries(readdirSync(folder).sort().filter((name) => name.endsWith(".json"))
  .map((name) => [name.replace(".json", ""), JSON.parse(readFileSync(join(folder, name), "utf8"))]));
const bytes = (document) => Buffer.from(JSON.stringify(document));
const signed = (document) => ({ ...document, digest: digestOf(document) });
const release = (version) => signed({ ...vectors.tiers.document, version, replaces: null });

for (const [name, vector] of Object.entries(vectors)) test(`vector ${name}`, () => assert.deepEqual([...unmet(vector)], []));

test("there are as many vectors as the format has", () => assert.ok(Object.keys(vectors).length >= 40));

test("a newer format is refused with a sentence", () => {
  const newer = signed({ ...vectors.tiers.document, touchstone_thresholds: FORMAT + 1 });
  assert.throws(() => read(bytes(newer)), (error) => error instanceof Refused && /format 3 is newer than this reader \(2\)/.test(error.message));
});

test("a changed threshold is refused by the digest", () => {
  const changed = structuredClone(vectors.tiers.document);
  Object.values(changed.detectors)[0].threshold += 0.001;
  assert.throws(() => read(bytes(changed)), /its digest does not match/);
});

test("a file is loaded from a path", () => {
  const path = join(mkdtempSync(join(tmpdir(), "touchstone-")), "thresholds.json");
  writeFileSync(path, JSON.stringify(vectors.tiers.document));
  assert.equal(load(path).digest, vectors.tiers.document.digest);
});

test("scores that are no numbers are an error of the caller's", () => {
  const file = read(bytes(vectors.tiers.document));
  assert.throws(() => decide(file, { [Object.keys(file.detectors)[0]]: "0.4" }), TypeError);
  assert.throws(() => decide(file, {}, { onMissing: "maybe" }), TypeError);
});

test("a reason names the segment", () => {
  const file = read(bytes(vectors.segments.document));
  const decision = decide(file, { nli: 0.6, rouge_l: 0.1 }, { segments: { operation: "qa", "attributes.tier": "gold" } });
  assert.deepEqual(decision.reasons, ["nli 0.6 ≥ 0.5 (operation qa)", "rouge_l 0.1 ≤ 0.1 (tier gold)"]);
  assert.throws(() => decide(file, { nli: 0.6 }, { segments: { operation: ["qa"] } }), TypeError);
  assert.throws(() => decide(file, { nli: 0.6 }, { segments: "qa" }), TypeError);
});

test("a server is followed by ETag, and the last good release is kept", async () => {
  const asked = [];
  let served = { status: 200, body: bytes(release(3)), etag: '"3"' };
  const server = createServer((request, response) => {
    const condition = request.headers["if-none-match"] ?? null;
    asked.push([condition, request.headers.authorization]);
    const same = condition === served.etag;
    response.writeHead(same ? 304 : served.status, { ETag: served.etag });
    response.end(same ? undefined : served.body);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const changes = [], problems = [];
  const followed = await follow(`http://127.0.0.1:${server.address().port}/thresholds.json`, {
    every: 3_600_000, headers: { Authorization: "Bearer t" },
    onChange: ({ version }) => changes.push(version), onProblem: ({ message }) => problems.push(message),
  });
  try {
    await followed.refresh();
    assert.deepEqual(asked, [[null, "Bearer t"], ['"3"', "Bearer t"]]);
    for (const [next, expected] of [
      [{ status: 200, body: bytes(release(4)), etag: '"4"' }, null],
      [{ status: 200, body: Buffer.from("{"), etag: '"5"' }, /not JSON/],
      [{ status: 503, body: Buffer.from(""), etag: '"6"' }, /503/],
      [{ status: 200, body: bytes(release(2)), etag: '"2"' }, /version 2 is older than 4/],
      [{ status: 200, body: bytes(release(4)), etag: '"4"' }, null],
    ]) {
      served = next;
      await followed.refresh();
      if (expected) assert.match(followed.problem.message, expected);
      else assert.equal(followed.problem, null);
      assert.equal(followed.thresholds.version, 4);
    }
    assert.deepEqual(changes, [3, 4]);
    assert.equal(problems.length, 1); // told when it began, not at every look
  } finally {
    followed.stop();
    server.close();
  }
});

test("the first file must be there", async () => {
  await assert.rejects(follow("http://127.0.0.1:1/thresholds.json"));
});

test("the package's schema is that of the format", { skip: !existsSync(new URL("../../../calibrate", import.meta.url)) }, () => {
  const original = new URL("../../../calibrate/thresholds/schema.json", import.meta.url);
  assert.deepEqual(readFileSync(new URL("schema.json", import.meta.url)), readFileSync(original));
});

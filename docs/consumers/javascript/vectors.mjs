// Holds touchstone.mjs to the conformance vectors: node vectors.mjs [FOLDER]. Exit 1 where one is not met.
// Schema and vectors are those beside it and in FOLDER, else the repository's.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused, decide, probability, read } from "./touchstone.mjs";

const near = (path) => fileURLToPath(new URL(path, import.meta.url));
const schemaPath = [near("schema.json"), near("../../../calibrate/thresholds/schema.json")].find(existsSync);
const folder = process.argv[2] ?? near("../../../calibrate/thresholds/vectors");
if (!schemaPath || !existsSync(folder)) {
  console.error(schemaPath ? `${folder}: no such folder; give one with conformance vectors: node vectors.mjs FOLDER`
    : "schema.json is not here: copy calibrate/thresholds/schema.json beside vectors.mjs");
  process.exit(1);
}
const schema = JSON.parse(readFileSync(schemaPath, "utf8"));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function* unmet({ document, text, refused, verify_key: verifyKey, cases = [] }) {
  let file;
  try {
    file = read(Buffer.from(text ?? JSON.stringify(document)), { schema, verifyKey });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (!refused) yield `refused: ${error.message}`;
    return;
  }
  if (refused) yield "read, but it must be refused";
  for (const { about, scores, decision, probabilities = {}, on_missing: onMissing, skipped } of cases) {
    const found = decide(file, scores, { onMissing, skipped });
    for (const [key, value] of Object.entries(decision)) if (!same(found[key], value))
      yield `${about}: ${key} is ${JSON.stringify(found[key])}`;
    for (const [name, value] of Object.entries(probabilities))
      if (!(Math.abs(probability(file, name, scores[name]) - value) < 1e-12))
        yield `${about}: the probability of ${name}`;
  }
}

let failed = 0, count = 0;
for (const name of readdirSync(folder).filter((one) => one.endsWith(".json")).sort()) {
  count++;
  for (const problem of unmet(JSON.parse(readFileSync(join(folder, name), "utf8")))) {
    failed++;
    console.log(`${name}: ${problem}`);
  }
}
console.log(`${count} vectors, ${failed} not met`);
process.exit(failed || !count ? 1 : 0);

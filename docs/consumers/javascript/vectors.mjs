// Holds touchstone.mjs to the conformance vectors: node vectors.mjs [FOLDER]. Exit 1 where one is not met.
// Without FOLDER it takes the vectors of the repository.

import { existsSync, readFileSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused, decide, probability, read } from "./touchstone.mjs";

const near = (path) => fileURLToPath(new URL(path, import.meta.url));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** What a vector expects and the reader does not do, in sentences. */
export function* unmet({ document, text, refused, verify_key: verifyKey, cases = [] }) {
  let file;
  try {
    file = read(Buffer.from(text ?? JSON.stringify(document)), { verifyKey });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (!refused) yield `refused: ${error.message}`;
    return;
  }
  if (refused) yield "read, but it must be refused";
  for (const { about, scores, decision, probabilities = {}, on_missing: onMissing, skipped, segments } of cases) {
    const found = decide(file, scores, { onMissing, skipped, segments });
    for (const [key, value] of Object.entries(decision)) if (!same(found[key], value))
      yield `${about}: ${key} is ${JSON.stringify(found[key])}`;
    for (const [name, value] of Object.entries(probabilities))
      if (!(Math.abs(probability(file, name, scores[name]) - value) < 1e-12))
        yield `${about}: the probability of ${name}`;
  }
}

function main(folder) {
  if (!existsSync(folder)) {
    console.error(`${folder}: no such folder; give one with conformance vectors: node vectors.mjs FOLDER`);
    return 1;
  }
  if (!existsSync(near("schema.json"))) {
    console.error("schema.json is not here: copy it beside touchstone.mjs");
    return 1;
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
  return failed || !count ? 1 : 0;
}

if (process.argv[1] && existsSync(process.argv[1]) && realpathSync(process.argv[1]) === realpathSync(near("vectors.mjs")))
  process.exit(main(process.argv[2] ?? near("../../../calibrate/thresholds/vectors")));

// Reads a Touchstone thresholds file and decides by it. Node 18 or newer, no dependencies.
// What it does is written in docs/reference/thresholds-file.md, schema.json is the format's.

import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

export const FORMAT = 2;
const MAX_BYTES = 16 * 2 ** 20;
const SLACK = 1e-12;
const { entries, hasOwn, keys, values } = Object;

/** A file that must not be used; the message is a sentence for the log. */
export class Refused extends Error {}

const refuse = (why) => { throw new Refused(why); };

// ------------------------------------------------------------------------------------------------- reading

export const load = (path, options) => read(readFileSync(path), options);

const ownSchema = () => JSON.parse(readFileSync(new URL("schema.json", import.meta.url), "utf8"));

/**
 * The release in the bytes of a file, as a plain object. Throws Refused unless it is whole and unchanged and, with a
 * verifyKey (a public Ed25519 key in PEM, or a list of them), signed by one of those keys.
 */
export function read(bytes, { schema = ownSchema(), verifyKey = [] } = {}) {
  if (bytes.length > MAX_BYTES) refuse("larger than 16 MB");
  try {
    const document = parse(bytes);
    checkFormat(document);
    checkSchema(schema, document, "the file", schema);
    checkContent(document);
    if (digestOf(document) !== document.digest) refuse("changed after release: its digest does not match its content");
    if ([verifyKey].flat().length) checkSignature(document, [verifyKey].flat());
    return document;
  } catch (error) {
    if (error instanceof RangeError) refuse("nested too deeply");
    throw error;
  }
}

function parse(bytes) {
  let text, document;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    document = JSON.parse(text);
  } catch (error) {
    refuse(`not JSON in UTF-8: ${error.message}`);
  }
  refuseKeysTwice(text);
  return document;
}

/** JSON.parse keeps the last of two equal keys, and says nothing. The text is valid JSON here. */
function refuseKeysTwice(text) {
  const open = [];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === "{") open.push(new Set());
    else if (sign === "[") open.push(null);
    else if (sign === "}" || sign === "]") open.pop();
    else if (sign === '"') {
      const from = at;
      while (text[++at] !== '"') if (text[at] === "\\") at++;
      let next = at + 1;
      while (" \t\r\n".includes(text[next] ?? "x")) next++;
      if (text[next] !== ":") continue;
      const key = JSON.parse(text.slice(from, at + 1));
      if (open.at(-1).has(key)) refuse(`the key ${JSON.stringify(key)} is there twice`);
      open.at(-1).add(key);
    }
  }
}

/** RFC 8785: no white space, keys in UTF-16 order, numbers as ECMAScript writes them. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object")
    return `{${keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`).join(",")}}`;
  if (typeof value === "number" && !Number.isFinite(value)) refuse("a number is too large");
  if (typeof value === "string" && /\p{Cs}/u.test(value)) refuse("half a character in a text");
  return JSON.stringify(value);
}

export const digestOf = ({ digest, ...content }) =>
  "sha256:" + createHash("sha256").update(canonical(content)).digest("hex");

/** Ed25519 over the canonical bytes without the digest and the signature itself. */
function checkSignature({ digest, "x-signature": signature, ...content }, pems) {
  if (signature?.algorithm !== "ed25519" || typeof signature.value !== "string") refuse("not signed as it must be here");
  const value = Buffer.from(signature.value, "base64");
  const bytes = Buffer.from(canonical(content));
  if (!pems.some((pem) => verify(null, bytes, createPublicKey(pem), value)))
    refuse("its signature is not by a key that is trusted here, or it was changed after it was signed");
}

// ------------------------------------------------------------------------------------------------- checking

function checkFormat(document) {
  const isObject = document && typeof document === "object" && !Array.isArray(document);
  if (!isObject || !hasOwn(document, "touchstone_thresholds")) refuse("this is not a thresholds file");
  const number = document.touchstone_thresholds;
  if (!Number.isInteger(number) || number < 1) refuse("touchstone_thresholds is no format number");
  if (number > FORMAT) refuse(`format ${number} is newer than this reader (${FORMAT})`);
}

const TYPES = {
  object: (value) => value !== null && typeof value === "object" && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

/** As much of JSON Schema as the file's schema uses. */
function checkSchema(rule, value, at, root) {
  if (rule === true) return;
  const no = (why) => refuse(`${at} ${why}`);
  const also = (inner, part = value, where = at) => checkSchema(inner, part, where, root);
  if (rule.$ref) also(rule.$ref.slice(2).split("/").reduce((part, step) => part[step], root));
  if (rule.type && ![rule.type].flat().some((type) => TYPES[type](value)))
    no(`must be ${[rule.type].flat().join(" or ")}`);
  if (hasOwn(rule, "const") && value !== rule.const) no(`must be ${rule.const}`);
  if (rule.enum && !rule.enum.includes(value)) no(`must be one of ${rule.enum.join(", ")}`);
  if (rule.anyOf && !rule.anyOf.some((inner) => fits(inner, value, root))) no("has an impossible value");
  for (const inner of rule.allOf ?? []) also(inner);
  if (rule.if && fits(rule.if, value, root)) also(rule.then);
  if (typeof value === "number") {
    if (value < rule.minimum || value > rule.maximum) no("is out of range");
    if (value <= rule.exclusiveMinimum || value >= rule.exclusiveMaximum) no("is out of range");
  } else if (typeof value === "string") {
    if (value.length < rule.minLength || (value.length > rule.maxLength && [...value].length > rule.maxLength))
      no("is too short or too long");
    if (rule.pattern && !new RegExp(rule.pattern, "u").test(value)) no("is not spelled as it must be");
  } else if (Array.isArray(value)) {
    if (value.length < rule.minItems || value.length > rule.maxItems) no("has too few or too many items");
    value.forEach((item, place) => {
      const inner = rule.prefixItems?.[place] ?? rule.items;
      if (inner) also(inner, item, `${at}[${place}]`);
    });
  } else if (value) {
    checkObject(rule, value, at, also, no);
  }
}

function checkObject(rule, value, at, also, no) {
  for (const key of rule.required ?? []) if (!hasOwn(value, key)) no(`has no ${key}`);
  if (keys(value).length < rule.minProperties) no("is empty");
  for (const [key, part] of entries(value)) {
    const where = `${at}.${key}`;
    if (rule.propertyNames) also(rule.propertyNames, key, `the name ${where}`);
    if (rule.properties && hasOwn(rule.properties, key)) also(rule.properties[key], part, where);
    else if (rule.additionalProperties) also(rule.additionalProperties, part, where); // else it is unknown, and ignored
  }
}

function fits(rule, value, root) {
  try {
    checkSchema(rule, value, "", root);
    return true;
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

/** What a schema cannot say. */
function checkContent(document) {
  const { data, detectors, ensembles = {} } = document;
  const { since, until } = data.window ?? { since: null, until: null };
  for (const text of [document.released_at, since, until]) if (text !== null && !isTime(text))
    refuse(`${text} is no time`);
  if (since !== null && until !== null && since > until) refuse("data.window ends before it begins");
  if (document.replaces !== null && document.replaces >= document.version) refuse("replaces is not before version");
  checkCounts("data", data);
  for (const [name, { size, pool, strata }] of entries(data.samples ?? {}))
    if (size > pool || values(strata).some(([population, drawn]) => drawn > population))
      refuse(`data.samples.${name} drew more than there was`);
  if (document.touchstone_thresholds === 2 && !values(detectors).some(({ segments }) => segments))
    refuse("no detector has segments: that is format 1");
  for (const [name, entry] of entries(detectors)) {
    checkDetector(`detectors.${name}`, entry);
    if (entry.segments && document.touchstone_thresholds < 2) refuse(`detectors.${name}.segments is of format 2`);
  }
  for (const [name, entry] of entries(ensembles)) {
    if (hasOwn(detectors, name)) refuse(`ensembles.${name} has the name of a detector`);
    checkEnsemble(`ensembles.${name}`, entry, detectors);
  }
}

function isTime(text) {
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && text >= "0001" && time.toISOString().replace(".000Z", "Z") === text;
}

function checkCounts(where, part) {
  if (part.positives > part.n) refuse(`${where} has more positives than n`);
  for (const name of ["precision", "recall", "fpr", "flag_rate", "brier", "ece"]) {
    const { low = null, high = null } = part[name] ?? {};
    if (low !== null && high !== null && low > high) refuse(`${where}.${name}.low is above its high`);
  }
}

function checkDetector(where, { metrics, sampling, guarantee, probability_map: map, flag_when, segments }) {
  checkCounts(`${where}.metrics`, metrics);
  if (sampling && sampling.rate === 1 && !keys(sampling.only_when).length) refuse(`${where}.sampling is of all traces`);
  checkGuarantee(where, guarantee);
  for (const [name, own] of entries(segments?.thresholds ?? {})) {
    checkCounts(`${where}.segments.thresholds.${name}`, own);
    checkGuarantee(`${where}.segments.thresholds.${name}`, own.guarantee);
  }
  if (map && map.flag_when !== flag_when) refuse(`${where}.probability_map.flag_when is not the detector's`);
  if (map) checkCounts(`${where}.probability_map`, map);
}

function checkGuarantee(where, guarantee) {
  if (guarantee && (guarantee.hallucinated > guarantee.labels || guarantee.bound < guarantee.target))
    refuse(`${where}.guarantee cannot be`);
}

function checkEnsemble(where, { rule, members, cuts, metrics }, detectors) {
  const found = readsOf(rule);
  const names = [...new Set(found.map(([name]) => name))].sort();
  if (!names.length || canonical(members) !== canonical(names))
    refuse(`${where}.members are not what its rule reads, sorted`);
  for (const [name, flagWhen] of found)
    if (!hasOwn(detectors, name) || detectors[name].flag_when !== flagWhen)
      refuse(`${where} reads ${name} as no detector is`);
  checkRule(where, rule);
  if (cuts.page !== null && cuts.signal !== null && cuts.page < cuts.signal)
    refuse(`${where}.cuts.page is below its signal`);
  checkCounts(`${where}.metrics`, metrics);
}

/** [detector, flag_when] of all that a rule reads. */
function readsOf(rule) {
  if (rule.form === "cascade") return [...readsOf(rule.filter), [rule.expensive, rule.standing.flag_when]];
  if (rule.form === "fixed") return entries(rule.thresholds).map(([name, [flagWhen]]) => [name, flagWhen]);
  return entries(rule.inputs ?? rule.standings).map(([name, one]) => [name, one.flag_when]);
}

function checkRule(where, rule) {
  const parts = rule.standings ?? rule.thresholds ?? {};
  if (rule.k > keys(parts).length) refuse(`${where} needs more detectors than it has`);
  if (rule.form === "cascade") checkRule(where, rule.filter);
  if (rule.form === "weighted") {
    if (canonical(keys(rule.weights).sort()) !== canonical(keys(parts).sort()))
      refuse(`${where} has other weights than standings`);
    if (values(rule.weights).every((weight) => weight === 0)) refuse(`${where} has weights that are all 0`);
  }
  for (const { knots, above, normals } of [...values(rule.standings ?? {}), ...(rule.standing ? [rule.standing] : [])]) {
    if (knots.length !== above.length || knots.length !== normals.length)
      refuse(`${where} has lists of several lengths`);
    if (knots.some((knot, place) => place > 0 && knots[place - 1] >= knot))
      refuse(`${where} has knots that do not ascend`);
  }
}

// ------------------------------------------------------------------------------------------------- deciding

/**
 * {flags, tier, verdict, reasons, version, scored, missing, unknown, unscored} of one answer's scores: name -> number
 * or null. onMissing ("review", "accept" or "reject") is the verdict if nothing could be scored; skipped names the
 * detectors that were not to score this answer; segments says of which segments it is: { operation: "qa" }.
 */
export function decide(file, scores, { onMissing = "review", skipped = [], segments = {} } = {}) {
  if (!["accept", "review", "reject"].includes(onMissing)) throw new TypeError("onMissing is accept, review or reject");
  if (!TYPES.object(scores)) throw new TypeError("scores must map detector names to numbers");
  if (!TYPES.object(segments)) throw new TypeError("segments must map what tells them apart to texts");
  const ensembles = byName(file.ensembles ?? {}).filter(([, { cuts }]) => cuts.page !== null || cuts.signal !== null);
  const members = new Set(ensembles.flatMap(([, entry]) => entry.members));
  const scored = new Map();
  const missing = [], fired = [], reasons = [];
  for (const [name, entry] of byName(file.detectors)) {
    if (entry.tier === "off" && !members.has(name)) continue;
    const score = numberOf(name, hasOwn(scores, name) ? scores[name] : null);
    if (score === null) { missing.push(name); continue; }
    scored.set(name, score);
    const { threshold, where } = thresholdFor(entry, segments);
    if (entry.tier === "off" || !flags(score, entry.flag_when, threshold)) continue;
    fired.push([name, entry.tier]);
    reasons.push(`${name} ${short(score)} ${entry.flag_when === "above" ? "≥" : "≤"} ${short(threshold)}${where}`);
  }
  for (const [name, { rule, members, cuts }] of ensembles) {
    if (!members.some((member) => scored.has(member))) continue;
    const score = scoreOf(rule, scored);
    const tier = ["page", "signal"].find((level) => cuts[level] !== null && reaches(score, cuts[level]));
    if (!tier) continue;
    fired.push([name, tier]);
    reasons.push(`${name} ${short(score)} ≥ ${short(cuts[tier])}`);
  }
  const owed = scored.size ? [] : missing.filter((name) => !skipped.includes(name));
  if (owed.length) reasons.push(`nothing was scored: ${owed.join(", ")} gave no number`);
  else if (missing.length && !scored.size) reasons.push("nothing was to be scored");
  return {
    flags: fired.map(([name]) => name),
    tier: ["page", "signal"].find((level) => fired.some(([, tier]) => tier === level)) ?? "off",
    verdict: owed.length ? onMissing.toUpperCase() : ["ACCEPT", "REVIEW", "REJECT"][Math.min(fired.length, 2)],
    reasons,
    version: file.version,
    scored: [...scored.keys()],
    missing,
    unknown: keys(scores).filter((name) => !hasOwn(file.detectors, name)).sort(),
    unscored: owed.length > 0,
  };
}

/** The threshold of the segment that an answer is of; the common one where that has none of its own. */
function thresholdFor({ threshold, segments }, given) {
  const segment = segments && hasOwn(given, segments.by) ? (given[segments.by] ?? null) : null;
  if (segment === null) return { threshold, where: "" };
  if (!["string", "number", "boolean"].includes(typeof segment))
    throw new TypeError(`the segment by ${segments.by} is a ${typeof segment}: give a text or null`);
  if (!hasOwn(segments.thresholds, String(segment))) return { threshold, where: "" };
  const where = ` (${segments.by.replace(/^attributes\./, "")} ${segment})`;
  return { threshold: segments.thresholds[String(segment)].threshold, where };
}

/** P(hallucinated) that the file's map gives to a detector's score; null without a score or a map. */
export function probability(file, detector, score) {
  const map = hasOwn(file.detectors, detector) ? file.detectors[detector].probability_map : undefined;
  const value = numberOf(detector, score);
  if (!map || value === null) return null;
  const away = (value - map.centre) / map.spread;
  const z = Math.max(-1e6, Math.min(1e6, map.flag_when === "above" ? away : -away));
  const [b0, b1, b2] = map.coefficients;
  return 0.5 * (1 + Math.tanh((b0 + b1 * z + (b2 * Math.max(z, 0) ** 2) / 2) / 2));
}

const byName = (object) => entries(object).sort(([one], [other]) => (one < other ? -1 : 1));
const short = (number) => String(Number(number.toPrecision(4)));
const flags = (score, flagWhen, threshold) => (flagWhen === "above" ? score >= threshold : score <= threshold);
const reaches = (score, cut) => score >= cut - SLACK;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const expit = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));

function numberOf(name, value) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "number") throw new TypeError(`the score of ${name} is a ${typeof value}: give a number or null`);
  return Number.isFinite(value) ? value : null;
}

/** The score of a rule; `scored` is a Map of detector -> number. */
function scoreOf(rule, scored) {
  if (rule.form === "vote") {
    const each = entries(rule.standings).map(([name, one]) => suspicion(one, scored.get(name)));
    return each.sort((one, other) => other - one)[rule.k - 1];
  }
  if (rule.form === "fixed")
    return entries(rule.thresholds).filter(([name, [way, at]]) => scored.has(name) && flags(scored.get(name), way, at)).length;
  if (rule.form === "weighted") {
    const each = entries(rule.standings).map(([name, one]) => rule.weights[name] * normal(one, scored.get(name)));
    return sum(each) / sum(values(rule.weights).map(Math.abs));
  }
  if (rule.form === "logistic")
    return expit(rule.intercept + sum(entries(rule.inputs).map(([name, one]) => part(one, scored.get(name)))));
  const first = scoreOf(rule.filter, scored);
  const last = scored.get(rule.expensive);
  const passes = rule.pass_at === null || reaches(first, rule.pass_at);
  return passes && Number.isFinite(last) ? 1 + suspicion(rule.standing, last) : expit(first);
}

const suspicion = (standing, score) => (known(standing, score) ? 1 - between(standing, score, standing.above) : 0);
const normal = (standing, score) => (known(standing, score) ? between(standing, score, standing.normals) : 0);
const known = (standing, score) => Number.isFinite(score) && standing.knots.length > 0;

/** The height at a score: a straight line between two knots, level beyond the ends. */
function between({ flag_when, knots }, score, heights) {
  const x = flag_when === "above" ? score : -score;
  const right = knots.findIndex((knot) => knot > x);
  if (right < 1) return heights[right < 0 ? heights.length - 1 : 0];
  const left = right - 1;
  return heights[left] + ((x - knots[left]) / (knots[right] - knots[left])) * (heights[right] - heights[left]);
}

function part({ flag_when, centre, spread, slope, missing }, score) {
  if (!Number.isFinite(score)) return missing;
  const z = (score - centre) / spread;
  return slope * (flag_when === "above" ? z : -z);
}

import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Place } from "./Place.ts"
import { bounds } from "./SchemaBounds.ts"
import { type Check, type Keyword, type Verdict, type Visit, worse } from "./SchemaVisit.ts"
import * as SchemaWords from "./SchemaWords.ts"

/** Keywords that restrict values and are not checked. All others that are unknown describe values, and restrict none. */
export const unsupported: ReadonlySet<string> = new Set([
  "$dynamicRef",
  "contains",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "if",
  "unevaluatedItems",
  "unevaluatedProperties"
])

const type: Keyword = ({ at, schema, tells, value }, argument, check) => {
  if (argument === undefined) return "fits"
  const types: ReadonlyArray<unknown> = Array.isArray(argument) ? argument : [argument]
  if (!check.spend(types.length, at)) return "unsure"
  return types.some((one) => isOfType(value, one)) ? "fits" : check.fail(SchemaWords.unfit(schema, check), at, tells)
}

const isOfType = (value: unknown, name: unknown): boolean => {
  switch (name) {
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isJsonObject(value)
    case "integer":
      // Handlers with a schema of integers take none that JavaScript would round.
      return Number.isSafeInteger(value)
    default:
      return typeof value === name
  }
}

const allowed: Keyword = ({ at, schema, tells, value }, argument, check) => {
  const values: ReadonlyArray<unknown> = Array.isArray(argument) ? argument : [argument]
  if (!check.spend(values.length, at)) return "unsure"
  if (values.includes(value)) return "fits"
  if (typeof value === "object" && value !== null && values.some((one) => typeof one === "object" && one !== null)) {
    return check.leaveOut("whether it is one of the objects that the schema lists", at)
  }
  return check.fail(SchemaWords.unfit(schema, check), at, tells)
}

const allOf: Keyword = (visit, argument, check) => {
  let verdict: Verdict = "fits"
  for (const part of listOf(argument)) verdict = worse(verdict, check.compare(part, visit))
  return verdict
}

const anyOf: Keyword = (visit, argument, check) => {
  const forms = listOf(argument)
  let verdict: Verdict = "fails"
  for (const form of forms) {
    const found = check.compare(form, { ...visit, tells: false })
    if (found === "fits") return found
    if (found === "unsure") verdict = found
  }
  return verdict === "fails" ? failForms(visit, forms, check) : verdict
}

const oneOf: Keyword = (visit, argument, check) => {
  const forms = listOf(argument)
  const verdicts = forms.map((form) => check.compare(form, { ...visit, tells: false }))
  const fitting = verdicts.filter((verdict) => verdict === "fits").length
  if (fitting > 1) return check.fail("fits several forms, of which it may fit one", visit.at, visit.tells)
  if (verdicts.includes("unsure")) return "unsure"
  return fitting === 1 ? "fits" : failForms(visit, forms, check)
}

/** Tells the mistakes in the form that the value was meant to have, or else the forms that it may have. */
const failForms = (visit: Visit, forms: ReadonlyArray<unknown>, check: Check): Verdict => {
  const { at, schema, tells, value } = visit
  if (!tells) return "fails"
  const [meant, ...others] = forms.filter((form) => couldBe(form, value, check, 0))
  if (meant !== undefined && others.length === 0) return check.compare(meant, visit)
  return check.fail(SchemaWords.unfit(schema, check), at, tells)
}

/** Looks only at the type, and at members such as `_tag` that tell the forms of objects apart. */
const couldBe = (form: unknown, value: unknown, check: Check, depth: number): boolean => {
  if (!isJsonObject(form)) return form === true
  const { $ref, type } = form
  if (typeof $ref === "string" && depth < maxReferences) return couldBe(check.resolve($ref), value, check, depth + 1)
  const types = type === undefined ? [] : listOf(type)
  if (types.length > 0 && !types.some((one) => isOfType(value, one))) return false
  if (!isJsonObject(value)) return true
  return SchemaWords.literalsOf(form).every(
    ([name, values]) => !Object.hasOwn(value, name) || values.includes(value[name])
  )
}

const maxReferences = 4

const not: Keyword = ({ at, tells, value }, argument, check) => {
  const verdict = check.compare(argument, { value, at, tells: false })
  if (verdict === "unsure") return verdict
  return verdict === "fails" ? "fits" : check.fail(SchemaWords.unwanted(argument, check), at, tells)
}

const ofObjects =
  (keyword: (object: JsonObject, visit: Visit, argument: unknown, check: Check) => Verdict): Keyword =>
  (visit, argument, check) =>
    isJsonObject(visit.value) ? keyword(visit.value, visit, argument, check) : "fits"

/** Goes over the members of the value and not over those of the schema, so that the time depends on the value. */
const eachMember = (
  object: JsonObject,
  { at, tells }: Visit,
  check: Check,
  compare: (name: string, value: unknown, place: Place) => Verdict
): Verdict => {
  const names = check.namesOf(object)
  if (!check.spend(names.length, at)) return "unsure"
  let verdict: Verdict = "fits"
  for (const name of names) {
    if (check.isSpent) return worse(verdict, "unsure")
    verdict = worse(verdict, compare(name, object[name], { step: name, around: at }))
    if (verdict === "fails" && (!tells || check.hasMore)) break
  }
  return verdict
}

const properties = ofObjects((object, visit, argument, check) => {
  if (!isJsonObject(argument)) return "fits"
  const { tells } = visit
  return eachMember(object, visit, check, (name, value, at) =>
    Object.hasOwn(argument, name) ? check.compare(argument[name], { value, at, tells }) : "fits"
  )
})

const patternProperties = ofObjects((object, visit, argument, check) => {
  if (!isJsonObject(argument)) return "fits"
  const patterns = Object.entries(argument)
  if (!check.spend(patterns.length, visit.at)) return "unsure"
  return eachMember(object, visit, check, (name, value, at) => {
    let verdict: Verdict = "fits"
    for (const [pattern, schema] of patterns) {
      const matches = search(pattern, name, visit.at, check)
      if (matches === undefined) verdict = worse(verdict, "unsure")
      else if (matches) verdict = worse(verdict, check.compare(schema, { value, at, tells: visit.tells }))
    }
    return verdict
  })
})

const additionalProperties = ofObjects((object, visit, argument, check) => {
  if (argument === true) return "fits"
  const { properties: named, patternProperties: byPattern } = visit.schema
  const patterns = isJsonObject(byPattern) ? Object.keys(byPattern) : []
  if (!check.spend(patterns.length, visit.at)) return "unsure"
  return eachMember(object, visit, check, (name, value, at) => {
    if (isJsonObject(named) && Object.hasOwn(named, name)) return "fits"
    const found = patterns.map((pattern) => search(pattern, name, visit.at, check))
    if (found.includes(true)) return "fits"
    if (found.includes(undefined)) return "unsure"
    return check.compare(argument, { value, at, tells: visit.tells })
  })
})

const propertyNames = ofObjects((object, visit, argument, check) =>
  eachMember(object, visit, check, (name, _, at) => {
    const verdict = check.compare(argument, { value: name, at, tells: false })
    return verdict === "fails" ? check.fail("is no name that the schema allows", at, visit.tells) : verdict
  })
)

const required = ofObjects((object, { at, tells }, argument, check) => {
  const names = listOf(argument)
  if (!check.spend(names.length, at)) return "unsure"
  let verdict: Verdict = "fits"
  for (const name of names) {
    if (typeof name !== "string" || Object.hasOwn(object, name)) continue
    verdict = check.fail("is required", { step: name, around: at }, tells)
  }
  return verdict
})

const ofArrays =
  (keyword: (array: ReadonlyArray<unknown>, visit: Visit, argument: unknown, check: Check) => Verdict): Keyword =>
  (visit, argument, check) =>
    Array.isArray(visit.value) ? keyword(visit.value, visit, argument, check) : "fits"

const eachItem = (
  array: ReadonlyArray<unknown>,
  { at, tells }: Visit,
  check: Check,
  range: { readonly from: number; readonly to: number },
  schemaOf: (index: number) => unknown
): Verdict => {
  let verdict: Verdict = "fits"
  for (let index = range.from; index < range.to; index++) {
    if (check.isSpent) return worse(verdict, "unsure")
    const place = { step: index, around: at }
    verdict = worse(verdict, check.compare(schemaOf(index), { value: array[index], at: place, tells }))
    if (verdict === "fails" && (!tells || check.hasMore)) break
  }
  return verdict
}

const prefixItems = ofArrays((array, visit, argument, check) => {
  const schemas = listOf(argument)
  const to = Math.min(array.length, schemas.length)
  return eachItem(array, visit, check, { from: 0, to }, (index) => schemas[index])
})

const items = ofArrays((array, visit, argument, check) => {
  const from = listOf(visit.schema["prefixItems"]).length
  return eachItem(array, visit, check, { from, to: array.length }, () => argument)
})

const uniqueItems = ofArrays((array, { at, tells }, argument, check) => {
  if (argument !== true) return "fits"
  if (!check.spend(array.length, at)) return "unsure"
  const simple = array.filter((item) => typeof item !== "object" || item === null)
  if (new Set(simple).size < simple.length) return check.fail("must not have an item twice", at, tells)
  return array.length - simple.length < 2 ? "fits" : check.leaveOut("whether objects are in it twice", at)
})

const pattern: Keyword = ({ at, tells, value }, argument, check) => {
  if (typeof value !== "string" || typeof argument !== "string") return "fits"
  const matches = search(argument, value, at, check)
  if (matches === undefined) return "unsure"
  return matches ? "fits" : check.fail(`must match the pattern ${SchemaWords.clipped(argument)}`, at, tells)
}

const search = (source: string, text: string, at: Place | undefined, check: Check): boolean | undefined => {
  if (check.isSpent) return undefined
  if (!check.spend(check.patterns.priceOf(source), at)) return undefined
  const compiled = check.patterns.of(source)
  if (!check.spend(Math.ceil(((compiled?.size ?? 0) * text.length) / sizePerStep), at)) return undefined
  const matches = compiled?.matches(text)
  if (matches === undefined) check.leaveOut(`the pattern ${SchemaWords.clipped(source)}`, at)
  return matches
}

/** A pattern of this size takes at most as long for a character as a step of the check. */
const sizePerStep = 2

const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : typeof value === "string" ? [value] : []

/** The keywords that are checked. */
export const keywords: ReadonlyMap<string, Keyword> = new Map([
  ["type", type],
  ["enum", allowed],
  ["const", (visit, argument, check) => allowed(visit, [argument], check)],
  ["$ref", (visit, argument, check) => check.follow(argument, visit)],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["properties", properties],
  ["patternProperties", patternProperties],
  ["additionalProperties", additionalProperties],
  ["propertyNames", propertyNames],
  ["required", required],
  ["prefixItems", prefixItems],
  ["items", items],
  ["uniqueItems", uniqueItems],
  ["pattern", pattern],
  ...bounds
] satisfies ReadonlyArray<readonly [string, Keyword]>)

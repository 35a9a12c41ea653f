import { Redacted } from "effect"
import type { Field, Fields } from "../../services/Broker.ts"
import { fitsShortString, isWellFormed, textExpected } from "../envelope/Envelope.ts"
import { type Mistake, SettingsError, TopologyError } from "../envelope/Errors.ts"
import * as QueueArguments from "./QueueArguments.ts"

/** Collects invalid parameters, to report all of them in one error. Also collects warnings about ignored parameters. */
export class ValidationIssues {
  readonly mistakes: Array<Mistake> = []
  readonly warnings: Array<Mistake> = []

  addMistake(field: string, problem: string): void {
    this.mistakes.push({ field, problem })
  }

  addWarning(field: string, problem: string): void {
    this.warnings.push({ field, problem })
  }

  checkName(field: string, value: string): string {
    if (value.trim() === "") this.addMistake(field, "must not be blank")
    else if (!fitsShortString(value)) this.addMistake(field, "must have at most 255 bytes")
    else if (!isWellFormed(value)) this.addMistake(field, `must be ${textExpected}`)
    else if (value.startsWith("amq."))
      this.addMistake(field, "must not begin with amq., which is reserved for the broker")
    return value
  }

  checkKey(field: string, value: string, blank: "refused" | "allowed" = "refused"): string {
    const key = value.trim()
    if (key === "" && blank === "refused") this.addMistake(field, "must not be blank")
    if (!fitsShortString(key)) this.addMistake(field, "must have at most 255 bytes")
    else if (!isWellFormed(key)) this.addMistake(field, `must be ${textExpected}`)
    return key
  }

  checkInteger(field: string, value: number | undefined, minimum: number, maximum: number): number | undefined {
    if (value !== undefined && !(Number.isInteger(value) && value >= minimum && value <= maximum)) {
      this.addMistake(field, `must be an integer from ${minimum} to ${maximum}`)
    }
    return value
  }

  checkMillis(field: string, value: number | undefined): number | undefined {
    return this.checkInteger(field, value, 1, QueueArguments.maxMillis)
  }

  throwTopologyError(name: string): void {
    if (this.mistakes.length > 0) throw TopologyError.of(name, this.mistakes)
  }

  throwSettingsError(name: string): void {
    if (this.mistakes.length > 0) throw SettingsError.of(name, this.mistakes)
  }

  checkDifferent(names: ReadonlyArray<readonly [field: string, name: string | undefined]>): void {
    const seen = new Map<string, string>()
    for (const [field, name] of names) {
      if (name === undefined) continue
      const other = seen.get(name)
      if (other === undefined) seen.set(name, field)
      else this.addMistake(field, `must differ from ${other}: both are ${JSON.stringify(name)}`)
    }
  }
}

interface ArgumentSource {
  readonly field: string
  readonly arguments: Fields | undefined
}

export interface QueueFamily {
  readonly family: string
  readonly arguments: Fields
  readonly sources: ReadonlyMap<string, string>
  readonly queueType: QueueArguments.QueueType
  readonly maxPriority: number | undefined
  readonly priorityField: string
}

/** Merges queue arguments from several parameters. Setting an argument twice is an error, even with equal values. */
export const mergeQueueFamily = (
  family: string,
  priorityField: string,
  sources: ReadonlyArray<ArgumentSource>,
  issues: ValidationIssues
): QueueFamily => {
  const sourceOf = new Map<string, string>()
  const merged = new Map<string, Field>()
  const clashes = new Map<string, Array<string>>()
  for (const source of sources) {
    for (const [argument, value] of Object.entries(source.arguments ?? {})) {
      const other = sourceOf.get(argument)
      if (other === undefined) {
        sourceOf.set(argument, source.field)
        merged.set(argument, value)
      } else {
        const pair = `${other} and ${source.field}`
        clashes.set(pair, [...(clashes.get(pair) ?? []), argument])
      }
    }
  }
  for (const [pair, names] of clashes) {
    issues.addMistake(
      `${family} queue arguments`,
      `${names.sort().join(", ")} are set in both ${pair}; keep one of them`
    )
  }

  const isNative = sourceOf.get("x-max-priority") === priorityField
  const maximum = merged.get("x-max-priority")
  if (maximum !== undefined && !isPriority(maximum)) {
    const where = isNative ? "" : ` (${sourceOf.get("x-max-priority")} sets x-max-priority)`
    issues.addMistake(priorityField, `must be an integer from 1 to 255${where}`)
  }
  if (isNative && merged.get("x-queue-type") === "quorum") merged.delete("x-max-priority")

  const declared: Fields = Object.fromEntries(merged)
  for (const { argument, problem, standing } of QueueArguments.examineForAllReleases(declared)) {
    if (argument === "x-max-priority" && !isPriority(maximum)) continue
    if (standing === "refused") issues.addMistake(fieldOfArgument(sourceOf, argument), problem)
    else issues.addWarning(fieldOfArgument(sourceOf, argument), problem)
  }
  const type = QueueArguments.queueTypeOf(declared)
  if (type === "stream" && family !== "status") {
    issues.addMistake(
      fieldOfArgument(sourceOf, "x-queue-type"),
      `must not be stream: a stream keeps messages after they are settled, so a ${family} queue must be classic or quorum`
    )
  }
  return {
    family,
    arguments: declared,
    sources: sourceOf,
    queueType: type === "quorum" || type === "stream" ? type : "classic",
    maxPriority: isPriority(maximum) ? maximum : undefined,
    priorityField
  }
}

export const argumentFromField = (field: string, argument: string, value: Field | undefined): ArgumentSource => ({
  field,
  arguments: value === undefined ? undefined : { [argument]: value }
})

export const fieldOfArgument = (sources: ReadonlyMap<string, string>, argument: string): string => {
  const field = sources.get(argument) ?? ""
  return /_overrides$|_kwargs$/.test(field) ? `${field}.${argument}` : field
}

const isPriority = (value: Field | undefined): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 255

/** The error does not contain the URL, because the URL may contain a password. */
export const rabbitmqUrl = (
  url: string | Redacted.Redacted | undefined,
  issues: ValidationIssues
): Redacted.Redacted | undefined => {
  if (url === undefined) return undefined
  const text = typeof url === "string" ? url : Redacted.value(url)
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  if (parsed === undefined || !/^amqps?:$/.test(parsed.protocol) || parsed.hostname === "") {
    issues.addMistake("rabbitmq_url", "must be an amqp or amqps URL with a host")
  }
  return Redacted.make(text)
}

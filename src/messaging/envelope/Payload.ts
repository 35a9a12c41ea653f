import { Effect, Schema } from "effect"
import { type Mistake, mistakesOf } from "./Errors.ts"

export const decoder = <Payload, R>(schema: Schema.ConstraintDecoder<Payload, R>) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all" })
  return (payload: unknown): Effect.Effect<Payload, ReadonlyArray<Mistake>, R> =>
    Effect.mapError(decode(payload), ({ issue }) => mistakesOf(issue))
}

export const mismatchMessage = (schema: string, mistakes: ReadonlyArray<Mistake>): string => {
  const named = mistakes.slice(0, maxNamed).map(({ field, problem }) => `payload.${field} ${problem}`)
  const more = mistakes.length > maxNamed ? `; and ${mistakes.length - maxNamed} more` : ""
  return `The payload does not match ${schema}: ${named.join("; ")}${more}.`
}

const maxNamed = 10

import { Context, Effect, Layer, Option, Result } from "effect"
import type { HandlerReport } from "../../messaging/control/ControlRecords.ts"
import { ControlStore } from "../../messaging/control/ControlStore.ts"
import * as HandlerSchemas from "../../messaging/control/HandlerSchemas.ts"
import * as BatchEnvelope from "../../messaging/envelope/BatchEnvelope.ts"
import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Mistake } from "../../messaging/envelope/Errors.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { notCompared, type PayloadFit, type ReportedSchema } from "./PayloadFit.ts"
import * as SchemaCheck from "./SchemaCheck.ts"

export interface Given {
  readonly record: Pick<DeadLetterRecord, "raw_body_b64" | "source_queue_name">
  readonly aliases: ContractAliasConfig
  /** The name of the payload in mistakes. */
  readonly root: "payload" | "body.payload"
}

/** Compares payloads of dead letters with the schemas that workers have reported. */
export class PayloadCheck extends Context.Service<
  PayloadCheck,
  { readonly check: (given: Given) => Effect.Effect<PayloadFit> }
>()("svc/status/PayloadCheck") {}

const make = Effect.gen(function* () {
  const store = yield* ControlStore

  const check = Effect.fn("PayloadCheck.check")(function* ({ aliases, record, root }: Given) {
    const { raw_body_b64, source_queue_name: queue } = record
    const read = aliases.read("task", Buffer.from(raw_body_b64, "base64"))
    if (Result.isFailure(read)) return notCompared("The message is no JSON object.")
    // Handlers see numbers as JavaScript has them.
    const message = read.success.ordinary
    if (BatchEnvelope.isBatch(message))
      return notCompared("The message is a batch, whose tasks have payloads of their own.")
    const { payload } = message
    if (!isJsonObject(payload)) return notCompared("The message has no payload.")
    const report = yield* store.handlersOf(queue)
    if (Option.isNone(report)) return notCompared(`No worker of ${queue} has reported its schemas in the last 7 days.`)
    const found = schemaFor(report.value, message)
    if (Result.isFailure(found)) return notCompared(found.failure)
    const text = yield* store.payloadSchema(found.success.name)
    const schema = Option.flatMap(text, parsed)
    if (Option.isNone(schema)) return notCompared(`The schema that a worker of ${queue} has reported cannot be read.`)
    const { hasMore, mistakes, notChecked } = SchemaCheck.compare(schema.value, payload, root)
    const fit: PayloadFit = {
      schema: found.success.schema,
      not_compared: null,
      fields: mistakes.map(toField),
      more_fields: hasMore,
      not_checked: notChecked
    }
    return fit
  })

  return PayloadCheck.of({
    check: (given) =>
      Effect.catch(check(given), (error) =>
        Effect.as(
          Effect.logWarning("A payload was not compared with the schema of its handler", error.message),
          notCompared("Redis does not respond, so the schemas of workers cannot be read.")
        )
      )
  })
})

export const layer: Layer.Layer<PayloadCheck, never, ControlStore> = Layer.effect(PayloadCheck, make)

const toField = ({ field, problem }: Mistake): PayloadFit["fields"][number] => ({ field, message: problem })

/** Schemas come from whatever writes to the same Redis. */
const parsed = (text: string): Option.Option<unknown> =>
  Buffer.byteLength(text) > HandlerSchemas.maxSchemaBytes
    ? Option.none()
    : Result.getSuccess(Result.try((): unknown => JSON.parse(text)))

/** Returns the name of the schema for the type of the message, or why there is none. */
const schemaFor = (
  { handlers, left_out, reported_at, typed_by, version }: HandlerReport,
  message: JsonObject
): Result.Result<{ readonly name: string; readonly schema: ReportedSchema }, string> => {
  const given = message[typed_by]
  const type = typeof given === "string" ? given : null
  const found = handlers.find((one) => one.type === type) ?? handlers.find((one) => one.type === null)
  const handler = `the handler of ${type ?? `messages without ${typed_by}`} in version ${version} of the worker`
  if (found === undefined) {
    return Result.fail(
      left_out > 0
        ? `The schema of ${handler} is not known, because a worker reports ${HandlerSchemas.maxTypes} at most.`
        : `There is no handler of ${type ?? `messages without ${typed_by}`} in version ${version} of the worker, so it refuses the message.`
    )
  }
  const { known, schema: name } = found
  if (known !== "reported" || name === null) return Result.fail(unknownWords(known, handler))
  const types = { task_type: null, action: null, [typed_by]: found.type }
  return Result.succeed({ name, schema: { ...types, worker_version: version, reported_at } })
}

const unknownWords = (known: HandlerReport["handlers"][number]["known"], handler: string): string => {
  switch (known) {
    case "not_representable":
      return `The schema of ${handler} cannot be written as JSON Schema.`
    case "too_large":
      return `The schema of ${handler} has more than ${HandlerSchemas.maxSchemaBytes / 1_024} KiB as JSON Schema.`
    default:
      return `There is no schema of ${handler}.`
  }
}

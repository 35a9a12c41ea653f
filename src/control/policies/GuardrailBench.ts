import { Context, Effect, Layer, Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as Runner from "../../guardrails/Guardrails.ts"
import * as PiiRedact from "../../guardrails/PiiRedact.ts"
import * as Selection from "../../guardrails/Selection.ts"
import * as StreamTest from "../../guardrails/StreamTest.ts"
import type { Config } from "../../policy/Guardrail.ts"
import type { Database } from "../../services/Database.ts"
import { RowReader } from "../../state/StoredRows.ts"
import type { Vault } from "../../state/Vault.ts"
import type { GuardrailTrial, GuardrailTrialResult } from "../api/policies/GuardrailBench.ts"
import { ControlError, type Refused, RequestId } from "../api/schema/Errors.ts"
import { Operator } from "../api/schema/Security.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { oneTestAtATime } from "./OneTestAtATime.ts"

type Refusal = Refused<"invalid_guardrail_request" | "guardrail_test_busy">

/** Lets operators try a guardrail out on a request and its response, whoever may use it. */
export class GuardrailBench extends Context.Service<
  GuardrailBench,
  {
    readonly test: (
      name: string,
      trial: GuardrailTrial
    ) => Effect.Effect<GuardrailTrialResult, Refusal | StoreFailure, Operator | RequestId>
  }
>()("svc/control/GuardrailBench") {
  static readonly layer = Layer.suspend(() => Layer.effect(GuardrailBench, make))
}

const make = Effect.gen(function* () {
  const runner = yield* Runner.Guardrails
  const context = yield* Effect.context<Database | Vault>()
  const runOneTest = oneTestAtATime()

  const stepOf = Effect.fnUntraced(function* (name: string, config: Config | undefined) {
    const catalogue = yield* Effect.provideContext(Definitions.load(new RowReader()), context)
    const definition = catalogue.get(name)
    if (definition === undefined) return yield* invalid("name", "is not the name of a guardrail")
    if (definition.unreadable === true)
      return yield* invalid("name", "is a guardrail that only newer versions can read")
    const mistake =
      config === undefined || definition.provider._tag === "Http" ? undefined : PiiRedact.mistakeIn(config)
    if (mistake !== undefined) return yield* invalid(`runtime_config.${mistake.field}`, mistake.reason)
    return { definition, config: config ?? definition.runtimeConfig }
  }, toStoreFailures)

  const tryOut = Effect.fnUntraced(function* (step: Selection.SelectedGuardrail, trial: GuardrailTrial) {
    const requestId = yield* RequestId
    const placeholders = new Map<string, string>()
    const tryBody = Effect.fnUntraced(function* (mode: "pre_call" | "post_call", body: Schema.Json) {
      const text = JSON.stringify(body)
      const run = yield* runner.run([step], { requestId, mode, context: nobody, route: "chat", text, placeholders })
      return {
        body: run.stopped === undefined ? yield* parseJson(run.text) : null,
        stopped: run.stopped ?? null,
        results: run.executions
      }
    })
    const request = trial.request === undefined ? null : yield* tryBody("pre_call", trial.request)
    const response = trial.response === undefined ? null : yield* tryBody("post_call", trial.response)
    const stream =
      trial.chunks === undefined
        ? null
        : yield* StreamTest.run(runner, [step], trial.chunks, { requestId, context: nobody, known: placeholders }).pipe(
            Effect.map(({ executions, sent, stopped = null }) => ({ sent, stopped, results: executions }))
          )
    return { request, response, stream, placeholders: Object.fromEntries(placeholders) }
  })

  return GuardrailBench.of({
    test: Effect.fn("GuardrailBench.test")(function* (name, trial) {
      const step = yield* stepOf(name, trial.runtime_config)
      const refused = refusedPart(step, trial)
      if (refused !== undefined) return yield* refused
      const { tokenId } = yield* Operator
      return yield* runOneTest(tokenId ?? "command")(tryOut(step, trial))
    })
  })
})

const refusedPart = (
  step: Selection.SelectedGuardrail,
  { chunks, request, response }: GuardrailTrial
): Refused<"invalid_guardrail_request"> | undefined => {
  const { modes } = step.definition
  if (request === undefined && response === undefined && chunks === undefined) {
    return invalid("request", "is missing: send a request, a response or chunks")
  }
  if (request !== undefined && !modes.includes("pre_call"))
    return invalid("request", "is not checked by this guardrail")
  if (response !== undefined && !modes.includes("post_call")) {
    return invalid("response", "is not checked by this guardrail")
  }
  return chunks !== undefined && Selection.ofResponses([step]).length === 0
    ? invalid("chunks", "are not checked by this guardrail")
    : undefined
}

const invalid = (param: string, refusal: string) =>
  new ControlError("invalid_guardrail_request", `${param} ${refusal}.`, { param })

/** What an HTTP guardrail is told of the request. */
const nobody = {
  key_id: "00000000-0000-0000-0000-000000000000",
  team_id: null,
  user_id: null,
  project_id: null,
  model: null,
  route: "/admin-ui/admin/guardrails/test",
  provider: "none"
}

/** The text is JSON, because the gateway encodes the results of guardrails as JSON. */
const parseJson = (text: string) => Effect.orDie(Schema.decodeEffect(Schema.fromJsonString(Schema.Json))(text))

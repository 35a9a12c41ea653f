import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as Runner from "../../guardrails/Guardrails.ts"
import * as Selection from "../../guardrails/Selection.ts"
import * as StreamTest from "../../guardrails/StreamTest.ts"
import type { Mode } from "../../policy/Guardrail.ts"
import type { Database } from "../../services/Database.ts"
import { RowReader } from "../../state/StoredRows.ts"
import type { Vault } from "../../state/Vault.ts"
import type { GuardrailTest, GuardrailTestResult, OfferedGuardrail } from "../api/policies/KeyGuardrailsApi.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import { oneTestAtATime } from "../policies/OneTestAtATime.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"

type Refusal = ControlError<
  | "invalid_guardrail_request"
  | "guardrail_blocked"
  | "guardrail_forbidden"
  | "guardrail_test_busy"
  | "guardrail_unavailable"
>

/** Offers and tests the guardrails that the policy of the calling key selects. Policy layers are ignored. */
export class KeyGuardrails extends Context.Service<
  KeyGuardrails,
  {
    readonly offered: Effect.Effect<ReadonlyArray<OfferedGuardrail>, StoreFailure, KeyHolder>
    /** Runs guardrails on a text. The test calls no upstream, counts against no limit and writes no usage record. */
    readonly test: (
      test: GuardrailTest
    ) => Effect.Effect<GuardrailTestResult, Refusal | StoreFailure, KeyHolder | RequestId>
  }
>()("svc/control/KeyGuardrails") {
  static readonly layer = Layer.suspend(() => Layer.effect(KeyGuardrails, make))
}

const make = Effect.gen(function* () {
  const runner = yield* Runner.Guardrails
  const context = yield* Effect.context<Database | Vault>()
  const runOneTest = oneTestAtATime()
  const catalogue = toStoreFailures(
    Effect.suspend(() => Effect.provideContext(Definitions.load(new RowReader()), context))
  )

  return KeyGuardrails.of({
    offered: Effect.gen(function* () {
      const { guardrails } = yield* KeyHolder
      const named = new Set([...guardrails.mandatory_guardrails, ...guardrails.optional_guardrails])
      const forbidden = new Set(guardrails.forbidden_guardrails)
      return [...(yield* catalogue).values()]
        .filter(({ defaultOn, enabled, name }) => enabled && !forbidden.has(name) && (defaultOn || named.has(name)))
        .map(({ configSchema, defaultOn, description, failurePolicy, modes, name }) => ({
          name,
          description,
          modes,
          default_on: defaultOn,
          always_on: defaultOn || guardrails.mandatory_guardrails.includes(name),
          failure_policy: failurePolicy,
          config_schema: configSchema
        }))
    }).pipe(Effect.withSpan("KeyGuardrails.offered")),

    test: Effect.fn("KeyGuardrails.test")(function* ({ chunks, guardrails: requested = [], input, mode }) {
      if (mode === "during_call" ? chunks === undefined : input === undefined) return yield* missingText(mode)
      const { guardrails, keyId, projectId, teamId } = yield* KeyHolder
      const selected = Selection.select(yield* catalogue, guardrails, requested)
      if (Result.isFailure(selected)) {
        const { code, message, param } = selected.failure
        return yield* new ControlError(code, message, param === undefined ? {} : { param })
      }
      const isStream = mode === "during_call"
      const steps = isStream ? Selection.ofResponses(selected.success) : Selection.inMode(selected.success, mode)
      const names = steps.map(({ definition }) => definition.name)
      if (requested.some((name) => !names.includes(name))) return yield* wrongMode
      const requestId = yield* RequestId
      const requestContext = {
        key_id: keyId,
        team_id: Option.getOrNull(teamId),
        user_id: null,
        project_id: Option.getOrNull(projectId),
        model: null,
        route: testRoute,
        provider: "none"
      }
      if (isStream) {
        const { executions, ...run } = yield* runOneTest(keyId)(
          StreamTest.run(runner, steps, chunks ?? [], { requestId, context: requestContext })
        )
        return { ...run, applied_guardrails: names, results: executions }
      }
      const run = yield* runOneTest(keyId)(
        runner.run(steps, {
          requestId,
          mode,
          context: requestContext,
          route: "chat",
          text: JSON.stringify(input),
          placeholders: new Map()
        })
      )
      if (run.stopped !== undefined) return yield* new ControlError(run.stopped.code, run.stopped.message)
      return { input: yield* parseJson(run.text), applied_guardrails: names, results: run.executions }
    })
  })
})

/** During a test, HTTP guardrails receive this path as the route of the request. */
const testRoute = "/admin-ui/v1/guardrails/test"

/** The text is JSON, because the gateway encodes the results of guardrails as JSON. */
const parseJson = (text: string) => Effect.orDie(Schema.decodeEffect(Schema.fromJsonString(Schema.Json))(text))

const missingText = (mode: Mode) => {
  const param = mode === "during_call" ? "chunks" : "input"
  return new ControlError("invalid_guardrail_request", `The mode ${mode} needs ${param}.`, { param })
}

const wrongMode = new ControlError(
  "invalid_guardrail_request",
  "The list guardrails names a guardrail that does not run in this mode. Choose another mode or guardrail.",
  { param: "guardrails" }
)

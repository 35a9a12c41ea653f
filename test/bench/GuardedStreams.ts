import { Effect, Schema } from "effect"
import { BenchFailed } from "./Child.ts"
import { everythingOn } from "./Entrants.ts"
import { type Figures, type Metric, metrics } from "./Figures.ts"
import * as Gateway from "./Gateway.ts"
import { cell, line, number, row } from "./Markdown.ts"
import type { Plan } from "./Plan.ts"
import * as Rounds from "./Rounds.ts"
import { median, paired } from "./Statistics.ts"

/**
 * Event streams of two keys of one process: one key has `pii-redact` in both directions, the other has none. Two
 * processes would differ by more than the guardrail takes.
 */
export interface GuardedStreams {
  readonly measured: ReadonlyMap<Name, Figures>
  /** The most characters that a text of the last stream held. */
  readonly held: number
  readonly redactions: number
}

type Name = "plain" | "guarded"

const guardrailPolicy = {
  mandatory_guardrails: ["pii-redact"],
  guardrail_config_overrides: { "pii-redact": { restore_output: true } }
}
/** A stream takes 20 times a request's time, so that a run of all measures would end with few samples. */
const roundsPerPlanned = 4

export const run = Effect.fnUntraced(function* (
  upstream: string,
  plan: Plan,
  nodeFlags: ReadonlyArray<string>,
  say: (line: string) => void
) {
  const gateway = yield* Gateway.make("gateway", upstream, nodeFlags)
  yield* gateway.setPrices
  const asked = (name: Name, key: string) => ({
    name,
    child: gateway.child,
    target: { origin: gateway.origin, headers: { authorization: `Bearer ${key}` } }
  })
  const entrants = [
    asked("plain", yield* gateway.key(everythingOn)),
    asked("guarded", yield* gateway.key(everythingOn, guardrailPolicy))
  ]
  const { each, measured } = Rounds.interleaved(entrants, plan, say)
  yield* each("warming up", 0, Rounds.warm)
  const rounds = plan.rounds * roundsPerPlanned
  for (let round = 0; round < rounds; round++) {
    const of = `round ${round + 1} of ${rounds}`
    yield* each(`${of}, short streams`, round, Rounds.brief)
    yield* each(`${of}, unpaced streams`, round, Rounds.burst)
    yield* each(`${of}, gaps of paced streams`, round, Rounds.gaps)
  }
  for (let round = 0; round < plan.crowds; round++) {
    yield* each(`${plan.crowdSize} streams, ${round + 1} of ${plan.crowds}`, round, Rounds.crowd)
  }
  const { email_count: emails, held_characters: held, phone_count: phones } = yield* lastExecution(gateway)
  const result: GuardedStreams = { measured, held, redactions: emails + phones }
  return result
})

const decodeExecutions = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      executions: Schema.NonEmptyArray(
        Schema.Struct({
          metadata: Schema.Struct({
            held_characters: Schema.Number,
            email_count: Schema.Number,
            phone_count: Schema.Number
          })
        })
      )
    })
  )
)

/** What the gateway recorded of a whole stream. */
const lastExecution = (gateway: Gateway.Gateway) =>
  gateway.read("/admin/guardrails/executions?mode=during_call&limit=1").pipe(
    Effect.flatMap((text) => decodeExecutions(text)),
    Effect.map(({ executions: [{ metadata }] }) => metadata),
    Effect.catchTag("SchemaError", ({ message }) => Effect.fail(new BenchFailed({ message })))
  )

const shown: ReadonlyArray<Metric> = [
  ...(["firstByteP50", "firstByteP99", "chunk", "chunkCpu", "gapP50", "gapP99"] as const),
  ...(["crowdWhole", "crowdAtOnce", "crowdFirstByteP99", "crowdGapP99", "crowdCpu", "failed"] as const)
]

export const report = ({ held, measured, redactions }: GuardedStreams, plan: Plan, machine: string): string => {
  const of = (name: Name, metric: Metric) => measured.get(name)?.of(metric) ?? []
  const added = (metric: Metric) =>
    paired(of("guarded", metric), of("plain", metric), (guarded, plain) => guarded - plain)
  const least = Math.min(...of("guarded", "crowdWhole"))
  return [
    machine,
    "",
    row(["", "without", "with pii-redact", "added"]),
    row(["---", "---:", "---:", "---:"]),
    ...shown.map((metric) => {
      const { digits, title } = metrics[metric]
      return row([
        title,
        ...[of("plain", metric), of("guarded", metric), added(metric)].map((all) => cell(all, digits))
      ])
    }),
    "",
    `Medians of ${plan.rounds * roundsPerPlanned} interleaved rounds, in brackets the least and the most. A text held up to ${held} characters; the last stream had ${redactions} findings.`,
    "",
    line(
      median(added("chunkCpu")) <= 60,
      `${number(median(added("chunkCpu")), 1)} µs more processor time per chunk; to reach: at most 60`
    ),
    line(
      median(added("gapP99")) < 1,
      `gaps between chunks grow by ${number(median(added("gapP99")), 2)} ms at p99; to reach: under 1`
    ),
    line(
      least === plan.crowdSize,
      `of ${plan.crowdSize} guarded streams at once, ${least} were whole in the worst of ${plan.crowds} tries`
    )
  ].join("\n")
}

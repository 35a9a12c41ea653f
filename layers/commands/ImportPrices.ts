import { Console, Effect, type Option } from "effect"
import type { BookPrice, PriceBook } from "../../src/control/api/providers/ModelPricesApi.ts"
import { ControlError } from "../../src/control/api/schema/Errors.ts"
import { Audit } from "../../src/control/audit/Audit.ts"
import { ModelPrices } from "../../src/control/providers/ModelPrices.ts"
import type { Settings } from "../Environment.ts"
import * as DatabaseCommands from "./DatabaseCommands.ts"

const withPrices = <A, E, R>(settings: Settings, command: string, work: Effect.Effect<A, E, R>) =>
  DatabaseCommands.withDatabase(
    settings,
    work.pipe(
      Effect.provide(ModelPrices.layer),
      Effect.provide([Audit.layer, DatabaseCommands.commandOperator(`prices ${command}`)]),
      Effect.mapError((error) =>
        error instanceof ControlError ? new DatabaseCommands.CommandFailed({ message: error.message }) : error
      )
    )
  )

export const plan = Effect.fnUntraced(function* (settings: Settings) {
  const compared = yield* withPrices(
    settings,
    "plan",
    Effect.flatMap(ModelPrices, (prices) => prices.book)
  )
  yield* Console.log(describe(compared))
})

export const importBook = Effect.fnUntraced(function* (
  settings: Settings,
  models: ReadonlyArray<string>,
  base: Option.Option<string>
) {
  const { base_hash, imported } = yield* withPrices(
    settings,
    "import",
    Effect.gen(function* () {
      const prices = yield* ModelPrices
      const against = base._tag === "Some" ? base.value : (yield* prices.book).base_hash
      return yield* prices.importBook({ base_hash: against, ...(models.length > 0 && { models }) })
    })
  )
  yield* Console.log(
    [
      ...imported.map(
        ({ input_usd_per_million, model, output_usd_per_million }) =>
          `${model}: $${input_usd_per_million} in, $${output_usd_per_million} out`
      ),
      `${count(imported.length)} imported; base ${base_hash}`
    ].join("\n")
  )
})

const describe = ({ base_hash, not_in_book, prices, vendors }: PriceBook): string => {
  const differing = prices.filter(({ status }) => status !== "same")
  return [
    ...vendors.map(({ as_of, source, vendor }) => `${vendor}: read on ${as_of} at ${source}`),
    ...differing.map(describePrice),
    ...not_in_book.map(({ model }) => `kept ${model}: not in the book`),
    `${count(differing.length)} to import; base ${base_hash}`
  ].join("\n")
}

const describePrice = ({ changes, covered_by, model, note, status }: BookPrice): string =>
  [
    `${status} ${model}${covered_by === null ? "" : ` (priced as ${covered_by} now; name it to import it)`}${status === "changed" ? " (name it to import it)" : ""}${note === null ? "" : `: ${note}`}`,
    ...changes.map(({ field, from, to }) => `  ${field}: ${from} -> ${to}`)
  ].join("\n")

const count = (prices: number): string => (prices === 1 ? "1 price" : `${prices} prices`)

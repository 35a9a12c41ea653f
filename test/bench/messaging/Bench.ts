import { Console, Effect } from "effect"
import { BenchFailed } from "../Child.ts"
import * as Machine from "../Machine.ts"
import { place } from "../Store.ts"
import * as Contenders from "./Contenders.ts"
import type { Plan } from "./Plan.ts"
import * as Report from "./Report.ts"
import * as Rounds from "./Rounds.ts"
import * as Soak from "./Soak.ts"

type Say = (line: string) => void

const onBroker = <A, R>(use: Effect.Effect<A, BenchFailed, R>) =>
  // what the ground removes, it removes by the broker
  Effect.scoped(use).pipe(
    Effect.provide(Contenders.broker),
    Effect.catchTag("BrokerError", () =>
      Effect.fail(new BenchFailed({ message: `RabbitMQ is missing: ${place("RABBITMQ_URL", "127.0.0.1:5672")}.` }))
    )
  )

const machineOf = ({ version }: Contenders.Ground) =>
  Effect.map(Machine.describe, (machine) => machine.replace("; commit", `, RabbitMQ ${version}; commit`))

/** This library, bare amqplib and other task queues, in one run. */
export const compare = (
  names: ReadonlyArray<Contenders.Name>,
  plan: Plan,
  nodeFlags: ReadonlyArray<string>,
  say: Say
) =>
  onBroker(
    Effect.gen(function* () {
      const absent: Array<string> = []
      const contenders: Array<Contenders.Contender> = []
      const ground = yield* Contenders.ground
      for (const name of names) {
        const why = yield* Contenders.absence(name)
        if (why === undefined) contenders.push(yield* Contenders.make(name, ground, nodeFlags))
        else absent.push(why)
      }
      for (const why of absent) say(why)
      const measured = yield* Rounds.run(contenders, plan, say)
      yield* Console.log(Report.report(measured, absent, plan, yield* machineOf(ground)))
    })
  )

export const soak = (minutes: number, nodeFlags: ReadonlyArray<string>) =>
  onBroker(
    Effect.gen(function* () {
      const ground = yield* Contenders.ground
      const own = yield* Contenders.make("own", ground, nodeFlags)
      const soaked = yield* Soak.run(own, ground.contenderPrefix("own"), minutes)
      yield* Console.log(Report.soakReport(soaked, yield* machineOf(ground)))
    })
  )

import { Context, Duration, Effect, Layer, Queue, Schedule } from "effect"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import type { Broker } from "../../services/Broker.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import type { RedisError } from "../../services/Redis.ts"
import { DeadLetterStore } from "./DeadLetterStore.ts"
import * as QueuedLetters from "./QueuedLetters.ts"
import { gatheringMs } from "./RepairScripts.ts"

export interface Options {
  /** The time between two looks at the archive. Default: 1 minute. */
  readonly every?: Duration.Input
  /** How long a process may take for the messages of one queue, until another one tries. Default: 5 minutes. */
  readonly takesAtMost?: Duration.Input
}

/** Removes the messages of archived records from their queues, and deletes the records after 30 days. */
export class ArchiveSweeper extends Context.Service<
  ArchiveSweeper,
  {
    /** Looks at the archive soon. Never waits. */
    readonly wake: () => void
  }
>()("svc/status/ArchiveSweeper") {}

const sweepsAtOnce = 100

/** Any number of processes may do so at once. What a crash interrupts, the next look of any process does. */
export const layer = ({
  every = "1 minute",
  takesAtMost = "5 minutes"
}: Options = {}): Layer.Layer<ArchiveSweeper, never, DeadLetterStore | Broker> =>
  Layer.effect(
    ArchiveSweeper,
    Effect.gen(function* () {
      const letters = yield* QueuedLetters.make
      const aliases = (yield* ContractAliases) ?? new ContractAliasConfig()
      const logFailure = yield* LogThrottle.makePerMinute
      const wakes = yield* Queue.sliding<void>(1)
      const round = Effect.andThen(sweep, removeCopies(letters, aliases, Duration.toMillis(takesAtMost))).pipe(
        Effect.catch((error) =>
          logFailure((suppressed) =>
            Effect.logWarning(
              `The archive of dead letters could not be swept. It is tried again${suppressed}`,
              error.message
            )
          )
        ),
        Effect.catchDefect((defect) => Effect.logError("The archive of dead letters could not be swept", defect))
      )
      const woken = Effect.andThen(Queue.take(wakes), Effect.sleep(gatheringMs + 100))
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(round, Effect.timeoutOption(woken, every))))
      return ArchiveSweeper.of({ wake: () => void Queue.offerUnsafe(wakes, undefined) })
    })
  )

const sweep = Effect.flatMap(DeadLetterStore, ({ sweepArchive }) =>
  Effect.repeat(sweepArchive, {
    while: (more) => more,
    schedule: Schedule.upTo(Schedule.spaced("10 millis"), { times: sweepsAtOnce })
  })
)

const removeCopies = (
  letters: QueuedLetters.QueuedLetters,
  aliases: ContractAliasConfig,
  takesAtMostMs: number
): Effect.Effect<void, RedisError | QueuedLetters.QueueWalkFailed, DeadLetterStore | Broker> =>
  Effect.gen(function* () {
    const { archivedCopies } = yield* DeadLetterStore
    while (true) {
      const queue = yield* archivedCopies.take(takesAtMostMs)
      if (queue === undefined) return
      yield* letters.removeArchived(queue, aliases, takesAtMostMs)
    }
  })

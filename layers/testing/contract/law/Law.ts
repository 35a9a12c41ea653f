import { Cause, Data, Effect, type Scope } from "effect"

/** A variant breaks a law. `message` says what the law expects and what it found. */
export class LawBroken extends Data.TaggedError("LawBroken")<{
  readonly law: string
  readonly message: string
  /** The failed assertion, or the failure of the variant. */
  readonly cause: unknown
}> {}

/** One promise that every variant of a door keeps. */
export interface Law<R> {
  readonly name: string
  /** Fails if the variant does not keep the promise. It removes all that it has made. */
  readonly check: Effect.Effect<void, LawBroken, R>
}

/** All laws of a door. */
export interface Suite<R> {
  /** The name of the door. */
  readonly door: string
  readonly laws: ReadonlyArray<Law<R>>
}

/** The deadline of a law. A variant that loses a message would otherwise keep its law waiting. */
export const lawDeadlineSeconds = 90

/** Makes a law of an effect that asserts. The scope of the effect ends with the law. */
export const law = <E, R>(name: string, effect: Effect.Effect<unknown, E, R>): Law<Exclude<R, Scope.Scope>> => ({
  name,
  check: effect.pipe(
    Effect.scoped,
    Effect.asVoid,
    Effect.timeoutOrElse({
      duration: `${lawDeadlineSeconds} seconds`,
      orElse: () => Effect.die(new Error(`The law did not end within ${lawDeadlineSeconds} seconds`))
    }),
    Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(broken(name, cause))))
  )
})

const broken = (law: string, failure: Cause.Cause<unknown>): LawBroken => {
  const cause = Cause.squash(failure)
  return new LawBroken({ law, cause, message: cause instanceof Error ? cause.message : Cause.pretty(failure) })
}

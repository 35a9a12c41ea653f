import { randomBytes } from "node:crypto"
import { Clock, Context, Duration, Effect, Layer, Option, Redacted, Ref } from "effect"
import { digestHex } from "../../state/Secret.ts"

/** A person opens the link from the terminal in which the program has just started. */
export const lifetime = Duration.minutes(1)

/** What became of a code that a browser presents. */
export type Taken = "taken" | "used" | "expired" | "unknown"

interface Link {
  readonly digest: string
  readonly expiresAt: number
  readonly isUsed: boolean
}

/**
 * The link with which whoever started the program signs in. Its code is in the memory of this process alone: it works
 * once, within a minute, and only until the process ends.
 */
export class StartLink extends Context.Service<
  StartLink,
  {
    /** Makes a new code, in place of an earlier one. */
    readonly begin: Effect.Effect<Redacted.Redacted>
    /** Uses the code up. Of two requests at once, one takes it. */
    readonly take: (code: string) => Effect.Effect<Taken>
    /** Undoes `take`, because nobody could be signed in. */
    readonly giveBack: Effect.Effect<void>
  }
>()("svc/control/StartLink") {
  static readonly layer = Layer.suspend(() => Layer.effect(StartLink, make))
}

export const isCode = (text: string): boolean => /^[\w-]{43}$/.test(text)

const make = Effect.gen(function* () {
  const link = yield* Ref.make(Option.none<Link>())
  return StartLink.of({
    begin: Effect.gen(function* () {
      const code = randomBytes(32).toString("base64url")
      const expiresAt = (yield* Clock.currentTimeMillis) + Duration.toMillis(lifetime)
      yield* Ref.set(link, Option.some({ digest: digestHex(code), expiresAt, isUsed: false }))
      return Redacted.make(code)
    }),
    take: Effect.fnUntraced(function* (code) {
      const now = yield* Clock.currentTimeMillis
      return yield* Ref.modify(link, (known): readonly [Taken, Option.Option<Link>] => {
        if (Option.isNone(known) || known.value.digest !== digestHex(code)) return ["unknown", known]
        if (known.value.isUsed) return ["used", known]
        if (known.value.expiresAt <= now) return ["expired", known]
        return ["taken", Option.some({ ...known.value, isUsed: true })]
      })
    }),
    giveBack: Ref.update(
      link,
      Option.map((known) => ({ ...known, isUsed: false }))
    )
  })
})

import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Data, Effect, FileSystem, Layer } from "effect"

export class MailNotSent extends Data.TaggedError("MailNotSent")<{ readonly message: string }> {}

/** Delivers mail. */
export class Mailer extends Context.Service<
  Mailer,
  {
    /** A mail with a key that was sent before is not sent again. */
    readonly send: (key: string, to: string, text: string) => Effect.Effect<void, MailNotSent>
  }
>()("my-app/Mailer") {}

/** Writes each mail into the folder `outbox`. Replace this layer with one that calls your provider. */
export const outbox = Layer.effect(
  Mailer,
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    return {
      send: (key, to, text) =>
        files.makeDirectory("outbox", { recursive: true }).pipe(
          Effect.andThen(files.writeFileString(`outbox/${encodeURIComponent(key)}.txt`, `To: ${to}\n\n${text}\n`)),
          Effect.mapError(({ message }) => new MailNotSent({ message }))
        )
    }
  })
).pipe(Layer.provide(NodeFileSystem.layer))

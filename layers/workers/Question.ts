import { Deferred, Effect } from "effect"

/** A question to another process. Callers that ask before the response share it, so a silent process is asked once. */
export class Question<A> {
  readonly #send: () => void
  #response: Deferred.Deferred<A> | undefined

  constructor(send: () => void) {
    this.#send = send
  }

  /** Waits for the response. */
  readonly ask: Effect.Effect<A> = Effect.suspend(() => {
    if (this.#response !== undefined) return Deferred.await(this.#response)
    const response = Deferred.makeUnsafe<A>()
    this.#response = response
    this.#send()
    return Deferred.await(response)
  })

  respond(answer: A): void {
    if (this.#response !== undefined) Deferred.doneUnsafe(this.#response, Effect.succeed(answer))
    this.#response = undefined
  }
}

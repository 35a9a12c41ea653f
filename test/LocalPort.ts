import { randomInt } from "node:crypto"
import { connect, createServer } from "node:net"
import { Effect } from "effect"

/** Fails while nobody listens there. */
export const answers = (port: number) =>
  Effect.callback<void, Error>((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resume(Effect.void)
    })
    socket.on("error", (error) => resume(Effect.fail(error)))
  })

/**
 * One that was free a moment ago, and is given out by no system: those are from 32,768 on. A server that is killed and
 * started again on its port would else find it taken meanwhile, or its client somebody else's server there.
 */
export const free = Effect.callback<number, Error>((resume) => {
  const port = randomInt(10_000, 32_000)
  const probe = createServer()
  probe.on("error", (error) => resume(Effect.fail(error)))
  probe.listen(port, "127.0.0.1", () => {
    probe.close(() => resume(Effect.succeed(port)))
  })
}).pipe(Effect.retry({ times: 20 }), Effect.orDie)

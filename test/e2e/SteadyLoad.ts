import { Agent, request } from "node:http"
import { Effect, type Scope } from "effect"
import { hello } from "./Calls.ts"

export interface SteadyLoad {
  readonly answered: () => number
  /** Ends the load, and waits for the requests under way: why some failed. */
  readonly stop: Effect.Effect<ReadonlyArray<string>>
}

const everyMs = 5

/** Sends 200 requests a second until it is stopped: half of them on new connections, half on connections that it keeps. */
export const start = (origin: string, key: string): Effect.Effect<SteadyLoad, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const agent = new Agent({ keepAlive: true })
      const failures: Array<string> = []
      const open = new Set<Promise<void>>()
      let sent = 0
      let answered = 0
      const send = () => {
        const exchange = ask(origin, key, sent++ % 2 === 0 ? agent : new Agent()).then(
          (status) => {
            answered++
            if (status !== 200) failures.push(`status ${status}`)
          },
          (error: Error) => void failures.push(error.message)
        )
        open.add(exchange)
        void exchange.finally(() => open.delete(exchange))
      }
      const timer = setInterval(send, everyMs)
      const stop = Effect.promise(async () => {
        clearInterval(timer)
        await Promise.all(open)
        agent.destroy()
        return failures
      })
      return { answered: () => answered, stop }
    }),
    ({ stop }) => stop
  )

const ask = (origin: string, key: string, agent: Agent): Promise<number> =>
  new Promise((settle, fail) => {
    const sent = request(`${origin}/v1/chat/completions`, {
      method: "POST",
      agent,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }
    })
    sent.on("error", fail)
    sent.on("response", (response) => {
      response.on("error", fail).on("end", () => settle(response.statusCode ?? 0))
      response.resume()
    })
    sent.end(JSON.stringify({ model: "m", messages: hello }))
  })

import { type IncomingHttpHeaders, request } from "node:http"
import { Effect } from "effect"
import { HttpServer } from "effect/http"

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** As latin1, and not decompressed. */
  readonly text: string
}

/** A request with the path and the headers as they are given, and no other header. */
export const rawRequest = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>
): Effect.Effect<RawAnswer, never, HttpServer.HttpServer> =>
  HttpServer.addressFormattedWith((address) => {
    // the listener of tests is at every address
    const { port } = new URL(address)
    return Effect.callback<RawAnswer>((resume) => {
      const outgoing = request({ hostname: "127.0.0.1", port, method, path, headers, agent: false }, (incoming) => {
        let text = ""
        incoming.setEncoding("latin1").on("data", (chunk: string) => {
          text += chunk
        })
        incoming.on("end", () =>
          resume(Effect.succeed({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }))
        )
      })
      outgoing.on("error", (error) => resume(Effect.die(error)))
      outgoing.end()
    })
  })
